"""Small charts of weeks: a gap is drawn as a gap, doubts are hollow, and what is beyond the axis is said."""

import re
from dataclasses import replace

import pytest

from pdkit.charts.series_over_weeks import series_over_weeks
from pdkit.charts.theme import PAGE_PX, render
from pdkit.trend import Drawn, Limits, Mark, OverWeeks, Point

WEEKS = ("2026-W37", "2026-W38", "2026-W39", "2026-W40", "2026-W41")


def point(week: str, value: float | None, **more: int) -> Point:
    runs = 0 if value is None else 3
    said = {"segment": 0, "doubts": 0, "refused": 0, "unverified": 0, **more}
    low, high = (None, None) if value is None else (value - 1, value + 1)
    return Point(week, said.pop("segment"), value, low, high, runs, **said)


def drawn(*points: Point, **more: object) -> OverWeeks:
    one = Drawn("8 users", "can't tell", points, (), None, (), None)
    return OverWeeks("received_throughput_tok_per_s", WEEKS, (replace(one, **more),), (), 0, synthetic=False)


def rows(trends: OverWeeks, kind: str) -> list[dict]:
    """What the marks of a kind show, in the first panel."""
    spec = series_over_weeks(trends).to_dict()
    layers = spec["vconcat"][0]["hconcat"][0]["layer"]
    return [row for one in layers if one["mark"]["type"] == kind for row in spec["datasets"][one["data"]["name"]]]


def test_a_week_without_a_result_breaks_the_line():
    trends = drawn(point(WEEKS[0], 100), point(WEEKS[1], None, refused=3), point(WEEKS[2], 101), point(WEEKS[3], 102))
    assert [(row["at"], row["stretch"]) for row in rows(trends, "line")] == [(0, 0), (2, 1), (3, 1)]


def test_so_does_a_week_without_a_run_and_another_configuration():
    trends = drawn(point(WEEKS[0], 100), point(WEEKS[2], 101), point(WEEKS[3], 120, segment=1))
    assert [row["stretch"] for row in rows(trends, "line")] == [0, 1, 2]


def test_refused_runs_are_a_cross_at_the_foot_and_have_no_value():
    trends = drawn(point(WEEKS[0], 100), point(WEEKS[1], None, refused=3))
    (cross,) = [row for row in rows(trends, "point") if row["why"]]
    assert cross["value"] < 99
    assert cross["why"].startswith("3 runs")


def test_doubts_are_hollow_and_what_is_outside_is_a_triangle():
    trends = drawn(point(WEEKS[0], 100, doubts=1), point(WEEKS[1], 90, side=-1))
    first, second = rows(trends, "point")
    assert (first["fill"], first["shape"]) == ("white", "circle")
    assert second["shape"] == "triangle-down"


def test_a_target_far_beyond_the_numbers_is_said_and_not_drawn():
    spec = series_over_weeks(drawn(point(WEEKS[0], 25), target=1000.0)).to_dict()
    (panel,) = spec["vconcat"][0]["hconcat"]
    assert panel["title"]["subtitle"] == ["can't tell; target 1,000, beyond this axis"]
    assert not any(
        row.get("text", "").startswith("target") for row in rows(drawn(point(WEEKS[0], 25), target=1000.0), "text")
    )


def test_limits_target_marks_and_notes_fit_the_page():
    limits = Limits(100, 98, 102)
    marks = (Mark(WEEKS[2], "engine 1 → 2", "A", is_restart=False),)
    one = drawn(
        point(WEEKS[0], 100), point(WEEKS[4], 101), limits=limits, baseline=WEEKS[:3], marks=marks, target=103.0
    )
    trends = replace(one, series=one.series * 5, notes=(Mark(WEEKS[3], "moved", "1", is_restart=False),), left_out=2)
    bundle, _ = render(series_over_weeks(trends).to_dict())
    assert float(re.search(r'width="([\d.]+)"', bundle["image/svg+xml"])[1]) <= PAGE_PX
    assert "2 more series without a chart" in " ".join(series_over_weeks(trends).to_dict()["title"]["subtitle"])


@pytest.mark.parametrize(
    "points", [(), (point(WEEKS[0], None),), (point(WEEKS[0], None, refused=1),), (point(WEEKS[0], 0.0),)]
)
def test_it_is_drawn_of_next_to_nothing(points):
    bundle, _ = render(series_over_weeks(drawn(*points)).to_dict())
    assert bundle["text/plain"].endswith(".")


def test_no_series_is_said_in_words():
    assert "No series" in series_over_weeks(replace(drawn(), series=())).to_dict()["description"]


def test_synthetic_data_is_said_to_be_so():
    spec = series_over_weeks(replace(drawn(point(WEEKS[0], 100)), synthetic=True)).to_dict()
    assert "synthetic data" in spec["title"]["subtitle"]
