"""What the two servers of the pair would have logged about given requests: SGLang 0.5.23's lines, and Mooncake's."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from _synthetic import LABEL, Request

MODEL = "Qwen/Qwen3-8B"
QUANTIZATION = "fp8"  # of the weights; the pair was posted against an FP8 server
SMALL_POOL_TOK, LARGE_POOL_TOK = 2_925, 24_094
PREFILL_TOK_PER_S = 3_800  # on one L4: near what the posted run gave, and half of the card's peak
CHUNK_TOK = 8_192
LONG_WAIT_S = 3  # a request that waits longer for its first token waits for decode memory, not for prefill
LOG_INTERVAL = 40  # decode steps from one line to the next
HOST = "192.0.2.41"  # a documentation address stands for the published one

SGLANG = "[{:%Y-%m-%d %H:%M:%S}] "
MOONCAKE = "W{:%m%d %H:%M:%S.%f}  3391 tcp_transport_lane_impl.h:1178] "


class Line(NamedTuple):
    """One log line; its time in seconds after the server was ready."""

    at_s: float
    text: str
    prefix: str = SGLANG


@dataclass(frozen=True)
class Session:
    """One life of the pair: the requests that it saw (seconds after it was ready), and how it ended."""

    name: str
    ready: datetime
    requests: Sequence[Request]
    port: int  # of the decode side's transfer session
    rejections: int  # the last power of two that the counter passed

    @property
    def failed(self) -> list[Request]:
        return sorted((r for r in self.requests if not r.text), key=failed_s)

    @property
    def pools_tok(self) -> tuple[int, int]:
        return pools_tok(self.name)


def pools_tok(name: str) -> tuple[int, int]:
    """What prefill and decode can hold."""
    return (SMALL_POOL_TOK, LARGE_POOL_TOK) if name == "swapped" else (LARGE_POOL_TOK, SMALL_POOL_TOK)


def failed_s(request: Request) -> float:
    """The transfer fails a moment before the empty answer reaches the client."""
    return request.end_s - 0.02


def first_token_s(request: Request) -> float:
    """When its text began to come back, or it was given up."""
    return request.start_s + (request.ttft_s or request.e2e_s)


def prefill_log(session: Session) -> str:
    pool_tok, _ = session.pools_tok
    lines = [*start_up("prefill", pool_tok), *prefill_batches(session.requests, pool_tok), *failures(session)]
    return log(session, lines)


def decode_log(session: Session) -> str:
    _, pool_tok = session.pools_tok
    samples = decode_samples(session.requests)
    return log(session, [*start_up("decode", pool_tok), *(s.line(pool_tok) for s in samples)])


def log(session: Session, lines: Sequence[Line]) -> str:
    """The lines in order of time; of two at one moment the first stays first."""
    ordered = sorted(lines, key=lambda line: line.at_s)
    told = (line.prefix.format(session.ready + timedelta(seconds=line.at_s)) + line.text for line in ordered)
    return "\n".join([LABEL, *told]) + "\n"


def start_up(mode: str, pool_tok: int) -> list[Line]:
    """How a server describes itself; the pool is what matters later."""
    gigabytes = pool_tok * 36 * 8 * 128 * 2 / 2**30  # layers, KV heads, head size, bytes: K or V of one token
    arguments = {
        "model_path": MODEL,
        "quantization": QUANTIZATION,
        "tp_size": 1,
        "disaggregation_mode": mode,
        "disaggregation_transfer_backend": "mooncake",
        "disable_radix_cache": True,
        "log_level_http": "warning",
    }
    sizes = f"#tokens: {pool_tok}, K size: {gigabytes:.2f} GB, V size: {gigabytes:.2f} GB"
    limits = f"chunked_prefill_size={CHUNK_TOK}, max_prefill_tokens=16384, max_running_requests=2048, context_len=40960"
    return [
        Line(-30, f"server_args={arguments}"),
        Line(-9, f"KV Cache is allocated. dtype: torch.bfloat16, {sizes}"),
        Line(-8, f"max_total_num_tokens={pool_tok}, {limits}, available_gpu_mem=1.94 GB"),
        Line(0, "The server is fired up and ready to roll!"),
    ]


def prefill_batches(requests: Sequence[Request], pool_tok: int) -> Iterator[Line]:
    """Prompts are taken in order of arrival, as many at once as fit; with the cache off every token is new."""
    queue = sorted(requests, key=lambda r: r.start_s)
    at_s = last_s = 0.0
    while queue:
        at_s = max(at_s, queue[0].start_s)
        batch = list(fitting(queue, at_s=at_s, room_tok=min(pool_tok, CHUNK_TOK)))
        queue = queue[len(batch) :]
        new_tok = sum(r.input_tok for r in batch)
        arrived = [r for r in queue if r.start_s <= at_s]
        unanswered = sum(r.start_s < at_s < first_token_s(r) for r in requests)
        text = (
            f"Prefill batch, #new-seq: {len(batch)}, #new-token: {new_tok}, #cached-token: 0, "
            f"token usage: {new_tok / pool_tok:.2f}, #running-req: 0, #queue-req: {len(arrived)}, "
            f"#pending-token: {sum(r.input_tok for r in arrived)}, #bootstrap-req: 0, "
            f"#inflight-req: {max(0, unanswered - len(batch) - len(arrived))}, #optimistic-req: 0, "
            f"cuda graph: False, input throughput (token/s): {new_tok / (at_s - last_s):.2f}"
        )
        yield Line(at_s, text)
        last_s, at_s = at_s, at_s + new_tok / PREFILL_TOK_PER_S


def fitting(queue: Sequence[Request], *, at_s: float, room_tok: int) -> Iterator[Request]:
    """The first requests of the queue that have arrived and fit together; the very first always does."""
    for i, request in enumerate(queue):
        room_tok -= request.input_tok
        if i and (request.start_s > at_s or room_tok < 0):
            return
        yield request


def failures(session: Session) -> Iterator[Line]:
    """The lanes reject, the session dies, and every transfer after it fails."""
    died_s = failed_s(session.failed[0])
    for k in range(session.rejections.bit_length()):
        yield Line(died_s - 0.015 + 0.001 * k, f"TCP lane queue-full rejection count: {2**k}", MOONCAKE)
    yield Line(died_s, f"Session {HOST}:{session.port} failed.")
    rng = random.Random(session.name)
    for i, request in enumerate(session.failed):
        rid, room = f"{rng.getrandbits(128):032x}", rng.getrandbits(62)
        broken = f"Failed to send kv chunk of {room} to {HOST}:41873"
        dead = f"Decode instance could be dead, remote mooncake session {HOST}:{session.port} is not alive"
        text = (
            f"Prefill transfer failed for request rank=0 req.rid='{rid}' req.bootstrap_room={room} "
            f"with exception KVTransferError(bootstrap_room={room}): {dead if i else broken}"
        )
        yield Line(failed_s(request), text)


@dataclass(frozen=True)
class DecodeSample:
    """What one decode line says."""

    at_s: float
    running: int
    held_tok: int
    waiting: int
    tok_per_s: float

    def line(self, pool_tok: int) -> Line:
        text = (
            f"Decode batch, #running-req: {self.running}, #token: {self.held_tok}, "
            f"token usage: {self.held_tok / pool_tok:.2f}, pre-allocated usage: 0.00, #prealloc-req: {self.waiting}, "
            f"#transfer-req: 0, #retracted-req: 0, cuda graph: True, "
            f"gen throughput (token/s): {self.tok_per_s:.2f}, #queue-req: 0"
        )
        return Line(self.at_s, text)


def decode_samples(requests: Sequence[Request]) -> Iterator[DecodeSample]:
    """One sample in 40 steps; a step gives each running request one token, the first comes from prefill."""
    with_text = [r for r in requests if r.text]
    patient = [r for r in requests if first_token_s(r) - r.start_s > LONG_WAIT_S]
    steps, tokens, last_s = 0.0, 0, 0.0
    for at_s in sorted(t for r in with_text for t in r.token_times_s[1:]):
        running = [r for r in with_text if first_token_s(r) < at_s <= r.end_s]
        steps, tokens = steps + 1 / len(running), tokens + 1
        if steps >= LOG_INTERVAL:
            held_tok = sum(r.input_tok + sum(t <= at_s for t in r.token_times_s) for r in running)
            waiting = sum(r.start_s < at_s <= first_token_s(r) for r in patient)
            yield DecodeSample(at_s, len(running), held_tok, waiting, tokens / (at_s - last_s))
            steps, tokens, last_s = 0.0, 0, at_s
