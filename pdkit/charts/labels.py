"""Words beside points, where there is room for them."""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final, Literal, NamedTuple

import altair as alt
import polars as pl

from pdkit.charts.theme import QUIET, rimmed

HEADROOM: Final = 1.14  # of an axis above the highest point, for its label
_CHAR_PX, _LINE_PX, _POINT_PX = 6.1, 13, 6  # a character at 11 px, a line of them, half a point
_MOST = 120  # points of a panel; beyond this no label finds room, and looking for it takes long

Box = tuple[float, float, float, float]  # left, bottom, right, top


class Side(NamedTuple):
    """Where the words of a point stand: to which side, and how far from it."""

    align: Literal["left", "right"]
    dx: float
    dy: float


CORNERS: Final = (Side("left", 7, -9), Side("right", -7, -9), Side("left", 7, 10), Side("right", -7, 10))
BESIDE: Final = (
    Side("left", 11, 0),
    Side("right", -11, 0),
    Side("left", 4, -14),
    Side("left", 7, 12),
    Side("right", -7, 12),
)


class Plot(NamedTuple):
    """Where points lie: the channels that place them, and the size of the panel."""

    x: alt.X
    y: alt.Y
    width: float
    height: float


def onto(points: pl.DataFrame, **tops: float) -> pl.DataFrame:
    """With `across` and `up`: where each point lies on a plot whose axes go from 0 to the given ends."""
    (x, most_x), (y, most_y) = tops.items()
    return points.with_columns((pl.col(x) / most_x).alias("across"), (pl.col(y) / most_y).alias("up"))


def labels(
    points: pl.DataFrame, plot: Plot, *, sides: Sequence[Side] = CORNERS, color: str = QUIET
) -> Iterator[alt.Chart]:
    """The `text` of points where it covers no other words and no point; the rest go without, and say it on hover.

    `points` has `across` and `up` (0 to 1, where on the plot) and the fields that place it; a null text is a point
    that has no words and must not be covered either.
    """
    apart = points.unique(["across", "up", "text"], keep="first", maintain_order=True)
    if apart.height > _MOST:
        return iter(())
    chosen = _chosen(apart, plot, sides)
    return chain.from_iterable(_drawn(apart, side, chosen, plot, color) for side in sides if side in chosen)


def _drawn(
    points: pl.DataFrame, side: Side, chosen: list[Side | None], plot: Plot, color: str
) -> tuple[alt.Chart, alt.Chart]:
    rows = points.filter(pl.Series([other == side for other in chosen], dtype=pl.Boolean)).drop("across", "up")
    text = alt.Chart(rows).encode(x=plot.x, y=plot.y, text="text:N")
    return rimmed(text, color=color, align=side.align, dx=side.dx, dy=side.dy)


def _chosen(points: pl.DataFrame, plot: Plot, sides: Sequence[Side]) -> list[Side | None]:
    """For each point the first side that is free; the ends of the list come first, since they bound a line."""
    places = [(across * plot.width, up * plot.height) for across, up in points.select("across", "up").iter_rows()]
    taken: list[Box] = [(x - _POINT_PX, y - _POINT_PX, x + _POINT_PX, y + _POINT_PX) for x, y in places]
    chosen: list[Side | None] = [None] * len(places)
    ends = (0, len(places) - 1)
    for index in sorted(range(len(places)), key=lambda i: i not in ends):
        text = points["text"][index]
        free = (side for side in sides if text and _is_free(_box(*places[index], text, side), taken, plot))
        chosen[index] = side = next(free, None)
        if side:
            taken.append(_box(*places[index], text, side))
    return chosen


def _box(x: float, y: float, text: str, side: Side) -> Box:
    width = len(text) * _CHAR_PX
    left = x + side.dx - (width if side.align == "right" else 0)
    middle = y - side.dy  # up is up here, and down in a picture
    return left, middle - _LINE_PX / 2, left + width, middle + _LINE_PX / 2


def _is_free(box: Box, taken: list[Box], plot: Plot) -> bool:
    left, bottom, right, top = box
    inside = left >= 0 and bottom >= 0 and right <= plot.width + 16 and top <= plot.height + _LINE_PX
    return inside and not any(left < r and lf < right and bottom < t and b < top for lf, b, r, t in taken)
