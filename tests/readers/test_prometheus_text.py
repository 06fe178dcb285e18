"""Dumps of /metrics: shards by the largest, replicas apart, histograms by what was added, resets visible."""

from datetime import datetime
from pathlib import Path

import polars as pl
import pytest
from logs import write

from pdkit.evidence import Evidence
from pdkit.load import load
from pdkit.signals import GAUGES

SAMPLES = Path(__file__).parent.parent / "data" / "prometheus_text"


def read_lines(tmp_path: Path, *lines: str) -> Evidence:
    return load(write(tmp_path / "s" / "metrics.prom", "".join(f"{line}\n" for line in lines)))


def values(evidence: Evidence, *by: str) -> list[tuple]:
    return evidence.samples.select(*by, "metric", "value_mean").rows()


def series(metric: str) -> list[float]:
    samples = load(SAMPLES / "prefill.prom").samples
    return samples.filter(pl.col("metric") == metric).sort("clock")["value_mean"].to_list()


def test_shards_tell_of_the_same_requests():
    assert series("running_requests") == [2, 4, 0]
    assert series("transfer_failed_total") == [3, 4, 1]  # 3 and 2 on the two ranks of the first scrape; then a restart


def test_a_value_that_is_not_a_number_is_missing():
    assert series("kv_used_ratio") == [0.25, 0.5]
    assert load(SAMPLES / "prefill.prom").unread.is_empty()


def test_other_labels_add_up():
    assert series("generated_tok_total") == [1600, 2600, 150]


def test_a_histogram_gives_the_mean_since_the_scrape_before():
    # 120/10; (200-120)/(14-10); after a restart 30/2
    assert series("kv_transfer_ms") == [12, 20, 15]


def test_a_scrape_has_the_time_above_it_and_the_role_of_its_engine():
    samples = load(SAMPLES / "prefill.prom").samples
    assert samples["clock"].unique().sort().to_list() == [datetime(2026, 11, 2, 8, 1, s) for s in (0, 5, 10)]
    assert samples["role"].unique().to_list() == ["prefill"]
    assert samples.select("metric", "source_line").row(0) == ("running_requests", 4)
    assert set(samples["metric"]) <= set(GAUGES)


def test_the_pool_is_a_setting():
    settings = load(SAMPLES / "prefill.prom").settings
    assert settings.select("name", "value", "source_line").rows() == [("pool_tok", 24094, 22)]


def test_power_and_heat_hold_a_gpu_down_and_idling_does_not(tmp_path):
    samples = load(SAMPLES / "gpus.prom").samples
    assert samples.select("metric", "value_max", "clock", "role").rows() == [
        ("throttled", 1, datetime(2026, 11, 2, 8, 1), None),
        ("gpu_util_ratio", 0.97, datetime(2026, 11, 2, 8, 1), None),
    ]
    bits = {0: 0, 0x1: 0, 0x2: 0, 0x4: 1, 0x8: 1, 0x10: 0, 0x20: 1, 0x40: 1, 0x80: 1, 0x100: 0}
    lines = [f'DCGM_FI_DEV_CLOCK_THROTTLE_REASONS{{gpu="0"}} {bit} {1793606460000 + 1000 * bit}' for bit in bits]
    found = read_lines(tmp_path, *lines).samples.sort("clock")
    assert found["value_max"].to_list() == list(bits.values())


@pytest.mark.parametrize(
    ("line", "metric", "value"),
    [
        ('sglang:num_prefill_prealloc_queue_reqs{engine_type="prefill"} 7.0', "bootstrap_requests", 7),
        ('sglang:num_prefill_infight_queue_reqs{model_name="m"} 3.0', "transferring_requests", 3),
        ('sglang:num_decode_transfer_queue_reqs{engine_type="decode"} 4.0', "transferring_requests", 4),
        ('sglang:kv_transfer_latency_ms{engine_type="prefill",tp_rank="0"} 12.5', "kv_transfer_ms", 12.5),
        ('sglang_num_running_reqs{tp_rank="0"} 9', "running_requests", 9),
        ("vllm:num_requests_waiting 4.0", "queued_requests", 4),
        ('vllm:gpu_cache_usage_perc{model_name="a, b} c"} 0.5', "kv_used_ratio", 0.5),
        ('vllm:prefix_cache_hits_total{engine="0"} 4.5e+03', "cached_tok_total", 4500),
        ('smg_router_request_errors_total{error_type="timeout"} 2', "requests_failed_total", 2),
        ('sgl_router_pd_requests_total{route="/generate"} 24', "requests_total", 24),
    ],
)
def test_names_of_all_versions(tmp_path, line, metric, value):
    assert values(read_lines(tmp_path, line)) == [(metric, value)]


def test_replicas_stay_apart(tmp_path):
    lines = [
        f'sglang:num_running_reqs{{dp_rank="{dp}",tp_rank="{tp}"}} {10 * dp + tp}' for dp in (0, 1) for tp in (0, 1)
    ]
    assert values(read_lines(tmp_path, *lines), "rank") == [
        ("DP0", "running_requests", 1),
        ("DP1", "running_requests", 11),
    ]


def test_the_sum_of_all_priorities_is_not_added_to_its_parts(tmp_path):
    lines = [f'sglang:num_queue_reqs{{priority="{name}"}} {count}' for name, count in (("", 5), ("0", 2), ("1", 3))]
    assert values(read_lines(tmp_path, *lines)) == [("queued_requests", 5)]
    assert values(read_lines(tmp_path / "parts", *lines[1:])) == [("queued_requests", 5)]


