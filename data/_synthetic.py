"""What SGLang's load client 0.5.23 would have written about requests that nobody sent.

A make.py beside the logs makes up the requests; this module computes the result block and the JSONL record
from them as the client does, so that every identity between two printed numbers holds as it would in a real log.
Standard library only. Nothing here is imported by pdkit.
"""

import gzip
import hashlib
import heapq
import json
import math
import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

LABEL = "# synthetic: rebuilt by make.py from published figures; not a recording"
WORDS = ("and", "but", "can", "day", "for", "has", "how", "may", "new", "not", "now", "old", "one", "our", "see", "the")
CLOSING_S = 0.0003  # the closing line of a stream comes just after the last token, and the client's latency ends there
CLOCK_DIGITS = 6  # microseconds: finer than any printed figure, and the files stay small

# The client's arguments in its own order and with its own defaults, but for host, port, prompt file and tag.
DEFAULTS = Namespace(
    backend="sglang", base_url=None, host="127.0.0.1", port=8000, ready_check_timeout_sec=60, dataset_name="random",
    dataset_path="prompts.jsonl", dataset_offset=0, agentic_max_turns=None, speed_bench_category=None,
    speed_bench_output_len=512, model=None, served_model_name=None, tokenizer=None, num_prompts=1000,
    sharegpt_output_len=None, sharegpt_context_len=None, random_input_len=1024, random_output_len=1024,
    random_range_ratio=0.0, image_count=1, image_resolution="1080p", random_image_count=False, image_format="jpeg",
    image_content="random", request_rate=math.inf, use_trace_timestamps=False, max_concurrency=None, output_file=None,
    output_details=False, goodput=None, print_requests=False, disable_tqdm=False, disable_stream=False,
    return_logprob=False, top_logprobs_num=0, token_ids_logprob=None, logprob_start_len=-1,
    return_routed_experts=False, cache_report=False, seed=42, disable_ignore_eos=False, temperature=0.0, top_p=1.0,
    extra_request_body=None, apply_chat_template=False, profile=False, plot_throughput=False,
    profile_activities=["CPU", "GPU"], profile_start_step=None, profile_steps=None, profile_num_steps=None,
    profile_by_stage=False, profile_stages=None, profile_output_dir=None, profile_prefix=None, lora_name=None,
    lora_request_distribution="uniform", lora_zipf_alpha=1.5, prompt_suffix="", pd_separated=False,
    profile_prefill_url=None, profile_decode_url=None, flush_cache=False, flush_cache_timeout=60.0, warmup_requests=1,
    tokenize_prompt=False, gsp_num_groups=64, gsp_prompts_per_group=16, gsp_system_prompt_len=2048,
    gsp_question_len=128, gsp_output_len=256, gsp_range_ratio=1.0, gsp_fast_prepare=False, gsp_send_routing_key=False,
    gsp_num_turns=1, gsp_ordered=False, gsp_group_distribution="uniform", gsp_zipf_alpha=None,
    mooncake_slowdown_factor=1.0, mooncake_num_rounds=1, mooncake_workload="conversation", fake_prefill=False,
    tag="synthetic", header=None, rust_client=False, rust_worker_threads=None,
)  # fmt: skip

# title of the section, name on its lines, name in the record
SECTIONS = (
    ("End-to-End Latency", "E2E Latency", "e2e_latency"),
    ("Time to First Token", "TTFT", "ttft"),
    ("Time per Output Token (excl. 1st token)", "TPOT", "tpot"),
    ("Inter-Token Latency", "ITL", "itl"),
)
STATISTICS = ("mean", "median", "std", "p90", "p95", "p99")


@dataclass(frozen=True)
class Request:
    """One request as the client keeps it; all of them ended with HTTP 200, so to the client all succeeded."""

    start_s: float
    input_tok: int
    output_tok: int  # claimed; an empty answer keeps the number asked for
    e2e_s: float
    ttft_s: float = 0.0
    itls_s: tuple[float, ...] = ()
    text: str = ""

    @property
    def end_s(self) -> float:
        return self.start_s + self.e2e_s

    @property
    def token_times_s(self) -> list[float]:
        """When each token came, as the client adds it up; an empty answer counts once, at its start."""
        times = [self.start_s + self.ttft_s]
        for gap in self.itls_s:
            times.append(times[-1] + gap)
        return times


@dataclass(frozen=True)
class Run:
    """One call of the client; `lost` requests were sent and failed, so that no printed figure holds them.

    `asked_tok` is what the client asked for where its answers may end sooner, or are counted in another way.
    """

    requests: Sequence[Request]
    duration_s: float
    model: str
    settings: Mapping[str, object]
    server_info: Mapping[str, object] = field(default_factory=dict)
    lost: Sequence[Request] = ()
    asked_tok: int | None = None

    @property
    def sent(self) -> Sequence[Request]:
        return [*self.requests, *self.lost]

    def asked(self, name: str) -> object:
        return self.arguments(resolved=True)[name]

    def arguments(self, *, resolved: bool) -> dict[str, object]:
        """The command line; the client prints it twice, and knows the model only the second time."""
        changed = {"num_prompts": len(self.sent), "model": self.model if resolved else None, **self.settings}
        return {**vars(DEFAULTS), **changed}


