"""The sections of a page, made from a judgement: as HTML in which every text is escaped, and as plain text.

Numbers are taken from `judgement.for_results`; only sections of evidence may show a claimed figure, and they say so.
"""

import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from pdkit import __version__
from pdkit.evidence import SCHEMAS
from pdkit.facts import AGGREGATES, CATEGORIES, ORDER, SAID, base_names
from pdkit.metrics import CLIENT_LOG, DETAILS, MANIFEST, METRICS, RESULTS
from pdkit.results import CLAIMED, DOUBTS, MEASURED, NO_RESULT, UNVERIFIED, Judgement, Verdict
from pdkit.rules import CHECKS, Bound, Check
from pdkit.units import listed, plural, show

if TYPE_CHECKING:
    import pandas as pd

_TEMPLATES = Path(__file__).parent / "report_template" / "sections"
_LINES_SHOWN = 3  # of what a finding rests on; the rest is folded
_ROWS_SHOWN = 24  # of a table; whole groups, the rest is folded
_CARDS_OPEN = 6  # refused runs that are not folded
_EXPERIMENTS_SHOWN = 12  # of a banner
# shape and colour of a verdict, as in the charts (pdkit/charts/theme.py): never colour alone
SYMBOLS: Mapping[Verdict, str] = {MEASURED: "●", DOUBTS: "◆", UNVERIFIED: "■", NO_RESULT: "✕"}
_CLASSES: Mapping[str, str] = {MEASURED: "measured", DOUBTS: "doubts", UNVERIFIED: "unverified", NO_RESULT: "none"}
_SHOWN = (
    "received_throughput_tok_per_s", "received_throughput_tok_per_s_per_gpu", "request_throughput_per_s", "ttft_ms_median", "ttft_ms_p99",
    "tpot_ms_median", "itl_ms_p99", "e2e_ms_median", "e2e_ms_p99",
)  # fmt: skip
_EVIDENCE = {"text": "text of each answer", "requests": "numbers of each request", "summary": "summary only"}

Kind = Literal["text", "number", "withheld", "code", "dim", "verdict", "head"]


# --- what a page is made of -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cell:
    """One cell of a table; `more` stands below it, and what does not fit there is folded."""

    text: str
    kind: Kind = "text"
    more: tuple[str, ...] = ()
    folded: tuple[str, ...] = ()

    @property
    def plain(self) -> str:
        """All of it on one line."""
        return ", ".join((self.text, *self.more, *self.folded)) if self.kind == "code" else " ".join((self.text, *self.more, *self.folded))


Row = tuple[Cell, ...]


@dataclass(frozen=True)
class Column:
    """The head of a column, with its unit."""

    title: str
    unit: str = ""
    number: bool = False


@dataclass(frozen=True)
class Group:
    """Rows that belong together, under a heading that may be absent."""

    title: str
    rows: tuple[Row, ...]
    note: str = ""


