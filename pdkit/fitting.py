"""How many requests fit into a pool: the distribution over all draws of their prompts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import erf, floor, sqrt

import numpy as np

_RARE = 0.01  # shares of draws below this are left out of the range
_GONE = 1e-9  # from here on no draw fits
_EXACT_REQUESTS, _EXACT_TOK = 64, 2**17  # beyond these a sum of prompts is as good as normal


@dataclass(frozen=True)
class Lengths:
    """How long prompts are: each length with the share of requests that have it."""

    tok: tuple[int, ...]
    shares: tuple[float, ...]
    said: str = ""  # where they come from

    @classmethod
    def of(cls, tok: Sequence[int], said: str = "") -> "Lengths":
        """Those of the given requests."""
        values, counts = np.unique(np.asarray(tok, dtype=np.int64), return_counts=True)
        return cls(tuple(map(int, values)), tuple(map(float, counts / counts.sum())), said)

    @classmethod
    def uniform(cls, low: int, high: int) -> "Lengths":
        """Every length from low to high alike."""
        count = high - low + 1
        return cls(tuple(range(low, high + 1)), (1 / count,) * count, f"uniform from {low:,} to {high:,}")

    @property
    def mean(self) -> float:
        """Their mean."""
        return float(np.dot(self.tok, self.shares))

    @property
    def variance(self) -> float:
        """Their variance."""
        return float(np.dot((np.asarray(self.tok) - self.mean) ** 2, self.shares))


@dataclass(frozen=True)
class Fit:
    """How many requests fit at once: `shares` of all draws of prompts, in order, as they would arrive."""

    shares: Mapping[int, float]
    exact: bool = True

    @property
    def mean(self) -> float:
        """Mean over all draws."""
        return sum(count * share for count, share in self.shares.items())

    @property
    def typical(self) -> int:
        """The number that fits most often."""
        return max(self.shares, key=lambda count: self.shares[count])

    @property
    def low(self) -> int:
        """The least that is not rare."""
        return min(self._likely)

    @property
    def high(self) -> int:
        """The most that is not rare."""
        return max(self._likely)

    @property
    def _likely(self) -> list[int]:
        return [count for count, share in self.shares.items() if share >= _RARE] or [self.typical]

    def times(self, replicas: int) -> "Fit":
        """Of as many pools of this size."""
        return Fit({count * replicas: share for count, share in self.shares.items()}, self.exact)

    def __str__(self) -> str:
        """`2 for 89 % of draws, 1 for 2 %, 3 for 9 %`."""
        likely = sorted(self._likely)
        if len(likely) == 1:
            return f"{likely[0]:,} for nearly all draws"
        if len(likely) > 4:
            about = "" if self.exact else "about "
            return f"{about}{self.low:,} to {self.high:,}, most often {self.typical:,}"
        rest = [f"{count:,} for {self.shares[count]:.0%}" for count in likely if count != self.typical]
        return f"{self.typical:,} for {self.shares[self.typical]:.0%} of draws, {', '.join(rest)}"


@lru_cache(maxsize=64)  # a page asks for the same pool several times
def fitting(lengths: Lengths, *, pool_tok: float, beside_tok: float) -> Fit:
    """How many requests fit into a pool, if each takes its prompt and `beside_tok` more.

    Prompts arrive in random order; k fit where the sum of the first k, with what each takes beside, is no more than the
    pool. Exact for small numbers, by adding up all draws; for large ones a sum of prompts is taken as normal.
    """
    each = lengths.mean + beside_tok
    if pool_tok <= 0 or each <= 0:
        return Fit({0: 1.0})
    small = pool_tok / each <= _EXACT_REQUESTS and pool_tok + max(lengths.tok) <= _EXACT_TOK
    at_least = _exact(lengths, pool_tok, beside_tok) if small else _normal(lengths, pool_tok, beside_tok)
    reached = [1.0, *at_least, 0.0]
    first = next((k for k, share in enumerate(reached) if share < 1 - _GONE), 1) - 1
    shares = {k: reached[k] - reached[k + 1] for k in range(max(first, 0), len(reached) - 1)}
    return Fit({k: share for k, share in shares.items() if share > _GONE} or {len(at_least): 1.0}, exact=small)


def _exact(lengths: Lengths, pool_tok: float, beside_tok: float) -> list[float]:
    """Shares of draws in which at least 1, 2, … fit: the distribution of the sum, prompt by prompt."""
    most, longest = floor(pool_tok), max(lengths.tok)
    one = np.zeros(longest + 1)
    one[list(lengths.tok)] = lengths.shares
    size = 1 << (most + longest + 1).bit_length()
    spectrum = np.fft.rfft(one, size)
    total = np.zeros(most + 1)
    total[0] = 1.0
    shares: list[float] = []
    for k in range(1, most + 2):
        total = np.fft.irfft(np.fft.rfft(total, size) * spectrum, size)[: most + 1]
        room = floor(pool_tok - k * beside_tok)
        share = float(total[: room + 1].sum()) if room >= 0 else 0.0
        if share < _GONE:
            break
        shares.append(min(share, 1.0))
    return shares


def _normal(lengths: Lengths, pool_tok: float, beside_tok: float) -> list[float]:
    each, variance = lengths.mean + beside_tok, lengths.variance
    middle = pool_tok / each
    spread = 8 * sqrt(max(variance * middle, 1.0)) / each + 2
    low, high = max(1, floor(middle - spread)), floor(middle + spread) + 1

    def at_least(k: int) -> float:
        left, deviation = pool_tok - k * each, sqrt(variance * k)
        return float(left >= 0) if deviation == 0 else 0.5 * (1 + erf(left / deviation / sqrt(2)))

    return [1.0] * (low - 1) + [at_least(k) for k in range(low, high + 1)]
