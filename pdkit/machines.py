"""GPUs and models: what each can do at most, every cell with its source, and the bounds that follow from them."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pdkit.errors import PdkitError, one_of
from pdkit.toml import read_toml, tables_of

Precision = Literal["fp32", "bf16", "fp8", "int8", "fp4", "int4"]
BYTES_PER_VALUE: Mapping[Precision, float] = {"fp32": 4, "bf16": 2, "fp8": 1, "int8": 1, "fp4": 0.5, "int4": 0.5}
FEWEST: Precision = "int4"  # no format in wide use has fewer bytes: a bound that refuses may assume no more
ASSUMED: Precision = "fp8"  # in arithmetic that only shows, where nobody states a precision

_GIB, _TERA, _GIGA = 2**30, 1e12, 1e9


class Cell(NamedTuple):
    """One number of a table and where it comes from."""

    value: float
    source: str


@dataclass(frozen=True)
class Gpu:
    """One accelerator: peaks of its data sheet, dense; what a server reaches is less."""

    name: str
    memory_gib: Cell
    bandwidth_tb_per_s: Cell
    tflops: Mapping[Precision, Cell]
    link_gb_per_s: Cell | None = None  # the fastest way to another GPU, one direction
    family: frozenset[str] = frozenset()  # words that a name must have, and those that it may have
    words: frozenset[str] = frozenset()

    @property
    def bandwidth_bytes_per_s(self) -> float:
        """How fast its memory is read."""
        return self.bandwidth_tb_per_s.value * _TERA

    @property
    def memory_bytes(self) -> float:
        """How much it holds."""
        return self.memory_gib.value * _GIB

    @property
    def link_bytes_per_s(self) -> float | None:
        """How fast data leaves it at most."""
        return self.link_gb_per_s.value * _GIGA if self.link_gb_per_s else None

    def flops_per_s(self, weights: Precision | None) -> float:
        """Its peak for weights of a precision; of all where none is stated, or where weights are unpacked first."""
        exact = {"bf16": ("bf16",), "fp32": ("bf16",), "fp8": ("bf16", "fp8", "int8"), "int8": ("bf16", "fp8", "int8")}
        usable = [
            cell.value for name, cell in self.tflops.items() if name in exact.get(weights or "", tuple(self.tflops))
        ]
        return max(usable, default=0.0) * _TERA


@dataclass(frozen=True)
class Model:
    """The sizes of one model, as its config.json has them; what it weighs follows."""

    name: str
    layers: int
    query_heads: int
    hidden: int
    vocab: int
    source: str
    kv_heads: int = 0
    head_dim: int = 0
    ffn: int = 0
    tied: bool = False
    attention_bias: bool = False
    qk_norm: bool = False
    window_tok: int | None = None  # attention looks back no further
    # mixture of experts: `dense_layers` have a plain FFN of width `ffn`
    experts: int = 0
    experts_per_tok: int = 0
    shared_experts: int = 0
    expert_ffn: int = 0
    dense_layers: int = 0
    # multi-head latent attention
    q_lora_rank: int = 0
    kv_lora_rank: int = 0
    nope_dim: int = 0
    rope_dim: int = 0
    value_dim: int = 0
    precision: Precision | None = None  # of the published weights, where it is not bf16

    @property
    def is_latent(self) -> bool:
        """Whether it keeps one latent a token and layer (MLA) in place of keys and values."""
        return self.kv_lora_rank > 0

    @property
    def kv_values_per_tok(self) -> int:
        """Numbers that the KV cache keeps of each token."""
        if self.is_latent:
            return self.layers * (self.kv_lora_rank + self.rope_dim)
        return self.layers * 2 * self.kv_heads * self.head_dim

    @property
    def embedding_params(self) -> int:
        """Parameters of the input embedding; the head has as many, or is the same where tied."""
        return self.vocab * self.hidden

    @property
    def params(self) -> int:
        """All parameters."""
        heads = 1 if self.tied else 2
        return self.linear_params(self.experts) + heads * self.embedding_params

    def linear_params(self, experts: float) -> int:
        """Parameters of all layers, without embedding and head, with so many experts of each sparse layer."""
        sparse = self.layers - self.dense_layers if self.experts else 0
        dense = (self.layers - sparse) * 3 * self.hidden * self.ffn
        routed = sparse * (
            (experts + self.shared_experts) * 3 * self.hidden * self.expert_ffn + self.hidden * self.experts
        )
        norms = self.layers * 2 * self.hidden + self.hidden
        return round(self.layers * self._attention_params() + dense + routed + norms)

    def _attention_params(self) -> int:
        if self.is_latent:
            query_dim = self.nope_dim + self.rope_dim
            query = self.hidden * self.q_lora_rank + self.q_lora_rank * (self.query_heads * query_dim + 1)
            latent = self.hidden * (self.kv_lora_rank + self.rope_dim) + self.kv_lora_rank
            unpacked = self.kv_lora_rank * self.query_heads * (self.nope_dim + self.value_dim)
            return query + latent + unpacked + self.query_heads * self.value_dim * self.hidden
        width = (self.query_heads + 2 * self.kv_heads) * self.head_dim
        bias = width if self.attention_bias else 0
        norms = 2 * self.head_dim if self.qk_norm else 0
        return self.hidden * width + self.query_heads * self.head_dim * self.hidden + bias + norms

    @property
    def attention_dim(self) -> int:
        """Values that one query is held against for each earlier token, in all heads of a layer: scores and sum."""
        if self.is_latent:
            return self.query_heads * (self.nope_dim + self.rope_dim + self.value_dim) // 2
        return self.query_heads * self.head_dim


# --- formulas: units in names, each can be worked out by hand -------------------------------------------------------


def kv_bytes_per_token(model: Model, *, bytes_per_value: float = 2) -> float:
    """What the KV cache of one token weighs."""
    return model.kv_values_per_tok * bytes_per_value


def experts_touched(model: Model, *, batch: float) -> float:
    """Experts of a layer that a batch reads on average, if each token picks at random."""
    if not model.experts:
        return 0.0
    passed_over: float = (1 - model.experts_per_tok / model.experts) ** batch
    return model.experts * (1 - passed_over)


def weights_streamed_bytes(
    model: Model, *, weights: Precision, head: Precision | None = None, batch: float = 1
) -> float:
    """What one decode step reads of the weights: all layers and the head, not the input embedding.

    `head` is the precision of the head, which most quantisers leave as it was: bf16 where nothing is said.
    """
    layers = model.linear_params(experts_touched(model, batch=batch)) * BYTES_PER_VALUE[weights]
    return layers + model.embedding_params * BYTES_PER_VALUE[head or _head(weights)]


def least_streamed_bytes(model: Model, *, weights: Precision) -> float:
    """The least that a step may read: the experts of one token, since all may want the same, and no finer head."""
    parameters = model.linear_params(model.experts_per_tok) + model.embedding_params
    return parameters * BYTES_PER_VALUE[weights]


def weights_resident_bytes(model: Model, *, weights: Precision, head: Precision | None = None) -> float:
    """What the weights take of the memory, embedding and all experts included."""
    embeddings = model.params - model.linear_params(model.experts)
    return (
        model.linear_params(model.experts) * BYTES_PER_VALUE[weights]
        + embeddings * BYTES_PER_VALUE[head or _head(weights)]
    )


def _head(weights: Precision) -> Precision:
    return "fp32" if weights == "fp32" else "bf16"


def decode_step_s(
    *, weights_bytes: float, batch: float, context_tok: float, kv_bytes_per_tok: float, bandwidth_bytes_per_s: float
) -> float:
    """The least that one decode step takes: weights once, and the KV cache of every request, through the memory."""
    return (weights_bytes + batch * context_tok * kv_bytes_per_tok) / bandwidth_bytes_per_s


def decode_ceiling_tok_per_s(
    *,
    weights_bytes: float,
    batch: float,
    context_tok: float,
    kv_bytes_per_tok: float,
    bandwidth_bytes_per_s: float,
    accept_tok: float = 1,
) -> float:
    """The most that so many requests can be given: `accept_tok` tokens each, a step."""
    step_s = decode_step_s(
        weights_bytes=weights_bytes,
        batch=batch,
        context_tok=context_tok,
        kv_bytes_per_tok=kv_bytes_per_tok,
        bandwidth_bytes_per_s=bandwidth_bytes_per_s,
    )
    return batch * accept_tok / step_s


def prefill_floor_s(model: Model, *, prompt_tok: float, flops_per_s: float) -> float:
    """The least that computing a prompt takes."""
    return (
        prefill_flop_per_tok(model) * prompt_tok + attention_flop_per_pair(model) * prompt_tok * (prompt_tok + 1) / 2
    ) / flops_per_s


def prefill_flop_per_tok(model: Model) -> float:
    """Operations that each prompt token takes in the linear layers: two a parameter that it touches."""
    return 2.0 * model.linear_params(model.experts_per_tok)


def attention_flop_per_pair(model: Model) -> float:
    """Operations for each pair of a token and one before it; none is counted where a window ends the looking back."""
    return 0.0 if model.window_tok else 4.0 * model.layers * model.attention_dim


def transfer_floor_s(*, prompt_tok: float, kv_bytes_per_tok: float, link_bytes_per_s: float) -> float:
    """The least that moving a prompt's KV cache takes."""
    return prompt_tok * kv_bytes_per_tok / link_bytes_per_s


