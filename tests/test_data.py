"""The shipped logs say what was published, add up, and are the files that SOURCES.md names."""

import gzip
import hashlib
import json
import subprocess
import sys
import tomllib
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

DATA = Path(__file__).parent.parent / "data"
SPLIT = DATA / "split-l4-qwen3-8b"
CASES = sorted(p.parent for p in DATA.glob("*/SOURCES.md"))
WITH_MAKE = sorted(p.parent for p in DATA.glob("*/make.py"))
RECORDS = sorted(
    path
    for path in chain(DATA.glob("**/*.jsonl"), DATA.glob("**/*.jsonl.gz"))
    if "weekly-synthetic" not in path.parts  # its records were written without --output-details
)
SYNTHETIC_LABEL = "# synthetic: rebuilt by make.py from published figures; not a recording\n"
NO_LABEL = DATA / "first-pd-benchmark/never-started/pd_bench.log"  # stands for a log with one line


def content(path: Path) -> bytes:
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


def text(path: Path) -> str:
    return content(path).decode()


def records(path: Path) -> list[dict]:
    return [json.loads(line) for line in text(path).splitlines()]


def printed(log: Path) -> dict[str, str]:
    """Label and value of every line that has both; for a log with one result block."""
    lines = text(log).partition("Serving Benchmark Result")[2].splitlines()
    return {label: value.strip() for label, _, value in (line.partition(":") for line in lines) if value}


def name_of(path: Path) -> str:
    return str(path.relative_to(DATA))


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_sources_names_every_file_with_its_hash(case):
    listed = dict(reversed(line.split("  ")) for line in text(case / "SOURCES.md").splitlines() if line[64:66] == "  ")
    kept = [p for p in case.rglob("*") if p.is_file() and p.suffix not in {".py", ".md", ".pyc"}]
    assert listed == {str(p.relative_to(case)): hashlib.sha256(content(p)).hexdigest() for p in kept}


