"""Logs of SGLang's servers: prefill, decode or colocated, with the lines of the transfer engine among them."""

import re
from dataclasses import replace

import polars as pl

from pdkit.evidence import Evidence, table
from pdkit.parts import reader
from pdkit.server_lines import (
    FAR_CHARS,
    STAMP,
    answers,
    clocked,
    happened,
    own_text,
    paired,
    per_second,
    placed,
    quoted_texts,
)
from pdkit.source import Question, Source

_RANKS = r"(?:[.,]\d+)?(?: [A-Z_]+\d+)*"
_HEAD = rf"(?:\([A-Za-z]+ pid=\d+[^)]*\) )?(?:\[{STAMP}{_RANKS}\] )?(?:(?:INFO|WARNING|ERROR)(?:: +| [\w.]+:\d+: ))?"
_GLOG = r"[IWEF](\d{4}|\d{8}) (\d\d:\d\d:\d\d)\.\d+ +\d+ [\w.-]+:\d+\]"
_SAID = "|".join((
    r"(?:Prefill|Decode) (?:batch|transfer failed|bootstrap failed|handshake failed)", "server_args=",
    "max_total_num_tokens=", "KV Cache (?:is|VA)", "Post-capture KV sizing", "The server is fired up",
    r"Session \S+ (?:failed|recovered)", "KV cache pool is full", "Decode out of memory happened",
    "Scheduler hit an exception", "Load weight (?:begin|end)", "(?:Losing|Lost) connection with prefill",
    "Context corruption detected", "KV checksum mismatch",
))  # fmt: skip
_SIGNS = rf"{_HEAD}(?:{_SAID})|{_GLOG.replace('(', '(?:')}"
_SIGN_WORDS = (
    "Prefill ", "Decode ", "server_args=", "max_total_num_tokens=", "KV Cache", "KV sizing", "fired up", "Session ",
    "KV cache pool", "hit an exception", "Load weight", "connection with prefill", "Context corruption", "KV checksum",
    r"[0-9]\]",
)  # fmt: skip

_DAMAGED = "damaged"  # stands among the gauges for a line that has none
# what each version calls a gauge; the same word means another queue on either side of a split
_BOTH = {
    _DAMAGED: _DAMAGED,
    "token usage": "kv_used_ratio", "full token usage": "kv_used_ratio", "#queue-req": "queued_requests",
}  # fmt: skip
_OF_DECODE = _BOTH | {
    "#running-req": "running_requests", "#token": "kv_used_tok", "#full token": "kv_used_tok",
    "pre-allocated usage": "kv_reserved_ratio", "#prealloc-req": "prealloc_requests",
    "#transfer-req": "transferring_requests", "accept len": "accept_length",
    "cuda graph": "cuda_graph", "cpu graph": "cuda_graph", "npu graph": "cuda_graph",
    "gen throughput (token/s)": "gen_throughput_tok_per_s",
}  # fmt: skip
_OF_PREFILL = _BOTH | {
    "#new-seq": "new_requests", "#new-token": "new_tok", "#cached-token": "cached_tok",
    "#unbootstrapped-req": "bootstrap_requests", "#prealloc-req": "bootstrap_requests",
    "#bootstrap-req": "bootstrap_requests",
    "#transferring-req": "transferring_requests", "#inflight-req": "transferring_requests",
    "input throughput (token/s)": "input_throughput_tok_per_s",
}  # fmt: skip
_KEYS = list(_OF_DECODE | _OF_PREFILL)
_STAMPED = pl.col("text").str.extract(rf"\[({STAMP})")  # the first in brackets
_STAMP_AND_REPLICA = rf"\[(?<second>{STAMP})(?:[^\]D]*DP(?<replica>[0-9]+))?"
_BATCH = "(?:Decode|Prefill) batch"
_HEALTH_CHECK = "#new-seq: 1, #new-token: 1, #cached-token: 0,"  # a real prompt has more than one token
_NUMBER = r"(?:True|False|[-+]?[0-9.]+(?:e[-+]?[0-9]+)?)"
_PAIR = rf"(?:{'|'.join(re.escape(key) for key in _KEYS)}): {_NUMBER}(?:,|\s|$)"
_USUAL, _READING = f" batch, {_PAIR}", rf"[,.\]] {_PAIR}"
_WITHOUT_READING = r"(?:^|[\]\s])(?:Decode|Prefill) batch(?: \[\d+\])?(?:[,.]|\s*$)"  # where there is none
_NO_GAUGE = "a line of gauges without one that can be read"
_LISTED_LINES = 20  # of those, and then how many more there are
_SPLIT_DECODE = "pre-allocated usage: "
_SPLIT_PREFILL = r"#(?:unbootstrapped|transferring|bootstrap|inflight|prealloc)-req: "
# parts of the number that stands for one reading, and how many values each has
_SIZES = {"second": 1 << 38, "replica": 1 << 17, "is_decode": 2, "is_split": 2, "key": 1 << 6}

