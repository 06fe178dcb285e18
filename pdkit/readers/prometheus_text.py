"""Dumps of `/metrics` in Prometheus' text format: one scrape or many, of SGLang, vLLM, a router or GPUs."""

import polars as pl

from pdkit.evidence import Evidence, table
from pdkit.parts import reader
from pdkit.server_lines import STAMP, clocked, own_text, quoted_texts
from pdkit.source import PREFIX, Source
from pdkit.units import MS_PER_S

# what each version calls a gauge or a counter; of several names the largest counts
_NAMES = {
    "sglang:num_running_reqs": "running_requests",
    "sglang:num_queue_reqs": "queued_requests",
    "sglang:num_used_tokens": "kv_used_tok",
    "sglang:kv_used_tokens": "kv_used_tok",
    "sglang:token_usage": "kv_used_ratio",
    "sglang:gen_throughput": "gen_throughput_tok_per_s",
    "sglang:spec_accept_length": "accept_length",
    "sglang:is_cuda_graph": "cuda_graph",
    "sglang:num_decode_prealloc_queue_reqs": "prealloc_requests",
    "sglang:num_decode_transfer_queue_reqs": "transferring_requests",
    "sglang:num_prefill_prealloc_queue_reqs": "bootstrap_requests",  # to 0.5.11
    "sglang:num_prefill_bootstrap_queue_reqs": "bootstrap_requests",  # from 0.5.12
    "sglang:num_prefill_infight_queue_reqs": "transferring_requests",  # 0.4.6 spells it so
    "sglang:num_prefill_inflight_queue_reqs": "transferring_requests",
    "sglang:kv_transfer_latency_ms": "kv_transfer_ms",  # a gauge to 0.5.9
    "sglang:kv_transfer_speed_gb_s": "kv_transfer_gb_per_s",
    "sglang:generation_tokens_total": "generated_tok_total",
    "sglang:prompt_tokens_total": "prompt_tok_total",
    "sglang:cached_tokens_total": "cached_tok_total",
    "sglang:num_requests_total": "requests_total",
    "sglang:num_aborted_requests_total": "requests_aborted_total",
    "sglang:num_retracted_requests_total": "requests_retracted_total",
    "sglang:num_bootstrap_failed_reqs_total": "bootstrap_failed_total",
    "sglang:num_bootstrap_failed_reqs": "bootstrap_failed_total",
    "sglang:num_transfer_failed_reqs_total": "transfer_failed_total",
    "sglang:num_transfer_failed_reqs": "transfer_failed_total",
    "vllm:num_requests_running": "running_requests",
    "vllm:num_requests_waiting": "queued_requests",
    "vllm:kv_cache_usage_perc": "kv_used_ratio",  # a share all the same
    "vllm:gpu_cache_usage_perc": "kv_used_ratio",  # before V1
    "vllm:avg_generation_throughput_toks_per_s": "gen_throughput_tok_per_s",
    "vllm:avg_prompt_throughput_toks_per_s": "input_throughput_tok_per_s",
    "vllm:generation_tokens_total": "generated_tok_total",
    "vllm:prompt_tokens_total": "prompt_tok_total",
    "vllm:prefix_cache_hits_total": "cached_tok_total",
    "vllm:gpu_prefix_cache_hits_total": "cached_tok_total",
    "vllm:num_preemptions_total": "requests_retracted_total",
    "vllm:nixl_num_failed_transfers_total": "transfer_failed_total",
    "vllm:request_success_total": "requests_total",
    "sgl_router_requests_total": "requests_total",
    "sgl_router_pd_requests_total": "requests_total",
    "sgl_router_request_errors_total": "requests_failed_total",
    "sgl_router_pd_errors_total": "requests_failed_total",
    "smg_router_requests_total": "requests_total",
    "smg_router_request_errors_total": "requests_failed_total",
    "DCGM_FI_DEV_GPU_UTIL": "gpu_util_ratio",
    "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS": "throttled",
    "DCGM_FI_DEV_CLOCKS_EVENT_REASONS": "throttled",  # its name since 2024
}
_REASONS = {"abort": "requests_aborted_total", "error": "requests_failed_total"}  # how a request of vLLM ended
_MEANS = {  # histograms: metric, and what brings it to our unit
    "sglang:kv_transfer_latency_ms": ("kv_transfer_ms", 1.0),  # from 0.5.11
    "sglang:kv_transfer_speed_gb_s": ("kv_transfer_gb_per_s", 1.0),
    "vllm:nixl_xfer_time_seconds": ("kv_transfer_ms", MS_PER_S),
}
_POOL, _CACHE = "sglang:max_total_num_tokens", "vllm:cache_config_info"
_HELD_DOWN = 0x4 | 0x80 | 0x8 | 0x20 | 0x40  # power cap and brake; slowdown by hardware, by software heat, by heat
_PER_PERCENT = 0.01

