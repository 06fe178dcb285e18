"""What readers of server logs share: clocks, answers counted a second, gauges kept one value a second."""

from collections.abc import Iterable

import polars as pl

from pdkit.source import KEPT_CHARS, RISKY, quoted

STAMP = r"[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}"
VLLM = (
    r"(?:\([A-Za-z]\w* [^()]*pid=\d+[^()]*\) )?(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) "  # how vLLM begins a line:
    r"\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)? \[?[\w./-]+:\d+\] "  # process, level, day and time, place in its code
)
GENERATES = (
    r"/(?:generate|v1/(?:chat/)?completions|v1/responses|inference/v1/generate)\b"  # what a load client asks for
)
ANSWER = rf'"POST [^" ]*{GENERATES}[^" ]* HTTP/[0-9.]+" ([0-9]{{3}})'  # an access line of uvicorn
ACCESS = " HTTP/"
_STATUS = r' HTTP/[0-9.]+" ([0-9]{3})'
_TURNED_AWAY = ("429", "503")  # a full queue, or no server that takes requests
_IN_ORDER = ("kind", "metric", "name", "rank", "subject", "value", "text")
_DIGITS = 12  # of a mean: the last of a float's 16 depend on the order in which threads add
FAR_CHARS = 2 * KEPT_CHARS  # of a line that is kept until its beginning is quoted


def own_text() -> pl.Expr:
    """`text` in memory of its own: a line that is kept as it was read keeps the piece of the file around it too."""
    return pl.format("{}", "text").alias("text")


def clocked(second: pl.Expr) -> pl.Expr:
    """`2026-08-20 10:00:18` as a time without a zone; null where it is none."""
    return second.str.replace("T", " ", literal=True).str.to_datetime("%Y-%m-%d %H:%M:%S", time_unit="us", strict=False)


def answers(lines: pl.LazyFrame, second: pl.Expr) -> pl.LazyFrame:
    """HTTP answers to generation requests by second and status: (second, subject, count, source_line).

    `second` is the line's stamp as text, null where it has none. 200 is written when a stream begins, whatever comes
    after it.
    """
    text = pl.col("text")
    # to look for the whole and then for its end costs half of taking the end out of the whole
    status = text.str.extract(_STATUS)
    said = lines.filter(text.str.contains(ANSWER)).select("line", second.alias("second"), status.alias("subject"))
    return said.group_by("second", "subject").agg(
        pl.len().cast(pl.Float64).alias("count"), pl.col("line").min().cast(pl.Int64).alias("source_line")
    )


def with_rejections(answered: pl.DataFrame) -> pl.DataFrame:
    """Answers as events `http`, and those by which a request was turned away once more as `request_rejected`."""
    away = answered.filter(pl.col("subject").is_in(_TURNED_AWAY))
    kinds = (("http", answered), ("request_rejected", away))
    return pl.concat([frame.with_columns(pl.lit(kind).alias("kind")) for kind, frame in kinds])


def paired(readings: pl.LazyFrame, *kept: str, keys: Iterable[str]) -> pl.LazyFrame:
    """Readings `key: value, key: value` as one row a pair: (line, *kept, key, value).

    `readings` has line, text and the columns that are kept; a value is a number, True or False, and keys that are not
    known go. The order of the pairs does not matter. Splitting costs half of what a regular expression for the pairs
    costs, and a third of one expression a gauge.
    """
    pair = pl.col("pairs").str.splitn(": ", 2).struct.rename_fields(["key", "said"])
    known = pl.col("key").cast(pl.Enum(list(dict.fromkeys(keys))), strict=False)
    number = pl.col("said").cast(pl.Float64, strict=False)
    truth = pl.when(pl.col("said").is_in(["True", "False"])).then((pl.col("said") == "True").cast(pl.Float64))
    split = pl.col("text").str.strip_chars_end(", \r").str.split(", ").alias("pairs")
    each = readings.select("line", *kept, split).explode("pairs").with_columns(pair).unnest("pairs")
    valued = each.with_columns(known).drop_nulls("key").with_columns(pl.coalesce(number, truth).alias("value"))
    return valued.drop("said").drop_nulls("value")


def per_second(values: pl.LazyFrame, *by: str) -> pl.LazyFrame:
    """Readings of one second and key as one row: (*by, value_min, value_mean, value_max, n, source_line).

    It is all that is kept of a log of any size. `by` has to tell the second and the key: groups by numbers and Enums
    cost a third of groups by texts, and hold nothing of the file.
    """
    value = pl.col("value")
    return values.group_by(*by).agg(
        value.min().alias("value_min"),
        value.mean().round_sig_figs(_DIGITS).alias("value_mean"),
        value.max().alias("value_max"),
        pl.len().cast(pl.Int64).alias("n"),
        pl.col("line").min().cast(pl.Int64).alias("source_line"),
    )


def happened(lines: pl.LazyFrame) -> pl.LazyFrame:
    """Each thing once: (kind, subject, key, second, count, text, source_line), by the first line that tells of it.

    `lines` has line, text, second, kind, subject, count and `key`: lines of one kind and key tell of one thing (several
    ranks of one request), and a key that is null makes every line a thing of its own. Counts of a thing are the most
    that a line says; where they add up, the key has to be finer.
    """
    told = lines.filter(pl.col("kind").is_not_null()).with_columns(
        pl.coalesce("key", pl.col("line").cast(pl.String)).alias("key"), own_text()
    )
    first = pl.col("line").arg_min()
    return told.group_by("kind", "key").agg(
        pl.col("second", "subject", "text").get(first),
        pl.col("count").max().cast(pl.Float64),
        pl.col("line").min().cast(pl.Int64).alias("source_line"),
    )


def quoted_texts(events: pl.DataFrame) -> pl.DataFrame:
    """With each line's beginning as it may be shown: keys masked, colours gone."""
    texts = events["text"].drop_nulls().unique()
    risky = texts.filter(texts.str.contains(RISKY)).to_list()
    masked = {text: quoted(text) for text in risky}
    told = pl.col("text").replace_strict(masked, default=None, return_dtype=pl.String)
    plain = pl.col("text").str.strip_chars().str.slice(0, KEPT_CHARS)
    return events.with_columns(pl.coalesce(told, plain).alias("text"))


def placed(rows: pl.DataFrame, source_name: str) -> pl.DataFrame:
    """Rows of one file in the order of its lines, with the file's name, and the clock in place of `second`."""
    second = pl.col("second")
    clock = (clocked(second) if rows.schema["second"] == pl.String else second).alias("clock")
    named = rows.with_columns(clock, pl.lit(source_name).alias("source_file")).drop("second")
    # groups come in any order: rows of one line too have to stand in one order
    return named.sort("source_line", *(column for column in _IN_ORDER if column in named.columns))
