"""A store's worth of made results: many nights of ten levels, each a record with details. Synthetic and seeded."""

import json
import random
from datetime import date, timedelta
from pathlib import Path

LEVELS = 10
REQUESTS_A_RUN = 400
_TOKENS = 16  # of an answer: gaps are statistics once they are read, so more of them would only make the input larger
_DAY = date(2025, 1, 6)


def nights(folder: Path, *, runs: int) -> Path:
    """So many runs of 400 requests, ten a night, each night a folder; 2,000,000 requests are 5,000 runs."""
    chance = random.Random(5)
    templates = [_template(2**level, chance) for level in range(LEVELS)]
    for number in range(max(1, runs // LEVELS)):
        home = folder / "nights" / (_DAY + timedelta(days=number)).isoformat()
        home.mkdir(parents=True)
        with (home / "result.jsonl").open("w") as file:
            for level, template in enumerate(templates):
                file.write(_night(template, 2**level, chance.gauss(1.0, 0.02)))
    return folder / "nights"


def _template(users: int, chance: random.Random) -> str:
    made = {
        "input_lens": [256] * REQUESTS_A_RUN, "output_lens": [_TOKENS] * REQUESTS_A_RUN,
        "ttfts": [round(chance.lognormvariate(-3, 0.5), 6) for _ in range(REQUESTS_A_RUN)],
        "itls": [[round(chance.lognormvariate(-4.5, 0.3), 6) for _ in range(_TOKENS - 1)] for _ in range(REQUESTS_A_RUN)],
        "generated_texts": [f"answer {number} of {users} words and more" for number in range(REQUESTS_A_RUN)],
        "errors": [""] * REQUESTS_A_RUN,
    }  # fmt: skip
    return json.dumps(made)[1:]


def _night(template: str, users: int, slower: float) -> str:
    seconds = slower * 0.22 * REQUESTS_A_RUN / users  # 16 tokens at 11 ms, and 50 ms before the first
    tokens = REQUESTS_A_RUN * _TOKENS
    head = {
        "tag": None, "backend": "sglang", "dataset_name": "random", "request_rate": float("inf"), "max_concurrency": users,
        "random_input_len": 256, "random_output_len": _TOKENS, "random_range_ratio": 1.0, "duration": seconds,
        "completed": REQUESTS_A_RUN, "total_input_tokens": REQUESTS_A_RUN * 256, "total_output_tokens": tokens,
        "total_output_tokens_retokenized": tokens, "request_throughput": REQUESTS_A_RUN / seconds,
        "output_throughput": tokens / seconds, "mean_ttft_ms": 55.0 * slower, "median_ttft_ms": 50.0 * slower,
    }  # fmt: skip
    return f"{json.dumps(head)[:-1]}, {template}\n"
