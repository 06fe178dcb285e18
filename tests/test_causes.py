"""Why a run has no text: what was seen to fail comes first, and no cause stands without its line."""

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent / "checks"))
from given import judged

from pdkit.causes import CAUSES, UNKNOWN

NO_TEXT = {"retokenized_tok_sum": 0, "ttft_ms_mean": 0, "ttft_ms_median": 0}
CHAT = {"backend": "sglang-oai-chat", "reasoning_parser": "qwen3"}


def cause(**given: Any) -> dict[str, Any]:
    return judged(**(NO_TEXT | given)).causes.row(0, named=True)


@pytest.mark.parametrize(
    ("given", "expected", "words"),
    [
        ({"requests": [{"error": "KVTransferError(bootstrap_room=7)", "ok": False}] * 3 + [{}] * 397}, "transfer failed", "3 requests carry"),
        ({"requests": [{"finish_reason": "abort"}] * 9 + [{}] * 391}, "aborted", "9 answers"),
        ({"settings": CHAT}, "the client does not read this text", "parser qwen3, none"),
        ({"input_tok_sum": 0}, "several turns", "no input tokens"),
        ({"input_limit_tok": 100}, "prompts too long", "prompts of 100 tokens meet a server that takes 100"),
    ],
)  # fmt: skip
def test_a_cause_is_named_with_its_line(given: dict[str, Any], expected: str, words: str):
    found = cause(**given)
    assert found["cause"] == expected
    assert words in found["sentence"]
    assert found["lines"]


def test_what_was_seen_to_fail_comes_before_what_could_explain_it():
    given = {"settings": CHAT, "requests": [{"finish_reason": "abort"}] * 400}
    assert cause(**given)["cause"] == "aborted"


def test_a_parser_explains_nothing_where_the_native_endpoint_was_used():
    assert cause(settings={"backend": "sglang", "reasoning_parser": "qwen3"})["cause"] is None


def test_no_cause_is_invented():
    found = cause()
    assert (found["cause"], found["sentence"], found["lines"]) == (None, UNKNOWN, [])


def test_a_healthy_run_has_no_cause():
    assert judged().causes.is_empty()


def test_every_cause_has_a_name_of_its_own():
    assert len({one.name for one in CAUSES}) == len(CAUSES)
