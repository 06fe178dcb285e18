"""PD3xx: numbers that follow from each other agree. An identity that breaks is evidence; one that holds is none."""

import polars as pl

from pdkit.metrics import CLOCKS
from pdkit.rules import ANY, Rule, above, below, c, check, outside
from pdkit.units import MS_PER_S

_ORDER = ("median", "p90", "p95", "p99", "max")
CLOCK_READS_MS = 0.1  # two reads of one clock: 0.03 ms apart in a healthy run that was not streamed
_CLOCKS_APART_S = 2.0  # a script's clock and the client's
_SUMMED_UP = 0.01  # statistics of an array beside those of the summary; they come from the same numbers
_LISTED = {"ttft_ms_mean": "mean TTFT", "ttft_ms_median": "median TTFT", "itl_ms_mean": "mean ITL"}
_LONG_ENOUGH_S = 2.0  # peaks are counted in whole seconds: a shorter run has no second to itself


@check(
    "PD301",
    voids="throughput",
    says="{output_throughput_tok_per_s:,.2f} tok/s x {duration_s:,.2f} s is not {output_tok_sum:,.0f} tokens "
    "({observed:.2%} off)",
)
def tokens_are_rate_times_duration() -> Rule:
    """Token rate times duration is the token count.

    Why: the three are printed from one division; where they part, a number was edited or files were mixed.
    Next: the record beside the printed block; whether two runs were merged.
    Source: worst of 850 public results 0.05 %.
    Exceptions: none; what printing rounds away is allowed for.
    """
    return Rule(
        applies=c.output_tok_sum > 0,
        observed=(c.output_throughput_tok_per_s * c.duration_s / c.output_tok_sum - 1).abs(),
        refuse=above(0.01),
    )


@check(
    "PD302",
    voids="throughput",
    says="{request_throughput_per_s:,.2f} requests/s x {duration_s:,.2f} s is not {completed:,.0f} requests "
    "({observed:.2%} off)",
)
def requests_are_rate_times_duration() -> Rule:
    """Request rate times duration is the number of completed requests.

    Why: as PD301.
    Next: as PD301.
    Source: 0 of 829 public results once rounding is allowed for; without it 86 are false alarms.
    Exceptions: low rates are printed with two digits: the rounding is allowed for, up and down.
    """
    return Rule(
        applies=c.completed > 0,
        observed=(c.request_throughput_per_s * c.duration_s / c.completed - 1).abs(),
        refuse=above(0.01),
    )


@check(
    "PD303",
    voids="throughput",
    says="total {total_throughput_tok_per_s:,.2f} tok/s is not input {input_throughput_tok_per_s:,.2f} plus output "
    "{output_throughput_tok_per_s:,.2f} ({observed:.2%} off)",
)
def total_is_input_plus_output() -> Rule:
    """Total throughput is input plus output throughput.

    Why: as PD301.
    Next: as PD301.
    Source: worst of the public results 0.003 %.
    Exceptions: none; image tokens are part of the input.
    """
    parts = c.input_throughput_tok_per_s + c.output_throughput_tok_per_s
    return Rule(
        applies=c.total_throughput_tok_per_s > 0,
        observed=(parts / c.total_throughput_tok_per_s - 1).abs(),
        refuse=above(0.001),
    )


@check(
    "PD304",
    voids=("latency", "label"),
    says="mean concurrency {concurrency_mean:,.2f}, but completed x mean E2E / duration differs by {observed:.1%}",
)
def littles_law_holds() -> Rule:
    """Mean concurrency is completed requests times mean E2E over the duration.

    Why: the client computes it so; where it parts, latencies, count or duration are not of one run. A factor of 1000
    is a slip of units.
    Next: as PD301.
    Source: Little's law; worst of 850 public results 0.5 %.
    Exceptions: none for this client: its window holds all requests.
    """
    expected = c.completed * c.e2e_ms_mean / MS_PER_S / c.duration_s
    return Rule(applies=c.completed > 0, observed=(c.concurrency_mean / expected - 1).abs(), refuse=above(0.02))


@check(
    "PD305",
    voids="label",
    says="{concurrency_mean:,.2f} requests in flight on average, above the cap of {concurrency:g}",
)
def concurrency_stays_under_its_cap() -> Rule:
    """Mean concurrency is at most its cap.

    Why: the client holds a semaphore; more in flight means that the cap is not the one in force.
    Next: two clients at once; a heading that does not match the command.
    Source: 0 of 829 public results.
    Exceptions: the *peak* may pass the cap, since one-second buckets overlap (405 of 693 public results): not judged.
    """
    return Rule(
        applies=c.concurrency.is_finite() & (c.completed > 0),
        observed=c.concurrency_mean / c.concurrency,
        refuse=above(1.01),
    )


