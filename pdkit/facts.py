"""One wide row a run: what its files state, what its requests add up to, and what follows from these."""

from functools import cache

import polars as pl

from pdkit.evidence import PLACE, SCHEMAS, Evidence
from pdkit.limits import GPU_FACTS, LIMITS, MACHINE_FACTS, MODEL_FACTS, machine_facts
from pdkit.machines import Machines
from pdkit.metrics import METRICS
from pdkit.rules import NEIGHBOURS, Pairs, c
from pdkit.served import SERVED, SERVED_WORDS, served, served_places
from pdkit.units import MS_PER_S
from pdkit.windows import Joined, windows

_MOVED = ("fact", "moved")  # where facts are moved in turn, a neighbour is one whose fact was moved alike
ORDER = ("experiment", "concurrency", "request_rate_per_s", "run_id")  # of runs, on every page
RES = "__res"  # `<fact>__res`: how far a printed number can be off

# settings and states, from the first sighting that has one
CATEGORIES = (
    "experiment", "tool", "client_definition", "tool_version", "server_version", "model", "topology", "dataset",
    "backend", "precision", "reasoning_parser", "tool_call_parser",
    "ignore_eos", "streaming", "retokenizes", "seed", "ending", "crashed_after", "end_marker",
)  # fmt: skip
# what the manifest says of the whole experiment
SAID = {
    "label": "label",
    "synthetic": "synthetic",
    "gpu": "gpu",
    "repeats": "repeats",
    "end_marker": "end_marker_planned",
}
# what its sightings add up to
SIGHTINGS: dict[str, pl.Expr] = {
    "complete": c.complete.any(ignore_nulls=False),
    "planned_only": (c.reader == "sweep_manifest").fill_null(False).all(),
    "sources": c.source_file.n_unique().cast(pl.Float64),
    "copies": c.reader.drop_nulls().unique_counts().max().cast(pl.Float64).fill_null(1.0),
}
_TRANSFER = r"(?i)KVTransferError|kv ?transfer|transfer failed|bootstrap failed|handshake failed|not alive|AbortReq"
_LONG_TEXT_CHARS = 16  # shorter texts are alike by chance
_ends_s = c.sent_s + c.e2e_ms / MS_PER_S
_begun = c.ok & (c.output_tok >= 2)
_early = c.request_index < pl.max_horizontal(pl.len() * 0.05, 10)
_long = c.text_chars >= _LONG_TEXT_CHARS
_times = c.sent_s.append(_ends_s)
_order = _times.arg_sort()
# requests in flight after each sending and each end, and how long it stayed so
_in_flight = (
    pl.repeat(1, pl.len(), dtype=pl.Int64).append(pl.repeat(-1, pl.len(), dtype=pl.Int64)).gather(_order).cum_sum()
)
_stayed_s = _times.gather(_order).diff().shift(-1).fill_null(0)
_sending_s = c.sent_s.max() - c.sent_s.min()
_middle = (c.sent_s.min() + _sending_s * 0.25, c.sent_s.min() + _sending_s * 0.75)
_timed = c.sent_s.is_not_null().all() & c.e2e_ms.is_not_null().all() & (pl.len() > 1)


