"""The evidence of two sides as one: told apart by name while both are judged together, and named plainly again."""

from dataclasses import fields, replace

import polars as pl

from pdkit.compare.comparison import Pair, Runs, Side
from pdkit.errors import PdkitError
from pdkit.evidence import Evidence

SIDES: tuple[Side, ...] = ("baseline", "candidate")


def refuse_shared_logs(baseline: Evidence, candidate: Evidence) -> None:
    """Raise where both sides hold one client log: it would be compared with itself."""
    theirs, mine = _logs(baseline), _logs(candidate)
    if shared := next((digest for digest in mine if digest in theirs), None):
        raise PdkitError(f"{mine[shared]}: the same log as {theirs[shared]} of the baseline; name another run's logs")


def _logs(evidence: Evidence) -> dict[str, str]:
    """The files that show a result, by what they hold."""
    logs = evidence.claims.filter(pl.col("fact") == "completed")["source_file"].unique()
    return dict(evidence.sources.filter(pl.col("path").is_in(logs.implode())).select("sha256", "path").iter_rows())


def sided(evidence: Evidence, side: Side) -> Evidence:
    """The evidence with ids and experiments that tell the sides apart, though both may be one folder."""
    tables = {}
    for field in fields(evidence):
        frame: pl.DataFrame = getattr(evidence, field.name)
        named = [pl.format(f"{side}/{{}}", name).alias(name) for name in ("run_id", "experiment") if name in frame]
        seen = [pl.format(f"{side}#{{}}", pl.col(name).hash()).alias(name) for name in ("seen_id",) if name in frame]
        tables[field.name] = frame.with_columns(*named, *seen)
    return replace(evidence, **tables)


def unsided(name: str) -> str:
    """A run or an experiment as its own side alone would name it."""
    return name.removeprefix("baseline/").removeprefix("candidate/")


def plain(pair: Pair) -> Pair:
    """The pair with the names that its own side alone would have."""
    return replace(pair, baseline_runs=_plain_runs(pair.baseline_runs), candidate_runs=_plain_runs(pair.candidate_runs))


def _plain_runs(runs: Runs) -> Runs:
    named = {
        run.run_id: replace(run, run_id=unsided(run.run_id), experiment=unsided(run.experiment)) for run in runs.every
    }
    repeats = tuple(named[run.run_id] for run in runs.repeats)
    return replace(runs, every=tuple(named.values()), repeats=repeats)
