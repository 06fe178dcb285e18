"""Every rule fires on its planted fault, and is quiet where the fault has a legitimate reason."""

from datetime import datetime
from typing import Any

import polars as pl
import pytest
from given import evidence, judged, outcome, said, verdict

from pdkit.evidence import Evidence
from pdkit.parts import register_checks
from pdkit.rules import CHECKS

register_checks()

EMPTY = {"text_chars": 0, "ttft_ms": 0.0, "tpot_ms": None, "itl_count": 0}
FAILED = {"ok": False, "error": "503", "output_tok": None, "text_chars": None, "ttft_ms": None, "tpot_ms": None}

TESTED_APART = ("comparability", "server_evidence", "physical_limits")  # families with a test file of their own

# 400 requests, one every 0.5 s, each of 2 s
TIMED = [{"sent_s": i * 0.5, "e2e_ms": 2000.0} for i in range(400)]
OPEN = {"request_rate_per_s": 2, "concurrency": float("inf")}

# (rule, outcome, what is planted into a healthy run)
FAULTS: list[tuple[str, str, dict[str, Any]]] = [
    ("PD101", "refuse", {"retokenized_tok_sum": 19_999}),
    ("PD102", "suspect", {"retokenized_tok_sum": 35_999}),
    ("PD102", "suspect", {"retokenized_tok_sum": 44_001}),
    ("PD103", "refuse", {"requests": [EMPTY] * 5 + [{}] * 395}),
    ("PD103", "suspect", {"requests": [EMPTY] * 4 + [{}] * 396}),
    ("PD103", "refuse", {"requests": [EMPTY | {"output_tok": 0}] * 5 + [{}] * 395}),
    ("PD104", "suspect", {"settings": {"ignore_eos": False}, "requests": [{}] * 400}),
    ("PD104", "suspect", {"settings": {"ignore_eos": False}, "output_tok_asked_each": None}),
    ("PD105", "refuse", {"output_tok_sum": 35_000}),
    ("PD105", "suspect", {"requests": [{"output_tok": 80}] * 5 + [{}] * 395}),
    ("PD106", "suspect", {"requests": [{"text_hash": 7}] * 201 + [{}] * 199}),
    ("PD107", "refuse", {"requests": [{"finish_reason": "abort"}] * 5 + [{"finish_reason": "stop"}] * 395}),
    ("PD107", "suspect", {"requests": [{"finish_reason": "Error"}] + [{"finish_reason": "length"}] * 399}),
    ("PD108", "suspect", {"requests": [{"text_chars": 40}] * 400}),
    ("PD108", "suspect", {"requests": [{"text_chars": 2100}] * 400}),
    ("PD109", "suspect", {"requests": [{"retokenized_tok": 80}] * 5 + [{"retokenized_tok": 100}] * 395}),
    ("PD110", "refuse", {"retokenized_tok_sum": 19_999, "output_tok_sum": 19_999}),
    ("PD110", "suspect", {"retokenized_tok_sum": 35_999}),
    ("PD110", "suspect", {"retokenized_tok_sum": 10_000, "settings": {"ignore_eos": None}}),
    ("PD110", "refuse", {"retokenized_tok_sum": 19_999, "output_tok_asked": None}),
    (
        "PD111",
        "suspect",
        {"retokenized_tok_sum": 10_000, "settings": {"backend": "sglang-oai"}, "requests": [{"itl_count": 24}] * 400},
    ),
    (
        "PD111",
        "suspect",
        {"settings": {"backend": "sglang-oai"}, "requests": [{"itl_count": 11}] * 40 + [{}] * 360},
    ),
    (
        "PD111",
        "suspect",
        {
            "retokenized_tok_sum": 0,
            "settings": {"client_definition": "rust", "backend": "sglang-oai"},
            "requests": [{"itl_count": 24}] * 400,
        },
    ),
    ("PD201", "refuse", {"ttft_ms_mean": 0}),
    ("PD201", "refuse", {"ttft_ms_median": 0}),
    ("PD201", "refuse", {"requests": [{"ttft_ms": 0.0}] * 5 + [{}] * 395}),
    ("PD201", "suspect", {"requests": [{"ttft_ms": 0.0}] * 4 + [{}] * 396}),
    ("PD201", "refuse", {"requests": [{"ttft_ms": 0.0, "output_tok": 0}] * 5 + [{}] * 395}),
    ("PD202", "suspect", {"ttft_ms_mean": 0.9}),
    ("PD202", "suspect", {"requests": [{"ttft_ms": 0.5}] * 5 + [{}] * 395}),
    ("PD203", "refuse", {"itl_ms_mean": 0}),
    ("PD204", "note", {"requests": [{"itl_count": 20}] * 400}),
    ("PD204", "note", {"settings": {"streaming": False}}),
    ("PD204", "note", {"ttft_ms_mean": 1999.97, "settings": {"streaming": None}}),
    ("PD205", "suspect", {"tpot_ms_mean": 16}),
    ("PD205", "suspect", {"tpot_ms_mean": 22}),
    ("PD206", "refuse", {"tpot_ms_mean": 0}),
    ("PD206", "suspect", {"requests": [{"tpot_ms": 0.0}] + [{}] * 399}),
    ("PD206", "refuse", {"requests": [{"tpot_ms": 0.0}] * 400}),
    ("PD207", "suspect", {"requests": [{"e2e_ms": 121.0}] * 201 + [{"e2e_ms": 2000.0}] * 199}),
    ("PD208", "refuse", {"e2e_ms_mean": 2}),
    ("PD208", "refuse", {"e2e_ms_mean": 2_000_000}),
    ("PD209", "refuse", {"e2e_ms_mean": "nan"}),
    ("PD209", "refuse", {"output_throughput_tok_per_s": "inf"}),
    ("PD209", "refuse", {"completed": -1}),
    ("PD209", "refuse", {"concurrency": -1}),
    ("PD209", "refuse", {"concurrency": 1e30}),
    ("PD209", "refuse", {"retokenized_tok_sum": 1e300}),
    ("PD209", "refuse", {"ttft_ms_p99": -3}),
    ("PD209", "refuse", {"requests": [{"nonfinite_count": 1}] + [{}] * 399}),
    ("PD210", "note", {"itl_ms_max": 600}),
    ("PD210", "note", {"itl_ms_max": 5_001, "itl_ms_p99": 300}),
    ("PD210", "note", {"requests": [{"itl_max_ms": 5_001.0}] + [{}] * 399, "itl_ms_max": None}),
    ("PD301", "refuse", {"output_throughput_tok_per_s": 203}),
    ("PD302", "refuse", {"request_throughput_per_s": 2.03}),
    ("PD303", "refuse", {"total_throughput_tok_per_s": 401}),
    ("PD304", "refuse", {"concurrency_mean": 4.1}),
    ("PD304", "refuse", {"e2e_ms_mean": 2}),
    ("PD305", "refuse", {"concurrency": 3}),
    ("PD306", "refuse", {"ttft_ms_p99": 117}),
    ("PD307", "refuse", {"itl_ms_max": 18}),
    ("PD307", "suspect", {"ttft_ms_std": 0}),
    ("PD307", "note", {"e2e_ms_p99": 1995, "e2e_ms_p90": 1994}),
    ("PD308", "refuse", {"ttft_ms_mean": 2001}),
    ("PD308", "refuse", {"ttft_ms_median": 1991}),
    ("PD309", "suspect", {"tpot_ms_mean": 14}),
    ("PD310", "refuse", {"requests": [{}] * 399 + [{"output_tok": 99}]}),
    ("PD310", "refuse", {"requests": [{}] * 399}),
    ("PD310", "refuse", {"requests": [{}] * 400, "detail_rows_min": 399, "detail_rows_max": 400}),
    ("PD310", "refuse", {"requests": [{"ttft_ms": 400.0}] * 400}),
    ("PD310", "refuse", {"requests": [{"ttft_ms": 100.0}] * 201 + [{"ttft_ms": 140.1}] * 199, "ttft_ms_mean": 119.95}),
    ("PD310", "refuse", {"requests": [{"itl_mean_ms": 20.0}] * 400}),
    ("PD311", "suspect", {"peak_output_throughput_tok_per_s": 15}),
    ("PD312", "refuse", {"e2e_ms_p99": 200_100}),
    ("PD401", "refuse", {"settings": {"complete": False, "ending": "Killed"}}),
    ("PD402", "suspect", {"settings": {"crashed_after": True, "ending": "KeyError: 'x'"}}),
    ("PD403", "suspect", {"completed": 394, "prompts_asked": 400}),
    ("PD403", "refuse", {"completed": 379, "prompts_asked": 400}),
    ("PD403", "refuse", {"requests": [FAILED] * 21 + [{}] * 379, "completed": 379}),
    ("PD403", "refuse", {"completed": 379, "requests": [{}] * 379}),  # rows that are gone were sent all the same
    ("PD406", "refuse", {"completed": 398, "requests_failed_said": 1}),
    ("PD407", "refuse", {"completed": 0}),
    ("PD407", "refuse", {"duration_s": 0}),
    ("PD407", "refuse", {"output_tok_sum": 0, "retokenized_tok_sum": 0}),
    ("PD408", "suspect", {"requests": [{"prompt_hash": i // 2} for i in range(400)]}),
    ("PD411", "note", {"settings": {"model": None}}),
    ("PD501", "suspect", {"concurrency": 5.1}),
    ("PD501", "refuse", {"concurrency": 8.1}),
    ("PD502", "suspect", {"concurrency": 101}),
    ("PD502", "refuse", {"concurrency": 401}),
    ("PD503", "refuse", OPEN | {"request_rate_per_s": 4, "requests": TIMED}),
    ("PD503", "suspect", OPEN | {"request_rate_per_s": 2.2, "requests": TIMED}),
    ("PD504", "refuse", OPEN | {"requests": [{"sent_s": i * 0.25, "e2e_ms": 2000.0 + 500 * i} for i in range(400)]}),
    (
        "PD505",
        "refuse",
        {"requests": [{"sent_s": max(0, i - 40) * 0.5, "e2e_ms": 1000.0 if i < 40 else 100.0} for i in range(400)]},
    ),
    ("PD506", "suspect", {"requests": [t | {"tpot_ms": 15.0 + i // 134 * 3} for i, t in enumerate(TIMED)]}),
    ("PD507", "suspect", {"requests": [{"sent_s": i * 0.2, "e2e_ms": 2000.0} for i in range(400)]}),
    ("PD508", "suspect", {"duration_s": 59}),
    ("PD508", "suspect", {"e2e_ms_mean": 41_000}),
    ("PD509", "refuse", {"request_rate_per_s": 2}),
    ("PD510", "suspect", OPEN | {"requests": [{"ttft_ms": 500.0}] * 20 + [{}] * 380}),
    ("PD511", "suspect", {"client_cpu_ratio": 0.95}),
    ("PD512", "note", {"concurrency": float("inf")}),
    ("PD901", "note", {"completed": 60}),
]

# (rule, why the run is healthy all the same, what differs from the healthy run)
EXCEPTIONS: list[tuple[str, str, dict[str, Any]]] = [
    ("PD101", "the retokenized count is absent", {"retokenized_tok_sum": None}),
    ("PD101", "the Rust client was told not to count again", {"retokenized_tok_sum": 0, "settings": {"client_definition": "rust"}}),
    ("PD101", "the log says that there was no tokenizer", {"retokenized_tok_sum": 0, "settings": {"retokenizes": False}}),
    ("PD102", "random text re-tokenizes a few percent off", {"retokenized_tok_sum": 38_000}),
    ("PD103", "one token may be an end token", {"requests": [EMPTY | {"output_tok": 1}] * 400}),
    ("PD103", "no output was asked for", {"requests": [EMPTY | {"output_tok": 0}] * 400, "output_tok_asked_each": 0}),
    ("PD103", "embeddings have no text", {"requests": [EMPTY | {"output_tok": 0}] * 400, "settings": {"backend": "sglang-embedding"}}),
    ("PD103", "a failed request has no text", {"requests": [FAILED] * 4 + [{}] * 396}),
    ("PD104", "the end token is ignored", {"requests": [{}] * 400}),
    ("PD104", "few requests", {"settings": {"ignore_eos": False}, "completed": 19}),
    ("PD104", "answers end where they end", {"settings": {"ignore_eos": False}, "output_tok_sum": 31_234, "requests": [{"output_tok": 50 + i % 50} for i in range(400)]}),
    ("PD105", "a prefill test may make two tokens for one asked", {"output_tok_asked_each": 1, "output_tok_asked": 400, "output_tok_sum": 800, "requests": [{"output_tok": 2}] * 400}),
    ("PD105", "lengths were drawn from a range", {"output_tok_asked_each": None, "requests": [{"output_tok": 50 + i % 101} for i in range(400)]}),
    ("PD105", "answers may end early", {"output_tok_sum": 20_000, "settings": {"ignore_eos": False}, "requests": [{"output_tok": 50}] * 400}),
    ("PD105", "embeddings have no output", {"output_tok_sum": 0, "settings": {"backend": "sglang-embedding"}}),
    ("PD106", "few answers", {"requests": [{"text_hash": 1}] * 19}),
    ("PD106", "short answers are alike by chance", {"requests": [{"text_hash": 1, "text_chars": 5}] * 400}),
    ("PD107", "this client keeps no finish reason", {"requests": [{}] * 400}),
    ("PD108", "empty answers are looked at elsewhere", {"requests": [EMPTY] * 200 + [{}] * 200}),
    ("PD109", "this client counts again in total only", {"requests": [{}] * 400}),
    ("PD110", "answers may end early", {"retokenized_tok_sum": 10_000, "output_tok_sum": 10_000, "settings": {"ignore_eos": False}}),
    ("PD111", "several tokens a chunk, all text there", {"settings": {"backend": "sglang-oai"}, "requests": [{"itl_count": 9}] * 400}),
    ("PD111", "the native endpoint reports the true length", {"requests": [{"itl_count": 9}] * 400}),
    ("PD111", "speculative decoding", {"accept_length": 2.7, "settings": {"backend": "sglang-oai"}, "requests": [{"itl_count": 30}] * 400}),
    ("PD201", "not streamed", {"ttft_ms_mean": 1999.9, "settings": {"streaming": False}, "requests": [{"ttft_ms": 0.0}] * 400}),
    ("PD201", "embeddings have no first token", {"ttft_ms_mean": 0, "ttft_ms_median": 0, "output_tok_sum": 0, "settings": {"backend": "sglang-embedding", "streaming": None}}),
    ("PD201", "nothing completed", {"completed": 0, "ttft_ms_mean": 0, "ttft_ms_median": 0, "output_tok_sum": 0}),
    ("PD201", "failed requests carry 0", {"requests": [FAILED | {"ttft_ms": 0.0}] * 20 + [{}] * 380}),
    ("PD203", "one token each", {"itl_ms_mean": 0, "output_tok_sum": 400}),
    ("PD203", "not streamed", {"itl_ms_mean": 0, "settings": {"streaming": False}}),
    ("PD203", "the whole answer in one chunk", {"itl_ms_mean": 0, "ttft_ms_mean": 1999.97, "settings": {"streaming": None}}),
    ("PD205", "this version prints no TPOT", {"tpot_ms_mean": None}),
    ("PD205", "several tokens a chunk", {"itl_ms_mean": 190, "settings": {"backend": "sglang-oai"}}),
    ("PD205", "speculative decoding", {"itl_ms_mean": 57, "accept_length": 3.0}),
    ("PD206", "one token each", {"tpot_ms_mean": 0, "output_tok_sum": 400}),
    ("PD206", "one token in one request", {"requests": [{"output_tok": 1, "tpot_ms": None}] + [{}] * 399}),
    ("PD207", "not streamed", {"settings": {"streaming": False}, "requests": [{"e2e_ms": 120.0}] * 400}),
    ("PD207", "answers of a few tokens", {"requests": [{"output_tok": 4, "e2e_ms": 121.0}] * 400}),
    ("PD208", "another factor is no slip of units", {"e2e_ms_mean": 1000}),
    ("PD209", "no limit is no impossible number", {"request_rate_per_s": float("inf"), "concurrency": float("inf")}),
    ("PD209", "two reads of one clock", {"tpot_ms_mean": -0.0002}),
    ("PD302", "a low rate is printed with two digits", {"completed": 1, "duration_s": 23.63, "request_throughput_per_s": 0.04, "resolution": 0.005}),
    ("PD305", "the peak may pass the cap", {"peak_running_requests": 9}),
    ("PD306", "this version prints no p90", {"ttft_ms_p90": None, "e2e_ms_p90": None}),
    ("PD308", "two reads of one clock", {"ttft_ms_mean": 2000.03, "ttft_ms_median": 1990.03}),
    ("PD309", "one token each", {"output_tok_sum": 400}),
    ("PD309", "not streamed", {"tpot_ms_mean": 14, "settings": {"streaming": False}}),
    ("PD310", "failed requests carry 0 and are not counted", {"requests": [FAILED] * 4 + [{}] * 396, "completed": 396, "output_tok_sum": 39_600}),
    ("PD310", "a chunk's gap is spread over its tokens", {"requests": [{"itl_mean_ms": 57.0}] * 400, "accept_length": 3.0}),
    ("PD311", "chunks are counted", {"peak_output_throughput_tok_per_s": 15, "settings": {"backend": "sglang-oai-chat"}}),
    ("PD311", "speculative decoding", {"peak_output_throughput_tok_per_s": 100, "accept_length": 2.7}),
    ("PD311", "a run under two seconds", {"peak_output_throughput_tok_per_s": 15, "duration_s": 1.5}),
    ("PD311", "not streamed", {"peak_output_throughput_tok_per_s": 15, "settings": {"streaming": False}}),
    ("PD402", "only other programs crashed", {"settings": {"crashed_after": False}}),
    ("PD403", "how many were sent is unknown", {"prompts_asked": None}),
    ("PD403", "the data set held fewer prompts than were asked for", {"prompts_asked": 1000, "settings": {"dataset": "custom"}}),
    ("PD407", "embeddings have no output tokens", {"output_tok_sum": 0, "settings": {"backend": "sglang-embedding"}}),
    ("PD408", "this client keeps no prompts", {"requests": [{}] * 400}),
    ("PD408", "prompts differ", {"requests": [{"prompt_hash": i} for i in range(400)]}),
    ("PD503", "the rate was offered", OPEN | {"requests": TIMED}),
    ("PD503", "this client keeps no sending times", OPEN | {"requests": [{}] * 400}),
    ("PD504", "as many end as arrive", OPEN | {"requests": TIMED}),
    ("PD504", "all at once", {"requests": TIMED}),
    ("PD505", "steady", {"requests": TIMED}),
    ("PD505", "one user", {"concurrency": 1, "requests": TIMED}),
    ("PD506", "steady", {"requests": TIMED}),
    ("PD507", "sent to the end", {"requests": TIMED}),
    ("PD507", "an offline burst", {"concurrency": float("inf"), "requests": [{"sent_s": i * 0.001, "e2e_ms": 2000.0} for i in range(400)]}),
    ("PD509", "a closed loop has no schedule", {}),
    ("PD509", "the cap is out of the way", {"request_rate_per_s": 2, "concurrency": 64}),
    ("PD510", "in a closed loop the first ones arrive together", {"requests": [{"ttft_ms": 500.0}] * 20 + [{}] * 380}),
    ("PD511", "this client says nothing of its own load", {}),
    ("PD501", "at a finite rate the cap is only a guard", {"concurrency": 64, "request_rate_per_s": 2}),
    ("PD502", "two slots", {"concurrency": 2, "prompts_asked": 3}),
    ("PD502", "at a finite rate the cap is only a guard", {"concurrency": 256, "request_rate_per_s": 2}),
    ("PD512", "a cap makes it a closed loop", {"concurrency": 4}),
    ("PD901", "gaps between tokens count as many as there are gaps", {"completed": 700, "output_tok_sum": 70_000}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("rule", "severity", "fault"), FAULTS, ids=[f"{rule}-{i}" for i, (rule, *_) in enumerate(FAULTS)]
)
def test_a_rule_fires_on_its_fault(rule: str, severity: str, fault: dict[str, Any]):
    assert outcome(judged(**fault), rule) == severity


@pytest.mark.parametrize(("rule", "why", "given"), EXCEPTIONS, ids=[f"{rule}: {why}" for rule, why, _ in EXCEPTIONS])
def test_a_rule_is_quiet_on_a_healthy_exception(rule: str, why: str, given: dict[str, Any]):
    assert outcome(judged(**given), rule) in ("pass", "not_applicable", "not_evaluated")


def test_every_rule_has_its_planted_fault():
    elsewhere = {
        "PD112",
        "PD313",
        "PD314",
        "PD315",
        "PD404",
        "PD405",
        "PD409",
    }  # these need more than one sighting: below
    repeats = {"PD902", "PD903", "PD904", "PD905", "PD906"}
    of_pairs = {check.id for check in CHECKS.values() if check.family in TESTED_APART}
    assert {rule for rule, *_ in FAULTS} | elsewhere | of_pairs | repeats == set(CHECKS)


def test_a_sentence_gives_the_numbers_it_rests_on():
    assert (
        said(judged(retokenized_tok_sum=10_000), "PD101") == "10,000 of 40,000 claimed tokens came back as text (25.0%)"
    )
    assert said(judged(requests=[EMPTY] * 100 + [{}] * 300), "PD103") == (
        "100 of 400 successful requests came back without any text"
    )


@pytest.mark.parametrize(
    ("rule", "severity", "fault"), FAULTS, ids=[f"{rule}-{i}" for i, (rule, *_) in enumerate(FAULTS)]
)
def test_every_sentence_can_be_filled(rule: str, severity: str, fault: dict[str, Any]):
    sentence = said(judged(**fault), rule)
    assert sentence
    assert "unknown" not in sentence
    assert "{" not in sentence


# --- rules that need more than one run ------------------------------------------------------------------------------


def level(users: int, **facts: float | None):
    return evidence(
        seen=f"users-{users}.log#0",
        concurrency=users,
        **({"concurrency_mean": users, "duration_s": 200 + users} | facts),
    )


def test_more_users_do_not_answer_five_times_faster():
    judgement = judged(level(2), level(4, e2e_ms_median=300))
    assert outcome(judgement, "PD112") == "suspect"
    finding = judgement.findings.filter(pl.col("rule") == "PD112").row(0, named=True)
    assert finding["sentence"] == "median E2E 300 ms, 15% of the 1,990 ms at 2 users"
    files = {line.partition(":")[0] for line in finding["lines"]}
    assert files == {"users-2.log", "users-4.log"}


def test_shorter_answers_may_end_sooner():
    assert outcome(judged(level(2), level(4, e2e_ms_median=300, output_tok_sum=4_000)), "PD112") == "not_applicable"


def test_the_lowest_level_has_no_lower_one():
    assert outcome(judged(), "PD112") == "not_applicable"


def test_two_files_of_one_run_that_disagree_refuse_it():
    console, record = evidence(), evidence(seen="run.jsonl#1", retokenized_tok_sum=0)
    judgement = judged(console, record)
    assert outcome(judgement, "PD315") == "refuse"
    assert said(judgement, "PD315") == (
        "numbers that the files of this run state differently: 1, first retokenized_tok_sum: 0.0 and 39600.0"
    )


def test_two_files_that_differ_by_what_printing_rounds_away_agree():
    console, record = (
        evidence(resolution=0.005, ttft_ms_mean=120.0),
        evidence(seen="run.jsonl#1", ttft_ms_mean=120.0049),
    )
    assert outcome(judged(console, record), "PD315") == "pass"


def test_a_heading_that_names_another_level_makes_the_label_doubtful():
    heading = evidence(concurrency=16)
    client = evidence(seen="run.jsonl#1", concurrency=4, settings={"reader": "sglang_bench_record"})
    judgement = judged(heading, client)
    assert outcome(judgement, "PD315") == "suspect"
    assert verdict(judgement) == "measured, with doubts"


def test_a_planned_level_that_no_file_shows_has_no_measured_result():
    plan = Evidence.of(plan=[{"experiment": "e", "concurrency": 16.0, "source_file": "sweep.toml", "source_line": 7}])
    judgement = judged(evidence(), plan)
    missing = judgement.verdicts.filter(pl.col("concurrency") == 16).row(0, named=True)
    assert (str(missing["verdict"]), missing["refused_by"]) == ("no measured result", ["PD404"])
    finding = judgement.findings.filter(pl.col("rule") == "PD404").row(0, named=True)
    assert finding["lines"] == ["sweep.toml:7"]


def test_a_level_that_was_run_again_is_not_averaged():
    first, again = evidence(seen="a.log#0"), evidence(seen="a.log#1", duration_s=250, output_throughput_tok_per_s=160)
    judgement = judged(first, again)
    assert judgement.verdicts.height == 2
    assert outcome(judgement, "PD405") == "suspect"


def test_repeats_that_were_declared_are_no_doubt():
    plan = Evidence.of(experiments=[{"experiment": "e", "repeats": 2, "source_file": "sweep.toml", "source_line": 1}])
    first, again = evidence(seen="a.log#0"), evidence(seen="a.log#1", duration_s=250, output_throughput_tok_per_s=160)
    assert outcome(judged(first, again, plan), "PD405") in ("pass", "not_applicable")


def test_the_same_result_listed_twice_is_one_run():
    judgement = judged(evidence(seen="a.log#0"), evidence(seen="b.log#0"))
    assert judgement.verdicts.height == 1
    assert outcome(judgement, "PD405") == "note"


def test_an_absent_end_marker_is_said_and_voids_nothing():
    plan = Evidence.of(
        experiments=[{"experiment": "e", "end_marker": "ALL_DONE", "source_file": "sweep.toml", "source_line": 1}]
    )
    judgement = judged(evidence(), plan)
    assert outcome(judgement, "PD402") == "note"
    assert verdict(judgement) == "measured"


def planned(*levels: tuple[float, str, str]) -> Evidence:
    """A manifest's levels: users, start and end on one day."""
    day = "2026-11-29T"
    return Evidence.of(
        plan=[
            {"experiment": "e", "concurrency": users, "started_at": at(day + start), "ended_at": at(day + end)}
            | {"source_file": "sweep.toml", "source_line": line}
            for line, (users, start, end) in enumerate(levels, 1)
        ]
    )


def at(text: str) -> datetime:
    return datetime.fromisoformat(text + "+00:00")


@pytest.mark.parametrize(("end", "expected"), [("10:03:00", "suspect"), ("10:03:20", "pass"), ("10:30:00", "pass")])
def test_a_run_is_no_longer_than_the_clock_says(end: str, expected: str):
    # the run says 200 s: 180 s by the clock is too short, 200 s fits, half an hour holds warm-up and loading
    assert outcome(judged(evidence(), planned((4.0, "10:00:00", end))), "PD313") == expected


def test_two_loads_at_once_measure_neither():
    plan = planned((4.0, "10:00:00", "10:04:00"), (8.0, "10:03:00", "10:08:00"))
    judgement = judged(evidence(), level(8), plan)
    by_rule = judgement.results.filter(pl.col("rule") == "PD409")
    assert by_rule["severity"].to_list() == ["refuse", "refuse"]
    assert by_rule["observed"].to_list() == [60.0, 60.0]


def test_levels_one_after_the_other_are_quiet():
    plan = planned((4.0, "10:00:00", "10:04:00"), (8.0, "10:04:00", "10:08:00"))
    assert set(judged(evidence(), level(8), plan).results.filter(pl.col("rule") == "PD409")["outcome"]) == {"pass"}


def test_a_row_that_was_copied_to_another_level_is_no_measurement():
    first, copied = evidence(seen="a.jsonl#1"), evidence(seen="a.jsonl#2", concurrency=8)
    assert outcome(judged(first, copied), "PD314") == "refuse"


def test_a_level_with_the_latencies_of_another_is_no_measurement():
    judgement = judged(level(4), level(8))
    assert set(judgement.results.filter(pl.col("rule") == "PD314")["severity"]) == {"refuse"}


def test_levels_with_latencies_of_their_own_are_quiet():
    assert outcome(judged(level(4), level(8, ttft_ms_mean=121)), "PD314") == "pass"
