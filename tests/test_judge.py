"""The seam: outcomes, rounding, verdicts, what a refusal takes, and the lines behind a finding."""

import sys
from pathlib import Path

import polars as pl
import pytest

sys.path.insert(0, str(Path(__file__).parent / "checks"))
from given import HEALTHY, SETTINGS, evidence, judged, outcome, verdict

from pdkit import tables
from pdkit.evidence import SCHEMAS, Evidence
from pdkit.facts import DERIVED, declared, facts
from pdkit.formats import github, json, junit, markdown, sarif, text
from pdkit.judge import judge
from pdkit.load import same_runs
from pdkit.metrics import METRICS
from pdkit.parts import register_checks
from pdkit.results import NO_RESULT
from pdkit.rules import CHECKS, below
from pdkit.sentences import Sentence

register_checks()


def published(judgement, fact: str) -> float | None:
    row = judgement.published.filter(pl.col("fact") == fact)
    return row["value"].item()


# --- names ----------------------------------------------------------------------------------------------------------


def test_a_rule_names_only_declared_facts():
    requests = set(SCHEMAS["requests"])
    for check in CHECKS.values():
        for view in check.views:
            assert set(view.names) <= declared() | (requests if view.grain == "request" else set()), check.id


def test_a_sentence_names_only_what_it_can_be_given():
    given = declared() | {"observed", "bad", "total"}
    for check in CHECKS.values():
        for says in (check.says, *(view.says for view in check.views)):
            assert Sentence().names(says) <= given, check.id


def test_a_fact_and_a_request_column_never_share_a_name():
    assert not declared() & set(SCHEMAS["requests"])


def test_every_fact_is_a_column_even_if_nobody_stated_it():
    wide = facts(same_runs(evidence()))
    assert {name for name in declared() if not name.startswith("lower__")} <= set(wide.columns)


def test_a_view_takes_only_metrics_off_the_page():
    for check in CHECKS.values():
        for view in check.views:
            assert set(view.takes) <= set(METRICS), check.id


def test_derived_facts_are_no_metrics_that_a_log_states():
    assert not {name for name in DERIVED if name in METRICS} & set(evidence().claims["fact"])


# --- outcomes -------------------------------------------------------------------------------------------------------


def test_zero_divided_by_zero_is_not_evaluated():
    assert outcome(judged(e2e_ms_mean=0), "PD304") == "not_evaluated"


def test_an_unknown_setting_is_not_evaluated_and_a_false_one_not_applicable():
    unknown = {"ignore_eos": None, "tool": None}
    assert outcome(judged(settings=unknown), "PD110") == "not_evaluated"
    assert outcome(judged(settings={"ignore_eos": False}, output_tok_asked=None), "PD110") == "not_applicable"


def test_a_rule_over_two_grains_reports_its_worst_view():
    judgement = judged(requests=[{"ttft_ms": 0.0}] + [{}] * 399)
    row = judgement.results.filter(pl.col("rule") == "PD201").row(0, named=True)
    assert (row["severity"], row["bad"], row["total"], row["observed"]) == ("suspect", 1, 400, 1 / 400)


def test_a_request_that_failed_is_not_asked_for_text():
    failed = {"ok": False, "output_tok": None, "text_chars": None}
    judgement = judged(requests=[failed] + [{}] * 399, completed=399)
    assert judgement.results.filter(pl.col("rule") == "PD103")["total"].item() == 399


def test_a_threshold_can_be_tightened():
    tightened = judge(same_runs(evidence(retokenized_tok_sum=35_000)), thresholds={"PD110": {"refuse": below(0.9)}})
    assert outcome(tightened, "PD110") == "refuse"


def test_requests_that_two_files_list_are_counted_once():
    one = evidence(requests=[{}] * 400)
    copy = evidence(requests=[{}] * 400, seen="copy.log#0")
    row = judged(one, copy).results.filter(pl.col("rule") == "PD103").row(0, named=True)
    assert row["total"] == 400


# --- rounding -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("resolution", "expected"), [(0.5, "pass"), (0.005, "refuse")])
def test_printed_digits_may_err_by_half_a_unit(resolution: float, expected: str):
    # 203 tok/s x 200 s is 600 tokens over 40,000: 1.5 %; half a unit of 203 is 0.25 %, half of 200 s another 0.25 %
    given = judged(resolution=resolution, output_throughput_tok_per_s=203)
    assert outcome(given, "PD301") == expected


def test_rounding_across_zero_counts_in_full():
    # 1 request in 23.63 s is 0.0423/s, printed 0.04: 5.5 % off below; half a digit up lands 6.3 % off above
    slow = {"completed": 1, "duration_s": 23.63, "request_throughput_per_s": 0.04}
    assert outcome(judged(resolution=0.005, **slow), "PD302") == "pass"
    assert outcome(judged(resolution=0.0001, **slow), "PD302") == "refuse"


