"""Logs on disk to Evidence: which files there are, who reads them, and which sightings are one run."""

import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Literal, NamedTuple

import polars as pl

from pdkit.copies import without_copies
from pdkit.errors import PdkitError
from pdkit.evidence import Evidence, table
from pdkit.parts import Reader, readers
from pdkit.source import Source

MANIFEST_NAME = "sweep.toml"
_SKIPPED_FOLDERS = {".git", ".ipynb_checkpoints", "__pycache__", ".venv", "node_modules"}
_NOT_LOGS = r"(?i)\.(?:md|toml|py|sh|png|svg|html)$|/\.[^/]*$|^\.[^/]*$"  # beside a log, not one
_LEVEL = ("concurrency", "request_rate_per_s")
_PRINTED = ("completed", "duration_s", "output_throughput_tok_per_s", "input_throughput_tok_per_s", *_LEVEL)
_NOTHING = "nothing|"  # begins the key of a run without throughput
_ID_CHARS = 12  # of a hash: 48 bits tell a million runs apart
_OF_SERVERS = ("samples", "events", "settings")
_PLACED = ("runs", "plan", "experiments", "files", *_OF_SERVERS)  # tables that name an experiment
PLANNED = "sweep_manifest"  # the reader of a run that only the plan speaks of
EMPTY = "empty file"
NOT_READ = "no reader knows this format"


Kind = Literal["client", "server"]


@dataclass(frozen=True)
class File:
    """One file to look at; `named` where the caller named it (a folder's files are merely found).

    `barred` says why it is not even opened.
    """

    source: Source
    root: Path
    named: bool
    barred: str | None

    @property
    def above(self) -> dict[Path, Path]:
        """Its folders up to the root, nearest first: where each really lies, and as it was given."""
        given = [folder for folder in self.source.path.parents if folder == self.root or self.root in folder.parents]
        return {folder.resolve(): folder for folder in given}


class _Home(NamedTuple):
    """The folder of an experiment: where it really lies, as it was given, and what a reader would call it."""

    real: Path
    given: Path
    name: str


def load(paths: str | Path | Iterable[str | Path]) -> Evidence:
    """Everything that the files say; folders are walked, links out of them are not followed.

    The order of paths does not matter: sightings are joined by what they say. A file given twice is read once. A file
    that no reader knows is listed in `sources`, with the reason.

    Raises:
        PdkitError: a path that does not exist, a manifest that is not valid, or two readers for the same lines.
    """
    return load_files(found([paths] if isinstance(paths, str | Path) else paths))


def found(paths: Iterable[str | Path]) -> list[File]:
    """Every file that `load` would look at, once; nothing is read.

    Raises:
        PdkitError: a path that does not exist.
    """
    return _files([Path(path) for path in paths])


def load_files(files: list[File]) -> Evidence:
    """What the files say together, as `load` says it of a folder that holds them alone."""
    parts = _read_all(files)
    homes = _homes([(file, _kind(evidence)) for file, _, evidence, _ in parts])
    names = _names(homes)
    evidence = Evidence.joined(
        _settled(evidence, file, reader=name, reason=reason, home=home, experiment=names[home.real])
        for (file, name, evidence, reason), home in zip(parts, homes, strict=True)
    )
    places = {file.source.name: _place(file, home) for file, home in zip(files, homes, strict=True)}
    marked = _with_absent_files(_with_end_markers(without_copies(_with_roles(evidence)), files))
    return _with_gpus(with_missing_levels(same_runs(_with_empty_logs(marked, files, places))))


def sources(paths: Iterable[str | Path]) -> list[Source]:
    """Every file that `load` would open, once, under the name that evidence cites; nothing is read."""
    return [file.source for file in found(paths) if not file.barred]


# --- files ----------------------------------------------------------------------------------------------------------


