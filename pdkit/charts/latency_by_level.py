"""TTFT, TPOT, ITL and E2E, level by level."""

import altair as alt
import polars as pl

from pdkit.charts.levels import ROWS, gap_sentences, gap_strip, in_segments, level_order, named, provenance, refused
from pdkit.charts.lines import HEADROOM, axis_title, experiment_colour, labels, latencies, marks, which_statistic
from pdkit.charts.theme import PLOT_PX, REFUSED, Panel, Picture, in_words, picture
from pdkit.metrics import CLOCKS
from pdkit.parts import chart
from pdkit.results import NO_RESULT, Published
from pdkit.units import listed, plural, show

_TITLE = "How long do requests take at each level?"
_CLOCKS = ("ttft_ms", "tpot_ms", "itl_ms", "e2e_ms")
_HEIGHT_PX = 105
_LABELLED = 12  # points of a panel that have room for their number


@chart(question=_TITLE)
def latency_by_level(published: Published) -> Picture:
    """Each panel is one clock, from the lowest level at the left to the highest at the right.

    TPOT is a request's mean, ITL a single gap: an ITL far above TPOT means pauses. A level marked ✕ has no measured
    result; the line breaks there. Hollow points are unverified.
    """
    runs = named(published.runs)
    rows = runs.join(latencies(published, _CLOCKS), on="run_id", how="left", maintain_order="left").head(ROWS)
    points = in_segments(rows, holds=pl.col("ms").is_not_null(), by=["title", "clock"])
    gaps = runs.join(points.select("run_id").unique(), on="run_id", how="anti", maintain_order="left")
    if points.is_empty():
        lost = f" {'; '.join(gap_sentences(gaps)[:6])}." if gaps.height else ""
        return in_words(f"No level has a latency that may be published.{lost}", title=_TITLE, notes=[provenance(runs)])
    colour, many = experiment_colour(runs)
    shown = [clock for clock in _CLOCKS if clock in points["clock"]]
    panels: list[Panel] = [
        _panel(points, clock, runs=runs, gaps=gaps, colour=colour, last=clock == shown[-1]) for clock in shown
    ]
    unseen = [CLOCKS[clock][0] for clock in _CLOCKS if clock not in shown]
    notes = [
        provenance(runs),
        which_statistic(points),
        many,
        f"No {listed(unseen)} that may be published." if unseen else "",
    ]
    return picture([*panels, *gap_strip(gaps)], title=_TITLE, notes=notes, description=_described(runs, points))


def _panel(
    points: pl.DataFrame, clock: str, *, runs: pl.DataFrame, gaps: pl.DataFrame, colour: alt.Color, last: bool
) -> Panel:
    rows = points.filter(pl.col("clock") == clock)
    data = rows.select("title", "level", "rank", "verdict", "statistic", "segment", pl.col("ms").round(3))
    order = level_order(runs)
    axis = (
        alt.Axis(title="Level", labelAngle=0 if len(order) <= 6 else -40, labelOverlap=False)
        if last
        else alt.Axis(title=None, labels=False, ticks=False)
    )
    x = alt.X("level:O", scale=alt.Scale(domain=order), axis=axis)
    most = rows["ms"].max()
    top = float(most) * HEADROOM * 1.1 if isinstance(most, float) and most > 0 else 1.0
    y = alt.Y(
        "ms:Q", scale=alt.Scale(domain=[0, top], nice=False), axis=alt.Axis(title=axis_title(clock, rows), tickCount=3)
    )
    base = alt.Chart(data).encode(x=x, y=y, tooltip=_TOLD)
    line = base.mark_line(strokeWidth=1.6, opacity=0.6).encode(color=colour, order="rank:Q", detail="segment:N")
    words = labels(_texts(data), x=x, y=y) if data.height <= _LABELLED else []
    drawn = marks(base, verdicts=points["verdict"].to_list(), colour=colour)
    return alt.layer(_crosses(gaps, x), line, *drawn, *words).properties(width=PLOT_PX, height=_HEIGHT_PX)


def _texts(data: pl.DataFrame) -> list[dict[str, object]]:
    mean = pl.when(pl.col("statistic") == "mean").then(pl.lit(" mean")).otherwise(pl.lit(""))
    number = pl.col("ms").map_elements(lambda ms: f"{ms:,.4g}" if ms < 1000 else f"{ms:,.0f}", return_dtype=pl.String)
    return data.select(
        "level", "ms", pl.concat_str(number, mean).alias("text"), pl.lit("right").alias("side")
    ).to_dicts()


def _crosses(gaps: pl.DataFrame, x: alt.X) -> alt.Chart:
    """A cross at the foot of each level that some experiment has no measured result for."""
    values = (
        gaps.filter(pl.col("verdict") == NO_RESULT)
        .group_by("level", maintain_order=True)
        .agg(pl.col("title").unique(maintain_order=True).str.join("; "))
    )
    told = [alt.Tooltip("level:N", title="Level"), alt.Tooltip("title:N", title="No measured result")]
    return (
        alt.Chart(values)
        .mark_text(text="✕", color=REFUSED, fontSize=13, baseline="bottom", dy=-2)
        .encode(x=x, y=alt.value(_HEIGHT_PX), tooltip=told)
    )


_TOLD = [
    alt.Tooltip("title:N", title="Experiment"), alt.Tooltip("level:N", title="Level"), alt.Tooltip("verdict:N", title="Verdict"),
    alt.Tooltip("statistic:N", title="Statistic"), alt.Tooltip("ms:Q", title="Latency (ms)", format=",.2f"),
]  # fmt: skip


def _described(runs: pl.DataFrame, points: pl.DataFrame) -> str:
    first = points.filter(pl.col("clock") == points["clock"][0])
    low, high = (first.sort("ms").row(end, named=True) for end in (0, -1))
    name = CLOCKS[low["clock"]][0]
    span = f"{name} goes from {show(low['ms'], 'ms')} at {low['level']} to {show(high['ms'], 'ms')} at {high['level']}"
    return f"Latencies by level for {plural(points['run_id'].n_unique(), 'run')}; {span}. {refused(runs)}."
