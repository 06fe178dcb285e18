"""PD5xx: the load was what its label says."""

from pdkit.rules import ANY, Rule, below, c, check
from pdkit.units import MS_PER_S

_LEAST_S, _SMOKE_S = 60.0, 10.0
_LATENCIES_IN_A_RUN = 5.0


@check(
    "PD501",
    voids="label",
    says="{concurrency_mean:,.2f} of {concurrency:g} users were in flight on average ({observed:.0%})",
)
def the_concurrency_was_reached() -> Rule:
    """Mean concurrency is near its cap.

    Why: "16 users" names a load that 5 requests in flight are not.
    Next: more requests a slot; how long ramp and drain are; the client's CPU.
    Source: of 850 public results 38 % are below 0.8 and 9 % below one half, most with too few requests a slot.
    Exceptions: at a finite request rate the cap is only a guard: not applicable.
    """
    return Rule(
        applies=c.concurrency.is_finite() & c.burst & (c.completed > 0),
        observed=c.concurrency_mean / c.concurrency,
        refuse=below(0.5),
        suspect=below(0.8),
    )


@check(
    "PD502", voids=("label", "throughput"), says="{sent:,.0f} requests for {concurrency:g} slots ({observed:.1f} each)"
)
def every_slot_serves_several_requests() -> Rule:
    """Each slot serves several requests.

    Why: with one or two a slot, the run is all ramp and drain.
    Next: ten prompts a slot.
    Source: mean concurrency over cap is 0.70 at one request a slot, 0.91 at four, 0.96 from eight (public results);
    InferenceX asks for ten.
    Exceptions: one or two slots; a finite request rate, where the cap is only a guard.
    """
    closed_loop = ~c.request_rate_per_s.is_finite().fill_null(False)
    applies = c.completed.is_not_null() & c.concurrency.is_finite() & (c.concurrency > 2) & closed_loop
    return Rule(applies=applies, observed=c.sent / c.concurrency, refuse=below(1), suspect=below(4))


@check("PD508", voids=("throughput", "latency"), says="the run lasted {duration_s:,.2f} s")
def the_run_is_long_enough() -> tuple[Rule, ...]:
    """The run lasts a minute, and several latencies.

    Why: a short run measures caches, clocks and luck.
    Next: more prompts; treat it as a smoke test, never as a point of a trend.
    Source: MLPerf asks for 600 s, GuideLLM takes 30 s.
    Exceptions: none; a smoke test is one.
    """
    return (
        Rule(applies=c.duration_s > 0, observed=c.duration_s, suspect=below(_LEAST_S), note=None),
        Rule(
            applies=(c.duration_s > 0) & (c.e2e_ms_mean > 0),
            observed=c.duration_s / (c.e2e_ms_mean / MS_PER_S),
            suspect=below(_LATENCIES_IN_A_RUN),
            says="the run lasted {duration_s:,.2f} s, {observed:.1f} times its mean latency",
        ),
        Rule(
            applies=c.duration_s > 0,
            observed=c.duration_s,
            note=below(_SMOKE_S),
            says="a smoke test: the run lasted {duration_s:,.2f} s",
        ),
    )


@check("PD512", voids="label", says="all requests were sent at once: an offline burst, whose TTFT is waiting time")
def a_burst_is_called_a_burst() -> Rule:
    """An unlimited rate without a cap is an offline burst.

    Why: its TTFT is time in the queue, and its throughput a capacity, not a service.
    Next: say "offline burst" beside the number.
    Source: definition.
    Exceptions: none; it is a note.
    """
    return Rule(applies=c.completed > 0, observed=c.burst & c.concurrency.is_infinite(), note=ANY)
