"""Latency against the throughput of what came back: the curve that engineers ask for first."""

import altair as alt
import polars as pl

from pdkit.charts.levels import ROWS, gap_sentences, gap_strip, in_segments, named, provenance, refused
from pdkit.charts.lines import (
    HEADROOM,
    apart,
    axis_title,
    experiment_colour,
    finite,
    labels,
    latencies,
    marks,
    which_statistic,
)
from pdkit.charts.theme import PLOT_PX, Panel, Picture, in_words, picture
from pdkit.metrics import CLOCKS, METRICS
from pdkit.parts import chart
from pdkit.results import Published
from pdkit.units import listed, plural, show

_TITLE = "What does more throughput cost in latency?"
_CLOCKS = ("ttft_ms", "tpot_ms", "e2e_ms")
_CAME = METRICS["received_throughput_tok_per_s"]
_HEIGHT_PX = 130


@chart(question=_TITLE)
def latency_vs_throughput(published: Published) -> Picture:
    """Each point is a level, joined in the order of levels: right is more tokens received a second, down is sooner.

    Where the curve turns upward without going right, more users only wait longer. A level without a measured result is
    not drawn: the line breaks there, and the strip below names it. Hollow points are unverified.
    """
    runs = named(published.runs).join(
        published.wide(_CAME.name).select("run_id", finite(_CAME.name).alias("x")), on="run_id", how="left"
    )
    rows = runs.join(latencies(published, _CLOCKS), on="run_id", how="left", maintain_order="left").head(ROWS)
    drawn = pl.col("x").is_not_null() & pl.col("ms").is_not_null()
    points = in_segments(rows, holds=drawn, by=["title", "clock"])
    gaps = runs.join(points.select("run_id").unique(), on="run_id", how="anti", maintain_order="left")
    if points.is_empty():
        lost = f" {'; '.join(gap_sentences(gaps)[:6])}." if gaps.height else ""
        return in_words(
            f"No level has both a latency and a received throughput that may be published.{lost}",
            title=_TITLE,
            notes=[provenance(runs)],
        )
    colour, many = experiment_colour(runs)
    shown = [clock for clock in _CLOCKS if clock in points["clock"]]
    panels: list[Panel] = [
        _panel(points.filter(pl.col("clock") == clock), clock, points=points, colour=colour, last=clock == shown[-1])
        for clock in shown
    ]
    unseen = [CLOCKS[clock][0] for clock in _CLOCKS if clock not in shown]
    notes = [
        provenance(runs),
        which_statistic(points),
        many,
        f"No {listed(unseen)} that may be published." if unseen else "",
    ]
    return picture([*panels, *gap_strip(gaps)], title=_TITLE, notes=notes, description=_described(runs, points))


def _panel(rows: pl.DataFrame, clock: str, *, points: pl.DataFrame, colour: alt.Color, last: bool) -> Panel:
    tops = {"x": _top(points["x"]), "ms": _top(rows["ms"])}
    data = rows.select(
        "title", "level", "rank", "verdict", "statistic", "segment", pl.col("x").round(2), pl.col("ms").round(3)
    )
    axis = (
        alt.Axis(title=_CAME.axis, tickCount=6)
        if last
        else alt.Axis(title=None, labels=False, ticks=False, tickCount=6)
    )
    x = alt.X("x:Q", scale=alt.Scale(domain=[0, tops["x"]], nice=False), axis=axis)
    y = alt.Y(
        "ms:Q",
        scale=alt.Scale(domain=[0, tops["ms"]], nice=False),
        axis=alt.Axis(title=axis_title(clock, rows), tickCount=4),
    )
    base = alt.Chart(data).encode(x=x, y=y, tooltip=_TOLD)
    line = base.mark_line(strokeWidth=1.6, opacity=0.6).encode(color=colour, order="rank:Q", detail="segment:N")
    text = pl.when(pl.col("statistic") == "mean").then(pl.format("{}, mean", "level")).otherwise("level")
    words = labels(list(apart(data.with_columns(text.alias("text")), tops=tops, height=_HEIGHT_PX)), x=x, y=y)
    return alt.layer(line, *marks(base, verdicts=points["verdict"].to_list(), colour=colour), *words).properties(
        width=PLOT_PX, height=_HEIGHT_PX
    )


def _top(numbers: pl.Series) -> float:
    """The end of an axis that begins at zero."""
    most = numbers.max()
    return float(most) * HEADROOM if isinstance(most, float) and most > 0 else 1.0


_TOLD = [
    alt.Tooltip("title:N", title="Experiment"), alt.Tooltip("level:N", title="Level"), alt.Tooltip("verdict:N", title="Verdict"), alt.Tooltip("statistic:N", title="Statistic"),
    alt.Tooltip("ms:Q", title="Latency (ms)", format=",.2f"), alt.Tooltip("x:Q", title=_CAME.axis, format=",.2f"),
]  # fmt: skip


def _described(runs: pl.DataFrame, points: pl.DataFrame) -> str:
    best = points.sort("x").row(-1, named=True)
    most = f"the most that was received is {show(best['x'], _CAME.unit)} at {best['level']} ({best['title']})"
    return f"Latency against received throughput for {plural(points['run_id'].n_unique(), 'run')}; {most}. {refused(runs)}."
