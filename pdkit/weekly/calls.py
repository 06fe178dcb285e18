"""What the weeks of one series allow to be said: faster, slower, the same, or that nobody can tell, and what would."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import exp, log, sqrt
from typing import Literal

from pdkit.compare import percent
from pdkit.metrics import METRICS
from pdkit.stats import CONFIDENCE, RatioInterval, cv, holm, pooled_interval, same_within
from pdkit.trend import LEAST_WEEKS, Walked, dated, walked
from pdkit.units import plural

Word = Literal["faster", "slower", "same", "can't tell"]
MOST_RUNS = 20  # a week: nobody runs more
_WORTH_FINDING = 0.05
ALPHA = 0.05  # of all series of a page together
# Of the spread of weekly means: what is found in four of five tries (simulated for 6 to 12 weeks: benchmarks, `weekly`)
_BOTH_OUTSIDE = 5.3  # two in a row beyond limits that are estimated themselves
_BEYOND_DELTA = 2.9  # the interval of two weeks beyond the line at 1 ± delta


@dataclass(frozen=True)
class Week:
    """One week that counts: the values of its runs; the page's point is their mean."""

    week: str
    values: tuple[float, ...]
    has_doubts: bool = False

    @property
    def mean(self) -> float:
        """Of its runs; nothing below a run has a say."""
        return sum(self.values) / len(self.values)


@dataclass(frozen=True)
class Call:
    """What is said of one series in one week, and what it rests on.

    `spread` is the CV of the baseline's weekly means, `within` that of runs of one week; `delta` the share by which
    weeks may differ and be called the same. `restart` says why weeks before are not among these.
    """

    fact: str
    weeks: tuple[Week, ...]
    walk: Walked
    interval: RatioInterval | None
    spread: float | None
    within: float | None
    delta: float
    restart: str = ""
    holm_p: float | None = None

    @property
    def baseline(self) -> tuple[Week, ...]:
        """The weeks that this one is held against."""
        return tuple(self.weeks[i] for i in self.walk.baseline)

    @property
    def recent(self) -> tuple[Week, ...]:
        """This week and the measured one before it, or all since an alarm began."""
        return tuple(self.weeks[i] for i in self.walk.recent)

    @property
    def is_picked(self) -> bool:
        """Whether so many series alone would show as much by chance."""
        return self.holm_p is not None and self.holm_p >= ALPHA

    @property
    def since(self) -> str | None:
        """The week in which an alarm began."""
        return self.recent[0].week if self.walk.is_alarm else None

    @property
    def dated(self) -> str | None:
        """Of an alarm: the week in which one step explains most, where there are twelve to tell by."""
        at = dated([week.mean for week in self.weeks]) if self.walk.is_alarm else None
        return None if at is None else self.weeks[at].week

    @property
    def outside(self) -> int:
        """On which side of its limits this week lies; 0 where within, or where there are none."""
        return self.walk.limits.side(self.weeks[-1].mean) if self.walk.limits else 0

    @property
    def word(self) -> Word:
        """`faster` and `slower` take two in a row outside and an interval beyond the line at 1 ± delta."""
        line, found = 1 + self.delta, self.interval
        if found is None:
            return "can't tell"
        if found.low >= 1 / line and found.high <= line:
            return "same" if self.walk.is_alarm or not self.outside else "can't tell"
        if not self.walk.is_alarm or self.is_picked or (found.low <= line and found.high >= 1 / line):
            return "can't tell"
        return "faster" if (found.low > line) == (METRICS[self.fact].unit != "ms") else "slower"

    @property
    def verdict(self) -> str:
        """As a page prints it: `slower`, `same within 3 %`."""
        return f"same within {percent(self.delta)}" if self.word == "same" else self.word

    @property
    def smallest(self) -> float | None:
        """The change that weeks like these would show in four of five tries."""
        return None if self.spread is None else smallest_change(self.spread)

    @property
    def why(self) -> str:
        """Why nobody can tell; "" where somebody can."""
        if self.word != "can't tell":
            return ""
        if self.interval is None:
            since = f" since {self.restart}" if self.restart else ""
            return f"{plural(len(self.weeks), 'measured week')}{since}; a call takes {LEAST_WEEKS}"
        if self.walk.is_alarm and self.is_picked:
            by_chance = f"of so many series one may be by chance (p {self.holm_p:.2g})"
            return f"outside its limits since {self.since}, but {by_chance}"
        if self.walk.is_alarm:
            return f"outside its limits since {self.since}, and not surely by more than {percent(self.delta)}"
        if self.outside:
            where = "above" if self.outside > 0 else "below"
            return f"{where} its limits this week, for the first time; a second week there would be an alarm"
        return f"within its limits; a change of less than {percent(self.smallest or 0)} would not show"

    @property
    def would_tell(self) -> str:
        """What would, in runs and weeks."""
        if self.word != "can't tell":
            return ""
        if self.interval is None:
            left = max(1, LEAST_WEEKS - len(self.weeks))
            return f"{plural(left, 'more measured week')}"
        if self.outside and not self.walk.is_alarm:
            return "next week's runs"
        weeks = [plural(self.more_weeks, "more week") + " like these"] if self.more_weeks else []
        return (
            ", or ".join([*weeks, *self._with_repeats]) or f"nobody: it lies too near the line of {percent(self.delta)}"
        )

    @property
    def _with_repeats(self) -> list[str]:
        """Runs a week that would tell of an alarm; else with which a change of 5 % would show, or nearly."""
        if self.walk.is_alarm:
            return [f"{self.more_repeats} runs a week"] if self.more_repeats else []
        have = _typical(self.weeks)
        known = {
            runs: smallest_change(self._spread_with(runs)) for runs in range(have + 1, max(MOST_RUNS, have + 1) + 1)
        }
        runs = next((runs for runs, change in known.items() if change <= _WORTH_FINDING), max(known))
        return [f"{runs} runs a week, which would show a change of {percent(known[runs])}"]

    @property
    def more_repeats(self) -> int | None:
        """Runs a week from which the interval would leave the line, if the ratio stays; None where 20 would not."""
        have = _typical(self.weeks)
        wanted = (
            n for n in range(have + 1, MOST_RUNS + 1) if self._would_leave(self._spread_with(n), len(self.recent))
        )
        return next(wanted, None)

    def _spread_with(self, runs: int) -> float:
        """The CV of weekly means of so many runs each.

        What weeks differ by beyond their runs does not shrink with repeats; weeks of one run say nothing of that, and
        then all of it is taken to be the runs'.
        """
        have, spread = _typical(self.weeks), self.spread or 0.0
        of_runs = (self.within if self.within is not None else spread * sqrt(have)) ** 2
        return sqrt(max(0.0, spread**2 - of_runs / have) + of_runs / runs)

    @property
    def more_weeks(self) -> int | None:
        """Further weeks like the recent ones from which it would."""
        have, spread = len(self.recent), self.spread or 0.0
        return next((n for n in range(1, LEAST_WEEKS + 1) if self._would_leave(spread, have + n)), None)

    def _would_leave(self, spread: float, recent: int) -> bool:
        from scipy.special import stdtrit

        if self.interval is None:
            return False
        n = len(self.baseline)
        distance = abs(abs(log(self.interval.ratio)) - log(1 + same_within(spread)))
        reach = float(stdtrit(n + recent - 2, (1 + CONFIDENCE) / 2)) * spread * sqrt(1 / n + 1 / recent)
        return reach < distance


