"""What a store holds: one small manifest a commit, and one pure answer to which version of an experiment counts.

A data file exists for a reader only once a manifest names it. Manifests are never changed, so that several ingests at
once lose nothing: whatever each of them wrote is there, and what counts follows from all manifests together, whatever
their order.
"""

import secrets
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import msgspec

import pdkit
from pdkit.errors import PdkitError
from pdkit.store.place import Place, read_all

FORMAT = 1  # what this pdkit reads and writes
MARKER = "pdkit-store.json"  # the object that makes a place a store
MANIFESTS = "manifests"
_SEEN_AGAIN = 3  # times that a listing is read anew because a vacuum removed what it named


@dataclass(frozen=True)
class Kept:
    """One Parquet file of the store."""

    table: str
    name: str
    bytes: int
    rows: int


@dataclass(frozen=True)
class Seen:
    """One file that an experiment was read from, by its content; `client` where it shows a run."""

    path: str
    sha256: str
    bytes: int
    read: bool
    client: bool


@dataclass(frozen=True)
class Judged:
    """What one version of the rules said of an experiment; `keys` are its series."""

    rules: str
    verdicts: dict[str, int]
    keys: list[str]
    files: list[Kept]
    seq: int = 0


@dataclass(frozen=True)
class Stored:
    """One version of an experiment: what it was read from, what it holds, and what was said of it.

    `prints` tell its runs that have a result by what they print; `detail` says how much is known of them.
    `unit` is a hash of the files that were read together, `replaces` names versions that this one continues.
    """

    id: str
    experiment: str
    title: str
    weeks: list[str]
    dated_by: list[str]
    runs: int
    prints: list[str]
    detail: int
    unit: str
    sources: list[Seen]
    files: list[Kept]
    judged: Judged
    replaces: list[str] = field(default_factory=list)
    seq: int = 0

    @property
    def bytes(self) -> int:
        """Of all its files that count."""
        return sum(file.bytes for file in (*self.files, *self.judged.files))

    @property
    def read(self) -> frozenset[str]:
        """The files that a reader understood, by their content."""
        return frozenset(source.sha256 for source in self.sources if source.read)

    @property
    def client(self) -> frozenset[str]:
        """The files that show its runs, by their content."""
        return frozenset(source.sha256 for source in self.sources if source.client)


@dataclass(frozen=True)
class Manifest:
    """One commit: versions that came, judgements anew of versions by id, and ids of those removed."""

    format: int = FORMAT
    pdkit: str = ""
    written: str = ""
    stored: list[Stored] = field(default_factory=list)
    judged: dict[str, Judged] = field(default_factory=dict)
    removed: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Contents:
    """All manifests together: `live` versions count, `hidden` ones are continued by others, `removed` are gone."""

    live: tuple[Stored, ...]
    hidden: tuple[Stored, ...]
    removed: frozenset[str]
    manifests: tuple[str, ...]

    @property
    def named(self) -> frozenset[str]:
        """The data files that count."""
        return frozenset(kept.name for entry in self.live for kept in (*entry.files, *entry.judged.files))

    @property
    def keys(self) -> frozenset[str]:
        """The series of all runs that count."""
        return frozenset(key for entry in self.live for key in entry.judged.keys)

    def of_weeks(self, weeks: Iterable[str] | None) -> list[Stored]:
        """The live versions with a run in one of the weeks; None asks for all."""
        wanted = None if weeks is None else set(weeks)
        return [entry for entry in self.live if wanted is None or wanted & set(entry.weeks)]


# --- reading --------------------------------------------------------------------------------------------------------


def contents(where: Place) -> Contents:
    """What the store holds now.

    Raises:
        PdkitError: no store, one of a newer format, or a manifest that is none.
    """
    _checked(where)
    for attempt in range(_SEEN_AGAIN):
        names = sorted(item.name for item in where.items(MANIFESTS) if item.name.endswith(".json"))
        try:
            return _folded(names, [_manifest(where, *one) for one in zip(names, read_all(where, names), strict=True)])
        except FileNotFoundError:
            if attempt + 1 == _SEEN_AGAIN:
                raise
    raise AssertionError  # the loop returns or raises


def _checked(where: Place) -> None:
    try:
        said = msgspec.json.decode(where.read(MARKER), type=Manifest)
    except FileNotFoundError as problem:
        what = "not a store" if next(where.items(), None) else "no such store"
        raise PdkitError(f"{where.name}: {what}; `pdkit ingest PATH --store {where.name}` makes one") from problem
    except (NotADirectoryError, IsADirectoryError, PermissionError) as problem:
        raise PdkitError(f"{where.name}: not a store ({problem.strerror})") from problem
    except msgspec.MsgspecError as problem:
        raise PdkitError(f"{where.name}: not a store; its {MARKER} is none of pdkit's ({problem})") from problem
    _readable(where, MARKER, said.format)


def _readable(where: Place, name: str, form: int) -> None:
    if form > FORMAT:
        raise PdkitError(f"{where.name}: {name} is of format {form}, this pdkit reads up to {FORMAT}; update pdkit")


