"""Two servers that did the same work and were counted in two ways: `python make.py`, or `--check` to compare only.

Published of such a pair: by claimed tokens one side is 2.84 times faster, by the text that came back the other 1.78.
"""

import random
import sys
from dataclasses import replace
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
sys.dont_write_bytecode = True  # no __pycache__ among the logs

from _made import MODEL, client_files, lasting, paced  # noqa: E402
from _synthetic import Request, Run, closed_loop, keep  # noqa: E402

BY_CLAIM, BY_TEXT = 2.84, 1.78  # the second server ahead, then the first one
TOKENS_A_CHUNK = BY_CLAIM * BY_TEXT  # the first client counted chunks
USERS, PROMPTS, INPUT_TOK, LIMIT_TOK = 16, 128, 512, 448
STEP_S = {"first": 0.0285, "second": 0.0285 * BY_TEXT}
TTFT_S = {"first": 0.31, "second": 0.31 * BY_TEXT}


def run(name: str) -> Run:
    """The same answers from both, one after 1.78 times the other's time."""
    lengths = random.Random("two servers")
    output_tok = [lengths.randint(128, LIMIT_TOK - 64) for _ in range(PROMPTS)]
    rng = random.Random("pace")  # the same draws for both: their times differ by the factor alone

    def answer(number: int, start_s: float) -> Request:
        return paced(
            rng, start_s=start_s, input_tok=INPUT_TOK, output_tok=output_tok[number], ttft_s=TTFT_S[name],
            step_s=STEP_S[name],
        )  # fmt: skip

    requests = closed_loop(users=USERS, count=PROMPTS, answer=answer)
    settings = {
        "backend": "sglang-oai-chat", "random_input_len": INPUT_TOK, "random_output_len": LIMIT_TOK,
        "random_range_ratio": 1.0, "max_concurrency": USERS, "disable_ignore_eos": True,
    }  # fmt: skip
    asked = PROMPTS * LIMIT_TOK
    if name == "first":
        requests = [in_chunks(request) for request in requests]
    return Run(requests, lasting(requests), MODEL, settings, asked_tok=asked)


def in_chunks(request: Request) -> Request:
    """The same answer where each chunk was counted as a token; a gap is then one between two chunks."""
    chunks = max(2, round(request.output_tok / TOKENS_A_CHUNK))
    gap_s = (request.e2e_s - request.ttft_s) / (chunks - 1)
    return replace(request, output_tok=chunks, itls_s=(gap_s,) * (chunks - 1))


def files() -> dict[str, str]:
    """One folder a server."""
    made = {name: run(name) for name in ("first", "second")}
    ratio = made["second"].duration_s / made["first"].duration_s
    # what the client needs besides serving does not scale: the last milliseconds are waiting for the end of the run
    made["second"] = replace(made["second"], duration_s=made["second"].duration_s * BY_TEXT / ratio)
    found = {}
    for name, one in made.items():
        found |= client_files(f"The {name} server", one, load=f"concurrency = {USERS}", folder=f"logs/{name}")
    return found


if __name__ == "__main__":
    sys.exit(keep(HERE, files(), sys.argv[1:]))
