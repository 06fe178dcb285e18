"""Claimed output throughput against the throughput of what came back."""

from collections.abc import Iterator
from typing import NamedTuple

import altair as alt
import polars as pl

from pdkit.charts.levels import ROWS, named, provenance, refused
from pdkit.charts.theme import INK, PAGE_PX, QUIET, REFUSED, RULE, Panel, Picture, in_words, picture, verdict_scales
from pdkit.metrics import METRICS
from pdkit.parts import chart
from pdkit.results import CLAIMED, NO_RESULT, Judgement
from pdkit.units import plural

_CLAIM, _CAME = METRICS["output_throughput_tok_per_s"], METRICS["received_throughput_tok_per_s"]
_TITLE = "Did the claimed tokens come back?"
_HEIGHT_PX, _LANE_PX, _MARGIN_PX = 360, 70, 90
_LABEL_PX, _LINE_PX = 215, 14  # how much room the label of a refused run takes
_HEADROOM = 1.06
_DIGITS = 2  # throughput is printed with two decimals


@chart(question=_TITLE, evidence=True)
def throughput_vs_received(judgement: Judgement) -> Picture:
    """Each point is a run. On the line, every token that the client claims was found again in the text that came back.

    A run above the line claims tokens that nobody received; at the left edge nothing came back at all. What a refused
    run prints is shown as "claimed, not measured". Runs whose text was not counted stand in a strip of their own.
    """
    runs = _runs(judgement)
    stated = runs.filter(pl.col("claimed").is_not_null())
    silent = runs.height - stated.height
    notes = [provenance(runs), f"{plural(silent, 'run')} printed no output throughput." if silent else ""]
    if stated.is_empty():
        return in_words(
            "No run states an output throughput: nothing to hold against what came back.", title=_TITLE, notes=notes
        )
    top = max(stated["claimed"].max() or 0, stated["received"].max() or 0) * _HEADROOM or 1.0  # type: ignore[operator]
    shown = stated.head(ROWS)
    if stated.height > ROWS:
        notes.append(f"The {ROWS:,} runs that claim most are drawn, of {stated.height:,}.")
    counted, uncounted = shown.filter(pl.col("received").is_not_null()), shown.filter(pl.col("received").is_null())
    width = PAGE_PX - _MARGIN_PX - (_LANE_PX if uncounted.height else 0)
    panels = [_plot(counted, top=top, width=width, verdicts=shown["verdict"].to_list())]
    if uncounted.height:
        panels.append(_lane(uncounted, top=top))
    return picture([alt.hconcat(*panels, spacing=12)], title=_TITLE, notes=notes, description=_described(runs, counted))


def _runs(judgement: Judgement) -> pl.DataFrame:
    rules = pl.concat_list("refused_by", "suspected_by").list.join(", ").alias("rules")
    numbers = judgement.facts.select(
        "run_id", _finite(_CLAIM.name).alias("claimed"), _finite(_CAME.name).alias("received")
    )
    runs = named(judgement.verdicts).with_columns(rules).join(numbers, on="run_id", how="left", maintain_order="left")
    kept = ["title", "level", "verdict", "rules", "claimed", "received", "synthetic"]
    return runs.select(kept).sort("claimed", descending=True, nulls_last=True)


def _finite(name: str) -> pl.Expr:
    return pl.when(pl.col(name).is_finite()).then(pl.col(name).round(_DIGITS))


def _plot(runs: pl.DataFrame, *, top: float, width: int, verdicts: list[str]) -> Panel:
    ends = alt.Data(values=[{"received": 0, "claimed": 0}, {"received": top, "claimed": top}])
    x = alt.X("received:Q", scale=alt.Scale(domain=[0, top], nice=False), axis=alt.Axis(title=_CAME.axis, tickCount=6))
    y = _y(top, shown=True)
    line = alt.Chart(ends).mark_line(color=RULE, strokeDash=[5, 4]).encode(x=x, y=y)
    word = alt.Chart(alt.Data(values=[{"received": top, "claimed": top}])).mark_text(
        text="all came back", align="right", baseline="bottom", dx=-26, dy=10, color=QUIET
    )
    points = (
        alt.Chart(runs)
        .mark_point(filled=True, size=110, opacity=0.85)
        .encode(x=x, y=y, tooltip=_TOLD, **_look(verdicts))
    )
    labels = [_labels(side, x=x, y=y) for side in _sides(list(_labelled(runs, top=top, width=width)))]
    return alt.layer(line, word.encode(x=x, y=y), points, *labels).properties(width=width, height=_HEIGHT_PX)


