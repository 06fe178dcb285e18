"""Goodput against the SLOs that were given, beside what the client says of its own."""

from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from pdkit.goodput import worded
from pdkit.results import CLAIMED, NO_RESULT, Judgement, Verdict
from pdkit.tables.findings import by_experiment
from pdkit.tables.layout import Cell, Column, Group, Part, Row, Table, Words
from pdkit.units import show

_COLUMNS = (
    Column("Level and verdict"),
    Column("Sent", number=True),
    Column("Answered with text", number=True),
    Column("Within all SLOs", number=True),
    Column("Of all sent", number=True),
    Column("Goodput", "req/s", number=True),
    Column("The client says", number=True),
)


def goodput(judgement: Judgement) -> Iterator[Part]:
    """How many requests met all SLOs, of all that were sent; nothing where none was given."""
    if not judgement.slos:
        return
    rows = judgement.verdicts.join(judgement.goodput, on="run_id", how="left", maintain_order="left")
    groups = tuple(Group(title, tuple(_rows(runs))) for title, runs in by_experiment(judgement, rows))
    said = f"{worded(judgement.slos)}. A request counts if it was answered with text; a share is of all that were sent."
    yield Words(said, "Goodput")
    yield Table("Goodput", _COLUMNS, groups, wide=True)


def _rows(runs: pl.DataFrame) -> Iterator[Row]:
    for row in runs.iter_rows(named=True):
        verdict: Verdict = row["verdict"]
        level = Cell(row["level"], "level", (verdict,))
        yield (level, *_counted(row), Cell(_of_client(row), "number"))


def _counted(row: Mapping[str, Any]) -> Iterator[Cell]:
    if row["why_not"]:
        yield Cell(row["why_not"], "withheld" if row["why_not"] == NO_RESULT else "needs")
        yield from (Cell("–", "number") for _ in range(4))
        return
    yield from (Cell(show(row[name]), "number") for name in ("sent", "answered", "good"))
    yield Cell(show(row["attainment_ratio"], "ratio"), "number")
    yield Cell(show(row["goodput_per_s"]), "number")


def _of_client(row: Mapping[str, Any]) -> str:
    """The client counts an empty answer as good: what it says of a refused run is labelled as claimed."""
    said = row["client_attainment_ratio"]
    if said is None:
        return "–"
    return f"{show(said, 'ratio')} {CLAIMED}" if row["verdict"] == NO_RESULT else show(said, "ratio")
