"""One rule of a check under a name of its own, and what may be taken for its observation."""

from typing import NamedTuple

import polars as pl

from pdkit.rules import Check, Rule


class View(NamedTuple):
    """One rule of a check, by its number there."""

    check: Check
    number: int
    rule: Rule

    @property
    def key(self) -> str:
        """Name of its column."""
        return f"{self.check.id}.{self.number}"

    @property
    def about_pair(self) -> bool:
        """Whether it holds a run against its baseline."""
        return any(name.startswith("base__") for name in self.rule.names)


def finite(observed: pl.Expr) -> pl.Expr:
    """Null instead of 0/0 and x/0: polars holds NaN above every bound, so it would fail or pass by accident."""
    number = observed.cast(pl.Float64)
    return pl.when(number.is_finite()).then(number)
