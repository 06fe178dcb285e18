"""Two sides, level by level: what differs, whether they may be compared, and what their runs then say."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from itertools import pairwise
from math import exp, log
from statistics import fmean
from typing import Any, Literal

import numpy as np
import polars as pl

from pdkit import stats
from pdkit.checks.comparability import LENGTHS_OFF, card, weights
from pdkit.checks.enough_data import FLOORS
from pdkit.errors import PdkitError, one_of
from pdkit.evidence import Evidence
from pdkit.facts import base_names, one_listing, places
from pdkit.findings import Findings, Place, Result, Run
from pdkit.judge import Thresholds, judge
from pdkit.machines import Machines
from pdkit.metrics import METRICS
from pdkit.redact import redacted
from pdkit.results import DOUBTS, MEASURED, NO_LEVEL, NO_RESULT, UNVERIFIED, Judgement
from pdkit.rules import CHECKS, Pairs, c
from pdkit.stats import LEAST_REPEATS, RatioInterval
from pdkit.units import listed, plural, show

Side = Literal["baseline", "candidate"]
Word = Literal["faster", "slower", "same", "can't tell"]

# what is set, or follows from what is set, and what a page calls it
SETTINGS = {
    "model": "model", "precision": "precision", "server_version": "engine version", "gpu": "GPU", "gpu_count": "GPUs",
    "topology": "topology", "tool": "client", "client_definition": "client definition",
    "tool_version": "client version", "backend": "backend", "dataset": "data set",
    "input_tok_per_request": "prompt tokens a request", "output_tok_per_request": "output tokens a request",
    "prompts_asked": "prompts", "concurrency": "concurrency cap", "request_rate_per_s": "requests/s asked",
    "ignore_eos": "end token ignored", "streaming": "streamed", "accept_length": "accept length", "seed": "seed",
}  # fmt: skip
_MEASURED_SETTINGS = ("input_tok_per_request", "output_tok_per_request", "accept_length")  # alike, never the same
# repeats share their level, may have seeds of their own, and PD702 holds each one's lengths against the baseline's
_MAY_DIFFER = {"concurrency", "request_rate_per_s", "seed", *_MEASURED_SETTINGS}
_KEYS = {"model": weights(c.model), "gpu": card(c.gpu)}  # one thing under several names

_RECEIVED, _PER_GPU = "received_throughput_tok_per_s", "received_throughput_tok_per_s_per_gpu"
# a mean where a client prints no median
_CLOCKS = (("ttft_ms_median", "ttft_ms_mean"), ("tpot_ms_median", "tpot_ms_mean"), ("e2e_ms_median", "e2e_ms_mean"))
# what repeats are called by, in a sentence; the first is declared unless the caller says otherwise
CALLED = {
    _RECEIVED: "received output throughput",
    "tpot_ms_mean": "mean TPOT",
    "ttft_ms_median": "median TTFT",
    "ttft_ms_p90": "p90 TTFT",
}
_SAID = CALLED | {_PER_GPU: "received output throughput per GPU"}
PERCENTILES = (50.0, 90.0, 95.0, 99.0)
TOO_FEW, PICKED = "PD902", "PD906"  # these take the call, and leave the comparison
_OF_CALLS = {"PD903", "PD904", PICKED}  # where there is no call, PD902 says so, and not that these could not look
# alike in copies of one run alone: repeats of one length may well take as long to 10 ms, but not to the same latencies
_PRINTED = ("completed", "duration_s", "output_throughput_tok_per_s", "e2e_ms_mean", "ttft_ms_mean")
_S_PER_HOUR = 3600.0


@dataclass(frozen=True)
class Setting:
    """One setting on both sides; None where a side does not state it."""

    name: str
    baseline: str | None
    candidate: str | None
    baseline_places: tuple[Place, ...]
    candidate_places: tuple[Place, ...]


@dataclass(frozen=True)
class Number:
    """One published result on both sides; None where it was not stated, or where the named rules took it.

    Of several runs a side it is the geometric mean, where all of them publish it.
    """

    fact: str
    baseline: float | None
    candidate: float | None
    baseline_voided_by: tuple[str, ...]
    candidate_voided_by: tuple[str, ...]
    no_ratio: str = ""

    @property
    def ratio(self) -> float | None:
        """Candidate over baseline; None where one is missing, or `no_ratio` says why it would mean nothing."""
        if self.no_ratio or self.candidate is None or not self.baseline:
            return None
        return self.candidate / self.baseline


@dataclass(frozen=True)
class Call:
    """What the repeats of both sides together say of one metric; of two values the first is the baseline's.

    `means` are geometric; `delta` is the share by which sides may differ and be called the same; `smallest_effect`
    what so many runs show in four of five tries; `enough` the runs a side that would tell where these can't; `holm_p`
    the p as it counts among all levels, and `is_picked` that it counts for too little there.
    """

    fact: str
    is_declared: bool
    runs: tuple[int, int]
    means: tuple[float, float]
    cv: tuple[float | None, float | None]
    interval: RatioInterval
    delta: float
    smallest_effect: float
    enough: int | None
    permutation_p: float | None
    holm_p: float | None = None
    is_picked: bool = False

    @property
    def word(self) -> Word:
        """`faster` or `slower` beyond the line at 1 ± delta, `same` within it, else `can't tell`."""
        line, found = 1 + self.delta, self.interval
        if found.low >= 1 / line and found.high <= line:
            return "same"
        if self.is_picked or (found.low <= line and found.high >= 1 / line):
            return "can't tell"
        return "faster" if (found.low > line) == (METRICS[self.fact].unit != "ms") else "slower"

    @property
    def verdict(self) -> str:
        """Its word as a page prints it: `faster`, `same within 3 %`."""
        return f"same within {percent(self.delta)}" if self.word == "same" else self.word

    @property
    def sentence(self) -> str:
        """The word with what it rests on; where it can't tell, what would."""
        subject = f"CANDIDATE is {self.word}" if self.word in ("faster", "slower") else self.verdict
        low, high, (theirs, mine) = self.interval.low, self.interval.high, self.runs
        interval = f"95 % interval {low:.3f} to {high:.3f}, {self._where} ±{percent(self.delta)}"
        ratio = f"{self.interval.ratio:.3f} times BASELINE's {_SAID[self.fact]}"
        said = f"{subject}: {ratio} ({interval}; {mine} runs against {theirs})"
        return f"{said}; {self._missing}" if self.word == "can't tell" else said

    @property
    def _where(self) -> str:
        if self.word == "same":
            return "within"
        return "across" if self.word == "can't tell" and not self.is_picked else "beyond"

    @property
    def _missing(self) -> str:
        """What would tell."""
        if self.is_picked:
            return f"but one of so many levels may differ by chance, p {self.holm_p:.2g} among them ({PICKED})"
        shown = f"so many runs show a difference of {percent(self.smallest_effect)} in four of five tries"
        if self.enough is None:
            return f"{shown}, and this one lies so near the line that {stats.MOST_REPEATS} a side would not tell"
        return f"{shown}; {self.enough} a side would tell, if ratio and spread stay"


