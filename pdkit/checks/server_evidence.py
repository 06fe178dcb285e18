"""PD6xx: what the servers' own logs say of a run, inside its window; not evaluated where no log was joined to it."""

import polars as pl

from pdkit.rules import ANY, Bound, Rule, above, below, c, check

_FEW = 0.01  # of the requests: an error budget as InferenceX has it
_NEVER_MIND = 2.0  # requests: a warm-up, a query behind the run
_FULL_RATIO = 0.85  # of the KV pool: the next request may not fit
_MOST = 0.9  # of the completions: what the servers answered that generate, or logs of some are not here
_ran = c.completed.is_not_null()
_known = pl.coalesce("sent", "completed")  # a record without details says nothing of requests that failed
_all_logs = ~(c.decode_served_requests < _MOST * c.completed).fill_null(False)


def _share(
    count: pl.Expr,
    *,
    says: str,
    suspect: Bound,
    refuse: Bound | None = None,
    note: Bound | None = None,
    unless: pl.Expr | None = None,
) -> tuple[Rule, Rule]:
    """A count as a share of the requests sent; where nobody says how many were sent, of those that completed."""
    ran = _ran if unless is None else _ran & ~unless
    sent, completed = ran & c.sent.is_not_null(), ran & (c.completed > 0) & c.sent.is_null()
    return (
        Rule(applies=sent, observed=count / c.sent, refuse=refuse, suspect=suspect, note=note),
        Rule(applies=completed, observed=count / c.completed, refuse=refuse, suspect=suspect, note=note, says=says),
    )


@check(
    "PD601",
    voids="run",
    says="the KV transfer of {failed_transfers:,.0f} requests failed, of {sent:,.0f} sent",
)
def transfers_succeed() -> tuple[Rule, ...]:
    """No KV transfer fails.

    Why: a request whose KV cache does not arrive ends without text, and SGLang's streamed answer is 200 all the same.
    Next: `pdkit report postmortem` orders what led to it; look at the session, the transfer queue and the decode pool.
    Source: lines of SGLang 0.4.6 to 0.5.23; sgl-project/sglang#23272; 1 %: an error budget.
    Exceptions: `Aborted by AbortReq` says that the client or the peer gave up: a symptom, not counted. A request is
    counted once, however many ranks and sides tell of it. Rejections of the transfer queue alone are a doubt: the
    engine may try again.
    """
    says = "the KV transfer of {failed_transfers:,.0f} requests failed; {completed:,.0f} completed"
    return (
        *_share(c.failed_transfers, says=says, refuse=above(_FEW), suspect=ANY),
        Rule(
            applies=_ran,
            observed=c.queue_full_rejections,
            suspect=ANY,
            says="the transfer queue was full: at least {queue_full_rejections:,.0f} rejections",
        ),
    )


@check(
    "PD602",
    voids="run",
    says="dead transfer sessions: {sessions_failed:,.0f}; requests whose KV transfer failed: {failed_transfers:,.0f}",
)
def sessions_live() -> tuple[Rule, ...]:
    """No transfer session is dead while the run lasts.

    Why: once a session is dead, every later transfer to that peer fails until it is probed or the server starts again;
    it counts against all runs after it.
    Next: start both servers again before the next run; find out what killed the session.
    Source: SGLang's mooncake connection blacklists a session at its first failure; probed again from 0.5.14 on.
    Exceptions: a session that was recovered, or whose server has started again; a session to a peer that was replaced:
    with no failed transfer it is a doubt.
    """
    return (
        Rule(applies=_ran & (c.failed_transfers > _FEW * _known), observed=c.sessions_failed, refuse=ANY),
        Rule(
            applies=_ran,
            observed=c.sessions_failed,
            suspect=ANY,
            says="dead transfer sessions when the run ended: {sessions_failed:,.0f}",
        ),
    )


@check("PD603", voids="run", says="{rejected_requests:,.0f} requests were turned away ({observed:.1%} of those sent)")
def nobody_is_turned_away() -> tuple[Rule, ...]:
    """No request is turned away because a queue is full.

    Why: those that are left find a server that others were kept from.
    Next: `--max-queued-requests`; a lower level.
    Source: SGLang answers 503, some routers 429.
    Exceptions: a test of back-pressure: waive it. Where every request completed all the same, somebody asked again for
    those that were turned away (a router does), or they were another client's: a doubt.
    """
    says = "{rejected_requests:,.0f} requests were turned away; {completed:,.0f} completed"
    again = "{rejected_requests:,.0f} requests were turned away, and all {sent:,.0f} that were sent completed"
    all_came = (c.completed >= c.sent).fill_null(False)
    return (
        Rule(applies=_ran & all_came, observed=c.rejected_requests, suspect=ANY, says=again),
        *_share(c.rejected_requests, says=says, refuse=above(_FEW), suspect=ANY, unless=all_came),
    )


