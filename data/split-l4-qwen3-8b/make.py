"""Rebuild the split-server case: `python make.py` rewrites the logs, `python make.py --check` exits 1 if they differ.

Published figures are constants; whatever the published account leaves open is made up from a seed, and SOURCES.md
says what was chosen. `_synthetic.py` one folder up writes what the client prints, `servers.py` what the servers log.
"""

import heapq
import math
import random
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
sys.dont_write_bytecode = True  # no __pycache__ among the logs

from _synthetic import (  # noqa: E402
    CLOSING_S,
    LABEL,
    WORDS,
    Request,
    Run,
    answered,
    closed_loop,
    console,
    empty,
    jsonl,
    keep,
    mean,
    tick,
)
from servers import MODEL, PREFILL_TOK_PER_S, QUANTIZATION, Session, decode_log, pools_tok, prefill_log  # noqa: E402

ASKED_TOK = 128
OPEN_LOOP, RATE_PER_S = 240, 8.0  # requests of one open-loop run, and how fast they are sent
INPUT_TOK, INPUT_TOK_TOTAL = (256, 1024), 153_600  # 240 prompts: 3759.25 input tok/s over the posted run
CLAIMED_SPLIT_TOK_PER_S, CLAIMED_SINGLE_TOK_PER_S = 751.85, 728.61
LAST_START_S = 29.88
PEAK_TOK = 12  # of the posted run: an empty answer counts as one token at its start, so these are arrivals
SPLIT_E2E_S = 10.50266  # 61.69 requests at once, by Little's law
SINGLE_E2E_S, SINGLE_TTFT_S = 11.37642, 0.89257
SINGLE_POOL_TOK = 98_304  # chosen: holds the hundred requests that the single server runs at its fullest

STEP_S, STEP_S_PER_USER = 0.067, 0.0011  # chosen: reading 8.2 GB of FP8 weights at 300 GB/s takes 27 ms; users add KV
TTFT_FLOOR_S = 0.04
TTFT_S_PER_TOK = 1 / PREFILL_TOK_PER_S + 0.000147  # the token's KV, 147 kB, then goes over TCP at 1 GB/s
EMPTY_S_PER_USER = SPLIT_E2E_S / 61.69  # the posted run handed out one empty answer in 0.17 s
BETWEEN_RUNS_S = 15  # a client needs that long to start, load its tokenizer and wait for the server

LOAD_AT_S, DIED_AFTER_S = 20.0, 180.0  # the first request of the open-loop session; the death, counted from there
CALM_STARTS_S = [4.75 * i for i in range(28)]  # what decode can follow: two requests take 9 s
RUSH_STARTS_S = [154 + 0.95 * i for i in range(28)]  # what it cannot: 6 are answered or running at the death, 22 fail
QUOTED_TOK = {32: 548, 33: 546}  # prompts of the two that run in the published decode line, so that it holds 1206
LOST_RATES_PER_S = (2, 2, 2, 4, 4, 4, 6, 6, 6, 8, 8)  # runs between the death and the posted one, the third at 8
OPEN_LOOP_READY = datetime(2026, 8, 21, 9, tzinfo=UTC)
SINGLE_STARTED = datetime(2026, 8, 21, 14, tzinfo=UTC)


@dataclass(frozen=True)
class Sweep:
    """A closed-loop sweep in one life of the pair."""

    name: str
    label: str
    ready: datetime
    port: int
    rejections: int
    levels: tuple[tuple[int, int, int], ...]  # users, prompts, answers with text


ORIGINAL = Sweep(
    name="original",
    label="Split server, original direction (synthetic)",
    ready=datetime(2026, 8, 20, 10, tzinfo=UTC),
    port=15244,
    rejections=512,
    levels=((1, 40, 40), (2, 16, 4), (4, 32, 0)),
)
SWAPPED = Sweep(
    name="swapped",
    label="Split server, swapped: decode on the larger pool (synthetic)",
    ready=datetime(2026, 8, 22, 10, tzinfo=UTC),
    port=16021,
    rejections=2_048,
    levels=((1, 40, 40), (2, 16, 16), (4, 32, 32), (8, 64, 64), (16, 64, 16), (32, 64, 0)),
)


