"""How long the requests of each run waited for their first token, with what so many of them allow to be said."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from pdkit import stats
from pdkit.checks.enough_data import FLOORS
from pdkit.compare.comparison import FirstTokens, Pair, Percentile
from pdkit.compare.sides import unsided
from pdkit.facts import one_listing
from pdkit.results import Judgement
from pdkit.rules import c

PERCENTILES = (50.0, 90.0, 95.0, 99.0)


def first_tokens_of(judgement: Judgement, runs: Sequence[str]) -> dict[str, list[float]]:
    """The TTFT of each run's requests, ascending, where a TTFT of the run is published."""
    shown = judgement.published.filter(
        pl.col("fact").is_in(["ttft_ms_mean", "ttft_ms_median"]), pl.col("value").is_not_null()
    )["run_id"]
    asked = pl.col("run_id").is_in(list({*shown} & {*runs}))
    answered = one_listing(judgement.evidence).filter(asked, c.ok, c.ttft_ms.is_not_null())
    rows = answered.select("run_id", "ttft_ms").sort("ttft_ms").collect()
    return {str(run): own["ttft_ms"].to_list() for (run,), own in rows.group_by("run_id", maintain_order=True)}


def with_first_tokens(pair: Pair, first_tokens: Mapping[str, list[float]]) -> Pair:
    """A comparable pair with the percentiles of TTFT in each of its runs whose requests are known."""
    if not pair.is_comparable:
        return pair
    found = (
        FirstTokens(side.side, unsided(run.run_id), unsided(run.experiment), len(ordered), _percentiles(ordered))
        for side in pair.sides
        for run in side.repeats
        if (ordered := first_tokens.get(run.run_id, []))
    )
    return replace(pair, first_tokens=tuple(found))


def _percentiles(ordered: Sequence[float]) -> tuple[Percentile, ...]:
    return tuple(_percentile(ordered, percentile) for percentile in PERCENTILES)


def _percentile(ordered: Sequence[float], percentile: float) -> Percentile:
    """A percentile of ascending values; none below the number that supports it."""
    needs = FLOORS[percentile]
    at_most = stats.conservative_percentile(ordered, percentile)
    if at_most is None or len(ordered) < needs:
        return Percentile(percentile, needs)
    value = float(np.percentile(ordered, percentile))
    return Percentile(percentile, needs, value, stats.quantile_interval(ordered, percentile), at_most)
