"""PD8xx: what GPU and model allow. Needs both to be known; a bound that refuses takes the most generous of each."""

import polars as pl

from pdkit.rules import Rule, above, below, c, check, request_rule
from pdkit.units import MS_PER_S

_DRAFTS = 8.0  # tokens a step and request: no draft that is in use gets more accepted on average
_STEPS = 32.0  # tokens of an answer: in shorter ones the first chunk is too large a part
_ran = c.completed > 0
_streamed = _ran & ~c.answered_whole & ~c.embedding
_split = c.topology.str.contains(r"^\d+p\d+d$")
_computed = c.input_tok - pl.when(c.reused_tok == 0).then(0)  # of a prompt, where no cache had a part of any
_prompt_flop = c.prefill_flop_per_tok * _computed + c.attention_flop_per_pair * _computed * (_computed + 1) / 2
_prompt_ms = MS_PER_S * _prompt_flop / (c.gpu_flops_per_s * c.prefill_cards)


def _within(ratio: pl.Expr, *, applies: pl.Expr, says: str = "") -> tuple[Rule, Rule]:
    """A speed is within a bound on steps: sharp where it is known how many tokens a step gives a request."""
    known = c.accept_known_tok.is_not_null()
    more = f"{says}; nobody states whether a draft model helps" if says else ""
    return (
        Rule(applies=applies & known, observed=ratio, refuse=above(1), suspect=above(0.9), says=says),
        Rule(applies=applies & ~known, observed=ratio, refuse=above(_DRAFTS), suspect=above(1), says=more),
    )


@check(
    "PD801",
    voids=("throughput", "latency"),
    says="mean TPOT {tpot_ms_mean:,.2f} ms; the weights alone take {step_floor_ms:,.2f} ms ({observed:.1f} times that)",
)
def a_stream_waits_for_the_weights() -> tuple[Rule, ...]:
    """No stream is faster than the weights can be read.

    Why: each token takes one pass through all weights, and the memory of the GPU bounds how fast that is.
    Next: whether text came back (PD101); GPU, model and precision in sweep.toml; the number of GPUs.
    Source: weights over memory bandwidth (docs/machines.md); engines reach 0.6 to 0.8 of it.
    Exceptions: speculative decoding gives several tokens a pass: its accept length is taken, or up to 8 where nobody
    states it. A precision that nobody states is taken as 4 bits. Several GPUs: their bandwidth adds up. A model that
    stays in the cache of a GPU does not exist in this table.
    """
    applies = _streamed & (c.output_tok_per_request >= _STEPS) & (c.tpot_ms_mean > 0)
    ratio = c.step_floor_ms / c.tpot_ms_mean
    return _within(ratio, applies=applies)


@check(
    "PD802",
    voids="throughput",
    says="{decode_tok_per_s:,.2f} tok/s of decoding are {observed:.1f} times what {concurrency_mean:,.1f} requests in "
    "flight can be given, {ceiling_tok_per_s:,.1f} tok/s",
)
def decoding_is_within_the_memory_bandwidth() -> tuple[Rule, ...]:
    """Decoding is no faster than weights and KV cache can be read.

    Why: a step reads the weights once and the KV cache of each request, and gives each one token: so many requests at a
    time can be given so much and no more. That holds for the requests in flight, and for those that the pool holds.
    Next: PD101 and PD601: tokens above this were not generated; then GPU, model, precision and pool in sweep.toml.
    Source: roofline of batch / ((weights + batch x context x KV bytes) / bandwidth); engines reach 0.6 to 0.8 of it.
    Exceptions: as PD801; several GPUs add up; prompts that share a prefix share its memory: then the view over the pool
    is not evaluated.
    """
    of_pool = (
        "{decode_tok_per_s:,.2f} tok/s of decoding are {observed:.1f} times what the {pool_requests_most:,.1f} requests"
        " that the pool of {decode_pool_tok:,.0f} tokens holds can be given, {pool_ceiling_tok_per_s:,.1f} tok/s"
    )
    return (
        *_within(c.decode_tok_per_s / c.ceiling_tok_per_s, applies=_ran),
        *_within(c.decode_tok_per_s / c.pool_ceiling_tok_per_s, applies=_ran, says=of_pool),
    )


@check(
    "PD803",
    voids="latency",
    says="{prefill_tok_per_s:,.0f} prompt tokens/s are {observed:.1f} times the peak of {prefill_peak_tok_per_s:,.0f}",
)
def prefill_is_within_the_peak() -> Rule:
    """Prompts are computed no faster than the peak of the GPUs.

    Why: each prompt token takes two operations a parameter.
    Next: whether prompts came from the prefix cache; whether answers are empty (PD101).
    Source: two operations a parameter over the dense peak of the data sheet.
    Exceptions: tokens from the prefix cache are taken off; where nobody counts them, not evaluated.
    """
    ratio = c.prefill_tok_per_s / c.prefill_peak_tok_per_s
    return Rule(applies=_ran, observed=ratio, refuse=above(1), suspect=above(0.8))


