"""Runs that measure the same thing: one key, what was covered, gaps where a number was refused, marks on the axis."""

from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest
from logs import log, write

import pdkit
from pdkit import series
from pdkit.errors import PdkitError
from pdkit.metrics import RESULTS
from pdkit.results import DOUBTS, MEASURED, NO_RESULT, UNVERIFIED
from pdkit.store import Engine, ingest, place, text
from pdkit.store.rows import RUNS

RECEIVED = "received_throughput_tok_per_s"
KEY = "model=m; gpu=2x L4; topology=1p1d; dataset=random 256/128 tok; level={}; client=sglang python via sglang"
EIGHT = KEY.format("8 users")


def run(
    week: int, *, key: str = EIGHT, verdict: str = MEASURED, value: float | None = 100.0, **said: object
) -> dict[str, object]:
    """A row of a store: a run of a week of 2026."""
    row = {
        "week": f"2026-W{week}", "experiment": f"nights/{week}", "experiment_id": f"id-{week}", "run_id": f"run-{week}",
        "level": "8 users", "series_key": key, "verdict": verdict, "refused_by": [], "level_refused_by": [],
        "suspected_by": [], "missing": False, RECEIVED: value,
    }  # fmt: skip
    return row | said


def table(*rows: dict[str, object]) -> pl.DataFrame:
    return pl.DataFrame([dict.fromkeys(RUNS) | row for row in rows], schema=RUNS)


# --- keys -----------------------------------------------------------------------------------------------------------

PLANNED = "model=m; gpu=2x L4; topology=1p1d; dataset=? ?/? tok; level=8 users; client=? ? via ?"


def keys(*rows: dict[str, object], known: tuple[str, ...] = ()) -> list[str]:
    return series.with_whole_keys(table(*rows), known)["series_key"].to_list()


def test_a_missing_level_is_of_the_one_series_that_it_can_be_of():
    assert keys(run(47), run(48, key=PLANNED, verdict=NO_RESULT, missing=True)) == [EIGHT, EIGHT]


def test_it_may_be_a_series_that_only_the_rest_of_the_store_shows():
    assert keys(run(48, key=PLANNED, verdict=NO_RESULT, missing=True), known=(EIGHT, KEY.format("16 users"))) == [EIGHT]


def test_where_two_series_fit_it_keeps_what_it_states():
    other = EIGHT.replace("256/128", "512/128")
    assert keys(run(48, key=PLANNED, verdict=NO_RESULT, missing=True), known=(EIGHT, other)) == [PLANNED]


def test_a_series_of_its_own_experiment_comes_first():
    other = EIGHT.replace("256/128", "512/128")
    beside = run(48, run_id="beside"), run(48, key=PLANNED, verdict=NO_RESULT, missing=True)
    assert keys(*beside, known=(EIGHT, other)) == [EIGHT, EIGHT]


def test_what_it_states_is_not_overruled():
    other_model = PLANNED.replace("model=m;", "model=n;")
    assert keys(run(47), run(48, key=other_model, verdict=NO_RESULT, missing=True))[1] == other_model


def test_a_run_with_a_result_keeps_its_key():
    assert keys(run(47), run(48, key=PLANNED)) == [EIGHT, PLANNED]


def test_of_a_model_in_a_cache_of_the_hub_name_and_revision_count(tmp_path: Path):
    cache = "/models/hub/models--Qwen--Qwen3-8B/snapshots"
    paths = [f"{cache}/9c925d64d72317c64cc0dfef0af80f7a6f5cd9ed", f"{cache}/b968826d9c46dd6066d109eabc6255188de91218/"]
    for number, model in enumerate([*paths, "/models/Qwen3-8B", "Qwen/Qwen3-8B"]):
        write(tmp_path / f"{number}/bench.log", log(arguments={"model": model}))
    found = pdkit.judge(pdkit.load(tmp_path)).verdicts.sort("experiment")["series_key"]
    assert [key.partition(";")[0] for key in found] == [
        "model=Qwen/Qwen3-8B@9c925d64d723", "model=Qwen/Qwen3-8B@b968826d9c46", "model=Qwen3-8B", "model=Qwen/Qwen3-8B",
    ]  # fmt: skip


