"""A waived finding stays in every format, marked; it is no longer what makes a page red."""

import json
from datetime import date
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from logs import log, write

from pdkit.formats import github, junit, markdown, sarif
from pdkit.judge import judge
from pdkit.load import load
from pdkit.policy import Waiver
from pdkit.results import Judgement

SAID = "waived until 2099-12-31 by ada: known <b>since</b> May"


def waived(folder: Path, *rules: str) -> Judgement:
    write(folder / "bench.log", log(values={"Total generated tokens (retokenized)": "0"}))
    evidence = load(folder)
    (run,) = judge(evidence).verdicts["run_id"]
    day = date(2099, 12, 31)
    return judge(evidence, waivers=[Waiver(rule, "known <b>since</b> May", "ada", day, run_id=run) for rule in rules])


@pytest.fixture
def accepted(tmp_path: Path) -> Judgement:
    return waived(tmp_path, "PD101", "PD110", "PD999")


def test_sarif_suppresses_it(accepted):
    (run,) = json.loads(sarif.text(accepted))["runs"]
    suppressed = {result["ruleId"]: result["suppressions"] for result in run["results"] if result["suppressions"]}
    assert suppressed == {rule: [{"kind": "external", "justification": SAID}] for rule in ("PD101", "PD110")}
    (said,) = [one["message"]["text"] for one in run["invocations"][0]["toolExecutionNotifications"]]
    assert "PD999" in said


def test_junit_skips_it_and_is_green(accepted):
    root = ET.fromstring(junit.text(accepted))
    assert root.get("failures") == "0"
    assert [SAID in one.get("message", "") for one in root.iter("skipped")].count(True) == 2
    assert "no measured result" in "".join(said.text or "" for said in root.iter("system-out"))
    assert "PD999" in root.find("testsuite/properties/property").get("value")


def test_github_warns_of_it(accepted):
    text = github.text(accepted)
    assert "::error" not in text
    assert text.startswith("::warning file=")
    assert text.count(SAID) == 2


def test_markdown_tells_it_as_text(accepted):
    assert markdown.text(accepted).count("waived until 2099-12-31 by ada&#58; known") == 0
    assert markdown.text(accepted).count("waived until 2099-12-31 by ada: known &#60;b&#62;since&#60;/b&#62; May") == 2


def test_one_of_two_refusals_waived_stays_red(tmp_path):
    judgement = waived(tmp_path, "PD101")
    root = ET.fromstring(junit.text(judgement))
    failed = [one.get("name", "") for one in root.iter("testcase") if one.find("failure") is not None]
    assert [name.partition(" Claimed")[0].partition(" With")[0] for name in failed] == [
        "8 users: verdict",
        "8 users: PD110",
    ]
    assert github.text(judgement).startswith("::error ")
