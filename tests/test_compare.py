"""Two sides: levels are paired, unlike things are refused, no refused number is a result, and nobody wins."""

import json
import sys
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from logs import details, record, write

sys.path.insert(0, str(Path(__file__).parent / "checks"))
from given import evidence

from pdkit.cli import main
from pdkit.compare import Comparison, Pair, compare
from pdkit.errors import PdkitError
from pdkit.evidence import Evidence
from pdkit.formats import comparison as formats
from pdkit.load import load, same_runs

_MADE = count()  # of runs
OPEN_LOOP = ("data/split-l4-qwen3-8b/open-loop/baseline", "data/split-l4-qwen3-8b/open-loop/split")


def pdkit(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["compare", *map(str, arguments)])


def side(*runs: dict[str, Any], gpus: int | None = None) -> Evidence:
    """One run a dict of what differs from a healthy run, in one experiment."""
    said = {"settings": {"experiment": "e"}} | ({"gpu_count": gpus} if gpus else {})
    # latencies of their own: two levels with the same ones are one that was copied
    own = [{"seen": f"run.log#{i}", "duration_s": 200 + i / 100, "ttft_ms_mean": 120 + next(_MADE) / 1000}
           for i in range(len(runs))]  # fmt: skip
    made = [evidence(**(said | latency | run)) for latency, run in zip(own, runs, strict=True)]
    return same_runs(Evidence.joined(made))


def one(baseline: dict[str, Any], candidate: dict[str, Any]) -> Pair:
    """The only pair of two runs."""
    (pair,) = compare(side(baseline), side(candidate)).pairs
    return pair


def pairs_of(compared: Comparison) -> list[tuple[str, str]]:
    return [(pair.baseline.level, pair.candidate.level) for pair in compared.pairs]


# --- levels ---------------------------------------------------------------------------------------------------------


def test_runs_at_one_level_are_a_pair_and_others_are_named():
    compared = compare(side({"concurrency": 4}, {"concurrency": 8}), side({"concurrency": 8}, {"concurrency": 16}))
    assert pairs_of(compared) == [("8 users", "8 users")]
    assert [level.sentence for level in compared.unpaired] == [
        "4 users: BASELINE alone has it",
        "16 users: CANDIDATE alone has it",
    ]
    assert compared.is_comparable


def test_a_level_that_nobody_states_is_no_level():
    unknown = {"concurrency": None, "request_rate_per_s": None}
    compared = compare(side(unknown, {}), side(unknown, {}))
    assert pairs_of(compared) == [("4 users", "4 users")]
    assert [level.sentence for level in compared.unpaired] == [
        "level not stated: 1 run of BASELINE, 1 of CANDIDATE: none is picked; name the logs of one level"
    ]
    assert not compared.is_comparable


def test_the_only_runs_of_both_sides_are_a_pair_and_refused_at_different_levels():
    pair = one({"concurrency": 4}, {"concurrency": 8})
    assert pair.title == "e against e, at 8 users against 4 users; they differ in concurrency cap"
    assert pair.sentence == "no winner: not comparable (PD703)"
    assert pair.numbers == ()


def test_one_experiment_on_both_sides_is_two_sides():
    # the same folder name, and the same numbers to the last digit: still a run a side
    pair = one({}, {})
    assert pair.baseline.run_id == pair.candidate.run_id
    assert pair.is_comparable


# --- comparable -----------------------------------------------------------------------------------------------------


def test_one_run_a_side_has_numbers_and_no_winner():
    pair = one({}, {"retokenized_tok_sum": 40_000, "ttft_ms_median": 59})
    numbers = {number.fact: number for number in pair.numbers}
    received = numbers["received_throughput_tok_per_s"]
    assert (received.baseline, received.candidate) == (39_600 / 200, 200)
    assert received.ratio == pytest.approx(40_000 / 39_600)
    assert numbers["ttft_ms_median"].ratio == 59 / 120
    assert pair.sentence == "no winner: one run a side; 3 or more a side, in turn and with one seed, would tell"
    for word in ("faster", "slower", "wins", "better"):
        assert word not in formats.text(compare(side({}), side({})))


