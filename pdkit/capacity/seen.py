"""What was seen beside the arithmetic: requests that ran and waited, and what each run claims."""

from collections.abc import Iterator, Sequence
from math import inf
from typing import NamedTuple

import polars as pl

from pdkit.capacity.arithmetic import Seen, ServerRole, Side
from pdkit.capacity.known import Known
from pdkit.capacity.rows import as_float
from pdkit.results import Judgement

_SEEN = (
    "concurrency", "concurrency_mean", "output_throughput_tok_per_s", "decode_running_median", "decode_running_max",
)  # fmt: skip


class Observed(NamedTuple):
    """Requests that ran and waited in all that the logs of a role show."""

    running_median: float | None
    running_max: float | None
    waiting_max: float | None


def observed_of(role: ServerRole, here: Known) -> Observed:
    """Of several servers, their sum at each second; seconds in which nothing ran are left out of the median."""
    own = here.samples.filter(pl.col("role") == role)

    def of(metric: str) -> pl.Series:
        per_second = own.filter(pl.col("metric") == metric).group_by("clock").agg(pl.col("value_max").sum())
        return per_second["value_max"]

    running, waiting = of("running_requests"), of("prealloc_requests" if role == "decode" else "queued_requests")
    busy = running.filter(running > 0)
    return Observed(as_float(busy.median()), as_float(busy.max()), as_float(waiting.max()))


def seen_runs(judgement: Judgement, runs: pl.DataFrame, sides: Sequence[Side]) -> Iterator[Seen]:
    """Each run in the order of its level: what it asked for, what ran, and its claim against the ceiling."""
    decode = next((side for side in sides if side.role != "prefill"), None)
    ceiling = decode.ceiling_tok_per_s if decode else None
    said = judgement.verdicts.select("run_id", "level", pl.col("verdict").cast(pl.String))
    none = pl.lit(None, pl.Float64)
    numbers = {name: pl.col(name) if name in runs.columns else none for name in _SEEN}
    rows = runs.select("run_id", **numbers).join(said, on="run_id", how="left", maintain_order="left")
    for row in rows.iter_rows(named=True):
        cap = row["concurrency"]
        is_cap = cap is not None and cap < inf
        claim = row["output_throughput_tok_per_s"]
        yield Seen(
            run_id=row["run_id"], level=row["level"] or "level not stated", verdict=row["verdict"],
            asked=cap if is_cap else row["concurrency_mean"], is_cap=is_cap,
            running_median=row["decode_running_median"], running_max=row["decode_running_max"],
            claimed_tok_per_s=claim, ceilings=claim / ceiling if claim is not None and ceiling else None,
        )  # fmt: skip
