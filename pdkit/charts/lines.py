"""What the charts of results share: latencies that may be published, a line an experiment, labels that keep apart."""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import NamedTuple

import altair as alt
import polars as pl

from pdkit.charts.levels import titles
from pdkit.charts.theme import EXPERIMENT_COLOURS, PLOT_PX, QUIET, VERDICT_SHAPES, rimmed
from pdkit.metrics import CLOCKS, METRICS
from pdkit.results import NO_RESULT, UNVERIFIED, Published
from pdkit.units import listed

HEADROOM = 1.14  # above the highest point, for its label
_ONE_COLOUR = "#475569"  # of all lines where there are more experiments than colours that can be told apart
_CHAR_PX, _LINE_PX, _POINT_PX = 6.1, 13, 6  # a character at 11 px, a line of them, half a point
_LABELLED = 120  # points of a panel; beyond this no label finds room, and looking for it takes long


class Side(NamedTuple):
    """Where the words of a point stand: to which side, and how far up."""

    align: str
    dx: float
    dy: float


_SIDES = (Side("left", 7, -9), Side("right", -7, -9), Side("left", 7, 10), Side("right", -7, 10))


def finite(fact: str) -> pl.Expr:
    """The fact where it is a number; infinity has no place on an axis."""
    return pl.when(pl.col(fact).is_finite()).then(pl.col(fact))


def believed(fact: str) -> pl.Expr:
    """The fact of runs that were not refused: a second lock, since refusals took their numbers already."""
    return pl.when(pl.col("verdict").cast(pl.String) != NO_RESULT).then(finite(fact))


def latencies(published: Published, clocks: Sequence[str]) -> pl.DataFrame:
    """One row a run and clock: `ms`, and its `statistic`: the median, or the mean where no median may be printed."""
    facts = [f"{clock}_{statistic}" for clock in clocks for statistic in ("median", "mean")]
    wide = published.wide(*facts).select("run_id", *(believed(fact).alias(fact) for fact in facts))
    return pl.concat(
        wide.select(
            "run_id",
            pl.lit(clock).alias("clock"),
            pl.coalesce(f"{clock}_median", f"{clock}_mean").alias("ms"),
            pl.when(pl.col(f"{clock}_median").is_not_null()).then(pl.lit("median")).otherwise(pl.lit("mean")).alias("statistic"),
        )
        for clock in clocks
    )  # fmt: skip


def axis_title(clock: str, rows: pl.DataFrame) -> str:
    """`Median TTFT (ms)`, or what else the rows show."""
    shown = set(rows["statistic"])
    if len(shown) == 1:
        return METRICS[f"{clock}_{shown.pop()}"].axis
    return f"{CLOCKS[clock][0]} ({METRICS[f'{clock}_mean'].unit})"


def which_statistic(points: pl.DataFrame) -> str:
    """A sentence on points that show a mean where others show a median."""
    means = points.filter(pl.col("statistic") == "mean")["level"].unique(maintain_order=True).to_list()
    if not means:
        return ""
    why = "too few requests for a median, or none was printed"
    if "median" not in points["statistic"]:
        return f"Means: {why}."
    where = listed(means) if len(means) <= 4 else f"{len(means)} levels"
    return f"Medians; means where labelled so, at {where}: {why}."


def not_shown(clocks: Sequence[str], points: pl.DataFrame) -> str:
    """A sentence on the clocks of which nothing may be published."""
    unseen = [CLOCKS[clock][0] for clock in clocks if clock not in points["clock"]]
    return f"No {listed(unseen)} that may be published." if unseen else ""


def experiment_colour(points: pl.DataFrame) -> tuple[alt.Color, str]:
    """One colour an experiment, and a sentence where there are more of them than colours."""
    names = titles(points)
    if len(names) > len(EXPERIMENT_COLOURS):
        scale = alt.Scale(domain=names, range=[_ONE_COLOUR])
        many = f"{len(names)} experiments are too many for a colour each; hover over a point for its name."
        return alt.Color("title:N", scale=scale, legend=None), many
    scale = alt.Scale(domain=names, range=list(EXPERIMENT_COLOURS[: len(names)]))
    legend = alt.Legend(title=None, columns=1, symbolType="circle") if len(names) > 1 else None
    return alt.Color("title:N", scale=scale, legend=legend), ""


