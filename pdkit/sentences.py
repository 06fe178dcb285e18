"""A failure in words, with the lines that it rests on; made when somebody asks."""

import string
from collections.abc import Mapping

import polars as pl

from pdkit.evidence import Evidence
from pdkit.facts import base_names, places
from pdkit.rules import NEIGHBOURS, Rule
from pdkit.served import SERVED
from pdkit.units import plural, show
from pdkit.views import View


class Sentence(string.Formatter):
    """`says` of a check, filled for one failing row; a fact that is missing reads "unknown"."""

    def about(self, says: str, row: Mapping[str, object]) -> str:
        """The sentence; `{bad_or_observed}` counts requests where the view is over requests."""
        bad, total = row["bad"], row["total"]
        many = f"{bad:,} of {plural(float(str(total)), 'request')}" if bad is not None else "the run as a whole"
        return self.vformat(says, (), {**row, "bad_or_observed": many})

    def format_field(self, value: object, format_spec: str) -> str:
        """As str.format, but for what is not there."""
        if value is None:
            return "unknown"
        return (
            show(float(value))
            if value in (float("inf"), float("-inf"))
            else str(super().format_field(value, format_spec))
        )

    def names(self, says: str) -> set[str]:
        """The facts that it names."""
        return {name for _, name, _, _ in self.parse(says) if name} - {"bad_or_observed"}


def told(evidence: Evidence, wide: pl.DataFrame, views: list[View], failed: pl.DataFrame) -> pl.DataFrame:
    """Failures as sentences with the lines they rest on."""
    by_view = {(view.check.id, view.number): view for view in views}
    rows = failed.select("run_id").join(wide, on="run_id", how="left", maintain_order="left")
    sentences = [
        Sentence().about((view := by_view[row["rule"], row["view"]]).rule.says or view.check.says, {**seen, **row})
        for row, seen in zip(failed.iter_rows(named=True), rows.iter_rows(named=True), strict=True)
    ]
    told = failed.with_columns(pl.Series("sentence", sentences, pl.String))
    return told.join(
        _lines(evidence, wide, by_view, failed), on=["run_id", "rule"], how="left", maintain_order="left"
    ).with_columns(pl.col("lines").fill_null(pl.lit([], pl.List(pl.String))))


def _lines(
    evidence: Evidence, wide: pl.DataFrame, by_view: dict[tuple[str, int], View], failed: pl.DataFrame
) -> pl.DataFrame:
    """`lines` a run and rule: first the offending requests, then where the facts behind its expressions were stated."""
    keys = failed.select("rule", "view").iter_rows()
    named = [_named(by_view[rule, view].rule) for rule, view in keys]
    asked = failed.select("run_id", "rule", "first").with_columns(
        pl.Series("named", named, pl.List(pl.List(pl.String)))
    )
    facts_asked = asked.explode("named").with_columns(
        pl.col("named").list.get(0).alias("fact"), pl.col("named").list.get(1).cast(pl.Int32).alias("rank")
    )
    stated = _whose(facts_asked, wide).join(
        places(evidence, wide), left_on=["whose", "fact"], right_on=["run_id", "fact"]
    )
    requests = evidence.requests.with_row_index("first").select("first", "source_file", "source_line", "source_item")
    offenders = asked.explode("first").drop_nulls("first").join(requests, on="first")
    item = pl.when(pl.col("source_item").is_null()).then(pl.lit("")).otherwise(pl.format("[{}]", "source_item"))
    place = pl.format("{}:{}{}", "source_file", "source_line", item).alias("lines")
    both = pl.concat([
        offenders.select(
            "run_id", "rule", pl.lit(-1, pl.Int32).alias("rank"), pl.col("first").cast(pl.Int64),
            pl.lit("").alias("fact"), place,
        ),
        stated.select("run_id", "rule", "rank", pl.lit(0, pl.Int64).alias("first"), "fact", place),
    ])  # fmt: skip
    # a join may reorder rows, so the order is said
    ordered = both.sort("run_id", "rule", "rank", "first", "fact", "lines")
    return ordered.group_by("run_id", "rule", maintain_order=True).agg(pl.col("lines").unique(maintain_order=True))


def _named(rule: Rule) -> list[list[str]]:
    """The stated facts behind a view, each with its rank: what was observed comes before what made it apply.

    Of what was observed, a server's own line comes first: a count of requests is only what it is held against.
    """
    ranks: dict[str, str] = {}
    for rank, expression in (("1", rule.observed), ("2", rule.applies)):
        for root in expression.meta.root_names():
            for base in base_names(root):
                ranks.setdefault(base, "0" if rank == "1" and base in SERVED else rank)
    return [[fact, rank] for fact, rank in sorted(ranks.items())]


def _whose(asked: pl.DataFrame, wide: pl.DataFrame) -> pl.DataFrame:
    """`lower__ttft_ms_mean` of a run is `ttft_ms_mean` of the run one level down."""
    ids = wide.select("run_id", *(f"{prefix}__run_id" for prefix in NEIGHBOURS))
    neighbour = pl.coalesce(
        pl.when(pl.col("fact").str.starts_with(f"{prefix}__")).then(f"{prefix}__run_id") for prefix in NEIGHBOURS
    )
    strip = rf"^(?:{'|'.join(NEIGHBOURS)})__"
    return asked.join(ids, on="run_id").with_columns(
        pl.coalesce(neighbour, "run_id").alias("whose"), pl.col("fact").str.replace(strip, "")
    )
