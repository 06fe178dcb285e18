"""Router logs: answers a second, workers' failures once a request, readiness polls set aside."""

import json
from datetime import datetime
from pathlib import Path

import polars as pl
import pytest
from logs import write

from pdkit.evidence import Evidence
from pdkit.load import load

SAMPLES = Path(__file__).parent.parent / "data" / "sglang_router_log"
DAY = "2026-11-02 08:01:0"
PD = "sglang_router_rs::routers::http::pd_router: src/routers/http/pd_router.rs:438: "
ANSWERED = (
    'http_request{{method={method} uri={uri} version=HTTP/1.1 request_id="r-1" status_code={status} latency="1.93s"}}: '
)


def read_lines(tmp_path: Path, *lines: str) -> Evidence:
    return load(write(tmp_path / "s" / "router.log", "".join(f"{line}\n" for line in lines)))


def answered(status: str, uri: str = "/generate", method: str = "POST", second: int = 3) -> str:
    span = ANSWERED.format(method=method, uri=uri, status=status)
    return f"{DAY}{second}  INFO {span}sglang_router_rs::response: src/middleware.rs:266: finished processing request"


def told(evidence: Evidence, kind: str) -> list[tuple]:
    return evidence.events.filter(pl.col("kind") == kind).select("subject", "count", "source_line").rows()


def test_answers_are_counted_by_second_and_status():
    events = load(SAMPLES / "rust.log").events.filter(pl.col("kind") == "http")
    assert events.select("clock", "subject", "count", "source_line").rows() == [
        (datetime(2026, 11, 2, 8, 1, 3), "200", 2, 6),
        (datetime(2026, 11, 2, 8, 1, 4), "200", 1, 10),
        (datetime(2026, 11, 2, 8, 1, 6), "500", 1, 15),
        (datetime(2026, 11, 2, 8, 1, 7), "503", 1, 17),
    ]
    assert events["role"].unique().to_list() == ["router"]
    assert events["instance"].unique().to_list() == [(SAMPLES / "rust.log").as_posix()]


def test_a_retry_is_no_second_failure():
    assert told(load(SAMPLES / "rust.log"), "router_error") == [("decode_status", 1, 12), ("no_pair", 1, 16)]


def test_readiness_polls_are_no_errors_of_requests():
    evidence = load(SAMPLES / "rust.log")
    assert told(evidence, "request_rejected") == [("503", 1, 17)]
    assert evidence.unread.is_empty()
    assert told(evidence, "ready") == [(None, 1, 1)]


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("Decode server returned error status decode_url=http://h:1 status=500 Internal Server Error", "decode_status"),
        ("Prefill server returned error status prefill_url=http://h:1 status=503 body={}", "prefill_status"),
        ("Prefill server failed (CRITICAL) prefill_url=http://h:1 error=e. Decode will timeout", "prefill_failed"),
        ("Decode request failed decode_url=http://h:1 error=e", "decode_failed"),
        ("Stream error from decode server http://h:1: error decoding response body", "stream_error"),
        ("Failed to select PD pair error=No prefill workers available", "no_pair"),
        ("PD request transport error, both sides aborted: e", "pair_failed"),
        ("Failed to read decode response: e", "decode_unreadable"),
    ],
)
def test_what_the_router_says_of_workers(tmp_path, said, kind):
    line = f"{DAY}4 ERROR {PD}{said}"
    assert told(read_lines(tmp_path, line, line), "router_error") == [(kind, 2, 1)]


def test_an_error_of_routing_in_other_words_is_unread(tmp_path):
    line = f"{DAY}4 ERROR {PD}a thing that nobody has seen"
    unread = read_lines(tmp_path, line, line).unread
    assert unread.select("reason", "source_line").rows() == [
        ("an error of the router in words that are not known (2 lines like it)", 1)
    ]


def test_an_answer_without_a_status_is_unread(tmp_path):
    unread = read_lines(tmp_path, answered("200"), answered("2")).unread
    assert unread.select("reason", "source_line").rows() == [("an answer without a status", 2)]


