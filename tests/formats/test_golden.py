"""What `pdkit check` prints of the shipped cases; after a wanted change, `pytest --renew-golden` renews the files."""

import json

import pytest

from pdkit.formats import json as json_format
from pdkit.formats import text as text_format
from pdkit.judge import judge
from pdkit.load import load
from pdkit.results import Judgement

CASES = ("split-l4-qwen3-8b", "first-pd-benchmark")


@pytest.fixture(scope="module")
def judgements() -> dict[str, Judgement]:
    return {}


def failures_only(judgement: Judgement) -> str:
    """The document without what passed or could not be looked at: else each new rule would change every file."""
    document = json.loads(json_format.text(judgement))
    for run in document["runs"]:
        run["results"] = [result for result in run["results"] if result["outcome"] == "fail"]
        run["not_evaluated"] = "left out here"
    return json.dumps(document | {"pdkit": "left out here"}, indent=1, ensure_ascii=False) + "\n"


PRINTED = {"txt": text_format.text, "json": failures_only}


@pytest.mark.parametrize("form", PRINTED)
@pytest.mark.parametrize("case", CASES)
def test_the_shipped_case_prints_as_it_did(in_repository, golden, judgements, case, form):
    if case not in judgements:
        judgements[case] = judge(load(f"data/{case}"))
    golden(f"{case}.{form}", PRINTED[form](judgements[case]))