# --- finding them by name -------------------------------------------------------------------------------------------

_VENDOR = {"nvidia", "amd", "instinct", "tesla", "geforce", "tensor", "core", "gpu", "gpus", "accelerator", "ai", "x"}
_TIMES = re.compile(r"^\s*\d+\s*[x×*]\s*|\s*[x×*]\s*\d+\s*$", re.IGNORECASE)
# what a name may say beyond the model: none of it changes its sizes
_TUNED = {
    "instruct", "base", "chat", "it", "hf", "thinking", "v0", "1", "2507", "0324", "0528", "0905", "meta", "dynamic",
    "block", "quantized", "bf16", "fp16", "fp8", "w8a8", "int8", "awq", "gptq", "int4", "w4a16", "4bit", "fp4",
    "nvfp4", "mxfp4", "marlin", "g128",
}  # fmt: skip
_ARITHMETIC = {"auto", "bfloat16", "float16", "half", "float", "float32"}
_SAYS_PRECISION: Mapping[str, Precision] = {
    "bf16": "bf16", "fp16": "bf16", "bfloat16": "bf16", "float16": "bf16", "half": "bf16", "fp8": "fp8",
    "w8a8": "int8", "int8": "int8", "awq": "int4", "gptq": "int4", "int4": "int4", "w4a16": "int4", "4bit": "int4",
    "marlin": "int4", "fp4": "fp4", "nvfp4": "fp4", "mxfp4": "fp4", "float32": "fp32", "fp32": "fp32",
}  # fmt: skip


