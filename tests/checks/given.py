"""Evidence of one run, or of a sweep, from the facts that a test names; a healthy run otherwise."""

from typing import Any

import polars as pl

from pdkit.evidence import Evidence
from pdkit.judge import judge
from pdkit.load import same_runs, with_missing_levels
from pdkit.results import Judgement

# 400 requests at 4 users, 100 tokens each, one every 0.5 s: 200 s, 200 tok/s, E2E 2 s; every identity can be worked out
HEALTHY: dict[str, float | None] = {
    "completed": 400, "duration_s": 200, "input_tok_sum": 40_000, "output_tok_sum": 40_000, "retokenized_tok_sum": 39_600,
    "request_throughput_per_s": 2, "input_throughput_tok_per_s": 200, "output_throughput_tok_per_s": 200,
    "total_throughput_tok_per_s": 400, "peak_output_throughput_tok_per_s": 260, "concurrency_mean": 4.0, "concurrency": 4,
    "request_rate_per_s": float("inf"), "prompts_asked": 400, "output_tok_asked": 40_000, "output_tok_asked_each": 100,
    "e2e_ms_mean": 2000, "e2e_ms_median": 1990, "e2e_ms_std": 30, "e2e_ms_p90": 2050, "e2e_ms_p99": 2100,
    "ttft_ms_mean": 120, "ttft_ms_median": 120, "ttft_ms_std": 9, "ttft_ms_p90": 130, "ttft_ms_p99": 150,
    "tpot_ms_mean": 19, "tpot_ms_median": 19, "tpot_ms_p99": 20,
    "itl_ms_mean": 19, "itl_ms_median": 18.9, "itl_ms_p99": 25, "itl_ms_max": 40,
}  # fmt: skip
SETTINGS: dict[str, Any] = {
    "experiment": "e", "reader": "sglang_bench_log", "tool": "sglang", "backend": "sglang", "dataset": "random",
    "model": "m", "server_version": "0.5.23", "ignore_eos": True, "streaming": True, "complete": True, "crashed_after": False, "client_definition": "python",
}  # fmt: skip
GOOD_REQUEST = {
    "ok": True,
    "output_tok": 100,
    "text_chars": 400,
    "ttft_ms": 120.0,
    "tpot_ms": 19.0,
    "itl_count": 99,
    "nonfinite_count": 0,
}


def evidence(
    *,
    requests: list[dict[str, Any]] | None = None,
    settings: dict[str, Any] | None = None,
    resolution: float = 0.0,
    seen: str = "run.log#0",
    **facts: float | None,
) -> Evidence:
    """One sighting of a run; a fact of None is left out, a fact "nan" is printed so."""
    file = seen.partition("#")[0]
    stated = {fact: value for fact, value in (HEALTHY | facts).items() if value is not None}
    claims = [
        {"seen_id": seen, "fact": fact, "resolution": resolution, "source_file": file, "source_line": line}
        | ({"printed": value} if isinstance(value, str) else {"value": float(value)})
        for line, (fact, value) in enumerate(stated.items(), 1)
    ]
    rows = [
        {
            "seen_id": seen,
            "request_index": i,
            "text_hash": i,
            "source_file": "run.jsonl",
            "source_line": 1,
            "source_item": i,
        }
        | GOOD_REQUEST
        | given
        for i, given in enumerate(requests or [])
    ]
    run = {"seen_id": seen, "source_file": file, "source_line": 99} | SETTINGS | (settings or {})
    return Evidence.of(runs=[run], claims=claims, requests=rows)


def judged(*parts: Evidence, **given: Any) -> Judgement:
    """The judgement of the given sightings, or of one run with the given facts."""
    return judge(with_missing_levels(same_runs(Evidence.joined(parts or [evidence(**given)]))))


def outcome(judgement: Judgement, rule: str) -> str:
    """`pass`, `refuse`, `not_evaluated` … of the only run (or of the last of several)."""
    row = judgement.results.filter(pl.col("rule") == rule).row(-1, named=True)
    return str(row["severity"] or row["outcome"])


def verdict(judgement: Judgement) -> str:
    """The verdict of the only run."""
    return str(judgement.verdicts["verdict"].item())


def said(judgement: Judgement, rule: str) -> str:
    """The sentence of a failure."""
    return str(judgement.findings.filter(pl.col("rule") == rule)["sentence"].item())
