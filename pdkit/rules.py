"""What a check is: one claim that should hold, as expressions over facts, with bounds."""

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import polars as pl

from pdkit.metrics import METRICS
from pdkit.results import Severity, Voids

c = pl.col  # a rule says c.ttft_ms_mean

NEIGHBOURS = {"lower": "the next lower level of the same sweep", "base": "the run that it is compared with"}
Grain = Literal["run", "request"]


class Neighbour:
    """Facts of another run, under their own names: `lower.e2e_ms_median` is the column `lower__e2e_ms_median`."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix

    def __getattr__(self, fact: str) -> pl.Expr:
        return pl.col(f"{self._prefix}__{fact}")


lower = Neighbour("lower")
base = Neighbour("base")


@dataclass(frozen=True)
class Pairs:
    """Which run each run is compared with (run_id to run_id), and which runs have no measured result.

    `said` is what only the runs beside it tell of a run: its run_id, and columns of `facts.COMPARED`.
    """

    base_of: Mapping[str, str] = field(default_factory=dict)
    refused: frozenset[str] = frozenset()
    said: tuple[Mapping[str, str | float | None], ...] = ()


@dataclass(frozen=True)
class Bound:
    """Observed values under `low` or over `high` are beyond it."""

    low: float | None = None
    high: float | None = None
    instead_of: float | None = None  # of a rule with several bounds on that side, the one that a user means

    def over(self, own: "Bound") -> "Bound":
        """A rule's own bound with this one's sides in their place; a side that the rule lacks is not added."""
        low, high = (
            given if given is not None and default is not None and self.instead_of in (None, default) else default
            for given, default in ((self.low, own.low), (self.high, own.high))
        )
        return Bound(low, high)

    def looser_than(self, own: "Bound") -> bool:
        """Whether something that the other one fails is not beyond this one."""
        under = own.low is not None and (self.low is None or self.low < own.low)
        over = own.high is not None and (self.high is None or self.high > own.high)
        return under or over

    def __str__(self) -> str:
        low, high = ("" if side is None else f"{side:g}" for side in (self.low, self.high))
        return f"{low} to {high}" if low and high else f"at least {low}" if low else f"at most {high}"


def below(low: float) -> Bound:
    """Beyond it: what is less than `low`."""
    return Bound(low=low)


def above(high: float) -> Bound:
    """Beyond it: what is more than `high`."""
    return Bound(high=high)


def outside(low: float, high: float) -> Bound:
    """Beyond it: what is less than `low` or more than `high`."""
    return Bound(low, high)


ALWAYS = pl.lit(True)
ANY = Bound(high=0)  # the share of bad ones, or a count, is not nothing
FALSE = Bound(low=1)  # a yes-or-no claim does not hold
SECTIONS = ("Why", "Next", "Source", "Exceptions")  # of a check's docstring


@dataclass(frozen=True, eq=False)  # == of two expressions is a third expression
class Rule:
    """One view of a claim, over runs or over requests.

    `applies` false: not applicable. `applies` null, or `observed` null or not finite: not evaluated. Null travels
    through arithmetic by itself; `max_horizontal` and `coalesce` are how a rule says that some facts are enough.
    `voids` and `says` replace those of the check; `takes` names facts that a failure takes off the page, whatever
    its severity (a percentile that too few requests support).
    """

    observed: pl.Expr
    applies: pl.Expr = ALWAYS
    refuse: Bound | None = None
    suspect: Bound | None = None
    note: Bound | None = None
    grain: Grain = "run"
    voids: tuple[Voids, ...] = ()
    says: str = ""
    takes: tuple[str, ...] = ()

    @property
    def bounds(self) -> dict[Severity, Bound]:
        """Its bounds, the most severe first."""
        named: dict[Severity, Bound | None] = {"refuse": self.refuse, "suspect": self.suspect, "note": self.note}
        return {severity: bound for severity, bound in named.items() if bound}

    @property
    def names(self) -> list[str]:
        """The facts (and, over requests, columns) that it names."""
        return sorted({*self.applies.meta.root_names(), *self.observed.meta.root_names()})

    def bounded(self, bounds: dict[Severity, Bound]) -> "Rule":
        """With the given bounds over its own; a severity or a side that it lacks is not added."""
        kept = {severity: bounds.get(severity, bound).over(bound) for severity, bound in self.bounds.items()}
        return replace(self, refuse=kept.get("refuse"), suspect=kept.get("suspect"), note=kept.get("note"))


def request_rule(
    *,
    bad: pl.Expr,
    applies: pl.Expr,
    refuse: Bound | None = None,
    suspect: Bound | None = None,
    voids: tuple[Voids, ...] = (),
    says: str = "",
) -> Rule:
    """One view over requests: the observed value is the share of bad ones among those that could be judged."""
    return Rule(bad, applies, refuse, suspect, grain="request", voids=voids, says=says)


@dataclass(frozen=True, eq=False)
class Check:
    """A claim, its views from best evidence to poorest, and what its failure voids."""

    id: str
    voids: tuple[Voids, ...]
    says: str
    views: tuple[Rule, ...]
    name: str
    doc: str
    family: str
    shows_output: bool = False
    shows_completeness: bool = False

    @property
    def title(self) -> str:
        """The claim in one sentence."""
        return self.doc.partition("\n")[0]

    def section(self, heading: str) -> str:
        """One part of the docstring: `Why`, `Next`, `Source` or `Exceptions`; "" where it has none."""
        found = re.search(rf"^{heading}: (.*?)(?=^[A-Z][a-z]+: |\Z)", self.doc, re.MULTILINE | re.DOTALL)
        return " ".join(found[1].split()) if found else ""

    @property
    def sections(self) -> dict[str, str]:
        """The parts that its docstring has, by heading, each with a capital."""
        said = {heading: self.section(heading) for heading in SECTIONS}
        return {heading: f"{words[:1].upper()}{words[1:]}" for heading, words in said.items() if words}

    def tightened(self, bounds: dict[Severity, Bound]) -> "Check":
        """With other thresholds."""
        return replace(self, views=tuple(view.bounded(bounds) for view in self.views))


CHECKS: dict[str, Check] = {}
Claim = Callable[[], "Rule | tuple[Rule, ...]"]


def check(
    rule_id: str,
    *,
    voids: Voids | tuple[Voids, ...],
    says: str,
    shows_output: bool = False,
    shows_completeness: bool = False,
) -> Callable[[Claim], Check]:
    """Register the claim that a function states; its views are built once, at import.

    Raises:
        ValueError: the id is taken; ids are never reused.
    """

    def register(claim: Claim) -> Check:
        if rule_id in CHECKS:
            raise ValueError(f"{rule_id}: two checks have this id; ids are never reused")
        views = claim()
        made = Check(
            id=rule_id,
            voids=(voids,) if isinstance(voids, str) else voids,
            says=says,
            views=views if isinstance(views, tuple) else (views,),
            name=claim.__name__,
            doc=inspect.getdoc(claim) or "",
            family=claim.__module__.rpartition(".")[2],
            shows_output=shows_output,
            shows_completeness=shows_completeness,
        )
        CHECKS[rule_id] = made
        return made

    return register


def percentile_facts(percentile: float, *clocks: str) -> tuple[str, ...]:
    """Names of the facts that are this percentile of one of the clocks."""
    return tuple(m.name for m in METRICS.values() if m.percentile == percentile and m.name.startswith(clocks))
