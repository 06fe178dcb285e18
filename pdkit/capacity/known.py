"""What is known of one experiment: its prompts, its model, its GPU, and what nobody states."""

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from pdkit.capacity.rows import first_of, named, places_of, text_of
from pdkit.fitting import Lengths
from pdkit.limits import weighed_gb
from pdkit.machines import (
    ASSUMED,
    Found,
    Machines,
    Model,
    Precision,
    precision_of,
    weighed_precision,
    weights_precision_of,
)
from pdkit.results import Judgement
from pdkit.units import plural


@dataclass(frozen=True)
class Known:
    """What is known of one experiment, and where it stands."""

    settings: pl.DataFrame
    samples: pl.DataFrame
    lengths: Lengths | None
    output_tok: float | None
    model: Model | None
    gpu: Found | None
    gpu_count: float | None
    precision: Precision | None
    kv_bytes: float | None
    places: Mapping[str, tuple[str, ...]]
    unknown: tuple[str, ...] = ()


def known_of(judgement: Judgement, experiment: str, runs: pl.DataFrame, machines: Machines) -> Known:
    """What logs, manifest and the table of machines say of an experiment."""
    evidence = judgement.evidence
    settings, samples, said = (
        frame.filter(pl.col("experiment") == experiment)
        for frame in (evidence.settings, evidence.samples, evidence.experiments)
    )
    model_name = first_of(runs, "model") or text_of(settings, "model_path")
    gpu_name = first_of(runs, "gpu") or text_of(settings, "device")
    model, gpu = machines.model(model_name), machines.gpu(gpu_name)
    stated = first_of(runs, "weights_precision"), text_of(settings, "quantization"), first_of(runs, "precision")
    precision = weights_precision_of(*stated, model_name) or weighed_precision(model, weighed_gb(settings))
    kv_precision = precision_of(text_of(settings, "kv_dtype"))
    unknown = (
        "" if model else _lacks("model", model_name, "`[[model]]` of your own, or its config.json"),
        "" if gpu else _lacks("GPU", gpu_name, "`gpu` in sweep.toml, or a `[[gpu]]` of your own"),
        gpu.said if gpu else "",
        _assumed("precision of the weights", ASSUMED, "server_args") if model and not precision else "",
        _assumed("type of the KV cache", "bf16", "the start-up lines") if model and not kv_precision else "",
    )
    counts = [count for count in runs["gpu_count"].to_list() if count]
    return Known(
        settings=settings, samples=samples, lengths=_lengths(judgement, runs), output_tok=_output_tok(runs),
        model=model, gpu=gpu, gpu_count=max(counts, default=None), precision=precision,
        kv_bytes={"fp8": 1.0, "int8": 1.0, "fp4": 0.5, "int4": 0.5}.get(kv_precision or "", 2.0),
        places=_stated(settings, said), unknown=tuple(sentence for sentence in unknown if sentence),
    )  # fmt: skip


def _stated(settings: pl.DataFrame, said: pl.DataFrame) -> dict[str, tuple[str, ...]]:
    """The lines that each input stands in: the manifest's before the server's."""
    return {
        "gpu": places_of(said.filter(pl.col("gpu").is_not_null())) or places_of(named(settings, "device")),
        "model": places_of(said.filter(pl.col("model").is_not_null())) or places_of(named(settings, "model_path")),
        "precision": places_of(named(settings, "quantization")) or places_of(named(settings, "weights_gb")),
        "kv": places_of(named(settings, "kv_dtype")),
    }


def _lacks(what: str, name: str | None, remedy: str) -> str:
    lack = f"{what} {name!r} is not in the table" if name else f"{what} not stated"
    return f"{lack}; {remedy} would tell"


def _assumed(what: str, value: str, remedy: str) -> str:
    return f"{what} not stated: {value} assumed; {remedy} would tell"


def _lengths(judgement: Judgement, runs: pl.DataFrame) -> Lengths | None:
    """The prompts of all runs; where only their sum is known, one prompt of mean length."""
    requests = judgement.evidence.requests.filter(
        pl.col("run_id").is_in(runs["run_id"].implode()), pl.col("input_tok") > 0
    ).unique(["run_id", "request_index"], keep="first", maintain_order=True)
    if requests.height:
        tok = requests["input_tok"].to_list()
        return Lengths.of(tok, f"mean of {plural(len(tok), 'prompt')}, {min(tok):,} to {max(tok):,}")
    each = (pl.col("input_tok_sum") / pl.col("completed")).alias("each")
    mean = runs.select(each).filter(pl.col("each").is_finite())["each"].mean()
    if not isinstance(mean, float) or mean < 1:
        return None
    return Lengths((round(mean),), (1.0,), "mean prompt; the length of each is not known")


def _output_tok(runs: pl.DataFrame) -> float | None:
    """Output tokens of a request: those asked for, else those claimed."""
    each = pl.coalesce("output_tok_asked_each", pl.col("output_tok_sum") / pl.col("completed")).alias("each")
    mean = runs.select(each).filter(pl.col("each").is_finite(), pl.col("each") > 0)["each"].mean()
    return mean if isinstance(mean, float) else None
