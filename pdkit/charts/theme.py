"""How every chart looks and leaves Python: one colour a role, one mimebundle that draws without a network."""

import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import Final

import altair as alt

from pdkit.errors import PdkitError
from pdkit.results import DOUBTS, MEASURED, NO_RESULT, UNVERIFIED, Verdict

MIME: Final = "application/vnd.vegalite.v5+json"
SCHEMA: Final = "https://vega.github.io/schema/vega-lite/v5.json"  # what JupyterLab 4.6 bundles (5.6.1)
VEGA_LITE: Final = "6.4"  # what vl-convert draws with; the page's bundle is the same
EXACT_IN_JS: Final = 2**53  # whole numbers beyond this lose digits in a browser, silently

PAGE_PX: Final = 640  # the width of a figure; narrower pages scroll it
PLOT_PX: Final = 540  # of a panel with an axis on its left: axis, padding and half a label keep within the page
_TITLE_CHARS, _SUBTITLE_CHARS = 66, 92  # what fits in PAGE_PX in the widest of the usual fonts

# Blue is believed, grey cannot be told, vermillion is refused: told apart by all common kinds of colour blindness,
# each at 3:1 or more on white; the shape says it again for print.
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
    NO_RESULT: "cross",
}
RECEIVED, CLAIMED_FILL, REFUSED = "#0b5fa5", "#f7d9c8", "#c2410c"
INK, QUIET, RULE, FAINT = "#1f2937", "#4b5563", "#9ca3af", "#e5e7eb"
# Lines of experiments; none is the vermillion of a refusal.
EXPERIMENT_COLOURS: Final = ("#0b5fa5", "#a16207", "#0f766e", "#86198f", "#4d4d4d", "#65a30d", "#db2777", "#60a5fa")
# Levels from low to high; the light end of the scheme would vanish on white.
LEVEL_SCHEME: Final = alt.SchemeParams(name="viridis", extent=[0.85, 0.0])

CONFIG: Final = {
    "background": "white",
    "font": "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif",
    "view": {"stroke": None},
    "axis": {
        "labelColor": QUIET, "titleColor": INK, "labelFontSize": 11, "titleFontSize": 12, "titleFontWeight": "normal", "titlePadding": 8,
        "gridColor": FAINT, "domainColor": RULE, "tickColor": RULE,
    },
    "axisY": {"minExtent": 40, "maxExtent": 40},  # panels below each other stay aligned
    "legend": {"orient": "bottom", "labelColor": INK, "titleColor": INK, "labelFontSize": 11, "titleFontSize": 11, "titleFontWeight": "normal", "labelLimit": 560, "symbolSize": 70},
    "title": {"anchor": "start", "color": INK, "fontSize": 15, "fontWeight": 600, "subtitleColor": QUIET, "subtitleFontSize": 12, "subtitlePadding": 5, "offset": 12},
    "text": {"color": INK, "fontSize": 11},
    "concat": {"spacing": 14},
}  # fmt: skip

Picture = alt.VConcatChart
Panel = alt.Chart | alt.LayerChart | alt.HConcatChart | alt.VConcatChart
Bundle = tuple[dict[str, object], dict[str, object]]


def enable() -> None:
    """Charts of this session are drawn by `render`, in pdkit's theme."""
    alt.renderers.register("pdkit", render)
    alt.renderers.enable("pdkit")
    alt.theme.register("pdkit", enable=True)(lambda: alt.theme.ThemeConfig(config=CONFIG))  # type: ignore[typeddict-item]


def render(spec: dict[str, object], **_: object) -> Bundle:
    """The chart as its specification, as a still picture, and as words.

    Raises:
        PdkitError: a number that JSON or a browser cannot hold, or no description to read out.
    """
    import vl_convert

    _refuse_unspeakable(spec, "chart")
    words = spec.get("description")
    if not isinstance(words, str) or not words.strip():
        raise PdkitError(
            "chart: no description; `.properties(description=...)` is what those who cannot see it are told"
        )
    shown = {"background": "white"} | spec | {"$schema": SCHEMA}
    config = shown.get("config")
    # labels on every mark make the still picture a third larger; its alternative text is the description
    still = shown | {"config": {**(config if isinstance(config, dict) else {}), "aria": False}}
    svg = vl_convert.vegalite_to_svg(still, vl_version=VEGA_LITE)
    return {MIME: shown, "image/svg+xml": svg, "text/plain": words}, {MIME: {"embed_options": {"actions": False}}}


def _refuse_unspeakable(part: object, where: str) -> None:
    """Python writes NaN into JSON and a browser then draws nothing at all: better to say where it is."""
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
    """Panels below each other as one figure: a title in words, what must be known of the data, the alternative text."""
    lines = [line for note in notes if note for line in textwrap.wrap(note, _SUBTITLE_CHARS)]
    heading = alt.TitleParams(text=textwrap.wrap(title, _TITLE_CHARS), subtitle=lines)
    return alt.vconcat(*panels).properties(title=heading, description=description).configure(**CONFIG)


def in_words(sentence: str, *, title: str, notes: Sequence[str] = ()) -> Picture:
    """A figure for which there are no numbers: it says which are missing, and is never left out."""
    lines = textwrap.wrap(sentence, 80)
    frame = alt.Chart(alt.Data(values=[{"text": lines}])).properties(width=PLOT_PX, height=24 + 18 * len(lines))
    text = frame.mark_text(
        align="left", baseline="middle", fontSize=13, lineHeight=18, color=QUIET, dy=-9 * (len(lines) - 1)
    )
    placed = text.encode(x=alt.value(10), text=alt.Text("text:N"))
    ground = frame.mark_rect(fill="#f9fafb", stroke=FAINT).encode(x=alt.value(0), x2=alt.value(PLOT_PX))
    return picture([ground + placed], title=title, notes=notes, description=f"{title} {sentence}")


def verdict_scales(verdicts: Sequence[str], words: Mapping[str, str] | None = None) -> tuple[alt.Color, alt.Shape]:
    """Colour and shape by verdict, with one legend for both that lists what is shown; `words` says more of one."""
    shown = [verdict for verdict in VERDICT_COLOURS if verdict in verdicts]
    named = (
        "".join(f"datum.label === '{verdict}' ? '{text}' : " for verdict, text in (words or {}).items()) + "datum.label"
    )
    legend = alt.Legend(title=None, labelExpr=named, columns=min(len(shown), 2), symbolOpacity=1)
    colours = alt.Scale(domain=shown, range=[VERDICT_COLOURS[verdict] for verdict in shown])
    shapes = alt.Scale(domain=shown, range=[VERDICT_SHAPES[verdict] for verdict in shown])
    return alt.Color("verdict:N", scale=colours, legend=legend), alt.Shape("verdict:N", scale=shapes, legend=legend)
