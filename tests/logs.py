"""Logs as SGLang's client writes them, each version in its own layout, from values that a test types."""

import gzip
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pdkit.evidence import Evidence
from pdkit.load import load

VERSIONS = ("0.4.0", "0.4.3", "0.4.6", "0.5.4", "0.5.6", "0.5.8", "0.5.14", "0.5.23")

# One healthy run, easy to check by hand: 32 requests of 256 + 128 tokens in 64 s at 8 users, 15 s each:
# 32 x 15 / 64 = 7.5 in flight; 15000 = 2300 + 127 x 100.
HEALTHY = {
    "Backend": "sglang",
    "Traffic request rate": "inf",
    "Max request concurrency": "8",
    "Successful requests": "32",
    "Benchmark duration (s)": "64.00",
    "Total input tokens": "8192",
    "Total input text tokens": "8192",
    "Total input vision tokens": "0",
    "Total generated tokens": "4096",
    "Total generated tokens (retokenized)": "4090",
    "Request throughput (req/s)": "0.50",
    "Input token throughput (tok/s)": "128.00",
    "Output token throughput (tok/s)": "64.00",
    "Peak output token throughput (tok/s)": "80.00",
    "Peak concurrent requests": "10",
    "Total token throughput (tok/s)": "192.00",
    "Concurrency": "7.50",
    "Mean E2E Latency (ms)": "15000.00",
    "Median E2E Latency (ms)": "15010.00",
    "P90 E2E Latency (ms)": "15100.00",
    "P95 E2E Latency (ms)": "15200.00",
    "P99 E2E Latency (ms)": "15300.00",
    "Mean TTFT (ms)": "2300.00",
    "Median TTFT (ms)": "2310.00",
    "P90 TTFT (ms)": "2400.00",
    "P95 TTFT (ms)": "2450.00",
    "P99 TTFT (ms)": "2500.00",
    "Mean TPOT (ms)": "100.00",
    "Median TPOT (ms)": "100.10",
    "P90 TPOT (ms)": "101.00",
    "P95 TPOT (ms)": "101.50",
    "P99 TPOT (ms)": "102.00",
    "Mean ITL (ms)": "100.00",
    "Median ITL (ms)": "99.00",
    "P90 ITL (ms)": "120.00",
    "P95 ITL (ms)": "130.00",
    "P99 ITL (ms)": "150.00",
    "Max ITL (ms)": "200.00",
}
_ORDER = [*HEALTHY]
_PROTOCOL = _ORDER.index("Traffic request rate")
_GOODPUT = ("SLOs (ms)", "Request goodput (req/s)", "SLO attainment (%)", "TTFT SLO attainment (%)")
_SECTIONS = {
    "Mean E2E Latency (ms)": "End-to-End Latency",
    "Mean TTFT (ms)": "Time to First Token",
    "Mean TPOT (ms)": "Time per Output Token (excl. 1st token)",
    "Mean ITL (ms)": "Inter-Token Latency",
}
_EMBEDDING_LACKS = ("generated", "Output token", "Peak output", "Total token", "TTFT", "TPOT", "ITL")
TITLE = f"{' Serving Benchmark Result ':=^50}"
RULE = "=" * 50


def _at(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def printed(label: str, version: str) -> bool:
    """Whether this version of the client prints this line of a block."""
    at = _at(version)
    if "TPOT" in label and (0, 4, 3) <= at < (0, 5, 6):
        return False
    since = (
        {
            "Total input text tokens": "0.5.4",
            "Peak output token throughput (tok/s)": "0.5.6",
            "Peak concurrent requests": "0.5.6",
            "Concurrency": "0.4.3",
            "P90 E2E Latency (ms)": "0.5.8",
            "P95 E2E Latency (ms)": "0.5.14",
            "P99 E2E Latency (ms)": "0.5.8",
            "P95 ITL (ms)": "0.4.3",
            "Max ITL (ms)": "0.4.3",
        }
        | {f"{p} {clock} (ms)": "0.5.14" for p in ("P90", "P95") for clock in ("TTFT", "TPOT")}
        | {"P90 ITL (ms)": "0.5.14"}
    )
    if label == "Total input vision tokens":
        return (0, 5, 4) <= at < (0, 5, 8)
    return at >= _at(since.get(label, "0"))


def line(label: str, value: str) -> str:
    """One line of a block, padded as the client pads it."""
    spelt = f"{label}:"
    return f"{spelt:<40} {value:<10}"


def block(version: str = "0.5.23", values: dict[str, str] | None = None, *, embedding: bool = False) -> list[str]:
    """A result block; `values` replace those of HEALTHY, and add lines that only some runs have."""
    said = HEALTHY | (values or {})
    order = [*_ORDER]
    order[_PROTOCOL:_PROTOCOL] = ["Protocol"] if "Protocol" in said else []
    before_e2e = order.index("Mean E2E Latency (ms)")
    order[before_e2e:before_e2e] = [label for label in ("Accept length", *_GOODPUT) if label in said]
    lines = [TITLE]
    for label in order:
        if not printed(label, version) or (embedding and any(part in label for part in _EMBEDDING_LACKS)):
            continue
        if section := _SECTIONS.get(label):
            lines.append(
                f"{section.replace('Token', 'token') if version == '0.4.0' and 'Inter' in section else section:-^50}"
            )
        old = _at(version) < (0, 4, 6) and label == "Max request concurrency"
        lines.append(line("Max reqeuest concurrency" if old else label, said[label]))
    return [*lines, RULE]


ARGUMENTS: dict[str, object] = {
    "backend": "sglang", "base_url": None, "host": "127.0.0.1", "port": 30000, "dataset_name": "random",
    "model": "Qwen/Qwen3-8B", "num_prompts": 32, "sharegpt_output_len": None, "random_input_len": 256,
    "random_output_len": 128, "random_range_ratio": 1.0, "request_rate": float("inf"), "max_concurrency": 8,
    "disable_stream": False, "disable_ignore_eos": False, "extra_request_body": None, "seed": 42,
    "header": ["x={'a': [1, 2]}, y=(3)"],
}  # fmt: skip


def dump(arguments: dict[str, object] | None = None, *, name: str = "Namespace") -> str:
    """The arguments as argparse shows them."""
    said = ARGUMENTS | (arguments or {})
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in said.items())})"


