"""The evidence bundle: one zip from which somebody else can check every figure of a report; see docs/bundle.md."""

import hashlib
import json
import platform
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import Any

import polars as pl

from pdkit import __version__
from pdkit.errors import PdkitError
from pdkit.findings import Place
from pdkit.load import sources
from pdkit.quotes import CONTEXT, Quote, ends, quotes
from pdkit.redact import masked_lines
from pdkit.source import Source

SHOWN_CHARS = 2000  # of a quoted line
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the first day that a zip knows: the same report makes the same bytes
_MODE, _UNIX, _LEVEL = 0o100644 << 16, 3, 6
_NUMBERS = re.compile(r":(\d{1,18})(?:\[(\d{1,18})\])?(?!\d)")
_WHOLE_PLACE = re.compile(r"(?s:.+):\d{1,18}(?:\[\d{1,18}\])?")
_PART_OF_A_NAME = re.compile(r"[\w./-]")

_README = """\
Evidence bundle of the report {name}, made by pdkit {pdkit}

report.html, report.json   the report; the second is the same for machines (docs/check-json.md of pdkit)
cited.json                 every file:line that the report cites, and which file in lines/ holds it
lines/NNN.json             the cited lines of one source, each with {context} lines before and behind it
sources.json               every file that the report looked at: size and sha256
versions.json              what the report was made with
SHA256SUMS                 of all these: sha256sum -c SHA256SUMS

To check a figure:
1. Find it in report.json. A claimed figure has its line in claimed_at, a finding in lines, a run's files in sources.
2. Look that line up in cited.json, then in the file of lines/ that it names. An empty list: the file is no source of
   this report, or it was not there to be read.
3. Whoever holds the logs compares their sha256 with sources.json and reads the line itself:
   sed -n 13p bench.log      (zcat or zstdcat first, where it is compressed). Lines are counted from 1, by line feeds.

A line of a log is quoted without colours and keys; prompts and answers are withheld. Of more than {shown} characters
the middle is left out; chars is the length of the whole line. A line of a record (JSON) is never quoted: fields are its
numbers, items the numbers of the cited requests, sha256 and bytes those of the line without its line feed:
   sed -n 3p result.jsonl | tr -d '\\r\\n' | sha256sum
A line with nothing but its number is not in the file.
"""

Places = dict[str, dict[int, set[int]]]  # by file and line: entries of arrays


@dataclass(frozen=True)
class Made:
    """A report as it was made: what it is called, its page, its document for machines, and its notebook."""

    name: str
    page: str
    machines: str
    notebook: Path
    redacted: bool


@dataclass(frozen=True, eq=False)
class _Listed:
    """A source as the report's document lists it."""

    path: str
    sha256: str | None
    row: Mapping[str, Any]


def write(file: Path, made: Made, *, given: Iterable[str | Path]) -> None:
    """Write the bundle of a report that was made of the given files and folders.

    Raises:
        PdkitError: a source is not what the report read any more, or its document lists no sources.
        OSError: the file cannot be written.
    """
    texts = _texts(made, list(given))
    parts = {name: text.encode("utf-8", errors="backslashreplace") for name, text in texts.items()}
    sums = "".join(f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in sorted(parts.items()))
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in sorted([*parts.items(), ("SHA256SUMS", sums.encode())]):
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.create_system, entry.external_attr = _UNIX, _MODE
            archive.writestr(entry, content, zipfile.ZIP_DEFLATED, compresslevel=_LEVEL)


def _texts(made: Made, given: list[str | Path]) -> dict[str, str]:
    """Every file of the bundle by its name; no name is taken from a log."""
    document = json.loads(made.machines)
    listed = _listed(document)
    if not listed:
        raise PdkitError(f"{made.name}: its document lists no sources, and a bundle needs their hashes")
    places, files = _places([document, unescape(made.page)], {one.path for one in listed}), sources(given)
    there = _there(listed, files)
    read = [one for one in listed if one.path in places and one.sha256]
    quoted = [quotes(there[one], places[one.path]) for one in read]
    _there(read, [Source(there[one].path) for one in read])  # a log may have grown under our eyes
    if made.redacted:
        quoted = _redacted(quoted, [file.path for file in files])
    names = {one: f"lines/{number:03d}.json" for number, one in enumerate(read, 1)}
    cited = sorted((path, line) for path, lines in places.items() for line in lines)
    holding = {path: [name for one, name in names.items() if one.path == path] for path in places}
    return {
        "README.txt": _README.format(name=made.name, pdkit=__version__, context=CONTEXT, shown=SHOWN_CHARS),
        "report.html": made.page,
        "report.json": made.machines,
        "sources.json": _array({**one.row, "lines": names.get(one)} for one in listed),
        "cited.json": _array({"cited": f"{path}:{line}", "lines": holding[path]} for path, line in cited),
        "versions.json": json.dumps(_versions(made), indent=1) + "\n",
    } | {names[one]: _lines(one, found) for one, found in zip(read, quoted, strict=True)}


