"""Runs that measure the same thing, week after week: what was covered, what moved, what changed under it."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

import polars as pl

from pdkit.errors import PdkitError
from pdkit.results import DOUBTS, MEASURED, NO_RESULT, UNVERIFIED

HEADLINE = "received_throughput_tok_per_s"
_UNKNOWN = "?"
_POINT = ("series_key", "week", "started_at", "run_id", "experiment", "experiment_id", "level", "verdict", "value",
          "refused_by", "suspected_by", "engine_version", "flags", "mark")  # fmt: skip
LISTED = pl.Schema({
    "series_key": pl.String(), "runs": pl.Int64(), "first_week": pl.String(), "last_week": pl.String(),
    "by_week": pl.List(pl.Struct({"week": pl.String(), "runs": pl.Int64()})), "measured": pl.Int64(),
    "doubts": pl.Int64(), "unverified": pl.Int64(), "refused": pl.Int64(), "missing": pl.Int64(),
    "last_value": pl.Float64(), "last_measured": pl.String(), "marks": pl.List(pl.String()),
})  # fmt: skip


def in_time(runs: pl.DataFrame) -> pl.DataFrame:
    """Runs by week, then by when they started; where only the week is known, by name."""
    return runs.sort("week", "started_at", "experiment", "concurrency", "request_rate_per_s", "run_id", nulls_last=True)


def chosen(runs: pl.DataFrame, series: str | Iterable[str] | None) -> pl.DataFrame:
    """The runs of series whose keys hold all of the words."""
    words = [] if series is None else [series] if isinstance(series, str) else list(series)
    return runs.filter(
        pl.all_horizontal(pl.lit(True), *(pl.col("series_key").str.contains(w, literal=True) for w in words))
    )


# --- keys -----------------------------------------------------------------------------------------------------------


def with_whole_keys(runs: pl.DataFrame, known: Iterable[str]) -> pl.DataFrame:
    """A run without a result block states little of its series: it is given the one known key that it can be of.

    First among the series of its own experiment, then among all; where several fit, it keeps its own.
    """
    blank = runs.filter("missing").select("run_id", "experiment_id", "series_key").unique()
    if blank.is_empty():
        return runs
    seen = runs.filter(~pl.col("missing"))
    beside: dict[str, set[str]] = defaultdict(set)
    for experiment, key in seen.select("experiment_id", "series_key").unique().iter_rows():
        beside[experiment].add(key)
    every = _by_level({*known, *seen["series_key"]})
    found = {
        (run, experiment): _whole(key, beside.get(experiment, set()), every)
        for run, experiment, key in blank.iter_rows()
    }
    rows = [{"run_id": run, "experiment_id": of, "whole": key} for (run, of), key in found.items()]
    told = pl.DataFrame(rows, schema=dict.fromkeys(("run_id", "experiment_id", "whole"), pl.String))
    joined = runs.join(told, on=["run_id", "experiment_id"], how="left", maintain_order="left")
    whole = pl.when("missing").then(pl.coalesce("whole", "series_key")).otherwise("series_key")
    return joined.with_columns(whole.alias("series_key")).drop("whole")


def _by_level(keys: Iterable[str]) -> dict[str, set[str]]:
    """Keys by their level: only those of a run's own level can be its."""
    found: dict[str, set[str]] = defaultdict(set)
    for key in keys:
        found[_parts(key).get("level", "")].add(key)
    return found


def _whole(key: str, beside: set[str], every: dict[str, set[str]]) -> str:
    for keys in (beside, every.get(_parts(key).get("level", ""), set())):
        fits = {other for other in keys if other != key and _fits(key, other)}
        # of keys that fit, one may itself state little
        fits = {one for one in fits if not any(other != one and _fits(one, other) for other in fits)}
        if len(fits) == 1:
            return fits.pop()
    return key


def _fits(key: str, other: str) -> bool:
    """Whether two keys differ only where the first states nothing."""
    ours, theirs = _parts(key), _parts(other)
    return all(_part_fits(ours.get(name), theirs.get(name)) for name in {*ours, *theirs})


def _part_fits(ours: str | None, theirs: str | None) -> bool:
    if ours is None or ours == _UNKNOWN:
        return True
    if theirs is None:
        return False
    words, others = _words(ours), _words(theirs)
    return len(words) == len(others) and all(w in (_UNKNOWN, o) for w, o in zip(words, others, strict=True))


def _words(part: str) -> list[str]:
    """Of `random 256/128 tok` each word and number."""
    return re.split(r"[ /]+", part)


def _parts(key: str) -> dict[str, str]:
    """`model=…; gpu=…` by name."""
    pairs = (part.partition("=") for part in key.split("; "))
    return {name: value for name, _, value in pairs}


# --- what was covered -----------------------------------------------------------------------------------------------


