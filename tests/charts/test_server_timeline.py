"""The servers over time: what is drawn can be worked out by hand, and much is binned."""

import json
from datetime import UTC

import pytest

from pdkit.charts.server_timeline import server_timeline
from pdkit.charts.theme import PAGE_PX, REFUSED_FILL, ROLE_COLOURS, render
from pdkit.evidence import Evidence
from pdkit.judge import judge
from pdkit.results import CLAIMED
from tests.charts.servers import at, event, joined, judged, reading, window

BUDGET = 2_400  # points, and the rows of windows and marks


def ms(second: float) -> int:
    return int(at(second).replace(tzinfo=UTC).timestamp() * 1000)


def drawn(**made: object) -> dict:
    return server_timeline(judged(**made)).to_dict()


def rows(spec: dict, *fields: str) -> list[dict]:
    return [row for data in spec.get("datasets", {}).values() for row in data if set(fields) <= set(row)]


def points(spec: dict) -> list[tuple]:
    return [(row["role"], row["value"], row["ms"]) for row in rows(spec, "segment")]


def text_of(spec: dict) -> str:
    return json.dumps(spec, ensure_ascii=False)


WAITING = [reading("decode.log", s, prealloc_requests=v) for s, v in ((0, 0), (3, 19), (6, 2))]


def test_each_reading_is_a_point_at_its_own_second():
    assert points(drawn(readings=WAITING)) == [("decode", 0, ms(0)), ("decode", 19, ms(3)), ("decode", 2, ms(6))]


def test_a_role_has_its_colour():
    readings = [*WAITING, reading("prefill.log", 3, transferring_requests=4)]
    assert text_of(drawn(readings=readings)).count(json.dumps([ROLE_COLOURS["prefill"], ROLE_COLOURS["decode"]])) >= 2


def test_a_line_breaks_where_a_server_says_nothing():
    """Readings 3 s apart, then none for a minute."""
    readings = [reading("decode.log", s, running_requests=1) for s in (0, 3, 6, 66, 69)]
    segments = [row["segment"] for row in rows(drawn(readings=readings), "segment")]
    assert segments == [0, 0, 0, 1, 1]


def test_a_reading_alone_is_a_dot():
    readings = [reading("decode.log", s, running_requests=1) for s in (0, 3, 6, 66)]
    assert [row["alone"] for row in rows(drawn(readings=readings), "segment")] == [False, False, False, True]


def test_hours_of_readings_are_binned_and_keep_their_peak():
    readings = [
        reading("decode.log", s, prealloc_requests=float(s == 7_001), running_requests=3.0) for s in range(20_000)
    ]
    spec = drawn(readings=readings)
    assert len(rows(spec, "segment")) <= BUDGET
    assert ("decode", 1.0, ms(7_001)) in points(spec)


@pytest.mark.parametrize("experiments", [1, 30])
def test_a_figure_is_small_whatever_the_logs(experiments):
    samples = [
        row | {"experiment": f"e{k}"}
        for k in range(experiments)
        for second in range(0, 3_000, 10)
        for name in ("decode.log", "prefill.log")
        for row in reading(name, second, running_requests=1, prealloc_requests=2, kv_used_ratio=0.5)
    ]  # fmt: skip
    spec = server_timeline(joined(judge(Evidence.of(samples=samples)))).to_dict()
    assert len(rows(spec, "segment")) <= BUDGET
    assert ("26 experiments more than fit here." in spec["title"]["subtitle"]) == (experiments == 30)


def test_the_greatest_of_several_servers_of_a_role_is_drawn_and_said_so():
    readings = [reading("decode.log", 3, prealloc_requests=2), reading("decode-2.log", 3, prealloc_requests=7)]
    spec = drawn(readings=readings)
    assert points(spec) == [("decode", 7, ms(3))]
    assert any("several servers or ranks of one role (decode)" in note for note in spec["title"]["subtitle"])


