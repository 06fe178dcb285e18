"""The chain orders what servers say in time, names each line, and invents nothing."""

from functools import cache
from pathlib import Path

import pytest

from pdkit.chain import (
    DIED,
    END,
    FAILED,
    MEMORY,
    NO_TEXT,
    PREFILL_MEMORY,
    QUEUE,
    REJECTED,
    Chain,
    chain,
)
from pdkit.evidence import Evidence
from pdkit.judge import judge
from pdkit.load import load
from tests.charts.made import evidence, hostile, run
from tests.charts.servers import DAY, event, joined, judged, reading, window

SERVERS = ("decode.log", "prefill.log")


def chained(**made: object) -> Chain:
    """The chain of one experiment."""
    (found,) = chain(judged(**made))
    return found


def named(found: Chain) -> dict:
    return {link.name: link for link in found.links}


# Case 1 as its lines tell it: two run, 19 wait, the queue fills and rejects, the session dies, no text comes back.
STARVED = [
    reading("decode.log", 170, line=10, running_requests=2, prealloc_requests=0, kv_used_ratio=0.40),
    reading("decode.log", 173, line=11, running_requests=2, prealloc_requests=2, kv_used_ratio=0.52),
    reading("decode.log", 185, line=12, running_requests=2, prealloc_requests=19, kv_used_ratio=0.41),
    reading("decode.log", 207, line=13, running_requests=1, prealloc_requests=0, kv_used_ratio=0.39),
]
FILLING = [
    reading("prefill.log", 172, line=20, transferring_requests=0, bootstrap_requests=0),
    reading("prefill.log", 174, line=21, transferring_requests=1, bootstrap_requests=0),
    reading("prefill.log", 190, line=22, transferring_requests=22, bootstrap_requests=0),
]
REJECTIONS = [event("prefill.log", 199 + k / 1000, "queue_full", line=30 + k, count=2.0**k) for k in range(13)]
DEATH = event("prefill.log", 200, "session_failed", line=50, subject="192.0.2.41:15367")
FAILURES = [
    event("prefill.log", 200 + room, "transfer_failed", line=51 + room, subject=str(room)) for room in range(240)
]


def case_one(**changed: object) -> Chain:
    given = {
        "readings": [*STARVED, *FILLING],
        "events": [*REJECTIONS, DEATH, *FAILURES],
        "windows": [window(8, name, 400, 441) for name in SERVERS],
        "received": {8: 0.0},
    }
    return chained(**(given | changed))


def test_the_whole_chain_is_seen_in_the_order_of_causes():
    found = case_one()
    assert [link.name for link in found.links] == [MEMORY, QUEUE, REJECTED, DIED, FAILED, NO_TEXT, END]
    assert all(link.seen and link.order == "in order" for link in found.links)
    seconds = [(link.when - DAY).total_seconds() for link in found.links]
    assert seconds == [173, 174, 199, 200, 200, 400, 439]


def test_each_link_cites_its_lines():
    links = named(case_one())
    assert links[MEMORY].places == ("decode.log:11", "decode.log:12")
    assert links[QUEUE].places == ("prefill.log:21", "prefill.log:22")
    assert links[REJECTED].places == ("prefill.log:30", "prefill.log:42")
    assert links[DIED].places == ("prefill.log:50",)
    assert links[FAILED].places == ("prefill.log:51", "prefill.log:290")
    assert links[NO_TEXT].places[0] == "made.log:1"


def test_the_first_sign_of_starvation_is_told_in_numbers():
    assert named(case_one())[MEMORY].what == (
        "2 running, 2 waiting for memory, pool 52 % used at 09:02:53; at the worst before the first failure "
        "2 running, 19 waiting for memory, pool 41 % used at 09:03:05"
    )


def test_the_sentence_is_made_of_the_links_in_order():
    """40 requests of 100 tokens claim 4,000."""
    assert case_one().sentence == (
        "Decode ran short of memory at 2026-08-21 09:02:53 (2 running, 19 waiting for memory, pool 41 % used at "
        "09:03:05); the transfer queue of prefill filled from 09:02:54 (to 22 requests); transfers were turned away "
        "from 09:03:19 (at least 4,096, below 8,192); session 192.0.2.41:15367 died at 09:03:20 and did not recover; "
        "240 requests failed in transfer from 09:03:20 on; at 8 users none of 4,000 claimed tokens came back as text "
        "(its window starts at 09:06:40)."
    )


