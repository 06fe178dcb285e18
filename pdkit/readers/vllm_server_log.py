"""Logs of vLLM's servers: colocated, or the producer or consumer of a split."""

from datetime import timedelta

import polars as pl

from pdkit.evidence import Evidence, table
from pdkit.parts import reader
from pdkit.server_lines import (
    ACCESS,
    VLLM,
    answers,
    clocked,
    own_text,
    paired,
    per_second,
    placed,
    quoted_texts,
    with_rejections,
)
from pdkit.source import Source
from pdkit.units import PERCENT_PER_RATIO

_PROCESS = r"\([A-Za-z]\w* [^()]*pid=\d+[^()]*\) "
_DAY_AND_TIME = r"\d\d-\d\d \d\d:\d\d:\d\d"
_SAID = (
    r"(?:Engine \d+: )?Avg prompt throughput: |SpecDecoding metrics: |KV Transfer metrics: |non-default args: |"
    r"Initializing an? (?:V\d )?LLM engine |GPU KV cache size: |Starting vLLM |vLLM API server version |"
    r"EngineCore (?:failed|encountered)|Failing \d+ request|Recovered from KV load failure"
)
_SIGNS = rf'{VLLM}(?:{_SAID})|{_PROCESS}INFO: +[\w.:-]+:\d+ - "[A-Z]+ /'
_SIGN_WORDS = (
    "Avg prompt", "SpecDecoding", "KV Transfer", "non-default args", "LLM engine", "GPU KV cache", "Starting vLLM",
    "vLLM API", "EngineCore", "Failing ", "Recovered", "pid=",
)  # fmt: skip

# what a line of gauges calls each of them, since the first version
_GAUGES = {
    "Running": "running_requests", "Waiting": "queued_requests", "Pending": "queued_requests",
    "GPU KV cache usage": "kv_used_ratio", "Avg generation throughput": "gen_throughput_tok_per_s",
    "Avg prompt throughput": "input_throughput_tok_per_s", "Mean acceptance length": "accept_length",
    "Avg KV transfer time (ms)": "kv_transfer_ms", "Avg xfer time (ms)": "kv_transfer_ms",
    "Throughput (MB/s)": "kv_transfer_gb_per_s",
}  # fmt: skip
_GAUGE_WORDS = ["Avg prompt throughput: ", "SpecDecoding metrics: ", "KV Transfer metrics: "]
_UNITS = r" tokens/s| reqs|%|,"
_PAIR = rf"[A-Z][\w /()]*: [0-9.]+(?:{_UNITS})"
_WHOLE = r"Avg generation throughput: [0-9.]+ tokens/s, Running: [0-9]+ reqs, .*GPU KV cache usage: [0-9.]+%"
_PER = {"kv_used_ratio": PERCENT_PER_RATIO, "kv_transfer_gb_per_s": 1000.0}  # from %, from MB/s
_OF_TRANSFERS = ("kv_transfer_ms", "kv_transfer_gb_per_s")  # 0 where nothing was moved since the line before

# what a line tells of, by words that it holds: the first that fits
_KINDS = {
    "ready": r"\] Starting vLLM ",
    "transfer_failed": r"Failing \d+ request\(?s?\)? due to KV load failure",
    "transfer_aborted": r"Recovered from KV load failure|Releasing expired KV blocks|KV transfer timeout\. Force",
    "retracted": r"Running: .*, Preemptions: [1-9]",
    "transport_error": r"(?i)\bnixl\b.*\bfailed\b|NIXL_ERR",
    "crashed": r"EngineCore (?:failed to start|encountered a fatal)|proc \S+ died unexpectedly|"
    r"OutOfMemoryError|CUDA out of memory",
}
_EVENT_WORDS = [
    "Starting vLLM ", "Preemptions: ", "due to KV load failure", "Recovered from KV load failure", "expired KV blocks",
    "Force recycle", "NIXL", "nixl", "Nixl", "EngineCore ", "died unexpectedly", "OutOfMemoryError", "out of memory",
]  # fmt: skip
_CRASHES = {  # the first that a crash shows is its name
    "out_of_memory": r"OutOfMemoryError|CUDA out of memory",
    "start_failed": "EngineCore failed to start",
    "engine_died": r"EngineCore encountered a fatal|Engine core proc",
    "worker_died": r"died unexpectedly",
}
_REQUESTS = r"(?:req_id=|for request |Request IDs: )(\{[^}]*\}|[\w.:-]+)"
_OWN_SUFFIX = r"-[0-9a-f]{8}$"  # each side puts eight digits of its own behind the name of a request
_COUNT = r"(?:Failing|failure:) (\d+) request"
_AGAIN = timedelta(seconds=60)  # lines of one start or one crash, by several processes