def coverage(runs: pl.DataFrame, week: str) -> pl.DataFrame:
    """One row a series of this week or of one before: what was meant to run, and what came of it.

    Raises:
        PdkitError: no run at all, in this week or before.
    """
    until = runs.filter(pl.col("week") <= week)
    if until.is_empty():
        raise PdkitError(f"{week}: the store has no run in this week or before")
    now = pl.col("week") == week
    return (
        until.group_by("series_key")
        .agg(
            pl.col("level").filter(now).append(pl.col("level")).first(),
            *(count.filter(now).sum().cast(pl.Int64).alias(name) for name, count in _counts().items()),
            pl.col("refused_by").filter(now).explode(empty_as_null=False).drop_nulls().unique().sort(),
            pl.col("experiment").filter(now).unique().sort().alias("experiments"),
            pl.col("week").filter(~now).max().alias("last_week"),
        )
        .select("series_key", "level", *_counts(), "refused_by", "experiments", "last_week")
        .sort("series_key")
    )


def _counts() -> dict[str, pl.Expr]:
    """Runs by what came of them; what is missing is told apart from what was refused."""
    verdict, missing = pl.col("verdict"), pl.col("missing")
    return {
        "planned": pl.lit(True),
        "measured": verdict == MEASURED,
        "doubts": verdict == DOUBTS,
        "unverified": verdict == UNVERIFIED,
        "refused": (verdict == NO_RESULT) & ~missing,
        "missing": missing,
    }


# --- what moved -----------------------------------------------------------------------------------------------------


def points(runs: pl.DataFrame, metric: str) -> pl.DataFrame:
    """One row a run of each series, in time: the published metric, null where it was refused, and what changed.

    A run that was not at its level is no point of that level: its value is null, and the rules say why. Nor is one
    that is unverified: what its tool printed is a claim, whichever metric it is.
    """
    counts = pl.col("verdict").is_in([MEASURED, DOUBTS]) & (pl.col("level_refused_by").list.len() == 0)
    rows = in_time(runs).sort("series_key", maintain_order=True)
    marks = [mark for _, mine in rows.group_by("series_key", maintain_order=True) for mark in _marks(mine)]
    return rows.with_columns(
        pl.when(counts).then(metric).alias("value"),
        pl.col("refused_by").list.concat("level_refused_by"),
        pl.Series("mark", marks, pl.String),
    ).select(_POINT)


def _marks(runs: pl.DataFrame) -> Iterator[str | None]:
    """What changed at each run since the last one that told: engine, client, flags; null where nothing did."""
    engine = tool = None
    flags: dict[str, str] = {}
    for new_engine, new_tool, new_flags in runs.select("engine_version", "tool_version", "flags").iter_rows():
        said = dict(flag.split("=", 1) for flag in new_flags or [])
        changes = [*_changed("engine", engine, new_engine), *_changed("client", tool, new_tool), *_flags(flags, said)]
        yield "; ".join(changes) or None
        engine, tool = new_engine or engine, new_tool or tool
        # a role whose log is absent this time says nothing: what it ran by stands
        roles = {name.partition(".")[0] for name in said}
        flags = {name: value for name, value in flags.items() if name.partition(".")[0] not in roles} | said


def _changed(what: str, old: str | None, new: str | None) -> Iterator[str]:
    if old is not None and new is not None and old != new:
        yield f"{what} {old} → {new}"


def _flags(old: dict[str, str], new: dict[str, str]) -> Iterator[str]:
    """Flags that differ, of roles that both times tell of."""
    both = {name.partition(".")[0] for name in old} & {name.partition(".")[0] for name in new}
    for name in sorted({*old, *new}):
        if name.partition(".")[0] in both and old.get(name) != new.get(name):
            yield f"{name} {old.get(name, 'not stated')} → {new.get(name, 'not stated')}"


# --- what there is --------------------------------------------------------------------------------------------------


def listed(runs: pl.DataFrame) -> pl.DataFrame:
    """One row a series: runs by week, verdicts, the last published received throughput and its week, all marks."""
    return pl.DataFrame([_listed(mine) for mine in _each(points(runs, HEADLINE), runs)], schema=LISTED)


def _each(shown: pl.DataFrame, runs: pl.DataFrame) -> Iterator[tuple[str, pl.DataFrame, dict[str, int]]]:
    counts = runs.group_by("series_key").agg(
        count.sum().cast(pl.Int64).alias(name) for name, count in _counts().items() if name != "planned"
    )
    by_key = {row.pop("series_key"): row for row in counts.to_dicts()}
    for (key,), mine in shown.group_by("series_key", maintain_order=True):
        yield str(key), mine, by_key[key]


def _listed(of: tuple[str, pl.DataFrame, dict[str, int]]) -> dict[str, Any]:
    key, mine, counts = of
    by_week = mine.group_by("week", maintain_order=True).agg(pl.len().cast(pl.Int64).alias("runs"))
    measured = mine.drop_nulls("value")
    marks = mine.drop_nulls("mark").select(pl.format("{}: {}", "week", "mark"))
    return {
        "series_key": key, "runs": mine.height, "first_week": mine["week"][0], "last_week": mine["week"][-1],
        "by_week": by_week.to_dicts(), **counts,
        "last_value": measured["value"][-1] if measured.height else None,
        "last_measured": measured["week"][-1] if measured.height else None,
        "marks": marks.to_series().to_list(),
    }  # fmt: skip
