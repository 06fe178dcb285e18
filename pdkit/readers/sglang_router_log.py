"""Logs of SGLang's router: the Rust one (sglang_router_rs, smg) and the small one in Python (mini_lb)."""

import polars as pl

from pdkit.evidence import Evidence, table
from pdkit.parts import reader
from pdkit.server_lines import ANSWER, GENERATES, STAMP, VLLM, own_text, placed, quoted_texts, with_rejections
from pdkit.source import Source

_LEVELS = "TRACE|DEBUG|INFO|WARN|ERROR"
_CRATE = r"(?:sglang_router(?:_rs)?|smg|sgl_model_gateway)"
_LINE = rf"(?:{_LEVELS}) +(?:(?:\w+(?:\{{[^}}]*\}})?:)+ )?{_CRATE}(?:::\w+)*: "
_JSON = rf'\{{"timestamp":"[^"]*","level":"(?:{_LEVELS})",.*"target":"{_CRATE}[:"]'
# uvicorn without a clock in brackets (SGLang's servers have one) and without the process in front (vLLM's have it)
_BARE = r'^[^\[(\r]*INFO: +[\w.:-]+:[0-9]+ - "[A-Z]+ /'
_SMALL = r"MiniLB is only for debugging|\[MiniLB\] "
_SIGNS = rf"{_LINE}|{_JSON}|{_BARE}|{_SMALL}"
_SIGN_WORDS = (_CRATE, "MiniLB", r"^[^\[(\r]*INFO: ")

_FINISHED = ["finished processing request", "request failed with client error", "request failed with server error"]
_ASKED = rf'method"?[=:]"?POST\b.*(?:uri|path)"?[=:]"?[^\s"]*{GENERATES}'
_STATUS = r'status_code"?[=:]"?([0-9]{3})\b'
_CLOCKS = (rf"({STAMP})\S* +(?:{_LEVELS}) ", rf'"timestamp":"({STAMP})', rf"^({STAMP})")  # the last is a container's
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
_ERROR = rf'(?:ERROR +(?:(?:\w+(?:\{{[^}}]*\}})?:)+ )?{_CRATE}|"level":"ERROR".*"target":"{_CRATE})::routers::'
_PLACE = r'(\w+\.rs:[0-9]+|"line_number":[0-9]+)'  # in its code
_RUNS, _POST = "Uvicorn running on ", ' - "POST '
_WORDS = [*_FINISHED, *_TROUBLES.values(), _READY, _PANIC, "ERROR", "MiniLB", _RUNS, _POST]
_HEADLESS = "an answer without a status"
_OTHER_WORDS = "an error of the router in words that are not known"
# what a line is, beside the events: things that only the whole file tells the meaning of
_SMALL_SAYS, _BARE_ANSWER, _BARE_START, _UNKNOWN = "small", "bare_http", "bare_ready", "unknown"


@reader(title="SGLang router: log of the Rust router or of mini_lb", signs=_SIGNS, words=_SIGN_WORDS)
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
    told = source.asked(_told)
    of_rust = pl.concat([with_rejections(_kind(told, "http").drop_nulls("subject")), _events(told)], how="diagonal")
    rows = pl.concat([of_rust.with_columns(role=pl.lit("router")), _of_uvicorn(told, source)], how="diagonal")
    named = placed(quoted_texts(rows), source.name).with_columns(pl.lit(source.name).alias("instance"))
    return Evidence.of(events=table("events", named.drop("apart")), unread=table("unread", _unread(told, source.name)))


# --- what is asked of the file --------------------------------------------------------------------------------------


