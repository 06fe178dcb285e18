"""A judgement as one JSON document; its fields are documented in docs/formats/check-json.md."""

import json
from collections.abc import Iterator
from typing import Any

import polars as pl

import pdkit
from pdkit.results import NO_RESULT, Judgement
from pdkit.rules import CHECKS

_NUMBERS = ("observed", "threshold_low", "threshold_high")


def text(judgement: Judgement) -> str:
    """The document, indented, with a final newline."""
    return json.dumps(document(judgement), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def document(judgement: Judgement) -> dict[str, Any]:
    """Verdicts, results and what was not read, as plain values: no infinity, no NaN."""
    groups = _Groups(judgement)
    return {
        "pdkit": pdkit.__version__,
        "runs": [_run(row, groups) for row in judgement.verdicts.iter_rows(named=True)],
        "missing": list(_missing(judgement)),
        "not_read": judgement.evidence.sources.filter(pl.col("reader").is_null()).select("path", "reason").to_dicts(),
        "unread_lines": [
            {"line": f"{row['source_file']}:{row['source_line']}", "reason": row["reason"], "text": row["text"]}
            for row in judgement.evidence.unread.iter_rows(named=True)
        ],
        "experiments": judgement.conclusions.select("experiment", "title").to_dicts(),
        "conclusions": [f"{experiment}: {sentence}" for experiment, _, sentence in judgement.conclusions.iter_rows()],
    }


class _Groups:
    """The frames of a judgement, cut by run once."""

    def __init__(self, judgement: Judgement) -> None:
        told = judgement.findings.select("run_id", "rule", "sentence", "lines")
        results = judgement.results.join(told, on=["run_id", "rule"], how="left", maintain_order="left")
        self.results = _by_run(results)
        self.voided = _by_run(judgement.published.filter(pl.col("voided_by").list.len() > 0))
        self.refused = _by_run(judgement.views.filter(pl.col("severity") == "refuse"))
        self.published = _by_run(judgement.published)
        self.claimed = _by_run(judgement.claimed)
        self.sources = _by_run(judgement.evidence.runs)


def _by_run(frame: pl.DataFrame) -> dict[str, pl.DataFrame]:
    return {str(key[0]): group for key, group in frame.group_by("run_id", maintain_order=True)}


def _run(row: dict[str, Any], groups: _Groups) -> dict[str, Any]:
    run_id = row["run_id"]
    results = groups.results.get(run_id)
    published, claimed = groups.published.get(run_id), groups.claimed.get(run_id)
    return {
        "run_id": run_id,
        "experiment": row["experiment"],
        "synthetic": row["synthetic"],
        "sources": sorted(set(groups.sources[run_id]["source_file"])),
        "level": row["level"],
        "concurrency": _limit(row["concurrency"]),
        "request_rate_per_s": _limit(row["request_rate_per_s"]),
        "evidence_level": row["evidence_level"],
        "verdict": row["verdict"],
        "refused_by": row["refused_by"],
        "suspected_by": row["suspected_by"],
        "not_evaluated": row["not_evaluated"],
        "voided": _voided(groups.refused.get(run_id)),
        "published": {} if published is None else dict(published.select("fact", "value").iter_rows()),
        "claimed": {} if claimed is None else dict(claimed.select("fact", "value").iter_rows()),
        "results": [] if results is None else [_result(result) for result in results.iter_rows(named=True)],
    }


def _voided(refused: pl.DataFrame | None) -> dict[str, list[str]]:
    """Which rules took which scope."""
    if refused is None:
        return {}
    pairs = refused.select("rule", "voids").explode("voids").unique().sort("voids", "rule")
    return {str(key[0]): group["rule"].to_list() for key, group in pairs.group_by("voids", maintain_order=True)}


def _result(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "rule": row["rule"],
        "outcome": row["outcome"],
        "severity": row["severity"],
        "observed": row["observed"],
        "threshold": {"low": row["threshold_low"], "high": row["threshold_high"]},
        "says": row["sentence"] or CHECKS[row["rule"]].title,
        "lines": row["lines"] or [],
    }


def _missing(judgement: Judgement) -> Iterator[dict[str, Any]]:
    """Levels that were planned or begun and have no result block."""
    without = judgement.verdicts.filter(pl.col("without_block"), pl.col("verdict") == NO_RESULT)
    for row in without.iter_rows(named=True):
        yield {
            "run_id": row["run_id"],
            "experiment": row["experiment"],
            "level": row["level"],
            "concurrency": _limit(row["concurrency"]),
            "request_rate_per_s": _limit(row["request_rate_per_s"]),
        }


def _limit(value: float | None) -> float | str | None:
    """JSON has no infinity: `"unlimited"` says that there is no limit, null that none is stated."""
    return "unlimited" if value == float("inf") else value