def _manifest(where: Place, name: str, content: bytes) -> Manifest:
    try:
        _readable(where, name, msgspec.json.decode(content, type=_Form).format)
        return msgspec.json.decode(content, type=Manifest)
    except msgspec.MsgspecError as problem:
        raise PdkitError(f"{where.name}: {name} is no manifest ({problem}); restore it from a copy") from problem


class _Form(msgspec.Struct):
    format: int


def _folded(names: list[str], manifests: list[Manifest]) -> Contents:
    every: dict[str, Stored] = {}
    judged: dict[str, Judged] = {}
    removed: set[str] = set()
    for manifest in manifests:
        removed |= set(manifest.removed)
        anew = [(entry.id, entry.judged) for entry in manifest.stored]
        every |= {entry.id: entry for entry in manifest.stored}
        for key, said in (*anew, *manifest.judged.items()):
            judged[key] = max(said, judged.get(key, said), key=lambda one: (one.seq, one.rules))
    entries = [replace(entry, judged=judged[entry.id]) for entry in every.values() if entry.id not in removed]
    live, hidden = counted(entries)
    return Contents(live, hidden, frozenset(removed), tuple(names))


# --- which version counts -------------------------------------------------------------------------------------------


def counted(entries: Iterable[Stored]) -> tuple[tuple[Stored, ...], tuple[Stored, ...]]:
    """The versions that count, in order of week and name, and those that another one continues.

    From the one that says most down, each is held against those that count by then: so every version that does not
    count is continued by one that does, and the order in which they came is nothing.
    """
    known = sorted(entries, key=_order, reverse=True)
    named = {gone for entry in known for gone in entry.replaces}
    by_print: dict[str, list[Stored]] = defaultdict(list)
    by_name: dict[str, list[Stored]] = defaultdict(list)
    hidden: set[str] = set()
    for entry in known:
        rivals = [*by_name[entry.experiment], *(by_print[entry.prints[0]] if entry.prints else ())]
        if entry.id in named or any(continues(other, entry) for other in rivals):
            hidden.add(entry.id)
            continue
        by_name[entry.experiment].append(entry)
        for shown in entry.prints:
            by_print[shown].append(entry)
    ordered = sorted(known, key=lambda entry: (entry.weeks, entry.experiment, entry.seq, entry.id))
    return (
        tuple(entry for entry in ordered if entry.id not in hidden),
        tuple(entry for entry in ordered if entry.id in hidden),
    )


def continues(newer: Stored, older: Stored) -> bool:
    """Whether a version holds all that another one does, so that the other need not count.

    It has all its runs, whatever it is called; or it bears its name and has all its files that show runs. Of two that
    have the same, the one that says more of them counts, else the later one. Two experiments of one name that share
    neither, as a folder that every night fills anew, are two; so are two nights without any result.
    """
    if _order(newer) <= _order(older):
        return False
    if older.prints and set(newer.prints) >= set(older.prints):
        return True
    if newer.experiment != older.experiment or not older.client or not newer.client >= older.client:
        return False
    return bool(older.prints) or set(newer.weeks) >= set(older.weeks)


def _order(entry: Stored) -> tuple[int, int, int, str]:
    return entry.detail, len(entry.read), entry.seq, entry.id


def same(one: Stored, other: Stored) -> bool:
    """Whether two versions were read from the same files, whatever those are called."""
    if one.prints != other.prints or one.read != other.read:
        return False
    return bool(one.prints) or (one.experiment == other.experiment and one.weeks == other.weeks)


# --- writing --------------------------------------------------------------------------------------------------------


def founded(where: Place) -> Contents:
    """What the store holds; a new or empty place becomes one.

    Raises:
        PdkitError: the place holds something else.
    """
    if not _is_store(where):
        others = [item for item in where.items() if not item.name.startswith(f".{MARKER}.")]
        if not others:
            where.put(MARKER, msgspec.json.encode({"format": FORMAT}) + b"\n")
        elif not _is_store(where):  # somebody may have founded it since
            raise PdkitError(f"{where.name}: holds files, but is no store; name an empty or a new place")
    return contents(where)


def _is_store(where: Place) -> bool:
    try:
        where.read(MARKER)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def commit(
    where: Place,
    *,
    stored: Iterable[Stored] = (),
    judged: Mapping[str, Judged] | None = None,
    removed: Iterable[str] = (),
    keep_order: bool = False,
) -> None:
    """Make it count: one manifest, put last. `keep_order` leaves each version its place in time.

    The number in its name is one more than the highest there is: it grows whatever the clocks say.
    """
    seq = 1 + max((_number(item.name) for item in where.items(MANIFESTS)), default=0)
    numbered = [
        entry if keep_order else replace(entry, seq=seq, judged=replace(entry.judged, seq=seq)) for entry in stored
    ]
    manifest = Manifest(
        pdkit=pdkit.__version__,
        written=datetime.now(UTC).isoformat(timespec="seconds"),
        stored=numbered,
        judged={key: replace(said, seq=seq) for key, said in (judged or {}).items()},
        removed=sorted(removed),
    )
    where.put(f"{MANIFESTS}/{seq:08d}-{secrets.token_hex(6)}.json", msgspec.json.encode(manifest) + b"\n")


def _number(name: str) -> int:
    digits = name.rpartition("/")[2].partition("-")[0]
    return int(digits) if digits.isdigit() else 0
