"""An individuals chart of a few weeks: its limits, two in a row outside of them, and the week that a change began."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import log
from statistics import fmean

LEAST_BASELINE = 6  # weeks before the last two: limits of fewer cross by chance too often (benchmarks, `weekly`)
LEAST_WEEKS = LEAST_BASELINE + 2
LEAST_FOR_DATING = 12  # points: a split of fewer names some week of any noise
_MOVING_RANGE = 2.66  # 3 / 1.128: three standard deviations, as the mean range of neighbours says them
_LEAST_SIDE = 2  # points on either side of a change that is dated


@dataclass(frozen=True)
class Limits:
    """Between which weeks of a series lie where nothing changed."""

    mean: float
    low: float
    high: float

    def side(self, value: float) -> int:
        """1 above, -1 below, 0 within."""
        return int(value > self.high) - int(value < self.low)


def limits(values: Sequence[float]) -> Limits:
    """Mean ± 2.66 times the mean range between neighbours; of two values at least."""
    mean = fmean(values)
    reach = _MOVING_RANGE * fmean(abs(b - a) for a, b in pairwise(values))
    return Limits(mean, mean - reach, mean + reach)


@dataclass(frozen=True)
class Walked:
    """What a chart shows at its last point: which points it is held against, and which are held against them.

    `recent` are the last two, or all since the alarm began; `baseline` may be empty, and then there are no `limits`.
    """

    baseline: tuple[int, ...]
    recent: tuple[int, ...]
    limits: Limits | None
    is_alarm: bool

    @property
    def is_enough(self) -> bool:
        """Whether there are weeks enough for a call."""
        return self.limits is not None


def walked(values: Sequence[float], *, weeks: int) -> Walked:
    """The chart week by week: an alarm begins with two in a row outside on one side, and ends with one back within.

    Limits are those of at most so many `weeks` before these two; weeks of an alarm are in no baseline. After eight
    weeks a new level is the level: the alarm ends, and they are the baseline.
    """
    normal: list[int] = []
    out: list[int] = []
    base: list[int] = []
    held = None
    for t, value in enumerate(values):
        if out and held:
            if held.side(value) == held.side(values[out[0]]):
                out.append(t)
                if len(out) == LEAST_WEEKS:
                    normal, out = out, []
            else:
                out = []
                normal.append(t)
            continue
        base = [i for i in normal if i < t - 1][-weeks:]
        held = limits([values[i] for i in base]) if len(base) >= LEAST_BASELINE else None
        if held and t - 1 in normal and (side := held.side(value)) and held.side(values[t - 1]) == side:
            normal.remove(t - 1)
            out = [t - 1, t]
        else:
            normal.append(t)
    if out:
        return Walked(tuple(base), tuple(out), held, is_alarm=True)
    last = tuple(range(max(0, len(values) - 2), len(values)))
    base = [i for i in normal if i not in last][-weeks:]
    found = limits([values[i] for i in base]) if len(base) >= LEAST_BASELINE and len(last) > 1 else None
    return Walked(tuple(base), last, found, is_alarm=False)


def dated(values: Sequence[float]) -> int | None:
    """Where one step explains most of what the logarithms do: the first point after it; None of fewer than twelve.

    It dates a change that an alarm has raised. By itself it says nothing: any noise has a best place for a step.
    """
    if len(values) < LEAST_FOR_DATING or min(values) <= 0:
        return None
    logs = [log(value) for value in values]
    places = range(_LEAST_SIDE, len(logs) - _LEAST_SIDE + 1)
    return min(places, key=lambda at: _squares(logs[:at]) + _squares(logs[at:]))


def _squares(values: Iterable[float]) -> float:
    side = list(values)
    mean = fmean(side)
    return sum((value - mean) ** 2 for value in side)


# --- what a page draws ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Point:
    """One week of a series under one configuration: the mean of its runs with their range; None where none counts.

    `refused` are runs without a measured result, `unverified` those of which nothing shows that text came back; `side`
    is 1 above the limits and -1 below, where that counts.
    """

    week: str
    segment: int
    value: float | None
    low: float | None
    high: float | None
    runs: int
    doubts: int
    refused: int
    unverified: int
    refused_by: tuple[str, ...] = ()
    side: int = 0

    @property
    def is_gap(self) -> bool:
        """Whether something was meant to run and nothing counts."""
        return self.value is None


@dataclass(frozen=True)
class Mark:
    """What changed at a week; `is_restart` where what came before can't be held against what comes after."""

    week: str
    text: str
    letter: str
    is_restart: bool


@dataclass(frozen=True)
class Drawn:
    """One series as a small chart shows it."""

    label: str
    said: str
    points: tuple[Point, ...]
    baseline: tuple[str, ...]
    limits: Limits | None
    marks: tuple[Mark, ...]
    target: float | None


@dataclass(frozen=True)
class OverWeeks:
    """The series of a page, in order; `weeks` is the axis, without any left out."""

    metric: str
    weeks: tuple[str, ...]
    series: tuple[Drawn, ...]
    notes: tuple[Mark, ...]
    left_out: int
    synthetic: bool
