"""Made inputs: records and captured output in SGLang's layout. Synthetic, seeded, and large."""

import json
import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

REQUESTS_A_RECORD = 40_000
GAPS_A_REQUEST = 127
_WORDS = [
    "the",
    "of",
    "and",
    "to",
    "in",
    "is",
    "that",
    "for",
    "it",
    "as",
    "be",
    "with",
    "by",
    "on",
    "not",
    "are",
    "this",
    "from",
    "or",
    "at",
    "an",
]
_CHATTER = (
    "[2026-11-29 17:10:{:02d}] Decode batch, #running-req: {}, #token: {}, token usage: 0.41, cuda graph: True, "
    "gen throughput (token/s): {}.25, #queue-req: 0"
)


def record(requests: int, *, users: int, seconds: float) -> str:
    """One record with details, as `--output-file --output-details` appends it."""
    chance = random.Random(users)
    tokens = requests * (GAPS_A_REQUEST + 1)
    made = {
        "tag": None, "backend": "sglang", "dataset_name": "random", "request_rate": float("inf"), "max_concurrency": users,
        "random_input_len": 256, "random_output_len": 128, "random_range_ratio": 1.0, "duration": seconds, "completed": requests,
        "total_input_tokens": requests * 256, "total_output_tokens": tokens, "total_output_tokens_retokenized": tokens,
        "request_throughput": requests / seconds, "output_throughput": tokens / seconds, "mean_ttft_ms": 55.0, "median_ttft_ms": 54.0,
        "input_lens": [256] * requests, "output_lens": [128] * requests,
        "ttfts": [chance.lognormvariate(-3, 0.5) for _ in range(requests)],
        "itls": [[chance.lognormvariate(-4.5, 0.3) for _ in range(GAPS_A_REQUEST)] for _ in range(requests)],
        "generated_texts": [" ".join(chance.choices(_WORDS, k=100)) for _ in range(requests)],
        "errors": [""] * requests,
    }  # fmt: skip
    return json.dumps(made) + "\n"


def records(folder: Path, *, scale: float) -> Path:
    """1,000,000 requests at scale 1: one record, written again with another duration."""
    one = record(REQUESTS_A_RECORD, users=64, seconds=1000.0)
    path = folder / "result.jsonl"
    with path.open("w") as file:
        for number in range(max(1, round(25 * scale))):
            file.write(one.replace('"duration": 1000.0', f'"duration": {1000.0 + number}', 1))
    return path


def sweep(folder: Path, *, scale: float) -> Path:
    """500 MB at scale 1: ten levels, each a record of 49 MB and 1 MB of captured output."""
    home = folder / "sweep"
    home.mkdir()
    requests = max(1, round(15_500 * scale))
    lines = round(3_500 * scale)
    with (home / "result.jsonl").open("w") as file:
        for level in range(10):
            users = 2**level
            file.write(record(requests, users=users, seconds=1000.0 + level))
            chatter = "\n".join(_CHATTER.format(i % 60, users, i, i % 900) for i in range(lines))
            (home / f"users-{users}.log").write_text(
                f"{chatter}\n{_block(requests, users, 1000.0 + level)}\n{chatter}\n"
            )
    return home


def _block(requests: int, users: int, seconds: float) -> str:
    tokens = requests * (GAPS_A_REQUEST + 1)
    return f"""Namespace(backend='sglang', num_prompts={requests}, max_concurrency={users}, request_rate=inf, dataset_name='random')
#Output tokens: {tokens}
============ Serving Benchmark Result ============
Backend:                                 sglang
Traffic request rate:                    inf
Max request concurrency:                 {users}
Successful requests:                     {requests}
Benchmark duration (s):                  {seconds:.2f}
Total input tokens:                      {requests * 256}
Total generated tokens:                  {tokens}
Total generated tokens (retokenized):    {tokens}
Request throughput (req/s):              {requests / seconds:.2f}
Output token throughput (tok/s):         {tokens / seconds:.2f}
Mean TTFT (ms):                          55.00
Median TTFT (ms):                        54.00
=================================================="""


