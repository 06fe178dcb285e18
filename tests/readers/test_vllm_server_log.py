"""vLLM's server logs: gauges by engine, settings, failures by request, a year from a neighbour."""

from datetime import datetime
from pathlib import Path

import polars as pl
import pytest
from logs import write

from pdkit.evidence import Evidence
from pdkit.load import load

SAMPLES = Path(__file__).parent.parent / "data" / "vllm_server_log"
API = "(APIServer pid=7) "
GAUGES = (
    "Avg prompt throughput: 102.4 tokens/s, Avg generation throughput: 40.5 tokens/s, Running: {running} reqs, "
    "Waiting: 2 reqs, GPU KV cache usage: 12.5%, Prefix cache hit rate: 0.0%"
)
ARGS = "INFO 11-02 08:00:00 [api_utils.py:273] non-default args: {'model': 'acme/small-8b'"


def read_lines(tmp_path: Path, *lines: str) -> Evidence:
    return load(write(tmp_path / "s" / "server.log", "".join(f"{line}\n" for line in lines)))


def gauges(running: int = 3, at: str = "11-02 08:00:40", engine: str = "Engine 000: ") -> str:
    return f"{API}INFO {at} [loggers.py:273] {engine}{GAUGES.format(running=running)}"


def told(evidence: Evidence, kind: str) -> list[tuple]:
    return evidence.events.filter(pl.col("kind") == kind).select("subject", "count", "source_line").rows()


def test_engines_of_one_server_stay_apart():
    samples = load(SAMPLES / "consumer.log").samples
    found = {(rank, metric): mean for rank, metric, mean in samples.select("rank", "metric", "value_mean").iter_rows()}
    assert found == {
        ("DP0", "input_throughput_tok_per_s"): 102.4, ("DP0", "gen_throughput_tok_per_s"): 40.5,
        ("DP0", "running_requests"): 3, ("DP0", "queued_requests"): 2, ("DP0", "kv_used_ratio"): 0.125,
        ("DP1", "input_throughput_tok_per_s"): 51.2, ("DP1", "gen_throughput_tok_per_s"): 20,
        ("DP1", "running_requests"): 1, ("DP1", "queued_requests"): 0, ("DP1", "kv_used_ratio"): 0.04,
        ("", "kv_transfer_ms"): 18.25, ("", "kv_transfer_gb_per_s"): 15.8005,
    }  # fmt: skip
    assert samples["clock"].unique().to_list() == [datetime(2026, 11, 2, 8, 0, 40)]
    assert samples["role"].unique().to_list() == ["decode"]


def test_settings():
    settings = load(SAMPLES / "consumer.log").settings
    found = {
        name: value if text is None else text
        for name, value, text in settings.select("name", "value", "text").iter_rows()
    }
    assert found == {
        "model_path": "acme/small-8b", "max_running_requests": 32, "chunked_prefill_tok": 1024, "tp_size": 2,
        "pp_size": 1, "dp_size": 2, "context_tok": 8192, "dtype": "bfloat16", "quantization": "fp8", "device": "cuda",
        "prefix_cache": 1, "engine_version": "0.25.0", "transfer_backend": "NixlConnector",
        "disaggregation_mode": "decode", "pool_tok": 94135, "weights_gb": pytest.approx(7.5 * 1.073741824),
    }  # fmt: skip
    assert settings.filter(pl.col("name") == "pool_tok")["source_line"].to_list() == [4]


def test_requests_whose_cache_did_not_arrive():
    evidence = load(SAMPLES / "consumer.log")
    assert told(evidence, "transfer_failed") == [("cmpl-a-0", 1, 15), ("cmpl-b-0", 1, 15)]
    assert told(evidence, "http") == [("200", 2, 9), ("500", 1, 16)]
    assert told(evidence, "ready") == [(None, 1, 6)]


def test_several_lines_of_one_crash_are_one_crash():
    events = load(SAMPLES / "crashed.log").events
    assert events.select("kind", "subject", "count", "source_line").rows() == [("crashed", "out_of_memory", 1, 2)]


def test_two_crashes_an_hour_apart_are_two(tmp_path):
    line = "(EngineCore pid=9) ERROR 11-02 {}:00:12 [core.py:710] EngineCore encountered a fatal error."
    evidence = read_lines(tmp_path, line.format("08"), line.format("09"))
    assert told(evidence, "crashed") == [("engine_died", 1, 1), ("engine_died", 1, 2)]


def test_an_orderly_end_is_no_crash(tmp_path):
    line = f"{API}ERROR 11-02 08:00:51 [async_llm.py:704] vllm.EngineDeadError: EngineCore encountered an issue."
    assert told(read_lines(tmp_path, gauges(), line), "crashed") == []


@pytest.mark.parametrize(
    ("args", "role"),
    [
        ("}", "colocated"),
        (", 'kv_transfer_config': KVTransferConfig(kv_connector='X', kv_role='kv_producer')}", "prefill"),
        (", 'kv_transfer_config': KVTransferConfig(kv_connector='X', kv_role='kv_consumer')}", "decode"),
        (", 'kv_transfer_config': KVTransferConfig(kv_connector='X', kv_role='kv_both')}", None),
        (""", 'kv_transfer_config': '{"kv_connector":"X","kv_role":"kv_producer"}'}""", "prefill"),
    ],
)
def test_the_role_is_what_its_arguments_say(tmp_path, args, role):
    assert read_lines(tmp_path, f"{API}{ARGS}{args}", gauges()).samples["role"].unique().to_list() == [role]


