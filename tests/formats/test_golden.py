"""What `pdkit check` prints of the shipped cases; after a wanted change, `pytest --renew-golden` renews the files."""

import json
from xml.etree import ElementTree as ET

import pytest

from pdkit.formats import github, junit, markdown, sarif
from pdkit.formats import json as json_format
from pdkit.formats import text as text_format
from pdkit.judge import judge
from pdkit.load import load
from pdkit.results import Judgement

CASES = ("split-l4-qwen3-8b", "first-pd-benchmark")
LEFT_OUT = "left out here"  # what passed or could not be looked at: else each new rule would change every file


@pytest.fixture(scope="module")
def judgements() -> dict[str, Judgement]:
    return {}


def failures_only(judgement: Judgement) -> str:
    """The document without what passed or could not be looked at."""
    document = json.loads(json_format.text(judgement))
    for run in document["runs"]:
        run["results"] = [result for result in run["results"] if result["outcome"] == "fail"]
        run["not_evaluated"] = LEFT_OUT
    return json.dumps(document | {"pdkit": LEFT_OUT}, indent=1, ensure_ascii=False) + "\n"


def results_only(judgement: Judgement) -> str:
    """The SARIF log with one rule of all, then its results, one a line."""
    document = json.loads(sarif.text(judgement))
    (run,) = document["runs"]
    driver = run["tool"]["driver"]
    driver |= {"version": LEFT_OUT, "rules": driver["rules"][:1]}
    results = [json.dumps(result | {"ruleIndex": LEFT_OUT}, ensure_ascii=False) for result in run.pop("results")]
    for seen in run["properties"]["runs"]:
        seen |= {"passed": LEFT_OUT, "not_evaluated": LEFT_OUT}
    return "\n".join([json.dumps(document, indent=1, ensure_ascii=False), *results]) + "\n"


def told_only(judgement: Judgement) -> str:
    """The JUnit cases that say something."""
    root = ET.fromstring(junit.text(judgement))
    for element in root.iter():
        element.attrib = {key: LEFT_OUT if key in ("tests", "skipped") else said for key, said in element.items()}
    for suite in root:
        for case in list(suite):
            if not len(case) or case.find("skipped") is not None:
                suite.remove(case)
    ET.indent(root, " ")
    return ET.tostring(root, encoding="unicode") + "\n"


PRINTED = {
    "txt": text_format.text,
    "json": failures_only,
    "sarif": results_only,
    "xml": told_only,
    "github": github.text,
    "md": markdown.text,
}


@pytest.mark.parametrize("form", PRINTED)
@pytest.mark.parametrize("case", CASES)
def test_the_shipped_case_prints_as_it_did(in_repository, golden, judgements, case, form):
    if case not in judgements:
        judgements[case] = judge(load(f"data/{case}"))
    printed = PRINTED[form](judgements[case])
    assert printed == golden(f"{case}.{form}", printed)
