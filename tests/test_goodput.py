"""Goodput counts answers with text, of all that were sent; empty answers can't raise it."""

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent / "checks"))
from given import evidence

from pdkit.errors import PdkitError
from pdkit.goodput import read_slos, worded
from pdkit.judge import judge
from pdkit.load import same_runs

FAILED = {"ok": False, "output_tok": None, "text_chars": None, "ttft_ms": None, "tpot_ms": None}
EMPTY = {"text_chars": 0, "ttft_ms": 0.0, "tpot_ms": None}


def counted(slos: dict[str, float], **given: Any) -> dict[str, Any]:
    return judge(same_runs(evidence(**given)), slos=slos).goodput.row(0, named=True)


def test_requests_within_all_slos_are_good():
    # 400 requests in 200 s; 100 of them have a first token after 600 ms
    row = counted({"ttft_ms": 500, "tpot_ms": 30}, requests=[{"ttft_ms": 600.0}] * 100 + [{}] * 300)
    assert (row["sent"], row["answered"], row["good"]) == (400, 400, 300)
    assert (row["attainment_ratio"], row["goodput_per_s"]) == (0.75, 1.5)


def test_an_empty_answer_with_a_first_token_at_zero_is_not_good():
    row = counted({"ttft_ms": 500}, requests=[EMPTY] * 4 + [{}] * 396)
    assert (row["answered"], row["good"]) == (396, 396)


def test_a_failed_request_was_sent_all_the_same():
    row = counted({"ttft_ms": 500}, requests=[FAILED] * 4 + [{}] * 396, completed=396, output_tok_sum=39_600)
    assert (row["sent"], row["attainment_ratio"]) == (400, 0.99)


def test_one_token_has_no_time_per_token_to_miss():
    one = {"output_tok": 1, "tpot_ms": None}
    row = counted({"tpot_ms": 30}, requests=[one] * 100 + [{}] * 300, output_tok_sum=30_100)
    assert row["good"] == 400


def test_the_clients_own_count_stands_beside_it():
    row = counted({"ttft_ms": 500}, requests=[{}] * 400, slo_attainment_ratio=1.0, request_goodput_per_s=2.0)
    assert (row["client_attainment_ratio"], row["client_goodput_per_s"]) == (1.0, 2.0)


def test_a_refused_run_has_no_goodput():
    row = counted({"ttft_ms": 500}, requests=[EMPTY] * 400, retokenized_tok_sum=0)
    assert (row["good"], row["attainment_ratio"], row["why_not"]) == (None, None, "no measured result")


def test_without_its_requests_a_run_is_not_evaluated():
    row = counted({"ttft_ms": 500})
    assert row["good"] is None
    assert "--output-details" in row["why_not"]


def test_without_slos_nothing_is_counted():
    assert judge(same_runs(evidence())).goodput.is_empty()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("tfft_ms=500", "did you mean ttft_ms?"),
        ("ttft_ms", "write ttft_ms=500"),
        ("ttft_ms=fast", "is no number"),
        ("ttft_ms=-1", "a positive number of milliseconds"),
        ("ttft_ms=inf", "a positive number of milliseconds"),
    ],
)
def test_a_wrong_slo_says_what_would_be_right(text: str, words: str):
    with pytest.raises(PdkitError, match=words.replace("?", r"\?")):
        read_slos([text])


def test_slos_are_named_in_the_fields_words():
    assert worded(read_slos(["ttft_ms=500", "tpot_ms=30"])) == "TTFT ≤ 500 ms, TPOT ≤ 30 ms"
