"""Throughput a GPU against the speed that one user sees: the axes of public leaderboards."""

import altair as alt
import polars as pl

from pdkit.charts.levels import ROWS, gap_strip, in_segments, named, provenance, refused
from pdkit.charts.lines import HEADROOM, apart, experiment_colour, finite, labels, marks
from pdkit.charts.theme import PLOT_PX, Panel, Picture, in_words, picture
from pdkit.metrics import METRICS
from pdkit.parts import chart
from pdkit.results import NO_RESULT, Published
from pdkit.units import plural, show

_TITLE = "How much throughput does a GPU give at the speed that a user sees?"
_EACH, _SPEED = METRICS["received_throughput_tok_per_s_per_gpu"], METRICS["interactivity_tok_per_s"]
_HEIGHT_PX = 300


@chart(question=_TITLE)
def interactivity(published: Published) -> Picture:
    """Each point is a level, joined in the order of levels: right is faster for one user, up is more for the owner of the GPU.

    Of two curves the one further to the upper right is better. A level without a measured result is not drawn: the
    line breaks there, and the strip below names it.
    """
    numbers = published.wide(_EACH.name, _SPEED.name).select(
        "run_id", finite(_SPEED.name).alias("x"), finite(_EACH.name).alias("y")
    )
    runs = named(published.runs).join(numbers, on="run_id", how="left", maintain_order="left").head(ROWS)
    holds = pl.col("x").is_not_null() & pl.col("y").is_not_null() & (pl.col("verdict") != NO_RESULT)
    points = in_segments(runs, holds=holds, by=["title"])
    if points.is_empty():
        return in_words(_missing(runs), title=_TITLE, notes=[provenance(runs)])
    gaps = runs.join(points.select("run_id"), on="run_id", how="anti", maintain_order="left")
    colour, many = experiment_colour(runs)
    return picture(
        [_plot(points, colour), *gap_strip(gaps)],
        title=_TITLE,
        notes=[provenance(runs), many],
        description=_described(runs, points),
    )


def _plot(points: pl.DataFrame, colour: alt.Color) -> Panel:
    tops = {
        name: float(most) * HEADROOM if isinstance(most := points[name].max(), float) and most > 0 else 1.0
        for name in ("x", "y")
    }
    data = points.select(
        "title",
        "level",
        "rank",
        "verdict",
        "segment",
        "gpu_count",
        pl.col("x", "y").round(2),
        pl.col("level").alias("text"),
    )
    x = alt.X("x:Q", scale=alt.Scale(domain=[0, tops["x"]], nice=False), axis=alt.Axis(title=_SPEED.axis, tickCount=6))
    y = alt.Y("y:Q", scale=alt.Scale(domain=[0, tops["y"]], nice=False), axis=alt.Axis(title=_EACH.axis, tickCount=6))
    base = alt.Chart(data).encode(x=x, y=y, tooltip=_TOLD)
    line = base.mark_line(strokeWidth=1.6, opacity=0.6).encode(color=colour, order="rank:Q", detail="segment:N")
    words = labels(list(apart(data, tops=tops, height=_HEIGHT_PX)), x=x, y=y)
    return alt.layer(line, *marks(base, verdicts=data["verdict"].to_list(), colour=colour), *words).properties(
        width=PLOT_PX, height=_HEIGHT_PX
    )


_TOLD = [
    alt.Tooltip("title:N", title="Experiment"), alt.Tooltip("level:N", title="Level"), alt.Tooltip("verdict:N", title="Verdict"), alt.Tooltip("gpu_count:Q", title="GPUs"),
    alt.Tooltip("x:Q", title=_SPEED.axis, format=",.2f"), alt.Tooltip("y:Q", title=_EACH.axis, format=",.2f"),
]  # fmt: skip


def _missing(runs: pl.DataFrame) -> str:
    """What would let the chart be drawn next time."""
    if runs.is_empty():
        return "There are no runs: nothing to draw."
    if runs["gpu_count"].drop_nulls().is_empty():
        return f"The number of GPUs is not known: write `gpu_count` into {_EACH.shown_by}, and throughput per GPU can be drawn."
    believed = runs.filter(pl.col("verdict") != NO_RESULT)
    if believed.is_empty():
        return f"{refused(runs)}: there is no throughput per GPU to draw."
    lacking = [
        metric.title.lower() for metric, name in ((_EACH, "y"), (_SPEED, "x")) if believed[name].drop_nulls().is_empty()
    ]
    return f"No run has both numbers that may be published; missing: {' and '.join(lacking) or 'the other one of each run'}."


def _described(runs: pl.DataFrame, points: pl.DataFrame) -> str:
    best = points.sort("y").row(-1, named=True)
    most = f"the most is {show(best['y'], _EACH.unit)} per GPU at {best['level']}, where one user sees {show(best['x'], _SPEED.unit)}"
    return f"Received throughput per GPU against interactivity for {plural(points.height, 'run')}; {most}. {refused(runs)}."
