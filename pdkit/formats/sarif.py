"""A judgement as SARIF 2.1.0: failures as results, rules with their help, and what passed as properties of the run."""

import hashlib
import json
from collections.abc import Iterator
from typing import Any

import pdkit
from pdkit.findings import Findings, Place, Result, Run, one_line
from pdkit.results import Judgement
from pdkit.rules import CHECKS, Check

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_OF_RUN = ("run_id", "experiment", "level", "verdict", "refused_by", "suspected_by", "passed", "not_evaluated",
           "goodput")  # fmt: skip
_LEVELS = {"refuse": "error", "suspect": "warning", "note": "note"}


def text(judgement: Judgement) -> str:
    """The log, indented, with a final newline."""
    found = Findings(judgement)
    rules = sorted({result.rule for run in found.runs for result in run.results})
    driver = {"name": "pdkit", "version": pdkit.__version__, "rules": [_rule(CHECKS[rule]) for rule in rules]}
    run = {
        "tool": {"driver": driver}, "columnKind": "unicodeCodePoints",
        "invocations": [{"executionSuccessful": True, "toolExecutionNotifications": list(_notifications(found))}],
        "results": [_result(run, one, rules) for run in found.runs for one in run.failed()],
        "properties": {"conclusions": [f"{one.heading}: {one.conclusion}" for one in found.experiments],
                       "runs": [{name: getattr(run, name) for name in _OF_RUN}
                                | {"cause": run.cause and run.cause.document} for run in found.runs]},
    }  # fmt: skip
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1, ensure_ascii=False) + "\n"


def _rule(check: Check) -> dict[str, Any]:
    bounds = {_LEVELS[severity] for view in check.views for severity in view.bounds}
    said = check.sections or {"Claim": check.title}
    return {
        "id": check.id, "name": check.name, "shortDescription": {"text": check.title},
        "fullDescription": {"text": said.get("Why", check.title)},
        "help": {"text": "\n".join(f"{section}: {words}" for section, words in said.items()),
                 "markdown": "\n\n".join(f"**{section}.** {words}" for section, words in said.items())},
        "defaultConfiguration": {"level": next(level for level in _LEVELS.values() if level in bounds)},
        "properties": {"tags": [check.family], "voids": list(check.voids)},
    }  # fmt: skip


def _result(run: Run, result: Result, rules: list[str]) -> dict[str, Any]:
    places = list(dict.fromkeys(result.places or run.seen))
    # the same for the next sweep of this level, whatever it measures: an alert stays one alert
    key = hashlib.sha256("\0".join((run.experiment, run.name, result.rule)).encode()).hexdigest()
    return {
        "ruleId": result.rule, "ruleIndex": rules.index(result.rule), "level": _LEVELS[str(result.severity)],
        "message": _message(f"{run.name}: {result.said}"),
        "suppressions": [{"kind": "external", "justification": str(result.waiver)}] if result.waiver else [],
        "locations": [_location(place) for place in places[:1]],
        "relatedLocations": [_location(place) for place in places[1:]],
        "partialFingerprints": {"runAndRule/v1": key, "primaryLocationLineHash": f"{key[:16]}:1"},
        "properties": {"run_id": run.run_id, "experiment": run.experiment, "run_level": run.level},
    }  # fmt: skip


def _location(place: Place) -> dict[str, Any]:
    base = {} if place.uri.startswith("file:") else {"uriBaseId": "%SRCROOT%"}
    physical = {"artifactLocation": {"uri": place.uri, **base}, "region": {"startLine": place.line}}
    return {"physicalLocation": physical, "message": _message(str(place))}


def _message(text: str) -> dict[str, str]:
    """Plain text; what a log says makes no link."""
    return {"text": one_line(text).replace("](", "] (")}


def _notifications(found: Findings) -> Iterator[dict[str, Any]]:
    for one in (*found.unread_lines, *found.files_read_in_part, *found.files_not_read):
        where = [_location(Place(one.file, one.line or 1))]
        yield {"level": "note", "message": _message(one.reason), "locations": where}
    yield from ({"level": "note", "message": _message(said)} for said in found.decided)
