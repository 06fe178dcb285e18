"""A judgement as plain text: verdicts, numbers that may be believed, findings with their lines."""

import posixpath
from collections.abc import Iterator
from typing import Any

import polars as pl

from pdkit.metrics import METRICS
from pdkit.results import CLAIMED, DOUBTS, MEASURED, NO_RESULT, Judgement
from pdkit.units import listed, plural, show

_SHOWN = ("received_throughput_tok_per_s", "ttft_ms_median", "tpot_ms_median", "e2e_ms_median")
_WORDS = {"refuse": "refused", "suspect": "doubted"}


def text(judgement: Judgement) -> str:
    """Verdicts by experiment, then findings, then what was not read."""
    if judgement.verdicts.is_empty():
        return "no run found\n" + "".join(_not_read(judgement))
    parts: list[str] = []
    wide = judgement.for_results.wide(*_SHOWN)
    for experiment, title, sentence in judgement.conclusions.iter_rows():
        name = experiment if title == experiment else f"{experiment}: {title}"
        parts += [f"{name}\n", f"  {sentence}\n", "\n"]
        parts += _table(wide.filter(pl.col("experiment") == experiment))
        parts += ["\n", *_findings(judgement, experiment)]
    return "".join([*parts, *_unread(judgement), *_not_read(judgement)])


def _table(runs: pl.DataFrame) -> Iterator[str]:
    head = ["level", "verdict", *(_heading(fact) for fact in _SHOWN), "rules"]
    rows = [
        [row["level"], row["verdict"], *(_number(row, fact) for fact in _SHOWN), _rules(row)]
        for row in runs.iter_rows(named=True)
    ]
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    for row in [head, *rows]:
        cells = [
            cell.rjust(width) if 2 <= i < len(head) - 1 else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield f"  {'  '.join(cells)}".rstrip() + "\n"


def _heading(fact: str) -> str:
    return METRICS[fact].axis.replace(" output throughput", "").replace(" latency", "")


def _number(row: dict[str, Any], fact: str) -> str:
    return "–" if row[fact] is None else show(row[fact])


def _rules(row: dict[str, Any]) -> str:
    if row["verdict"] == NO_RESULT:
        return " ".join(row["refused_by"])
    doubts = [*row["suspected_by"], *(["PD403 (failures unknown)"] if row["sent_unknown"] else [])]
    return (
        " ".join(doubts)
        if row["verdict"] in (DOUBTS, MEASURED)
        else "nothing shows that text came back"
        if not row["without_block"]
        else ""
    )


def _findings(judgement: Judgement, experiment: str) -> Iterator[str]:
    """Failures by run, each with its lines; what doubts a run that is refused anyway is only named."""
    runs = judgement.verdicts.filter(pl.col("experiment") == experiment)
    told = judgement.findings.filter(pl.col("severity") != "note")
    paths = judgement.evidence.sources.filter(pl.col("experiment") == experiment)["path"].to_list()
    folder = _common(paths)
    claims = judgement.claimed.filter(pl.col("fact") == "output_throughput_tok_per_s")
    for run in runs.iter_rows(named=True):
        refused = run["verdict"] == NO_RESULT
        mine = told.filter(pl.col("run_id") == run["run_id"]).sort(pl.col("severity").to_physical(), "rule")
        for finding in mine.iter_rows(named=True):
            if not refused or finding["rule"] in run["refused_by"]:
                yield f"  {run['level']}: {_WORDS[finding['severity']]} by {finding['rule']}: {finding['sentence']}\n"
                yield f"      {_places(finding['lines'], folder)}\n"
        if refused:
            yield from _of_refused(run, claims.filter(pl.col("run_id") == run["run_id"]), folder)
    yield "\n"


def _common(paths: list[str]) -> str:
    """The folder that all lie in; "" where there is none, or some are given from the root and some are not."""
    one_kind = len({posixpath.isabs(path) for path in paths}) == 1
    return posixpath.commonpath([posixpath.dirname(path) for path in paths]) if one_kind else ""


def _of_refused(run: dict[str, Any], claim: pl.DataFrame, folder: str) -> Iterator[str]:
    if run["suspected_by"]:
        yield f"  {run['level']}: doubted as well by {listed(run['suspected_by'])}\n"
    if claim.height:
        place = _places([f"{claim['source_file'][0]}:{claim['source_line'][0]}"], folder)
        yield f"  {run['level']}: {show(claim['value'][0], 'tok/s')} {CLAIMED} ({place})\n"


def _places(lines: list[str], folder: str) -> str:
    """`bench.log:13,21 result.jsonl:1`: the lines by file, below the experiment's folder."""
    by_file: dict[str, list[str]] = {}
    for line in lines:
        file, _, number = line.rpartition(":")
        by_file.setdefault(posixpath.relpath(file, folder) if folder else file, []).append(number)
    return "  ".join(f"{file}:{','.join(numbers)}" for file, numbers in by_file.items())


def _unread(judgement: Judgement) -> Iterator[str]:
    unread = judgement.evidence.unread
    if unread.height:
        yield f"{plural(unread.height, 'line')} not understood:\n"
        for row in unread.iter_rows(named=True):
            yield f"  {row['source_file']}:{row['source_line']}: {row['reason']}\n"


def _not_read(judgement: Judgement) -> Iterator[str]:
    """Files that nobody read, and files that were read only in part."""
    noted = judgement.evidence.sources.filter(pl.col("reason").is_not_null()).sort("path")
    unread = noted.filter(pl.col("reader").is_null())
    if unread.height:
        yield f"{plural(unread.height, 'file')} not read:\n"
    for row in unread.iter_rows(named=True):
        yield f"  {row['path']}: {row['reason']}\n"
    for row in noted.filter(pl.col("reader").is_not_null()).iter_rows(named=True):
        yield f"{row['path']}: {row['reason']}\n"
