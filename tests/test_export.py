"""`pdkit check --tables DIR`: three tables, twice each, whole or not there, without a refused number."""

import csv
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner
from logs import log, write

from pdkit.cli import main
from pdkit.errors import PdkitError
from pdkit.export import tables, write_tables
from pdkit.judge import judge
from pdkit.load import load
from pdkit.metrics import METRICS, RESULTS

NAMES = ("published", "results", "runs")
DOC = (Path(__file__).parents[1] / "docs" / "check-tables.md").read_text("utf-8")


def rows(file: Path) -> list[dict[str, str]]:
    with file.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


@pytest.fixture
def two(tmp_path: Path) -> Path:
    """A run that holds at 8 users, and one of 64.00 tok/s that came back empty at 16."""
    write(tmp_path / "logs" / "a" / "8.log", log())
    empty = {"Total generated tokens (retokenized)": "0", "Max request concurrency": "16", "Mean TTFT (ms)": "2301.00"}
    write(tmp_path / "logs" / "b" / "16.log", log(values=empty, arguments={"max_concurrency": 16}))
    return tmp_path / "logs"


def test_the_command_writes_all_six_and_nothing_else(two, tmp_path):
    result = CliRunner().invoke(main, ["check", str(two), "--tables", str(tmp_path / "out" / "tables")])
    assert result.exit_code == 1
    written = sorted(file.name for file in (tmp_path / "out" / "tables").iterdir())
    assert written == sorted(f"{name}.{kind}" for name in NAMES for kind in ("csv", "parquet"))
    assert result.stdout == CliRunner().invoke(main, ["check", str(two)]).stdout


def test_a_run_is_a_row_and_a_refused_number_is_empty(two, tmp_path):
    write_tables(judge(load(two)), tmp_path)
    eight, sixteen = rows(tmp_path / "runs.csv")
    assert (eight["level"], eight["verdict"]) == ("8 users", "measured, with doubts")
    assert (eight["ttft_ms_median"], eight["output_throughput_tok_per_s"]) == ("2310.0", "64.0")
    assert (sixteen["verdict"], sixteen["refused_by"]) == ("no measured result", "PD101 PD110")
    assert {sixteen[name] for name in RESULTS} == {""}
    taken = [row for row in rows(tmp_path / "published.csv") if row["level"] == "16 users"]
    assert {row["value"] for row in taken} == {""}
    assert all("PD101" in row["voided_by"] for row in taken)


def test_results_have_a_row_a_run_and_rule(two, tmp_path):
    judgement = judge(load(two))
    write_tables(judgement, tmp_path)
    found = rows(tmp_path / "results.csv")
    assert len(found) == judgement.results.height
    (failed,) = [row for row in found if (row["rule"], row["outcome"]) == ("PD101", "fail")]
    assert failed["sentence"].endswith("(0.0%) (figures as printed: claimed, not measured)")
    assert failed["lines"].startswith(f"{two / 'b' / '16.log'}:")
    assert (failed["observed"], failed["threshold_low"]) == ("0.0", "0.5")


def test_parquet_holds_the_same_with_lists(two, tmp_path):
    judgement = judge(load(two))
    write_tables(judgement, tmp_path)
    for name, frame in tables(judgement).items():
        assert pl.read_parquet(tmp_path / f"{name}.parquet").equals(frame)
    assert tables(judgement)["runs"]["refused_by"].to_list()[1] == ["PD101", "PD110"]


def test_every_column_is_documented():
    judgement = judge(load(Path(__file__).parents[1] / "data" / "real-client"))
    for name, frame in tables(judgement).items():
        section = DOC.partition(f"## {name}\n")[2].partition("\n## ")[0]
        assert [column for column in frame.columns if column not in METRICS and f"`{column}`" not in section] == []


def test_a_spreadsheet_runs_nothing(tmp_path):
    write(tmp_path / "logs" / "=cmd" / "bench.log", log())
    write(tmp_path / "logs" / "=cmd" / "sweep.toml", "label = '''=HYPERLINK(\"x\")\n,;'''\n")
    write_tables(judge(load(tmp_path / "logs" / "=cmd")), tmp_path / "out")
    (run,) = rows(tmp_path / "out" / "runs.csv")
    assert run["title"] == '\'=HYPERLINK("x")\n,;'
    assert pl.read_parquet(tmp_path / "out" / "runs.parquet")["title"].to_list() == ['=HYPERLINK("x")\n,;']


def test_a_folder_that_cannot_be_written_is_one_sentence_and_leaves_nothing(two, tmp_path):
    file = write(tmp_path / "taken", "x")
    with pytest.raises(PdkitError, match="taken: cannot be written"):
        write_tables(judge(load(two)), file)
    (tmp_path / "out" / "runs.csv").mkdir(parents=True)
    with pytest.raises(PdkitError, match="out: cannot be written"):
        write_tables(judge(load(two)), tmp_path / "out")
    assert not list((tmp_path / "out").glob(".*.tmp"))
