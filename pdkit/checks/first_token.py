"""PD2xx: first-token and per-token times can be real."""

from dataclasses import replace

import polars as pl

from pdkit.metrics import STATISTICS
from pdkit.rules import ANY, Rule, above, below, c, check, outside, request_rule
from pdkit.units import MS_PER_S

NO_TIME_MS = 0.01  # one pass of any model takes longer; above the 0.005 ms that a printed 0.00 can hide
EARLY_MS = 1.0  # one HTTP round trip and one forward pass take longer


def _facts_of(*clocks: str) -> tuple[str, ...]:
    """All statistics of some clocks."""
    return tuple(f"{clock}_{statistic}" for clock in clocks for statistic in STATISTICS)


@check("PD201", voids="run", says="first token at 0 ms in {bad_or_observed} (mean TTFT {ttft_ms_mean:.2f} ms)")
def first_token_takes_time() -> tuple[Rule, ...]:
    """A first token takes time.

    Why: TTFT is the first text that is not empty; the client leaves 0 where none came. The zeros pull the mean down,
    so a run with empty answers looks faster.
    Next: the text of those requests (PD103); the prefill log for failed transfers.
    Source: 1 of 829 public results has a mean of 0, and it is a true fake. A printed 0.00 may hide 0.005 ms.
    Exceptions: failed requests, answers that were not streamed, embeddings, nothing completed: not applicable. Answers
    of one token may be an end token, which has no text: then only latency is void.
    """
    streamed = ~c.answered_whole
    several = streamed & (c.completed > 0) & (c.output_tok_per_request > 1)
    one = streamed & (c.completed > 0) & (c.output_tok_per_request <= 1)
    unknown_length = streamed & (c.completed > 0) & c.output_tok_per_request.is_null()
    whole = "mean TTFT {ttft_ms_mean:.2f} ms, median {ttft_ms_median:.2f} ms: half of the answers or more had no text"
    # one view each: the lower of the two would be unsure by the digits of both, and a printed 0.00 would pass
    by_statistic = [
        Rule(applies=several | unknown_length, observed=statistic, refuse=below(NO_TIME_MS), says=whole)
        for statistic in (c.ttft_ms_mean, c.ttft_ms_median)
    ]
    return (
        request_rule(
            applies=c.ok & (c.output_tok != 1) & streamed, bad=c.ttft_ms == 0, refuse=above(0.01), suspect=ANY
        ),
        request_rule(
            applies=c.ok & (c.output_tok == 1) & streamed,
            bad=c.ttft_ms == 0,
            refuse=above(0.01),
            suspect=ANY,
            voids=("latency",),
        ),
        *by_statistic,
        *(replace(rule, applies=one, voids=("latency",)) for rule in by_statistic),
    )


@check("PD202", voids="latency", says="first token sooner than 1 ms in {bad_or_observed}")
def first_token_is_not_instant() -> tuple[Rule, ...]:
    """A first token takes a round trip and a forward pass.

    Why: faster than that, something other than the model answered.
    Next: cached replies; a header or role chunk that the client took for a token.
    Source: bound: judgement (no public result has such a mean); PD201 has the zeros.
    Exceptions: none known on real models.
    """
    streamed = ~c.answered_whole
    summary = pl.min_horizontal("ttft_ms_mean", "ttft_ms_median")
    return (
        request_rule(applies=c.ok & (c.ttft_ms > 0) & streamed, bad=c.ttft_ms < EARLY_MS, suspect=above(0.01)),
        Rule(
            applies=streamed & (summary >= NO_TIME_MS),
            observed=summary,
            suspect=below(EARLY_MS),
            says="mean TTFT {ttft_ms_mean:.2f} ms, median {ttft_ms_median:.2f} ms",
        ),
    )


