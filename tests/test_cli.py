"""`pdkit` from the shell: results on standard output, one sentence for a mistake, and the exit code."""

import gzip
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from logs import details, log, record, write

from pdkit import __version__
from pdkit.cli import main
from pdkit.rules import CHECKS
from pdkit.source import Source

SPLIT = "data/split-l4-qwen3-8b"
LONG = {  # 4 requests a slot, 96 s: nothing to doubt
    "duration": 480.0, "completed": 256, "total_input_tokens": 65536, "total_output_tokens": 32768,
    "total_output_tokens_retokenized": 32768, "request_throughput": 256 / 480, "input_throughput": 65536 / 480,
    "output_throughput": 32768 / 480, "total_throughput": 98304 / 480, "concurrency": 8.0,
}  # fmt: skip


def pdkit(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def complaint(result: Result) -> str:
    """The sentence of a wrong call; nothing else may be said, and nothing on standard output."""
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert isinstance(result.exception, SystemExit)
    sentences = [line for line in result.stderr.splitlines() if line and not line.startswith(("Usage:", "Try '"))]
    assert len(sentences) == 1, result.stderr
    assert "Traceback" not in result.stderr
    return sentences[0]


# --- check ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "code"),
    [
        (f"{SPLIT}/open-loop/baseline", 0),
        (f"{SPLIT}/open-loop/split", 1),
        (f"{SPLIT}/original", 1),
        ("data/first-pd-benchmark/filtered", 1),  # unverified
        ("data/first-pd-benchmark/never-started", 1),
        ("data/real-client/healthy", 0),
        ("data/real-client/all-empty", 1),
    ],
)
def test_the_exit_code_tells_whether_all_is_measured(in_repository, path, code):
    result = pdkit("check", path)
    assert (result.exit_code, result.stderr) == (code, "")


def test_strict_fails_on_a_doubt_and_on_nothing_else(tmp_path):
    write(tmp_path / "short" / "bench.log", log())
    write(tmp_path / "sure" / "bench.log", log(arguments={"num_prompts": 256})[:7])
    sure = write(tmp_path / "sure" / "r.jsonl", record(**details(256) | LONG) + "\n")
    assert pdkit("check", tmp_path / "short").exit_code == 0
    assert pdkit("check", "--strict", tmp_path / "short").exit_code == 1
    judged = json.loads(pdkit("check", "--format", "json", sure).stdout)["runs"]
    assert [(run["verdict"], run["suspected_by"]) for run in judged] == [("measured", [])]
    assert pdkit("check", "--strict", sure).exit_code == 0


def test_a_planned_level_that_is_missing_fails(tmp_path):
    write(tmp_path / "bench.log", log())
    assert pdkit("check", tmp_path).exit_code == 0
    write(tmp_path / "sweep.toml", "[[level]]\nconcurrency = 8\n[[level]]\nconcurrency = 16\n")
    assert pdkit("check", tmp_path).exit_code == 1


def test_a_machine_of_ones_own_moves_the_physical_limits(tmp_path):
    """751.85 tok/s is beyond an L4, and within a card with a hundred times its bandwidth."""
    peaks = "bandwidth_tb_per_s = 30\nbf16_tflops = 99999\nfp8_tflops = 99999"
    mine = write(tmp_path / "own.toml", f'[[gpu]]\nname = "L4"\nsource = "made up"\nmemory_gib = 24\n{peaks}\n')
    split = "data/split-l4-qwen3-8b/open-loop/split"
    ours, theirs = (pdkit("check", split, *options).output for options in (("--machine", mine), ()))
    assert "PD802" in theirs
    assert "PD802" not in ours


def test_own_thresholds_judge(tmp_path):
    write(tmp_path / "bench.log", log())
    mine = write(tmp_path / "t" / "mine.toml", "[PD101]\nrefuse = { below = 0.999 }\n")  # 4090 of 4096 is 0.9985
    assert pdkit("check", tmp_path / "bench.log", "--thresholds", mine).exit_code == 1


def test_redaction_hides_the_folder(tmp_path):
    write(tmp_path / "acme-secret" / "bench.log", log())
    plain, hidden = (pdkit("check", tmp_path, *flag).stdout for flag in ([], ["--redact"]))
    assert "acme-secret" in plain
    assert "acme-secret" not in hidden