def test_how_requests_of_vllm_ended(tmp_path):
    lines = [
        f'vllm:request_success_total{{engine="0",finished_reason="{reason}"}} {count}'
        for reason, count in (("stop", 5), ("length", 2), ("abort", 1), ("error", 3))
    ]
    assert sorted(values(read_lines(tmp_path, *lines))) == [
        ("requests_aborted_total", 1),
        ("requests_failed_total", 3),
        ("requests_total", 11),
    ]


def test_vllm_tells_its_pool(tmp_path):
    line = 'vllm:cache_config_info{block_size="16",cache_dtype="fp8",num_gpu_blocks="100"} 1.0'
    settings = read_lines(tmp_path, line).settings
    assert settings.select("name", "value", "text").rows() == [("kv_dtype", None, "fp8"), ("pool_tok", 1600, None)]


def test_several_servers_in_one_file_are_several_instances(tmp_path):
    sides = [f'sglang:num_running_reqs{{engine_type="{side}"}} 1' for side in ("prefill", "decode", "unified")]
    samples = read_lines(tmp_path, *sides, "smg_router_requests_total 4").samples
    assert {(name.rpartition("#")[2], role) for name, role in samples.select("instance", "role").iter_rows()} == {
        ("prefill", "prefill"), ("decode", "decode"), ("colocated", "colocated"), ("router", "router"),
    }  # fmt: skip
    workers = [f'sglang:num_running_reqs{{worker_addr="w{n}"}} {n}' for n in (1, 2)]
    named = read_lines(tmp_path / "w", *workers).samples
    assert [name.rpartition("#")[2] for name in named["instance"]] == ["w1", "w2"]


@pytest.mark.parametrize(
    ("mark", "line"),
    [
        ("# 2026-11-02 08:01:00", "vllm:num_requests_running 1"),
        ("=== 2026-11-02T08:01:00Z ===", "vllm:num_requests_running 1"),
        ("1793606460", "vllm:num_requests_running 1"),
        ("# ts=1793606460.25", "vllm:num_requests_running 1"),
        ("time: 1793606460000", "vllm:num_requests_running 1"),
        ("Mon Nov  2 08:01:00 UTC 2026", "vllm:num_requests_running 1"),
        ("Mon Nov  2 08:01:00 AM CET 2026", "vllm:num_requests_running 1"),
        ("", "vllm:num_requests_running 1 1793606460250"),
        ("# 2020-01-01 00:00:00", "vllm:num_requests_running 1 1793606460"),
        ("", "2026-11-02T08:01:00.123456789Z vllm:num_requests_running 1"),
    ],
)
def test_ways_to_tell_the_time(tmp_path, mark, line):
    samples = read_lines(tmp_path, mark, line).samples
    assert samples.select("clock", "value_mean").rows() == [(datetime(2026, 11, 2, 8, 1), 1)]


def test_without_a_time_each_scrape_is_a_row(tmp_path):
    lines = ["vllm:num_requests_running 1", "vllm:num_requests_running 3", "vllm:num_requests_waiting 2"]
    samples = read_lines(tmp_path, *lines).samples
    assert samples.select("metric", "value_mean", "n", "clock", "source_line").rows() == [
        ("running_requests", 1, 1, None, 1),
        ("running_requests", 3, 1, None, 2),
        ("queued_requests", 2, 1, None, 3),
    ]


def test_scrapes_within_a_second_are_one_row(tmp_path):
    lines = [f"vllm:num_requests_running {value} {1793606460000 + ms}" for value, ms in ((2, 0), (6, 400))]
    rows = read_lines(tmp_path, *lines).samples.select("value_min", "value_mean", "value_max", "n").rows()
    assert rows == [(2, 4, 6, 2)]


def test_unknown_metrics_are_left_out_and_damaged_ones_are_unread(tmp_path):
    lines = [
        "vllm:num_requests_running 1", "vllm:something_new 4", 'vllm:num_requests_waiting{engine="0"} 4x',
        'sglang:num_queue_reqs{engine_type="dec', "python_gc_objects_collected_total 5",
    ]  # fmt: skip
    evidence = read_lines(tmp_path, *lines)
    assert values(evidence) == [("running_requests", 1)]
    assert evidence.unread.select("reason", "source_line").rows() == [
        ("a metric without a number", 3),
        ("a metric without a number", 4),
    ]


def test_a_line_that_quotes_a_metric_is_none(tmp_path):
    lines = ["vllm:num_requests_running 1", "alert: vllm:num_requests_waiting 9", '{"m": "sglang:num_queue_reqs 4"}']
    assert values(read_lines(tmp_path, *lines)) == [("running_requests", 1)]


@pytest.mark.parametrize("value", ["", "1e999", "-", "0x10", "\x00", "NaN", "+Inf", "9" * 400])
def test_hostile_values(tmp_path, value):
    lines = [f'DCGM_FI_DEV_CLOCK_THROTTLE_REASONS{{gpu="1"}} {value}', f"sglang:kv_transfer_latency_ms_count {value}"]
    evidence = read_lines(tmp_path, "vllm:num_requests_running 1", *lines)
    assert ("running_requests", 1) in values(evidence)
