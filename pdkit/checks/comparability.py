"""PD7xx: two runs can be held against each other. Each is about a run and its baseline, and applies only to a pair."""

import polars as pl

from pdkit.rules import ANY, Rule, above, base, below, c, check, outside

PAIRED = base.refused.is_not_null()
LENGTHS_OFF = 0.02  # of the mean length: the key of a benchmark point, as InferenceX has it
_POINT = 0.01
_TOKENS_MOVE = 0.05
_DAY_H = 24.0

# The weights' own name: not who published them, nor where they lie; a cache's folder holds it as models--who--name.
_CACHED = r"(?i)models--(?:[^/]+?--)?([^/]+)"
_LAST = r"([^/]+)/*$"
_ENGINE = r"^([a-z]+)"  # sglang-oai and sglang are two ways to one engine


def _differs(*facts: str) -> pl.Expr:
    """Whether one of the facts is known on both sides and not the same."""
    return pl.max_horizontal(pl.col(fact) != pl.col(f"base__{fact}") for fact in facts)


def weights(model: pl.Expr) -> pl.Expr:
    """The weights' own name, under whatever path."""
    return pl.coalesce(model.str.extract(_CACHED), model.str.extract(_LAST)).str.to_lowercase()


def card(gpu: pl.Expr) -> pl.Expr:
    """A GPU's name, however it is spelt."""
    return gpu.str.to_lowercase().str.replace("nvidia", "").str.replace_all(r"[\s_-]", "")


_OTHER_MODEL = weights(c.model) != weights(base.model)
_OTHER_GPU = card(c.gpu) != card(base.gpu)
_OTHER_ENGINE = c.backend.str.extract(_ENGINE) != base.backend.str.extract(_ENGINE)
_UNKNOWN_COUNT = c.gpu_count.is_null() | base.gpu_count.is_null()


@check("PD701", voids="comparison", says="model {model} against {base__model} in the baseline")
def the_model_is_the_same() -> tuple[Rule, ...]:
    """Both runs serve the same model in the same precision.

    Why: another model, or the same one in fewer bits, does other work for each token.
    Next: serve one checkpoint on both sides, or compare quality beside speed.
    Source: SPEC, MLPerf.
    Exceptions: one model under a path and under its public name is one model; a precision that one side does not state
    is not held against it; a path that hides the name: say `model` in sweep.toml.
    """
    return (
        Rule(applies=PAIRED, observed=_OTHER_MODEL, refuse=ANY),
        Rule(
            applies=PAIRED,
            observed=_differs("precision"),
            refuse=ANY,
            says="precision {precision} against {base__precision} in the baseline",
        ),
    )


@check(
    "PD702",
    voids="comparison",
    says="{input_tok_per_request:,.1f} prompt tokens a request, {observed:.0%} of those in the baseline",
)
def the_work_is_the_same() -> tuple[Rule, ...]:
    """Both runs do the same work: the data set, and mean lengths within 2 %.

    Why: shorter prompts and answers make any server faster.
    Next: the same data set, lengths and seed on both sides.
    Source: what names a point of InferenceX: model, hardware, lengths, level.
    Exceptions: another seed is a note; a length or a data set that one side does not state: not evaluated.
    """
    lengths = {"input": c.input_tok_per_request, "output": c.output_tok_per_request}
    theirs = {"input": base.input_tok_per_request, "output": base.output_tok_per_request}
    bound = outside(1 - LENGTHS_OFF, 1 + LENGTHS_OFF)
    answers = "{output_tok_per_request:,.1f} output tokens a request, {observed:.0%} of those in the baseline"
    return (
        Rule(applies=PAIRED, observed=lengths["input"] / theirs["input"], refuse=bound),
        Rule(applies=PAIRED, observed=lengths["output"] / theirs["output"], refuse=bound, says=answers),
        Rule(
            applies=PAIRED,
            observed=_differs("dataset"),
            refuse=ANY,
            says="data set {dataset} against {base__dataset} in the baseline",
        ),
        Rule(
            applies=PAIRED,
            observed=_differs("seed"),
            note=ANY,
            says="seed {seed} against {base__seed} in the baseline: other prompts",
        ),
    )


@check(
    "PD703", voids="comparison", says="concurrency cap {concurrency:g} against {base__concurrency:g} in the baseline"
)
def the_level_is_the_same() -> tuple[Rule, ...]:
    """Both runs have the same load.

    Why: a server at another load is at another point of its own curve.
    Next: compare curves, or the same level.
    Source: definition.
    Exceptions: a level that one side does not state: not evaluated.
    """
    return (
        Rule(applies=PAIRED, observed=_differs("concurrency"), refuse=ANY),
        Rule(
            applies=PAIRED,
            observed=_differs("request_rate_per_s"),
            refuse=ANY,
            says="requests/s asked: {request_rate_per_s:g} against {base__request_rate_per_s:g} in the baseline",
        ),
    )