# what a server says that it runs by
_SETTINGS = {
    "engine_version": r"LLM engine \(v([^)\s]+)\)|vLLM API server version (\S+)",
    "model_path": r"with config: model='([^']*)'|'model': '([^']*)'",
    "dtype": r" dtype=(?:torch\.)?(\w+)",
    "quantization": r"\bquantization=([\w.-]+)",
    "kv_dtype": r"kv_cache_dtype=([\w.]+)",
    "tp_size": r"tensor_parallel_size(?:=|': )(\d+)",
    "pp_size": r"pipeline_parallel_size(?:=|': )(\d+)",
    "dp_size": r"data_parallel_size(?:=|': )(\d+)",
    "context_tok": r"max_seq_len=(\d+)",
    "max_running_requests": r"'max_num_seqs': (\d+)",
    "chunked_prefill_tok": r"'max_num_batched_tokens': (\d+)|enabled with max_num_batched_tokens=(\d+)",
    "prefix_cache": r"enable_prefix_caching=(True|False)",
    "speculative": r"SpeculativeConfig\(method='(\w+)'",
    "device": r"device_config=(\w+)",
    "transfer_backend": r"""['"]?kv_connector['"]?[=:] ?['"](\w+)""",
    "disaggregation_mode": r"""['"]?kv_role['"]?[=:] ?['"]kv_(\w+)""",
    "pool_tok": r"GPU KV cache size: ([0-9,]+) tokens",
    "weights_gb": r"Model loading took ([0-9.]+) GiB",
}
_SETTING_WORDS = [
    "LLM engine (v", "API server version", "non-default args: ", "GPU KV cache size: ", "Model loading took ",
    "Chunked prefill is enabled",
]  # fmt: skip
_NOTHING = ("None", "null", "auto")
_ROLES = {"producer": "prefill", "consumer": "decode"}  # `both` says neither
_TRUTHS = {"True": "1", "False": "0"}
_GB_PER_GIB = 1024**3 / 1e9

_DATE = r"\b(20\d\d-\d\d-\d\d)[T ]\d\d:\d\d:\d\d"
_DATE_WITHIN = 160  # characters: a date further on is part of what is said
_YEAR_TELLS = timedelta(days=31)  # a date that is further off is no clock of this log


@reader(title="vLLM server: log of a colocated server, or of one side of a split", signs=_SIGNS, words=_SIGN_WORDS)
def read(source: Source) -> Evidence:
    """What a server of vLLM prints of its engine every ten seconds, of its settings and of its troubles.

    Whether it is a prefill or a decode server is told by `kv_role` (kv_producer, kv_consumer); with `kv_both`, and in a
    log without its arguments, the role stays unknown. Access lines are counted by status. Requests that failed since
    their KV cache did not arrive are kept by name, without the eight digits that each side adds; a cache that was
    computed again, or that nobody fetched in time, is an aborted transfer: a symptom. Several lines of one crash are
    one crash.

    Its clock has no year: that is taken from the nearest line with a full date (FlashInfer's, a container's), and
    where there is none within a month of it, the clock is null.

    Left out by the tool: the year; a clock on access lines, so that these are counted for the whole file; whether
    `Preemptions: N` counts from the start or from the line before, so that a line with it stands for one request at
    least; how many tokens the prefix cache had (its hit rate has no base and is not kept). `Waiting` holds `Deferred`,
    requests whose KV cache is on its way among them. An idle server prints nothing.
    """
    told, events, answered, dated = (source.asked(ask) for ask in (_periodic, _events, _answers, _dated))
    samples, settings, damaged = (ask(told.lazy()).collect() for ask in (_samples, _settings, _damaged))
    seen = {
        "samples": _ranked(samples),
        "events": pl.concat([_once(quoted_texts(events)), with_rejections(answered)], how="diagonal"),
        "settings": settings,
    }
    role = pl.lit(_role(settings), pl.String).alias("role")
    instance = pl.lit(source.name).alias("instance")
    tables = {
        name: table(name, placed(_with_year(rows, dated), source.name).with_columns(role, instance))
        for name, rows in seen.items()
    }
    return Evidence.of(
        **tables, unread=table("unread", quoted_texts(damaged).with_columns(source_file=pl.lit(source.name)))
    )


# --- what is asked of the file --------------------------------------------------------------------------------------


