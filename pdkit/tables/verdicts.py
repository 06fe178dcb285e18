"""The verdicts at a glance, the numbers that may be published, and each load point without a measured result."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from pdkit.metrics import METRICS
from pdkit.results import CLAIMED, DOUBTS, FEW, MEASURED, NO_RESULT, NOTHING_TO_JUDGE, UNVERIFIED, Judgement, Verdict
from pdkit.rules import CHECKS
from pdkit.tables.findings import by_experiment, findings_table, sentence, yes_or_no
from pdkit.tables.goodput import goodput
from pdkit.tables.layout import (
    SYMBOLS,
    Banner,
    Card,
    Cell,
    Column,
    Concluded,
    Fold,
    Group,
    Part,
    Row,
    Section,
    Step,
    Table,
    Words,
)
from pdkit.units import listed, plural, show

_CARDS_SHOWN = 8  # load points without a measured result; the rest is folded
_PLACES_SHOWN = 3  # log lines of a cause
_CARDS_OPEN = 2  # where there are no more than these, their rules are unfolded too
_SHOWN = (
    "received_throughput_tok_per_s",
    "received_throughput_tok_per_s_per_gpu",
    "ttft_ms_median",
    "ttft_ms_p99",
    "tpot_ms_median",
    "itl_ms_p99",
    "e2e_ms_median",
    "e2e_ms_p99",
)
_EVIDENCE = {"text": "text of each answer", "requests": "numbers of each request", "summary": "summary only"}


def heading(title: str) -> Section:
    """The title of the page, as it was given."""
    return Section("heading", (Words(title, template="title"),))


def banner(judgement: Judgement) -> Section:
    """The verdicts at a glance: a headline, counts, and a sentence an experiment."""
    verdicts = judgement.verdicts
    counts = {verdict: verdicts.filter(pl.col("verdict") == verdict).height for verdict in SYMBOLS}
    worst = next((verdict for verdict in reversed(tuple(SYMBOLS)) if counts[verdict]), NO_RESULT)
    experiments = tuple(_concluded(judgement))
    headline = _headline(counts, len(experiments))
    return Section("banner", (Banner(headline, worst, tuple(counts.items()), experiments, _synthetic(verdicts)),))


def _concluded(judgement: Judgement) -> Iterator[Concluded]:
    groups = judgement.verdicts.group_by("experiment", maintain_order=True)
    levels = {str(name): group.select("level", "verdict").iter_rows() for (name,), group in groups}
    for experiment, title, says in judgement.conclusions.iter_rows():
        yield Concluded(title, says, tuple(Step(level, verdict) for level, verdict in levels[experiment]))


def _headline(counts: Mapping[Verdict, int], experiments: int) -> str:
    """The most important thing in one sentence: what was refused, else what is unverified, else what is doubted."""
    runs = sum(counts.values())
    where = plural(runs, "load point") + (f" in {plural(experiments, 'experiment')}" if experiments > 1 else "")
    if not runs:
        return "No measured result: the files hold no run that pdkit can read."
    if counts[NO_RESULT] == runs:
        return f"No measured result at any of {where}." if runs > 1 else "No measured result."
    if counts[NO_RESULT]:
        return f"{counts[NO_RESULT]} of {where} {'has' if counts[NO_RESULT] == 1 else 'have'} no measured result."
    if counts[UNVERIFIED]:
        is_are = "is" if counts[UNVERIFIED] == 1 else "are"
        return f"{counts[UNVERIFIED]} of {where} {is_are} unverified: nothing shows that text came back."
    if counts[DOUBTS]:
        return f"{where} measured, {f'{counts[DOUBTS]} of them ' if counts[DOUBTS] < runs else ''}with doubts."
    return f"{where} measured; no rule found a reason for doubt."


def _synthetic(verdicts: pl.DataFrame) -> str:
    experiments = verdicts.group_by("experiment").agg(pl.col("synthetic").fill_null(False).any())
    made, every = int(experiments["synthetic"].sum()), experiments.height
    which = (
        "this experiment"
        if every == 1
        else f"all {every} experiments"
        if made == every
        else f"{made} of {every} experiments"
    )
    return f"SYNTHETIC DATA: the logs of {which} were made by a program, not recorded from a run." if made else ""


# --- numbers --------------------------------------------------------------------------------------------------------


def measured(judgement: Judgement) -> Section:
    """The numbers that may be published, one row a run; what a rule took is named in its place."""
    wide = judgement.for_results.wide("completed", *_SHOWN)
    believed = wide.filter(pl.col("verdict").is_in([MEASURED, DOUBTS]))
    printed = wide.filter(pl.col("verdict") == UNVERIFIED)
    parts: list[Part] = []
    if believed.height:
        parts.extend(_numbers(judgement, believed, "Measured numbers"))
    else:
        parts.append(Words("No run has a measured result, so there is no number to show."))
    if printed.height:
        parts.append(
            Words(
                "no log shows that text came back. These numbers are what the client printed, and no result.",
                "Unverified",
            )
        )
        parts.extend(_numbers(judgement, printed, "Unverified numbers"))
    return Section("measured", (*parts, *goodput(judgement)))


def _numbers(judgement: Judgement, runs: pl.DataFrame, label: str) -> Iterator[Part]:
    taken = _taken(judgement)
    known = {fact for run, fact in taken if run in set(runs["run_id"])}
    stated = [fact for fact in _SHOWN if fact in known or runs[fact].is_not_null().any()]
    groups = tuple(
        Group(title, tuple(_result_row(row, stated, taken) for row in group.iter_rows(named=True)), _about(group))
        for title, group in by_experiment(judgement, runs)
    )
    numbers = (Column(METRICS[fact].title, METRICS[fact].unit, number=True) for fact in stated)
    yield Table(label, (Column("Level and verdict"), Column("Requests", number=True), *numbers), groups, wide=True)
    absent = [METRICS[fact].title for fact in _SHOWN if fact not in stated and not fact.endswith("_per_gpu")]
    if absent:
        yield Words(f"Not stated by these logs: {listed(absent)}.")


def _result_row(row: Mapping[str, Any], facts: Sequence[str], taken: Mapping[tuple[str, str], str]) -> Row:
    numbers = (_number(row[fact], taken.get((row["run_id"], fact))) for fact in facts)
    return (Cell(row["level"], "level", (row["verdict"],)), Cell(show(row["completed"]), "number"), *numbers)


def _number(value: float | None, why: str | None) -> Cell:
    if value is not None:
        return Cell(show(value), "number")
    return Cell(why or "not stated", "withheld" if why and why.startswith(NO_RESULT) else "needs")


def _taken(judgement: Judgement) -> dict[tuple[str, str], str]:
    """What stands in place of each number that a rule took: the rule, or how many requests the number needs."""
    least = _least(judgement)
    voided = judgement.published.filter(pl.col("voided_by").list.len() > 0).select("run_id", "fact", "voided_by")
    return {
        (run, fact): f"needs n ≥ {least[run, fact]:,.0f}" if rules == [FEW] else f"{NO_RESULT} ({', '.join(rules)})"
        for run, fact, rules in voided.iter_rows()
    }


def _least(judgement: Judgement) -> dict[tuple[str, str], float]:
    """How many values a percentile needs, where it had fewer: from the views that take facts by name."""
    takes = pl.Schema({"rule": pl.String(), "view": pl.Int32(), "fact": pl.List(pl.String())})
    rows = [(FEW, number, list(view.takes)) for number, view in enumerate(CHECKS[FEW].views)]
    named = pl.DataFrame(rows, schema=takes, orient="row").explode("fact")
    failed = judgement.views.filter(pl.col("outcome") == "fail").join(named, on=["rule", "view"])
    return {(run, fact): low for run, fact, low in failed.select("run_id", "fact", "threshold_low").iter_rows()}


def _about(runs: pl.DataFrame) -> str:
    """What is the same for all runs of an experiment: model, topology, cards, client; and what the evidence is."""
    said = [
        listed(runs[name].drop_nulls().unique(maintain_order=True).to_list())
        for name in ("model", "topology", "gpu", "tool", "backend")
    ]
    levels = listed([_EVIDENCE[level] for level in runs["evidence_level"].drop_nulls().unique(maintain_order=True)])
    return " · ".join(dict.fromkeys([*filter(None, said), f"evidence: {levels}"]))


def no_measured_result(judgement: Judgement) -> Section:
    """Each refused or missing level with its rules, values, thresholds and lines; or that there is none."""
    refused = judgement.verdicts.filter(pl.col("verdict") == NO_RESULT)
    every = judgement.verdicts.height
    if refused.is_empty():
        found = "No load point was refused, and none is missing." if every else "No run was found in these files."
        return Section("no_measured_result", (Words(found),))
    those = "this load point" if refused.height == 1 else "these load points"
    said = (
        f"{refused.height} of {plural(every, 'load point')}. Nothing that was printed for {those} is used as a result."
    )
    cards = tuple(_refusals(judgement, refused))
    rest = cards[_CARDS_SHOWN:]
    folded = (Fold(f"{plural(len(rest), 'more load point')} with no measured result", rest),) if rest else ()
    return Section("no_measured_result", (Words(said), *cards[:_CARDS_SHOWN], *folded))


def _refusals(judgement: Judgement, refused: pl.DataFrame) -> Iterator[Card]:
    told = {str(run): rows for (run,), rows in judgement.findings.sort("rule").group_by("run_id", maintain_order=True)}
    facts = judgement.facts.rows_by_key("run_id", named=True, unique=True)
    throughputs = judgement.claimed.filter(pl.col("fact") == "output_throughput_tok_per_s")
    claims = throughputs.rows_by_key("run_id", named=True, unique=True)
    causes = judgement.causes.rows_by_key("run_id", named=True, unique=True)
    yes_no, nothing = yes_or_no(judgement), judgement.findings.clear()
    for title, runs in by_experiment(judgement, refused):
        for run, level in runs.select("run_id", "level").iter_rows():
            came, found = _what_came_back(facts[run], claims.get(run)), told.get(run, nothing)
            why, accepted = _why(found), _accepted(found)
            folds = _refused_by(found, yes_no, is_open=refused.height <= _CARDS_OPEN)
            yield Card(level, title, NO_RESULT, (why, *accepted, *came, *_cause(causes.get(run)), *folds))


def _why(findings: pl.DataFrame) -> Words:
    """What the first rule that refused it says."""
    if findings.is_empty():
        return Words(f"{sentence(NOTHING_TO_JUDGE)}.")
    return Words(f"{sentence(findings.filter(pl.col('severity') == 'refuse')['sentence'][0])}.")


def _cause(found: Mapping[str, Any] | None) -> Iterator[Words]:
    """Why there is no text, with the line that says so; or what would tell."""
    if found:
        place = ", ".join(found["lines"][:_PLACES_SHOWN])
        yield Words(f"{sentence(found['sentence'])}.", "Likely cause" if found["cause"] else "Cause", place)


def _accepted(findings: pl.DataFrame) -> Iterator[Words]:
    """Which of the refusals somebody accepts; the number stays away all the same."""
    grave = findings.filter(pl.col("severity") == "refuse", pl.col("waiver").is_not_null())
    for rule, waiver in grave.select("rule", "waiver").iter_rows():
        yield Words(waiver, rule)


def _refused_by(findings: pl.DataFrame, yes_no: set[tuple[str, int]], *, is_open: bool) -> Iterator[Fold]:
    if findings.is_empty():
        return
    grave, doubts = (findings.filter(pl.col("severity") == severity) for severity in ("refuse", "suspect"))
    rules = listed(grave["rule"].to_list())
    yield Fold(f"Refused by {rules}: values, thresholds and log lines", (findings_table(grave, yes_no),), open=is_open)
    if doubts.height:
        yield Fold(plural(doubts.height, "further doubt"), (findings_table(doubts, yes_no),))


def _what_came_back(facts: Mapping[str, Any], claim: Mapping[str, Any] | None) -> Iterator[Words]:
    """What did arrive, and what was claimed, each under a label that says what it is not."""
    received, seen = facts["received_tok"], facts["requests_seen"]
    if received is not None and facts["completed"]:
        with_text = facts["requests_with_text"]
        requests = "" if with_text is None else f" from {show(with_text)} of {plural(seen, 'request')}"
        came = f"{plural(received, 'token')} in {show(facts['duration_s'], 's')}{requests}"
        yield Words(came, "Came back, not a result")
    if claim:
        place = f"{claim['source_file']}:{claim['source_line']}"
        yield Words(f"{show(claim['value'], 'tok/s')} {CLAIMED}", "Output throughput", place)
