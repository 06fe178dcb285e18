"""A link that a line shows, an event or a reading of gauges, and what that line says in words."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pdkit.chain.link import Link

MOST_PLACES = 3  # lines that a link quotes: enough to look at, not a listing


def event(name: str, what: str, first: Mapping[str, Any], *more: Mapping[str, Any], brief: str) -> Link:
    """A link that an event shows: it began when its line was printed; `more` are lines quoted beside that one."""
    clock = first["clock"]
    return Link(
        name, what, "seen", clock, clock, clock, first["instance"], first["role"], _places(first, *more), brief=brief
    )


def reading_link(name: str, what: str, first: Mapping[str, Any], most: Mapping[str, Any], *, brief: str) -> Link:
    """A link that a gauge shows, which is read now and then: it began after the reading before."""
    clock, before = first["clock"], first["before"]
    return Link(
        name, what, "seen", clock, before, clock, first["instance"], first["role"], _places(first, most), brief=brief
    )


def unknown(name: str, needs: str) -> Link:
    """A link that no log could show, and what would."""
    return Link(name, "", "not evaluated", needs=needs)


def _places(*rows: Mapping[str, Any]) -> tuple[str, ...]:
    """The lines that rows stand in, each once."""
    return tuple(dict.fromkeys(row["place"] for row in rows if row["place"]))[:MOST_PLACES]


def time_of(clock: datetime | None, day_of: datetime | None = None) -> str:
    """`09:03:20`, with its day where that is not the day of what was named before."""
    if clock is None:
        return "an unknown time"
    other_day = day_of is not None and clock.date() != day_of.date()
    return f"{clock:%Y-%m-%d %H:%M:%S}" if other_day else f"{clock:%H:%M:%S}"


def later(row: Mapping[str, Any], first: Mapping[str, Any]) -> str:
    """` at 09:03:20`, where that is not when the first was."""
    return f" at {time_of(row['clock'], first['clock'])}" if row["clock"] != first["clock"] else ""


def gauges_said(row: Mapping[str, Any]) -> str:
    """`2 running, 19 waiting for memory, pool 41 % used`; what was not told is left out."""
    waiting = row["prealloc_requests"]
    queued = row["queued_requests"] if waiting is None else None
    used = row["kv_used_ratio"]
    idle = row["role"] == "prefill" and not row["running_requests"]  # its batch is over when its line is printed
    parts = (
        ("{:,.0f} running", None if idle else row["running_requests"]),
        ("{:,.0f} waiting for memory", waiting),
        ("{:,.0f} queued", queued),
        ("pool {:.0f} % used", None if used is None else 100 * used),
    )
    rank = f" ({row['rank']})" if row["rank"] else ""
    return ", ".join(text.format(value) for text, value in parts if value is not None) + rank


def transfers_said(row: Mapping[str, Any]) -> str:
    """`22 in transfer and 3 waiting for a decode server`; "" where there are none."""
    kinds = ((row["transferring_requests"], "in transfer"), (row["bootstrap_requests"], "waiting for a decode server"))
    return " and ".join(f"{value:,.0f} {words}" for value, words in kinds if value)
