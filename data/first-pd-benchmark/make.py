"""Rebuild the first benchmark of a new deployment: `python make.py`, or `python make.py --check` to compare only.

One sweep is made up; the other folders hold what is left of it in a log that a grep filtered, after a crash,
and when the script was launched from a path where it is not.
"""

import random
import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
sys.dont_write_bytecode = True  # no __pycache__ among the logs

from _synthetic import LABEL, WORDS, Request, Run, answered, closed_loop, console, keep, tick  # noqa: E402

MODEL = "DeepSeek-V4-Flash"
LEVELS = ((1, 6), (8, 24), (16, 32))  # users, prompts: the script's `1:6 8:24 16:32`
TOKENS = 256  # in and out
# Chosen: a little above the single node's 10 tok/s at one user and 25 at 16, and far below the target of 1000.
STEP_S = {1: 0.083, 8: 0.232, 16: 0.405}
TTFT_S = {1: 0.9, 8: 2.1, 16: 3.4}
HEADING = "===== PD concurrency={users} (n={prompts}) ====="
KEPT = re.compile(  # what the script's grep lets through
    "Successful requests|Benchmark duration|Output token throughput|Total token throughput|"
    "Mean TPOT|Median TPOT|Mean TTFT|Median TTFT|Mean E2E",
    re.IGNORECASE,
)
NOT_FOUND = "bash: /run_pd_bench.sh: No such file or directory\n"
LABELS = {
    "healthy": "First PD benchmark, whole log (synthetic)",
    "filtered": "First PD benchmark, log filtered by grep (synthetic)",
    "crashed": "First PD benchmark, crashed at 16 users (synthetic)",
    "never-started": "First PD benchmark, never started (synthetic)",
}


def level(users: int, prompts: int) -> Run:
    """One call of the client; every answer is whole."""
    rng = random.Random(f"first {users}")

    def answer(_: int, start_s: float) -> Request:
        pace = STEP_S[users] * rng.uniform(0.98, 1.02)
        return answered(
            start_s=start_s,
            input_tok=TOKENS,
            ttft_s=TTFT_S[users] * rng.triangular(0.4, 2.0, 0.8),
            itls_s=[pace * rng.triangular(0.9, 1.2, 0.95) for _ in range(TOKENS - 1)],
            words=rng.choices(WORDS, k=TOKENS),
        )

    requests = closed_loop(users=users, count=prompts, answer=answer)
    lengths = {"random_input_len": TOKENS, "random_output_len": TOKENS, "random_range_ratio": 1.0}
    duration_s = tick(max(r.end_s for r in requests) + 0.005)
    return Run(requests, duration_s, MODEL, {**lengths, "max_concurrency": users})


def manifest(name: str) -> str:
    """sweep.toml: the same plan in every folder, whatever came of it."""
    head = [
        "# synthetic: see SOURCES.md of the case",
        f'label = "{LABELS[name]}"',
        "synthetic = true",
        f'model = "{MODEL}"',
        'topology = "1p1d"',
        'gpu = "Blackwell (sm_120)"',
        "gpu_count = 8",
        'end_marker = "ALL_DONE"',
    ]
    levels = [f"[[level]]\nconcurrency = {users}\nprompts = {prompts}" for users, prompts in LEVELS]
    return "\n\n".join(["\n".join(head), *levels, '[[file]]\npath = "pd_bench.log"\nrole = "client"']) + "\n"


def files() -> dict[str, str]:
    """The four logs, each with its plan."""
    headings = [HEADING.format(users=users, prompts=prompts) for users, prompts in LEVELS]
    whole = [console(level(users, prompts)) for users, prompts in LEVELS]
    kept = ["".join(line for line in text.splitlines(keepends=True) if KEPT.search(line)) for text in whole]
    logs = {
        "healthy": told(headings, whole) + "ALL_DONE\n",
        "filtered": told(headings, kept) + "ALL_DONE\n",
        "crashed": told(headings, [*kept[:2], ""]),
        "never-started": NOT_FOUND,
    }
    found = {f"{name}/pd_bench.log": log for name, log in logs.items()}
    return found | {f"{name}/sweep.toml": manifest(name) for name in logs}


def told(headings: list[str], outputs: list[str]) -> str:
    """What the script's one log file holds."""
    return LABEL + "\n" + "".join(f"{h}\n{output}" for h, output in zip(headings, outputs, strict=True))


if __name__ == "__main__":
    sys.exit(keep(HERE, files(), sys.argv[1:]))
