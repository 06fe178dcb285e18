"""From logs to a store, an experiment at a time."""

import hashlib
import re
import secrets
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeVar

import polars as pl

from pdkit.errors import PdkitError
from pdkit.evidence import TABLES, Evidence
from pdkit.load import PLANNED, File, found, load_files
from pdkit.store.dating import DISK, dated, week_given
from pdkit.store.engines import Engine, Failed, mapped
from pdkit.store.manifests import Contents, Judged, Kept, Seen, Stored, commit, contents, continues, founded, same
from pdkit.store.place import Place
from pdkit.store.rows import Ruling, kept, verdict_counts
from pdkit.store.units import Unit, joined, units
from pdkit.units import listed, plural

Outcome = Literal["stored", "known", "empty", "failed"]
_AT_ONCE = 64  # experiments a manifest: what a killed ingest loses at most, beside few manifests to read
_SLUG_CHARS = 80
_ON_DISK = "the files' time on disk (no log says when; --week would)"
_PER_REQUEST = 1000  # figures that a run with a line a request is worth: no summary has as many
_BY_RUN = ("claims", "requests", "gaps")
_Any = TypeVar("_Any")


@dataclass(frozen=True)
class Said:
    """What became of some files, in a sentence."""

    outcome: Outcome
    sentence: str


@dataclass(frozen=True)
class Task:
    """What a worker needs to read and judge one unit, and to write what came of it."""

    unit: Unit
    place: Place
    week: str | None
    ruling: Ruling
    rules: str


@dataclass(frozen=True)
class Made:
    """One experiment whose files are written and count for nobody yet; what `figures` its runs show, and to whom."""

    entry: Stored
    figures: frozenset[str]
    readers: frozenset[str]


@dataclass(frozen=True)
class Batch:
    """What one unit gave: experiments, what could not be read, and why there is none where there is none."""

    made: tuple[Made, ...]
    problems: tuple[str, ...]
    nothing: str = ""


def ingest(
    paths: Iterable[str | Path],
    place: Place,
    *,
    week: str | None = None,
    ruling: Ruling | None = None,
    engine: Engine | None = None,
) -> Iterator[Said]:
    """Store every experiment in the paths, and say what became of each once it counts.

    `week` is for runs of which nothing says when they started. The same files again change nothing.

    Raises:
        PdkitError: a path that does not exist, a week that is none, or a place that is no store.
    """
    given, used = None if week is None else week_given(week), ruling or Ruling()
    groups = units(file for file in found(paths) if not place.holds(file.source.path))
    before = founded(place)
    left = []
    for unit in groups:
        if _is_known(unit, given, before):
            yield Said("known", f"{unit.name}: nothing new, the store has these files")
        else:
            left.append(Task(unit, place, given, used, used.version))
    pass_ = _Pass(place, engine or Engine())
    yield from pass_.over(left)
    # a log in one folder and its record in another: read together, they say more than each
    yield from pass_.over([replace(left[0], unit=unit) for unit in pass_.to_join()])


def _is_known(unit: Unit, week: str | None, before: Contents) -> bool:
    """Whether the store has exactly these files; they are hashed only where names and sizes already agree."""
    entries = (*before.live, *before.hidden)
    sizes = {(source.path, source.bytes) for entry in entries for source in entry.sources}
    if not unit.sources or any((name, source.size) not in sizes for name, source in unit.sources.items()):
        return False
    return unit.fingerprint(week) in {entry.unit for entry in entries}


# --- what counts ----------------------------------------------------------------------------------------------------