# --- coverage -------------------------------------------------------------------------------------------------------


def test_coverage_counts_what_came_of_what_was_meant():
    covered = series.coverage(
        table(
            run(48, run_id="a"),
            run(48, run_id="b", verdict=DOUBTS),
            run(48, run_id="c", verdict=UNVERIFIED),
            run(48, run_id="d", verdict=NO_RESULT, refused_by=["PD201", "PD101"], value=None),
            run(48, run_id="e", verdict=NO_RESULT, missing=True, refused_by=["PD401"], value=None),
            run(47),
            run(49, verdict=NO_RESULT, refused_by=["PD999"]),
        ),
        "2026-W48",
    )
    assert covered.to_dicts() == [
        {
            "series_key": EIGHT, "level": "8 users", "planned": 5, "measured": 1, "doubts": 1, "unverified": 1,
            "refused": 1, "missing": 1, "refused_by": ["PD101", "PD201", "PD401"], "experiments": ["nights/48"],
            "last_week": "2026-W47",
        }
    ]  # fmt: skip


def test_a_series_that_did_not_run_this_week_is_a_row():
    (row,) = series.coverage(table(run(45), run(46)), "2026-W48").to_dicts()
    assert (row["planned"], row["measured"], row["last_week"], row["refused_by"]) == (0, 0, "2026-W46", [])


def test_a_store_without_runs_by_then_says_so():
    with pytest.raises(PdkitError, match="2026-W44: the store has no run in this week or before"):
        series.coverage(table(run(45)), "2026-W44")


# --- points ---------------------------------------------------------------------------------------------------------


def test_a_refused_run_is_a_point_without_a_value():
    shown = series.points(table(run(48, verdict=NO_RESULT, value=None, refused_by=["PD101"]), run(47)), RECEIVED)
    assert shown.select("week", "value", "refused_by").rows() == [
        ("2026-W47", 100.0, []), ("2026-W48", None, ["PD101"]),
    ]  # fmt: skip


def test_a_run_that_was_not_at_its_level_is_no_point_of_it():
    shown = series.points(table(run(48, level="8 users (not held)", level_refused_by=["PD501"])), RECEIVED)
    assert shown.select("value", "refused_by").rows() == [(None, ["PD501"])]


@pytest.mark.parametrize("metric", RESULTS)
def test_no_figure_of_an_unverified_run_is_a_point(metric: str):
    claimed = dict.fromkeys(RESULTS, 36.94)  # what its tool printed stays beside the run, with its verdict
    shown = series.points(table(run(48, verdict=UNVERIFIED, **claimed), run(47, **claimed)), metric)
    assert shown.select("verdict", "value").rows() == [(MEASURED, 36.94), (UNVERIFIED, None)]


def test_points_stand_in_time_series_by_series():
    early, late = (datetime(2026, 11, day, tzinfo=UTC) for day in (23, 25))
    other = KEY.format("16 users")
    shown = series.points(
        table(run(48, started_at=late, run_id="late"), run(48, started_at=early, run_id="early"), run(47, key=other)),
        RECEIVED,
    )
    assert shown.select("series_key", "run_id").rows() == [(other, "run-47"), (EIGHT, "early"), (EIGHT, "late")]


def marks(*rows: dict[str, object]) -> list[str | None]:
    return series.points(table(*rows), RECEIVED)["mark"].to_list()


def test_another_engine_is_a_mark_and_not_another_series():
    assert marks(
        run(45, engine_version="0.5.6"), run(46, engine_version="0.5.6"), run(47), run(48, engine_version="0.5.7")
    ) == [None, None, None, "engine 0.5.6 → 0.5.7"]


def test_a_flag_that_changed_came_or_went_is_a_mark():
    assert marks(
        run(46, flags=["decode.tp_size=4", "decode.kv_dtype=bf16"]),
        run(47, flags=["decode.tp_size=8", "decode.kv_dtype=bf16"]),
        run(48, flags=["decode.tp_size=8", "decode.speculative=EAGLE"]),
    ) == [
        None,
        "decode.tp_size 4 → 8",
        "decode.kv_dtype bf16 → not stated; decode.speculative not stated → EAGLE",
    ]


