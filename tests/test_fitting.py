"""How many requests fit: counted by hand where that can be done, and between bounds where not."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pdkit.fitting import Fit, Lengths, fitting

POOL, RESERVED = 2925, 512
UNIFORM = Lengths.uniform(256, 1024)


def test_a_small_pool_holds_two_requests_for_most_draws():
    fit = fitting(UNIFORM, pool_tok=POOL, beside_tok=RESERVED)
    # one: two prompts sum to more than 2925 - 2 x 512 = 1901. With m = 1024 - n, the pairs with m1 + m2 <= 146
    # are 147 x 148 / 2 of 769 squared
    assert fit.shares[1] == pytest.approx(147 * 148 / 2 / 769**2)  # 1.8 %
    # three: three prompts sum to 2925 - 3 x 512 = 1389 at most. With a = n - 256, a1 + a2 + a3 <= 621 has
    # 624 x 623 x 622 / 6 solutions of 769 cubed
    assert fit.shares[3] == pytest.approx(624 * 623 * 622 / 6 / 769**3)  # 8.9 %
    assert fit.shares[2] == pytest.approx(1 - fit.shares[1] - fit.shares[3])
    assert (fit.low, fit.typical, fit.high) == (1, 2, 3)
    assert fit.mean == pytest.approx(2.07, abs=0.005)
    assert str(fit) == "2 for 89% of draws, 1 for 2%, 3 for 9%"


@pytest.mark.parametrize(("prompt", "fits"), [(256, 3), (640, 2), (1024, 1)])  # 2925 / (prompt + 512)
def test_prompts_of_one_length_fit_as_often_as_they_divide_the_pool(prompt: int, fits: int):
    fit = fitting(Lengths((prompt,), (1.0,)), pool_tok=POOL, beside_tok=RESERVED)
    assert fit.shares == {fits: pytest.approx(1)}
    assert str(fit) == f"{fits} for nearly all draws"


def test_a_colocated_server_needs_prompt_and_output():
    fit = fitting(UNIFORM, pool_tok=POOL, beside_tok=128)
    assert fit.mean == pytest.approx(3.35, abs=0.005)
    assert [
        fitting(Lengths((n,), (1.0,)), pool_tok=POOL, beside_tok=128).typical for n in (256, 640, 1024)
    ] == [7, 3, 2]  # fmt: skip


def test_fewer_tokens_set_aside_let_more_in():
    assert fitting(UNIFORM, pool_tok=2 * POOL, beside_tok=RESERVED).mean == pytest.approx(4.6, abs=0.05)
    assert fitting(UNIFORM, pool_tok=2 * POOL, beside_tok=128).mean == pytest.approx(7.2, abs=0.05)


def test_a_large_pool_is_as_good_as_normal():
    fit = fitting(UNIFORM, pool_tok=2_000_000, beside_tok=RESERVED)
    assert not fit.exact
    assert fit.typical == pytest.approx(2_000_000 / 1152, rel=0.001)
    assert fit.low < fit.typical < fit.high
    assert str(fit).startswith("about ")


def test_a_request_that_does_not_fit_at_all_is_no_request():
    assert fitting(Lengths((4000,), (1.0,)), pool_tok=POOL, beside_tok=RESERVED).shares == {0: pytest.approx(1)}
    assert fitting(UNIFORM, pool_tok=0, beside_tok=RESERVED).shares == {0: 1.0}


def test_several_pools_hold_as_many_times_more():
    assert Fit({1: 0.5, 2: 0.5}).times(3).shares == {3: 0.5, 6: 0.5}


def test_lengths_keep_how_often_each_occurs():
    lengths = Lengths.of([10, 10, 30, 50])
    assert (lengths.tok, lengths.shares) == ((10, 30, 50), (0.5, 0.25, 0.25))
    assert (lengths.mean, lengths.variance) == (25, (2 * 225 + 25 + 625) / 4)


@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=3),
    st.integers(0, 24),
    st.integers(0, 5),
)
def test_shares_are_those_of_all_draws_counted_one_by_one(tok: list[int], pool: int, beside: int):
    most = pool // (min(tok) + beside) + 1
    if len(tok) ** most > 20_000:
        return
    counts: dict[int, int] = {}
    for draw in product(tok, repeat=most):
        fits = sum(sum(draw[:k]) + k * beside <= pool for k in range(1, most + 1))
        counts[fits] = counts.get(fits, 0) + 1
    fit = fitting(Lengths.of(tok), pool_tok=pool, beside_tok=beside)
    assert fit.shares == {k: pytest.approx(count / len(tok) ** most) for k, count in sorted(counts.items())}
    assert sum(fit.shares.values()) == pytest.approx(1)