def _files(paths: list[Path]) -> list[File]:
    """Every file once, by where it really lies, in an order that does not depend on the caller's."""
    found: dict[Path, list[File]] = {}
    for path in paths:
        if not path.exists():
            raise PdkitError(f"{path}: no such file or folder")
        named = not path.is_dir()
        for file, barred in [(path, _barred(path))] if named else _walked(path):
            place = file.parent.resolve() / file.name if barred else file.resolve()
            made = File(Source(file, _printable(file)), path.parent if named else path, named, barred)
            found.setdefault(place, []).append(made)
    return [_widest(found[place]) for place in sorted(found)]


def _widest(ways: list[File]) -> File:
    """Of several ways to one file the one from the outermost folder, whatever their order."""
    first = min(ways, key=lambda way: (len(way.root.resolve().parts), len(way.source.name), way.source.name))
    return replace(first, named=any(way.named for way in ways))


def _walked(folder: Path) -> Iterator[tuple[Path, str | None]]:
    """What lies below, each with the reason why it is not opened, if there is one."""
    inside = folder.resolve()
    for path in sorted(folder.rglob("*")):
        if _SKIPPED_FOLDERS & set(path.relative_to(folder).parts):
            continue
        leads_out = path.is_symlink() and path.exists() and not path.resolve().is_relative_to(inside)
        barred = "a link out of the folder" if leads_out else _barred(path)
        if barred or not path.is_dir():
            yield path, barred


def _barred(path: Path) -> str | None:
    if not path.exists():
        return "a link to nothing"
    if not path.is_file() and not path.is_dir():
        return "not a file"
    return None if os.access(path, os.R_OK) else "may not be read"


def _printable(path: Path) -> str:
    """A name as evidence cites it, though its bytes need not be text."""
    return os.fsencode(path.as_posix()).decode("utf-8", errors="backslashreplace")


def _read_all(files: list[File]) -> list[tuple[File, str | None, Evidence, str | None]]:
    """Each file, and what `_read` says of it; hashes are made beside, since reading leaves a part of two cores."""
    beside = ThreadPoolExecutor(1)
    beside.map(_hashed_early, files)
    try:
        return [(file, *_read(file)) for file in files]
    finally:
        beside.shutdown(cancel_futures=True)


def _read(file: File) -> tuple[str | None, Evidence, str | None]:
    """Who read it, what it says, and why it was not read (or what was wrong with it)."""
    nothing, source = Evidence.of(), file.source
    if file.barred:
        return None, nothing, file.barred
    try:
        is_empty = source.is_empty
    except OSError as problem:
        return None, nothing, f"cannot be read: {problem.strerror}"
    if is_empty:
        return None, nothing, source.damage or EMPTY
    if source.is_binary:
        return None, nothing, "not text"
    known = readers()
    mine = [name for name, reader in known.items() if reader.sniff and reader.sniff(source)]
    if len(mine) > 1:
        raise PdkitError(f"{source.name}: claimed whole by {' and '.join(mine)}; a file has one such reader")
    mine = mine or _line_readers(source, known)
    evidence = Evidence.joined(_by(name, known[name].read(source)) for name in mine)
    if evidence.rows():
        return "+".join(mine), evidence, source.damage
    return None, nothing, source.damage or NOT_READ


def _by(reader: str, evidence: Evidence) -> Evidence:
    """With the reader of each run: a file that a server's reader shares is no other kind of listing for it."""
    return replace(evidence, runs=evidence.runs.with_columns(pl.lit(reader).alias("reader")))


def _hashed_early(file: File) -> None:
    """Its hash, for when it is asked for: a file that cannot be read is told of by who reads it."""
    if not file.barred:
        with suppress(OSError):
            _ = file.source.sha256


