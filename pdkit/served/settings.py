"""What the servers of each side run by: pools, GPUs, precisions."""

import polars as pl

from pdkit.evidence import Evidence
from pdkit.served.parts import FILLING, GENERATING, side_by_side
from pdkit.signals import PD_RESERVED_TOK

_INFERRED_FROM = 0.1  # of the pool in use: below, two printed digits say little of its size
_KV_BYTES = {"fp8": 1.0, "e4m3": 1.0, "e5m2": 1.0, "bfloat16": 2.0, "float16": 2.0, "bf16": 2.0, "fp16": 2.0}


def ran_by(evidence: Evidence, windows: pl.DataFrame) -> pl.DataFrame:
    """What the servers of each side run by: pools, GPUs and precisions, all instances of a side together."""
    sides = {"decode": GENERATING, "prefill": FILLING}
    told = _stated(evidence, windows)
    parts = [windows.select("run_id").unique()]
    for side, roles in sides.items():
        mine = told.filter(pl.col("role").is_in(roles))
        whole = pl.col("instance").n_unique() == pl.col("instance").len()
        # each node of a server says what all of it has: as many logs as it has nodes tell of one
        logs = pl.len()
        servers = (logs / pl.col("nodes").max().fill_null(1)).ceil() / logs
        parts.append(
            mine.group_by("run_id").agg(
                pl.when(whole & pl.col("pool").is_not_null().all())
                .then(pl.col("pool").sum() * servers)
                .alias(f"{side}_pool_tok"),
                pl.when(pl.col("gpus").is_not_null().all()).then(pl.col("gpus").sum() * servers).alias(f"{side}_gpus"),
            )
        )
    decode = told.filter(pl.col("role").is_in(GENERATING))
    parts.append(
        decode.group_by("run_id").agg(
            pl.when((pl.col("role") == "decode").any())
            .then(pl.col("reserved_tok").max().fill_null(PD_RESERVED_TOK))
            .alias("decode_reserved_tok"),
            pl.col("precision").drop_nulls().first().alias("weights_precision"),
            pl.col("kv_bytes").max().alias("kv_bytes_per_value"),
        )
    )
    return side_by_side(parts)


def _stated(evidence: Evidence, windows: pl.DataFrame) -> pl.DataFrame:
    """One row a run and instance: its role, pool, GPUs, precision; null where it does not say."""
    settings = evidence.settings
    about = windows.select("run_id", "instance", "role")
    for name in ("pool_tok", "tp_size", "pp_size", "dp_size", "reserved_tok", "nodes"):
        said = settings.filter(pl.col("name") == name).group_by("instance").agg(pl.col("value").max().alias(name))
        about = about.join(said, on="instance", how="left")
    for name in ("quantization", "kv_dtype", "dp_attention"):
        said = settings.filter(pl.col("name") == name).group_by("instance").agg(pl.col("text").first().alias(name))
        about = about.join(said, on="instance", how="left")
    about = about.join(_inferred_pools(evidence), on="instance", how="left")
    shared = pl.col("dp_attention") == "True"  # then replicas share the GPUs of one
    replicas = pl.col("dp_size").fill_null(1)
    kv_bytes = pl.coalesce(
        pl.when(pl.col("kv_dtype").str.to_lowercase().str.contains(word, literal=True)).then(pl.lit(size))
        for word, size in _KV_BYTES.items()
    )
    each = pl.when(shared).then(1).otherwise(replicas)
    return about.select(
        "run_id", "instance", "role", "reserved_tok", "nodes",
        pl.coalesce(pl.col("pool_tok") * replicas, "inferred_tok").alias("pool"),
        (pl.col("tp_size") * pl.col("pp_size").fill_null(1) * each).alias("gpus"),
        pl.col("quantization").alias("precision"), kv_bytes.alias("kv_bytes"),
    )  # fmt: skip


def _inferred_pools(evidence: Evidence) -> pl.DataFrame:
    """Pools from tokens held and the share of the pool that they are, where it was fullest; ranks added up."""
    chosen = evidence.samples.filter(pl.col("metric").is_in(["kv_used_tok", "kv_used_ratio"]), pl.col("n") == 1)
    wide = chosen.pivot(
        "metric", on_columns=["kv_used_tok", "kv_used_ratio"], index=["instance", "rank", "clock"], values="value_mean",
        aggregate_function="first",
    )  # fmt: skip
    full = wide.filter(pl.col("kv_used_ratio") >= _INFERRED_FROM).sort("kv_used_ratio")
    fullest = full.group_by("instance", "rank").agg((pl.col("kv_used_tok") / pl.col("kv_used_ratio")).last())
    return fullest.group_by("instance").agg(pl.col("kv_used_tok").sum().alias("inferred_tok"))
