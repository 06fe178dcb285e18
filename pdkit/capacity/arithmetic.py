"""Arithmetic as data: each step with its numbers filled in, each side, each run beside it, and what it comes to."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from typing import Literal

from pdkit.fitting import Fit
from pdkit.units import listed, plural, show

ServerRole = Literal["prefill", "decode", "colocated"]
ROLES: tuple[ServerRole, ...] = ("prefill", "decode", "colocated")


@dataclass(frozen=True)
class Step:
    """One line of arithmetic: what is computed, its numbers filled in, the result, and where its inputs stand."""

    title: str
    formula: str
    value: float
    unit: str
    low: float | None = None  # where an input is rounded, or differs from draw to draw
    high: float | None = None
    places: tuple[str, ...] = ()

    @property
    def shown(self) -> str:
        """The result with its unit, and its range where it has one."""
        ends = [end for end in (self.low, self.high) if end is not None]
        between = f" ({' to '.join(_shown(end, self.unit) for end in ends)})" if len(ends) == 2 else ""
        return f"{_shown(self.value, self.unit)} {self.unit}".rstrip() + between

    def __str__(self) -> str:
        return f"{self.title}: {self.formula} = {self.shown}"


@dataclass(frozen=True)
class Side:
    """One side of a split, or the one server that does both: what it holds and how fast it can be.

    `ceiling_tok_per_s` are output tokens on a side that decodes, prompt tokens on one that prefills; `requests_per_s`
    is what that makes of this workload. `unknown` says what is missing, and what would tell.
    """

    role: ServerRole
    steps: tuple[Step, ...] = ()
    pool_tok: float | None = None
    pool_low_tok: float | None = None
    pool_high_tok: float | None = None
    fit: Fit | None = None
    ceiling_tok_per_s: float | None = None
    ceiling_high_tok_per_s: float | None = None  # with as many requests as ever fit
    weights: str = ""  # precision of the weights, and whether it is assumed
    requests_per_s: float | None = None
    running_median: float | None = None  # of all that its log shows, not only while a run lasted
    running_max: float | None = None
    waiting_max: float | None = None
    unknown: tuple[str, ...] = ()

    @property
    def full_at_requests(self) -> int | None:
        """The level at which the pool is full for most draws: from the next request on, they wait."""
        return self.fit.typical if self.fit else None

    @property
    def holds(self) -> str:
        """What fits into its pool, in a sentence; "" where that is not known."""
        if not self.fit or not self.pool_tok:
            return ""
        what = "prompts" if self.role == "prefill" else "requests"
        return f"{self.role} holds {show(self.pool_tok, 'tok')}: {what} that fit: {self.fit}."

    def gives(self, subject: str) -> str:
        """How fast the subject of the sentence is then at most; "" where it does not decode, or nobody knows."""
        if self.role == "prefill" or not self.ceiling_tok_per_s or not self.fit:
            return ""
        weights = f" (weights in {self.weights})" if self.weights else ""
        speed, running = f"{self.ceiling_tok_per_s:,.0f} tok/s", plural(self.fit.typical, "request")
        return f"With {running} running{subject} gives at most about {speed}{weights}."


@dataclass(frozen=True)
class Seen:
    """What one run asked for, and what was seen of it beside the arithmetic."""

    run_id: str
    level: str
    verdict: str
    asked: float | None  # users, or requests in flight on average where none is capped
    is_cap: bool
    running_median: float | None
    running_max: float | None
    claimed_tok_per_s: float | None
    ceilings: float | None  # the claim as a multiple of the ceiling


@dataclass(frozen=True)
class Capacity:
    """The arithmetic of one experiment."""

    experiment: str
    title: str
    sides: tuple[Side, ...] = ()
    seen: tuple[Seen, ...] = ()
    unknown: tuple[str, ...] = ()

    @property
    def limit(self) -> Side | None:
        """The side that fills first; None where not every side is known."""
        fits = [side for side in self.sides if side.fit]
        if not fits or len(fits) < len(self.sides):
            return None
        return min(fits, key=lambda side: side.fit.mean if side.fit else inf)

    def side(self, role: ServerRole) -> Side | None:
        """The side of that role."""
        return next((side for side in self.sides if side.role == role), None)

    def __str__(self) -> str:
        """What it comes to, in words."""
        return " ".join(self.sentences) or f"{self.title}: {listed(list(self.unknown)) or 'nothing is known'}."

    @property
    def limited(self) -> str:
        """Which side limits a pair, in a sentence; "" where there is one side, or one is not known."""
        if len(self.sides) < 2 or not self.limit:
            return ""
        return f"The {self.limit.role} side is the smaller one and limits the pair."

    @property
    def sentences(self) -> tuple[str, ...]:
        """The findings of the arithmetic, the limit first."""
        return tuple(_sentences(self))


def _shown(value: float, unit: str) -> str:
    if unit in ("tok", "bytes", "bytes/tok"):
        return f"{value:,.0f}"
    if unit == "requests" and value.is_integer():
        return f"{value:,.0f}"
    return f"{value:,.0f}" if value >= 1000 else f"{value:,.3g}" if value < 1 else f"{value:,.1f}"


def _sentences(capacity: Capacity) -> Iterator[str]:
    said = [part for side in capacity.sides for part in (side.holds, side.gives(f", {side.role}"))]
    yield from filter(None, [*said, capacity.limited])
    decode = next((side for side in capacity.sides if side.role != "prefill"), None)
    for seen in capacity.seen:
        if decode and seen.ceilings and seen.ceilings > 1:
            yield _beyond(seen, decode)


def _beyond(seen: Seen, decode: Side) -> str:
    claim, most = seen.claimed_tok_per_s or 0, decode.ceiling_high_tok_per_s or inf
    says = f"{claim:,.2f} tok/s claimed at {seen.level} is {seen.ceilings or 0:,.1f} times that"
    if claim <= most or decode.fit is None:
        return f"{says}."
    return f"{says}, and {claim / most:,.1f} times what {plural(decode.fit.high, 'request')} could be given."
