"""Claimed output throughput against the throughput of what came back."""

from dataclasses import dataclass, replace

import altair as alt
import polars as pl

from pdkit.charts.levels import fitting, greatest, named, provenance, refused
from pdkit.charts.lines import finite
from pdkit.charts.theme import (
    AXIS,
    FAINT,
    PLOT_PX,
    QUIET,
    REFUSED,
    VERDICT_COLOURS,
    VERDICT_SHAPES,
    Picture,
    in_words,
    layered,
    picture,
    rimmed,
)
from pdkit.metrics import METRICS
from pdkit.parts import chart
from pdkit.results import CLAIMED, NO_RESULT, Judgement
from pdkit.units import plural

_CLAIM, _CAME = METRICS["output_throughput_tok_per_s"], METRICS["received_throughput_tok_per_s"]
_TITLE = "Did the claimed tokens come back?"
_HEIGHT_PX, _LANE_PX = 360, 84
_LINE_PX, _CHAR_PX = 15, 6.1  # the room that a label takes
_HEADROOM = 1.06
_DIGITS = 2  # throughput is printed with two decimals
_TOLD = [
    alt.Tooltip("title:N", title="Experiment"),
    alt.Tooltip("level:N", title="Level"),
    alt.Tooltip("verdict:N", title="Verdict"),
    alt.Tooltip("rules:N", title="Rules"),
    alt.Tooltip("claimed:Q", title="Claimed (tok/s)", format=",.2f"),
    alt.Tooltip("received:Q", title="Received (tok/s)", format=",.2f"),
]


@chart(question=_TITLE, evidence=True)
def throughput_vs_received(judgement: Judgement) -> Picture:
    """Each point is a run. On the line, every token that the client claims was found again in the text that came back.

    A run above the line claims tokens that nobody received; at the left edge nothing came back at all. What a refused
    run prints is shown as "claimed, not measured". Runs whose text was not counted stand in a strip of their own.
    """
    every = _runs(judgement)
    stated = every.filter(pl.col("claimed").is_not_null())
    silent = every.height - stated.height
    notes = [provenance(every), f"{plural(silent, 'run')} printed no output throughput." if silent else ""]
    if stated.is_empty():
        lack = "No run states an output throughput: there is nothing to hold against what came back."
        return in_words(lack, title=_TITLE, notes=notes)
    top = greatest(stated["claimed"], stated["received"]) * _HEADROOM or 1.0
    drawn, left_out = fitting(stated, rows_each=1)
    counted = drawn.filter(pl.col("received").is_not_null())
    uncounted = drawn.filter(pl.col("received").is_null()).with_columns(pl.lit("").alias("where"))
    width = PLOT_PX - (_LANE_PX + 12 if uncounted.height else 0)
    panels = [_plot(counted, top=top, width=width, drawn=drawn)]
    if uncounted.height:
        panels.append(_lane(uncounted, top=top, drawn=drawn))
    figure = alt.HConcatChart(hconcat=panels, spacing=12)
    return picture([figure], title=_TITLE, notes=[*notes, left_out], description=_described(every, counted))


def _runs(judgement: Judgement) -> pl.DataFrame:
    """One row a run: what it claims and what came back, as it is printed; the greatest claim first."""
    claimed, received = (finite(metric.name).round(_DIGITS) for metric in (_CLAIM, _CAME))
    numbers = judgement.facts.select("run_id", claimed.alias("claimed"), received.alias("received"))
    rules = pl.concat_list("refused_by", "suspected_by").list.join(", ").alias("rules")
    runs = named(judgement.verdicts).with_columns(rules).join(numbers, on="run_id", how="left", maintain_order="left")
    kept = ["title", "level", "verdict", "rules", "claimed", "received", "synthetic"]
    return runs.select(kept).sort("claimed", descending=True, nulls_last=True, maintain_order=True)


def _plot(runs: pl.DataFrame, *, top: float, width: float, drawn: pl.DataFrame) -> alt.LayerChart:
    scale = alt.Scale(domain=[0, top], nice=False)
    x = alt.X("received:Q", scale=scale, axis=alt.Axis(title=_CAME.axis, tickCount=6))
    y = alt.Y("claimed:Q", scale=scale, axis=_claimed_axis())
    ends = alt.Chart(alt.InlineData(values=[{"received": 0, "claimed": 0}, {"received": top, "claimed": top}]))
    equal = ends.mark_line(color=AXIS, strokeDash=[5, 4]).encode(x=x, y=y)
    end = ends.transform_filter(alt.datum.received > 0).encode(x=x, y=y, text=alt.value("all came back"))
    word = rimmed(end, color=QUIET, align="right", dx=-30, dy=7)
    points = alt.Chart(runs.drop("synthetic")).mark_point(filled=True, size=95, opacity=0.85)
    placed = points.encode(x=x, y=y, tooltip=_TOLD, **_look(drawn))
    words = [mark for label in _labelled(runs, top=top, width=width) for mark in label.drawn(x, y)]
    return layered(equal, *word, placed, *words, width=width, height=_HEIGHT_PX)


