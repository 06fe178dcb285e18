"""PD1xx: the claimed output exists."""

import polars as pl

from pdkit.rules import ANY, Rule, above, below, c, check, lower, outside, request_rule

_ENOUGH_REQUESTS = 20  # below it, equal lengths are no surprise
_SHORT_TOK = 8  # shorter answers differ by a token more or less
_SAME_LENGTH_TOK = 1.0  # mean lengths closer than this are the same work


@check(
    "PD101",
    voids="run",
    shows_output=True,
    says="{received_tok:,.0f} of {output_tok_sum:,.0f} claimed tokens came back as text ({observed:.1%})",
)
def claimed_tokens_came_back() -> tuple[Rule, ...]:
    """Claimed output tokens come back as text.

    Why: SGLang's client counts any finished HTTP 200 stream as a success with the tokens that it asked for; a router
    that answers 200 without text then "wins" every benchmark.
    Next: the prefill and decode logs for failed transfers; finish reasons for aborts; input lengths against the
    context length; whether a reasoning or tool-call parser keeps text from this client.
    Source: 1 of 850 public results is below one half, and it is a true fake; sgl-project/sglang#12389, #9585.
    Exceptions: no retokenized count (the Rust client told not to count, embeddings): not evaluated. Nothing claimed:
    PD407 looks at that. Where the servers' own count says that the tokens were made, a parser may have kept the text
    from the client: the run stands with a doubt, and its latencies go.
    """
    claims = c.output_tok_sum > 0
    made = "{received_tok:,.0f} of {output_tok_sum:,.0f} claimed tokens came back as text; the servers made them"
    return (
        Rule(applies=claims & ~c.server_made_it, observed=c.received_ratio, refuse=below(0.50)),
        Rule(
            applies=claims & c.server_made_it,
            observed=c.received_ratio,
            refuse=below(0.50),
            voids=("latency",),
            says=made,
        ),
    )


@check(
    "PD102",
    voids="throughput",
    says="{output_tok_sum:,.0f} tokens claimed, {received_tok:,.0f} counted in the text ({observed:.1%})",
)
def claimed_and_counted_tokens_agree() -> Rule:
    """Claimed and retokenized output tokens agree.

    Why: a throughput that rests on the claimed count is off by as much as the counts are.
    Next: whether the server reports usage; whether the tokenizer is the model's; special tokens in the text.
    Source: MLPerf TEST09 allows 10 %; 5 of 850 public results are outside.
    Exceptions: a standing level of 0.95 is usual for random prompts and stays inside the bounds.
    """
    return Rule(applies=c.output_tok_sum > 0, observed=c.received_ratio, suspect=outside(0.90, 1.10))


@check(
    "PD103",
    voids="run",
    shows_output=True,
    says="{bad:,} of {total:,} successful requests came back without any text",
)
def successful_requests_have_text() -> Rule:
    """A request that succeeded has text.

    Why: this is what a failed transfer looks like from the client: HTTP 200, no error, no text.
    Next: group the empty ones by time: an unbroken block at the end means that a peer died.
    Source: vllm-project/vllm#5895 counts such requests as failed; 1 % is the budget for failures that MLPerf-like
    harnesses allow.
    Exceptions: one token may be an end token or white space; failed requests are PD403's; where no output was asked
    for, and for embeddings: not applicable. An answer of no token is no exception: some clients list these so.
    """
    applies = c.ok & (c.output_tok != 1) & ~c.embedding & (c.output_tok_asked_each != 0).fill_null(True)
    return request_rule(applies=applies, bad=c.text_chars == 0, refuse=above(0.01), suspect=ANY)


