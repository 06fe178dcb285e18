"""What is doubtful, what every rule saw, and what no rule could look at."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import polars as pl

from pdkit.evidence import SCHEMAS
from pdkit.facts import AGGREGATES, CATEGORIES, SAID, base_names
from pdkit.metrics import CLIENT_LOG, DETAILS, MANIFEST, METRICS
from pdkit.results import FAILURES, NO_RESULT, Judgement
from pdkit.rules import CHECKS, Check
from pdkit.tables.findings import allowed, cited, sentence, value_of, waived, yes_or_no
from pdkit.tables.layout import Cell, Column, Fold, Group, Part, Row, Section, Table, Words
from pdkit.units import listed, plural


def doubts(judgement: Judgement) -> Section:
    """What makes a published number doubtful, by rule; notes, which change no verdict, are folded below.

    Doubts about a load point that is refused stand with its refusal, and what a percentile needs stands in its place.
    """
    about = judgement.verdicts.select("run_id", "experiment", "level", "verdict")
    told = judgement.findings.join(about, on="run_id", maintain_order="left").sort("rule", maintain_order=True)
    in_place = [check.id for check in CHECKS.values() if any(view.takes for view in check.views)]
    suspects = told.filter(pl.col("severity") == "suspect", pl.col("verdict") != NO_RESULT)
    notes = told.filter(pl.col("severity") == "note", ~pl.col("rule").is_in(in_place))
    silent = judgement.verdicts.filter("sent_unknown", ~pl.col("without_block"))["run_id"].to_list()
    unknown = len(silent)
    parts: list[Part] = [_by_rule(judgement, suspects, "Doubts")] if suspects.height else []
    if unknown:
        parts.append(
            Words(
                f"{plural(unknown, 'load point')}: no log says how many requests were sent, so failures are not known."
            )
        )
    accepted = [str(judgement.waivers[run, FAILURES]) for run in silent if (run, FAILURES) in judgement.waivers]
    parts.extend(Words(f"{sentence(waiver)}.") for waiver in dict.fromkeys(accepted))
    if not parts:
        parts.append(Words("No published number is in doubt."))
    if notes.height:
        summary = f"{plural(notes.height, 'note')}, which {'changes' if notes.height == 1 else 'change'} no verdict"
        parts.append(Fold(summary, (_by_rule(judgement, notes, "Notes"),)))
    return Section("doubts", tuple(parts))


def _by_rule(judgement: Judgement, told: pl.DataFrame, label: str) -> Table:
    titles = dict(judgement.conclusions.select("experiment", "title").iter_rows())
    groups = tuple(
        Group(f"{rule} · {CHECKS[str(rule)].title}", tuple(_doubt(row, titles) for row in rows.iter_rows(named=True)))
        for (rule,), rows in told.group_by("rule", maintain_order=True)
    )
    return Table(label, (Column("Experiment"), Column("Level"), Column("What was seen"), Column("Log lines")), groups)


def _doubt(row: Mapping[str, Any], titles: Mapping[str, str]) -> Row:
    seen = Cell(sentence(row["sentence"]), more=waived(row))
    return (Cell(titles[row["experiment"]]), Cell(row["level"], "head"), seen, cited(row["lines"]))


# --- every rule -----------------------------------------------------------------------------------------------------


def rule_table(judgement: Judgement) -> Section:
    """Every rule: what it looked at, what failed, the worst value that it saw, and its threshold."""
    if judgement.results.is_empty():
        return Section("rule_table", (Words("No rule looked at anything."),))
    by_rule = judgement.results.sort("rule").group_by("rule", maintain_order=True)
    rows = {str(rule): results for (rule,), results in by_rule}
    failed = {rule: results for rule, results in rows.items() if (results["outcome"] == "fail").any()}
    others = {rule: results for rule, results in rows.items() if rule not in failed}
    yes_no = yes_or_no(judgement)
    held = f"{plural(len(rows), 'rule')} held against {plural(judgement.verdicts.height, 'load point')}."
    parts: list[Part] = [Words(f"{held} A rule that looked at nothing has not passed: it is not evaluated.")]
    parts.extend(_decided(judgement))
    if failed:
        parts.append(_rules(failed, yes_no))
    if others:
        parts.append(Fold(f"{plural(len(others), 'rule')} that no load point failed", (_rules(others, yes_no),)))
    return Section("rule_table", tuple(parts))


def _decided(judgement: Judgement) -> Iterator[Part]:
    """What a user's own files changed: bounds that are not the default, and waivers that no finding matches."""
    changed = judgement.changed
    if changed.height:
        rows = tuple(
            (
                Cell(row["rule"], "head"),
                Cell(f"{row['severity']} unless {row['used']}", more=("looser than the default",) * row["looser"]),
                Cell(f"{row['severity']} unless {row['default']}", "dim"),
            )
            for row in changed.iter_rows(named=True)
        )
        columns = (Column("Rule"), Column("Bound used here"), Column("Default"))
        yield Words(
            f"{plural(changed.height, 'bound')} {'differs' if changed.height == 1 else 'differ'} from the default."
        )
        yield Table("Thresholds that differ from the default", columns, (Group("", rows),))
    for waiver in judgement.idle_waivers:
        yield Words(f"The waiver for {waiver} matches no finding.")


