"""One week of a store, series by series: what was covered, what moved, what changed under it."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property
from itertools import takewhile
from pathlib import Path
from statistics import fmean
from string import ascii_uppercase
from typing import Any

import polars as pl

from pdkit import series as of_series
from pdkit import store as stores
from pdkit.compare import CALLED
from pdkit.errors import PdkitError, one_of
from pdkit.parts import register_checks
from pdkit.policy import Waiver
from pdkit.redact import masked, redacted_waivers
from pdkit.results import DOUBTS, MEASURED, NO_RESULT, UNVERIFIED
from pdkit.store import Store
from pdkit.store.dating import monday, week_given
from pdkit.trend import LEAST_BASELINE, Drawn, Mark, OverWeeks, Point
from pdkit.weekly.calls import Call, Week, among_all, called
from pdkit.weekly.plan import Plan

BASELINE_WEEKS = 8
WEEKS_SHOWN = 26  # half a year: older runs change no call
CHARTS_SHOWN = 24  # of the series with most to say; all are in the tables
HEADLINE = next(iter(CALLED))
_ENGINE = "engine "  # a mark that leaves a series what it is: how an engine does is what is asked
_BELIEVED = (MEASURED, DOUBTS)
_FIRST = ("model", "level")  # of a label: what most readers look for
_COUNTS = ("planned", "measured", "doubts", "unverified", "refused", "missing")


@dataclass(frozen=True)
class Covered:
    """What was meant to run of a series in this week, and what came of it."""

    planned: int
    measured: int
    doubts: int
    unverified: int
    refused: int
    missing: int
    refused_by: tuple[str, ...]
    last_week: str | None

    @property
    def counts(self) -> int:
        """Runs whose numbers may be used."""
        return self.measured + self.doubts

    @property
    def is_whole(self) -> bool:
        """Whether all that was meant was measured."""
        return self.planned > 0 and self.counts == self.planned


@dataclass(frozen=True)
class Change:
    """What changed under a series: before and after are means of weeks, where both were measured."""

    week: str
    text: str
    is_restart: bool
    before: float | None = None
    after: float | None = None

    @property
    def ratio(self) -> float | None:
        """After over before."""
        return self.after / self.before if self.before and self.after is not None else None


@dataclass(frozen=True)
class Series:
    """One series up to this week; without a value in it there is no call."""

    key: str
    label: str
    covered: Covered
    points: tuple[Point, ...]
    changes: tuple[Change, ...]
    target: float | None
    call: Call | None = None
    kin: str = ""

    @property
    def now(self) -> Point | None:
        """Its last point, if that is of this week's runs and counts."""
        return self.points[-1] if self.call else None

    @property
    def word(self) -> str:
        """`slower`, `same within 3 %`, `not measured`."""
        if self.call:
            return self.call.verdict
        return "not measured" if self.covered.planned else "no run this week"

    @property
    def rank(self) -> tuple[int, float, str]:
        """What a reader looks at first has the lowest."""
        call = self.call
        if call is None:
            return (2 if self.covered.planned else 6, 0.0, self.label)
        order = {"slower": 0, "faster": 1, "can't tell": 4, "same": 5}[call.word]
        if order == 4 and (call.walk.is_alarm or call.outside):
            order = 3
        return (order, -abs((call.interval.ratio if call.interval else 1.0) - 1), self.label)


@dataclass(frozen=True)
class Review:
    """All that the page of a week says; `series` have what needs a look first."""

    store: str
    week: str
    weeks: tuple[str, ...]
    baseline_weeks: int
    metric: str
    series: tuple[Series, ...]
    common: tuple[str, ...]
    plan: Plan
    waivers: tuple[Waiver, ...]
    findings: pl.DataFrame
    rules: tuple[str, ...]
    synthetic: bool

    def of(self, word: str) -> list[Series]:
        """The series that are called so."""
        return [one for one in self.series if one.call and one.call.word == word]

    @property
    def unmeasured(self) -> list[Series]:
        """Series of which something was meant to run in this week, and nothing counts."""
        return [one for one in self.series if one.covered.planned and not one.call]

    @property
    def absent(self) -> list[Series]:
        """Series of earlier weeks of which nothing was meant to run in this one."""
        return [one for one in self.series if not one.covered.planned]

    @property
    def recent_changes(self) -> list[tuple[Series, Change]]:
        """What changed within the weeks that this one is held against, the newest first."""
        reach = set(self.weeks[-(self.baseline_weeks + 2) :])
        found = [(one, change) for one in self.series for change in one.changes if change.week in reach]
        return sorted(found, key=lambda pair: pair[1].week, reverse=True)

    @cached_property
    def drawn(self) -> OverWeeks:
        """The small charts."""
        shown = self.series[:CHARTS_SHOWN]
        words = dict.fromkeys(f"{c.week} {c.text}" for one in shown for c in one.changes)
        letters = dict(zip(words, _letters(), strict=False))
        notes = tuple(
            Mark(note.week, f"{note.day}: {note.text}", str(number), is_restart=False)
            for number, note in enumerate(self.plan.notes, 1)
            if note.week in self.weeks
        )
        return OverWeeks(
            self.metric,
            self.weeks,
            tuple(_drawn(one, letters) for one in shown),
            notes,
            len(self.series) - len(shown),
            self.synthetic,
        )