@pytest.mark.parametrize("case", WITH_MAKE, ids=name_of)
def test_make_gives_the_files_on_disk(case):
    done = subprocess.run([sys.executable, case / "make.py", "--check"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_make_check_tells_which_file_differs(tmp_path):
    for source in [DATA / "_synthetic.py", *(p for p in WITH_MAKE[0].rglob("*") if p.is_file())]:
        copy = tmp_path / source.relative_to(DATA)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(source.read_bytes())
    changed = next((tmp_path / WITH_MAKE[0].name).rglob("*.log"))
    changed.write_text("edited\n")
    make = tmp_path / WITH_MAKE[0].name / "make.py"
    done = subprocess.run([sys.executable, make, "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert changed.parent.name in done.stderr
    assert changed.read_text() == "edited\n"


def test_what_is_made_up_says_so_everywhere():
    for case in WITH_MAKE:
        logs = [p for p in case.rglob("*") if p.name.endswith((".log", ".log.gz")) and p != NO_LABEL]
        assert all(text(log).startswith(SYNTHETIC_LABEL) for log in logs)
        assert all(r["tag"] == "synthetic" for path in case.rglob("*.jsonl") for r in records(path))
        manifests = [tomllib.loads(text(p)) for p in case.rglob("sweep.toml")]
        assert all(m["synthetic"] and "(synthetic)" in m["label"] for m in manifests)
        assert "**Synthetic.**" in text(case / "SOURCES.md")


def test_manifests_name_the_files_beside_them():
    for manifest in DATA.rglob("sweep.toml"):
        named = {f["path"] for f in tomllib.loads(text(manifest))["file"]}
        kept = {str(p.relative_to(manifest.parent)) for p in manifest.parent.rglob("*") if p.is_file()}
        assert kept == named | {"sweep.toml"}


def test_the_posted_run_prints_what_was_published():
    says = printed(SPLIT / "open-loop/split/bench.log")
    published = {
        "Traffic request rate": "8.0",
        "Successful requests": "240",
        "Benchmark duration (s)": "40.86",
        "Total input tokens": "153600",
        "Total generated tokens": "30720",
        "Total generated tokens (retokenized)": "0",
        "Request throughput (req/s)": "5.87",
        "Input token throughput (tok/s)": "3759.25",
        "Output token throughput (tok/s)": "751.85",
        "Peak output token throughput (tok/s)": "12.00",
        "Total token throughput (tok/s)": "4511.10",
        "Concurrency": "61.69",
        "Mean E2E Latency (ms)": "10502.66",
        "Mean TTFT (ms)": "0.00",
        "Mean TPOT (ms)": "82.70",
        "Mean ITL (ms)": "0.00",
        "Max ITL (ms)": "0.00",
    }
    assert {label: says[label] for label in published} == published


def test_the_baseline_prints_what_was_published():
    says = printed(SPLIT / "open-loop/baseline/bench.log")
    assert says["Output token throughput (tok/s)"] == "728.61"
    assert says["Benchmark duration (s)"] == "42.16"
    assert says["Total generated tokens"] == says["Total generated tokens (retokenized)"] == "30720"
    assert says["Mean TPOT (ms)"] == "82.55"
    assert round(float(says["Mean E2E Latency (ms)"])) == 11_376
    assert round(float(says["Mean TTFT (ms)"])) == 893
    assert round(float(says["Concurrency"]), 1) == 64.8


@pytest.mark.parametrize(
    ("log", "claimed", "returned"),
    [
        ("original/users-1.log", 5_120, 5_120),
        ("original/users-2.log", 2_048, 512),
        ("original/users-4.log", 4_096, 0),
        ("swapped/users-1.log", 5_120, 5_120),
        ("swapped/users-2.log", 2_048, 2_048),
        ("swapped/users-4.log", 4_096, 4_096),
        ("swapped/users-8.log", 8_192, 8_192),
        ("swapped/users-16.log", 8_192, 2_048),
        ("swapped/users-32.log", 8_192, 0),
    ],
)
def test_so_many_tokens_came_back_as_text(log, claimed, returned):
    says = printed(SPLIT / log)
    assert int(says["Total generated tokens"]) == claimed
    assert int(says["Total generated tokens (retokenized)"]) == returned


def test_the_decode_log_holds_the_published_line_once():
    line = (
        "Decode batch, #running-req: 2, #token: 1206, token usage: 0.41, pre-allocated usage: 0.00, "
        "#prealloc-req: 19, #transfer-req: 0, #retracted-req: 0"
    )
    assert text(SPLIT / "open-loop/split/server/decode.log").count(line) == 1


def test_no_decode_line_before_the_death_tells_of_a_longer_queue_than_the_published_one():
    lines = text(SPLIT / "open-loop/split/server/decode.log").splitlines()
    waiting = [int(line.partition("#prealloc-req: ")[2].partition(",")[0]) for line in lines if "Decode batch" in line]
    assert max(waiting) == 19
    assert waiting.count(19) == 1


@pytest.mark.parametrize("case", ["original", "swapped", "open-loop/split"])
def test_both_servers_of_a_pair_have_fp8_weights_as_the_server_that_they_are_held_against(case):
    (baseline,) = records(SPLIT / "open-loop/baseline/result.jsonl")
    assert baseline["server_info"]["quantization"] == "fp8"
    for log in sorted((SPLIT / case / "server").iterdir()):
        assert "'quantization': 'fp8'" in text(log).splitlines()[1]
    for record in records(SPLIT / case / "result.jsonl"):
        assert [record["server_info"][side][0]["quantization"] for side in ("prefill", "decode")] == ["fp8", "fp8"]


def test_the_prefill_log_holds_the_published_lines_in_their_order():
    lines = text(SPLIT / "open-loop/split/server/prefill.log.gz").splitlines()
    counts = [int(line.rpartition(": ")[2]) for line in lines if "TCP lane queue-full rejection count" in line]
    assert counts == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096]
    died = next(i for i, line in enumerate(lines) if line.endswith("Session 192.0.2.41:15367 failed."))
    failed = [i for i, line in enumerate(lines) if "Prefill transfer failed for request" in line]
    rooms = {lines[i].partition("bootstrap_room=")[2].split(" ")[0] for i in failed}
    assert len(failed) == len(rooms) == 2902
    assert died < failed[0]
    assert not any("recovered" in line for line in lines)


def test_the_posted_run_owns_240_of_the_failed_transfers():
    level = tomllib.loads(text(SPLIT / "open-loop/split/sweep.toml"))["level"][0]
    first, last = (f"[{level[key]:%Y-%m-%d %H:%M:%S}]" for key in ("started_at", "ended_at"))
    lines = text(SPLIT / "open-loop/split/server/prefill.log.gz").splitlines()
    failed = [line[:21] for line in lines if "Prefill transfer failed" in line]
    assert sum(first <= at <= last for at in failed) == 240
    assert last >= failed[-1]


@pytest.mark.parametrize(
    ("log", "pool_tok"),
    [
        ("original/server/decode.log", 2_925),
        ("original/server/prefill.log", 24_094),
        ("swapped/server/decode.log", 24_094),
        ("swapped/server/prefill.log", 2_925),
    ],
)
def test_each_server_states_its_pool(log, pool_tok):
    assert f"max_total_num_tokens={pool_tok}, " in text(SPLIT / log)


@pytest.mark.parametrize("path", RECORDS, ids=name_of)
def test_the_totals_of_a_record_follow_from_its_requests(path):
    for r in records(path):
        assert sum(r["output_lens"]) == r["total_output_tokens"]
        assert sum(r["input_lens"]) == r["total_input_tokens"]
        assert r["output_throughput"] * r["duration"] == pytest.approx(r["total_output_tokens"])
        assert r["request_throughput"] * r["duration"] == pytest.approx(r["completed"])
        assert r["total_throughput"] == pytest.approx(r["input_throughput"] + r["output_throughput"])
        assert r["concurrency"] * r["duration"] == pytest.approx(r["completed"] * r["mean_e2e_latency_ms"] / 1000)
        assert r["concurrency"] <= (r["max_concurrency"] or np.inf)
        assert r["p99_e2e_latency_ms"] <= 1000 * r["duration"]


@pytest.mark.parametrize("path", RECORDS, ids=name_of)
def test_the_statistics_of_a_record_are_those_of_its_requests(path):
    for r in records(path):
        for key, seconds in (("ttft", r["ttfts"]), ("itl", list(chain(*r["itls"])) or [0.0])):
            found = [np.mean(seconds), np.std(seconds), *np.percentile(seconds, [50, 90, 95, 99])]
            said = [r[f"{s}_{key}_ms"] for s in ("mean", "std", "median", "p90", "p95", "p99")]
            assert said == pytest.approx([1000 * s for s in found], abs=1e-6)


@pytest.mark.parametrize("path", RECORDS, ids=name_of)
def test_an_answer_without_text_looks_as_the_client_leaves_it(path):
    for r in records(path):
        rows = zip(r["generated_texts"], r["ttfts"], r["itls"], r["errors"], strict=True)
        empties = [row for row in rows if not row[0]]
        assert all(row == ("", 0.0, [], "") for row in empties)
        assert all(t > 0 for t, answer in zip(r["ttfts"], r["generated_texts"], strict=True) if answer)
        missing = r["total_output_tokens"] - r["total_output_tokens_retokenized"]
        assert missing == len(empties) * r["output_lens"][0]


def test_tpot_of_an_empty_answer_is_its_whole_time_over_the_tokens_that_never_came():
    (r,) = records(SPLIT / "open-loop/split/result.jsonl")
    assert r["mean_tpot_ms"] == pytest.approx(r["mean_e2e_latency_ms"] / 127)


@pytest.mark.parametrize("log", sorted(p for p in SPLIT.rglob("*.log") if "server" not in p.parts), ids=name_of)
def test_the_console_prints_what_the_record_holds(log):
    says = printed(log)
    duration, output = says["Benchmark duration (s)"], says["Output token throughput (tok/s)"]
    shown = [(f"{r['duration']:.2f}", f"{r['output_throughput']:.2f}") for r in records(log.parent / "result.jsonl")]
    assert shown.count((duration, output)) == 1


def test_the_filtered_log_has_no_retokenized_line_and_every_heading():
    lines = text(DATA / "first-pd-benchmark/filtered/pd_bench.log").splitlines()
    assert not any("retokenized" in line for line in lines)
    assert [line for line in lines if line.startswith("=====")] == [
        "===== PD concurrency=1 (n=6) =====",
        "===== PD concurrency=8 (n=24) =====",
        "===== PD concurrency=16 (n=32) =====",
    ]
    assert lines[-1] == "ALL_DONE"


def test_the_crashed_log_ends_with_the_heading_of_the_level_that_crashed():
    log = text(DATA / "first-pd-benchmark/crashed/pd_bench.log")
    assert log.endswith("\n===== PD concurrency=16 (n=32) =====\n")
    assert log.count("Successful requests:") == 2


def test_the_log_of_a_script_that_never_started_is_one_shell_error():
    assert text(NO_LABEL) == "bash: /run_pd_bench.sh: No such file or directory\n"


def test_data_stays_small():
    assert sum(p.stat().st_size for p in DATA.rglob("*") if p.is_file()) < 2e6
