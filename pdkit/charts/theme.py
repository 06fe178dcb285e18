"""How every chart looks and leaves Python: one colour a role, one mimebundle that draws without a network."""

import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import Final, Literal

import altair as alt

from pdkit.errors import PdkitError
from pdkit.results import DOUBTS, MEASURED, NO_RESULT, UNVERIFIED, Verdict

MIME: Final = "application/vnd.vegalite.v5+json"
SCHEMA: Final = "https://vega.github.io/schema/vega-lite/v5.json"  # what JupyterLab 4.6 bundles (5.6.1)
VEGA_LITE: Final = "6.4"  # what vl-convert draws with; the page's bundle is the same
EXACT_IN_JS: Final = 2**53  # whole numbers beyond this lose digits in a browser, silently

PAGE_PX: Final = 640  # the widest that a figure may be; narrower pages scroll it
PLOT_PX: Final = 540  # of a panel with an axis at its left: that, half a label and the padding keep within the page
AXIS_PX: Final = 48  # of the numbers at an axis, so that panels below each other are aligned
_TITLE_CHARS, _SUBTITLE_CHARS = 66, 92  # what fits there in the widest of the usual fonts

# Blue is believed, grey cannot be told, vermillion is refused: told apart by all common kinds of colour blindness,
# each at 3:1 or more on white; the shape says it again for print.
CROSS: Final = "M-1,-.6L-.6,-1L0,-.4L.6,-1L1,-.6L.4,0L1,.6L.6,1L0,.4L-.6,1L-1,.6L-.4,0Z"
VERDICT_COLOURS: Final[Mapping[Verdict, str]] = {
    MEASURED: "#0b5fa5",
    DOUBTS: "#3d8fd1",
    UNVERIFIED: "#6b7280",
    NO_RESULT: "#c2410c",
}
VERDICT_SHAPES: Final[Mapping[Verdict, str]] = {
    MEASURED: "circle",
    DOUBTS: "diamond",
    UNVERIFIED: "square",
    NO_RESULT: CROSS,
}
RECEIVED: Final = VERDICT_COLOURS[MEASURED]
REFUSED: Final = VERDICT_COLOURS[NO_RESULT]
CLAIMED_FILL: Final = "#e5e7eb"
REFUSED_FILL: Final = "#f9dccb"
INK, QUIET, AXIS, FAINT = "#1f2937", "#4b5563", "#9ca3af", "#e5e7eb"
# Lines of experiments; none is the vermillion of a refusal.
EXPERIMENT_COLOURS: Final = (
    "#0b5fa5",
    "#a16207",
    "#0f766e",
    "#86198f",
    "#4d4d4d",
    "#65a30d",
    "#db2777",
    "#4f8fe0",
)
# Servers by role, the same everywhere; none is the blue of what is believed or the vermillion of a refusal.
ROLE_COLOURS: Final[Mapping[str, str]] = {
    "prefill": "#a16207",
    "decode": "#0f766e",
    "colocated": "#86198f",
    "router": "#4d4d4d",
    "role not known": "#6b7280",
}
# Levels from low to high; the light end of the scheme would vanish on white.
LEVEL_SCHEME: Final = alt.SchemeParams(name="viridis", extent=[0.85, 0.0])

CONFIG: Final = {
    "background": "white",
    "font": "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif",
    "view": {"stroke": None},
    "axis": {
        "labelColor": QUIET,
        "titleColor": INK,
        "labelFontSize": 11,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "titlePadding": 8,
        "gridColor": FAINT,
        "domainColor": AXIS,
        "tickColor": AXIS,
    },
    "legend": {
        "orient": "bottom",
        "labelColor": INK,
        "titleColor": INK,
        "labelFontSize": 11,
        "titleFontSize": 11,
        "titleFontWeight": "normal",
        "labelLimit": 540,
        "symbolSize": 70,
        "symbolOpacity": 1,
        "symbolBaseFillColor": QUIET,
        "symbolBaseStrokeColor": QUIET,
    },
    "title": {
        "anchor": "start",
        "color": INK,
        "fontSize": 15,
        "fontWeight": 600,
        "subtitleColor": QUIET,
        "subtitleFontSize": 12,
        "subtitlePadding": 5,
        "offset": 12,
    },
    "text": {"color": INK, "fontSize": 11, "baseline": "middle"},
    "concat": {"spacing": 14},
}

Panel = alt.Chart | alt.LayerChart | alt.FacetChart | alt.HConcatChart | alt.VConcatChart
Bundle = tuple[dict[str, object], dict[str, object]]