@dataclass(frozen=True)
class Found:
    """The GPUs that a name may mean: one, or those of a family between which it does not say."""

    given: str
    gpus: tuple[Gpu, ...]

    @property
    def said(self) -> str:
        """What was assumed, where the name does not say; "" where it does."""
        if len(self.gpus) == 1:
            return ""
        names = ", ".join(gpu.name for gpu in self.gpus)
        return f"{self.given!r} may be {names}: the most of each number is taken"

    @property
    def most(self) -> Gpu:
        """The most generous of them, number by number, so that no bound refuses wrongly."""
        return self.gpus[0] if len(self.gpus) == 1 else _most_of(self.given, self.gpus)

    @property
    def least_bandwidth_bytes_per_s(self) -> float:
        """Of the slowest of them."""
        return min(gpu.bandwidth_bytes_per_s for gpu in self.gpus)


def _most_of(name: str, gpus: Sequence[Gpu]) -> Gpu:
    peaks = {precision for gpu in gpus for precision in gpu.tflops}
    return Gpu(
        name=name,
        memory_gib=max(gpu.memory_gib for gpu in gpus),
        bandwidth_tb_per_s=max(gpu.bandwidth_tb_per_s for gpu in gpus),
        tflops={p: max(gpu.tflops[p] for gpu in gpus if p in gpu.tflops) for p in peaks},
        link_gb_per_s=max((gpu.link_gb_per_s for gpu in gpus if gpu.link_gb_per_s), default=None),
    )


