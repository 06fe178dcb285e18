"""What GPU and model allow at most, as facts of each run, and the bounds that follow from them."""

from collections.abc import Mapping
from typing import NamedTuple

import polars as pl

from pdkit.machines import (
    FEWEST,
    Found,
    Machines,
    Model,
    Precision,
    attention_flop_per_pair,
    known,
    kv_bytes_per_token,
    least_streamed_bytes,
    prefill_flop_per_tok,
    weighed_precision,
    weights_precision_of,
    weights_resident_bytes,
)
from pdkit.units import MS_PER_S

# What the rules on limits need of GPU and model, one row a run. Where a name or a precision is not stated, a bound that
# refuses takes the fewest bytes and the fastest card that it may be.
MODEL_FACTS: Mapping[str, str] = {
    "weights_streamed_bytes": "least that a decode step reads of the weights",
    "weights_resident_bytes": "least that the weights take of the memory",
    "weights_whole_bytes": "all weights, at the precision stated or that of the published weights",
    "kv_bytes_per_tok": "least that the KV cache of a token weighs",
    "prefill_flop_per_tok": "operations that a prompt token takes in the linear layers",
    "attention_flop_per_pair": "operations of each pair of prompt tokens",
}
GPU_FACTS: Mapping[str, str] = {
    "gpu_bandwidth_bytes_per_s": "most that one GPU reads of its memory",
    "gpu_bandwidth_least_bytes_per_s": "the same of the slowest that its name may mean",
    "gpu_flops_per_s": "most operations of one GPU",
    "gpu_memory_bytes": "memory of one GPU",
    "kv_link_bytes_per_s": "most that leaves one GPU for another",
}
SERVER_FACTS: Mapping[str, str] = {
    "drafts": "1 where a server speculates, 0 where the servers name no draft",
    "prefix_cache_on": "0 where every server says that it keeps no prefixes",
}
MACHINE_FACTS: Mapping[str, str] = {**MODEL_FACTS, **GPU_FACTS, **SERVER_FACTS}
_MAKING = pl.col("role").is_in(["decode", "colocated"])
_WEIGHED_GB = (
    pl.col("value").filter((pl.col("name") == "weights_gb") & _MAKING).max()
    * pl.col("value").filter(pl.col("name") == "tp_size").max()
    * pl.col("value").filter(pl.col("name") == "pp_size").max().fill_null(1)
)
_KEY = ("model", "gpu", "weights_precision", "precision", "kv_bytes_per_value", "device", "weighed_gb")
_NUMBERS_OF_KEY = ("kv_bytes_per_value", "weighed_gb")
_STATES: dict[str, pl.DataType] = {
    "experiment": pl.String(), "device": pl.String(), "weighed_gb": pl.Float64(), "drafts": pl.Float64(),
    "prefix_cache_on": pl.Float64(),
}  # fmt: skip


def machine_facts(
    wide: pl.DataFrame, *, settings: pl.DataFrame | None = None, machines: Machines | None = None
) -> pl.DataFrame:
    """MACHINE_FACTS of each run, null where GPU or model is not known: (run_id, those facts).

    `wide` has, one row a run, `experiment`, `model` and `gpu`; where it knows them `weights_precision` (of the servers'
    logs), `precision` (of the client's) and `kv_bytes_per_value`. `settings` are those of the evidence: what servers
    say of drafts, prefixes and the weights that they loaded.
    """
    states = _of_servers(settings) if settings is not None else pl.DataFrame(schema=_STATES)
    own = wide.select("run_id", *(_or_null(wide, name) for name in ("experiment", *_KEY[:5])))
    keys = own.join(states, on="experiment", how="left", maintain_order="left")
    rows = [
        [*key, *_limits(_Named(*key), machines or known())]
        for key in keys.select(_KEY).unique(maintain_order=True).iter_rows()
    ]
    kinds = {name: keys.schema[name] for name in _KEY}
    found = pl.DataFrame(rows, schema=kinds | dict.fromkeys({**MODEL_FACTS, **GPU_FACTS}, pl.Float64()), orient="row")
    joined = keys.join(found, on=_KEY, how="left", nulls_equal=True, maintain_order="left")
    return joined.select("run_id", *MACHINE_FACTS)