@check("PD604", voids="latency", says="{retracted_requests:,.0f} requests were put back for want of memory")
def requests_keep_their_place() -> tuple[Rule, ...]:
    """Requests that decode are not put back.

    Why: a request that is put back decodes again what it had, and its gap is as long as that takes.
    Next: a larger pool; a higher `--schedule-conservativeness`.
    Source: `KV cache pool is full. Retract requests.` (SGLang); 1 %: judgement.
    Exceptions: none; it is a note, and the numbers are valid.
    """
    says = "{retracted_requests:,.0f} requests were put back for want of memory"
    return _share(c.retracted_requests, says=says, suspect=above(_FEW), note=ANY)


@check(
    "PD605",
    voids="label",
    says="requests waited for memory on the decode server in {observed:.0%} of its lines, "
    "up to {decode_waiting_max:,.0f} at once",
)
def decode_has_memory() -> Rule:
    """The decode server has memory for what is sent to it.

    Why: a request waits for KV memory before its transfer begins; more users then only wait longer.
    Next: a larger decode pool, a lower `--num-reserved-decode-tokens`, FP8 KV: the capacity arithmetic counts them.
    Source: SGLang reserves 512 tokens a request beside its prompt; sgl-project/sglang#6860.
    Exceptions: on a prefill server the same word counts requests that wait for their decode side: not counted.
    """
    return Rule(applies=_ran, observed=c.decode_waiting_ratio, suspect=above(0.5))


@check(
    "PD606",
    voids="label",
    says="{decode_running_median:,.0f} requests ran on the decode server (median) of {concurrency_mean:,.1f} in flight",
)
def the_batch_is_the_level() -> Rule:
    """The servers run about as many requests as the client has in flight, unless something holds them back.

    Why: "16 users" of which two decode is a queue, and its throughput that of two.
    Next: what they wait for: memory, transfer or a limit on the batch.
    Source: judgement; the admission of SGLang's decode server predicts it.
    Exceptions: short answers, whose time goes into prefill: only where requests wait or the pool is nearly full.
    """
    held = pl.any_horizontal(
        c.decode_waiting_max > 0, c.decode_queued_max > 0, c.decode_kv_used_ratio_max >= _FULL_RATIO
    )
    return Rule(
        applies=_ran & (c.concurrency_mean >= _NEVER_MIND) & held & _all_logs,
        observed=c.decode_running_median / c.concurrency_mean,
        suspect=below(0.5),
    )


@check("PD607", voids="run", says="a server crashed in the run ({crashes:,.0f} lines say so)")
def servers_stay_up() -> tuple[Rule, ...]:
    """No server crashes or starts again while the run lasts.

    Why: what ran when it fell is lost, and what follows meets a cold server.
    Next: the lines around it; memory; the watchdog.
    Source: definition.
    Exceptions: a restart before the run. Several workers of one server say within a minute that it is ready: once.
    """
    return (
        Rule(applies=_ran, observed=c.crashes, refuse=ANY),
        Rule(applies=_ran, observed=c.restarts, refuse=ANY, says="a server started again in the run"),
    )


@check("PD608", voids="label", says="{observed:,.0f} server logs have clocks that do not line up with the run's times")
def clocks_line_up() -> Rule:
    """The servers' clocks line up with the times that sweep.toml gives.

    Why: work that cannot be given to a run says nothing about it.
    Next: times with their zone in sweep.toml; NTP on every machine.
    Source: a router logs in UTC, SGLang in local time (sgl-project/sglang#10560).
    Exceptions: shifts by whole hours are tried, and said.
    """
    return Rule(applies=_ran, observed=c.unaligned_instances, note=ANY)


@check(
    "PD609",
    voids="throughput",
    says="the servers generated at most {server_output_tok_most:,.0f} of {output_tok_sum:,.0f} tokens ({observed:.0%})",
    shows_output=True,
)
def servers_generated_what_is_claimed() -> Rule:
    """The servers generated as many tokens as the client claims.

    Why: it is the one witness that never saw the client.
    Next: PD601; the answers' text.
    Source: decode lines give the mean speed since the line before, every 40 steps: what lies before the first and
    after the last is added, so that a failure is sure; counters of a metrics dump where they were scraped around it.
    Exceptions: embeddings; a run whose servers print no decode line and no counter, or whose logs end before it does:
    not evaluated; servers that answered fewer than 90 % of the requests: logs of others are not here.
    """
    return Rule(
        applies=(c.output_tok_sum > 0) & ~c.embedding & _all_logs,
        observed=c.server_output_tok_most / c.output_tok_sum,
        refuse=below(0.5),
        suspect=below(0.9),
    )


