"""What people want and know: figures to reach, and dated notes, from one TOML file."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from math import isfinite
from pathlib import Path
from typing import Any, TypeVar

from pdkit.compare import CALLED
from pdkit.errors import PdkitError, one_of
from pdkit.redact import masked
from pdkit.toml import read_toml, tables_of

_TARGET, _NOTE = ("series", "value", "metric", "reason"), ("series", "date", "text")
_Made = TypeVar("_Made")


@dataclass(frozen=True)
class Target:
    """A figure to reach: of series whose keys hold all of the words, in one metric."""

    series: tuple[str, ...]
    value: float
    metric: str
    reason: str = ""


@dataclass(frozen=True)
class Note:
    """What somebody knows of a day; without words it is of every series."""

    day: date
    text: str
    series: tuple[str, ...] = ()

    @property
    def week(self) -> str:
        """Its ISO week."""
        return f"{self.day:%G-W%V}"


@dataclass(frozen=True)
class Plan:
    """Both."""

    targets: tuple[Target, ...] = ()
    notes: tuple[Note, ...] = ()

    def target(self, key: str, metric: str) -> float | None:
        """What a series is meant to reach; of several the first."""
        fits = (one for one in self.targets if one.metric == metric and all(word in key for word in one.series))
        return next((one.value for one in fits), None)

    def redacted(self) -> "Plan":
        """The same with hosts, addresses and paths masked in what people wrote."""
        targets = tuple(replace(one, reason=masked(one.reason) or "") for one in self.targets)
        return Plan(targets, tuple(replace(one, text=masked(one.text) or "") for one in self.notes))


def read_plan(path: str | Path) -> Plan:
    """Tables `[[target]]` (series, value, metric, reason) and `[[note]]` (date, text, series).

    Raises:
        PdkitError: no such file, not TOML, or a table that is not whole.
    """
    file = Path(path)
    said = read_toml(file, what="file of targets and notes", form="a target is a table, `[[target]]`")
    if unknown := next((name for name in said if name not in ("target", "note")), None):
        raise one_of(str(file), unknown, ["target", "note"])
    return Plan(_each(file, said, "target", _target), _each(file, said, "note", _note))


def _each(file: Path, said: dict[str, Any], name: str, made: Callable[[str, Any], _Made]) -> tuple[_Made, ...]:
    tables = tables_of(file, said, name)
    return tuple(made(f"{file}: {name} {number}", table) for number, table in enumerate(tables, 1))


def _target(where: str, said: Mapping[str, Any]) -> Target:
    _known(where, said, _TARGET)
    value = said.get("value")
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value) or value <= 0:
        raise PdkitError(f"{where}: value is {value!r}; it takes a number above 0")
    metric = said.get("metric", next(iter(CALLED)))
    if metric not in CALLED:
        raise one_of(f"{where}: metric", str(metric), list(CALLED))
    return Target(_words(where, said), float(value), metric, _text(where, said, "reason", ""))


def _note(where: str, said: Mapping[str, Any]) -> Note:
    _known(where, said, _NOTE)
    day = said.get("date")
    if not isinstance(day, date) or isinstance(day, datetime):
        raise PdkitError(f"{where}: date is {day!r}; it takes a date without quotes, 2026-11-30")
    return Note(day, _text(where, said, "text"), _words(where, said))


def _known(where: str, said: Mapping[str, Any], names: tuple[str, ...]) -> None:
    if unknown := next((name for name in said if name not in names), None):
        raise one_of(where, unknown, list(names))


def _text(where: str, said: Mapping[str, Any], name: str, default: str | None = None) -> str:
    text = said.get(name, default)
    if not isinstance(text, str) or (default is None and not text.strip()):
        raise PdkitError(f"{where}: {name} is {text!r}; it takes words in quotes")
    return " ".join(text.split())


def _words(where: str, said: Mapping[str, Any]) -> tuple[str, ...]:
    words = said.get("series", [])
    listed = [words] if isinstance(words, str) else words
    if not isinstance(listed, list) or not all(isinstance(word, str) and word for word in listed):
        raise PdkitError(
            f'{where}: series is {words!r}; it takes words of its key, "level=16 users", or a list of them'
        )
    return tuple(listed)
