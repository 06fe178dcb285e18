"""Sessions that die, peers that are lost and servers that crash, and whether they come back."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

import polars as pl

from pdkit.chain.case import DECODE, PREFILL, Case
from pdkit.chain.link import DIED, Link
from pdkit.chain.shown import event, time_of, unknown
from pdkit.signals import FAILURES
from pdkit.units import plural

_NOT_ALIVE = "is not alive"  # what Mooncake says of every transfer to a session that died before
DEATHS = ("session_failed", "connection_lost", "crashed")


def died(case: Case) -> Link:
    """The first session that died, peer that was lost or server that crashed, and whether it came back."""
    found = case.of(*DEATHS)
    if found.is_empty():
        return _not_alive(case)
    first = found.row(0, named=True)
    return _session_died(case, first) if first["kind"] == "session_failed" else _server_died(first)


def _server_died(first: Mapping[str, Any]) -> Link:
    verb = "crashed" if first["kind"] == "crashed" else "lost its peer"
    subject = f" ({first['subject']})" if first["subject"] else ""
    server = f"the {first['role'] or 'server'} {'server ' if first['role'] else ''}"
    brief = f"{first['role'] or 'a server'} {verb} at {{}}"
    return event(DIED, f"{server}{verb} at {time_of(first['clock'])}{subject}", first, brief=brief)


def _session_died(case: Case, first: Mapping[str, Any]) -> Link:
    """The first session that died, how many did in all, and which are dead where the log ends."""
    sessions = dead_sessions(case)
    dead = sessions.filter("dead")
    many = f"; {sessions.height:,} sessions died in all" if sessions.height > 1 else ""
    back = sessions["recovered"].min()
    after = f"; it recovered at {time_of(back, first['clock'])}" if isinstance(back, datetime) else ""
    still = f"; {plural(dead.height, 'session')} did not recover before the log ends" if dead.height else ""
    name = f"session {first['subject']}" if first["subject"] else "a transfer session"
    fate = " and did not recover" if dead.height else " and recovered"
    rows = [first, *case.of("session_recovered").head(1).iter_rows(named=True)]
    what = f"{name} died at {time_of(first['clock'])}{many}{after}{still}"
    return event(DIED, what, *rows, brief=f"{name} died at {{}}{fate}")


def dead_sessions(case: Case) -> pl.DataFrame:
    """One row a session that died: when it recovered first after a death, and whether it is dead at the end."""
    deaths = case.of("session_failed").group_by("instance", "subject").agg(pl.col("clock").max().alias("died"))
    lives = case.of("session_recovered").select("instance", "subject", pl.col("clock").alias("recovered"))
    both = deaths.join(lives, on=["instance", "subject"], how="left", nulls_equal=True)
    after = pl.col("recovered").filter(pl.col("recovered") >= pl.col("died")).min()
    return both.group_by("instance", "subject").agg(after.is_null().alias("dead"), pl.col("recovered").min())


def _not_alive(case: Case) -> Link:
    """A death that only later transfers tell of."""
    told = case.of(*FAILURES).filter(pl.col("text").str.contains(_NOT_ALIVE, literal=True))
    if told.height:
        first = told.row(0, named=True)
        what = f"transfers from {time_of(first['clock'])} on fail: the session is not alive; no log tells of its death"
        link = event(DIED, what, first, brief="a session was dead by {}")
        return replace(link, how="inferred", since=None)
    roles = PREFILL if case.is_split else DECODE
    if not case.has(roles):
        return unknown(DIED, case.log_of(roles[0]))
    return Link(DIED, "no session died and no server crashed", "not seen")
