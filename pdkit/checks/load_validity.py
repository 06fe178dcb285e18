"""PD5xx: the load was what its label says."""

from pdkit.rules import ANY, Rule, above, below, c, check
from pdkit.units import MS_PER_S

_LEAST_S, _SMOKE_S = 60.0, 10.0
_LATENCIES_IN_A_RUN = 5.0
_GROWTH_S = 30.0  # a shorter run can't tell a growing queue from a full one
_FIRST_AND_REST = 40  # requests: ten first ones, and enough to hold against them


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


@check(
    "PD503",
    voids="label",
    says="{send_rate_per_s:,.2f} requests/s were sent of {request_rate_per_s:,.2f} asked ({observed:.0%})",
)
def the_rate_was_offered() -> Rule:
    """Requests were sent at the rate that was asked for.

    Why: a client that can't keep its schedule measures itself.
    Next: the client's CPU; more client processes.
    Source: vllm-project/vllm#21104 sent 183.5 of 200.
    Exceptions: this client keeps no sending times: not evaluated. Completions below the rate are overload, not this.
    """
    offered = c.send_rate_per_s / c.request_rate_per_s
    return Rule(applies=c.request_rate_per_s.is_finite(), observed=offered, refuse=below(0.8), suspect=below(0.95))


@check(
    "PD504",
    voids="latency",
    says="in the middle of the run {observed:.0%} of what arrived was answered: the queue grew",
)
def the_queue_does_not_grow() -> Rule:
    """In the middle of the run, as many requests end as arrive.

    Why: where they do not, latency measures how long the run was; the throughput is then the capacity.
    Next: a lower rate; name the throughput "capacity".
    Source: GuideLLM's detector of over-saturation.
    Exceptions: runs under 30 s, all requests at once, sending times unknown: not applicable or not evaluated.
    """
    applies = c.request_rate_per_s.is_finite() & (c.duration_s >= _GROWTH_S)
    return Rule(applies=applies, observed=c.middle_flow_ratio, refuse=below(0.95))


@check("PD505", voids="throughput", says="{observed:.0%} of the run was at load")
def most_of_the_run_is_at_load() -> Rule:
    """Most of the run has at least 0.8 of its peak in flight.

    Why: ramp and drain have a lower load than the label says.
    Next: more requests a slot; the steady part of the run.
    Source: SGLang's own steady-state ratio is 0.8.
    Exceptions: one user; sending times unknown: not evaluated.
    """
    applies = c.completed.is_not_null() & ~(c.concurrency <= 1).fill_null(False)
    return Rule(applies=applies, observed=c.at_load_ratio, refuse=below(0.2), suspect=below(0.5))


@check("PD506", voids=("latency", "throughput"), says="median TPOT of the run's thirds differs by {observed:.0%}")
def speed_does_not_drift() -> Rule:
    """The thirds of a run have the same speed.

    Why: a mean over a drift is the speed of no moment.
    Next: a cache that fills, heat, a leak; a longer run.
    Source: perf_analyzer asks for 10 % over three windows.
    Exceptions: growing contexts by design; sending times unknown: not evaluated.
    """
    return Rule(applies=c.completed.is_not_null(), observed=c.tpot_drift_ratio, suspect=above(0.10))


@check("PD507", voids="throughput", says="{observed:.0%} of the run came after the last request was sent")
def the_drain_is_short() -> Rule:
    """The drain is no more than half of the run.

    Why: in the drain the load falls to nothing, and the throughput with it.
    Next: more requests; one request that is much longer than the others.
    Source: 31 % of 850 public results drain for more than half.
    Exceptions: all at once is PD512's: not applicable. Sending times unknown: not evaluated.
    """
    scheduled = ~(c.burst & c.concurrency.is_infinite()).fill_null(False)
    return Rule(applies=scheduled & (c.duration_s > 0), observed=1 - c.sending_s / c.duration_s, suspect=above(0.5))


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


@check(
    "PD509",
    voids="latency",
    says="{concurrency_mean:,.2f} in flight at a cap of {concurrency:g}: the client made requests wait",
)
def the_cap_leaves_the_rate_alone() -> Rule:
    """At a finite rate, the cap is not what limits the load.

    Why: requests that wait for the cap wait in the client, and that wait is in no latency.
    Next: no cap; or report from the schedule.
    Source: vllm-project/vllm#54101, guidellm#1048, wrk2's coordinated omission.
    Exceptions: all at once has no schedule: not applicable.
    """
    applies = c.request_rate_per_s.is_finite() & c.concurrency.is_finite() & (c.completed > 0)
    return Rule(applies=applies, observed=c.concurrency_mean / c.concurrency, refuse=above(0.95))


@check("PD510", voids="tail", says="median TTFT of the first requests is {observed:.1f} times that of the rest")
def the_start_is_warm() -> Rule:
    """The first requests are as fast as the rest.

    Why: graphs that are captured and kernels that are compiled in the first requests are no service.
    Next: a warm-up; leave the first requests out.
    Source: graph capture took about 42 s on one machine (NVIDIA/aicr#1196); bound: judgement.
    Exceptions: in a closed loop or a burst the first ones arrive together and wait for each other: not applicable.
    """
    applies = c.request_rate_per_s.is_finite() & (c.requests_seen >= _FIRST_AND_REST)
    return Rule(applies=applies, observed=c.ttft_first_ms / c.ttft_rest_ms, suspect=above(3))


@check("PD511", voids="latency", says="the client used {observed:.0%} of one core")
def the_client_keeps_up() -> Rule:
    """The client has time to measure.

    Why: a client that is busy reads a token late, and calls the server slow.
    Next: more client processes; a client in a faster language.
    Source: GuideLLM, inference-perf#86 and #188.
    Exceptions: this client says nothing of its own load: not evaluated.
    """
    return Rule(applies=c.completed.is_not_null(), observed=c.client_cpu_ratio, suspect=above(0.9))


@check("PD512", voids="label", says="all requests were sent at once: an offline burst, whose TTFT is waiting time")
def a_burst_is_called_a_burst() -> Rule:
    """An unlimited rate without a cap is an offline burst.

    Why: its TTFT is time in the queue, and its throughput a capacity, not a service.
    Next: say "offline burst" beside the number.
    Source: definition.
    Exceptions: none; it is a note.
    """
    return Rule(applies=c.completed > 0, observed=c.burst & c.concurrency.is_infinite(), note=ANY)
