"""Load points as rows of a chart: their order, the names of their experiments, and the gaps that they leave."""

import textwrap
from collections.abc import Sequence

import altair as alt
import polars as pl

from pdkit.charts.theme import PLOT_PX, QUIET, REFUSED
from pdkit.results import NO_RESULT, UNVERIFIED
from pdkit.units import plural

ROWS = 2_000  # of one chart: each costs some 200 bytes in the page
_GAP_LINES = 14  # of the strip that names gaps; the section "No measured result" lists every one
_GAP_CHARS = 92


def named(runs: pl.DataFrame) -> pl.DataFrame:
    """Runs in the order of their levels, with `title` (what the page calls the experiment) and `rank` (of the level)."""
    cap, rate = pl.col("concurrency"), pl.col("request_rate_per_s")
    place = pl.struct(cap.is_null().alias("unknown"), cap.fill_null(float("inf")), rate.fill_null(float("inf")))
    stated = pl.col("level").fill_null("level not stated")
    label = pl.coalesce("label", "experiment", pl.lit("experiment not named"))
    shared = pl.col("experiment").n_unique().over(label) > 1
    title = pl.when(shared).then(pl.format("{} ({})", label, pl.col("experiment").fill_null("?"))).otherwise(label)
    rank = place.rank("dense").cast(pl.Int64)
    return runs.with_columns(
        stated.alias("level"), title.alias("title"), rank.alias("rank"), pl.col("verdict").cast(pl.String)
    ).sort("title", "rank", "run_id")


def level_order(runs: pl.DataFrame) -> list[str]:
    """The levels from low to high, each once."""
    return runs.sort("rank", "level")["level"].unique(maintain_order=True).to_list()


def titles(runs: pl.DataFrame) -> list[str]:
    """The experiments in the order of the page."""
    return runs["title"].unique(maintain_order=True).to_list()


def provenance(runs: pl.DataFrame) -> str:
    """Whether the data was made, not recorded."""
    made = int(runs["synthetic"].fill_null(False).sum())
    return (
        ""
        if made == 0
        else "synthetic data"
        if made == runs.height
        else f"synthetic data: {made} of {plural(runs.height, 'run')}"
    )


def refused(runs: pl.DataFrame) -> str:
    """How many runs have no measured result, as the beginning of a sentence."""
    count = runs.filter(pl.col("verdict") == NO_RESULT).height
    have = "has" if count == 1 else "have"
    return (
        f"{count} of {plural(runs.height, 'run')} {have} no measured result"
        if count
        else f"None of {plural(runs.height, 'run')} was refused"
    )


def in_segments(rows: pl.DataFrame, *, holds: pl.Expr, by: Sequence[str]) -> pl.DataFrame:
    """The rows that hold a number, with `segment`: a line is drawn within one, and breaks where a row holds none."""
    broken = rows.with_columns((~holds).cum_sum().over(by).alias("segment"), holds.alias("held"))
    return broken.filter("held").drop("held")


def gap_sentences(gaps: pl.DataFrame) -> list[str]:
    """`Split server: 16 users, 32 users: no measured result`, one an experiment and reason."""
    why = (
        pl.when(pl.col("verdict") == NO_RESULT).then(pl.lit("no measured result"))
        .when(pl.col("verdict") == UNVERIFIED).then(pl.lit("unverified, and a number is missing"))
        .otherwise(pl.lit("a number is missing or was taken by a rule"))
    )  # fmt: skip
    several = gaps["title"].n_unique() > 1
    grouped = (
        gaps.with_columns(why.alias("why"))
        .group_by("title", "why", maintain_order=True)
        .agg(pl.col("level").unique(maintain_order=True))
    )
    return [
        f"{', '.join(levels)}: {reason}{f' ({title})' if several else ''}"
        for title, reason, levels in grouped.iter_rows()
    ]


def gap_strip(gaps: pl.DataFrame) -> list[alt.Chart]:
    """A strip below the plot that names the levels without a point; nothing where there are none."""
    every = [
        line
        for sentence in gap_sentences(gaps)
        for line in textwrap.wrap(f"✕ {sentence}", _GAP_CHARS, subsequent_indent="   ")
    ]
    left_out = len(every) - _GAP_LINES
    lines = [*every[: _GAP_LINES - 1], f"and {left_out + 1} more lines like these"] if left_out > 0 else every
    if not lines:
        return []
    rows = [{"line": index, "text": text, "refused": "no measured result" in text} for index, text in enumerate(lines)]
    strip = alt.Chart(alt.Data(values=rows)).mark_text(align="left", baseline="middle", fontSize=12).encode(
        x=alt.value(0), y=alt.Y("line:O", axis=None), text="text:N",
        color=alt.condition("datum.refused", alt.value(REFUSED), alt.value(QUIET)),
    )  # fmt: skip
    return [strip.properties(width=PLOT_PX, height=17 * len(lines))]
