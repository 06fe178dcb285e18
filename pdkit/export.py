"""Runs, results and published metrics as CSV and Parquet, for a spreadsheet or a data frame."""

import os
from pathlib import Path

import polars as pl

from pdkit.errors import PdkitError
from pdkit.findings import FIGURES
from pdkit.metrics import METRICS, RESULTS
from pdkit.results import NO_RESULT, Judgement

_RUN = ("run_id", "series_key", "experiment", "title", "level", "verdict", "evidence_level", "synthetic", "concurrency",
        "request_rate_per_s", "tool", "model", "topology", "gpu", "gpu_count", "dataset", "backend",
        "refused_by", "suspected_by", "not_evaluated")  # fmt: skip
_RESULT = ("rule", "outcome", "severity", "observed", "threshold_low", "threshold_high", "bad", "total", "sentence",
           "lines", "waiver")  # fmt: skip
_IDENTITY = ("run_id", "experiment", "level", "verdict")
_FORMULA = r"^([=+\-@\t\r])"  # what a spreadsheet takes a text for that begins so


def write_tables(judgement: Judgement, folder: Path) -> list[Path]:
    """The files written: `runs`, `results` and `published`, each as `.csv` and `.parquet`; see docs/check-tables.md.

    All are written under other names first, then each takes its own: a reader never sees half a table.

    Raises:
        PdkitError: the folder cannot be written.
    """
    unfinished: dict[Path, Path] = {}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, frame in tables(judgement).items():
            for file in (folder / f"{name}.csv", folder / f"{name}.parquet"):
                unfinished[file] = file.with_name(f".{file.name}.{os.getpid()}.tmp")
                _write(frame, unfinished[file], is_csv=file.suffix == ".csv")
        for file, written in unfinished.items():
            written.replace(file)
    except OSError as problem:
        raise PdkitError(f"{folder}: cannot be written ({problem.strerror}); name a folder that can") from problem
    finally:
        for written in unfinished.values():
            written.unlink(missing_ok=True)
    return list(unfinished)


def tables(judgement: Judgement) -> dict[str, pl.DataFrame]:
    """The three tables: a number that was refused is null in each."""
    return {"runs": _runs(judgement), "results": _results(judgement), "published": _published(judgement)}


def _runs(judgement: Judgement) -> pl.DataFrame:
    """One row a run: what it is, its verdict, and every metric that may be published, null where it may not."""
    titles = judgement.conclusions.select("experiment", "title")
    wide = judgement.for_results.wide(*RESULTS).join(titles, on="experiment", how="left", maintain_order="left")
    return wide.select(*_RUN, *RESULTS)


def _results(judgement: Judgement) -> pl.DataFrame:
    """One row a run and rule."""
    told = judgement.findings.select("run_id", "rule", "sentence", "lines", "waiver")
    results = judgement.results.join(told, on=["run_id", "rule"], how="left", maintain_order="left")
    of_claims = (pl.col("verdict") == NO_RESULT) | (pl.col("severity") == "refuse").fill_null(False)
    labelled = pl.when(of_claims).then(pl.col("sentence") + f" ({FIGURES})").otherwise("sentence")
    return _identified(judgement, results).select(*_IDENTITY, *_RESULT).with_columns(labelled.alias("sentence"))


def _published(judgement: Judgement) -> pl.DataFrame:
    """One row a run and metric that was stated: its value with its unit, or the rules that took it."""
    units = pl.DataFrame([{"fact": one.name, "unit": one.unit, "title": one.title} for one in METRICS.values()])
    known = judgement.published.join(units, on="fact", how="left", maintain_order="left").rename({"fact": "metric"})
    return _identified(judgement, known).select(*_IDENTITY, "metric", "title", "unit", "value", "voided_by")


def _identified(judgement: Judgement, rows: pl.DataFrame) -> pl.DataFrame:
    """With what a run is called, in the order of experiment and level."""
    return judgement.verdicts.select(_IDENTITY).join(rows, on="run_id", maintain_order="left_right")


def _write(frame: pl.DataFrame, file: Path, *, is_csv: bool) -> None:
    if is_csv:
        flat = frame.with_columns(pl.col(pl.List(pl.String)).list.join(" "))
        flat.with_columns(pl.col(pl.String).str.replace(_FORMULA, "'$1")).write_csv(file)
    else:
        frame.write_parquet(file)
