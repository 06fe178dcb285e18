"""Which run was on a server when: by the manifest, as the only one, by bursts, or not at all, and said so."""

import sys
from dataclasses import replace
from datetime import UTC, timedelta
from pathlib import Path

import polars as pl
import pytest

sys.path.insert(0, str(Path(__file__).parent / "checks"))
from given import evidence, judged, outcome
from servers import DECODE, START, at, failed, server

from pdkit.copies import without_copies
from pdkit.evidence import Evidence
from pdkit.results import Judgement


def run(users: int, *, starts: float | None = None, lasts: float = 200, **facts: float) -> Evidence:
    """A run at a level, planned to start so many seconds after START in UTC."""
    made = evidence(seen=f"users-{users}.log#0", concurrency=users, duration_s=lasts, concurrency_mean=users, **facts)
    if starts is None:
        return made
    begins = START.replace(tzinfo=UTC) + timedelta(seconds=starts)
    level = {
        "experiment": "e", "concurrency": float(users), "started_at": begins,
        "ended_at": begins + timedelta(seconds=lasts), "source_file": "sweep.toml", "source_line": 1,
    }  # fmt: skip
    return Evidence.joined([made, Evidence.of(plan=[level])])


def works(*spans: tuple[float, float], role: str = "decode", answers: float | None = None) -> Evidence:
    """A server that worked in these spans of seconds, a line each 5 s."""
    whose = {"experiment": "e", "instance": f"{role}.log", "role": role, "source_file": f"{role}.log", "rank": ""}
    seconds = [s for first, last in spans for s in range(int(first), int(last) + 1, 5)]
    samples = [
        {"metric": "running_requests", "clock": at(s), "value_min": 1.0, "value_mean": 1.0, "value_max": 1.0, "n": 1}
        | {"source_line": i} | whose
        for i, s in enumerate(seconds, 1)
    ]  # fmt: skip
    return Evidence.of(
        samples=samples, sources=[{"path": f"{role}.log", "experiment": "e", "reader": "sglang_server_log"}]
    )


def spans(judgement: Judgement) -> dict[float, tuple[float, float, int, str]]:
    """Each level's window in seconds after START, its shift and the way it was found."""
    told = judgement.windows.join(judgement.verdicts.select("run_id", "concurrency"), on="run_id")
    return {
        users: ((first - START).total_seconds(), (last - START).total_seconds(), shift, way)
        for users, first, last, shift, way in told.select(
            "concurrency", "started_at", "ended_at", "shift_h", "way"
        ).iter_rows()
    }


# --- by the manifest ------------------------------------------------------------------------------------------------


def test_the_manifest_says_when():
    judgement = judged(run(1, starts=0), run(2, starts=300, lasts=210), works((0, 200), (300, 510)))
    assert spans(judgement) == {1.0: (0, 200, 0, "manifest"), 2.0: (300, 510, 0, "manifest")}


@pytest.mark.parametrize("hours", [-7, 2, 9])
def test_a_clock_in_another_zone_is_shifted_by_whole_hours_and_said(hours: int):
    off = hours * 3600
    judgement = judged(run(1, starts=0), run(2, starts=300, lasts=210), works((off, off + 200), (off + 300, off + 510)))
    assert spans(judgement) == {
        1.0: (off, off + 200, hours, "manifest"),
        2.0: (off + 300, off + 510, hours, "manifest"),
    }
    assert set(judgement.windows["said"]) == {f"the times in sweep.toml; the server's clock is {hours:+d} h from UTC"}


def test_a_clock_that_is_off_by_a_quarter_of_an_hour_is_not_guessed_at():
    judgement = judged(run(1, starts=0, lasts=60), works((900, 960)))
    assert judgement.windows.is_empty()
    assert judgement.unjoined["said"].item() == "no shift by whole hours brings its clock to the times in sweep.toml"
    assert outcome(judgement, "PD608") == "note"
    assert outcome(judgement, "PD605") == "not_evaluated"


def test_clocks_that_line_up_pass():
    assert outcome(judged(run(1, starts=0), works((0, 200))), "PD608") == "pass"


def test_a_server_that_did_nothing_in_the_run_is_joined_by_the_clock_of_the_one_beside_it():
    judgement = judged(run(1, starts=600), works((600, 800), role="prefill"), works((0, 200), role="decode"))
    assert set(judgement.windows["instance"]) == {"prefill.log", "decode.log"}
    idle = judgement.windows.filter(pl.col("instance") == "decode.log").row(0, named=True)
    assert idle["started_at"] == at(600)
    assert "this one did nothing then" in idle["said"]


def test_work_an_hour_off_is_not_taken_for_that_of_the_run_where_the_server_beside_it_disagrees():
    """It may have been idle, and busy with something else an hour before."""
    judgement = judged(run(1, starts=0), works((0, 200), role="prefill"), works((-3600, -3400), role="decode"))
    assert judgement.windows["instance"].to_list() == ["prefill.log"]
    assert judgement.unjoined["said"].item() == "its work fits the times in sweep.toml at -1 h, that beside it at +0 h"