@dataclass(frozen=True)
class Machines:
    """What is known of GPUs and models; a user's own come first."""

    gpus: tuple[Gpu, ...]
    models: tuple[Model, ...]
    own: frozenset[str] = field(default_factory=frozenset)  # names that a user gave, as they wrote them

    def gpu(self, name: str | None) -> Found | None:
        """The GPUs that a loosely spelt name may mean (`NVIDIA L4`, `8x H100 SXM`); None where none is known."""
        bare = _TIMES.sub("", name or "")
        if exact := tuple(
            gpu for gpu in self.gpus if gpu.name in self.own and gpu.name.lower() == bare.lower().strip()
        ):
            return Found(bare, exact[:1])
        words = _gpu_words(bare)
        found = tuple(
            gpu for gpu in self.gpus if gpu.family and gpu.family <= words and words <= gpu.family | gpu.words
        )
        return Found(bare.strip(), found) if found else None

    def model(self, name: str | None) -> Model | None:
        """The model of a name or path (`Qwen/Qwen3-8B`, `/models/Qwen3-8B-FP8`); None where its sizes are not known."""
        for model in self.models:
            if model.name in self.own and (name or "").strip("/ ").lower() == model.name.lower():
                return model
        parts = [part for part in re.split(r"/|--", (name or "").lower()) if part]
        known = {model.name.lower().rpartition("/")[2]: model for model in reversed(self.models)}
        for part in reversed(parts):
            bare = part.removeprefix("meta-")
            matches = [key for key in known if bare == key or _is_tuned(bare, key)]
            if matches:
                return known[max(matches, key=len)]
        return None


def _is_tuned(name: str, key: str) -> bool:
    """Whether a name is that of a model and words that change none of its sizes."""
    if not name.startswith((f"{key}-", f"{key}_", f"{key}.")):
        return False
    return set(re.split(r"[-_.]", name[len(key) + 1 :])) <= _TUNED


def _gpu_words(name: str) -> frozenset[str]:
    """`NVIDIA A100-SXM4-80GB` as a100, sxm4, 80gb."""
    spaced = re.sub(r"(\d+)\s*(?:gb|gib|g)\b", r"\1gb", name.lower())
    return frozenset(re.findall(r"[a-z0-9]+", spaced)) - _VENDOR


def precision_of(*said: str | None) -> Precision | None:
    """The precision that the first text names which names one: `fp8`, `torch.bfloat16`, a model's name."""
    words = (word for text in said for word in re.findall(r"[a-z0-9]+", (text or "").lower()))
    return next((_SAYS_PRECISION[word] for word in words if word in _SAYS_PRECISION), None)


def weights_precision_of(*said: str | None) -> Precision | None:
    """The same of weights: a server's `dtype` is that of its arithmetic, and says nothing of what it unpacks."""
    return precision_of(*(None if (text or "").rpartition(".")[2].lower() in _ARITHMETIC else text for text in said))


# of what the weights should take: GB or GiB, norms and head kept finer; precisions lie a factor of two apart
_WEIGHS = (0.8, 1.25)


def weighed_precision(model: Model | None, weighed_gb: float | None) -> Precision | None:
    """The precision at which the weights take so much memory as a server says that they do; None where none fits."""
    if model is None or weighed_gb is None:
        return None
    low, high = _WEIGHS
    candidates: tuple[Precision, ...] = ("bf16", "fp8", "int4")
    fits = [p for p in candidates if low <= weighed_gb * _GIGA / weights_resident_bytes(model, weights=p) <= high]
    return fits[0] if len(fits) == 1 else None


# --- reading them ---------------------------------------------------------------------------------------------------

_SHIPPED = Path(__file__).with_name("machines.toml")
_NUMBERS = ("memory_gib", "bandwidth_tb_per_s", "link_gb_per_s")
_PEAKS: Mapping[str, Precision] = {f"{precision}_tflops": precision for precision in BYTES_PER_VALUE}
_GPU_KEYS = ("name", "family", "words", "source", "sources", *_NUMBERS, *_PEAKS)
_MODEL_KEYS = tuple(f.name for f in fields(Model))
_SIZES = tuple(f.name for f in fields(Model) if f.name not in ("name", "source", "precision"))
_MOST = 1e15  # of any number here: more is a slip of the pen


@cache
def known() -> Machines:
    """The table that ships with pdkit."""
    return _machines(_SHIPPED)


def read_machines(path: str | Path) -> Machines:
    """The table with GPUs and models of one's own before it: `[[gpu]]` and `[[model]]`, as docs/machines.md shows.

    Raises:
        PdkitError: no such file, not TOML, a key that is not known, or a number that is missing or none.
    """
    own, table = _machines(Path(path)), known()
    names = frozenset([*(gpu.name for gpu in own.gpus), *(model.name for model in own.models)])
    return Machines(own.gpus + table.gpus, own.models + table.models, own=names)


