"""PD6xx: each rule fires on a fault in the servers' logs, and is quiet where the log has a good reason."""

from dataclasses import replace
from datetime import UTC, timedelta
from typing import Any

import polars as pl
import pytest
from given import evidence, judged, outcome, said, verdict
from servers import at, failed, server

from pdkit.evidence import Evidence
from pdkit.parts import register_checks
from pdkit.rules import CHECKS

register_checks()
FAMILY = sorted(check.id for check in CHECKS.values() if check.family == "server_evidence")
DEAD = [{"kind": "session_failed", "subject": "192.0.2.41:1"}]
READY = {"kind": "ready", "clock": at(-300)}

FAULTS: list[tuple[str, str, dict[str, Any], tuple[Evidence, ...]]] = [
    ("PD601", "suspect", {}, (server(events=failed(1)),)),
    ("PD601", "refuse", {}, (server(events=failed(5)),)),
    ("PD601", "refuse", {}, (server(events=failed(5, kind="bootstrap_failed")),)),
    ("PD601", "suspect", {}, (server(role="prefill", events=[{"kind": "queue_full", "count": 4.0}]), server())),
    ("PD602", "suspect", {}, (server(events=DEAD),)),
    ("PD602", "refuse", {}, (server(events=DEAD + failed(9)),)),
    ("PD602", "refuse", {}, (server(events=[DEAD[0] | {"clock": at(-500)}, *failed(9)]),)),
    ("PD603", "suspect", {}, (server(events=[{"kind": "http", "subject": "503", "count": 3.0}]),)),
    ("PD603", "refuse", {"completed": 370}, (server(events=[{"kind": "http", "subject": "429", "count": 40.0}]),)),
    ("PD604", "note", {}, (server(events=[{"kind": "retracted", "count": 2.0}]),)),
    ("PD604", "suspect", {}, (server(events=[{"kind": "retracted", "count": 20.0}]),)),
    ("PD605", "suspect", {}, (server(prealloc_requests=3.0),)),
    ("PD606", "suspect", {"concurrency_mean": 4.0}, (server(running_requests=1.0, prealloc_requests=3.0),)),
    ("PD606", "suspect", {"concurrency_mean": 4.0}, (server(running_requests=1.0, kv_used_ratio=0.95),)),
    ("PD607", "refuse", {}, (server(events=[{"kind": "crashed", "subject": "OutOfMemoryError"}]),)),
    ("PD607", "refuse", {}, (server(events=[READY, {"kind": "ready"}]),)),
    ("PD609", "suspect", {}, (server(gen_throughput_tok_per_s=150.0),)),
    ("PD609", "refuse", {}, (server(gen_throughput_tok_per_s=40.0),)),
    ("PD610", "suspect", {}, (server(answers=11),)),
    ("PD610", "suspect", {}, (server(answers=5),)),
    ("PD611", "suspect", {}, (server(cuda_graph=0.0),)),
    ("PD612", "suspect", {}, (server(role="colocated", new_tok=950.0, cached_tok=50.0),)),
    ("PD612", "refuse", {}, (server(role="colocated", new_tok=500.0, cached_tok=500.0),)),
    ("PD612", "refuse", {"cached_tok_sum": 20_000}, ()),
    ("PD613", "suspect", {}, (server(throttled=1.0),)),
    ("PD614", "suspect", {}, (server(answers=12),)),
    ("PD615", "note", {}, (server(settings={"pool_tok": 700}),)),
]  # fmt: skip