@check("PD306", voids="latency", says="a higher percentile is smaller than a lower one by {observed:,.2f} ms")
def percentiles_rise() -> Rule:
    """Percentiles do not fall as they rise.

    Why: they come from one sorted list; where they fall, numbers were edited or units mixed.
    Next: the record beside the printed block.
    Source: definition; 0 of 850 public results.
    Exceptions: percentiles that a version does not print are left out.
    """
    drops = [
        pl.col(f"{clock}_{low}") - pl.col(f"{clock}_{high}")
        for clock in CLOCKS for i, low in enumerate(_ORDER) for high in _ORDER[i + 1 :]
    ]  # fmt: skip
    return Rule(applies=c.completed > 0, observed=pl.max_horizontal(drops), refuse=above(0))


@check("PD307", voids="latency", says="the mean of a latency exceeds its maximum by {observed:,.2f} ms")
def means_lie_within_their_data() -> tuple[Rule, ...]:
    """A mean lies within its data, and ten different requests differ.

    Why: a mean above the maximum is arithmetic gone wrong; no spread at all over many requests is a made-up number.
    Next: the record beside the printed block; the per-request arrays.
    Source: definition.
    Exceptions: a mean above p99 can be true where a few values are huge: a note. Means of 0 are PD201's and PD203's.
    """
    above_max = [pl.col(f"{clock}_mean") - pl.col(f"{clock}_max") for clock in CLOCKS]
    above_p99 = [pl.col(f"{clock}_mean") - pl.col(f"{clock}_p99") for clock in CLOCKS]
    least_spread = [
        pl.when(pl.col(f"{clock}_mean") > 0).then(pl.col(f"{clock}_std")) for clock in ("e2e_ms", "ttft_ms")
    ]
    return (
        Rule(applies=c.completed > 0, observed=pl.max_horizontal(above_max), refuse=above(0)),
        Rule(
            applies=c.completed >= 10,
            observed=pl.min_horizontal(least_spread),
            suspect=below(1e-6),
            says="{completed:,.0f} requests, and a latency without any spread (standard deviation {observed:g} ms)",
        ),
        Rule(
            applies=c.completed > 0,
            observed=pl.max_horizontal(above_p99),
            note=above(0),
            says="the mean of a latency lies above its p99, by {observed:,.2f} ms",
        ),
    )


@check("PD308", voids="latency", says="mean E2E {e2e_ms_mean:,.2f} ms, before the mean TTFT of {ttft_ms_mean:,.2f} ms")
def the_end_follows_the_first_token() -> tuple[Rule, ...]:
    """An answer ends no sooner than it begins.

    Why: the two come from different clocks, or not from the same requests.
    Next: a run that was merged from several; empty answers among failed ones.
    Source: 0 of 829 public results. The tolerance of 0.1 ms covers two reads of one clock: 0.03 ms in a healthy run
    that was not streamed.
    Exceptions: as said, by a hair.
    """
    return (
        Rule(applies=c.completed > 0, observed=c.ttft_ms_mean - c.e2e_ms_mean, refuse=above(CLOCK_READS_MS)),
        Rule(
            applies=c.completed > 0,
            observed=c.ttft_ms_median - c.e2e_ms_median,
            refuse=above(CLOCK_READS_MS),
            says="median E2E {e2e_ms_median:,.2f} ms, before the median TTFT of {ttft_ms_median:,.2f} ms",
        ),
    )


@check("PD309", voids="latency", says="E2E less TTFT is {observed:.2f} times the time per token of the further tokens")
def first_token_and_gaps_make_the_whole() -> Rule:
    """TTFT, and a time per token for each further token, make up the end-to-end time.

    Why: where they do not, tokens were counted that did not come, or chunks were lost.
    Next: claimed against retokenized tokens; the spread of lengths.
    Source: (E2E - TTFT) / (TPOT x (tokens - 1)) of 829 public results: 1 % below 0.94, 1 % above 1.025, 6 outside.
    Exceptions: one token, or answers not streamed: not applicable. A wide spread of lengths parts them: a mean of
    ratios is not the ratio of means.
    """
    further = c.tpot_ms_mean * (c.output_tok_per_request - 1)
    applies = (c.output_tok_per_request > 1) & ~c.answered_whole & (c.tpot_ms_mean > 0)
    return Rule(applies=applies, observed=(c.e2e_ms_mean - c.ttft_ms_mean) / further, suspect=outside(0.8, 1.25))


@check(
    "PD310",
    voids="run",
    says="the answers' lengths add up to {requests_output_tok:,.0f} tokens, the total says {output_tok_sum:,.0f}",
)
def arrays_add_up_to_totals() -> tuple[Rule, ...]:
    """Per-request arrays are of one length and add up to the totals.

    Why: a record whose parts do not fit its whole is not the record of one run.
    Next: a file that was cut, edited or merged.
    Source: exact by construction. Input lengths are left out: since 0.5.21 the server's count replaces the client's.
    Exceptions: failed requests carry 0 and are not counted. Under speculative decoding the client may spread a chunk's
    gap over its tokens, so latencies are not compared there.
    """
    return (
        Rule(applies=c.requests_seen > 0, observed=(c.requests_output_tok - c.output_tok_sum).abs(), refuse=ANY),
        Rule(
            applies=c.requests_seen > 0,
            observed=(c.requests_ok - c.completed).abs(),
            refuse=ANY,
            says="{requests_ok:,.0f} requests have no error, the total says {completed:,.0f} completed",
        ),
        Rule(
            applies=c.detail_rows_max > 0,
            observed=c.detail_rows_max - c.detail_rows_min,
            refuse=ANY,
            says="one per-request array has {detail_rows_min:,.0f} entries, another {detail_rows_max:,.0f}",
        ),
        *(
            Rule(
                applies=(c.requests_seen > 0) & c.accept_length.is_null(),
                observed=(pl.col(f"requests_{fact}") / pl.col(fact) - 1).abs(),
                refuse=above(_SUMMED_UP),
                voids=("latency",),
                says=f"{name} of the requests is {{requests_{fact}:,.2f}} ms, the total says {{{fact}:,.2f}} ms",
            )
            for fact, name in _LISTED.items()
        ),
    )


