"""What repeats allow to be said: intervals of a ratio, its smallest visible size, bounds of a percentile, modes."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import ceil, comb, exp, log, sqrt
from statistics import fmean, stdev, variance

import numpy as np
import numpy.typing as npt

LEAST_REPEATS = 3  # runs a side: of one each, a test over requests calls 35 to 78 % of equal sides different
LEAST_FOR_EXACT = 5  # runs a side: of 3 each, no arrangement is rarer than 1 in 10
CONFIDENCE = 0.95
POWER = 0.8  # of "the smallest effect that shows"
SAME_RATIO = 0.03  # a difference that nobody acts on, however quiet the series
SAME_CVS = 2  # nor on one within twice the spread of repeats
MOST_REPEATS = 100  # nobody runs more; beyond it "how many would tell" has no useful answer
_MOST_ARRANGEMENTS = 200_000  # of 10 and 10 runs there are 184,756: half a second
_ROUNDING = 1e-9  # arrangements that differ by less are the same one, added up in another order


# --- two sides ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RatioInterval:
    """Candidate over baseline, with Welch's interval on logarithms and the p of "no difference"."""

    ratio: float
    low: float
    high: float
    p: float

    @property
    def half_width(self) -> float:
        """How far the interval reaches on either side, as a logarithm."""
        return log(self.high / self.ratio)


def ratio_interval(
    baseline: Sequence[float], candidate: Sequence[float], *, confidence: float = CONFIDENCE
) -> RatioInterval | None:
    """The ratio of the sides' geometric means over runs; None with fewer than two runs a side, or a number not above 0.

    Welch: neither the spread nor the number of runs has to be alike.
    """
    from scipy.special import stdtr, stdtrit

    if min(len(baseline), len(candidate)) < 2 or min(*baseline, *candidate) <= 0:
        return None
    theirs, mine = [log(value) for value in baseline], [log(value) for value in candidate]
    difference = fmean(mine) - fmean(theirs)
    errors = [variance(side) / len(side) for side in (theirs, mine)]
    error = sqrt(sum(errors))
    if error == 0:
        return RatioInterval(exp(difference), exp(difference), exp(difference), 1.0 if difference == 0 else 0.0)
    freedom = sum(errors) ** 2 / sum(e**2 / (len(side) - 1) for e, side in zip(errors, (theirs, mine), strict=True))
    reach = float(stdtrit(freedom, (1 + confidence) / 2)) * error
    p = 2 * float(stdtr(freedom, -abs(difference) / error))
    return RatioInterval(exp(difference), exp(difference - reach), exp(difference + reach), p)


def pooled_interval(
    baseline: Sequence[float], recent: Sequence[float], *, confidence: float = CONFIDENCE
) -> RatioInterval | None:
    """The same where the recent side is one or two weeks: their spread is taken to be that of the baseline weeks.

    Student's t with one variance for both sides: Welch's has no degrees of freedom left for a side of two.
    """
    from scipy.special import stdtr, stdtrit

    freedom = len(baseline) + len(recent) - 2
    if len(baseline) < 2 or not recent or min(*baseline, *recent) <= 0:
        return None
    theirs, mine = [log(value) for value in baseline], [log(value) for value in recent]
    difference = fmean(mine) - fmean(theirs)
    squares = sum((value - fmean(side)) ** 2 for side in (theirs, mine) for value in side)
    error = sqrt(squares / freedom * (1 / len(theirs) + 1 / len(mine)))
    if error == 0:
        return RatioInterval(exp(difference), exp(difference), exp(difference), 1.0 if difference == 0 else 0.0)
    reach = float(stdtrit(freedom, (1 + confidence) / 2)) * error
    p = 2 * float(stdtr(freedom, -abs(difference) / error))
    return RatioInterval(exp(difference), exp(difference - reach), exp(difference + reach), p)


