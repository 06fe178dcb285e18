"""SGLang's server logs: gauges by second, one failure a request, settings with their line."""

from datetime import datetime
from pathlib import Path

import polars as pl
import pytest
from logs import write

from pdkit.evidence import Evidence
from pdkit.load import load

SAMPLES = Path(__file__).parent.parent / "data" / "sglang_server_log"
STAMP = "[2026-11-02 08:01:10] "


def gauges(evidence: Evidence, *by: str) -> dict:
    """Mean of each gauge, by its name, or by the given columns and its name."""
    rows = evidence.samples.select(*by, "metric", "value_mean").iter_rows()
    return {key[0] if len(key) == 1 else tuple(key): value for *key, value in rows}


def read_line(tmp_path: Path, *lines: str) -> Evidence:
    return load(write(tmp_path / "s" / "server.log", "".join(f"{line}\n" for line in lines)))


def test_gauges_of_one_second_are_one_row():
    two = load(SAMPLES / "prefill.log").samples.filter(pl.col("clock") == datetime(2026, 11, 2, 8, 1, 1))
    rows = {row["metric"]: row for row in two.iter_rows(named=True)}
    assert {name: (row["value_min"], row["value_mean"], row["value_max"], row["n"]) for name, row in rows.items()} == {
        "new_requests": (1, 1.5, 2, 2), "new_tok": (400, 500, 600, 2), "cached_tok": (0, 50, 100, 2),
        "kv_used_ratio": (0.03, 0.04, 0.05, 2), "queued_requests": (1, 2, 3, 2), "bootstrap_requests": (3, 4, 5, 2),
        "transferring_requests": (2, 3, 4, 2), "input_throughput_tok_per_s": (300, 400, 500, 2),
    }  # fmt: skip
    assert {row["source_line"] for row in rows.values()} == {10}
    assert {row["role"] for row in rows.values()} == {"prefill"}


def test_replicas_of_one_server_stay_apart():
    found = gauges(load(SAMPLES / "decode.log"), "rank")
    assert found["DP0", "running_requests"] == 2
    assert found["DP1", "running_requests"] == 3
    assert found["DP0", "prealloc_requests"] == 19
    assert found["DP1", "prealloc_requests"] == 5
    assert found["DP0", "cuda_graph"] == 1
    assert found["DP1", "cuda_graph"] == 0
    assert found["DP0", "accept_length"] == 2.61


def test_a_health_check_is_no_load():
    assert load(SAMPLES / "prefill.log").samples["clock"].min() == datetime(2026, 11, 2, 8, 1, 1)


def test_a_request_fails_once_however_many_ranks_say_so():
    events = load(SAMPLES / "prefill.log").events
    failed = events.filter(pl.col("kind") == "transfer_failed")
    assert failed.select("subject", "count", "source_line").rows() == [("67", 1.0, 15), ("68", 1.0, 17)]
    assert events.filter(pl.col("kind") == "transfer_aborted")["subject"].to_list() == ["69"]
    assert events.filter(pl.col("kind") == "session_failed")["subject"].to_list() == ["192.0.2.41:15004"]


def test_lines_of_the_transfer_engine_are_read_within_other_lines():
    events = load(SAMPLES / "prefill.log").events.filter(pl.col("kind") == "queue_full")
    at = datetime(2026, 11, 2, 8, 1, 2)
    assert events.select("count", "clock", "source_line").rows() == [(1.0, at, 12), (2.0, at, 13)]


def test_what_else_happens_on_a_decode_server():
    events = load(SAMPLES / "decode.log").events
    found = {(kind, subject): count for kind, subject, count in events.select("kind", "subject", "count").iter_rows()}
    assert found == {
        ("ready", None): 1, ("retracted", None): 2, ("transfer_failed", "67"): 1, ("bootstrap_failed", "70"): 1,
        ("connection_lost", "192.0.2.11:8998"): 3, ("crashed", "Scheduler hit an exception"): 1,
    }  # fmt: skip
    assert set(events["role"]) == {"decode"}


def test_answers_to_generation_requests_are_counted_by_second_and_status():
    http = load(SAMPLES / "prefill.log").events.filter(pl.col("kind") == "http")
    assert http.select("subject", "count", "clock").rows() == [("200", 2.0, datetime(2026, 11, 2, 8, 1))]


def test_settings_are_said_once_each_with_their_line():
    settings = load(SAMPLES / "decode.log").settings
    found = {name: (text if value is None else value, line) for name, value, text, line in
             settings.select("name", "value", "text", "source_line").iter_rows()}  # fmt: skip
    assert found == {
        "model_path": ("/models/m-8b", 1), "quantization": ("fp8", 1), "tp_size": (1, 1), "dp_size": (2, 1),
        "reserved_tok": (512, 1), "disaggregation_mode": ("decode", 1), "transfer_backend": ("mooncake", 1),
        "pool_tok": (2925, 2), "chunked_prefill_tok": (8192, 2), "max_running_requests": (2048, 2),
        "context_tok": (40960, 2),
    }  # fmt: skip