def _line_readers(source: Source, known: dict[str, Reader]) -> list[str]:
    signs = {name: reader.signs for name, reader in known.items() if reader.signs}
    seen = {name for name, sign in signs.items() if source.begins_with(sign)}
    unseen = {name: sign for name, sign in signs.items() if name not in seen}
    words = [known[name].words for name in unseen]
    later = source.holds(unseen, words=[word for some in words for word in some] if all(words) else ())
    mine = {name: sign for name, sign in signs.items() if name in seen or later[name]}
    pairs = {f"{one} and {other}": (mine[one], mine[other]) for one, other in combinations(mine, 2)}
    if shared := source.shared(pairs):
        raise PdkitError(f"{source.name}: {shared} claim the same lines; a line has one reader")
    return list(mine)


# --- experiments ----------------------------------------------------------------------------------------------------


def _kind(evidence: Evidence) -> Kind | None:
    """Whose output a file holds: a client's, else a server's."""
    if evidence.runs.height:
        return "client"
    return "server" if any(getattr(evidence, name).height for name in _OF_SERVERS) else None


def _homes(files: list[tuple[File, Kind | None]]) -> list[_Home]:
    """The experiment of each file: the nearest folder with a manifest, or else with client output, at or above it.

    A server's log that has none above it belongs to the one experiment that lies beside it, if there is only one.
    """
    nearest = [next(iter(file.above)) for file, _ in files]
    manifests = {real for (file, _), real in zip(files, nearest, strict=True) if file.source.path.name == MANIFEST_NAME}
    clients = {real for (_, kind), real in zip(files, nearest, strict=True) if kind == "client"}
    alone = [_home(file, manifests, clients) for file, _ in files]
    with_runs = {home.real: home for home, (_, kind) in zip(alone, files, strict=True) if kind == "client"}
    return [
        _beside(file, home, with_runs) if kind == "server" and home.real not in {*with_runs, *manifests} else home
        for home, (file, kind) in zip(alone, files, strict=True)
    ]


def _beside(file: File, home: _Home, with_runs: dict[Path, _Home]) -> _Home:
    """The experiment below the nearest folder that holds any, where that is one; else the file's own home."""
    for folder in file.above:
        below = [its for real, its in with_runs.items() if folder in real.parents]
        if below:
            return below[0] if len(below) == 1 else home
    return home


def _home(file: File, manifests: set[Path], clients: set[Path]) -> _Home:
    marked = (real for marks in (manifests, clients) for real in file.above if real in marks)
    real = next(marked, next(iter(file.above)))
    given = file.above[real]
    # as a reader would name it: from the given folder's own name down
    return _Home(real, given, "/".join([file.root.resolve().name or "/", *given.relative_to(file.root).parts]))


def _place(file: File, home: _Home) -> str:
    """Its name below its experiment: the same from wherever it is looked at."""
    return _printable(Path(os.path.relpath(file.source.path, home.given)))


def _names(homes: list[_Home]) -> dict[Path, str]:
    """The name of each folder, or its path where two have one name."""
    short = {home.real: home.name for home in homes}
    doubled = {name for name in short.values() if list(short.values()).count(name) > 1}
    return {home.real: _printable(home.given if home.name in doubled else Path(home.name)) for home in homes}


def _settled(
    evidence: Evidence, file: File, *, reader: str | None, reason: str | None, home: _Home, experiment: str
) -> Evidence:
    """The evidence of one file, told where it belongs."""
    source = file.source
    of_experiment = pl.lit(experiment).alias("experiment")
    placed = {name: getattr(evidence, name).with_columns(of_experiment) for name in _PLACED}
    placed["runs"] = placed["runs"].with_columns(
        pl.col("seen_id").str.replace(source.name, _place(file, home), literal=True).alias("run_id"),
    )
    row = {
        "path": source.name, "experiment": experiment, "reader": reader, "reason": reason, "rows": evidence.rows(),
        "bytes": None if file.barred else source.size, "sha256": None if file.barred else source.sha256,
    }  # fmt: skip
    return replace(evidence, **placed, sources=table("sources", [row]))


# --- what only all files together say -------------------------------------------------------------------------------