def line(base: alt.Chart, colour: alt.Color) -> alt.Chart:
    """One line an experiment, in the order of levels, broken where a level has no number."""
    return base.mark_line(strokeWidth=1.8, opacity=0.55).encode(color=colour, order="rank:Q", detail="segment:N")


def marks(base: alt.Chart, *, verdicts: Sequence[str], colour: alt.Color) -> list[alt.Chart]:
    """Points whose shape is the verdict; those of unverified runs are hollow."""
    shown = [verdict for verdict in VERDICT_SHAPES if verdict in verdicts and verdict != NO_RESULT]
    scale = alt.Scale(domain=shown, range=[VERDICT_SHAPES[verdict] for verdict in shown])
    legend = alt.Legend(title=None, symbolFillColor=QUIET, symbolStrokeColor=QUIET)
    placed = base.encode(color=colour, shape=alt.Shape("verdict:N", scale=scale, legend=legend))
    hollow = f"datum.verdict === '{UNVERIFIED}'"
    return [
        placed.transform_filter(f"!({hollow})").mark_point(size=75, filled=True, opacity=1),
        placed.transform_filter(hollow).mark_point(size=65, filled=False, fill="white", strokeWidth=1.8, opacity=1),
    ]


def labels(points: pl.DataFrame, *, x: alt.X, y: alt.Y, width: float = PLOT_PX, height: float) -> list[alt.Chart]:
    """Words beside points, where they cover no other words and no point; the rest go without.

    `points` has `across` and `up` (0 to 1, where on the plot), `text`, and the fields of x and y.
    """
    if points.height > _LABELLED:
        return []
    size = (width, height)
    sides = _placed(
        [(row["across"] * width, row["up"] * height, row["text"]) for row in points.iter_rows(named=True)], size
    )
    found = []
    for side in _SIDES:
        rows = points.filter(pl.Series([chosen == side for chosen in sides], dtype=pl.Boolean))
        if rows.height:
            text = alt.Chart(rows.drop("across", "up")).encode(x=x, y=y, text="text:N")
            found.append(rimmed(text, color=QUIET, align=side.align, dx=side.dx, dy=side.dy))
    return list(chain.from_iterable(found))


Box = tuple[float, float, float, float]  # left, bottom, right, top


def _placed(points: list[tuple[float, float, str]], size: tuple[float, float]) -> list[Side | None]:
    """For each point the first side that is free, the ends of the list first: they bound a line."""
    taken: list[Box] = [(x - _POINT_PX, y - _POINT_PX, x + _POINT_PX, y + _POINT_PX) for x, y, _ in points]
    chosen: list[Side | None] = [None] * len(points)
    for index in sorted(range(len(points)), key=lambda i: (i not in (0, len(points) - 1), i)):
        for side in _SIDES:
            box = _box(*points[index], side)
            if _inside(box, size) and not any(_overlap(box, other) for other in taken):
                chosen[index] = side
                taken.append(box)
                break
    return chosen


def _box(x: float, y: float, text: str, side: Side) -> Box:
    width = len(text) * _CHAR_PX
    left = x + side.dx - (width if side.align == "right" else 0)
    middle = y - side.dy  # up is up here, and down in a picture
    return left, middle - _LINE_PX / 2, left + width, middle + _LINE_PX / 2


def _inside(box: Box, size: tuple[float, float]) -> bool:
    return box[0] >= 0 and box[1] >= 0 and box[2] <= size[0] + 20 and box[3] <= size[1] + _LINE_PX


def _overlap(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def onto(points: pl.DataFrame, **tops: float) -> pl.DataFrame:
    """With `across` and `up`: where each point lies on a plot whose axes go from 0 to the given ends."""
    (x, most_x), (y, most_y) = tops.items()
    return points.with_columns((pl.col(x) / most_x).alias("across"), (pl.col(y) / most_y).alias("up"))


def told(*columns: str, titles_of: Mapping[str, str]) -> list[alt.Tooltip]:
    """What a point says when it is pointed at: its experiment, level and verdict, then the given numbers."""
    who = [("title", "Experiment"), ("level", "Level"), ("verdict", "Verdict")]
    said = [
        alt.Tooltip(f"{name}:N", title=title) for name, title in (*who, *((name, titles_of[name]) for name in columns))
    ]
    return [
        *said,
        *(
            alt.Tooltip(f"{name}:Q", title=title, format=",.2f")
            for name, title in titles_of.items()
            if name not in columns
        ),
    ]
