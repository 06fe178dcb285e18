"""What only the runs beside it tell of a run: how many repeats there are, their turns, their spread, their call."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import pairwise

import polars as pl

from pdkit import stats
from pdkit.compare.comparison import Pair
from pdkit.compare.levels import Level, Picked
from pdkit.compare.numbers import declared_of, values_of
from pdkit.results import Judgement

_S_PER_HOUR = 3600.0
Said = dict[str, "str | float | None"]  # of one run: facts that the runs beside it tell


def as_rows(said: Mapping[str, Said]) -> tuple[Said, ...]:
    """One row a run, as the engine takes them."""
    return tuple({"run_id": run, **facts} for run, facts in said.items())


def facts_beside(level: Level, judgement: Judgement, first_tokens: Mapping[str, list[float]]) -> dict[str, Said]:
    """Facts of each run at the level that need no call."""
    said: dict[str, Said] = {}
    for side in (level.baseline, level.candidate):
        for run in side.used:
            modes = stats.modes(first_tokens.get(run, ()))
            said[run] = {
                "level_repeats": float(len(side.repeats)),
                "repeats_unlike": side.unlike,
                "ttft_modes": None if modes is None else float(modes),
            }
    turns = _turns(level, judgement)
    return said | {run: said[run] | turns for run in level.candidate.used}


def _turns(level: Level, judgement: Judgement) -> Said:
    """How the sides' runs follow each other in time; nothing unless all times are known."""
    theirs, mine = _starts(level.baseline, judgement), _starts(level.candidate, judgement)
    if not theirs or not mine:
        return {}
    order = [side for _, side in sorted([*((at, "theirs") for at in theirs), *((at, "mine") for at in mine)])]
    nearest = [
        min(abs(at - other) for other in others) for here, others in ((theirs, mine), (mine, theirs)) for at in here
    ]
    return {
        "side_changes": float(sum(one != next_ for one, next_ in pairwise(order))),
        "hours_apart": max(nearest).total_seconds() / _S_PER_HOUR,
    }


def _starts(side: Picked, judgement: Judgement) -> list[datetime]:
    """When its runs began, where sweep.toml says it of all of them: which of them began when does not matter."""
    level = ["experiment", "concurrency", "request_rate_per_s"]
    runs = judgement.verdicts.filter(pl.col("run_id").is_in(side.every)).group_by(level).len()
    planned = judgement.evidence.plan.drop_nulls("started_at")
    found: list[datetime] = []
    for experiment, cap, rate, count in runs.iter_rows():
        planned_rate = pl.col("request_rate_per_s")
        meant = planned.filter(
            pl.col("experiment") == experiment,
            pl.col("concurrency").eq_missing(pl.lit(cap)),
            planned_rate.is_null() | planned_rate.eq_missing(pl.lit(rate)),
        )
        if meant.height != count:
            return []
        found += meant["started_at"].to_list()
    return found


def facts_of_calls(pairs: Sequence[Pair]) -> dict[str, Said]:
    """The spread of each side that has one, and of the candidate's runs what their call rests on."""
    said: dict[str, Said] = {}
    tested = float(sum(pair.call is not None for pair in pairs))
    for pair in (pair for pair in pairs if pair.is_comparable):
        for side in pair.sides:
            spread = stats.cv(values_of(side, declared_of(pair)))
            said |= {run.run_id: {"repeats_cv": spread} for run in side.repeats if spread is not None}
        if call := pair.call:
            of_call: Said = {
                "call_low": call.interval.low, "call_high": call.interval.high, "call_delta": call.delta,
                "call_p": call.holm_p, "calls_tested": tested,
            }  # fmt: skip
            said |= {run.run_id: said.get(run.run_id, {}) | of_call for run in pair.candidate_runs.repeats}
    return said
