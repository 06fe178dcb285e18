"""What the charts of results share: latencies that may be published, a line an experiment, labels that keep apart."""

from collections.abc import Iterator, Mapping, Sequence

import altair as alt
import polars as pl

from pdkit.charts.levels import titles
from pdkit.charts.theme import EXPERIMENT_COLOURS, PLOT_PX, QUIET, VERDICT_SHAPES
from pdkit.metrics import CLOCKS, METRICS
from pdkit.results import NO_RESULT, UNVERIFIED, Published
from pdkit.units import listed

_ONE_COLOUR = "#64748b"  # of all lines where there are more experiments than colours that can be told apart
_LABEL_PX, _LABEL_LINE_PX = 66, 13
HEADROOM = 1.12  # above the highest point, for its label


def finite(fact: str) -> pl.Expr:
    """The fact where it is a number; infinity has no place on an axis."""
    return pl.when(pl.col(fact).is_finite()).then(pl.col(fact))


def latencies(published: Published, clocks: Sequence[str]) -> pl.DataFrame:
    """One row a run and clock: `ms`, and of which `statistic`: the median, or the mean where no median may be printed."""
    facts = [f"{clock}_{statistic}" for clock in clocks for statistic in ("median", "mean")]
    wide = published.wide(*facts).select(
        "run_id", pl.col("verdict").cast(pl.String), *(finite(fact).alias(fact) for fact in facts)
    )
    believed = wide.filter(pl.col("verdict") != NO_RESULT)  # a second lock: their numbers were taken already
    each = [
        believed.select(
            "run_id", pl.lit(clock).alias("clock"), pl.coalesce(f"{clock}_median", f"{clock}_mean").alias("ms"),
            pl.when(pl.col(f"{clock}_median").is_not_null()).then(pl.lit("median")).otherwise(pl.lit("mean")).alias("statistic"),
        )
        for clock in clocks
    ]  # fmt: skip
    return pl.concat(each)


def axis_title(clock: str, rows: pl.DataFrame) -> str:
    """`Median TTFT (ms)`, or what else the rows show."""
    shown = set(rows.filter(pl.col("ms").is_not_null())["statistic"])
    if len(shown) == 1:
        return METRICS[f"{clock}_{shown.pop()}"].axis
    return f"{CLOCKS[clock][0]} ({METRICS[f'{clock}_mean'].unit})"


def which_statistic(rows: pl.DataFrame) -> str:
    """A sentence on points that show a mean where others show a median."""
    means = rows.filter(pl.col("ms").is_not_null(), pl.col("statistic") == "mean")
    levels = means["level"].unique(maintain_order=True).to_list()
    if not levels:
        return ""
    where = f"at {listed(levels)}" if len(levels) <= 4 else f"at {len(levels)} levels"
    return f"Medians; {where} some are means, marked “mean”: too few requests for a median, or none was printed."


def experiment_colour(runs: pl.DataFrame) -> tuple[alt.Color, str]:
    """One colour an experiment, and a sentence where there are more of them than colours."""
    names = titles(runs)
    if len(names) > len(EXPERIMENT_COLOURS):
        scale = alt.Scale(domain=names, range=[_ONE_COLOUR])
        return alt.Color(
            "title:N", scale=scale, legend=None
        ), f"{len(names)} experiments are too many for a colour each: point at a mark for its name."
    scale = alt.Scale(domain=names, range=list(EXPERIMENT_COLOURS[: len(names)]))
    legend = alt.Legend(title=None, columns=1, symbolType="circle", symbolFillColor=None) if len(names) > 1 else None
    return alt.Color("title:N", scale=scale, legend=legend), ""


def marks(base: alt.Chart, *, verdicts: Sequence[str], colour: alt.Color) -> list[alt.Chart]:
    """Points whose shape is the verdict; those of unverified runs are hollow."""
    shown = [verdict for verdict in VERDICT_SHAPES if verdict in verdicts and verdict != NO_RESULT]
    scale = alt.Scale(domain=shown, range=[VERDICT_SHAPES[verdict] for verdict in shown])
    shape = alt.Shape("verdict:N", scale=scale, legend=alt.Legend(title=None, symbolStrokeColor=QUIET))
    hollow = f"datum.verdict === '{UNVERIFIED}'"
    placed = base.encode(color=colour, shape=shape)
    return [
        placed.transform_filter(f"!({hollow})").mark_point(size=75, filled=True, opacity=1),
        placed.transform_filter(hollow).mark_point(size=65, filled=False, fill="white", strokeWidth=1.6, opacity=1),
    ]


def apart(
    points: pl.DataFrame, *, tops: Mapping[str, float], width: int = PLOT_PX, height: int
) -> Iterator[dict[str, object]]:
    """The points whose label, `text`, covers no other label; the rest go without."""
    (x, most_x), (y, most_y) = tops.items()
    taken: list[tuple[float, float]] = []
    for row in points.iter_rows(named=True):
        across, up = row[x] / most_x * width, row[y] / most_y * height
        if not any(
            abs(across - other_x) < _LABEL_PX and abs(up - other_y) < _LABEL_LINE_PX for other_x, other_y in taken
        ):
            taken.append((across, up))
            yield {x: row[x], y: row[y], "text": row["text"], "side": "left" if across > width - _LABEL_PX else "right"}


def labels(values: list[dict[str, object]], *, x: alt.X, y: alt.Y) -> list[alt.Chart]:
    """Words above and beside points, on whichever side there is room, with a white rim that lines do not cross."""
    found = []
    for side, align, shift in (("right", "left", 6), ("left", "right", -6)):
        chosen = [value for value in values if value["side"] == side]
        if chosen:
            text = alt.Chart(alt.Data(values=chosen)).encode(x=x, y=y, text="text:N")
            look = {"align": align, "dx": shift, "dy": -9}
            found += [
                text.mark_text(**look, stroke="white", strokeWidth=3, strokeJoin="round"),
                text.mark_text(**look, color=QUIET),
            ]  # type: ignore[arg-type]
    return found