def _told(lines: pl.LazyFrame) -> pl.LazyFrame:
    """Lines by what they are, second, subject and request: (kind, subject, second, apart, count, text, source_line).

    Most lines are answers: what costs time is looked for in all others only.
    """
    text, line = pl.col("text"), pl.col("line")
    is_answer = text.str.contains_any(_FINISHED)
    answer, other = pl.col("answer"), pl.col("other")
    chosen = lines.filter(text.str.contains_any(_WORDS)).with_columns(
        pl.when(is_answer).then(text).alias("answer"), pl.when(~is_answer).then(text).alias("other")
    )
    trouble = pl.coalesce(
        pl.when(other.str.contains(words, literal=True)).then(pl.lit(name)) for name, words in _TROUBLES.items()
    )
    is_bare = ~other.str.contains(rf"\[{STAMP}|\(\w+ [^)]*pid=\d+[^)]*\) ")  # no server's of SGLang or vLLM
    is_ours = other.str.contains(rf"{_LINE}|{_JSON}")
    kind = (
        pl.when(answer.str.contains(_ASKED) & answer.str.contains(rf"{_LINE}|{_JSON}")).then(pl.lit("http"))
        .when(trouble.is_not_null() & is_ours).then(pl.lit("router_error"))
        .when(other.str.contains(_READY, literal=True) & is_ours).then(pl.lit("ready"))
        .when(other.str.contains(r"^.{0,80}thread '[^']*' .{0,20}panicked at ")).then(pl.lit("crashed"))
        .when(other.str.contains(_ERROR)).then(pl.lit(_UNKNOWN))
        .when(other.str.contains(_SMALL)).then(pl.lit(_SMALL_SAYS))
        .when(is_bare & other.str.contains(ANSWER)).then(pl.lit(_BARE_ANSWER))
        .when(is_bare & other.str.contains(_RUNS, literal=True)).then(pl.lit(_BARE_START))
    )  # fmt: skip
    subject = pl.coalesce(answer.str.extract(_STATUS), trouble, other.str.extract(ANSWER))
    # a retry says the same of the same request
    request = pl.when(trouble.is_not_null()).then(pl.coalesce(other.str.extract(_REQUEST), line.cast(pl.String)))
    second = pl.coalesce(text.str.extract(pattern) for pattern in _CLOCKS)
    of_line = {
        "kind": kind,
        "subject": subject,
        "second": second,
        "request": request,
        "place": other.str.extract(_PLACE),
    }
    each = chosen.select("line", "text", **of_line).drop_nulls("kind").with_columns(
        pl.when(pl.col("kind") == _UNKNOWN).then("place").otherwise("request").alias("apart"),
        pl.when((pl.col("kind") != "http") | pl.col("subject").is_null()).then(own_text()).alias("text"),
    )  # fmt: skip
    return each.group_by("kind", "subject", "second", "apart").agg(
        pl.len().cast(pl.Float64).alias("count"),
        pl.col("text").get(line.arg_min()),
        line.min().cast(pl.Int64).alias("source_line"),
    )


# --- what follows from the whole file -------------------------------------------------------------------------------


def _kind(told: pl.DataFrame, *kinds: str) -> pl.DataFrame:
    return told.filter(pl.col("kind").is_in(kinds))


def _merged(rows: pl.DataFrame, *by: str) -> pl.DataFrame:
    """Rows added up, with the text and the number of their first line."""
    return rows.sort("source_line").group_by(*by, maintain_order=True).agg(
        pl.col("count").sum(), pl.col("text", "source_line").first()
    )  # fmt: skip


def _events(told: pl.DataFrame) -> pl.DataFrame:
    """Starts, crashes, and what is said of workers by second: one request counts once a kind, by its first line."""
    requests = _kind(told, "router_error").sort("source_line").unique(["subject", "apart"], keep="first")
    once = requests.with_columns(pl.lit(1.0).alias("count"))
    panics = _kind(told, "crashed").with_columns(pl.lit("panic").alias("subject"))
    return _merged(pl.concat([once, _kind(told, "ready"), panics]), "kind", "subject", "second")


def _of_uvicorn(told: pl.DataFrame, source: Source) -> pl.DataFrame:
    """Access lines without a clock, and that mini_lb runs; nothing where they are an older vLLM's."""
    answered = with_rejections(_merged(_kind(told, _BARE_ANSWER), "kind", "subject", "second"))
    if _kind(told, _SMALL_SAYS).height:
        started = _kind(told, _BARE_START).with_columns(pl.lit("ready").alias("kind"))
        return pl.concat([answered, started], how="diagonal").with_columns(pl.lit("router").alias("role"))
    return answered.clear() if answered.height and source.holds({"vllm": VLLM})["vllm"] else answered


def _unread(told: pl.DataFrame, name: str) -> pl.DataFrame:
    """Answers without a status, and errors in other words: the first line of each place in the router's code."""
    headless = _kind(told, "http").filter(pl.col("subject").is_null()).with_columns(pl.lit(_HEADLESS).alias("reason"))
    other = _kind(told, _UNKNOWN).with_columns(pl.lit(_OTHER_WORDS).alias("reason"))
    rows = quoted_texts(_merged(pl.concat([headless, other]), "reason", "apart"))
    several = pl.format("{} ({} lines like it)", "reason", pl.col("count").cast(pl.Int64))
    reason = pl.when(pl.col("count") > 1).then(several).otherwise("reason").alias("reason")
    return rows.select(reason, "text", "source_line", pl.lit(name).alias("source_file"))