EXCEPTIONS: list[tuple[str, str, dict[str, Any], tuple[Evidence, ...]]] = [
    ("PD601", "the client gave up", {}, (server(events=failed(9, kind="transfer_aborted")),)),
    ("PD601", "before the run", {}, (server(events=[e | {"clock": at(-100)} for e in failed(9)]),)),
    ("PD602", "the session was recovered", {}, (server(events=[*DEAD, {"kind": "session_recovered", "subject": "192.0.2.41:1", "clock": at(120)}]),)),
    ("PD602", "the server started again since", {}, (server(events=[DEAD[0] | {"clock": at(-500)}, READY]),)),
    ("PD603", "a health check", {}, (server(events=[{"kind": "http", "subject": "404", "count": 9.0}]),)),
    ("PD605", "once", {}, (server(),)),
    ("PD605", "the word means another queue on a prefill server", {}, (server(role="prefill", bootstrap_requests=9.0), server())),
    ("PD606", "nothing holds them back: prefill takes the time", {"concurrency_mean": 4.0}, (server(running_requests=1.0),)),
    ("PD607", "the server started before the run", {}, (server(events=[READY]),)),
    ("PD609", "more was generated than is claimed", {}, (server(gen_throughput_tok_per_s=260.0),)),
    ("PD609", "embeddings", {"settings": {"backend": "sglang-embedding"}}, (server(gen_throughput_tok_per_s=1.0),)),
    ("PD609", "half of the replicas log elsewhere", {}, (server(gen_throughput_tok_per_s=90.0, rank="DP0", settings={"dp_size": 2}),)),
    ("PD609", "no decode line at all", {}, (server(gen_throughput_tok_per_s=None),)),
    ("PD610", "a warm-up", {}, (server(events=[{"kind": "http", "subject": "200", "count": 2.0}]),)),
    ("PD611", "prefill lines", {}, (server(role="prefill", cuda_graph=0.0), server())),
    ("PD612", "a shared prefix by design", {"settings": {"dataset": "generated-shared-prefix"}}, (server(role="colocated", new_tok=1.0, cached_tok=9.0),)),
    ("PD614", "a warm-up", {}, (server(answers=10.5),)),
    ("PD615", "the pool holds the level", {}, (server(settings={"pool_tok": 800}),)),
]  # fmt: skip
IDS = [f"{rule}-{number}" for number, (rule, *_) in enumerate(FAULTS)]


@pytest.mark.parametrize(("rule", "severity", "facts", "servers"), FAULTS, ids=IDS)
def test_a_rule_fires_on_its_fault(rule: str, severity: str, facts: dict[str, Any], servers: tuple[Evidence, ...]):
    judgement = judged(evidence(**facts), *servers)
    assert outcome(judgement, rule) == severity
    sentence = said(judgement, rule)
    assert "unknown" not in sentence
    assert "{" not in sentence


@pytest.mark.parametrize(
    ("rule", "why", "facts", "servers"), EXCEPTIONS, ids=[f"{rule}: {why}" for rule, why, *_ in EXCEPTIONS]
)
def test_a_rule_is_quiet_on_a_healthy_exception(
    rule: str, why: str, facts: dict[str, Any], servers: tuple[Evidence, ...]
):
    assert outcome(judged(evidence(**facts), *servers), rule) in ("pass", "not_applicable", "not_evaluated")


def test_every_rule_of_the_family_has_its_fault():
    assert {rule for rule, *_ in FAULTS} | {"PD608"} == set(FAMILY)  # PD608 needs times: test_windows.py


def test_healthy_servers_leave_a_run_measured():
    judgement = judged(evidence(), server(role="prefill", new_tok=500.0, cached_tok=0.0), server())
    assert verdict(judgement) == "measured"
    evaluated = {rule for rule in FAMILY if outcome(judgement, rule) == "pass"}
    assert evaluated == set(FAMILY) - {"PD606", "PD613"}  # nothing holds requests back; no metrics of GPUs


def test_without_a_server_log_nothing_is_evaluated():
    judgement = judged(evidence())
    assert {outcome(judgement, rule) for rule in FAMILY} == {"not_evaluated"}


def test_both_sides_tell_of_one_failure():
    """Rooms 0 to 3 fail on both sides, room 4 on one: five requests of 400."""
    judgement = judged(evidence(), server(role="prefill", events=failed(4)), server(events=failed(5)))
    assert said(judgement, "PD601") == "the KV transfer of 5 requests failed, of 400 sent"


def test_a_finding_cites_the_lines_that_failed_first():
    judgement = judged(evidence(), server(events=failed(5)))
    lines = judgement.findings.filter(judgement.findings["rule"] == "PD601")["lines"].item().to_list()
    assert lines[:3] == ["decode.log:1000", "decode.log:1001", "decode.log:1002"]


def test_rejections_before_the_run_are_taken_off():
    """At 64 before the run the count was below 128; at 4096 in it, at least 4096 - 127 fell into the run."""
    before, within = ({"kind": "queue_full", "count": n, "clock": at(s)} for n, s in ((64.0, -10), (4096.0, 50)))
    judgement = judged(evidence(), server(role="prefill", events=[before, within]), server())
    assert said(judgement, "PD601") == "the transfer queue was full: at least 3,969 rejections"