def test_a_mean_stands_where_no_median_is_printed():
    pair = one({"e2e_ms_median": None}, {})
    assert [number.fact for number in pair.numbers][-1] == "e2e_ms_mean"


def test_sides_of_other_sizes_are_compared_per_gpu():
    (pair,) = compare(side({}, gpus=1), side({}, gpus=2)).pairs
    assert pair.title == "e against e, at 4 users, per GPU; they differ in GPUs"
    numbers = {number.fact: number for number in pair.numbers}
    assert numbers["received_throughput_tok_per_s"].ratio is None
    assert numbers["received_throughput_tok_per_s_per_gpu"].ratio == 0.5
    assert numbers["received_throughput_tok_per_s_per_gpu"].candidate == 99


def test_a_gpu_count_of_one_side_gives_no_number_per_gpu():
    (pair,) = compare(side({}, gpus=1), side({})).pairs
    assert "received_throughput_tok_per_s_per_gpu" not in [number.fact for number in pair.numbers]
    assert [setting.name for setting in pair.stated_once] == ["GPUs"]


def test_clocks_of_two_clients_have_no_ratio():
    pair = one({}, {"settings": {"experiment": "e", "client_definition": "rust"}})
    ratios = {number.fact: number.ratio for number in pair.numbers}
    assert ratios["received_throughput_tok_per_s"] == 1
    assert [fact for fact, ratio in ratios.items() if ratio is None] == [
        "ttft_ms_median", "tpot_ms_median", "e2e_ms_median",
    ]  # fmt: skip


def test_a_number_that_a_rule_took_from_one_side_has_no_ratio():
    # 400 requests for 401 slots: less than one a slot refuses the throughput
    many = {"concurrency": 401}
    (pair,) = compare(side(many), side(many)).pairs
    received = pair.numbers[0]
    assert (received.baseline, received.ratio) == (None, None)
    assert received.baseline_voided_by == ("PD502",)
    assert "– (PD502)" in formats.text(compare(side(many), side(many)))


def test_a_setting_that_differs_is_named_with_both_lines():
    pair = one({"settings": {"experiment": "e", "seed": 1}}, {"settings": {"experiment": "e", "seed": 2}})
    (seed,) = pair.differing
    assert (seed.name, seed.baseline, seed.candidate) == ("seed", "1", "2")
    assert [str(place) for place in (*seed.baseline_places, *seed.candidate_places)] == ["run.log:99", "run.log:99"]
    assert [result.rule for result in pair.failed("note")] == ["PD702"]
    assert pair.is_comparable


# --- refused --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("baseline", "candidate", "sentence"),
    [
        ({}, {"retokenized_tok_sum": 0}, "no winner: CANDIDATE has no measured result (PD101 and PD110)"),
        ({"retokenized_tok_sum": 0}, {}, "no winner: BASELINE has no measured result (PD101 and PD110)"),
        (
            {"retokenized_tok_sum": 0},
            {"duration_s": 0},
            "no winner: BASELINE has no measured result (PD101 and PD110) and CANDIDATE has no measured result (PD407)",
        ),
        (
            {},
            {"retokenized_tok_sum": None},
            "no winner: CANDIDATE is unverified: nothing shows that text came back",
        ),
        ({}, {"settings": {"experiment": "e", "dataset": "sharegpt"}}, "no winner: not comparable (PD702)"),
    ],
)  # fmt: skip
def test_why_there_is_no_comparison(baseline: dict[str, Any], candidate: dict[str, Any], sentence: str):
    pair = one(baseline, candidate)
    assert pair.sentence == sentence
    assert not pair.is_comparable
    assert pair.numbers == ()


