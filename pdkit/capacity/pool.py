"""The KV pool of each side: as its start-up lines state it, and as its lines give it beside that."""

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from pdkit.capacity.arithmetic import ServerRole, Step
from pdkit.capacity.known import Known
from pdkit.capacity.rows import as_float, named, number_of, places_of

_TWO_DIGITS, _MANY_DIGITS = 0.005, 0.5e-6  # half of the last digit of a log's usage, of a metric's


@dataclass(frozen=True)
class Pool:
    """The KV pool of one replica, how many there are, and the steps that led to it."""

    tok: float
    low_tok: float
    high_tok: float
    replicas: int
    steps: tuple[Step, ...]


def pool_of(role: ServerRole, here: Known) -> Pool | None:
    """The pool that the servers of a role state, with the one that their lines give beside it."""
    own = here.settings.filter(pl.col("role") == role)
    given = named(own, "pool_tok").filter(pl.col("value") > 0).unique(["instance"], keep="last", maintain_order=True)
    lines = _lines(here.samples.filter(pl.col("role") == role))
    inferred = list(_inferred(lines))
    replicas = server_count(own, here.samples.filter(pl.col("role") == role)) * round(number_of(own, "dp_size") or 1)
    if given.height:
        sizes = [float(size) for size in given["value"]]
        tok, low, high = sum(sizes) / len(sizes), min(sizes), max(sizes)
        says = "as its log states" if low == high else f"mean of {len(sizes)} logs"
        ends = (None, None) if low == high else (low, high)
        step = Step(f"KV pool of {role}", says, tok, "tok", ends[0], ends[1], places_of(given))
        return Pool(tok, low, high, replicas, (step, *inferred))
    if not inferred:
        return None
    best = inferred[-1]
    return Pool(best.value, best.low or best.value, best.high or best.value, replicas, tuple(inferred))


def server_count(settings: pl.DataFrame, samples: pl.DataFrame) -> int:
    """Servers of a role: those that print what they run by; a page of metrics beside a log is no second server."""
    with_arguments = settings.filter(pl.col("name").is_in(["model_path", "tp_size"]))["instance"].n_unique()
    return with_arguments or len(set(settings["instance"]) | set(samples["instance"])) or 1


def _lines(samples: pl.DataFrame) -> pl.DataFrame:
    """Lines that print tokens held and the share of the pool that these are, with how many waited for memory."""
    wanted = ("kv_used_tok", "kv_used_ratio", "prealloc_requests", "queued_requests")
    one = samples.filter(pl.col("metric").is_in(wanted), pl.col("value_min") == pl.col("value_max"))
    key = ["instance", "rank", "clock"]
    wide = one.pivot("metric", on_columns=list(wanted), index=key, values="value_max", aggregate_function="first")
    placed = one.group_by(key).agg(pl.col("source_file", "source_line").first())
    ratio = pl.col("kv_used_ratio")
    printed = pl.when((ratio * 100 - (ratio * 100).round()).abs() < 1e-6).then(_TWO_DIGITS).otherwise(_MANY_DIGITS)
    return (
        wide.join(placed, on=key, how="left")
        .filter(pl.col("kv_used_tok") > 0, ratio > printed, ratio <= 1)
        .with_columns(
            (pl.col("kv_used_tok") / ratio).alias("pool"),
            (pl.col("kv_used_tok") / (ratio + printed)).alias("low"),
            (pl.col("kv_used_tok") / (ratio - printed)).alias("high"),
            (ratio - printed).alias("ratio_low"),
            (ratio + printed).alias("ratio_high"),
            pl.max_horizontal(pl.col("prealloc_requests", "queued_requests").fill_null(0)).alias("waiting"),
        )
        .sort("clock", "instance", "rank")
    )


def _inferred(lines: pl.DataFrame) -> Iterator[Step]:
    """The pool as one line gives it (the first with the longest queue), then as all do."""
    if lines.is_empty():
        return
    waiting = lines["waiting"]
    busiest = pl.col("waiting") == pl.col("waiting").max()
    some_waited = (as_float(waiting.max()) or 0) > 0
    chosen = lines.filter(busiest) if some_waited else lines.sort("kv_used_ratio", descending=True)
    line = chosen.row(0, named=True)
    ratio, low, high = line["kv_used_ratio"], line["ratio_low"], line["ratio_high"]
    digits = f"{ratio:.2f}" if high - low > _TWO_DIGITS else f"{ratio:.6g}"
    yield Step(
        "The same from one line",
        f"{line['kv_used_tok']:,.0f} tok / {digits}, which is rounded: {low:.4g} to {high:.4g}",
        line["pool"], "tok", line["low"], line["high"], (f"{line['source_file']}:{line['source_line']}",),
    )  # fmt: skip
    least, most = as_float(lines["low"].max()), as_float(lines["high"].min())
    if lines.height > 1 and least is not None and most is not None and least <= most:
        formula = f"where the ranges of {lines.height:,} lines meet"
        yield Step("The same from all lines", formula, (least + most) / 2, "tok", least, most)
