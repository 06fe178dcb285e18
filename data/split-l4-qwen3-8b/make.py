"""Rebuild the split-server case: `python make.py` rewrites the logs, `python make.py --check` exits 1 if they differ.

Published figures are constants below; whatever the published material leaves open is made up from a seed,
and SOURCES.md says what was chosen.
"""

import heapq
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from _synthetic import LABEL, WORDS, Request, Run, answered, console, empty, jsonl, keep, mean, tick  # noqa: E402

MODEL = "Qwen/Qwen3-8B"
ASKED_TOK = 128
OPEN_LOOP = 240  # requests of one open-loop run, 8 a second
INPUT_TOK = (256, 1024)
INPUT_TOK_TOTAL = 153_600  # of the 240 prompts: 3759.25 input tok/s over the posted run
SMALL_POOL_TOK, LARGE_POOL_TOK = 2_925, 24_094
SINGLE_POOL_TOK = 52_480  # chosen: holds the 65 requests that the single server runs at once
QUOTED = {"running": 2, "held_tok": 1_206, "waiting": 19}  # of the published decode line
SESSION = "192.0.2.41:15367"  # a documentation address stands for the published one
OPEN_LOOP_REJECTIONS = 4_096
OPEN_LOOP_FAILURES = 2_902

CLAIMED_SPLIT_TOK_PER_S, CLAIMED_SINGLE_TOK_PER_S = 751.85, 728.61
LAST_START_S = 29.88
PEAK_TOK = 12  # of the posted run: an empty answer counts as one token at its start, so these are arrivals
SPLIT_E2E_S = 10.50266  # 61.69 requests at once, by Little's law
SINGLE_E2E_S, SINGLE_TTFT_S = 11.37642, 0.89257

STEP_S, STEP_S_PER_USER = 0.059, 0.0011  # 16.4 GB of weights at 300 GB/s are 55 ms; each request adds its KV
PREFILL_TOK_PER_S = 3_800  # on one L4: near what the posted run gave, and half of the card's peak
PREFILL_S_PER_TOK = 1 / PREFILL_TOK_PER_S + 0.000147  # then the token's KV, 147 kB, over TCP at 1 GB/s
CHUNK_TOK = 8_192
TTFT_FLOOR_S = 0.04
EMPTY_S_PER_USER = SPLIT_E2E_S / 61.69  # the posted run handed out one empty answer in 0.17 s
BETWEEN_RUNS_S = 15  # a client needs that long to start, load its tokenizer and wait for the server
PREFIX = "[{:%Y-%m-%d %H:%M:%S}] "
LONG_WAIT_S = 3  # a request that waits longer for its first token waits for decode memory, not for prefill
LOG_INTERVAL = 40  # decode steps from one line to the next


def inputs() -> list[int]:
    """The lengths of the 240 prompts; every run sends the first of them, as one data set and one seed give."""
    rng = random.Random("prompts")
    lengths = [rng.randint(*INPUT_TOK) for _ in range(OPEN_LOOP)]
    while (missing := INPUT_TOK_TOTAL - sum(lengths)) != 0:
        i, step = rng.randrange(OPEN_LOOP), 1 if missing > 0 else -1
        if INPUT_TOK[0] < lengths[i] < INPUT_TOK[1]:
            lengths[i] += step
    return lengths


INPUTS = inputs()


# ---- the requests


def closed_loop(name: str, *, users: int, prompts: int, returned: int) -> Run:
    """One level of a sweep: each user sends the next prompt when an answer is there; the first ones get theirs."""
    rng = random.Random(f"{name} {users}")
    free = [0.0] * users
    requests = []
    for i, input_tok in enumerate(INPUTS[:prompts]):
        start_s = heapq.heappop(free)
        if i < returned:
            request = served(rng, start_s=start_s, input_tok=input_tok, users=users)
        else:
            e2e_s = EMPTY_S_PER_USER * users * rng.uniform(0.9, 1.1)
            request = empty(start_s=start_s, input_tok=input_tok, asked_tok=ASKED_TOK, e2e_s=e2e_s)
        requests.append(request)
        heapq.heappush(free, request.end_s + 0.001)
    settings = {"max_concurrency": users}
    return client_run(requests, duration_s=max(r.end_s for r in requests) + 0.004, settings=settings, name=name)