class Picture(alt.VConcatChart):
    """A figure of pdkit: shown without altair's check of its schema, which takes as long as half of the drawing.

    The tests check every chart on every kind of evidence; `to_dict()` and `save()` still check.
    """

    def _repr_mimebundle_(self, *_: object, **__: object) -> Bundle:
        renderer = alt.renderers.get()
        return (renderer or render)(self.to_dict(validate=False, context={"pre_transform": False}))  # type: ignore[return-value]


def enable() -> None:
    """Charts of this session are drawn by `render`, and those made by hand look like pdkit's."""
    alt.renderers.register("pdkit", render)
    alt.renderers.enable("pdkit")
    alt.theme.register("pdkit", enable=True)(lambda: {"config": CONFIG})  # type: ignore[typeddict-item]


def render(spec: dict[str, object], **_: object) -> Bundle:
    """The chart as its specification, as a still picture, and as words.

    Raises:
        PdkitError: a number that JSON or a browser cannot hold, or no description to read out.
    """
    import vl_convert

    _refuse_unspeakable(spec, "chart")
    words = spec.get("description")
    if not isinstance(words, str) or not words.strip():
        raise PdkitError("chart: no description; `.properties(description=...)` would tell those who cannot see it")
    shown = {"background": "white"} | spec | {"$schema": SCHEMA}
    config = shown.get("config")
    # labels on every mark make the still picture a third larger; its alternative text is the description
    still = shown | {"config": {**(config if isinstance(config, dict) else {}), "aria": False}}
    svg = vl_convert.vegalite_to_svg(still, vl_version=VEGA_LITE)
    return {MIME: shown, "image/svg+xml": svg, "text/plain": words}, {MIME: {"embed_options": {"actions": False}}}


def _refuse_unspeakable(part: object, where: str) -> None:
    """Python writes NaN into JSON, and a browser then draws nothing at all: better to say where it is."""
    if isinstance(part, float) and not math.isfinite(part):
        raise PdkitError(f"{where}: holds {part!r}; null, or a place beside the axis, would be right")
    if isinstance(part, int) and abs(part) > EXACT_IN_JS:
        raise PdkitError(f"{where}: holds {part}, which a browser rounds; text would be right")
    if isinstance(part, dict):
        for key, value in part.items():
            _refuse_unspeakable(value, f"{where}.{key}")
    elif isinstance(part, list | tuple):
        for index, value in enumerate(part):
            _refuse_unspeakable(value, f"{where}[{index}]")


def picture(panels: Sequence[Panel], *, title: str, notes: Sequence[str], description: str) -> Picture:
    """Panels below each other as one figure: title, what must be known of the data, alternative text."""
    lines = [line for note in notes if note for line in textwrap.wrap(note, _SUBTITLE_CHARS)]
    heading = alt.TitleParams(text=textwrap.wrap(title, _TITLE_CHARS), subtitle=lines or alt.Undefined)
    return Picture(vconcat=list(panels), title=heading, description=description, config=CONFIG)


def in_words(sentence: str, *, title: str, notes: Sequence[str] = ()) -> Picture:
    """A figure for which there are no numbers: it says which are missing, and is never left out."""
    lines = textwrap.wrap(sentence, 80)
    height = 24 + 18 * len(lines)
    frame = alt.Chart(alt.InlineData(values=[{"text": lines}]))
    ground = frame.mark_rect(fill="#f9fafb", stroke=FAINT).encode(x=alt.value(0), x2=alt.value(PLOT_PX + 50))
    text = frame.mark_text(align="left", fontSize=13, lineHeight=18, color=QUIET, dy=-9 * (len(lines) - 1))
    words = text.encode(x=alt.value(12), text="text:N")
    panel = layered(ground, words, width=PLOT_PX + 50, height=height)
    return picture([panel], title=title, notes=notes, description=f"{title} {sentence}")


def layered(*marks: alt.Chart, width: float, height: float) -> alt.LayerChart:
    """Marks over each other in one panel."""
    return alt.LayerChart(layer=list(marks), width=width, height=height)


def heading(title: str) -> alt.TitleParams:
    """The name of an experiment above its panel."""
    return alt.TitleParams(text=title, fontSize=12, color=QUIET, limit=PAGE_PX - 40, offset=6, frame="bounds")


def rimmed(
    text: alt.Chart, *, color: str, align: Literal["left", "right"], dx: float, dy: float
) -> tuple[alt.Chart, alt.Chart]:
    """Words with a white rim, so that lines below do not make them unreadable."""
    rim = text.mark_text(align=align, dx=dx, dy=dy, stroke="white", strokeWidth=3, strokeJoin="round")
    return rim, text.mark_text(align=align, dx=dx, dy=dy, color=color)