def test_tokens_before_the_first_and_after_the_last_line_are_given_the_benefit():
    """195 s of 40 tok/s are 7,800 tokens; 80 steps of at most 8 requests (twice the mean) are 640 more."""
    judgement = judged(evidence(), server(gen_throughput_tok_per_s=40.0))
    assert said(judgement, "PD609") == "the servers generated at most 8,440 of 40,000 tokens (21%)"


def test_a_server_without_a_line_in_the_run_did_no_40_steps():
    """A line each 5 s at 32 tok/s and 4 requests is one each 40 steps; 40 of at most 8 requests are 320 tokens."""
    before = server(gen_throughput_tok_per_s=32.0).samples.with_columns(pl.col("clock") - timedelta(minutes=30))
    idle = Evidence.of(
        samples=before, sources=[{"path": "decode.log", "experiment": "e", "reader": "sglang_server_log"}]
    )
    level = {"experiment": "e", "concurrency": 4.0, "source_file": "sweep.toml", "source_line": 1}
    starts, ends = (at(s).replace(tzinfo=UTC) for s in (0, 200))
    planned = Evidence.of(plan=[level | {"started_at": starts, "ended_at": ends}])
    judgement = judged(evidence(), server(role="prefill"), idle, planned)
    assert said(judgement, "PD609") == "the servers generated at most 320 of 40,000 tokens (1%)"


def test_the_first_line_after_idle_time_is_no_speed():
    """A line after 890 s at 500 tok/s is no 445,000 tokens; it is at most 80 steps of 4 requests, and so are both ends."""
    line = {"metric": "gen_throughput_tok_per_s", "n": 1, "source_line": 1, "experiment": "e", "instance": "decode.log"}
    line |= {"role": "decode", "source_file": "decode.log", "rank": ""}
    values = [(-700, 500.0, "gen_throughput_tok_per_s"), (190, 500.0, "gen_throughput_tok_per_s")]
    rows = [*values, *((s, 4.0, "running_requests") for s, *_ in values)]
    samples = [
        line | {"metric": m, "clock": at(s), "value_min": v, "value_mean": v, "value_max": v} for s, v, m in rows
    ]
    log = Evidence.of(
        samples=samples, sources=[{"path": "decode.log", "experiment": "e", "reader": "sglang_server_log"}]
    )
    level = {"experiment": "e", "concurrency": 4.0, "source_file": "sweep.toml", "source_line": 1}
    starts, ends = (at(s).replace(tzinfo=UTC) for s in (0, 200))
    planned = Evidence.of(plan=[level | {"started_at": starts, "ended_at": ends}])
    judgement = judged(evidence(), server(role="prefill"), log, planned)
    assert outcome(judgement, "PD609") == "refuse"


UNSAID: dict[str, Any] = {"prompts_asked": None, "output_tok_asked": None}  # as in a record without details


@pytest.mark.parametrize(
    ("rule", "severity", "events"),
    [
        ("PD601", "refuse", failed(400)), ("PD601", "suspect", failed(3)),
        ("PD602", "refuse", [*failed(400), {"kind": "session_failed", "subject": "192.0.2.41:1"}]),
        ("PD603", "refuse", [{"kind": "http", "subject": "503", "count": 40.0}]),
        ("PD604", "suspect", [{"kind": "retracted", "count": 40.0}]),
        ("PD614", "suspect", [{"kind": "http", "subject": "200", "count": 80.0}]),
    ],
)  # fmt: skip
def test_who_does_not_say_how_many_were_sent_is_held_to_those_that_completed(
    rule: str, severity: str, events: list[dict[str, Any]]
):
    judgement = judged(evidence(**UNSAID), server(events=events))
    assert judgement.facts["sent"].item() is None
    assert outcome(judgement, rule) == severity
    assert "unknown" not in said(judgement, rule)


def test_requests_turned_away_that_all_completed_are_a_doubt():
    """A router asks another worker: 40 answers 503 on the server, 400 of 400 requests completed."""
    judgement = judged(evidence(requests_seen=400), server(events=[{"kind": "http", "subject": "503", "count": 40.0}]))
    assert outcome(judgement, "PD603") == "suspect"


