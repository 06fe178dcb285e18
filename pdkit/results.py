"""What the judging says: outcomes, severities, verdicts, and the frames that carry them to a page."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import polars as pl

from pdkit.evidence import Evidence

Voids = Literal["run", "throughput", "latency", "tail", "label", "comparison"]
Severity = Literal["refuse", "suspect", "note"]
Verdict = Literal["measured", "measured, with doubts", "unverified", "no measured result"]

NO_RESULT: Verdict = "no measured result"
UNVERIFIED: Verdict = "unverified"
DOUBTS: Verdict = "measured, with doubts"
MEASURED: Verdict = "measured"

# orders matter: an outcome or a verdict outweighs those to its right
OUTCOMES = pl.Enum(["fail", "pass", "not_evaluated", "not_applicable"])
SEVERITIES = pl.Enum(["refuse", "suspect", "note"])
VERDICTS = pl.Enum([NO_RESULT, UNVERIFIED, DOUBTS, MEASURED])
LEVELS = pl.Enum(["text", "requests", "summary"])
CLAIMED = "claimed, not measured"
NO_LEVEL = "level not stated"

VIEWS_SCHEMA = pl.Schema({
    "run_id": pl.String(), "rule": pl.String(), "view": pl.Int32(), "outcome": OUTCOMES, "severity": SEVERITIES,
    "observed": pl.Float64(), "bad": pl.Int64(), "total": pl.Int64(), "first": pl.List(pl.UInt32()),
    "threshold_low": pl.Float64(), "threshold_high": pl.Float64(), "voids": pl.List(pl.String()),
})  # fmt: skip


@dataclass(frozen=True)
class Published:
    """All that a page may print as a result: verdicts, and the numbers that no refusal took.

    `runs`: one row a run (run_id, experiment, title, level, concurrency, request_rate_per_s, verdict, refused_by, …).
    `numbers`: one row a run and fact (run_id, fact, value, voided_by); `value` is null where it was taken.
    """

    runs: pl.DataFrame
    numbers: pl.DataFrame

    def wide(self, *facts: str) -> pl.DataFrame:
        """One row a run, with the given facts as columns; null where taken or never stated."""
        chosen = self.numbers.filter(pl.col("fact").is_in(facts))
        values = chosen.pivot(
            "fact", on_columns=list(facts), index="run_id", values="value", aggregate_function="first"
        )
        return self.runs.join(values, on="run_id", how="left", maintain_order="left")


@dataclass(frozen=True)
class Judgement:
    """What every rule says of every run.

    `results`: one row a run and rule, its worst view. `views`: one row a run and view. `verdicts`: one row a run.
    `published` and `claimed`: one row a run and fact; only evidence may show what was merely claimed.
    """

    evidence: Evidence
    facts: pl.DataFrame
    views: pl.DataFrame
    results: pl.DataFrame
    verdicts: pl.DataFrame
    published: pl.DataFrame
    claimed: pl.DataFrame
    conclusions: pl.DataFrame
    tell: Callable[[pl.DataFrame], pl.DataFrame]

    @cached_property
    def findings(self) -> pl.DataFrame:
        """The failures as sentences, with the lines that they rest on; made when first asked for."""
        return self.tell(self.results.filter(pl.col("outcome") == "fail"))

    @property
    def for_results(self) -> Published:
        """What a page may print as results: no claim can be reached from here."""
        return Published(self.verdicts, self.published)