def prompt_lengths() -> list[int]:
    """The lengths of the 240 prompts; every run sends the first of them, as one data set and one seed give."""
    rng = random.Random("prompts")
    lengths = [rng.randint(*INPUT_TOK) for _ in range(OPEN_LOOP)]
    while missing := INPUT_TOK_TOTAL - sum(lengths):
        i = rng.randrange(OPEN_LOOP)
        if INPUT_TOK[0] < lengths[i] < INPUT_TOK[1]:
            lengths[i] += 1 if missing > 0 else -1
    return lengths


PROMPTS_TOK = prompt_lengths()


def served(rng: random.Random, *, start_s: float, input_tok: int, users: int, waits_s: float = 0.0) -> Request:
    """A healthy answer among so many users; it may have waited for decode memory."""
    pace = (STEP_S + STEP_S_PER_USER * users) * rng.uniform(0.99, 1.01)
    queue = 1 + 0.3 * (users - 1) * rng.random()
    return answered(
        start_s=start_s,
        input_tok=input_tok,
        ttft_s=waits_s + TTFT_FLOOR_S + TTFT_S_PER_TOK * input_tok * queue,
        itls_s=[pace * rng.triangular(0.94, 1.12, 0.97) for _ in range(ASKED_TOK - 1)],
        words=rng.choices(WORDS, k=ASKED_TOK),
    )


def given_up(*, start_s: float, input_tok: int, e2e_s: float) -> Request:
    return empty(start_s=start_s, input_tok=input_tok, asked_tok=ASKED_TOK, e2e_s=e2e_s)


def level(name: str, *, users: int, prompts: int, returned: int) -> Run:
    """One level of a sweep; only the first answers have text."""
    rng = random.Random(f"{name} {users}")

    def answer(i: int, start_s: float) -> Request:
        if i < returned:
            return served(rng, start_s=start_s, input_tok=PROMPTS_TOK[i], users=users)
        e2e_s = EMPTY_S_PER_USER * users * rng.uniform(0.9, 1.1)
        return given_up(start_s=start_s, input_tok=PROMPTS_TOK[i], e2e_s=e2e_s)

    requests = closed_loop(users=users, count=prompts, answer=answer)
    duration_s = tick(max(r.end_s for r in requests) + 0.004)
    return client_run(name, requests, duration_s=duration_s, load={"max_concurrency": users})


def arrivals(rng: random.Random) -> list[float]:
    """Poisson arrivals, given the last one, with as many in the fullest second as the posted run shows."""
    while True:
        starts = sorted([0.0, LAST_START_S, *(tick(rng.uniform(0, LAST_START_S)) for _ in range(OPEN_LOOP - 2))])
        seconds = [int(s) for s in starts]
        if max(map(seconds.count, seconds)) == PEAK_TOK:
            return starts


def posted_run() -> Run:
    """240 empty answers."""
    rng = random.Random("open-loop")
    starts = arrivals(rng)
    spread = [rng.triangular(-0.3, 0.3) for _ in starts]
    requests = [
        given_up(start_s=start_s, input_tok=input_tok, e2e_s=SPLIT_E2E_S + extra - mean(spread))
        for start_s, input_tok, extra in zip(starts, PROMPTS_TOK, spread, strict=True)
    ]
    return open_loop("split", requests, claimed_tok_per_s=CLAIMED_SPLIT_TOK_PER_S)


def baseline_run() -> Run:
    """The single server under the same arrivals: slower while more requests run, and all text there."""
    rng = random.Random("open-loop")
    starts = arrivals(rng)
    ttfts = [rng.triangular(0.3, 2.0, 0.5) for _ in starts]
    gaps = [[crowding(s + 0.08 * k) * rng.uniform(0.9, 1.1) for k in range(ASKED_TOK - 1)] for s in starts]
    ttft_factor = SINGLE_TTFT_S / mean(ttfts)
    gap_factor = (SINGLE_E2E_S - SINGLE_TTFT_S - CLOSING_S) / mean([math.fsum(row) for row in gaps])
    requests = [
        answered(
            start_s=start_s,
            input_tok=input_tok,
            ttft_s=ttft_factor * ttft_s,
            itls_s=[gap_factor * gap for gap in row],
            words=rng.choices(WORDS, k=ASKED_TOK),
        )
        for start_s, input_tok, ttft_s, row in zip(starts, PROMPTS_TOK, ttfts, gaps, strict=True)
    ]
    return open_loop("single", requests, claimed_tok_per_s=CLAIMED_SINGLE_TOK_PER_S)


