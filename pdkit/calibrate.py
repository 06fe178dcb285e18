"""How often each rule fires on a folder of results, and on which files: what a rule's false alarms are counted from."""

import json
from collections.abc import Iterator
from typing import Any

import polars as pl

import pdkit
from pdkit.results import SEVERITIES, VERDICTS, Judgement
from pdkit.rules import CHECKS
from pdkit.units import plural, show

_SHOWN = 3  # files behind the refusals of one rule; the document has them all
_OUTCOMES = ("pass", "suspect", "refuse", "note", "not_applicable", "not_evaluated")


def rates(judgement: Judgement) -> pl.DataFrame:
    """One row a rule: runs by outcome, those evaluated, and the shares of these that were refused and suspected.

    A failure is counted under its severity. The shares are null where a rule was never evaluated.
    """
    outcome = pl.coalesce(pl.col("severity").cast(pl.String), pl.col("outcome").cast(pl.String))
    counted = judgement.results.lazy().with_columns(outcome.alias("seen")).group_by("rule").agg(
        *((pl.col("seen") == name).sum().cast(pl.Int64).alias(name) for name in _OUTCOMES)
    )  # fmt: skip
    evaluated = pl.sum_horizontal("pass", *SEVERITIES.categories)
    shares = [
        pl.when(pl.col("evaluated") > 0).then(pl.col(name) / pl.col("evaluated")).alias(f"{name}_ratio")
        for name in ("refuse", "suspect")
    ]
    return (
        counted.with_columns(evaluated.alias("evaluated"))
        .with_columns(shares)
        .select("rule", "evaluated", *_OUTCOMES, "refuse_ratio", "suspect_ratio")
        .sort("rule")
        .collect()
    )


def refusals(judgement: Judgement) -> pl.DataFrame:
    """One row a refusal: rule, what it voids, the run with its level and verdict, the sentence, files and lines."""
    files = judgement.evidence.runs.group_by("run_id").agg(pl.col("source_file").unique().sort().alias("files"))
    about = judgement.verdicts.select("run_id", "experiment", "level", "verdict").join(files, on="run_id", how="left")
    refused = judgement.findings.filter(pl.col("severity") == "refuse").join(about, on="run_id")
    return refused.select(
        "rule", "voids", "run_id", "experiment", "level", "verdict", "sentence", "files", "lines"
    ).sort("rule", "experiment", "level", "run_id")


# --- as text --------------------------------------------------------------------------------------------------------


def text(judgement: Judgement) -> str:
    """The table of rules that looked at something, those that did not, and the files behind each refusal."""
    table = rates(judgement)
    seen = table.filter(pl.col("evaluated") > 0)
    blind = table.filter(pl.col("evaluated") == 0)["rule"].to_list()
    lines = [_runs(judgement), "", *_aligned(seen)]
    if blind:
        lines += ["", f"never evaluated: {' '.join(blind)}"]
    return "\n".join([*lines, "", *_behind(refusals(judgement))]) + "\n"


def _runs(judgement: Judgement) -> str:
    verdicts = judgement.verdicts
    counts = dict(verdicts["verdict"].value_counts().iter_rows())
    said = ", ".join(f"{counts[name]} {name}" for name in reversed(VERDICTS.categories.to_list()) if name in counts)
    return f"{plural(verdicts.height, 'run')} in {plural(verdicts['experiment'].n_unique(), 'experiment')}: {said}"


def _aligned(table: pl.DataFrame) -> Iterator[str]:
    head = ["rule", "evaluated", *(name.replace("_", " ") for name in _OUTCOMES), "refused", "suspected"]
    rows = [
        [row["rule"], *(str(row[name]) for name in ("evaluated", *_OUTCOMES)), *(_share(row, s) for s in _SHARES)]
        for row in table.iter_rows(named=True)
    ]
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    for cells in [head, *rows]:
        yield "  ".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True))


_SHARES = ("refuse_ratio", "suspect_ratio")


def _share(row: dict[str, Any], name: str) -> str:
    return show(row[name], "ratio") if row[name] else "–"


def _behind(refused: pl.DataFrame) -> Iterator[str]:
    if refused.is_empty():
        yield "no run was refused by any rule"
    for (rule, voids), rows in refused.group_by("rule", "voids", maintain_order=True):
        yield f"{rule} refused {plural(rows.height, 'run')} ({' and '.join(voids)}): {CHECKS[str(rule)].title}"
        for row in rows.head(_SHOWN).iter_rows(named=True):
            first, *others = row["files"]
            where = f"{first} and {plural(len(others), 'file')} more" if others else first
            yield f"  {where} ({row['level']}): {row['sentence']}"
        if rows.height > _SHOWN:
            yield f"  and {rows.height - _SHOWN} more"


# --- as JSON --------------------------------------------------------------------------------------------------------


def document(judgement: Judgement) -> dict[str, Any]:
    """All of it as plain values: every rule with its title, every refusal with its files and lines."""
    counts = judgement.verdicts["verdict"].cast(pl.String).value_counts().sort("verdict")
    return {
        "pdkit": pdkit.__version__,
        "runs": judgement.verdicts.height,
        "verdicts": dict(counts.iter_rows()),
        "rules": [row | {"title": CHECKS[row["rule"]].title} for row in rates(judgement).iter_rows(named=True)],
        "refusals": refusals(judgement).to_dicts(),
        "thresholds": judgement.changed.to_dicts(),
    }


def json_text(judgement: Judgement) -> str:
    """The document, indented, with a final newline."""
    return json.dumps(document(judgement), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