def _or_null(wide: pl.DataFrame, name: str) -> pl.Expr:
    kind = pl.Float64() if name in _NUMBERS_OF_KEY else pl.String()
    return (pl.col(name) if name in wide.columns else pl.lit(None)).cast(kind).alias(name)


def weighed_gb(settings: pl.DataFrame) -> float | None:
    """What the weights take on all GPUs of one server that generates, as it says when it has loaded them."""
    total = settings.select(_WEIGHED_GB).item()
    return float(total) if total is not None else None


def _of_servers(settings: pl.DataFrame) -> pl.DataFrame:
    """What the servers of each experiment say: accelerator, weights loaded in all, drafts, prefix cache."""
    name, value = pl.col("name"), pl.col("value")
    speculates = ((name == "speculative") & pl.col("text").is_not_null()).any().cast(pl.Float64)
    stated = settings.group_by("experiment").agg(
        pl.col("text").filter(name == "device").drop_nulls().first().alias("device"),
        _WEIGHED_GB.alias("weighed_gb"),
        pl.when(_MAKING.any()).then(speculates).alias("drafts"),
        value.filter(name == "prefix_cache").max().alias("prefix_cache_on"),
    )
    return stated.select(pl.col(name).cast(kind) for name, kind in _STATES.items())


class _Named(NamedTuple):
    """What a run says of its machines, in the order of _KEY."""

    model: str | None
    gpu: str | None
    weights_precision: str | None
    precision: str | None
    kv_bytes_per_value: float | None
    device: str | None
    weighed_gb: float | None


def _limits(named: _Named, machines: Machines) -> list[float | None]:
    """The facts in their order."""
    model = machines.model(named.model)
    said = weights_precision_of(named.weights_precision, named.precision, named.model)
    stated = said or weighed_precision(model, named.weighed_gb)
    gpu = machines.gpu(named.gpu) if named.gpu else machines.gpu(named.device)
    found = _of_model(model, stated, named.kv_bytes_per_value) | _of_gpu(gpu, stated)
    return [found.get(name) for name in (*MODEL_FACTS, *GPU_FACTS)]


def _of_model(model: Model | None, stated: Precision | None, kv_bytes: float | None) -> dict[str, float]:
    if not model:
        return {}
    least = stated or FEWEST
    return {
        "weights_streamed_bytes": least_streamed_bytes(model, weights=least),
        "weights_resident_bytes": weights_resident_bytes(model, weights=least, head=least),
        "weights_whole_bytes": weights_resident_bytes(model, weights=stated or model.precision or "bf16"),
        "kv_bytes_per_tok": 0.0 if model.window_tok else kv_bytes_per_token(model, bytes_per_value=kv_bytes or 0.5),
        "prefill_flop_per_tok": prefill_flop_per_tok(model),
        "attention_flop_per_pair": attention_flop_per_pair(model),
    }


def _of_gpu(found: Found | None, stated: Precision | None) -> dict[str, float | None]:
    if not found:
        return {}
    gpu = found.most
    return {
        "gpu_bandwidth_bytes_per_s": gpu.bandwidth_bytes_per_s,
        "gpu_bandwidth_least_bytes_per_s": found.least_bandwidth_bytes_per_s,
        "gpu_flops_per_s": gpu.flops_per_s(stated) or None,
        "gpu_memory_bytes": gpu.memory_bytes,
        "kv_link_bytes_per_s": gpu.link_bytes_per_s,
    }


# --- what follows ---------------------------------------------------------------------------------------------------


def _ceiling(batch: pl.Expr, *, weights: str, bandwidth: str, context_tok: pl.Expr) -> pl.Expr:
    """`decode_ceiling_tok_per_s` over facts: one token a request and step."""
    step_bytes = pl.col(weights) + batch * context_tok * pl.col("kv_bytes_per_tok")
    return batch * pl.col(bandwidth) * pl.col("decode_cards") / step_bytes


