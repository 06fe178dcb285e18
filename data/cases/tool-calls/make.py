"""Work that was done and of which hardly a word arrives: `python make.py`, or `python make.py --check` to compare only.

A tool-call parser holds the text back until the call is whole; this client reads text alone, and sees its first words.
"""

import random
import sys
from dataclasses import replace
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
sys.dont_write_bytecode = True  # no __pycache__ among the logs

from _made import MODEL, STARTED, lasting, log, manifest, paced, stamped, up  # noqa: E402
from _synthetic import WORDS, Request, Run, closed_loop, keep, tick  # noqa: E402

USERS, PROMPTS, INPUT_TOK, LIMIT_TOK = 8, 96, 768, 512
STEP_S, TTFT_S = 0.075, 0.22
SEEN_TOK = 4  # "I will look that"
POOL_TOK = 400_000
LOG_INTERVAL = 40  # decode steps from one line to the next


def whole() -> list[Request]:
    """The answers as the server made them."""
    rng = random.Random("tool calls")

    def answer(_: int, start_s: float) -> Request:
        length = rng.randint(LIMIT_TOK // 3, LIMIT_TOK - 80)
        return paced(rng, start_s=start_s, input_tok=INPUT_TOK, output_tok=length, ttft_s=TTFT_S, step_s=STEP_S)

    return closed_loop(users=USERS, count=PROMPTS, answer=answer)


def as_seen(request: Request) -> Request:
    """What is left of one for a client that reads text alone: a few words, and the count that the server reports."""
    words = random.Random(request.text).choices(WORDS, k=SEEN_TOK)
    return replace(request, itls_s=request.itls_s[: SEEN_TOK - 1], text=" ".join(words))


def decode_lines(answers: list[Request]) -> list[tuple[float, str]]:
    """One line in 40 steps; a step gives each running request one token."""
    lines: list[tuple[float, str]] = []
    steps, tokens, last_s = 0.0, 0, 0.0
    for at_s in sorted(moment for request in answers for moment in request.token_times_s):
        running = [request for request in answers if request.start_s + request.ttft_s <= at_s <= request.end_s]
        steps, tokens = steps + 1 / len(running), tokens + 1
        if steps >= LOG_INTERVAL:
            held_tok = sum(r.input_tok + sum(moment <= at_s for moment in r.token_times_s) for r in running)
            text = (
                f"Decode batch, #running-req: {len(running)}, #token: {held_tok}, "
                f"token usage: {held_tok / POOL_TOK:.2f}, cuda graph: True, "
                f"gen throughput (token/s): {tokens / (at_s - last_s):.2f}, #queue-req: 0"
            )
            lines.append((at_s, text))
            steps, tokens, last_s = 0.0, 0, at_s
    return lines


def files() -> dict[str, str]:
    """The client's log, the server's and their manifest."""
    answers = whole()
    settings = {
        "backend": "sglang-oai-chat", "dataset_name": "custom", "max_concurrency": USERS, "disable_ignore_eos": True,
        "warmup_requests": 0,
    }  # fmt: skip
    seen = [as_seen(request) for request in answers]
    made = Run(seen, tick(lasting(answers)), MODEL, settings, asked_tok=PROMPTS * LIMIT_TOK)
    server = stamped(STARTED, [*up(pool_tok=POOL_TOK, tool_call_parser="qwen25"), *decode_lines(answers)])
    roles = {"bench.log": "client", "server.log": "colocated"}
    said = manifest("Agents with tools", made, load=f"concurrency = {USERS}", files=roles)
    return {"logs/bench.log": log(made), "logs/server.log": server, "logs/sweep.toml": said}


if __name__ == "__main__":
    sys.exit(keep(HERE, files(), sys.argv[1:]))