def _lane(runs: pl.DataFrame, *, top: float) -> Panel:
    x = alt.X("where:N", axis=alt.Axis(title=["text not", "counted"], labels=False, ticks=False))
    placed = alt.Chart(runs.with_columns(pl.lit("").alias("where")))
    points = placed.mark_point(filled=True, size=110, opacity=0.85).encode(
        x=x, y=_y(top, shown=False), tooltip=_TOLD, **_look(runs["verdict"].to_list())
    )
    return points.properties(
        width=_LANE_PX - 12, height=_HEIGHT_PX, view=alt.ViewConfig(fill="#f9fafb", stroke="#e5e7eb")
    )


def _y(top: float, *, shown: bool) -> alt.Y:
    axis = (
        alt.Axis(title=f"{_CLAIM.axis}, claimed", tickCount=6)
        if shown
        else alt.Axis(title=None, labels=False, ticks=False, domain=False)
    )
    return alt.Y("claimed:Q", scale=alt.Scale(domain=[0, top], nice=False), axis=axis)


def _look(verdicts: list[str]) -> dict[str, alt.Color | alt.Shape]:
    colour, shape = verdict_scales(verdicts, {NO_RESULT: f"{NO_RESULT}: {CLAIMED}"})
    return {"color": colour, "shape": shape}


_TOLD = [
    alt.Tooltip("title:N", title="Experiment"), alt.Tooltip("level:N", title="Level"), alt.Tooltip("verdict:N", title="Verdict"), alt.Tooltip("rules:N", title="Rules"),
    alt.Tooltip("claimed:Q", title="Claimed (tok/s)", format=",.2f"), alt.Tooltip("received:Q", title="Received (tok/s)", format=",.2f"),
]  # fmt: skip


class _Label(NamedTuple):
    """Words beside a refused run, or beside several that lie too close for one each."""

    received: float
    claimed: float
    level: str
    runs: int
    leftward: bool

    @property
    def text(self) -> str:
        return f"{self.level if self.runs == 1 else plural(self.runs, 'run')}: {CLAIMED}"


def _labelled(runs: pl.DataFrame, *, top: float, width: int) -> Iterator[_Label]:
    open_labels: list[_Label] = []
    for received, claimed, level in (
        runs.filter(pl.col("verdict") == NO_RESULT).select("received", "claimed", "level").iter_rows()
    ):
        near = next(
            (i for i, label in enumerate(open_labels) if _collide(label, received, claimed, top=top, width=width)), None
        )
        if near is None:
            open_labels.append(_Label(received, claimed, level, 1, received / top * width > width - _LABEL_PX))
        else:
            open_labels[near] = open_labels[near]._replace(runs=open_labels[near].runs + 1)
    yield from open_labels


def _collide(label: _Label, received: float, claimed: float, *, top: float, width: int) -> bool:
    return (
        abs(label.claimed - claimed) / top * _HEIGHT_PX < _LINE_PX
        and abs(label.received - received) / top * width < _LABEL_PX
    )


def _sides(labels: list[_Label]) -> list[list[_Label]]:
    return [side for leftward in (False, True) if (side := [label for label in labels if label.leftward is leftward])]


def _labels(labels: list[_Label], *, x: alt.X, y: alt.Y) -> alt.Chart:
    leftward = labels[0].leftward
    values = alt.Data(
        values=[{"received": label.received, "claimed": label.claimed, "text": label.text} for label in labels]
    )
    marks = alt.Chart(values).mark_text(
        align="right" if leftward else "left", dx=-11 if leftward else 11, color=REFUSED, fontSize=11
    )
    return marks.encode(x=x, y=y, text="text:N", color=alt.value(REFUSED if labels else INK))


def _described(runs: pl.DataFrame, counted: pl.DataFrame) -> str:
    nothing = counted.filter(pl.col("received") == 0, pl.col("claimed") > 0)
    most = nothing["claimed"].max()
    lost = (
        f" {plural(nothing.height, 'run')} received nothing while up to {most:,.2f} tok/s were claimed, not measured."
        if nothing.height
        else ""
    )
    return f"{refused(runs)}. Claimed output throughput against the throughput of the text that came back, {plural(runs.height, 'run')}.{lost}"
