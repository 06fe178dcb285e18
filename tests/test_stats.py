"""What repeats allow to be said, by hand arithmetic, printed tables and the numbers of the reference."""

import math
import random

import pytest
from scipy import stats as oracle

from pdkit import stats


def spread_by(step: float, middle: float = 100.0) -> list[float]:
    """Three values whose logarithms lie `step` apart: mean log(middle), standard deviation `step`."""
    return [middle * math.exp(shift) for shift in (-step, 0.0, step)]


# --- a ratio and its interval ---------------------------------------------------------------------------------------


def test_the_interval_is_welchs_on_logarithms():
    """By hand: s = 0.01 each, so the error is 0.01 x sqrt(2/3); equal spreads leave 4 degrees of freedom, t = 2.776."""
    found = stats.ratio_interval(spread_by(0.01), spread_by(0.01, 110))
    assert found is not None
    reach = 2.776445 * 0.01 * math.sqrt(2 / 3)
    assert found.ratio == pytest.approx(1.1)
    assert found.low == pytest.approx(1.1 * math.exp(-reach))
    assert found.high == pytest.approx(1.1 * math.exp(reach))
    assert found.half_width == pytest.approx(reach)


def test_a_side_without_spread_lends_no_degrees_of_freedom():
    """One side all alike: 2 degrees of freedom are left, t = 4.303."""
    found = stats.ratio_interval([100.0] * 3, spread_by(0.01))
    assert found is not None
    assert found.half_width == pytest.approx(4.302653 * 0.01 / math.sqrt(3))


def test_the_p_is_that_of_students_t():
    baseline, candidate = [100.0, 102, 99, 101, 103], [104.0, 107, 105, 103, 106, 101]
    found = stats.ratio_interval(baseline, candidate)
    expected = oracle.ttest_ind([*map(math.log, candidate)], [*map(math.log, baseline)], equal_var=False)
    assert found is not None
    assert found.p == pytest.approx(expected.pvalue)
    assert (found.low, found.high) == pytest.approx([math.exp(end) for end in expected.confidence_interval()])


def test_turning_the_sides_round_turns_the_interval():
    one, other = [100.0, 102, 99], [104.0, 107, 105, 103]
    there, back = stats.ratio_interval(one, other), stats.ratio_interval(other, one)
    assert there is not None
    assert back is not None
    assert (back.ratio, back.low, back.high) == pytest.approx((1 / there.ratio, 1 / there.high, 1 / there.low))
    assert back.p == pytest.approx(there.p)


@pytest.mark.parametrize(
    ("baseline", "candidate", "p"), [([100.0] * 3, [100.0] * 3, 1.0), ([100.0] * 3, [110.0] * 3, 0.0)]
)
def test_sides_without_any_spread_have_an_interval_of_one_point(
    baseline: list[float], candidate: list[float], p: float
):
    found = stats.ratio_interval(baseline, candidate)
    assert found is not None
    assert found.low == found.ratio == found.high
    assert found.p == p


@pytest.mark.parametrize(
    ("baseline", "candidate"), [([100.0], [110.0, 111]), ([], []), ([0.0, 1], [1.0, 2]), ([1.0, 2], [-1.0, 2])]
)
def test_what_has_no_logarithm_or_no_spread_has_no_interval(baseline: list[float], candidate: list[float]):
    assert stats.ratio_interval(baseline, candidate) is None


# --- spread ---------------------------------------------------------------------------------------------------------


def test_the_cv_is_the_standard_deviation_over_the_mean():
    assert stats.cv([98, 100, 102]) == pytest.approx(0.02)  # sqrt((4 + 0 + 4) / 2) = 2
    assert stats.cv([100]) is None


def test_the_spread_of_both_sides_counts_by_degrees_of_freedom():
    quiet, loud = [99.0, 100, 101], [97.0, 100, 103, 100, 100]  # CV 1 % of 2, and sqrt(18/4) % of 4 degrees
    assert stats.pooled_cv(quiet, loud) == pytest.approx(math.sqrt((2 * 1 + 4 * 4.5) / 6) / 100)
    assert stats.pooled_cv([100.0], loud) == stats.cv(loud)
    assert stats.pooled_cv([100.0], [100.0]) is None


def test_the_same_is_within_three_percent_or_twice_the_spread():
    assert [stats.same_within(spread) for spread in (0.0, 0.015, 0.04)] == [0.03, 0.03, 0.08]


@pytest.mark.parametrize(
    ("spread", "runs", "percent"),
    [(0.01, 3, 3.0), (0.01, 5, 2.0), (0.01, 10, 1.3), (0.02, 3, 6.1), (0.02, 5, 4.0), (0.02, 10, 2.7),
     (0.05, 3, 15), (0.05, 5, 10), (0.05, 10, 6.6)],
)  # fmt: skip
def test_the_smallest_effect_that_shows_is_that_of_the_table(spread: float, runs: int, percent: float):
    # the table has two digits
    assert 100 * stats.smallest_effect(spread, runs, runs) == pytest.approx(percent, rel=0.03)


