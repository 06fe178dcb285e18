"""Claimed output throughput against the throughput of what came back."""

import altair as alt
import polars as pl

from pdkit.charts.labels import BESIDE, Plot, labels, onto
from pdkit.charts.levels import fitting, greatest, named, provenance, refused, with_taken
from pdkit.charts.lines import finite
from pdkit.charts.theme import (
    AXIS,
    AXIS_PX,
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
_SPOT_PX = 16  # runs closer than this share a label
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
    drawn_as = pl.when("taken").then(pl.lit(NO_RESULT)).otherwise("verdict").alias("drawn_as")
    kept = ["title", "level", "verdict", "drawn_as", "rules", "claimed", "received", "synthetic"]
    drawn = with_taken(runs, judgement, _CLAIM.name, _CAME.name).with_columns(drawn_as).select(kept)
    return drawn.sort("claimed", descending=True, nulls_last=True, maintain_order=True)


def _plot(runs: pl.DataFrame, *, top: float, width: float, drawn: pl.DataFrame) -> alt.LayerChart:
    scale = alt.Scale(domain=[0, top], nice=False)
    x = alt.X("received:Q", scale=scale, axis=alt.Axis(title=_CAME.axis, tickCount=6))
    y = alt.Y("claimed:Q", scale=scale, axis=_claimed_axis())
    line = pl.DataFrame({"received": [0.0, top], "claimed": [0.0, top]})
    equal = alt.Chart(line).mark_line(color=AXIS, strokeDash=[5, 4]).encode(x=x, y=y)
    end = alt.Chart(line.tail(1)).encode(x=x, y=y, text=alt.value("all came back"))
    word = rimmed(end, color=QUIET, align="right", dx=-30, dy=7)
    points = alt.Chart(runs.drop("synthetic")).mark_point(filled=True, size=95, opacity=0.85)
    placed = points.encode(x=x, y=y, tooltip=_TOLD, **_look(drawn))
    words = labels(_texts(runs, top=top, width=width), Plot(x, y, width, _HEIGHT_PX), sides=BESIDE, color=REFUSED)
    return layered(equal, *word, placed, *words, width=width, height=_HEIGHT_PX)


def _lane(runs: pl.DataFrame, *, top: float, drawn: pl.DataFrame) -> alt.LayerChart:
    """Beside the plot: runs that claim a throughput, but whose text nobody counted."""
    axis = alt.Axis(title=["text not", "counted"], labels=False, ticks=False, domain=False)
    bare = alt.Axis(title=None, labels=False, ticks=False, domain=False, grid=False)
    y = alt.Y("claimed:Q", scale=alt.Scale(domain=[0, top], nice=False), axis=bare)
    points = alt.Chart(runs.drop("synthetic")).mark_point(filled=True, size=95, opacity=0.85)
    placed = points.encode(x=alt.X("where:N", axis=axis), y=y, tooltip=_TOLD, **_look(drawn))
    lane = layered(placed, width=_LANE_PX, height=_HEIGHT_PX)
    lane.view = alt.ViewBackground(fill="#f9fafb", stroke=FAINT)
    return lane


def _claimed_axis() -> alt.Axis:
    return alt.Axis(title=f"{_CLAIM.axis}, claimed", tickCount=6, minExtent=AXIS_PX, maxExtent=AXIS_PX)


def _look(drawn: pl.DataFrame) -> dict[str, alt.Color | alt.Shape]:
    """Colour and shape by verdict, with one legend for both that lists what is shown."""
    shown = [verdict for verdict in VERDICT_COLOURS if verdict in drawn["drawn_as"]]
    named_so = f"datum.label === '{NO_RESULT}' ? '{NO_RESULT}: {CLAIMED}' : datum.label"
    legend = alt.Legend(title=None, labelExpr=named_so, columns=2)
    colours = alt.Scale(domain=shown, range=[VERDICT_COLOURS[verdict] for verdict in shown])
    shapes = alt.Scale(domain=shown, range=[VERDICT_SHAPES[verdict] for verdict in shown])
    return {
        "color": alt.Color("drawn_as:N", scale=colours, legend=legend),
        "shape": alt.Shape("drawn_as:N", scale=shapes, legend=legend),
    }


def _texts(runs: pl.DataFrame, *, top: float, width: float) -> pl.DataFrame:
    """Every run, and words for the refused ones; those that lie on the same spot share theirs."""
    refusal = pl.col("drawn_as") == NO_RESULT
    placed = onto(runs.select("received", "claimed", "level", refusal.alias("refused")), received=top, claimed=top)
    spot = [(pl.col("across") * width / _SPOT_PX).round(), (pl.col("up") * _HEIGHT_PX / _SPOT_PX).round(), "refused"]
    many, first = pl.len().over(spot), pl.int_range(pl.len()).over(spot) == 0
    who = pl.when(many > 1).then(pl.format("{} runs", many)).otherwise("level")
    text = pl.when(pl.col("refused") & first).then(pl.format("{}: {}", who, pl.lit(CLAIMED))).alias("text")
    return placed.select("received", "claimed", "across", "up", text)


def _described(runs: pl.DataFrame, counted: pl.DataFrame) -> str:
    nothing = counted.filter(pl.col("received") == 0, pl.col("claimed") > 0)
    most = f"up to {greatest(nothing['claimed']):,.2f} tok/s, {CLAIMED}"
    lost = f" Nothing came back in {plural(nothing.height, 'run')} that printed {most}." if nothing.height else ""
    axes = "Claimed output throughput against the throughput of the text that came back"
    return f"{axes}, {plural(runs.height, 'run')}.{lost} {refused(runs)}."