# what a line tells of, by words that it holds: the first that fits
_KINDS = {
    "ready": r"The server is fired up and ready",
    "transfer_aborted": r"(?:(?:transfer|bootstrap|handshake) failed for request|KVTransferError).*Aborted by AbortReq",
    "bootstrap_failed": r"(?:Prefill bootstrap|Decode handshake) failed for request",
    "transfer_failed": r"(?:Prefill|Decode) transfer failed for request|KVTransferError\(bootstrap_room=",
    "session_failed": r"Session \S+ failed\.",
    "session_recovered": r"Session \S+ recovered",
    "connection_lost": r"(?:Losing|Lost) connection with prefill instance .*affected",
    "queue_full": r"TCP lane queue-full rejection count: \d+",
    "transport_error": r"getConnection failed to create|TCP lane connection to \S+ failed|data transfer timeout after|"
    r"Worker: Process failed for slice|startTransfer encountered|NIXL transport error|NIXL transfer encountered ERR",
    "retracted": r"#retracted_reqs: [1-9]",
    "request_rejected": r"The request queue is full",
    "crashed": r"Scheduler hit an exception|scheduler is dead|Received sigquit|atchdog timeout \(|OutOfMemoryError|"
    r"CUDA error|Not enough memory\. Please",
    "corrupted": r"Context corruption detected|KV checksum mismatch",
}
# one expression for all of them costs a quarter of looking for each
_EVENT_WORDS = "|".join((
    "fired up and ready", "failed for request", r"KVTransferError\(",
    r"Session \S+ (?:failed|recovered)", "connection with prefill",
    "queue-full rejection", "getConnection failed", "TCP lane connection", "data transfer timeout",
    "Process failed for slice", "startTransfer encountered", "NIXL trans", "#retracted_reqs", "request queue is full",
    "hit an exception", "scheduler is dead", "Received sigquit", "atchdog timeout", "OutOfMemoryError", "CUDA error",
    "Not enough memory", "Context corruption", "KV checksum mismatch",
))  # fmt: skip
_OF_ENGINE = ("queue_full", "transport_error")  # lines of the transfer engine, which have a clock of their own
_A_ROOM = ("transfer_failed", "bootstrap_failed", "transfer_aborted")  # several lines tell of one request
_SUBJECTS = (
    r"bootstrap_room[=:]\s*(\d+)", r"Session (\S+) (?:failed|recovered)", r"bootstrap_addr: ([^)\s]+)\)",
    r"(OutOfMemoryError|CUDA error|sigquit|[wW]atchdog|scheduler is dead|Scheduler hit an exception|Not enough memory)",
)  # fmt: skip
_COUNTS = (r"queue-full rejection count: (\d+)", r"#retracted_reqs: (\d+)", r"(\d+) (?:requests|transfers) affected")
_SIDES = {
    "prefill": r"Prefill (?:transfer|bootstrap) failed|Session \S+ (?:failed|recovered)|queue-full|getConnection",
    "decode": r"Decode (?:transfer|handshake) failed",
}
_AGAIN_S = 60  # several workers of one server say that it is ready, within seconds

