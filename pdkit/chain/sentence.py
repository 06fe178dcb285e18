"""The chain in one sentence, of what was seen alone; or that there was nothing to see."""

from collections.abc import Iterator, Sequence
from datetime import datetime

import polars as pl

from pdkit.chain.case import Case
from pdkit.chain.failures import aborted_aside
from pdkit.chain.link import NO_TEXT, Link
from pdkit.chain.shown import time_of
from pdkit.chain.text import refused_otherwise
from pdkit.results import DOUBTS, MEASURED
from pdkit.units import listed, plural


def sentence(case: Case, links: Sequence[Link]) -> str:
    """The chain in one sentence, of seen links alone, each with the time at which it was first seen."""
    told = [link for link in links if link.seen and link.brief and link.order != "out of order"]
    return _whole([*_timed(told), *_of_text(case, links, told), *_of_order(case, links, told)])


def _timed(told: Sequence[Link]) -> Iterator[str]:
    """The clause of each link, the first with its day, the others where theirs is another."""
    day: datetime | None = None
    for link in told:
        first = day is None and link.when is not None
        time = "" if link.when is None else f"{link.when:%Y-%m-%d %H:%M:%S}" if first else time_of(link.when, day)
        day = link.when or day
        yield link.brief.format(time or "an unknown time")


def _of_text(case: Case, links: Sequence[Link], told: Sequence[Link]) -> Iterator[str]:
    """What became of the text, where no link tells."""
    if not any(link.name == NO_TEXT for link in told) and _all_served(case):
        yield "all text came back"
    elif other := refused_otherwise(case):
        yield other
    for link in links:
        if link.name == NO_TEXT and link.how == "not evaluated":
            yield f"whether text came back is {link.said}"


def _of_order(case: Case, links: Sequence[Link], told: Sequence[Link]) -> Iterator[str]:
    """Which links came too late to be a cause, and whether clocks agree."""
    late = [link.name for link in links if link.order == "out of order"]
    if late:
        yield f"{listed(late)} came later and {'is' if len(late) == 1 else 'are'} no cause"
    clocks = list(dict.fromkeys(link.instance for link in told if link.when))
    if any(not case.same_clock(clocks[0], other) for other in clocks[1:]):
        yield "the servers are not known to share a clock, so what came first between them is not evaluated"


def _whole(parts: Sequence[str]) -> str:
    text = "; ".join(parts)
    return f"{text[:1].upper()}{text[1:]}."


def _all_served(case: Case) -> bool:
    return case.runs.height > 0 and bool(case.runs["verdict"].is_in([MEASURED, DOUBTS]).all())


def quiet(case: Case, mild: Sequence[Link]) -> str:
    """What there is to say where nothing was rejected, nothing failed and no text is missing."""
    if not case.servers:
        return "No server log was read: there is nothing to put in order."
    served = (
        "all text came back" if _all_served(case)
        else "no output of a client was read" if case.runs.is_empty()
        else "no run was refused for missing text"
    )  # fmt: skip
    aside = aborted_aside(case, pl.Series([], dtype=pl.String))
    if not mild:
        logs = plural(len(case.servers), "server log")
        return f"No sign of starvation, rejection or failure in {logs}; {served}{aside}."
    times = [link.brief.format(f"{link.when:%Y-%m-%d %H:%M:%S}") for link in mild]
    nothing = "no transfer was rejected or failed" if case.is_split else "nothing failed"
    return _whole([*times, f"{nothing}, and {served}{aside}"])
