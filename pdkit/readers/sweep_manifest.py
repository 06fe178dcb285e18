"""`sweep.toml`: what whoever ran a sweep knows of it, as they wrote it down."""

import re
import tomllib
from collections.abc import Iterator
from datetime import UTC, datetime
from math import inf
from pathlib import PurePosixPath
from typing import Any

from pdkit.errors import PdkitError, one_of
from pdkit.evidence import Evidence
from pdkit.parts import reader
from pdkit.source import Source

_SIGN = re.compile(rb"(?m)^\[\[level\]\]\s*(?:#.*)?\n(?:concurrency|request_rate) = ")
_MOST = 10**9  # users, requests or GPUs: more than any sweep has
ROLES = ("client", "prefill", "decode", "router", "colocated")
_TOP: dict[str, type | tuple[type, ...]] = {
    "label": str, "synthetic": bool, "model": str, "topology": str, "gpu": str, "gpu_count": int, "repeats": int,
    "end_marker": str,
}  # fmt: skip
_LEVEL: dict[str, type | tuple[type, ...]] = {
    "concurrency": (int, float), "request_rate": (int, float), "prompts": int, "started_at": datetime,
    "ended_at": datetime,
}  # fmt: skip
_FILE: dict[str, type | tuple[type, ...]] = {"path": str, "role": str}


def _is_manifest(source: Source) -> bool:
    return source.path.name == "sweep.toml" or bool(_SIGN.search(source.head))


@reader(title="`sweep.toml`: plan and set-up of a sweep", sniff=_is_manifest)
def read(source: Source) -> Evidence:
    """A small TOML beside the logs, optional, that says what the logs can't.

    At the top: `label`, `synthetic`, `model`, `topology` (`colocated`, or `1p1d`), `gpu`, `gpu_count`, `repeats` (how
    often each level was meant to run), `end_marker` (the line that the sweep script prints last). A `[[level]]` for
    each planned load point: `concurrency` or `request_rate` or both, `prompts`, `started_at`, `ended_at`. A `[[file]]`
    for each file with a role: `path` (beside the manifest), `role` (client, prefill, decode, router or colocated).

    Left out: nothing; it says what a person wrote, and is believed as that.

    Raises:
        PdkitError: not TOML, or a key or role that is not known.
    """
    with source.open() as file:
        content = file.read().decode("utf-8", errors="replace")
    try:
        said = tomllib.loads(content)
    except tomllib.TOMLDecodeError as problem:
        raise PdkitError(
            f"{source.name}: not valid TOML ({problem}); docs/formats.md says what a manifest may hold"
        ) from problem
    lines = content.splitlines()
    _known(f"{source.name}", said, {**_TOP, "level": list, "file": list})
    top = {key: value for key, value in said.items() if key in _TOP}
    return Evidence.of(
        experiments=[top | _place(source, 1)] if top else [],
        plan=[_level(source, level, line) for level, line in _items(said, "level", lines)],
        files=[_file(source, item, line) for item, line in _items(said, "file", lines)],
    )


def _items(said: dict[str, Any], table: str, lines: list[str]) -> Iterator[tuple[dict[str, Any], int]]:
    """Each entry of an array of tables with the line of its heading."""
    heading = re.compile(rf"\s*\[\[\s*(['\"]?){table}\1\s*\]\]")
    headings = [number for number, line in enumerate(lines, 1) if heading.match(line)]
    entries = said.get(table, [])
    # inline, or quoted in a text: which heading is whose is not known then, and the file's first line is cited
    yield from zip(entries, headings if len(headings) == len(entries) else [1] * len(entries), strict=True)


def _level(source: Source, level: dict[str, Any], line: int) -> dict[str, Any]:
    where = f"{source.name}:{line}: level"
    _known(where, level, _LEVEL)
    if not {"concurrency", "request_rate"} & set(level):
        raise PdkitError(f"{where}: names no load; a level has a concurrency or a request_rate")
    return {
        "concurrency": float(level.get("concurrency", "inf")),
        "request_rate_per_s": float(level["request_rate"]) if "request_rate" in level else None,
        "prompts_asked": float(level["prompts"]) if "prompts" in level else None,
        "started_at": _utc(where, level.get("started_at")),
        "ended_at": _utc(where, level.get("ended_at")),
    } | _place(source, line)


def _file(source: Source, item: dict[str, Any], line: int) -> dict[str, Any]:
    where = f"{source.name}:{line}: file"
    _known(where, item, _FILE)
    if item.get("role") not in ROLES:
        raise one_of(f"{where}: role", str(item.get("role")), list(ROLES))
    if not item.get("path"):
        raise PdkitError(f"{where}: names no path; a file has a path beside or below the manifest, and a role")
    path = source.path.parent / item["path"]
    if not path.resolve().is_relative_to(source.path.parent.resolve()):
        raise PdkitError(
            f"{where}: path {item['path']!r} leads out of the folder; name a file beside or below the manifest"
        )
    beside = PurePosixPath(source.name).parent / item["path"]
    return {"path": beside.as_posix(), "role": item["role"]} | _place(source, line)


def _known(where: str, said: Any, keys: dict[str, Any]) -> None:
    if not isinstance(said, dict):
        raise PdkitError(f"{where} is {said!r}; it takes a table")
    for key, value in said.items():
        if key not in keys:
            raise one_of(f"{where}: key", key, list(keys))
        if not isinstance(value, keys[key]) or (isinstance(value, bool) and keys[key] is not bool):
            raise PdkitError(f"{where}: {key} is {value!r}; it takes {_named(keys[key])}")
        if type(value) in (int, float) and not (0 < value <= _MOST or (value == inf and key in _LEVEL)):
            raise PdkitError(f"{where}: {key} is {value!r}; it takes a number above 0, and at most {_MOST:,}")


def _named(kind: type | tuple[type, ...]) -> str:
    return " or ".join(k.__name__ for k in (kind if isinstance(kind, tuple) else (kind,)))


def _utc(where: str, said: datetime | None) -> datetime | None:
    if said is not None and said.tzinfo is None:
        raise PdkitError(f"{where}: the time {said.isoformat()} has no zone; end it with Z, or with +02:00")
    return said.astimezone(UTC) if said else None


def _place(source: Source, line: int) -> dict[str, Any]:
    return {"source_file": source.name, "source_line": line}
