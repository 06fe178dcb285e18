"""A user's thresholds and waivers: only known rules, only bounds that mean something, only waivers that are whole."""

import re
from datetime import date
from pathlib import Path

import pytest
from logs import details, log, record, write

from pdkit.errors import PdkitError
from pdkit.judge import judge
from pdkit.load import load
from pdkit.policy import Waiver, read_thresholds, read_waivers
from pdkit.rules import Bound

DOCS = Path(__file__).parents[1] / "docs"
TODAY = date(2026, 11, 29)


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


def test_a_bound_changes_only_the_view_that_it_fits(tmp_path):
    """PD201 refuses a share of requests above 1 %, and a mean TTFT below 0.01 ms."""
    write(tmp_path / "r.jsonl", record(**details()) + "\n")  # every TTFT is 2,300 ms
    mine = read_thresholds(write(tmp_path / "t" / "t.toml", "[PD201]\nrefuse = { above = 0.02 }\n"))
    judgement = judge(load(tmp_path / "r.jsonl"), thresholds=mine)
    assert judgement.results.filter(rule="PD201")["outcome"].to_list() == ["pass"]
    changed = judgement.changed.select("rule", "severity", "default", "used", "looser").rows()
    assert changed == [("PD201", "refuse", "at most 0.01", "at most 0.02", True)]


def test_of_several_bounds_the_one_that_is_meant_changes(tmp_path):
    """PD508 doubts a run below 60 s, and one below 5 times its mean E2E."""
    write(tmp_path / "bench.log", log())  # 64 s, 4.3 times its mean E2E of 15 s
    mine = read_thresholds(write(tmp_path / "t.toml", "[PD508]\nsuspect = { below = 4, instead_of = 5 }\n"))
    assert mine == {"PD508": {"suspect": Bound(low=4, instead_of=5)}}
    judgement = judge(load(tmp_path / "bench.log"), thresholds=mine)
    assert judgement.results.filter(rule="PD508")["outcome"].to_list() == ["pass"]
    assert judgement.changed["default"].to_list() == ["at least 5"]


def test_one_side_leaves_the_other():
    assert Bound(high=1.2).over(Bound(0.9, 1.1)) == Bound(0.9, 1.2)
    assert Bound(low=0.95).looser_than(Bound(0.9, 1.1))  # nothing is too high any more
    assert not Bound(0.95, 1.05).looser_than(Bound(0.9, 1.1))


def test_without_thresholds_nothing_differs(tmp_path):
    assert judge(load(write(tmp_path / "bench.log", log()))).changed.is_empty()


def test_the_example_of_the_docs_is_read_and_judges(tmp_path):
    example = re.search(r"```toml\n(.*?)```", (DOCS / "thresholds.md").read_text("utf-8"), re.DOTALL)
    mine = read_thresholds(write(tmp_path / "t" / "t.toml", example[1]))
    judgement = judge(load(write(tmp_path / "bench.log", log())), thresholds=mine)
    assert {"PD101", "PD508"} <= set(judgement.changed["rule"])