def test_a_server_in_another_zone_is_told_by_several_runs():
    prefill, decode = works((0, 200), (300, 510), role="prefill"), works((28800, 29000), (29100, 29310))
    judgement = judged(run(1, starts=0), run(2, starts=300, lasts=210), prefill, decode)
    shifts = dict(judgement.windows.select("instance", "shift_h").unique().iter_rows())
    assert shifts == {"prefill.log": 0, "decode.log": 8}


# --- without times --------------------------------------------------------------------------------------------------


def test_the_only_run_owns_the_log_beside_it():
    assert spans(judged(run(4), works((0, 195)))) == {4.0: (0, 196, 0, "only run")}


def test_what_came_long_before_the_only_run_is_not_its_own():
    """A trial of a minute, an hour before."""
    assert spans(judged(run(4), works((-3600, -3540), (0, 195)))) == {4.0: (0, 196, 0, "bursts")}


def test_bursts_are_given_out_in_the_order_of_levels_where_they_fit():
    judgement = judged(run(1, lasts=100), run(2, lasts=200), works((0, 100), (150, 350)))
    assert spans(judgement) == {1.0: (0, 101, 0, "bursts"), 2.0: (150, 351, 0, "bursts")}
    assert set(judgement.windows["said"]) == {
        "burst 1 of 2 on this server, in the order of the runs: inferred",
        "burst 2 of 2 on this server, in the order of the runs: inferred",
    }


def test_a_burst_more_is_somebodys_trial():
    judgement = judged(run(1, lasts=100), run(2, lasts=200), works((-500, -490), (0, 100), (150, 350)))
    assert spans(judgement) == {1.0: (0, 101, 0, "bursts"), 2.0: (150, 351, 0, "bursts")}


@pytest.mark.parametrize(
    "work",
    [
        works((0, 200), (250, 350)),  # the longer one first: not in the order of levels
        works((0, 30), (100, 130)),  # too short
        works((0, 900), (1000, 2000)),  # too long
        works((0, 100), (150, 350), (400, 600)),  # two ways to give them out
    ],
)
def test_bursts_that_do_not_fit_belong_to_nobody(work: Evidence):
    judgement = judged(run(1, lasts=100), run(2, lasts=200), work)
    assert judgement.windows.is_empty()
    assert "does not fall into one burst for each of 2 runs" in judgement.unjoined["said"].item()
    assert outcome(judgement, "PD601") == "not_evaluated"


def test_a_client_that_lists_its_runs_tells_their_order():
    """It went from many users to few, and appended each to one file."""
    listed = [
        Evidence.of(runs=[{"seen_id": f"users-{users}.log#0", "experiment": "e", "reader": "sglang_bench_record",
                           "complete": True, "source_file": "all.jsonl", "source_line": line}])
        for line, users in enumerate((8, 1), 1)
    ]  # fmt: skip
    judgement = judged(run(1, lasts=100), run(8, lasts=200), *listed, works((0, 200), (250, 350)))
    assert spans(judgement) == {8.0: (0, 201, 0, "bursts"), 1.0: (250, 351, 0, "bursts")}


def test_bursts_with_other_counts_of_answers_belong_to_nobody():
    """4,000 answers in 200 s are not the 400 requests of a run that took so long, though a trial lies before them."""
    trial = Evidence.of(events=[{
        "experiment": "e", "instance": "router.log", "role": "router", "kind": "http", "subject": "200", "count": 1.0,
        "clock": at(-900), "source_file": "router.log", "source_line": 1,
    }])  # fmt: skip
    fits, others = (judged(run(4), trial, server(role="router", answers=each)) for each in (10, 100))
    assert spans(fits) == {4.0: (0, 196, 0, "bursts")}
    assert others.windows.is_empty()


def test_a_log_without_a_run_says_so():
    judgement = judged(run(4), server(experiment="elsewhere"))
    assert judgement.unjoined.select("experiment", "why", "said").row(0) == (
        "elsewhere", "no run", "no run of a client lies beside this log",
    )  # fmt: skip


def test_a_failure_outside_of_every_window_counts_against_nobody():
    late = [event | {"clock": at(250)} for event in failed(9)]
    judgement = judged(
        run(1, starts=0), run(2, starts=300, lasts=210), works((0, 200), (300, 510)), server(events=late, silent=True)
    )
    assert judgement.facts["failed_transfers"].to_list() == [0.0, 0.0]


# --- clocks that are seconds off --------------------------------------------------------------------------------------


