"""Want of memory: requests that wait for room in the pool, or are put back for it."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from pdkit.chain.case import NEAR, SERIES, Case
from pdkit.chain.link import Link
from pdkit.chain.shown import event, gauges_said, later, reading_link, time_of, unknown
from pdkit.units import plural

FULL_RATIO = 0.9  # of a pool: what is left holds no further prompt of ordinary length


def memory_short(case: Case, name: str, roles: Sequence[str], failure: Mapping[str, Any] | None) -> Link:
    """The first reading in which requests waited for memory and went on doing so, or the pool was nearly full."""
    if not case.has(roles):
        return unknown(name, case.log_of(roles[0]))
    mine = case.readings.filter(pl.col("role").is_in(roles))
    retracted = case.of("retracted").filter(pl.col("role").is_in(roles)).drop_nulls("clock")
    silent = mine.select(pl.col("prealloc_requests", "kv_used_ratio").is_null().all()).row(0) == (True, True)
    if silent and retracted.is_empty():
        return unknown(name, f"a {roles[0]} log that tells of its memory")
    signs = mine.filter(_starved())
    if retracted.height and (signs.is_empty() or retracted["clock"][0] < signs["clock"].min()):
        first = retracted.row(0, named=True)
        many = float(retracted["count"].sum())
        what = f"{plural(many, 'request')} put back for want of memory, first at {time_of(first['clock'])}"
        return event(name, what, first, brief=f"{first['role']} put requests back for want of memory from {{}}")
    if signs.is_empty():
        return Link(name, f"no request waited for memory and no pool was {FULL_RATIO:.0%} full", "not seen")
    return _starving(case, name, signs, failure)


def _starved() -> pl.Expr:
    """A reading that shows want of memory: one alone may be a request caught between two steps."""
    waiting, running = pl.col("prealloc_requests"), pl.col("running_requests").fill_null(0)
    near = (pl.col("clock").shift(-1).over(SERIES) - pl.col("clock")) <= NEAR
    goes_on = (waiting.shift(-1).over(SERIES) > 0) & near
    crowded = waiting > pl.max_horizontal(running, pl.lit(1))
    waits = (waiting > 0) & (goes_on.fill_null(False) | crowded)
    return waits.fill_null(False) | (pl.col("kv_used_ratio") >= FULL_RATIO).fill_null(False)


def _starving(case: Case, name: str, signs: pl.DataFrame, failure: Mapping[str, Any] | None) -> Link:
    first = signs.sort("clock", "instance").row(0, named=True)
    before = signs
    if failure and first["clock"] <= failure["clock"] and case.same_clock(first["instance"], failure["instance"]):
        before = signs.filter(pl.col("clock") <= failure["clock"])
    want = ("prealloc_requests", "queued_requests", "kv_used_ratio")
    worst = before.sort(*want, "clock", descending=[True, True, True, False], nulls_last=True).row(0, named=True)
    what = f"{gauges_said(first)} at {time_of(first['clock'])}"
    if worst["place"] != first["place"]:
        what += f"; at the worst{'' if before is signs else ' before the first failure'} {gauges_said(worst)}"
        what += later(worst, first)
    brief = f"{first['role']} ran short of memory at {{}} ({gauges_said(worst)}{later(worst, first)})"
    return reading_link(name, what, first, worst, brief=brief)
