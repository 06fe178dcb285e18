"""What every chart holds: it draws on any evidence, speaks, fits the page, and shows no refused number as a result."""

import inspect
import json
import re
from functools import cache
from pathlib import Path

import pytest

from pdkit.charts.theme import PAGE_PX, render
from pdkit.judge import judge
from pdkit.load import load
from pdkit.metrics import METRICS
from pdkit.parts import charts
from pdkit.results import CLAIMED, Judgement, Published
from tests.charts.made import hostile

DATA = Path(__file__).parents[2] / "data"
CASES = sorted(path.parent for path in DATA.glob("*/SOURCES.md"))
ROWS = 4_000  # twice the budget: a curve has a foot, and labels are rows too
# pictures take long; these have the most columns, rows, legends, or the fewest of them
WIDEST = ("every kind of impossible TTFT", "ten levels", "thirty experiments", "no text counted", "empty")
EXPECTED = {
    "throughput_vs_received",
    "ttft_by_concurrency",
    "tokens_by_concurrency",
    "latency_vs_throughput",
    "latency_by_level",
    "interactivity",
    "server_timeline",
    "claims_compared",
    "capacity",
}


@cache
def judged(case: str) -> Judgement:
    return judge(hostile()[case]) if case in hostile() else judge(load(DATA / case))


@cache
def drawn(name: str, case: str) -> dict:
    part = charts()[name]
    return part.draw(judged(case) if part.evidence else judged(case).for_results).to_dict()


every_chart = pytest.mark.parametrize("name", sorted(EXPECTED))
every_case = pytest.mark.parametrize("case", [*(path.name for path in CASES), *hostile()])


def test_every_chart_that_is_registered_is_tested():
    of_weeks = {name for name, part in charts().items() if part.weeks}  # tests/charts/test_series_over_weeks.py
    assert set(charts()) - of_weeks == EXPECTED
    assert of_weeks == {"series_over_weeks"}


@every_chart
def test_a_chart_says_what_it_asks_and_how_to_read_it(name):
    part = charts()[name]
    assert part.question.endswith("?")
    assert len(part.doc.splitlines()) >= 3


@every_chart
def test_only_evidence_charts_are_given_what_was_claimed(name):
    part = charts()[name]
    argument, *options = inspect.signature(part.draw, eval_str=True).parameters.values()
    assert all(option.kind is option.KEYWORD_ONLY and option.default is not option.empty for option in options)
    assert argument.annotation is (Judgement if part.evidence else Published)


@every_chart
@every_case
def test_a_chart_is_made_of_any_evidence_and_json_can_hold_it(name, case):
    spec = drawn(name, case)
    assert json.loads(json.dumps(spec, allow_nan=False))["vconcat"]


@every_chart
@pytest.mark.parametrize("case", [*(path.name for path in CASES), *WIDEST])
def test_a_chart_fits_the_page(name, case):
    bundle, _ = render(drawn(name, case))
    assert float(re.search(r'width="([\d.]+)"', bundle["image/svg+xml"])[1]) <= PAGE_PX


@every_chart
@every_case
def test_a_chart_speaks_in_whole_sentences(name, case):
    words = drawn(name, case)["description"]
    assert words.endswith(".")
    assert not re.search(r"\b(None of 0|None\b(?! of)|null|nan|inf)\b", words)


@every_chart
@every_case
def test_a_chart_holds_few_rows(name, case):
    assert sum(len(rows) for rows in drawn(name, case).get("datasets", {}).values()) <= ROWS


@every_chart
def test_synthetic_data_is_said_to_be_so(name):
    assert "synthetic data" in " ".join(drawn(name, "split-l4-qwen3-8b")["title"]["subtitle"])


@pytest.mark.parametrize("name", [name for name, part in charts().items() if not part.evidence and not part.weeks])
@every_case
def test_a_refused_number_is_nowhere_in_a_chart_of_results(name, case):
    said = set(numbers(drawn(name, case).get("datasets", {})))
    assert not said & refused_numbers(judged(case))


def numbers(part):
    if isinstance(part, dict):
        part = list(part.values())
    if isinstance(part, list):
        for value in part:
            yield from numbers(value)
    elif isinstance(part, float):
        yield round(part, 2)


def refused_numbers(judgement: Judgement) -> set[float]:
    """Numbers that only refused runs state; small whole ones are also counts, shares and axis ends."""
    published = {round(value, 2) for value in judgement.published["value"].drop_nulls() if value is not None}
    taken = judgement.published.filter(judgement.published["value"].is_null()).select("run_id", "fact")
    claimed = {round(value, 2) for value in taken.join(judgement.claimed, on=["run_id", "fact"])["value"].drop_nulls()}
    return {value for value in claimed - published if not value.is_integer()}


@pytest.mark.parametrize("name", [name for name, part in charts().items() if not part.evidence and not part.weeks])
def test_the_throughput_of_the_posted_run_is_no_result(name):
    text = json.dumps(drawn(name, "split-l4-qwen3-8b"))
    assert "751.8" not in text
    assert "8 requests/s: no measured result" in text


@pytest.mark.parametrize("name", [name for name, part in charts().items() if part.evidence])
def test_a_claim_that_evidence_shows_is_labelled(name):
    assert CLAIMED in json.dumps(drawn(name, "split-l4-qwen3-8b"))


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_axis_titles_are_those_of_the_metrics(name):
    known = {metric.axis for metric in METRICS.values()} | {f"{METRICS['output_throughput_tok_per_s'].axis}, claimed"}
    own = {"Level", "Share of requests", "TTFT (ms)", "not on the axis", "Output tokens (tok)", "Requests at once"}
    assert set(axis_titles(drawn(name, "split-l4-qwen3-8b"))) <= known | own


def axis_titles(part):
    if isinstance(part, list):
        for value in part:
            yield from axis_titles(value)
    elif isinstance(part, dict):
        axis = part.get("axis")
        if isinstance(axis, dict) and isinstance(axis.get("title"), str):
            yield axis["title"]
        for key, value in part.items():
            if key != "datasets":
                yield from axis_titles(value)