def served(rng: random.Random, *, start_s: float, input_tok: int, users: int) -> Request:
    """A healthy answer among so many users."""
    pace = (STEP_S + STEP_S_PER_USER * users) * rng.uniform(0.99, 1.01)
    queue = 1 + 0.3 * (users - 1) * rng.random()
    gaps = [pace * rng.triangular(0.94, 1.12, 0.97) for _ in range(ASKED_TOK - 1)]
    ttft_s = TTFT_FLOOR_S + PREFILL_S_PER_TOK * input_tok * queue
    words = rng.choices(WORDS, k=ASKED_TOK)
    return answered(start_s=start_s, input_tok=input_tok, ttft_s=ttft_s, itls_s=gaps, words=words)


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
        empty(start_s=start_s, input_tok=i, asked_tok=ASKED_TOK, e2e_s=SPLIT_E2E_S + d - mean(spread))
        for start_s, i, d in zip(starts, INPUTS, spread, strict=True)
    ]
    return open_loop_run(requests, CLAIMED_SPLIT_TOK_PER_S, name="split")


def baseline_run() -> Run:
    """The single server under the same arrivals: slower while more requests run, and all text there."""
    rng = random.Random("open-loop")
    starts = arrivals(rng)
    ttfts = scaled([rng.triangular(0.3, 2.0, 0.5) for _ in starts], SINGLE_TTFT_S)
    gaps = [[crowding(start_s + 0.08 * k) * rng.uniform(0.9, 1.1) for k in range(ASKED_TOK - 1)] for start_s in starts]
    factor = (SINGLE_E2E_S - SINGLE_TTFT_S) / mean([sum(g) for g in gaps])
    requests = [
        answered(
            start_s=start_s,
            input_tok=input_tok,
            ttft_s=ttft_s,
            itls_s=[factor * g for g in row],
            words=rng.choices(WORDS, k=ASKED_TOK),
        )
        for start_s, input_tok, ttft_s, row in zip(starts, INPUTS, ttfts, gaps, strict=True)
    ]
    return open_loop_run(requests, CLAIMED_SINGLE_TOK_PER_S, name="single")


def crowding(at_s: float) -> float:
    """How full the single server is: it fills for 11 s, stays full while requests arrive and drains after."""
    return 0.6 + 0.4 * max(0.0, min(at_s / 11, 1.0, 1 - (at_s - LAST_START_S) / 16))


def scaled(values: Sequence[float], target: float) -> list[float]:
    return [v * target / mean(values) for v in values]


def open_loop_run(requests: Sequence[Request], claimed_tok_per_s: float, *, name: str) -> Run:
    duration_s = tick(OPEN_LOOP * ASKED_TOK / claimed_tok_per_s)
    return client_run(requests, duration_s=duration_s, settings={"request_rate": 8.0}, name=name)


def client_run(requests: Sequence[Request], *, duration_s: float, settings: dict[str, object], name: str) -> Run:
    """The settings that all runs share: own prompts of mixed length, 128 tokens back, no warm-up, all details kept."""
    shared = {"dataset_name": "custom", "sharegpt_output_len": ASKED_TOK, "warmup_requests": 0}
    written = {"output_file": "result.jsonl", "output_details": True}
    return Run(requests, duration_s, MODEL, {**shared, **written, **settings}, server_info(name))


def server_info(name: str) -> dict[str, object]:
    """What the client asks of the server after the run; the router answers for both sides of a pair."""
    if name == "single":
        return server_state("null", SINGLE_POOL_TOK) | {"quantization": "fp8"}
    prefill, decode = pools(name)
    return {"prefill": [server_state("prefill", prefill)], "decode": [server_state("decode", decode)]}