# what a server says that it runs by: arguments of a `server_args=` dump, and lines of their own
_ARGUMENTS = {
    "model_path": "model_path", "quantization": "quantization", "dtype": "dtype", "kv_cache_dtype": "kv_dtype",
    "tp_size": "tp_size", "dp_size": "dp_size", "pp_size": "pp_size", "disaggregation_mode": "disaggregation_mode",
    "disaggregation_transfer_backend": "transfer_backend", "num_reserved_decode_tokens": "reserved_tok",
    "speculative_algorithm": "speculative", "device": "device", "enable_dp_attention": "dp_attention",
    "disable_radix_cache": "prefix_cache", "decode_log_interval": "log_steps", "nnodes": "nodes",
}  # fmt: skip
_SETTINGS = {name: rf"server_args=.*?\b{word}'?[=:] ?('[^']*'|[^\s,)}}]+)" for word, name in _ARGUMENTS.items()} | {
    "pool_tok": r"max_total_num_tokens=(\d+)|(?:KV Cache is allocated|KV cache allocated)\..*#tokens: (\d+)",
    "chunked_prefill_tok": r"\bmax_total_num_tokens=.* chunked_prefill_size=(\d+)",
    "max_running_requests": r"\bmax_total_num_tokens=.* max_running_requests=(\d+)",
    "kv_dtype_used": r"KV [Cc]ache (?:is )?allocated\..*dtype: ([\w.]+)",
    "context_tok": r"context_len=(\d+)",
    "free_gb": r"available_gpu_mem=([\d.]+) GB",
    "weights_gb": r"Load weight end\..*mem usage=([\d.]+) GB",
}
# compose; kubectl --prefix
_LABELLED = r"^(?:([A-Za-z0-9][\w.-]*)\s+[|│] |\[pod/([^\]]+)\] )"
_LABEL = pl.coalesce(pl.col("text").str.extract(_LABELLED, group) for group in (1, 2))
_SIGN = "(?:Prefill|Decode) (?:batch|transfer failed)|server_args=|max_total_num_tokens=|fired up and ready"
_SAYS = "says"  # stands among the events for a line that tells of settings
_SETTING_WORDS = "server_args=|max_total_num_tokens=|KV Cache is allocated|KV cache allocated|Load weight end"
_SAYING = {_SAYS: _SETTING_WORDS}
_NOTHING = ("None", "null", "auto")


@reader(title="SGLang server: log of a prefill, decode or colocated server", signs=_SIGNS, words=_SIGN_WORDS)
def read(source: Source) -> Evidence:
    """What a server of SGLang (0.4.0 to 0.5.23) prints of its batches, transfers and troubles; order-free.

    Gauges of `Prefill batch` and `Decode batch` lines are kept as one row a second, rank and gauge; `#prealloc-req` is
    the bootstrap queue on a prefill server and the wait for memory on a decode server. Failed transfers are kept one a
    bootstrap room; access lines are counted by second and status; Mooncake's lines are read also where they stand in
    the middle of another. Health checks (one prompt token) are left out; a batch line of which no gauge can be read is
    unread (twenty are listed, the others counted). Whether it is a prefill or a decode server is told by its arguments,
    else by its lines. Several servers in one file are told apart by what compose or kubectl puts before their lines,
    else by their sides.

    Left out by the server: the zone of its clock, a level on each line, how many answers had text; a decode line comes
    only every 40 steps, so that a short run may have none.
    """
    servers = _servers(source)
    if len(servers) > 1:
        all_of = Evidence.joined(_read(source, f"{source.name}#{name}", pl.lit(name) == _LABEL) for name in servers)
        return replace(all_of, unread=all_of.unread.unique(maintain_order=True))
    return _read(source, source.name, pl.lit(True))