# facts from facts, as those of `facts.DERIVED`: each side has the GPUs that its servers name, or at most all of them
LIMITS: Mapping[str, pl.Expr] = {
    "decode_cards": pl.coalesce("decode_gpus", "gpu_count"),
    "prefill_cards": pl.coalesce("prefill_gpus", "gpu_count"),
    "reused_tok": pl.coalesce(
        pl.max_horizontal("cached_tok_sum", "prefill_cached_tok"), pl.when(pl.col("prefix_cache_on") == 0).then(0.0)
    ),
    # the first token of each answer comes from prefill
    "decode_tok_per_s": (pl.col("output_tok_sum") - pl.col("completed")) / pl.col("duration_s"),
    "prefill_tok_per_s": (pl.col("input_tok_sum") - pl.col("reused_tok")) / pl.col("duration_s"),
    "accept_known_tok": pl.coalesce(
        pl.max_horizontal("accept_length", "server_accept_length"), pl.when(pl.col("drafts") == 0).then(1.0)
    ),
    "accept_tok": pl.col("accept_known_tok").fill_null(1.0),
    # what a request takes of the pool beside its prompt: what is set aside, or half of its answer on average; where
    # more ran than that lets in, less is set aside than is assumed
    "beside_tok": pl.when(
        pl.col("decode_running_max") * (pl.col("input_tok_least").fill_null(0.0) + pl.col("decode_reserved_tok"))
        > pl.col("decode_pool_tok")
    )
    .then(pl.col("output_tok_per_request") / 2)
    .otherwise(pl.coalesce("decode_reserved_tok", pl.col("output_tok_per_request") / 2)),
    # at least so long is what a step looks back on; the shortest prompt may have the longest answers
    "context_least_tok": pl.col("input_tok_least").fill_null(0.0) + pl.col("output_tok_per_request") / 2,
    "pool_requests": pl.when(pl.col("reused_tok") == 0).then(
        pl.col("decode_pool_tok") / (pl.col("input_tok_per_request") + pl.col("beside_tok"))
    ),
    # as many as ever fit: all of them the shortest prompt; one always runs
    "pool_requests_most": pl.when(pl.col("reused_tok") == 0, pl.col("decode_pool_tok").is_not_null()).then(
        (pl.col("decode_pool_tok") / (pl.col("input_tok_least").fill_null(1.0) + pl.col("beside_tok")))
        .floor()
        .clip(lower_bound=1.0)
    ),
    "ceiling_tok_per_s": _ceiling(
        pl.col("concurrency_mean"),
        weights="weights_streamed_bytes",
        bandwidth="gpu_bandwidth_bytes_per_s",
        context_tok=pl.col("context_least_tok"),
    )
    * pl.col("accept_tok"),
    "pool_ceiling_tok_per_s": _ceiling(
        pl.col("pool_requests_most"),
        weights="weights_streamed_bytes",
        bandwidth="gpu_bandwidth_bytes_per_s",
        context_tok=pl.col("context_least_tok"),
    )
    * pl.col("accept_tok"),
    "ceiling_least_tok_per_s": _ceiling(
        pl.col("concurrency_mean"),
        weights="weights_whole_bytes",
        bandwidth="gpu_bandwidth_least_bytes_per_s",
        context_tok=pl.col("input_tok_per_request") + pl.col("output_tok_per_request") / 2,
    ),
    "step_floor_ms": MS_PER_S
    * pl.col("weights_streamed_bytes")
    / (pl.col("gpu_bandwidth_bytes_per_s") * pl.col("decode_cards") * pl.col("accept_tok")),
    "prefill_peak_tok_per_s": pl.col("gpu_flops_per_s") * pl.col("prefill_cards") / pl.col("prefill_flop_per_tok"),
    "prefill_floor_ms": MS_PER_S
    * (pl.col("input_tok_sum") - pl.col("reused_tok"))
    / pl.col("completed")
    / pl.col("prefill_peak_tok_per_s"),
}
