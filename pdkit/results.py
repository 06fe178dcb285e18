"""What the judging says: outcomes, severities, verdicts, and the frames that carry them to a page."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
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
NOT_HELD, DOUBTFUL = "(not held)", "(doubtful)"  # behind a level that a rule on load refused, or another rule
NOTHING_TO_JUDGE = "nothing here that any rule could look at"
FEW = "PD901"  # the rule that says how many requests a percentile needs
FAILURES = "PD403"  # the rule whose silence is a doubt: nobody knows how many requests were sent

VIEWS_SCHEMA = pl.Schema({
    "run_id": pl.String(), "rule": pl.String(), "view": pl.Int32(), "outcome": OUTCOMES, "severity": SEVERITIES,
    "observed": pl.Float64(), "bad": pl.Int64(), "total": pl.Int64(), "first": pl.List(pl.UInt32()),
    "threshold_low": pl.Float64(), "threshold_high": pl.Float64(), "voids": pl.List(pl.String()),
})  # fmt: skip


WAIVED_SCHEMA = pl.Schema(
    {"run_id": pl.String(), "rule": pl.String(), "reason": pl.String(), "owner": pl.String(), "expiry": pl.Date()}
)
CHANGED_SCHEMA = pl.Schema({
    "rule": pl.String(), "severity": SEVERITIES, "default": pl.String(), "used": pl.String(), "looser": pl.Boolean(),
})  # fmt: skip


@dataclass(frozen=True)
class Waived:
    """Who accepts a finding, until when and why."""

    reason: str
    owner: str
    expiry: date

    def __str__(self) -> str:
        return f"waived until {self.expiry} by {self.owner}: {self.reason}"


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


_SHOWN = ("experiment", "level", "verdict", "refused_by", "suspected_by", "evidence_level")  # of a run, in a cell


@dataclass(frozen=True, repr=False)
class Judgement:
    """What every rule says of every run.

    `results`: one row a run and rule, its worst view. `views`: one row a run and view. `verdicts`: one row a run.
    `published` and `claimed`: one row a run and fact; only evidence may show what was merely claimed.
    `waived`: one row a run and rule whose finding somebody accepts; it changes no verdict and no number.
    `goodput`: one row a run, against `slos`; empty where none was given.
    `windows`: one row a run and server that were joined, and how; `unjoined`: servers that belong to no run, and why.
    `idle_waivers`: those that no finding matches, in words. `changed`: bounds that differ from the default.
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
    explain: Callable[[], pl.DataFrame]
    waived: pl.DataFrame
    idle_waivers: tuple[str, ...]
    changed: pl.DataFrame
    slos: Mapping[str, float]
    goodput: pl.DataFrame
    windows: pl.DataFrame
    unjoined: pl.DataFrame

    def __repr__(self) -> str:
        """The conclusions, a line an experiment."""
        said = (f"{experiment}: {sentence}" for experiment, _, sentence in self.conclusions.iter_rows())
        return "\n".join(said) or "no run was judged"

    def _repr_html_(self) -> str:
        """The verdict table, for a notebook's cell."""
        shown = self.verdicts.select(_SHOWN)
        with pl.Config(tbl_rows=len(shown), tbl_hide_column_data_types=True, tbl_hide_dataframe_shape=True):
            return str(shown._repr_html_())

    @cached_property
    def findings(self) -> pl.DataFrame:
        """The failures as sentences, with the lines that they rest on; made when first asked for.

        `waiver` says who accepts one, until when and why; null where nobody does.
        """
        told = self.tell(self.results.filter(pl.col("outcome") == "fail"))
        waivers = [self.waivers.get(key) for key in told.select("run_id", "rule").iter_rows()]
        return told.with_columns(pl.Series("waiver", [waiver and str(waiver) for waiver in waivers], pl.String))

    @cached_property
    def waivers(self) -> dict[tuple[str, str], Waived]:
        """The waiver of a finding, by run and rule."""
        rows = self.waived.select("run_id", "rule", "reason", "owner", "expiry").iter_rows()
        return {(run, rule): Waived(*said) for run, rule, *said in rows}

    def accepted(self, *, strict: bool = False) -> pl.Series:
        """Whether each run, in the order of `verdicts`, is measured, or all that speaks against it is waived.

        `strict` asks the same of doubts. Where nothing shows that output came back, there is no rule to waive.
        """
        by_run = self.waived.group_by("run_id").agg(pl.col("rule").alias("waived"))
        runs = self.verdicts.join(by_run, on="run_id", how="left", maintain_order="left")
        waived, verdict = pl.col("waived").fill_null([]), pl.col("verdict")
        refusals = pl.col("refused_by").list.set_difference(waived).list.len()
        doubts = pl.col("suspected_by").list.set_difference(waived).list.len()
        unknown = pl.col("sent_unknown") & ~waived.list.contains(FAILURES) & (verdict == DOUBTS)
        refused_but_waived = (verdict == NO_RESULT) & (pl.col("refused_by").list.len() > 0) & (refusals == 0)
        good = verdict.is_in([MEASURED, DOUBTS]) | refused_but_waived
        sure = ((doubts == 0) & ~unknown) if strict else pl.lit(True)
        return runs.select((good & sure).alias("accepted"))["accepted"]

    @cached_property
    def causes(self) -> pl.DataFrame:
        """Why the runs that an output rule refused have no text: (run_id, cause, sentence, lines)."""
        return self.explain()

    @property
    def for_results(self) -> Published:
        """What a page may print as results: no claim can be reached from here."""
        return Published(self.verdicts, self.published)
