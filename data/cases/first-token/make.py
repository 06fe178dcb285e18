"""A run of which the short requests came back empty: `python make.py`, or `python make.py --check` to compare only."""

import random
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
sys.dont_write_bytecode = True  # no __pycache__ among the logs

from _made import MODEL, client_files, lasting, paced  # noqa: E402
from _synthetic import Request, Run, closed_loop, empty, keep  # noqa: E402

USERS, PROMPTS, INPUT_TOK = 16, 240, 512
SHORT_RATIO = 0.55  # more than half: the median is then one of them
SHORT_TOK, LONG_TOK = (32, 96), (256, 448)
STEP_S, TTFT_S, EMPTY_S = 0.041, 0.24, 0.055


def run() -> Run:
    """A router sends what asks for little to a small worker, and that one is dead."""
    rng = random.Random("first token")
    is_short = [number < PROMPTS * SHORT_RATIO for number in range(PROMPTS)]
    rng.shuffle(is_short)

    def answer(number: int, start_s: float) -> Request:
        if is_short[number]:
            e2e_s = EMPTY_S * rng.uniform(0.8, 1.3)
            return empty(start_s=start_s, input_tok=INPUT_TOK, asked_tok=rng.randint(*SHORT_TOK), e2e_s=e2e_s)
        return paced(
            rng, start_s=start_s, input_tok=INPUT_TOK, output_tok=rng.randint(*LONG_TOK), ttft_s=TTFT_S, step_s=STEP_S
        )

    requests = closed_loop(users=USERS, count=PROMPTS, answer=answer)
    settings = {"dataset_name": "custom", "max_concurrency": USERS}
    return Run(requests, lasting(requests), MODEL, settings)


def files() -> dict[str, str]:
    """The client's log and its manifest."""
    return client_files("Chat mix behind a router", run(), load=f"concurrency = {USERS}", topology="2p2d")


if __name__ == "__main__":
    sys.exit(keep(HERE, files(), sys.argv[1:]))
