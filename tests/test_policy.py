"""A user's thresholds: only known rules, only bounds that mean something."""

import pytest
from logs import log, record, write

from pdkit.errors import PdkitError
from pdkit.judge import judge
from pdkit.load import load
from pdkit.policy import read_thresholds
from pdkit.rules import Bound


def test_bounds_are_read_by_rule_and_severity(tmp_path):
    text = "[PD101]\nrefuse = { below = 0.9 }\n[PD102]\nsuspect = { below = 0.95, above = 1.05 }\n"
    assert read_thresholds(write(tmp_path / "t.toml", text)) == {
        "PD101": {"refuse": Bound(low=0.9)},
        "PD102": {"suspect": Bound(low=0.95, high=1.05)},
    }


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_an_empty_file_changes_nothing(tmp_path, encoding):
    assert read_thresholds(write(tmp_path / "t.toml", "# none\n", encoding=encoding)) == {}


def test_a_tightened_bound_is_the_one_that_judges(tmp_path):
    write(tmp_path / "bench.log", log(values={"Total generated tokens (retokenized)": "3900"}))  # 95.2 % of 4096
    evidence = load(tmp_path)
    mine = read_thresholds(write(tmp_path / "t" / "t.toml", "[PD101]\nrefuse = { below = 0.96 }\n"))
    assert judge(evidence).verdicts["refused_by"].to_list() == [[]]
    tightened = judge(evidence, thresholds=mine)
    assert tightened.verdicts["refused_by"].to_list() == [["PD101"]]
    assert tightened.results.filter(rule="PD101")["threshold_low"].to_list() == [0.96]


def test_thresholds_of_one_rule_leave_the_others(tmp_path):
    write(tmp_path / "r.jsonl", record() + "\n")
    mine = read_thresholds(write(tmp_path / "t" / "t.toml", "[PD101]\nrefuse = { below = 0.6 }\n"))
    evidence = load(tmp_path / "r.jsonl")
    plain, other = (judgement.results.filter(judgement.results["rule"] != "PD101") for judgement in
                    (judge(evidence), judge(evidence, thresholds=mine)))  # fmt: skip
    assert plain.equals(other)


WRONG = {
    "no such rule": ("[PD999]\nrefuse = { below = 1 }", "rule: 'PD999' is not known; did you mean PD"),
    "lower case": ("[pd101]\nrefuse = { below = 1 }", "rule: 'pd101' is not known; "),
    "no table": ("PD101 = 0.9", "PD101 is 0.9; it takes a table"),
    "no such severity": ("[PD101]\nrefused = { below = 1 }", "PD101: 'refused' is not known; did you mean refuse?"),
    "a severity it has not": ("[PD101]\nnote = { below = 1 }", "PD101: 'note' is not known; known: refuse"),
    "a bare number": ("[PD101]\nrefuse = 0.9", "PD101.refuse: 0.9 is no bound; write { below = 0.9 }"),
    "an empty bound": ("[PD101]\nrefuse = {}", "PD101.refuse: {} is no bound"),
    "no such side": ("[PD101]\nrefuse = { under = 0.9 }", "PD101.refuse: 'under' is not known; known: above, below"),
    "words": ('[PD101]\nrefuse = { below = "0.9" }', "PD101.refuse.below: '0.9' is no number"),
    "a yes": ("[PD101]\nrefuse = { below = true }", "PD101.refuse.below: True is no number"),
    "not a number": ("[PD101]\nrefuse = { below = nan }", "PD101.refuse.below: nan is no number"),
    "without end": ("[PD101]\nrefuse = { below = inf }", "PD101.refuse.below: inf is no number"),
    "crossed": ("[PD102]\nsuspect = { below = 1.1, above = 0.9 }", "PD102.suspect: below 1.1 and above 0.9 leave"),
    "not TOML": ("[PD101", "not valid TOML"),
    "not text": ("\udcff", "not valid TOML"),
}


@pytest.mark.parametrize(("text", "sentence"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_one_sentence_with_its_place(tmp_path, text, sentence):
    file = tmp_path / "t.toml"
    file.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(PdkitError) as problem:
        read_thresholds(file)
    assert sentence in str(problem.value)
    assert str(problem.value).startswith(str(file))
    assert "\n" not in str(problem.value)


def test_a_file_that_is_not_there_is_said(tmp_path):
    for path in (tmp_path / "nothing.toml", tmp_path):
        with pytest.raises(PdkitError, match="no such thresholds file"):
            read_thresholds(path)