def _with_end_markers(evidence: Evidence, files: list[File]) -> Evidence:
    """Which runs stand in a log that holds the line that their sweep script prints last."""
    by_name = {file.source.name: file.source for file in files}
    ends = []
    for experiment, marker in (
        evidence.experiments.filter(pl.col("end_marker").is_not_null()).select("experiment", "end_marker").iter_rows()
    ):
        logs = evidence.runs.filter(pl.col("experiment") == experiment)["source_file"].unique().to_list()
        if any(by_name[log].holds({"end": re.escape(marker)})["end"] for log in logs):
            ends.append({"experiment": experiment, "end_marker": marker})
    seen = pl.DataFrame(ends, schema={"experiment": pl.String, "end_marker": pl.String})
    runs = evidence.runs.drop("end_marker").join(seen, on="experiment", how="left", maintain_order="left")
    return replace(evidence, runs=table("runs", runs))


def _with_roles(evidence: Evidence) -> Evidence:
    """A server's role as the manifest names it for its file; elsewhere as its own lines tell it."""
    said = evidence.files.filter(pl.col("role") != "client").unique("path", keep="first", maintain_order=True)
    roles = dict(said.select("path", "role").iter_rows())
    named = pl.col("source_file").replace_strict(roles, default=None, return_dtype=pl.String)
    given = {
        name: getattr(evidence, name).with_columns(pl.coalesce(named, "role").alias("role")) for name in _OF_SERVERS
    }
    return replace(evidence, **given) if roles else evidence


def _with_absent_files(evidence: Evidence) -> Evidence:
    """A file that a manifest names and nobody finds is listed among the sources, with the line that names it."""
    named = evidence.files.filter(
        ~pl.col("path").map_elements(lambda path: Path(path).exists(), return_dtype=pl.Boolean)
    )
    said = pl.format("{}:{} names it, but it is not there", "source_file", "source_line")
    rows = named.select("path", "experiment", said.alias("reason")).to_dicts()
    return replace(evidence, sources=pl.concat([evidence.sources, table("sources", rows)]))


def _with_empty_logs(evidence: Evidence, files: list[File], places: dict[str, str]) -> Evidence:
    """An empty log is a run without a result where somebody meant it to be one; elsewhere it is listed as empty."""
    empty = evidence.sources.filter(pl.col("reason") == EMPTY)
    meant = {file.source.name for file in files if file.named} | set(evidence.files["path"])
    logs = evidence.sources.filter(~pl.col("path").str.contains(_NOT_LOGS))
    alone = set(logs.filter(pl.len().over("experiment") == 1)["path"])
    rows = [
        {
            "seen_id": path,
            "run_id": places[path],
            "experiment": experiment,
            "complete": False,
            "ending": EMPTY,
            "source_file": path,
            "source_line": 1,
        }
        for path, experiment in empty.select("path", "experiment").iter_rows()
        if path in meant or path in alone
    ]
    return replace(evidence, runs=pl.concat([evidence.runs, table("runs", rows)]))


def same_runs(evidence: Evidence) -> Evidence:
    """Sightings whose completed count, duration and throughput print alike in one experiment are one run.

    These survive the usual grep filter, and two invocations share all three only if they took the same time to 10 ms
    and reached the same throughput to 0.01 tok/s. A sighting that does not state them is a run of its own. Where logs
    lie in one folder and records in another, what they share makes the folders one experiment.
    """
    keyed = _keyed(evidence)
    known_as = _one_experiment(keyed, set(evidence.experiments["experiment"]))
    own = pl.coalesce("key", "run_id", "seen_id")  # until now, run_id is the sighting's own place in its experiment
    placed = keyed.select("experiment", own.alias("own"), pl.col("key").is_not_null()).iter_rows()
    ids = [_hashed(known_as.get(home, home) if shared else home, key) for home, key, shared in placed]
    named = keyed.drop("key").with_columns(pl.Series("run_id", ids, dtype=pl.String))
    of_runs = {name: _of_runs(getattr(evidence, name), named, name) for name in ("claims", "requests", "gaps")}
    united = replace(evidence, runs=table("runs", named), **of_runs)
    renamed = {name: _renamed(getattr(united, name), known_as) for name in (*_PLACED, "sources")}
    return replace(united, **renamed) if known_as else united