def _stamped(lines: pl.LazyFrame, words: list[str]) -> pl.LazyFrame:
    """Lines of vLLM that hold one of these words, with `second`: month, day and time."""
    text = pl.col("text")
    chosen = lines.filter(text.str.contains_any(words), text.str.contains(VLLM))
    return chosen.with_columns(
        own_text(), text.str.extract(rf"[A-Z] ({_DAY_AND_TIME})(?:\.\d+)? \[?[\w./-]+:\d+\] ").alias("second")
    )


def _periodic(lines: pl.LazyFrame) -> pl.LazyFrame:
    """The few lines of gauges and settings."""
    return _stamped(lines, [*_GAUGE_WORDS, *_SETTING_WORDS])


def _holding(told: pl.LazyFrame, words: list[str]) -> pl.LazyFrame:
    return told.filter(pl.col("text").str.contains_any(words))


def _samples(told: pl.LazyFrame) -> pl.LazyFrame:
    text = pl.col("text")
    # the lines of transfers write `key=value`
    pairs = (text.str.replace_all("=", ": ", literal=True) + ",").str.extract_all(_PAIR)
    bare = pairs.list.eval(pl.element().str.replace(rf"(?:{_UNITS})$", ""))
    engine = text.str.extract(r"Engine (\d+): ").cast(pl.Int64, strict=False)
    chosen = _holding(told, _GAUGE_WORDS).with_columns(bare.list.join(", ").alias("text"), engine.alias("engine"))
    metric = pl.col("key").replace_strict(_GAUGES, default=None, return_dtype=pl.String)
    values = paired(chosen, "second", "engine", keys=_GAUGES)
    known = per_second(values, "second", "engine", "key").with_columns(metric.alias("metric"))
    moved = ~pl.col("metric").is_in(_OF_TRANSFERS) | (pl.col("value_max") > 0)
    per = pl.col("metric").replace_strict(_PER, default=1.0, return_dtype=pl.Float64)
    return known.filter(moved).with_columns(pl.col("value_min", "value_mean", "value_max") / per).drop("key")


def _damaged(told: pl.LazyFrame) -> pl.LazyFrame:
    cut = _holding(told, _GAUGE_WORDS[:1]).filter(~pl.col("text").str.contains(_WHOLE))
    reason = pl.lit("a line of gauges that is not whole").alias("reason")
    return cut.select(reason, "text", pl.col("line").cast(pl.Int64).alias("source_line"))


def _events(lines: pl.LazyFrame) -> pl.LazyFrame:
    """Things that one row a line and request that it names."""
    text, kind = pl.col("text"), pl.col("kind")
    kinds = pl.coalesce(pl.when(text.str.contains(pattern)).then(pl.lit(name)) for name, pattern in _KINDS.items())
    crash = pl.coalesce(pl.when(text.str.contains(pattern)).then(pl.lit(name)) for name, pattern in _CRASHES.items())
    requests = text.str.extract(_REQUESTS).str.extract_all(r"[\w.:-]+")
    subjects = pl.when(kind.str.starts_with("transfer_")).then(requests)
    count = text.str.extract(_COUNT).cast(pl.Float64, strict=False).fill_null(1.0)
    told = _stamped(lines, _EVENT_WORDS).with_columns(kinds.alias("kind")).drop_nulls("kind").with_columns(
        subjects.alias("subjects"), count.alias("count"), crash.alias("crash")
    )  # fmt: skip
    each = told.with_columns(pl.when(pl.col("subjects").list.len() > 0).then("subjects").alias("subject")).explode(
        "subject"
    )
    named = pl.col("subject").str.replace(_OWN_SUFFIX, "")
    other = pl.when(kind == "crashed").then("crash").when(kind == "transport_error").then(pl.lit("nixl"))
    one = each.with_columns(
        pl.coalesce(named, other).alias("subject"),
        pl.when(named.is_null()).then("count").otherwise(1.0).alias("count"),
        # many lines a second say that nothing can be sent
        pl.when(kind != "transport_error").then("line").alias("apart"),
    )
    first = pl.col("line").arg_min()
    return one.group_by("second", "kind", "subject", "apart").agg(
        pl.col("count").sum(), pl.col("text").get(first), pl.col("line").min().cast(pl.Int64).alias("source_line")
    ).drop("apart")  # fmt: skip


def _answers(lines: pl.LazyFrame) -> pl.LazyFrame:
    """Access lines of its processes, and of a version that names none: these have no clock."""
    others = pl.col("text").str.contains(r"\[\d{4}-\d\d-\d\d")
    chosen = lines.filter(pl.col("text").str.contains(ACCESS, literal=True), ~others)
    return answers(chosen, pl.lit(None, pl.String))


