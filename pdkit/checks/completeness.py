"""PD4xx: the run came to its end, and all that was sent is accounted for."""

import polars as pl

from pdkit.rules import ANY, FALSE, Rule, above, below, c, check, request_rule

_NO_TIME_S = 0.01  # no run is that short; above the 0.005 s that a printed 0.00 can hide
_REPEAT_SPREAD = 0.10  # repeats of one level differ by 0.1 to 6.5 % (reference: simulated and public reruns)


@check("PD401", voids="run", shows_completeness=True, says="no whole result: {ending}")
def the_result_is_whole() -> Rule:
    """The client printed its whole result.

    Why: a log without a result block, or with a part of one, is a run that did not end: what it would have said is
    not known, and nothing is inferred for it.
    Next: the last lines of the log; the exit code; memory and disk of the client's machine.
    Source: definition. Mandatory: completed requests and duration, and the closing rule of a printed block.
    Exceptions: a filter that took the frame and left numbers: not evaluated, so the run is unverified.
    """
    return Rule(applies=~c.planned_only, observed=c.complete, refuse=FALSE)


@check("PD402", voids="run", says="the client crashed after it printed its result: {ending}")
def the_client_did_not_crash() -> tuple[Rule, ...]:
    """The client ended without a crash, and the sweep came to its end.

    Why: what was printed before a crash may be right; nobody has looked.
    Next: the traceback; a crash without a result block is PD401's.
    Source: definition.
    Exceptions: a crash of another program in the same log. Only the end marker being absent is a note: it voids
    nothing.
    """
    return (
        Rule(
            applies=c.completed.is_not_null() & c.crashed_after.is_not_null(), observed=~c.crashed_after, suspect=FALSE
        ),
        Rule(
            applies=c.end_marker_planned.is_not_null(),
            observed=(c.end_marker == c.end_marker_planned).fill_null(False),
            note=FALSE,
            says="the end marker {end_marker_planned} stands in no log of this sweep: it may have stopped early",
        ),
    )


@check("PD403", voids="run", shows_completeness=False, says="{bad_or_observed} failed")
def few_requests_failed() -> tuple[Rule, ...]:
    """What was sent came back.

    Why: statistics are over the survivors, and the survivors of an overloaded server are the lucky ones.
    Next: the errors by kind; goodput over all that were sent.
    Source: MLPerf allows none; 5 % is half of what the laxest public harness allows.
    Exceptions: how many were sent is unknown: not evaluated, which is a doubt.
    """
    return (
        request_rule(applies=c.ok.is_not_null(), bad=~c.ok, refuse=above(0.05), suspect=above(0.01)),
        Rule(
            applies=c.completed.is_not_null() & ((c.sent > 0) | c.sent.is_null()),
            observed=1 - c.completed / c.sent,
            refuse=above(0.05),
            suspect=above(0.01),
            says="{completed:,.0f} of {sent:,.0f} requests completed; {observed:.1%} were lost",
        ),
    )


@check("PD404", voids="run", says="planned, but no file has this level")
def planned_levels_are_there() -> Rule:
    """Every planned level left a result.

    Why: the level that is missing is often the one at which the server died.
    Next: the server's log at that time; whether the sweep went on.
    Source: definition; InferenceX forbids placeholders.
    Exceptions: no plan: not applicable, since nothing can be missing from it.
    """
    return Rule(applies=c.planned_only, observed=~c.planned_only, refuse=FALSE)


@check("PD405", voids="label", says="the same result is listed {copies:,.0f} times; it is shown once")
def a_level_is_there_once() -> tuple[Rule, ...]:
    """A level is there once, and a result is listed once.

    Why: `--output-file` appends, so a sweep that was run again stands beside its first try; neither is the average.
    Next: which of the runs was meant; `repeats` in sweep.toml if both were.
    Source: the client's source; a spread of 10 % is above what repeats of one level show.
    Exceptions: declared repeats: not applicable.
    """
    undeclared = c.repeats.is_null() | (c.repeats < 2)
    shared = undeclared & (c.level_runs > 0)
    many = "{level_runs:,.0f} runs at this level, up to {level_spread:.0%} apart in throughput: neither is averaged"
    return (
        Rule(applies=c.completed.is_not_null(), observed=c.copies, note=above(1)),
        Rule(applies=shared & (c.level_spread > 0), observed=c.level_spread, suspect=above(_REPEAT_SPREAD), says=many),
        Rule(
            applies=shared,
            observed=c.level_runs,
            note=above(1),
            says="{level_runs:,.0f} runs at this level; neither is averaged",
        ),
    )