@check("PD704", voids="comparison", says="{gpu} against {base__gpu} in the baseline, and no count of GPUs on each side")
def the_hardware_is_the_same() -> tuple[Rule, ...]:
    """Both runs use the same hardware, or are compared per GPU.

    Why: twice the cards give twice the tokens, and that is no gain.
    Next: `gpu_count` in sweep.toml on both sides.
    Source: InferenceX compares per GPU.
    Exceptions: both counts are known: the comparison is per GPU, and its title says so.
    """
    without = "and no count of GPUs on each side"
    return (
        Rule(applies=PAIRED, observed=_OTHER_GPU & _UNKNOWN_COUNT, refuse=ANY),
        Rule(
            applies=PAIRED,
            observed=_differs("topology") & _UNKNOWN_COUNT,
            refuse=ANY,
            says=f"{{topology}} against {{base__topology}} in the baseline, {without}",
        ),
    )


@check(
    "PD705", voids="comparison", says="shares of prompt tokens from the prefix cache lie {observed:.1%} of them apart"
)
def the_cache_is_as_warm() -> Rule:
    """Both runs found the prefix cache in the same state.

    Why: a prompt that is in the cache costs almost nothing.
    Next: flush the cache before each run; one seed.
    Source: vllm-project/vllm#54227: 2.32 times, and uneven across levels.
    Exceptions: cached tokens are not told: not evaluated.
    """
    mine, theirs = c.cached_tok_sum / c.input_tok_sum, base.cached_tok_sum / base.input_tok_sum
    return Rule(applies=PAIRED, observed=(mine - theirs).abs(), refuse=above(_POINT))


@check("PD706", voids="comparison", says="client {tool} against {base__tool} in the baseline")
def the_client_is_the_same() -> tuple[Rule, ...]:
    """Both runs were measured by the same client, with the same definitions.

    Why: definitions of one name move between clients and versions; two of them give two numbers for one server.
    Next: one client of one version, through one backend.
    Source: vLLM moved its queue time, SGLang its inter-token gaps (from retokenized text).
    Exceptions: what one side does not state is not held against it.
    """
    names = {
        "client_definition": "client definition {client_definition} against {base__client_definition}",
        "tool_version": "client version {tool_version} against {base__tool_version}",
        "backend": "backend {backend} against {base__backend}",
    }
    return (
        Rule(applies=PAIRED, observed=_differs("tool"), suspect=ANY),
        *(
            Rule(applies=PAIRED, observed=_differs(name), suspect=ANY, says=f"{said} in the baseline")
            for name, said in names.items()
        ),
    )


@check("PD707", voids="comparison", says="{observed:,.0f} things differ: none of them can be given the effect")
def one_thing_changed() -> Rule:
    """No more than one thing differs.

    Why: of two changes, one may hide what the other does.
    Next: change one thing; or measure each alone.
    Source: judgement.
    Exceptions: topology and the number of GPUs are one thing, and so are the parts of a client; addresses, ports and
    seeds are none; what one side does not state is not counted.
    """
    changes = [
        pl.max_horizontal(_OTHER_MODEL, _differs("precision")),
        _OTHER_GPU,
        _differs("topology", "gpu_count"),
        _differs("server_version"),
        _differs("tool", "client_definition", "tool_version", "backend"),
        _differs("dataset"),
        _differs("ignore_eos", "streaming"),
        _differs("concurrency", "request_rate_per_s"),
    ]
    known = pl.any_horizontal(change.is_not_null() for change in changes)
    counted = pl.sum_horizontal(change.cast(pl.Float64) for change in changes)
    return Rule(applies=PAIRED, observed=pl.when(known).then(counted), suspect=above(1))


@check("PD708", voids="comparison", says="end token ignored: {ignore_eos} against {base__ignore_eos} in the baseline")
def the_sampling_is_the_same() -> tuple[Rule, ...]:
    """Both runs sample alike, and both or neither decode speculatively.

    Why: an end token that is obeyed makes answers shorter; speculation makes several tokens a step.
    Next: the same sampling arguments, the same draft on both sides.
    Source: InferenceX fixes the acceptance.
    Exceptions: a router may hide the accept length, so that one side alone has it is a doubt, and is looked at only in
    whole results of one client and backend.
    """
    alike = ~_differs("client_definition") & ~_differs("backend")
    speculates = c.accept_length.is_not_null(), base.accept_length.is_not_null()
    return (
        Rule(applies=PAIRED, observed=_differs("ignore_eos"), refuse=ANY),
        Rule(
            applies=PAIRED & (speculates[0] | speculates[1]) & c.complete & base.complete & alike,
            observed=speculates[0] != speculates[1],
            suspect=ANY,
            says="accept length {accept_length:.2f} against {base__accept_length:.2f} in the baseline",
        ),
    )