def review(
    store: Store | str | Path,
    *,
    week: str | None = None,
    baseline_weeks: int = BASELINE_WEEKS,
    series: Iterable[str] = (),
    metric: str = HEADLINE,
    plan: Plan | None = None,
    waivers: Sequence[Waiver] = (),
    redact: bool = False,
) -> Review:
    """The review of a week, the last of the store unless named; `series` are words that keys have to hold.

    Raises:
        PdkitError: no store, an empty one, a week without a run, too few baseline weeks, an unknown metric, or words
            that no series holds.
    """
    if not isinstance(store, Store) and not str(store):
        raise PdkitError("no store; name one with --store DIR (`pdkit ingest PATH --store DIR` makes one)")
    if metric not in CALLED:
        raise one_of("metric", metric, list(CALLED))
    if baseline_weeks < LEAST_BASELINE:
        raise PdkitError(f"baseline_weeks is {baseline_weeks}; limits take {LEAST_BASELINE} weeks or more")
    register_checks()  # tasks say what a rule says to look at next
    opened = store if isinstance(store, Store) else stores.open(store)
    this = _week(opened, week)
    weeks = _axis(this, opened.weeks, baseline_weeks)
    words = list(series)
    runs = opened.runs(weeks=weeks, series=words)
    if runs.is_empty():
        raise PdkitError(f"{opened.place.name}: no series whose key holds {' and '.join(map(repr, words))}")
    findings = _findings(opened, runs, this)
    wanted, accepted = plan or Plan(), tuple(waivers)
    if redact:
        runs, wanted, accepted = _redacted(runs), wanted.redacted(), redacted_waivers(accepted)
        findings = _redacted_findings(findings)
    every, common = _series(runs, this, weeks, metric=metric, baseline=baseline_weeks, plan=wanted)
    return Review(
        store="[store]" if redact else opened.place.name,
        week=this,
        weeks=weeks,
        baseline_weeks=baseline_weeks,
        metric=metric,
        series=tuple(sorted(every, key=lambda one: one.rank)),
        common=common,
        plan=wanted,
        waivers=accepted,
        findings=findings,
        rules=tuple(runs["rules"].unique().sort()),
        synthetic=bool(runs["synthetic"].any()),
    )


def _week(store: Store, week: str | None) -> str:
    if not store.weeks:
        name = store.place.name
        raise PdkitError(f"{name}: the store holds no run; `pdkit ingest PATH --store {name}` puts some there")
    if week is None:
        return store.weeks[-1]
    store.of_week(week_given(week))
    return week


