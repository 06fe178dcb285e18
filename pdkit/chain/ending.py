"""What each log says last, and which sessions are dead by then."""

from collections.abc import Mapping
from posixpath import basename
from typing import Any

import polars as pl

from pdkit.chain.case import Case
from pdkit.chain.deaths import dead_sessions
from pdkit.chain.link import END, Link
from pdkit.chain.shown import MOST_PLACES, gauges_said, time_of, transfers_said, unknown
from pdkit.units import listed


def logs_end(case: Case) -> Link:
    """What each log says last."""
    last = pl.concat(
        frame.select("instance", "role", "clock", "place").drop_nulls("clock") for frame in (case.readings, case.events)
    ).sort("clock")
    if last.is_empty():
        return unknown(END, "server logs that carry a clock")
    each = [
        _ending(case, row) for row in last.unique("instance", keep="last", maintain_order=True).iter_rows(named=True)
    ]
    dead = dead_sessions(case).filter("dead")["subject"].drop_nulls().to_list()
    still = f"; still dead: {listed(dead[:MOST_PLACES])}" if dead else ""
    row = last.row(-1, named=True)
    return Link(
        END, "; ".join(each[:MOST_PLACES]) + still, "seen", row["clock"], row["clock"], row["clock"], row["instance"],
        row["role"], (row["place"],), order="in order",
    )  # fmt: skip


def _ending(case: Case, row: Mapping[str, Any]) -> str:
    of = case.readings.filter(pl.col("instance") == row["instance"]).sort("clock")
    reading = of.row(-1, named=True) if of.height else None
    parts = [part for part in (gauges_said(reading), transfers_said(reading)) if part] if reading else []
    said = f", its last reading {', '.join(parts)}" if parts else ""
    alone = [role for _, role in case.servers].count(row["role"]) == 1 and row["role"]
    server = row["role"] if alone else basename(row["instance"] or "server")
    return f"the {server} log ends at {time_of(row['clock'])}{said}"
