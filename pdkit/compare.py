"""Two sides, level by level: what differs, whether they can be held against each other, and what both then say."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

import polars as pl

from pdkit.checks.comparability import LENGTHS_OFF, card, weights
from pdkit.errors import PdkitError
from pdkit.evidence import Evidence
from pdkit.facts import base_names, places
from pdkit.findings import Findings, Place, Result, Run
from pdkit.judge import Thresholds, judge
from pdkit.redact import redacted
from pdkit.results import DOUBTS, MEASURED, NO_LEVEL, NO_RESULT, Judgement
from pdkit.rules import CHECKS, Pairs, c
from pdkit.units import listed, plural, show

Side = Literal["baseline", "candidate"]
LEAST_REPEATS = (
    3  # runs a side: from one each, 70 to 84 % of equal pairs are called a winner (reference: statistics B2)
)

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
_KEYS = {"model": weights(c.model), "gpu": card(c.gpu)}  # one thing under several names

_RECEIVED, _PER_GPU = "received_throughput_tok_per_s", "received_throughput_tok_per_s_per_gpu"
# a mean where a client prints no median
_CLOCKS = (("ttft_ms_median", "ttft_ms_mean"), ("tpot_ms_median", "tpot_ms_mean"), ("e2e_ms_median", "e2e_ms_mean"))


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
    """One published result on both sides; None where it was not stated, or where the named rules took it."""

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
class Pair:
    """One run a side. Only a comparable pair has `numbers`."""

    title: str
    baseline: Run
    candidate: Run
    per_gpu: bool
    differing: tuple[Setting, ...]
    stated_once: tuple[Setting, ...]
    results: tuple[Result, ...]
    not_evaluated: tuple[str, ...]
    numbers: tuple[Number, ...]

    def failed(self, severity: str) -> list[Result]:
        """The rules about pairs that failed so."""
        return [result for result in self.results if result.severity == severity]

    @property
    def is_comparable(self) -> bool:
        """Whether both sides are measured and no rule refuses to hold them against each other."""
        return _measured(self.baseline) and _measured(self.candidate) and not self.failed("refuse")

    @property
    def sentence(self) -> str:
        """Why there is no winner."""
        sides = (("BASELINE", self.baseline), ("CANDIDATE", self.candidate))
        unfit = [f"{name} {_unfit(run)}" for name, run in sides if not _measured(run)]
        if unfit:
            return f"no winner: {listed(unfit)}"
        if refused := [result.rule for result in self.failed("refuse")]:
            return f"no winner: not comparable ({listed(refused)})"
        return f"no winner: one run a side; {LEAST_REPEATS} or more a side, in turn and with one seed, would tell"


@dataclass(frozen=True)
class Unpaired:
    """A level of which no run was chosen, and how many runs each side has there."""

    level: str
    baseline: int
    candidate: int

    @property
    def is_crowded(self) -> bool:
        """Whether both sides have it, but one of them several times."""
        return bool(self.baseline and self.candidate)

    @property
    def sentence(self) -> str:
        """Why nothing is compared there."""
        if not self.is_crowded:
            return f"{self.level}: {'BASELINE' if self.baseline else 'CANDIDATE'} alone has it"
        runs = f"{plural(self.baseline, 'run')} of BASELINE, {self.candidate:,} of CANDIDATE"
        return f"{self.level}: {runs}: none is picked; name the logs of one run a side"


@dataclass(frozen=True)
class Comparison:
    """All pairs, the levels without one, and the judgement of both sides that they rest on."""

    pairs: tuple[Pair, ...]
    unpaired: tuple[Unpaired, ...]
    judgement: Judgement

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
            return "no winner: no level at which each side has one run"
        fit = [pair.candidate.level for pair in self.pairs if pair.is_comparable]
        of = plural(len(self.pairs), "level")
        if not fit:
            return f"no winner: none of {of} can be compared"
        return f"no winner: {len(fit)} of {of} can be compared ({listed(fit)}), with one run a side"


def compare(
    baseline: Evidence, candidate: Evidence, *, thresholds: Thresholds | None = None, redact: bool = False
) -> Comparison:
    """Both sides held against each other, level by level; with one run a side there is never a winner.

    Runs at the same level are a pair, and so are the only run of one side and the only run of the other. Where a side
    has several runs at a level, none is picked. `redact` masks hosts, addresses and paths, of both sides at once.

    Raises:
        PdkitError: one log is on both sides.
    """
    _apart(baseline, candidate)
    both = Evidence.joined([_sided(baseline, "baseline"), _sided(candidate, "candidate")])
    evidence = redacted(both) if redact else both
    alone = judge(evidence, thresholds=thresholds)
    side = pl.col("run_id").str.split("/").list.first()
    of_side = (alone.verdicts.filter(side == name).select("run_id", "level_asked").rows() for name in _SIDES)
    chosen, unpaired = _chosen(*of_side)
    refused = alone.verdicts.filter(pl.col("verdict") == NO_RESULT)["run_id"]
    judgement = judge(evidence, thresholds=thresholds, pairs=Pairs(chosen, frozenset(refused))) if chosen else alone
    return Comparison(tuple(_compared(judgement, chosen)), tuple(unpaired), judgement)


# --- sides and pairs ------------------------------------------------------------------------------------------------

_SIDES: tuple[Side, ...] = ("baseline", "candidate")


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


def _chosen(
    baseline: list[tuple[str, str]], candidate: list[tuple[str, str]]
) -> tuple[dict[str, str], Iterable[Unpaired]]:
    """The baseline's run of each of the candidate's, from ids with levels; then the levels that have no pair."""
    if len(baseline) == len(candidate) == 1:
        return {candidate[0][0]: baseline[0][0]}, ()
    levels = dict.fromkeys(level for _, level in (*baseline, *candidate))
    at = {level: ([i for i, its in baseline if its == level], [i for i, its in candidate if its == level])
          for level in levels}  # fmt: skip
    pairs = {here[0]: there[0] for level, (there, here) in at.items() if _is_pair(level, there, here)}
    left = (Unpaired(level, len(there), len(here)) for level, (there, here) in at.items()
            if not _is_pair(level, there, here))  # fmt: skip
    return pairs, left


def _is_pair(level: str, there: list[str], here: list[str]) -> bool:
    return len(there) == len(here) == 1 and level != NO_LEVEL


def _measured(run: Run) -> bool:
    return run.verdict in (MEASURED, DOUBTS)


def _unfit(run: Run) -> str:
    if run.is_refused:
        return f"has {NO_RESULT} ({listed(run.refused_by)})" if run.refused_by else f"has {NO_RESULT}"
    return f"is {run.verdict}: {run.why or 'its log is not whole'}"


def _compared(judgement: Judgement, chosen: Mapping[str, str]) -> Iterator[Pair]:
    """The pairs, in the order of levels."""
    runs = {run.run_id: run for run in Findings(judgement).runs}
    titles = {name: _unsided(title) for name, title in judgement.conclusions.select("experiment", "title").iter_rows()}
    settings = _Settings(judgement, {*chosen, *chosen.values()})
    for here in (run for run in runs if run in chosen):
        baseline, candidate = runs[chosen[here]], runs[here]
        pair = _pair(baseline, candidate, titles=titles, settings=list(settings.of(baseline.run_id, here)))
        if pair.is_comparable:
            numbers = _numbers(judgement, baseline, candidate, why_not=dict(_without_ratio(pair)))
            pair = replace(pair, numbers=tuple(numbers))
        yield replace(pair, baseline=_plain(baseline), candidate=_plain(candidate))


def _pair(baseline: Run, candidate: Run, *, titles: Mapping[str, str], settings: list[Setting]) -> Pair:
    """The pair without its numbers."""
    differing = [s for s in settings if s.baseline is not None and s.candidate is not None]
    per_gpu = any(setting.name == SETTINGS["gpu_count"] for setting in differing)
    levels = " against ".join(dict.fromkeys([candidate.level, baseline.level]))
    title = f"{titles[candidate.experiment]} against {titles[baseline.experiment]}, at {levels}"
    names = [setting.name for setting in differing]
    return Pair(
        title=title + (", per GPU" if per_gpu else "") + (f"; they differ in {listed(names)}" if names else ""),
        baseline=baseline,
        candidate=candidate,
        per_gpu=per_gpu,
        differing=tuple(differing),
        stated_once=tuple(setting for setting in settings if setting not in differing),
        results=tuple(_about_pair(baseline, candidate)),
        not_evaluated=tuple(r.rule for r in candidate.results if r.outcome == "not_evaluated" and _is_of_pairs(r.rule)),
        numbers=(),
    )


def _without_ratio(pair: Pair) -> Iterator[tuple[str, str]]:
    """Facts of which a ratio would mean nothing, and why."""
    if pair.per_gpu:
        yield _RECEIVED, "another number of GPUs"
    if any(result.rule == "PD706" for result in pair.results):
        yield from ((name, "another client") for names in _CLOCKS for name in names)


def _is_of_pairs(rule: str) -> bool:
    return CHECKS[rule].family == "comparability"


def _about_pair(baseline: Run, candidate: Run) -> Iterator[Result]:
    """What failed of the pair, and what speaks against comparing either side."""
    for run in (baseline, candidate):
        for result in run.failed("refuse", "suspect", "note"):
            if _is_of_pairs(result.rule) or (
                result.severity != "note" and CHECKS[result.rule].voids == ("comparison",)
            ):
                yield result


def _unsided(name: str) -> str:
    return name.removeprefix("baseline/").removeprefix("candidate/")


def _plain(run: Run) -> Run:
    """With the names that its own side alone would have."""
    return replace(run, run_id=_unsided(run.run_id), experiment=_unsided(run.experiment))


# --- what differs ---------------------------------------------------------------------------------------------------


class _Settings:
    """The settings of the chosen runs, with the lines that state them."""

    def __init__(self, judgement: Judgement, chosen: set[str]) -> None:
        wide = judgement.facts.filter(pl.col("run_id").is_in(list(chosen)))
        keys = [key.alias(f"key {name}") for name, key in _KEYS.items()]
        self._rows = {row["run_id"]: row for row in wide.select("run_id", *SETTINGS, *keys).iter_rows(named=True)}
        self._places: dict[tuple[str, str], list[Place]] = {}
        stated = places(judgement.evidence, wide).filter(pl.col("run_id").is_in(list(chosen)))
        for run, fact, file, line in stated.select("run_id", "fact", "source_file", "source_line").iter_rows():
            self._places.setdefault((run, fact), []).append(Place(file, line))

    def of(self, there: str, here: str) -> Iterator[Setting]:
        """Those that differ, or that one side alone states."""
        theirs, mine = self._rows[there], self._rows[here]
        for fact, name in SETTINGS.items():
            key = f"key {fact}" if fact in _KEYS else fact
            if not _alike(fact, theirs[key], mine[key]):
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


# --- numbers --------------------------------------------------------------------------------------------------------


def _numbers(judgement: Judgement, baseline: Run, candidate: Run, *, why_not: Mapping[str, str]) -> Iterator[Number]:
    """Received throughput, per GPU where both counts are known, then the clocks; what neither side states is left out.

    `why_not` says of which facts a ratio would mean nothing.
    """
    for names in ((_RECEIVED,), (_PER_GPU,), *_CLOCKS):
        both = [name for name in names if name in baseline.published and name in candidate.published]
        either = [name for name in names if name in baseline.published or name in candidate.published]
        for fact in [*both, *(either if names != (_PER_GPU,) else [])][:1]:
            voided = dict(judgement.published.filter(fact=fact).select("run_id", "voided_by").iter_rows())
            yield Number(
                fact,
                baseline=baseline.published.get(fact),
                candidate=candidate.published.get(fact),
                baseline_voided_by=tuple(voided.get(baseline.run_id, ())),
                candidate_voided_by=tuple(voided.get(candidate.run_id, ())),
                no_ratio=why_not.get(fact, ""),
            )
