"""A healthy run is believed by every rule, and a rule that cannot look does not pass."""

import polars as pl
import pytest
from given import HEALTHY, SETTINGS, evidence, judged, outcome, verdict

from pdkit.evidence import Evidence
from pdkit.parts import register_checks
from pdkit.rules import CHECKS

register_checks()
RULES = sorted(CHECKS)
# a view that names several facts and says that some are enough
SOME_ARE_ENOUGH = {
    "PD112": "without a lower level it is not applicable",
    "PD201": "the mean or the median of TTFT is enough",
    "PD202": "the mean or the median of TTFT is enough",
    "PD209": "counts the numbers that were stated",
    "PD306": "judges the percentiles that a version prints",
    "PD307": "judges the clocks that a version prints",
    "PD308": "has a view over the means and one over the medians",
    "PD312": "judges the latencies that a version prints",
    "PD315": "counts the facts on which sources differ",
    "PD403": "has a view over requests, and sent is known from several places",
    "PD405": "counts listings; levels have views of their own",
    "PD407": "has a view a fact",
    "PD508": "has a view of the duration alone",
    "PD901": "has a view a clock",
    "PD105": "has a view over requests, and what was asked is known from several places",
    "PD210": "a long gap is long whatever the p99",
    "PD411": "counts what is not stated",
    "PD314": "counts levels",
    "PD206": "has a view over requests",
    "PD310": "has a view an array",
    "PD104": "has two ways to know what was asked",
    "PD110": "what was asked is known from several places",
    "PD402": "an end marker is its own view",
}


def test_a_healthy_run_is_measured():
    assert verdict(judged()) == "measured"


def test_a_healthy_run_with_its_requests_is_measured():
    assert verdict(judged(requests=[{}] * 400)) == "measured"


@pytest.mark.parametrize("rule", RULES)
def test_no_rule_doubts_a_healthy_run(rule: str):
    assert outcome(judged(requests=[{}] * 400), rule) in ("pass", "not_applicable", "not_evaluated", "note")


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_that_knows_nothing_neither_passes_nor_fails(rule: str):
    nothing = dict.fromkeys(HEALTHY)
    blind = judged(
        settings=dict.fromkeys(SETTINGS) | {"experiment": "e"},
        requests=[
            dict.fromkeys(("ok", "output_tok", "text_chars", "ttft_ms", "tpot_ms", "itl_count", "nonfinite_count"))
        ],
        **nothing,
    )
    assert outcome(blind, rule) in ("not_evaluated", "not_applicable") or rule == "PD209"
    assert verdict(blind) in ("unverified", "no measured result")


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule not in SOME_ARE_ENOUGH])
def test_one_missing_fact_turns_no_verdict_of_a_rule_into_a_pass(rule: str):
    views = [view for view in CHECKS[rule].views if view.grain == "run"]
    for name in {root for view in views for root in view.observed.meta.root_names()} & set(HEALTHY):
        assert outcome(judged(**{name: None}), rule) in ("not_evaluated", "not_applicable"), name


def test_a_check_has_its_page():
    for check in CHECKS.values():
        assert check.title.endswith("."), check.id
        for section in ("Why", "Next", "Source", "Exceptions"):
            assert check.section(section), f"{check.id} says no {section}"


def test_a_view_has_a_sentence_and_a_bound():
    for check in CHECKS.values():
        for view in check.views:
            assert view.bounds, check.id
            assert view.says or check.says, check.id


def test_a_level_that_never_ran_is_judged_by_its_absence_alone():
    plan = [
        {"experiment": "e", "concurrency": 16.0, "prompts_asked": 32.0, "source_file": "sweep.toml", "source_line": 7}
    ]
    judgement = judged(Evidence.of(plan=plan))
    failed = judgement.results.filter(pl.col("outcome") == "fail")["rule"].to_list()
    assert failed == ["PD404"]


def test_nothing_is_evaluated_on_nothing():
    judgement = judged(evidence(settings={"complete": False, "ending": "empty file"}, **dict.fromkeys(HEALTHY)))
    assert verdict(judgement) == "no measured result"
    assert judgement.verdicts["refused_by"].item().to_list() == ["PD401"]
    assert judgement.results.filter(pl.col("outcome") == "pass").is_empty()
