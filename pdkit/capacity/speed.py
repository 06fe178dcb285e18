"""How fast each side can be at most, where its pool is full."""

import polars as pl

from pdkit.capacity.arithmetic import ServerRole, Step
from pdkit.capacity.known import Known
from pdkit.capacity.pool import server_count
from pdkit.capacity.rows import number_of, text_of
from pdkit.fitting import Fit
from pdkit.machines import (
    ASSUMED,
    Gpu,
    Model,
    decode_ceiling_tok_per_s,
    kv_bytes_per_token,
    prefill_floor_s,
    prefill_flop_per_tok,
    weights_streamed_bytes,
)


def decode_speed(role: ServerRole, here: Known, fit: Fit | None) -> list[Step]:
    """KV bytes, weights, and the ceiling where the pool is full."""
    model, precision = here.model, here.precision or ASSUMED
    if model is None:
        return []
    per_value = here.kv_bytes or 2.0
    kv = kv_bytes_per_token(model, bytes_per_value=per_value)
    steps = [Step("KV cache of a token", _kv_formula(model, per_value), kv, "bytes/tok", places=here.places["kv"])]
    if fit is None or here.gpu is None or here.lengths is None:
        return steps
    weights = weights_streamed_bytes(model, weights=precision, batch=max(1, fit.typical))
    assumed = "" if here.precision else ", assumed"
    formula = f"{model.name} without its input embedding: layers in {precision}{assumed}, head in bf16: {_gb(weights)}"
    steps.append(Step("Weights read a step", formula, weights, "bytes", places=here.places["precision"]))
    context = here.lengths.mean + (here.output_tok or 0) / 2
    steps.append(_ceiling(model, here.gpu.most, here, fit=fit, context_tok=context, kv=kv, gpus=_gpus(role, here)))
    if output := here.output_tok:
        ceiling = steps[-1].value
        steps.append(Step("In requests", f"{ceiling:,.1f} tok/s / {output:,.0f} tok", ceiling / output, "requests/s"))
    return steps


def _ceiling(model: Model, gpu: Gpu, here: Known, *, fit: Fit, context_tok: float, kv: float, gpus: float) -> Step:
    """Weights once and the KV cache of each request a step, at the GPUs' bandwidth; the range is that of the fit."""

    def weights(running: float) -> float:
        return weights_streamed_bytes(model, weights=here.precision or ASSUMED, batch=running)

    def at(running: float) -> float:
        return decode_ceiling_tok_per_s(
            weights_bytes=weights(running), batch=running, context_tok=context_tok, kv_bytes_per_tok=kv,
            bandwidth_bytes_per_s=gpu.bandwidth_bytes_per_s * gpus,
        )  # fmt: skip

    batch, low, high = (max(1, running) for running in (fit.typical, fit.low, fit.high))
    speed = f"{_many(gpus)}{gpu.bandwidth_bytes_per_s / 1e9:,.0f} GB/s of {gpu.name}"
    step_bytes = f"({_gb(weights(batch))} + {batch:,} x {context_tok:,.0f} tok x {kv:,.0f} bytes)"
    formula = f"{batch:,} tok / ({step_bytes} / {speed})"
    return Step("Most it can give then", formula, at(batch), "tok/s", at(low), at(high), _stated(here))


def _many(gpus: float) -> str:
    return f"{gpus:,.0f} x " if gpus != 1 else ""


def _stated(here: Known) -> tuple[str, ...]:
    """Where GPU and model are named."""
    return tuple(dict.fromkeys((*here.places["gpu"], *here.places["model"])))


def _kv_formula(model: Model, per_value: float) -> str:
    if model.is_latent:
        return f"{model.layers} layers x ({model.kv_lora_rank} + {model.rope_dim}) x {per_value:g} bytes"
    return f"2 x {model.layers} layers x {model.kv_heads} KV heads x {model.head_dim} x {per_value:g} bytes"


def prefill_speed(here: Known) -> list[Step]:
    """The prompt tokens that the GPUs' peak allows."""
    if here.model is None or here.gpu is None or here.lengths is None:
        return []
    gpus, gpu = _gpus("prefill", here), here.gpu.most
    flops = gpu.flops_per_s(here.precision or ASSUMED) * gpus
    if not flops:
        return []
    seconds = prefill_floor_s(here.model, prompt_tok=here.lengths.mean, flops_per_s=flops)
    each = f"{prefill_flop_per_tok(here.model) / 1e9:,.1f} GFLOP a token and attention"
    peak = f"{_many(gpus)}{flops / gpus / 1e12:,.0f} TFLOPS of {gpu.name}"
    formula = f"{here.lengths.mean:,.0f} tok / {seconds * 1000:,.1f} ms ({each}, over {peak})"
    return [
        Step("Most it can prefill", formula, here.lengths.mean / seconds, "prompt tok/s", places=_stated(here)),
        Step("In requests", f"1 / {seconds * 1000:,.1f} ms", 1 / seconds, "requests/s"),
    ]


def _gpus(role: ServerRole, here: Known) -> float:
    """GPUs of a role: those that its settings multiply to, else all that the manifest names, else one."""
    own = here.settings.filter(pl.col("role") == role)
    sizes = [number_of(own, name) for name in ("tp_size", "pp_size")]
    if sizes[0]:
        samples = here.samples.filter(pl.col("role") == role)
        shared = text_of(own, "dp_attention") == "True"  # then replicas share the GPUs of one
        replicas = 1 if shared else number_of(own, "dp_size") or 1
        return sizes[0] * (sizes[1] or 1) * replicas * server_count(own, samples)
    return here.gpu_count or 1.0


def _gb(amount: float) -> str:
    """Bytes as a person reads them."""
    return f"{amount / 1e9:,.2f} GB" if amount >= 1e9 else f"{amount / 1e6:,.0f} MB"