class _Pass:
    """One ingest under way: which unit showed which run, so that halves of an experiment find each other."""

    def __init__(self, place: Place, engine: Engine) -> None:
        self._place, self._engine = place, engine
        self._shown: dict[str, tuple[Unit, frozenset[str]]] = {}
        self._halves: list[tuple[Unit, Unit]] = []
        self._ids: dict[Unit, list[str]] = defaultdict(list)
        self._replaced: dict[Unit, list[str]] = {}

    def over(self, tasks: Sequence[Task]) -> Iterator[Said]:
        """Read, judge and commit; a sentence a unit or an experiment, after its manifest is written."""
        answers = mapped(self._engine, written, tasks)
        for some in batched(answers, _AT_ONCE):
            yield from self._committed(some)

    def to_join(self) -> list[Unit]:
        """Units whose runs were seen by different readers in different folders, each group as one."""
        groups: dict[Unit, set[Unit]] = {}
        for one, other in self._halves:
            together = groups.get(one, {one}) | groups.get(other, {other})
            groups |= dict.fromkeys(together, together)
        made = []
        for together in {id(group): group for group in groups.values()}.values():
            unit = joined({file.source.name: file for part in together for file in part.files}.values())
            self._replaced[unit] = [key for part in together for key in self._ids[part]]
            made.append(unit)
        self._halves, self._shown = [], {}
        return sorted(made, key=lambda unit: unit.name)

    def _committed(self, answers: Sequence[tuple[Task, Batch | Failed]]) -> Iterator[Said]:
        now = contents(self._place)
        said: list[Said] = []
        new: list[Stored] = []
        for task, answer in answers:
            if isinstance(answer, Failed):
                said.append(Said("failed", f"{task.unit.name}: {answer.why}; skipped"))
                continue
            said += [Said("failed", problem) for problem in answer.problems]
            said += [Said("empty", f"{task.unit.name}: {answer.nothing}")] if answer.nothing else []
            for made in answer.made:
                said += self._weighed(task.unit, made, now, new)
        if new:
            commit(self._place, stored=new)
        yield from said

    def _weighed(self, unit: Unit, made: Made, now: Contents, new: list[Stored]) -> list[Said]:
        """Whether it is new, more of something known, known itself, or half of something."""
        entry = replace(made.entry, replaces=self._replaced.get(unit, []))
        other = next((self._shown[shown] for shown in sorted(made.figures) if shown in self._shown), None)
        if other and other[0] != unit and not other[1] & made.readers:
            self._halves.append((other[0], unit))
            self._drop(entry)
            return []
        rivals = [*new, *now.live]
        if has := next((one for one in rivals if same(one, entry) or _outweighs(one, entry)), None):
            self._drop(entry)
            return [Said("known", f"{entry.experiment}: nothing new, the store has its runs as {_called(has)}")]
        grown = [one for one in now.live if _is_grown(one, entry, unit)]
        older = [one for one in now.live if one.id in entry.replaces or continues(replace(entry, seq=_NEXT), one)]
        entry = replace(entry, replaces=sorted({*entry.replaces, *(one.id for one in grown)}))
        new.append(entry)
        self._ids[unit].append(entry.id)
        self._shown |= dict.fromkeys(made.figures, (unit, made.readers))
        return [Said("stored", _stored(entry, [*grown, *older]))]

    def _drop(self, entry: Stored) -> None:
        """Files that no manifest will name."""
        self._place.delete(file.name for file in (*entry.files, *entry.judged.files))


_NEXT = 1 << 60  # later than whatever the store has


def _outweighs(has: Stored, entry: Stored) -> bool:
    return has.id not in entry.replaces and continues(has, replace(entry, seq=_NEXT))


def _is_grown(has: Stored, entry: Stored, unit: Unit) -> bool:
    """Whether a version without any result lives on: each of its files is there, as it was or with more behind.

    Only within a week: a log that is written anew every night begins as the one before.
    """
    if has.prints or has.experiment != entry.experiment or has.weeks != entry.weeks or not has.read:
        return False
    sources = unit.sources
    return all(
        source.path in sources and _begins_with(sources[source.path].path, source)
        for source in has.sources
        if source.read
    )


def _begins_with(path: Path, old: Seen) -> bool:
    if path.stat().st_size < old.bytes:
        return False
    with path.open("rb") as file:
        return hashlib.sha256(file.read(old.bytes)).hexdigest() == old.sha256


def _stored(entry: Stored, older: list[Stored]) -> str:
    counts = ", ".join(f"{count} {verdict}" for verdict, count in entry.judged.verdicts.items())
    ways = listed([_ON_DISK if way == DISK else way for way in entry.dated_by])
    weeks = entry.weeks[0] if len(entry.weeks) == 1 else f"{entry.weeks[0]} to {entry.weeks[-1]}"
    instead = f", in place of {listed(sorted({_called(one) for one in older}))}" if older else ""
    return f"{entry.experiment}: stored, {weeks} by {ways}, {plural(entry.runs, 'run')}: {counts}{instead}"


def _called(entry: Stored) -> str:
    return f"{entry.experiment} of {entry.weeks[0]}"


def batched(items: Iterable[_Any], size: int) -> Iterator[list[_Any]]:
    """The items in lists of at most so many, as they come."""
    some: list[_Any] = []
    for item in items:
        some.append(item)
        if len(some) == size:
            yield some
            some = []
    if some:
        yield some


# --- what a worker does ---------------------------------------------------------------------------------------------


def written(task: Task) -> Batch:
    """Read, judge and write the experiments of a unit; nothing counts before a manifest names it."""
    evidence, barred = _read(task.unit.files)
    # its own end is lost, and with it perhaps runs: nobody may take that for a folder without any
    damaged = (f"{name}: {source.damage}" for name, source in task.unit.sources.items() if source.damage)
    problems = (*(f"{problem}; skipped" for problem in barred), *damaged)
    if evidence.runs.is_empty():
        return Batch((), problems, _nothing(evidence))
    judgement = task.ruling.judged(evidence)
    dates = dated(judgement, task.unit.sources, week=task.week)
    ids = {name: secrets.token_hex(8) for name in evidence.runs["experiment"].unique().sort()}
    tables = kept(judgement, dates, ids=ids, rules=task.rules)
    unit = task.unit.fingerprint(task.week)
    made = tuple(_made(task, of_experiment(evidence, name), of_id(tables, key), key, unit) for name, key in ids.items())
    return Batch(made, problems)