def _third(number: int) -> pl.Expr:
    """Median TPOT of the requests that were sent in one third of the sending."""
    rank = c.sent_s.rank("ordinal") - 1
    return c.tpot_ms.filter((rank * 3 // pl.len()) == number).median()


_thirds = [_third(number) for number in range(3)]
# what the requests' times add up to, where the client keeps when each was sent
TIMED: dict[str, pl.Expr] = {
    "send_rate_per_s": (pl.len() - 1) / _sending_s,
    "sending_s": _sending_s,
    "middle_flow_ratio": _ends_s.is_between(*_middle).sum() / c.sent_s.is_between(*_middle).sum(),
    "at_load_ratio": _stayed_s.filter(_in_flight >= 0.8 * _in_flight.max()).sum() / _stayed_s.sum(),
    "tpot_drift_ratio": (pl.max_horizontal(_thirds) - pl.min_horizontal(_thirds)) / c.tpot_ms.median(),
}
# what its requests add up to; a sum over nothing is null, not 0
AGGREGATES: dict[str, pl.Expr] = {
    "requests_seen": pl.len().cast(pl.Float64),
    "input_tok_least": c.input_tok.filter(c.input_tok > 0).min().cast(pl.Float64),
    "requests_ok": pl.when(c.ok.is_not_null().any()).then(c.ok.sum()).cast(pl.Float64),
    "requests_failed": pl.when(c.ok.is_not_null().any()).then((~c.ok).sum()).cast(pl.Float64),
    "requests_output_tok": pl.when(c.output_tok.is_not_null().any()).then(c.output_tok.sum()).cast(pl.Float64),
    "requests_ttft_ms_mean": c.ttft_ms.filter(c.ok).mean(),
    "requests_ttft_ms_median": c.ttft_ms.filter(c.ok).median(),
    "requests_itl_ms_mean": pl.when(c.itl_mean_ms.is_not_null().any()).then(
        (c.itl_mean_ms * c.itl_count).filter(c.ok).sum() / c.itl_count.filter(c.ok).sum()
    ),
    "requests_with_text": pl.when(c.text_chars.is_not_null().any()).then((c.text_chars > 0).sum()).cast(pl.Float64),
    "requests_text_known": c.text_chars.is_not_null().sum().cast(pl.Float64),
    "requests_same_length": pl.when(c.output_tok.is_not_null().any()).then((c.output_tok == c.output_tok.max()).mean()),
    "requests_nonfinite": c.nonfinite_count.sum().cast(pl.Float64),
    "text_common_ratio": pl.when(_long.any()).then(
        c.text_hash.filter(_long).drop_nulls().unique_counts().max() / _long.sum()
    ),
    "requests_aborted": pl.when(c.finish_reason.is_not_null().any())
    .then((c.finish_reason == "abort").sum())
    .cast(pl.Float64),
    "transfer_errors": c.error.str.contains(_TRANSFER).sum().cast(pl.Float64),
    "texts_long": pl.when(c.text_chars.is_not_null().any()).then(_long.sum()).cast(pl.Float64),
    "chars_per_tok": c.text_chars.filter(c.text_chars > 0).sum() / c.output_tok.filter(c.text_chars > 0).sum(),
    "gaps_per_tok": (c.itl_count / (c.output_tok - 1)).filter(_begun).median(),
    "longest_gap_ms": c.itl_max_ms.max(),
    "ttft_first_ms": c.ttft_ms.filter(_early).median(),
    "ttft_rest_ms": c.ttft_ms.filter(~_early).median(),
    "prompts_repeated_ratio": pl.when(c.prompt_hash.is_not_null().all()).then(1 - c.prompt_hash.n_unique() / pl.len()),
    "text_chars_sum": pl.when(c.text_chars.is_not_null().any()).then(c.text_chars.sum()).cast(pl.Float64),
} | {name: pl.when(_timed).then(value) for name, value in TIMED.items()}
_HAIR_MS = 0.1  # two reads of one clock: a TPOT of -0.0002 ms stands in healthy public results
_BELOW_ZERO = c.value < pl.when(c.fact.str.contains("_ms_")).then(-_HAIR_MS).otherwise(0.0)
_BEYOND_REASON = 1e15  # tokens, milliseconds or tokens a second: a slip of the pen, not a measurement
_IMPOSSIBLE = c.printed.is_not_null() | _BELOW_ZERO | (c.value.is_finite() & (c.value > _BEYOND_REASON))
_PARTS = {"throughput": "throughput", "latency": "latency", "tail": "latency", "label": "label", "run": "run"}
# what its claims add up to: numbers that can't be, and facts on which its sources differ
CLAIMED: dict[str, pl.Expr] = {
    f"impossible_{part}": (
        _IMPOSSIBLE
        & c.fact.is_in(
            [m.name for m in METRICS.values() if (m.kind == "result" or m.scope == "label") and _PARTS[m.scope] == part]
        )
    )
    .sum()
    .cast(pl.Float64)
    for part in ("throughput", "latency", "label", "run")
}

# what only the runs beside it tell of a run that is compared: those of its side at its level, and of both sides
COMPARED = pl.Schema({
    "level_repeats": pl.Float64(),  # measured runs of its side at its level, copies of one counted once
    "repeats_unlike": pl.String(),  # settings in which they differ; "" for none
    "repeats_cv": pl.Float64(),  # standard deviation over mean of the declared metric
    "side_changes": pl.Float64(),  # how often a run of the other side came next
    "hours_apart": pl.Float64(),  # of the runs of both sides, the loneliest from the nearest of the other side
    "call_low": pl.Float64(),  # interval of the ratio of the declared metric
    "call_high": pl.Float64(),
    "call_delta": pl.Float64(),
    "call_p": pl.Float64(),  # as it counts among those of all levels
    "calls_tested": pl.Float64(),
    "ttft_modes": pl.Float64(),
})  # fmt: skip

_NATIVE = ("sglang", "sglang-native")  # these report one gap a token; the others one a chunk
_WHOLE_SHARE = 0.98  # of E2E: an answer whose first token comes with its last was not streamed
_ALL_THERE = 0.9  # of the claimed tokens: real text re-tokenizes a few percent off
_RANDOM = ("random", "random-ids", "image")  # data sets that give as many prompts as were asked for

# facts from facts; computed again when a number is moved within its last digit
DERIVED: dict[str, pl.Expr] = {
    "burst": c.request_rate_per_s.is_infinite(),
    "embedding": c.backend.str.contains("embedding").fill_null(False),
    "rust": (c.client_definition == "rust").fill_null(False),
    # a data set may hold fewer prompts than were asked for: then only what was dispatched tells
    "prompts_sure": pl.when(c.dataset.is_null() | c.dataset.is_in(_RANDOM) | (c.prompts_asked == c.completed)).then(
        c.prompts_asked
    ),
    # the largest: rows that were dropped from a record were sent all the same
    "sent": pl.max_horizontal("requests_seen", "requests_dispatched", "prompts_sure"),
    "failed": pl.coalesce(c.requests_failed, c.requests_failed_said),
    "answered_whole": c.embedding | ~pl.coalesce(c.streaming, c.ttft_ms_mean < _WHOLE_SHARE * c.e2e_ms_mean),
    "output_tok_per_request": c.output_tok_sum / c.completed,
    "input_tok_per_request": c.input_tok_sum / c.completed,
    # the Rust client can be told not to count again, and then reports 0 beside a TTFT that only text can give
    "uncounted": pl.coalesce(~c.retokenizes, c.rust & (c.retokenized_tok_sum == 0) & (c.ttft_ms_mean > 0)),
    "received_tok": pl.when(~c.uncounted.fill_null(False) & ~c.embedding).then(c.retokenized_tok_sum),
    "received_ratio": c.received_tok / c.output_tok_sum,
    "asked_tok": pl.coalesce(c.output_tok_asked, c.output_tok_asked_each * pl.coalesce(c.sent, c.completed)),
    "gaps_per_chunk": ~c.backend.is_in(_NATIVE),
    # several tokens a chunk: speculative decoding, or a stream interval where all text is there all the same
    "chunked": c.accept_length.is_not_null()
    | (
        c.gaps_per_chunk
        & (c.received_ratio >= _ALL_THERE).fill_null(False)
        & ~(c.gaps_per_tok >= _ALL_THERE).fill_null(False)
    ),
    "received_throughput_tok_per_s": c.received_tok / c.duration_s,
    "received_throughput_tok_per_s_per_gpu": c.received_throughput_tok_per_s / c.gpu_count,
    "interactivity_tok_per_s": MS_PER_S / c.tpot_ms_median,
    "longest_stall_ms": pl.max_horizontal("longest_gap_ms", "itl_ms_max"),
    # most that can have run at once: the batch, twice the mean, or the cap
    "batch_most": pl.max_horizontal(
        "decode_running_max", 2 * c.concurrency_mean, pl.when(c.concurrency.is_finite()).then("concurrency")
    ),
    "server_output_tok_most": c.server_output_tok
    + c.server_unlogged_steps * c.batch_most * c.server_accept_length.fill_null(1)
    + c.server_unlogged_tok.fill_null(0),
    # the servers surely made what is claimed: then text is missing on the client's side
    "server_made_it": (c.server_output_tok_least >= _ALL_THERE * c.output_tok_sum).fill_null(False),
    "server_made_asked": (c.server_output_tok_least >= _ALL_THERE * c.asked_tok).fill_null(False),
    "needed_tok": c.concurrency * (c.input_tok_per_request + c.output_tok_per_request),
}
DERIVED |= LIMITS
_OF_METRICS = tuple(name for name in METRICS if name not in DERIVED)  # what a log can state


def facts(evidence: Evidence, *, pairs: Pairs | None = None, machines: Machines | None = None) -> pl.DataFrame:
    """One row a run: every declared fact, `<fact>__res` beside every number, and its neighbours' facts."""
    stated = best_claims(evidence).collect().lazy()
    parts = pl.collect_all(
        [
            _sightings(evidence.runs),
            _wide(stated, "value"),
            _wide(stated, "resolution").rename(lambda name: name if name == "run_id" else f"{name}{RES}"),
            _grouped(one_listing(evidence), AGGREGATES),
            _grouped(evidence.claims.lazy(), CLAIMED),
            _disagreements(evidence),
        ]
    )
    wide, *rest = parts
    for part in rest:
        wide = wide.join(part, on="run_id", how="left", maintain_order="left")
    # each step is collected: one plan of them all costs the planner ten times what the work costs
    said = _with_said(wide.lazy(), evidence).with_columns(pl.col(*CLAIMED, *_COUNTED).fill_null(0)).collect()
    placed = _with_levels(_with_lower(said.lazy()).collect().lazy(), evidence.runs).collect()
    placed = _with_clock(_with_twins(placed.lazy(), evidence), evidence.plan).collect()
    told = served(evidence, joined(evidence, placed), placed.select("run_id", "experiment", "topology", "duration_s"))
    placed = _with_machines(placed.join(told, on="run_id", how="left", maintain_order="left"), evidence, machines)
    return (
        derived(_with_base(placed.lazy(), pairs or Pairs()), paired=bool(pairs and pairs.base_of))
        .sort(*ORDER, nulls_last=True)
        .collect()
    )


def _with_machines(wide: pl.DataFrame, evidence: Evidence, machines: Machines | None) -> pl.DataFrame:
    """With what GPU and model allow at most; null where either is not known."""
    allowed = machine_facts(wide, settings=evidence.settings, machines=machines)
    return wide.join(allowed, on="run_id", how="left", maintain_order="left")


def joined(evidence: Evidence, wide: pl.DataFrame) -> Joined:
    """When each run was on each server, from facts that do not rest on servers."""
    asked = pl.max_horizontal("requests_seen", "requests_dispatched", "prompts_asked", "completed")
    return windows(evidence, wide.with_columns(asked.alias("sent")))


def derived(wide: pl.LazyFrame, *, paired: bool) -> pl.LazyFrame:
    """With the facts that follow from facts, and each neighbour's facts beside the run's own.

    Where no run is `paired`, those of the baseline are null: nobody looks for them.
    """
    own = wide
    for layer in _layers():
        own = own.with_columns(DERIVED[name].alias(name) for name in layer)
    there = own.collect_schema()
    theirs, moved = [name for name in _theirs() if name in there], [name for name in _MOVED if name in there]
    for prefix in NEIGHBOURS:
        if prefix == "base" and not paired:
            own = own.with_columns(pl.lit(None, there[name]).alias(f"{prefix}__{name}") for name in theirs)
            continue
        named = [pl.col(name).alias(f"{prefix}__{name}") for name in ("run_id", *theirs)]
        own = own.join(own.select(*named, *moved), on=[f"{prefix}__run_id", *moved], how="left")
    return own


def best_claims(evidence: Evidence) -> pl.LazyFrame:
    """One row a run and fact: of several statements the finest digit; of equal ones the last in the file."""
    order, descending = ["resolution", "source_file", "source_line"], [False, False, True]
    return (
        evidence.claims.lazy()
        .filter(pl.col("value").is_not_null())
        .sort(order, descending=descending, maintain_order=True)
        .unique(["run_id", "fact"], keep="first", maintain_order=True)
    )


def one_listing(evidence: Evidence) -> pl.LazyFrame:
    """The requests of each run once, though several files may list them."""
    requests = evidence.requests.lazy().with_row_index("row")
    return requests.filter(pl.col("seen_id") == pl.col("seen_id").min().over("run_id"))


@cache
def declared() -> frozenset[str]:
    """The names that a rule over runs may use."""
    own = {*CATEGORIES, *SAID.values(), *SIGHTINGS, *METRICS, *AGGREGATES, *CLAIMED, *DERIVED, *_LEVEL_FACTS, *COMPARED}
    own |= {*SERVED, *SERVED_WORDS, *MACHINE_FACTS}
    return frozenset(own | {f"{prefix}__{name}" for prefix in NEIGHBOURS for name in _theirs()})


_TIMES = {"started_at": "planned_start", "ended_at": "planned_end"}  # in UTC, without saying so
_COUNTED = ("disagreements", "label_disagreements")
_LEVEL_FACTS = (
    *_COUNTED, "disagreement", "level_runs", "level_spread", "levels_stated", "twins", "wall_s", "overlap_s", "refused",
)  # fmt: skip


def base_names(fact: str) -> set[str]:
    """The stated facts that a fact comes from; those of a neighbour keep its prefix."""
    prefix, mark, name = fact.rpartition("__")
    if mark and prefix in NEIGHBOURS:
        return {f"{prefix}__{base}" for base in base_names(name)}
    if fact in DERIVED:
        return {base for root in DERIVED[fact].meta.root_names() for base in base_names(root)}
    return {fact}


# --- parts of the wide row ------------------------------------------------------------------------------------------


def _theirs() -> list[str]:
    """The facts that a neighbour shows."""
    return [*_OF_METRICS, *DERIVED, *CATEGORIES, *SAID.values(), *COMPARED, "complete", "refused"]


@cache
def _layers() -> tuple[tuple[str, ...], ...]:
    """Derived facts in an order in which each finds those that it names."""
    layers: list[list[str]] = []
    done: set[str] = set()
    left = list(DERIVED)
    while left:
        layer = [name for name in left if not (set(DERIVED[name].meta.root_names()) & set(left))]
        layers.append(layer)
        done.update(layer)
        left = [name for name in left if name not in done]
    return tuple(map(tuple, layers))


def _sightings(runs: pl.DataFrame) -> pl.LazyFrame:
    ordered = runs.lazy().sort("source_file", "source_line", maintain_order=True)
    first = [pl.col(name).drop_nulls().first() for name in CATEGORIES]
    return ordered.group_by("run_id", maintain_order=True).agg(
        *first, *(expr.alias(name) for name, expr in SIGHTINGS.items())
    )


def _wide(stated: pl.LazyFrame, values: str) -> pl.LazyFrame:
    return stated.pivot("fact", on_columns=list(_OF_METRICS), index="run_id", values=values, aggregate_function="first")


def _grouped(rows: pl.LazyFrame, sums: dict[str, pl.Expr]) -> pl.LazyFrame:
    return rows.group_by("run_id").agg(expr.alias(name) for name, expr in sums.items())


def _disagreements(evidence: Evidence) -> pl.LazyFrame:
    """How many facts the sources of a run state differently, by more than their digits allow, and the first of them."""
    tolerance = pl.col("resolution").sort(descending=True).head(2).sum() + 1e-9 * pl.col("value").abs().max()
    kinds = pl.LazyFrame({"fact": list(METRICS), "asked": [m.kind == "asked" for m in METRICS.values()]})
    stated = evidence.claims.lazy().filter(pl.col("value").is_finite())
    by_fact = stated.group_by("run_id", "fact").agg(
        ((pl.col("value").max() - pl.col("value").min()) > tolerance).alias("differ"),
        pl.col("value").min().alias("least"),
        pl.col("value").max().alias("most"),
    )
    differing = by_fact.filter("differ").join(kinds, on="fact").sort("run_id", "fact")
    text = pl.format("{}: {} and {}", "fact", pl.col("least").round(3), pl.col("most").round(3))
    return differing.group_by("run_id").agg(
        (~pl.col("asked")).sum().cast(pl.Float64).alias("disagreements"),
        pl.col("asked").sum().cast(pl.Float64).alias("label_disagreements"),
        text.first().alias("disagreement"),
        pl.col("fact").alias("disagreeing"),
    )


def _with_said(wide: pl.LazyFrame, evidence: Evidence) -> pl.LazyFrame:
    """With what the manifest says of the experiment; where both speak, the person who ran it is believed."""
    said = evidence.experiments.lazy().unique("experiment", keep="first", maintain_order=True).select(
        "experiment", *(pl.col(column).alias(fact) for column, fact in SAID.items()),
        pl.col("model").alias("model_said"), pl.col("topology").alias("topology_said"),
    )  # fmt: skip
    joined = wide.join(said, on="experiment", how="left", maintain_order="left")
    return joined.with_columns(
        pl.coalesce("model_said", "model").alias("model"), pl.coalesce("topology_said", "topology").alias("topology")
    ).drop("model_said", "topology_said")


def _sweep() -> pl.Expr:
    """What makes two runs of one folder levels of the same sweep."""
    parts = [pl.col(name).fill_null("?") for name in ("experiment", "tool", "backend", "dataset", "model", "topology")]
    lengths = [
        (pl.col(f"{kind}_tok_sum") / c.completed).round(0).cast(pl.String).fill_null("?")
        for kind in ("input", "output")
    ]
    return pl.concat_str(*parts, *lengths, separator="|").alias("sweep")


def _with_lower(wide: pl.LazyFrame) -> pl.LazyFrame:
    """With the run at the next strictly lower cap of the same sweep; of several, the last by id."""
    levels = (
        wide.filter(c.concurrency.is_finite(), c.completed.is_not_null())
        .select("run_id", "concurrency", _sweep())
        .sort("concurrency", "run_id")
    )
    below = levels.select("sweep", "concurrency", pl.col("run_id").alias("lower__run_id"))
    found = levels.join_asof(below, on="concurrency", by="sweep", allow_exact_matches=False, check_sortedness=False)
    return wide.join(found.select("run_id", "lower__run_id"), on="run_id", how="left", maintain_order="left")


def _with_base(wide: pl.LazyFrame, pairs: Pairs) -> pl.LazyFrame:
    """With the run that each is compared with, whether it has no measured result, and what the runs beside it tell.

    All of it is null outside of a comparison.
    """
    compared = pl.DataFrame(
        {"run_id": list(pairs.base_of), "base__run_id": list(pairs.base_of.values())},
        schema={"run_id": pl.String, "base__run_id": pl.String},
    )
    refused = pl.col("run_id").is_in(list(pairs.refused)) if pairs.base_of else pl.lit(None, pl.Boolean)
    said = pl.DataFrame(list(pairs.said), schema={"run_id": pl.String(), **COMPARED})
    for part in (compared, said):
        wide = wide.join(part.lazy(), on="run_id", how="left", maintain_order="left")
    return wide.with_columns(refused.alias("refused"))


def _with_levels(wide: pl.LazyFrame, runs: pl.DataFrame) -> pl.LazyFrame:
    """With how many runs share the level, and how far the throughputs of those in one file lie apart.

    In one file, a level that is there twice was run again; in several, it may be another set-up.
    """
    throughput, level = c.output_throughput_tok_per_s, ["sweep", "concurrency", "request_rate_per_s"]
    stated = wide.filter(c.completed.is_not_null(), c.concurrency.is_not_null()).select(
        "run_id", throughput, *level[1:], _sweep()
    )
    shared = stated.select("run_id", pl.len().over(level).cast(pl.Float64).alias("level_runs"))
    listed = stated.join(runs.lazy().select("run_id", "source_file").unique(), on="run_id")
    spread = (throughput.max() / throughput.min() - 1).over([*level, "source_file"])
    apart = listed.select("run_id", spread.alias("level_spread")).group_by("run_id").agg(pl.col("level_spread").max())
    return wide.join(shared, on="run_id", how="left", maintain_order="left").join(
        apart, on="run_id", how="left", maintain_order="left"
    )


def _with_twins(wide: pl.LazyFrame, evidence: Evidence) -> pl.LazyFrame:
    """With how many caps one reader states for a run, and how many runs at other levels have its very latencies."""
    readers = evidence.runs.lazy().select("seen_id", "reader")
    caps = (
        evidence.claims.lazy()
        .filter(pl.col("fact") == "concurrency")
        .unique(["seen_id"], keep="last")
        .join(readers, on="seen_id")
    )
    by_reader = caps.group_by("run_id", "reader").agg(
        pl.col("value").n_unique().cast(pl.Float64).alias("levels_stated")
    )
    stated = by_reader.group_by("run_id").agg(pl.col("levels_stated").max())
    clocks = ["e2e_ms_mean", "ttft_ms_mean", "tpot_ms_mean"]
    told = wide.filter(pl.all_horizontal(pl.col(name).is_not_null() for name in clocks), c.e2e_ms_mean > 0)
    others = c.concurrency.drop_nulls().n_unique().over(clocks).cast(pl.Float64) - 1  # whatever folder they lie in
    for part in (stated, told.select("run_id", others.clip(0).alias("twins"))):
        wide = wide.join(part, on="run_id", how="left", maintain_order="left")
    return wide


def _with_clock(wide: pl.LazyFrame, plan: pl.DataFrame) -> pl.LazyFrame:
    """With how long the manifest says that a run took, and how long another one ran beside it."""
    timed = (
        plan.lazy()
        .filter(pl.col("started_at").is_not_null(), pl.col("ended_at").is_not_null())
        .with_row_index("planned")
    )
    others = timed.select("experiment", "planned", "started_at", "ended_at")
    pairs = timed.select("experiment", "planned", "started_at", "ended_at").join(
        others, on="experiment", suffix="_of_other"
    )
    shared = pl.min_horizontal("ended_at", "ended_at_of_other") - pl.max_horizontal("started_at", "started_at_of_other")
    beside = (
        pl.when(pl.col("planned") != pl.col("planned_of_other"))
        .then(shared.dt.total_milliseconds() / MS_PER_S)
        .otherwise(0.0)
    )
    overlap = pairs.group_by("planned").agg(beside.clip(0).max().alias("overlap_s"))
    wall = (pl.col("ended_at") - pl.col("started_at")).dt.total_milliseconds() / MS_PER_S
    zoneless = [pl.col(name).dt.replace_time_zone(None).alias(fact) for name, fact in _TIMES.items()]
    planned = timed.join(overlap, on="planned").select(
        "experiment", "concurrency", "request_rate_per_s", wall.alias("wall_s"), "overlap_s", *zoneless
    )
    of_run = wide.select("run_id", "experiment", "concurrency", "request_rate_per_s").join(
        planned, on="experiment", suffix="_planned"
    )
    rate = pl.col("request_rate_per_s_planned")
    matched = of_run.filter(
        pl.col("concurrency") == pl.col("concurrency_planned"), rate.is_null() | (rate == pl.col("request_rate_per_s"))
    ).unique("run_id", keep="none")  # two planned levels that fit tell nothing
    return wide.join(
        matched.select("run_id", "wall_s", "overlap_s", *_TIMES.values()),
        on="run_id",
        how="left",
        maintain_order="left",
    )


def places(evidence: Evidence, wide: pl.DataFrame) -> pl.DataFrame:
    """Where each stated fact of each run stands: (run_id, fact, source_file, source_line, source_item)."""
    place = list(PLACE)
    claims = best_claims(evidence).select("run_id", "fact", *place).collect()
    runs = [
        _placed(evidence.runs.filter(pl.col(name).is_not_null()), name, place)
        for name in CATEGORIES
        if name in SCHEMAS["runs"]
    ]
    compared = COMPARED if wide["refused"].is_not_null().any() else ()
    states = [_placed(evidence.runs, name, place) for name in (*SIGHTINGS, *compared)]
    listed = (
        one_listing(evidence)
        .unique(["run_id", "source_file", "source_line"])
        .with_columns(pl.lit(None, pl.Int64).alias("source_item"))
        .collect()
    )
    sums = [_placed(listed, name, place) for name in AGGREGATES]
    said = wide.select("run_id", "experiment").join(evidence.experiments, on="experiment")
    from_manifest = [_placed(said, fact, place) for fact in SAID.values()]
    from_manifest += [_placed(said.drop_nulls(name), name, place) for name in ("model", "topology")]
    from_manifest += [_placed(said.drop_nulls("gpu"), name, place) for name in GPU_FACTS]
    from_manifest += [_placed(said.drop_nulls("model"), name, place) for name in MODEL_FACTS]
    servers = served_places(evidence, joined(evidence, wide))
    every = pl.concat(
        [claims, *runs, *states, *sums, *from_manifest, *_places_of_claims(evidence, wide, place), servers]
    )
    return every.unique(maintain_order=True)


def _placed(rows: pl.DataFrame, fact: str, place: list[str]) -> pl.DataFrame:
    return rows.select("run_id", pl.lit(fact).alias("fact"), *place)


def _places_of_claims(evidence: Evidence, wide: pl.DataFrame, place: list[str]) -> list[pl.DataFrame]:
    """Numbers that can't be, and facts on which sources differ, stand where they were printed."""
    claims = evidence.claims
    impossible = claims.filter(_IMPOSSIBLE)
    by_part = [_placed(impossible, name, place) for name in CLAIMED]
    differing = (
        wide.select("run_id", pl.col("disagreeing").alias("fact")).explode("fact").join(claims, on=["run_id", "fact"])
    )
    shared = (
        wide.filter(pl.col("level_runs") > 1)
        .select("run_id")
        .join(claims.filter(pl.col("fact") == "concurrency"), on="run_id")
    )
    names = ("disagreements", "label_disagreements", "disagreement")
    return [
        *by_part,
        *(_placed(differing, name, place) for name in names),
        *(_placed(shared, name, place) for name in ("level_runs", "level_spread")),
    ]