def _lane(runs: pl.DataFrame, *, top: float, drawn: pl.DataFrame) -> alt.LayerChart:
    """Beside the plot: runs that claim a throughput, but whose text nobody counted."""
    axis = alt.Axis(title=["text not", "counted"], labels=False, ticks=False, domain=False)
    bare = alt.Axis(title=None, labels=False, ticks=False, domain=False, grid=False)
    y = alt.Y("claimed:Q", scale=alt.Scale(domain=[0, top], nice=False), axis=bare)
    points = alt.Chart(runs.drop("synthetic")).mark_point(filled=True, size=95, opacity=0.85)
    placed = points.encode(x=alt.X("where:N", axis=axis), y=y, tooltip=_TOLD, **_look(drawn))
    size = {"width": _LANE_PX, "height": _HEIGHT_PX}
    return alt.LayerChart(layer=[placed], view=alt.ViewBackground(fill="#f9fafb", stroke=FAINT), **size)


def _claimed_axis() -> alt.Axis:
    return alt.Axis(title=f"{_CLAIM.axis}, claimed", tickCount=6, minExtent=40, maxExtent=40)


def _look(drawn: pl.DataFrame) -> dict[str, alt.Color | alt.Shape]:
    """Colour and shape by verdict, with one legend for both that lists what is shown."""
    shown = [verdict for verdict in VERDICT_COLOURS if verdict in drawn["verdict"]]
    named_so = f"datum.label === '{NO_RESULT}' ? '{NO_RESULT}: {CLAIMED}' : datum.label"
    legend = alt.Legend(title=None, labelExpr=named_so, columns=2)
    colours = alt.Scale(domain=shown, range=[VERDICT_COLOURS[verdict] for verdict in shown])
    shapes = alt.Scale(domain=shown, range=[VERDICT_SHAPES[verdict] for verdict in shown])
    return {
        "color": alt.Color("verdict:N", scale=colours, legend=legend),
        "shape": alt.Shape("verdict:N", scale=shapes, legend=legend),
    }


# --- labels of refused runs -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Label:
    """Words beside a refused run, or beside several that lie too close for one each; places are in pixels."""

    received: float
    claimed: float
    across: float
    up: float
    level: str
    runs: int
    leftward: bool

    @property
    def text(self) -> str:
        return f"{self.level if self.runs == 1 else plural(self.runs, 'run')}: {CLAIMED}"

    def meets(self, across: float, up: float) -> bool:
        """Whether the words of another run, at that place, would touch these."""
        return abs(self.up - up) < _LINE_PX and abs(self.across - across) < (len(self.text) + 2) * _CHAR_PX

    def drawn(self, x: alt.X, y: alt.Y) -> list[alt.Chart]:
        values = [{"received": self.received, "claimed": self.claimed, "text": self.text}]
        text = alt.Chart(alt.InlineData(values=values)).encode(x=x, y=y, text="text:N")
        side = {"align": "right", "dx": -11.0} if self.leftward else {"align": "left", "dx": 11.0}
        return rimmed(text, color=REFUSED, dy=0, **side)  # type: ignore[arg-type]


_LABELS = 14  # beyond these the legend says it


def _labelled(runs: pl.DataFrame, *, top: float, width: float) -> list[_Label]:
    """Labels that keep apart: a run whose words would touch those of another is counted there."""
    labels: list[_Label] = []
    refusals = runs.filter(pl.col("verdict") == NO_RESULT).select("received", "claimed", "level")
    for received, claimed, level in refusals.iter_rows():
        across, up = received / top * width, claimed / top * _HEIGHT_PX
        near = next((index for index, label in enumerate(labels) if label.meets(across, up)), None)
        if near is not None:
            labels[near] = replace(labels[near], runs=labels[near].runs + 1)
        elif len(labels) < _LABELS:
            labels.append(
                _Label(received, claimed, across, up, level, 1, _leftward(runs, across, up, top=top, width=width))
            )
    return labels


def _leftward(runs: pl.DataFrame, across: float, up: float, *, top: float, width: float) -> bool:
    """Whether the words find more room at the left: the plot ends, or more points lie at the right."""
    room = 210
    if across > width - room or across < room:
        return across > width - room
    x, y = pl.col("received") / top * width - across, pl.col("claimed") / top * _HEIGHT_PX - up
    beside = runs.filter(y.abs() < _LINE_PX)
    return beside.filter(x.is_between(1, room)).height > beside.filter(x.is_between(-room, -1)).height


def _described(runs: pl.DataFrame, counted: pl.DataFrame) -> str:
    nothing = counted.filter(pl.col("received") == 0, pl.col("claimed") > 0)
    most = f"up to {greatest(nothing['claimed']):,.2f} tok/s, {CLAIMED}"
    lost = f" Nothing came back in {plural(nothing.height, 'run')} that printed {most}." if nothing.height else ""
    axes = "Claimed output throughput against the throughput of the text that came back"
    return f"{axes}, {plural(runs.height, 'run')}.{lost} {refused(runs)}."
