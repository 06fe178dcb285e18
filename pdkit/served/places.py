"""The lines behind each fact that the servers tell."""

from collections.abc import Iterator

import polars as pl

from pdkit.evidence import PLACE, Evidence
from pdkit.served.happened import FAILED_TOTALS, dead_sessions, ready_again
from pdkit.served.parts import FILLING, GENERATING, of_roles, within
from pdkit.signals import FAILURES
from pdkit.windows import Joined

_LINES_KEPT = 3  # of a fact: enough to look at
_BY_EVENT = {
    "failed_transfers": FAILURES, "aborted_transfers": ("transfer_aborted",), "queue_full_rejections": ("queue_full",),
    "rejected_requests": ("request_rejected", "http"), "retracted_requests": ("retracted",), "crashes": ("crashed",),
    "restarts": ("ready",), "corrupted": ("corrupted",), "served_requests": ("http",), "server_errors": ("http",),
}  # fmt: skip
_STATUS = pl.col("subject").cast(pl.Int64, strict=False)
_OF_STATUS = {  # of the answers that a fact counts; all else has no status
    "served_requests": _STATUS == 200, "server_errors": _STATUS >= 500, "rejected_requests": _STATUS.is_in([429, 503]),
}  # fmt: skip
_BY_GAUGE = {
    "decode_running_median": "running_requests", "decode_running_max": "running_requests",
    "decode_waiting_ratio": "prealloc_requests", "decode_waiting_max": "prealloc_requests",
    "decode_queued_max": "queued_requests", "decode_kv_used_ratio_max": "kv_used_ratio",
    "cuda_graph_off_ratio": "cuda_graph", "server_output_tok": "gen_throughput_tok_per_s",
    "server_output_tok_least": "gen_throughput_tok_per_s", "server_accept_length": "accept_length",
    "prefill_new_tok": "new_tok",
    "prefill_cached_tok": "cached_tok", "throttled_ratio": "throttled",
}  # fmt: skip
_BY_SETTING = {
    "decode_pool_tok": ("pool_tok", GENERATING), "prefill_pool_tok": ("pool_tok", FILLING),
    "decode_reserved_tok": ("reserved_tok", GENERATING), "decode_gpus": ("tp_size", GENERATING),
    "prefill_gpus": ("tp_size", FILLING), "weights_precision": ("quantization", GENERATING),
    "kv_bytes_per_value": ("kv_dtype", GENERATING),
}  # fmt: skip


def served_places(evidence: Evidence, joined: Joined) -> pl.DataFrame:
    """Where each fact of SERVED stands, at most three lines a run: (run_id, fact, source_file, source_line, …)."""
    return pl.concat([*_places(evidence, joined.windows)]).select("run_id", "fact", *PLACE)


def _places(evidence: Evidence, windows: pl.DataFrame) -> Iterator[pl.DataFrame]:
    yield pl.DataFrame(schema={"run_id": pl.String, "fact": pl.String, **_place_schema()})
    if windows.is_empty():
        return
    # rows come out of a join in any order: the first lines are cited, and the same ones each time
    first = ["clock", "source_file", "source_line"]
    events, samples = (within(rows, windows).sort(first) for rows in (evidence.events, evidence.samples))
    again = within(ready_again(evidence), windows).sort(first)
    for fact, kinds in _BY_EVENT.items():
        chosen = (again if fact == "restarts" else events).filter(
            pl.col("kind").is_in(kinds), _OF_STATUS.get(fact, True)
        )
        # a count that was reached at last stands in the last line
        at_last = fact == "queue_full_rejections"
        yield _kept(chosen.sort("count", descending=True, maintain_order=True) if at_last else chosen, fact)
    totals = evidence.samples.filter(pl.col("metric").is_in(FAILED_TOTALS), pl.col("value_max") > 0)
    spans = windows.select("run_id", "instance", "started_at")
    later = totals.join(spans, on="instance").filter(pl.col("clock") >= pl.col("started_at")).sort(first)
    told = events.filter(pl.col("kind").is_in(FAILURES))["run_id"].unique()
    yield _kept(later.filter(~pl.col("run_id").is_in(told.implode())), "failed_transfers")
    yield _kept(dead_sessions(evidence, windows), "sessions_failed")
    for fact, metric in _BY_GAUGE.items():
        roles = FILLING if fact.startswith("prefill") else GENERATING
        chosen = samples.filter(pl.col("metric") == metric)
        mine = chosen if fact == "throttled_ratio" else of_roles(chosen, roles)
        yield _kept(mine.sort("value_max", descending=True, maintain_order=True), fact)
    for fact, (name, roles) in _BY_SETTING.items():
        said = evidence.settings.filter(pl.col("name") == name).drop("role")
        mine = windows.filter(pl.col("role").is_in(roles)).select("run_id", "instance")
        yield _kept(said.join(mine, on="instance"), fact)


def _place_schema() -> dict[str, pl.DataType]:
    return {name: column.dtype for name, column in PLACE.items()}


def _kept(rows: pl.DataFrame, fact: str) -> pl.DataFrame:
    first = rows.group_by("run_id", maintain_order=True).head(_LINES_KEPT)
    return first.select("run_id", pl.lit(fact).alias("fact"), *PLACE)