def test_failures_during_the_runs_are_counted_apart():
    """Seconds 400 to 439 lie in the window: 40 of 240."""
    assert "240 requests in all, 40 of them during the runs" in named(case_one())[FAILED].what


@cache
def split() -> dict[str, Chain]:
    found = chain(judge(load(Path(__file__).parents[1] / "data/split-l4-qwen3-8b")))
    return {one.experiment.rpartition("/")[2]: one for one in found}


def test_the_posted_run_has_the_published_figures():
    """2,902 failed transfers of which the posted run owns 240, the count 4096, one session that stayed dead."""
    links = named(split()["split"])
    assert all(link.seen and link.order == "in order" for link in links.values())
    assert "at least 4,096, below 8,192" in links[REJECTED].what
    assert "2,902 requests in all, 240 of them during the runs" in links[FAILED].what
    assert "session 192.0.2.41:15367 died at 09:03:20; 1 session did not recover" in links[DIED].what
    assert links[NO_TEXT].what.startswith("at 8 requests/s none of 30,720 claimed tokens came back as text")
    assert links[MEMORY].when < links[REJECTED].when <= links[DIED].when < links[NO_TEXT].when  # both in one second


def test_the_small_side_limits_in_either_role():
    original, swapped = (named(split()[name]) for name in ("original", "swapped"))
    assert "at 2 users 512 of 2,048 claimed tokens came back as text" in original[NO_TEXT].what
    assert swapped[MEMORY].how == "not seen"
    assert swapped[PREFILL_MEMORY].seen
    assert "at 16 users 2,048 of 8,192 claimed tokens came back as text" in swapped[NO_TEXT].what
    assert split()["swapped"].sentence.endswith("none at 32 users.")


def test_a_side_without_server_logs_says_so():
    assert split()["baseline"].sentence == "No server log was read: there is nothing to put in order."


# --- what is not there ----------------------------------------------------------------------------------------------


def test_without_a_decode_log_the_first_link_is_not_evaluated():
    found = case_one(readings=FILLING, windows=[window(8, "prefill.log", 400, 441)])
    link = named(found)[MEMORY]
    assert (link.how, link.said) == ("not evaluated", "not evaluated: needs the decode log")
    assert link.places == ()
    assert "memory" not in found.sentence


def test_without_a_prefill_log_nobody_says_that_nothing_was_rejected():
    links = named(case_one(readings=STARVED, events=[], windows=[window(8, "decode.log", 400, 441)]))
    assert {name: links[name].needs for name in (REJECTED, DIED)} == dict.fromkeys((REJECTED, DIED), "the prefill log")
    assert links[QUEUE].how == "not evaluated"


def test_without_server_logs_only_the_missing_text_is_seen():
    found = chained(received={8: 0.0})
    assert [link.name for link in found.links if link.seen] == [NO_TEXT]
    assert found.logs == 0
    assert found.sentence == "At 8 users none of 4,000 claimed tokens came back as text."


def test_a_decode_log_without_gauges_leaves_memory_open():
    link = named(case_one(readings=FILLING, events=[*FAILURES, event("decode.log", 1, "ready")]))[MEMORY]
    assert link.said == "not evaluated: needs a decode log that tells of its memory"


def test_runs_whose_text_nobody_counted_leave_the_text_open():
    """A session died, and nothing tells whether text came back."""
    runs = [run(8, received=None)]
    judgement = judge(Evidence.joined([evidence(*runs, listed=False), Evidence.of(events=[DEATH])]))
    (found,) = chain(joined(judgement))
    assert named(found)[NO_TEXT].needs == "the answers, or a count of their tokens"
    assert found.sentence.endswith(
        "; whether text came back is not evaluated: needs the answers, or a count of their tokens."
    )


def test_server_logs_alone_leave_the_text_open():
    found = chained(events=[DEATH])
    assert named(found)[NO_TEXT].needs == "the output of the client"
    gauges = [reading("decode.log", 3, running_requests=2, prealloc_requests=0)]
    assert chained(readings=gauges).sentence == (
        "No sign of starvation, rejection or failure in 1 server log; no output of a client was read."
    )


