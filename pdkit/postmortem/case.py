"""The suspect, its baseline and what was claimed of them: judged, compared, and put in the order of causes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import polars as pl

from pdkit.capacity import Capacity, capacity
from pdkit.chain import Chain, chain
from pdkit.compare import Comparison, compare
from pdkit.errors import PdkitError
from pdkit.evidence import Evidence
from pdkit.judge import Thresholds, judge
from pdkit.load import load
from pdkit.machines import Machines
from pdkit.policy import Waiver
from pdkit.redact import masked, redacted, redacted_waivers
from pdkit.results import DOUBTS, MEASURED, NO_RESULT, UNVERIFIED, Judgement, Verdict

_Told = TypeVar("_Told", Chain, Capacity)
_OTHER = "(baseline)"  # behind the name of an experiment of the baseline where the suspect has one of that name


@dataclass(frozen=True)
class Claim:
    """What somebody said of the suspect: their words, and the two numbers in them."""

    text: str = ""
    tok_per_s: float | None = None
    baseline_tok_per_s: float | None = None


@dataclass(frozen=True, eq=False)
class PostMortem:
    """Both sides as one judgement, and what follows from it.

    `suspect` and `baseline` are the run_ids of each side; `comparison` is None without a baseline that has a run.
    """

    claim: Claim
    judgement: Judgement
    suspect: tuple[str, ...]
    baseline: tuple[str, ...]
    chains: tuple[Chain, ...]
    capacities: tuple[Capacity, ...]
    comparison: Comparison | None

    @cached_property
    def runs(self) -> pl.DataFrame:
        """The suspect's verdicts, one row a run."""
        return self.of(self.judgement.verdicts, self.suspect)

    @cached_property
    def facts(self) -> pl.DataFrame:
        """The suspect's facts, in the same order."""
        return self.runs.select("run_id", "level", "verdict", "refused_by").join(
            self.judgement.facts, on="run_id", maintain_order="left"
        )

    @cached_property
    def findings(self) -> pl.DataFrame:
        """What failed of the suspect, with its level, the gravest first."""
        found = self.of(self.judgement.findings, self.suspect)
        about = self.runs.select("run_id", "level")
        return about.join(found, on="run_id", maintain_order="left_right").sort("severity", "rule", maintain_order=True)

    @cached_property
    def results(self) -> pl.DataFrame:
        """What every rule says of the suspect's runs."""
        return self.of(self.judgement.results, self.suspect)

    @property
    def worst(self) -> Verdict | None:
        """The suspect's worst verdict; None where it has no run."""
        words = set(self.runs["verdict"].cast(pl.String))
        return next((verdict for verdict in (NO_RESULT, UNVERIFIED, DOUBTS, MEASURED) if verdict in words), None)

    @property
    def suspect_chains(self) -> tuple[Chain, ...]:
        """The chains of the suspect's experiments."""
        return tuple(one for one in self.chains if one.experiment not in self._theirs)

    @property
    def suspect_capacities(self) -> tuple[Capacity, ...]:
        """The arithmetic of the suspect's experiments."""
        return tuple(one for one in self.capacities if one.experiment not in self._theirs)

    @property
    def _theirs(self) -> set[str]:
        """The baseline's experiments; a folder that holds server logs alone is the suspect's."""
        return set(self.of(self.judgement.verdicts, self.baseline)["experiment"])

    def of(self, frame: pl.DataFrame, runs: Sequence[str]) -> pl.DataFrame:
        """The rows of these runs."""
        return frame.filter(pl.col("run_id").is_in(list(runs)))


def postmortem(
    paths: Sequence[str | Path],
    *,
    baseline: Sequence[str | Path] = (),
    claim: Claim = Claim(),
    machines: Machines | None = None,
    thresholds: Thresholds | None = None,
    waivers: Sequence[Waiver] = (),
    slos: dict[str, float] | None = None,
    redact: bool = False,
) -> PostMortem:
    """The logs of a suspect and of its baseline, judged together and held against each other.

    Raises:
        PdkitError: a path that does not exist, or a log that is on both sides.
    """
    _exist(baseline)
    mine, theirs = load(paths), load(baseline) if baseline else Evidence.of()
    theirs = _renamed(theirs, set(_experiments(mine)))
    suspect_runs, baseline_runs = _runs(mine), _runs(theirs)
    both = Evidence.joined([mine, theirs])
    sides = bool(suspect_runs and baseline_runs)
    comparison = compare(theirs, mine, thresholds=thresholds, machines=machines, redact=redact) if sides else None
    judgement = judge(
        redacted(both) if redact else both,
        thresholds=thresholds,
        machines=machines,
        waivers=redacted_waivers(tuple(waivers)) if redact else waivers,
        slos=slos,
    )
    return PostMortem(
        claim=replace(claim, text=masked(claim.text) or "") if redact else claim,
        judgement=judgement,
        suspect=suspect_runs,
        baseline=baseline_runs,
        chains=_baseline_last(judgement, baseline_runs, chain(judgement)),
        capacities=_baseline_last(judgement, baseline_runs, capacity(judgement, machines=machines)),
        comparison=comparison,
    )


def _exist(paths: Sequence[str | Path]) -> None:
    for path in paths:
        if not Path(path).exists():
            raise PdkitError(f"{path}: no such file or folder; the baseline is logs to hold the suspect against")


def _experiments(evidence: Evidence) -> Iterator[str]:
    for field in fields(evidence):
        frame: pl.DataFrame = getattr(evidence, field.name)
        if "experiment" in frame.columns:
            yield from frame["experiment"].drop_nulls().unique()


def _renamed(evidence: Evidence, taken: set[str]) -> Evidence:
    """With names for its experiments that the other side does not have."""
    names = {name: f"{name} {_OTHER}" for name in set(_experiments(evidence)) & taken}
    tables = {field.name: getattr(evidence, field.name) for field in fields(evidence)}
    new = {
        name: frame.with_columns(pl.col("experiment").replace(names))
        for name, frame in tables.items()
        if names and "experiment" in frame.columns
    }
    return replace(evidence, **new)


def _runs(evidence: Evidence) -> tuple[str, ...]:
    return tuple(evidence.runs["run_id"].drop_nulls().unique(maintain_order=True))


def _baseline_last(judgement: Judgement, baseline: Sequence[str], told: tuple[_Told, ...]) -> tuple[_Told, ...]:
    """What is told of each experiment, the suspect's before the baseline's."""
    theirs = set(judgement.verdicts.filter(pl.col("run_id").is_in(list(baseline)))["experiment"])
    return tuple(sorted(told, key=lambda one: one.experiment in theirs))
