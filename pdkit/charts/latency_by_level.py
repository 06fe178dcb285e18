"""TTFT, TPOT, ITL and E2E, level by level."""

import altair as alt
import polars as pl

from pdkit.charts.labels import HEADROOM, Plot, labels
from pdkit.charts.levels import (
    fitting,
    gap_strip,
    gaps_in_words,
    greatest,
    in_segments,
    level_order,
    named,
    provenance,
    refused,
)
from pdkit.charts.lines import (
    axis_title,
    experiment_colour,
    latencies,
    line,
    marks,
    not_shown,
    told,
    which_statistic,
)
from pdkit.charts.theme import AXIS_PX, CROSS, PLOT_PX, REFUSED, Picture, in_words, layered, picture
from pdkit.metrics import CLOCKS
from pdkit.parts import chart
from pdkit.results import NO_RESULT, Published
from pdkit.units import plural, show

_TITLE = "How long do requests take at each level?"
_CLOCKS = ("ttft_ms", "tpot_ms", "itl_ms", "e2e_ms")
_HEIGHT_PX = 105
_CHAR_PX = 6.3  # of a level's name below the axis
_TOLD = told("statistic", titles_of={"statistic": "Statistic", "ms": "Latency (ms)"})


@chart(question=_TITLE)
def latency_by_level(published: Published) -> Picture:
    """Each panel is one clock, from the lowest level at the left to the highest at the right.

    TPOT is a request's mean, ITL a single gap: an ITL far above TPOT means pauses. A cross stands above a level without
    a measured result; the line breaks there, and the strip below says whose it is. Hollow points are unverified.
    """
    every = named(published.runs)
    runs, left_out = fitting(every, rows_each=len(_CLOCKS) * 2)
    rows = runs.join(latencies(published, _CLOCKS), on="run_id", how="left", maintain_order="left")
    points = in_segments(rows, holds=pl.col("ms").is_not_null(), by=["title", "clock"])
    gaps = runs.join(points, on="run_id", how="anti", maintain_order="left")
    if points.is_empty():
        lack = f"No level has a latency that may be published.{gaps_in_words(gaps)}"
        return in_words(lack, title=_TITLE, notes=[provenance(runs)])
    colour, many = experiment_colour(points)
    order = level_order(runs)
    shown = [clock for clock in _CLOCKS if clock in points["clock"]]
    last = shown[-1]
    panels = [_panel(points, clock, order=order, colour=colour, last=clock == last) for clock in shown]
    notes = [provenance(runs), which_statistic(points), not_shown(_CLOCKS, points), many, left_out]
    return picture(
        [*_crosses(gaps, order), *panels, *gap_strip(gaps)],
        title=_TITLE,
        notes=notes,
        description=_described(every, points),
    )


def _panel(points: pl.DataFrame, clock: str, *, order: list[str], colour: alt.Color, last: bool) -> alt.LayerChart:
    rows = points.filter(pl.col("clock") == clock)
    data = rows.select("title", "level", "rank", "verdict", "statistic", "segment", pl.col("ms").round(3))
    top = greatest(rows["ms"]) * HEADROOM * HEADROOM or 1.0
    x = alt.X("level:O", scale=alt.Scale(domain=order), axis=_level_axis(order, last=last))
    up = alt.Axis(title=axis_title(clock, rows), tickCount=3, minExtent=AXIS_PX, maxExtent=AXIS_PX)
    y = alt.Y("ms:Q", scale=alt.Scale(domain=[0, top], nice=False), axis=up)
    base = alt.Chart(data).encode(x=x, y=y, tooltip=_TOLD)
    words = labels(_numbers(data, order=order, top=top), Plot(x, y, PLOT_PX, _HEIGHT_PX))
    drawn = marks(base, verdicts=points["verdict"].to_list(), colour=colour)
    return layered(line(base, colour), *drawn, *words, width=PLOT_PX, height=_HEIGHT_PX)


def _level_axis(order: list[str], *, last: bool) -> alt.Axis:
    """The names of the levels below the last panel, slanted where they would run into each other."""
    if not last:
        return alt.Axis(title=None, labels=False, ticks=False, domain=True)
    fits = max(len(level) for level in order) * _CHAR_PX <= PLOT_PX / len(order)
    return alt.Axis(title="Level", labelAngle=0 if fits else -40, labelOverlap="greedy", labelLimit=150)


def _numbers(data: pl.DataFrame, *, order: list[str], top: float) -> pl.DataFrame:
    """Each point's value in words, and where on the plot it lies."""
    mean = pl.when(pl.col("statistic") == "mean").then(pl.lit(" mean")).otherwise(pl.lit(""))
    number = pl.Series(
        "number", [f"{ms:,.0f}" if ms >= 1000 else f"{ms + 0.0:.4g}" for ms in data["ms"]], dtype=pl.String
    )
    column = pl.col("level").replace_strict(
        {level: index for index, level in enumerate(order)}, return_dtype=pl.Float64
    )
    return data.with_columns(number).select(
        "level",
        "ms",
        pl.concat_str("number", mean).alias("text"),
        ((column + 0.5) / len(order)).alias("across"),
        (pl.col("ms") / top).alias("up"),
    )


def _crosses(gaps: pl.DataFrame, order: list[str]) -> list[alt.LayerChart]:
    """A lane above the panels: a cross at each level for which some experiment has no measured result."""
    refusals = gaps.filter(pl.col("verdict") == NO_RESULT)
    if refusals.is_empty():
        return []
    whose = refusals.group_by("level", maintain_order=True).agg(
        pl.col("title").unique(maintain_order=True).str.join("; ")
    )
    x = alt.X("level:O", scale=alt.Scale(domain=order), axis=None)
    lane = alt.Axis(title=None, ticks=False, domain=False, labelColor=REFUSED, minExtent=AXIS_PX, maxExtent=AXIS_PX)
    told_of = [alt.Tooltip("level:N", title="Level"), alt.Tooltip("title:N", title="No measured result")]
    rows = alt.Chart(whose.with_columns(pl.lit("no result").alias("lane")))
    placed: alt.Chart = rows.encode(x=x, y=alt.Y("lane:N", axis=lane), tooltip=told_of)
    marked: alt.Chart = placed.mark_point(shape=CROSS, filled=True, size=60, opacity=1, color=REFUSED)
    return [layered(marked, width=PLOT_PX, height=18)]


def _described(runs: pl.DataFrame, points: pl.DataFrame) -> str:
    clock = points["clock"][0]
    ordered = points.filter(pl.col("clock") == clock).sort("ms")
    low, high = ordered.row(0, named=True), ordered.row(-1, named=True)
    ends = (f"{show(low['ms'], 'ms')} at {low['level']}", f"{show(high['ms'], 'ms')} at {high['level']}")
    span = f"from {ends[0]} to {ends[1]}" if ordered.height > 1 else f"is {ends[0]}"
    many = plural(points["run_id"].n_unique(), "run")
    return f"Latencies by level for {many}; {CLOCKS[clock][0]} {span}. {refused(runs)}."