def _keyed(evidence: Evidence) -> pl.DataFrame:
    """The sightings, each with what it prints of its run; null where it does not print all of it."""
    printed = evidence.claims.filter(pl.col("fact").is_in(_PRINTED), pl.col("value").is_not_null())
    # as the tool prints them; Python's own rounding, since a tie decides whether two sightings are one run
    texts = printed.with_columns(pl.Series("text", [f"{value:.2f}" for value in printed["value"]], dtype=pl.String))
    columns = texts.unique(["seen_id", "fact"], keep="first", maintain_order=True).pivot(
        "fact", on_columns=list(_PRINTED), index="seen_id", values="text"
    )
    # embeddings have no output, which one reader prints as 0 and another not at all
    output, of_input = pl.col("output_throughput_tok_per_s"), pl.col("input_throughput_tok_per_s")
    throughput = pl.when(output != "0.00").then(output).otherwise(pl.coalesce(of_input, output))
    # where all requests failed, every level prints the same: then the level has to tell
    nothing = pl.concat_str(pl.lit(_NOTHING), "completed", "duration_s", *_LEVEL, separator="|")
    something = pl.concat_str("completed", "duration_s", throughput, separator="|")
    keys = columns.select(
        "seen_id",
        pl.when((throughput == "0.00") | (pl.col("completed") == "0.00"))
        .then(nothing)
        .otherwise(something)
        .alias("key"),
    )
    return evidence.runs.join(keys, on="seen_id", how="left", maintain_order="left")


def _one_experiment(keyed: pl.DataFrame, declared: set[str]) -> dict[str, str]:
    """The new name of each experiment that shares a run with another: one has its log, the other its record.

    Two copies of a log are two claims, and two manifests two experiments: those stay apart. Folders that lie beside
    each other come first, so that a copy elsewhere parts no log from its record.
    """
    above = pl.Series("above", [Path(home).parent.as_posix() for home in keyed["experiment"]], dtype=pl.String)
    shared = keyed.with_columns(above).filter(~pl.col("key").str.starts_with(_NOTHING))
    groups: dict[str, set[str]] = {}
    for homes in (*_log_and_record(shared, "key", "above"), *_log_and_record(shared, "key")):
        together = set(homes).union(*(groups.get(home, ()) for home in homes))
        if len(together & declared) <= 1:
            groups |= dict.fromkeys(together, together)
    taken = set(keyed["experiment"])
    names = {home: _name_of(together, declared, taken - together) for home, together in groups.items()}
    # two sweeps side by side lie below one folder: neither may have its name
    wanted = [(names[home], min(together)) for home, together in groups.items()]
    crowded = {name for name, first in wanted if any(name == other and first != its for other, its in wanted)}
    return {home: min(groups[home]) if name in crowded else name for home, name in names.items()}


def _log_and_record(shared: pl.DataFrame, *within: str) -> list[list[str]]:
    """The experiments of each run that has one listing a reader, in several experiments."""
    listed = shared.group_by(*within).agg(
        pl.struct("experiment", "reader").unique().alias("listings"),
        pl.col("experiment").unique().sort().alias("homes"),
        pl.col("reader").n_unique().alias("readers"),
    )
    pairs = listed.filter(pl.col("homes").list.len() > 1, pl.col("listings").list.len() == pl.col("readers"))
    return sorted(pairs["homes"].to_list())


def _name_of(together: set[str], declared: set[str], taken: set[str]) -> str:
    """Of the one with a manifest, else the folder that holds them all, else the first of them."""
    above = os.path.commonpath(sorted(together)) if len({home.startswith("/") for home in together}) == 1 else ""
    return min(together & declared, default=min(together) if above in {"", *taken} else above)


