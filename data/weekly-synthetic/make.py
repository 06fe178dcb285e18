"""Rebuild twelve made-up weeks: `python make.py` rewrites the logs, `python make.py --check` exits 1 if they differ.

Two deployments are measured every Monday, each level three times. What was planted stands below as constants, and
SOURCES.md says what a reader should find of it. Every week has output and record of each run, and the pair's servers
say what they were started with.
"""

import json
import math
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
sys.dont_write_bytecode = True  # no __pycache__ among the logs

from _synthetic import LABEL, WORDS, Request, Run, answered, closed_loop, console, empty, keep, record, tick  # noqa: E402

MODEL = "Qwen/Qwen3-8B"
MONDAY, WEEKS, REPEATS = datetime(2026, 9, 7, 6, tzinfo=UTC), 12, 3  # 2026-W37 to 2026-W48
INPUT_TOK, OUTPUT_TOK, REQUESTS_PER_USER = 256, 64, 14
STEP_S, STEP_S_PER_USER, TTFT_S = 0.065, 0.0015, 0.12
POOL_TOK = 98_304
APART_S = 60  # from the end of one run to the start of the next

REGRESSION, REGRESSED = 0.08, (10, 11)  # of the single server at 32 users, with the engine that came in W47
ENGINES = ("0.5.22", "0.5.23")
EMPTY_WEEK = 7  # W44: every answer of every run came back empty, with HTTP 200
CHANGED, GAIN, RUNNING = 5, 1.25, (16, 64)  # from W42 the pair's decode server runs so many requests, not so few
PRINTED: dict[str, tuple[str, int, int]] = {}  # which run printed a duration at so many users
MISSING = (11, "split", 8)  # planned in W48, and nobody has seen it

TARGETS = """\
# synthetic: what the made-up team of the case wants and knows; see docs/weekly.md

[[target]]
series = ["topology=colocated", "level=32 users"]
value = 300
reason = "half of one card's share of the order"

[[note]]
date = 2026-10-26
text = "the model's folder was moved that night: every answer came back empty until noon"
"""


@dataclass(frozen=True)
class Deployment:
    """What is measured; of each level its users, and how much its speed differs from run to run."""

    name: str
    label: str
    topology: str
    gpus: int
    levels: tuple[tuple[int, float], ...]


DEPLOYMENTS = (
    Deployment("single", "Single server", "colocated", 1, ((8, 0.006), (16, 0.045), (32, 0.012))),
    Deployment("split", "Split pair", "1p1d", 2, ((8, 0.008), (32, 0.012))),
)


def slower(deployment: str, users: int, week: int) -> float:
    """How many times as long everything takes."""
    if deployment == "single" and users == 32 and week in REGRESSED:
        return 1 / (1 - REGRESSION)
    return 1 / GAIN if deployment == "split" and users == 32 and week >= CHANGED else 1.0


def measured(deployment: Deployment, week: int, repeat: int, *, users: int, spread: float, draw: int = 0) -> Run:
    """One call of the client: the whole run is a little fast or slow, its requests differ as they do.

    One that prints like another is drawn again: of two that print alike nobody can say that they are two.
    """
    rng = random.Random(f"{deployment.name} {week} {users} {repeat} {draw}")
    speed = slower(deployment.name, users, week) * math.exp(rng.gauss(0, spread))
    pace = (STEP_S + STEP_S_PER_USER * users) * speed

    def answer(_: int, start_s: float) -> Request:
        if week == EMPTY_WEEK:
            return empty(start_s=start_s, input_tok=INPUT_TOK, asked_tok=OUTPUT_TOK, e2e_s=rng.uniform(0.9, 1.1))
        return answered(
            start_s=start_s,
            input_tok=INPUT_TOK,
            ttft_s=TTFT_S * speed * rng.triangular(0.8, 1.4, 1.0),
            itls_s=[pace * rng.triangular(0.94, 1.12, 0.97) for _ in range(OUTPUT_TOK - 1)],
            words=rng.choices(WORDS, k=OUTPUT_TOK),
        )

    requests = closed_loop(users=users, count=REQUESTS_PER_USER * users, answer=answer)
    lengths = {"random_input_len": INPUT_TOK, "random_output_len": OUTPUT_TOK, "random_range_ratio": 1.0}
    settings = {"dataset_name": "random", "output_file": "result.jsonl", "seed": repeat, "max_concurrency": users}
    duration_s = tick(max(r.end_s for r in requests) + 0.004)
    printed, this = f"{users} {duration_s:.2f}", (deployment.name, week, repeat)
    if PRINTED.setdefault(printed, this) != this:
        return measured(deployment, week, repeat, users=users, spread=spread, draw=draw + 1)
    return Run(requests, duration_s, MODEL, {**lengths, **settings}, server_info(deployment, week))


