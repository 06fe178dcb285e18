"""One command, run twice on one server: `python make.py`, or `python make.py --check` to compare only."""

import random
import sys
from datetime import timedelta
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
sys.dont_write_bytecode = True  # no __pycache__ among the logs

from _made import MODEL, STARTED, lasting, log, manifest, paced, stamped, up  # noqa: E402
from _synthetic import Request, Run, closed_loop, keep  # noqa: E402

USERS, PROMPTS, INPUT_TOK, OUTPUT_TOK = 8, 80, 2048, 160
STEP_S = 0.040
TTFT_S = {"first": 0.92, "second": 0.11}  # reading the prompt, and finding it
FOUND_TOK = {"first": 0, "second": INPUT_TOK - 16}  # all but the last page
STARTS = {"first": STARTED, "second": STARTED + timedelta(minutes=5)}
POOL_TOK = 400_000


def run(name: str) -> Run:
    """The same arguments each time, seed included."""
    rng = random.Random(f"second try, {name}")

    def answer(_: int, start_s: float) -> Request:
        return paced(
            rng, start_s=start_s, input_tok=INPUT_TOK, output_tok=OUTPUT_TOK, ttft_s=TTFT_S[name], step_s=STEP_S
        )

    requests = closed_loop(users=USERS, count=PROMPTS, answer=answer)
    settings = {
        "random_input_len": INPUT_TOK, "random_output_len": OUTPUT_TOK, "random_range_ratio": 1.0,
        "max_concurrency": USERS, "warmup_requests": 0,
    }  # fmt: skip
    return Run(requests, lasting(requests), MODEL, settings)


def server_log(name: str, made: Run) -> str:
    """What the server says of the prompts of one run; its log was cut between the two."""
    rng = random.Random(f"server, {name}")
    lines = up(pool_tok=POOL_TOK) if name == "first" else []
    for request in made.requests:
        text = (
            f"Prefill batch, #new-seq: 1, #new-token: {INPUT_TOK - FOUND_TOK[name]}, "
            f"#cached-token: {FOUND_TOK[name]}, token usage: {rng.uniform(0.03, 0.05):.2f}, "
            f"#running-req: {rng.randint(5, 7)}, #queue-req: 0, #pending-token: 0, cuda graph: False, "
            f"input throughput (token/s): {rng.uniform(2_200, 2_600):.2f}"
        )
        lines.append((request.start_s, text))
    return stamped(STARTS[name], lines)


def files() -> dict[str, str]:
    """One folder a run."""
    found = {}
    for name in ("first", "second"):
        made, roles = run(name), {"bench.log": "client", "server.log": "colocated"}
        said = manifest(f"The {name} run", made, load=f"concurrency = {USERS}", files=roles, started=STARTS[name])
        found |= {
            f"logs/{name}/bench.log": log(made),
            f"logs/{name}/server.log": server_log(name, made),
            f"logs/{name}/sweep.toml": said,
        }
    return found


if __name__ == "__main__":
    sys.exit(keep(HERE, files(), sys.argv[1:]))