WRONG_CALLS = {
    "no such path": (["check", "nothing-here"], "nothing-here: no such file or folder"),
    "no path": (["check"], "Missing argument 'PATHS...'"),
    "no such command": (["chekc", "x"], "'chekc' is not known; did you mean check?"),
    "no such option": (["check", "--formt", "json", "x"], "--formt"),
    "no such format": (["check", "x", "--format", "yaml"], "'yaml'"),
    "no such rule": (["explain", "PD999"], "pdkit explain: 'PD999' is not known; did you mean PD"),
    "no rule at all": (["explain", "latency"], "'latency' is not known"),
    "no such list": (["list", "chekcs"], "'chekcs'"),
    "no such report": (["report", "sweep_reviw", "data"], "sweep_reviw"),
    "no thresholds": (["check", "data/real-client", "--thresholds", "none.toml"], "none.toml: no such thresholds file"),
    "nothing that is read": (["check", "data/real-client/SOURCES.md"], "1 file, none that a reader knows"),
}  # fmt: skip


@pytest.mark.parametrize(("arguments", "sentence"), WRONG_CALLS.values(), ids=WRONG_CALLS)
def test_a_wrong_call_is_one_sentence(in_repository, arguments, sentence):
    assert sentence in complaint(pdkit(*arguments))


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("sweep.toml", "levels = 3", "'levels' is not known; did you mean level?"),
        ("sweep.toml", "x = ", "not valid TOML"),
    ],
)
def test_a_mistake_in_a_file_is_one_sentence(tmp_path, name, text, sentence):
    write(tmp_path / "bench.log", log())
    write(tmp_path / name, text)
    assert sentence in complaint(pdkit("check", tmp_path))


def test_an_empty_folder_has_no_files(tmp_path):
    assert complaint(pdkit("check", tmp_path)).endswith("no files; name logs or folders that hold some")


# --- the other formats ----------------------------------------------------------------------------------------------


BEGINNINGS = {
    "text": "all-empty: ", "json": "{", "sarif": "{", "junit": "<?xml", "github": "::error ", "markdown": "###",
}  # fmt: skip


@pytest.mark.parametrize(("form", "beginning"), BEGINNINGS.items())
def test_every_format_prints_and_keeps_the_exit_code(in_repository, form, beginning):
    result = pdkit("check", "data/real-client/all-empty", "--format", form)
    assert (result.exit_code, result.stderr) == (1, "")
    assert result.stdout.startswith(beginning)
    assert result.stdout.endswith("\n")


def in_shell(**environment: str) -> str:
    command = [sys.executable, "-m", "pdkit", "check", "data/real-client/all-empty"]
    bare = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=bare | environment).stdout


def on_terminal(**environment: str) -> str:
    """What comes out where standard output is a terminal."""
    shown, told = os.openpty()
    command = [sys.executable, "-m", "pdkit", "check", "data/real-client/all-empty"]
    bare = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
    with subprocess.Popen(command, stdout=told, env=bare | {"TERM": "xterm"} | environment) as process:
        os.close(told)
        parts = []
        try:
            while part := os.read(shown, 4096):
                parts.append(part)
        except OSError:  # Linux says so when the other end is closed
            pass
        process.wait()
    os.close(shown)
    return b"".join(parts).decode().replace("\r\n", "\n")


def test_colour_is_for_terminals(in_repository):
    plain = in_shell()
    assert "\x1b" not in plain
    coloured = on_terminal()
    assert "\x1b[31mno measured result\x1b[0m" in coloured
    assert re.sub(r"\x1b\[\d+m", "", coloured) == plain
    assert on_terminal(NO_COLOR="1") == plain
    assert on_terminal(TERM="dumb") == plain
    assert in_shell(FORCE_COLOR="1") == coloured
    assert in_shell(FORCE_COLOR="1", NO_COLOR="1") == plain


# --- the JSON document ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def document() -> dict:
    here = Path.cwd()
    os.chdir(Path(__file__).parent.parent)
    try:
        return json.loads(
            pdkit("check", SPLIT, "data/first-pd-benchmark", "--format", "json").stdout, parse_constant=pytest.fail
        )
    finally:
        os.chdir(here)


RUN = {"run_id", "experiment", "sources", "concurrency", "request_rate_per_s", "evidence_level", "verdict",
       "refused_by", "suspected_by", "not_evaluated", "voided", "published", "claimed", "results"}  # fmt: skip


def test_the_document_holds_what_was_agreed(document):
    assert {"pdkit", "runs", "missing", "not_read", "conclusions"} <= set(document)
    assert document["pdkit"] == __version__
    for run in document["runs"]:
        assert set(run) >= RUN
        assert {key for result in run["results"] for key in result} == {
            "rule", "outcome", "severity", "observed", "threshold", "says", "lines", "waiver",
        }  # fmt: skip
        assert [result["rule"] for result in run["results"]] == sorted(CHECKS)


