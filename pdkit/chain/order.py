"""Which links came before what they would have caused: only where clocks agree, and to the second at best."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from pdkit.chain.case import Case
from pdkit.chain.link import DIED, END, FAILED, MEMORY, NO_TEXT, PREFILL_MEMORY, QUEUE, REJECTED, Link, Order


def ordered(links: Sequence[Link], case: Case) -> list[Link]:
    """The links with their `order`: each is held against what it would have caused, or, the last, what caused it."""
    timed = [link for link in links if link.when and link.how in ("seen", "inferred") and link.name != END]
    orders = {link.name: _order(link, timed[at + 1 :] or timed[:at], case) for at, link in enumerate(timed)}
    return [replace(link, order=orders.get(link.name, link.order)) for link in links]


def _order(link: Link, others: Sequence[Link], case: Case) -> Order:
    """Logs print whole seconds, and a gauge is read now and then: only what surely came later is out of order."""
    if not others:
        return "in order"
    held = [other for other in others if case.same_clock(link.instance, other.instance)]
    if not held:
        return "not evaluated"
    if _is_last(link, others):
        return "in order"
    ends = [_second(other.until) for other in held if other.until]
    if not ends:
        return "not evaluated"
    if link.since and any(_second(link.since) > end for end in ends):
        return "out of order"
    seen_later = link.when is not None and any(_second(link.when) > end for end in ends)
    return "not evaluated" if seen_later else "in order"


def _is_last(link: Link, others: Sequence[Link]) -> bool:
    order = (MEMORY, PREFILL_MEMORY, QUEUE, REJECTED, DIED, FAILED, NO_TEXT)
    return all(order.index(other.name) < order.index(link.name) for other in others)


def _second(clock: datetime) -> datetime:
    return clock.replace(microsecond=0)