_RULE_COLUMNS = (
    Column("Rule"),
    Column("What should hold"),
    Column("Looked at"),
    Column("Failed"),
    Column("Passed", number=True),
    Column("Not applicable", number=True),
    Column("Not evaluated", number=True),
    Column("Worst value", number=True),
    Column("Allowed"),
)
_FAILED = {"refuse": "refused", "suspect": "doubted", "note": "noted"}


def _rules(rows: Mapping[str, pl.DataFrame], yes_no: set[tuple[str, int]]) -> Table:
    families: dict[str, list[Row]] = {}
    for rule, results in rows.items():
        families.setdefault(CHECKS[rule].family, []).append(_rule_row(CHECKS[rule], results, yes_no))
    groups = tuple(Group(sentence(family.replace("_", " ")), tuple(lines)) for family, lines in families.items())
    return Table("Rules", _RULE_COLUMNS, groups, wide=True, rows_shown=len(CHECKS))


def _rule_row(check: Check, results: pl.DataFrame, yes_no: set[tuple[str, int]]) -> Row:
    severities, outcomes = (dict(results[name].value_counts().iter_rows()) for name in ("severity", "outcome"))
    failed = [f"{severities[name]} {word}" for name, word in _FAILED.items() if name in severities]
    seen = results.filter(pl.col("outcome").is_in(["fail", "pass"]))
    worst = _worst(seen)
    return (
        Cell(check.id, "head"),
        Cell(check.title.removesuffix(".")),
        Cell(_looked_at(seen), "dim"),
        Cell(", ".join(failed) or "–", "short"),
        *(Cell(f"{outcomes.get(name) or '–'}", "number") for name in ("pass", "not_applicable", "not_evaluated")),
        value_of(worst, yes_no) if worst else Cell("", "number"),
        Cell(allowed(worst, yes_no) if worst else "", "dim"),
    )


def _looked_at(seen: pl.DataFrame) -> str:
    requests = int(seen["total"].sum() or 0)
    runs = plural(seen.height, "run")
    return f"{plural(requests, 'request')} in {runs}" if requests else runs if seen.height else "nothing"


def _worst(seen: pl.DataFrame) -> dict[str, Any] | None:
    """The result farthest towards its bound among the most severe ones."""
    towards = pl.when(pl.col("threshold_low").is_not_null()).then(pl.col("observed")).otherwise(-pl.col("observed"))
    ordered = seen.sort(
        pl.col("outcome").to_physical(), pl.col("severity").to_physical(), towards, "run_id", nulls_last=True
    )
    return ordered.row(0, named=True) if ordered.height else None


# --- what no rule could look at -------------------------------------------------------------------------------------


def not_checked(judgement: Judgement) -> Section:
    """What would let the rules that looked at nothing be checked next time, and which rules these are."""
    with_block = judgement.verdicts.filter(~pl.col("without_block")).select("run_id")
    blind = judgement.results.filter(pl.col("outcome") == "not_evaluated").join(with_block, on="run_id", how="semi")
    parts: list[Part] = [
        _needed(judgement, blind) if blind.height else Words("Every rule was evaluated wherever it applies.")
    ]
    empty = judgement.verdicts.height - with_block.height
    if empty:
        have, them = ("has", "it") if empty == 1 else ("have", "them")
        parts.append(
            Words(f"{plural(empty, 'load point')} {have} no result block: no rule about numbers could look at {them}.")
        )
    unread = judgement.evidence.sources.filter(pl.col("reader").is_null()).height
    if unread:
        were = "was" if unread == 1 else "were"
        parts.append(Words(f"{plural(unread, 'file')} {were} not read and had no say; the section Sources lists them."))
    return Section("not_checked", tuple(parts))


def _needed(judgement: Judgement, blind: pl.DataFrame) -> Table:
    needs = sorted(_needs(judgement, blind).items(), key=lambda item: (-len(item[1][0]), item[0]))
    rows = tuple(
        (
            Cell(sentence(need)),
            Cell(plural(len(rules), "rule"), more=(listed(sorted(rules)),)),
            Cell(plural(len(runs), "load point"), "short"),
        )
        for need, (rules, runs) in needs
    )
    columns = (Column("What would let it be checked"), Column("Rules"), Column("Where"))
    return Table("What could not be checked", columns, (Group("", rows),))


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