@dataclass(frozen=True)
class Table:
    """Rows in groups; what is beyond the first rows is folded away, whole groups at a time."""

    label: str
    columns: tuple[Column, ...]
    groups: tuple[Group, ...]
    wide: bool = False
    template: str = "table"

    @property
    def shown(self) -> tuple[Group, ...]:
        """The groups that are not folded: the first always is one of them."""
        kept, rows = 0, 0
        for group in self.groups:
            rows += len(group.rows)
            if kept and rows > _ROWS_SHOWN:
                break
            kept += 1
        return self.groups[:kept]

    @property
    def folded(self) -> tuple[Group, ...]:
        """The others."""
        return self.groups[len(self.shown) :]

    @property
    def folded_rows(self) -> str:
        """How many rows they have, in words."""
        return plural(sum(len(group.rows) for group in self.folded), "more row")

    def lines(self) -> Iterator[str]:
        """As text, columns aligned."""
        head = [f"{column.title} ({column.unit})" if column.unit else column.title for column in self.columns]
        rows = [[cell.plain for cell in row] for group in self.groups for row in group.rows]
        widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
        yield "  ".join(text.ljust(width) for text, width in zip(head, widths, strict=True)).rstrip()
        for group in self.groups:
            if group.title:
                yield f"{group.title}{f' ({group.note})' if group.note else ''}"
            for row in group.rows:
                yield "  ".join(cell.plain.rjust(w) if cell.kind == "number" else cell.plain.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip()


@dataclass(frozen=True)
class Words:
    """One paragraph; `label` stands out at its beginning."""

    text: str
    label: str = ""
    template: str = "words"

    def lines(self) -> Iterator[str]:
        """As text."""
        yield f"{self.label}: {self.text}" if self.label else self.text


@dataclass(frozen=True)
class Card:
    """One thing that stands for itself, under a heading with its verdict."""

    title: str
    aside: str
    verdict: Verdict
    parts: tuple["Part", ...]
    open: bool = True
    template: str = "card"

    def lines(self) -> Iterator[str]:
        """As text."""
        yield f"{SYMBOLS[self.verdict]} {self.title} ({self.aside}): {self.verdict}"
        for part in self.parts:
            yield from (f"  {line}" for line in part.lines())


@dataclass(frozen=True)
class Fold:
    """Parts that a reader opens."""

    summary: str
    parts: tuple["Part", ...]
    template: str = "fold"

    def lines(self) -> Iterator[str]:
        """As text, never folded."""
        yield f"{self.summary}:"
        for part in self.parts:
            yield from (f"  {line}" for line in part.lines())


@dataclass(frozen=True)
class Step:
    """One level of an experiment in the banner."""

    level: str
    verdict: Verdict


@dataclass(frozen=True)
class Concluded:
    """What the runs of one experiment say together."""

    title: str
    sentence: str
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class Banner:
    """The verdicts at a glance."""

    headline: str
    verdict: Verdict
    counts: tuple[tuple[Verdict, int], ...]
    experiments: tuple[Concluded, ...]
    synthetic: str = ""
    template: str = "banner"

    @property
    def shown(self) -> tuple[Concluded, ...]:
        """The experiments that are not folded."""
        return self.experiments[:_EXPERIMENTS_SHOWN]

    @property
    def folded(self) -> tuple[Concluded, ...]:
        """The others."""
        return self.experiments[_EXPERIMENTS_SHOWN:]

    def lines(self) -> Iterator[str]:
        """As text."""
        yield from [self.synthetic] if self.synthetic else []
        yield self.headline
        yield ", ".join(f"{SYMBOLS[verdict]} {count} {verdict}" for verdict, count in self.counts)
        for experiment in self.experiments:
            yield f"{experiment.title}: {experiment.sentence}"


Part = Table | Words | Card | Fold | Banner


@dataclass(frozen=True, repr=False)
class Section:
    """A part of the page that shows itself in a notebook, on a page and in a terminal."""

    name: str
    parts: tuple[Part, ...] = field(default=())

    def _repr_html_(self) -> str:
        return str(_template().render(section=self, symbols=SYMBOLS, classes=_CLASSES))

    def __str__(self) -> str:
        return "\n".join(line for part in self.parts for line in part.lines())

    __repr__ = __str__


@cache
def _template() -> Any:
    """The one template; autoescape is what keeps a log line from becoming markup."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(loader=FileSystemLoader(_TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return environment.get_template("section.html.j2")


# --- title, verdict and results -------------------------------------------------------------------------------------


def heading(title: str) -> Section:
    """The title of the page, as it was given."""
    return Section("heading", (Words(title, template="title"),))


def banner(judgement: Judgement) -> Section:
    """The verdicts at a glance: a headline, counts, and a sentence an experiment."""
    verdicts = judgement.verdicts
    counts = tuple((verdict, verdicts.filter(pl.col("verdict") == verdict).height) for verdict in SYMBOLS)
    steps = {str(name): group for (name,), group in verdicts.group_by("experiment", maintain_order=True)}
    experiments = tuple(
        Concluded(row["title"], row["sentence"], tuple(Step(level, verdict) for level, verdict in steps[row["experiment"]].select("level", "verdict").iter_rows()))
        for row in judgement.conclusions.iter_rows(named=True)
    )
    worst = next((verdict for verdict in (NO_RESULT, UNVERIFIED, DOUBTS, MEASURED) if dict(counts)[verdict]), NO_RESULT)
    return Section("banner", (Banner(_headline(counts, len(experiments)), worst, counts, experiments, _synthetic(verdicts)),))


def _headline(counts: Sequence[tuple[Verdict, int]], experiments: int) -> str:
    runs, by = sum(count for _, count in counts), dict(counts)
    if not runs:
        return "No measured result: the files hold no run that pdkit can read."
    where = f" in {plural(experiments, 'experiment')}" if experiments > 1 else ""
    what = plural(runs, "load point")
    believed = by[MEASURED] + by[DOUBTS]
    if by[NO_RESULT] == runs:
        return f"No measured result at any of {what}{where}." if runs > 1 else "No measured result."
    if by[NO_RESULT]:
        return f"{by[NO_RESULT]} of {what}{where} {'has' if by[NO_RESULT] == 1 else 'have'} no measured result."
    if by[UNVERIFIED]:
        return f"{by[UNVERIFIED]} of {what}{where} {'is' if by[UNVERIFIED] == 1 else 'are'} unverified: nothing shows that text came back."
    if by[DOUBTS]:
        return f"{what[0].upper()}{what[1:]}{where} measured, {f'{by[DOUBTS]} of them' if by[DOUBTS] < believed else 'all' if runs > 1 else 'this one'} with doubts."
    return f"{what[0].upper()}{what[1:]}{where} measured; no rule found a reason for doubt."


def _synthetic(verdicts: pl.DataFrame) -> str:
    by_experiment = verdicts.group_by("experiment", maintain_order=True).agg(pl.col("synthetic").fill_null(False).any())
    made, every = int(by_experiment["synthetic"].sum()), by_experiment.height
    if not made:
        return ""
    which = "the logs of this experiment" if every == 1 else f"the logs of all {every} experiments" if made == every else f"the logs of {made} of {every} experiments"
    return f"SYNTHETIC DATA: {which} were made by a program, not recorded from a run."


def measured(judgement: Judgement) -> Section:
    """The numbers that may be published, one row a run; what a rule took is named in its place."""
    wide = judgement.for_results.wide(*_SHOWN)
    kept = wide.filter(pl.col("verdict") != NO_RESULT)
    if kept.is_empty():
        return Section("measured", (Words("No run has a measured result, so there is no number to show."),))
    taken = _taken(judgement)
    stated = [fact for fact in _SHOWN if kept[fact].is_not_null().any() or any((run, fact) in taken for run in kept["run_id"])]
    groups = tuple(
        Group(title, tuple(_result_row(row, stated, taken) for row in runs.iter_rows(named=True)), _about(runs)) for title, runs in _by_experiment(judgement, kept)
    )
    columns = (Column("Level"), Column("Verdict"), Column("Requests", number=True), *(Column(METRICS[fact].title, METRICS[fact].unit, number=True) for fact in stated))
    return Section("measured", (Table("Published numbers", columns, groups, wide=True), *_said_below(judgement, kept, stated)))


def _said_below(judgement: Judgement, kept: pl.DataFrame, stated: Sequence[str]) -> Iterator[Words]:
    absent = [METRICS[fact].title for fact in _SHOWN if fact not in stated and not fact.endswith("_per_gpu")]
    if absent:
        yield Words(f"No log states {listed(absent)}.")
    if (kept["verdict"] == UNVERIFIED).any():
        yield Words("Nothing shows that the text of an unverified run came back: its numbers are what the client printed, and no result.")
    if judgement.verdicts.height > kept.height:
        yield Words(f"{plural(judgement.verdicts.height - kept.height, 'load point')} with no measured result: see that section.")


def _result_row(row: Mapping[str, Any], facts: Sequence[str], taken: Mapping[tuple[str, str], str]) -> Row:
    numbers = (_number(row[fact], taken.get((row["run_id"], fact))) for fact in facts)
    return (Cell(row["level"], "head"), Cell(row["verdict"], "verdict"), Cell(show(row["completed"]), "number"), *numbers)


def _number(value: float | None, why: str | None) -> Cell:
    if value is not None:
        return Cell(show(value), "number")
    return Cell(why, "withheld") if why else Cell("not stated", "withheld")


def _taken(judgement: Judgement) -> dict[tuple[str, str], str]:
    """What stands in place of each number that a rule took: the rule, or the number of requests that it needs."""
    least = _least(judgement)
    voided = judgement.published.filter(pl.col("voided_by").list.len() > 0).select("run_id", "fact", "voided_by")
    return {
        (run, fact): f"needs n ≥ {least[run, fact]:,.0f}" if (run, fact) in least and len(rules) == 1 else f"{NO_RESULT} ({', '.join(rules)})"
        for run, fact, rules in voided.iter_rows()
    }


def _least(judgement: Judgement) -> dict[tuple[str, str], float]:
    """How many values a percentile needs, where it had fewer: from the views that take facts by name."""
    takes = [{"rule": check.id, "view": number, "fact": list(view.takes)} for check in CHECKS.values() for number, view in enumerate(check.views) if view.takes]
    named = pl.DataFrame(takes, schema={"rule": pl.String, "view": pl.Int32, "fact": pl.List(pl.String)}).explode("fact")
    failed = judgement.views.filter(pl.col("outcome") == "fail", pl.col("threshold_low").is_not_null()).join(named, on=["rule", "view"])
    return {(run, fact): low for run, fact, low in failed.select("run_id", "fact", "threshold_low").iter_rows()}


def _by_experiment(judgement: Judgement, runs: pl.DataFrame) -> Iterator[tuple[str, pl.DataFrame]]:
    titles = dict(judgement.conclusions.select("experiment", "title").iter_rows())
    for (name,), group in runs.group_by("experiment", maintain_order=True):
        yield titles[name], group


def _about(runs: pl.DataFrame) -> str:
    """What is the same for all runs of an experiment: model, topology, cards, client; and what the evidence is."""
    said = [listed(runs[name].drop_nulls().unique(maintain_order=True).to_list()) for name in ("model", "topology", "gpu", "tool", "backend")]
    levels = listed([_EVIDENCE[level] for level in runs["evidence_level"].drop_nulls().unique(maintain_order=True)])
    return " · ".join(dict.fromkeys([*filter(None, said), f"evidence: {levels}"]))


# --- no measured result ---------------------------------------------------------------------------------------------


def no_measured_result(judgement: Judgement) -> Section:
    """Each refused or missing level with its rules, values, thresholds and lines; or that there is none."""
    refused = judgement.verdicts.filter(pl.col("verdict") == NO_RESULT)
    if refused.is_empty():
        what = "No load point was refused" if judgement.verdicts.height else "No run was found: the files hold nothing that pdkit can read"
        return Section("no_measured_result", (Words(f"{what}."),))
    cards = tuple(_refusals(judgement, refused))
    return Section("no_measured_result", (Words(_refused_in_words(judgement, refused)), *cards))


def _refused_in_words(judgement: Judgement, refused: pl.DataFrame) -> str:
    those = "this load point" if refused.height == 1 else "these load points"
    return f"{refused.height} of {plural(judgement.verdicts.height, 'load point')}: nothing printed for {those} is used as a result anywhere on this page."


def _refusals(judgement: Judgement, refused: pl.DataFrame) -> Iterator[Card]:
    told = {str(run): rows for (run,), rows in judgement.findings.group_by("run_id", maintain_order=True)}
    facts = {row["run_id"]: row for row in judgement.facts.join(refused.select("run_id"), on="run_id", how="semi").iter_rows(named=True)}
    claims = judgement.claimed.filter(pl.col("fact") == "output_throughput_tok_per_s").rows_by_key("run_id", named=True, unique=True)
    yes_no = _yes_or_no(judgement)
    for number, (title, run) in enumerate((title, run) for title, runs in _by_experiment(judgement, refused) for run in runs.iter_rows(named=True)):
        rows = told[run["run_id"]]
        grave, others = (rows.filter((pl.col("severity") == "refuse") == is_grave) for is_grave in (True, False))
        doubts = others.filter(pl.col("severity") == "suspect")
        parts: list[Part] = [_findings_table(grave, yes_no), *_what_came_back(facts[run["run_id"]], claims.get(run["run_id"]))]
        if doubts.height:
            parts.append(Fold(f"{plural(doubts.height, 'further doubt')} about this load point", (_findings_table(doubts, yes_no),)))
        yield Card(run["level"], title, NO_RESULT, tuple(parts), open=number < _CARDS_OPEN)


def _findings_table(findings: pl.DataFrame, yes_no: set[tuple[str, int]]) -> Table:
    rows = tuple(
        (Cell(row["rule"], "head"), Cell(_sentence(row["sentence"])), _value(row, yes_no), Cell(_allowed(row, yes_no), "dim"), _cited(row["lines"]))
        for row in findings.iter_rows(named=True)
    )
    columns = (Column("Rule"), Column("What is wrong"), Column("Value", number=True), Column("Allowed"), Column("Log lines"))
    return Table("Rules that failed", columns, (Group("", rows),))


def _what_came_back(facts: Mapping[str, Any], claim: Mapping[str, Any] | None) -> Iterator[Words]:
    """What did arrive, and what was claimed, each under a label that says what it is not."""
    received, seconds = facts["received_tok"], facts["duration_s"]
    if received is not None and facts["completed"]:
        requests = f" from {show(facts['requests_with_text'])} of {plural(facts['requests_seen'], 'request')}" if facts["requests_with_text"] is not None else ""
        yield Words(f"{show(received)} tokens in {show(seconds, 's')}{requests}", "Came back (not a result)")
    if claim:
        yield Words(f"{show(claim['value'], 'tok/s')} {CLAIMED} ({claim['source_file']}:{claim['source_line']})", "Output throughput")


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _yes_or_no(judgement: Judgement) -> set[tuple[str, int]]:
    """The views whose observed value is a yes or a no, not a number."""
    schema = judgement.facts.head(0).lazy()
    views = [(check.id, number, view) for check in CHECKS.values() for number, view in enumerate(check.views) if view.grain == "run"]
    return {(rule, number) for rule, number, view in views if schema.select(view.observed.alias("seen")).collect_schema()["seen"] == pl.Boolean}


def _value(row: Mapping[str, Any], yes_no: set[tuple[str, int]]) -> Cell:
    if row["total"] is not None and row["bad"] is not None:
        return Cell(f"{row['bad']:,} of {row['total']:,}", "number")
    if (row["rule"], row["view"]) in yes_no:
        return Cell("yes" if row["observed"] else "no", "number")
    return Cell(_short(row["observed"]), "number")


def _allowed(row: Mapping[str, Any], yes_no: set[tuple[str, int]]) -> str:
    low, high = row["threshold_low"], row["threshold_high"]
    if (row["rule"], row["view"]) in yes_no:
        return "yes" if low == 1 else "no"
    if row["total"] is not None and high is not None:
        return f"at most {show(high, 'ratio')}" if high else "none"
    return str(Bound(low, high))


def _short(value: float | None) -> str:
    """A number whose unit only its rule knows, with the digits that tell it from its threshold."""
    if value is None:
        return "unknown"
    return f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:.3g}"


def _cited(lines: Sequence[str]) -> Cell:
    if not lines:
        return Cell("", "code")
    return Cell(lines[0], "code", tuple(lines[1:_LINES_SHOWN]), tuple(lines[_LINES_SHOWN:]))


# --- doubts and rules -----------------------------------------------------------------------------------------------


def doubts(judgement: Judgement) -> Section:
    """What makes a number doubtful without refusing it, by rule; the doubts about refused runs stand with these."""
    about = judgement.verdicts.select("run_id", "experiment", "level", "verdict")
    told = judgement.findings.filter(pl.col("severity") != "refuse", pl.col("rule") != "PD901").join(about, on="run_id").sort(*ORDER[:1], "rule", maintain_order=True)
    suspects = told.filter(pl.col("severity") == "suspect", pl.col("verdict") != NO_RESULT)
    notes = told.filter(pl.col("severity") == "note")
    unknown = judgement.verdicts.filter("sent_unknown", ~pl.col("without_block"))
    parts: list[Part] = []
    if suspects.height:
        parts.append(_by_rule(judgement, suspects, "Doubts"))
    if unknown.height:
        parts.append(Words(f"How many requests failed is not known for {plural(unknown.height, 'load point')}: no log says how many were sent."))
    if not parts:
        parts.append(Words("No published number is in doubt."))
    if notes.height:
        parts.append(Fold(f"{plural(notes.height, 'note')} that change no verdict", (_by_rule(judgement, notes, "Notes"),)))
    return Section("doubts", tuple(parts))


def _by_rule(judgement: Judgement, told: pl.DataFrame, label: str) -> Table:
    titles = dict(judgement.conclusions.select("experiment", "title").iter_rows())
    groups = tuple(
        Group(f"{rule} · {CHECKS[str(rule)].title}", tuple(_doubt(row, titles) for row in rows.iter_rows(named=True))) for (rule,), rows in told.sort("rule", maintain_order=True).group_by("rule", maintain_order=True)
    )
    return Table(label, (Column("Experiment"), Column("Level"), Column("What was seen"), Column("Log lines")), groups)


def _doubt(row: Mapping[str, Any], titles: Mapping[str, str]) -> Row:
    return (Cell(titles[row["experiment"]]), Cell(row["level"], "head"), Cell(_sentence(row["sentence"])), _cited(row["lines"]))


def rule_table(judgement: Judgement) -> Section:
    """Every rule: what it looked at, what failed, the worst value that it saw, and its threshold."""
    yes_no = _yes_or_no(judgement)
    rows = {str(rule): results for (rule,), results in judgement.results.group_by("rule", maintain_order=True)}
    groups = []
    for family in dict.fromkeys(check.family for check in CHECKS.values() if check.id in rows):
        ids = [check.id for _, check in sorted(CHECKS.items()) if check.family == family and check.id in rows]
        groups.append(Group(_sentence(family.replace("_", " ")), tuple(_rule_row(CHECKS[rule], rows[rule], yes_no) for rule in ids)))
    columns = (
        Column("Rule"), Column("What should hold"), Column("Looked at"), Column("Refused", number=True), Column("Doubted", number=True), Column("Noted", number=True),
        Column("Passed", number=True), Column("Not applicable", number=True), Column("Not evaluated", number=True), Column("Worst value", number=True), Column("Allowed"),
    )  # fmt: skip
    words = Words(f"{plural(len(rows), 'rule')} held against {plural(judgement.verdicts.height, 'load point')}. A rule that looked at nothing has not passed: it is not evaluated.")
    return Section("rule_table", (words, Fold("The rules one by one", (Table("Rules", columns, tuple(groups), wide=True),))) if rows else (Words("No rule looked at anything."),))


def _rule_row(check: Check, results: pl.DataFrame, yes_no: set[tuple[str, int]]) -> Row:
    outcome, severity = pl.col("outcome"), pl.col("severity")
    counts = [results.filter(severity == name).height for name in ("refuse", "suspect", "note")] + [results.filter(outcome == name).height for name in ("pass", "not_applicable", "not_evaluated")]
    seen = results.filter(outcome.is_in(["fail", "pass"]))
    worst = _worst(seen)
    value, allowed = (_value(worst, yes_no), Cell(_allowed(worst, yes_no), "dim")) if worst else (Cell("", "number"), Cell("", "dim"))
    return (Cell(check.id, "head"), Cell(check.title), Cell(_looked_at(seen), "dim"), *(Cell(f"{count:,}" if count else "–", "number") for count in counts), value, allowed)


def _looked_at(seen: pl.DataFrame) -> str:
    requests = int(seen["total"].sum() or 0)
    runs = plural(seen.height, "run")
    return f"{plural(requests, 'request')} in {runs}" if requests else runs if seen.height else "nothing"


def _worst(seen: pl.DataFrame) -> dict[str, Any] | None:
    """The result farthest towards its bound among the most severe ones."""
    towards = pl.when(pl.col("threshold_low").is_not_null()).then(pl.col("observed")).otherwise(-pl.col("observed"))
    ordered = seen.sort(pl.col("outcome").to_physical(), pl.col("severity").to_physical(), towards, "run_id", nulls_last=True)
    return ordered.row(0, named=True) if ordered.height else None


# --- what is missing ------------------------------------------------------------------------------------------------


def not_checked(judgement: Judgement) -> Section:
    """What would let the rules that looked at nothing be checked next time, and which rules these are."""
    blind = judgement.results.filter(pl.col("outcome") == "not_evaluated").join(judgement.verdicts.filter(~pl.col("without_block")).select("run_id"), on="run_id", how="semi")
    empty = judgement.verdicts.filter("without_block").height
    parts: list[Part] = []
    if blind.height:
        rows = tuple(
            (Cell(_sentence(need), "head"), Cell(plural(len(rules), "rule"), "number", (listed(sorted(rules)),)), Cell(plural(len(runs), "load point"), "number"))
            for need, (rules, runs) in sorted(_needs(judgement, blind).items(), key=lambda item: (-len(item[1][0]), item[0]))
        )
        parts.append(Table("What could not be checked", (Column("What would let it be checked"), Column("Rules"), Column("Where")), (Group("", rows),)))
    if empty:
        parts.append(Words(f"{plural(empty, 'load point')} {'has' if empty == 1 else 'have'} no result block, so no rule about numbers could look at {'it' if empty == 1 else 'them'}."))
    unread = judgement.evidence.sources.filter(pl.col("reader").is_null()).height
    if unread:
        parts.append(Words(f"{plural(unread, 'file')} {'was' if unread == 1 else 'were'} not read and had no say; the section on sources lists them."))
    return Section("not_checked", tuple(parts) or (Words("Every rule that applies was evaluated, on every load point."),))


def _needs(judgement: Judgement, blind: pl.DataFrame) -> dict[str, tuple[set[str], set[str]]]:
    """What is missing, with the rules and the runs that miss it."""
    needs: dict[str, tuple[set[str], set[str]]] = {}
    for (rule,), rows in blind.group_by("rule", maintain_order=True):
        facts = judgement.facts.join(rows.select("run_id"), on="run_id", how="semi")
        for need, runs in _missing(CHECKS[str(rule)], facts):
            known = needs.setdefault(need, (set(), set()))
            known[0].add(str(rule))
            known[1].update(runs)
    return needs


def _missing(check: Check, facts: pl.DataFrame) -> Iterator[tuple[str, Iterable[str]]]:
    for name in sorted({base for view in check.views for root in view.names for base in base_names(root)}):
        need = _shown_by(name)
        column = "lower__run_id" if name.startswith("lower__") else name if name in facts.columns else "requests_seen"
        runs = facts.filter(pl.col(column).is_null())["run_id"].to_list() if need else []
        if runs:
            yield need, runs


def _shown_by(fact: str) -> str:
    """The file or flag that states a fact; "" where nothing a user does would."""
    if fact.startswith("lower__"):
        return "a lower level of the same sweep"
    if fact in METRICS:
        return METRICS[fact].shown_by
    if fact in AGGREGATES or (fact in SCHEMAS["requests"] and fact not in CATEGORIES):
        return DETAILS
    return MANIFEST if fact in SAID.values() else CLIENT_LOG if fact in CATEGORIES else ""


def sources(judgement: Judgement) -> Section:
    """Every file with its reader, size and hash; what was not read, with the reason; lines that nobody understood."""
    read = judgement.evidence.sources.filter(pl.col("reader").is_not_null())
    others = judgement.evidence.sources.filter(pl.col("reader").is_null())
    unread = judgement.evidence.unread
    parts: list[Part] = [Table("Files read", _FILE_COLUMNS, tuple(_files(read)))] if read.height else [Words("No file was read.")]
    if others.height:
        parts.append(Fold(f"{plural(others.height, 'file')} not read", (Table("Files not read", _FILE_COLUMNS, tuple(_files(others))),)))
    if unread.height:
        rows = tuple((Cell(f"{row['source_file']}:{row['source_line']}", "code"), Cell(row["reason"]), Cell(row["text"], "code")) for row in unread.iter_rows(named=True))
        parts.append(Fold(f"{plural(unread.height, 'line')} not understood", (Table("Lines not understood", (Column("Line"), Column("Why"), Column("How it begins")), (Group("", rows),)),)))
    return Section("sources", tuple(parts))


_FILE_COLUMNS = (Column("File and sha256"), Column("Read as"), Column("Bytes", number=True), Column("Rows", number=True))


def _files(frame: pl.DataFrame) -> Iterator[Group]:
    for (experiment,), files in frame.group_by("experiment", maintain_order=True):
        rows = (
            (
                Cell(row["path"], "code", (row["sha256"] or "",)),
                Cell(row["reader"] or f"not read: {row['reason']}", "text", (row["reason"],) if row["reader"] and row["reason"] else ()),
                Cell(show(row["bytes"]), "number"),
                Cell(show(row["rows"]), "number"),
            )
            for row in files.iter_rows(named=True)
        )
        yield Group(str(experiment), tuple(rows))


def versions(judgement: Judgement, **parameters: object) -> Section:
    """What the page was made with and how it was asked for: the same logs and these give the same page."""
    hidden = ("paths", "thresholds") if parameters.get("redact") else ()
    asked = tuple((Cell(name, "head"), Cell("‹redacted›" if value and name in hidden else _parameter(value), "code")) for name, value in parameters.items())
    made = (("pdkit", __version__), ("polars", pl.__version__), ("Python", platform.python_version()), ("Rules", str(judgement.results["rule"].n_unique())))
    groups = (Group("Parameters", asked), Group("Versions", tuple((Cell(name, "head"), Cell(value, "code")) for name, value in made)))
    return Section("versions", (Table("Parameters and versions", (Column("Name"), Column("Value")), tuple(group for group in groups if group.rows)),))


def _parameter(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return {True: "yes", False: "no", None: "none"}[value] if value is None or isinstance(value, bool) else str(value)


_WORDS = {
    "TTFT": "Time to first token: from sending a request to the first token of text. What a person waits before anything appears.",
    "TPOT": "Time per output token: a request's mean time per token after the first. It sets how fast an answer seems to be typed.",
    "ITL": "Inter-token latency: one single gap between two tokens. TPOT is a mean of such gaps, so a long stall shows here and hides there.",
    "E2E latency": "From sending a request to its last byte.",
    "Throughput": "Output tokens a second over all requests. Claimed: as the client counts them, which may be what it asked for. Received: counted in the text that came back.",
    "Retokenized": "Counted again: the client runs the text that it received through the model's tokenizer. The only count that an empty answer cannot fake.",
    "Load point": "One run at one level: so many users at once (concurrency), or so many requests a second. A sweep is a row of load points.",
    "Prefill and decode": "Reading the prompt, and writing the answer. A split deployment gives each to servers of its own, which hand over memory between them.",
    "KV cache": "What the model keeps of a conversation while it answers. When its memory is full, requests wait or fail.",
    "Percentile": "The p99 is the value that 99 of 100 requests stay under. It takes hundreds of requests to know it; n is how many there were.",
}


def glossary() -> Section:
    """Ten words for readers who do not serve models."""
    rows = tuple((Cell(word, "head"), Cell(meaning)) for word, meaning in _WORDS.items())
    return Section("glossary", (Fold("Ten words for readers who do not serve models", (Table("Glossary", (Column("Word"), Column("Meaning")), (Group("", rows),)),)),))


# --- pandas ---------------------------------------------------------------------------------------------------------


def to_pandas(frame: pl.DataFrame) -> "pd.DataFrame":
    """The same table for pandas, column by column: without pyarrow, and with missing values kept as missing."""
    import pandas as pd

    return pd.DataFrame({name: _series(frame[name]) for name in frame.columns})


def _series(column: pl.Series) -> "pd.Series[Any]":
    import pandas as pd

    values = column.to_list()
    if column.dtype.is_integer():
        return pd.Series(values, dtype="Int64" if column.dtype.is_signed_integer() else "UInt64")
    if column.dtype == pl.Boolean:
        return pd.Series(values, dtype="boolean")
    return pd.Series(values, dtype="float64" if column.dtype.is_float() else None if column.dtype.is_temporal() else "object")


def results_frame(judgement: Judgement) -> "pd.DataFrame":
    """One row a run with its verdict and every number that may be published, for notebooks."""
    return to_pandas(judgement.for_results.wide(*RESULTS))
