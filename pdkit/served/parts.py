"""Rows of servers within the windows of runs, by side, and numbers that go side by side."""

import polars as pl

from pdkit.evidence import Evidence
from pdkit.signals import GAUGES

GENERATING = ("decode", "colocated")  # servers that make tokens
FILLING = ("prefill", "colocated")  # servers that take prompts


def within(rows: pl.DataFrame, windows: pl.DataFrame) -> pl.DataFrame:
    """Rows of servers within the window of a run, each with the run."""
    spans = windows.select("run_id", "instance", "started_at", "ended_at")
    return (
        rows.lazy()
        .join(spans.lazy(), on="instance")
        .filter(pl.col("clock").is_between("started_at", "ended_at"))
        .drop("started_at", "ended_at")
        .collect()
    )


def of_roles(rows: pl.DataFrame, roles: tuple[str, ...]) -> pl.DataFrame:
    """The rows of servers of these roles."""
    return rows.filter(pl.col("role").is_in(roles))


def gauge(samples: pl.DataFrame, metric: str, roles: tuple[str, ...]) -> pl.DataFrame:
    """The readings of one gauge of servers of these roles."""
    return of_roles(samples, roles).filter(pl.col("metric") == metric)


def per_rank(samples: pl.DataFrame) -> pl.DataFrame:
    """Each gauge of each rank, and the share of the run that its log covers: a rotated log is one server in parts."""
    first, last = pl.col("first"), pl.col("last")
    by_rank = of_roles(samples, GENERATING).group_by("run_id", "instance", "rank", "metric").agg(
        pl.col("value_mean").median().alias("median"), pl.col("value_max").max().alias("most"),
        pl.col("clock").min().alias("first"), pl.col("clock").max().alias("last"),
    )  # fmt: skip
    whole = last.max().over("run_id", "metric") - first.min().over("run_id", "metric")
    covers = ((last - first).dt.total_seconds() + 1) / (whole.dt.total_seconds() + 1)
    return by_rank.with_columns(covers.alias("covers"))


def over_ranks(by_rank: pl.DataFrame, metric: str, statistic: str, name: str) -> pl.DataFrame:
    """One number a run, as the gauge adds up over ranks and instances."""
    value = pl.col(statistic)
    combined = {"sum": value.sum(), "max": value.max(), "mean": value.mean()}[GAUGES[metric].across]
    return by_rank.filter(pl.col("metric") == metric).group_by("run_id").agg(combined.alias(name))


def side_by_side(parts: list[pl.DataFrame]) -> pl.DataFrame:
    """Frames with a row a run as one: a run that one of them lacks is null there."""
    wide, *rest = parts
    for part in rest:
        wide = wide.join(part, on="run_id", how="full", coalesce=True)
    return wide


def growth_of(evidence: Evidence, windows: pl.DataFrame, counter: str) -> pl.DataFrame:
    """Growth of a counter from the last scrape before a window to the first one after it, a row a run and rank."""
    scraped = evidence.samples.filter(pl.col("metric") == counter).select("instance", "rank", "clock", "value_max")
    spans = windows.select("run_id", "instance", "role", "started_at", "ended_at").join(scraped, on="instance")
    before, after = pl.col("clock") <= pl.col("started_at"), pl.col("clock") >= pl.col("ended_at")
    return spans.sort("clock").group_by("run_id", "role", "instance", "rank").agg(
        (pl.col("value_max").filter(after).first() - pl.col("value_max").filter(before).last()).alias("grown")
    )  # fmt: skip