WRONG = {
    "no such rule": ("[PD999]\nrefuse = { below = 1 }", "rule: 'PD999' is not known; did you mean PD"),
    "lower case": ("[pd101]\nrefuse = { below = 1 }", "rule: 'pd101' is not known; "),
    "no table": ("PD101 = 0.9", "PD101 is 0.9; it takes a table"),
    "no such severity": ("[PD101]\nrefused = { below = 1 }", "PD101: 'refused' is not known; did you mean refuse?"),
    "a severity it has not": ("[PD101]\nnote = { below = 1 }", "PD101: 'note' is not known; known: refuse"),
    "a bare number": ("[PD101]\nrefuse = 0.9", "PD101.refuse: 0.9 is no bound; write { below = 0.9 }"),
    "an empty bound": ("[PD101]\nrefuse = {}", "PD101.refuse: {} is no bound"),
    "no such side": (
        "[PD101]\nrefuse = { under = 0.9 }",
        "PD101.refuse: 'under' is not known; known: above, below, instead_of",
    ),
    "a side it has not": (
        "[PD101]\nrefuse = { above = 0.9 }",
        "PD101.refuse: 'above' is no bound of this rule; it takes below",
    ),
    "which of two": ("[PD508]\nsuspect = { below = 9 }", "PD508.suspect: below is 5, 60 there; add `instead_of = 5`"),
    "none of the two": (
        "[PD508]\nsuspect = { below = 9, instead_of = 6 }",
        "PD508.suspect.instead_of: 6 is no default of below; it is 5, 60",
    ),
    "crossed with the default": ("[PD102]\nsuspect = { above = 0.8 }", "PD102.suspect: below 0.9 and above 0.8 leave"),
    "no bound but its place": ("[PD508]\nsuspect = { instead_of = 5 }", "is no bound; write { below = 0.9 }"),
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


# --- waivers --------------------------------------------------------------------------------------------------------

WHOLE = {
    "rule": '"PD508"', "run_id": '"0123456789ab"', "reason": '"a smoke test"', "owner": '"ada"', "expiry": "2026-12-31",
}  # fmt: skip


def waiver(**changes: str | None) -> str:
    """One table; None leaves a key out."""
    said = {**WHOLE, **changes}
    return "[[waiver]]\n" + "".join(f"{key} = {value}\n" for key, value in said.items() if value is not None)


def test_waivers_are_read_whole(tmp_path):
    text = waiver() + waiver(run_id=None, series_key='"model=m;  gpu=?"')
    one = Waiver("PD508", "a smoke test", "ada", date(2026, 12, 31), run_id="0123456789ab")
    other = Waiver("PD508", "a smoke test", "ada", date(2026, 12, 31), series_key="model=m; gpu=?")
    assert read_waivers(write(tmp_path / "w.toml", text), today=TODAY) == (one, other)


def test_a_waiver_holds_through_its_last_day(tmp_path):
    file = write(tmp_path / "w.toml", waiver())
    assert len(read_waivers(file, today=date(2026, 12, 31))) == 1
    with pytest.raises(PdkitError, match="waiver 1: expired on 2026-12-31; look at its finding again"):
        read_waivers(file, today=date(2027, 1, 1))


def test_a_file_without_waivers_waives_nothing(tmp_path):
    assert read_waivers(write(tmp_path / "w.toml", "# none\n")) == ()


WRONG_WAIVERS = {
    "no such rule": (waiver(rule='"PD5O8"'), "waiver 1: rule: 'PD5O8' is not known; did you mean PD508?"),
    "no such key": (waiver(owners='"ada"'), "waiver 1: 'owners' is not known; did you mean owner?"),
    "another table": ("[[waivers]]\n", "'waivers' is not known; did you mean waiver?"),
    "one table": ("[waiver]\nrule = 'PD508'\n", "waiver is no list of tables; write `[[waiver]]` above each"),
    "no reason": (waiver(reason=None), "waiver 1: no reason; a waiver has rule, run_id or series_key, reason"),
    "an empty owner": (waiver(owner='" "'), "waiver 1: owner is ' '; it takes words in quotes"),
    "a number": (waiver(reason="3"), "waiver 1: reason is 3; it takes words in quotes"),
    "for nothing": (waiver(run_id=None), "waiver 1: it names neither run_id nor series_key; it takes one of them"),
    "for two things": (waiver(series_key='"x"'), "waiver 1: it names both run_id and series_key; it takes one of them"),
    "no run": (waiver(run_id='"users-16.log"'), "waiver 1: run_id 'users-16.log' is none; `pdkit check --format json`"),
    "a day in quotes": (waiver(expiry='"2026-12-31"'), "expiry is '2026-12-31'; it takes a date without quotes"),
    "a time": (waiver(expiry="2026-12-31T10:00:00"), "it takes a date without quotes, 2027-01-31"),
    "the second": (waiver() + waiver(rule='"PD101"', expiry="2026-11-28"), "waiver 2: expired on 2026-11-28"),
    "said twice": (waiver() + waiver(reason='"again"'), "waiver 2 is about what waiver 1 is about; keep one of them"),
    "not TOML": ("[[waiver]", "not valid TOML"),
}


@pytest.mark.parametrize(("text", "sentence"), WRONG_WAIVERS.values(), ids=WRONG_WAIVERS)
def test_what_is_wrong_with_a_waiver_is_one_sentence(tmp_path, text, sentence):
    file = write(tmp_path / "w.toml", text)
    with pytest.raises(PdkitError) as problem:
        read_waivers(file, today=TODAY)
    assert sentence in str(problem.value)
    assert str(problem.value).startswith(str(file))
    assert "\n" not in str(problem.value)


def test_a_waivers_file_that_is_not_there_is_said(tmp_path):
    with pytest.raises(PdkitError, match="no such waivers file"):
        read_waivers(tmp_path / "nothing.toml")
