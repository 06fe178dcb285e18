"""Two sides of a claim: a bar only for what was measured."""

import json
from functools import cache
from pathlib import Path

import pytest

from pdkit.charts.claims_compared import claims_compared
from pdkit.errors import PdkitError
from pdkit.judge import judge
from pdkit.load import load
from pdkit.results import CLAIMED, NO_RESULT, Judgement
from tests.charts.made import evidence, hostile, run, sweep

# 40 requests of 100 tokens in 70 s
THROUGHPUT = 40 * 100 / 70


def two(*, suspect: float | None, baseline: float | None = 1.0, **kept: object):
    """The same level on two sides; each number is the share of claimed tokens that came back."""
    runs = [run(8, experiment=name, received=share) for name, share in (("split", suspect), ("single", baseline))]
    return judge(evidence(*runs, **kept))


@cache
def split() -> Judgement:
    return judge(load(Path(__file__).parents[2] / "data/split-l4-qwen3-8b"))


def drawn(judgement, suspect=("split",), baseline=("single",)) -> dict:
    return claims_compared(judgement, suspect=suspect, baseline=baseline).to_dict()


def rows(spec: dict) -> dict[str, dict]:
    return {row["side"]: row for data in spec["datasets"].values() for row in data if "side" in row}


def marks(spec: dict) -> list[list[str]]:
    return [[layer["mark"]["type"] for layer in panel["layer"]] for panel in spec["vconcat"]]


def notes(spec: dict) -> list[str]:
    return spec["title"]["subtitle"]


def test_a_side_without_a_measured_result_has_a_slot_and_no_bar():
    spec = drawn(two(suspect=0.0))
    assert marks(spec) == [["rect", "text", "text"], ["rect", "text", "text", "bar", "text", "text"]]
    suspect = rows(spec)["Suspect: split"]
    assert suspect["received"] is None
    assert suspect["words"] == f"{NO_RESULT} (PD101, PD103, PD201)"
    assert suspect["claim"] == f"57.14 tok/s {CLAIMED}"


def test_the_measured_side_is_a_bar_of_what_came_back():
    baseline = rows(drawn(two(suspect=0.0)))["Baseline: single"]
    assert baseline["received"] == pytest.approx(THROUGHPUT)
    assert baseline["words"].startswith("57.14 tok/s measured")
    assert baseline["claim"] == "57.14 tok/s printed"


def test_there_is_no_winner_where_a_side_has_nothing():
    spec = drawn(two(suspect=0.0))
    assert notes(spec)[0] == "No winner: the suspect has no measured throughput."
    assert "No winner" in spec["description"]


def test_two_sides_without_a_result_are_two_slots_and_no_axis():
    spec = drawn(two(suspect=0.0, baseline=0.0))
    assert "bar" not in json.dumps(marks(spec))
    assert notes(spec)[0] == "No side has a measured throughput: there is nothing to compare."


def test_two_measured_sides_are_two_bars_and_still_no_winner():
    spec = drawn(two(suspect=1.0))
    assert json.dumps(marks(spec)).count('"bar"') == 2
    assert notes(spec)[0] == "Single bars name no winner: repeats under equal load would."


def test_both_sides_share_one_axis():
    spec = drawn(two(suspect=1.0))
    ends = {json.dumps(bar["encoding"]["x"]["scale"]["domain"]) for bar in bars(spec)}
    assert len(ends) == 1
    assert [bool(bar["encoding"]["x"]["axis"]) for bar in bars(spec)] == [False, True]


def bars(spec: dict) -> list[dict]:
    return [layer for panel in spec["vconcat"] for layer in panel["layer"] if layer["mark"]["type"] == "bar"]


def test_text_that_nobody_counted_is_no_bar():
    spec = drawn(two(suspect=None, listed=False))
    suspect = rows(spec)["Suspect: split"]
    assert suspect["received"] is None
    assert suspect["words"] == "unverified: nothing shows that text came back"
    assert suspect["claim"].endswith(CLAIMED)


def test_a_sweep_stands_level_by_level():
    spec = drawn(judge(sweep([1, 8, 16], received={16: 0.25})), suspect=["made"], baseline=[])
    found = [row["level"] for data in spec["datasets"].values() for row in data if "side" in row]
    assert found == ["1 user", "8 users", "16 users"]
    assert "1 of 3 runs has no measured result." in notes(spec)


def test_a_side_is_a_run_an_experiment_or_a_folder():
    judgement = judge(evidence(*(run(8, experiment=name) for name in ("a/split", "a/other", "b/single"))))
    by_folder = drawn(judgement, suspect=["a"], baseline=["b/single"])
    assert set(rows(by_folder)) == {"Suspect: a/split", "Suspect: a/other", "Baseline: b/single"}
    run_id = judgement.verdicts["run_id"][0]
    assert len(rows(drawn(judgement, suspect=[run_id], baseline=["b"]))) == 2


def test_a_name_that_nothing_has_is_an_error_that_says_what_would_do():
    with pytest.raises(PdkitError, match=r"'nothing' is no run or experiment; a run_id or one of .* would be"):
        drawn(two(suspect=1.0), suspect=["nothing"])


def test_without_names_each_experiment_is_a_side():
    spec = claims_compared(two(suspect=0.0)).to_dict()
    assert set(rows(spec)) == {"split", "single"}
    assert notes(spec)[0] == "No winner: 1 experiment has no measured throughput."


def test_cards_are_named_with_their_side():
    spec = drawn(
        split(), suspect=["split-l4-qwen3-8b/open-loop/split"], baseline=["split-l4-qwen3-8b/open-loop/baseline"]
    )
    assert set(rows(spec)) == {
        "Suspect: Split server as posted (synthetic), 2 × NVIDIA L4",
        "Baseline: Single FP8 server (synthetic), 1 × NVIDIA L4",
    }


def test_the_posted_claim_is_text_and_the_baseline_a_bar():
    spec = drawn(
        split(), suspect=["split-l4-qwen3-8b/open-loop/split"], baseline=["split-l4-qwen3-8b/open-loop/baseline"]
    )
    claimed, measured = rows(spec).values()
    assert (claimed["received"], claimed["claim"]) == (None, f"751.85 tok/s {CLAIMED}")
    assert round(measured["received"], 2) == 728.61


def test_repeats_at_a_level_are_rows_of_their_own():
    one, again = run(8), run(8, requests=41)
    again = tuple(
        [row | {"run_id": "again", "seen_id": "again"} for row in part] if isinstance(part, list)
        else part | {"run_id": "again", "seen_id": "again"}
        for part in again
    )  # fmt: skip
    spec = claims_compared(judge(evidence(one, again))).to_dict()
    found = {row["row"] for data in spec["datasets"].values() for row in data if "side" in row}
    assert found == {"8 users, run 1", "8 users, run 2"}


@pytest.mark.parametrize("case", hostile())
def test_any_evidence_is_drawn_from_either_side(case):
    judgement = judge(hostile()[case])
    runs = judgement.verdicts["run_id"].to_list()[:2]
    spec = claims_compared(judgement, suspect=runs[:1], baseline=runs[1:]).to_dict()
    assert spec["description"].endswith(".")
