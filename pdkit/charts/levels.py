"""Load points as rows of a chart: their order, the names of their experiments, and the gaps that they leave."""

import textwrap
from collections.abc import Sequence

import altair as alt
import polars as pl

from pdkit.charts.theme import CROSS, PLOT_PX, QUIET, REFUSED, layered
from pdkit.results import FEW, NO_RESULT, UNVERIFIED, Judgement
from pdkit.units import plural

ROWS = 2_000  # of one chart: each costs some 200 bytes in the page
_GAP_LINES = 14  # of the strip that names gaps; the section "No measured result" lists every one
_GAP_CHARS = 88


def named(runs: pl.DataFrame) -> pl.DataFrame:
    """Runs in the order of experiments and levels, with `title` (of the experiment) and `rank` (of the level)."""
    cap, rate = pl.col("concurrency"), pl.col("request_rate_per_s")
    unknown = pl.col("concurrency").is_null().alias("unknown")
    place = pl.struct(unknown, cap.fill_null(float("inf")), rate.fill_null(float("inf")))
    label = pl.coalesce("label", "experiment", pl.lit("experiment not named"))
    shared = pl.col("experiment").n_unique().over(label) > 1
    full = pl.format("{} ({})", label, pl.col("experiment").fill_null("?"))
    return runs.with_columns(
        pl.col("level").fill_null("level not stated"),
        pl.col("verdict").cast(pl.String),
        pl.when(shared).then(full).otherwise(label).alias("title"),
        place.rank("dense").cast(pl.Int64).alias("rank"),
    ).sort("experiment", "rank", "run_id", nulls_last=True)


def with_taken(runs: pl.DataFrame, judgement: Judgement, *facts: str) -> pl.DataFrame:
    """With `taken`: whether a rule took one of these facts, so that what evidence shows of it is merely claimed.

    Too few requests take nothing: they withhold a percentile, not what it is computed from.
    """
    voided = pl.col("voided_by").list.set_difference([FEW]).list.len() > 0
    lost = judgement.published.filter(pl.col("fact").is_in(facts), voided)["run_id"].unique()
    taken = (pl.col("verdict") == NO_RESULT) | pl.col("run_id").is_in(lost.implode())
    return runs.with_columns(taken.alias("taken"))


def fitting(runs: pl.DataFrame, *, rows_each: int) -> tuple[pl.DataFrame, str]:
    """As many runs as a chart can hold, and a sentence on those that are left out."""
    kept = runs.head(ROWS // rows_each)
    left_out = runs.height - kept.height
    return kept, f"The first {kept.height:,} of {plural(runs.height, 'run')} are drawn." if left_out else ""


def level_order(runs: pl.DataFrame) -> list[str]:
    """The levels from low to high, each once."""
    return runs.sort("rank", "level")["level"].unique(maintain_order=True).to_list()


def titles(runs: pl.DataFrame) -> list[str]:
    """The experiments in the order of the page."""
    return runs["title"].unique(maintain_order=True).to_list()


def greatest(*numbers: pl.Series) -> float:
    """The greatest of all; 0 where there is none."""
    return max((float(most) for series in numbers if isinstance(most := series.max(), int | float)), default=0.0)


def provenance(runs: pl.DataFrame) -> str:
    """Whether the data was made, not recorded."""
    made = runs.filter(pl.col("synthetic").fill_null(False)).height
    some = f"synthetic data: {made} of {plural(runs.height, 'run')}"
    return "" if made == 0 else "synthetic data" if made == runs.height else some


def refused(runs: pl.DataFrame) -> str:
    """How many runs have no measured result, as a sentence without its end."""
    count = runs.filter(pl.col("verdict") == NO_RESULT).height
    if runs.height <= 1:
        return (
            "There are no runs" if runs.is_empty() else f"The run {f'has {NO_RESULT}' if count else 'was not refused'}"
        )
    if count == 0:
        return f"None of {runs.height} runs was refused"
    return f"{count} of {runs.height} runs {'has' if count == 1 else 'have'} {NO_RESULT}"


def in_segments(rows: pl.DataFrame, *, holds: pl.Expr, by: Sequence[str]) -> pl.DataFrame:
    """The rows that hold a number, with `segment`: a line is drawn within one, and breaks where a row holds none."""
    return rows.with_columns((~holds).cum_sum().over(by).alias("segment")).filter(holds)


def gap_sentences(gaps: pl.DataFrame) -> pl.DataFrame:
    """One row an experiment and reason: `sentence` as `16 users, 32 users: no measured result`, and `refused`."""
    why = (
        pl.when(pl.col("verdict") == NO_RESULT).then(pl.lit(NO_RESULT))
        .when(pl.col("verdict") == UNVERIFIED).then(pl.lit("unverified, and a number that this needs is missing"))
        .otherwise(pl.lit("a number that this needs is missing, or a rule took it"))
    )  # fmt: skip
    by_reason = gaps.with_columns(why.alias("why")).group_by("title", "why", maintain_order=True)
    grouped = by_reason.agg(pl.col("level").unique(maintain_order=True).str.join(", "))
    name = pl.format(" — {}", "title") if gaps["title"].n_unique() > 1 else pl.lit("")
    if grouped.height > _GAP_LINES:  # experiments with the same gaps then share a line
        grouped = grouped.group_by("level", "why", maintain_order=True).agg(pl.col("title"))
        count = pl.col("title").list.len()
        name = (
            pl.when(count > 1)
            .then(pl.format(" — {} experiments", count))
            .otherwise(pl.format(" — {}", pl.col("title").list.first()))
        )
    sentence = pl.concat_str("level", pl.lit(": "), "why", name)
    return grouped.select(sentence.alias("sentence"), (pl.col("why") == NO_RESULT).alias("refused"))


def gaps_in_words(gaps: pl.DataFrame) -> str:
    """The first few gaps, to go into a sentence that stands for the whole chart."""
    every = gap_sentences(gaps)["sentence"].to_list()
    more = f"; and {len(every) - 5} more" if len(every) > 5 else ""
    return f" Missing: {'; '.join(every[:5])}{more}." if every else ""


def gap_strip(gaps: pl.DataFrame) -> list[alt.LayerChart]:
    """A strip below the plot that names the levels without a point; nothing where there are none."""
    every = [
        {"text": text, "refused": refusal, "first": index == 0}
        for sentence, refusal in gap_sentences(gaps).iter_rows()
        for index, text in enumerate(textwrap.wrap(sentence, _GAP_CHARS))
    ]
    if not every:
        return []
    left_out = len(every) - _GAP_LINES
    more = {"text": f"and {left_out + 1} more lines like these", "refused": False, "first": False}
    lines = [*every[: _GAP_LINES - 1], more] if left_out > 0 else every
    data = alt.InlineData(values=[{"line": index, **line} for index, line in enumerate(lines)])
    colour = alt.condition("datum.refused", alt.value(REFUSED), alt.value(QUIET))
    base = alt.Chart(data).encode(y=alt.Y("line:O", axis=None), color=colour)
    words = base.mark_text(align="left", baseline="middle", fontSize=12).encode(x=alt.value(14), text="text:N")
    crosses = base.transform_filter("datum.first").mark_point(shape=CROSS, filled=True, size=45, opacity=1)
    return [layered(words, crosses.encode(x=alt.value(4)), width=PLOT_PX, height=17 * len(lines))]