@check(
    "PD203",
    voids="latency",
    says="mean gap between tokens {itl_ms_mean:.2f} ms at {output_tok_per_request:,.0f} tokens a request",
)
def tokens_have_gaps() -> Rule:
    """Several tokens have gaps between them.

    Why: ITL 0 beside a TPOT above 0 is the signature of answers that were counted and never came.
    Next: PD101; whether the whole answer came in one chunk.
    Source: 1 of 829 public results, a true fake.
    Exceptions: answers not streamed, or of one token: not applicable.
    """
    return Rule(
        applies=(c.output_tok_per_request > 1) & ~c.answered_whole, observed=c.itl_ms_mean, refuse=below(NO_TIME_MS)
    )


@check("PD204", voids="tail", says="{observed:.0%} of the gaps that the tokens need: several tokens arrived at once")
def each_token_has_its_gap() -> tuple[Rule, ...]:
    """An answer has a gap for each of its tokens.

    Why: where several tokens arrive at once, a gap is one between chunks, and ITL is not a token's latency; where the
    whole answer does, there is no time per token, and without streaming no first token either.
    Next: the stream interval; speculative decoding; report it as chunk latency. `--disable-stream` in the arguments.
    Source: SGLang's native client notes one gap a token.
    Exceptions: other endpoints note a gap a chunk by design; it is a note all the same.
    """
    return (
        Rule(applies=(c.requests_ok > 0) & ~c.answered_whole, observed=c.gaps_per_tok, note=below(0.5)),
        Rule(
            applies=c.answered_whole,
            observed=c.answered_whole,
            note=ANY,
            takes=(*_facts_of("tpot_ms", "itl_ms"), "interactivity_tok_per_s"),
            says="the answers came whole: there is no time per token to measure",
        ),
        Rule(
            applies=c.answered_whole
            & (c.completed > 0)
            & (~c.streaming | (c.output_tok_per_request > 1) | c.embedding),
            observed=c.answered_whole,
            note=ANY,
            takes=_facts_of("ttft_ms"),
            says="the answers came whole: no first token was seen",
        ),
    )


@check(
    "PD205",
    voids="latency",
    says="mean TPOT {tpot_ms_mean:,.2f} ms, mean ITL {itl_ms_mean:,.2f} ms (ratio {observed:.2f})",
)
def time_per_token_and_gaps_agree() -> Rule:
    """Time per output token and the gaps between tokens tell the same speed.

    Why: TPOT divides by the claimed tokens, ITL by those that came: where they part, the count is wrong.
    Next: claimed against retokenized tokens (PD102); the spread of lengths.
    Source: TPOT / ITL of 828 public results: 1 % below 0.986, 1 % above 1.076, 6 outside these bounds.
    Exceptions: several tokens a chunk (speculative decoding, a stream interval), answers not streamed, versions that
    print no TPOT (0.4.3 to 0.5.5): not applicable or not evaluated. Very mixed lengths may part the two: a mean of
    ratios is not the ratio of means.
    """
    applies = (c.output_tok_per_request > 1) & ~c.answered_whole & ~c.chunked & (c.itl_ms_mean > 0)
    return Rule(applies=applies, observed=c.tpot_ms_mean / c.itl_ms_mean, suspect=outside(0.90, 1.10))


@check("PD206", voids="latency", says="time per output token is 0 in {bad_or_observed}")
def several_tokens_take_time() -> tuple[Rule, ...]:
    """A request of two tokens or more has a time per token above zero.

    Why: tokens that take no time were not generated one after the other, or not at all.
    Next: whether answers came in a single chunk; PD103.
    Source: definition of TPOT.
    Exceptions: one token has no time per token: 0 is legitimate there, as where answers are not streamed.
    """
    return (
        request_rule(
            applies=c.ok & (c.output_tok >= 2) & c.tpot_ms.is_not_null() & ~c.answered_whole,
            bad=c.tpot_ms == 0,
            refuse=above(0.999),
            suspect=ANY,
        ),
        Rule(
            applies=(c.output_tok_per_request >= 2) & ~c.answered_whole,
            observed=c.tpot_ms_mean,
            refuse=below(NO_TIME_MS),
            says="mean TPOT {tpot_ms_mean:.2f} ms at {output_tok_per_request:,.0f} tokens a request",
        ),
    )