def test_without_arguments_the_role_is_not_known(tmp_path):
    assert read_lines(tmp_path, gauges()).samples["role"].unique().to_list() == [None]


def test_without_a_date_there_is_no_year(tmp_path):
    samples = read_lines(tmp_path, gauges(), gauges(4, "11-02 08:00:50")).samples
    assert samples["clock"].null_count() == samples.height == 10


@pytest.mark.parametrize(
    ("date", "year"),
    [
        ("2026-11-02 08:00:41,181 - INFO - autotuner.py:651 - flashinfer.jit: starts", 2026),
        ("2026-12-02T08:00:41Z something else", 2026),
        ("2024-05-02 08:00:41 a date of another time", None),
        ("a prompt: " + "x" * 200 + " 2026-11-02 08:00:41", None),
    ],
)
def test_the_year_is_that_of_the_nearest_date(tmp_path, date, year):
    clocks = read_lines(tmp_path, gauges(), date).samples["clock"]
    assert {clock and clock.year for clock in clocks} == {year}


def test_a_year_ends_in_the_middle_of_a_log(tmp_path):
    lines = [gauges(1, "12-31 23:59:55"), "2027-01-01 00:00:01,000 - INFO - x.py:1", gauges(2, "01-01 00:00:05")]
    samples = read_lines(tmp_path, *lines).samples.filter(pl.col("metric") == "running_requests")
    assert samples["clock"].to_list() == [datetime(2026, 12, 31, 23, 59, 55), datetime(2027, 1, 1, 0, 0, 5)]


def test_a_container_dates_each_line(tmp_path):
    lines = [f"2026-11-02T07:00:40.1Z {gauges()}"]
    assert read_lines(tmp_path, *lines).samples["clock"][0] == datetime(2026, 11, 2, 8, 0, 40)


def test_lines_of_older_versions(tmp_path):
    old = (
        "INFO 11-02 08:00:40 metrics.py:349] Avg prompt throughput: 1.5 tokens/s, Avg generation throughput: 2.5 "
        "tokens/s, Running: 1 reqs, Swapped: 0 reqs, Pending: 4 reqs, GPU KV cache usage: 0.5%, CPU KV cache usage: 0%."
    )
    access = 'INFO:     192.0.2.9:40004 - "POST /v1/completions HTTP/1.1" 429 Too Many Requests'
    evidence = read_lines(tmp_path, old, access)
    rows = dict(evidence.samples.select("metric", "value_mean").iter_rows())
    assert rows == {
        "input_throughput_tok_per_s": 1.5, "gen_throughput_tok_per_s": 2.5, "running_requests": 1,
        "queued_requests": 4, "kv_used_ratio": 0.005,
    }  # fmt: skip
    assert told(evidence, "http") == [("429", 1, 2)]
    assert told(evidence, "request_rejected") == [("429", 1, 2)]


@pytest.mark.parametrize(
    ("said", "kind", "subject", "count"),
    [
        ("Recovered from KV load failure: 3 request(s) rescheduled (512 tokens)", "transfer_aborted", None, 3),
        ("Releasing expired KV blocks for request cmpl-x-0-0a1b2c3d which were", "transfer_aborted", "cmpl-x-0", 1),
        ("Worker 0 --> req_id=cmpl-y-0-940c4923 KV transfer timeout. Force recycle", "transfer_aborted", "cmpl-y-0", 1),
        ("NIXL transfer failed for request cmpl-x", "transport_error", "nixl", 1),
    ],
)
def test_troubles_of_transfers(tmp_path, said, kind, subject, count):
    assert told(read_lines(tmp_path, gauges(), f"(EngineCore pid=9) ERROR 11-02 08:00:41 [c.py:1] {said}"), kind) == [
        (subject, count, 2)
    ]


def test_newer_versions_say_more_on_a_line(tmp_path):
    line = gauges().replace("Waiting: 2 reqs, ", "Waiting: 2 reqs, Deferred: 1 reqs, Preemptions: 4, ")
    evidence = read_lines(tmp_path, line)
    assert told(evidence, "retracted") == [(None, 1, 1)]
    assert evidence.samples.height == 5
    assert evidence.unread.is_empty()


def test_a_line_of_gauges_that_is_cut_off_is_unread(tmp_path):
    whole = gauges()
    unread = read_lines(tmp_path, whole, whole[: whole.index("%")]).unread
    assert unread.select("reason", "source_line").rows() == [("a line of gauges that is not whole", 2)]


@pytest.mark.parametrize("cut", range(0, 220, 9))
def test_a_line_may_be_cut_anywhere(tmp_path, cut):
    evidence = read_lines(tmp_path, gauges(), gauges(5)[:cut], "\x00\x07\xff", f"{API}{ARGS}"[: cut + 1])
    running = evidence.samples.filter(pl.col("metric") == "running_requests")
    assert running["value_min"][0] == 3