def test_many_rounded_facts_are_moved_in_batches_alike(monkeypatch: pytest.MonkeyPatch):
    module = sys.modules["pdkit.judge"]
    given = same_runs(
        Evidence.joined(
            [evidence(seen=f"{u}.log#0", resolution=0.005, concurrency=u, duration_s=200 + u) for u in (1, 2, 4)]
        )
    )
    at_once = judge(given).results
    monkeypatch.setattr(module, "_MOVED_ROWS", 7)
    assert judge(given).results.equals(at_once)


# --- verdicts -------------------------------------------------------------------------------------------------------


def test_a_run_without_a_retokenized_count_is_unverified():
    assert verdict(judged(retokenized_tok_sum=None)) == "unverified"


def test_a_run_whose_frame_a_filter_took_is_unverified():
    assert verdict(judged(settings={"complete": None})) == "unverified"


def test_not_knowing_how_many_were_sent_is_a_doubt():
    judgement = judged(prompts_asked=None)
    assert verdict(judgement) == "measured, with doubts"
    assert "PD403" in judgement.verdicts["not_evaluated"].item()


def test_a_refusal_that_voids_less_than_the_run_is_a_doubt_and_takes_its_numbers():
    judgement = judged(itl_ms_mean=0)
    assert verdict(judgement) == "measured, with doubts"
    assert published(judgement, "ttft_ms_mean") is None
    assert published(judgement, "output_throughput_tok_per_s") == 200


def test_a_refused_run_publishes_nothing():
    judgement = judged(retokenized_tok_sum=0)
    assert verdict(judgement) == NO_RESULT
    assert judgement.published["value"].null_count() == judgement.published.height > 20
    assert judgement.for_results.wide("output_throughput_tok_per_s")["output_throughput_tok_per_s"].to_list() == [None]


def test_no_claim_can_be_reached_from_what_is_published():
    refused = judged(retokenized_tok_sum=0).for_results
    claimed = {"completed", "duration_s", "output_tok_sum", "output_throughput_tok_per_s"}
    assert not claimed & set(refused.runs.columns)
    assert refused.numbers["value"].drop_nulls().is_empty()


def test_what_was_claimed_is_kept_as_evidence():
    claimed = judged(retokenized_tok_sum=0).claimed.filter(pl.col("fact") == "output_throughput_tok_per_s")
    assert claimed["value"].item() == 200


def test_received_throughput_is_what_came_back_over_the_duration():
    assert published(judged(), "received_throughput_tok_per_s") == 39_600 / 200


def of_requests(count: int):
    """A healthy run of so many requests of 2 s each in 200 s."""
    return judged(
        completed=count, prompts_asked=count, request_throughput_per_s=count / 200, concurrency_mean=count / 100
    )


@pytest.mark.parametrize(
    ("completed", "printed"), [(10, []), (63, ["median"]), (64, ["median", "p90"]), (700, ["median", "p90", "p99"])]
)
def test_a_percentile_is_withheld_below_the_requests_that_support_it(completed: int, printed: list[str]):
    judgement = of_requests(completed)
    values = {s: published(judgement, f"ttft_ms_{s}") for s in ("median", "p90", "p99")}
    assert [name for name, value in values.items() if value is not None] == printed


def test_where_nothing_was_streamed_no_time_of_a_token_is_printed():
    judgement = judged(settings={"streaming": False}, ttft_ms_mean=2000, tpot_ms_mean=-0.0002, itl_ms_mean=0)
    assert [published(judgement, fact) for fact in ("ttft_ms_mean", "tpot_ms_mean", "itl_ms_mean")] == [None] * 3
    assert published(judgement, "e2e_ms_mean") == 2000
    assert verdict(judgement) == "measured"


def test_a_percentile_that_was_withheld_names_the_rule():
    row = of_requests(63).published.filter(pl.col("fact") == "ttft_ms_p90")
    assert row["voided_by"].item().to_list() == ["PD901"]


def test_the_evidence_level_says_what_was_seen():
    assert judged().verdicts["evidence_level"].item() == "summary"
    assert judged(requests=[{"text_chars": None}] * 400).verdicts["evidence_level"].item() == "requests"
    assert judged(requests=[{}] * 400).verdicts["evidence_level"].item() == "text"


# --- experiments ----------------------------------------------------------------------------------------------------


def sweep(**retokenized: int | None):
    levels = {int(name.removeprefix("u")): value for name, value in retokenized.items()}
    return judged(
        *(
            evidence(
                seen=f"{users}.log#0",
                concurrency=users,
                concurrency_mean=users,
                e2e_ms_mean=2.5 * users * (200 + users),
                duration_s=200 + users,
                output_throughput_tok_per_s=40_000 / (200 + users),
                retokenized_tok_sum=back,
            )
            for users, back in levels.items()
        )
    )


def test_a_sentence_about_the_experiment_is_folded_from_its_runs():
    assert (
        sweep(u1=40_000, u8=40_000, u16=10_000, u32=0).conclusions["sentence"].item().startswith("measured to 8 users")
    )
    assert (
        "no measured result at 16 and 32 users"
        in sweep(u1=40_000, u8=40_000, u16=10_000, u32=0).conclusions["sentence"].item()
    )


