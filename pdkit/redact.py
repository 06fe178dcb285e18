"""Evidence fit to leave the house: hosts, addresses and paths give way to names that tell nothing."""

import hashlib
import re
from collections.abc import Iterable
from dataclasses import fields, replace
from itertools import pairwise
from pathlib import Path, PurePosixPath

import polars as pl

from pdkit.evidence import Evidence
from pdkit.policy import Waiver
from pdkit.source import stripped

_FREE_TEXT = {
    "runs": ("ending", "model"),
    "requests": ("error",),
    "unread": ("text",),
    "sources": ("reason",),
    "experiments": ("model", "label", "end_marker", "gpu"),
    "events": ("subject", "text"),
    "settings": ("text",),
}
# what these may say as it stands; anything else may name a machine or a customer
_PLAIN = {"topology": (r"colocated|\d+p\d+d", "[topology]"), "dataset": (r"[\w.-]+", "[path]")}
_OF_PEERS = ("session_failed", "session_recovered", "connection_lost")  # events whose subject is an address
_TELLS_NOTHING = re.compile(r"[\d\[\]:.#-]*|prefill|decode|colocated|router")  # of a name: a line, a side of a split
_HASH_CHARS = 6
_PATHS = {"runs": ("source_file",), "files": ("path", "source_file"), "sources": ("path",)}
_KEPT_SUFFIXES = {f".{s}" for s in ("log", "txt", "out", "err", "json", "jsonl", "toml", "gz", "zst", "md", "py", "sh")}
_DOMAINS = "com|net|org|io|ai|dev|cn|de|eu|local|lan|internal|corp|cluster|svc|example"
_HEX, _PORT = "[0-9a-f]{1,4}", r"(?::\d{5})?"  # shorter ports look like a part of the address
_PARTS = rf"{_HEX}(?::{_HEX})*"
_HIDDEN = (
    # who a transfer session is with, and where the other side listens: an address, whatever it looks like
    (re.compile(r"(?<=\bSession )\S+(?= (?:failed|recovered)\b)"), "[address]"),
    (re.compile(r"(?<=\bbootstrap_addr: )[^)\s]+"), "[address]"),
    (re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s'\"<>)]+", re.IGNORECASE), "[address]"),
    (re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b"), "[address]"),
    (re.compile(rf"(?<![\w:])(?:{_HEX}:){{3,7}}{_HEX}\b", re.IGNORECASE), "[address]"),
    (re.compile(rf"(?<![\w:])(?:{_PARTS})?::(?:{_PARTS})?{_PORT}(?![\w:])", re.IGNORECASE), "[address]"),
    (re.compile(r"[\w.+-]+@[A-Za-z][\w.-]*"), "[address]"),
    (re.compile(r"\bpods?/[\w.-]+"), "[host]"),
    (re.compile(r"(?<!\w)~[\w.-]*/[^\s'\"<>)]*"), "[path]"),
    (re.compile(r"(?<![\w./])/(?:[\w.+@-]+/)+[\w.+@-]*"), "[path]"),
    (re.compile(r"(?<![\w/.])[\w.+@-]+(?:/[\w.+@-]+){2,}/?"), "[path]"),  # Qwen/Qwen3-8B is none
    (re.compile(r"\b[A-Za-z]:\\[^\s'\"]+"), "[path]"),
    (re.compile(rf"\b[\w-]+(?:\.[\w-]+)*\.(?:{_DOMAINS})\b(?::\d+)?", re.IGNORECASE), "[host]"),
    (re.compile(r"\b(?=[\w.-]*[A-Za-z])[\w-]+(?:\.[\w-]+)*:\d{4,5}\b"), "[host]"),
    (re.compile(r"(?<=\bhost[ =:'])[\w.-]+|(?<=@)[\w-]+(?=[:~ ])", re.IGNORECASE), "[host]"),
)  # fmt: skip


def redacted(evidence: Evidence) -> Evidence:
    """The same evidence with files and folders numbered, and hosts, addresses and paths in free text masked.

    What a finding cites is still found by whoever has the logs: `sources` keeps each file's sha256.
    """
    paths = sorted({*evidence.sources["path"], *evidence.runs["source_file"], *evidence.files["path"]} - {None})
    file_names = {path: f"file-{number:02d}{_suffix(path)}" for number, path in enumerate(paths, 1)}
    homes = sorted({*evidence.sources["experiment"], *evidence.runs["experiment"]} - {None})
    home_names = {home: f"experiment-{number}" for number, home in enumerate(homes, 1)}
    tables = {}
    for field in fields(evidence):
        frame: pl.DataFrame = getattr(evidence, field.name)
        places = [name for name in ("source_file", "path") if name in frame.columns]
        free = [name for name in _FREE_TEXT.get(field.name, ()) if name in frame.columns]
        tables[field.name] = frame.with_columns(
            *(pl.col(name).replace(file_names) for name in places),
            *(pl.col(name).replace(home_names) for name in ("experiment",) if name in frame.columns),
            *(pl.Series(name, [masked(text) for text in frame[name]], dtype=pl.String) for name in free),
            *(
                pl.when(pl.col(name).is_null() | pl.col(name).str.contains(f"^(?:{plain})$"))
                .then(name)
                .otherwise(pl.lit(shown))
                .alias(name)
                for name, (plain, shown) in _PLAIN.items()
                if name in frame.columns
            ),
            *(_numbered(frame, name, file_names) for name in ("seen_id", "instance") if name in frame.columns),
        )
    tables["sources"] = tables["sources"].with_columns(_without_names(evidence.sources["reason"], file_names))
    tables["events"] = _with_peers(tables["events"], evidence.events)
    return replace(evidence, **tables)


def _without_names(reasons: pl.Series, names: dict[str, str]) -> pl.Series:
    """Why a file was not counted, with the numbers of files that it names; the longest name first."""
    ordered = sorted(names, key=lambda name: (-len(name), name))
    numbered = reasons.str.replace_many(ordered, [names[name] for name in ordered], leftmost=True)
    return pl.Series("reason", [masked(text) for text in numbered], dtype=pl.String)


def _with_peers(masked_events: pl.DataFrame, events: pl.DataFrame) -> pl.DataFrame:
    """Peers as numbers, each its own: two sessions under one name would be one, and alive where one of them is."""
    of_peer = pl.col("kind").is_in(_OF_PEERS)
    peers = events.filter(of_peer)["subject"].drop_nulls().unique().sort()
    names = {peer: f"peer-{number}" for number, peer in enumerate(peers, 1)}
    told = events.select(pl.when(of_peer).then(pl.col("subject").replace(names)).alias("peer"))["peer"]
    return masked_events.with_columns(pl.coalesce(told, "subject").alias("subject"))


def redacted_waivers(waivers: tuple[Waiver, ...]) -> tuple[Waiver, ...]:
    """The same waivers with hosts, addresses and paths masked in what people wrote."""
    return tuple(
        replace(waiver, owner=masked(waiver.owner) or "", reason=masked(waiver.reason) or "") for waiver in waivers
    )


def _suffix(path: str) -> str:
    """What a file is, but not what someone added to its name."""
    suffix = PurePosixPath(path).suffix
    return suffix if suffix in _KEPT_SUFFIXES else ""


def masked(text: str | None) -> str | None:
    """A text without hosts, addresses and paths; a model's own name stays."""
    if text is None:
        return None
    if re.fullmatch(r"/\S+", text):
        return PurePosixPath(text).name or "[path]"
    return _hidden(text)


def _hidden(text: str) -> str:
    for pattern, shown in _HIDDEN:
        text = pattern.sub(shown, text)
    return text


def _numbered(frame: pl.DataFrame, column: str, names: dict[str, str]) -> pl.Expr:
    """`seen_id` and `instance` begin with the file's name; behind it may stand what a container or host is called."""
    parts = ((whole, *whole.partition("#")) for whole in frame[column].drop_nulls().unique().sort())
    return pl.col(column).replace({
        whole: f"{names.get(path, path)}{mark}{rest if _TELLS_NOTHING.fullmatch(rest) else _hashed(rest)}"
        for whole, path, mark, rest in parts
    })  # fmt: skip


def _hashed(name: str) -> str:
    """A name that is the same in every table and tells nothing."""
    return f"server-{hashlib.sha256(name.encode()).hexdigest()[:_HASH_CHARS]}"


# --- whole lines of logs --------------------------------------------------------------------------------------------

_SAID = (  # where a line says a host by name: behind it a port, before it a scheme, a user, the word itself
    re.compile(r"://(?:[^\s/@]+@)?([A-Za-z][\w.-]*)"),
    re.compile(r"\b([A-Za-z][\w-]*\d[\w-]*(?:\.[\w-]+)*):\d{4,5}\b"),
    re.compile(rf"\b([A-Za-z][\w-]*(?:\.[\w-]+)*\.(?:{_DOMAINS}))\b", re.IGNORECASE),
    re.compile(r"(?:\bhost(?:name)?[ =:'\"]+|@|\bpods?/)([A-Za-z][\w.-]*)", re.IGNORECASE),
    re.compile(
        r"(?<![A-Za-z0-9-])([a-z][a-z0-9]*(?:-[a-z0-9]+)+-\d{1,5})(?![\w-])"
    ),  # gpu-rack-12, pod of a stateful set
    re.compile(r"(?<![A-Za-z0-9-])([a-z][a-z0-9-]*-[a-f0-9]{8,10}-[a-z0-9]{5})(?![\w-])"),  # pod of a deployment
)
_CODE = (".py", ".pyx", ".cc", ".cpp", ".cu", ".h", ".hpp", ".rs", ".go", ".js", ".ts", ".json", ".log", ".so")
_PREFIX_WORD = re.compile(r"[\w.@/-]*[A-Za-z][\w.@/-]*")
_OF_A_CLOCK = re.compile(
    r"(?i)[\d.+-]*[tz]?[\d.]*z?|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|std(?:out|err)|f|p|\d\d[oe]"
)
_HOMES = ("home", "Users")  # of people, by name
_SHORT = 3  # a name of so few letters is in too many words
_PLAIN_PARTS = re.compile(r"[\d.:_-]*|.{0,3}|[A-Za-z]*")  # of a path: a day, or a word that a log may well use


def masked_lines(lines: list[str], paths: Iterable[Path]) -> list[str]:
    """Whole lines of logs without hosts, addresses and paths, in order.

    Two things are known here that `masked` cannot know: where the files lie, and hosts that another line names.
    """
    unique = list(dict.fromkeys(lines))
    bare = _replaced(map(_without_prefix, unique), _parts(paths), "[path]")
    hidden = dict(zip(unique, _replaced(map(_hidden, bare), _hosts(unique), "[host]"), strict=True))
    return [hidden[line] for line in lines]


def _replaced(texts: Iterable[str], words: set[str], instead: str) -> pl.Series:
    """All words give way in one go; of two that fit, the longer one is meant."""
    series = pl.Series([*texts], dtype=pl.String)
    ordered = sorted(words, key=lambda word: (-len(word), word))
    return series.str.replace_many(ordered, [instead] * len(ordered), leftmost=True) if words else series


def _without_prefix(line: str) -> str:
    """What a container or a service manager put before a line keeps its clock alone: the rest names machines."""
    text = stripped(line)
    at = line.rfind(text) if text else 0
    return f"{_PREFIX_WORD.sub(_clock_or_host, line[:at])}{line[at:]}"


def _clock_or_host(found: re.Match[str]) -> str:
    return found[0] if _OF_A_CLOCK.fullmatch(found[0]) else "[host]"


def _hosts(lines: Iterable[str]) -> set[str]:
    """Names that some line gives a host, but for those that are words too."""
    said = {name.rstrip(".-") for line in lines for pattern in _SAID for name in pattern.findall(line)}
    names = said | {name.partition(".")[0] for name in said}
    return {name for name in names if not _PLAIN_PARTS.fullmatch(name) and not name.lower().endswith(_CODE)}


def _parts(paths: Iterable[Path]) -> set[str]:
    """Where files lie, folder by folder, and the names in there that no log would use as a word."""
    ways = {way for path in paths for way in (path, path.absolute(), path.resolve())}
    folders = {folder.as_posix() for way in ways for folder in (way, *way.parents)}
    names = {part for way in ways for part in way.parts if not _PLAIN_PARTS.fullmatch(part)}
    people = {who for way in ways for above, who in pairwise(way.parts) if above in _HOMES and len(who) > _SHORT}
    return {folder for folder in folders if folder.count("/") > 1} | names | people
