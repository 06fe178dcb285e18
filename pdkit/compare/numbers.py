"""What both sides publish, and the calls that their repeats allow."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from pdkit import stats
from pdkit.compare.call import CALLED, PER_GPU, PICKED, RECEIVED, Call, call_of, mean
from pdkit.compare.comparison import Number, Pair, Runs
from pdkit.results import Judgement

# a mean where a client prints no median
_CLOCKS = (("ttft_ms_median", "ttft_ms_mean"), ("tpot_ms_median", "tpot_ms_mean"), ("e2e_ms_median", "e2e_ms_mean"))


def with_numbers(pair: Pair, judgement: Judgement) -> Pair:
    """A comparable pair with what its sides publish, and with calls where both have enough repeats."""
    why_not = dict(_without_ratio(pair))
    numbers = tuple(_numbers(judgement, pair, why_not=why_not))
    return replace(pair, numbers=numbers, calls=() if pair.without_call else tuple(_calls(pair, why_not)))


def _without_ratio(pair: Pair) -> Iterator[tuple[str, str]]:
    """Facts of which a ratio would mean nothing, and why."""
    if pair.per_gpu:
        yield RECEIVED, "another number of GPUs"
    if any(result.rule == "PD706" for result in pair.results):
        yield from ((name, "another client") for names in (*_CLOCKS, CALLED) for name in names if "_ms_" in name)


def _numbers(judgement: Judgement, pair: Pair, *, why_not: Mapping[str, str]) -> Iterator[Number]:
    """Received throughput, per GPU where both counts are known, then the clocks; what neither side states is left out.

    `why_not` says of which facts a ratio would mean nothing.
    """
    sides = [[run.published for run in side.repeats] for side in pair.sides]
    for names in ((RECEIVED,), (PER_GPU,), *_CLOCKS):
        in_all = [name for name in names if all(name in published for side in sides for published in side)]
        in_some = [name for name in names if any(name in published for side in sides for published in side)]
        for fact in [*in_all, *(in_some if names != (PER_GPU,) else [])][:1]:
            voided = dict(judgement.published.filter(fact=fact).select("run_id", "voided_by").iter_rows())
            theirs, mine = (
                tuple(sorted({rule for run in side.repeats for rule in voided.get(run.run_id, ())}))
                for side in pair.sides
            )
            means = [mean(values) if (values := values_of(side, fact)) else None for side in pair.sides]
            yield Number(fact, means[0], means[1], theirs, mine, why_not.get(fact, ""))


def values_of(side: Runs, fact: str) -> list[float]:
    """What each of its repeats publishes; nothing unless all do."""
    values = [value for run in side.repeats if (value := run.published.get(fact)) is not None]
    return values if len(values) == len(side.repeats) else []


def declared_of(pair: Pair) -> str:
    """The metric by which the pair is called: per GPU where the sides have another number of them."""
    return PER_GPU if pair.per_gpu and pair.declared == RECEIVED else pair.declared


def _calls(pair: Pair, why_not: Mapping[str, str]) -> Iterator[Call]:
    """What three or more repeats a side say, the declared metric first; nothing of one that some do not publish."""
    declared = declared_of(pair)
    others = [PER_GPU if pair.per_gpu and fact == RECEIVED else fact for fact in CALLED]
    for fact in dict.fromkeys([declared, *others]):
        theirs, mine = (values_of(side, fact) for side in pair.sides)
        if fact not in why_not and (call := call_of(fact, theirs, mine)):
            yield replace(call, is_declared=fact == declared)


def counted(pairs: Sequence[Pair]) -> list[Pair]:
    """The pairs with the p of each declared call among all levels, and whether it then counts for too little."""
    adjusted = iter(stats.holm([pair.call.interval.p for pair in pairs if pair.call]))
    return [_with_p(pair, pair.call, next(adjusted)) if pair.call else pair for pair in pairs]


def _with_p(pair: Pair, call: Call, p: float) -> Pair:
    is_picked = any(result.rule == PICKED for result in pair.results)
    others = (other for other in pair.calls if not other.is_declared)
    return replace(pair, calls=(replace(call, holm_p=p, is_picked=is_picked), *others))
