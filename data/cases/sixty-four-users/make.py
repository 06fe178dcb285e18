"""A level that its run never had: `python make.py`, or `python make.py --check` to compare only."""

import random
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
sys.dont_write_bytecode = True  # no __pycache__ among the logs

from _made import MODEL, client_files, lasting, paced  # noqa: E402
from _synthetic import Request, Run, closed_loop, keep  # noqa: E402

USERS, PROMPTS, INPUT_TOK = 64, 96, 512
LENGTHS = (64, 192, 320, 640, 2048)  # most answers are short; a few run on alone
WEIGHTS = (40, 30, 14, 7, 9)
STEP_S, TTFT_S = 0.046, 0.8


def run() -> Run:
    """Prompts for one and a half rounds: ramp and drain are all there is."""
    rng = random.Random("sixty-four users")
    lengths = rng.choices(LENGTHS, WEIGHTS, k=PROMPTS)

    def answer(number: int, start_s: float) -> Request:
        return paced(
            rng, start_s=start_s, input_tok=INPUT_TOK, output_tok=lengths[number], ttft_s=TTFT_S, step_s=STEP_S
        )

    requests = closed_loop(users=USERS, count=PROMPTS, answer=answer)
    return Run(requests, lasting(requests), MODEL, {"dataset_name": "custom", "max_concurrency": USERS})


def files() -> dict[str, str]:
    """The client's log and its manifest."""
    return client_files("Capacity run", run(), load=f"concurrency = {USERS}")


if __name__ == "__main__":
    sys.exit(keep(HERE, files(), sys.argv[1:]))
