"""Rules are counted by outcome, and every refusal names its run, its files and its lines."""

import json
from pathlib import Path

import polars as pl
from click.testing import CliRunner, Result
from logs import details, log, record, write

from pdkit.calibrate import rates, refusals, text
from pdkit.cli import main
from pdkit.evidence import Evidence
from pdkit.judge import judge
from pdkit.load import load
from pdkit.results import Judgement
from pdkit.rules import CHECKS

EMPTY = {"Total generated tokens (retokenized)": "0"}


def archive(folder: Path, *, empty: int, whole: int = 1) -> Judgement:
    """Runs of which some claim tokens that did not come back, and one log without a result."""
    for number in range(empty + whole):
        values = {"Benchmark duration (s)": f"{64 + number / 100:.2f}"} | (EMPTY if number < empty else {})
        write(folder / f"run-{number}" / "bench.log", log(values=values))
    write(folder / "died" / "bench.log", log()[:7])
    return judge(load(folder))


def calibrate(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["calibrate", *map(str, arguments)])


def test_shares_are_of_the_runs_that_were_evaluated(tmp_path):
    row = rates(archive(tmp_path, empty=1, whole=3)).row(by_predicate=pl.col("rule") == "PD101", named=True)
    assert row == {
        "rule": "PD101", "evaluated": 4, "pass": 3, "suspect": 0, "refuse": 1, "note": 0, "not_applicable": 0,
        "not_evaluated": 1, "refuse_ratio": 0.25, "suspect_ratio": 0.0,
    }  # fmt: skip


def test_a_failure_is_counted_under_its_severity(tmp_path):
    table = rates(archive(tmp_path, empty=1, whole=3)).filter(pl.col("rule").is_in(["PD508", "PD901"]))
    assert table.select("rule", "suspect", "refuse", "note").rows() == [("PD508", 4, 0, 0), ("PD901", 0, 0, 4)]


def test_a_rule_that_looked_at_nothing_has_no_share(tmp_path):
    judgement = archive(tmp_path, empty=0)
    row = rates(judgement).row(by_predicate=pl.col("rule") == "PD103", named=True)
    assert (row["evaluated"], row["refuse_ratio"]) == (0, None)
    (blind,) = [line for line in text(judgement).splitlines() if line.startswith("never evaluated: ")]
    assert "PD103" in blind
    assert "PD101" not in blind


def test_every_rule_and_every_run_is_counted(tmp_path):
    table = rates(archive(tmp_path, empty=1))
    assert table["rule"].to_list() == sorted(CHECKS)
    outcomes = table.select("pass", "suspect", "refuse", "note", "not_applicable", "not_evaluated")
    assert set(outcomes.sum_horizontal()) == {3}


def test_each_refusal_names_its_files_and_lines(tmp_path):
    write(tmp_path / "a" / "bench.log", log(values=EMPTY))
    record_of_it = record(**details() | {"generated_texts": [""] * 32, "total_output_tokens_retokenized": 0})
    write(tmp_path / "a" / "r.jsonl", record_of_it + "\n")
    refused = refusals(judge(load(tmp_path))).filter(rule="PD101")
    assert refused["files"].to_list() == [[str(tmp_path / "a" / "bench.log"), str(tmp_path / "a" / "r.jsonl")]]
    assert refused.select("voids", "level", "verdict").rows() == [(["run"], "8 users", "no measured result")]
    assert str(tmp_path / "a" / "r.jsonl:1") in refused["lines"].to_list()[0]


def test_the_text_folds_what_the_document_has_whole(tmp_path):
    archive(tmp_path, empty=5)
    said = calibrate(tmp_path)
    assert (said.exit_code, said.stderr) == (0, "")
    lines = said.stdout.splitlines()
    assert lines[0] == "7 runs in 7 experiments: 1 measured, with doubts, 6 no measured result"
    at = lines.index("PD101 refused 5 runs (run): Claimed output tokens come back as text.")
    assert lines[at + 1].startswith(f"  {tmp_path}/run-0/bench.log (8 users): 0 of 4,096 claimed tokens came back")
    assert lines[at + 4] == "  and 2 more"
    document = json.loads(calibrate(tmp_path, "--format", "json").stdout)
    assert (document["runs"], document["verdicts"]) == (7, {"measured, with doubts": 1, "no measured result": 6})
    assert len([refusal for refusal in document["refusals"] if refusal["rule"] == "PD101"]) == 5
    assert [rule["rule"] for rule in document["rules"]] == sorted(CHECKS)


def test_own_thresholds_are_tried_on_an_archive(tmp_path):
    archive(tmp_path / "runs", empty=0)
    mine = write(tmp_path / "mine.toml", "[PD101]\nrefuse = { below = 0.999 }\n")  # 4090 of 4096 is 0.9985
    assert "PD101 refused" not in calibrate(tmp_path / "runs").stdout
    assert "PD101 refused 1 run " in calibrate(tmp_path / "runs", "--thresholds", mine).stdout


def test_nothing_refused_is_said(tmp_path):
    write(tmp_path / "bench.log", log())
    assert calibrate(tmp_path).stdout.endswith("no run was refused by any rule\n")


def test_no_run_at_all_is_no_crash():
    assert text(judge(Evidence.of())).startswith("0 runs in 0 experiments")