@pytest.mark.parametrize("uri", ["/health", "/get_server_info", "/metrics", "/health_generate", "/v1/models"])
def test_other_paths_are_no_load(tmp_path, uri):
    assert told(read_lines(tmp_path, answered("200"), answered("200", uri)), "http") == [("200", 1, 1)]


def test_a_status_may_be_quoted_and_the_request_may_follow_the_message(tmp_path):
    said = "finished processing request request_id=ab method=POST path=/generate status_code=200 latency_us=23580"
    simulated = f"{DAY}3  INFO smg::request_finished: {said}"
    assert told(read_lines(tmp_path, answered('"200"'), simulated), "http") == [("200", 2, 1)]


def test_json_is_read_alike(tmp_path):
    span = {"latency": 1740, "method": "POST", "request_id": "r-1", "status_code": 200, "uri": "/generate"}
    line = json.dumps(
        {
            "timestamp": "2026-11-02T08:01:03.120000Z",
            "level": "INFO",
            "fields": {"message": "finished processing request"},
            "target": "smg::response",
            "span": span,
        },
        separators=(",", ":"),
    )
    events = read_lines(tmp_path, line).events
    assert events.select("kind", "subject", "clock").rows() == [("http", "200", datetime(2026, 11, 2, 8, 1, 3))]


def test_a_panic_is_a_crash(tmp_path):
    panic = "thread 'tokio-runtime-worker' panicked at src/policies/tree.rs:71:5:"
    assert told(read_lines(tmp_path, answered("200"), panic), "crashed") == [("panic", 1, 2)]


def test_the_small_router_has_no_clock():
    events = load(SAMPLES / "mini_lb.log").events
    assert events.select("role", "kind", "subject", "count", "clock", "source_line").rows() == [
        ("router", "ready", None, 1, None, 5),
        ("router", "http", "200", 3, None, 7),
    ]


def test_a_container_gives_the_small_router_a_clock(tmp_path):
    line = '2026-11-02T08:01:03.120Z INFO:     192.0.2.9:40004 - "POST /generate HTTP/1.1" 503 Service Unavailable'
    events = read_lines(tmp_path, "[MiniLB] Overriding policy to random", line).events
    assert events.select("kind", "subject", "clock").rows() == [
        ("http", "503", datetime(2026, 11, 2, 8, 1, 3)),
        ("request_rejected", "503", datetime(2026, 11, 2, 8, 1, 3)),
    ]


def test_any_other_server_of_the_same_look_has_no_role(tmp_path):
    events = read_lines(tmp_path, 'INFO:     192.0.2.9:40004 - "POST /generate HTTP/1.1" 200 OK').events
    assert events.select("role", "subject").rows() == [(None, "200")]


def test_the_servers_of_sglang_and_vllm_keep_their_lines(tmp_path):
    access = 'INFO:     192.0.2.9:40004 - "POST /generate HTTP/1.1" 200 OK'
    evidence = read_lines(tmp_path, f"[2026-11-02 08:01:03] {access}", f"(APIServer pid=7) {access}")
    assert evidence.sources["reader"].to_list() == ["vllm_server_log"]
    assert told(evidence, "http") == [("200", 1, 2)]


def test_a_router_may_share_its_file_with_a_client(tmp_path):
    client = "Starting warmup with 1 sequences..."
    evidence = read_lines(tmp_path, client, answered("200"), "Successful requests:                     1")
    assert "sglang_router_log" in evidence.sources["reader"][0]
    assert told(evidence, "http") == [("200", 1, 2)]


@pytest.mark.parametrize("cut", range(0, 180, 7))
def test_a_line_may_be_cut_anywhere(tmp_path, cut):
    evidence = read_lines(tmp_path, answered("200"), answered("200")[:cut], "\x00\x07\xff")
    assert told(evidence, "http") in ([("200", 1, 1)], [("200", 2, 1)])


def test_keys_are_masked(tmp_path):
    line = f"{DAY}4 ERROR {PD}Decode request failed decode_url=http://user:secret@h:1 error=Bearer abcdefghijkl"
    text = read_lines(tmp_path, line).events["text"][0]
    assert "secret" not in text
    assert "abcdefghijkl" not in text
