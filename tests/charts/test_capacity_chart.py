"""The capacity chart: what was asked for, what fits on each side, what ran, and what was merely printed."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from pdkit.charts.capacity import capacity
from pdkit.judge import judge
from pdkit.load import load
from pdkit.results import CLAIMED
from tests.charts.made import sweep

DATA = Path(__file__).parents[2] / "data" / "split-l4-qwen3-8b"


@cache
def drawn(case: str) -> dict[str, Any]:
    return capacity(judge(load(DATA / case))).to_dict()


def rows(spec: dict[str, Any], field: str) -> list[dict[str, Any]]:
    return next(data for data in spec["datasets"].values() if field in data[0])


def test_a_line_a_side_is_what_fits():
    lines = {row["role"]: row for row in rows(drawn("open-loop/split"), "typical")}
    # 2,925 tok at 640 + 512 a request: 2, or 1 or 3 for other draws; 24,094 / 640 = 37.6
    assert [lines["decode"][end] for end in ("low", "typical", "high")] == [1, 2, 3]
    assert lines["prefill"]["typical"] == 37


def test_both_sides_are_drawn_whichever_is_smaller():
    lines = {row["role"]: row["typical"] for row in rows(drawn("swapped"), "typical")}
    assert lines["prefill"] == 4  # 2,925 / 632
    assert lines["decode"] in (20, 21)  # 24,094 / (632 + 512)
    assert "The prefill side fills first." in drawn("swapped")["description"]


def test_a_row_sets_what_was_asked_beside_what_fits():
    by_level = {row["level"]: row for row in rows(drawn("original"), "asked")}
    assert {level: row["asked"] for level, row in by_level.items()} == {"1 user": 1, "2 users": 2, "4 users": 4}
    assert by_level["1 user"]["words"] == "1 asked, all fit on decode\nprinted: 14.17 tok/s"
    assert by_level["4 users"]["words"].startswith("4 asked, 2 more than fit on decode\n")


def test_at_a_rate_it_is_what_was_in_flight():
    (row,) = rows(drawn("open-loop/split"), "asked")
    assert row["asked"] == pytest.approx(61.69, abs=0.01)
    assert row["words"] == (
        f"62 in flight, 60 more than fit on decode\nprinted: 751.85 tok/s, {CLAIMED}"
    )  # fmt: skip


def test_what_ran_is_a_dot_and_what_nobody_saw_is_none():
    by_level = {row["level"]: row for row in rows(drawn("original"), "asked")}
    assert (by_level["1 user"]["median"], by_level["1 user"]["most"]) == (1, 1)
    assert by_level["4 users"]["most"] is None  # no decode line while it lasted


def test_the_names_of_the_lines_say_the_speed_there():
    says = {row["role"]: row["says"] for row in rows(drawn("open-loop/split"), "says")}
    assert says["prefill"] == "prefill holds 37 prompts (33 to 42) in 24,094 tok"
    assert says["decode"].startswith("decode holds 2 requests (1 to 3) in 2,925 tok: at most 71 tok/s (fp8")


def test_without_a_pool_it_says_what_is_missing():
    spec = capacity(judge(sweep([1, 8]))).to_dict()
    assert "No log states how many tokens the KV pool of a server holds" in spec["description"]


def test_experiments_without_a_pool_are_counted():
    both = capacity(judge(load(DATA / "open-loop"))).to_dict()
    assert "1 experiment without a pool that is known" in json.dumps(both["title"])