def test_how_many_repeats_would_tell():
    """At a spread of 2 % and no difference: log(1.03) is 0.0296; t x 0.02 x sqrt(2/k) is 0.0292 at 5, 0.0346 at 4."""
    assert 2.306 * 0.02 * math.sqrt(2 / 5) < math.log(1.03) < 2.447 * 0.02 * math.sqrt(2 / 4)
    assert stats.repeats_to_tell(0.02, 1.0, 0.03) == 5
    assert stats.repeats_to_tell(0.02, 1.0, 0.03, more_than=6) == 7  # six did not: their spreads were not alike
    assert stats.repeats_to_tell(0.02, 1.03, 0.03) is None  # on the line: no number of repeats tells


# --- exact and many -------------------------------------------------------------------------------------------------


def test_the_rarest_arrangement_of_five_and_five_is_two_in_252():
    assert stats.permutation_p(range(1, 6), range(6, 11)) == pytest.approx(2 / 252)


def test_an_arrangement_like_any_other_is_not_rare():
    assert stats.permutation_p([1, 2, 3, 4, 5], [1, 2, 3, 4, 5]) == 1.0


def test_too_few_runs_have_no_exact_p_and_too_many_are_not_gone_through():
    assert stats.permutation_p(range(1, 5), range(6, 11)) is None
    assert stats.permutation_p(range(1, 14), range(6, 19)) is None


def test_holm_counts_the_smallest_p_as_often_as_there_are_tests():
    assert stats.holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert stats.holm([0.5, 0.9]) == [1.0, 1.0]
    assert stats.holm([]) == []


# --- percentiles ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("percentile", "floor"), [(50, 11), (75, 24), (90, 64), (95, 130), (99, 662), (99.9, 6636)])
def test_the_floors_of_the_conservative_bound_are_mlcommons(percentile: float, floor: int):
    assert stats.least_for_bound(percentile) == floor
    assert stats.conservative_percentile(range(floor - 1), percentile) is None
    assert stats.conservative_percentile(range(floor), percentile) == floor - 2  # one is skipped


def test_of_ten_thousand_the_p99_skips_77():
    assert stats.skipped(10_000, 99) == 77
    assert stats.conservative_percentile(range(1, 10_001), 99) == 9_923


@pytest.mark.parametrize(("percentile", "least"), [(50, 6), (90, 36), (95, 72), (99, 368)])
def test_an_interval_of_a_percentile_is_finite_from_its_least_n(percentile: float, least: int):
    assert stats.quantile_interval(range(1, least), percentile) is None
    found = stats.quantile_interval(range(1, least + 1), percentile)
    assert found is not None
    assert found[1] == least  # the largest value


def test_the_interval_of_a_median_of_a_hundred_is_the_40th_to_the_61st():
    assert stats.quantile_interval(range(1, 101), 50) == (40, 61)  # any table of the sign test


def test_nothing_has_no_bounds():
    assert stats.conservative_percentile([], 90) is None
    assert stats.quantile_interval([], 90) is None


# --- modes ----------------------------------------------------------------------------------------------------------


def drawn(*centres: float, n: int = 400) -> list[float]:
    """n values about each centre, 5 % wide."""
    chance = random.Random(7)
    return [centre * math.exp(chance.gauss(0, 0.05)) for centre in centres for _ in range(n)]


def test_two_centres_are_two_modes_and_one_is_one():
    assert stats.modes(drawn(100)) == 1
    assert stats.modes(drawn(100, 200)) == 2
    assert stats.modes(drawn(100, 200, 400)) == 3


def test_stragglers_are_no_mode():
    assert stats.modes(drawn(100) + drawn(300, n=40)) == 1  # 40 of 440 are less than a tenth
    assert stats.modes(drawn(100) + drawn(300, n=60)) == 2


def test_many_values_have_the_modes_of_few():
    assert stats.modes(drawn(100, 200, n=3_000)) == 2


def test_values_that_are_all_alike_are_one_mode_and_few_values_none():
    assert stats.modes([5.0] * 400) == 1
    assert stats.modes(drawn(100, 200, n=99)) is None
    assert stats.modes([0.0] * 400) is None


def test_two_weeks_take_the_spread_of_the_weeks_before_them():
    """Logarithms -1, 0, 1 against 2 and 2: difference 2, pooled variance 2/3, error √(2/3 · (1/3 + 1/2)) = 0.745."""
    found = stats.pooled_interval([math.exp(-1), 1.0, math.exp(1)], [math.exp(2), math.exp(2)])
    assert found is not None
    assert math.log(found.ratio) == pytest.approx(2)
    assert found.half_width == pytest.approx(3.1824 * 0.74536, rel=1e-4)  # t of three degrees of freedom
    assert stats.pooled_interval([1.0], [2.0]) is None
    assert stats.pooled_interval([1.0, 2.0], [0.0]) is None