def test_prefill_has_no_line_of_running_requests():
    """Its batch is over when the line is printed, so the gauge is always 0."""
    readings = [reading("prefill.log", 3, running_requests=0, transferring_requests=4)]
    assert panel_titles(drawn(readings=readings)) == ["Transferring (requests)"]


def panel_titles(spec: dict) -> list[str]:
    """The first panel has the experiment's name above its own."""
    return [panel["title"].get("subtitle", panel["title"]["text"]) for panel in spec["vconcat"]]


def test_panels_that_no_log_tells_of_are_named():
    spec = drawn(readings=WAITING)
    assert panel_titles(spec) == ["Waiting for memory (requests)"]
    notes = " ".join(spec["title"]["subtitle"])
    assert "Not told by these logs: Running requests, Transferring (requests) and KV pool used." in notes


# --- the client's runs ----------------------------------------------------------------------------------------------


def test_a_window_is_shaded_and_named():
    spec = drawn(readings=WAITING, windows=[window(8, "decode.log", 1, 5)], received={8: 1.0})
    (run,) = rows(spec, "lane")
    assert (run["level"], run["ms"], run["ms_end"], run["from"], run["to"]) == (
        "8 users", ms(1), ms(5), "09:00:01", "09:00:05"
    )  # fmt: skip


def test_what_a_refused_run_printed_is_a_claim():
    """40 requests of 100 tokens in 70 s: 57.14 tok/s."""
    spec = drawn(readings=WAITING, windows=[window(8, "decode.log", 1, 5)], received={8: 0.0})
    (run,) = rows(spec, "lane")
    assert (run["said"], run["taken"]) == (f"57.14 tok/s, {CLAIMED}", True)
    assert REFUSED_FILL in text_of(spec)


def test_a_run_joined_to_two_servers_is_shaded_once():
    windows = [window(8, name, 1, 5) for name in ("decode.log", "prefill.log")]
    assert len(rows(drawn(readings=WAITING, windows=windows, received={8: 1.0}), "lane")) == 1


def test_a_server_in_another_zone_is_drawn_on_one_clock():
    """Prefill's clock is two hours ahead; both say 3 s into the run."""
    windows = [window(8, "decode.log", 0, 9), window(8, "prefill.log", 7_200, 7_209, shift=2)]
    readings = [*WAITING, reading("prefill.log", 7_203, transferring_requests=4)]
    spec = drawn(readings=readings, windows=windows, received={8: 1.0})
    assert ("prefill", 4, ms(3)) in points(spec)
    assert len(rows(spec, "lane")) == 1


def test_many_windows_are_named_where_there_is_room():
    levels = [float(level) for level in range(1, 61)]
    windows = [window(level, "decode.log", level * 10, level * 10 + 9) for level in levels]
    spec = drawn(readings=WAITING, windows=windows, received=dict.fromkeys(levels, 1.0))
    lanes = [row["lane"] for row in rows(spec, "lane")]
    assert len(lanes) == 60
    assert set(lanes) <= {0, 1, 2, None}
    assert None in lanes


def test_logs_without_a_joined_run_are_said_to_be():
    assert (
        "No run could be joined to the logs of made." in drawn(readings=WAITING, received={8: 1.0})["title"]["subtitle"]
    )


def test_logs_of_days_are_cut_to_what_happened():
    day = 86_400
    readings = [reading("decode.log", s, running_requests=1) for s in range(0, 3 * day, 600)]
    spec = drawn(readings=readings, windows=[window(8, "decode.log", day, day + 3_600)], received={8: 1.0})
    seconds = [row["ms"] for row in rows(spec, "segment")]
    assert ms(day) - 3_600_000 <= min(seconds)
    assert max(seconds) <= ms(day + 3_600) + 3_600_000
    assert any("cut to that" in note for note in spec["title"]["subtitle"])


# --- failures -------------------------------------------------------------------------------------------------------