@check("PD207", voids="latency", says="in {bad_or_observed} the first token came with the last")
def the_first_token_comes_first() -> Rule:
    """The first token comes well before the last.

    Why: a proxy that collects the answer before it passes it on makes TTFT an end-to-end time.
    Next: the same test against the engine's own port.
    Source: bound: judgement, so it may only doubt.
    Exceptions: answers under eight tokens, or not streamed: not applicable.
    """
    applies = c.ok & (c.output_tok >= 8) & ~c.answered_whole
    return request_rule(applies=applies, bad=c.ttft_ms >= 0.98 * c.e2e_ms, suspect=above(0.5))


@check("PD208", voids="latency", says="mean concurrency is {observed:,.4g} times what completed, E2E and duration give")
def units_are_not_mixed() -> Rule:
    """Latencies are in the unit that they are labelled with.

    Why: seconds printed as milliseconds are off by a thousand, and look fast.
    Next: the tool's version; a converter in between.
    Source: InferenceX#2405 prints seconds under "(ms)". The factor is a thousand within 5 %.
    Exceptions: none; other factors are PD304's.
    """
    factor = c.concurrency_mean / (c.completed * c.e2e_ms_mean / MS_PER_S / c.duration_s)
    slip = ((factor / MS_PER_S - 1).abs() < 0.05) | ((factor * MS_PER_S - 1).abs() < 0.05)
    # the factor where it is a slip of units, 0 where it is none
    return Rule(applies=c.completed > 0, observed=factor * slip.cast(pl.Float64), refuse=ANY)


@check("PD209", voids="run", says="{observed:,.0f} numbers that can't be: NaN, infinite or below zero")
def numbers_are_possible() -> tuple[Rule, ...]:
    """Times, counts and rates are finite and not below zero.

    Why: a mean over nothing is NaN, a clock that stepped back gives a negative time: the number beside it is no safer.
    Next: whether anything completed (PD407); the clock of the client's machine.
    Source: definition.
    Exceptions: infinity as request rate or cap says "no limit". A first token after the end by a hair is PD308's.
    """
    said = "{observed:,.0f} %s numbers that can't be: NaN, infinite or below zero"
    stated = c.completed.is_not_null()
    return (
        Rule(applies=stated, observed=c.impossible_run, refuse=ANY, says=said % "count"),
        Rule(
            applies=stated,
            observed=c.impossible_throughput,
            refuse=ANY,
            voids=("throughput",),
            says=said % "throughput",
        ),
        Rule(applies=stated, observed=c.impossible_latency, refuse=ANY, voids=("latency",), says=said % "latency"),
        Rule(applies=stated, observed=c.impossible_label, refuse=ANY, voids=("label",), says=said % "load"),
        Rule(
            applies=c.requests_seen > 0,
            observed=c.requests_nonfinite,
            refuse=ANY,
            voids=("latency",),
            says="{observed:,.0f} times in the per-request arrays that can't be: NaN, infinite or below zero",
        ),
    )


@check("PD210", voids="tail", says="the longest gap is {longest_stall_ms:,.0f} ms, {observed:.0f} times the p99")
def streams_do_not_stall() -> tuple[Rule, ...]:
    """No stream stands still for long.

    Why: a stall of seconds is what a user remembers, and no percentile shows it.
    Next: retractions, long prefills and garbage collection in the server's log at that time.
    Source: bound: judgement, so it is a note.
    Exceptions: prefill without chunking stalls by design.
    """
    return (
        Rule(applies=c.itl_ms_p99 > 0, observed=c.longest_stall_ms / c.itl_ms_p99, note=above(20)),
        Rule(
            applies=c.completed > 0,
            observed=c.longest_stall_ms,
            note=above(5_000),
            says="the longest gap between two tokens is {longest_stall_ms:,.0f} ms",
        ),
    )
