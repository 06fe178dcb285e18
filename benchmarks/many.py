"""Many made runs as evidence: every tenth without text, every tenth rounded as a console prints."""

import random

from pdkit.evidence import Evidence
from pdkit.load import same_runs

_REQUESTS_A_RUN = 100


def many(runs: int) -> Evidence:
    """So many runs in sweeps of ten levels, with 100 requests each."""
    chance = random.Random(1)
    made = [_run(number, chance) for number in range(runs)]
    return same_runs(
        Evidence.of(
            runs=[run for run, _, _ in made],
            claims=[claim for _, claims, _ in made for claim in claims],
            requests=[request for _, _, requests in made for request in requests],
        )
    )


def _run(number: int, chance: random.Random) -> tuple[dict, list[dict], list[dict]]:
    users, seconds = 2 ** (number % 10), 200 + number / 1000
    tokens, empty = 100 * _REQUESTS_A_RUN, number % 10 == 9
    place = {"source_file": f"{number}.log", "source_line": 1}
    seen = {"seen_id": f"{number}.log#0"}
    clocks = {"e2e_ms": 2000.0, "ttft_ms": 0.0 if empty else 120.0, "tpot_ms": 19.0, "itl_ms": 0.0 if empty else 19.0}
    facts = {
        "completed": _REQUESTS_A_RUN, "duration_s": seconds, "input_tok_sum": tokens, "output_tok_sum": tokens,
        "retokenized_tok_sum": 0 if empty else tokens, "request_throughput_per_s": _REQUESTS_A_RUN / seconds,
        "input_throughput_tok_per_s": tokens / seconds, "output_throughput_tok_per_s": tokens / seconds,
        "total_throughput_tok_per_s": 2 * tokens / seconds, "concurrency_mean": _REQUESTS_A_RUN * 2 / seconds, "concurrency": users,
        "request_rate_per_s": float("inf"), "prompts_asked": _REQUESTS_A_RUN, "output_tok_asked": tokens,
        **{f"{clock}_{statistic}": value * factor for clock, value in clocks.items() for statistic, factor in (("mean", 1.0), ("median", 0.99), ("p99", 1.2))},
    }  # fmt: skip
    run = {
        "experiment": f"sweep-{number // 10}",
        "tool": "sglang",
        "backend": "sglang",
        "ignore_eos": True,
        "streaming": True,
        "complete": True,
    }
    claims = [
        {"fact": fact, "value": float(value), "resolution": 0.005 if number % 10 == 0 else 0.0} | seen | place
        for fact, value in facts.items()
    ]
    requests = [
        {"request_index": i, "ok": True, "output_tok": 100, "text_chars": 0 if empty else 400, "ttft_ms": clocks["ttft_ms"] + chance.random(),
         "tpot_ms": 19.0, "itl_count": 99} | seen | place
        for i in range(_REQUESTS_A_RUN)
    ]  # fmt: skip
    return run | seen | place, claims, requests