def log(
    version: str = "0.5.23", values: dict[str, str] | None = None, arguments: dict[str, object] | None = None
) -> list[str]:
    """All that one invocation prints, without its progress bars."""
    return [
        f"benchmark_args={dump((arguments or {}) | {'port': None})}",
        dump(arguments),
        "",
        "#Input tokens: 8192",
        "#Output tokens: 4096",
        "Starting warmup with 1 sequences...",
        "Warmup completed with 1 sequences. Starting main benchmark run...",
        "",
        *block(version, values),
    ]


# The record of the same run; keys in the client's order.
RECORD: dict[str, Any] = {
    "tag": None, "backend": "sglang", "dataset_name": "random", "request_rate": float("inf"), "max_concurrency": 8,
    "sharegpt_output_len": None, "random_input_len": 256, "random_output_len": 128, "random_range_ratio": 1.0,
    "server_info": {"model_path": "Qwen/Qwen3-8B", "version": "0.5.23"},
    "duration": 64.00123, "completed": 32, "total_input_tokens": 8192, "total_output_tokens": 4096,
    "total_output_tokens_retokenized": 4090, "request_throughput": 0.49999, "input_throughput": 127.99754,
    "output_throughput": 63.99877, "total_throughput": 191.99631, "mean_e2e_latency_ms": 15000.001,
    "median_e2e_latency_ms": 15010.001, "std_e2e_latency_ms": 50.0, "p99_e2e_latency_ms": 15300.001,
    "mean_ttft_ms": 2300.001, "median_ttft_ms": 2310.001, "std_ttft_ms": 40.0, "p99_ttft_ms": 2500.001,
    "mean_tpot_ms": 100.001, "median_tpot_ms": 100.101, "std_tpot_ms": 1.0, "p99_tpot_ms": 102.001,
    "mean_itl_ms": 100.001, "median_itl_ms": 99.001, "std_itl_ms": 9.0, "p95_itl_ms": 130.001, "p99_itl_ms": 150.001,
    "concurrency": 7.5001, "accept_length": None,
}  # fmt: skip


def record(**changes: Any) -> str:
    """One line of `--output-file`; keys that are given replace or follow those of RECORD."""
    return json.dumps(RECORD | changes)


def details(n: int = 32, *, tokens: int = 128) -> dict[str, Any]:
    """Arrays of `--output-details` that fit RECORD: every answer 2.3 s to its first token, then 100 ms a token."""
    return {
        "input_lens": [256] * n,
        "output_lens": [tokens] * n,
        "ttfts": [2.3] * n,
        "itls": [[0.1] * (tokens - 1)] * n,
        "generated_texts": [f"answer {i} is long enough " * 20 for i in range(n)],
        "errors": [""] * n,
    }


def write(path: Path, lines: str | Iterable[str], *, encoding: str = "utf-8") -> Path:
    """The lines as a file; its folder is made."""
    text = lines if isinstance(lines, str) else "\n".join(lines) + "\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    content = text.encode(encoding)
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def facts_of(evidence: Evidence, run: int = 0) -> dict[str, float | None]:
    """What the run states, by fact, in the order of its lines: the last statement counts."""
    ids = evidence.runs["run_id"].unique(maintain_order=True)
    return dict(evidence.claims.filter(evidence.claims["run_id"] == ids[run]).select("fact", "value").iter_rows())


def read_log(tmp_path: Path, lines: str | Iterable[str], name: str = "bench.log") -> Evidence:
    """The lines as one file, loaded."""
    return load(write(tmp_path / name, lines))


def levels(evidence: Evidence) -> list[float | None]:
    """The concurrency that each sighting states first, in order of the file."""
    said = evidence.claims.filter(evidence.claims["fact"] == "concurrency").unique("seen_id", keep="first")
    return evidence.runs.join(said, on="seen_id", how="left", maintain_order="left")["value"].to_list()
