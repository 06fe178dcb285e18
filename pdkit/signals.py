"""What a server says of itself: gauges that it prints again and again, events that happen to it, settings it runs by."""

from dataclasses import dataclass
from typing import Literal

from pdkit.units import Unit

Role = Literal["prefill", "decode", "colocated", "router"]
Across = Literal["sum", "max", "mean"]  # how the ranks of one server make one number

FAILURES = ("transfer_failed", "bootstrap_failed")  # one a request: a room that fails on both sides is one failure
PD_RESERVED_TOK = 512  # SGLang's --num-reserved-decode-tokens, where nobody sets it (server_args.py)


@dataclass(frozen=True)
class Gauge:
    """One number that a server tells of itself; a counter only grows, until its server starts again."""

    name: str
    title: str
    unit: Unit
    meaning: str
    across: Across = "sum"
    is_counter: bool = False


@dataclass(frozen=True)
class Event:
    """One kind of thing that happens on a server; `count` and `subject` say how much of it, and to whom."""

    name: str
    title: str
    meaning: str
    counts: str = "times"
    subject: str = ""


GAUGES: dict[str, Gauge] = {
    gauge.name: gauge
    for gauge in (
        Gauge("running_requests", "Running requests", "requests", "requests in the batch"),
        Gauge("queued_requests", "Queued requests", "requests", "requests that wait for a place in the batch"),
        Gauge("prealloc_requests", "Waiting for memory", "requests", "requests that wait on a decode server for memory"),
        Gauge("transferring_requests", "Transferring", "requests", "requests whose KV cache is on its way"),
        Gauge("bootstrap_requests", "Waiting for a decode server", "requests", "requests on a prefill server whose decode side is not ready"),
        Gauge("kv_used_tok", "KV tokens", "tok", "tokens that the KV pool holds"),
        Gauge("kv_used_ratio", "KV pool used", "ratio", "share of the KV pool in use", "max"),
        Gauge("kv_reserved_ratio", "KV pool reserved", "ratio", "share of the KV pool that is set aside for transfers", "max"),
        Gauge("gen_throughput_tok_per_s", "Generated", "tok/s", "tokens generated a second since the line before"),
        Gauge("input_throughput_tok_per_s", "Prefilled", "tok/s", "prompt tokens computed a second since the line before"),
        Gauge("new_requests", "New sequences", "requests", "sequences of one prefill batch; its sum is n times its mean"),
        Gauge("new_tok", "New tokens", "tok", "prompt tokens that one prefill batch computes; its sum is n times its mean"),
        Gauge("cached_tok", "Cached tokens", "tok", "prompt tokens of one prefill batch that the prefix cache had; summed alike"),
        Gauge("accept_length", "Accept length", "tok", "tokens accepted a step under speculative decoding", "mean"),
        Gauge("cuda_graph", "CUDA graph", "", "1 where the batch ran as a captured graph, 0 where not", "mean"),
        Gauge("kv_transfer_ms", "KV transfer", "ms", "time to move the KV cache of a request", "max"),
        Gauge("kv_transfer_gb_per_s", "KV transfer speed", "GB/s", "speed at which the KV cache of a request moved", "max"),
        Gauge("throttled", "GPU throttled", "", "1 where power or heat held the clock of a GPU down", "max"),
        Gauge("gpu_util_ratio", "GPU busy", "ratio", "share of the time in which the GPU computed", "max"),
        Gauge("generated_tok_total", "Generated tokens", "tok", "tokens generated since the server started", "max", True),
        Gauge("prompt_tok_total", "Prompt tokens", "tok", "prompt tokens taken since the server started", "max", True),
        Gauge("cached_tok_total", "Cached prompt tokens", "tok", "prompt tokens found in the prefix cache since the server started", "max", True),
        Gauge("requests_total", "Requests", "requests", "requests taken since the server started", "max", True),
        Gauge("requests_failed_total", "Failed requests", "requests", "requests that ended in an error since the server started", "max", True),
        Gauge("requests_aborted_total", "Aborted requests", "requests", "requests that were aborted since the server started", "max", True),
        Gauge("requests_retracted_total", "Retracted requests", "requests", "requests put back for want of memory since the server started", "max", True),
        Gauge("bootstrap_failed_total", "Failed bootstraps", "requests", "requests whose two sides did not meet, since the server started", "max", True),
        Gauge("transfer_failed_total", "Failed transfers", "requests", "requests whose KV transfer failed, since the server started", "max", True),
    )
}  # fmt: skip

EVENTS: dict[str, Event] = {
    event.name: event
    for event in (
        Event("ready", "Server ready", "the server says that it takes requests; a second time is a restart"),
        Event("transfer_failed", "KV transfer failed", "a request whose KV cache did not arrive", "requests", "bootstrap room"),
        Event("bootstrap_failed", "Bootstrap failed", "a request whose two sides did not meet", "requests", "bootstrap room"),
        Event("transfer_aborted", "KV transfer aborted", "a transfer given up because client or peer left: a symptom", "requests", "bootstrap room"),
        Event("queue_full", "Transfer queue full", "rejections since the process started, told at powers of two: at least N, below 2N", "rejections"),
        Event("session_failed", "Transfer session died", "every later transfer to that peer fails", "times", "session"),
        Event("session_recovered", "Transfer session recovered", "transfers to that peer work again", "times", "session"),
        Event("connection_lost", "Peer lost", "the other side of the split is not reached", "requests", "address"),
        Event("transport_error", "Transport error", "the transfer engine could not send", "times", "kind"),
        Event("retracted", "Requests retracted", "requests put back for want of memory", "requests"),
        Event("request_rejected", "Request turned away", "the queue was full", "requests", "HTTP status"),
        Event("crashed", "Server crashed", "out of memory, a dead scheduler, a watchdog", "times", "kind"),
        Event("corrupted", "Cache corrupted", "KV data of another request: the text may be wrong", "times", "bootstrap room"),
        Event("http", "HTTP answers", "answers of the access log in one second; 200 is written when a stream begins", "requests", "HTTP status"),
        Event("router_error", "Router error", "what the router says of a worker", "requests", "kind"),
    )
}  # fmt: skip

# by name in `settings`: numbers in `value`, all else in `text`
SETTINGS = {
    "pool_tok": "tokens that the KV pool holds",
    "kv_dtype": "type of the KV cache, as printed (torch.bfloat16, fp8_e5m2)",
    "model_path": "the model served",
    "quantization": "quantisation of the weights (fp8, awq)",
    "dtype": "type of the weights (auto, bfloat16)",
    "tp_size": "GPUs that share each layer",
    "dp_size": "replicas, each with its own pool",
    "nodes": "machines that one server runs on, each with a log of its own",
    "dp_attention": "True where replicas share the GPUs of one server, each with its own pool",
    "pp_size": "GPUs that share the layers between them",
    "disaggregation_mode": "prefill, decode or null",
    "transfer_backend": "what moves the KV cache (mooncake, nixl)",
    "reserved_tok": "tokens that a decode server sets aside for each request beside its prompt",
    "max_running_requests": "most requests in a batch",
    "log_steps": "decode steps between two lines of its log, 40 unless set",
    "context_tok": "longest prompt and answer together",
    "chunked_prefill_tok": "prompt tokens of one prefill chunk",
    "speculative": "the draft algorithm, where one is set",
    "prefix_cache": "1 where the prefix cache is on",
    "engine_version": "version of the serving engine",
    "weights_gb": "memory of the weights, in GB",
    "free_gb": "memory that is left, in GB",
    "device": "the accelerator, where the log names it",
}