def server_state(mode: str, pool_tok: int) -> dict[str, object]:
    known = {"model_path": MODEL, "version": "0.5.23", "disaggregation_mode": mode, "tp_size": 1, "dp_size": 1}
    return {**known, "max_total_num_tokens": pool_tok, "internal_states": [{"avg_spec_accept_length": None}]}


def pools(name: str) -> tuple[int, int]:
    """Tokens that prefill and decode can hold."""
    return (SMALL_POOL_TOK, LARGE_POOL_TOK) if name == "swapped" else (LARGE_POOL_TOK, SMALL_POOL_TOK)


# ---- the servers


@dataclass(frozen=True)
class DecodeSample:
    """What one decode line says."""

    at_s: float
    running: int
    held_tok: int
    waiting: int
    tok_per_s: float

    def line(self, pool_tok: int) -> str:
        return (
            f"Decode batch, #running-req: {self.running}, #token: {self.held_tok}, "
            f"token usage: {self.held_tok / pool_tok:.2f}, pre-allocated usage: 0.00, #prealloc-req: {self.waiting}, "
            f"#transfer-req: 0, #retracted-req: 0, cuda graph: True, "
            f"gen throughput (token/s): {self.tok_per_s:.2f}, #queue-req: 0"
        )


@dataclass(frozen=True)
class Session:
    """One life of the pair: when it was ready, every request that it saw (seconds from there), and how it ended."""

    name: str
    ready: datetime
    requests: Sequence[Request]
    session: str
    rejections: int

    @property
    def failed(self) -> list[Request]:
        return [r for r in self.requests if not r.text]

    @property
    def died_s(self) -> float:
        return min(map(failed_s, self.failed))


def failed_s(request: Request) -> float:
    """The transfer fails a moment before the empty answer reaches the client."""
    return request.end_s - 0.02


def prefill_log(session: Session) -> str:
    pool_tok, _ = pools(session.name)
    lines = [*start_up("prefill", pool_tok), *prefill_batches(session.requests, pool_tok), *failures(session)]
    return server_log(session.ready, lines)


def decode_log(session: Session, *, quoted_at_s: float | None = None) -> str:
    """The decode side; the line nearest to that moment says what was published."""
    _, pool_tok = pools(session.name)
    samples = list(decode_samples(session.requests))
    if quoted_at_s:
        near = min(range(len(samples)), key=lambda i: abs(samples[i].at_s - quoted_at_s))
        samples[near] = replace(samples[near], **QUOTED)
    lines = [(s.at_s, PREFIX + s.line(pool_tok)) for s in samples]
    return server_log(session.ready, [*start_up("decode", pool_tok), *lines])


def server_log(ready: datetime, lines: list[tuple[float, str]]) -> str:
    """The lines in order of time; one that happens at the same moment as another keeps its place."""
    ordered = sorted(lines, key=lambda line: line[0])
    return "\n".join([LABEL, *(text.format(ready + timedelta(seconds=at_s)) for at_s, text in ordered)]) + "\n"


def start_up(mode: str, pool_tok: int) -> list[tuple[float, str]]:
    gigabytes = pool_tok * 36 * 8 * 128 * 2 / 2**30  # layers, KV heads, head size, bytes: K or V of one token
    arguments = {
        "model_path": MODEL, "tp_size": 1, "disaggregation_mode": mode, "disaggregation_transfer_backend": "mooncake",
        "disable_radix_cache": True, "log_level_http": "warning",
    }  # fmt: skip
    said = [
        (-30, f"server_args={arguments}".replace("{", "{{").replace("}", "}}")),
        (-9, f"KV Cache is allocated. dtype: torch.bfloat16, #tokens: {pool_tok}, "
             f"K size: {gigabytes:.2f} GB, V size: {gigabytes:.2f} GB"),
        (-8, f"max_total_num_tokens={pool_tok}, chunked_prefill_size={CHUNK_TOK}, max_prefill_tokens=16384, "
             f"max_running_requests=2048, context_len=40960, available_gpu_mem=1.94 GB"),
        (0, "The server is fired up and ready to roll!"),
    ]  # fmt: skip
    return [(at_s, PREFIX + text) for at_s, text in said]