_ALL = [*_NAMES, *(f"{name}{end}" for name in _MEANS for end in ("_sum", "_count")), _POOL, _CACHE]
_OURS = r"(?:sglang[:_]|vllm[:_]|smg_|sgl_router_|DCGM_FI_DEV_)"
_SIGNS = rf"# (?:TYPE|HELP) {_OURS}\w+ |{_OURS}\w+(?:\{{[^\r]*\}})? +(?:[-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?|NaN|[-+]Inf)\b"
_SAMPLE = rf"({_OURS}\w+)(?:\{{(.*)\}})?\s+(\S+)(?:\s+(\d+(?:\.\d+)?))?\s*$"
_TIME = rf"{STAMP}|\b1\d{{9}}(?:\d{{3}}|\d{{6}}|\d{{9}}|\.\d+)?\b|[A-Z][a-z]{{2}} [ \d]\d \d\d:\d\d:\d\d .*\b20\d\d\b"
# a comment, a rule or a line of its own
_MARK = rf"^(?:[#=*-][^\r]{{0,80}}?|\w[\w ]{{0,20}}[:=] *|[A-Z][a-z]{{2}} |)\[?({_TIME})"
# as `date` prints it, in a country with twelve hours too
_DATE_WORDS = r"([A-Z][a-z]{2}) +(\d+) (\d\d:\d\d:\d\d(?: [AP]M)?) .*\b(20\d\d)\b"
_DATE_FORMATS = ("%b %d %I:%M:%S %p %Y", "%b %d %H:%M:%S %Y")

_ROLES = {"prefill": "prefill", "decode": "decode", "unified": "colocated"}
_LABELS = {
    "engine_type": "engine_type", "replica": "dp_rank|dp|engine", "reason": "finished_reason", "priority": "priority",
    "server": "instance|worker_addr|pod|Hostname", "tp": "tp_rank", "pp": "pp_rank", "ep": "moe_ep_rank", "gpu": "gpu",
}  # fmt: skip
_SHARDS = ["tp", "pp", "ep", "gpu"]  # they tell of the same requests: the largest counts
_WHOSE = ["server", "role", "replica"]


@reader(title="Prometheus: text dump of /metrics, one scrape or a series", signs=_SIGNS, words=(_OURS,))
def read(source: Source) -> Evidence:
    """Gauges and counters of SGLang (`sglang:`), vLLM (`vllm:`), routers (`smg_`, `sgl_router_`) and GPUs (DCGM).

    Names of all versions are known; a metric that pdkit has no use for is left out. One server's shards (tensor and
    pipeline ranks, GPUs) tell of the same requests, so that the largest counts; its replicas (data-parallel ranks) are
    kept apart as `DP1`; all other labels are added up. Counters stay as they were scraped, so that a restart shows. Of
    a histogram the mean since the scrape before is kept. A scrape's time is that of its samples (milliseconds, then
    UTC), else what stands before each line, else the last line above it that holds a time; else it is not known, and
    each scrape is a row.

    Left out by the tool: the time of a scrape, unless who wrote the dump adds it; what happened between two scrapes; a
    server's role in vLLM, and in SGLang before `engine_type`. Buckets are not read, nor a router's count of paths:
    health checks are among them; smg's counters of bootstrap and transfer failures see neither.
    """
    lines = source.asked(_chosen).sort("line")
    samples = _told(_timed(lines))
    known = samples.filter(pl.col("value").is_finite())
    damaged = samples.filter(pl.col("value").is_null(), pl.col("name").is_in(_ALL) | pl.col("name").is_null())
    readings = pl.concat([_direct(known), _means(known)])
    instance = _instances(readings, source.name)
    return Evidence.of(
        samples=table("samples", _placed(_per_second(readings), instance, source.name)),
        settings=table("settings", _placed(_settings(known), instance, source.name)),
        unread=table("unread", _unread(damaged, source.name)),
    )