def _made(task: Task, evidence: Evidence, tables: Mapping[str, pl.DataFrame], key: str, unit: str) -> Made:
    readers = tables["runs"]["readers"].explode().drop_nulls()
    return Made(
        _entry(task, evidence, tables, key, unit), frozenset(tables["runs"]["figures"].drop_nulls()), frozenset(readers)
    )


def _entry(task: Task, evidence: Evidence, tables: Mapping[str, pl.DataFrame], key: str, unit: str) -> Stored:
    runs = tables["runs"]
    name, weeks = str(runs["experiment"][0]), runs["week"].unique().sort().to_list()
    levels = dict(runs["evidence_level"].value_counts().iter_rows())
    evidence_tables = {table: getattr(evidence, table) for table in TABLES}
    clients = set(evidence.runs.filter((pl.col("reader") != PLANNED).fill_null(True))["source_file"])
    return Stored(
        id=key,
        experiment=name,
        title=str(runs["title"][0] or name),
        weeks=weeks,
        dated_by=runs["dated_by"].unique().sort().to_list(),
        runs=runs.height,
        prints=runs["print"].drop_nulls().unique().sort().to_list(),
        detail=_PER_REQUEST * (2 * levels.get("text", 0) + levels.get("requests", 0)) + tables["claimed"].height,
        unit=unit,
        sources=[
            Seen(path, sha256, size, reader is not None, path in clients)
            for path, sha256, size, reader in evidence.sources.select("path", "sha256", "bytes", "reader").iter_rows()
            if sha256 is not None
        ],
        files=files_written(task.place, "evidence", evidence_tables, week=weeks[0], experiment=name, token=key),
        judged=judged_of(task.place, tables, week=weeks[0], token=f"{key}-{secrets.token_hex(4)}", rules=task.rules),
    )


def judged_of(place: Place, tables: Mapping[str, pl.DataFrame], *, week: str, token: str, rules: str) -> Judged:
    """Write the tables of a judgement of one experiment."""
    runs = tables["runs"]
    files = files_written(place, "judgement", tables, week=week, experiment=str(runs["experiment"][0]), token=token)
    return Judged(
        rules, verdict_counts(runs), runs.filter(~pl.col("missing"))["series_key"].unique().sort().to_list(), files
    )


def files_written(
    place: Place, kind: str, tables: Mapping[str, pl.DataFrame], *, week: str, experiment: str, token: str
) -> list[Kept]:
    """One Parquet file a table that has rows, under a name that nobody else has."""
    folder = re.sub(r"[^A-Za-z0-9._-]+", "_", experiment)[:_SLUG_CHARS]
    names = {table: f"{kind}/{table}/week={week}/experiment={folder}/{token}.parquet" for table in tables}
    return [
        Kept(table, names[table], place.write(names[table], frame), frame.height)
        for table, frame in tables.items()
        if frame.height
    ]


def of_id(tables: Mapping[str, pl.DataFrame], key: str) -> dict[str, pl.DataFrame]:
    """The rows of one experiment."""
    return {name: frame.filter(pl.col("experiment_id") == key) for name, frame in tables.items()}


def of_experiment(evidence: Evidence, name: str) -> Evidence:
    """The evidence of one experiment."""
    mine = pl.col("experiment") == name
    runs = evidence.runs.filter(mine)
    placed = {
        table: getattr(evidence, table).filter(mine) for table, columns in TABLES.items() if "experiment" in columns
    }
    by_run = {table: getattr(evidence, table).join(runs, on="seen_id", how="semi") for table in _BY_RUN}
    unread = evidence.unread.join(placed["sources"], left_on="source_file", right_on="path", how="semi")
    return replace(evidence, **placed, **by_run, unread=unread)


def _read(files: Sequence[File]) -> tuple[Evidence, tuple[str, ...]]:
    """What the files say; one that cannot be read is left out, with the reason, and the rest is read all the same."""
    try:
        return load_files(list(files)), ()
    except PdkitError:
        each = [_tried(file) for file in files]
        problems = tuple(file.barred for file, failed in each if failed and file.barred)
        return load_files([file for file, _ in each]), problems


def _tried(file: File) -> tuple[File, bool]:
    try:
        load_files([file])
    except PdkitError as problem:
        return replace(file, barred=str(problem)), True
    return file, False


def _nothing(evidence: Evidence) -> str:
    if evidence.unread.height:
        first = evidence.unread.row(0, named=True)
        return f"no run of a known client (line {first['source_line']}: {first['reason']})"
    servers = any(getattr(evidence, name).height for name in ("samples", "events", "settings"))
    what = "logs of servers, and no client's run" if servers else f"{plural(evidence.sources.height, 'file')}, no run"
    return f"{what}; nothing stored"
