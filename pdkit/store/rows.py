"""What the store keeps of a judgement, one table each; `runs` is all that a series needs, one row a run."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

import polars as pl

import pdkit
from pdkit.evidence import Evidence
from pdkit.facts import AGGREGATES, DERIVED
from pdkit.judge import Thresholds, judge
from pdkit.machines import Machines
from pdkit.metrics import RESULTS
from pdkit.parts import register_checks
from pdkit.results import CLAIMED, NO_RESULT, Judgement
from pdkit.rules import CHECKS
from pdkit.signals import SETTINGS
from pdkit.store.dating import DATES

_TEXT, _LIST = pl.String(), pl.List(pl.String)
_CALLED = ("tool", "model", "topology", "gpu", "gpu_count", "dataset", "backend")
RUNS = pl.Schema({
    **{name: DATES[name] for name in ("week", "started_at", "dated_by")},
    "experiment": _TEXT, "title": _TEXT, "experiment_id": _TEXT, "run_id": _TEXT, "level": _TEXT,
    "concurrency": pl.Float64(), "request_rate_per_s": pl.Float64(), "series_key": _TEXT, "verdict": _TEXT,
    "evidence_level": _TEXT, "refused_by": _LIST, "level_refused_by": _LIST, "suspected_by": _LIST,
    "not_evaluated": _LIST, "missing": pl.Boolean(), "synthetic": pl.Boolean(),
    **dict.fromkeys(_CALLED, _TEXT), "gpu_count": pl.Float64(),
    "tool_version": _TEXT, "engine_version": _TEXT, "flags": _LIST, "rules": _TEXT,
    "print": _TEXT, "figures": _TEXT, "readers": _LIST,
    **dict.fromkeys(RESULTS, pl.Float64()),
})  # fmt: skip
RESULTS_KEPT = pl.Schema({
    "experiment_id": _TEXT, "run_id": _TEXT, "rule": _TEXT, "outcome": _TEXT, "severity": _TEXT,
    "observed": pl.Float64(), "bad": pl.Int64(), "total": pl.Int64(), "threshold_low": pl.Float64(),
    "threshold_high": pl.Float64(), "voids": _LIST,
})  # fmt: skip
PUBLISHED = pl.Schema(
    {"experiment_id": _TEXT, "run_id": _TEXT, "fact": _TEXT, "value": pl.Float64(), "voided_by": _LIST}
)
FINDINGS = pl.Schema({
    "experiment_id": _TEXT, "run_id": _TEXT, "rule": _TEXT, "severity": _TEXT, "sentence": _TEXT, "lines": _LIST,
})  # fmt: skip
CLAIMS = pl.Schema({
    "experiment_id": _TEXT, "run_id": _TEXT, "fact": _TEXT, "value": pl.Float64(), "source_file": _TEXT,
    "source_line": pl.Int64(), "shown_as": _TEXT,
})  # fmt: skip
TABLES = {"runs": RUNS, "results": RESULTS_KEPT, "published": PUBLISHED, "findings": FINDINGS, "claimed": CLAIMS}

# what a server measures when it starts, or is: no choice of whoever started it
_NO_FLAGS = {"pool_tok", "weights_gb", "free_gb", "engine_version", "model_path", "device"}
_FLAGS = sorted(set(SETTINGS) - _NO_FLAGS)
_OF_CLIENT = ("ignore_eos", "streaming", "reasoning_parser", "tool_call_parser")
_FIGURES = ("completed", "duration_s", "output_throughput_tok_per_s", "input_throughput_tok_per_s", "ttft_ms_mean",
            "ttft_ms_median")  # fmt: skip


@dataclass(frozen=True)
class Ruling:
    """What a judgement rests on beside the evidence: today's rules, and what a user puts in their place."""

    thresholds: Thresholds | None = None
    machines: Machines | None = None

    @cached_property
    def version(self) -> str:
        """pdkit's version, and a hash of every claim with its bounds and of what its facts follow from."""
        register_checks()
        digest = hashlib.sha256(repr(self.machines).encode() if self.machines else b"")
        for name, check in sorted(CHECKS.items()):
            used = check.tightened(dict((self.thresholds or {}).get(name, {})))
            said_of = (name, used.voids, used.says, used.doc, used.shows_output, used.shows_completeness)
            digest.update(repr(said_of).encode())
            for view in used.views:
                said = (view.refuse, view.suspect, view.note, view.grain, view.voids, view.says, view.takes)
                digest.update(repr(said).encode())
                digest.update(view.applies.meta.serialize() + view.observed.meta.serialize())
        for name, expression in sorted({**DERIVED, **AGGREGATES}.items()):
            digest.update(name.encode() + expression.meta.serialize())
        return f"{pdkit.__version__}-{digest.hexdigest()[:12]}"

    def judged(self, evidence: Evidence) -> Judgement:
        """The evidence under these rules."""
        return judge(evidence, thresholds=self.thresholds, machines=self.machines)


