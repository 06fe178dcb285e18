"""A server's log beside the run of given.py, as rows of evidence: 200 s of work on one clock, a line each 5 s."""

from datetime import datetime, timedelta
from typing import Any

from pdkit.evidence import Evidence

START = datetime(2026, 11, 2, 8)
RUN_S, LINE_S = 200, 5
# 400 requests of 100 tokens at 4 users: 200 tok/s all the time
DECODE = {
    "running_requests": 4.0, "prealloc_requests": 0.0, "queued_requests": 0.0, "kv_used_ratio": 0.2,
    "kv_used_tok": 800.0, "cuda_graph": 1.0, "gen_throughput_tok_per_s": 200.0,
}  # fmt: skip


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def server(
    *,
    role: str = "decode",
    name: str | None = None,
    events: list[dict[str, Any]] | None = None,
    settings: dict[str, float | str] | None = None,
    answers: float = 10,
    rank: str = "",
    experiment: str = "e",
    silent: bool = False,
    **gauges: float | None,
) -> Evidence:
    """One server that answered `answers` requests each 5 s (400 in all), with its gauges, events and settings.

    `events` may leave out their clock: then they are in the middle of the run.
    """
    file = name or f"{role}.log"
    whose = {"experiment": experiment, "instance": file, "role": role, "source_file": file}
    told = {**DECODE, **gauges} if role in ("decode", "colocated") else gauges
    seconds = [] if silent else range(0, RUN_S, LINE_S)
    samples = [
        {"metric": metric, "clock": at(s), "rank": rank, "value_min": v, "value_mean": v, "value_max": v, "n": 1}
        | {"source_line": s + 1} | whose
        for s in seconds for metric, v in told.items() if v is not None
    ]  # fmt: skip
    http = [
        {"kind": "http", "subject": "200", "count": answers, "clock": at(s), "source_line": s + 2} | whose
        for s in seconds
    ]
    happened = [{"clock": at(100), "count": 1.0, "source_line": 1000 + i} | whose | event
                for i, event in enumerate(events or [])]  # fmt: skip
    said = [
        {"name": key, "clock": at(-60), "source_line": 1, ("text" if isinstance(value, str) else "value"): value}
        | whose
        for key, value in (settings or {}).items()
    ]
    sources = [{"path": file, "experiment": experiment, "reader": "sglang_server_log"}]
    return Evidence.of(samples=samples, events=http + happened, settings=said, sources=sources)


def failed(count: int, *, kind: str = "transfer_failed", first: int = 0) -> list[dict[str, Any]]:
    """As many requests whose KV transfer failed, each in a room of its own."""
    return [{"kind": kind, "subject": str(room)} for room in range(first, first + count)]