def answered(
    *, start_s: float, input_tok: int, ttft_s: float, itls_s: Iterable[float], words: Iterable[str]
) -> Request:
    """A request whose text came back, one word a token."""
    ttft_s, gaps = tick(ttft_s), tuple(map(tick, itls_s))
    e2e_s = ttft_s + math.fsum(gaps) + CLOSING_S
    return Request(tick(start_s), input_tok, len(gaps) + 1, tick(e2e_s), ttft_s, gaps, " ".join(words))


def empty(*, start_s: float, input_tok: int, asked_tok: int, e2e_s: float) -> Request:
    """A request that came back with HTTP 200 and no text: the client counts the tokens that it asked for."""
    return Request(tick(start_s), input_tok, asked_tok, tick(e2e_s))


def closed_loop(*, users: int, count: int, answer: Callable[[int, float], Request]) -> list[Request]:
    """Requests in order of submission: a user sends the next one when an answer is there."""
    free_s = [0.0] * users
    requests = []
    for i in range(count):
        request = answer(i, heapq.heappop(free_s))
        heapq.heappush(free_s, request.end_s + 0.001)
        requests.append(request)
    return requests


def tick(seconds: float) -> float:
    return round(seconds, CLOCK_DIGITS)


def mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def percentile(values: Sequence[float], percent: float) -> float:
    """Linear interpolation, numpy's default."""
    ordered = sorted(values)
    position = (len(ordered) - 1) * percent / 100
    low = math.floor(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (position - low)


def statistics_ms(name: str, seconds: Sequence[float]) -> dict[str, float]:
    """The six statistics of one latency, under the names of the record; no values at all count as one zero."""
    values = [1000 * s for s in seconds] or [0.0]
    middle = mean(values)
    found = {
        "mean": middle,
        "median": percentile(values, 50),
        "std": math.sqrt(mean([(v - middle) ** 2 for v in values])),
        **{f"p{p}": percentile(values, p) for p in (90, 95, 99)},
    }
    return {f"{statistic}_{name}_ms": found[statistic] for statistic in STATISTICS}


def peaks(requests: Sequence[Request]) -> dict[str, float]:
    """Most tokens, and most requests touched, in one second; the seconds count from the first start."""
    first = min(r.start_s for r in requests)
    tokens = Counter(int(t - first) for r in requests for t in r.token_times_s)
    touched = Counter(s for r in requests for s in range(int(r.start_s - first), int(r.end_s - first) + 1))
    return {
        "max_output_tokens_per_s": float(max(tokens.values())),
        "max_concurrent_requests": max(touched.values()),
    }


def record(run: Run) -> dict[str, object]:
    """The line of --output-file, without --output-details, in the client's order."""
    requests, duration = run.requests, run.duration_s
    input_tok = sum(r.input_tok for r in requests)
    output_tok = sum(r.output_tok for r in requests)
    echoed = ("sharegpt_output_len", "random_input_len", "random_output_len", "random_range_ratio")
    return {
        **{name: run.asked(name) for name in ("tag", "backend", "dataset_name", "request_rate", "max_concurrency")},
        **{name: run.asked(name) for name in echoed},
        "server_info": run.server_info,
        "duration": duration,
        "completed": len(requests),
        "total_input_tokens": input_tok,
        "total_input_text_tokens": input_tok,
        "total_input_vision_tokens": 0,
        "total_output_tokens": output_tok,
        "total_output_tokens_retokenized": sum(len(r.text.split()) for r in requests),
        "request_throughput": len(requests) / duration,
        "input_throughput": input_tok / duration,
        "output_throughput": output_tok / duration,
        "total_throughput": (input_tok + output_tok) / duration,
        **statistics_ms("e2e_latency", [r.e2e_s for r in requests]),
        **statistics_ms("ttft", [r.ttft_s for r in requests]),
        **statistics_ms("tpot", [(r.e2e_s - r.ttft_s) / (r.output_tok - 1) for r in requests if r.output_tok > 1]),
        **statistics_ms("itl", [gap for r in requests for gap in r.itls_s]),
        "concurrency": math.fsum(r.e2e_s for r in requests) / duration,
        "accept_length": None,
        **peaks(requests),
    }


def details(run: Run) -> dict[str, list[object]]:
    """What --output-details adds: one list a column, in the order of submission."""
    return {
        "input_lens": [r.input_tok for r in run.requests],
        "output_lens": [r.output_tok for r in run.requests],
        "ttfts": [r.ttft_s for r in run.requests],
        "itls": [r.itls_s for r in run.requests],
        "generated_texts": [r.text for r in run.requests],
        "errors": ["" for _ in run.requests],
    }


def jsonl(runs: Iterable[Run]) -> str:
    """One line a run, as the client appends them."""
    return "".join(json.dumps(record(run) | details(run)) + "\n" for run in runs)


def console(run: Run) -> str:
    """Standard output and error of the client, progress bar included."""
    n, found = len(run.sent), record(run)
    asked_tok = sum(r.output_tok for r in run.sent) if run.asked_tok is None else run.asked_tok
    address = f"http://{run.asked('host')}:{run.asked('port')}"
    warmups = run.asked("warmup_requests")
    bar = f"{n}/{n} [{clock(run.duration_s)}<00:00, {n / run.duration_s:5.2f}it/s]"
    lines = [
        f"benchmark_args={Namespace(**run.arguments(resolved=False))!r}",
        f"Waiting up to {run.asked('ready_check_timeout_sec')}s for {address}/v1/models to become ready...",
        "Server ready in 0.0s.",
        f"{Namespace(**run.arguments(resolved=True))!r}",
        "",
        f"#Input tokens: {sum(r.input_tok for r in run.sent)}",
        f"#Output tokens: {asked_tok}",
        f"Starting warmup with {warmups} sequences...",
        f"Warmup completed with {warmups} sequences. Starting main benchmark run...",
        f"\r  0%|          | 0/{n} [00:00<?, ?it/s]\r100%|██████████| {bar}",
        "",
        *block(found, max_itl_ms=1000 * max((gap for r in run.requests for gap in r.itls_s), default=0.0)),
    ]
    return "\n".join(lines) + "\n"


def clock(seconds: float) -> str:
    return f"{int(seconds) // 60:02d}:{int(seconds) % 60:02d}"


def block(found: Mapping[str, object], *, max_itl_ms: float) -> list[str]:
    """The result block of 0.5.23, trailing spaces included."""
    lines = [
        f"{' Serving Benchmark Result ':=^50}",
        row("Backend", found["backend"]),
        row("Traffic request rate", found["request_rate"]),
        row("Max request concurrency", found["max_concurrency"] or "not set"),
        row("Successful requests", found["completed"]),
        row("Benchmark duration (s)", found["duration"], ".2f"),
        row("Total input tokens", found["total_input_tokens"]),
        row("Total input text tokens", found["total_input_text_tokens"]),
        row("Total generated tokens", found["total_output_tokens"]),
        row("Total generated tokens (retokenized)", found["total_output_tokens_retokenized"]),
        row("Request throughput (req/s)", found["request_throughput"], ".2f"),
        row("Input token throughput (tok/s)", found["input_throughput"], ".2f"),
        row("Output token throughput (tok/s)", found["output_throughput"], ".2f"),
        row("Peak output token throughput (tok/s)", found["max_output_tokens_per_s"], ".2f"),
        row("Peak concurrent requests", found["max_concurrent_requests"]),
        row("Total token throughput (tok/s)", found["total_throughput"], ".2f"),
        row("Concurrency", found["concurrency"], ".2f"),
    ]
    for title, name, key in SECTIONS:
        lines.append(f"{title:-^50}")
        printed = [s for s in STATISTICS if s != "std"]
        lines += [row(f"{s.capitalize()} {name} (ms)", found[f"{s}_{key}_ms"], ".2f") for s in printed]
    return [*lines, row("Max ITL (ms)", max_itl_ms, ".2f"), "=" * 50]


def row(label: str, value: object, form: str = "") -> str:
    return f"{label + ':':<40} {value:<10{form}}"


def keep(folder: Path, files: Mapping[str, str], arguments: Sequence[str]) -> int:
    """Write the files and the hashes in SOURCES.md; with --check write nothing and return 1 if any differs."""
    contents = {name: text.encode() for name, text in files.items()}
    contents["SOURCES.md"] = with_hashes((folder / "SOURCES.md").read_text(encoding="utf-8"), contents).encode()
    stale = [name for name, content in contents.items() if unpacked(folder / name) != content]
    for name in stale:
        if "--check" in arguments:
            print(f"{folder.name}/{name}: differs from what make.py gives", file=sys.stderr)
        else:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(packed(contents[name]) if name.endswith(".gz") else contents[name])
    return int("--check" in arguments and bool(stale))


def with_hashes(sources: str, contents: Mapping[str, bytes]) -> str:
    """SOURCES.md with the list under its last heading renewed; the prose above is written by hand."""
    prose, heading, _ = sources.partition("## Files\n")
    listed = [f"{hashlib.sha256(content).hexdigest()}  {name}" for name, content in sorted(contents.items())]
    return "\n".join([prose + heading, "sha256; of a `.gz`, of what it unpacks to.", "", "```", *listed, "```", ""])


def packed(content: bytes) -> bytes:
    return gzip.compress(content, compresslevel=9, mtime=0)


def unpacked(path: Path) -> bytes | None:
    """What the file says, or None if there is none; two zlibs may pack the same content differently."""
    if not path.exists():
        return None
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
