"""Units: converted once, where a log is read, and shown in one way everywhere."""

import math
from typing import Literal

Unit = Literal["ms", "s", "tok", "tok/s", "req/s", "requests", "users", "ratio", "tok/request", "GPUs", "GB/s", ""]

MS_PER_S = 1000.0
PERCENT_PER_RATIO = 100.0

_COUNTED = {"tok", "requests", "GPUs"}
_LARGE = 1000.0  # from here on two decimals tell a reader nothing


def show(value: float | None, unit: Unit = "") -> str:
    """A number as a person reads it, with its unit; "unknown" where there is none."""
    if value is None or math.isnan(value):
        return "unknown"
    if math.isinf(value):
        return "no limit" if value > 0 else "-inf"
    if unit == "ratio":
        return f"{value:.1%}"
    if unit in _COUNTED or (float(value).is_integer() and unit in ("users", "")):
        digits = f"{value:,.0f}"
    else:
        digits = f"{value:,.0f}" if abs(value) >= _LARGE * 100 else f"{value:,.2f}"
    return f"{digits} {unit}".rstrip()


def plural(count: float, noun: str) -> str:
    """`1 run`, `2 runs`."""
    return f"{count:,.0f} {noun}" if count == 1 else f"{count:,.0f} {noun}s"


def listed(words: list[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}" if words else ""