def prefill_batches(requests: Sequence[Request], pool_tok: int) -> Iterator[tuple[float, str]]:
    """Prompts are taken in order of arrival, as many at once as fit; with the cache off every token is new."""
    queue = sorted(requests, key=lambda r: r.start_s)
    at_s = last_s = 0.0
    while queue:
        at_s = max(at_s, queue[0].start_s)
        batch = list(fitting(queue, at_s, min(pool_tok, CHUNK_TOK)))
        queue = queue[len(batch) :]
        new_tok = sum(r.input_tok for r in batch)
        arrived = [r for r in queue if r.start_s <= at_s]
        held = [r for r in requests if r.start_s < at_s < r.start_s + (r.ttft_s or r.e2e_s)]
        inflight = max(0, len(held) - len(batch) - len(arrived))
        pending_tok = sum(r.input_tok for r in arrived)
        yield at_s, PREFIX + (
            f"Prefill batch, #new-seq: {len(batch)}, #new-token: {new_tok}, #cached-token: 0, "
            f"token usage: {min(1.0, new_tok / pool_tok):.2f}, #running-req: 0, #queue-req: {len(arrived)}, "
            f"#pending-token: {pending_tok}, #bootstrap-req: 0, #inflight-req: {inflight}, #optimistic-req: 0, "
            f"cuda graph: False, input throughput (token/s): {new_tok / (at_s - last_s):.2f}"
        )
        last_s, at_s = at_s, at_s + new_tok / PREFILL_TOK_PER_S


def fitting(queue: Sequence[Request], at_s: float, room_tok: int) -> Iterator[Request]:
    """The first requests of the queue that have arrived and fit together; the very first always does."""
    for i, request in enumerate(queue):
        room_tok -= request.input_tok
        if i and (request.start_s > at_s or room_tok < 0):
            return
        yield request


def failures(session: Session) -> Iterator[tuple[float, str]]:
    """The lanes reject, the session dies, and every transfer after it fails."""
    yield from ((session.died_s - 0.015 + 0.001 * k, lane_line(2**k)) for k in range(session.rejections.bit_length()))
    yield session.died_s, PREFIX + f"Session {session.session} failed."
    rng = random.Random(session.name)
    for request in sorted(session.failed, key=failed_s):
        rid, room = f"{rng.getrandbits(128):032x}", rng.getrandbits(62)
        first = failed_s(request) == session.died_s
        reason = (
            f"Failed to send kv chunk of {room} to 192.0.2.41:41873"
            if first
            else f"Decode instance could be dead, remote mooncake session {session.session} is not alive"
        )
        yield failed_s(request), PREFIX + (
            f"Prefill transfer failed for request rank=0 req.rid='{rid}' req.bootstrap_room={room} "
            f"with exception KVTransferError(bootstrap_room={room}): {reason}"
        )


def lane_line(count: int) -> str:
    """Mooncake's own log prefix, which names no year."""
    at = "tcp_transport_lane_impl.h:1178] TCP lane queue-full rejection count:"
    return "W{:%m%d %H:%M:%S.%f}  3391 " + f"{at} {count}"


def decode_samples(requests: Sequence[Request]) -> Iterator[DecodeSample]:
    """One sample in 40 steps; a step gives each running request one token, the first comes from prefill."""
    times = sorted((t, i) for i, r in enumerate(requests) if r.text for t in r.token_times_s[1:])
    steps, tokens, last_s = 0.0, 0, 0.0
    for at_s, i in times:
        running = [r for r in requests if r.text and r.start_s + r.ttft_s < at_s <= r.end_s]
        steps, tokens = steps + 1 / len(running), tokens + 1
        if steps >= LOG_INTERVAL:
            held = sum(r.input_tok + sum(t <= at_s for t in r.token_times_s) for r in running)
            waiting = sum(r.start_s < at_s <= r.start_s + w for r in requests if (w := r.ttft_s or r.e2e_s) > LONG_WAIT_S)
            yield DecodeSample(at_s, len(running), held, waiting, tokens / (at_s - last_s))
            steps, tokens, last_s = 0.0, 0, at_s


