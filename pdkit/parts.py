"""How parts are found: readers, checks and charts are the functions that their folders hold."""

import inspect
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

from pdkit.evidence import Evidence
from pdkit.source import Source


@dataclass(frozen=True)
class Reader:
    """One log format: how it is recognised, and the function that reads it.

    Readers of lines declare `signs`, a regular expression (the common part of Rust's and Python's dialects) for a line
    that only this format has; it is held against the start of a line, behind any prefix that a container or CI put
    there, and such readers may share a file. Readers of whole files declare `sniff`, and own the file they recognise.

    `words` are for speed: plain words, as expressions, of which each line with a sign holds one at least. A long file
    is looked through for these first. A word that stands at the start of the line begins with ^.
    """

    name: str
    title: str
    read: Callable[[Source], Evidence]
    signs: str | None = None
    sniff: Callable[[Source], bool] | None = None
    words: tuple[str, ...] = ()

    @property
    def doc(self) -> str:
        """What the format is and what the tool leaves out."""
        return inspect.getdoc(self.read) or ""


@dataclass(frozen=True)
class Chart:
    """One question, drawn. `evidence` charts may show claimed figures and label them so; the others can reach none.

    `weeks` charts take series over weeks, which hold published numbers alone.
    """

    name: str
    question: str
    evidence: bool
    draw: Callable[..., Any]
    weeks: bool = False

    @property
    def doc(self) -> str:
        """How to read it."""
        return inspect.getdoc(self.draw) or ""


_READERS: dict[str, Reader] = {}
_CHARTS: dict[str, Chart] = {}


def reader(
    *, title: str, signs: str | None = None, sniff: Callable[[Source], bool] | None = None, words: tuple[str, ...] = ()
) -> Callable[[Callable[[Source], Evidence]], Callable[[Source], Evidence]]:
    """Register a function as the reader that its module is named after; it has `signs` and `words`, or `sniff`."""

    def register(read: Callable[[Source], Evidence]) -> Callable[[Source], Evidence]:
        name = read.__module__.rpartition(".")[2]
        _READERS[name] = Reader(name, title, read, signs, sniff, words)
        return read

    return register


def chart(
    *, question: str, evidence: bool = False, weeks: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function as a chart under its own name."""

    def register(draw: Callable[..., Any]) -> Callable[..., Any]:
        _CHARTS[draw.__name__] = Chart(draw.__name__, question, evidence, draw, weeks)
        return draw

    return register


def readers() -> dict[str, Reader]:
    """All readers by name."""
    _walk("pdkit.readers")
    return dict(sorted(_READERS.items()))


def charts() -> dict[str, Chart]:
    """All charts by name."""
    _walk("pdkit.charts")
    return dict(sorted(_CHARTS.items()))


@cache
def _walk(package: str) -> None:
    """Import every module of a folder, so that what it registers is there."""
    for module in pkgutil.iter_modules(import_module(package).__path__):
        import_module(f"{package}.{module.name}")


def register_checks() -> None:
    """Import every family of checks; they are then in rules.CHECKS."""
    _walk("pdkit.checks")