def cut(log: Evidence, *, seconds: float, name: str = "decode.log", begins: float = 0) -> Evidence:
    """What a server said within so many seconds of the run, as a file of its own."""
    within = pl.col("clock").is_between(at(begins), at(seconds))
    parts = {
        table: getattr(log, table).filter(within).with_columns(instance=pl.lit(name)) for table in ("samples", "events")
    }
    return Evidence.of(sources=[{"path": name, "experiment": "e", "reader": "sglang_server_log"}], **parts)


PLANNED = Evidence.of(
    plan=[{
        "experiment": "e", "concurrency": 4.0, "source_file": "sweep.toml", "source_line": 1,
        "started_at": at(0).replace(tzinfo=UTC), "ended_at": at(200).replace(tzinfo=UTC),
    }]
)  # fmt: skip


@pytest.mark.parametrize("plan", [(), (PLANNED,)], ids=["alone", "with times"])
def test_a_log_that_ends_in_the_middle_of_the_run_says_nothing_of_its_tokens_and_answers(plan: tuple[Evidence, ...]):
    judgement = judged(evidence(), server(role="prefill"), cut(server(), seconds=60), *plan)
    assert {outcome(judgement, rule) for rule in ("PD609", "PD610")} <= {"not_evaluated", "not_applicable"}


def test_a_log_that_goes_on_in_the_next_file_says_all_of_it():
    parts = (cut(server(), seconds=60, name="decode.log.1"), cut(server(), begins=60.5, seconds=200))
    assert outcome(judged(evidence(), *parts, PLANNED), "PD609") == "pass"


def test_failures_in_a_log_that_ends_early_count_all_the_same():
    events = [event | {"clock": at(30)} for event in failed(9)]
    judgement = judged(evidence(), cut(server(events=events), seconds=60), PLANNED)
    assert outcome(judgement, "PD601") == "refuse"


def test_a_third_of_the_decode_servers_says_nothing_of_the_tokens_of_all():
    """It answered 133 of 400 requests, and made a third of the tokens."""
    judgement = judged(evidence(), server(answers=10 / 3, gen_throughput_tok_per_s=66.7))
    assert outcome(judgement, "PD609") == "not_applicable"
    assert outcome(judgement, "PD610") == "suspect"


@pytest.mark.parametrize(("interval_s", "steps"), [(20, 1000), (5, 250)])
def test_a_server_that_logs_rarely_is_given_more_at_both_ends(interval_s: int, steps: int):
    """--decode-log-interval: a line of 200 tok/s and 4 requests each 20 s has 1,000 steps, not 40."""
    whole = server()
    seldom = whole.samples.filter((pl.col("clock") - at(0)).dt.total_seconds() % interval_s == 0)
    judgement = judged(evidence(), replace(whole, samples=seldom))
    assert judgement.facts["server_unlogged_steps"].item() == 2 * steps


@pytest.mark.parametrize("first_s", [2, 6, 9])
def test_a_server_of_vllm_that_started_for_a_short_run_made_its_tokens(first_s: int):
    """20 s of 200 tok/s are 4,000 tokens: a line each 10 s gives the mean of the 10 s before, if there is one."""
    whose = {"experiment": "e", "instance": "vllm.log", "role": "colocated", "source_file": "vllm.log", "rank": ""}
    speed = {first_s: 20.0 * first_s, first_s + 10: 200.0, first_s + 20: 20.0 * (10 - first_s), first_s + 30: 0.0}
    told = [("gen_throughput_tok_per_s", s, v) for s, v in speed.items()]
    told += [("running_requests", s, 4.0) for s in (first_s, first_s + 10)]
    samples = [
        {"metric": m, "clock": at(s), "value_min": v, "value_mean": v, "value_max": v, "n": 1, "source_line": s} | whose
        for m, s, v in told
    ]
    log = Evidence.of(samples=samples, sources=[{"path": "vllm.log", "experiment": "e", "reader": "vllm_server_log"}])
    level = {"experiment": "e", "concurrency": 4.0, "source_file": "sweep.toml", "source_line": 1}
    starts, ends = (at(s).replace(tzinfo=UTC) for s in (0, 20))
    planned = Evidence.of(plan=[level | {"started_at": starts, "ended_at": ends}])
    short = evidence(output_tok_sum=4000, completed=40, duration_s=20)
    assert outcome(judged(short, log, planned), "PD609") == "pass"


