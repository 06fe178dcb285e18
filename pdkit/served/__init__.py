"""What the servers' logs say of each run, inside its window: facts with a line behind each."""

import polars as pl

from pdkit.evidence import Evidence
from pdkit.served.batch import prefilled, ran, throttled, waited
from pdkit.served.happened import answered, died, joining, restarted, went_wrong
from pdkit.served.parts import within
from pdkit.served.places import served_places as served_places
from pdkit.served.settings import ran_by
from pdkit.served.tokens import generated
from pdkit.served.whole import logs_first, whole_runs
from pdkit.windows import Joined

SERVED = (
    "server_instances", "clock_shift_h", "unaligned_instances", "failed_transfers", "aborted_transfers",
    "queue_full_rejections", "sessions_failed", "rejected_requests", "retracted_requests", "crashes", "restarts",
    "corrupted", "served_requests", "decode_served_requests", "server_errors", "decode_running_median",
    "decode_running_max",
    "decode_waiting_ratio", "decode_waiting_max", "decode_queued_max", "decode_kv_used_ratio_max",
    "cuda_graph_off_ratio", "server_output_tok", "server_output_tok_least",
    "server_unlogged_steps", "server_unlogged_tok", "prefill_new_tok", "prefill_cached_tok",
    "throttled_ratio", "decode_pool_tok", "prefill_pool_tok", "decode_reserved_tok", "decode_gpus", "prefill_gpus",
    "kv_bytes_per_value", "server_accept_length",
)  # fmt: skip
SERVED_WORDS = ("weights_precision",)  # the facts that are no numbers


def served(evidence: Evidence, joined: Joined, runs: pl.DataFrame) -> pl.DataFrame:
    """One row a run (run_id, experiment, topology, duration_s) and the facts of SERVED; null where no log tells."""
    windows = joined.windows
    if windows.is_empty() and joined.unjoined.is_empty():
        return runs.select("run_id", *(pl.lit(None, kind).alias(name) for name, kind in _schema().items()))
    events, logs = within(evidence.events, windows), logs_first(evidence, windows)
    samples, whole = within(evidence.samples, logs), whole_runs(evidence, logs, runs)
    parts = [
        joining(joined, runs), went_wrong(evidence, events, windows), died(evidence, windows),
        restarted(evidence, windows), answered(evidence, events, windows, runs),
        waited(samples), prefilled(samples), throttled(within(evidence.samples, windows)),
        ran_by(evidence, logs), ran(samples).join(whole, on="run_id"),
        generated(evidence, windows).join(whole, on="run_id"),
    ]  # fmt: skip
    wide = runs.select("run_id")
    for part in parts:
        wide = wide.join(part, on="run_id", how="left", maintain_order="left")
    absent = [pl.lit(None, dtype).alias(name) for name, dtype in _schema().items() if name not in wide.columns]
    return wide.with_columns(absent).select("run_id", *(pl.col(name).cast(kind) for name, kind in _schema().items()))


def _schema() -> dict[str, pl.DataType]:
    return dict.fromkeys(SERVED, pl.Float64()) | dict.fromkeys(SERVED_WORDS, pl.String())