@check(
    "PD104",
    voids="throughput",
    says="{bad_or_observed} made exactly as many tokens as were asked for, though the end token was not ignored",
)
def answers_end_where_they_end() -> tuple[Rule, ...]:
    """Where an answer may end early, not all answers are as long as was asked.

    Why: SGLang's client falls back to the length it asked for where the server reports no usage.
    Next: `stream_options: {"include_usage": true}`, or compare with the retokenized count.
    Source: the client's source (output_len is set to the request's before an answer comes); bound: judgement.
    Exceptions: end token ignored (SGLang's default): not applicable; under 20 requests: not applicable.
    """
    may_stop = ~c.ignore_eos & (c.completed >= _ENOUGH_REQUESTS)
    return (
        Rule(
            applies=may_stop & c.output_tok_asked_each.is_not_null(),
            observed=pl.when(c.output_tok_per_request > c.output_tok_asked_each * 0.99)
            .then(c.requests_same_length)
            .otherwise(c.requests_same_length * 0),
            suspect=above(0.99),
            says="{observed:.0%} of {completed:,.0f} answers are {output_tok_asked_each:,.0f} tokens long, "
            "though the end token was not ignored",
        ),
        Rule(
            applies=may_stop & (c.completed == c.sent),
            observed=c.output_tok_sum / c.output_tok_asked,
            suspect=above(0.9999),
            says="{output_tok_sum:,.0f} tokens claimed of {output_tok_asked:,.0f} asked, to the last one, "
            "though the end token was not ignored",
        ),
    )


@check("PD105", voids="throughput", says="{bad_or_observed} are off the length that was asked for")
def answers_have_the_length_asked_for() -> tuple[Rule, ...]:
    """With the end token ignored, answers are as long as was asked.

    Why: shorter answers are less work; two runs with one label then did different things.
    Next: the context limit; stop strings; aborts in the server's log.
    Source: MLPerf TEST09 (10 % of the mean); AIPerf (5 % or 50 tokens of a request).
    Exceptions: answers may end early, lengths drawn from a range, lengths under eight tokens (a prefill test may make
    two for one asked), embeddings: not applicable or not evaluated.
    """
    asked = c.output_tok_asked_each
    off = (c.output_tok - asked).abs() > pl.min_horizontal(asked * 0.05, 50.0)
    mean_asked = c.asked_tok / pl.coalesce("sent", "completed")
    return (
        request_rule(applies=c.ok & c.ignore_eos & ~c.embedding & (asked >= _SHORT_TOK), bad=off, suspect=above(0.01)),
        Rule(
            applies=c.ignore_eos & ~c.embedding & (mean_asked >= _SHORT_TOK) & (c.completed > 0),
            observed=(c.output_tok_per_request / mean_asked - 1).abs(),
            refuse=above(0.10),
            says="{output_tok_per_request:,.1f} tokens an answer, {observed:.0%} off what was asked for",
        ),
    )


@check("PD106", voids="run", says="{observed:.0%} of the answers of 16 characters or more are the same text")
def different_prompts_have_different_answers() -> Rule:
    """Different prompts have different answers.

    Why: a server with broken weights, or a cache of responses, answers everything alike, and fast.
    Next: read that text; ask the same prompt twice.
    Source: bound: judgement, so it may only doubt; MLPerf TEST04 repeats a prompt for the same reason.
    Exceptions: under 20 answers of 16 characters: not applicable. Prompts that are the same by design are doubted.
    """
    return Rule(applies=c.texts_long >= _ENOUGH_REQUESTS, observed=c.text_common_ratio, suspect=above(0.5))


@check("PD107", voids="run", says="{bad:,} of {total:,} answers that count as successful ended in an abort or an error")
def an_abort_is_no_success() -> Rule:
    """An answer that was aborted is no success.

    Why: a server can abort a stream after it has said HTTP 200; the client then counts what it asked for.
    Next: the abort's message; transfer failures and memory in the server's log.
    Source: SGLang's own stream metrics reject such finish reasons.
    Exceptions: this client keeps no finish reason: not evaluated. A test of cancellation aborts by design.
    """
    bad = c.finish_reason.str.to_lowercase().is_in(["abort", "error", "nan"])
    return request_rule(applies=c.ok, bad=bad, refuse=above(0.01), suspect=ANY)


@check("PD108", voids="throughput", says="{observed:.2f} characters of text a claimed token")
def text_is_as_long_as_its_tokens() -> Rule:
    """Text has a plausible length for its token count.

    Why: half a character a token, or twenty, is a count of something else.
    Next: the tokenizer; whether special tokens are in the count.
    Source: bound: judgement; 1.5 to 5 is usual, 1 to 2 for Chinese and Japanese.
    Exceptions: empty answers are PD103's and left out here.
    """
    return Rule(applies=c.requests_with_text > 0, observed=c.chars_per_tok, suspect=outside(0.5, 20))


