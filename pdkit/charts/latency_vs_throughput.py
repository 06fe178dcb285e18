"""Latency against the throughput of what came back: the curve that engineers ask for first."""

import altair as alt
import polars as pl

from pdkit.charts.labels import HEADROOM, Plot, labels, onto
from pdkit.charts.levels import fitting, gap_strip, gaps_in_words, greatest, in_segments, named, provenance, refused
from pdkit.charts.lines import (
    axis_title,
    believed,
    experiment_colour,
    latencies,
    line,
    marks,
    not_shown,
    told,
    which_statistic,
)
from pdkit.charts.theme import AXIS_PX, PLOT_PX, Picture, in_words, layered, picture
from pdkit.metrics import METRICS
from pdkit.parts import chart
from pdkit.results import Published
from pdkit.units import plural, show

_TITLE = "What does more throughput cost in latency?"
_CLOCKS = ("ttft_ms", "tpot_ms", "e2e_ms")
_CAME = METRICS["received_throughput_tok_per_s"]
_HEIGHT_PX = 135
_TOLD = told("statistic", titles_of={"statistic": "Statistic", "ms": "Latency (ms)", "x": _CAME.axis})


@chart(question=_TITLE)
def latency_vs_throughput(published: Published) -> Picture:
    """Each point is a level, joined in the order of levels: right is more tokens received a second, down is sooner.

    Where the curve turns upward without going right, more users only wait longer. A level without a measured result is
    not drawn: the line breaks there, and the strip below names it. Hollow points are unverified.
    """
    x = published.wide(_CAME.name).select("run_id", believed(_CAME.name).alias("x"))
    every = named(published.runs)
    runs, left_out = fitting(every, rows_each=len(_CLOCKS) * 2)
    rows = runs.join(x, on="run_id", how="left", maintain_order="left")
    rows = rows.join(latencies(published, _CLOCKS), on="run_id", how="left", maintain_order="left")
    holds = pl.col("x").is_not_null() & pl.col("ms").is_not_null()
    points = in_segments(rows, holds=holds, by=["title", "clock"])
    gaps = runs.join(points, on="run_id", how="anti", maintain_order="left")
    if points.is_empty():
        lack = f"No level has both a latency and a received throughput that may be published.{gaps_in_words(gaps)}"
        return in_words(lack, title=_TITLE, notes=[provenance(runs)])
    colour, many = experiment_colour(points)
    shown = [clock for clock in _CLOCKS if clock in points["clock"]]
    panels = [_panel(points, clock, colour=colour, last=clock == shown[-1]) for clock in shown]
    notes = [provenance(runs), which_statistic(points), not_shown(_CLOCKS, points), many, left_out]
    return picture([*panels, *gap_strip(gaps)], title=_TITLE, notes=notes, description=_described(every, points))


def _panel(points: pl.DataFrame, clock: str, *, colour: alt.Color, last: bool) -> alt.LayerChart:
    rows = points.filter(pl.col("clock") == clock)
    right, top = (greatest(series) * HEADROOM or 1.0 for series in (points["x"], rows["ms"]))
    numbers = [pl.col("x").round(2), pl.col("ms").round(3)]
    data = rows.select("title", "level", "rank", "verdict", "statistic", "segment", *numbers)
    bare = {} if last else {"title": None, "labels": False, "ticks": False}
    across = alt.Axis(**{"title": _CAME.axis, "tickCount": 6} | bare)  # type: ignore[arg-type]
    up = alt.Axis(title=axis_title(clock, rows), tickCount=4, minExtent=AXIS_PX, maxExtent=AXIS_PX)
    x = alt.X("x:Q", scale=alt.Scale(domain=[0, right], nice=False), axis=across)
    y = alt.Y("ms:Q", scale=alt.Scale(domain=[0, top], nice=False), axis=up)
    base = alt.Chart(data).encode(x=x, y=y, tooltip=_TOLD)
    mean = pl.when(pl.col("statistic") == "mean").then(pl.format("{}, mean", "level")).otherwise("level")
    named_points = onto(data.select("x", "ms", mean.alias("text")), x=right, ms=top)
    words = labels(named_points, Plot(x, y, PLOT_PX, _HEIGHT_PX))
    drawn = marks(base, verdicts=points["verdict"].to_list(), colour=colour)
    return layered(line(base, colour), *drawn, *words, width=PLOT_PX, height=_HEIGHT_PX)


def _described(runs: pl.DataFrame, points: pl.DataFrame) -> str:
    best = points.sort("x").row(-1, named=True)
    most = f"most is received at {best['level']}: {show(best['x'], _CAME.unit)} ({best['title']})"
    many = plural(points["run_id"].n_unique(), "run")
    return f"Latency against received throughput for {many}; {most}. {refused(runs)}."
