"""PD9xx: there is enough data to say it."""

import polars as pl

from pdkit.rules import ANY, Rule, above, base, below, c, check, percentile_facts
from pdkit.stats import LEAST_REPEATS

# Least n of which a one-sided binomial bound with confidence 0.99 may skip the largest value: MLCommons endpoints;
# stats.least_for_bound gives the same.
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


PAIRED = base.refused.is_not_null()
_NOISY = 0.05
_FAMILY_ALPHA = 0.05
_LINE = 1 + c.call_delta
_BEYOND = (c.call_low > _LINE) | (c.call_high < 1 / _LINE)
_WITHIN = (c.call_low >= 1 / _LINE) & (c.call_high <= _LINE)


@check(
    "PD902", voids="comparison", says="{level_repeats:,.0f} of the candidate measured at this level: too few to call"
)
def there_are_enough_repeats() -> tuple[Rule, ...]:
    """Each side has three or more measured runs of one set-up at the level.

    Why: a server is a little faster or slower each time, and all requests of a run with it. Where runs vary by 2 %, of
    two equal sides one is ahead by 3 % in 29 of 100 pairs; a test over requests calls 35 to 78 of 100 different.
    Next: run both sides in turn, A B A B, with one seed, five times each.
    Source: simulation (`python benchmarks/run.py statistics`); of two runs a side, Welch's interval is of no use.
    Exceptions: none for the call. It takes the call alone: what one run a side says is shown, within these runs only. A
    side without a measured run is PD709's. Another seed is no other set-up.
    """
    theirs = "{base__level_repeats:,.0f} of the baseline measured at this level: too few to call"
    unlike = "runs of the {} are no repeats of each other, they differ in {}"
    measured = (c.level_repeats > 0) & (base.level_repeats > 0)
    return (
        Rule(applies=PAIRED & measured, observed=c.level_repeats, refuse=below(LEAST_REPEATS)),
        Rule(
            applies=PAIRED & measured,
            observed=base.level_repeats,
            refuse=below(LEAST_REPEATS),
            says=theirs,
        ),
        Rule(
            applies=PAIRED,
            observed=c.repeats_unlike != "",
            refuse=ANY,
            says=unlike.format("candidate", "{repeats_unlike}"),
        ),
        Rule(
            applies=PAIRED,
            observed=base.repeats_unlike != "",
            refuse=ANY,
            says=unlike.format("baseline", "{base__repeats_unlike}"),
        ),
    )


@check(
    "PD903",
    voids="comparison",
    says="the 95 % interval of the ratio, {call_low:.3f} to {call_high:.3f}, crosses the line at {call_delta:.1%}",
)
def the_interval_is_clear_of_the_line() -> Rule:
    """The interval of the ratio lies beyond the difference that matters, or within it.

    Why: where it crosses that line, the runs fit both a difference and none.
    Next: as many repeats as the comparison names; a level with less noise.
    Source: Kalibera and Jones, who give the ratio with its interval; the line is 3 %, or twice the CV of the repeats.
    Exceptions: fewer than three runs a side have no interval: not evaluated, and PD902 says so.
    """
    return Rule(applies=PAIRED, observed=~(_BEYOND | _WITHIN), note=ANY)


@check("PD904", voids="comparison", says="runs of the candidate vary by {repeats_cv:.1%} of their mean")
def repeats_agree() -> tuple[Rule, ...]:
    """Repeats of one side lie within 5 % of each other (CV).

    Why: what varies that much shows large differences only, and something moves it: a level near the knee of the curve
    varies because small delays fill its queue.
    Next: a lower level; one seed; what else used the machines.
    Source: AIPerf takes a CV of 5 % as steady.
    Exceptions: one run a side has no spread, and one metric is declared: not evaluated, or not for the others.
    """
    theirs = "runs of the baseline vary by {base__repeats_cv:.1%} of their mean"
    return (
        Rule(applies=PAIRED, observed=c.repeats_cv, suspect=above(_NOISY)),
        Rule(applies=PAIRED, observed=base.repeats_cv, suspect=above(_NOISY), says=theirs),
    )


@check("PD905", voids="comparison", says="TTFT of its requests has {ttft_modes:,.0f} modes: a mean lies between them")
def requests_are_of_one_kind() -> Rule:
    """The TTFT of a run's requests has one mode.

    Why: of two kinds of requests a mean tells neither; a change of their shares looks like a change of speed.
    Next: split the requests: a warm and a cold cache, two replicas, a batch size that switches.
    Source: Perfherder's modes: peaks of a density that hold a tenth of the values each.
    Exceptions: runs that are not compared: not applicable; fewer than 200 requests with a TTFT: not evaluated.
    """
    return Rule(applies=c.refused.is_not_null(), observed=c.ttft_modes, note=above(1))


@check(
    "PD906",
    voids="comparison",
    says="p {call_p:.3f} among {calls_tested:,.0f} levels (Holm): of so many, one differs by chance",
)
def the_call_was_not_picked_from_many() -> Rule:
    """A difference at one of several levels is rarer than chance makes one among them all.

    Why: of twenty equal levels one differs at p 0.05; the one that is quoted was picked.
    Next: declare one level and one metric beforehand; more repeats.
    Source: Holm's correction, over the levels of one comparison, for the declared metric.
    Exceptions: one level; no difference was found there: not applicable.
    """
    return Rule(applies=PAIRED & (c.calls_tested > 1) & _BEYOND, observed=c.call_p, note=above(_FAMILY_ALPHA))