# --- order ----------------------------------------------------------------------------------------------------------


def test_what_came_after_its_effect_is_no_cause():
    """The pool was read as free at 300 s, 100 s after the session died."""
    late = [
        reading("decode.log", 300, running_requests=2, prealloc_requests=0, kv_used_ratio=0.2),
        *(reading("decode.log", s, running_requests=2, prealloc_requests=19, kv_used_ratio=0.4) for s in (303, 306)),
    ]
    found = case_one(readings=[*late, *FILLING])
    link = named(found)[MEMORY]
    assert (link.order, link.is_cause) == ("out of order", False)
    assert link.said.startswith("out of order, so no cause: 2 running, 19 waiting")
    assert found.sentence.startswith("The transfer queue")
    assert found.sentence.endswith("memory short on decode came later and is no cause.")


def test_a_gauge_that_nobody_read_before_may_have_risen_in_time():
    late = [reading("decode.log", s, running_requests=2, prealloc_requests=19) for s in (303, 306)]
    assert named(case_one(readings=[*late, *FILLING]))[MEMORY].order == "not evaluated"


def test_clocks_of_two_zones_are_not_compared():
    windows = [window(8, "decode.log", 400, 441, shift=2), window(8, "prefill.log", 400, 441)]
    found = case_one(windows=windows, readings=STARVED)
    assert named(found)[MEMORY].order == "not evaluated"
    assert named(found)[DIED].order == "in order"
    assert "the servers are not known to share a clock" in found.sentence


def test_servers_that_no_run_was_joined_to_are_not_compared():
    assert named(case_one(windows=[], readings=STARVED))[MEMORY].order == "not evaluated"


def test_without_a_manifest_windows_must_overlap_to_share_a_clock():
    apart = [window(8, "decode.log", 400, 441, way="only run"), window(8, "prefill.log", 4000, 4041, way="only run")]
    together = [window(8, name, 160, 441, way="only run") for name in SERVERS]
    orders = [named(case_one(windows=windows, readings=STARVED))[MEMORY].order for windows in (apart, together)]
    assert orders == ["not evaluated", "in order"]


def test_a_death_within_the_window_of_a_run_precedes_its_missing_text():
    found = case_one(windows=[window(8, name, 160, 441) for name in SERVERS])
    assert named(found)[DIED].order == "in order"


def test_whole_seconds_are_no_order():
    """The rejection at 200.9 s and the death at 200 s stand in one second of the log."""
    rejections = [event("prefill.log", 200.9, "queue_full", count=4096)]
    assert named(case_one(events=[*rejections, DEATH, *FAILURES]))[REJECTED].order == "in order"


# --- each link ------------------------------------------------------------------------------------------------------


def test_one_request_in_one_reading_is_no_starvation():
    gauges = [reading("decode.log", s, running_requests=3, prealloc_requests=float(s == 6)) for s in (3, 6, 9)]
    assert chained(readings=gauges, received={8: 1.0}).links == ()


def test_one_line_in_which_more_wait_than_run_is_enough():
    gauges = [reading("decode.log", 3, running_requests=2, prealloc_requests=19)]
    assert [link.name for link in chained(readings=gauges, received={8: 1.0}).links] == [MEMORY]


def test_a_pool_nearly_full_is_a_sign():
    gauges = [reading("decode.log", 3, rank="DP1", running_requests=8, kv_used_ratio=0.9)]
    (link,) = chained(readings=gauges, received={8: 1.0}).links
    assert link.what == "8 running, pool 90 % used (DP1) at 09:00:03"


def test_retraction_is_a_sign():
    gauges = [reading("decode.log", s, running_requests=2, prealloc_requests=5) for s in (30, 33)]
    events = [event("decode.log", 20, "retracted", count=3, line=7)]
    (link,) = chained(readings=gauges, events=events, received={8: 1.0}).links
    assert (link.what, link.places) == ("3 requests put back for want of memory, first at 09:00:20", ("decode.log:7",))


