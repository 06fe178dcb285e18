"""Two sides, level by level: what differs, whether they may be compared, and what their runs then say."""

from collections.abc import Callable, Mapping, Sequence

import polars as pl

from pdkit.compare.beside import Said, as_rows, facts_beside, facts_of_calls
from pdkit.compare.call import CALLED, RECEIVED, Call, percent
from pdkit.compare.comparison import Comparison, FirstTokens, Number, Pair, Percentile, Runs, Setting
from pdkit.compare.first_tokens import first_tokens_of, with_first_tokens
from pdkit.compare.levels import Level, levels_of, refuse_copies
from pdkit.compare.pairs import compared
from pdkit.compare.sides import plain, refuse_shared_logs, sided
from pdkit.errors import one_of
from pdkit.evidence import Evidence
from pdkit.judge import Thresholds, judge
from pdkit.machines import Machines
from pdkit.redact import redacted
from pdkit.results import NO_RESULT, Judgement
from pdkit.rules import Pairs

__all__ = [
    "CALLED", "Call", "Comparison", "FirstTokens", "Number", "Pair", "Percentile", "Runs", "Setting", "compare",
    "percent",
]  # fmt: skip


def compare(
    baseline: Evidence,
    candidate: Evidence,
    *,
    metric: str = RECEIVED,
    thresholds: Thresholds | None = None,
    machines: Machines | None = None,
    redact: bool = False,
) -> Comparison:
    """Both sides held against each other, level by level.

    Runs of one side at one level are its repeats: from three a side the interval of the ratio says `faster`, `slower`,
    `same` or `can't tell`, by `metric`, one of `CALLED`; of fewer there is never a winner. The only run of one side and
    the only run of the other are held against each other whatever their levels. `redact` masks hosts, addresses and
    paths, of both sides at once.

    Raises:
        PdkitError: one log, or one of several repeats, is on both sides, or a metric that repeats are not called by.
    """
    if metric not in CALLED:
        raise one_of("metric", metric, list(CALLED))
    refuse_shared_logs(baseline, candidate)
    both = Evidence.joined([sided(baseline, "baseline"), sided(candidate, "candidate")])
    evidence = redacted(both) if redact else both

    def judged(pairs: Pairs | None = None) -> Judgement:
        return judge(evidence, thresholds=thresholds, machines=machines, pairs=pairs)

    alone = judged()
    levels, unpaired = levels_of(alone)
    refuse_copies(alone, levels)
    if not levels:
        return Comparison((), unpaired, alone, metric)
    first_tokens = first_tokens_of(alone, [run for level in levels for run in level.repeats])
    beside = {run: said for level in levels for run, said in facts_beside(level, alone, first_tokens).items()}
    refused = frozenset(alone.verdicts.filter(pl.col("verdict") == NO_RESULT)["run_id"])
    judgement, pairs = _held_together(judged, levels, beside=beside, refused=refused, metric=metric)
    found = tuple(plain(with_first_tokens(pair, first_tokens)) for pair in pairs)
    return Comparison(found, unpaired, judgement, metric)


def _held_together(
    judged: Callable[[Pairs], Judgement],
    levels: Sequence[Level],
    *,
    beside: Mapping[str, Said],
    refused: frozenset[str],
    metric: str,
) -> tuple[Judgement, list[Pair]]:
    """The pairs, and the judgement that knows what each run is held against; `beside` is what runs beside it tell."""
    base_of = {run: level.lead for level in levels for run in level.held}
    judgement = judged(Pairs(base_of, refused, as_rows(beside)))
    pairs = compared(judgement, levels, metric)
    called = facts_of_calls(pairs)
    if not called:
        return judgement, pairs
    # only now is it known which levels are comparable, so which are called and count among each other
    rows = as_rows({run: said | called.get(run, {}) for run, said in beside.items()})
    judgement = judged(Pairs(base_of, refused, rows))
    return judgement, compared(judgement, levels, metric)
