"""The plain text: numbers that may be believed, claims called claims, and lines to look at."""

from pathlib import Path

from logs import block, details, log, record, write

from pdkit.formats import text
from pdkit.judge import judge
from pdkit.load import load


def printed(folder: Path) -> str:
    return text.text(judge(load(folder)))


def test_a_claimed_figure_is_called_so_and_stands_in_no_table(tmp_path):
    write(tmp_path / "bench.log", log(values={"Total generated tokens (retokenized)": "0"}))
    said = printed(tmp_path)
    (claim,) = [line for line in said.splitlines() if "64.00" in line]
    assert "64.00 tok/s claimed, not measured (bench.log:" in claim


def test_lines_are_cited_below_the_experiment(tmp_path):
    write(tmp_path / "a" / "bench.log", log(values={"Total generated tokens (retokenized)": "0"}))
    write(tmp_path / "a" / "deep" / "r.jsonl", record(**details() | {"generated_texts": [""] * 32}) + "\n")
    said = printed(tmp_path)
    assert "      bench.log:" in said
    assert "r.jsonl:1[0],1[1],1[2]" in said


def test_what_was_not_understood_is_said(tmp_path):
    lines = block(values={"Mean TTFT (ms)": "2,300"})
    damaged = next(number for number, said in enumerate(lines, 1) if "2,300" in said)
    write(tmp_path / "bench.log", lines)
    write(tmp_path / "r.jsonl", record(duration=1.0) + "\n{\n")
    write(tmp_path / "empty.log", "")
    said = printed(tmp_path)
    assert "2 lines not understood:\n" in said
    assert f"bench.log:{damaged}: a line of the result block without its number" in said
    assert "r.jsonl:2: not a whole JSON record" in said
    assert "1 file not read:\n" in said
    assert "empty.log: empty file" in said


def test_a_missing_number_is_a_dash(tmp_path):
    write(tmp_path / "bench.log", [text for text in log() if "TPOT" not in text])
    (row,) = [line for line in printed(tmp_path).splitlines() if line.startswith("  8 users  measured")]
    assert " – " in row
    assert " 0.00" not in row


def test_paths_of_both_kinds_print_together(tmp_path, monkeypatch):
    write(tmp_path / "exp" / "bench.log", log(values={"Total generated tokens (retokenized)": "0"}))
    write(tmp_path / "exp" / "r.jsonl", record(total_output_tokens_retokenized=0) + "\n")
    monkeypatch.chdir(tmp_path)
    said = text.text(judge(load(["exp/bench.log", tmp_path / "exp" / "r.jsonl"])))
    assert "no measured result at 8 users" in said
