"""What the servers' logs say of each run, inside its window: facts with a line behind each."""

from collections.abc import Iterator

import polars as pl

from pdkit.evidence import PLACE, Evidence
from pdkit.signals import FAILURES, GAUGES, PD_RESERVED_TOK
from pdkit.windows import BY_MANIFEST, CLOCKS, Joined

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
_GENERATING = ("decode", "colocated")  # servers that make tokens
_FILLING = ("prefill", "colocated")  # servers that take prompts
_ENTRIES = ("router", "decode", "colocated", "prefill")  # who sees each request once, best first
_LINES_KEPT = 3  # of a fact: enough to look at
_FAILED_TOTALS = ("transfer_failed_total", "bootstrap_failed_total")
_STEPS_A_LINE = 40  # SGLang prints a decode line every 40 steps, so as many may be missing at either end
_SURELY_MORE = 1.5  # times 40 steps: then --decode-log-interval was set; a batch that changes between lines blurs it
_QUIET_SHARE, _QUIET_S = 0.1, 15.0  # of a run, beside seconds: so long a server may say nothing at either end of it
_FEW_LINES = 3  # fewer gaps between lines may all be idle time
_SECONDS_A_LINE = 10.0  # vLLM's VLLM_LOG_STATS_INTERVAL
_INFERRED_FROM = 0.1  # of the pool in use: below, two printed digits say little of its size
_KV_BYTES = {"fp8": 1.0, "e4m3": 1.0, "e5m2": 1.0, "bfloat16": 2.0, "float16": 2.0, "bf16": 2.0, "fp16": 2.0}


def served(evidence: Evidence, joined: Joined, runs: pl.DataFrame) -> pl.DataFrame:
    """One row a run (run_id, experiment, topology, duration_s) and the facts of SERVED; null where no log tells."""
    windows = joined.windows
    if windows.is_empty() and joined.unjoined.is_empty():
        return runs.select("run_id", *(pl.lit(None, kind).alias(name) for name, kind in _schema().items()))
    events, logs = _inside(evidence.events, windows), _logs_first(evidence, windows)
    samples, whole = _inside(evidence.samples, logs), _whole(evidence, logs, runs)
    parts = [
        _joining(joined, runs), _failures(evidence, events, windows), _sessions(evidence, windows),
        _restarts(evidence, windows), _answers(evidence, events, windows, runs),
        _pressure(samples), _prefilled(samples), _throttled(_inside(evidence.samples, windows)),
        _settings(evidence, logs), _batch(samples).join(whole, on="run_id"),
        _generated(evidence, windows).join(whole, on="run_id"),
    ]  # fmt: skip
    wide = runs.select("run_id")
    for part in parts:
        wide = wide.join(part, on="run_id", how="left", maintain_order="left")
    absent = [pl.lit(None, dtype).alias(name) for name, dtype in _schema().items() if name not in wide.columns]
    return wide.with_columns(absent).select("run_id", *(pl.col(name).cast(kind) for name, kind in _schema().items()))


def _logs_first(evidence: Evidence, windows: pl.DataFrame) -> pl.DataFrame:
    """Windows without those of metrics where a log is there of the same side: both tell of the same servers."""
    readers = dict(evidence.sources.drop_nulls("reader").select("path", "reader").iter_rows())
    file = pl.col("instance").str.split("#").list.first()
    is_dump = file.replace_strict(readers, default="", return_dtype=pl.String) == "prometheus_text"
    return windows.filter(~is_dump | is_dump.all().over("run_id", "role"))


def _schema() -> dict[str, pl.DataType]:
    return dict.fromkeys(SERVED, pl.Float64()) | dict.fromkeys(SERVED_WORDS, pl.String())


def _inside(rows: pl.DataFrame, windows: pl.DataFrame) -> pl.DataFrame:
    """Rows of servers within the window of a run, each with the run."""
    spans = windows.select("run_id", "instance", "started_at", "ended_at")
    return (
        rows.lazy()
        .join(spans.lazy(), on="instance")
        .filter(pl.col("clock").is_between("started_at", "ended_at"))
        .drop("started_at", "ended_at")
        .collect()
    )


