"""Limits, two in a row, and the week of a step; every number is worked out by hand."""

import pytest

from pdkit.trend import dated, limits, walked

CALM = [100.0, 102.0, 100.0, 102.0, 100.0, 102.0]  # mean 101, moving range 2: limits 101 ± 5.32


def test_limits_are_the_mean_and_2_66_mean_moving_ranges():
    found = limits(CALM)
    assert (found.mean, found.low, found.high) == pytest.approx((101, 95.68, 106.32))
    assert [found.side(value) for value in (95, 96, 107)] == [-1, 0, 1]


def test_fewer_than_eight_weeks_have_no_limits():
    assert walked([*CALM, 101.0], weeks=8).limits is None
    assert walked([], weeks=8).recent == ()


def test_one_week_outside_is_no_alarm():
    found = walked([*CALM, 101.0, 90.0], weeks=8)
    assert not found.is_alarm
    assert found.limits is not None
    assert found.limits.side(90.0) == -1


def test_two_weeks_in_a_row_outside_on_one_side_are():
    found = walked([*CALM, 90.0, 91.0], weeks=8)
    assert found.is_alarm
    assert (found.recent, found.baseline) == ((6, 7), (0, 1, 2, 3, 4, 5))


def test_two_weeks_outside_on_two_sides_are_none():
    assert not walked([*CALM, 90.0, 115.0], weeks=8).is_alarm


def test_weeks_of_an_alarm_are_in_no_baseline():
    found = walked([*CALM, 90.0, 91.0, 90.0], weeks=8)
    assert (found.recent, found.baseline) == ((6, 7, 8), (0, 1, 2, 3, 4, 5))


def test_one_week_back_within_ends_it():
    found = walked([*CALM, 90.0, 91.0, 101.0, 102.0], weeks=8)
    assert not found.is_alarm
    assert not {6, 7} & set(found.baseline)


def test_after_eight_weeks_a_new_level_is_the_level():
    found = walked([*CALM, *[90.0, 91.0] * 4, 90.0, 91.0], weeks=8)
    assert not found.is_alarm
    assert found.limits is not None
    assert found.limits.mean == pytest.approx(90.5)


def test_a_step_is_dated_from_twelve_weeks_on():
    assert dated([100.0, 101.0] * 4 + [92.0, 93.0, 92.0]) is None
    assert dated([100.0, 101.0] * 4 + [92.0, 93.0, 92.0, 93.0]) == 8
