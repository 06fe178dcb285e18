"""Findings as rows: sentence, value, what is allowed, and the lines that they rest on."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from pdkit.results import CLAIMED, Judgement
from pdkit.rules import CHECKS, Bound
from pdkit.tables.layout import Cell, Column, Group, Table
from pdkit.units import show

_FILES_SHOWN = 2  # of those that a finding cites; the rest is folded


def by_experiment(judgement: Judgement, runs: pl.DataFrame) -> Iterator[tuple[str, pl.DataFrame]]:
    """The runs of each experiment under the title that a page gives it."""
    titles = dict(judgement.conclusions.select("experiment", "title").iter_rows())
    for (name,), group in runs.group_by("experiment", maintain_order=True):
        yield titles[name], group


def findings_table(findings: pl.DataFrame, yes_no: set[tuple[str, int]]) -> Table:
    """One row a finding, with the lines that it rests on."""
    rows = tuple(
        (
            Cell(row["rule"], "head"),
            Cell(sentence(row["sentence"]), more=waived(row)),
            value_of(row, yes_no),
            Cell(allowed(row, yes_no), "dim"),
            cited(row["lines"]),
        )
        for row in findings.iter_rows(named=True)
    )
    columns = (
        Column("Rule"),
        Column("What is wrong", f"figures as printed: {CLAIMED}"),
        Column("Value", number=True),
        Column("Allowed"),
        Column("Log lines"),
    )
    return Table("Rules that failed", columns, (Group("", rows),))


def waived(row: Mapping[str, Any]) -> tuple[str, ...]:
    """Who accepts a finding, until when and why, where somebody does."""
    return (sentence(row["waiver"]),) if row["waiver"] else ()


def sentence(text: str) -> str:
    """With a capital; what a rule says begins with a number or a small letter."""
    return text[:1].upper() + text[1:]


def yes_or_no(judgement: Judgement) -> set[tuple[str, int]]:
    """The views whose observed value is a yes or a no, not a number."""
    schema = judgement.facts.head(0).lazy()
    views = {
        (check.id, number): view.observed
        for check in CHECKS.values()
        for number, view in enumerate(check.views)
        if view.grain == "run"
    }
    seen = {key: schema.select(observed.alias("seen")).collect_schema()["seen"] for key, observed in views.items()}
    return {key for key, dtype in seen.items() if dtype == pl.Boolean}


def value_of(row: Mapping[str, Any], yes_no: set[tuple[str, int]]) -> Cell:
    """What the rule saw: a count of requests, a yes or no, or a number."""
    if row["total"] is not None and row["bad"] is not None:
        return Cell(f"{row['bad']:,} of {row['total']:,}", "number")
    if (row["rule"], row["view"]) in yes_no:
        return Cell("yes" if row["observed"] else "no", "number")
    return Cell(_short(row["observed"]), "number")


def allowed(row: Mapping[str, Any], yes_no: set[tuple[str, int]]) -> str:
    """What the rule allows, in the same terms as the value."""
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
    rounded = round(value, 6)  # beyond that it is arithmetic's own noise
    return f"{rounded:,.0f}" if abs(rounded) >= 1000 or rounded == int(rounded) else f"{rounded:.3g}"


def cited(lines: Sequence[str]) -> Cell:
    """The lines by file: `bench.log:13, 21`."""
    files: dict[str, list[str]] = {}
    for line in lines:
        file, _, place = line.rpartition(":")
        files.setdefault(file, []).append(place)
    texts = [f"{file}:{', '.join(places)}" for file, places in files.items()]
    return Cell(texts[0] if texts else "", "code", tuple(texts[1:_FILES_SHOWN]), tuple(texts[_FILES_SHOWN:]))
