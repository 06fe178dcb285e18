"""How many requests ran and waited on the servers, and how many prompt tokens they took."""

import polars as pl

from pdkit.served.parts import FILLING, GENERATING, of_roles, over_ranks, per_rank, side_by_side


def ran(samples: pl.DataFrame) -> pl.DataFrame:
    """How many requests ran on the servers that generate, all their ranks together."""
    by_rank = per_rank(samples).with_columns(pl.col("median") * pl.col("covers"))
    median = over_ranks(by_rank, "running_requests", "median", "decode_running_median")
    return side_by_side([median, over_ranks(by_rank, "running_requests", "most", "decode_running_max")])


def waited(samples: pl.DataFrame) -> pl.DataFrame:
    """What waited on the servers that generate, and how full their pools were."""
    mine, by_rank = of_roles(samples, GENERATING), per_rank(samples)
    across = [
        over_ranks(by_rank, "prealloc_requests", "most", "decode_waiting_max"),
        over_ranks(by_rank, "queued_requests", "most", "decode_queued_max"),
        over_ranks(by_rank, "kv_used_ratio", "most", "decode_kv_used_ratio_max"),
    ]
    waits = mine.filter(pl.col("metric") == "prealloc_requests").group_by("run_id").agg(
        (pl.col("value_max") > 0).mean().alias("decode_waiting_ratio")
    )  # fmt: skip
    graphs = mine.filter(pl.col("metric") == "cuda_graph").group_by("run_id").agg(
        (1 - (pl.col("value_mean") * pl.col("n")).sum() / pl.col("n").sum()).alias("cuda_graph_off_ratio")
    )  # fmt: skip
    return side_by_side([*across, waits, graphs])


def prefilled(samples: pl.DataFrame) -> pl.DataFrame:
    """Prompt tokens that the servers computed, and those that they had in the prefix cache."""
    mine = of_roles(samples, FILLING)
    total = pl.col("value_mean") * pl.col("n")
    return mine.group_by("run_id").agg(
        _known(total, "new_tok").alias("prefill_new_tok"), _known(total, "cached_tok").alias("prefill_cached_tok")
    )


def _known(total: pl.Expr, metric: str) -> pl.Expr:
    chosen = pl.col("metric") == metric
    return pl.when(chosen.any()).then(total.filter(chosen).sum())


def throttled(samples: pl.DataFrame) -> pl.DataFrame:
    """The share of the scrapes in which power or heat held a GPU down."""
    held = samples.filter(pl.col("metric") == "throttled")
    return held.group_by("run_id").agg((pl.col("value_max") > 0).mean().alias("throttled_ratio"))