@pytest.mark.parametrize("off_s", [45, -45, 90])
def test_a_clock_that_is_seconds_off_moves_the_windows(off_s: int):
    """The server worked for the 200 s of the run, on a clock that is off: all of its work is the run's."""
    judgement = judged(run(4, starts=0), works((off_s, 200 + off_s)))
    assert spans(judgement) == {4: (off_s, 200 + off_s, 0, "manifest")}
    assert f"its work lies {off_s:+d} s from them" in judgement.windows["said"].item()


@pytest.mark.parametrize(
    "worked",
    [(60, 200), (0, 120), (60, 120), (-300, 120), (60, 500), (-100, 300)],
    ids=["begins late", "ends early", "within", "somebody before", "somebody behind", "all the time"],
)
def test_work_that_is_not_as_long_as_the_run_moves_nothing(worked: tuple[float, float]):
    judgement = judged(run(4, starts=0), works(worked))
    assert spans(judgement) == {4: (0, 200, 0, "manifest")}


def test_several_runs_move_together_or_not_at_all():
    runs = (run(1, starts=0, completed=399), run(2, starts=300))
    assert {span[0] for span in spans(judged(*runs, works((50, 250), (350, 550)))).values()} == {50, 350}
    assert {span[0] for span in spans(judged(*runs, works((50, 250), (300, 500)))).values()} == {0, 300}


# --- one server in several files ------------------------------------------------------------------------------------


@pytest.mark.parametrize("part", [(0, 195), (0, 60), (100, 195)], ids=["whole", "its beginning", "its end"])
def test_a_copy_of_a_servers_log_makes_no_second_server(part: tuple[float, float]):
    whole = server()
    within = pl.col("clock").is_between(at(part[0]), at(part[1]))
    copied = {
        name: getattr(whole, name)
        .filter(within)
        .with_columns(instance=pl.lit("later.log"), source_file=pl.lit("later.log"))
        for name in ("samples", "events")
    }
    copy = Evidence.of(sources=[{"path": "later.log", "experiment": "e", "reader": "sglang_server_log"}], **copied)
    both = without_copies(Evidence.joined([whole, copy]))
    assert both.samples["instance"].unique().to_list() == ["decode.log"]
    reasons = dict(both.sources.select("path", "reason").iter_rows())
    assert reasons == {"decode.log": None, "later.log": "its lines stand in decode.log as well: counted once"}


def test_two_servers_that_do_the_same_work_are_two():
    one, other = (
        server(name="decode-0.log"),
        server(name="decode-1.log", kv_used_tok=801.0, gen_throughput_tok_per_s=199.0),
    )
    both = without_copies(Evidence.joined([one, other]))
    assert both.samples["instance"].n_unique() == 2


def answering(role: str, *, events: list[dict[str, object]] | None = None) -> Evidence:
    """A server that logs nothing but its answers: 10 each 5 s, on the same lines whatever its role."""
    return server(role=role, name=f"{role}.log", silent=False, events=events, **dict.fromkeys(DECODE))


@pytest.mark.parametrize("role", ["router", "prefill"])
def test_servers_that_answer_the_same_requests_are_several(role: str):
    """Decode logs the same answers as its router, at the same seconds, and three transfers that failed besides."""
    both = without_copies(Evidence.joined([answering(role), answering("decode", events=failed(3))]))
    assert set(both.events["instance"]) == {f"{role}.log", "decode.log"}
    assert both.events.filter(pl.col("kind") == "transfer_failed").height == 3


def test_prefill_servers_that_compute_the_same_batches_are_two():
    """Up to 0.5.2 a prefill line has no speed: all that it says may be the same, second by second."""
    told = {"new_tok": 256.0, "new_requests": 1.0, "cached_tok": 0.0}
    one, other = (server(role="prefill", name=f"prefill-{i}.log", **told) for i in (0, 1))
    behind = pl.col("source_line") * (1 + pl.int_range(pl.len()) % 3)
    other = replace(other, samples=other.samples.with_columns(behind), events=other.events.with_columns(behind))
    assert without_copies(Evidence.joined([one, other])).samples["instance"].n_unique() == 2


def test_a_copy_of_a_routers_log_is_one():
    log = server(role="router", name="router.log")
    copy = server(role="router", name="router.log.gz")
    assert without_copies(Evidence.joined([log, copy])).events["instance"].unique().to_list() == ["router.log"]


def test_a_rotated_log_is_one_server_in_parts():
    """4 ran all the time: two fifths of it in one file, the rest in another."""
    whole = server()
    parts = [
        Evidence.of(
            samples=whole.samples.filter(pl.col("clock").is_between(at(a), at(b))).with_columns(instance=pl.lit(name)),
            sources=[{"path": name, "experiment": "e", "reader": "sglang_server_log"}],
        )
        for name, a, b in (("decode.log.1", 0, 75), ("decode.log", 80, 195))
    ]
    facts = judged(evidence(), *parts).facts
    assert facts["decode_running_median"].item() == pytest.approx(4, abs=0.1)