def crowding(at_s: float) -> float:
    """How slow the single server is: it fills for 11 s, stays full while requests arrive and drains after."""
    return 0.6 + 0.4 * max(0.0, min(at_s / 11, 1.0, 1 - (at_s - LAST_START_S) / 16))


def open_loop(name: str, requests: Sequence[Request], *, claimed_tok_per_s: float) -> Run:
    """The duration that the claim implies: the client divides the tokens that it asked for by it."""
    duration_s = tick(OPEN_LOOP * ASKED_TOK / claimed_tok_per_s)
    return client_run(name, requests, duration_s=duration_s, load={"request_rate": RATE_PER_S})


def client_run(name: str, requests: Sequence[Request], *, duration_s: float, load: Mapping[str, object]) -> Run:
    """The settings that all runs share: own prompts of mixed length, 128 tokens back, no warm-up, all details kept."""
    shared = {"dataset_name": "custom", "sharegpt_output_len": ASKED_TOK, "warmup_requests": 0}
    written = {"output_file": "result.jsonl", "output_details": True}
    return Run(requests, duration_s, MODEL, {**shared, **written, **load}, server_info(name))


def server_info(name: str) -> dict[str, object]:
    """What the client asks of the server after the run; the router answers for both sides of a pair."""
    if name == "single":
        return server_state("null", SINGLE_POOL_TOK)
    prefill_tok, decode_tok = pools_tok(name)
    return {"prefill": [server_state("prefill", prefill_tok)], "decode": [server_state("decode", decode_tok)]}


def server_state(mode: str, pool_tok: int) -> dict[str, object]:
    known = {"model_path": MODEL, "version": "0.5.23", "disaggregation_mode": mode, "tp_size": 1, "dp_size": 1}
    state = {"max_total_num_tokens": pool_tok, "internal_states": [{"avg_spec_accept_length": None}]}
    return {**known, **state, "quantization": QUANTIZATION}


def before_the_death() -> list[Request]:
    """Two runs whose client logs were not kept; decode holds two requests at a time."""
    rng = random.Random("before")
    free_s = [0.0, 0.0]
    requests = []
    for i, start_s in enumerate([*CALM_STARTS_S, *RUSH_STARTS_S]):
        input_tok = QUOTED_TOK.get(i, PROMPTS_TOK[i])
        begins_s = max(start_s, free_s[0])
        if begins_s < DIED_AFTER_S:
            request = served(rng, start_s=start_s, input_tok=input_tok, users=2, waits_s=begins_s - start_s)
            heapq.heapreplace(free_s, request.end_s)
        else:
            e2e_s = DIED_AFTER_S - start_s + rng.uniform(0.02, 0.5)
            request = given_up(start_s=start_s, input_tok=input_tok, e2e_s=e2e_s)
        requests.append(request)
    return later(requests, LOAD_AT_S)


def lost_run(rng: random.Random, rate_per_s: float) -> list[Request]:
    """One run after the death; its answers take as long to come back empty as those of the posted run."""
    starts = sorted(rng.uniform(0, OPEN_LOOP / rate_per_s) for _ in range(OPEN_LOOP))
    return [
        given_up(start_s=start_s, input_tok=input_tok, e2e_s=SPLIT_E2E_S + rng.triangular(-0.3, 0.3))
        for start_s, input_tok in zip(starts, PROMPTS_TOK, strict=True)
    ]


def later(requests: Sequence[Request], seconds: float) -> list[Request]:
    return [replace(r, start_s=r.start_s + seconds) for r in requests]