def test_prefill_can_be_the_side_that_starves():
    gauges = [
        reading("prefill.log", 100, queued_requests=3, kv_used_ratio=0.94, running_requests=0),
        reading("decode.log", 100, running_requests=8, prealloc_requests=0, kv_used_ratio=0.2),
    ]
    links = named(case_one(readings=gauges))
    assert links[MEMORY].how == "not seen"
    assert links[PREFILL_MEMORY].what == "3 queued, pool 94 % used at 09:01:40"


def test_a_process_that_started_again_bounds_the_rejections_from_below_only():
    events = [*REJECTIONS, event("prefill.log", 210, "ready")]
    what = named(chained(events=events, received={8: 1.0}))[REJECTED].what
    assert "at least 4,096 in all" in what


def test_a_session_that_recovered_is_said_to():
    back = event("prefill.log", 290, "session_recovered", subject="192.0.2.41:15367")
    found = case_one(events=[DEATH, back, *FAILURES])
    assert named(found)[DIED].what == "session 192.0.2.41:15367 died at 09:03:20; it recovered at 09:04:50"
    assert "died at 09:03:20 and recovered" in found.sentence


def test_a_session_that_died_again_is_dead():
    events = [
        DEATH,
        event("prefill.log", 290, "session_recovered", subject="192.0.2.41:15367"),
        event("prefill.log", 300, "session_failed", subject="192.0.2.41:15367"),
    ]
    assert "did not recover before the log ends" in named(case_one(events=events))[DIED].what


def test_a_death_that_no_line_tells_of_is_inferred():
    text = "KVTransferError: Decode instance could be dead, remote mooncake session 192.0.2.41:1 is not alive"
    found = case_one(events=[event("prefill.log", 200, "transfer_failed", subject="1", line=9, text=text)])
    link = named(found)[DIED]
    assert (link.how, link.places) == ("inferred", ("prefill.log:9",))
    assert "session" not in found.sentence


def test_a_crash_is_a_death_with_its_own_name():
    crash = event("decode.log", 200, "crashed", subject="CUDA out of memory", line=4)
    assert named(case_one(events=[crash]))[DIED].what == ("the decode server crashed at 09:03:20 (CUDA out of memory)")


def test_a_room_that_fails_on_both_sides_is_one_request():
    events = [event(name, 200, "transfer_failed", subject=room) for name in SERVERS for room in ("1", "2")]
    assert "; 2 requests in all" in named(case_one(events=events))[FAILED].what


def test_aborted_transfers_are_symptoms():
    """Room 1 failed; room 2 was only given up by the peer."""
    events = [
        event("prefill.log", 200, "transfer_failed", subject="1"),
        event("decode.log", 200, "transfer_aborted", subject="1"),
        event("decode.log", 201, "transfer_aborted", subject="2"),
    ]
    what = named(case_one(events=events))[FAILED].what
    assert "1 request in all" in what
    assert what.endswith("1 aborted transfer set aside: a symptom")


def test_aborts_alone_are_no_failure():
    found = chained(events=[event("decode.log", 1, "transfer_aborted", subject="2")], received={8: 1.0})
    assert found.links == ()
    assert found.sentence.endswith("all text came back; 1 aborted transfer set aside: a symptom.")


def test_a_counter_tells_of_failures_where_no_line_does():
    gauges = [reading("prefill.log", s, transfer_failed_total=v) for s, v in ((10, 3), (20, 3), (30, 8))]
    link = named(case_one(readings=gauges, events=[]))[FAILED]
    assert link.what == "a counter of failed transfers rose by 5, first by 09:00:30"


def test_levels_are_told_in_the_order_of_time():
    windows = [window(level, name, 300 + level, 301 + level) for level in (2, 4) for name in SERVERS]
    found = case_one(received={2: 0.25, 4: 0.0}, windows=windows)
    assert named(found)[NO_TEXT].what == (
        "at 2 users 1,000 of 4,000 claimed tokens came back as text (from 09:05:02 to 09:05:03); "
        "at 4 users none of 4,000 claimed tokens came back as text"
    )
    assert found.sentence.endswith("(its window starts at 09:05:02), none at 4 users.")


def test_text_that_came_back_later_is_said():
    windows = [window(level, "prefill.log", start, start + 1) for level, start in ((4, 300), (2, 320))]
    found = case_one(received={2: 1.0, 4: 0.0}, windows=windows)
    assert named(found)[NO_TEXT].what.endswith("text came back again at 2 users")


