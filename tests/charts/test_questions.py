"""Each chart answers its question: what is drawn can be worked out by hand."""

import json
from functools import cache
from pathlib import Path

import polars as pl
import pytest

from pdkit.charts.levels import gap_sentences, named, provenance, refused
from pdkit.charts.ttft_by_concurrency import _curves
from pdkit.judge import judge
from pdkit.load import load
from pdkit.parts import charts
from pdkit.results import CLAIMED, NO_RESULT
from tests.charts.made import evidence, hostile, run, sweep

DATA = Path(__file__).parents[2] / "data"


@cache
def split():
    return judge(load(DATA / "split-l4-qwen3-8b"))


def drawn(name, judgement):
    part = charts()[name]
    return part.draw(judgement if part.evidence else judgement.for_results).to_dict()


def rows(spec, *fields):
    return [row for data in spec["datasets"].values() for row in data if set(fields) <= set(row)]


# --- throughput_vs_received -----------------------------------------------------------------------------------------


def test_the_posted_run_claims_751_85_and_received_nothing():
    points = rows(drawn("throughput_vs_received", split()), "received", "claimed", "verdict")
    posted = [row for row in points if row["title"] == "Split server as posted (synthetic)"]
    assert [(row["received"], row["claimed"], row["verdict"]) for row in posted] == [(0, 751.85, "no measured result")]
    assert posted[0]["rules"].startswith("PD101")


def test_every_run_that_states_a_throughput_is_one_point():
    assert len(rows(drawn("throughput_vs_received", split()), "received", "claimed", "verdict")) == 11


def test_the_line_of_equal_throughput_goes_from_corner_to_corner():
    ends = [row for row in rows(drawn("throughput_vs_received", split()), "received", "claimed") if "text" not in row]
    top = max(row["claimed"] for row in ends)
    assert top > 751.85
    assert {"received": top, "claimed": top} in ends


def test_runs_whose_text_was_not_counted_stand_beside_the_plot():
    points = rows(drawn("throughput_vs_received", judge(hostile()["no text counted"])), "where")
    assert [row["received"] for row in points] == [None, None]


def test_runs_without_a_throughput_are_counted():
    spec = drawn("throughput_vs_received", judge(load(DATA / "first-pd-benchmark")))
    assert "5 runs printed no output throughput." in spec["title"]["subtitle"]


# --- ttft_by_concurrency --------------------------------------------------------------------------------------------


def test_impossible_times_are_counted_and_never_on_the_axis():
    spec = drawn("ttft_by_concurrency", judge(hostile()["every kind of impossible TTFT"]))
    counts = {row["kind"]: row["count"] for row in rows(spec, "kind", "count")}
    assert counts == {"0 ms": 1, "negative": 1, "above E2E": 1, "failed": 1, "no TTFT": 1, "not a number": 3}
    assert {row["ms"] for row in rows(spec, "ms", "share")} == {50.0}


def test_a_curve_ends_at_the_share_of_requests_with_a_possible_ttft():
    """Of the 64 requests at 16 users 48 had a first token at 0 ms."""
    points = rows(drawn("ttft_by_concurrency", split()), "ms", "share", "verdict")
    assert max(row["share"] for row in points if row["level"] == "16 users") == 0.25
    assert max(row["share"] for row in points if row["level"] == "8 users") == 1.0


def test_small_samples_are_drawn_whole():
    spec = drawn("ttft_by_concurrency", judge(sweep([1])))
    assert {row["ms"] for row in rows(spec, "ms", "share")} == {50.0 + k for k in range(40)}


def test_a_long_curve_is_read_off_at_exact_order_statistics():
    """1,000 requests at 1, 2, … 1,000 ms: the 990th is 990 ms, and that one had come for 99 % of them."""
    about = {
        "run_id": "one",
        "title": "t",
        "level": "l",
        "rank": 1,
        "verdict": "measured",
        "taken": False,
        "kind": None,
    }
    curve = _curves(pl.DataFrame([about | {"ms": float(k)} for k in range(1, 1001)]))
    shares = dict(curve.select("ms", "share").iter_rows())
    assert (shares[1.0], shares[500.0], shares[990.0], shares[1000.0]) == (0.001, 0.5, 0.99, 1.0)
    assert curve.height == 110


def test_a_summary_is_labelled_so():
    spec = drawn("ttft_by_concurrency", judge(hostile()["a summary only"]))
    found = {(row["level"], row["statistic"], row["ms"], row["share"]) for row in rows(spec, "statistic")}
    assert found == {
        ("1 user", "mean", 69.5, 0),
        ("1 user", "median", 69.5, 0.5),
        ("8 users", "mean", 419.5, 0),
        ("8 users", "median", 419.5, 0.5),
    }
    assert any(note.startswith("Summary only") for note in spec["title"]["subtitle"])


def test_refused_levels_are_named_as_claimed():
    names = {row["name"] for row in rows(drawn("ttft_by_concurrency", split()), "name", "rank")}
    assert {f"16 users, n = 64\n{CLAIMED}", "8 users, n = 64"} <= names