def _of_roles(rows: pl.DataFrame, roles: tuple[str, ...]) -> pl.DataFrame:
    return rows.filter(pl.col("role").is_in(roles))


# --- events ---------------------------------------------------------------------------------------------------------


def _joining(joined: Joined, runs: pl.DataFrame) -> pl.DataFrame:
    """How many servers each run is joined to, by what shift, and how many have clocks that do not line up."""
    by_run = joined.windows.group_by("run_id").agg(
        pl.col("instance").n_unique().alias("server_instances"),
        pl.col("shift_h").get(pl.col("shift_h").abs().arg_max()).alias("clock_shift_h"),
    )
    off = joined.unjoined.group_by("experiment").agg((pl.col("why") == CLOCKS).sum().alias("unaligned_instances"))
    beside = runs.select("run_id", "experiment").join(off, on="experiment", how="left")
    told = beside.join(by_run, on="run_id", how="left").drop("experiment")
    some = pl.col("server_instances").is_not_null()
    return told.with_columns(pl.coalesce("unaligned_instances", pl.when(some).then(0)))


def _failures(evidence: Evidence, events: pl.DataFrame, windows: pl.DataFrame) -> pl.DataFrame:
    """Counts of what went wrong; 0 where a log that would tell of it was joined and says nothing."""
    kind, count = pl.col("kind"), pl.col("count")
    told = events.group_by("run_id").agg(
        _rooms(kind.is_in(FAILURES)).alias("failed"),
        (_rooms(kind.is_in([*FAILURES, "transfer_aborted"])) - _rooms(kind.is_in(FAILURES))).alias("aborted"),
        count.filter(kind == "retracted").sum().alias("retracted"),
        count.filter(kind == "crashed").sum().alias("crashed"),
        count.filter(kind == "corrupted").sum().alias("corrupted"),
        count.filter(kind == "request_rejected").sum().alias("rejected"),
    )
    logs = evidence.sources.filter(pl.col("reader").str.contains("server_log"))["path"]
    file = pl.col("instance").str.split("#").list.first()
    watched = windows.filter(file.is_in(logs.implode())).select("run_id").unique()
    seen = watched.join(told, on="run_id", how="left").join(_rejections(evidence, windows), on="run_id", how="left")
    logged = seen.select(
        "run_id",
        pl.col("failed").fill_null(0),
        pl.col("aborted").fill_null(0).alias("aborted_transfers"),
        pl.col("rejections").fill_null(0).alias("queue_full_rejections"),
        pl.col("retracted").fill_null(0).alias("retracted_requests"),
        pl.col("crashed").fill_null(0).alias("crashes"),
        pl.col("corrupted").fill_null(0),
        pl.col("rejected").fill_null(0).alias("turned_away"),
    )
    both = _side_by_side([logged, _failed_by_counters(evidence, windows)])
    # the counters hold what was given up as well
    counted = (pl.col("by_counters") - pl.col("aborted_transfers").fill_null(0)).clip(lower_bound=0)
    return both.with_columns(pl.max_horizontal("failed", counted).alias("failed_transfers")).drop(
        "failed", "by_counters"
    )


def _rooms(chosen: pl.Expr) -> pl.Expr:
    """Requests among the chosen events: one a bootstrap room, and one a line that names none."""
    subject = pl.col("subject").filter(chosen)
    return subject.drop_nulls().n_unique() + subject.is_null().sum()


def _rejections(evidence: Evidence, windows: pl.DataFrame) -> pl.DataFrame:
    """Rejections of the transfer queue within each window, at least so many.

    The count is one of the process and is printed at powers of two: M before and N within say that it was below 2 M
    when the window began and N within it.
    """
    full = evidence.events.filter(pl.col("kind") == "queue_full").select("instance", "clock", "count")
    spans = windows.select("run_id", "instance", "started_at", "ended_at").join(full, on="instance")
    within, before = pl.col("clock").is_between("started_at", "ended_at"), pl.col("clock") < pl.col("started_at")
    by_instance = spans.group_by("run_id", "instance").agg(
        pl.col("count").filter(within).max().alias("most"), pl.col("count").filter(before).max().alias("earlier")
    )
    at_least = pl.col("most") - (2 * pl.col("earlier") - 1).fill_null(0)
    return by_instance.drop_nulls("most").group_by("run_id").agg(at_least.clip(1).sum().alias("rejections"))