# ---- the two days and their files

OPEN_LOOP_READY = datetime(2026, 8, 21, 9, 0, tzinfo=UTC)
LOAD_AT_S, DIED_AFTER_S = 20.0, 180.0
QUOTED_AT_S = LOAD_AT_S + 177.5  # the run of one request a second has 19 waiting by then
SINGLE_STARTED = datetime(2026, 8, 21, 14, 0, tzinfo=UTC)
LOST_RATES = (2, 2, 2, 4, 4, 4, 6, 6, 6, 8, 8)  # runs between the death and the posted one: its third repeat at 8


def before_the_death() -> list[Request]:
    """Two runs whose client logs were not kept: 28 requests that decode can serve, then one a second, which it cannot.

    The second leaves 19 of 21 waiting after 26 s. When the session dies, 8 of its 30 are answered or running, 22 fail.
    """
    rng = random.Random("before")
    free = [0.0, 0.0]  # decode holds two requests
    requests = []
    for start_s, input_tok in zip([*(4.5 * i for i in range(28)), *(150.0 + i for i in range(30))], INPUTS, strict=False):
        alone = served(rng, start_s=start_s, input_tok=input_tok, users=2)
        waits_s = max(0.0, heapq.heappop(free) - start_s)
        if start_s + waits_s < DIED_AFTER_S:
            request = replace(alone, ttft_s=alone.ttft_s + waits_s, e2e_s=alone.e2e_s + waits_s)
        else:
            e2e_s = DIED_AFTER_S - start_s + rng.uniform(0.02, 0.5)
            request = empty(start_s=start_s, input_tok=input_tok, asked_tok=ASKED_TOK, e2e_s=e2e_s)
        requests.append(request)
        heapq.heappush(free, request.end_s if request.text else float("inf"))
    return later(requests, LOAD_AT_S)


def lost_run(rng: random.Random, rate_per_s: float) -> list[Request]:
    """One run after the death; its answers take as long to come back empty as those of the posted run."""
    starts = sorted(rng.uniform(0, OPEN_LOOP / rate_per_s) for _ in range(OPEN_LOOP))
    return [
        empty(start_s=s, input_tok=i, asked_tok=ASKED_TOK, e2e_s=SPLIT_E2E_S + rng.triangular(-0.3, 0.3))
        for s, i in zip(starts, INPUTS, strict=True)
    ]


def later(requests: Sequence[Request], seconds: float) -> list[Request]:
    return [replace(r, start_s=r.start_s + seconds) for r in requests]


def after(requests: Sequence[Request]) -> int:
    """The whole second at which the next client starts to send."""
    return int(max(r.end_s for r in requests)) + BETWEEN_RUNS_S


def open_loop_session(posted: Run) -> tuple[Session, datetime]:
    """The servers' whole life, and when the posted run began in it."""
    rng = random.Random("lost")
    requests = before_the_death()
    for rate_per_s in LOST_RATES:
        requests += later(lost_run(rng, rate_per_s), after(requests))
    posted_s = after(requests)
    requests += later(posted.requests, posted_s)
    session = Session("split", OPEN_LOOP_READY, requests, SESSION, OPEN_LOOP_REJECTIONS)
    return session, OPEN_LOOP_READY + timedelta(seconds=posted_s)


@dataclass(frozen=True)
class Sweep:
    """A closed-loop sweep in one life of the pair."""

    name: str
    label: str
    ready: datetime
    session: str
    rejections: int
    levels: tuple[tuple[int, int, int], ...]  # users, prompts, answers with text

    def runs(self) -> list[Run]:
        return [closed_loop(self.name, users=u, prompts=p, returned=r) for u, p, r in self.levels]