@dataclass(frozen=True)
class Percentile:
    """A percentile of one run's requests, with its 95 % interval and what it surely (99 %) does not pass.

    Below the `needs` requests that such a bound takes there is neither bound nor value.
    """

    percentile: float
    needs: int
    value: float | None = None
    interval: tuple[float, float] | None = None
    at_most: float | None = None


@dataclass(frozen=True)
class FirstTokens:
    """TTFT of one run's requests in ms: what it says holds within this run only."""

    side: Side
    run_id: str
    experiment: str
    requests: int
    percentiles: tuple[Percentile, ...]


@dataclass(frozen=True)
class Runs:
    """One side's runs at a level; its `repeats` are measured, and no copies of each other."""

    side: Side
    every: tuple[Run, ...]
    repeats: tuple[Run, ...]
    copies: int
    unlike: str  # settings in which its repeats differ

    @property
    def used(self) -> tuple[Run, ...]:
        """Its repeats; where it has none, all its runs, which say why."""
        return self.repeats or self.every

    @property
    def unfit(self) -> str:
        """Why it has no measured run; "" where it has one."""
        if self.repeats:
            return ""
        name, rules = self.side.upper(), sorted({rule for run in self.every for rule in run.refused_by})
        if len(self.every) == 1:
            return f"{name} {_unfit(self.every[0])}"
        return f"none of {len(self.every)} runs of {name} is measured" + (f" ({listed(rules)})" if rules else "")

    @property
    def left_out(self) -> list[str]:
        """Beside its repeats: how many of its runs are none, and why."""
        refused = [run for run in self.every if run.is_refused]
        rules = sorted({rule for run in refused for rule in run.refused_by})
        doubtful = len(self.every) - self.copies - len(self.repeats) - len(refused)
        why = f" ({listed(rules)})" if rules else ""
        counted = (
            (len(refused), f"has {NO_RESULT}{why}", f"have {NO_RESULT}{why}"),
            (doubtful, f"is {UNVERIFIED}", f"are {UNVERIFIED}"),
            (self.copies, "is a copy of another", "are copies of others"),
        )
        of = f"of {len(self.every)} runs of {self.side.upper()}"
        return [f"{n} {of} {one if n == 1 else more}" for n, one, more in counted if n and self.repeats]