def dead_sessions(evidence: Evidence, windows: pl.DataFrame) -> pl.DataFrame:
    """Sessions that died in or before each window and had not come back at its end, each with its line.

    A server that started again since has none of its old sessions.
    """
    about = pl.col("kind").is_in(["session_failed", "session_recovered"])
    told = evidence.events.filter(about).select("instance", "clock", "kind", "subject", *PLACE)
    ready = evidence.events.filter(pl.col("kind") == "ready").select("instance", pl.col("clock").alias("ready_at"))
    spans = windows.select("run_id", "instance", "ended_at").join(ready, on="instance", how="left")
    since = spans.group_by("run_id", "instance", "ended_at").agg(
        pl.col("ready_at").filter(pl.col("ready_at") <= pl.col("ended_at")).max()
    )
    lived = since.join(told, on="instance").filter(
        pl.col("clock") <= pl.col("ended_at"), pl.col("ready_at").is_null() | (pl.col("clock") >= pl.col("ready_at"))
    )
    last = lived.sort("clock", "source_line").unique(["run_id", "instance", "subject"], keep="last")
    return last.filter(pl.col("kind") == "session_failed")


def _sessions(evidence: Evidence, windows: pl.DataFrame) -> pl.DataFrame:
    dead = dead_sessions(evidence, windows).group_by("run_id").agg(pl.len().alias("sessions_failed"))
    logged = _of_roles(windows, ("prefill", "decode", "colocated")).select("run_id").unique()
    return logged.join(dead, on="run_id", how="left").with_columns(pl.col("sessions_failed").fill_null(0))


def _restarts(evidence: Evidence, windows: pl.DataFrame) -> pl.DataFrame:
    """Times that a server became ready within a window, having been ready before."""
    again = _ready_again(evidence)
    inside = _inside(again, windows).group_by("run_id").agg(pl.len().alias("restarts"))
    logged = _of_roles(windows, ("prefill", "decode", "colocated")).select("run_id").unique()
    return logged.join(inside, on="run_id", how="left").with_columns(pl.col("restarts").fill_null(0))


def _ready_again(evidence: Evidence) -> pl.DataFrame:
    ready = evidence.events.filter(pl.col("kind") == "ready").sort("instance", "clock", "source_line")
    return ready.filter(pl.int_range(pl.len()).over("instance") > 0)


def _answers(evidence: Evidence, events: pl.DataFrame, windows: pl.DataFrame, runs: pl.DataFrame) -> pl.DataFrame:
    """HTTP answers where each request is seen once: at the router, else at the servers behind it."""
    http = _at_entry(events).join(_cut_off(evidence, windows, runs), on=["run_id", "role"], how="left", coalesce=False)
    status, cut = pl.col("subject").cast(pl.Int64, strict=False), pl.col("run_id_right").is_not_null()
    generating = events.filter(pl.col("kind") == "http", pl.col("role").is_in(_GENERATING), pl.col("subject") == "200")
    answered = generating.group_by("run_id").agg(pl.col("count").sum().alias("decode_served_requests"))
    told = http.group_by("run_id").agg(
        pl.when(~cut.any()).then(pl.col("count").filter(status == 200).sum()).alias("served_requests"),
        pl.col("count").filter(status >= 500).sum().alias("server_errors"),
        pl.col("count").filter(status.is_in([429, 503])).sum().alias("rejected_requests"),
    )
    return _side_by_side([told, answered])


def _at_entry(events: pl.DataFrame) -> pl.DataFrame:
    http = events.filter(pl.col("kind") == "http", pl.col("role").is_in(_ENTRIES))
    place = pl.col("role").replace_strict({role: at for at, role in enumerate(_ENTRIES)}, return_dtype=pl.Int64)
    return http.with_columns(place.alias("place")).filter(pl.col("place") == pl.col("place").min().over("run_id"))


