"""Transfers that failed: the first, how many, and how many of them while a run went on."""

from dataclasses import replace
from datetime import timedelta

import polars as pl

from pdkit.chain.case import SERIES, Case
from pdkit.chain.link import FAILED, Link
from pdkit.chain.shown import event, time_of, unknown
from pdkit.signals import FAILURES
from pdkit.units import plural

_COUNTERS = ("transfer_failed_total", "bootstrap_failed_total")


def transfers_failed(case: Case) -> Link:
    """The first request whose transfer failed, and how many did: one a bootstrap room, whichever side tells of it."""
    failed = case.of(*FAILURES)
    if failed.is_empty():
        return _counted(case)
    rooms = failed.drop_nulls("subject")["subject"].unique()
    unnamed = failed.filter(pl.col("subject").is_null()).group_by("instance").agg(pl.col("count").sum())["count"].max()
    many = rooms.len() + (float(unnamed) if isinstance(unnamed, int | float) else 0)
    first = failed.row(0, named=True)
    room = f" (room {first['subject']})" if first["subject"] else ""
    aside = aborted_aside(case, rooms)
    what = f"first at {time_of(first['clock'])}{room}; {plural(many, 'request')} in all{_within(case, failed)}{aside}"
    brief = f"{plural(many, 'request')} failed in transfer from {{}} on"
    return event(FAILED, what, first, failed.row(-1, named=True), brief=brief)


def aborted_aside(case: Case, rooms: pl.Series) -> str:
    left = case.of("transfer_aborted").filter(~pl.col("subject").is_in(rooms.implode()).fill_null(False))
    many = left.select(pl.col("subject").drop_nulls().n_unique() + pl.col("subject").is_null().sum()).item()
    return f"; {plural(many, 'aborted transfer')} set aside: a symptom" if many else ""


def _within(case: Case, failed: pl.DataFrame) -> str:
    """How many of them failed while a run went on."""
    spans = case.windows.select("instance", "started_at", "ended_at")
    if spans.is_empty():
        return ""
    inside = failed.join_where(
        spans.rename({"instance": "joined"}),
        pl.col("instance") == pl.col("joined"),
        pl.col("clock") >= pl.col("started_at"),
        pl.col("clock") <= pl.col("ended_at") + timedelta(seconds=1),  # logs print whole seconds
    )
    many = inside["subject"].drop_nulls().n_unique()
    return f", {many:,} of them during the runs" if many else ", none of them during the runs"


def _counted(case: Case) -> Link:
    """Failures that only a counter tells of."""
    for name in _COUNTERS:
        told = case.readings.drop_nulls(name).with_columns(pl.col(name).diff().over(SERIES).alias("more"))
        rose = told.filter(pl.col("more") > 0).sort("clock")
        if rose.height:
            first = rose.row(0, named=True)
            most = max(rose.group_by("instance", "rank").agg(pl.col("more").sum())["more"].to_list())
            what = f"a counter of failed transfers rose by {most:,.0f}, first by {time_of(first['clock'])}"
            link = event(FAILED, what, first, brief="failed transfers were counted from {} on")
            return replace(link, since=first["before"])
    if not case.has(("prefill", "decode")):
        return unknown(FAILED, "the prefill or the decode log")
    return Link(FAILED, f"no transfer failed{aborted_aside(case, pl.Series([], dtype=pl.String))}", "not seen")
