"""How much each side holds and how fast it can be: arithmetic with its inputs, beside what was observed."""

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet

import polars as pl

from pdkit.capacity import Capacity, Seen, Side
from pdkit.results import CLAIMED, DOUBTS, MEASURED, Judgement
from pdkit.tables.findings import cited, sentence
from pdkit.tables.layout import Cell, Column, Group, Part, Row, Section, Table, Words
from pdkit.units import listed, show

_STEPS = (Column("What"), Column("Arithmetic"), Column("Result", number=True), Column("Log lines"))
_SEEN = (
    Column("Level"),
    Column("In flight", number=True),
    Column("Fit on decode"),
    Column("Ran (median)", number=True),
    Column("Ran (most)", number=True),
    Column("Printed throughput"),
    Column("Of the most it can give", number=True),
)


def capacity_table(judgement: Judgement, capacities: Sequence[Capacity]) -> Section:
    """The arithmetic of each experiment, both sides of it, and each run beside it."""
    held, is_alone = with_throughput(judgement), len(capacities) == 1
    parts = [part for one in capacities for part in _capacity(one, held, is_alone=is_alone)]
    return Section("capacity_table", tuple(parts) or (Words("No run, so there is nothing to hold."),))


def with_throughput(judgement: Judgement) -> frozenset[str]:
    """The runs whose throughput was measured; what any other prints is a claim."""
    wide = judgement.for_results.wide("received_throughput_tok_per_s")
    known = pl.col("received_throughput_tok_per_s").is_not_null() & pl.col("verdict").is_in([MEASURED, DOUBTS])
    return frozenset(wide.filter(known)["run_id"])


def _capacity(capacity: Capacity, held: AbstractSet[str], *, is_alone: bool) -> Iterator[Part]:
    label = "" if is_alone else capacity.title
    if not capacity.sides:
        yield Words(f"Not evaluated: {listed(list(capacity.unknown)) or 'nothing is known of its servers'}.", label)
        return
    yield Words(" ".join(spoken(capacity)) or "Not evaluated.", label)
    groups = tuple(Group(sentence(side.role), tuple(_steps(side))) for side in capacity.sides if side.steps)
    if groups:
        yield Table(f"Capacity: {capacity.title}", _STEPS, groups, rows_shown=40)
    if capacity.seen:
        yield Table(f"Observed: {capacity.title}", _SEEN, (Group("Observed", tuple(_seen(capacity, held))),), wide=True)
    unknown = [*capacity.unknown, *(why for side in capacity.sides for why in side.unknown)]
    if unknown:
        yield Words(f"{sentence('; '.join(dict.fromkeys(unknown)))}.", "Not known")


def spoken(capacity: Capacity) -> Iterator[str]:
    """What the arithmetic comes to, the limit last; no claim is in it."""
    said = [part for side in capacity.sides for part in (sentence(side.holds), side.gives(" it"))]
    yield from filter(None, [*said, capacity.limited])


def _steps(side: Side) -> Iterator[Row]:
    for step in side.steps:
        yield (Cell(step.title, "head"), Cell(step.formula), Cell(step.shown, "number"), cited(step.places))
    for what, value in (("Running", side.running_median), ("Running at most", side.running_max),
                        ("Waiting at most", side.waiting_max)):  # fmt: skip
        if value is not None:
            told = "median while anything ran, in all of its log" if what == "Running" else "in all of its log"
            yield (Cell(what, "head"), Cell(f"observed: {told}"), Cell(f"{value:,.3g} requests", "number"), Cell(""))


def _seen(capacity: Capacity, held: AbstractSet[str]) -> Iterator[Row]:
    decode = next((side for side in capacity.sides if side.role != "prefill"), None)
    for seen in capacity.seen:
        yield (
            Cell(seen.level, "head"),
            Cell(_asked(seen), "number"),
            Cell(str(decode.fit) if decode and decode.fit else "not known"),
            Cell(_count(seen.running_median), "number"),
            Cell(_count(seen.running_max), "number"),
            Cell(printed(seen, held)),
            Cell("not known" if seen.ceilings is None else f"{seen.ceilings:,.2f} times", "number"),
        )


def _asked(seen: Seen) -> str:
    return _count(seen.asked) if seen.is_cap else f"{_count(seen.asked)} (mean)"


def _count(value: float | None) -> str:
    return "not known" if value is None else f"{value:,.3g}"


def printed(seen: Seen, held: AbstractSet[str]) -> str:
    """What the client printed, labelled where it was not measured."""
    if seen.claimed_tok_per_s is None:
        return "none"
    said = show(seen.claimed_tok_per_s, "tok/s")
    return said if seen.run_id in held else f"{said} {CLAIMED}"