# --- gauges ---------------------------------------------------------------------------------------------------------


def _gauge(samples: pl.DataFrame, metric: str, roles: tuple[str, ...]) -> pl.DataFrame:
    return _of_roles(samples, roles).filter(pl.col("metric") == metric)


def _whole(evidence: Evidence, windows: pl.DataFrame, runs: pl.DataFrame) -> pl.DataFrame:
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
    each = _of_roles(windows, _GENERATING).select("run_id", "instance")
    for frame in (replicas, nodes, seen):
        each = each.join(frame, on="instance", how="left")
    by_run = each.group_by("run_id").agg(
        ((pl.col("ranks") >= pl.col("value").fill_null(1)).fill_null(True).all() | _all_nodes()).alias("all_ranks"),
        pl.len().alias("servers"),
    )
    decode_servers = pl.col("topology").str.extract(r"p(\d+)d").cast(pl.Int64, strict=False)
    told = by_run.join(runs.select("run_id", decode_servers.alias("expected")), on="run_id")
    whole = told.filter("all_ranks", pl.col("servers") >= pl.col("expected").fill_null(1)).select("run_id")
    return whole.join(_cut_off(evidence, _of_roles(windows, _GENERATING), runs), on="run_id", how="anti")


def _all_nodes() -> pl.Expr:
    """Whether the logs of a server on several nodes have all of its replicas together, each its own."""
    return (pl.len() >= pl.col("nodes").max()) & (pl.col("ranks").sum() >= pl.col("value").max())


def _cut_off(evidence: Evidence, windows: pl.DataFrame, runs: pl.DataFrame) -> pl.DataFrame:
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


def _by_rank(samples: pl.DataFrame) -> pl.DataFrame:
    """Each gauge of each rank, and the share of the run that its log covers: a rotated log is one server in parts."""
    first, last = pl.col("first"), pl.col("last")
    by_rank = _of_roles(samples, _GENERATING).group_by("run_id", "instance", "rank", "metric").agg(
        pl.col("value_mean").median().alias("median"), pl.col("value_max").max().alias("most"),
        pl.col("clock").min().alias("first"), pl.col("clock").max().alias("last"),
    )  # fmt: skip
    whole = last.max().over("run_id", "metric") - first.min().over("run_id", "metric")
    covers = ((last - first).dt.total_seconds() + 1) / (whole.dt.total_seconds() + 1)
    return by_rank.with_columns(covers.alias("covers"))


def _batch(samples: pl.DataFrame) -> pl.DataFrame:
    """How many requests ran on the servers that generate, all their ranks together."""
    by_rank = _by_rank(samples).with_columns(pl.col("median") * pl.col("covers"))
    median = _across(by_rank, "running_requests", "median", "decode_running_median")
    return _side_by_side([median, _across(by_rank, "running_requests", "most", "decode_running_max")])


def _pressure(samples: pl.DataFrame) -> pl.DataFrame:
    """What waited on the servers that generate, and how full their pools were."""
    mine, by_rank = _of_roles(samples, _GENERATING), _by_rank(samples)
    across = [
        _across(by_rank, "prealloc_requests", "most", "decode_waiting_max"),
        _across(by_rank, "queued_requests", "most", "decode_queued_max"),
        _across(by_rank, "kv_used_ratio", "most", "decode_kv_used_ratio_max"),
    ]
    waits = mine.filter(pl.col("metric") == "prealloc_requests").group_by("run_id").agg(
        (pl.col("value_max") > 0).mean().alias("decode_waiting_ratio")
    )  # fmt: skip
    graphs = mine.filter(pl.col("metric") == "cuda_graph").group_by("run_id").agg(
        (1 - (pl.col("value_mean") * pl.col("n")).sum() / pl.col("n").sum()).alias("cuda_graph_off_ratio")
    )  # fmt: skip
    return _side_by_side([*across, waits, graphs])


