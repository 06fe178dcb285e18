"""What the repeats of both sides together say of one metric: faster, slower, the same, or nobody can tell."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log
from statistics import fmean
from typing import Literal

from pdkit import stats
from pdkit.metrics import METRICS
from pdkit.stats import LEAST_REPEATS, RatioInterval

Word = Literal["faster", "slower", "same", "can't tell"]
RECEIVED, PER_GPU = "received_throughput_tok_per_s", "received_throughput_tok_per_s_per_gpu"
# what repeats are called by, in a sentence; the first is declared unless the caller says otherwise
CALLED = {
    RECEIVED: "received output throughput",
    "tpot_ms_mean": "mean TPOT",
    "ttft_ms_median": "median TTFT",
    "ttft_ms_p90": "p90 TTFT",
}
SAID = CALLED | {PER_GPU: "received output throughput per GPU"}
TOO_FEW, PICKED = "PD902", "PD906"  # these take the call, and leave the comparison


@dataclass(frozen=True)
class Call:
    """What the repeats of both sides together say of one metric; of two values the first is the baseline's.

    `means` are geometric; `delta` is the share by which sides may differ and be called the same; `smallest_effect`
    what so many runs show in four of five tries; `enough` the runs a side that would tell where these can't; `holm_p`
    the p as it counts among all levels, and `is_picked` that it counts for too little there.
    """

    fact: str
    is_declared: bool
    runs: tuple[int, int]
    means: tuple[float, float]
    cv: tuple[float | None, float | None]
    interval: RatioInterval
    delta: float
    smallest_effect: float
    enough: int | None
    permutation_p: float | None
    holm_p: float | None = None
    is_picked: bool = False

    @property
    def word(self) -> Word:
        """`faster` or `slower` beyond the line at 1 ± delta, `same` within it, else `can't tell`."""
        line, found = 1 + self.delta, self.interval
        if found.low >= 1 / line and found.high <= line:
            return "same"
        if self.is_picked or (found.low <= line and found.high >= 1 / line):
            return "can't tell"
        return "faster" if (found.low > line) == (METRICS[self.fact].unit != "ms") else "slower"

    @property
    def verdict(self) -> str:
        """Its word as a page prints it: `faster`, `same within 3 %`."""
        return f"same within {percent(self.delta)}" if self.word == "same" else self.word

    @property
    def sentence(self) -> str:
        """The word with what it rests on; where it can't tell, what would."""
        subject = f"CANDIDATE is {self.word}" if self.word in ("faster", "slower") else self.verdict
        low, high, (theirs, mine) = self.interval.low, self.interval.high, self.runs
        interval = f"95 % interval {low:.3f} to {high:.3f}, {self._where} ±{percent(self.delta)}"
        ratio = f"{self.interval.ratio:.3f} times BASELINE's {SAID[self.fact]}"
        said = f"{subject}: {ratio} ({interval}; {mine} runs against {theirs})"
        return f"{said}; {self._missing}" if self.word == "can't tell" else said

    @property
    def _where(self) -> str:
        if self.word == "same":
            return "within"
        return "across" if self.word == "can't tell" and not self.is_picked else "beyond"

    @property
    def _missing(self) -> str:
        """What would tell."""
        if self.is_picked:
            return f"but one of so many levels may differ by chance, p {self.holm_p:.2g} among them ({PICKED})"
        shown = f"so many runs show a difference of {percent(self.smallest_effect)} in four of five tries"
        if self.enough is None:
            return f"{shown}, and this one lies so near the line that {stats.MOST_REPEATS} a side would not tell"
        return f"{shown}; {self.enough} a side would tell, if ratio and spread stay"


def called_by(fact: str, baseline: Sequence[float], candidate: Sequence[float]) -> Word | None:
    """The word for what each run of both sides says of a metric; None from fewer than three runs a side."""
    call = call_of(fact, baseline, candidate)
    return call.word if call else None


def call_of(fact: str, theirs: Sequence[float], mine: Sequence[float]) -> Call | None:
    """The call of one metric, from what each run publishes; None from fewer than three a side."""
    if min(len(theirs), len(mine)) < LEAST_REPEATS:
        return None
    interval, spread = stats.ratio_interval(theirs, mine), stats.pooled_cv(theirs, mine)
    if interval is None or spread is None:
        return None
    delta = stats.same_within(spread)
    return Call(
        fact,
        is_declared=False,
        runs=(len(theirs), len(mine)),
        means=(mean(theirs), mean(mine)),
        cv=(stats.cv(theirs), stats.cv(mine)),
        interval=interval,
        delta=delta,
        smallest_effect=stats.smallest_effect(spread, len(theirs), len(mine)),
        enough=stats.repeats_to_tell(spread, interval.ratio, delta, more_than=min(len(theirs), len(mine))),
        permutation_p=stats.permutation_p(theirs, mine),
    )


def mean(values: Sequence[float]) -> float:
    """Geometric, as ratios are; a single value as it stands."""
    return exp(fmean(map(log, values))) if len(values) > 1 and min(values) > 0 else fmean(values)


def percent(ratio: float) -> str:
    """A share as a sentence has it: `3 %`, `4.2 %`."""
    return f"{100 * ratio:.1f}".removesuffix(".0") + " %"