def test_what_is_refused_is_claimed_and_not_published(document):
    (run,) = [run for run in document["runs"] if run["experiment"].endswith("open-loop/split")]
    assert run["verdict"] == "no measured result"
    assert {"PD101", "PD201"} <= set(run["refused_by"])
    assert round(run["claimed"]["output_throughput_tok_per_s"], 2) == 751.85
    assert set(run["published"].values()) == {None}
    assert run["voided"]["run"] == run["refused_by"]
    assert run["request_rate_per_s"] == 8
    assert run["concurrency"] == "unlimited"
    (failed,) = [result for result in run["results"] if result["rule"] == "PD101"]
    assert (failed["outcome"], failed["severity"], failed["observed"]) == ("fail", "refuse", 0)
    assert failed["threshold"] == {"low": 0.5, "high": None}
    assert failed["says"] == "0 of 30,720 claimed tokens came back as text (0.0%)"
    assert f"{SPLIT}/open-loop/split/result.jsonl:1" in failed["lines"]


def test_every_line_that_is_cited_is_there(document):
    counts: dict[str, int] = {}
    for run in document["runs"]:
        for place in (place for result in run["results"] for place in result["lines"]):
            file, _, line = place.partition("[")[0].rpartition(":")
            counts.setdefault(file, Source(Path(__file__).parent.parent / file).line_count())
            assert 1 <= int(line) <= counts[file], place


def test_a_missing_level_is_named(document):
    crashed = [level for level in document["missing"] if level["experiment"].endswith("crashed")]
    assert [level["concurrency"] for level in crashed] == [16]


def test_what_nobody_read_is_named_with_its_reason(document):
    assert {"path", "reason"} == set(document["not_read"][0])
    assert f"{SPLIT}/SOURCES.md" in [file["path"] for file in document["not_read"]]


def test_every_experiment_has_its_sentence(document):
    experiments = {run["experiment"] for run in document["runs"]}
    assert len(document["conclusions"]) == len(experiments)
    (said,) = [sentence for sentence in document["conclusions"] if "split-l4-qwen3-8b/swapped" in sentence]
    assert said.endswith("measured to 8 users; no measured result at 16 and 32 users")


# --- explain, list, help --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", ["PD101", "pd101"])
def test_explain_prints_the_page_of_a_rule(rule):
    said = pdkit("explain", rule).stdout
    assert said.startswith("PD101  Claimed output tokens come back as text.")
    for part in ("Why:", "Next:", "Source:", "Exceptions:", "refuse unless at least 0.5"):
        assert part in said


def test_every_rule_has_a_whole_page():
    for rule in sorted(CHECKS):
        said = pdkit("explain", rule).stdout
        assert all(f"  {part}: " in said for part in ("Why", "Next", "Source", "Exceptions")), rule


@pytest.mark.parametrize(
    ("what", "names"),
    [
        ("readers", ["sglang_bench_log", "sglang_bench_record", "sweep_manifest"]),
        ("checks", ["PD101", "PD201", "PD901"]),
        ("charts", ["throughput_vs_received", "ttft_by_concurrency"]),
        ("reports", ["sweep_review", "postmortem"]),
    ],
)
def test_list_names_what_there_is(what, names):
    lines = pdkit("list", what).stdout.splitlines()
    assert set(names) <= {line.split()[0] for line in lines}
    assert all(len(line.split(maxsplit=1)) == 2 for line in lines)


@pytest.mark.parametrize(
    ("command", "example"), [("check", "pdkit check results/"), ("report", "pdkit report sweep_review")]
)
def test_help_shows_an_example(command, example):
    result = pdkit(command, "--help")
    assert result.exit_code == 0
    assert example in result.stdout


def test_help_and_version_come_without_a_command():
    assert "check" in pdkit("--help").stdout
    assert pdkit("--version").stdout.strip().endswith(__version__)


# --- as a process ---------------------------------------------------------------------------------------------------


def test_a_mistake_leaves_no_traceback_in_a_real_shell(tmp_path):
    (tmp_path / "sweep.toml").write_text("[[level]]\nconcurrency = 'x'\n")
    done = subprocess.run(
        [sys.executable, "-m", "pdkit", "check", str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr
    assert "it takes int or float" in done.stderr


def test_a_reader_that_goes_away_is_no_crash(in_repository):
    command = [sys.executable, "-m", "pdkit", "check", SPLIT, "--format", "json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.read(10)
        process.stdout.close()
        said = process.stderr.read().decode()
    assert "Traceback" not in said


def test_a_packed_file_that_ends_early_is_named_so(tmp_path):
    whole = gzip.compress(b"nothing that anybody knows\n" * 5000)
    cut = tmp_path / "bench.log.gz"
    cut.write_bytes(whole[: len(whole) // 2])
    result = pdkit("check", cut)
    assert result.exit_code == 2
    assert "compressed data ends early or is damaged" in result.output