def _settings(told: pl.LazyFrame) -> pl.LazyFrame:
    """What is said of each setting, once a value: every process says the same."""
    text = pl.col("text")
    said = [
        pl.coalesce(text.str.extract(pattern, group + 1) for group in range(pattern.count("|") + 1)).alias(name)
        for name, pattern in _SETTINGS.items()
    ]
    long = _holding(told, _SETTING_WORDS).select("line", "second", *said).unpivot(
        list(_SETTINGS), index=["line", "second"], variable_name="name", value_name="text"
    )  # fmt: skip
    plain = text.str.replace_all(",", "", literal=True).replace(_ROLES | _TRUTHS)
    known = long.filter(text.is_not_null(), ~text.is_in(_NOTHING)).with_columns(plain.alias("text"))
    each = known.group_by("name", "text").agg(
        pl.col("second").get(pl.col("line").arg_min()), pl.col("line").min().cast(pl.Int64).alias("source_line")
    )
    number = text.cast(pl.Float64, strict=False)
    scale = pl.when(pl.col("name") == "weights_gb").then(_GB_PER_GIB).otherwise(1.0)
    return each.with_columns((number * scale).alias("value"), pl.when(number.is_null()).then("text").alias("text"))


def _dated(lines: pl.LazyFrame) -> pl.LazyFrame:
    """Full dates near the start of a line: each day with its first line and its last."""
    day = pl.col("text").str.slice(0, _DATE_WITHIN).str.extract(_DATE)
    days = (
        lines.filter(pl.col("text").str.contains(r"20\d\d-\d\d-\d\d"))
        .select("line", day.alias("day"))
        .drop_nulls("day")
    )
    return days.group_by("day").agg(pl.col("line").min().alias("first"), pl.col("line").max().alias("last"))


# --- what follows from the whole file -------------------------------------------------------------------------------


def _ranked(samples: pl.DataFrame) -> pl.DataFrame:
    """The engines as ranks, where there are several."""
    several = samples["engine"].n_unique() - samples["engine"].has_nulls() > 1
    rank = pl.format("DP{}", "engine").fill_null("") if several else pl.lit("")
    return samples.with_columns(rank.alias("rank")).drop("engine")


def _role(settings: pl.DataFrame) -> str | None:
    """Its side of the split; colocated where its arguments name no transfer of KV caches."""
    said = dict(settings.select("name", "text").iter_rows())
    if "transfer_backend" in said or "disaggregation_mode" in said:
        roles = set(settings.filter(pl.col("name") == "disaggregation_mode")["text"])
        return roles.pop() if len(roles) == 1 and roles <= set(_ROLES.values()) else None
    return "colocated" if "model_path" in said else None


def _once(events: pl.DataFrame) -> pl.DataFrame:
    """Starts and crashes once each, whoever of its processes says so; a crash by the most telling of its lines."""
    kinds = ("ready", "crashed")
    rest = events.filter(~pl.col("kind").is_in(kinds))
    # no year yet, and none is needed: a leap year has every day
    clock = clocked(pl.lit("2000-") + pl.col("second"))
    names = list(_CRASHES)
    worth = pl.col("subject").replace_strict(names, range(len(names)), default=len(names), return_dtype=pl.Int64)
    single = [
        events.filter(pl.col("kind") == kind)
        .sort("source_line")
        .with_columns((clock.diff().abs() > _AGAIN).fill_null(False).cum_sum().alias("which"))
        .group_by("which", maintain_order=True)
        .agg(
            pl.col("second", "kind", "text", "count", "source_line").first(),
            pl.col("subject").get(worth.arg_min()),
        )
        .select(events.columns)
        for kind in kinds
    ]
    return pl.concat([rest, *single])


def _with_year(rows: pl.DataFrame, dated: pl.DataFrame) -> pl.DataFrame:
    """With the year of the nearest date in `second`; null where no date is near."""
    days = (
        dated.unpivot(["first", "last"], index="day", value_name="line")
        .select(pl.col("line").cast(pl.Int64), clocked(pl.col("day") + " 00:00:00").alias("day"))
        .drop_nulls()
        .sort("line")
    )
    near = rows.sort("source_line").join_asof(days, left_on="source_line", right_on="line", strategy="nearest")
    tried = [clocked(pl.format("{}-{}", pl.col("day").dt.year() + years, "second")) for years in (-1, 0, 1)]
    off = [(clock - pl.col("day")).abs() for clock in tried]
    clock = pl.coalesce(
        pl.when(gap == pl.min_horizontal(off), gap <= _YEAR_TELLS).then(at) for gap, at in zip(off, tried, strict=True)
    )
    return near.with_columns(clock.dt.strftime("%Y-%m-%d %H:%M:%S").alias("second")).drop("line", "day", strict=False)