def smallest_change(spread: float) -> float:
    """The change in both of two weeks that is called in four of five tries, at a CV of weekly means of `spread`."""
    beyond = log(1 + same_within(spread)) + _BEYOND_DELTA * spread
    return exp(max(_BOTH_OUTSIDE * spread, beyond)) - 1


def called(fact: str, weeks: Sequence[Week], *, baseline: int, restart: str = "") -> Call:
    """What a series says at the last of its weeks, held against at most so many `baseline` weeks before."""
    walk = walked([week.mean for week in weeks], weeks=baseline)
    base, recent = ([weeks[i].mean for i in side] for side in (walk.baseline, walk.recent))
    interval = pooled_interval(base, recent) if walk.is_enough else None
    spread = cv(base) if len(base) > 1 else None
    delta = same_within(spread or 0.0)
    within = _within(weeks[i] for i in walk.baseline)
    return Call(fact, tuple(weeks), walk, interval, spread, within, delta, restart)


def among_all(calls: Iterable[Call]) -> list[Call]:
    """The same calls, each p as it counts among all of the page: by Holm."""
    every = list(calls)
    ps = [call.interval.p for call in every if call.interval]
    adjusted = iter(holm(ps))
    return [replace(call, holm_p=next(adjusted)) if call.interval else call for call in every]


def _typical(weeks: Sequence[Week]) -> int:
    """Runs that a week usually has: the median, the lower one of two."""
    return sorted(len(week.values) for week in weeks)[(len(weeks) - 1) // 2]


def _within(weeks: Iterable[Week]) -> float | None:
    """CV of runs of one week, all weeks together by their degrees of freedom; None where no week has two runs."""
    known = [(spread, len(week.values) - 1) for week in weeks if (spread := cv(week.values)) is not None]
    if not known:
        return None
    return sqrt(sum(spread**2 * freedom for spread, freedom in known) / sum(freedom for _, freedom in known))
