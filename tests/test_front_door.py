"""What a notebook imports: lazy, completable, and shown as what it is."""

from pathlib import Path

import pytest

import pdkit
from pdkit.metrics import METRICS

CASE = Path(__file__).parents[1] / "data/split-l4-qwen3-8b/original"


@pytest.fixture(scope="module")
def judgement():
    return pdkit.judge(pdkit.load(CASE))


def test_a_judgement_prints_its_conclusions(judgement):
    assert repr(judgement) == "original: measured at 1 user; no measured result at 2 and 4 users"


def test_a_cell_shows_the_verdict_table(judgement):
    html = judgement._repr_html_()
    assert html.count("no measured result") == 2
    assert "PD101" in html
    assert "742.32" not in html


def test_evidence_says_what_it_holds():
    assert repr(pdkit.load(CASE)).startswith("Evidence(runs: ")


def test_metric_names_complete_and_a_wrong_one_is_told_the_right_one():
    assert pdkit.metric.ttft_ms_median == "ttft_ms_median"
    assert set(dir(pdkit.metric)) == set(METRICS)
    with pytest.raises(AttributeError, match="did you mean ttft_ms_median"):
        pdkit.metric.ttft_ms_medain  # noqa: B018 - asking is the test


def test_what_the_front_door_lists_is_there():
    for name in dir(pdkit):
        assert getattr(pdkit, name) is not None


def test_the_chain_and_the_capacity_are_asked_like_load_and_judge(judgement):
    (chain,), (capacity,) = pdkit.chain(judgement), pdkit.capacity(judgement)
    assert chain.experiment == capacity.experiment == "original"
    assert capacity.limit.role == "decode"  # 2,925 tokens against 24,094


def test_a_name_that_is_not_there_says_what_is():
    with pytest.raises(AttributeError, match=r"it has .*judge"):
        pdkit.jugde  # noqa: B018


def test_the_extension_gives_charts_their_renderer():
    import altair

    pdkit.load_ipython_extension(None)
    assert altair.renderers.active == "pdkit"