@check("PD406", voids="run", says="{completed:,.0f} completed and {failed:,.0f} failed do not make {sent:,.0f} sent")
def every_request_is_accounted_for() -> Rule:
    """Completed and failed requests make up those that were sent.

    Why: a request that is neither was lost by the client, and so was its latency.
    Next: the client's own log for cancelled tasks.
    Source: definition.
    Exceptions: failures not listed (no details): not evaluated; PD403 compares what was sent with what completed.
    """
    return Rule(
        applies=c.completed.is_not_null() & (c.failed >= 0),
        observed=(c.completed + c.failed - c.sent).abs(),
        refuse=ANY,
    )


@check("PD407", voids="run", says="nothing completed ({completed:,.0f} requests in {duration_s:,.2f} s)")
def something_happened() -> tuple[Rule, ...]:
    """Requests completed, time passed, and answers held tokens.

    Why: a client prints a table of zeros for a run in which nothing happened, and ends with exit code 0.
    Next: the address; the first error.
    Source: definition.
    Exceptions: embeddings have no output tokens: not applicable.
    """
    return (
        Rule(applies=c.completed.is_not_null(), observed=c.completed, refuse=FALSE),
        Rule(applies=c.duration_s.is_not_null(), observed=c.duration_s, refuse=below(_NO_TIME_S)),
        Rule(
            applies=(c.completed > 0) & ~c.embedding & c.output_tok_sum.is_not_null(),
            observed=c.output_tok_sum,
            refuse=FALSE,
            says="{completed:,.0f} requests completed without one output token",
        ),
    )


@check("PD408", voids="latency", says="{observed:.1%} of the prompts are repeated")
def prompts_differ() -> Rule:
    """A random data set does not repeat its prompts.

    Why: a repeated prompt is found in the prefix cache, and its first token comes at once.
    Next: one seed for each worker; the cached tokens in the server's log.
    Source: vllm-project/vllm#10753; inference-perf#340 (92.9 % hits from a seed that workers shared).
    Exceptions: this client keeps no prompts: not evaluated. Shared prefixes that were declared.
    """
    return Rule(applies=c.requests_seen > 0, observed=c.prompts_repeated_ratio, suspect=above(0.01))


@check(
    "PD409", voids=("throughput", "latency"), says="for {observed:,.0f} s another run of this experiment was under way"
)
def one_load_at_a_time() -> Rule:
    """No other run loads the servers at the same time.

    Why: two loads share one server, and neither measures it.
    Next: the scripts that ran then; a deliberate load from several clients is one run, to be merged.
    Source: definition; one second for the clocks.
    Exceptions: times are not known: not evaluated.
    """
    return Rule(applies=c.completed.is_not_null(), observed=c.overlap_s, refuse=above(1))


@check("PD411", voids="comparison", says="{observed:,.0f} of four are not stated: model, engine version, GPU, level")
def provenance_is_stated() -> Rule:
    """Model, engine version, GPU and level are stated.

    Why: a number without them can't be compared with any other.
    Next: `sweep.toml` says what the logs leave out.
    Source: MLPerf's disclosure; SPEC.
    Exceptions: none. It is a note: a run is no less measured for it, a comparison is worth less.
    """
    stated = [c.model, c.server_version, c.gpu, pl.coalesce("concurrency", "request_rate_per_s").cast(pl.String)]
    missing = pl.sum_horizontal([fact.is_null().cast(pl.Float64) for fact in stated])
    return Rule(applies=c.completed.is_not_null(), observed=missing, note=ANY)