# --- tokens_by_concurrency ------------------------------------------------------------------------------------------


def test_printed_throughput_rises_while_text_disappears():
    swapped = [
        row
        for row in rows(drawn("tokens_by_concurrency", split()), "words")
        if row["level"] in ("8 users", "16 users", "32 users")
    ]
    assert [(row["claimed"], row["received"], row["printed"]) for row in swapped] == [
        (8192, 8192, 98.15),
        (8192, 2048, 388.67),
        (8192, 0, 696.66),
    ]
    assert swapped[2]["words"] == f"0 of 8,192 tok came back\nprinted: 696.66 tok/s, {CLAIMED}"
    assert swapped[0]["words"] == "8,192 of 8,192 tok came back\nprinted: 98.15 tok/s"


def test_a_number_that_a_rule_took_is_merely_claimed_though_the_run_stands():
    """A block whose TTFT is not that of its requests, and whose throughput is not tokens over time: PD310, PD301."""
    row, claims, requests = run(8)
    changed = {"ttft_ms_mean": 30.0, "output_throughput_tok_per_s": 400.25}
    edited = [claim | {"value": changed.get(str(claim["fact"]), claim["value"])} for claim in claims]
    judgement = judge(evidence((row, edited, requests)))
    assert judgement.verdicts["verdict"].item() != NO_RESULT
    for name in ("ttft_by_concurrency", "tokens_by_concurrency", "throughput_vs_received"):
        assert CLAIMED in json.dumps(drawn(name, judgement)), name
    assert all(row["taken"] for row in rows(drawn("ttft_by_concurrency", judgement), "taken"))


# --- charts of results ----------------------------------------------------------------------------------------------


def test_a_refused_level_is_a_gap_with_its_name():
    judgement = judge(sweep([1, 8, 16, 32], received={16: 0.25}))
    for name in ("latency_vs_throughput", "latency_by_level"):
        spec = drawn(name, judgement)
        assert "16 users: no measured result" in json.dumps(spec)
        points = rows(spec, "ms", "segment")
        assert {row["level"] for row in points} == {"1 user", "8 users", "32 users"}
        assert {(row["level"], row["segment"]) for row in points} >= {("8 users", 0), ("32 users", 1)}, (
            "the line breaks"
        )


def test_a_mean_stands_in_where_the_median_was_withheld_and_says_so():
    """Six requests are too few for a median (PD901); the gaps between their tokens are many."""
    spec = drawn("latency_by_level", judge(load(DATA / "real-client/healthy")))
    found = {(row["level"], row["statistic"]) for row in rows(spec, "ms", "segment")}
    assert found == {("1 user", "mean"), ("1 user", "median"), ("8 users", "median"), ("16 users", "median")}
    assert any("means where labelled so, at 1 user" in note for note in spec["title"]["subtitle"])


def test_levels_stand_in_the_order_of_their_load():
    levels = (8.0, 1.0, 16.0, float("inf"))
    runs = named(judge(evidence(*(run(level) for level in levels), run(float("inf"), rate=4.0))).verdicts)
    assert runs["level"].to_list() == ["1 user", "8 users", "16 users", "4 requests/s", "offline burst"]


def test_interactivity_says_what_is_missing():
    assert "gpu_count" in drawn("interactivity", judge(sweep([1, 8])))["description"]


def test_interactivity_is_per_gpu():
    """The swapped sweep at 1 user: 14.17 tok/s on 2 GPUs; the baseline has one."""
    points = {
        (row["level"], row["gpu_count"]): row["y"] for row in rows(drawn("interactivity", split()), "y", "gpu_count")
    }
    assert points["1 user", 2.0] == pytest.approx(7.08, abs=0.01)
    assert points["8 requests/s", 1.0] == 728.61


def test_experiments_beyond_the_colours_are_told_by_hovering():
    spec = drawn("latency_by_level", judge(hostile()["thirty experiments"]))
    assert any("too many for a colour each" in note for note in spec["title"]["subtitle"])


# --- words ----------------------------------------------------------------------------------------------------------


def test_runs_are_counted_in_words():
    runs = pl.DataFrame({"verdict": ["no measured result", "measured", "measured"], "synthetic": [True, False, None]})
    assert (refused(runs), refused(runs[1:]), refused(runs[:1]), refused(runs[:0])) == (
        "1 of 3 runs has no measured result",
        "None of 2 runs was refused",
        "The run has no measured result",
        "There are no runs",
    )
    assert (provenance(runs), provenance(runs[:1]), provenance(runs[1:])) == (
        "synthetic data: 1 of 3 runs",
        "synthetic data",
        "",
    )


def test_gaps_of_one_experiment_and_reason_share_a_sentence():
    gaps = pl.DataFrame(
        {
            "title": ["a", "a", "a"],
            "verdict": ["no measured result"] * 2 + ["unverified"],
            "level": ["8 users", "16 users", "1 user"],
        }
    )
    assert gap_sentences(gaps)["sentence"].to_list() == [
        "8 users, 16 users: no measured result",
        "1 user: unverified, and a number that this needs is missing",
    ]