def cv(values: Sequence[float]) -> float | None:
    """Standard deviation over mean; None for fewer than two values."""
    return stdev(values) / fmean(values) if len(values) > 1 and fmean(values) else None


def pooled_cv(baseline: Sequence[float], candidate: Sequence[float]) -> float | None:
    """What both sides say of the spread of repeats, each by its degrees of freedom; None where neither says any."""
    known = [(spread, len(side) - 1) for side in (baseline, candidate) if (spread := cv(side)) is not None]
    if not known:
        return None
    return sqrt(sum(spread**2 * freedom for spread, freedom in known) / sum(freedom for _, freedom in known))


def same_within(spread: float) -> float:
    """Delta: the share by which sides may differ and still be called the same."""
    return max(SAME_RATIO, SAME_CVS * spread)


def smallest_effect(spread: float, baseline: int, candidate: int) -> float:
    """The share of difference that so many runs a side show in four of five tries, at a pooled CV of `spread`."""
    from scipy.special import nctdtrinc, stdtrit

    freedom = baseline + candidate - 2
    shift = float(nctdtrinc(freedom, 1 - POWER, float(stdtrit(freedom, (1 + CONFIDENCE) / 2))))
    return shift * spread * sqrt(1 / baseline + 1 / candidate)


def repeats_to_tell(spread: float, ratio: float, delta: float, *, more_than: int = LEAST_REPEATS - 1) -> int | None:
    """Runs a side from which the interval would leave the line at 1 ± delta, if ratio and spread stay as they are.

    None where even 100 would not. `more_than` is how many did not tell.
    """
    from scipy.special import stdtrit

    distance = abs(abs(log(ratio)) - log(1 + delta))
    for runs in range(more_than + 1, MOST_REPEATS + 1):
        if float(stdtrit(2 * runs - 2, (1 + CONFIDENCE) / 2)) * spread * sqrt(2 / runs) < distance:
            return runs
    return None


def permutation_p(baseline: Sequence[float], candidate: Sequence[float]) -> float | None:
    """The share of all arrangements of the runs in which the sides lie at least as far apart, on logarithms.

    Exact, and free of any assumption on the spread. None with fewer than five runs a side, which can't tell at 0.01,
    and where there are too many arrangements to go through.
    """
    k, n = len(baseline), len(baseline) + len(candidate)
    if min(k, n - k) < LEAST_FOR_EXACT or comb(n, k) > _MOST_ARRANGEMENTS or min(*baseline, *candidate) <= 0:
        return None
    values = [log(value) for value in (*baseline, *candidate)]
    total = sum(values)
    apart = [abs(sum(some) / k - (total - sum(some)) / (n - k)) for some in combinations(values, k)]
    return sum(one >= apart[0] - _ROUNDING for one in apart) / len(apart)  # the first arrangement is the one seen


def holm(ps: Sequence[float]) -> list[float]:
    """Each p as it counts among all, by Holm's steps: one false alarm in all of them is as rare as one alone."""
    order = sorted(range(len(ps)), key=lambda i: ps[i])
    adjusted, least = [0.0] * len(ps), 0.0
    for rank, i in enumerate(order):
        least = max(least, min(1.0, (len(ps) - rank) * ps[i]))
        adjusted[i] = least
    return adjusted


# --- percentiles of one run -----------------------------------------------------------------------------------------

BOUND_CONFIDENCE = 0.99  # MLCommons endpoints


def skipped(n: int, percentile: float, *, confidence: float = BOUND_CONFIDENCE) -> int | None:
    """How many of the largest of n values may be skipped, and the next is surely no less than the percentile.

    None where not one may be: then the bound would be the largest value, which says nothing of a larger one.
    """
    from scipy.special import bdtr

    beyond = 1 - percentile / 100
    low, high = 0, ceil(n * beyond)
    while low < high:  # the largest k with P(at most k of n lie beyond) within what may be wrong
        middle = (low + high + 1) // 2
        low, high = (middle, high) if bdtr(middle, n, beyond) <= 1 - confidence else (low, middle - 1)
    return low or None


