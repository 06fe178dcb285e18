"""One small chart a series, week by week: points with the range of their runs, limits, marks, and gaps."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import altair as alt

from pdkit.charts.theme import (
    CROSS,
    INK,
    PAGE_PX,
    QUIET,
    RECEIVED,
    REFUSED,
    Panel,
    Picture,
    in_words,
    layered,
    picture,
)
from pdkit.metrics import METRICS
from pdkit.parts import chart
from pdkit.trend import Drawn, OverWeeks, Point
from pdkit.units import plural, show

_TITLE = "What moved, week by week?"
_WIDTH, _HEIGHT, _COLUMNS = 232, 96, 2
_ROOM, _FAR = 0.12, 3.0  # of the axis beyond the numbers; a target further off than so many spans is named, not drawn
_LEAST_SPAN = 0.1  # of the axis, as a share of the numbers: what moves by a hundredth shall not look as if it leapt
_LABELS = 5  # weeks that the axis names
_LINE_CHARS = 36  # of a series' name above its panel
_BAND, _GOAL, _NOTE = "#dbeafe", "#0f766e", "#86198f"
_SHAPES = {0: "circle", 1: "triangle-up", -1: "triangle-down"}
_TOLD = [
    alt.Tooltip("week:N", title="Week"),
    alt.Tooltip("value:Q", title="Mean of its runs", format=",.2f"),
    alt.Tooltip("low:Q", title="Lowest run", format=",.2f"),
    alt.Tooltip("high:Q", title="Highest run", format=",.2f"),
    alt.Tooltip("runs:Q", title="Runs"),
    alt.Tooltip("doubts:Q", title="With doubts"),
]
_KEY = (
    "Dots: means of a week's runs, bars: their range; hollow: with doubts; triangles: outside the limits (band). "
    "Crosses: runs without a measured result. Dashed: what changed, by letter; dotted: notes, by number."
)


@chart(question=_TITLE, weeks=True)
def series_over_weeks(trends: OverWeeks) -> Picture:
    """Each panel is a series: a dot is the mean of a week's runs, the bar through it their range.

    The band is where weeks lie if nothing changed: the mean of the baseline weeks ± 2.66 times their mean moving range.
    Triangles are outside of it; two of them in a row are an alarm, one is not. A week whose runs were refused is a
    cross at the foot and a gap in the line, and so is a week without a run, which has no cross. A line never leads
    over a change of configuration. Axes do not begin at 0: the question is what moved.
    """
    metric = METRICS[trends.metric]
    if not trends.series:
        return in_words("No series has a run in these weeks.", title=_TITLE)
    panels = [_panel(one, trends) for one in trends.series]
    rows: list[Panel] = [
        alt.HConcatChart(hconcat=panels[at : at + _COLUMNS], spacing=66, bounds="flush")
        for at in range(0, len(panels), _COLUMNS)
    ]
    made = "synthetic data" if trends.synthetic else ""
    more = f"{plural(trends.left_out, 'more series').replace('seriess', 'series')} without a chart, in the tables."
    notes = [made, f"{metric.axis}, each on its own axis.", _KEY, more if trends.left_out else ""]
    said = " ".join(_described(one) for one in trends.series)
    return picture(rows, title=f"{metric.title}, week by week", notes=notes, description=f"{metric.title}. {said}")


def _panel(one: Drawn, trends: OverWeeks) -> alt.LayerChart:
    place = {week: at for at, week in enumerate(trends.weeks)}
    x = _weeks_axis(trends.weeks)
    low, high = _domain(one)
    axis = _values_axis(has_numbers=any(point.value is not None for point in one.points))
    y = alt.Y("value:Q", scale=alt.Scale(domain=[low, high], nice=False, zero=False), axis=axis)
    layers = [*_behind(one, place, x, y, (low, high)), *_marks(one, trends, place, x), *_points(one, place, x, y, low)]
    panel = layered(*layers, width=_WIDTH, height=_HEIGHT)
    title = alt.TitleParams(
        text=_wrapped(one.label), subtitle=[_said(one, (low, high))], fontSize=11, color=INK, subtitleFontSize=11,
        subtitleColor=REFUSED if one.said.startswith(("slower", "not measured")) else QUIET, anchor="start", offset=6,
        frame="bounds", limit=PAGE_PX / 2 - 40,
    )  # fmt: skip
    return panel.properties(title=title)


def _said(one: Drawn, domain: tuple[float, float]) -> str:
    """What is called, and a target that lies beyond the axis."""
    if one.target is None or domain[0] <= one.target <= domain[1]:
        return one.said
    return f"{one.said}; target {show(one.target)}, beyond this axis"


def _wrapped(label: str) -> list[str]:
    """The name of a series on two lines at most."""
    lines = [""]
    for part in label.split(" · "):
        longer = f"{lines[-1]} · {part}" if lines[-1] else part
        if len(longer) > _LINE_CHARS and lines[-1]:
            lines.append(part)
        else:
            lines[-1] = longer
    return [*lines[:1], " · ".join(lines[1:])] if len(lines) > 1 else lines


def _weeks_axis(weeks: Sequence[str]) -> alt.X:
    step = max(1, -(-(len(weeks) - 1) // (_LABELS - 1)))
    shown = list(range(len(weeks) - 1, -1, -step))[::-1]
    names = "[" + ",".join(f"'{week[5:]}'" for week in weeks) + "][datum.value]"
    axis = alt.Axis(title=None, values=shown, labelExpr=names, grid=False, labelFontSize=10, labelFlush=False)
    return alt.X("at:Q", scale=alt.Scale(domain=[-0.6, len(weeks) - 0.4], nice=False, zero=False), axis=axis)


def _values_axis(*, has_numbers: bool) -> alt.Axis:
    return alt.Axis(
        title=None, tickCount=4, labelFontSize=10, minExtent=38, maxExtent=38, domain=False, ticks=False,
        labels=has_numbers, grid=has_numbers,
    )  # fmt: skip


def _domain(one: Drawn) -> tuple[float, float]:
    """From the lowest to the highest that is drawn; a target is drawn where it lies near."""
    numbers = [n for point in one.points for n in (point.low, point.high) if n is not None]
    if one.limits:
        numbers += [one.limits.low, one.limits.high]
    if not numbers:
        return 0.0, 1.0
    low, high = min(numbers), max(numbers)
    span = max(high - low, _LEAST_SPAN * abs(high)) or 1.0
    low, high = low - (span - high + low) / 2, high + (span - high + low) / 2
    if one.target is not None and low - _FAR * span <= one.target <= high + _FAR * span:
        low, high = min(low, one.target), max(high, one.target)
        span = high - low
    return low - 2 * _ROOM * span, high + _ROOM * span


def _behind(one: Drawn, place: dict[str, int], x: alt.X, y: alt.Y, domain: tuple[float, float]) -> Iterator[alt.Chart]:
    """The limits from the first week of the baseline on, their middle, and the target."""
    last = max(place.values())
    shown = [place[week] for week in one.baseline if week in place]
    if one.limits and shown:
        first = min(shown) - 0.5
        rows = [{"at": first, "to": last + 0.5, "value": one.limits.low, "top": one.limits.high}]
        band = alt.Chart(alt.InlineData(values=rows)).mark_rect(color=_BAND, opacity=0.75)
        yield band.encode(x=x, x2="to:Q", y=y, y2="top:Q")
        middle = [{"at": at, "value": one.limits.mean} for at in (first, last + 0.5)]
        yield (
            alt.Chart(alt.InlineData(values=middle))
            .mark_line(color=RECEIVED, strokeWidth=0.8, opacity=0.6)
            .encode(x=x, y=y)
        )
    if one.target is not None and domain[0] <= one.target <= domain[1]:
        goal = [{"at": -0.6, "value": one.target, "text": f"target {show(one.target)}"}]
        base = alt.Chart(alt.InlineData(values=goal))
        yield base.mark_rule(color=_GOAL, strokeDash=[5, 3]).encode(y=y)
        yield base.mark_text(color=_GOAL, align="left", dx=3, dy=-6, fontSize=10).encode(x=x, y=y, text="text:N")


def _marks(one: Drawn, trends: OverWeeks, place: dict[str, int], x: alt.X) -> Iterator[alt.Chart]:
    """Upright lines at the beginning of a week, with letters above; notes have numbers."""
    letters: dict[int, list[str]] = {}
    for mark in one.marks:
        if mark.week in place and mark.letter not in letters.setdefault(place[mark.week], []):
            letters[place[mark.week]].append(mark.letter)
    rows = [{"at": at - 0.5, "text": " ".join(names)} for at, names in letters.items()]
    notes: dict[int, list[str]] = {}
    for note in trends.notes:
        notes.setdefault(place[note.week], []).append(note.letter)
    told = [{"at": at - 0.5, "text": " ".join(names)} for at, names in notes.items()]
    for values, colour, dash in ((rows, QUIET, [4, 2]), (told, _NOTE, [1, 2])):
        if values:
            base = alt.Chart(alt.InlineData(values=values))
            yield base.mark_rule(color=colour, strokeDash=dash).encode(x=x)
            yield base.mark_text(color=colour, align="left", baseline="top", dx=2, fontSize=10).encode(
                x=x, y=alt.value(0), text="text:N"
            )


def _points(one: Drawn, place: dict[str, int], x: alt.X, y: alt.Y, low: float) -> Iterator[alt.Chart]:
    rows = [_row(point, place[point.week]) for point in one.points if point.value is not None]
    lost = [_row(point, place[point.week]) | {"value": low} for point in one.points if point.refused]
    if rows:
        base = alt.Chart(alt.InlineData(values=_in_stretches(one.points, rows, place)))
        yield base.mark_line(color=RECEIVED, strokeWidth=1.2, opacity=0.55).encode(
            x=x, y=y, detail="stretch:N", order="at:Q"
        )
        dots = alt.Chart(alt.InlineData(values=rows)).encode(x=x, tooltip=_TOLD)
        yield (
            dots.mark_rule(color=RECEIVED, strokeWidth=1.6, opacity=0.7)
            .encode(y=y.copy(), y2="high:Q")
            .transform_calculate(value="datum.low")
        )
        yield dots.mark_point(size=34, filled=True, opacity=1, strokeWidth=1.5).encode(
            y=y,
            shape=alt.Shape("shape:N", scale=None, legend=None),
            fill=alt.Fill("fill:N", scale=None, legend=None),
            stroke=alt.Stroke("colour:N", scale=None, legend=None),
        )
    if lost:
        crosses = alt.Chart(alt.InlineData(values=lost)).mark_point(shape=CROSS, size=42, filled=True, opacity=1)
        why = [alt.Tooltip("week:N", title="Week"), alt.Tooltip("why:N", title="No measured result")]
        yield crosses.encode(x=x, y=y, color=alt.value(REFUSED), tooltip=why)
    if not rows and not lost:
        empty = alt.Chart(alt.InlineData(values=[{"at": 0, "value": low}]))
        yield empty.mark_point(opacity=0).encode(x=x, y=y)


def _row(point: Point, at: int) -> dict[str, Any]:
    colour = INK if point.side else RECEIVED
    return {
        "at": at, "week": point.week, "value": point.value, "low": point.low, "high": point.high, "runs": point.runs,
        "doubts": point.doubts, "colour": colour, "fill": "white" if point.doubts else colour,
        "shape": _SHAPES[point.side],
        "why": f"{plural(point.refused, 'run')}: {', '.join(point.refused_by)}" if point.refused else "",
    }  # fmt: skip


def _in_stretches(
    points: Sequence[Point], rows: Sequence[dict[str, Any]], place: dict[str, int]
) -> list[dict[str, Any]]:
    """Rows of lines that break where a week is missing or the configuration changed."""
    counted = [point for point in points if point.value is not None]
    stretch, made = 0, [{"at": rows[0]["at"], "value": rows[0]["value"], "stretch": 0}]
    for (before, point), row in zip(pairwise(counted), rows[1:], strict=True):
        stretch += place[point.week] - place[before.week] > 1 or point.segment != before.segment
        made.append({"at": row["at"], "value": row["value"], "stretch": stretch})
    return made


# --- in words -------------------------------------------------------------------------------------------------------


def _described(one: Drawn) -> str:
    values = [point for point in one.points if point.value is not None]
    lost = [point.week for point in one.points if point.refused]
    told = [f"{one.label}: {one.said}"]
    if values:
        told.append(f"{show(values[-1].value)} in {values[-1].week}, {plural(len(values), 'measured week')}")
    if lost:
        told.append(f"no measured result in {', '.join(lost)}")
    if one.limits:
        told.append(f"limits {show(one.limits.low)} to {show(one.limits.high)}")
    return f"{'; '.join(told)}."