def _renamed(rows: pl.DataFrame, known_as: dict[str, str]) -> pl.DataFrame:
    return rows.with_columns(pl.col("experiment").replace(known_as))


def _of_runs(rows: pl.DataFrame, runs: pl.DataFrame, name: str) -> pl.DataFrame:
    return table(
        name,
        rows.drop("run_id").join(runs.select("seen_id", "run_id"), on="seen_id", how="left", maintain_order="left"),
    )


def _hashed(*parts: str | None) -> str:
    return hashlib.sha256("\0".join(part or "" for part in parts).encode()).hexdigest()[:_ID_CHARS]


def with_missing_levels(evidence: Evidence) -> Evidence:
    """A planned level that no file shows becomes a run of which only the plan speaks."""
    asked = evidence.claims.filter(pl.col("fact").is_in(_LEVEL)).unique(
        ["run_id", "fact"], keep="first", maintain_order=True
    )
    stated = asked.pivot("fact", on_columns=list(_LEVEL), index="run_id", values="value")
    found = evidence.runs.select("run_id", "experiment").unique().join(stated, on="run_id", how="left")
    planned = evidence.plan.with_row_index("planned").unique(["experiment", *_LEVEL], keep="first", maintain_order=True)
    alone = pl.len().over("experiment") == 1
    pairs = planned.with_columns(alone.alias("alone")).join(found, on="experiment", suffix="_found")
    cap, rate = pl.col("concurrency_found"), pl.col("request_rate_per_s_found")
    same_cap = (cap == pl.col("concurrency")) | (cap.is_null() & pl.col("alone"))
    same_rate = (rate == pl.col("request_rate_per_s")) | rate.is_null() | pl.col("request_rate_per_s").is_null()
    shown = pairs.filter(same_cap & same_rate)["planned"]
    missing = planned.filter(~pl.col("planned").is_in(shown.implode()))
    place = ["source_file", "source_line"]
    runs = [
        {
            "seen_id": (seen := f"{row['source_file']}#{row['source_line']}"),
            "run_id": _hashed(row["experiment"], seen),
            "experiment": row["experiment"],
            "reader": PLANNED,
            "complete": False,
            "ending": "planned, but no file has this level",
        }
        | {key: row[key] for key in place}
        for row in missing.iter_rows(named=True)
    ]  # fmt: skip
    claims = [
        {"seen_id": run["seen_id"], "run_id": run["run_id"], "fact": fact, "value": row[fact], "resolution": 0.0}
        | {key: row[key] for key in place}
        for run, row in zip(runs, missing.iter_rows(named=True), strict=True)
        for fact in (*_LEVEL, "prompts_asked")
        if row[fact] is not None
    ]
    return replace(
        evidence,
        runs=pl.concat([evidence.runs, table("runs", runs)]),
        claims=pl.concat([evidence.claims, table("claims", claims)]),
    )


def _with_gpus(evidence: Evidence) -> Evidence:
    """The number of GPUs is the same for every run of an experiment; the manifest's line is its source."""
    said = evidence.experiments.filter(pl.col("gpu_count").is_not_null()).unique(
        "experiment", keep="first", maintain_order=True
    )
    place = ["source_file", "source_line", "source_item"]
    rows = (
        evidence.runs.unique(["run_id"], keep="first", maintain_order=True)
        .drop(place)
        .join(said.select("experiment", "gpu_count", *place), on="experiment")
    )
    claims = rows.select(
        "run_id",
        "seen_id",
        pl.lit("gpu_count").alias("fact"),
        pl.col("gpu_count").alias("value"),
        pl.lit(0.0).alias("resolution"),
        *place,
    )
    return replace(evidence, claims=pl.concat([evidence.claims, table("claims", claims)]))