def conservative_percentile(
    ordered: Sequence[float], percentile: float, *, confidence: float = BOUND_CONFIDENCE
) -> float | None:
    """A value, of ascending ones, that the percentile surely does not pass; None below the n that allows one."""
    skip = skipped(len(ordered), percentile, confidence=confidence)
    return None if skip is None else float(ordered[len(ordered) - 1 - skip])


def least_for_bound(percentile: float, *, confidence: float = BOUND_CONFIDENCE) -> int:
    """The fewest values that allow a conservative bound: 64 for p90, 662 for p99."""
    n = 1
    while skipped(n, percentile, confidence=confidence) is None:
        n += 1
    return n


def quantile_interval(
    ordered: Sequence[float], percentile: float, *, confidence: float = CONFIDENCE
) -> tuple[float, float] | None:
    """Two of the ascending values between which the percentile lies, equal tails; None where n allows no finite ones.

    Requests of a run are not independent, so it holds within this run only, and is too narrow rather than too wide.
    """
    from scipy.special import bdtr

    n, tail = len(ordered), (1 - confidence) / 2
    chances = bdtr(np.arange(n), n, percentile / 100)  # that at most 0, 1, 2 … values lie below the percentile
    low, high = int((chances <= tail).sum()), int((1 - chances > tail).sum())
    if low == 0 or high >= n:
        return None
    return float(ordered[low - 1]), float(ordered[high])


# --- modes ----------------------------------------------------------------------------------------------------------

LEAST_FOR_MODES = 200  # values: at 100, one in sixteen flat distributions shows two peaks (simulated: benchmarks)
_MODE_SHARE = 0.1  # of the values: fewer are stragglers, not a mode (Perfherder)
_VALLEY = 0.8  # of the lower peak: a shallower dip is chance
_GRID = 512
_MOST_VALUES = 2000  # that a density is made of; of more, so many quantiles are the same curve


def modes(values: Sequence[float]) -> int | None:
    """How many peaks the density of the logarithms has that hold a tenth of the values each; None for too few values.

    Gaussian kernels, Silverman's robust width; peaks with no valley between them are one.
    """
    logs = np.sort(np.log([value for value in values if value > 0]))
    if len(logs) < LEAST_FOR_MODES:
        return None
    width = _width(logs)
    if width == 0:
        return 1
    grid = np.linspace(logs[0] - 3 * width, logs[-1] + 3 * width, _GRID)
    few = logs if len(logs) <= _MOST_VALUES else np.quantile(logs, (np.arange(_MOST_VALUES) + 0.5) / _MOST_VALUES)
    density = np.exp(-0.5 * ((grid[:, None] - few) / width) ** 2).sum(axis=1)
    edges = np.searchsorted(logs, grid[_valleys(density)])
    return int((np.diff([0, *edges, len(logs)]) >= _MODE_SHARE * len(logs)).sum())


def _width(logs: npt.NDArray[np.float64]) -> float:
    """Silverman's robust width of a kernel."""
    low, high = np.quantile(logs, (0.25, 0.75))
    spread = float(np.std(logs, ddof=1))
    return float(0.9 * (min(spread, (high - low) / 1.349) or spread) * len(logs) ** -0.2)


def _valleys(density: npt.NDArray[np.float64]) -> list[int]:
    """Where the curve is lowest between two peaks that a valley parts."""
    inner = density[1:-1]
    first, *others = np.flatnonzero((inner > density[:-2]) & (inner >= density[2:])) + 1
    found, peak = [], int(first)
    for other in map(int, others):
        lowest = peak + int(np.argmin(density[peak : other + 1]))
        if density[lowest] < _VALLEY * min(density[peak], density[other]):
            found.append(lowest)
            peak = other
        elif density[other] > density[peak]:
            peak = other
    return found
