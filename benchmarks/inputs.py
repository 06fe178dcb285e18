"""Made inputs: records and captured output in SGLang's layout. Synthetic, seeded, and large."""

import json
import random
from pathlib import Path

REQUESTS_A_RECORD = 40_000
GAPS_A_REQUEST = 127
_WORDS = [
    "the",
    "of",
    "and",
    "to",
    "in",
    "is",
    "that",
    "for",
    "it",
    "as",
    "be",
    "with",
    "by",
    "on",
    "not",
    "are",
    "this",
    "from",
    "or",
    "at",
    "an",
]
_CHATTER = (
    "[2026-11-29 17:10:{:02d}] Decode batch, #running-req: {}, #token: {}, token usage: 0.41, cuda graph: True, "
    "gen throughput (token/s): {}.25, #queue-req: 0"
)


def record(requests: int, *, users: int, seconds: float) -> str:
    """One record with details, as `--output-file --output-details` appends it."""
    chance = random.Random(users)
    tokens = requests * (GAPS_A_REQUEST + 1)
    made = {
        "tag": None, "backend": "sglang", "dataset_name": "random", "request_rate": float("inf"), "max_concurrency": users,
        "random_input_len": 256, "random_output_len": 128, "random_range_ratio": 1.0, "duration": seconds, "completed": requests,
        "total_input_tokens": requests * 256, "total_output_tokens": tokens, "total_output_tokens_retokenized": tokens,
        "request_throughput": requests / seconds, "output_throughput": tokens / seconds, "mean_ttft_ms": 55.0, "median_ttft_ms": 54.0,
        "input_lens": [256] * requests, "output_lens": [128] * requests,
        "ttfts": [chance.lognormvariate(-3, 0.5) for _ in range(requests)],
        "itls": [[chance.lognormvariate(-4.5, 0.3) for _ in range(GAPS_A_REQUEST)] for _ in range(requests)],
        "generated_texts": [" ".join(chance.choices(_WORDS, k=100)) for _ in range(requests)],
        "errors": [""] * requests,
    }  # fmt: skip
    return json.dumps(made) + "\n"


def records(folder: Path, *, scale: float) -> Path:
    """1,000,000 requests at scale 1: one record, written again with another duration."""
    one = record(REQUESTS_A_RECORD, users=64, seconds=1000.0)
    path = folder / "result.jsonl"
    with path.open("w") as file:
        for number in range(max(1, round(25 * scale))):
            file.write(one.replace('"duration": 1000.0', f'"duration": {1000.0 + number}', 1))
    return path


def sweep(folder: Path, *, scale: float) -> Path:
    """500 MB at scale 1: ten levels, each a record of 49 MB and 1 MB of captured output."""
    home = folder / "sweep"
    home.mkdir()
    requests = max(1, round(15_500 * scale))
    lines = round(3_500 * scale)
    with (home / "result.jsonl").open("w") as file:
        for level in range(10):
            users = 2**level
            file.write(record(requests, users=users, seconds=1000.0 + level))
            chatter = "\n".join(_CHATTER.format(i % 60, users, i, i % 900) for i in range(lines))
            (home / f"users-{users}.log").write_text(
                f"{chatter}\n{_block(requests, users, 1000.0 + level)}\n{chatter}\n"
            )
    return home


def _block(requests: int, users: int, seconds: float) -> str:
    tokens = requests * (GAPS_A_REQUEST + 1)
    return f"""Namespace(backend='sglang', num_prompts={requests}, max_concurrency={users}, request_rate=inf, dataset_name='random')
#Output tokens: {tokens}
============ Serving Benchmark Result ============
Backend:                                 sglang
Traffic request rate:                    inf
Max request concurrency:                 {users}
Successful requests:                     {requests}
Benchmark duration (s):                  {seconds:.2f}
Total input tokens:                      {requests * 256}
Total generated tokens:                  {tokens}
Total generated tokens (retokenized):    {tokens}
Request throughput (req/s):              {requests / seconds:.2f}
Output token throughput (tok/s):         {tokens / seconds:.2f}
Mean TTFT (ms):                          55.00
Median TTFT (ms):                        54.00
=================================================="""
