"""The renderer gives one mimebundle that draws anywhere, and refuses what a browser cannot hold."""

import json
import subprocess
import sys

import altair as alt
import pytest

from pdkit.charts.theme import EXPERIMENT_COLOURS, MIME, SCHEMA, VERDICT_COLOURS, enable, in_words, render
from pdkit.errors import PdkitError
from pdkit.results import NO_RESULT, VERDICTS

SPEC = {
    "description": "One point at 1.",
    "mark": "point",
    "data": {"values": [{"x": 1}]},
    "encoding": {"x": {"field": "x"}},
}


def with_value(value):
    return SPEC | {"data": {"values": [{"x": value}]}}


def test_a_chart_leaves_as_specification_picture_and_words():
    bundle, about = render(SPEC)
    assert set(bundle) == {MIME, "image/svg+xml", "text/plain"}
    assert bundle["text/plain"] == "One point at 1."
    assert bundle["image/svg+xml"].startswith("<svg")
    assert (bundle[MIME]["$schema"], bundle[MIME]["background"]) == (SCHEMA, "white")
    assert about == {MIME: {"embed_options": {"actions": False}}}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_a_number_that_json_lacks_is_refused_with_its_place(value):
    with pytest.raises(PdkitError, match=r"chart\.data\.values\[0\]\.x: holds -?(nan|inf)"):
        render(with_value(value))


def test_a_whole_number_that_a_browser_rounds_is_refused():
    with pytest.raises(PdkitError, match="9007199254740993, which a browser rounds"):
        render(with_value(2**53 + 1))


@pytest.mark.parametrize("words", [None, "", "  "])
def test_a_chart_without_a_description_is_refused(words):
    with pytest.raises(PdkitError, match="no description"):
        render(SPEC | {"description": words})


def test_rendering_leaves_the_specification_alone():
    before = json.dumps(SPEC)
    render(SPEC)
    assert json.dumps(SPEC) == before


def test_enable_makes_the_renderer_altairs():
    renderer, theme = alt.renderers.active, alt.theme.active
    try:
        enable()
        bundle, _ = in_words("Nothing was read.", title="Why?")._repr_mimebundle_()
        assert bundle["text/plain"] == "Why? Nothing was read."
        assert alt.theme.active == "pdkit"
    finally:
        alt.renderers.enable(renderer)
        alt.theme.enable(theme)


def test_every_verdict_has_a_colour_and_no_experiment_has_that_of_a_refusal():
    assert set(VERDICT_COLOURS) == set(VERDICTS.categories)
    assert VERDICT_COLOURS[NO_RESULT] not in EXPERIMENT_COLOURS


@pytest.mark.parametrize("colour", [*VERDICT_COLOURS.values(), *EXPERIMENT_COLOURS])
def test_every_mark_can_be_seen_on_white(colour):
    assert contrast_with_white(colour) >= 3  # WCAG 1.4.11 for graphics


def contrast_with_white(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 1.05 / (0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] + 0.05)


def test_importing_the_theme_changes_no_renderer():
    code = "import altair as alt, pdkit.charts.theme; assert alt.renderers.active == 'default', alt.renderers.active"
    subprocess.run([sys.executable, "-c", code], check=True)