def _versions(made: Made) -> dict[str, object]:
    notebook = {"name": made.name, "sha256": hashlib.sha256(made.notebook.read_bytes()).hexdigest()}
    return {"pdkit": __version__, "python": platform.python_version(), "polars": pl.__version__, "notebook": notebook}


# --- what the report says -------------------------------------------------------------------------------------------


def _listed(document: object) -> list[_Listed]:
    """The sources in a document, wherever they stand in it: a notebook may hold two sides."""
    rows = [said for said in _values(document) if isinstance(said, dict) and {"path", "sha256"} <= said.keys()]
    found = {(row["path"], row["sha256"]): row for row in rows}
    ordered = sorted(found.items(), key=lambda one: (one[0][0], one[0][1] or ""))
    return [_Listed(path, sha256, row) for (path, sha256), row in ordered]


def _values(said: object) -> Iterator[object]:
    """A value, and all that lies in it."""
    yield said
    inside = said.values() if isinstance(said, dict) else said if isinstance(said, list) else ()
    for one in inside:
        yield from _values(one)


def _places(report: object, files: set[str]) -> Places:
    """Every `file:line` and `file:line[item]` that a report cites, also within a sentence, or on its page alone.

    What stands in a list of lines counts though the file is none of the sources: the reader shall see that it lacks.
    """
    lengths = sorted({len(file) for file in files}, reverse=True)
    found: Places = {}
    for said in _values(report):
        if isinstance(said, str):
            for place in _in_text(said, files, lengths):
                _noted(found, place)
        elif isinstance(said, dict) and isinstance(said.get("lines"), list):
            for place in (Place.of(line) for line in said["lines"] if _WHOLE_PLACE.fullmatch(str(line))):
                _noted(found, place)
    return found


def _noted(found: Places, place: Place) -> None:
    items = found.setdefault(place.file, {}).setdefault(place.line, set())
    items.update([] if place.item is None else [place.item])


def _in_text(text: str, files: set[str], lengths: list[int]) -> Iterator[Place]:
    """The places in a text; of two names that fit, the longer one is meant."""
    for at in _NUMBERS.finditer(text):
        starts = (at.start() - length for length in lengths if length <= at.start())
        start = next((start for start in starts if text[start : at.start()] in files), None)
        if start is not None and not _PART_OF_A_NAME.fullmatch(text[max(0, start - 1) : start]):
            yield Place(text[start : at.start()], int(at[1]), None if at[2] is None else int(at[2]))


# --- what lies on disk ----------------------------------------------------------------------------------------------


def _there(listed: Iterable[_Listed], files: Iterable[Source]) -> dict[_Listed, Source]:
    """The file behind each listed source, found by its hash: in a redacted report nothing else tells.

    Raises:
        PdkitError: none has it any more.
    """
    by_hash = {sha256: file for file in files if (sha256 := _sha256(file))}
    for one in listed:
        if one.sha256 and one.sha256 not in by_hash:
            raise PdkitError(f"{one.path}: it is not what the report read any more; report when nothing writes to it")
    return {one: by_hash[one.sha256] for one in listed if one.sha256}


def _sha256(file: Source) -> str | None:
    try:
        return file.sha256
    except OSError:  # it was there a moment ago
        return None


# --- what is written ------------------------------------------------------------------------------------------------


def _redacted(quoted: list[list[Quote]], paths: list[Path]) -> list[list[Quote]]:
    """All quotes with hosts, addresses and paths masked: what one line names is masked in every other."""
    said = list(dict.fromkeys(text for found in quoted for quote in found for text in quote.texts))
    hidden = dict(zip(said, masked_lines(said, paths), strict=True))
    return [[quote.saying(hidden) for quote in found] for found in quoted]


def _lines(one: _Listed, quoted: list[Quote]) -> str:
    head = json.dumps({"file": one.path, "sha256": one.sha256}, ensure_ascii=False)
    return f'{head[:-1]}, "lines": {_array(map(_shown, quoted)).rstrip()}}}\n'


def _shown(quote: Quote) -> dict[str, object]:
    """Its values, without those that say nothing."""
    text = None if quote.text is None else ends(quote.text, SHOWN_CHARS)
    said = vars(quote) | {"text": text, "chars": quote.chars if text is None or len(text) != quote.chars else None}
    return {key: value for key, value in said.items() if value is not None and value != {}}


def _array(rows: Iterable[Mapping[str, object]]) -> str:
    """JSON, a row a line."""
    said = ",\n".join(f" {json.dumps(row, ensure_ascii=False, allow_nan=False)}" for row in rows)
    return f"[\n{said}\n]\n"
