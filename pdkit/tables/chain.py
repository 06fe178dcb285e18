"""What led to what on the servers, one stage below the other, and which links of it nobody saw."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from pdkit.chain import Chain, Link
from pdkit.tables.findings import sentence
from pdkit.tables.layout import Part, Section, Stage, Stages, Words
from pdkit.units import listed, plural


def chain_table(chains: Sequence[Chain]) -> Section:
    """The chain of each experiment: time, what happened, how that is known, and the lines that show it."""
    told = [chain for chain in chains if chain.logs]
    silent = [chain.title for chain in chains if not chain.logs]
    parts = [part for chain in told for part in _chain(chain, is_alone=len(told) == 1)]
    if silent and told:
        parts.append(Words(f"No server log was read of {listed(silent)}: nothing to put in order there."))
    if not told:
        parts.append(Words("No server log was read: not evaluated; needs the prefill and the decode log."))
    return Section("chain_table", tuple(parts))


def _chain(chain: Chain, *, is_alone: bool) -> Iterator[Part]:
    yield Words(chain.sentence, "" if is_alone else chain.title)
    if not chain.links:
        return
    yield Stages(f"What led to what: {chain.title}", tuple(_stages(chain.links)))
    yield Words(" ".join(_known(chain)))


def _stages(links: Sequence[Link]) -> Iterator[Stage]:
    day: datetime | None = None
    for link in links:
        how = "out of order" if link.order == "out of order" else link.how
        yield Stage(at(link.when, day), sentence(link.name), sentence(link.said), how, link.places)
        day = link.when or day


def at(clock: datetime | None, day_of: datetime | None = None) -> str:
    """`09:03:20`, with its day where that is not the day of what was named before."""
    if clock is None:
        return ""
    same_day = day_of is not None and clock.date() == day_of.date()
    return f"{clock:%H:%M:%S}" if same_day else f"{clock:%Y-%m-%d %H:%M:%S}"


def _known(chain: Chain) -> Iterator[str]:
    """Which links were seen and which not; that one led to the next is never seen."""
    inferred = [link.name for link in chain.links if link.how == "inferred"]
    unknown = [link for link in chain.links if link.how == "not evaluated"]
    absent = [link.name for link in chain.links if link.how == "not seen"]
    seen = sum(link.how == "seen" for link in chain.links)
    yield f"{plural(seen, 'link')} seen in log lines, on the servers' own clocks."
    if inferred:
        yield f"Inferred: {listed(inferred)}."
    if absent:
        yield f"Looked for and not seen: {listed(absent)}."
    for link in unknown:
        yield f"{sentence(link.name)}: not evaluated, needs {link.needs}."
    if sum(link.is_cause for link in chain.links) > 1:
        yield "That one link led to the next is inferred from their order; no log says it."