def kept(judgement: Judgement, dates: pl.DataFrame, *, ids: Mapping[str, str], rules: str) -> dict[str, pl.DataFrame]:
    """The tables of a judgement under their schemas; `ids` are the versions of its experiments, by name."""
    runs = _runs(judgement, dates, rules).with_columns(
        pl.col("experiment").replace_strict(ids, return_dtype=pl.String).alias("experiment_id")
    )
    of_run = runs.select("run_id", "experiment_id")
    told = judgement.findings.select(name for name in FINDINGS if name in judgement.findings.columns)
    claimed = judgement.claimed.with_columns(pl.lit(CLAIMED).alias("shown_as"))
    about = {"results": judgement.results, "published": judgement.published, "findings": told, "claimed": claimed}
    joined = {name: frame.join(of_run, on="run_id", maintain_order="left") for name, frame in about.items()}
    return {
        name: frame.select(pl.col(column).cast(dtype) for column, dtype in TABLES[name].items())
        for name, frame in {"runs": runs, **joined}.items()
    }


def verdict_counts(runs: pl.DataFrame) -> dict[str, int]:
    """How many runs have each verdict."""
    return dict(runs["verdict"].value_counts().sort("verdict").iter_rows())


def _runs(judgement: Judgement, dates: pl.DataFrame, rules: str) -> pl.DataFrame:
    """One row a run: what it is, its verdict, its marks, and every metric that may be published."""
    titles = judgement.conclusions.select("experiment", "title")
    missing = (pl.col("verdict") == NO_RESULT) & pl.col("without_block")
    return (
        judgement.for_results.wide(*RESULTS)
        .with_columns(missing.alias("missing"), pl.lit(rules).alias("rules"))
        .join(_level_refused(judgement.results), on="run_id", how="left", maintain_order="left")
        .with_columns(pl.col("level_refused_by").fill_null([]))
        .join(titles, on="experiment", how="left", maintain_order="left")
        .join(dates, on="run_id", how="left", maintain_order="left")
        .join(prints(judgement), on="run_id", how="left", maintain_order="left")
        .join(_marks(judgement), on="run_id", how="left", maintain_order="left")
    )


def _level_refused(results: pl.DataFrame) -> pl.DataFrame:
    """The rules that say that a run was not at its level, where its numbers stand: (run_id, level_refused_by)."""
    failed = results.filter(pl.col("outcome") == "fail", pl.col("severity") == "refuse")
    about = failed.filter(pl.col("voids").list.contains("label"), ~pl.col("voids").list.contains("run"))
    return about.group_by("run_id").agg(pl.col("rule").sort().alias("level_refused_by"))


# --- what a run printed ---------------------------------------------------------------------------------------------