def test_a_client_that_tells_of_its_failures_is_refused_for_them():
    """All failed: nothing was claimed, so no text is missing, and nothing was measured either."""
    judgement = judge(Evidence.joined([hostile()["all failed"], Evidence.of(events=[{**DEATH, "experiment": "one"}])]))
    (found,) = chain(joined(judgement))
    assert named(found)[NO_TEXT].how == "not seen"
    assert "; no measured result at level not stated" in found.sentence


def test_answers_without_text_that_claim_nothing_are_still_missing():
    """The summary claims 1,000 tokens and 1,000 came back, yet 30 of 40 answers are empty."""
    row, claims, requests = run(8, received=0.25)
    claims = [{**c, "value": 1_000.0} if c["fact"] == "output_tok_sum" else c for c in claims]
    (found,) = chain(joined(judge(evidence((row, claims, requests)))))
    assert named(found)[NO_TEXT].what.startswith("at 8 users some answers have no text (PD")


def test_the_end_tells_what_each_log_says_last():
    assert named(case_one())[END].what == (
        "the decode log ends at 09:03:27, its last reading 1 running, 0 waiting for memory, pool 39 % used; "
        "the prefill log ends at 09:07:19, its last reading 22 in transfer; still dead: 192.0.2.41:15367"
    )


# --- nothing wrong --------------------------------------------------------------------------------------------------


def test_a_healthy_pair_has_no_chain():
    gauges = [reading(name, 3, running_requests=2, prealloc_requests=0, kv_used_ratio=0.2) for name in SERVERS]
    found = chained(readings=gauges, received={8: 1.0})
    assert found.links == ()
    assert found.sentence == "No sign of starvation, rejection or failure in 2 server logs; all text came back."


def test_a_pair_that_starved_but_served_is_said_to_have():
    gauges = [reading("decode.log", s, running_requests=8, prealloc_requests=8) for s in (3, 6)]
    found = chained(readings=gauges, received={8: 1.0})
    assert found.sentence == (
        "Decode ran short of memory at 2026-08-21 09:00:03 (8 running, 8 waiting for memory); "
        "no transfer was rejected or failed, and all text came back."
    )


def test_rejections_that_cost_nothing_are_shown_with_their_end():
    found = chained(events=REJECTIONS, received={8: 1.0})
    assert named(found)[NO_TEXT].how == "not seen"
    assert found.sentence.endswith("all text came back.")


def test_a_colocated_server_transfers_nothing():
    gauges = [reading("server.log", 3, running_requests=8, kv_used_ratio=0.95)]
    found = chained(readings=gauges, events=[event("server.log", 9, "crashed")], received={8: 0.0})
    assert [link.name for link in found.links] == [MEMORY, DIED, NO_TEXT, END]


def test_a_healthy_experiment_without_server_logs_says_so():
    assert chained(received={8: 1.0}).sentence == "No server log was read: there is nothing to put in order."


# --- hostile --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", hostile())
def test_any_evidence_has_a_chain_for_each_experiment(case):
    judgement = joined(judge(hostile()[case]))
    found = chain(judgement)
    assert [one.experiment for one in found] == judgement.conclusions["experiment"].to_list()
    assert all(one.sentence.endswith(".") for one in found)


def test_events_without_a_clock_or_a_subject_are_still_evidence():
    kinds = ("queue_full", "session_failed", "transfer_failed", "crashed", "retracted", "connection_lost")
    found = case_one(readings=[], events=[event("prefill.log", None, kind) for kind in kinds])
    links = named(found)
    assert all(links[name].when is None and links[name].seen for name in (REJECTED, DIED, FAILED))
    assert "None" not in found.sentence


def test_nulls_everywhere_are_no_chain():
    blank = dict.fromkeys(("experiment", "instance", "role", "rank", "clock", "source_file", "source_line"))
    servers = Evidence.of(
        samples=[blank | {"metric": "prealloc_requests", "value_max": None}],
        events=[blank | {"kind": "session_failed"}],
    )
    (found,) = chain(joined(judge(servers)))
    assert named(found)[DIED].places == ()


def test_the_links_are_a_table():
    frame = case_one().frame
    assert frame.columns == ["link", "when", "server", "role", "what", "how", "order", "lines"]
    assert frame.height == 7