def _across(by_rank: pl.DataFrame, metric: str, statistic: str, name: str) -> pl.DataFrame:
    """One number a run, as the gauge adds up over ranks and instances."""
    value = pl.col(statistic)
    combined = {"sum": value.sum(), "max": value.max(), "mean": value.mean()}[GAUGES[metric].across]
    return by_rank.filter(pl.col("metric") == metric).group_by("run_id").agg(combined.alias(name))


def _side_by_side(parts: list[pl.DataFrame]) -> pl.DataFrame:
    wide, *rest = parts
    for part in rest:
        wide = wide.join(part, on="run_id", how="full", coalesce=True)
    return wide


def _generated(evidence: Evidence, windows: pl.DataFrame) -> pl.DataFrame:
    """Tokens that the servers generated by their own count, and what that may leave out.

    A decode line of SGLang gives the mean speed since the line before, idle time included: as many steps as lie between
    two lines may stand before the first and after the last, and a server without a line in its window did no 40 steps
    in it. vLLM gives the mean of a fixed time, busy or not. Where a counter was scraped before and after, it is the
    better witness.
    """
    accepted = _gauge(_inside(evidence.samples, windows), "accept_length", _GENERATING).group_by("run_id").agg(
        pl.col("value_max").max().alias("server_accept_length")
    )  # fmt: skip
    lines = _lines_of_speed(evidence)
    by_steps, by_time = lines.filter(~pl.col("is_timed")), lines.filter("is_timed")
    logged = pl.concat([_by_steps(evidence, by_steps, windows, accepted), _by_time(by_time, windows)], how="diagonal")
    known = logged.group_by("run_id").agg(
        pl.col("logged", "surely", "unlogged_tok").sum(), pl.col("unlogged_steps").max().fill_null(0)
    )
    told = _side_by_side([known, accepted, _counted(evidence, windows)])
    counted = pl.col("counted").is_not_null()
    return told.select(
        "run_id",
        pl.coalesce("counted", "logged").alias("server_output_tok"),
        pl.coalesce("counted", "surely").alias("server_output_tok_least"),
        pl.when(counted).then(0).otherwise("unlogged_steps").alias("server_unlogged_steps"),
        pl.when(counted).then(0).otherwise("unlogged_tok").alias("server_unlogged_tok"),
        "server_accept_length",
    )


def _lines_of_speed(evidence: Evidence) -> pl.DataFrame:
    """Each second with a speed of the servers' logs: its batch, the time since the one before, and whose way it is."""
    readers = dict(evidence.sources.drop_nulls("reader").select("path", "reader").iter_rows())
    file = pl.col("instance").str.split("#").list.first()
    reader = file.replace_strict(readers, default="", return_dtype=pl.String)
    keys = ["instance", "rank", "clock"]
    running = evidence.samples.filter(pl.col("metric") == "running_requests").select(
        *keys, pl.col("value_max").alias("batch")
    )
    speeds = _of_roles(evidence.samples, _GENERATING).filter(
        pl.col("metric") == "gen_throughput_tok_per_s", ~reader.str.contains("prometheus")
    )
    gap_s = pl.col("clock").diff().over("instance", "rank", order_by="clock").dt.total_seconds()
    return speeds.join(running, on=keys, how="left").with_columns(
        gap_s.alias("gap_s"), reader.str.contains("vllm").alias("is_timed")
    )


