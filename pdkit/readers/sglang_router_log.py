"""Logs of SGLang's router: the Rust one (sglang_router_rs, smg) and the small one in Python (mini_lb)."""

import polars as pl

from pdkit.evidence import Evidence, table
from pdkit.parts import reader
from pdkit.server_lines import ACCESS, GENERATES, STAMP, VLLM, answers, placed, quoted_texts, with_rejections
from pdkit.source import Source

_LEVELS = "TRACE|DEBUG|INFO|WARN|ERROR"
_CRATE = r"(?:sglang_router(?:_rs)?|smg|sgl_model_gateway)"
_LINE = rf"(?:{_LEVELS}) +(?:(?:\w+(?:\{{[^}}]*\}})?:)+ )?{_CRATE}(?:::\w+)*: "
_JSON = rf'\{{"timestamp":"[^"]*","level":"(?:{_LEVELS})",.*"target":"{_CRATE}[:"]'
# uvicorn without a clock in brackets (SGLang's servers have one) and without the process in front (vLLM's have it)
_BARE = r'^[^\[(\r]*INFO: +[\w.:-]+:[0-9]+ - "[A-Z]+ /'
_SMALL = r"MiniLB is only for debugging|\[MiniLB\] "
_SIGNS = rf"{_LINE}|{_JSON}|{_BARE}|{_SMALL}"

_FINISHED = ["finished processing request", "request failed with client error", "request failed with server error"]
_ASKED = rf'method"?[=:]"?POST\b.*(?:uri|path)"?[=:]"?[^\s"]*{GENERATES}'
_STATUS = r'status_code"?[=:]"?([0-9]{3})\b'
_CLOCKS = (rf"({STAMP})\S* +(?:{_LEVELS}) ", rf'"timestamp":"({STAMP})')
_REQUEST = r'request_id"?[=:]"?([\w-]+)'

# what the router says of a worker, by words that the line holds
_TROUBLES = {
    "decode_status": "Decode server returned error status",
    "prefill_status": "Prefill server returned error status",
    "decode_failed": "Decode request failed",
    "prefill_failed": "Prefill server failed",
    "pair_failed": "PD request transport error",
    "no_pair": "Failed to select PD pair",
    "stream_error": "Stream error from decode server",
    "decode_unreadable": "Failed to read decode response",
}
_READY, _PANIC = "Starting server on ", "panicked at "
_RUNS = "Uvicorn running on "
_ROUTING_ERROR = rf'(?:ERROR +(?:(?:\w+(?:\{{[^}}]*\}})?:)+ )?{_CRATE}|"level":"ERROR".*"target":"{_CRATE})::routers::'


@reader(title="SGLang router: log of the Rust router or of mini_lb", signs=_SIGNS)
def read(source: Source) -> Evidence:
    """What a router (sglang-router 0.1 to 0.3, smg, mini_lb) prints of requests and workers; with colours or as JSON.

    Answers to generation requests are counted by second and status (POST to /generate, /v1/completions and the like;
    readiness polls and other paths are left out); 429 and 503 are also requests turned away. What it says of a prefill
    or decode server is kept once a request and kind, since each retry says it again: as `decode_status`,
    `prefill_status`, `decode_failed`, `prefill_failed`, `pair_failed`, `no_pair`, `stream_error` or
    `decode_unreadable`. An error of its routing that is not one of these is unread. Its clock is UTC, as printed.

    Access lines of mini_lb have no clock: they are counted by status. Any other server that prints `INFO: ip:port -
    "POST …" 200 OK` without a clock looks the same, so that its role is unknown unless the file names mini_lb.

    Left out by the tool: whether an answer had text. Status and latency are those of the head, which is 200 when a
    stream begins; mini_lb answers 200 whatever its workers say, and from 0.2.1 on the Rust router is silent on a stream
    that breaks. Latencies are not kept.
    """
    finished, troubles, unknown = (source.asked(ask) for ask in (_finished, _troubles, _unknown))
    of_rust = pl.concat([with_rejections(finished), quoted_texts(troubles)], how="diagonal")
    rows = pl.concat([of_rust.with_columns(role=pl.lit("router")), _of_uvicorn(source)], how="diagonal")
    named = placed(rows, source.name).with_columns(pl.lit(source.name).alias("instance"))
    return Evidence.of(events=table("events", named), unread=table("unread", _placed_unread(unknown, source.name)))


# --- the Rust router ------------------------------------------------------------------------------------------------


def _second() -> pl.Expr:
    return pl.coalesce(pl.col("text").str.extract(pattern) for pattern in _CLOCKS)


def _is_router() -> pl.Expr:
    """Whether a line is one of the Rust router's, and does not quote one."""
    return pl.col("text").str.contains(rf"{_LINE}|{_JSON}")