# --- lines ----------------------------------------------------------------------------------------------------------


def _chosen(lines: pl.LazyFrame) -> pl.LazyFrame:
    """Lines that begin with a metric of ours, and lines that tell the time."""
    text = pl.col("text")
    ours = text.str.contains_any([*_ALL, *(name.replace(":", "_") for name in _ALL)]) & text.str.contains(
        rf"^{PREFIX}{_OURS}"
    )
    mark = pl.when(~text.str.contains(_OURS)).then(text.str.extract(_MARK))
    told = lines.with_columns(ours.alias("ours"), mark.alias("mark"))
    return told.filter(pl.col("ours") | pl.col("mark").is_not_null()).with_columns(own_text())


def _timed(lines: pl.DataFrame) -> pl.DataFrame:
    """The samples' parts as text, each with the time that stands nearest: its own, before it, above it."""
    parts = pl.col("text").str.extract_groups(_SAMPLE).struct.rename_fields(["name", "labels", "said", "own"])
    before = pl.col("text").str.extract(rf"^\[?({STAMP})")
    above = _time(pl.col("mark")).forward_fill()
    timed = lines.with_columns(parts.alias("parts")).unnest("parts")
    clock = pl.coalesce(_time(pl.col("own")), clocked(before), above)
    return timed.with_columns(clock.alias("clock")).filter("ours").drop("ours", "mark", "own")


def _time(said: pl.Expr) -> pl.Expr:
    """A time in any of the ways in which a dump may give it, to the second."""
    number = said.str.extract(r"^(\d{10,}(?:\.\d+)?)$").cast(pl.Float64, strict=False)
    seconds = pl.coalesce(
        pl.when(number < limit).then(number / scale)
        for limit, scale in ((1e11, 1), (1e14, 1e3), (1e17, 1e6), (1e20, 1e9))
    )
    since_1970 = pl.from_epoch((seconds.floor() * 1e6).cast(pl.Int64), time_unit="us")
    words = said.str.extract_groups(_DATE_WORDS)
    plain = pl.concat_str([words.struct.field(str(part)) for part in range(1, 5)], separator=" ")
    dated = pl.coalesce(plain.str.to_datetime(way, time_unit="us", strict=False) for way in _DATE_FORMATS)
    return pl.coalesce(clocked(said.str.extract(rf"({STAMP})")), since_1970, dated)


def _told(samples: pl.DataFrame) -> pl.DataFrame:
    """Names, values and labels of the samples, and the scrape of each: a series that comes again begins another."""
    labels = {
        column: pl.col("labels").str.extract(rf'(?:^|,)\s*(?:{names})="([^"]*)"') for column, names in _LABELS.items()
    }
    name = pl.col("name").str.replace(r"^(sglang|vllm)_", "${1}:")
    told = samples.with_columns(name, pl.col("said").cast(pl.Float64, strict=False).alias("value"), **labels)
    role = pl.when(pl.col("name").str.contains(r"^(?:smg|sgl_router)_")).then(pl.lit("router")).otherwise(
        pl.col("engine_type").replace_strict(_ROLES, default=None, return_dtype=pl.String)
    )  # fmt: skip
    times = pl.int_range(pl.len()).over("name", pl.col("labels").fill_null(""))
    numbered = told.with_columns(role.alias("role"), times.cum_max().alias("scrape"))
    return numbered.with_columns(_its_role(numbered), _rank(numbered)).drop("engine_type")