def _by_steps(evidence: Evidence, lines: pl.DataFrame, windows: pl.DataFrame, accepted: pl.DataFrame) -> pl.DataFrame:
    """Of servers that print a line each so many steps: what the lines say, what is sure of it, what lies outside."""
    stated = evidence.settings.filter(pl.col("name") == "log_steps").group_by("instance").agg(
        pl.col("value").max().alias("stated")
    )  # fmt: skip
    # else: what a line holds of the batch that it prints is how many steps lie between two, where most say more than 40
    each = (pl.col("value_mean") * pl.col("gap_s") / (pl.col("n") * pl.col("batch"))).filter(pl.col("batch") > 0)
    seen = pl.when(each.count() >= _FEW_LINES).then(each.quantile(0.25)).over("instance")
    steps = pl.coalesce("stated", pl.when(seen > _SURELY_MORE * _STEPS_A_LINE).then(seen), pl.lit(_STEPS_A_LINE))
    lines = lines.join(stated, on="instance", how="left").with_columns(steps.cast(pl.Float64).alias("steps"))
    inside = _inside(lines, windows).join(accepted, on="run_id", how="left")
    made, most_batch = pl.col("value_mean") * pl.col("gap_s"), pl.col("batch").max().over("run_id", "instance", "rank")
    a_step = pl.col("n") * pl.col("server_accept_length").fill_null(1)
    # the first line after idle time may say the speed of a moment: no line holds more than its steps
    bound = 2 * pl.col("steps") * a_step * most_batch
    sums = inside.group_by("run_id").agg(
        pl.when(made.is_not_null()).then(pl.min_horizontal(made, bound)).sum().alias("logged"),
        pl.min_horizontal(made, pl.coalesce("stated", pl.lit(_STEPS_A_LINE)) * pl.col("n") * pl.col("batch"))
        .sum()
        .alias("surely"),
        pl.len().alias("lines"),
    )
    logs = windows.join(lines.select("instance", "steps").unique(), on="instance")
    told = logs.group_by("run_id").agg(pl.col("steps").max()).join(sums, on="run_id", how="left")
    open_ends = pl.when(pl.col("lines").is_null()).then(1).otherwise(2)
    return told.select(
        "run_id",
        pl.col("logged", "surely").fill_null(0),
        (open_ends * pl.col("steps")).alias("unlogged_steps"),
        pl.lit(0.0).alias("unlogged_tok"),
    )


def _by_time(lines: pl.DataFrame, windows: pl.DataFrame) -> pl.DataFrame:
    """Of servers that print a line each so many seconds, each for the time before it: the first after a window too."""
    period = pl.col("gap_s").median().over("instance").fill_null(_SECONDS_A_LINE)
    span_s = pl.col("gap_s").fill_null(period).clip(upper_bound=period)
    lines = lines.with_columns(pl.duration(seconds=span_s).alias("span"))
    told = windows.select("run_id", "instance", "started_at", "ended_at").join(lines, on="instance")
    clock, span = pl.col("clock"), pl.col("span")
    made = pl.col("value_mean") * span.dt.total_seconds()
    within = (clock >= pl.col("started_at")) & (clock <= pl.col("ended_at"))
    behind = (clock > pl.col("ended_at")) & (clock - span < pl.col("ended_at"))
    by_rank = told.group_by("run_id", "instance", "rank").agg(
        made.filter(within).sum().alias("logged"),
        pl.min_horizontal(made, _STEPS_A_LINE * pl.col("n") * pl.col("batch")).filter(within).sum().alias("surely"),
        # the last seconds stand in no line where the log ends before
        pl.coalesce(made.filter(behind).first(), made.filter(within).max(), 0.0).alias("unlogged_tok"),
    )
    return by_rank.group_by("run_id").agg(pl.col("logged", "surely", "unlogged_tok").sum())


def _counted(evidence: Evidence, windows: pl.DataFrame) -> pl.DataFrame:
    """Tokens by the servers' own counters: (run_id, counted)."""
    growth = _growth(evidence, windows, "generated_tok_total")
    return growth.group_by("run_id").agg(
        pl.when(pl.col("grown").is_not_null().all() & (pl.col("grown") >= 0).all()).then(pl.col("grown").sum())
        .alias("counted")
    )  # fmt: skip


def _failed_by_counters(evidence: Evidence, windows: pl.DataFrame) -> pl.DataFrame:
    """Failed transfers and bootstraps by the servers' own counters, both sides counted once: (run_id, by_counters)."""
    growth = pl.concat([_growth(evidence, windows, name) for name in _FAILED_TOTALS])
    sure = growth.filter(pl.col("grown") >= 0).group_by("run_id", "role").agg(pl.col("grown").sum())
    return sure.group_by("run_id").agg(pl.col("grown").max().alias("by_counters"))