FAILED = [
    event("prefill.log", 4, "queue_full", count=1),
    event("prefill.log", 4, "queue_full", count=4096),
    event("prefill.log", 5, "session_failed", subject="s"),
    *(event(name, 5, "transfer_failed", subject=room) for name in ("decode.log", "prefill.log") for room in "ab"),
    event("prefill.log", 6, "bootstrap_failed", subject="c"),
]


def test_failures_are_marks_with_their_names_in_order():
    marks = [row["words"] for row in rows(drawn(readings=WAITING, events=FAILED), "words")]
    assert marks == [
        "09:00:04 transfers turned away, at least 4,096 (prefill)",
        "09:00:05 transfer session died (prefill)",
        "09:00:05 failed transfers, 3 requests (decode and prefill)",
    ]


def test_failures_alone_are_a_timeline():
    spec = drawn(events=FAILED)
    assert panel_titles(spec) == ["Failures"]


def test_aborted_transfers_and_answers_are_no_marks():
    events = [event("prefill.log", 4, kind) for kind in ("transfer_aborted", "http", "ready")]
    assert panel_titles(drawn(readings=WAITING, events=events)) == ["Waiting for memory (requests)"]


# --- words, and what nobody would wish for --------------------------------------------------------------------------


def test_the_alternative_text_tells_peaks_failures_and_runs():
    words = drawn(
        readings=WAITING, events=FAILED, windows=[window(8, "decode.log", 1, 5)], received={8: 0.0}
    )["description"]  # fmt: skip
    assert "waiting for memory 19 on decode at 09:00:03" in words
    assert "09:00:05 transfer session died (prefill)" in words
    assert "8 users (no measured result)" in words


def test_without_server_logs_it_says_so():
    spec = drawn(received={8: 1.0})
    assert spec["description"] == f"{spec['title']['text'][0]} No log tells what a server did, second by second."


NULLS = dict.fromkeys(("experiment", "instance", "role", "rank", "clock", "source_file", "source_line"))
HOSTILE = {
    "one second": {"readings": [reading("decode.log", 3, prealloc_requests=1)]},
    "one second and its window": {
        "readings": [reading("decode.log", 3, prealloc_requests=1)],
        "windows": [window(8, "decode.log", 3, 3)],
        "received": {8: 1.0},
    },
    "all in one second": {"readings": [reading("decode.log", 3, kv_used_ratio=0.0)] * 5, "events": FAILED[:1] * 3},
    "nulls": {"readings": [[NULLS | {"metric": "prealloc_requests"}]], "events": [NULLS | {"kind": "crashed"}]},
    "no role": {"readings": [[row | {"role": None} for row in WAITING[0]]]},
    "not finite": {"readings": [reading("decode.log", s, prealloc_requests=float("inf")) for s in (1, 2)]},
    "a role of its own": {"readings": [[row | {"role": "encode"} for row in WAITING[1]]]},
    "a window far away": {
        "readings": WAITING, "windows": [window(8, "decode.log", 90_000, 90_001)], "received": {8: 1.0}
    },
    "a window that ends before it starts": {
        "readings": WAITING, "windows": [window(8, "decode.log", 5, 1)], "received": {8: 1.0}
    },
    "a window without ends": {
        "readings": WAITING, "received": {8: 1.0},
        "windows": [window(8, "decode.log", 5, 1) | {"started_at": None, "ended_at": None, "shift_h": None}],
    },
    "a gauge of a million": {"readings": [reading("decode.log", s, running_requests=1e6 * s) for s in (1, 2, 3)]},
}  # fmt: skip


@pytest.mark.parametrize("case", HOSTILE)
def test_any_server_evidence_is_drawn_within_the_page(case):
    spec = drawn(**HOSTILE[case])
    bundle, _ = render(spec)
    assert float(bundle["image/svg+xml"].split('width="')[1].split('"')[0]) <= PAGE_PX
    assert spec["description"].endswith(".")
    assert "None" not in spec["description"]
