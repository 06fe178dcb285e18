"""JUnit XML: red where `pdkit check` exits with 1, and only there; skipped where nobody could look."""

from xml.etree import ElementTree as ET

import pytest
from hostile import FOLDER, hostile, refused
from logs import log, write

from pdkit.formats import junit
from pdkit.judge import judge
from pdkit.load import load
from pdkit.results import Judgement


def suites(judgement: Judgement) -> ET.Element:
    return ET.fromstring(junit.text(judgement))


def case(root: ET.Element, name: str) -> ET.Element:
    (found,) = [one for one in root.iter("testcase") if one.get("name", "").startswith(name)]
    return found


def test_a_run_has_a_case_a_rule_and_one_for_its_verdict(tmp_path):
    root = suites(refused(tmp_path))
    failure = case(root, "8 users: PD101 Claimed output tokens come back as text").find("failure")
    assert failure.get("message").startswith("0 of 4,096 claimed tokens came back as text")
    assert "bench.log:" in failure.text
    assert case(root, "8 users: verdict").find("failure").get("type") == "no measured result"
    assert "4.3 times" in case(root, "8 users: PD508").findtext("system-out")
    assert case(root, "8 users: PD103").find("skipped") is not None
    assert list(case(root, "8 users: PD301")) == []


def test_counts_are_those_of_the_cases(in_repository):
    root = suites(judge(load("data/split-l4-qwen3-8b")))
    for element in (root, *root.iter("testsuite")):
        assert int(element.get("tests")) == len(list(element.iter("testcase")))
        assert int(element.get("failures")) == len(list(element.iter("failure")))
        assert int(element.get("skipped")) == len(list(element.iter("skipped")))
    assert [suite.get("name").partition(":")[0] for suite in root] == [
        f"split-l4-qwen3-8b/{name}" for name in ("open-loop/baseline", "open-loop/split", "original", "swapped")
    ]


@pytest.mark.parametrize(
    "path",
    [
        "data/split-l4-qwen3-8b/open-loop/baseline",
        "data/split-l4-qwen3-8b/original",
        "data/first-pd-benchmark/filtered",
        "data/real-client/healthy",
        "data/real-client/all-empty",
    ],
)
def test_it_is_red_when_a_run_is_not_accepted_and_only_then(in_repository, path):
    judgement = judge(load(path))
    assert (suites(judgement).get("failures") == "0") == judgement.accepted().all()


def test_names_tell_runs_of_one_level_apart(tmp_path):
    write(tmp_path / "a.log", log())
    write(tmp_path / "b.log", log(values={"Benchmark duration (s)": "65.00"}))
    names = [one.get("name") for one in suites(judge(load(tmp_path))).iter("testcase")]
    assert len(names) == len(set(names))
    assert "8 users, again (2): verdict" in names


def test_what_xml_forbids_is_spelt_out(tmp_path):
    root = suites(hostile(tmp_path))
    (broken,) = [one for one in root.iter("failure") if "no whole result" in one.get("message", "")]
    assert "<script>alert(1)</script>" in broken.get("message")  # as text
    (suite,) = root
    assert suite.get("name").startswith(f"{tmp_path.name}/{FOLDER}: ")
    assert r"\u202e" in suite.get("name")
    assert r"\ufffe" in suite.get("name")
    assert r"\n" in suite.get("name")