def engine(week: int) -> str:
    return ENGINES[week >= REGRESSED[0]]


def server_info(deployment: Deployment, week: int) -> dict[str, object]:
    """What the client asks of the server; of a pair the router answers for both sides."""
    known = {"model_path": MODEL, "version": engine(week)}
    if deployment.topology == "colocated":
        return {**known, "disaggregation_mode": "null"}
    sides = ("prefill", "decode")
    return {side: [{**known, "disaggregation_mode": side}] for side in sides}


def server_log(mode: str, week: int, ready: datetime) -> str:
    """What a server of the pair prints when it starts."""
    arguments = {"model_path": MODEL, "tp_size": 1, "disaggregation_mode": mode}
    running = RUNNING[week >= CHANGED] if mode == "decode" else 64
    pool = f"max_total_num_tokens={POOL_TOK}, chunked_prefill_size=8192, max_prefill_tokens=16384"
    lines = (
        (30, f"server_args={arguments!r}"),
        (8, f"{pool}, max_running_requests={running}, context_len=40960, available_gpu_mem=1.94 GB"),
        (0, "The server is fired up and ready to roll!"),
    )
    told = (f"[{ready - timedelta(seconds=before):%Y-%m-%d %H:%M:%S}] {text}\n" for before, text in lines)
    return f"{LABEL}\n{''.join(told)}"


def week_files(deployment: Deployment, week: int) -> dict[str, str]:
    """One folder: the plan, output and records, and for a pair what its servers were started with."""
    ready = MONDAY + timedelta(weeks=week)
    start, runs, levels = ready + timedelta(seconds=APART_S), [], []
    for users, spread in deployment.levels:
        first = start
        if (week, deployment.name, users) != MISSING:
            for repeat in range(1, REPEATS + 1):
                run = measured(deployment, week, repeat, users=users, spread=spread)
                runs.append(run)
                start += timedelta(seconds=math.ceil(run.duration_s) + APART_S)
        levels.append(level_table(users, first, start))
    files = {
        "bench.log.gz": f"{LABEL}\n{''.join(map(console, runs))}",
        "result.jsonl.gz": "".join(json.dumps(record(run)) + "\n" for run in runs),
    }
    if deployment.topology != "colocated":
        files |= {f"server/{mode}.log": server_log(mode, week, ready) for mode in ("prefill", "decode")}
    folder = f"{deployment.name}/{MONDAY + timedelta(weeks=week):%G-W%V}"
    manifest = sweep_toml(deployment, levels, list(files))
    return {f"{folder}/{name}": text for name, text in {**files, "sweep.toml": manifest}.items()}


def level_table(users: int, first: datetime, end: datetime) -> str:
    times = f"started_at = {first:%Y-%m-%dT%H:%M:%SZ}\nended_at = {end:%Y-%m-%dT%H:%M:%SZ}"
    return f"[[level]]\nconcurrency = {users}\nprompts = {REQUESTS_PER_USER * users}\n{times}"


def sweep_toml(deployment: Deployment, levels: Sequence[str], files: Sequence[str]) -> str:
    head = [
        "# synthetic: see SOURCES.md of the case",
        f'label = "{deployment.label} (synthetic)"',
        "synthetic = true",
        f'model = "{MODEL}"',
        f'topology = "{deployment.topology}"',
        'gpu = "NVIDIA L4"',
        f"gpu_count = {deployment.gpus}",
        f"repeats = {REPEATS}",
    ]
    roles = {name: Path(name).stem if name.startswith("server/") else "client" for name in files}
    tables = [f'[[file]]\npath = "{name}"\nrole = "{role}"' for name, role in roles.items()]
    return "\n\n".join(["\n".join(head), *levels, *tables]) + "\n"


def files() -> dict[str, str]:
    """All weeks of both deployments, and what the made-up team wants and knows."""
    every = [week_files(deployment, week) for deployment in DEPLOYMENTS for week in range(WEEKS)]
    return {"targets.toml": TARGETS} | {name: text for one in every for name, text in one.items()}


if __name__ == "__main__":
    sys.exit(keep(HERE, files(), sys.argv[1:]))