def _finished(lines: pl.LazyFrame) -> pl.LazyFrame:
    text = pl.col("text")
    chosen = lines.filter(text.str.contains_any(_FINISHED), text.str.contains(_ASKED), _is_router())
    said = chosen.select("line", _second().alias("second"), text.str.extract(_STATUS).alias("subject"))
    return said.drop_nulls("subject").group_by("second", "subject").agg(
        pl.len().cast(pl.Float64).alias("count"), pl.col("line").min().cast(pl.Int64).alias("source_line")
    )  # fmt: skip


def _troubles(lines: pl.LazyFrame) -> pl.LazyFrame:
    """What it says of workers by second and kind; one request is counted once a kind, with its first line."""
    text = pl.col("text")
    subjects = [pl.when(text.str.contains(words, literal=True)).then(pl.lit(name)) for name, words in _TROUBLES.items()]
    kind = (
        pl.when(text.str.contains(_READY, literal=True) & _is_router()).then(pl.lit("ready"))
        .when(text.str.contains(r"^.{0,80}thread '[^']*' .{0,20}panicked at ")).then(pl.lit("crashed"))
        .when(pl.coalesce(subjects).is_not_null() & _is_router()).then(pl.lit("router_error"))
    )  # fmt: skip
    subject = pl.when(kind == "crashed").then(pl.lit("panic")).otherwise(pl.coalesce(subjects))
    request = pl.coalesce(text.str.extract(_REQUEST), pl.col("line").cast(pl.String))
    told = lines.filter(text.str.contains_any([*_TROUBLES.values(), _READY, _PANIC])).select(
        "line",
        "text",
        kind.alias("kind"),
        subject.alias("subject"),
        request.alias("request"),
        _second().alias("second"),
    )
    first = pl.col("line").arg_min()
    once = told.drop_nulls("kind").group_by("kind", "subject", "request").agg(
        pl.col("second", "text").get(first), pl.col("line").min()
    )  # fmt: skip
    return once.group_by("kind", "subject", "second").agg(
        pl.len().cast(pl.Float64).alias("count"),
        pl.col("text").get(first),
        pl.col("line").min().cast(pl.Int64).alias("source_line"),
    )


def _unknown(lines: pl.LazyFrame) -> pl.LazyFrame:
    """Errors of its routing in other words, and answers without a status: the first line of each place in its code."""
    text = pl.col("text")
    trouble = text.str.contains(_ROUTING_ERROR) & ~text.str.contains_any([*_TROUBLES.values(), *_FINISHED])
    headless = text.str.contains_any(_FINISHED) & text.str.contains(_ASKED) & ~text.str.contains(_STATUS) & _is_router()
    reason = (
        pl.when(trouble).then(pl.lit("an error of the router in words that are not known"))
        .when(headless).then(pl.lit("an answer without a status"))
    )  # fmt: skip
    place = text.str.extract(r'(\w+\.rs:[0-9]+|"line_number":[0-9]+)')
    chosen = lines.filter(text.str.contains_any(["ERROR", *_FINISHED]))
    told = chosen.select("line", "text", reason.alias("reason"), place.alias("place")).drop_nulls("reason")
    return told.group_by("reason", "place").agg(
        pl.col("text").get(pl.col("line").arg_min()),
        pl.len().alias("lines"),
        pl.col("line").min().cast(pl.Int64).alias("source_line"),
    )


def _placed_unread(unknown: pl.DataFrame, name: str) -> pl.DataFrame:
    several = pl.format("{} ({} lines like it)", "reason", "lines")
    return quoted_texts(unknown).select(
        pl.when(pl.col("lines") > 1).then(several).otherwise("reason").alias("reason"),
        "text", "source_line", pl.lit(name).alias("source_file"),
    ).sort("source_line")  # fmt: skip


# --- mini_lb --------------------------------------------------------------------------------------------------------


def _of_uvicorn(source: Source) -> pl.DataFrame:
    """Access lines without a clock, and that mini_lb runs; nothing where they are an older vLLM's."""
    answered = with_rejections(source.asked(lambda lines: answers(_bare(lines, ACCESS))))
    signs = source.holds({"small": _SMALL, "vllm": VLLM})
    if signs["small"]:
        ready = source.asked(_running)
        return pl.concat([answered, quoted_texts(ready)], how="diagonal").with_columns(role=pl.lit("router"))
    return answered.clear() if signs["vllm"] else answered


def _bare(lines: pl.LazyFrame, words: str) -> pl.LazyFrame:
    """Lines of uvicorn that have no clock of their own; `second` is what a container put before them, if it did."""
    text = pl.col("text")
    others = text.str.contains(rf"\[{STAMP}|\(\w+ [^)]*pid=\d+[^)]*\) ")
    return lines.filter(text.str.contains(words, literal=True), ~others).with_columns(
        text.str.extract(rf"^({STAMP})").alias("second")
    )


def _running(lines: pl.LazyFrame) -> pl.LazyFrame:
    ready = {"kind": pl.lit("ready"), "count": pl.lit(1.0)}
    return _bare(lines, _RUNS).select("second", "text", pl.col("line").cast(pl.Int64).alias("source_line"), **ready)