ORIGINAL = Sweep(
    name="original",
    label="Split server, original direction (synthetic)",
    ready=datetime(2026, 8, 20, 10, 0, tzinfo=UTC),
    session="192.0.2.41:15244",
    rejections=512,
    levels=((1, 40, 40), (2, 16, 4), (4, 32, 0)),
)
SWAPPED = Sweep(
    name="swapped",
    label="Split server, swapped: decode on the larger pool (synthetic)",
    ready=datetime(2026, 8, 22, 10, 0, tzinfo=UTC),
    session="192.0.2.41:16021",
    rejections=2_048,
    levels=((1, 40, 40), (2, 16, 16), (4, 32, 32), (8, 64, 64), (16, 64, 16), (32, 64, 0)),
)


def sweep_files(sweep: Sweep) -> dict[str, str]:
    """Client logs, one record a level, server logs and the manifest of one sweep."""
    runs = sweep.runs()
    requests, tables, client = [], [], {}
    at_s = BETWEEN_RUNS_S
    for (users, prompts, _), run in zip(sweep.levels, runs, strict=True):
        tables.append(level(f"concurrency = {users}", prompts, sweep.ready + timedelta(seconds=at_s), run))
        client[f"users-{users}.log"] = f"{LABEL}\n{console(run)}"
        requests += later(run.requests, at_s)
        at_s = after(requests)
    session = Session(sweep.name, sweep.ready, requests, sweep.session, sweep.rejections)
    servers = {"server/prefill.log": prefill_log(session), "server/decode.log": decode_log(session)}
    text = manifest(sweep.label, tables, client=[*client, "result.jsonl"], servers=list(servers))
    files = {**client, "result.jsonl": jsonl(runs), **servers, "sweep.toml": text}
    return {f"{sweep.name}/{name}": text for name, text in files.items()}


def open_loop_files() -> dict[str, str]:
    """The posted run with the servers' logs, and its baseline without."""
    posted, single = posted_run(), baseline_run()
    session, started = open_loop_session(posted)
    servers = {"server/prefill.log.gz": prefill_log(session), "server/decode.log": decode_log(session, quoted_at_s=QUOTED_AT_S)}
    label = "Split server, 8 requests/s, as posted (synthetic)"
    return {
        **one_run("open-loop/split", label, posted, started, servers),
        **one_run("open-loop/baseline", "Single FP8 server, 8 requests/s (synthetic)", single, SINGLE_STARTED, {}),
    }


def one_run(folder: str, label: str, run: Run, started: datetime, servers: dict[str, str]) -> dict[str, str]:
    tables = [level("request_rate = 8.0", OPEN_LOOP, started, run)]
    client = {"bench.log": f"{LABEL}\n{console(run)}", "result.jsonl": jsonl([run])}
    files = {**client, **servers, "sweep.toml": manifest(label, tables, client=list(client), servers=list(servers))}
    return {f"{folder}/{name}": text for name, text in files.items()}


def level(load: str, prompts: int, started: datetime, run: Run) -> str:
    """One planned level; its times hold the measured requests, to the whole second outwards."""
    ended = started + timedelta(seconds=int(run.duration_s) + 1)
    times = f"started_at = {started:%Y-%m-%dT%H:%M:%SZ}\nended_at = {ended:%Y-%m-%dT%H:%M:%SZ}"
    return f"[[level]]\n{load}\nprompts = {prompts}\n{times}\n"


def manifest(label: str, tables: Sequence[str], *, client: Sequence[str], servers: Sequence[str]) -> str:
    """sweep.toml: one server if there are no logs of two."""
    roles = [*((name, "client") for name in client), *((name, Path(name).name.split(".")[0]) for name in servers)]
    files = [f'[[file]]\npath = "{name}"\nrole = "{role}"\n' for name, role in roles]
    head = [
        "# Synthetic: see SOURCES.md in the folder above",
        f'label = "{label}"',
        "synthetic = true",
        f'model = "{MODEL}"',
        f'topology = "{"1p1d" if servers else "colocated"}"',
        'gpu = "NVIDIA L4"',
        f"gpu_count = {2 if servers else 1}\n",
    ]
    return "\n".join(["\n".join(head), *tables, *files])


if __name__ == "__main__":
    sys.exit(keep(HERE, {**open_loop_files(), **sweep_files(ORIGINAL), **sweep_files(SWAPPED)}, sys.argv[1:]))
