"""Claimed against received tokens, level by level."""

import altair as alt
import polars as pl

from pdkit.charts.levels import level_order, named, provenance, refused, titles
from pdkit.charts.theme import CLAIMED_FILL, INK, QUIET, RECEIVED, REFUSED, Panel, Picture, in_words, picture
from pdkit.metrics import METRICS
from pdkit.parts import chart
from pdkit.results import CLAIMED, NO_RESULT, Judgement
from pdkit.units import plural

_TITLE = "How much of the claimed text came back, level by level?"
_CLAIM, _CAME, _PRINTED = (
    METRICS["output_tok_sum"],
    METRICS["retokenized_tok_sum"],
    METRICS["output_throughput_tok_per_s"],
)
_BARS_PX, _WORDS_PX, _ROW_PX = 290, 225, 34
_PANELS, _ROWS = 24, 60  # a figure longer than this is a table; what is left out is counted


@chart(question=_TITLE, evidence=True)
def tokens_by_concurrency(judgement: Judgement) -> Picture:
    """Each row is a level: the pale bar is what the client claims, the blue bar inside it is what came back as text.

    A healthy level fills its pale bar. Where the blue bar is short or absent, the throughput printed at the right counts
    tokens that nobody received; it is then marked "claimed, not measured".
    """
    runs = _runs(judgement)
    notes = [provenance(runs), f"Pale: {_CLAIM.title.lower()}. Blue: {_CAME.title.lower()}, the text that came back."]
    if runs["claimed"].drop_nulls().is_empty() and runs["received"].drop_nulls().is_empty():
        return in_words("No run states how many output tokens it claims or received.", title=_TITLE, notes=notes[:1])
    drawn = titles(runs)[:_PANELS]
    panels = [_panel(runs.filter(pl.col("title") == title).head(_ROWS), title) for title in drawn]
    left_out = runs.height - sum(min(_ROWS, runs.filter(pl.col("title") == title).height) for title in drawn)
    notes.append(f"{plural(left_out, 'run')} more than fit here." if left_out else "")
    return picture(panels, title=_TITLE, notes=notes, description=_described(runs))


def _runs(judgement: Judgement) -> pl.DataFrame:
    facts = judgement.facts
    numbers = facts.select(
        "run_id",
        _whole(_CLAIM.name).alias("claimed"),
        _whole("received_tok").alias("received"),
        _finite(_PRINTED.name).round(2).alias("printed"),
    )
    runs = named(judgement.verdicts).join(numbers, on="run_id", how="left", maintain_order="left")
    repeat = pl.int_range(pl.len()).over("title", "level") + 1
    again = (
        pl.when(pl.len().over("title", "level") > 1).then(pl.format("{} (run {})", "level", repeat)).otherwise("level")
    )
    return runs.with_columns(again.alias("row")).with_columns(
        _words().alias("words"), (pl.col("verdict") == NO_RESULT).alias("refused")
    )


def _finite(name: str) -> pl.Expr:
    return pl.when(pl.col(name).is_finite()).then(pl.col(name))


def _whole(name: str) -> pl.Expr:
    return _finite(name).round(0)


def _words() -> pl.Expr:
    """What stands beside the bars: how much came back, and what the tool printed of it."""
    claimed, received, printed = (pl.col(name) for name in ("claimed", "received", "printed"))
    count = (
        pl.when(received.is_null())
        .then(pl.lit("text not counted"))
        .otherwise(pl.format("{} of {} tok came back", _grouped(received), _grouped(claimed)))
    )
    said = (
        pl.when(printed.is_null())
        .then(pl.lit("no throughput printed"))
        .otherwise(pl.format("printed: {} tok/s", _grouped(printed)))
    )
    mark = (
        pl.when((pl.col("verdict") == NO_RESULT) & printed.is_not_null())
        .then(pl.lit(f", {CLAIMED}"))
        .otherwise(pl.lit(""))
    )
    nothing = claimed.is_null() & received.is_null()
    return (
        pl.when(nothing & printed.is_null())
        .then(pl.lit("no number printed"))
        .otherwise(pl.concat_str(count, pl.lit("\n"), said, mark))
    )


def _grouped(number: pl.Expr) -> pl.Expr:
    return number.map_elements(lambda value: f"{value:,.10g}", return_dtype=pl.String).fill_null("an unknown number")


def _panel(runs: pl.DataFrame, title: str) -> Panel:
    rows = runs.select("row", "level", "verdict", "claimed", "received", "printed", "words", "refused")
    base = alt.Chart(rows).encode(
        y=alt.Y(
            "row:N",
            sort=rows["row"].to_list(),
            axis=alt.Axis(title=None, ticks=False, minExtent=95, labelLimit=110, domain=False),
        ),
        tooltip=_TOLD,
    )
    top = max(rows["claimed"].max() or 0, rows["received"].max() or 0) or 1  # type: ignore[operator]
    x = alt.Scale(domain=[0, top], nice=False)
    axis = alt.Axis(title="Output tokens (tok)", tickCount=4, grid=False)
    claimed = base.mark_bar(color=CLAIMED_FILL, stroke=REFUSED, strokeWidth=0.7, height=22).encode(
        x=alt.X("claimed:Q", scale=x, axis=axis)
    )
    received = base.mark_bar(color=RECEIVED, height=10).encode(x=alt.X("received:Q", scale=x, axis=axis))
    words = base.mark_text(align="left", lineBreak="\n", lineHeight=13, dy=-6).encode(
        x=alt.value(_BARS_PX + 12),
        text="words:N",
        color=alt.condition("datum.refused", alt.value(REFUSED), alt.value(INK)),
    )
    heading = alt.TitleParams(text=title, fontSize=12, color=QUIET, limit=600, offset=4, frame="bounds")
    return alt.layer(claimed, received, words).properties(width=_BARS_PX, height=_ROW_PX * rows.height, title=heading)


_TOLD = [
    alt.Tooltip("level:N", title="Level"), alt.Tooltip("verdict:N", title="Verdict"), alt.Tooltip("claimed:Q", title="Claimed (tok)", format=","),
    alt.Tooltip("received:Q", title="Received (tok)", format=","), alt.Tooltip("printed:Q", title="Printed (tok/s)", format=",.2f"),
]  # fmt: skip


def _described(runs: pl.DataFrame) -> str:
    both = runs.filter(pl.col("claimed").is_not_null(), pl.col("received").is_not_null())
    short = both.filter(pl.col("received") < pl.col("claimed"))
    levels = ", ".join(level_order(short)[:6])
    missing = f" In {plural(short.height, 'run')} less came back than was claimed ({levels})." if short.height else ""
    total = f"{both['received'].sum():,.0f} of {both['claimed'].sum():,.0f} claimed output tokens came back in {plural(both.height, 'run')} that state both"
    return f"{refused(runs)}. {total}.{missing}"