def _its_role(samples: pl.DataFrame) -> pl.Expr:
    """Of SGLang's samples that do not say it, the role that all others say."""
    of_engine = pl.col("name").str.starts_with("sglang:")
    roles = samples.filter(of_engine)["role"].drop_nulls().unique().to_list()
    only = pl.lit(roles[0] if len(roles) == 1 else None, pl.String)
    return pl.when(of_engine).then(pl.coalesce("role", only)).otherwise("role").alias("role")


def _rank(samples: pl.DataFrame) -> pl.Expr:
    """The replica as a rank, where there are several."""
    if samples["replica"].drop_nulls().n_unique() < 2:
        return pl.lit("").alias("replica")
    return pl.format("DP{}", "replica").fill_null("").alias("replica")


# --- readings -------------------------------------------------------------------------------------------------------


def _summed(samples: pl.DataFrame) -> pl.DataFrame:
    """One row a scrape, shard and name: other labels add up, but where one row is the sum of all priorities."""
    group = ["scrape", *_WHOSE, *_SHARDS, "name"]
    total = pl.col("priority") == ""
    alone = samples.filter(~total.any().over(group).fill_null(False) | total.fill_null(False))
    return alone.group_by(group).agg(
        pl.col("value").sum(), pl.col("clock").min(), pl.col("line").min().alias("source_line")
    )


def _direct(samples: pl.DataFrame) -> pl.DataFrame:
    """Gauges and counters."""
    ended = pl.col("reason").replace_strict(_REASONS, default=None, return_dtype=pl.String)
    by_reason = samples.filter(pl.col("name") == "vllm:request_success_total").with_columns(ended.alias("metric"))
    named = [
        _summed(samples.filter(pl.col("name").is_in(list(_NAMES)))).with_columns(metric=_mapped(_NAMES)),
        *(
            _summed(part).with_columns(metric=pl.lit(metric))
            for metric in _REASONS.values()
            if (part := by_reason.filter(pl.col("metric") == metric)).height
        ),
    ]
    value, metric = pl.col("value"), pl.col("metric")
    held = (value.clip(0, 2**53).cast(pl.Int64) & _HELD_DOWN != 0).cast(pl.Float64)
    ours = pl.when(metric == "throttled").then(held).when(metric == "gpu_util_ratio").then(value * _PER_PERCENT)
    return _of_shards(pl.concat(named).with_columns(ours.otherwise(value).alias("value")))


def _mapped(names: dict[str, str]) -> pl.Expr:
    return pl.col("name").replace_strict(names, default=None, return_dtype=pl.String)


def _means(samples: pl.DataFrame) -> pl.DataFrame:
    """Means of histograms since the scrape before, or since the server started."""
    base = pl.col("name").str.extract(r"^(.*)_(?:sum|count)$")
    of_histograms = samples.filter(base.is_in(list(_MEANS)))
    parts = _summed(of_histograms).with_columns(
        base.alias("name"), pl.col("name").str.ends_with("_sum").alias("is_sum")
    )
    keys = ["scrape", *_WHOSE, *_SHARDS, "name"]
    total = parts.filter("is_sum").rename({"value": "total"}).drop("is_sum")
    count = parts.filter(~pl.col("is_sum")).select(*keys, pl.col("value").alias("count"))
    both = total.join(count, on=keys, nulls_equal=True).sort("scrape")
    series = [key for key in keys if key != "scrape"]
    grown = {part: pl.col(part) - pl.col(part).shift(1, fill_value=0).over(series) for part in ("total", "count")}
    restarted = grown["count"] < 0
    since = both.with_columns(
        [pl.when(restarted).then(pl.col(part)).otherwise(grown[part]).alias(part) for part in ("total", "count")]
    ).filter(pl.col("count") > 0)
    scale = pl.col("name").replace_strict({name: by for name, (_, by) in _MEANS.items()}, return_dtype=pl.Float64)
    metric = _mapped({name: metric for name, (metric, _) in _MEANS.items()})
    value = (pl.col("total") / pl.col("count") * scale).alias("value")
    return _of_shards(since.with_columns(value, metric.alias("metric")))