def test_a_gap_in_the_middle_is_not_passed_over():
    sentence = sweep(u1=40_000, u8=0, u16=40_000).conclusions["sentence"].item()
    assert sentence.startswith("measured at 1 and 16 users")
    assert sentence.endswith("no measured result at 8 users")


def test_a_level_that_was_not_held_is_not_the_level_that_was_reached():
    held = evidence(seen="4.log#0")
    guard = evidence(seen="64.log#0", concurrency=64, duration_s=201, ttft_ms_mean=121)  # 4 in flight
    judgement = judged(held, guard)
    assert judgement.verdicts["level"].to_list() == ["4 users", "64 users (not held)"]
    sentence = judgement.conclusions["sentence"].item()
    assert sentence == "measured at 4 users and at 64 users (not held) (1 of 2 with doubts)"


def test_a_level_that_another_rule_refuses_is_doubtful():
    assert judged(concurrency_mean=4.1, e2e_ms_mean=2000).verdicts["level"].item() == "4 users (doubtful)"  # PD304


def test_a_refused_run_keeps_the_name_of_the_level_it_was_meant_to_be():
    assert judged(concurrency=64, retokenized_tok_sum=100).verdicts["level"].item() == "64 users"


def test_many_levels_are_counted_and_not_listed():
    sentence = (
        sweep(**{f"u{users}": 40_000 if users % 2 else 0 for users in range(1, 41)}).conclusions["sentence"].item()
    )
    assert sentence.endswith("no measured result at 20 levels from 2 to 40 users")


def test_an_unverified_level_is_never_called_measured():
    assert sweep(u1=None).conclusions["sentence"].item() == "unverified at 1 user"


# --- what could not be looked at ------------------------------------------------------------------------------------


def test_a_rule_that_is_blind_to_more_than_a_hundredth_of_the_requests_does_not_pass():
    unknown, empty = {"text_chars": None}, {"text_chars": 0}
    assert outcome(judged(requests=[unknown] * 4 + [{}] * 396), "PD103") == "pass"
    assert outcome(judged(requests=[unknown] * 5 + [{}] * 395), "PD103") == "not_evaluated"
    assert outcome(judged(requests=[unknown] * 5 + [empty] * 5 + [{}] * 390), "PD103") == "refuse"


def nothing_to_judge():
    """A run of which only a speed is known: no rule can look at it."""
    settings = dict.fromkeys(SETTINGS) | {"experiment": "e", "reader": "sglang_bench_log"}
    return judged(settings=settings, **dict.fromkeys(HEALTHY) | {"output_throughput_tok_per_s": 751.85})


def test_a_run_that_no_rule_could_look_at_publishes_nothing():
    judgement = nothing_to_judge()
    assert judgement.verdicts.select("verdict", "refused_by").row(0) == ("no measured result", [])
    assert judgement.published.drop_nulls("value").is_empty()


@pytest.mark.parametrize("form", [text, markdown, github, junit])
def test_a_format_for_readers_says_why_a_run_that_no_rule_could_look_at_has_no_result(form):
    assert "nothing here that any rule could look at" in form.text(nothing_to_judge())


@pytest.mark.parametrize("form", [json, sarif])
def test_a_format_for_programs_can_hold_a_run_that_no_rule_could_look_at(form):
    assert "no measured result" in form.text(nothing_to_judge())


def test_the_report_says_why_a_run_that_no_rule_could_look_at_has_no_result():
    assert "Nothing here that any rule could look at." in str(tables.no_measured_result(nothing_to_judge()))


# --- lines ----------------------------------------------------------------------------------------------------------


def test_a_finding_names_the_lines_of_the_facts_it_rests_on():
    judgement = judged(retokenized_tok_sum=100)
    lines = judgement.findings.filter(pl.col("rule") == "PD101")["lines"].item().to_list()
    stated = {row["fact"]: row["source_line"] for row in judgement.evidence.claims.iter_rows(named=True)}
    assert f"run.log:{stated['retokenized_tok_sum']}" in lines
    assert f"run.log:{stated['output_tok_sum']}" in lines


def test_a_finding_over_requests_names_the_first_offenders():
    judgement = judged(requests=[{}] + [{"text_chars": 0}] * 5 + [{}] * 394)
    lines = judgement.findings.filter(pl.col("rule") == "PD103")["lines"].item().to_list()
    assert lines[:3] == ["run.jsonl:1[1]", "run.jsonl:1[2]", "run.jsonl:1[3]"]


def test_every_failure_has_a_line():
    for fault in (
        {"retokenized_tok_sum": 0},
        {"completed": -1},
        {"e2e_ms_mean": "nan"},
        {"settings": {"complete": False, "ending": "Killed"}},
    ):
        findings = judged(**fault).findings
        assert findings.filter(pl.col("lines").list.len() == 0)["rule"].to_list() == []


def test_nothing_read_is_nothing_judged():
    nothing = judge(Evidence.of())
    assert nothing.results.is_empty()
    assert nothing.verdicts.is_empty()
    assert nothing.findings.is_empty()
    assert nothing.published.is_empty()