def test_a_server_that_made_the_tokens_makes_missing_text_a_matter_of_the_client():
    """A parser may keep text back: 400 tokens of 40,000 came as text, and the server made all of them."""
    short = {"retokenized_tok_sum": 400}
    alone, idle, busy = (
        judged(evidence(**short), *servers) for servers in ((), (server(),), (server(running_requests=25.0),))
    )
    assert outcome(alone, "PD101") == "refuse"
    assert outcome(idle, "PD101") == "refuse"  # 40 steps of 4 requests each 5 s cannot have made them
    assert verdict(busy) == "measured, with doubts"
    published = dict(busy.published.select("fact", "value").iter_rows())
    assert published["ttft_ms_median"] is None  # when the user saw which text, nobody knows
    assert published["output_throughput_tok_per_s"] == 200


def test_a_server_that_made_what_is_claimed_of_answers_cut_short_is_no_witness_for_what_was_asked():
    """10,000 tokens claimed, made and received of 40,000 asked."""
    cut = {"output_tok_sum": 10_000, "retokenized_tok_sum": 10_000, "output_throughput_tok_per_s": 50}
    judgement = judged(evidence(**cut), server(gen_throughput_tok_per_s=50.0, running_requests=25.0))
    assert outcome(judgement, "PD110") == "refuse"
    assert verdict(judgement) == "no measured result"


def counter(values: dict[float, float], *, name: str, role: str = "decode") -> Evidence:
    """A dump of metrics that was scraped at these seconds; its batch is that of the log."""
    whose = {"experiment": "e", "instance": "metrics.prom", "role": role, "source_file": "metrics.prom", "rank": ""}
    samples = [
        {"metric": m, "clock": at(s), "value_min": v, "value_mean": v, "value_max": v, "n": 1, "source_line": i} | whose
        for i, (s, total) in enumerate(values.items(), 1) for m, v in ((name, total), ("running_requests", 4.0))
    ]  # fmt: skip
    return Evidence.of(
        samples=samples, sources=[{"path": "metrics.prom", "experiment": "e", "reader": "prometheus_text"}]
    )


SCRAPED = {-5: 10.0, 100: 50.0, 205: 90.0}  # grew by 80 in the run


def test_failures_that_only_a_counter_tells_of_are_counted():
    judgement = judged(evidence(), counter(SCRAPED, name="transfer_failed_total"), PLANNED)
    assert said(judgement, "PD601") == "the KV transfer of 80 requests failed, of 400 sent"
    assert outcome(judgement, "PD601") == "refuse"


def test_what_a_log_says_was_given_up_is_no_failure_of_a_counter():
    log = server(events=failed(80, kind="transfer_aborted"))
    judgement = judged(evidence(), log, counter(SCRAPED, name="transfer_failed_total"), PLANNED)
    assert outcome(judgement, "PD601") == "pass"


def test_metrics_beside_a_log_are_no_second_server():
    judgement = judged(evidence(), server(settings={"pool_tok": 800}), counter(SCRAPED, name="requests_total"), PLANNED)
    assert judgement.facts.select("decode_running_median", "decode_pool_tok").row(0) == (4, 800)


def test_two_nodes_of_one_server_have_one_pool_and_all_of_its_replicas():
    """dp 2 on two nodes, each a log with one replica: 2 x 800 tokens and 2 GPUs in all, 2 + 2 requests."""
    says = {"pool_tok": 800, "dp_size": 2, "tp_size": 1, "nodes": 2}
    half = {"settings": says, "running_requests": 2.0, "gen_throughput_tok_per_s": 100.0, "answers": 5}
    nodes = [server(name=f"decode-{i}.log", rank=f"DP{i}", kv_used_tok=100.0 + i, **half) for i in (0, 1)]
    facts = judged(evidence(), *nodes).facts
    assert facts.select("decode_pool_tok", "decode_gpus", "decode_running_median").row(0) == (1600, 2, 4)
    assert judged(evidence(), nodes[0]).facts["decode_pool_tok"].item() == 1600
