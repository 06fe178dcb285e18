"""What a comparison is: the runs of each side, what holds at each level, and the sentence that says so."""

from dataclasses import dataclass
from typing import Literal

from pdkit.compare.call import SAID, TOO_FEW, Call
from pdkit.findings import Place, Result, Run
from pdkit.results import NO_RESULT, UNVERIFIED, Judgement
from pdkit.stats import LEAST_REPEATS
from pdkit.units import listed, plural

Side = Literal["baseline", "candidate"]


@dataclass(frozen=True)
class Setting:
    """One setting on both sides; None where a side does not state it."""

    name: str
    baseline: str | None
    candidate: str | None
    baseline_places: tuple[Place, ...]
    candidate_places: tuple[Place, ...]


@dataclass(frozen=True)
class Number:
    """One published result on both sides; None where it was not stated, or where the named rules took it.

    Of several runs a side it is the geometric mean, where all of them publish it.
    """

    fact: str
    baseline: float | None
    candidate: float | None
    baseline_voided_by: tuple[str, ...]
    candidate_voided_by: tuple[str, ...]
    no_ratio: str = ""

    @property
    def ratio(self) -> float | None:
        """Candidate over baseline; None where one is missing, or `no_ratio` says why it would mean nothing."""
        if self.no_ratio or self.candidate is None or not self.baseline:
            return None
        return self.candidate / self.baseline


@dataclass(frozen=True)
class Percentile:
    """A percentile of one run's requests, with its 95 % interval and what it surely (99 %) does not pass.

    Below the `needs` requests that such a bound takes there is neither bound nor value.
    """

    percentile: float
    needs: int
    value: float | None = None
    interval: tuple[float, float] | None = None
    at_most: float | None = None


@dataclass(frozen=True)
class FirstTokens:
    """TTFT of one run's requests in ms: what it says holds within this run only."""

    side: Side
    run_id: str
    experiment: str
    requests: int
    percentiles: tuple[Percentile, ...]


@dataclass(frozen=True)
class Runs:
    """One side's runs at a level; its `repeats` are measured, and no copies of each other."""

    side: Side
    every: tuple[Run, ...]
    repeats: tuple[Run, ...]
    copies: int
    unlike: str  # settings in which its repeats differ

    @property
    def used(self) -> tuple[Run, ...]:
        """Its repeats; where it has none, all its runs, which say why."""
        return self.repeats or self.every

    @property
    def unfit(self) -> str:
        """Why it has no measured run; "" where it has one."""
        if self.repeats:
            return ""
        name, rules = self.side.upper(), sorted({rule for run in self.every for rule in run.refused_by})
        if len(self.every) == 1:
            return f"{name} {_unfit(self.every[0])}"
        return f"none of {len(self.every)} runs of {name} is measured" + (f" ({listed(rules)})" if rules else "")

    @property
    def left_out(self) -> list[str]:
        """Beside its repeats: how many of its runs are none, and why."""
        refused = [run for run in self.every if run.is_refused]
        rules = sorted({rule for run in refused for rule in run.refused_by})
        doubtful = len(self.every) - self.copies - len(self.repeats) - len(refused)
        why = f" ({listed(rules)})" if rules else ""
        counted = (
            (len(refused), f"has {NO_RESULT}{why}", f"have {NO_RESULT}{why}"),
            (doubtful, f"is {UNVERIFIED}", f"are {UNVERIFIED}"),
            (self.copies, "is a copy of another", "are copies of others"),
        )
        of = f"of {len(self.every)} runs of {self.side.upper()}"
        return [f"{n} {of} {one if n == 1 else more}" for n, one, more in counted if n and self.repeats]