@check(
    "PD311",
    voids="throughput",
    says="peak {peak_output_throughput_tok_per_s:,.2f} tok/s, below the mean of {output_throughput_tok_per_s:,.2f} "
    "({observed:.0%})",
)
def the_peak_is_above_the_mean() -> Rule:
    """The best second is no worse than the average one.

    Why: the peak counts what arrived, the mean what was claimed: a peak of 15 beside a mean of 1,089 is a summary's
    only sign that nothing came.
    Next: PD101 and PD110; the record with details.
    Source: definition; a true fake has 1.00 beside 1,766.83. It may only doubt: the peak counts chunks.
    Exceptions: chunk-counting backends (`sglang-oai*`, `vllm*`), speculative decoding, answers not streamed, runs under
    two seconds: not applicable.
    """
    applies = (
        ~c.gaps_per_chunk
        & c.accept_length.is_null()
        & ~c.answered_whole
        & (c.duration_s >= _LONG_ENOUGH_S)
        & (c.output_throughput_tok_per_s > 0)
    )
    return Rule(
        applies=applies, observed=c.peak_output_throughput_tok_per_s / c.output_throughput_tok_per_s, suspect=below(0.9)
    )


@check("PD312", voids="latency", says="a latency of {observed:,.2f} s in a run of {duration_s:,.2f} s")
def latency_fits_into_the_run() -> Rule:
    """No latency is longer than the run.

    Why: a request can't take longer than all of them together.
    Next: files of two runs in one; a slip of units.
    Source: definition; 0 of 850 public results.
    Exceptions: none.
    """
    longest = pl.max_horizontal(pl.col(f"e2e_ms_{s}") for s in ("mean", "median", "p90", "p95", "p99"))
    return Rule(
        applies=c.duration_s > 0,
        observed=longest / MS_PER_S / c.duration_s,
        refuse=above(1.0001),
        says="a latency of {observed:.2f} times the run's {duration_s:,.2f} s",
    )


@check("PD313", voids="throughput", says="the run says {duration_s:,.2f} s, by the clock it took {wall_s:,.0f} s")
def the_duration_fits_the_clock() -> Rule:
    """A run takes no longer than the time between its start and its end.

    Why: a duration that is longer than the wall clock's was edited, or the machine was suspended.
    Next: the times in sweep.toml; the machine's clock.
    Source: bound: judgement, so it may only doubt: 5 % and 2 s.
    Exceptions: the wall clock also holds warm-up and loading: being longer is no sign.
    """
    over = (c.duration_s - c.wall_s - _CLOCKS_APART_S) / c.wall_s
    return Rule(applies=c.wall_s > 0, observed=over, suspect=above(0.05))


@check("PD314", voids="run", says="the same numbers, to the last digit, are stated for {levels_stated:,.0f} levels")
def levels_have_numbers_of_their_own() -> tuple[Rule, ...]:
    """Two levels never have the same latencies to the last digit.

    Why: a row that was copied, or a result that came from a cache, is no measurement of the level that it names.
    Next: which of the files was made first.
    Source: definition; its probability is nil.
    Exceptions: one result listed twice under one level is PD405's.
    """
    return (
        Rule(applies=c.completed > 0, observed=c.levels_stated, refuse=above(1)),
        Rule(
            applies=c.completed > 0,
            observed=c.twins,
            refuse=ANY,
            says="mean E2E, TTFT and TPOT are those of another level, to the last digit",
        ),
    )


@check(
    "PD315",
    voids="run",
    says="numbers that the files of this run state differently: {disagreements:,.0f}, first {disagreement}",
)
def sources_of_a_run_agree() -> tuple[Rule, ...]:
    """What two files say of one run is the same.

    Why: the printed block and the record come from the same numbers; where they part, one of them was changed.
    Next: which of the two files was touched after the run.
    Source: exact by construction, but for the digits that printing rounds away.
    Exceptions: a heading of the sweep script that names another level than the client's arguments makes the label
    doubtful, not the run.
    """
    several = (c.sources > 1) | (c.disagreements > 0) | (c.label_disagreements > 0)
    return (
        Rule(applies=several, observed=c.disagreements, refuse=ANY),
        Rule(
            applies=several,
            observed=c.label_disagreements,
            suspect=ANY,
            voids=("label",),
            says="the run's load is stated in two ways: {disagreement}",
        ),
    )