def _servers(source: Source) -> list[str]:
    """The names before the lines, where something puts the server's name there."""
    if not re.search(_LABELLED, source.head.decode("utf-8", errors="replace"), re.MULTILINE):
        return []
    return sorted(source.asked(_names).to_series().drop_nulls())


def _names(lines: pl.LazyFrame) -> pl.LazyFrame:
    return lines.filter(pl.col("text").str.contains(_SIGN)).select(_LABEL.unique())


def _of_one(ask: Question, whose: pl.Expr) -> Question:
    """The question of one server's lines."""

    def asked(lines: pl.LazyFrame) -> pl.LazyFrame:
        return ask(lines.filter(whose))

    return asked


def _read(source: Source, instance: str, whose: pl.Expr) -> Evidence:
    """What one server of the file says."""
    samples, told, answered = (source.asked(_of_one(ask, whose)) for ask in (_samples, _told, _answers))
    events, said = told.filter(pl.col("kind") != _SAYS), told.filter(pl.col("kind") == _SAYS)
    damaged, samples = samples.filter(pl.col("metric") == _DAMAGED), samples.filter(pl.col("metric") != _DAMAGED)
    year = next((f"{clock.year}" for clock in samples["second"].drop_nulls()), None)
    seen = {
        "samples": samples,
        "events": pl.concat([_once_ready(_dated(quoted_texts(events), year)), answered], how="diagonal"),
        "settings": _settings(said),
    }
    sides = sorted({side for frame in seen.values() if "role" in frame for side in frame["role"].drop_nulls().unique()})
    role = sides[0] if len(sides) == 1 else None if sides else "colocated"
    tables = {name: table(name, _of_server(placed(frame, source.name), instance, role)) for name, frame in seen.items()}
    return Evidence.of(**tables, unread=_unread(source, int(damaged["n"].sum())))


# --- what is asked of the file --------------------------------------------------------------------------------------


def _samples(lines: pl.LazyFrame) -> pl.LazyFrame:
    text, head = pl.col("text"), pl.col("head").struct
    # one look tells that a line is as most are; what costs time is looked for in all others only
    is_usual = text.str.contains(_USUAL)
    other = pl.when(~is_usual).then(text)
    pairs = (
        pl.when(is_usual).then(text)
        .when(other.str.contains(_READING)).then(other.str.replace(" batch. ", " batch, ", literal=True))  # up to 0.5.3
        .when(other.str.contains(_WITHOUT_READING)).then(pl.lit(f"{_DAMAGED}: 1"))
    )  # fmt: skip
    is_decode = text.str.contains("Decode batch", literal=True)
    of_decode, of_prefill = text.str.contains(_SPLIT_DECODE, literal=True), text.str.contains(_SPLIT_PREFILL)
    whose = {
        "second": (clocked(head.field("second")).dt.epoch("s") + 1).clip(0),
        "replica": head.field("replica").cast(pl.UInt16, strict=False).cast(pl.Int64) + 1,
        "is_decode": is_decode,
        "is_split": pl.when(is_decode).then(of_decode).otherwise(of_prefill),
    }
    readings = _batches(lines).with_columns(text.str.extract_groups(_STAMP_AND_REPLICA).alias("head")).select(
        "line", pairs.alias("text"), _packed(whose).alias("whose")
    )  # fmt: skip
    # to group by one number costs half of grouping by five columns
    values = paired(readings, "whose", keys=_KEYS)
    reading = pl.col("whose") * _SIZES["key"] + pl.col("key").to_physical()
    return _named(per_second(values.with_columns(reading.alias("reading")), "reading"))


def _packed(parts: dict[str, pl.Expr]) -> pl.Expr:
    """One number for them all; what is not known is 0."""
    number = pl.lit(0, pl.Int64)
    for name, part in parts.items():
        number = number * _SIZES[name] + part.cast(pl.Int64).fill_null(0)
    return number


