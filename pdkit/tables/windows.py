"""How server logs were joined to runs, and which belong to none."""

import polars as pl

from pdkit.results import Judgement
from pdkit.tables.chain import at
from pdkit.tables.findings import sentence
from pdkit.tables.layout import Cell, Column, Group, Part, Row, Section, Table, Words


def windows(judgement: Judgement) -> Section:
    """Each server with the runs that it was joined to: when, on its own clock, and by what; then those without."""
    joined, apart = judgement.windows, judgement.unjoined
    parts: list[Part] = []
    if joined.height:
        levels = dict(judgement.verdicts.select("run_id", "level").iter_rows())
        titles = dict(judgement.conclusions.select("experiment", "title").iter_rows())
        groups = tuple(
            Group(titles.get(str(name), str(name)), _rows(part, levels))
            for (name,), part in joined.group_by("experiment", maintain_order=True)
        )
        columns = (Column("Server"), Column("Run"), Column("On its clock"), Column("Joined by"))
        parts.append(Table("Server logs and the runs that they were joined to", columns, groups))
    parts.extend(
        Words(f"{sentence(row['said'])}. Rules on servers are not evaluated for it.", row["instance"])
        for row in apart.iter_rows(named=True)
    )
    if not parts:
        parts.append(Words("No server log was read, so the rules on servers are not evaluated."))
    return Section("windows", tuple(parts))


def _rows(joined: pl.DataFrame, levels: dict[str, str]) -> tuple[Row, ...]:
    return tuple(
        (
            Cell(row["instance"], "code", (row["role"] or "role not known",)),
            Cell(levels[row["run_id"]]),
            Cell(f"{at(row['started_at'])} to {at(row['ended_at'], row['started_at'])}"),
            Cell(sentence(row["said"])),
        )
        for row in joined.iter_rows(named=True)
    )
