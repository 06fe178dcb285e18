"""Server logs that stand twice among the files: counted twice, they would make two servers of one."""

from dataclasses import replace

import polars as pl

from pdkit.evidence import Evidence

_MOSTLY = 0.9  # of the smaller log's lines stand in the larger one: no two servers say the same, second by second
_FEW = 3  # lines: fewer are alike by chance
_OF_SERVERS = ("samples", "events", "settings")


def without_copies(evidence: Evidence) -> Evidence:
    """Each server once: a log whose lines stand in another one of its experiment as well is listed, but not counted.

    A whole copy, a compressed one, and the beginning or the end of a log beside the whole of it are copies. Two servers
    that do alike things at the same seconds are none: two prefill servers of one load compute the same batches, but not
    on the same lines. Answers are counts alone, and router, prefill and decode server give the same ones: only a
    router, which logs nothing else, is known by them.
    """
    copied = _copies(_lines(evidence)) if _are_alike(evidence) else {}
    if not copied:
        return evidence
    kept = {name: getattr(evidence, name).filter(~pl.col("instance").is_in(list(copied))) for name in _OF_SERVERS}
    of_file = {instance.partition("#")[0]: other.partition("#")[0] for instance, other in copied.items()}
    other = pl.col("path").replace_strict(of_file, default=None, return_dtype=pl.String)
    said = pl.format("its lines stand in {} as well: counted once", other)
    return replace(evidence, sources=evidence.sources.with_columns(pl.coalesce("reason", said).alias("reason")), **kept)


def _are_alike(evidence: Evidence) -> bool:
    """Whether two servers of one experiment have one role, as a log and its copy have."""
    about = [frame.select("experiment", "role", "instance").unique() for frame in (evidence.samples, evidence.events)]
    return bool(pl.concat(about).unique().select(pl.struct("experiment", "role").is_duplicated().any()).item())


def _lines(evidence: Evidence) -> pl.DataFrame:
    """What each instance says at which second, a row a reading or event: (experiment, instance, said, source_line)."""
    about = ["experiment", "instance", "source_line"]
    read = evidence.samples.select(
        *about,
        pl.struct("role", "rank", "clock", "metric", "value_min", "value_mean", "value_max", "n").hash().alias("said"),
    )
    is_telling = (pl.col("kind") != "http") | (pl.col("role") == "router").fill_null(False)
    happened = evidence.events.filter(pl.col("clock").is_not_null(), is_telling).select(
        *about, pl.struct("role", "kind", "clock", "count", "subject", "text").hash().alias("said")
    )
    return pl.concat([read, happened]).unique(["experiment", "instance", "said"], keep="first", maintain_order=True)


def _file(instance: str) -> pl.Expr:
    """Servers of one file are told apart by what stands before their lines: none is a copy of another."""
    return pl.col(instance).str.split("#").list.first()


def _copies(lines: pl.DataFrame) -> dict[str, str]:
    """Each instance that is a copy, and the one that it is a copy of: the larger, of equals the first by name."""
    sizes = lines.group_by("experiment", "instance").agg(pl.len().alias("size"))
    if sizes.height < 2:
        return {}
    shared = lines.filter(pl.col("instance").n_unique().over("experiment", "said") > 1)
    pairs = shared.join(shared, on=["experiment", "said"], suffix="_other").filter(
        _file("instance") != _file("instance_other")
    )
    # of a copy all lines lie equally far from the same lines of the other
    apart = (pl.col("source_line") - pl.col("source_line_other")).alias("apart")
    both = (
        pairs.group_by("experiment", "instance", "instance_other", apart)
        .agg(pl.len().alias("both"))
        .group_by("experiment", "instance", "instance_other")
        .agg(pl.col("both").max())
    )
    sized = both.join(sizes, on=["experiment", "instance"]).join(
        sizes, left_on=["experiment", "instance_other"], right_on=["experiment", "instance"], suffix="_other"
    )
    larger = (pl.col("size_other") > pl.col("size")) | (
        (pl.col("size_other") == pl.col("size")) & (pl.col("instance_other") < pl.col("instance"))
    )
    found = sized.filter(larger, pl.col("size") > _FEW, pl.col("both") >= _MOSTLY * pl.col("size"))
    ordered = found.sort("size_other", "instance_other", descending=[True, False])
    first = ordered.unique("instance", keep="first", maintain_order=True)
    return dict(first.select("instance", "instance_other").iter_rows())
