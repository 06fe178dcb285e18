"""The command line, thin over the library; whatever is heavy is imported by the command that needs it."""

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pdkit import __version__
from pdkit.errors import PdkitError, one_of

if TYPE_CHECKING:
    from pdkit.evidence import Evidence
    from pdkit.results import Judgement
    from pdkit.store import Ruling, Store
    from pdkit.store.place import Place

_FORMATS = ["text", "json", "sarif", "junit", "github", "markdown"]  # modules of pdkit/formats
_EMPTY_SHOWN = 3  # folders without a run that an ingest names
_SILENT_S = 1.0  # work that takes longer says what it does
_PATHS = click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
_THRESHOLDS = click.option("--thresholds", type=click.Path(path_type=Path), help="TOML file with your own thresholds.")
_MACHINE = click.option("--machine", type=click.Path(path_type=Path), help="TOML file with your own GPUs and models.")
_WAIVERS = click.option("--waivers", type=click.Path(path_type=Path), help="TOML file with findings that you accept.")
_SLOS = click.option("--slo", "slos", multiple=True, metavar="METRIC=MS", help="Count goodput, as in ttft_ms=500.")
_REDACT = click.option("--redact", is_flag=True, help="Mask hosts, addresses and paths.")
_STORE = click.option(
    "--store", "where", required=True, metavar="DIR", help="The run store: a folder, or s3://bucket/path."
)
_STORE_OPTIONS = click.option(
    "--storage-option", "said", multiple=True, metavar="K=V", help="For an object store, as aws_endpoint_url=…"
)
_JOBS = click.option("--jobs", type=click.IntRange(min=1), help="Processes; else one a processor.")
_SCHEDULER = click.option("--scheduler", metavar="ADDRESS", help="Dask scheduler to work with, tcp://host:8786.")