def _growth(evidence: Evidence, windows: pl.DataFrame, counter: str) -> pl.DataFrame:
    """Growth of a counter from the last scrape before a window to the first one after it, a row a run and rank."""
    scraped = evidence.samples.filter(pl.col("metric") == counter).select("instance", "rank", "clock", "value_max")
    spans = windows.select("run_id", "instance", "role", "started_at", "ended_at").join(scraped, on="instance")
    before, after = pl.col("clock") <= pl.col("started_at"), pl.col("clock") >= pl.col("ended_at")
    return spans.sort("clock").group_by("run_id", "role", "instance", "rank").agg(
        (pl.col("value_max").filter(after).first() - pl.col("value_max").filter(before).last()).alias("grown")
    )  # fmt: skip


def _prefilled(samples: pl.DataFrame) -> pl.DataFrame:
    mine = _of_roles(samples, _FILLING)
    total = pl.col("value_mean") * pl.col("n")
    return mine.group_by("run_id").agg(
        _known(total, "new_tok").alias("prefill_new_tok"), _known(total, "cached_tok").alias("prefill_cached_tok")
    )


def _known(total: pl.Expr, metric: str) -> pl.Expr:
    chosen = pl.col("metric") == metric
    return pl.when(chosen.any()).then(total.filter(chosen).sum())


def _throttled(samples: pl.DataFrame) -> pl.DataFrame:
    held = samples.filter(pl.col("metric") == "throttled")
    return held.group_by("run_id").agg((pl.col("value_max") > 0).mean().alias("throttled_ratio"))


# --- settings -------------------------------------------------------------------------------------------------------


def _settings(evidence: Evidence, windows: pl.DataFrame) -> pl.DataFrame:
    """What the servers of each side run by: pools, GPUs and precisions, all instances of a side together."""
    sides = {"decode": _GENERATING, "prefill": _FILLING}
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
    decode = told.filter(pl.col("role").is_in(_GENERATING))
    parts.append(
        decode.group_by("run_id").agg(
            pl.when((pl.col("role") == "decode").any())
            .then(pl.col("reserved_tok").max().fill_null(PD_RESERVED_TOK))
            .alias("decode_reserved_tok"),
            pl.col("precision").drop_nulls().first().alias("weights_precision"),
            pl.col("kv_bytes").max().alias("kv_bytes_per_value"),
        )
    )
    return _side_by_side(parts)


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


# --- lines ----------------------------------------------------------------------------------------------------------

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
    "decode_pool_tok": ("pool_tok", _GENERATING), "prefill_pool_tok": ("pool_tok", _FILLING),
    "decode_reserved_tok": ("reserved_tok", _GENERATING), "decode_gpus": ("tp_size", _GENERATING),
    "prefill_gpus": ("tp_size", _FILLING), "weights_precision": ("quantization", _GENERATING),
    "kv_bytes_per_value": ("kv_dtype", _GENERATING),
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
    events, samples = (_inside(rows, windows).sort(first) for rows in (evidence.events, evidence.samples))
    again = _inside(_ready_again(evidence), windows).sort(first)
    for fact, kinds in _BY_EVENT.items():
        chosen = (again if fact == "restarts" else events).filter(
            pl.col("kind").is_in(kinds), _OF_STATUS.get(fact, True)
        )
        # a count that was reached at last stands in the last line
        at_last = fact == "queue_full_rejections"
        yield _kept(chosen.sort("count", descending=True, maintain_order=True) if at_last else chosen, fact)
    totals = evidence.samples.filter(pl.col("metric").is_in(_FAILED_TOTALS), pl.col("value_max") > 0)
    spans = windows.select("run_id", "instance", "started_at")
    later = totals.join(spans, on="instance").filter(pl.col("clock") >= pl.col("started_at")).sort(first)
    told = events.filter(pl.col("kind").is_in(FAILURES))["run_id"].unique()
    yield _kept(later.filter(~pl.col("run_id").is_in(told.implode())), "failed_transfers")
    yield _kept(dead_sessions(evidence, windows), "sessions_failed")
    for fact, metric in _BY_GAUGE.items():
        roles = _FILLING if fact.startswith("prefill") else _GENERATING
        chosen = samples.filter(pl.col("metric") == metric)
        mine = chosen if fact == "throttled_ratio" else _of_roles(chosen, roles)
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
