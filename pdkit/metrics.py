"""What a number is called, what it means, its unit, and what a refusal must void to take it away."""

from dataclasses import dataclass
from typing import Literal

from pdkit.errors import one_of
from pdkit.units import Unit

Scope = Literal["run", "throughput", "latency", "tail", "label"]
Kind = Literal["result", "asked"]

# What would let the number be read next time; one home for the advice that the report gives.
CLIENT_LOG = (
    "the client's whole log (unfiltered: it holds the Namespace line, `#Output tokens:` and the retokenized count)"
)
RECORD = "the record that `--output-file` writes"
DETAILS = "the record with `--output-details`"
MANIFEST = "a `sweep.toml` beside the logs"


@dataclass(frozen=True)
class Metric:
    """One number that a log may state about a run; `name` is also the name of its fact."""

    name: str
    title: str
    unit: Unit
    meaning: str
    scope: Scope = "run"
    kind: Kind = "result"
    shown_by: str = CLIENT_LOG
    percentile: float | None = None

    @property
    def axis(self) -> str:
        """The title of an axis that shows this metric."""
        return f"{self.title} ({self.unit})" if self.unit else self.title


CLOCKS = {
    "e2e_ms": ("E2E latency", "from sending a request to its last byte"),
    "ttft_ms": ("TTFT", "from sending a request to its first token of text"),
    "tpot_ms": ("TPOT", "a request's mean time per output token after the first"),
    "itl_ms": ("ITL", "one gap between two tokens"),
}
STATISTICS = {"mean": None, "median": 50.0, "std": None, "p90": 90.0, "p95": 95.0, "p99": 99.0, "max": None}
_TAIL = ("p90", "p95", "p99", "max")

_COUNTS = (
    Metric("completed", "Completed requests", "requests", "requests that the client counts as successful"),
    Metric("duration_s", "Duration", "s", "from the first dispatch to the end of the run, on the client's clock"),
    Metric("input_tok_sum", "Input tokens", "tok", "prompt tokens of the successful requests"),
    Metric("output_tok_sum", "Claimed output tokens", "tok", "output tokens that the client claims; some clients count what they asked for"),
    Metric("retokenized_tok_sum", "Retokenized output tokens", "tok", "tokens counted again in the text that came back"),
    Metric("cached_tok_sum", "Cached prompt tokens", "tok", "prompt tokens that the server took from its prefix cache", shown_by="`--cache-report`"),
    Metric("requests_failed_said", "Failed requests", "requests", "requests that the client says failed", shown_by=DETAILS),
)  # fmt: skip
_THROUGHPUTS = (
    Metric("received_throughput_tok_per_s", "Received output throughput", "tok/s", "retokenized tokens over the duration: text that came back", "throughput"),
    Metric("output_throughput_tok_per_s", "Output throughput", "tok/s", "claimed output tokens over the duration", "throughput"),
    Metric("input_throughput_tok_per_s", "Input throughput", "tok/s", "input tokens over the duration", "throughput"),
    Metric("total_throughput_tok_per_s", "Total throughput", "tok/s", "input and claimed output tokens over the duration", "throughput"),
    Metric("request_throughput_per_s", "Request throughput", "req/s", "completed requests over the duration", "throughput"),
    Metric("peak_output_throughput_tok_per_s", "Peak output throughput", "tok/s", "most tokens or chunks that arrived in one second", "throughput"),
    Metric("received_throughput_tok_per_s_per_gpu", "Received output throughput per GPU", "tok/s", "received throughput over the number of GPUs", "throughput", shown_by=MANIFEST),
    Metric("request_goodput_per_s", "Goodput, as the client counts it", "req/s", "requests within the SLOs; this client counts empty answers as good", "latency", shown_by="`--goodput`"),
    Metric("slo_attainment_ratio", "SLO attainment, as the client counts it", "ratio", "share of the requests sent that met the SLOs; empty answers included", "latency", shown_by="`--goodput`"),
)  # fmt: skip
_LOADS = (
    Metric("concurrency_mean", "Mean concurrency", "requests", "requests in flight on average", "label"),
    Metric("peak_running_requests", "Peak concurrent requests", "requests", "requests that touched one second; may pass the cap, since seconds overlap", "label"),
    Metric("client_cpu_ratio", "Client CPU", "ratio", "share of one core that the load client used", "label", shown_by="a client that tells its own load"),
    Metric("accept_length", "Accept length", "tok", "tokens accepted a step under speculative decoding", "throughput"),
    Metric("interactivity_tok_per_s", "Interactivity", "tok/s", "1000 / median TPOT: the speed that one user sees", "latency"),
)  # fmt: skip
_ASKED = (
    Metric("concurrency", "Concurrency cap", "users", "most requests that may be in flight; infinity says no cap", "label", "asked"),
    Metric("request_rate_per_s", "Request rate asked", "req/s", "rate at which requests are sent; infinity says all at once", "label", "asked"),
    Metric("prompts_asked", "Prompts asked", "requests", "requests that the run was told to send", kind="asked"),
    Metric("requests_dispatched", "Requests dispatched", "requests", "requests that the client set out to send, as its progress bar counts them", kind="asked"),
    Metric("input_tok_asked", "Input tokens asked", "tok", "prompt tokens of the whole data set", kind="asked"),
    Metric("output_tok_asked", "Output tokens asked", "tok", "output tokens that the run asked for", kind="asked"),
    Metric("output_tok_asked_each", "Output tokens asked of each request", "tok/request", "output length asked of every request, where it is one number", kind="asked"),
    Metric("input_limit_tok", "Longest prompt taken", "tok", "prompt tokens beyond which the server answers with an error", kind="asked", shown_by=RECORD),
    Metric("gpu_count", "GPUs", "GPUs", "accelerators that the servers use", kind="asked", shown_by=MANIFEST),
    Metric("detail_rows_min", "Shortest detail array", "requests", "entries of the shortest per-request array of a record", kind="asked", shown_by=DETAILS),
    Metric("detail_rows_max", "Longest detail array", "requests", "entries of the longest per-request array of a record", kind="asked", shown_by=DETAILS),
)  # fmt: skip


def _latency(clock: str, statistic: str) -> Metric:
    title, meaning = CLOCKS[clock]
    shown = {"mean": "Mean", "median": "Median", "std": "Std of", "max": "Max"}.get(statistic, statistic.upper())
    scope: Scope = "tail" if statistic in _TAIL else "latency"
    return Metric(f"{clock}_{statistic}", f"{shown} {title}", "ms", meaning, scope, percentile=STATISTICS[statistic])


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        *_COUNTS,
        *_THROUGHPUTS,
        *_LOADS,
        *_ASKED,
        *(_latency(clock, s) for clock in CLOCKS for s in STATISTICS),
    )
}
RESULTS = tuple(name for name, metric in METRICS.items() if metric.kind == "result")


class _Names:
    """Metric names to complete with the tab key: `metric.ttft_ms_median` is the string "ttft_ms_median"."""

    def __getattr__(self, name: str) -> str:
        if name in METRICS:
            return name
        raise AttributeError(str(one_of("metric", name, list(METRICS))))

    def __dir__(self) -> list[str]:
        return list(METRICS)


metric = _Names()