@check("PD109", voids="throughput", says="{bad_or_observed} differ by more than 10 % between the two counts")
def server_and_client_count_alike() -> Rule:
    """The server's usage and the client's own count of a request agree.

    Why: one of the two is what the throughput rests on.
    Next: special tokens, reasoning tokens, the chat template.
    Source: AIPerf compares at 10 %.
    Exceptions: this client counts again in total only: not evaluated. Reasoning outside the text counts on one side.
    """
    off = (c.retokenized_tok / c.output_tok - 1).abs() > 0.10
    return request_rule(applies=c.ok & (c.output_tok >= _SHORT_TOK), bad=off, suspect=above(0.01))


@check(
    "PD110",
    voids="run",
    shows_output=True,
    says="{received_tok:,.0f} tokens came back of {asked_tok:,.0f} asked ({observed:.1%})",
)
def asked_tokens_came_back() -> tuple[Rule, ...]:
    """With the end token ignored, the tokens that were asked for come back.

    Why: where the server cuts answers short and says so, the client claims the shorter count, and PD101 sees nothing.
    Next: abort messages and the context length in the server's log; the decode pool's size against the lengths asked.
    Source: of real clients' outputs, caught 125 of 125 silent failures and 0 of 18 healthy runs; real text re-tokenizes
    a few percent off, hence 0.9.
    Exceptions: answers may end early: not applicable. Not known whether they may (a record alone): doubted, not
    refused. Where the servers' own count says that all that was asked for was made, only the latencies go, as in PD101.
    """
    ratio, must = c.received_tok / c.asked_tok, c.ignore_eos & (c.asked_tok > 0)
    made = "{received_tok:,.0f} tokens came back of {asked_tok:,.0f} asked; the servers made them"
    return (
        Rule(applies=must & ~c.server_made_asked, observed=ratio, refuse=below(0.50), suspect=below(0.90)),
        Rule(
            applies=must & c.server_made_asked,
            observed=ratio,
            refuse=below(0.50),
            suspect=below(0.90),
            voids=("latency",),
            says=made,
        ),
        Rule(
            applies=c.ignore_eos.is_null() & (c.asked_tok > 0) & (c.tool == "sglang"),
            observed=ratio,
            suspect=below(0.90),
        ),
    )


@check(
    "PD111",
    voids="throughput",
    says="{bad:,} of {total:,} answers have less than half of the chunks that their token count needs",
)
def answers_are_as_long_as_counted() -> Rule:
    """An answer has about as many gaps as its token count says.

    Why: over the OpenAI endpoints the client counts a cut answer whole; the gaps are the only sign a request leaves.
    Next: finish reasons and abort messages in the server's log.
    Source: real clients' outputs: a cut answer has 63 gaps for 256 tokens.
    Exceptions: several tokens a chunk (speculative decoding, a stream interval) where the text is all there: not
    applicable. The native endpoint reports the true length: PD110 sees those.
    """
    applies = c.ok & (c.output_tok >= 2) & (c.itl_count >= 1) & c.gaps_per_chunk & ~c.chunked & ~c.answered_whole
    return request_rule(applies=applies, bad=c.itl_count + 1 < 0.5 * c.output_tok, suspect=above(0.01))


@check(
    "PD112",
    voids="run",
    says="median E2E {e2e_ms_median:,.0f} ms, {observed:.0%} of the {lower__e2e_ms_median:,.0f} ms "
    "at {lower__concurrency:g} users",
)
def more_users_do_not_answer_faster() -> Rule:
    """The same work does not end five times sooner at a higher level.

    Why: empty answers come back at once: 25 ms where a healthy server took 1,303 ms.
    Next: the text that came back at this level; PD101 and PD103.
    Source: real clients' outputs, empty against healthy; bound: judgement, so it may only doubt.
    Exceptions: no lower level, or other lengths than its: not applicable.
    """
    same_output = (c.output_tok_per_request - lower.output_tok_per_request).abs() < _SAME_LENGTH_TOK
    return Rule(
        applies=lower.completed.is_not_null() & (c.completed > 0) & same_output,
        observed=c.e2e_ms_median / lower.e2e_ms_median,
        suspect=below(0.2),
    )
