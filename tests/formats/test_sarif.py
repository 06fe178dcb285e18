"""SARIF 2.1.0: valid, with places that a viewer can open, and the same alert from sweep to sweep."""

import json
from pathlib import Path
from urllib.parse import unquote

import jsonschema
import pytest
from hostile import FOLDER, hostile, refused
from logs import log, write

from pdkit.formats import sarif
from pdkit.judge import judge
from pdkit.load import load
from pdkit.results import Judgement

SCHEMA = json.loads((Path(__file__).parent / "sarif-subset.schema.json").read_text("utf-8"))


def sarif_run(judgement: Judgement) -> dict:
    document = json.loads(sarif.text(judgement), parse_constant=pytest.fail)
    jsonschema.Draft7Validator(SCHEMA).validate(document)
    (run,) = document["runs"]
    return run


@pytest.mark.parametrize("case", ["split-l4-qwen3-8b", "first-pd-benchmark", "real-client"])
def test_the_shipped_cases_are_valid(in_repository, case):
    run = sarif_run(judge(load(f"data/{case}")))
    rules = run["tool"]["driver"]["rules"]
    assert run["results"]
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        for location in (*result["locations"], *result["relatedLocations"]):
            place = location["physicalLocation"]["artifactLocation"]
            assert place["uriBaseId"] == "%SRCROOT%"
            assert Path(unquote(place["uri"])).is_file()


def test_nothing_found_is_valid_too(tmp_path):
    write(tmp_path / "notes.txt", "nothing")
    assert sarif_run(judge(load(tmp_path)))["results"] == []


def test_hostile_text_stays_text(tmp_path):
    run = sarif_run(hostile(tmp_path))
    messages = [result["message"]["text"] for result in run["results"]]
    assert not any("](" in message or "\n" in message for message in messages)
    (broken,) = [result for result in run["results"] if result["ruleId"] == "PD401"]
    (location,) = broken["locations"]
    uri = location["physicalLocation"]["artifactLocation"]["uri"]
    assert uri.startswith("file:///")
    assert unquote(uri.removeprefix("file://")) == str(tmp_path / FOLDER / "broken.log")
    assert location["physicalLocation"]["region"]["startLine"] == 8


def test_severities_are_levels_and_rules_bring_their_help(tmp_path):
    run = sarif_run(refused(tmp_path))
    levels = {result["ruleId"]: result["level"] for result in run["results"]}
    assert (levels["PD101"], levels["PD508"], levels["PD901"]) == ("error", "warning", "note")
    rules = {rule["id"]: rule for rule in run["tool"]["driver"]["rules"]}
    assert rules["PD101"]["shortDescription"]["text"] == "Claimed output tokens come back as text."
    assert rules["PD101"]["defaultConfiguration"]["level"] == "error"
    assert "**Why.** " in rules["PD101"]["help"]["markdown"]
    assert "\nNext: " in rules["PD101"]["help"]["text"]


def test_what_passed_and_what_could_not_look_is_told(tmp_path):
    write(tmp_path / "bench.log", log())
    (seen,) = sarif_run(judge(load(tmp_path)))["properties"]["runs"]
    assert seen["verdict"] == "measured, with doubts"
    assert "PD101" in seen["passed"]
    assert "PD103" in seen["not_evaluated"]


def test_an_alert_stays_one_alert_when_the_sweep_runs_again(tmp_path):
    first = {result["ruleId"]: result["partialFingerprints"] for result in sarif_run(refused(tmp_path))["results"]}
    values = {"Total generated tokens (retokenized)": "1", "Mean TTFT (ms)": "2301.00"}
    write(tmp_path / "bench.log", ["a line more", *log(values=values)])
    again = {result["ruleId"]: result["partialFingerprints"] for result in sarif_run(judge(load(tmp_path)))["results"]}
    assert first["PD101"] == again["PD101"]
    assert len({keys["runAndRule/v1"] for keys in first.values()}) == len(first)
