"""A judgement as one JSON document; its fields are documented in docs/check-json.md."""

import json
from typing import Any

import pdkit
from pdkit.findings import Findings, Result, Run
from pdkit.results import Judgement

_SOURCE = ("path", "reader", "reason", "bytes", "sha256")


def text(judgement: Judgement) -> str:
    """The document, indented, with a final newline."""
    return json.dumps(document(judgement), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def document(judgement: Judgement) -> dict[str, Any]:
    """Verdicts, results and what was not read, as plain values: no infinity, no NaN."""
    found = Findings(judgement)
    return {
        "pdkit": pdkit.__version__,
        "runs": [_run(run) for run in found.runs],
        "missing": [{"run_id": run.run_id} | _level(run) for run in found.runs if run.is_missing],
        "not_read": [{"path": file.file, "reason": file.reason} for file in found.files_not_read],
        "unread_lines": [{"line": line.place, "reason": line.reason, "text": line.text} for line in found.unread_lines],
        "experiments": [{"experiment": one.name, "title": one.title} for one in found.experiments],
        "conclusions": [f"{one.name}: {one.conclusion}" for one in found.experiments],
        "decided": found.decided,
        "sources": judgement.evidence.sources.select(_SOURCE).sort("path").to_dicts(),
    }


def _run(run: Run) -> dict[str, Any]:
    level = _level(run)
    return {
        "run_id": run.run_id,
        "series_key": run.series_key,
        "experiment": level.pop("experiment"),
        "synthetic": run.synthetic,
        "sources": sorted({place.file for place in run.seen}),
        **level,
        "evidence_level": run.evidence_level,
        "verdict": run.verdict,
        "refused_by": run.refused_by,
        "suspected_by": run.suspected_by,
        "not_evaluated": run.not_evaluated,
        "cause": run.cause and run.cause.document,
        "voided": dict(run.voided),
        "published": dict(run.published),
        "goodput": run.goodput,
        "claimed": {fact: claim.value for fact, claim in run.claimed.items()},
        "claimed_at": {fact: str(claim.place) for fact, claim in run.claimed.items()},
        "results": [_result(result) for result in run.results],
    }


def _level(run: Run) -> dict[str, Any]:
    return {
        "experiment": run.experiment,
        "level": run.level,
        "concurrency": _limit(run.concurrency),
        "request_rate_per_s": _limit(run.request_rate_per_s),
    }


def _result(result: Result) -> dict[str, Any]:
    return {
        "rule": result.rule,
        "outcome": result.outcome,
        "severity": result.severity,
        "observed": result.observed,
        "threshold": {"low": result.low, "high": result.high},
        "says": result.sentence,
        "lines": [str(place) for place in result.places],
        "waiver": result.waiver and vars(result.waiver) | {"expiry": str(result.waiver.expiry)},
    }


def _limit(value: float | None) -> float | str | None:
    """JSON has no infinity: `"unlimited"` says that there is no limit, null that none is stated."""
    return "unlimited" if value == float("inf") else value
