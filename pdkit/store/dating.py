"""When each run started, and how that is known: a run without a week has no place in a trend."""

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime
from pathlib import Path

import polars as pl

from pdkit.errors import PdkitError
from pdkit.results import Judgement
from pdkit.source import Source

MANIFEST, SERVERS, OPTION = "sweep.toml", "server log", "--week"
CONTENT, PATH, DISK = "dates in the log", "date in the path", "file time"
SUREST = (MANIFEST, SERVERS, OPTION, CONTENT, PATH, DISK)  # first
DATES = pl.Schema({
    "run_id": pl.String(), "week": pl.String(), "started_at": pl.Datetime("us", "UTC"), "dated_by": pl.String(),
})  # fmt: skip

_WEEK = re.compile(r"(\d{4})-W(\d{2})")
_BEGINNING = 400  # characters: a date further on is part of what is said
# behind a bracket or a level at most; of a record its own `date`, as vLLM writes it
_STAMPED = r"^\W{0,3}(?:[A-Z][A-Za-z]{0,9}\W{1,3})?(20\d\d)[-/](\d\d)[-/](\d\d)[T ](\d\d):(\d\d):(\d\d)"
_RECORDED = r'^\s*\{?.{0,80}"date": ?"(20\d\d)(\d\d)(\d\d)-(\d\d)(\d\d)(\d\d)"'
_DIGITS = "%Y%m%d%H%M%S"
_IN_PATH = re.compile(r"(?<!\d)(20\d\d)([-_.]?)([01]\d)\2([0-3]\d)(?!\d)")


def week_given(said: str) -> str:
    """An ISO week as it was given.

    Raises:
        PdkitError: it is none.
    """
    found = _WEEK.fullmatch(said)
    try:
        if found:
            date.fromisocalendar(int(found[1]), int(found[2]), 1)
            return said
    except ValueError:
        pass
    raise PdkitError(f"week {said!r} is none; write year and ISO week, as in 2026-W48")


def week_of(moment: pl.Expr) -> pl.Expr:
    """The ISO week of a time, `2026-W48`."""
    return moment.dt.strftime("%G-W%V")


def monday(week: str) -> date:
    """The first day of a week."""
    return date.fromisocalendar(int(week[:4]), int(week[6:]), 1)


def dated(judgement: Judgement, files: Mapping[str, Source], *, week: str | None) -> pl.DataFrame:
    """One row a run: its week, when it started, and how that is known.

    By the manifest; else by the servers' clock; else as `week` says; else by the newest date that stands at the start
    of a line of its log; else by the date in the file's path; else by the file's time on disk. What was planned and
    never seen belongs to the first run beside it.
    """
    runs = judgement.verdicts.select("run_id", "experiment")
    known = pl.concat([_planned(judgement), _served(judgement), *_asked(runs, week)])
    left = runs.join(known, on="run_id", how="anti")
    seen = judgement.evidence.runs.join(left, on="run_id", how="semi").select("run_id", "source_file").unique()
    meant = judgement.facts.filter("planned_only")["run_id"].implode()
    known = pl.concat([known, _by_file(seen.filter(~pl.col("run_id").is_in(meant)), files)])
    beside = runs.join(known, on="run_id").sort("started_at").unique("experiment", keep="first", maintain_order=True)
    missing = runs.join(known, on="run_id", how="anti")
    known = pl.concat([known, missing.join(beside.drop("run_id"), on="experiment").select(known.columns)])
    last = runs.join(known, on="run_id", how="anti").join(
        judgement.evidence.runs.select("run_id", "source_file").unique(), on="run_id"
    )
    known = pl.concat([known, _by_file(last.select("run_id", "source_file"), files)])
    best = known.unique("run_id", keep="first", maintain_order=True)  # the surer ones come first
    return best.with_columns(pl.coalesce("week", week_of(pl.col("started_at"))).alias("week")).select(DATES.names())


def _planned(judgement: Judgement) -> pl.DataFrame:
    """By the manifest: of its own level, else of the first level of its experiment."""
    own = judgement.facts.select("run_id", "experiment", pl.col("planned_start").dt.replace_time_zone("UTC"))
    first = judgement.evidence.plan.group_by("experiment").agg(pl.col("started_at").min())
    both = own.join(first, on="experiment", how="left")
    return _told(both.with_columns(pl.coalesce("planned_start", "started_at").alias("started_at")), MANIFEST)


def _served(judgement: Judgement) -> pl.DataFrame:
    """By the clock of a server that it was joined to, as UTC: nobody says the zone of that, but days are days."""
    moved = pl.col("started_at") - pl.duration(hours=pl.col("shift_h"))
    joined = judgement.windows.group_by("run_id").agg(moved.min().dt.replace_time_zone("UTC").alias("started_at"))
    return _told(joined, SERVERS)


def _asked(runs: pl.DataFrame, week: str | None) -> Iterable[pl.DataFrame]:
    if week:
        said = pl.lit(week).alias("week"), pl.lit(None, DATES["started_at"]).alias("started_at")
        yield runs.select("run_id", *said, pl.lit(OPTION).alias("dated_by"))


def _told(rows: pl.DataFrame, by: str) -> pl.DataFrame:
    return rows.drop_nulls("started_at").select(
        "run_id", pl.lit(None, pl.String).alias("week"), "started_at", pl.lit(by).alias("dated_by")
    )


def _by_file(seen: pl.DataFrame, files: Mapping[str, Source]) -> pl.DataFrame:
    """By the files that show a run, the newest of the surest way."""
    found = {name: _of_file(name, files[name]) for name in seen["source_file"].unique() if name in files}
    rows = [
        {"run_id": run, "week": None, "started_at": found[name][0], "dated_by": found[name][1]}
        for run, name in seen.iter_rows()
        if name in found
    ]
    surest = pl.col("dated_by").cast(pl.Enum(SUREST)).to_physical()
    return (
        pl.DataFrame(rows, schema=DATES)
        .sort(surest, "started_at", descending=[False, True])
        .unique("run_id", keep="first", maintain_order=True)
    )


def _of_file(name: str, source: Source) -> tuple[datetime, str]:
    newest = source.asked(_newest)["newest"].item()
    if newest is not None:
        return newest, CONTENT
    if (named := _in_path(name)) is not None:
        return named, PATH
    return datetime.fromtimestamp(Path(source.path).stat().st_mtime, UTC), DISK


def _newest(lines: pl.LazyFrame) -> pl.LazyFrame:
    """The newest date at the start of a line."""
    start = pl.col("text").str.slice(0, _BEGINNING)
    parts = [
        pl.concat_str(*(start.str.extract(pattern, group) for group in range(1, 7)))
        for pattern in (_STAMPED, _RECORDED)
    ]
    moments = [part.str.to_datetime(_DIGITS, time_unit="us", strict=False) for part in parts]
    return lines.select(pl.max_horizontal(moments).max().dt.replace_time_zone("UTC").alias("newest"))


def _in_path(name: str) -> datetime | None:
    """The last date in a path, `20260119` or `2026-01-19`."""
    for year, _, month, day in reversed(_IN_PATH.findall(name)):
        try:
            return datetime(int(year), int(month), int(day), tzinfo=UTC)
        except ValueError:
            continue
    return None