def next_start_s(requests: Sequence[Request]) -> int:
    """The whole second at which the next client starts to send."""
    return int(max(r.end_s for r in requests)) + BETWEEN_RUNS_S


def open_loop_files() -> dict[str, str]:
    """The posted run with the whole life of its servers, and its baseline with no server log."""
    rng = random.Random("lost")
    posted, seen = posted_run(), before_the_death()
    for rate_per_s in LOST_RATES_PER_S:
        seen += later(lost_run(rng, rate_per_s), next_start_s(seen))
    posted_s = next_start_s(seen)
    seen += later(posted.requests, posted_s)
    session = Session("split", OPEN_LOOP_READY, seen, port=15367, rejections=4_096)
    servers = {
        "server/prefill.log.gz": prefill_log(session),
        "server/decode.log": decode_log(session),
    }
    started = OPEN_LOOP_READY + timedelta(seconds=posted_s)
    return {
        **one_run("open-loop/split", "Split server as posted (synthetic)", posted, started=started, servers=servers),
        **one_run("open-loop/baseline", "Single FP8 server (synthetic)", baseline_run(), started=SINGLE_STARTED),
    }


def one_run(
    folder: str, label: str, run: Run, *, started: datetime, servers: Mapping[str, str] | None = None
) -> dict[str, str]:
    client = {"bench.log": f"{LABEL}\n{console(run)}", "result.jsonl": jsonl([run])}
    levels = [level_table(f"request_rate = {RATE_PER_S}", run, started)]
    return experiment(folder, label, levels=levels, client=client, servers=servers or {})


def sweep_files(sweep: Sweep) -> dict[str, str]:
    """One sweep: a log and a record for each level, and what both servers said meanwhile."""
    runs, levels, client, seen = [], [], {}, []
    for users, prompts, returned in sweep.levels:
        run = level(sweep.name, users=users, prompts=prompts, returned=returned)
        start_s = next_start_s(seen) if seen else BETWEEN_RUNS_S
        levels.append(level_table(f"concurrency = {users}", run, sweep.ready + timedelta(seconds=start_s)))
        client[f"users-{users}.log"] = f"{LABEL}\n{console(run)}"
        runs.append(run)
        seen += later(run.requests, start_s)
    session = Session(sweep.name, sweep.ready, seen, sweep.port, sweep.rejections)
    servers = {"server/prefill.log": prefill_log(session), "server/decode.log": decode_log(session)}
    client["result.jsonl"] = jsonl(runs)
    return experiment(sweep.name, sweep.label, levels=levels, client=client, servers=servers)


def experiment(
    folder: str, label: str, *, levels: Sequence[str], client: Mapping[str, str], servers: Mapping[str, str]
) -> dict[str, str]:
    """The files of one folder with its sweep.toml; without logs of two servers it is one server."""
    roles = dict.fromkeys(client, "client") | {name: Path(name).name.split(".")[0] for name in servers}
    head = [
        "# synthetic: see SOURCES.md of the case",
        f'label = "{label}"',
        "synthetic = true",
        f'model = "{MODEL}"',
        f'topology = "{"1p1d" if servers else "colocated"}"',
        'gpu = "NVIDIA L4"',
        f"gpu_count = {2 if servers else 1}",
    ]
    tables = [f'[[file]]\npath = "{name}"\nrole = "{role}"' for name, role in roles.items()]
    manifest = "\n\n".join(["\n".join(head), *levels, *tables]) + "\n"
    return {f"{folder}/{name}": text for name, text in {**client, **servers, "sweep.toml": manifest}.items()}


def level_table(load: str, run: Run, started: datetime) -> str:
    """One planned level; its times hold the measured requests, to the whole second outwards."""
    ended = started + timedelta(seconds=math.ceil(run.duration_s))
    times = f"started_at = {started:%Y-%m-%dT%H:%M:%SZ}\nended_at = {ended:%Y-%m-%dT%H:%M:%SZ}"
    return f"[[level]]\n{load}\nprompts = {len(run.requests)}\n{times}"


if __name__ == "__main__":
    sys.exit(keep(HERE, open_loop_files() | sweep_files(ORIGINAL) | sweep_files(SWAPPED), sys.argv[1:]))
