"""A healthy test of prefill whose log looks sick: `python make.py`, or `python make.py --check` to compare only."""

import random
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
sys.dont_write_bytecode = True  # no __pycache__ among the logs

from _made import MODEL, STARTED, lasting, log, manifest, paced, stamped, up  # noqa: E402
from _synthetic import Request, Run, closed_loop, keep  # noqa: E402

USERS, PROMPTS, INPUT_TOK = 8, 720, 2048
TTFT_S = 0.71
POOL_TOK = 120_000
PROBES_AT_S = (17.0, 40.0, 58.0)  # somebody's probe that gives up before its KV is there
LINE_EVERY = 16  # batches: the log is an excerpt


def run() -> Run:
    """Every answer is one token: what is timed is reading the prompt."""
    rng = random.Random("prefill test")

    def answer(_: int, start_s: float) -> Request:
        return paced(rng, start_s=start_s, input_tok=INPUT_TOK, output_tok=1, ttft_s=TTFT_S, step_s=0.0)

    requests = closed_loop(users=USERS, count=PROMPTS, answer=answer)
    settings = {
        "random_input_len": INPUT_TOK, "random_output_len": 1, "random_range_ratio": 1.0, "max_concurrency": USERS,
    }  # fmt: skip
    return Run(requests, lasting(requests), MODEL, settings)


def prefill_log(made: Run) -> str:
    """The prefill server: some of its batches, and three transfers that somebody gave up."""
    rng = random.Random("prefill log")
    lines = up(pool_tok=POOL_TOK, mode="prefill", disaggregation_transfer_backend="mooncake", disable_radix_cache=True)
    for request in list(made.requests)[::LINE_EVERY]:
        text = (
            f"Prefill batch, #new-seq: 1, #new-token: {INPUT_TOK}, #cached-token: 0, "
            f"token usage: {rng.uniform(0.08, 0.14):.2f}, #running-req: 0, #queue-req: {rng.randint(3, 6)}, "
            f"#pending-token: {INPUT_TOK * rng.randint(3, 6)}, #bootstrap-req: 0, #inflight-req: {rng.randint(0, 2)}, "
            f"#optimistic-req: 0, cuda graph: False, input throughput (token/s): {rng.uniform(20_000, 24_000):.2f}"
        )
        lines.append((request.start_s, text))
    for at_s in PROBES_AT_S:
        rid, room = f"{rng.getrandbits(128):032x}", rng.getrandbits(62)
        text = (
            f"Prefill transfer failed for request rank=0 req.rid='{rid}' req.bootstrap_room={room} "
            f"with exception KVTransferError(bootstrap_room={room}): Aborted by AbortReq."
        )
        lines.append((at_s, text))
    return stamped(STARTED, lines)


def files() -> dict[str, str]:
    """The client's log, the prefill server's and their manifest."""
    made = run()
    roles = {"bench.log": "client", "prefill.log": "prefill"}
    said = manifest("Prefill test", made, load=f"concurrency = {USERS}", files=roles, topology="1p1d")
    return {"logs/bench.log": log(made), "logs/prefill.log": prefill_log(made), "logs/sweep.toml": said}


if __name__ == "__main__":
    sys.exit(keep(HERE, files(), sys.argv[1:]))
