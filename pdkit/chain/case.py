"""The evidence of one experiment in the order of time: readings, events, the runs, and which clocks agree."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

import polars as pl

from pdkit.causes import OUTPUT_RULES
from pdkit.results import Judgement

NEAR = timedelta(seconds=60)  # readings further apart are no stretch: the server idled between them
_GAUGES = (
    "running_requests",
    "queued_requests",
    "prealloc_requests",
    "transferring_requests",
    "bootstrap_requests",
    "kv_used_ratio",
    "transfer_failed_total",
    "bootstrap_failed_total",
)
SERIES = ("instance", "rank")  # within one of these readings follow each other
DECODE, PREFILL = ("decode", "colocated"), ("prefill",)


@dataclass(frozen=True)
class Case:
    """One experiment: `readings` has a row an instance, rank and second; `runs` are in the order of time."""

    experiment: str | None
    title: str
    readings: pl.DataFrame
    events: pl.DataFrame
    windows: pl.DataFrame
    runs: pl.DataFrame
    lines: Mapping[str, list[str]]
    servers: frozenset[tuple[str | None, str | None]]

    def has(self, roles: Sequence[str]) -> bool:
        """Whether a server of one of these roles left evidence."""
        return any(role in roles for _, role in self.servers)

    @property
    def is_split(self) -> bool:
        """Whether KV cache moves between servers; a colocated server has no transfers that could fail."""
        roles = {role for _, role in self.servers} - {"router"}
        return roles != {"colocated"} if roles else not (self.runs["topology"] == "colocated").any()

    def log_of(self, role: str) -> str:
        """What to ask for where this role left no evidence."""
        return f"the {role} log" if self.is_split else "the server log"

    def of(self, *kinds: str) -> pl.DataFrame:
        """Events of these kinds, the earliest first; those without a clock come last."""
        return self.events.filter(pl.col("kind").is_in(kinds)).sort("clock", "source_line", nulls_last=True)

    def same_clock(self, one: str | None, other: str | None) -> bool:
        """Whether two servers tell the same time, as far as the runs show that both were joined to."""
        if one == other:
            return True
        mine, yours = (self.windows.filter(pl.col("instance") == name) for name in (one, other))
        both = mine.join(yours, on="run_id", suffix="_other")
        by_hand = pl.col("way") == "manifest"
        overlap = (pl.col("started_at") <= pl.col("ended_at_other")) & (
            pl.col("started_at_other") <= pl.col("ended_at")
        )
        same = (pl.col("shift_h") == pl.col("shift_h_other")) & (by_hand | overlap)
        return not both.is_empty() and bool(both.select(same.fill_null(False).all()).item())


def cases(judgement: Judgement) -> Iterator[Case]:
    """One an experiment that has runs or left evidence of its servers."""
    evidence = judgement.evidence
    readings, events = _Parts(_readings(evidence.samples)), _Parts(_placed(evidence.events))
    settings, windows = _Parts(evidence.settings), _Parts(judgement.windows)
    runs = _Parts(_runs(judgement))
    titles = {name: title for name, title, _ in judgement.conclusions.iter_rows()}
    lines = _lines(judgement)
    for name in dict.fromkeys([*titles, *readings, *events]):
        own, happened, asked = readings[name], events[name], settings[name]
        servers = {pair for frame in (own, happened, asked) for pair in _servers(frame)}
        title = titles.get(name) or name or "experiment not named"
        mine = _in_time(runs[name], windows[name])
        yield Case(name, title, own, happened, windows[name], mine, lines, frozenset(servers))


class _Parts(dict[str | None, pl.DataFrame]):
    """The rows by experiment; none where an experiment has none."""

    def __init__(self, frame: pl.DataFrame) -> None:
        parts = frame.partition_by("experiment", as_dict=True, maintain_order=True) if frame.height else {}
        super().__init__({name: part for (name,), part in parts.items()})
        self._none = frame.clear()

    def __missing__(self, _: str | None) -> pl.DataFrame:
        return self._none


def _servers(frame: pl.DataFrame) -> Iterator[tuple[str | None, str | None]]:
    """The server processes that left these rows, each with its role."""
    yield from frame.select("instance", "role").unique().iter_rows()


def _readings(samples: pl.DataFrame) -> pl.DataFrame:
    """One row an instance, rank and second, the gauges as columns, with `place`, and `before`: the reading before."""
    gauges = [pl.col("value_max").filter(pl.col("metric") == name).max().alias(name) for name in _GAUGES]
    wanted = samples.filter(pl.col("metric").is_in(_GAUGES), pl.col("clock").is_not_null())
    rows = wanted.group_by("experiment", "instance", "role", "rank", "clock").agg(
        *gauges, pl.col("source_file", "source_line").sort_by("source_line").first()
    )
    ordered = _placed(rows).sort("instance", "rank", "clock", nulls_last=True)
    return ordered.with_columns(pl.col("clock").shift(1).over("experiment", *SERIES).alias("before"))


def _placed(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.with_columns(pl.format("{}:{}", "source_file", "source_line").alias("place"))


def _runs(judgement: Judgement) -> pl.DataFrame:
    tokens = judgement.facts.select("run_id", "output_tok_sum", "received_tok")
    wanted = [
        "run_id", "experiment", "level", "verdict", "refused_by", "concurrency", "request_rate_per_s", "topology",
    ]  # fmt: skip
    refusal = pl.col("refused_by").list.set_intersection(list(OUTPUT_RULES)).list.sort()
    runs = judgement.verdicts.select(wanted).join(tokens, on="run_id", how="left", maintain_order="left")
    return runs.with_columns(pl.col("verdict").cast(pl.String), refusal.alias("output_rules"))


def _in_time(runs: pl.DataFrame, windows: pl.DataFrame) -> pl.DataFrame:
    """The runs in the order of time as one server saw them; in that of their levels where none saw all."""
    most = windows.group_by("instance").agg(pl.len()).sort("len", "instance", descending=[True, False]).head(1)
    own = windows.join(most, on="instance").select("run_id", "started_at").unique("run_id", keep="first")
    timed = runs.join(own, on="run_id", how="left", maintain_order="left")
    if timed["started_at"].has_nulls():
        return timed.sort("concurrency", "request_rate_per_s", "run_id", nulls_last=True)
    return timed.sort("started_at", "run_id")


def _lines(judgement: Judgement) -> dict[str, list[str]]:
    """The lines that say of each run that its text is missing."""
    missing = judgement.findings.filter(pl.col("rule").is_in(OUTPUT_RULES))
    rows = missing.select("run_id", "lines").explode("lines").drop_nulls().unique(maintain_order=True)
    return {str(run): part["lines"].to_list() for (run,), part in rows.partition_by("run_id", as_dict=True).items()}