class _Commands(click.Group):
    """A wrong call ends with one sentence and exit code 2, never with a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except PdkitError as problem:
            raise click.exceptions.UsageError(str(problem)) from problem

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args and args[0] not in self.commands:
            raise click.exceptions.UsageError(str(one_of("pdkit", args[0], list(self.commands))))
        return super().resolve_command(ctx, args)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="pdkit")
def main() -> None:
    """May these serving-benchmark numbers be believed, and if so, what do they say?"""


@main.command()
@_PATHS
@click.option(
    "--format", "form", type=click.Choice(_FORMATS), default="text", show_default=True, help="How to print it."
)
@click.option(
    "--tables", type=click.Path(path_type=Path, file_okay=False), help="Also write CSV and Parquet into this folder."
)
@click.option("--strict", is_flag=True, help="Doubts fail as well.")
@_THRESHOLDS
@_MACHINE
@_WAIVERS
@_SLOS
@_REDACT
def check(
    *,
    paths: tuple[Path, ...],
    form: str,
    tables: Path | None,
    strict: bool,
    thresholds: Path | None,
    machine: Path | None,
    waivers: Path | None,
    slos: tuple[str, ...],
    redact: bool,
) -> None:
    """Print verdicts and findings for the logs in PATHS (files or folders).

    Exit code 0: all runs are measured (doubts allowed unless --strict), or all that speaks against them is waived.
    1: a run is unverified or has no measured result, or a planned level is missing. 2: wrong call, or nothing could
    be read.

    \b
      pdkit check results/
      pdkit check bench.log result.jsonl --format json
      pdkit check results/ --format sarif --tables tables/ > pdkit.sarif
    """
    from importlib import import_module

    judgement = _judged(paths, thresholds=thresholds, machine=machine, waivers=waivers, slos=slos, redact=redact)
    if tables:
        from pdkit.export import write_tables

        write_tables(judgement, tables)
    options = {"colour": _in_colour()} if form == "text" else {}
    # `color`: what is printed is whole; click would take marks out of it where no terminal reads
    click.echo(import_module(f"pdkit.formats.{form}").text(judgement, **options), nl=False, color=True)
    sys.exit(0 if judgement.accepted(strict=strict).all() else 1)


@main.command()
@click.argument("name")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("reports"),
    show_default=True,
    help="Folder for the report.",
)
@click.option("--title", help="Title of the page.")
@click.option("--as", "saved_as", metavar="NAME", help="Name of the files, where it is not the notebook's.")
@click.option(
    "-p",
    "--parameter",
    "given",
    multiple=True,
    metavar="NAME=VALUE",
    help="A parameter of the notebook; VALUE is JSON, or else text.",
)
@click.option("--bundle", is_flag=True, help="Also write NAME.zip: the report with the lines that it cites.")
@click.option("--store", metavar="DIR", help="The run store, for a notebook that takes one.")
@_THRESHOLDS
@_MACHINE
@_WAIVERS
@_SLOS
@_REDACT
def report(
    *,
    name: str,
    paths: tuple[Path, ...],
    out: Path,
    title: str | None,
    saved_as: str | None,
    given: tuple[str, ...],
    bundle: bool,
    store: str | None,
    thresholds: Path | None,
    machine: Path | None,
    waivers: Path | None,
    slos: tuple[str, ...],
    redact: bool,
) -> None:
    """Run the notebook NAME on the logs in PATHS and write NAME.html, NAME.json and the executed notebook.

    `training` takes no PATHS: its cases name their own logs. `weekly_review` takes a run store instead.

    Exit code 0 when the report was written, whatever it says; 2 when it could not be.

    \b
      pdkit report sweep_review results/ --out reports
      pdkit report sweep_review results/ --bundle --redact
      pdkit report weekly_review --store runs/ -p week=2026-W48
    """
    from pdkit import report as reports

    named = (("thresholds", thresholds), ("machine", machine), ("waivers", waivers))
    files = {name: str(file) for name, file in named if file}
    options = {"title": title, "store": store, "redact": redact or None, "slos": list(slos) or None, **files}
    parameters = dict(map(_parameter, given)) | {key: value for key, value in options.items() if value is not None}
    logs = [str(path) for path in paths]
    with _progress(f"running {name} on {len(paths)} path(s)" if paths else f"running {name}"):
        written = reports.build(name, logs, out=out, saved_as=saved_as, parameters=parameters, bundle=bundle)
    click.echo("\n".join(written.verdicts))
    click.echo(str(written.html))
    if bundle:
        click.echo(str(written.bundle))


@main.command()
@click.argument("baseline", type=click.Path(path_type=Path))
@click.argument("candidate", type=click.Path(path_type=Path))
@click.option(
    "--baseline",
    "baselines",
    type=click.Path(path_type=Path),
    multiple=True,
    help="Further logs of BASELINE; may be repeated.",
)
@click.option(
    "--candidate",
    "candidates",
    type=click.Path(path_type=Path),
    multiple=True,
    help="Further logs of CANDIDATE; may be repeated.",
)
@click.option(
    "--metric",
    metavar="NAME",
    default="received_throughput_tok_per_s",
    show_default=True,
    help="What a call is made by; declare it before you look. Or: tpot_ms_mean, ttft_ms_median, ttft_ms_p90.",
)
@click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True, help="How to print it."
)
@_THRESHOLDS
@_MACHINE
@_REDACT
def compare(
    *,
    baseline: Path,
    candidate: Path,
    baselines: tuple[Path, ...],
    candidates: tuple[Path, ...],
    metric: str,
    form: str,
    thresholds: Path | None,
    machine: Path | None,
    redact: bool,
) -> None:
    """Hold the runs in CANDIDATE against those in BASELINE (each a file or a folder), level by level.

    Prints what differs, whether the two may be compared, and what both then say. Several runs of a side at one level
    are its repeats: from three a side CANDIDATE is called faster, slower, the same within a few percent, or nobody can
    tell; of fewer there is no winner. Exit code 0: all that both sides have was compared, whatever it says. 1:
    something was refused. 2: wrong call.

    \b
      pdkit compare results/before results/after
      pdkit compare before-1 after-1 --baseline before-2 --baseline before-3 --candidate after-2 --candidate after-3
    """
    from pdkit import compare as comparing
    from pdkit.formats import comparison as formats
    from pdkit.machines import read_machines
    from pdkit.policy import read_thresholds

    bounds = read_thresholds(thresholds) if thresholds else None
    with _progress("comparing"):
        sides = _evidence((baseline, *baselines)), _evidence((candidate, *candidates))
        own = read_machines(machine) if machine else None
        compared = comparing.compare(*sides, metric=metric, thresholds=bounds, machines=own, redact=redact)
    click.echo({"text": formats.text, "json": formats.json}[form](compared), nl=False)
    sys.exit(0 if compared.is_comparable else 1)


@main.command()
@click.argument("rule")
def explain(rule: str) -> None:
    """Print the page of a RULE: what it claims, why, what to look at next, where its threshold comes from."""
    from pdkit.catalogue import rule_page

    click.echo(rule_page(rule), nl=False)


@main.command()
@_PATHS
@click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True, help="How to print it."
)
@_THRESHOLDS
@_REDACT
def calibrate(*, paths: tuple[Path, ...], form: str, thresholds: Path | None, redact: bool) -> None:
    """Count how often each rule fires on the results in PATHS, and name the files behind each refusal.

    A refusal of a run that really produced its output is a false alarm: a bug of the rule.

    \b
      pdkit calibrate results/2026/
      pdkit calibrate results/2026/ --format json
    """
    from pdkit import calibrate as calibration

    judgement = _judged(paths, thresholds=thresholds, redact=redact)
    click.echo((calibration.text if form == "text" else calibration.json_text)(judgement), nl=False)


@main.command("case")
@click.argument("name")
@click.option(
    "--format",
    "form",
    type=click.Choice(["markdown", "ipynb"]),
    default="markdown",
    show_default=True,
    help="How to print it.",
)
@click.option(
    "--audience", default="self-study", show_default=True, help="self-study, trainee (no answers) or interviewer."
)
@click.option("--level", help="Leave out follow-up questions above it: L2, L3 or L4.")
def case_(*, name: str, form: str, audience: str, level: str | None) -> None:
    """Print the training case NAME (an id of `pdkit list cases`, or a folder that holds a case.toml).

    \b
      pdkit case split-that-won > split-that-won.md
      pdkit case split-that-won --format ipynb --audience trainee > handout.ipynb
    """
    from pdkit.cases import casebook
    from pdkit.formats import training

    with _progress(f"judging the logs of {name}"):
        book = casebook([name], audience=audience, level=level)
    printed = {"markdown": training.markdown, "ipynb": training.ipynb}[form]
    click.echo(printed(book.cases[0], audience=book.audience), nl=False)


@main.command()
@_PATHS
@_STORE
@_STORE_OPTIONS
@click.option("--week", metavar="WEEK", help="Week of runs of which nothing says when they started, as 2026-W48.")
@_JOBS
@_SCHEDULER
@_THRESHOLDS
@_MACHINE
def ingest(
    *,
    paths: tuple[Path, ...],
    where: str,
    said: tuple[str, ...],
    week: str | None,
    jobs: int | None,
    scheduler: str | None,
    thresholds: Path | None,
    machine: Path | None,
) -> None:
    """Read and judge the logs in PATHS, and keep evidence and judgement in a run store.

    The same files again change nothing; an experiment whose files grew takes the place of its older version. Exit code
    1: a file or an experiment could not be read; all others are stored. 2: wrong call, or nothing could be read.

    \b
      pdkit ingest results/ --store runs/
      pdkit ingest results/ --store s3://bench/runs --storage-option aws_endpoint_url=https://s3.example
    """
    from pdkit import store
    from pdkit.findings import one_line

    ruling, engine = _ruling(thresholds, machine), store.Engine(jobs, scheduler)
    seen: dict[str, list[str]] = {}
    with _progress(f"reading {len(paths)} path(s)"):
        for one in store.ingest(paths, _place(where, said), week=week, ruling=ruling, engine=engine):
            seen.setdefault(one.outcome, []).append(one_line(one.sentence))
            if one.outcome != "empty":
                click.echo(seen[one.outcome][-1], err=one.outcome == "failed")
    empty = seen.get("empty", [])
    for sentence in empty[:_EMPTY_SHOWN]:
        click.echo(sentence)
    if len(empty) > _EMPTY_SHOWN:
        click.echo(f"and {len(empty) - _EMPTY_SHOWN} more folders that hold no run")
    if not {"stored", "known"} & set(seen):
        raise PdkitError(f"{', '.join(map(str, paths))}: nothing to store; see `pdkit list readers`")
    sys.exit(1 if "failed" in seen else 0)


@main.group("store", cls=_Commands)
def store_() -> None:
    """Look at a run store, and take things out of it."""


@store_.command("ls")
@_STORE
@_STORE_OPTIONS
@click.option("--week", "weeks", multiple=True, metavar="WEEK", help="Only this week; may be repeated.")
def store_ls(*, where: str, said: tuple[str, ...], weeks: tuple[str, ...]) -> None:
    """List the experiments of a store: week, runs, verdicts, size."""
    from pdkit.store.text import listing

    click.echo(listing(_opened(where, said).experiments(weeks or None)), nl=False)


@store_.command("show")
@click.argument("experiment")
@_STORE
@_STORE_OPTIONS
@click.option("--week", metavar="WEEK", help="Of this week, where several experiments have the name.")
def store_show(*, experiment: str, where: str, said: tuple[str, ...], week: str | None) -> None:
    """Print one EXPERIMENT, by name or id: its files, its runs, and what speaks against them."""
    from pdkit.store.text import shown

    opened = _opened(where, said)
    click.echo(shown(opened, opened.entry(experiment, week)), nl=False)


@store_.command("rm")
@click.argument("experiment", required=False)
@_STORE
@_STORE_OPTIONS
@click.option("--week", metavar="WEEK", help="All of this week, or of an EXPERIMENT that of this week.")
def store_rm(*, experiment: str | None, where: str, said: tuple[str, ...], week: str | None) -> None:
    """Take an EXPERIMENT out, by name or id, or all of a week; `vacuum` then frees the space."""
    from pdkit.store import remove

    if experiment is None and week is None:
        raise PdkitError("pdkit store rm: nothing named; give an EXPERIMENT, or --week")
    opened = _opened(where, said)
    chosen = opened.of_week(week or "") if experiment is None else [opened.entry(experiment, week)]
    for gone in remove(opened.place, chosen):
        click.echo(f"{gone.experiment}: out, {', '.join(gone.weeks)}")


@store_.command("vacuum")
@_STORE
@_STORE_OPTIONS
@click.option("--grace", "grace_h", type=click.FloatRange(min=0), default=24.0, show_default=True, metavar="HOURS",
              help="Leave what is younger: an ingest may be under way.")  # fmt: skip
def store_vacuum(*, where: str, said: tuple[str, ...], grace_h: float) -> None:
    """Remove files that count for nobody any more, and make one manifest of many."""
    from pdkit.store import vacuum
    from pdkit.store.text import size
    from pdkit.units import plural

    done = vacuum(_place(where, said), grace_h=grace_h)
    young = f"; {plural(done.young, 'file')} younger than the grace period left" if done.young else ""
    click.echo(
        f"{plural(done.files, 'file')} removed, {size(done.bytes)}; {plural(done.manifests, 'manifest')} merged{young}"
    )


@main.command()
@_STORE
@_STORE_OPTIONS
@click.option("--all", "every", is_flag=True, help="Also what today's rules have judged already.")
@_JOBS
@_SCHEDULER
@_THRESHOLDS
@_MACHINE
def rejudge(
    *,
    where: str,
    said: tuple[str, ...],
    every: bool,
    jobs: int | None,
    scheduler: str | None,
    thresholds: Path | None,
    machine: Path | None,
) -> None:
    """Judge the evidence of a run store with today's rules, and list the runs whose verdict changed.

    Exit code 0, whatever changed; 1: an experiment could not be judged.
    """
    from pdkit import store
    from pdkit.findings import one_line
    from pdkit.units import plural

    ruling, engine = _ruling(thresholds, machine), store.Engine(jobs, scheduler)
    with _progress("judging"):
        anew = store.rejudge(_place(where, said), ruling=ruling, engine=engine, every=every)
    for line in (*map(str, anew.changed), *anew.failed):
        click.echo(one_line(line))
    known = f", {anew.current} by these rules already" if anew.current else ""
    done, changed = plural(anew.judged, "experiment"), plural(len(anew.changed), "verdict")
    click.echo(f"rules {anew.rules}: {done} judged{known}; {changed} changed")
    sys.exit(1 if anew.failed else 0)


@main.command()
@_STORE
@_STORE_OPTIONS
@click.option("--series", "words", multiple=True, metavar="WORDS", help="Only keys that hold these; may be repeated.")
def series(*, where: str, said: tuple[str, ...], words: tuple[str, ...]) -> None:
    """List the series of a run store: runs by week, verdicts, the last value, and what changed in mid-series."""
    from pdkit.store.text import series as text

    click.echo(text(_opened(where, said).series(words)), nl=False)


def _ruling(thresholds: Path | None, machine: Path | None) -> "Ruling":
    from pdkit.machines import read_machines
    from pdkit.policy import read_thresholds
    from pdkit.store import Ruling

    return Ruling(read_thresholds(thresholds) if thresholds else None, read_machines(machine) if machine else None)


@main.command("weekly")
@_STORE
@_STORE_OPTIONS
@click.option("--week", metavar="WEEK", help="As 2026-W48; else the last of the store.")
@click.option("--series", "words", multiple=True, metavar="WORDS", help="Only keys that hold these; may be repeated.")
@click.option("--targets", type=click.Path(path_type=Path), help="TOML file with targets and dated notes.")
@_WAIVERS
@_REDACT
def weekly_(
    *,
    where: str,
    said: tuple[str, ...],
    week: str | None,
    words: tuple[str, ...],
    targets: Path | None,
    waivers: Path | None,
    redact: bool,
) -> None:
    """Print the weekly performance review as Markdown for a mail or a chat; `pdkit report weekly_review` is its page.

    \b
      pdkit weekly --store runs/
      pdkit weekly --store runs/ --week 2026-W48 --series "gpu=4x H100"
    """
    from pdkit import weekly
    from pdkit.policy import read_waivers

    found = weekly.review(
        _opened(where, said),
        week=week,
        series=words,
        plan=weekly.read_plan(targets) if targets else None,
        waivers=read_waivers(waivers) if waivers else (),
        redact=redact,
    )
    click.echo(weekly.markdown(found), nl=False)


@main.command("index")
@click.argument("folder", type=click.Path(path_type=Path))
def index_(folder: Path) -> None:
    """Write index.html over all reports in a FOLDER: what each concludes, with a link."""
    from pdkit.index import write_index

    click.echo(str(write_index(folder)))


def _place(where: str, said: tuple[str, ...]) -> "Place":
    from pdkit.store import place

    wrong = next((one for one in said if "=" not in one), None)
    if wrong is not None:
        raise PdkitError(f"--storage-option {wrong}: no value; write KEY=VALUE")
    return place(where, dict(one.split("=", 1) for one in said))


def _opened(where: str, said: tuple[str, ...]) -> "Store":
    from pdkit import store

    place = _place(where, said)
    return store.opened(place)


@main.command("list")
@click.argument("what", type=click.Choice(["readers", "checks", "charts", "reports", "cases"]))
def list_(what: str) -> None:
    """List the readers, checks, charts, reports or training cases that there are, one a line."""
    from pdkit import catalogue

    for line in catalogue.listing(what):
        click.echo(line)


def _judged(
    paths: tuple[Path, ...],
    *,
    thresholds: Path | None,
    redact: bool,
    machine: Path | None = None,
    waivers: Path | None = None,
    slos: tuple[str, ...] = (),
) -> "Judgement":
    from pdkit.goodput import read_slos
    from pdkit.judge import judge
    from pdkit.machines import read_machines
    from pdkit.policy import read_thresholds, read_waivers

    bounds = read_thresholds(thresholds) if thresholds else None
    accepted = read_waivers(waivers) if waivers else ()
    own = read_machines(machine) if machine else None
    bounds_in_ms = read_slos(slos)
    with _progress(f"reading {len(paths)} path(s)"):
        evidence = _evidence(paths)
    if redact:
        from pdkit.redact import redacted, redacted_waivers

        evidence, accepted = redacted(evidence), redacted_waivers(accepted)
    with _progress(f"judging {evidence.runs.height} sightings"):
        return judge(evidence, thresholds=bounds, waivers=accepted, slos=bounds_in_ms, machines=own)


def _evidence(paths: tuple[Path, ...]) -> "Evidence":
    from pdkit.load import load

    evidence = load(paths)
    if evidence.runs.is_empty():
        raise PdkitError(f"{', '.join(map(str, paths))}: {_nothing(evidence)}")
    return evidence


def _nothing(evidence: "Evidence") -> str:
    """Why there is no run in what was given, and what would be right."""
    from pdkit.units import plural

    if evidence.unread.height:
        first = evidence.unread.row(0, named=True)
        return f"no run of a known client (line {first['source_line']}: {first['reason']}); see `pdkit list readers`"
    if evidence.samples.height or evidence.events.height or evidence.settings.height:
        return "logs of servers, and no output of a client; name the client's log or record as well"
    damaged = (
        evidence.sources["reason"].drop_nulls().filter(evidence.sources["reason"].drop_nulls().str.contains("damaged"))
    )
    if damaged.len():
        return f"{damaged[0]}; nothing in it is a client's result"
    if evidence.sources.height:
        return f"{plural(evidence.sources.height, 'file')}, none that a reader knows; see `pdkit list readers`"
    return "no files; name logs or folders that hold some"


def _in_colour() -> bool:
    """On a terminal that can, unless NO_COLOR says no; FORCE_COLOR says yes to a file too (both: no)."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (sys.stdout.isatty() and os.environ.get("TERM") != "dumb")


def _parameter(given: str) -> tuple[str, Any]:
    import json

    name, mark, value = given.partition("=")
    if not mark:
        raise PdkitError(f"--parameter {given}: no value; write NAME=VALUE")
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value


@contextmanager
def _progress(doing: str) -> Iterator[None]:
    """Say on standard error what is being done, once it takes longer than a second."""
    said = threading.Timer(_SILENT_S, lambda: click.echo(f"{doing} …", err=True))
    said.daemon = True
    said.start()
    try:
        yield
    finally:
        said.cancel()