@check("PD709", voids="comparison", says="the candidate has no measured result")
def both_sides_are_measured() -> tuple[Rule, ...]:
    """Both sides have a measured result.

    Why: a number that is not a result is neither more nor less than another.
    Next: `pdkit check` of that side says what took its result.
    Source: in MLPerf an invalid reference fails the test.
    Exceptions: none.
    """
    return (
        Rule(applies=PAIRED, observed=c.refused, refuse=ANY),
        Rule(applies=PAIRED, observed=base.refused, refuse=ANY, says="the baseline has no measured result"),
    )


@check(
    "PD710", voids="comparison", says="all runs of one side came before all of the other: what drifted is in the ratio"
)
def the_sides_took_turns() -> tuple[Rule, ...]:
    """Runs of both sides took turns, within a day.

    Why: what warms up, fills up or is shared by others moves with time, and then looks like a difference of the sides.
    Next: run them in turn, A B A B, on one day; `started_at` of each level in sweep.toml.
    Source: Kalibera and Jones, "Quantifying performance changes with effect size confidence intervals"; a day:
    judgement.
    Exceptions: no times in sweep.toml: not evaluated; with one run a side there is no order to speak of, only a day.
    """
    several = (c.level_repeats > 1) & (base.level_repeats > 1)
    return (
        Rule(applies=PAIRED & several, observed=c.side_changes, note=below(2)),
        Rule(
            applies=PAIRED,
            observed=c.hours_apart,
            note=above(_DAY_H),
            says="a run is {observed:,.0f} hours from the nearest of the other side",
        ),
    )


@check(
    "PD711",
    voids="comparison",
    says="engine {server_version} against {base__server_version}, and no log says that answers are as good",
)
def quality_is_shown() -> tuple[Rule, ...]:
    """Where the engine changed, its answers are known to be as good.

    Why: a kernel that computes something else can be very fast.
    Next: run an evaluation on both sides.
    Source: MLPerf TEST01 and TEST07; InferenceX evaluates.
    Exceptions: no log that pdkit reads holds an evaluation: say beside the comparison which one was run. A backend
    names the engine by custom only; one engine through another of its own endpoints is one engine.
    """
    other = "backend {backend} against {base__backend}, another engine, and no log says that answers are as good"
    return (
        Rule(applies=PAIRED, observed=_differs("server_version"), suspect=ANY),
        Rule(applies=PAIRED, observed=_OTHER_ENGINE, suspect=ANY, says=other),
        Rule(
            applies=PAIRED,
            observed=_differs("precision"),
            suspect=ANY,
            says="precision {precision} against {base__precision}, and no log says that answers are as good",
        ),
    )


@check(
    "PD712",
    voids="comparison",
    says="completed: {completed:,.0f} of {sent:,.0f}, {base__completed:,.0f} of {base__sent:,.0f} in the baseline",
)
def as_many_failed() -> Rule:
    """About as many requests failed on both sides.

    Why: a side that drops what is hard is fast with the rest.
    Next: goodput over all that were sent.
    Source: survivor bias; one point: judgement.
    Exceptions: how many were sent is unknown: not evaluated.
    """
    mine, theirs = c.completed / c.sent, base.completed / base.sent
    return Rule(applies=PAIRED, observed=(mine - theirs).abs(), suspect=above(_POINT))


@check(
    "PD713",
    voids="comparison",
    says="{received_ratio:.1%} of the claimed tokens came back, {base__received_ratio:.1%} in the baseline",
)
def tokens_are_counted_alike() -> Rule:
    """Claimed and received tokens tell the same ratio of the two sides.

    Why: where they do not, whoever counts decides who wins; in one public pair claimed tokens called one side 2.84
    times faster, and the text that came back called the other 1.78 times faster.
    Next: compare received tokens; find out why one side claims more.
    Source: that pair; 5 % is what re-tokenizing moves between healthy workloads.
    Exceptions: a standing level of 0.95 on both sides; a count that is absent: not evaluated.
    """
    bound = outside(1 - _TOKENS_MOVE, 1 + _TOKENS_MOVE)
    return Rule(applies=PAIRED, observed=c.received_ratio / base.received_ratio, refuse=bound)
