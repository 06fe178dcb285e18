"""The queue of transfers: that it fills, and that it then turns requests away."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from pdkit.chain.case import NEAR, PREFILL, SERIES, Case
from pdkit.chain.link import QUEUE, REJECTED, Link
from pdkit.chain.shown import event, reading_link, time_of, transfers_said, unknown
from pdkit.units import listed, plural

_LEAST_QUEUE = 2.0  # one request on its way is how a healthy pair looks


def queue_filling(case: Case, failure: Mapping[str, Any] | None) -> Link:
    """The stretch of readings that leads to the longest transfer queue before the first failure."""
    queue = pl.max_horizontal("transferring_requests", "bootstrap_requests").alias("queue")
    told = case.readings.with_columns(queue).drop_nulls("queue")
    if told.is_empty():
        missing = [role for role in ("prefill", "decode") if not case.has((role,))]
        return unknown(QUEUE, f"the {listed(missing)} log" if missing else "a log that tells of its transfers")
    before = told.filter(pl.col("clock") <= failure["clock"]) if failure else told
    peaks = (frame.sort("queue", "clock", descending=[True, False]) for frame in (before, told))
    peak = next((peak.row(0, named=True) for peak in peaks if peak.height and peak["queue"][0] >= _LEAST_QUEUE), None)
    if peak is None:
        return Link(QUEUE, "never more than one request on its way", "not seen")
    first = _stretch(told, peak)
    what = f"{transfers_said(first)} at {time_of(first['clock'])}"
    if peak["clock"] != first["clock"]:
        what += f", {peak['queue']:,.0f} at {time_of(peak['clock'], first['clock'])}"
    brief = f"the transfer queue of {first['role'] or 'a server'} filled from {{}} (to {peak['queue']:,.0f} requests)"
    return reading_link(QUEUE, what, first, peak, brief=brief)


def _stretch(told: pl.DataFrame, peak: Mapping[str, Any]) -> dict[str, Any]:
    """The first reading of the stretch without a zero or a pause that ends in the peak."""
    same = [pl.col(name).eq_missing(pl.lit(peak[name])) for name in SERIES]
    mine = told.filter(*same, pl.col("clock") <= peak["clock"]).sort("clock")
    paused = (pl.col("clock") - pl.col("before")) > NEAR
    began = mine.with_columns(((pl.col("queue") == 0) | paused.fill_null(True)).cum_sum().alias("stretch"))
    last = began.filter(pl.col("stretch") == began["stretch"].max(), pl.col("queue") > 0)
    return last.row(0, named=True)


def rejected(case: Case) -> Link:
    """The first rejection: its counter is told at powers of two, and only grows while its process lives."""
    full = case.of("queue_full")
    if full.is_empty():
        return _turned_away(case)
    first = full.row(0, named=True)
    by_server = full.group_by("instance").agg(pl.col("count").max())
    least = max(by_server["count"].sum(), 1)
    restarted = case.of("ready").filter(
        pl.col("instance").is_in(full["instance"].implode()),
        pl.col("clock") > pl.lit(first["clock"], pl.Datetime("us")),
    )
    bounds = f"at least {least:,.0f}" + (f", below {2 * least:,.0f}" if restarted.is_empty() else "")
    most = full.sort("count", descending=True, nulls_last=True).row(0, named=True)
    what = f"transfers turned away from {time_of(first['clock'])} on, {bounds} in all since the process started"
    return event(REJECTED, what, first, most, brief=f"transfers were turned away from {{}} ({bounds})")


def _turned_away(case: Case) -> Link:
    """Requests that the server itself refused, where no transfer queue was full."""
    away = case.of("request_rejected")
    if away.height:
        first = away.row(0, named=True)
        what = f"{plural(float(away['count'].sum()), 'request')} turned away, first at {time_of(first['clock'])}"
        return event(REJECTED, what, first, brief="requests were turned away from {}")
    if not case.has(PREFILL):
        return unknown(REJECTED, "the prefill log")
    return Link(REJECTED, "no rejection was logged", "not seen")