@pytest.mark.parametrize(("said", "on"), [("True", 0), ("False", 1)])
def test_a_prefix_cache_that_is_disabled_is_off(tmp_path, said, on):
    settings = read_line(tmp_path, f"{STAMP}server_args={{'tp_size': 1, 'disable_radix_cache': {said}}}").settings
    assert settings.filter(pl.col("name") == "prefix_cache")["value"].to_list() == [on]


def test_no_key_is_kept():
    evidence = load(SAMPLES / "prefill.log")
    assert not any("secret" in str(frame.rows()) for frame in vars(evidence).values())


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("Decode batch. #running-req: 5, #token: 4096, token usage: 0.01, gen throughput (token/s): 402.11, #queue-req: 0",
         {"running_requests": 5, "kv_used_tok": 4096, "kv_used_ratio": 0.01, "gen_throughput_tok_per_s": 402.11}),
        ("Decode batch [417], #running-req: 5, #full token: 64, full token usage: 0.01, swa token usage: 0.9, npu graph: True, ",
         {"running_requests": 5, "kv_used_tok": 64, "kv_used_ratio": 0.01, "cuda_graph": 1}),
        ("Prefill batch. #new-seq: 4, #new-token: 96, token usage: 0.01, #running-req: 7, #unbootstrapped-req: 2, #queue-req: 0, #transferring-req: 3 ",
         {"new_requests": 4, "bootstrap_requests": 2, "transferring_requests": 3, "queued_requests": 0}),
        ("Prefill batch, #new-seq: 2, #new-token: 48, #prealloc-req: 5, #inflight-req: 4, input throughput (token/s): 9.5, cuda graph: False",
         {"bootstrap_requests": 5, "transferring_requests": 4, "input_throughput_tok_per_s": 9.5}),
    ],
)  # fmt: skip
def test_every_version_is_read_by_its_words(tmp_path, line, expected):
    found = gauges(read_line(tmp_path, STAMP + line))
    assert {name: found[name] for name in expected} == expected


def test_the_same_word_is_another_queue_on_either_side(tmp_path):
    decode = gauges(
        read_line(tmp_path, f"{STAMP}Decode batch, #running-req: 1, pre-allocated usage: 0.00, #prealloc-req: 3")
    )
    assert decode["prealloc_requests"] == 3
    assert "bootstrap_requests" not in decode


@pytest.mark.parametrize(
    "prefix", ["", "decode-1  | ", "2026-11-02T08:01:11.5Z ", "(SchedulerActor pid=812, ip=192.0.2.5) ", "\x1b[32m"]
)
def test_prefixes_hide_no_line(tmp_path, prefix):
    evidence = read_line(tmp_path, f"{prefix}{STAMP}Decode batch, #running-req: 5, #token: 40, #queue-req: 0")
    assert gauges(evidence)["running_requests"] == 5
    assert evidence.samples["clock"].unique().to_list() == [datetime(2026, 11, 2, 8, 1, 10)]


def test_a_server_that_does_both_is_colocated(tmp_path):
    lines = (
        "Prefill batch, #new-seq: 2, #new-token: 48, #queue-req: 1",
        "Decode batch, #running-req: 1, #queue-req: 0",
    )
    assert set(read_line(tmp_path, *(STAMP + line for line in lines)).samples["role"]) == {"colocated"}


def test_both_sides_in_one_file_are_two_servers(tmp_path):
    lines = (
        "Prefill batch, #new-seq: 2, #new-token: 48, #inflight-req: 1",
        "Decode batch, #running-req: 1, pre-allocated usage: 0.00",
        "Session 192.0.2.41:1 failed.",
    )
    evidence = read_line(tmp_path, *(STAMP + line for line in lines))
    names = {role: name.rpartition("#")[2] for role, name in evidence.samples.select("role", "instance").iter_rows()}
    assert names == {"prefill": "prefill", "decode": "decode"}
    assert evidence.events["role"].to_list() == ["prefill"]


def test_the_manifest_names_the_role(tmp_path):
    write(tmp_path / "s" / "sweep.toml", '[[file]]\npath = "server.log"\nrole = "decode"\n')
    evidence = read_line(tmp_path, f"{STAMP}Decode batch, #running-req: 1, #queue-req: 0")
    assert set(load(tmp_path / "s").samples["role"]) == {"decode"}
    assert set(evidence.samples["role"]) == {"colocated"}


