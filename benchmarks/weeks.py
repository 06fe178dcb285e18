"""How often the weekly review calls a series that did not change, and finds one that did: made weeks, seeded."""

from collections.abc import Sequence

import numpy as np

from pdkit.weekly.calls import Call, Week, called, smallest_change

_METRIC = "received_throughput_tok_per_s"
_BASELINE = 8
_WEEKS = (8, 10, 16)  # that a series has
_SPREADS = ((0.01, 1), (0.02, 1), (0.02, 3), (0.02, 5), (0.05, 3))  # CV of runs, runs a week
_STEPS = (0.05, 0.08, 0.10)  # slower for the last two weeks


def simulate_weeks(scale: float) -> None:
    """A line for every length and spread: calls without a change, and what is found of one two weeks ago."""
    tries = max(50, round(2_000 * scale))
    chance = np.random.default_rng(11)
    print(f"weekly review, {tries:,} series a figure; a step two weeks ago: alarm / called slower")
    for weeks in _WEEKS:
        for spread, runs in _SPREADS:
            calm = _calls(chance, tries, weeks=weeks, spread=spread, runs=runs, step=0.0)
            found = [
                f"{step:.0%}: {_alarms(some):.0%} / {_share(some, 'slower'):.0%}"
                for step in _STEPS
                if (some := _calls(chance, tries, weeks=weeks, spread=spread, runs=runs, step=step))
            ]
            smallest = smallest_change(spread / runs**0.5)
            at = _calls(chance, tries, weeks=weeks, spread=spread, runs=runs, step=1 - 1 / (1 + smallest))
            wrong = _share(calm, "faster") + _share(calm, "slower")
            print(
                f"  {weeks:2} weeks, {runs} runs of CV {spread:.0%}: no change: alarm {_alarms(calm):.1%}, called {wrong:.1%}, "
                f"same {_share(calm, 'same'):.0%}; {', '.join(found)}; at the {smallest:.1%} that the page states: "
                f"{_share(at, 'slower'):.0%}"
            )


def _calls(chance: np.random.Generator, tries: int, *, weeks: int, spread: float, runs: int, step: float) -> list[Call]:
    return [called(_METRIC, _made(chance, weeks, spread, runs, step), baseline=_BASELINE) for _ in range(tries)]


def _made(chance: np.random.Generator, weeks: int, spread: float, runs: int, step: float) -> list[Week]:
    levels = [100.0 * (1 - step if week >= weeks - 2 else 1.0) for week in range(weeks)]
    values = [(level * np.exp(chance.normal(0, spread, runs))).tolist() for level in levels]
    return [Week(f"week {number}", tuple(some)) for number, some in enumerate(values)]


def _alarms(calls: Sequence[Call]) -> float:
    return sum(call.walk.is_alarm for call in calls) / len(calls)


def _share(calls: Sequence[Call], word: str) -> float:
    return sum(call.word == word for call in calls) / len(calls)