def _named(found: pl.LazyFrame) -> pl.LazyFrame:
    """With what each number stands for in its place: second, rank, role and metric."""
    rest, parts = pl.col("reading"), {}
    for name, size in reversed(_SIZES.items()):
        rest, parts[name] = rest // size, rest % size
    is_decode, is_split, replica = parts["is_decode"] == 1, parts["is_split"] == 1, parts["replica"]
    of_decode, of_prefill = (
        parts["key"].replace_strict(range(len(_KEYS)), [its.get(key) for key in _KEYS], return_dtype=pl.String)
        for its in (_OF_DECODE, _OF_PREFILL)
    )
    metric = pl.when(is_decode).then(of_decode).otherwise(of_prefill)
    told = found.with_columns(
        pl.from_epoch(pl.when(parts["second"] > 0).then(parts["second"] - 1)).cast(pl.Datetime("us")).alias("second"),
        pl.when(replica > 0).then(pl.format("DP{}", replica - 1)).otherwise(pl.lit("")).alias("rank"),
        pl.when(is_split).then(pl.when(is_decode).then(pl.lit("decode")).otherwise(pl.lit("prefill"))).alias("role"),
        metric.alias("metric"),
    )
    return told.drop_nulls("metric").drop("reading")


def _batches(lines: pl.LazyFrame) -> pl.LazyFrame:
    text = pl.col("text")
    return lines.filter(text.str.contains(_BATCH), ~text.str.contains(_HEALTH_CHECK, literal=True))


def _told(lines: pl.LazyFrame) -> pl.LazyFrame:
    """What happened, each thing once, and as kind `says` the lines that tell of settings, once for all ranks."""
    text, kind = pl.col("text"), pl.col("kind")
    kinds = pl.coalesce(
        pl.when(text.str.contains(pattern)).then(pl.lit(name)) for name, pattern in (_KINDS | _SAYING).items()
    )
    chosen = lines.filter(text.str.contains(f"{_EVENT_WORDS}|{_SETTING_WORDS}")).with_columns(
        kinds.alias("kind"), _STAMPED.alias("second")
    )
    own_clock = text.str.extract_groups(_GLOG)
    of_engine = pl.concat_str(own_clock.struct.field("1"), own_clock.struct.field("2"), separator=" ")
    second = pl.coalesce(pl.when(kind.is_in(_OF_ENGINE)).then(of_engine), "second")
    subject = pl.coalesce(text.str.extract(pattern) for pattern in _SUBJECTS)
    key = (
        pl.when(kind.is_in(_A_ROOM)).then(pl.col("subject"))
        .when(kind == "transport_error").then(pl.col("second"))
        .when(kind == _SAYS).then(text.str.replace(rf"\[{STAMP}[^\]]*\]", ""))
    )  # fmt: skip
    count = pl.coalesce(*(text.str.extract(pattern).cast(pl.Float64, strict=False) for pattern in _COUNTS), pl.lit(1.0))
    kept = pl.when(kind == _SAYS).then(text).otherwise(text.str.slice(0, FAR_CHARS))
    told = chosen.with_columns(second.alias("second"), subject.alias("subject"), count.alias("count"))
    found = happened(told.with_columns(key.alias("key"), kept.alias("text")))
    sides = pl.coalesce(pl.when(text.str.contains(pattern)).then(pl.lit(side)) for side, pattern in _SIDES.items())
    return found.with_columns(sides.alias("role")).drop("key")


def _answers(lines: pl.LazyFrame) -> pl.LazyFrame:
    # without a clock in brackets it is another server's line
    return answers(lines, _STAMPED).drop_nulls("second").with_columns(pl.lit("http").alias("kind"))


def _damaged(lines: pl.LazyFrame) -> pl.LazyFrame:
    text = pl.col("text")
    first = _batches(lines).filter(~text.str.contains(_READING), text.str.contains(_WITHOUT_READING))
    return first.select(pl.col("line").cast(pl.Int64).alias("source_line"), own_text()).head(_LISTED_LINES + 1)


