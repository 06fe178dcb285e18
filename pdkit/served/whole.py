"""Which runs have all of their servers in the logs, from beginning to end: of the others no sum is told."""

import polars as pl

from pdkit.evidence import Evidence
from pdkit.served.parts import GENERATING, of_roles
from pdkit.windows import BY_MANIFEST

_QUIET_SHARE, _QUIET_S = 0.1, 15.0  # of a run, beside seconds: so long a server may say nothing at either end of it


def logs_first(evidence: Evidence, windows: pl.DataFrame) -> pl.DataFrame:
    """Windows without those of metrics where a log is there of the same side: both tell of the same servers."""
    readers = dict(evidence.sources.drop_nulls("reader").select("path", "reader").iter_rows())
    file = pl.col("instance").str.split("#").list.first()
    is_dump = file.replace_strict(readers, default="", return_dtype=pl.String) == "prometheus_text"
    return windows.filter(~is_dump | is_dump.all().over("run_id", "role"))


def whole_runs(evidence: Evidence, windows: pl.DataFrame, runs: pl.DataFrame) -> pl.DataFrame:
    """The runs (run_id) all of whose generating servers and replicas are in the logs that were joined.

    A server on two nodes logs its replicas on each: half a log says nothing of the whole batch.
    """
    replicas = evidence.settings.filter(pl.col("name") == "dp_size").group_by("instance").agg(pl.col("value").max())
    seen = evidence.samples.group_by("instance").agg(pl.col("rank").n_unique().alias("ranks"))
    nodes = (
        evidence.settings.filter(pl.col("name") == "nodes")
        .group_by("instance")
        .agg(pl.col("value").max().alias("nodes"))
    )
    each = of_roles(windows, GENERATING).select("run_id", "instance")
    for frame in (replicas, nodes, seen):
        each = each.join(frame, on="instance", how="left")
    by_run = each.group_by("run_id").agg(
        ((pl.col("ranks") >= pl.col("value").fill_null(1)).fill_null(True).all() | _all_nodes()).alias("all_ranks"),
        pl.len().alias("servers"),
    )
    decode_servers = pl.col("topology").str.extract(r"p(\d+)d").cast(pl.Int64, strict=False)
    told = by_run.join(runs.select("run_id", decode_servers.alias("expected")), on="run_id")
    whole = told.filter("all_ranks", pl.col("servers") >= pl.col("expected").fill_null(1)).select("run_id")
    return whole.join(cut_off(evidence, of_roles(windows, GENERATING), runs), on="run_id", how="anti")


def _all_nodes() -> pl.Expr:
    """Whether the logs of a server on several nodes have all of its replicas together, each its own."""
    return (pl.len() >= pl.col("nodes").max()) & (pl.col("ranks").sum() >= pl.col("value").max())


def cut_off(evidence: Evidence, windows: pl.DataFrame, runs: pl.DataFrame) -> pl.DataFrame:
    """The runs (run_id, role) of whose time a log leaves out a part: it ends before, and none goes on from there.

    A rotated log goes on in the next file. A server that says nothing in all of a window is idle, not cut off.
    """
    said = pl.concat(
        [getattr(evidence, name).select("instance", "clock") for name in ("samples", "events", "settings")]
    )
    spans = said.group_by("instance").agg(pl.col("clock").min().alias("first"), pl.col("clock").max().alias("last"))
    starts, ends, first, last = (pl.col(name) for name in ("started_at", "ended_at", "first", "last"))
    slack = (ends - starts) * _QUIET_SHARE + pl.duration(seconds=_QUIET_S)
    each = windows.join(spans, on="instance").select(
        "run_id",
        "role",
        ((last < ends - slack) & (last >= starts)).alias("stops"),
        ((first > starts + slack) & (first <= ends)).alias("begins"),
    )
    by_role = each.group_by("run_id", "role").agg(pl.col("stops", "begins").sum())
    # a window that was inferred ends with its log: then the client says how long the run took
    took = pl.duration(seconds=(1 - _QUIET_SHARE) * pl.col("duration_s") - _QUIET_S)
    inferred = windows.filter(pl.col("way") != BY_MANIFEST).group_by("run_id", "role").agg(ends.max() - starts.min())
    short = inferred.join(runs, on="run_id").filter(pl.col("ended_at") < took)
    cut = [by_role.filter(pl.col("stops") != pl.col("begins")), short]
    return pl.concat([frame.select("run_id", "role") for frame in cut]).unique()