@dataclass(frozen=True)
class Pair:
    """The runs of both sides at one level. Only a comparable pair has `numbers`, `calls` and `first_tokens`."""

    title: str
    baseline_runs: Runs
    candidate_runs: Runs
    per_gpu: bool
    differing: tuple[Setting, ...]
    stated_once: tuple[Setting, ...]
    results: tuple[Result, ...]
    not_evaluated: tuple[str, ...]
    declared: str
    numbers: tuple[Number, ...] = ()
    calls: tuple[Call, ...] = ()
    first_tokens: tuple[FirstTokens, ...] = ()

    @property
    def sides(self) -> tuple[Runs, Runs]:
        """Baseline, then candidate."""
        return self.baseline_runs, self.candidate_runs

    @property
    def baseline(self) -> Run:
        """The run that all others at the level are held against."""
        return self.baseline_runs.used[0]

    @property
    def candidate(self) -> Run:
        """The candidate's first."""
        return self.candidate_runs.used[0]

    def failed(self, severity: str) -> list[Result]:
        """The rules about pairs that failed so; what takes the call alone is in `without_call`."""
        return [result for result in self.results if result.severity == severity and not _takes_call(result)]

    @property
    def without_call(self) -> list[Result]:
        """Why nobody can be called faster, though the sides are comparable."""
        return [result for result in self.results if _takes_call(result)]

    @property
    def is_comparable(self) -> bool:
        """Whether both sides are measured and no rule refuses to hold them against each other."""
        return all(side.repeats for side in self.sides) and not self.failed("refuse")

    @property
    def call(self) -> Call | None:
        """What the declared metric says; None where nobody may be called faster."""
        return next((call for call in self.calls if call.is_declared), None)

    @property
    def left_out(self) -> list[str]:
        """Runs of either side that are no repeats."""
        return [said for side in self.sides for said in side.left_out]

    @property
    def sentence(self) -> str:
        """Who is faster, and on what it rests; or why there is no winner. Then the runs that were left out."""
        said = self.call.sentence if self.call else f"no winner: {self._without}"
        return "; ".join([said, *self.left_out])

    @property
    def _without(self) -> str:
        if unfit := [side.unfit for side in self.sides if side.unfit]:
            return listed(unfit)
        if refused := [result.rule for result in self.failed("refuse")]:
            return f"not comparable ({listed(refused)})"
        if unlike := [f"{side.side.upper()}'s differ in {side.unlike}" for side in self.sides if side.unlike]:
            return f"not repeats of one thing: {listed(unlike)}"
        theirs, mine = (len(side.repeats) for side in self.sides)
        least = max([LEAST_REPEATS, *(int(result.low) for result in self.without_call if result.low)])
        if min(theirs, mine) >= least:
            return f"not every run publishes a {_SAID[self.declared]} that may be held against the other side's"
        have = "one run a side" if theirs == mine == 1 else f"{plural(theirs, 'run')} of BASELINE, {mine} of CANDIDATE"
        return f"{have}; {least} or more a side, in turn and with one seed, would tell"


@dataclass(frozen=True)
class Unpaired:
    """A level at which nothing is compared, and how many runs each side has there."""

    level: str
    baseline: int
    candidate: int

    @property
    def is_crowded(self) -> bool:
        """Whether both sides have runs there, and nothing tells which belong together."""
        return bool(self.baseline and self.candidate)

    @property
    def sentence(self) -> str:
        """Why nothing is compared there."""
        if not self.is_crowded:
            return f"{self.level}: {'BASELINE' if self.baseline else 'CANDIDATE'} alone has it"
        runs = f"{plural(self.baseline, 'run')} of BASELINE, {self.candidate:,} of CANDIDATE"
        return f"{self.level}: {runs}: none is picked; name the logs of one level"


@dataclass(frozen=True)
class Comparison:
    """All pairs, the levels without one, and the judgement of both sides that they rest on."""

    pairs: tuple[Pair, ...]
    unpaired: tuple[Unpaired, ...]
    judgement: Judgement
    declared: str

    @property
    def is_comparable(self) -> bool:
        """Whether something was compared, and nothing that both sides have was refused."""
        crowded = any(level.is_crowded for level in self.unpaired)
        return bool(self.pairs) and not crowded and all(pair.is_comparable for pair in self.pairs)

    @property
    def conclusion(self) -> str:
        """One sentence about all pairs."""
        if len(self.pairs) == 1:
            return self.pairs[0].sentence
        if not self.pairs:
            return "no winner: no level that both sides have and state"
        if not any(pair.call for pair in self.pairs):
            return self._without_call
        levels: dict[str, list[str]] = {}
        for pair in self.pairs:
            levels.setdefault(_called(pair), []).append(pair.candidate.level)
        return "; ".join(f"{word} at {listed(at)}" for word, at in levels.items())

    @property
    def _without_call(self) -> str:
        fit, of = [pair for pair in self.pairs if pair.is_comparable], plural(len(self.pairs), "level")
        if not fit:
            return f"no winner: none of {of} can be compared"
        alone = all(len(side.repeats) == 1 for pair in fit for side in pair.sides)
        how = "one run a side" if alone else f"fewer than {LEAST_REPEATS} repeats a side, or unlike ones"
        return f"no winner: {len(fit)} of {of} can be compared ({listed([p.candidate.level for p in fit])}), with {how}"


