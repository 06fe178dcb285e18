"""What all rules say of a run, folded into one word."""

import polars as pl

from pdkit import results as r
from pdkit.levels import level, series_key
from pdkit.rules import CHECKS


def verdicts_of(wide: pl.DataFrame, results: pl.DataFrame) -> pl.DataFrame:
    """One row a run: what it is called, its verdict, and the rules behind that."""
    seen = (
        pl.when(pl.col("requests_text_known") > 0).then(pl.lit("text"))
        .when(pl.col("requests_seen") > 0).then(pl.lit("requests"))
        .otherwise(pl.lit("summary"))
    )  # fmt: skip
    about = [
        "experiment", "label", "synthetic", "concurrency", "request_rate_per_s", "tool", "model", "topology",
        "gpu", "gpu_count", "dataset", "backend",
    ]  # fmt: skip
    runs = (
        wide.lazy()
        .with_columns(
            level().alias("level"),
            seen.cast(r.LEVELS).alias("evidence_level"),
            pl.col("completed").is_null().alias("without_block"),
        )
        .with_columns(series_key().alias("series_key"))
        .select("run_id", "series_key", "level", "evidence_level", "without_block", *about)
    )
    return (
        runs.join(_folded(results), on="run_id", how="left", maintain_order="left")
        .with_columns(
            _verdict().cast(r.VERDICTS).alias("verdict"),
            (pl.col("level_void") & ~pl.col("no_result")).fill_null(False).alias("level_void"),
            pl.col("refused_by", "suspected_by", "not_evaluated").fill_null([]),
        )
        .with_columns(
            pl.col("level").alias("level_asked"),
            pl.when(pl.col("level_void") & (pl.col("level") != r.NO_LEVEL))
            .then(
                pl.format("{} {}", "level", pl.when("not_held").then(pl.lit(r.NOT_HELD)).otherwise(pl.lit(r.DOUBTFUL)))
            )
            .otherwise("level")
            .alias("level"),
        )
        .drop("judged", "output_shown", "end_shown", "no_result", "not_held")
        .collect()
    )


def _folded(results: pl.DataFrame) -> pl.LazyFrame:
    """What the rules say of each run together: (run_id, what its verdict needs, refused_by, suspected_by, …)."""
    failed, rule = pl.col("outcome") == "fail", pl.col("rule")
    refused, suspected = failed & (pl.col("severity") == "refuse"), failed & (pl.col("severity") == "suspect")
    evaluated = pl.col("outcome").is_in(["pass", "fail"])
    blind = pl.col("outcome") == "not_evaluated"
    shows_output = rule.is_in([name for name, check in CHECKS.items() if check.shows_output])
    shows_end = rule.is_in([name for name, check in CHECKS.items() if check.shows_completeness])
    about_load = rule.is_in([name for name, check in CHECKS.items() if check.family == "load_validity"])
    about_itself = results.lazy().filter(pl.col("voids") != ["comparison"])  # a pair's fault is not its runs'
    return about_itself.group_by("run_id").agg(
        (refused & pl.col("voids").list.contains("run")).any().alias("no_result"),
        evaluated.any().alias("judged"),
        (shows_output & evaluated).any().alias("output_shown"),
        (evaluated | ~shows_end).all().alias("end_shown"),
        ((rule == r.FAILURES) & blind).any().alias("sent_unknown"),
        (refused & pl.col("voids").list.contains("label")).any().alias("level_void"),
        (refused & pl.col("voids").list.contains("label") & about_load).any().alias("not_held"),
        rule.filter(refused & pl.col("voids").list.contains("run")).alias("refused_by"),
        rule.filter(suspected | (refused & ~pl.col("voids").list.contains("run"))).alias("suspected_by"),
        rule.filter(blind).alias("not_evaluated"),
    )  # fmt: skip


def _verdict() -> pl.Expr:
    """The verdict that follows from what the rules say together."""
    return (
        pl.when(pl.col("no_result") | ~pl.col("judged").fill_null(False)).then(pl.lit(r.NO_RESULT))
        .when(~pl.col("output_shown") | ~pl.col("end_shown")).then(pl.lit(r.UNVERIFIED))
        .when((pl.col("suspected_by").list.len() > 0) | pl.col("sent_unknown")).then(pl.lit(r.DOUBTS))
        .otherwise(pl.lit(r.MEASURED))
    )  # fmt: skip
