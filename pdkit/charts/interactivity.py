"""Throughput a GPU against the speed that one user sees: the axes of public leaderboards."""

import altair as alt
import polars as pl

from pdkit.charts.labels import HEADROOM, Plot, labels, onto
from pdkit.charts.levels import fitting, gap_strip, greatest, in_segments, named, provenance, refused
from pdkit.charts.lines import believed, experiment_colour, line, marks, told
from pdkit.charts.theme import AXIS_PX, PLOT_PX, Picture, in_words, layered, picture
from pdkit.metrics import METRICS
from pdkit.parts import chart
from pdkit.results import NO_RESULT, Published
from pdkit.units import plural, show

_TITLE = "How much does a GPU give at the speed that one user sees?"
_EACH, _SPEED = METRICS["received_throughput_tok_per_s_per_gpu"], METRICS["interactivity_tok_per_s"]
_HEIGHT_PX = 300
_TOLD = told("gpu_count", titles_of={"gpu_count": METRICS["gpu_count"].axis, "x": _SPEED.axis, "y": _EACH.axis})


@chart(question=_TITLE)
def interactivity(published: Published) -> Picture:
    """Each point is a level, joined in order: right is faster for one user, up is more from each GPU.

    Of two curves the one further to the upper right is better. A level without a measured result is not drawn: the
    line breaks there, and the strip below names it. Hollow points are unverified.
    """
    numbers = published.wide(_EACH.name, _SPEED.name)
    placed = numbers.select("run_id", believed(_SPEED.name).alias("x"), believed(_EACH.name).alias("y"))
    every = named(published.runs)
    runs, left_out = fitting(every, rows_each=2)
    rows = runs.join(placed, on="run_id", how="left", maintain_order="left")
    points = in_segments(rows, holds=pl.col("x").is_not_null() & pl.col("y").is_not_null(), by=["title"])
    if points.is_empty():
        return in_words(_missing(rows), title=_TITLE, notes=[provenance(runs)])
    gaps = rows.join(points, on="run_id", how="anti", maintain_order="left")
    colour, many = experiment_colour(points)
    notes = [provenance(runs), many, left_out]
    panels = [_plot(points, colour), *gap_strip(gaps)]
    return picture(panels, title=_TITLE, notes=notes, description=_described(every, points))


def _plot(points: pl.DataFrame, colour: alt.Color) -> alt.LayerChart:
    right, top = (greatest(points[name]) * HEADROOM or 1.0 for name in ("x", "y"))
    gpus = pl.when(pl.col("gpu_count").is_finite()).then("gpu_count")
    data = points.select("title", "level", "rank", "verdict", "segment", gpus, pl.col("x", "y").round(2))
    x = alt.X("x:Q", scale=alt.Scale(domain=[0, right], nice=False), axis=alt.Axis(title=_SPEED.axis, tickCount=6))
    up = alt.Axis(title=_EACH.axis, tickCount=6, minExtent=AXIS_PX, maxExtent=AXIS_PX)
    y = alt.Y("y:Q", scale=alt.Scale(domain=[0, top], nice=False), axis=up)
    base = alt.Chart(data).encode(x=x, y=y, tooltip=_TOLD)
    named_points = onto(data.select("x", "y", pl.col("level").alias("text")), x=right, y=top)
    words = labels(named_points, Plot(x, y, PLOT_PX, _HEIGHT_PX))
    drawn = marks(base, verdicts=data["verdict"].to_list(), colour=colour)
    return layered(line(base, colour), *drawn, *words, width=PLOT_PX, height=_HEIGHT_PX)


def _missing(rows: pl.DataFrame) -> str:
    """What would let the chart be drawn next time."""
    kept = rows.filter(pl.col("verdict") != NO_RESULT)
    if kept.is_empty():
        return f"{refused(rows)}: there is no throughput per GPU to draw."
    if kept["gpu_count"].drop_nulls().is_empty():
        return f"The number of GPUs is not known. With `gpu_count` in {_EACH.shown_by} this can be drawn."
    lacking = [metric.title.lower() for metric, name in ((_EACH, "y"), (_SPEED, "x")) if kept[name].is_null().all()]
    which = " and ".join(lacking) or "one or the other of each run"
    return f"No run has both numbers that may be published; missing: {which}."


def _described(runs: pl.DataFrame, points: pl.DataFrame) -> str:
    best = points.sort("y").row(-1, named=True)
    most = f"most is received at {best['level']}: {show(best['y'], _EACH.unit)} per GPU"
    seen = f"while one user sees {show(best['x'], _SPEED.unit)}"
    many = plural(points.height, "run")
    return f"Received throughput per GPU against interactivity for {many}; {most}, {seen}. {refused(runs)}."