# --- logs of a split server -----------------------------------------------------------------------------------------

LINES_A_SECOND = 50
_SECONDS_OF_A_LOG = 47_000  # at scale 1: 2.35 million lines, 500 MB
_DAY = datetime(2026, 11, 2, 8, 0, 0)  # noqa: DTZ001 # as a server prints it
_DECODE_BATCH = (
    "Decode batch, #running-req: {running}, #token: {tokens}, token usage: {usage:.2f}, accept len: 2.{any:02d}, "
    "pre-allocated usage: 0.{any:02d}, #prealloc-req: {waiting}, #transfer-req: {moving}, #retracted-req: 0, "
    "cuda graph: {graph}, gen throughput (token/s): {speed:.2f}, #queue-req: {queued}"
)
_PREFILL_BATCH = (
    "Prefill batch, #new-seq: {moving}, #new-token: {tokens}, #cached-token: {any}, token usage: {usage:.2f}, "
    "#running-req: 0, #queue-req: {queued}, #pending-token: 0, #bootstrap-req: {waiting}, #inflight-req: {running}, "
    "#optimistic-req: 0, cuda graph: {graph}, input throughput (token/s): {speed:.2f}"
)
_FAILED = {
    "decode": "Decode transfer failed for request rank={rank} decode_req.req.rid='{room:x}' "
    "decode_req.req.bootstrap_room={room} with exception KVTransferError(bootstrap_room={room}): "
    "Failed to get kvcache from prefill instance, it might be dead",
    "prefill": "Prefill transfer failed for request rank={rank} req.rid='{room:x}' req.bootstrap_room={room} with "
    "exception KVTransferError(bootstrap_room={room}): Failed to send kv chunk of {room} to 192.0.2.41:42117",
}
_SAID_FIRST = """\
[2026-11-02 07:59:01] server_args=ServerArgs(model_path='/models/m-8b', quantization='fp8', tp_size=1, dp_size=2, \
num_reserved_decode_tokens=512, disaggregation_mode='{role}', disaggregation_transfer_backend='mooncake')
[2026-11-02 07:59:22 DP0 TP0] max_total_num_tokens=402925, chunked_prefill_size=8192, max_running_requests=2048, \
context_len=40960
[2026-11-02 07:59:33] The server is fired up and ready to roll!
"""


def server_pair(home: Path, *, scale: float, lines_a_second: int = LINES_A_SECOND) -> Path:
    """1 GB at scale 1: the logs of a decode and a prefill server of two replicas, 13 hours at 50 lines a second."""
    home.mkdir()
    for role in ("decode", "prefill"):
        with (home / f"{role}.log").open("w") as file:
            file.write(_SAID_FIRST.format(role=role))
            for second in range(max(1, round(_SECONDS_OF_A_LOG * scale))):
                stamp = (_DAY + timedelta(seconds=second)).strftime("[%Y-%m-%d %H:%M:%S")
                file.writelines(_second_of_server(role, stamp, second, lines_a_second))
    return home


def _second_of_server(role: str, stamp: str, second: int, lines: int) -> Iterator[str]:
    """What one server writes in one second: one line in three of its access log, and every fifth second a failure."""
    chance = random.Random(second)
    if second % 5 == 0:
        yield from (f"{stamp} DP0 TP{rank}] {_FAILED[role].format(rank=rank, room=second + 1000)}\n" for rank in (0, 1))
    for number in range(lines):
        if number % 3 == 0:
            status = "200 OK" if number % 48 else "500 Internal Server Error"
            yield f'{stamp}] INFO:     192.0.2.9:{40000 + number} - "POST /generate HTTP/1.1" {status}\n'
        else:
            some = chance.random()
            yield f"{stamp} DP{number % 2} TP0] " + (_DECODE_BATCH if role == "decode" else _PREFILL_BATCH).format(
                running=int(some * 90), tokens=int(some * 400_000), usage=some, any=int(some * 100), graph=some < 0.9,
                waiting=int(some * 20), moving=1 + int(some * 7), speed=some * 3000, queued=int(some * 4),
            ) + "\n"  # fmt: skip