@check(
    "PD610",
    voids="run",
    says="the servers answered {served_requests:,.0f} requests, the client completed {completed:,.0f}",
)
def servers_answered_what_was_completed() -> Rule:
    """The servers answered as many requests as the client completed.

    Why: others on the servers are load that no label names; fewer answers than completions are none.
    Next: other clients, retries of a router; whose log this is.
    Source: InferenceX pairs them; 1 % and two requests: a warm-up and a query behind the run.
    Exceptions: health checks and readiness polls are left out. Answers in a window that was inferred: warm-ups belong
    to it.
    """
    surplus = (c.served_requests - c.completed).abs() - _NEVER_MIND
    return Rule(applies=_ran & (c.completed > 0), observed=surplus / c.completed, suspect=above(_FEW))


@check("PD611", voids="comparison", says="the decode server ran {observed:.0%} of its steps without a CUDA graph")
def decode_runs_as_a_graph() -> Rule:
    """Decode steps run as captured graphs.

    Why: without them each step pays for its launches, and two set-ups differ for a reason that nobody meant.
    Next: `--cuda-graph-max-bs` against the batch; `--disable-cuda-graph`.
    Source: `cuda graph: False` in decode lines.
    Exceptions: prefill lines; other devices' graphs count as graphs.
    """
    return Rule(applies=_ran, observed=c.cuda_graph_off_ratio, suspect=above(0.5))


@check("PD612", voids=("latency", "throughput"), says="{observed:.1%} of the prompt tokens came from the prefix cache")
def the_prefix_cache_is_cold() -> tuple[Rule, ...]:
    """Random prompts do not come from the prefix cache.

    Why: a cached prompt costs almost nothing; one seed used twice makes every prompt a cached one.
    Next: flush the cache before each run, or change the seed.
    Source: vllm-project/vllm#53920 (1 %), #52884 (86 % faster), #54227 (2.32 times, uneven across levels).
    Exceptions: workloads with shared prefixes by design: only random data sets are held to it.
    """
    random = c.dataset.is_in(["random", "random-ids"])
    logged = c.prefill_cached_tok / (c.prefill_cached_tok + c.prefill_new_tok)
    return (
        Rule(applies=_ran & random, observed=logged, refuse=above(0.1), suspect=above(0.01)),
        Rule(
            applies=_ran & random, observed=c.cached_tok_sum / c.input_tok_sum, refuse=above(0.1), suspect=above(0.01)
        ),
    )


@check("PD613", voids="comparison", says="power or heat held a GPU's clock down in {observed:.0%} of the run")
def clocks_are_free() -> Rule:
    """No GPU is slowed by power or heat for more than a moment.

    Why: a slowed card is another card.
    Next: power limit, cooling, neighbours in the rack.
    Source: DCGM's throttle reasons; 5 %: judgement.
    Exceptions: no metrics of the GPUs: not evaluated.
    """
    return Rule(applies=_ran, observed=c.throttled_ratio, suspect=above(0.05))


@check(
    "PD614",
    voids="run",
    says="{served_requests:,.0f} requests were answered, {completed:,.0f} of this client completed",
)
def the_server_is_its_own() -> Rule:
    """Nobody else loads the servers.

    Why: another client's requests are in the batch, and in none of this client's numbers.
    Next: whose requests they are: the access log has addresses.
    Source: judgement: 10 % more requests than were sent, and more than a warm-up explains.
    Exceptions: windows that were inferred hold the run's own warm-up; a router that tries again.
    """
    foreign = c.served_requests - _known - _NEVER_MIND
    return Rule(applies=_ran & (_known > 0), observed=foreign / _known, suspect=above(0.1))


@check(
    "PD615",
    voids="label",
    says="the decode pool holds {decode_pool_tok:,.0f} tokens; {concurrency:g} users need {needed_tok:,.0f}",
)
def the_pool_holds_the_level() -> Rule:
    """The decode pool holds all users of the level at once.

    Why: where it does not, the level is a queue.
    Next: another process on the GPU; `--mem-fraction-static`; the capacity arithmetic.
    Source: prompt and answer of each user, `max_total_num_tokens`.
    Exceptions: shared prefixes need less; an unlimited level: not applicable.
    """
    return Rule(applies=c.concurrency.is_finite(), observed=c.decode_pool_tok / c.needed_tok, note=below(1))
