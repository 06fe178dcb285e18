"""Claimed against received tokens, level by level."""

import altair as alt
import polars as pl

from pdkit.charts.levels import greatest, level_order, named, provenance, refused, titles, with_taken
from pdkit.charts.lines import finite
from pdkit.charts.theme import (
    AXIS,
    CLAIMED_FILL,
    INK,
    RECEIVED,
    REFUSED,
    REFUSED_FILL,
    Picture,
    heading,
    in_words,
    layered,
    picture,
)
from pdkit.metrics import METRICS
from pdkit.parts import chart
from pdkit.results import CLAIMED, NO_RESULT, Judgement
from pdkit.units import listed, plural

_TITLE = "How much of the claimed text came back, level by level?"
_CLAIM, _CAME, _PRINTED = (
    METRICS[name] for name in ("output_tok_sum", "retokenized_tok_sum", "output_throughput_tok_per_s")
)
_BARS_PX, _ROW_PX, _NAME_PX = 272, 34, 100
_EXPERIMENTS, _LEVELS = 24, 60  # a longer figure is a table; what is left out is counted
_TOLD = [
    alt.Tooltip("level:N", title="Level"),
    alt.Tooltip("verdict:N", title="Verdict"),
    alt.Tooltip("claimed:Q", title=_CLAIM.axis, format=",.0f"),
    alt.Tooltip("received:Q", title=_CAME.axis, format=",.0f"),
    alt.Tooltip("printed:Q", title=f"{_PRINTED.axis}, printed", format=",.2f"),
]


@chart(question=_TITLE, evidence=True)
def tokens_by_concurrency(judgement: Judgement) -> Picture:
    """Each row is a level: the pale bar is what the client claims, the blue bar inside it is what came back as text.

    A healthy level fills its pale bar. Where the blue bar is short or absent, the throughput printed at the right
    counts tokens that nobody received; it is then marked "claimed, not measured".
    """
    runs = _runs(judgement)
    if runs["claimed"].is_null().all() and runs["received"].is_null().all():
        lack = "No run states how many output tokens it claims or received."
        return in_words(lack, title=_TITLE, notes=[provenance(runs)])
    shown = titles(runs)[:_EXPERIMENTS]
    parts = [runs.filter(pl.col("title") == title).head(_LEVELS) for title in shown]
    panels = [_panel(part, title, last=title == shown[-1]) for part, title in zip(parts, shown, strict=True)]
    left_out = runs.height - sum(part.height for part in parts)
    key = f"Pale: {_CLAIM.title.lower()}. Blue: {_CAME.title.lower()}, the text that came back."
    notes = [provenance(runs), key, f"{plural(left_out, 'run')} more than fit here." if left_out else ""]
    return picture(panels, title=_TITLE, notes=notes, description=_described(runs))


def _runs(judgement: Judgement) -> pl.DataFrame:
    """One row a run: claimed, received and printed numbers, the words beside them, and a name for its row."""
    numbers = judgement.facts.select(
        "run_id",
        finite(_CLAIM.name).round(0).alias("claimed"),
        finite("received_tok").round(0).alias("received"),
        finite(_PRINTED.name).round(2).alias("printed"),
    )
    runs = named(judgement.verdicts).join(numbers, on="run_id", how="left", maintain_order="left")
    again = pl.format("{}, run {}", "level", pl.int_range(pl.len()).over("title", "level") + 1)
    row = pl.when(pl.len().over("title", "level") > 1).then(again).otherwise("level")
    runs = with_taken(runs, judgement, _PRINTED.name).with_columns(row.alias("row"), pl.col("taken").alias("refused"))
    return runs.with_columns(_words(runs))


def _words(runs: pl.DataFrame) -> pl.Series:
    """What stands beside the bars: how much came back, and what the tool printed of it."""
    columns = runs.select("claimed", "received", "printed", "refused")
    return pl.Series("words", [_beside(*row) for row in columns.iter_rows()], dtype=pl.String)


def _beside(claimed: float | None, received: float | None, printed: float | None, refusal: bool) -> str:
    if claimed is None and received is None and printed is None:
        return f"nothing printed\n{NO_RESULT if refusal else ''}"
    of = "an unknown number of" if claimed is None else f"{claimed:,.0f}"
    uncounted = "no token counts" if claimed is None else f"{of} tok claimed, text not counted"
    count = uncounted if received is None else f"{received:,.0f} of {of} tok came back"
    said = "no throughput printed" if printed is None else f"printed: {printed:,.2f} tok/s"
    return f"{count}\n{said}{f', {CLAIMED}' if refusal and printed is not None else ''}"


def _panel(runs: pl.DataFrame, title: str, *, last: bool) -> alt.LayerChart:
    rows = runs.select("row", "level", "verdict", "claimed", "received", "printed", "words", "refused")
    side = {"minExtent": _NAME_PX, "maxExtent": _NAME_PX, "labelLimit": _NAME_PX - 8, "labelPadding": 7}
    two_lines = "split(replace(datum.label, ' (', '\\n('), '\\n')"
    names = alt.Axis(title=None, labelExpr=two_lines, ticks=False, domain=False, **side)  # type: ignore[arg-type]
    base = alt.Chart(rows).encode(y=alt.Y("row:N", sort=rows["row"].to_list(), axis=names), tooltip=_TOLD)
    most = greatest(rows["claimed"], rows["received"])
    scale = alt.Scale(domain=[0, most or 1.0], nice=False)
    shown = most > 0  # no numbers, no axis
    title_of = "Output tokens (tok)" if last else None
    across = alt.Axis(title=title_of, tickCount=4, grid=False, format=",~f", labels=shown, ticks=shown)
    edge = alt.condition("datum.refused", alt.value(REFUSED), alt.value(AXIS))
    pale = alt.condition("datum.refused", alt.value(REFUSED_FILL), alt.value(CLAIMED_FILL))
    claimed = base.mark_bar(strokeWidth=0.8, height=22).encode(
        x=alt.X("claimed:Q", scale=scale, axis=across), fill=pale, stroke=edge
    )
    received = base.mark_bar(color=RECEIVED, height=10).encode(x=alt.X("received:Q", scale=scale, axis=across))
    ink = alt.condition("datum.refused", alt.value(REFUSED), alt.value(INK))
    said = base.mark_text(align="left", lineBreak="\n", lineHeight=13, dy=-6, baseline="middle")
    words = said.encode(x=alt.value(_BARS_PX + 14), text="words:N", color=ink)
    layers = layered(claimed, received, words, width=_BARS_PX, height=_ROW_PX * rows.height)
    layers.title = heading(title)
    return layers


def _described(runs: pl.DataFrame) -> str:
    both = runs.filter(pl.col("claimed").is_not_null(), pl.col("received").is_not_null())
    short = both.filter(pl.col("received") < pl.col("claimed"))
    came = f"{both['received'].sum():,.0f} of {both['claimed'].sum():,.0f} claimed output tokens came back"
    levels = level_order(short)
    where = f" Less than claimed came back at {listed(levels[:6])}." if levels else ""
    many = "run that states" if both.height == 1 else "runs that state"
    return f"{came} in {both.height} {many} both.{where} {refused(runs)}."