def test_a_server_whose_log_is_absent_for_a_week_changed_nothing():
    flags = ["client.streaming=true", "decode.tp_size=4"]
    assert marks(run(46, flags=flags), run(47, flags=["client.streaming=true"]), run(48, flags=flags)) == [None] * 3


def test_a_change_across_a_week_without_logs_is_seen_after_it():
    assert marks(run(46, flags=["decode.tp_size=4"]), run(47), run(48, flags=["decode.tp_size=8"])) == [
        None, None, "decode.tp_size 4 → 8",
    ]  # fmt: skip


# --- the list -------------------------------------------------------------------------------------------------------


def test_the_list_has_the_last_measured_value_not_the_last_run():
    (row,) = series.listed(
        table(run(46), run(47, value=90.0, engine_version="1"), run(48, verdict=NO_RESULT, value=None, missing=True))
    ).to_dicts()
    assert (row["runs"], row["first_week"], row["last_week"]) == (3, "2026-W46", "2026-W48")
    assert (row["last_value"], row["last_measured"]) == (90.0, "2026-W47")
    assert (row["measured"], row["refused"], row["missing"]) == (2, 0, 1)
    assert row["by_week"] == [{"week": f"2026-W{week}", "runs": 1} for week in (46, 47, 48)]


def test_the_list_as_text():
    rows = [run(week, engine_version="0.5.6" if week < 48 else "0.5.7") for week in range(39, 49)]
    assert text.series(series.listed(table(*rows))).splitlines() == [
        EIGHT,
        f"  10 runs: 2 earlier weeks, {', '.join(f'2026-W{week} (1)' for week in range(41, 49))}",
        "  10 measured",
        "  received, last: 100.00 tok/s in 2026-W48",
        "  | 2026-W48: engine 0.5.6 → 0.5.7",
    ]
    assert text.series(series.listed(table())) == "no series\n"


def test_series_are_chosen_by_words_of_their_keys():
    rows = table(run(47), run(48, key=KEY.format("16 users")))
    assert series.chosen(rows, "level=8 users").height == 1
    assert series.chosen(rows, ["gpu=2x", "level=16"])["week"].to_list() == ["2026-W48"]
    assert series.chosen(rows, "gpu=2.").is_empty()  # words, no pattern
    assert series.chosen(rows, None).height == 2


# --- from logs ------------------------------------------------------------------------------------------------------


def test_a_flag_of_a_server_shows_in_the_series_of_its_logs(tmp_path: Path):
    for day, seconds, size in (("2026-11-09", 64, 4), ("2026-11-16", 66, 8)):
        home = tmp_path / "nights" / day
        write(home / "users-8.log", log(values={"Benchmark duration (s)": f"{seconds:.2f}"}))
        write(
            home / "server.log",
            [f"[{day} 10:00:00] server_args=ServerArgs(model_path='m', tp_size={size}, disaggregation_mode='null')",
             f"[{day} 10:00:09] The server is fired up and ready to roll!"],
        )  # fmt: skip
    list(ingest([tmp_path / "nights"], place(tmp_path / "store"), engine=Engine(jobs=1)))
    points = pdkit.store.open(tmp_path / "store").points(RECEIVED)
    assert points["series_key"].n_unique() == 1
    assert points["mark"][0] is None
    assert "tp_size 4 → 8" in points["mark"][1]


@pytest.mark.parametrize("metric", ["throughput", "concurrency"])
def test_only_a_result_makes_points(metric: str, tmp_path: Path):
    write(tmp_path / "in/users-8.log", log())
    list(ingest([tmp_path / "in"], place(tmp_path / "store"), week="2026-W48", engine=Engine(jobs=1)))
    with pytest.raises(PdkitError, match=f"metric: '{metric}' is not known"):
        pdkit.store.open(tmp_path / "store").points(metric)
