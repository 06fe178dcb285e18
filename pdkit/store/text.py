"""A store for a terminal: what it holds, one experiment of it, and its series; no name from a log has power there."""

from collections.abc import Iterable, Iterator
from typing import Any

import polars as pl

from pdkit.findings import one_line
from pdkit.results import DOUBTS, MEASURED, NO_RESULT, UNVERIFIED, VERDICTS
from pdkit.store.manifests import Stored
from pdkit.store.reading import Store
from pdkit.units import plural, show

_WORDS = list(reversed(VERDICTS.categories.to_list()))
_KB = 1000
_WEEKS_SHOWN = 8  # of a series: two months


def listing(table: pl.DataFrame) -> str:
    """The experiments, a line each, with a line that adds them up."""
    if table.is_empty():
        return "no experiment\n"
    head = ["week", "experiment", "id", "runs", *_WORDS, "size"]
    rows = [
        [row["week"], one_line(row["experiment"]), row["experiment_id"], str(row["runs"])]
        + [str(row[word] or "") for word in _WORDS]
        + [size(row["bytes"])]
        for row in table.iter_rows(named=True)
    ]
    all_of = plural(table.height, "experiment"), plural(sum(table["runs"]), "run"), size(sum(table["bytes"]))
    return "\n".join([*_aligned([head, *rows]), ", ".join(all_of)]) + "\n"


def _aligned(rows: list[list[str]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for cells in rows:
        texts = [cell.ljust(width) for cell, width in zip(cells[:3], widths[:3], strict=True)]
        numbers = [cell.rjust(width) for cell, width in zip(cells[3:], widths[3:], strict=True)]
        yield "  ".join([*texts, *numbers]).rstrip()


def shown(store: Store, entry: Stored) -> str:
    """One experiment: how it is dated, what it was read from, its runs, and what speaks against them."""
    runs = store.runs_of(entry)
    found = store.findings(weeks=entry.weeks).filter(pl.col("experiment_id") == entry.id)
    called = entry.experiment if entry.title == entry.experiment else f"{entry.experiment} ({entry.title})"
    dated, held = f"{', '.join(entry.weeks)} by {', '.join(entry.dated_by)}", size(entry.bytes)
    lines = [f"{called}, {entry.id}", f"{dated}; judged by rules {entry.judged.rules}; {held}", "", "files"]
    lines += [f"  {one.path} ({size(one.bytes)}{'' if one.read else ', not read'})" for one in entry.sources]
    lines += ["", "runs", *_runs(runs, found)]
    return "\n".join(map(one_line, lines)) + "\n"


def _runs(runs: pl.DataFrame, found: pl.DataFrame) -> Iterable[str]:
    for row in runs.iter_rows(named=True):
        yield f"  {row['level']}: {row['verdict']} ({row['run_id']})"
        refusals = row["refused_by"] if row["verdict"] == NO_RESULT else [*row["refused_by"], *row["suspected_by"]]
        mine = found.filter(pl.col("run_id") == row["run_id"], pl.col("rule").is_in(refusals))
        for rule, sentence, places in mine.select("rule", "sentence", "lines").iter_rows():
            yield f"    {rule} {sentence}{f' [{places[0]}]' if places else ''}"


def series(table: pl.DataFrame) -> str:
    """The series of a store, a paragraph each."""
    if table.is_empty():
        return "no series\n"
    return "\n".join(one_line(line) for row in table.iter_rows(named=True) for line in _paragraph(row)) + "\n"


def _paragraph(row: dict[str, Any]) -> Iterator[str]:
    yield row["series_key"]
    weeks = [f"{one['week']} ({one['runs']})" for one in row["by_week"]]
    left = f"{len(weeks) - _WEEKS_SHOWN} earlier weeks, " if len(weeks) > _WEEKS_SHOWN else ""
    yield f"  {plural(row['runs'], 'run')}: {left}{', '.join(weeks[-_WEEKS_SHOWN:])}"
    words = {
        "measured": MEASURED,
        "doubts": DOUBTS,
        "unverified": UNVERIFIED,
        "refused": NO_RESULT,
        "missing": "missing",
    }
    yield "  " + ", ".join(f"{row[name]} {word}" for name, word in words.items() if row[name])
    if row["last_value"] is not None:
        yield f"  received, last: {show(row['last_value'], 'tok/s')} in {row['last_measured']}"
    for mark in row["marks"]:
        yield f"  | {mark}"


def size(count: float) -> str:
    """Bytes as a person reads them."""
    for unit in ("B", "kB", "MB"):
        if count < _KB:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= _KB
    return f"{count:.1f} GB"