def prints(judgement: Judgement) -> pl.DataFrame:
    """What tells a run by what it printed, whatever it is called: (run_id, print, figures, readers).

    `print` is of all numbers that it printed, so that only a copy has the same. `figures` is of those on which a log
    and a record of one run agree: count, duration to 10 ms, throughput to 0.01 tok/s, mean and median TTFT to 0.01 ms.
    Two nights can share them by chance, so they tell only where the `readers` are others. Null where no result was
    printed, or none of the requests was answered: that looks alike every night.
    """
    figures = judgement.facts.select("run_id", *_FIGURES)
    printed = judgement.claimed.group_by("run_id").agg(
        pl.struct("fact", "value").sort_by("fact", "value").alias("claims")
    )
    names = pl.col("reader").drop_nulls().str.split("+").explode(empty_as_null=False)
    readers = judgement.evidence.runs.group_by("run_id").agg(names.unique().sort().alias("readers"))
    rows = [
        {"run_id": run, "print": _print(said[0], claims), "figures": _figures(*said)}
        for run, *said, claims in figures.join(printed, on="run_id", how="left").iter_rows()
    ]
    told = pl.DataFrame(rows, schema=dict.fromkeys(("run_id", "print", "figures"), pl.String))
    return told.join(readers, on="run_id", how="left", maintain_order="left")


def _print(completed: float | None, claims: list[dict[str, object]] | None) -> str | None:
    if not completed or not claims:
        return None
    return _hashed(repr([(claim["fact"], claim["value"]) for claim in claims]))


def _figures(
    completed: float | None, duration: float | None, output: float | None, given: float | None, *ttft: float | None
) -> str | None:
    said = [duration, output or given, *ttft]
    if not completed or any(one is None for one in said):
        return None
    return _hashed("|".join([f"{completed:.0f}", *(f"{one:.2f}" for one in said)]))


def _hashed(said: str) -> str:
    return hashlib.sha256(said.encode()).hexdigest()[:12]


# --- marks ----------------------------------------------------------------------------------------------------------


def _marks(judgement: Judgement) -> pl.DataFrame:
    """Versions and flags of each run: (run_id, tool_version, engine_version, flags)."""
    own = judgement.facts.select("run_id", "experiment", "tool_version", "server_version", *_OF_CLIENT)
    servers, versions = _flags(judgement.evidence), _versions(judgement.evidence)
    rows = []
    for run, experiment, tool, engine, *client in own.iter_rows():
        said = [
            f"client.{name}={_shown(value)}"
            for name, value in zip(_OF_CLIENT, client, strict=True)
            if value is not None
        ]
        flags = said + servers.get(experiment, [])
        version = engine or versions.get(experiment)
        rows.append({"run_id": run, "tool_version": tool, "engine_version": version, "flags": flags or None})
    return pl.DataFrame(
        rows, schema={"run_id": pl.String, "tool_version": pl.String, "engine_version": pl.String, "flags": _LIST}
    )


def _flags(evidence: Evidence) -> dict[str, list[str]]:
    """What the servers of each experiment run by, `decode.tp_size=8`, once where several say the same."""
    value = pl.coalesce(pl.col("value").map_elements(_shown, return_dtype=pl.String), "text")
    said = (
        evidence.settings.filter(pl.col("name").is_in(_FLAGS))
        .select("experiment", pl.format("{}.{}={}", pl.col("role").fill_null("server"), "name", value).alias("flag"))
        .drop_nulls("flag")
        .unique()
        .sort("experiment", "flag")
    )
    return {name: [flag for _, flag in rows] for name, rows in groupby(said.iter_rows(), key=lambda row: row[0])}


def _versions(evidence: Evidence) -> dict[str, str]:
    """The engine of each experiment as its servers name it; several are told together."""
    said = evidence.settings.filter(pl.col("name") == "engine_version").with_columns(
        pl.coalesce("text", pl.col("value").map_elements(_shown, return_dtype=pl.String)).alias("said")
    )
    each = said.drop_nulls("said").group_by("experiment").agg(pl.col("said").unique().sort().str.join(" and "))
    return dict(each.select("experiment", "said").iter_rows())


def _shown(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value).lower() if isinstance(value, bool) else str(value)
