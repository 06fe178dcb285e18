"""What the charts of results share: latencies that may be published, a line an experiment, labels that keep apart."""

from collections.abc import Mapping, Sequence

import altair as alt
import polars as pl

from pdkit.charts.levels import titles
from pdkit.charts.theme import EXPERIMENT_COLOURS, VERDICT_SHAPES
from pdkit.metrics import CLOCKS, METRICS
from pdkit.results import NO_RESULT, UNVERIFIED, Published
from pdkit.units import listed

_ONE_COLOUR = "#475569"  # of all lines where there are more experiments than colours that can be told apart


def finite(fact: str) -> pl.Expr:
    """The fact where it is a number; infinity has no place on an axis."""
    return pl.when(pl.col(fact).is_finite()).then(pl.col(fact))


def believed(fact: str) -> pl.Expr:
    """The fact of runs that were not refused: a second lock, since refusals took their numbers already."""
    return pl.when(pl.col("verdict").cast(pl.String) != NO_RESULT).then(finite(fact))


def latencies(published: Published, clocks: Sequence[str]) -> pl.DataFrame:
    """One row a run and clock: `ms`, and its `statistic`: the median, or the mean where no median may be printed."""
    facts = [f"{clock}_{statistic}" for clock in clocks for statistic in ("median", "mean")]
    wide = published.wide(*facts).select("run_id", *(believed(fact).alias(fact) for fact in facts))
    return pl.concat(
        wide.select(
            "run_id",
            pl.lit(clock).alias("clock"),
            pl.coalesce(f"{clock}_median", f"{clock}_mean").alias("ms"),
            pl.when(pl.col(f"{clock}_median").is_not_null()).then(pl.lit("median")).otherwise(pl.lit("mean")).alias("statistic"),
        )
        for clock in clocks
    )  # fmt: skip


def axis_title(clock: str, rows: pl.DataFrame) -> str:
    """`Median TTFT (ms)`, or what else the rows show."""
    shown = set(rows["statistic"])
    if len(shown) == 1:
        return METRICS[f"{clock}_{shown.pop()}"].axis
    return f"{CLOCKS[clock][0]} ({METRICS[f'{clock}_mean'].unit})"


def which_statistic(points: pl.DataFrame) -> str:
    """A sentence on points that show a mean where others show a median."""
    means = points.filter(pl.col("statistic") == "mean")["level"].unique(maintain_order=True).to_list()
    if not means:
        return ""
    why = "too few requests for a median, or none was printed"
    if "median" not in points["statistic"]:
        return f"Means: {why}."
    where = listed(means) if len(means) <= 4 else f"{len(means)} levels"
    return f"Medians; means where labelled so, at {where}: {why}."


def not_shown(clocks: Sequence[str], points: pl.DataFrame) -> str:
    """A sentence on the clocks of which nothing may be published."""
    unseen = [CLOCKS[clock][0] for clock in clocks if clock not in points["clock"]]
    return f"No {listed(unseen)} that may be published." if unseen else ""


def experiment_colour(points: pl.DataFrame) -> tuple[alt.Color, str]:
    """One colour an experiment, and a sentence where there are more of them than colours."""
    names = titles(points)
    if len(names) > len(EXPERIMENT_COLOURS):
        scale = alt.Scale(domain=names, range=[_ONE_COLOUR])
        many = f"{len(names)} experiments are too many for a colour each; hover over a point for its name."
        return alt.Color("title:N", scale=scale, legend=None), many
    scale = alt.Scale(domain=names, range=list(EXPERIMENT_COLOURS[: len(names)]))
    legend = alt.Legend(title=None, columns=1, symbolType="circle") if len(names) > 1 else None
    return alt.Color("title:N", scale=scale, legend=legend), ""


def line(base: alt.Chart, colour: alt.Color) -> alt.Chart:
    """One line an experiment, in the order of levels, broken where a level has no number."""
    drawn: alt.Chart = base.encode(color=colour, order="rank:Q", detail="segment:N")
    marked: alt.Chart = drawn.mark_line(strokeWidth=1.8, opacity=0.55)
    return marked


def marks(base: alt.Chart, *, verdicts: Sequence[str], colour: alt.Color) -> list[alt.Chart]:
    """Points whose shape is the verdict; those of unverified runs are hollow."""
    shown = [verdict for verdict in VERDICT_SHAPES if verdict in verdicts and verdict != NO_RESULT]
    scale = alt.Scale(domain=shown, range=[VERDICT_SHAPES[verdict] for verdict in shown])
    legend = alt.Legend(title=None, orient="top", offset=6)  # beside the experiments' it would leave the page
    placed = base.encode(color=colour, shape=alt.Shape("verdict:N", scale=scale, legend=legend))
    hollow = f"datum.verdict === '{UNVERIFIED}'"
    solid = placed.transform_filter(f"!({hollow})").mark_point(size=75, filled=True, opacity=1)
    if UNVERIFIED not in shown:
        return [solid]
    rings = placed.transform_filter(hollow).mark_point(size=100, filled=False, strokeWidth=1.8, opacity=1)
    return [rings, solid]


def told(*columns: str, titles_of: Mapping[str, str]) -> list[alt.Tooltip]:
    """What a point says when it is pointed at: its experiment, level and verdict, then the given numbers."""
    who = [("title", "Experiment"), ("level", "Level"), ("verdict", "Verdict")]
    said = [
        alt.Tooltip(f"{name}:N", title=title) for name, title in (*who, *((name, titles_of[name]) for name in columns))
    ]
    return [
        *said,
        *(
            alt.Tooltip(f"{name}:Q", title=title, format=",.2f")
            for name, title in titles_of.items()
            if name not in columns
        ),
    ]