# --- what follows from the whole file -------------------------------------------------------------------------------


def _settings(lines: pl.DataFrame) -> pl.DataFrame:
    """What is said of each setting, once a value."""
    text = pl.col("text")
    said = [
        pl.coalesce(text.str.extract(pattern, group) for group in range(1, pattern.count(r"(\d+)") + 1 or 2))
        if name == "pool_tok" else text.str.extract(pattern)
        for name, pattern in _SETTINGS.items()
    ]  # fmt: skip
    columns = [value.str.strip_chars("'").alias(name) for name, value in zip(_SETTINGS, said, strict=True)]
    long = lines.select("source_line", "second", *columns).unpivot(
        list(_SETTINGS), index=["source_line", "second"], variable_name="name", value_name="text"
    )
    known = long.filter(pl.col("text").is_not_null(), ~pl.col("text").is_in(_NOTHING))
    each = known.sort("source_line").unique(["name", "text"], keep="first", maintain_order=True)
    each = each.with_columns(pl.col("name").str.strip_suffix("_used"))
    # the one argument that says the opposite of its setting
    off = pl.when(pl.col("name") == "prefix_cache").then((pl.col("text") == "False").cast(pl.Float64))
    number = pl.coalesce(off, pl.col("text").cast(pl.Float64, strict=False))
    mode = pl.when((pl.col("name") == "disaggregation_mode") & pl.col("text").is_in(["prefill", "decode"])).then("text")
    return each.with_columns(
        number.alias("value"), pl.when(number.is_null()).then("text").alias("text"), mode.alias("role")
    )


def _dated(events: pl.DataFrame, year: str | None) -> pl.DataFrame:
    """The transfer engine's stamps as all others: it leaves out the year, which the file's other lines tell."""
    day = pl.coalesce(
        pl.col("second").str.extract(r"^(\d{8}) "), pl.lit(year) + pl.col("second").str.extract(r"^(\d{4}) ")
    )
    time = pl.col("second").str.extract(r" (\S+)$")
    full = pl.format("{}-{}-{} {}", day.str.slice(0, 4), day.str.slice(4, 2), day.str.slice(6, 2), time)
    of_engine = pl.col("second").str.contains(r"^\d{4}(?:\d{4})? ")
    return events.with_columns(pl.when(of_engine).then(full).otherwise("second").alias("second"))


def _once_ready(events: pl.DataFrame) -> pl.DataFrame:
    """Of several workers that say so within a minute, one."""
    clock = clocked(pl.col("second"))
    again = (clock.diff().dt.total_seconds() <= _AGAIN_S).fill_null(False)
    ready = pl.col("kind") == "ready"
    return pl.concat([events.filter(~ready), events.filter(ready).sort("source_line").filter(~again)])


def _unread(source: Source, damaged: int) -> pl.DataFrame:
    """Lines of gauges without one that can be read; the file is asked for them only where there are some."""
    if not damaged:
        return table("unread")
    lines = quoted_texts(source.asked(_damaged)).sort("source_line").with_row_index("number")
    more = pl.lit(f"{damaged - _LISTED_LINES} more lines of gauges without one that can be read")
    reason = pl.when(pl.col("number") < _LISTED_LINES).then(pl.lit(_NO_GAUGE)).otherwise(more)
    named = lines.with_columns(reason.alias("reason"), pl.lit(source.name).alias("source_file"))
    return table("unread", named.drop("number"))


def _of_server(rows: pl.DataFrame, name: str, role: str | None) -> pl.DataFrame:
    """Rows told whose they are: of the file's one server, or of the side that each tells where it holds both."""
    side = pl.col("role") if "role" in rows.columns else pl.lit(None, pl.String)
    its = side if role is None else pl.coalesce(side, pl.lit(role))
    instance = pl.format("{}#{}", pl.lit(name), its) if role is None else pl.lit(name)
    return rows.with_columns(its.alias("role"), pl.coalesce(instance, pl.lit(name)).alias("instance"))
