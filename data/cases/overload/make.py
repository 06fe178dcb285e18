"""Two rates, one of them too high: `python make.py`, or `python make.py --check` to compare only."""

import random
import sys
from dataclasses import replace
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
sys.dont_write_bytecode = True  # no __pycache__ among the logs

from _made import MODEL, client_files, lasting, paced  # noqa: E402
from _synthetic import Run, keep  # noqa: E402

INPUT_TOK = 512
# rate a second, requests, answered, tokens of an answer, step: the queue is cut off, so those that got in were quick
LEVELS = {"calm": (4.0, 320, 320, (192, 320), 0.036), "rush": (10.0, 800, 480, (64, 160), 0.043)}
TTFT_S = {"calm": 0.34, "rush": 0.52}


def run(name: str) -> Run:
    """Arrivals at a rate; beyond what fits, requests time out, the long ones first."""
    rate, count, kept, lengths, step_s = LEVELS[name]
    rng = random.Random(f"overload, {name}")
    at_s = 0.0
    requests = []
    for _ in range(count):
        output_tok = rng.randint(*lengths)
        requests.append(
            paced(rng, start_s=at_s, input_tok=INPUT_TOK, output_tok=output_tok, ttft_s=TTFT_S[name], step_s=step_s)
        )
        at_s += rng.expovariate(rate)
    lost = set(rng.sample(range(count), count - kept))
    answered = [request for number, request in enumerate(requests) if number not in lost]
    failed = [replace(requests[number], text="") for number in sorted(lost)]
    settings = {"dataset_name": "custom", "request_rate": rate}
    return Run(answered, lasting(requests), MODEL, settings, lost=failed)


def files() -> dict[str, str]:
    """One folder a rate."""
    found = {}
    for name, (rate, *_) in LEVELS.items():
        found |= client_files(f"Arrivals, {name}", run(name), load=f"request_rate = {rate}", folder=f"logs/{name}")
    return found


if __name__ == "__main__":
    sys.exit(keep(HERE, files(), sys.argv[1:]))