@pytest.mark.parametrize(
    "line",
    ["Decode batch, #running-req: many, #token: , token usage", "Decode batch", "KV Cache is allocated. #tokens: x"],
)
def test_a_damaged_line_makes_no_number(tmp_path, line):
    evidence = read_line(tmp_path, STAMP + line)
    assert evidence.samples.is_empty()
    assert evidence.settings.is_empty()


def unread(evidence: Evidence) -> list[tuple]:
    return evidence.unread.select("source_line", "reason", "text").rows()


@pytest.mark.parametrize(
    "line",
    ["Decode batch, #running-req: many, #token: , token usage", "Decode batch", "Prefill batch. #new-seq: ,\r",
     "Decode batch [40], #running-req: 3x, #to"],
)  # fmt: skip
def test_a_line_of_gauges_without_one_is_unread(tmp_path, line):
    evidence = read_line(tmp_path, f"{STAMP}Decode batch, #running-req: 1", STAMP + line)
    assert unread(evidence) == [(2, "a line of gauges without one that can be read", (STAMP + line).strip())]
    assert gauges(evidence) == {"running_requests": 1}


@pytest.mark.parametrize(
    "line", ["Prefill batch, #new-seq: 1, W1102 08:01:02.701468  3391 lane.h:1178] TCP lane connection to a failed",
             "Decode batch, #running-req: many, token usage: 0.41", "Decode batch size is large",
             "Prefill batch, #new-seq: 1, #new-token: 1, #cached-token: 0, #queue-req: 0"],
)  # fmt: skip
def test_a_line_with_one_gauge_and_a_line_of_other_words_are_no_damage(tmp_path, line):
    assert unread(read_line(tmp_path, f"{STAMP}Decode batch, #running-req: 1", STAMP + line)) == []


def test_of_many_damaged_lines_twenty_are_listed_and_the_others_counted(tmp_path):
    evidence = read_line(tmp_path, *(f"{STAMP}Decode batch, #running-req: {number}x" for number in range(30)))
    said = unread(evidence)
    assert [line for line, _, _ in said] == list(range(1, 22))
    assert said[-1][1] == "10 more lines of gauges without one that can be read"
    assert {reason for _, reason, _ in said[:-1]} == {"a line of gauges without one that can be read"}


DECODES = (
    "TP0] Decode batch, #running-req: {n}, #token: 40, token usage: 0.01, pre-allocated usage: 0.00, #queue-req: 0"
)


@pytest.mark.parametrize("before", ["{name}  | ", "[pod/{name}/server] "], ids=["compose", "kubectl --prefix"])
def test_servers_in_one_file_are_told_apart_by_the_name_before_their_lines(tmp_path, before):
    """Two decode servers that say the same in one second are two, and a failure is counted at the one that tells of it."""
    failed = "TP0] Decode transfer failed for request rank=0 bootstrap_room=7 with exception KVTransferError(bootstrap_room=7)"
    said = [("decode-0", DECODES.format(n=4)), ("decode-1", DECODES.format(n=4)), ("decode-1", failed)]
    said.append(("prefill-0", "TP0] Prefill batch, #new-seq: 1, #new-token: 9, #cached-token: 0, #bootstrap-req: 0"))
    evidence = read_line(tmp_path, *(f"{before.format(name=name)}[2026-11-02 08:01:10 {line}" for name, line in said))
    running = evidence.samples.filter(pl.col("metric") == "running_requests")
    assert running["value_mean"].to_list() == [4, 4]
    roles = evidence.samples.select(pl.col("instance").str.extract(r"#(?:pod/)?(\w+-\d)"), "role").unique()
    assert set(roles.iter_rows()) == {("decode-0", "decode"), ("decode-1", "decode"), ("prefill-0", "prefill")}
    (event,) = evidence.events.iter_rows(named=True)
    assert ("decode-1" in event["instance"], event["subject"], event["source_line"]) == (True, "7", 3)


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("KVTransferError(bootstrap_room=70): Failed to get kvcache from prefill instance", "transfer_failed"),
        ("KVTransferError(bootstrap_room=70): Aborted by AbortReq.", "transfer_aborted"),
        (
            "Prefill bootstrap failed for request bootstrap_room=70 KVTransferError(bootstrap_room=70)",
            "bootstrap_failed",
        ),
    ],
)
def test_a_transfer_error_by_itself_is_a_failure_of_its_room(tmp_path, line, kind):
    (event,) = read_line(tmp_path, STAMP + DECODES.format(n=1)[5:], STAMP + line).events.iter_rows(named=True)
    assert (event["kind"], event["subject"]) == (kind, "70")