def _of_shards(parts: pl.DataFrame) -> pl.DataFrame:
    """One reading a scrape, server, replica and metric: the largest of its shards and names."""
    return parts.group_by("scrape", *_WHOSE, "metric").agg(
        pl.col("value").max(), pl.col("clock").min(), pl.col("source_line").min().cast(pl.Int64)
    )


def _per_second(readings: pl.DataFrame) -> pl.DataFrame:
    """Readings of one second are one row; where the time is not known, each is a row of its own."""
    apart = pl.when(pl.col("clock").is_null()).then("scrape").alias("apart")
    value = pl.col("value")
    return readings.group_by(*_WHOSE, "metric", "clock", apart).agg(
        value.min().alias("value_min"),
        value.mean().alias("value_mean"),
        value.max().alias("value_max"),
        value.count().cast(pl.Int64).alias("n"),
        pl.col("source_line").min(),
    ).drop("apart").rename({"replica": "rank"})  # fmt: skip


def _settings(samples: pl.DataFrame) -> pl.DataFrame:
    """The size of the KV pool and the type of its values, where the metrics tell."""
    label = {
        name: pl.col("labels").str.extract(rf'(?:^|,)\s*{name}="([^"]*)"')
        for name in ("kv_cache_size_tokens", "num_gpu_blocks", "block_size", "cache_dtype")
    }
    number = {name: value.cast(pl.Float64, strict=False) for name, value in label.items()}
    blocks = number["num_gpu_blocks"] * number["block_size"]
    of_vllm = samples.filter(pl.col("name") == _CACHE)
    rows = [
        samples.filter(pl.col("name") == _POOL).with_columns(setting=pl.lit("pool_tok"), text=pl.lit(None, pl.String)),
        of_vllm.with_columns(
            setting=pl.lit("pool_tok"),
            value=pl.coalesce(number["kv_cache_size_tokens"], blocks),
            text=pl.lit(None, pl.String),
        ),
        of_vllm.with_columns(
            setting=pl.lit("kv_dtype"), value=pl.lit(None, pl.Float64),
            text=label["cache_dtype"].replace("auto", None),
        ),
    ]  # fmt: skip
    said = pl.concat(rows).filter(pl.col("value").is_not_null() | pl.col("text").is_not_null())
    return said.group_by("server", "role", "setting", "value", "text").agg(
        pl.col("clock").min(), pl.col("line").min().cast(pl.Int64).alias("source_line")
    ).rename({"setting": "name"})  # fmt: skip


# --- whose they are -------------------------------------------------------------------------------------------------


def _instances(readings: pl.DataFrame, name: str) -> pl.Expr:
    """The file, or the file and a server's label or role where it holds several."""
    several = readings.select("server", "role").n_unique() > 1
    label = pl.coalesce("server", "role")
    return (pl.coalesce(pl.format("{}#{}", pl.lit(name), label), pl.lit(name)) if several else pl.lit(name)).alias(
        "instance"
    )


def _placed(rows: pl.DataFrame, instance: pl.Expr, name: str) -> pl.DataFrame:
    named = rows.with_columns(instance, pl.lit(name).alias("source_file"))
    return named.drop("server", strict=False).sort(
        "source_line", *(column for column in ("metric", "name", "rank", "value", "text") if column in rows.columns)
    )


def _unread(damaged: pl.DataFrame, name: str) -> pl.DataFrame:
    reason = pl.lit("a metric without a number").alias("reason")
    return quoted_texts(damaged).select(
        reason, "text", pl.col("line").cast(pl.Int64).alias("source_line"), pl.lit(name).alias("source_file")
    )
