"""PD9xx: there is enough data to say it."""

import polars as pl

from pdkit.rules import Rule, below, c, check, percentile_facts

# Least n at which a one-sided binomial bound with confidence 0.99 exists: MLCommons endpoints, reproduced with scipy
# as the least n with p**n <= 0.01 (p75 and up), and the sign-test bound for the median.
FLOORS = {50.0: 11, 90.0: 64, 95.0: 130, 99.0: 662}
MEDIAN = 50.0
FOLLOWING = ("interactivity_tok_per_s",)  # 1000 / median TPOT
REQUEST_CLOCKS = ("e2e_ms", "ttft_ms", "tpot_ms")


def _floor(percentile: float, least: int, seen: pl.Expr, clocks: tuple[str, ...], of: str) -> Rule:
    follows = FOLLOWING if percentile == MEDIAN and "tpot_ms" in clocks else ()
    says = f"{{observed:,.0f}} {of}: p{percentile:g} needs n ≥ {least}"
    return Rule(
        applies=c.completed > 0,
        observed=seen,
        note=below(least),
        takes=(*percentile_facts(percentile, *clocks), *follows),
        says=says,
    )


@check("PD901", voids="tail", says="")
def percentiles_have_enough_requests() -> tuple[Rule, ...]:
    """A percentile rests on enough requests.

    Why: the p99 of 30 requests is the slowest one, and says nothing of the next 30.
    Next: as many requests as the percentile needs; or quote a lower percentile.
    Source: one-sided binomial bound at confidence 0.99: 11 requests for p50, 64 for p90, 130 for p95, 662 for p99
    (MLCommons' table; 59 % of 850 public results quote a p99 on fewer).
    Exceptions: gaps between tokens count as many as there are gaps.
    """
    gaps = c.output_tok_sum - c.completed
    by_request = [_floor(percentile, n, c.completed, REQUEST_CLOCKS, "requests") for percentile, n in FLOORS.items()]
    by_gap = [_floor(percentile, n, gaps, ("itl_ms",), "gaps between tokens") for percentile, n in FLOORS.items()]
    return (*by_request, *by_gap)