def compare(
    baseline: Evidence,
    candidate: Evidence,
    *,
    metric: str = _RECEIVED,
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
        PdkitError: one log is on both sides, or a metric that repeats are not called by.
    """
    if metric not in CALLED:
        raise one_of("metric", metric, list(CALLED))
    _apart(baseline, candidate)
    both = Evidence.joined([_sided(baseline, "baseline"), _sided(candidate, "candidate")])
    evidence = redacted(both) if redact else both
    alone = judge(evidence, thresholds=thresholds, machines=machines)
    levels, unpaired = _levels(alone)
    if not levels:
        return Comparison((), unpaired, alone, metric)
    refused = frozenset(alone.verdicts.filter(pl.col("verdict") == NO_RESULT)["run_id"])
    base_of = {run: level.lead for level in levels for run in level.held}
    first_tokens = _first_tokens(alone, [run for level in levels for run in level.repeats])
    beside = {run: said for level in levels for run, said in _beside(level, alone, first_tokens).items()}
    judgement = judge(evidence, thresholds=thresholds, machines=machines, pairs=Pairs(base_of, refused, _rows(beside)))
    pairs = _compared(judgement, levels, metric)
    # only now is it known which levels are comparable, so which are called and count among each other
    if called := _facts_of_calls(pairs):
        rows = _rows({run: said | called.get(run, {}) for run, said in beside.items()})
        judgement = judge(evidence, thresholds=thresholds, machines=machines, pairs=Pairs(base_of, refused, rows))
        pairs = _compared(judgement, levels, metric)
    return Comparison(
        tuple(_plain(_with_first_tokens(pair, first_tokens)) for pair in pairs), unpaired, judgement, metric
    )


def called_by(fact: str, baseline: Sequence[float], candidate: Sequence[float]) -> Word | None:
    """The word for what each run of both sides says of a metric; None from fewer than three runs a side."""
    call = _call(fact, baseline, candidate)
    return call.word if call else None


def percent(ratio: float) -> str:
    """A share as a sentence has it: `3 %`, `4.2 %`."""
    return f"{100 * ratio:.1f}".removesuffix(".0") + " %"


def _takes_call(result: Result) -> bool:
    return result.rule == TOO_FEW and result.severity == "refuse"


def _called(pair: Pair) -> str:
    word = pair.call.verdict if pair.call else "no winner"
    return f"CANDIDATE is {word}" if word in ("faster", "slower") else word


# --- sides and levels -----------------------------------------------------------------------------------------------

_SIDES: tuple[Side, ...] = ("baseline", "candidate")
_Rows = Mapping[str, dict[str, Any]]  # by run
_Said = dict[str, "str | float | None"]  # of one run: facts that the runs beside it tell


def _apart(baseline: Evidence, candidate: Evidence) -> None:
    """Raise where both sides hold one client log: it would be compared with itself."""
    theirs, mine = _logs(baseline), _logs(candidate)
    if shared := next((digest for digest in mine if digest in theirs), None):
        raise PdkitError(f"{mine[shared]}: the same log as {theirs[shared]} of the baseline; name another run's logs")


def _logs(evidence: Evidence) -> dict[str, str]:
    """The files that show a result, by what they hold."""
    logs = evidence.claims.filter(pl.col("fact") == "completed")["source_file"].unique()
    return dict(evidence.sources.filter(pl.col("path").is_in(logs.implode())).select("sha256", "path").iter_rows())


def _sided(evidence: Evidence, side: Side) -> Evidence:
    """With ids and experiments that tell the sides apart, though both may be one folder."""
    tables = {}
    for field in fields(evidence):
        frame: pl.DataFrame = getattr(evidence, field.name)
        named = [pl.format(f"{side}/{{}}", name).alias(name) for name in ("run_id", "experiment") if name in frame]
        seen = [pl.format(f"{side}#{{}}", pl.col(name).hash()).alias(name) for name in ("seen_id",) if name in frame]
        tables[field.name] = frame.with_columns(*named, *seen)
    return replace(evidence, **tables)


@dataclass(frozen=True)
class _Picked:
    """One side's runs at a level, by id: as `Runs`."""

    every: tuple[str, ...]
    repeats: tuple[str, ...]
    copies: int
    unlike: str

    @property
    def used(self) -> tuple[str, ...]:
        return self.repeats or self.every


@dataclass(frozen=True)
class _Level:
    """What both sides have at a level."""

    baseline: _Picked
    candidate: _Picked

    @property
    def lead(self) -> str:
        """The run that all others are held against."""
        return self.baseline.used[0]

    @property
    def held(self) -> tuple[str, ...]:
        """The candidate's runs, and the baseline's other repeats: these are to be of one kind."""
        return *self.candidate.used, *self.baseline.repeats[1:]

    @property
    def repeats(self) -> tuple[str, ...]:
        return *self.baseline.repeats, *self.candidate.repeats


def _levels(judgement: Judgement) -> tuple[list[_Level], tuple[Unpaired, ...]]:
    """The levels that both sides have, from the lowest; then those at which nothing is compared."""
    printed = judgement.facts.select("run_id", *_PRINTED)
    rows = judgement.verdicts.join(printed, on="run_id", maintain_order="left").sort(
        "concurrency", "request_rate_per_s", nulls_last=True, maintain_order=True
    )
    sides = [[row for row in rows.iter_rows(named=True) if row["run_id"].startswith(f"{side}/")] for side in _SIDES]
    settings = _setting_rows(judgement)
    if all(len(side) == 1 for side in sides):
        return [_Level(*(_picked(side, settings) for side in sides))], ()
    names = dict.fromkeys(row["level_asked"] for row in rows.iter_rows(named=True))
    at = {name: [[row for row in side if row["level_asked"] == name] for side in sides] for name in names}
    shared = {name for name, (theirs, mine) in at.items() if theirs and mine and name != NO_LEVEL}
    unpaired = (Unpaired(name, *map(len, at[name])) for name in names if name not in shared)
    return [_Level(*(_picked(s, settings) for s in at[name])) for name in names if name in shared], tuple(unpaired)


def _picked(rows: Sequence[dict[str, Any]], settings: _Rows) -> _Picked:
    """Of one side's runs at a level, those that are its repeats."""
    measured = [row for row in rows if row["verdict"] in (MEASURED, DOUBTS)]
    apart = {_printed(row): row["run_id"] for row in reversed(measured)}  # of copies, the first is kept
    repeats = tuple(row["run_id"] for row in measured if row["run_id"] in apart.values())
    unlike = _unlike([settings[run] for run in repeats])
    return _Picked(tuple(row["run_id"] for row in rows), repeats, len(measured) - len(repeats), unlike)


def _printed(row: Mapping[str, Any]) -> tuple[str, ...]:
    """What two runs share only if one is a copy of the other, as a client prints it; its id where that is unknown."""
    values = [row[name] for name in _PRINTED]
    return (row["run_id"],) if None in values else tuple(f"{value:.2f}" for value in values)


def _unlike(rows: Sequence[Mapping[str, Any]]) -> str:
    """The settings in which runs differ, with what they are; "" where they are alike."""
    found = []
    for fact, name in SETTINGS.items():
        values = {row[_key(fact)]: _shown(row[fact]) for row in rows if row[fact] is not None}
        if len(values) > 1 and fact not in _MAY_DIFFER:
            found.append(f"{name} ({listed(sorted(map(str, values.values())))})")
    return listed(found)


def _measured(run: Run) -> bool:
    return run.verdict in (MEASURED, DOUBTS)


def _unfit(run: Run) -> str:
    if run.is_refused:
        return f"has {NO_RESULT} ({listed(run.refused_by)})" if run.refused_by else f"has {NO_RESULT}"
    return f"is {run.verdict}: {run.why or 'its log is not whole'}"


def _unsided(name: str) -> str:
    return name.removeprefix("baseline/").removeprefix("candidate/")


def _plain(pair: Pair) -> Pair:
    """With the names that its own side alone would have."""
    return replace(pair, baseline_runs=_plain_runs(pair.baseline_runs), candidate_runs=_plain_runs(pair.candidate_runs))


def _plain_runs(runs: Runs) -> Runs:
    named = {
        run.run_id: replace(run, run_id=_unsided(run.run_id), experiment=_unsided(run.experiment)) for run in runs.every
    }
    repeats = tuple(named[run.run_id] for run in runs.repeats)
    return replace(runs, every=tuple(named.values()), repeats=repeats)


# --- what only the runs beside it tell of a run ---------------------------------------------------------------------


def _rows(said: Mapping[str, _Said]) -> tuple[_Said, ...]:
    return tuple({"run_id": run, **facts} for run, facts in said.items())


def _beside(level: _Level, judgement: Judgement, first_tokens: Mapping[str, list[float]]) -> dict[str, _Said]:
    """Facts of each run at the level that need no call."""
    said: dict[str, _Said] = {}
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


def _turns(level: _Level, judgement: Judgement) -> _Said:
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


def _starts(side: _Picked, judgement: Judgement) -> list[datetime]:
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


def _first_tokens(judgement: Judgement, runs: Sequence[str]) -> dict[str, list[float]]:
    """The TTFT of each run's requests, ascending, where a TTFT of the run is published."""
    shown = judgement.published.filter(
        pl.col("fact").is_in(["ttft_ms_mean", "ttft_ms_median"]), pl.col("value").is_not_null()
    )["run_id"]
    asked = pl.col("run_id").is_in(list({*shown} & {*runs}))
    answered = one_listing(judgement.evidence).filter(asked, c.ok, c.ttft_ms.is_not_null())
    rows = answered.select("run_id", "ttft_ms").sort("ttft_ms").collect()
    return {str(run): own["ttft_ms"].to_list() for (run,), own in rows.group_by("run_id", maintain_order=True)}


def _facts_of_calls(pairs: Sequence[Pair]) -> dict[str, _Said]:
    """The spread of each side that has one, and of the candidate's runs what their call rests on."""
    said: dict[str, _Said] = {}
    tested = float(sum(pair.call is not None for pair in pairs))
    for pair in (pair for pair in pairs if pair.is_comparable):
        for side in pair.sides:
            spread = stats.cv(_values(side, _declared(pair)))
            said |= {run.run_id: {"repeats_cv": spread} for run in side.repeats if spread is not None}
        if call := pair.call:
            of_call: _Said = {
                "call_low": call.interval.low, "call_high": call.interval.high, "call_delta": call.delta,
                "call_p": call.holm_p, "calls_tested": tested,
            }  # fmt: skip
            said |= {run.run_id: said.get(run.run_id, {}) | of_call for run in pair.candidate_runs.repeats}
    return said


# --- pairs ----------------------------------------------------------------------------------------------------------


def _compared(judgement: Judgement, levels: Sequence[_Level], metric: str) -> list[Pair]:
    """The pairs with their numbers and calls, in the order of levels."""
    runs = {run.run_id: run for run in Findings(judgement).runs}
    titles = {name: _unsided(title) for name, title in judgement.conclusions.select("experiment", "title").iter_rows()}
    settings = _Settings(judgement, {run for level in levels for run in (level.lead, level.candidate.used[0])})
    pairs = []
    for level in levels:
        sides = _runs("baseline", level.baseline, runs), _runs("candidate", level.candidate, runs)
        pair = _pair(
            *sides, titles=titles, settings=list(settings.of(level.lead, level.candidate.used[0])), metric=metric
        )
        pairs.append(_with_numbers(pair, judgement) if pair.is_comparable else pair)
    return _counted(pairs)


def _runs(side: Side, picked: _Picked, runs: Mapping[str, Run]) -> Runs:
    every, repeats = (tuple(runs[name] for name in names) for names in (picked.every, picked.repeats))
    return Runs(side, every, repeats, picked.copies, picked.unlike)


def _pair(
    baseline: Runs, candidate: Runs, *, titles: Mapping[str, str], settings: Sequence[Setting], metric: str
) -> Pair:
    """The pair without its numbers."""
    differing = [s for s in settings if s.baseline is not None and s.candidate is not None]
    per_gpu = any(setting.name == SETTINGS["gpu_count"] for setting in differing)
    levels = " against ".join(dict.fromkeys([candidate.used[0].level, baseline.used[0].level]))
    title = f"{_title(candidate, titles)} against {_title(baseline, titles)}, at {levels}"
    names = [setting.name for setting in differing]
    blind = {r.rule for run in candidate.used for r in run.results if r.outcome == "not_evaluated"}
    return Pair(
        title=title + (", per GPU" if per_gpu else "") + (f"; they differ in {listed(names)}" if names else ""),
        baseline_runs=baseline,
        candidate_runs=candidate,
        per_gpu=per_gpu,
        differing=tuple(differing),
        stated_once=tuple(setting for setting in settings if setting not in differing),
        results=tuple(_about_pair(baseline, candidate)),
        not_evaluated=tuple(rule for rule in sorted(blind - _OF_CALLS) if _is_of_pairs(rule)),
        declared=metric,
    )


def _title(side: Runs, titles: Mapping[str, str]) -> str:
    """`before`, `before and 2 more`: the experiments of a side."""
    names = list(dict.fromkeys(titles[run.experiment] for run in side.used))
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def _is_of_pairs(rule: str) -> bool:
    return CHECKS[rule].family in ("comparability", "enough_data") and CHECKS[rule].voids == ("comparison",)


def _about_pair(baseline: Runs, candidate: Runs) -> Iterator[Result]:
    """What failed of the pair, and what speaks against comparing either side; once, with the lines of all runs."""
    found: dict[tuple[str, str], Result] = {}
    for runs in (baseline, candidate):
        for result in (one for run in runs.used for one in run.failed("refuse", "suspect", "note")):
            about = CHECKS[result.rule].voids == ("comparison",) and result.severity != "note"
            if (about or _is_of_pairs(result.rule)) and (sentence := _whose(runs.side, result)):
                known = found.get((result.rule, sentence), replace(result, sentence=sentence, places=()))
                where = tuple(dict.fromkeys([*known.places, *result.places]))
                found[result.rule, sentence] = replace(known, places=where)
    yield from found.values()


def _whose(side: Side, result: Result) -> str:
    """Its sentence, told of the runs that it is about; "" where the candidate's runs say it of both sides."""
    if result.rule == "PD905":
        return f"{side.upper()}: {result.sentence}"
    if side == "candidate" or not _is_of_pairs(result.rule):
        return result.sentence
    # a repeat of the baseline was held against the first one; what counts repeats says nothing new there
    is_new = CHECKS[result.rule].family == "comparability"
    return f"of the baseline's own repeats: {result.sentence}" if is_new else ""


# --- what differs ---------------------------------------------------------------------------------------------------


class _Settings:
    """The settings of the chosen runs, with the lines that state them."""

    def __init__(self, judgement: Judgement, chosen: set[str]) -> None:
        wide = judgement.facts.filter(pl.col("run_id").is_in(list(chosen)))
        self._rows = _setting_rows(judgement)
        self._places: dict[tuple[str, str], list[Place]] = {}
        stated = places(judgement.evidence, wide).filter(pl.col("run_id").is_in(list(chosen)))
        for run, fact, file, line in stated.select("run_id", "fact", "source_file", "source_line").iter_rows():
            self._places.setdefault((run, fact), []).append(Place(file, line))

    def of(self, there: str, here: str) -> Iterator[Setting]:
        """Those that differ, or that one side alone states."""
        theirs, mine = self._rows[there], self._rows[here]
        for fact, name in SETTINGS.items():
            if not _alike(fact, theirs[_key(fact)], mine[_key(fact)]):
                yield Setting(
                    name,
                    baseline=_shown(theirs[fact]),
                    candidate=_shown(mine[fact]),
                    baseline_places=self._where(there, fact),
                    candidate_places=self._where(here, fact),
                )

    def _where(self, run: str, fact: str) -> tuple[Place, ...]:
        found = (place for base in sorted(base_names(fact)) for place in self._places.get((run, base), []))
        return tuple(dict.fromkeys(found))


def _setting_rows(judgement: Judgement) -> _Rows:
    keys = [key.alias(_key(name)) for name, key in _KEYS.items()]
    return {row["run_id"]: row for row in judgement.facts.select("run_id", *SETTINGS, *keys).iter_rows(named=True)}


def _key(fact: str) -> str:
    """The column by which two values of a setting are held to be the same."""
    return f"key {fact}" if fact in _KEYS else fact


def _alike(fact: str, one: Any, other: Any) -> bool:
    if fact in _MEASURED_SETTINGS and one and other:
        return bool(abs(other / one - 1) <= LENGTHS_OFF)
    return bool(one == other)


def _shown(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return "yes" if value else "no"
    return show(value) if isinstance(value, float) else str(value)


# --- numbers and calls ----------------------------------------------------------------------------------------------


def _with_numbers(pair: Pair, judgement: Judgement) -> Pair:
    """A comparable pair with what its sides publish, and with calls where both have enough repeats."""
    why_not = dict(_without_ratio(pair))
    numbers = tuple(_numbers(judgement, pair, why_not=why_not))
    return replace(pair, numbers=numbers, calls=() if pair.without_call else tuple(_calls(pair, why_not)))


def _without_ratio(pair: Pair) -> Iterator[tuple[str, str]]:
    """Facts of which a ratio would mean nothing, and why."""
    if pair.per_gpu:
        yield _RECEIVED, "another number of GPUs"
    if any(result.rule == "PD706" for result in pair.results):
        yield from ((name, "another client") for names in (*_CLOCKS, CALLED) for name in names if "_ms_" in name)


def _numbers(judgement: Judgement, pair: Pair, *, why_not: Mapping[str, str]) -> Iterator[Number]:
    """Received throughput, per GPU where both counts are known, then the clocks; what neither side states is left out.

    `why_not` says of which facts a ratio would mean nothing.
    """
    sides = [[run.published for run in side.repeats] for side in pair.sides]
    for names in ((_RECEIVED,), (_PER_GPU,), *_CLOCKS):
        in_all = [name for name in names if all(name in published for side in sides for published in side)]
        in_some = [name for name in names if any(name in published for side in sides for published in side)]
        for fact in [*in_all, *(in_some if names != (_PER_GPU,) else [])][:1]:
            voided = dict(judgement.published.filter(fact=fact).select("run_id", "voided_by").iter_rows())
            theirs, mine = (
                tuple(sorted({rule for run in side.repeats for rule in voided.get(run.run_id, ())}))
                for side in pair.sides
            )
            means = [_mean(values) if (values := _values(side, fact)) else None for side in pair.sides]
            yield Number(fact, means[0], means[1], theirs, mine, why_not.get(fact, ""))


def _values(side: Runs, fact: str) -> list[float]:
    """What each of its repeats publishes; nothing unless all do."""
    values = [value for run in side.repeats if (value := run.published.get(fact)) is not None]
    return values if len(values) == len(side.repeats) else []


def _mean(values: Sequence[float]) -> float:
    """Geometric, as ratios are; a single value as it stands."""
    return exp(fmean(map(log, values))) if len(values) > 1 and min(values) > 0 else fmean(values)


def _declared(pair: Pair) -> str:
    return _PER_GPU if pair.per_gpu and pair.declared == _RECEIVED else pair.declared


def _calls(pair: Pair, why_not: Mapping[str, str]) -> Iterator[Call]:
    """What three or more repeats a side say, the declared metric first; nothing of one that some do not publish."""
    declared = _declared(pair)
    others = [_PER_GPU if pair.per_gpu and fact == _RECEIVED else fact for fact in CALLED]
    for fact in dict.fromkeys([declared, *others]):
        theirs, mine = (_values(side, fact) for side in pair.sides)
        if fact not in why_not and (call := _call(fact, theirs, mine)):
            yield replace(call, is_declared=fact == declared)


def _call(fact: str, theirs: Sequence[float], mine: Sequence[float]) -> Call | None:
    """The call of one metric, from what each run publishes; None from fewer than three a side."""
    if min(len(theirs), len(mine)) < LEAST_REPEATS:
        return None
    interval, spread = stats.ratio_interval(theirs, mine), stats.pooled_cv(theirs, mine)
    if interval is None or spread is None:
        return None
    delta = stats.same_within(spread)
    return Call(
        fact,
        is_declared=False,
        runs=(len(theirs), len(mine)),
        means=(_mean(theirs), _mean(mine)),
        cv=(stats.cv(theirs), stats.cv(mine)),
        interval=interval,
        delta=delta,
        smallest_effect=stats.smallest_effect(spread, len(theirs), len(mine)),
        enough=stats.repeats_to_tell(spread, interval.ratio, delta, more_than=min(len(theirs), len(mine))),
        permutation_p=stats.permutation_p(theirs, mine),
    )


def _counted(pairs: Sequence[Pair]) -> list[Pair]:
    """With the p of each declared call as it counts among all levels, and whether it then counts for too little."""
    adjusted = iter(stats.holm([pair.call.interval.p for pair in pairs if pair.call]))
    return [_with_p(pair, pair.call, next(adjusted)) if pair.call else pair for pair in pairs]


def _with_p(pair: Pair, call: Call, p: float) -> Pair:
    is_picked = any(result.rule == PICKED for result in pair.results)
    others = (other for other in pair.calls if not other.is_declared)
    return replace(pair, calls=(replace(call, holm_p=p, is_picked=is_picked), *others))


def _with_first_tokens(pair: Pair, first_tokens: Mapping[str, list[float]]) -> Pair:
    """A comparable pair with the percentiles of TTFT in each of its runs whose requests are known."""
    if not pair.is_comparable:
        return pair
    found = (
        FirstTokens(side.side, _unsided(run.run_id), _unsided(run.experiment), len(ordered), _percentiles(ordered))
        for side in pair.sides
        for run in side.repeats
        if (ordered := first_tokens.get(run.run_id, []))
    )
    return replace(pair, first_tokens=tuple(found))


def _percentiles(ordered: Sequence[float]) -> tuple[Percentile, ...]:
    return tuple(_percentile(ordered, percentile) for percentile in PERCENTILES)


def _percentile(ordered: Sequence[float], percentile: float) -> Percentile:
    """A percentile of ascending values; none below the number that supports it."""
    needs = FLOORS[percentile]
    at_most = stats.conservative_percentile(ordered, percentile)
    if at_most is None or len(ordered) < needs:
        return Percentile(percentile, needs)
    value = float(np.percentile(ordered, percentile))
    return Percentile(percentile, needs, value, stats.quantile_interval(ordered, percentile), at_most)
