"""How many requests of a workload fit into the memory of each side, and the speed there, as arithmetic to check."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import floor, inf
from typing import Literal, NamedTuple

import polars as pl

from pdkit.fitting import Fit, Lengths, fitting
from pdkit.limits import weighed_gb
from pdkit.machines import (
    ASSUMED,
    Found,
    Machines,
    Model,
    Precision,
    decode_ceiling_tok_per_s,
    known,
    kv_bytes_per_token,
    precision_of,
    prefill_floor_s,
    prefill_flop_per_tok,
    weighed_precision,
    weights_precision_of,
    weights_streamed_bytes,
)
from pdkit.results import Judgement
from pdkit.signals import PD_RESERVED_TOK
from pdkit.units import listed, plural, show

ServerRole = Literal["prefill", "decode", "colocated"]
ROLES: tuple[ServerRole, ...] = ("prefill", "decode", "colocated")

_TWO_DIGITS, _MANY_DIGITS = 0.005, 0.5e-6  # half of the last digit of a log's usage, of a metric's


# --- arithmetic as data ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Step:
    """One line of arithmetic: what is computed, its numbers filled in, the result, and where its inputs stand."""

    title: str
    formula: str
    value: float
    unit: str
    low: float | None = None  # where an input is rounded, or differs from draw to draw
    high: float | None = None
    places: tuple[str, ...] = ()

    @property
    def shown(self) -> str:
        """The result with its unit, and its range where it has one."""
        ends = [end for end in (self.low, self.high) if end is not None]
        between = f" ({' to '.join(_shown(end, self.unit) for end in ends)})" if len(ends) == 2 else ""
        return f"{_shown(self.value, self.unit)} {self.unit}".rstrip() + between

    def __str__(self) -> str:
        return f"{self.title}: {self.formula} = {self.shown}"


@dataclass(frozen=True)
class Side:
    """One side of a split, or the one server that does both: what it holds and how fast it can be.

    `ceiling_tok_per_s` are output tokens on a side that decodes, prompt tokens on one that prefills; `requests_per_s`
    is what that makes of this workload. `unknown` says what is missing, and what would tell.
    """

    role: ServerRole
    steps: tuple[Step, ...] = ()
    pool_tok: float | None = None
    pool_low_tok: float | None = None
    pool_high_tok: float | None = None
    fit: Fit | None = None
    ceiling_tok_per_s: float | None = None
    ceiling_high_tok_per_s: float | None = None  # with as many requests as ever fit
    weights: str = ""  # precision of the weights, and whether it is assumed
    requests_per_s: float | None = None
    running_median: float | None = None  # of all that its log shows, not only while a run lasted
    running_max: float | None = None
    waiting_max: float | None = None
    unknown: tuple[str, ...] = ()

    @property
    def full_at_requests(self) -> int | None:
        """The level at which the pool is full for most draws: from the next request on, they wait."""
        return self.fit.typical if self.fit else None


@dataclass(frozen=True)
class Seen:
    """What one run asked for, and what was seen of it beside the arithmetic."""

    run_id: str
    level: str
    verdict: str
    asked: float | None  # users, or requests in flight on average where none is capped
    is_cap: bool
    running_median: float | None
    running_max: float | None
    claimed_tok_per_s: float | None
    ceilings: float | None  # the claim as a multiple of the ceiling


@dataclass(frozen=True)
class Capacity:
    """The arithmetic of one experiment."""

    experiment: str
    title: str
    sides: tuple[Side, ...] = ()
    seen: tuple[Seen, ...] = ()
    unknown: tuple[str, ...] = ()

    @property
    def limit(self) -> Side | None:
        """The side that fills first; None where not every side is known."""
        fits = [side for side in self.sides if side.fit]
        if not fits or len(fits) < len(self.sides):
            return None
        return min(fits, key=lambda side: side.fit.mean if side.fit else inf)

    def side(self, role: ServerRole) -> Side | None:
        """The side of that role."""
        return next((side for side in self.sides if side.role == role), None)

    def __str__(self) -> str:
        """What it comes to, in words."""
        return " ".join(self.sentences) or f"{self.title}: {listed(list(self.unknown)) or 'nothing is known'}."

    @property
    def sentences(self) -> tuple[str, ...]:
        """The findings of the arithmetic, the limit first."""
        return tuple(_sentences(self))


def _shown(value: float, unit: str) -> str:
    if unit in ("tok", "bytes", "bytes/tok"):
        return f"{value:,.0f}"
    if unit == "requests" and value.is_integer():
        return f"{value:,.0f}"
    return f"{value:,.0f}" if value >= 1000 else f"{value:,.3g}" if value < 1 else f"{value:,.1f}"


def _gb(amount: float) -> str:
    """Bytes as a person reads them."""
    return f"{amount / 1e9:,.2f} GB" if amount >= 1e9 else f"{amount / 1e6:,.0f} MB"


def _sentences(capacity: Capacity) -> Iterator[str]:
    for side in capacity.sides:
        if side.fit and side.pool_tok:
            what = "prompts" if side.role == "prefill" else "requests"
            yield f"{side.role} holds {show(side.pool_tok, 'tok')}: {what} that fit: {side.fit}."
        if side.role != "prefill" and side.ceiling_tok_per_s and side.fit:
            speed, running = f"{side.ceiling_tok_per_s:,.0f} tok/s", plural(side.fit.typical, "request")
            weights = f" (weights in {side.weights})" if side.weights else ""
            yield f"With {running} running, {side.role} gives at most about {speed}{weights}."
    if (limit := capacity.limit) and len(capacity.sides) > 1:
        yield f"The {limit.role} side is the smaller one and limits the pair."
    decode = next((side for side in capacity.sides if side.role != "prefill"), None)
    for seen in capacity.seen:
        if decode and seen.ceilings and seen.ceilings > 1:
            yield _beyond(seen, decode)


def _beyond(seen: Seen, decode: Side) -> str:
    claim, most = seen.claimed_tok_per_s or 0, decode.ceiling_high_tok_per_s or inf
    says = f"{claim:,.2f} tok/s claimed at {seen.level} is {seen.ceilings or 0:,.1f} times that"
    if claim <= most or decode.fit is None:
        return f"{says}."
    return f"{says}, and {claim / most:,.1f} times what {plural(decode.fit.high, 'request')} could be given."


# --- from evidence --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Known:
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


@dataclass(frozen=True)
class _Pool:
    """The KV pool of one replica, how many there are, and the steps that led to it."""

    tok: float
    low_tok: float
    high_tok: float
    replicas: int
    steps: tuple[Step, ...]


def capacity(judgement: Judgement, *, machines: Machines | None = None) -> tuple[Capacity, ...]:
    """The arithmetic of each experiment: what each side holds, how fast it can be there, and what was seen.

    `machines` replaces the table of GPUs and models. It shows claims beside the arithmetic: it is evidence, no result.
    """
    experiments = judgement.verdicts["experiment"].unique(maintain_order=True).to_list()
    return tuple(_of_experiment(judgement, name, machines or known()) for name in experiments if name is not None)


def _of_experiment(judgement: Judgement, experiment: str, machines: Machines) -> Capacity:
    runs = judgement.facts.filter(pl.col("experiment") == experiment)
    label = judgement.verdicts.filter(pl.col("experiment") == experiment)["label"].drop_nulls()
    title = str(label[0]) if len(label) else experiment
    here = _known_of(judgement, experiment, runs, machines)
    roles = [role for role in ROLES if role in set(here.settings["role"]) | set(here.samples["role"])]
    if not roles:
        return Capacity(experiment, title, unknown=("no server log: its start-up lines would tell the pool",))
    sides = [_side(role, here, split=len(roles) > 1 or roles[0] != "colocated") for role in roles]
    sides += [_absent(role) for role in ("prefill", "decode") if "colocated" not in roles and role not in roles]
    ordered = tuple(sorted(sides, key=lambda side: ROLES.index(side.role)))
    return Capacity(experiment, title, ordered, tuple(_seen(judgement, runs, ordered)), here.unknown)


def _absent(role: ServerRole) -> Side:
    return Side(role, unknown=(f"no {role} log: its start-up lines would tell the pool",))


def _known_of(judgement: Judgement, experiment: str, runs: pl.DataFrame, machines: Machines) -> _Known:
    evidence = judgement.evidence
    settings, samples, said = (
        frame.filter(pl.col("experiment") == experiment)
        for frame in (evidence.settings, evidence.samples, evidence.experiments)
    )
    model_name = _first(runs, "model") or _text(settings, "model_path")
    gpu_name = _first(runs, "gpu") or _text(settings, "device")
    model, gpu = machines.model(model_name), machines.gpu(gpu_name)
    said_of_weights = _first(runs, "weights_precision"), _text(settings, "quantization"), _first(runs, "precision")
    precision = weights_precision_of(*said_of_weights, model_name) or weighed_precision(model, weighed_gb(settings))
    kv_precision = precision_of(_text(settings, "kv_dtype"))
    places = {
        "gpu": _places(said.filter(pl.col("gpu").is_not_null())) or _places(_named(settings, "device")),
        "model": _places(said.filter(pl.col("model").is_not_null())) or _places(_named(settings, "model_path")),
        "precision": _places(_named(settings, "quantization")) or _places(_named(settings, "weights_gb")),
        "kv": _places(_named(settings, "kv_dtype")),
    }
    unknown = (
        "" if model else _lacks("model", model_name, "`[[model]]` of your own, or its config.json"),
        "" if gpu else _lacks("GPU", gpu_name, "`gpu` in sweep.toml, or a `[[gpu]]` of your own"),
        gpu.said if gpu else "",
        _assumed("precision of the weights", ASSUMED, "server_args") if model and not precision else "",
        _assumed("type of the KV cache", "bf16", "the start-up lines") if model and not kv_precision else "",
    )
    counts = [count for count in runs["gpu_count"].to_list() if count]
    return _Known(
        settings=settings, samples=samples, lengths=_lengths(judgement, runs), output_tok=_output_tok(runs),
        model=model, gpu=gpu, gpu_count=max(counts, default=None), precision=precision,
        kv_bytes={"fp8": 1.0, "int8": 1.0, "fp4": 0.5, "int4": 0.5}.get(kv_precision or "", 2.0),
        places=places, unknown=tuple(sentence for sentence in unknown if sentence),
    )  # fmt: skip


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


def _side(role: ServerRole, here: _Known, *, split: bool) -> Side:
    pool = _pool(role, here)
    observed = _observed(role, here)
    if pool is None:
        why = f"pool of the {role} side not stated; its start-up lines (max_total_num_tokens) would tell"
        return Side(role, unknown=(why,), **observed._asdict())
    steps, unknown, fit = list(pool.steps), [], None
    if here.lengths is None:
        unknown.append("prompt lengths not known; a record with `--output-details` would tell")
    else:
        ran = (observed.running_max or 0) / pool.replicas
        sets_aside = split and role == "decode" and _sets_aside(here, pool, ran)
        beside, request = _request(role, here, sets_aside=sets_aside)
        if split and role == "decode" and _reserves(here) and not sets_aside:
            unknown.append(f"{ran:,.0f} ran at once: less is set aside than SGLang's {PD_RESERVED_TOK} tok a request")
        fit = fitting(here.lengths, pool_tok=pool.tok, beside_tok=beside).times(pool.replicas)
        steps += [request, _fit_step(role, here.lengths, pool, beside, fit)]
    speed = _decode_speed(role, here, fit) if role != "prefill" else _prefill_speed(here)
    steps += speed
    ceiling = next((step for step in speed if step.unit.endswith("tok/s")), None)
    return Side(
        role,
        tuple(steps),
        pool_tok=pool.tok * pool.replicas,
        pool_low_tok=pool.low_tok * pool.replicas,
        pool_high_tok=pool.high_tok * pool.replicas,
        fit=fit,
        ceiling_tok_per_s=ceiling.value if ceiling else None,
        ceiling_high_tok_per_s=ceiling.high if ceiling else None,
        weights=(here.precision or f"{ASSUMED}, assumed") if ceiling else "",
        requests_per_s=next((step.value for step in speed if step.unit == "requests/s"), None),
        unknown=tuple(unknown),
        **observed._asdict(),
    )


# --- the pool -------------------------------------------------------------------------------------------------------


def _pool(role: ServerRole, here: _Known) -> _Pool | None:
    """The pool that the servers of a role state, with the one that their lines give beside it."""
    own = here.settings.filter(pl.col("role") == role)
    given = _named(own, "pool_tok").filter(pl.col("value") > 0).unique(["instance"], keep="last", maintain_order=True)
    lines = _lines(here.samples.filter(pl.col("role") == role))
    inferred = list(_inferred(lines))
    replicas = _servers(own, here.samples.filter(pl.col("role") == role)) * round(_number(own, "dp_size") or 1)
    if given.height:
        sizes = [float(size) for size in given["value"]]
        tok, low, high = sum(sizes) / len(sizes), min(sizes), max(sizes)
        says = "as its log states" if low == high else f"mean of {len(sizes)} logs"
        ends = (None, None) if low == high else (low, high)
        step = Step(f"KV pool of {role}", says, tok, "tok", ends[0], ends[1], _places(given))
        return _Pool(tok, low, high, replicas, (step, *inferred))
    if not inferred:
        return None
    best = inferred[-1]
    return _Pool(best.value, best.low or best.value, best.high or best.value, replicas, tuple(inferred))


def _servers(settings: pl.DataFrame, samples: pl.DataFrame) -> int:
    """Servers of a role: those that print what they run by; a page of metrics beside a log is no second server."""
    with_arguments = settings.filter(pl.col("name").is_in(["model_path", "tp_size"]))["instance"].n_unique()
    return with_arguments or len(set(settings["instance"]) | set(samples["instance"])) or 1


def _lines(samples: pl.DataFrame) -> pl.DataFrame:
    """Lines that print tokens held and the share of the pool that these are, with how many waited for memory."""
    wanted = ("kv_used_tok", "kv_used_ratio", "prealloc_requests", "queued_requests")
    one = samples.filter(pl.col("metric").is_in(wanted), pl.col("value_min") == pl.col("value_max"))
    key = ["instance", "rank", "clock"]
    wide = one.pivot("metric", on_columns=list(wanted), index=key, values="value_max", aggregate_function="first")
    placed = one.group_by(key).agg(pl.col("source_file", "source_line").first())
    ratio = pl.col("kv_used_ratio")
    printed = pl.when((ratio * 100 - (ratio * 100).round()).abs() < 1e-6).then(_TWO_DIGITS).otherwise(_MANY_DIGITS)
    return (
        wide.join(placed, on=key, how="left")
        .filter(pl.col("kv_used_tok") > 0, ratio > printed, ratio <= 1)
        .with_columns(
            (pl.col("kv_used_tok") / ratio).alias("pool"),
            (pl.col("kv_used_tok") / (ratio + printed)).alias("low"),
            (pl.col("kv_used_tok") / (ratio - printed)).alias("high"),
            (ratio - printed).alias("ratio_low"),
            (ratio + printed).alias("ratio_high"),
            pl.max_horizontal(pl.col("prealloc_requests", "queued_requests").fill_null(0)).alias("waiting"),
        )
        .sort("clock", "instance", "rank")
    )


def _inferred(lines: pl.DataFrame) -> Iterator[Step]:
    """The pool as one line gives it (the first with the longest queue), then as all do."""
    if lines.is_empty():
        return
    waiting = lines["waiting"]
    busiest = pl.col("waiting") == pl.col("waiting").max()
    some_waited = (_float(waiting.max()) or 0) > 0
    chosen = lines.filter(busiest) if some_waited else lines.sort("kv_used_ratio", descending=True)
    line = chosen.row(0, named=True)
    ratio, low, high = line["kv_used_ratio"], line["ratio_low"], line["ratio_high"]
    digits = f"{ratio:.2f}" if high - low > _TWO_DIGITS else f"{ratio:.6g}"
    yield Step(
        "The same from one line",
        f"{line['kv_used_tok']:,.0f} tok / {digits}, which is rounded: {low:.4g} to {high:.4g}",
        line["pool"], "tok", line["low"], line["high"], (f"{line['source_file']}:{line['source_line']}",),
    )  # fmt: skip
    least, most = _float(lines["low"].max()), _float(lines["high"].min())
    if lines.height > 1 and least is not None and most is not None and least <= most:
        formula = f"where the ranges of {lines.height:,} lines meet"
        yield Step("The same from all lines", formula, (least + most) / 2, "tok", least, most)


# --- requests -------------------------------------------------------------------------------------------------------


def _request(role: ServerRole, here: _Known, *, sets_aside: bool) -> tuple[float, Step]:
    """What a request takes beside its prompt, and the step that says so."""
    lengths = here.lengths
    assert lengths is not None
    prompt = f"{lengths.mean:,.0f} tok prompt ({lengths.said})"
    if role == "prefill":
        return 0.0, Step("A request takes", prompt, lengths.mean, "tok")
    if sets_aside:
        beside, stated = _set_aside(here)
        origin = "as stated" if stated.height else "SGLang's default: --num-reserved-decode-tokens"
        formula = f"{prompt} + {beside:,.0f} tok set aside ({origin})"
        return beside, Step("A request takes", formula, lengths.mean + beside, "tok", places=_places(stated))
    output = here.output_tok or 0.0
    return output, Step("A request takes", f"{prompt} + {output:,.0f} tok output", lengths.mean + output, "tok")


def _set_aside(here: _Known) -> tuple[float, pl.DataFrame]:
    """Tokens that a decode side sets aside for each request, and the rows that state it: none for the default."""
    own = here.settings.filter(pl.col("role") == "decode")
    stated = _named(own, "reserved_tok").filter(pl.col("value") >= 0)
    most = _float(stated["value"].max())
    return float(PD_RESERVED_TOK) if most is None else most, stated


def _sets_aside(here: _Known, pool: _Pool, ran: float) -> bool:
    """Whether the decode side sets tokens aside: no more ran at once than that lets in, unless its settings say so."""
    if here.lengths is None or not _reserves(here):
        return False
    beside, stated = _set_aside(here)
    return stated.height > 0 or ran * (min(here.lengths.tok) + beside) <= pool.tok


def _reserves(here: _Known) -> bool:
    """Whether the decode side is one of SGLang, which sets tokens aside for each request."""
    names = set(here.settings["name"])
    return bool({"disaggregation_mode", "reserved_tok"} & names) or "prealloc_requests" in set(here.samples["metric"])


def _fit_step(role: ServerRole, lengths: Lengths, pool: _Pool, beside: float, fit: Fit) -> Step:
    what = "Prompts" if role == "prefill" else "Requests"
    each = [
        f"{tok:,} tok: {floor(pool.tok / (tok + beside)) * pool.replicas:,}"
        for tok in sorted({min(lengths.tok), round(lengths.mean), max(lengths.tok)})
        if tok + beside > 0
    ]
    many = f"{pool.replicas} pools x " if pool.replicas > 1 else ""
    more = f" + k x {beside:,.0f}" if beside else ""
    formula = f"{many}largest k with k prompts{more} <= {pool.tok:,.0f} tok: {fit} (prompts of {', '.join(each)})"
    ratio = f"; {pool.tok:,.0f} / {lengths.mean + beside:,.0f} = {pool.tok / (lengths.mean + beside):,.1f}"
    return Step(f"{what} that fit", formula + ratio, float(fit.typical), "requests", float(fit.low), float(fit.high))


# --- speed ----------------------------------------------------------------------------------------------------------


def _gpus(role: ServerRole, here: _Known) -> float:
    """GPUs of a role: those that its settings multiply to, else all that the manifest names, else one."""
    own = here.settings.filter(pl.col("role") == role)
    sizes = [_number(own, name) for name in ("tp_size", "pp_size")]
    if sizes[0]:
        samples = here.samples.filter(pl.col("role") == role)
        shared = _text(own, "dp_attention") == "True"  # then replicas share the GPUs of one
        replicas = 1 if shared else _number(own, "dp_size") or 1
        return sizes[0] * (sizes[1] or 1) * replicas * _servers(own, samples)
    return here.gpu_count or 1.0


def _decode_speed(role: ServerRole, here: _Known, fit: Fit | None) -> list[Step]:
    """KV bytes, weights, and the ceiling where the pool is full."""
    model, precision = here.model, here.precision or ASSUMED
    if model is None:
        return []
    per_value = here.kv_bytes or 2.0
    kv = kv_bytes_per_token(model, bytes_per_value=per_value)
    steps = [Step("KV cache of a token", _kv_formula(model, per_value), kv, "bytes/tok", places=here.places["kv"])]
    if fit is None or here.gpu is None or here.lengths is None:
        return steps
    batch = max(1, fit.typical)
    weights = weights_streamed_bytes(model, weights=precision, batch=batch)
    assumed = "" if here.precision else ", assumed"
    formula = f"{model.name} without its input embedding: layers in {precision}{assumed}, head in bf16: {_gb(weights)}"
    steps.append(Step("Weights read a step", formula, weights, "bytes", places=here.places["precision"]))
    context, gpus, gpu = here.lengths.mean + (here.output_tok or 0) / 2, _gpus(role, here), here.gpu.most

    def at(running: float) -> float:
        return decode_ceiling_tok_per_s(
            weights_bytes=weights_streamed_bytes(model, weights=precision, batch=running), batch=running,
            context_tok=context, kv_bytes_per_tok=kv, bandwidth_bytes_per_s=gpu.bandwidth_bytes_per_s * gpus,
        )  # fmt: skip

    many = f"{gpus:,.0f} x " if gpus != 1 else ""
    speed = f"{many}{gpu.bandwidth_bytes_per_s / 1e9:,.0f} GB/s of {gpu.name}"
    step_bytes = f"({_gb(weights)} + {batch:,} x {context:,.0f} tok x {kv:,.0f} bytes)"
    ceiling = at(batch)
    low, high = at(max(1, fit.low)), at(max(1, fit.high))
    places = tuple(dict.fromkeys((*here.places["gpu"], *here.places["model"])))
    steps.append(
        Step("Most it can give then", f"{batch:,} tok / ({step_bytes} / {speed})", ceiling, "tok/s", low, high, places)
    )
    if output := here.output_tok:
        steps.append(Step("In requests", f"{ceiling:,.1f} tok/s / {output:,.0f} tok", ceiling / output, "requests/s"))
    return steps


def _kv_formula(model: Model, per_value: float) -> str:
    if model.is_latent:
        return f"{model.layers} layers x ({model.kv_lora_rank} + {model.rope_dim}) x {per_value:g} bytes"
    return f"2 x {model.layers} layers x {model.kv_heads} KV heads x {model.head_dim} x {per_value:g} bytes"


def _prefill_speed(here: _Known) -> list[Step]:
    if here.model is None or here.gpu is None or here.lengths is None:
        return []
    gpus, gpu = _gpus("prefill", here), here.gpu.most
    flops = gpu.flops_per_s(here.precision or ASSUMED) * gpus
    if not flops:
        return []
    seconds = prefill_floor_s(here.model, prompt_tok=here.lengths.mean, flops_per_s=flops)
    each = f"{prefill_flop_per_tok(here.model) / 1e9:,.1f} GFLOP a token and attention"
    many = f"{gpus:,.0f} x " if gpus != 1 else ""
    peak = f"{many}{flops / gpus / 1e12:,.0f} TFLOPS of {gpu.name}"
    places = tuple(dict.fromkeys((*here.places["gpu"], *here.places["model"])))
    formula = f"{here.lengths.mean:,.0f} tok / {seconds * 1000:,.1f} ms ({each}, over {peak})"
    return [
        Step("Most it can prefill", formula, here.lengths.mean / seconds, "prompt tok/s", places=places),
        Step("In requests", f"1 / {seconds * 1000:,.1f} ms", 1 / seconds, "requests/s"),
    ]


# --- what was seen --------------------------------------------------------------------------------------------------


class _Observed(NamedTuple):
    """Requests that ran and waited in all that the logs of a role show."""

    running_median: float | None
    running_max: float | None
    waiting_max: float | None


def _observed(role: ServerRole, here: _Known) -> _Observed:
    """Of several servers, their sum at each second; seconds in which nothing ran are left out of the median."""
    own = here.samples.filter(pl.col("role") == role)

    def of(metric: str) -> pl.Series:
        per_second = own.filter(pl.col("metric") == metric).group_by("clock").agg(pl.col("value_max").sum())
        return per_second["value_max"]

    running, waiting = of("running_requests"), of("prealloc_requests" if role == "decode" else "queued_requests")
    busy = running.filter(running > 0)
    return _Observed(_float(busy.median()), _float(busy.max()), _float(waiting.max()))


def _seen(judgement: Judgement, runs: pl.DataFrame, sides: Sequence[Side]) -> Iterator[Seen]:
    """Each run in the order of its level: what it asked for, what ran, and its claim against the ceiling."""
    decode = next((side for side in sides if side.role != "prefill"), None)
    ceiling = decode.ceiling_tok_per_s if decode else None
    said = judgement.verdicts.select("run_id", "level", pl.col("verdict").cast(pl.String))
    none = pl.lit(None, pl.Float64)
    numbers = {name: pl.col(name) if name in runs.columns else none for name in _SEEN}
    rows = runs.select("run_id", **numbers).join(said, on="run_id", how="left", maintain_order="left")
    for row in rows.iter_rows(named=True):
        cap = row["concurrency"]
        is_cap = cap is not None and cap < inf
        claim = row["output_throughput_tok_per_s"]
        yield Seen(
            run_id=row["run_id"], level=row["level"] or "level not stated", verdict=row["verdict"],
            asked=cap if is_cap else row["concurrency_mean"], is_cap=is_cap,
            running_median=row["decode_running_median"], running_max=row["decode_running_max"],
            claimed_tok_per_s=claim, ceilings=claim / ceiling if claim is not None and ceiling else None,
        )  # fmt: skip


_SEEN = (
    "concurrency", "concurrency_mean", "output_throughput_tok_per_s", "decode_running_median", "decode_running_max",
)  # fmt: skip


# --- reading frames -------------------------------------------------------------------------------------------------


def _named(settings: pl.DataFrame, name: str) -> pl.DataFrame:
    return settings.filter(pl.col("name") == name)


def _text(settings: pl.DataFrame, name: str) -> str | None:
    return _first(_named(settings, name), "text")


def _number(settings: pl.DataFrame, name: str) -> float | None:
    values = _named(settings, name)["value"].drop_nulls()
    return _float(values.max())


def _first(frame: pl.DataFrame, column: str) -> str | None:
    if column not in frame.columns:
        return None
    values = frame[column].drop_nulls()
    return str(values[0]) if len(values) else None


def _float(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _places(rows: pl.DataFrame) -> tuple[str, ...]:
    """Where rows stand, each once."""
    placed = rows.select("source_file", "source_line").drop_nulls().unique(maintain_order=True)
    return tuple(f"{file}:{line}" for file, line in placed.iter_rows())