@check(
    "PD804",
    voids="latency",
    says="{bad:,.0f} of {total:,.0f} first tokens came before their prompt can have been computed",
)
def a_first_token_waits_for_its_prompt() -> tuple[Rule, ...]:
    """A first token comes no sooner than its prompt can be computed.

    Why: it is made of the whole prompt, and the peak of the GPUs bounds how fast that is.
    Next: whether the first chunk holds text; whether prompts came from the prefix cache; PD101, PD201.
    Source: two operations a parameter and token and four a pair of tokens, layer and head dimension, over the dense
    peak; the transfer is left out, since it may run beside.
    Exceptions: tokens from the prefix cache are taken off the mean; where nobody counts them, not evaluated. Answers
    that come whole have no first token: not applicable.
    """
    return (
        request_rule(
            applies=c.ok & (c.output_tok >= 1) & _streamed,
            bad=c.ttft_ms < _prompt_ms,
            refuse=above(0.5),
            suspect=above(0),
        ),
        Rule(
            applies=_streamed,
            observed=c.ttft_ms_mean / c.prefill_floor_ms,
            refuse=below(1),
            says="mean TTFT {ttft_ms_mean:,.2f} ms; a mean prompt takes at least {prefill_floor_ms:,.2f} ms",
        ),
    )


@check(
    "PD805",
    voids="label",
    says="{concurrency_mean:,.1f} requests in flight, and the pool of {decode_pool_tok:,.0f} tokens holds "
    "{pool_requests:,.1f}: the others wait",
)
def the_pool_holds_the_load() -> Rule:
    """The KV pool of the side that decodes holds the requests in flight.

    Why: what does not fit waits, so that "16 users" are as many as fit, and latency is mostly waiting.
    Next: `pdkit.capacity`; a larger pool, fewer tokens set aside, an fp8 KV cache; a lower level.
    Source: SGLang's decode side sets aside 512 tokens a request beside its prompt; others hold prompt and output.
    Exceptions: prompts that share a prefix share its memory: not evaluated.
    """
    return Rule(applies=_ran, observed=c.concurrency_mean / c.pool_requests, suspect=above(1))


@check(
    "PD806",
    voids="run",
    says="KV of {prefill_tok_per_s:,.0f} prompt tokens/s is {observed:.1f} times what leaves the prefill GPUs at most",
)
def the_kv_cache_fits_the_link() -> Rule:
    """No more KV cache moves than the fastest link of the GPUs carries.

    Why: each prompt's KV cache goes from prefill to decode; what cannot have moved was not decoded.
    Next: PD601; whether both sides share a GPU.
    Source: KV bytes a token x prompt tokens a second, against NVLink or PCIe of the data sheet, one direction.
    Exceptions: one server for both, or one GPU for both: not applicable. Tokens that the prefix cache had are taken
    off; where nobody counts them, not evaluated.
    """
    moved = c.prefill_tok_per_s * c.kv_bytes_per_tok / (c.kv_link_bytes_per_s * c.prefill_cards)
    return Rule(applies=_ran & _split & (c.gpu_count > 1), observed=moved, refuse=above(1))


@check(
    "PD807",
    voids="label",
    says="weights and a pool of {decode_pool_tok:,.0f} tokens are {observed:.1f} times the memory of the GPUs",
)
def weights_and_pool_fit_the_memory() -> tuple[Rule, ...]:
    """Weights and KV pool fit into the memory of the GPUs.

    Why: what does not fit is not what ran: GPU, model, precision or pool are not as stated.
    Next: GPU, model and their number in sweep.toml; `server_args` of the log.
    Source: parameters x bytes + pool x KV bytes, against the memory of the data sheet.
    Exceptions: weights or KV cache that are kept in the memory of the host: waive it.
    """

    def share(pool: pl.Expr, cards: pl.Expr) -> pl.Expr:
        return (c.weights_resident_bytes + pool * c.kv_bytes_per_tok) / (c.gpu_memory_bytes * cards)

    of_prefill = "weights and a pool of {prefill_pool_tok:,.0f} tokens are {observed:.1f} times the memory of the GPUs"
    return (
        Rule(applies=_ran, observed=share(c.decode_pool_tok, c.decode_cards), suspect=above(1)),
        Rule(applies=_ran, observed=share(c.prefill_pool_tok, c.prefill_cards), suspect=above(1), says=of_prefill),
    )


@check(
    "PD808",
    voids="throughput",
    says="{observed:.1%} of what memory and arithmetic allow at {concurrency_mean:,.1f} requests in flight",
)
def the_machine_is_used() -> Rule:
    """The speed is at least a tenth of what the machine allows.

    Why: far below every limit, something else is the limit, and another set-up may be many times faster.
    Next: queue and pool (`pdkit.capacity`), CPU and CUDA graphs of the servers, the network, the client.
    Source: Brendan Gregg asks of each benchmark why it is not double; a tenth: judgement.
    Exceptions: none; it is a note.
    """
    used = c.decode_tok_per_s / c.ceiling_least_tok_per_s + c.prefill_tok_per_s.fill_null(0) / c.prefill_peak_tok_per_s
    return Rule(applies=_ran, observed=used, note=below(0.1))