def _machines(file: Path) -> Machines:
    said = read_toml(file, what="file of GPUs and models", form="a GPU is a table, `[[gpu]]`")
    for name in said:
        if name not in ("gpu", "model"):
            raise one_of(str(file), name, ["gpu", "model"])
    gpus = tuple(_gpu(f"{file}: gpu {number}", table) for number, table in enumerate(tables_of(file, said, "gpu"), 1))
    models = tuple(_model(file, number, table) for number, table in enumerate(tables_of(file, said, "model"), 1))
    return Machines(gpus, models)


def _gpu(where: str, said: dict[str, Any]) -> Gpu:
    _known(where, said, _GPU_KEYS)
    name, source = (_words(where, said, key) for key in ("name", "source"))
    sources = said.get("sources", {})
    if not isinstance(sources, dict):
        raise PdkitError(f"{where}: sources is {sources!r}; it takes a table, a source a number")
    _known(f"{where}: sources", sources, (*_NUMBERS, *_PEAKS))
    texts = {key: _words(where, sources, key) if key in sources else source for key in (*_NUMBERS, *_PEAKS)}
    needed = ("memory_gib", "bandwidth_tb_per_s")
    cells = {key: Cell(_number(where, said, key), text) for key, text in texts.items() if key in said or key in needed}
    return Gpu(
        name=name,
        memory_gib=cells["memory_gib"],
        bandwidth_tb_per_s=cells["bandwidth_tb_per_s"],
        link_gb_per_s=cells.get("link_gb_per_s"),
        tflops={precision: cells[key] for key, precision in _PEAKS.items() if key in cells},
        family=_gpu_words(_words(where, said, "family") if "family" in said else name),
        words=_gpu_words(_words(where, said, "words") if "words" in said else ""),
    )


def _model(file: Path, number: int, said: dict[str, Any]) -> Model:
    where = f"{file}: model {number}"
    _known(where, said, ("config", *_MODEL_KEYS))
    if "config" in said:
        if extra := next((key for key in said if key not in ("name", "config", "precision")), None):
            raise PdkitError(f"{where}: both config and {extra}; config.json says it already")
        model = read_model(file.parent / _words(where, said, "config"), name=_words(where, said, "name"))
        return replace(model, precision=_precision(where, said) or model.precision)
    name, source = (_words(where, said, key) for key in ("name", "source"))
    sizes = {key: _size(where, key, said[key]) for key in _SIZES if key in said}
    return _whole(where, Model(name=name, source=source, precision=_precision(where, said), **_needed(where, sizes)))


def _needed(where: str, sizes: dict[str, Any]) -> dict[str, Any]:
    missing = next((key for key in ("layers", "query_heads", "hidden", "vocab") if key not in sizes), None)
    if missing:
        raise PdkitError(f"{where}: no {missing}; a model has layers, query_heads, hidden and vocab, or a config")
    return sizes


def _whole(where: str, model: Model) -> Model:
    """The model, if its parts make one: attention of one kind, and a feed-forward of some kind in every layer."""
    if not model.is_latent and not (model.kv_heads and model.head_dim):
        raise PdkitError(f"{where}: no kv_heads or no head_dim; a model has both, or kv_lora_rank with its sizes")
    if model.is_latent and not (model.rope_dim and model.nope_dim and model.value_dim and model.q_lora_rank):
        raise PdkitError(f"{where}: kv_lora_rank without q_lora_rank, nope_dim, rope_dim or value_dim; it takes all")
    if model.experts and not (model.experts_per_tok and model.expert_ffn):
        raise PdkitError(f"{where}: experts without experts_per_tok or expert_ffn; it takes both")
    if not model.ffn and (not model.experts or model.dense_layers):
        raise PdkitError(f"{where}: no ffn; a layer without experts has one")
    return model


def _known(where: str, said: Mapping[str, Any], keys: Sequence[str]) -> None:
    if unknown := next((key for key in said if key not in keys), None):
        raise one_of(where, unknown, list(keys))


def _words(where: str, said: Mapping[str, Any], key: str) -> str:
    if key not in said:
        raise PdkitError(f"{where}: no {key}; every GPU and model says its name and its source")
    if not isinstance(said[key], str) or not said[key].strip():
        raise PdkitError(f"{where}: {key} is {said[key]!r}; it takes words in quotes")
    return " ".join(said[key].split())


