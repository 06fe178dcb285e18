"""What led to what on the servers: the evidence of one experiment in time, and which links of the chain were seen."""

from collections.abc import Iterator, Sequence
from typing import Any

from pdkit.chain.case import DECODE, PREFILL, Case, cases
from pdkit.chain.deaths import DEATHS, died
from pdkit.chain.ending import logs_end
from pdkit.chain.failures import transfers_failed
from pdkit.chain.link import DIED, END, FAILED, MEMORY, NO_TEXT, PREFILL_MEMORY, QUEUE, REJECTED, Chain, Link
from pdkit.chain.memory import memory_short
from pdkit.chain.order import ordered
from pdkit.chain.queue import queue_filling, rejected
from pdkit.chain.sentence import quiet, sentence
from pdkit.chain.text import no_text
from pdkit.results import Judgement
from pdkit.signals import FAILURES

__all__ = [
    "DIED", "END", "FAILED", "MEMORY", "NO_TEXT", "PREFILL_MEMORY", "QUEUE", "REJECTED", "Chain", "Link", "chain",
]  # fmt: skip


def chain(judgement: Judgement) -> tuple[Chain, ...]:
    """What led to what, one chain an experiment: from the first want of memory to the run whose text did not come back.

    Nothing is invented: a link that no log could show says which log would, and one that began after its supposed
    effect is called no cause. Clocks of two servers are compared only where both were joined to a run on one clock.
    """
    return tuple(_told(case) for case in cases(judgement))


def _told(case: Case) -> Chain:
    links = ordered(list(_links(case)), case)
    hard = any(link.how in ("seen", "inferred") for link in links if link.name in (REJECTED, DIED, FAILED, NO_TEXT))
    if hard:
        return _chain(case, links, sentence(case, links))
    mild = tuple(link for link in links if link.seen and link.name in (MEMORY, PREFILL_MEMORY))
    return _chain(case, mild, quiet(case, mild))


def _chain(case: Case, links: Sequence[Link], said: str) -> Chain:
    return Chain(case.experiment, case.title, tuple(links), said, len(case.servers))


def _links(case: Case) -> Iterator[Link]:
    """The links from cause to effect; those about transfers only where something is transferred."""
    failure = _first_failure(case)
    yield memory_short(case, MEMORY, DECODE, failure)
    on_prefill = memory_short(case, PREFILL_MEMORY, PREFILL, failure)
    if on_prefill.seen:
        yield on_prefill
    if case.is_split:
        yield queue_filling(case, failure)
        yield rejected(case)
    yield died(case)
    if case.is_split:
        yield transfers_failed(case)
    yield no_text(case, failure)
    if case.servers:
        yield logs_end(case)


def _first_failure(case: Case) -> dict[str, Any] | None:
    """The first event that took text away, or was about to."""
    found = case.of("queue_full", *DEATHS, *FAILURES).drop_nulls("clock")
    return found.row(0, named=True) if found.height else None