def _axis(week: str, known: Sequence[str], baseline: int) -> tuple[str, ...]:
    """Every week from the first that is shown to this one, whether or not anything ran in it."""
    last, shown = monday(week), max(WEEKS_SHOWN, baseline + 2)
    first = max(monday(known[0]), last - timedelta(weeks=shown - 1))
    return tuple(f"{first + timedelta(weeks=n):%G-W%V}" for n in range((last - first).days // 7 + 1))


def _findings(store: Store, runs: pl.DataFrame, week: str) -> pl.DataFrame:
    """What the rules say of this week's runs that have no measured result."""
    lost = runs.filter(pl.col("week") == week, pl.col("verdict") == NO_RESULT).select("run_id", "series_key")
    grave = store.findings(weeks=[week]).filter(pl.col("severity") == "refuse")
    return grave.join(lost.unique("run_id"), on="run_id", maintain_order="left")


def _redacted(runs: pl.DataFrame) -> pl.DataFrame:
    """The same runs with experiments numbered, and hosts, addresses and paths masked."""
    names = {name: f"experiment-{n}" for n, name in enumerate(sorted(set(runs["experiment"])), 1)}
    keys = {key: _masked_key(key) for key in runs["series_key"].unique()}
    flags = [None if one is None else [masked(flag) for flag in one] for one in runs["flags"].to_list()]
    return runs.with_columns(
        pl.col("experiment").replace_strict(names),
        pl.col("experiment").replace_strict(names).alias("title"),
        pl.col("series_key").replace_strict(keys),
        pl.Series("flags", flags, pl.List(pl.String)),
    )


def _redacted_findings(findings: pl.DataFrame) -> pl.DataFrame:
    """The same findings with files numbered, and hosts, addresses and paths masked in their sentences."""
    files = sorted({line.rpartition(":")[0] for lines in findings["lines"] for line in lines})
    names = {file: f"file-{number:02d}" for number, file in enumerate(files, 1)}
    lines = [
        [f"{names[file]}:{at}" for file, _, at in (line.rpartition(":") for line in its)] for its in findings["lines"]
    ]
    keys = [None if key is None else _masked_key(key) for key in findings["series_key"]]
    return findings.with_columns(
        pl.Series("sentence", [masked(said) for said in findings["sentence"]], pl.String),
        pl.Series("lines", lines, pl.List(pl.String)),
        pl.Series("series_key", keys, pl.String),
    )


def _masked_key(key: str) -> str:
    pairs = (part.partition("=") for part in key.split("; "))
    return "; ".join(f"{name}{mark}{masked(value)}" for name, mark, value in pairs)


# --- the series -----------------------------------------------------------------------------------------------------


def _series(
    runs: pl.DataFrame, week: str, weeks: Sequence[str], *, metric: str, baseline: int, plan: Plan
) -> tuple[list[Series], tuple[str, ...]]:
    """Every series with its call among all, and what they have in common."""
    covered = {row["series_key"]: _covered(row) for row in of_series.coverage(runs, week).iter_rows(named=True)}
    labels, common = labelled(list(covered))
    made = []
    for (key,), mine in of_series.points(runs, metric).group_by("series_key", maintain_order=True):
        points, changes, values = _points(mine.iter_rows(named=True))
        call = _call(points, changes, values, metric=metric, week=week, baseline=baseline)
        if call:
            points = _with_outside(points, call)
        name = str(key)
        made.append(Series(name, labels[name], covered[name], points, changes, plan.target(name, metric), call))
    calls = iter(among_all(one.call for one in made if one.call))
    counted = [replace(one, call=next(calls)) if one.call else one for one in made]
    return [replace(one, kin=_kin(one, counted, weeks)) for one in counted], common


def _covered(row: Mapping[str, Any]) -> Covered:
    counts = {name: int(row[name]) for name in _COUNTS}
    return Covered(**counts, refused_by=tuple(row["refused_by"]), last_week=row["last_week"])


def labelled(keys: Sequence[str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """What tells each key from the others, with its level; and the parts that all have."""
    parts = {key: [part.partition("=") for part in key.split("; ")] for key in keys}
    seen: dict[str, set[str]] = {}
    for mine in parts.values():
        for name, _, value in mine:
            seen.setdefault(name, set()).add(value)
    everywhere = {name for name in seen if all(name in {n for n, _, _ in mine} for mine in parts.values())}
    same = {name for name, values in seen.items() if len(values) == 1 and name in everywhere and name != "level"}
    shared = {name: _shared(values) for name, values in seen.items()}
    labels = {
        key: " · ".join(
            value[shared[name] :]
            for name, _, value in sorted(mine, key=lambda part: part[0] not in _FIRST)
            if name not in same and value != "?"
        )
        or key
        for key, mine in parts.items()
    }
    common = tuple(f"{name} {next(iter(seen[name]))}" for name in seen if name in same and seen[name] != {"?"})
    return labels, common


def _shared(values: Collection[str]) -> int:
    """With how many characters all values begin, whole words: `via` and what follows stay together."""
    words = [value.split(" ") for value in values if value != "?"]
    if len(words) < 2:
        return 0
    alike = list(takewhile(lambda some: len(set(some)) == 1, zip(*words, strict=False)))
    kept = [some[0] for some in alike[: min(map(len, words)) - 1]]
    if kept and kept[-1] == "via":
        kept.pop()
    return sum(len(word) + 1 for word in kept)


def _points(
    rows: Iterable[Mapping[str, Any]],
) -> tuple[tuple[Point, ...], tuple[Change, ...], dict[tuple[str, int], list[float]]]:
    """The weeks of one series, one point for each configuration in it, and what changed; then the values by week."""
    held: dict[tuple[str, int], list[Mapping[str, Any]]] = {}
    changes: list[Change] = []
    segment = 0
    for row in rows:
        engine, others = _parted(row["mark"])
        if others:
            segment += 1
            changes.append(Change(row["week"], others, is_restart=True))
        if engine:
            changes.append(Change(row["week"], engine, is_restart=False))
        held.setdefault((row["week"], segment), []).append(row)
    values = {place: [row["value"] for row in mine if _counts(row)] for place, mine in held.items()}
    points = tuple(_point(place, mine, values[place]) for place, mine in held.items())
    return points, tuple(_weighed(changes, points)), values


def _counts(row: Mapping[str, Any]) -> bool:
    """Whether a run's number enters its week: only measured ones do."""
    return row["value"] is not None and row["verdict"] in _BELIEVED


def _parted(mark: str | None) -> tuple[str, str]:
    """What a mark says of the engine, and of all else."""
    said = mark.split("; ") if mark else []
    engine = [one for one in said if one.startswith(_ENGINE)]
    return "; ".join(engine), "; ".join(one for one in said if one not in engine)


def _point(place: tuple[str, int], rows: Sequence[Mapping[str, Any]], values: Sequence[float]) -> Point:
    verdicts = [row["verdict"] for row in rows]
    return Point(
        week=place[0],
        segment=place[1],
        value=fmean(values) if values else None,
        low=min(values, default=None),
        high=max(values, default=None),
        runs=len(values),
        doubts=sum(row["verdict"] == DOUBTS for row in rows if _counts(row)),
        refused=verdicts.count(NO_RESULT),
        unverified=verdicts.count(UNVERIFIED),
        refused_by=tuple(sorted({rule for row in rows for rule in row["refused_by"]})),
    )


def _weighed(changes: Sequence[Change], points: Sequence[Point]) -> Iterator[Change]:
    """Each restart with the mean of the weeks before it and after it, up to the next one."""
    means: dict[int, list[float]] = {}
    for point in points:
        if point.value is not None:
            means.setdefault(point.segment, []).append(point.value)
    segment = 0
    for change in changes:
        if not change.is_restart:
            yield change
            continue
        segment += 1
        before, after = means.get(segment - 1), means.get(segment)
        yield replace(change, before=fmean(before) if before else None, after=fmean(after) if after else None)


def _call(
    points: Sequence[Point],
    changes: Sequence[Change],
    values: Mapping[tuple[str, int], list[float]],
    *,
    metric: str,
    week: str,
    baseline: int,
) -> Call | None:
    """What the weeks say, since the configuration is what it is; None where this week has no value."""
    last = points[-1]
    if last.week != week or last.value is None:
        return None
    weeks = [
        Week(point.week, tuple(values[point.week, point.segment]), has_doubts=point.doubts > 0)
        for point in points
        if point.segment == last.segment and point.value is not None
    ]
    restart = next((f"{one.text} ({one.week})" for one in reversed(changes) if one.is_restart), "")
    return called(metric, weeks, baseline=baseline, restart=restart)


def _with_outside(points: tuple[Point, ...], call: Call) -> tuple[Point, ...]:
    """The points that an alarm rests on, and this week's where it is outside for the first time."""
    rests = call.recent if call.walk.is_alarm else call.weeks[-1:]
    out, limits, last = {week.week for week in rests}, call.walk.limits, points[-1].segment
    return tuple(
        replace(point, side=limits.side(point.value))
        if limits and point.value is not None and point.week in out and point.segment == last
        else point
        for point in points
    )


def _kin(one: Series, every: Iterable[Series], weeks: Sequence[str]) -> str:
    """Of a series that began within the weeks shown: an older one that differs in one part, and in which."""
    first = one.points[0].week
    if first == weeks[0]:
        return ""
    mine = dict(part.split("=", 1) for part in one.key.split("; "))
    for other in every:
        theirs = dict(part.split("=", 1) for part in other.key.split("; "))
        differ = [name for name in {*mine, *theirs} if mine.get(name) != theirs.get(name)]
        if other.points[0].week < first and len(differ) == 1 and differ[0] != "level":
            name = differ[0]
            return f"{name} {theirs.get(name, 'not stated')} → {mine.get(name, 'not stated')}"
    return ""


# --- what is drawn --------------------------------------------------------------------------------------------------


def _letters() -> Iterator[str]:
    yield from ascii_uppercase
    yield from (f"{first}{second}" for first in ascii_uppercase for second in ascii_uppercase)


def _drawn(one: Series, letters: Mapping[str, str]) -> Drawn:
    call = one.call
    marks = tuple(
        Mark(change.week, change.text, letters.get(f"{change.week} {change.text}", ""), change.is_restart)
        for change in one.changes
    )
    baseline = tuple(week.week for week in call.baseline) if call else ()
    said = one.word
    if call and call.interval and call.word != "same":
        said = f"{call.verdict}, {call.interval.ratio:.2f} times"
    return Drawn(one.label, said, one.points, baseline, call.walk.limits if call else None, marks, one.target)