def _number(where: str, said: Mapping[str, Any], key: str) -> float:
    value = said.get(key)
    if value is None:
        raise PdkitError(f"{where}: no {key}; a GPU has memory_gib and bandwidth_tb_per_s")
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < _MOST:
        raise PdkitError(f"{where}: {key} is {value!r}; it takes a number above 0")
    return float(value)


def _size(where: str, key: str, value: Any) -> int | bool:
    if key in ("tied", "attention_bias", "qk_norm"):
        if not isinstance(value, bool):
            raise PdkitError(f"{where}: {key} is {value!r}; it takes true or false")
        return value
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < _MOST:
        raise PdkitError(f"{where}: {key} is {value!r}; it takes a whole number")
    return value


def _precision(where: str, said: Mapping[str, Any]) -> Precision | None:
    if "precision" not in said:
        return None
    found = next((known for known in BYTES_PER_VALUE if known == said["precision"]), None)
    if found is None:
        raise one_of(f"{where}: precision", str(said["precision"]), list(BYTES_PER_VALUE))
    return found


# of a config.json, by our name; the first that is there counts
_CONFIG_KEYS: Mapping[str, tuple[str, ...]] = {
    "layers": ("num_hidden_layers",), "query_heads": ("num_attention_heads",), "hidden": ("hidden_size",),
    "vocab": ("vocab_size",), "kv_heads": ("num_key_value_heads", "num_attention_heads"), "head_dim": ("head_dim",),
    "ffn": ("intermediate_size",), "experts": ("num_experts", "num_local_experts", "n_routed_experts"),
    "experts_per_tok": ("num_experts_per_tok",), "shared_experts": ("n_shared_experts",),
    "expert_ffn": ("moe_intermediate_size", "intermediate_size"), "dense_layers": ("first_k_dense_replace",),
    "q_lora_rank": ("q_lora_rank",), "kv_lora_rank": ("kv_lora_rank",), "nope_dim": ("qk_nope_head_dim",),
    "rope_dim": ("qk_rope_head_dim",), "value_dim": ("v_head_dim",), "window_tok": ("sliding_window",),
}  # fmt: skip
# kinds whose sizes follow from these keys alone; others (hybrids, several towers) have layers that they do not describe
_KINDS = ("llama", "mistral", "mixtral", "qwen2", "qwen3", "qwen3_moe", "deepseek_v3", "kimi_k2")


def read_model(path: str | Path, *, name: str | None = None) -> Model:
    """The model of a Hugging Face `config.json`.

    Raises:
        PdkitError: no such file, not JSON, a kind of model whose size does not follow from it, or a size missing.
    """
    file = Path(path)
    if not file.is_file():
        raise PdkitError(f"{file}: no such config.json")
    try:
        said = json.loads(file.read_text("utf-8-sig"))
    except ValueError as problem:
        raise PdkitError(f"{file}: not valid JSON ({problem})") from problem
    kind = said.get("model_type") if isinstance(said, dict) else None
    if kind not in _KINDS:
        raise PdkitError(
            f"{file}: model_type {kind!r} is none whose size follows from its config; known: {', '.join(_KINDS)}; "
            "write its sizes in a `[[model]]`"
        )
    given = name or said.get("_name_or_path") or file.parent.name
    return _whole(str(file), _of_config(str(file), said, str(given)))


def _of_config(where: str, said: Mapping[str, Any], name: str) -> Model:
    found = {
        ours: said[key]
        for ours, keys in _CONFIG_KEYS.items()
        if (key := next((key for key in keys if said.get(key) is not None), None))
    }
    sizes = _needed(where, {ours: _size(where, ours, value) for ours, value in found.items()})
    kind = said["model_type"]
    if "experts" not in sizes:
        sizes = {key: size for key, size in sizes.items() if key not in ("expert_ffn", "experts_per_tok")}
    if "head_dim" not in sizes and sizes["query_heads"]:
        sizes["head_dim"] = sizes["hidden"] // sizes["query_heads"]
    if kind.startswith("qwen") and not said.get("use_sliding_window", False):
        sizes.pop("window_tok", None)  # the key is there and not used
    quantised = said.get("quantization_config") or {}
    return Model(
        name=name,
        source=f"{where}",
        tied=bool(said.get("tie_word_embeddings", False)),
        attention_bias=bool(said.get("attention_bias", kind == "qwen2")),
        qk_norm=kind.startswith("qwen3"),
        precision=precision_of(quantised.get("quant_method")) if isinstance(quantised, dict) else None,
        **sizes,
    )
