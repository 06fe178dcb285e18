"""A store for a terminal: what it holds, and one experiment of it."""

from collections.abc import Iterable, Iterator

import polars as pl

from pdkit.results import NO_RESULT, VERDICTS
from pdkit.store.manifests import Stored
from pdkit.store.reading import Store
from pdkit.units import plural

_WORDS = list(reversed(VERDICTS.categories.to_list()))
_KB = 1000


def listing(table: pl.DataFrame) -> str:
    """The experiments, a line each, with a line that adds them up."""
    if table.is_empty():
        return "no experiment\n"
    head = ["week", "experiment", "id", "runs", *_WORDS, "size"]
    rows = [
        [row["week"], row["experiment"], row["experiment_id"], str(row["runs"])]
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
    runs = store.runs(weeks=entry.weeks).filter(pl.col("experiment_id") == entry.id)
    found = store.findings(weeks=entry.weeks).filter(pl.col("experiment_id") == entry.id)
    called = entry.experiment if entry.title == entry.experiment else f"{entry.experiment} ({entry.title})"
    dated, held = f"{', '.join(entry.weeks)} by {', '.join(entry.dated_by)}", size(entry.bytes)
    lines = [f"{called}, {entry.id}", f"{dated}; judged by rules {entry.judged.rules}; {held}", "", "files"]
    lines += [f"  {one.path} ({size(one.bytes)}{'' if one.read else ', not read'})" for one in entry.sources]
    lines += ["", "runs", *_runs(runs, found)]
    return "\n".join(lines) + "\n"


def _runs(runs: pl.DataFrame, found: pl.DataFrame) -> Iterable[str]:
    for row in runs.iter_rows(named=True):
        yield f"  {row['level']}: {row['verdict']} ({row['run_id']})"
        refusals = row["refused_by"] if row["verdict"] == NO_RESULT else [*row["refused_by"], *row["suspected_by"]]
        mine = found.filter(pl.col("run_id") == row["run_id"], pl.col("rule").is_in(refusals))
        for rule, sentence, places in mine.select("rule", "sentence", "lines").iter_rows():
            yield f"    {rule} {sentence}{f' [{places[0]}]' if places else ''}"


def size(count: float) -> str:
    """Bytes as a person reads them."""
    for unit in ("B", "kB", "MB"):
        if count < _KB:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= _KB
    return f"{count:.1f} GB"