@dataclass(frozen=True)
class Pair:
    """The runs of both sides at one level. Only a comparable pair has `numbers`, `calls` and `first_tokens`."""

    title: str
    baseline_runs: Runs
    candidate_runs: Runs
    per_gpu: bool
    differing: tuple[Setting, ...]
    stated_once: tuple[Setting, ...]
    results: tuple[Result, ...]
    not_evaluated: tuple[str, ...]
    declared: str
    numbers: tuple[Number, ...] = ()
    calls: tuple[Call, ...] = ()
    first_tokens: tuple[FirstTokens, ...] = ()

    @property
    def sides(self) -> tuple[Runs, Runs]:
        """Baseline, then candidate."""
        return self.baseline_runs, self.candidate_runs

    @property
    def baseline(self) -> Run:
        """The run that all others at the level are held against."""
        return self.baseline_runs.used[0]

    @property
    def candidate(self) -> Run:
        """The candidate's first."""
        return self.candidate_runs.used[0]

    def failed(self, severity: str) -> list[Result]:
        """The rules about pairs that failed so; what takes the call alone is in `without_call`."""
        return [result for result in self.results if result.severity == severity and not _takes_call(result)]

    @property
    def without_call(self) -> list[Result]:
        """Why nobody can be called faster, though the sides are comparable."""
        return [result for result in self.results if _takes_call(result)]

    @property
    def is_comparable(self) -> bool:
        """Whether both sides are measured and no rule refuses to hold them against each other."""
        return all(side.repeats for side in self.sides) and not self.failed("refuse")

    @property
    def call(self) -> Call | None:
        """What the declared metric says; None where nobody may be called faster."""
        return next((call for call in self.calls if call.is_declared), None)

    @property
    def left_out(self) -> list[str]:
        """Runs of either side that are no repeats."""
        return [said for side in self.sides for said in side.left_out]

    @property
    def sentence(self) -> str:
        """Who is faster, and on what it rests; or why there is no winner. Then the runs that were left out."""
        said = self.call.sentence if self.call else f"no winner: {self._without}"
        return "; ".join([said, *self.left_out])

    @property
    def _without(self) -> str:
        if unfit := [side.unfit for side in self.sides if side.unfit]:
            return listed(unfit)
        if refused := [result.rule for result in self.failed("refuse")]:
            return f"not comparable ({listed(refused)})"
        if unlike := [f"{side.side.upper()}'s differ in {side.unlike}" for side in self.sides if side.unlike]:
            return f"not repeats of one thing: {listed(unlike)}"
        theirs, mine = (len(side.repeats) for side in self.sides)
        least = max([LEAST_REPEATS, *(int(result.low) for result in self.without_call if result.low)])
        if min(theirs, mine) >= least:
            return f"not every run publishes a {SAID[self.declared]} that may be held against the other side's"
        have = "one run a side" if theirs == mine == 1 else f"{plural(theirs, 'run')} of BASELINE, {mine} of CANDIDATE"
        return f"{have}; {least} or more a side, in turn and with one seed, would tell"


@dataclass(frozen=True)
class Unpaired:
    """A level at which nothing is compared, and how many runs each side has there."""

    level: str
    baseline: int
    candidate: int

    @property
    def is_crowded(self) -> bool:
        """Whether both sides have runs there, and nothing tells which belong together."""
        return bool(self.baseline and self.candidate)

    @property
    def sentence(self) -> str:
        """Why nothing is compared there."""
        if not self.is_crowded:
            return f"{self.level}: {'BASELINE' if self.baseline else 'CANDIDATE'} alone has it"
        runs = f"{plural(self.baseline, 'run')} of BASELINE, {self.candidate:,} of CANDIDATE"
        return f"{self.level}: {runs}: none is picked; name the logs of one level"


@dataclass(frozen=True)
class Comparison:
    """All pairs, the levels without one, and the judgement of both sides that they rest on."""

    pairs: tuple[Pair, ...]
    unpaired: tuple[Unpaired, ...]
    judgement: Judgement
    declared: str

    @property
    def is_comparable(self) -> bool:
        """Whether something was compared, and nothing that both sides have was refused."""
        crowded = any(level.is_crowded for level in self.unpaired)
        return bool(self.pairs) and not crowded and all(pair.is_comparable for pair in self.pairs)

    @property
    def conclusion(self) -> str:
        """One sentence about all pairs."""
        if len(self.pairs) == 1:
            return self.pairs[0].sentence
        if not self.pairs:
            return "no winner: no level that both sides have and state"
        if not any(pair.call for pair in self.pairs):
            return self._without_call
        levels: dict[str, list[str]] = {}
        for pair in self.pairs:
            levels.setdefault(_called(pair), []).append(pair.candidate.level)
        return "; ".join(f"{word} at {listed(at)}" for word, at in levels.items())

    @property
    def _without_call(self) -> str:
        fit, of = [pair for pair in self.pairs if pair.is_comparable], plural(len(self.pairs), "level")
        if not fit:
            return f"no winner: none of {of} can be compared"
        alone = all(len(side.repeats) == 1 for pair in fit for side in pair.sides)
        how = "one run a side" if alone else f"fewer than {LEAST_REPEATS} repeats a side, or unlike ones"
        return f"no winner: {len(fit)} of {of} can be compared ({listed([p.candidate.level for p in fit])}), with {how}"


def _takes_call(result: Result) -> bool:
    """Whether nobody can be called faster for it, though the sides stay comparable."""
    return result.rule == TOO_FEW and result.severity == "refuse"


def _called(pair: Pair) -> str:
    word = pair.call.verdict if pair.call else "no winner"
    return f"CANDIDATE is {word}" if word in ("faster", "slower") else word


def _unfit(run: Run) -> str:
    if run.is_refused:
        return f"has {NO_RESULT} ({listed(run.refused_by)})" if run.refused_by else f"has {NO_RESULT}"
    return f"is {run.verdict}: {run.why or 'its log is not whole'}"
