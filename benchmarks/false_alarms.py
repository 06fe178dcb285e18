"""How often equal sides are called different, and different ones are, by rules for one run and for repeats."""

import heapq
from collections.abc import Callable

import numpy as np
from scipy.stats import mannwhitneyu

from pdkit import stats
from pdkit.compare.call import called_by

_Random = np.random.Generator
_Test = Callable[[_Random, float], bool]  # whether sides are called different, the second so many times as slow

_REQUESTS, _SLOTS, _SERVICE_S = 400, 24, 5.0
_RATES_PER_S = {"moderate": 4.0, "near the knee": 4.6}  # of 4.8 that the slots can serve
_SPEED_CV = 0.015  # run to run
_ALPHA = 0.05


def latencies(chance: _Random, *, rate_per_s: float, slower: float) -> np.ndarray:
    """E2E of each request of one run: arrivals at random, one queue, slots; the whole run a little fast or slow."""
    speed = slower * float(np.exp(chance.normal(0, _SPEED_CV)))
    arrivals = np.cumsum(chance.exponential(1 / rate_per_s, _REQUESTS))
    service = speed * _SERVICE_S * np.exp(chance.normal(0, 0.4, _REQUESTS) - 0.08)
    free, ends = [0.0] * _SLOTS, []
    for arrived, takes in zip(arrivals, service, strict=True):
        end = max(arrived, heapq.heappop(free)) + takes
        heapq.heappush(free, end)
        ends.append(end)
    return np.array(ends) - arrivals


def over_requests(rate_per_s: float) -> _Test:
    """One run a side, its requests held to be independent: Mann-Whitney."""

    def differ(chance: _Random, slower: float) -> bool:
        sides = [latencies(chance, rate_per_s=rate_per_s, slower=by) for by in (1.0, slower)]
        return bool(mannwhitneyu(*sides).pvalue < _ALPHA)

    return differ


def over_runs(rate_per_s: float, runs: int) -> _Test:
    """Repeats of each side, each run one number: Welch on logarithms."""

    def differ(chance: _Random, slower: float) -> bool:
        sides = [
            [float(latencies(chance, rate_per_s=rate_per_s, slower=by).mean()) for _ in range(runs)]
            for by in (1.0, slower)
        ]
        found = stats.ratio_interval(*sides)
        return found is not None and found.p < _ALPHA

    return differ


def one_number(cv: float) -> _Test:
    """One run a side, and whoever is ahead by more than 3 % has won."""

    def differ(chance: _Random, slower: float) -> bool:
        theirs, mine = np.exp(chance.normal(0, cv, 2)) / (1, slower)
        return bool(abs(mine / theirs - 1) > stats.SAME_RATIO)

    return differ


def called(cv: float, runs: int) -> _Test:
    """`pdkit compare`: beyond the line at 3 %, or at twice the spread."""

    def differ(chance: _Random, slower: float) -> bool:
        theirs, mine = np.exp(chance.normal(0, cv, (2, runs))) / [[1], [slower]]
        return called_by("received_throughput_tok_per_s", theirs.tolist(), mine.tolist()) in ("faster", "slower")

    return differ


def modes(chance: _Random, kinds: int) -> bool:
    """Whether 400 requests of so many kinds, twice as slow each, have more than one mode."""
    shapes = [chance.lognormal(4, 0.3, 400), 50 + chance.exponential(100, 400), chance.uniform(50, 500, 400)]
    one = shapes[int(chance.integers(len(shapes)))] if kinds == 1 else chance.lognormal(4, 0.15, 400)
    return (stats.modes((one * 2.0 ** chance.integers(0, kinds, 400)).tolist()) or 1) > 1


def simulate(scale: float) -> None:
    """Print shares, and how far those of equal sides lie above what they should be."""
    tries, chance = max(20, round(400 * scale)), np.random.default_rng(1)
    tests = {
        **{f"Mann-Whitney over requests, {name}": over_requests(rate) for name, rate in _RATES_PER_S.items()},
        **{f"Welch, {runs} runs a side, {name}": over_runs(rate, runs)
           for name, rate in _RATES_PER_S.items() for runs in (3, 5)},
        **{f"one run a side, 3 % ahead, CV {cv:.0%}": one_number(cv) for cv in (0.01, 0.02, 0.05)},
        **{f"pdkit compare, {runs} runs a side, CV {cv:.0%}": called(cv, runs)
           for cv in (0.01, 0.02, 0.05) for runs in (3, 5)},
    }  # fmt: skip
    print(f"statistics, {tries} tries each: share of equal sides called different (of the 5 % that may be), then of")
    print("sides 5 % and 20 % apart")
    for name, differ in tests.items():
        false, five, twenty = (np.mean([differ(chance, by) for _ in range(tries)]) for by in (1.0, 1.05, 1.2))
        print(f"  {name}: {false:.0%} ({false / _ALPHA:.1f} times), {five:.0%}, {twenty:.0%}")
    one, two = (np.mean([modes(chance, kinds) for _ in range(tries)]) for kinds in (1, 2))
    print(f"  two modes seen in 400 requests of one kind: {one:.0%}; of two kinds: {two:.0%}")