def test_one_log_on_both_sides_is_a_wrong_call(tmp_path: Path):
    log = write(tmp_path / "r.jsonl", record() + "\n")
    copy = write(tmp_path / "copy" / "r.jsonl", record() + "\n")
    result = pdkit(log, copy)
    assert result.exit_code == 2
    assert "the same log as" in result.stderr
    sides = load(log), load(copy)
    with pytest.raises(PdkitError, match="the same log as"):
        compare(*sides)


# --- the split server that "won" ------------------------------------------------------------------------------------


def test_the_posted_win_has_no_winner(in_repository: Path):
    result = pdkit(*OPEN_LOOP)
    assert result.exit_code == 1
    assert "no winner: CANDIDATE has no measured result (PD101" in result.stdout
    assert "at 8 requests/s, per GPU; they differ in GPUs and topology" in result.stdout
    (claim,) = [line for line in result.stdout.splitlines() if "751.85" in line]
    assert "751.85 tok/s claimed, not measured (split/result.jsonl:1)" in claim
    assert "728.61 tok/s received" in result.stdout
    assert "within this run only" not in result.stdout


def test_the_document_of_the_posted_win_holds_no_claim_as_a_result(in_repository: Path):
    said = json.loads(pdkit(*OPEN_LOOP, "--format", "json").stdout)
    (pair,) = said["pairs"]
    assert (said["comparable"], pair["comparable"], pair["numbers"]) == (False, False, [])
    assert pair["candidate"]["received_throughput_tok_per_s"] is None
    claimed = pair["candidate"].pop("claimed")
    assert (round(claimed["value"], 2), claimed["is"]) == (751.85, "claimed, not measured")
    assert [run.pop("claimed")["is"] for run in pair["runs"] if run["claimed"]] == ["claimed, not measured"]
    assert "751.8" not in json.dumps(pair)
    assert {setting["setting"] for setting in pair["differs"]} == {"GPUs", "topology"}
    assert all(setting["baseline_lines"] and setting["candidate_lines"] for setting in pair["differs"])
    assert [found["rule"] for found in pair["refused_by"]] == ["PD709", "PD713"]


def test_turning_the_pair_round_changes_no_conclusion(in_repository: Path):
    said = json.loads(pdkit(*reversed(OPEN_LOOP), "--format", "json").stdout)
    assert said["conclusion"].startswith("no winner: BASELINE has no measured result (PD101")


# --- the command ----------------------------------------------------------------------------------------------------


def two_sides(tmp_path: Path) -> list[Path]:
    names = ("acme-before", "acme-after")
    return [write(tmp_path / name / "r.jsonl", record(tag=name, **details()) + "\n").parent for name in names]


def test_two_healthy_sides_are_compared(tmp_path: Path):
    result = pdkit(*two_sides(tmp_path))
    assert result.exit_code == 0, result.output
    assert "within this run only" in result.stdout
    assert "no winner: one run a side" in result.stdout


def test_a_threshold_of_ones_own_refuses_the_pair(tmp_path: Path):
    mine = write(tmp_path / "mine.toml", "[PD713]\nrefuse = { below = 1.1, above = 2 }\n")
    result = pdkit(*two_sides(tmp_path), "--thresholds", mine)
    assert result.exit_code == 1
    assert "not comparable (PD713)" in result.stdout


@pytest.mark.parametrize("form", ["text", "json"])
def test_redaction_hides_both_folders(tmp_path: Path, form: str):
    plain, hidden = (pdkit(*two_sides(tmp_path), "--format", form, *flag).stdout for flag in ([], ["--redact"]))
    assert "acme" in plain
    assert "acme" not in hidden
    assert str(tmp_path) not in hidden


def test_a_side_that_nobody_can_read_is_a_wrong_call(tmp_path: Path):
    result = pdkit(two_sides(tmp_path)[0], write(tmp_path / "notes.txt", "nothing\n"))
    assert result.exit_code == 2
    assert "none that a reader knows" in result.stderr
