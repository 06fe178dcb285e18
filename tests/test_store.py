"""The run store: nothing twice, nothing lost, and nothing that was refused comes back as a number."""

import gzip
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import psutil
import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st
from logs import details, log, record, write
from polars.testing import assert_frame_equal

import pdkit
from pdkit.cli import main
from pdkit.errors import PdkitError
from pdkit.load import found, load
from pdkit.metrics import RESULTS
from pdkit.results import NO_RESULT
from pdkit.rules import below
from pdkit.store import Engine, Ruling, ingest, place, rejudge, remove, vacuum
from pdkit.store.engines import Failed, mapped
from pdkit.store.ingesting import Said, Task, written
from pdkit.store.manifests import Judged, Seen, Stored, continues, counted
from pdkit.store.units import units

RECEIVED = "received_throughput_tok_per_s"
HERE = Engine(jobs=1)


def night(folder: Path, seconds: float = 64.0, *, users: int = 8, received: int = 4090, name: str = "") -> Path:
    """One run of 32 requests with 128 tokens each, as its client prints it; it took so long, and so many came back."""
    values = {
        "Max request concurrency": str(users),
        "Benchmark duration (s)": f"{seconds:.2f}",
        "Total generated tokens (retokenized)": str(received),
        "Request throughput (req/s)": f"{32 / seconds:.2f}",
        "Input token throughput (tok/s)": f"{8192 / seconds:.2f}",
        "Output token throughput (tok/s)": f"{4096 / seconds:.2f}",
        "Total token throughput (tok/s)": f"{12288 / seconds:.2f}",
        "Concurrency": f"{480 / seconds:.2f}",
    }
    return write(folder / (name or f"users-{users}.log"), log(values=values, arguments={"max_concurrency": users}))


def crash(folder: Path, *, name: str = "users-8.log") -> Path:
    """A run that began and left no result."""
    return write(folder / name, [*log()[:3], "Traceback (most recent call last):", "ConnectionRefusedError: refused"])


def plan(folder: Path, *, day: str = "2026-11-25", users: Iterable[int] = (8,)) -> Path:
    """A manifest with these levels, an hour apart."""
    levels = [
        f"[[level]]\nconcurrency = {level}\nprompts = 32\nstarted_at = {day}T{10 + number}:00:00Z\n"
        f"ended_at = {day}T{10 + number}:30:00Z\n"
        for number, level in enumerate(users)
    ]
    return write(folder / "sweep.toml", ['model = "m-8b"', 'gpu = "NVIDIA L4"', "gpu_count = 2", "", *levels])


def stored(paths: Path | list[Path], where: Path, **options: object) -> list[Said]:
    """What an ingest says."""
    given = [paths] if isinstance(paths, Path) else paths
    return list(ingest(given, place(where), **{"engine": HERE, **options}))  # type: ignore[arg-type]


def outcomes(said: Iterable[Said]) -> list[str]:
    return sorted(one.outcome for one in said)


def objects(where: Path) -> set[str]:
    return {file.relative_to(where).as_posix() for file in where.rglob("*") if file.is_file()}


def pdkit_(*words: str | Path) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


@pytest.fixture
def where(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Three nights of one experiment each, of which one came back empty."""
    night(tmp_path / "results/2026-11-09", 64.0)
    night(tmp_path / "results/2026-11-16", 80.0)
    night(tmp_path / "results/2026-11-23", 50.0, received=0)
    return tmp_path / "results"


# --- what a store keeps ---------------------------------------------------------------------------------------------


def test_an_experiment_is_kept_by_week(results: Path, where: Path):
    assert outcomes(stored(results, where)) == ["stored"] * 3
    store = pdkit.store.open(where)
    assert store.weeks == ["2026-W46", "2026-W47", "2026-W48"]
    assert store.experiments()["experiment"].to_list() == [
        "results/2026-11-09", "results/2026-11-16", "results/2026-11-23",
    ]  # fmt: skip
    assert store.experiments(["2026-W47"])["runs"].to_list() == [1]
    assert {name.split("/")[2] for name in objects(where) if name.startswith("evidence/runs/")} == {
        "week=2026-W46", "week=2026-W47", "week=2026-W48",
    }  # fmt: skip


def test_a_run_is_one_row_with_what_may_be_published(results: Path, where: Path):
    stored(results, where)
    runs = pdkit.store.open(where).runs()
    assert runs["week"].to_list() == ["2026-W46", "2026-W47", "2026-W48"]
    assert runs[RECEIVED].round(2).to_list() == [63.91, 51.12, None]  # 4090 / 64, 4090 / 80, refused
    assert runs["level"].to_list() == ["8 users"] * 3
    assert runs["series_key"].n_unique() == 1


def test_a_refused_run_has_no_number_and_its_claims_are_called_so(results: Path, where: Path):
    stored(results, where)
    store = pdkit.store.open(where)
    refused = store.runs(weeks=["2026-W48"])
    assert refused["verdict"].to_list() == [NO_RESULT]
    assert refused.select(RESULTS).null_count().sum_horizontal().item() == len(RESULTS)
    claims = store.claimed(["2026-W48"])
    assert claims.filter(fact="output_throughput_tok_per_s")["value"].to_list() == [81.92]  # 4096 / 50
    assert set(claims["shown_as"]) == {"claimed, not measured"}


def test_the_evidence_comes_back_as_it_was(results: Path, where: Path):
    write(results / "2026-11-09/result.jsonl", record(**details()))
    stored(results, where)
    kept, fresh = pdkit.store.open(where).evidence("results/2026-11-09"), load(results)
    mine = pl.col("experiment") == "results/2026-11-09"
    assert_frame_equal(kept.runs, fresh.runs.filter(mine))
    assert_frame_equal(kept.sources, fresh.sources.filter(mine))
    ids = kept.runs["run_id"]
    for name in ("claims", "requests", "gaps"):
        assert_frame_equal(getattr(kept, name), getattr(fresh, name).filter(pl.col("run_id").is_in(ids.implode())))
    assert kept.requests.height == 32


def test_what_is_judged_unit_by_unit_is_what_is_judged_together(where: Path):
    home = Path(__file__).parents[1] / "data/split-l4-qwen3-8b"
    stored(home, where)
    columns = ["run_id", "verdict", "refused_by", "suspected_by", "series_key"]
    together = pdkit.judge(load(home)).verdicts.select(columns).cast({"verdict": pl.String})
    assert_frame_equal(pdkit.store.open(where).runs().select(columns), together, check_row_order=False)


def test_no_text_is_kept(tmp_path: Path, where: Path):
    write(tmp_path / "in/result.jsonl", record(**(details() | {"generated_texts": ["a confidential answer"] * 32})))
    stored(tmp_path / "in", where)
    assert not [name for name in objects(where) if b"confidential" in (where / name).read_bytes()]
    tables = [pl.read_parquet(where / name) for name in objects(where) if name.endswith(".parquet")]
    assert not any("confidential" in str(frame.to_dicts()) for frame in tables)


def test_a_series_is_read_without_requests(results: Path, where: Path):
    write(results / "2026-11-09/result.jsonl", record(**details()))
    stored(results, where)
    for file in (where / "evidence").rglob("*.parquet"):
        file.unlink()
    assert pdkit.store.open(where).points(RECEIVED).height == 3


def test_a_store_within_what_is_read_is_not_read(where: Path, tmp_path: Path):
    night(tmp_path, 64.0)  # a log at the top: what lies below is read with it
    stored(tmp_path, where, week="2026-W48")
    again = stored(tmp_path, where, week="2026-W48")
    assert outcomes(again) == ["known"]
    assert len(pdkit.store.open(where).contents.live[0].sources) == 1


# --- nothing twice --------------------------------------------------------------------------------------------------


def test_the_same_files_again_change_nothing(results: Path, where: Path):
    stored(results, where)
    before = objects(where)
    again = stored(results, where)
    assert outcomes(again) == ["known"] * 3
    assert all("nothing new" in one.sentence for one in again)
    assert objects(where) == before


def test_a_copy_under_another_name_counts_once(results: Path, where: Path, tmp_path: Path):
    stored(results, where)
    before = objects(where)
    night(tmp_path / "copy", 64.0)
    assert outcomes(stored(tmp_path / "copy", where)) == ["known"]
    assert objects(where) == before


def test_a_run_in_two_experiments_counts_once(where: Path, tmp_path: Path):
    night(tmp_path / "a/2026-11-09", 64.0), night(tmp_path / "a/2026-11-09", 70.0, users=4)
    night(tmp_path / "b/2026-11-10", 64.0), night(tmp_path / "b/2026-11-10", 75.0, users=2)
    stored([tmp_path / "a", tmp_path / "b"], where)
    assert pdkit.store.open(where).runs()["concurrency"].sort().to_list() == [2, 4, 8]


def test_an_experiment_that_grew_takes_the_place_of_its_older_version(where: Path, tmp_path: Path):
    home = tmp_path / "2026-11-09"
    night(home, 64.0)
    stored(home, where)
    night(home, 100.0, users=4)
    (said,) = stored(home, where)
    assert "in place of 2026-11-09 of 2026-W46" in said.sentence
    store = pdkit.store.open(where)
    assert store.experiments()["runs"].to_list() == [2]
    assert store.experiments()["versions"].to_list() == [2]
    assert store.runs().height == 2


def test_an_older_version_changes_nothing(where: Path, tmp_path: Path):
    night(tmp_path / "new/2026-11-09", 64.0), night(tmp_path / "new/2026-11-09", 100.0, users=4)
    stored(tmp_path / "new/2026-11-09", where)
    night(tmp_path / "old/2026-11-09", 64.0)
    assert outcomes(stored(tmp_path / "old/2026-11-09", where)) == ["known"]
    assert pdkit.store.open(where).runs().height == 2


def test_a_corrected_manifest_takes_the_place_of_the_wrong_one(where: Path, tmp_path: Path):
    night(tmp_path / "in", 64.0)
    plan(tmp_path / "in", day="2026-11-18")
    stored(tmp_path / "in", where)
    plan(tmp_path / "in", day="2026-11-25")
    assert outcomes(stored(tmp_path / "in", where)) == ["stored"]
    assert pdkit.store.open(where).runs()["week"].to_list() == ["2026-W48"]


def test_of_a_log_and_a_record_stored_apart_the_one_that_says_more_counts(tmp_path: Path):
    write(tmp_path / "log/bench.log", log())
    write(tmp_path / "record/result.jsonl", record(**details()))
    for number, order in enumerate((["log", "record"], ["record", "log"])):
        where = tmp_path / f"store-{number}"
        for name in order:
            stored(tmp_path / name, where, week="2026-W48")
        assert pdkit.store.open(where).runs()["experiment"].to_list() == ["record"]


def test_a_folder_that_every_night_fills_anew_is_an_experiment_each_night(where: Path, tmp_path: Path):
    for week, seconds in (("2026-W46", 64.0), ("2026-W47", 80.0)):
        night(tmp_path / "results", seconds)
        stored(tmp_path / "results", where, week=week)
    assert pdkit.store.open(where).experiments()["week"].to_list() == ["2026-W46", "2026-W47"]


def test_two_nights_that_crash_alike_are_two(where: Path, tmp_path: Path):
    for week in ("2026-W46", "2026-W47"):
        crash(tmp_path / "results")
        stored(tmp_path / "results", where, week=week)
    assert pdkit.store.open(where).runs()["missing"].to_list() == [True, True]


def test_a_log_that_was_read_while_its_run_went_on_is_replaced_by_the_whole_one(where: Path, tmp_path: Path):
    lines = log()
    for end in (3, len(lines)):
        write(tmp_path / "results/users-8.log", lines[:end])
        stored(tmp_path / "results", where, week="2026-W48")
    assert pdkit.store.open(where).runs()["missing"].to_list() == [False]


def test_a_log_and_its_record_in_two_folders_are_one_experiment(where: Path, tmp_path: Path):
    write(tmp_path / "results/logs/bench.log", log())
    write(tmp_path / "results/records/result.jsonl", record(**details()))
    stored(tmp_path / "results", where, week="2026-W48")
    store, together = pdkit.store.open(where), load(tmp_path / "results")
    assert store.experiments()["experiment"].to_list() == together.runs["experiment"].unique().to_list()
    assert store.runs()["run_id"].to_list() == together.runs["run_id"].unique().to_list()


def test_two_nights_that_take_as_long_to_10_ms_are_two_runs(where: Path, tmp_path: Path):
    """With the same tokens in the same time, throughput is the same as well: some other number tells them apart."""
    for day, longest in (("2026-11-09", "200.00"), ("2026-11-16", "200.01")):
        write(tmp_path / "results" / day / "bench.log", log(values={"Max ITL (ms)": longest}))
    stored(tmp_path / "results", where)
    assert pdkit.store.open(where).runs()["week"].to_list() == ["2026-W46", "2026-W47"]


# --- which version counts is a pure answer --------------------------------------------------------------------------


def version(
    key: str, *, prints: str = "", read: str = "", seq: int = 0, detail: int = 0, week: str = "2026-W48"
) -> Stored:
    return Stored(
        id=key, experiment="results", title="results", weeks=[week], dated_by=["--week"], runs=1, prints=sorted(prints),
        detail=detail, unit=key, sources=[Seen(f"{one}.log", one, 1, True, True) for one in read], files=[],
        judged=Judged("rules", {}, [], [], seq), seq=seq,
    )  # fmt: skip


VERSIONS = st.builds(
    version,
    prints=st.sets(st.sampled_from("abc")).map("".join),
    read=st.sets(st.sampled_from("xyz")).map("".join),
    seq=st.integers(1, 3),
    detail=st.integers(0, 1),
    week=st.sampled_from(["2026-W47", "2026-W48"]),
    key=st.uuids().map(str),
)


@given(st.lists(VERSIONS, max_size=7), st.randoms())
def test_what_counts_does_not_depend_on_the_order_of_commits(entries: list[Stored], chance: random.Random):
    shuffled = list(entries)
    chance.shuffle(shuffled)
    assert {one.id for one in counted(shuffled)[0]} == {one.id for one in counted(entries)[0]}


@given(st.lists(VERSIONS, min_size=1, max_size=7))
def test_no_run_is_lost_to_a_newer_version(entries: list[Stored]):
    live, hidden = counted(entries)
    assert live
    assert {one.id for one in (*live, *hidden)} == {one.id for one in entries}
    for gone in hidden:
        has_runs = any(gone.prints and set(one.prints) >= set(gone.prints) for one in live)
        has_files = any(gone.client and one.client >= gone.client for one in live)
        assert has_runs or has_files


@given(VERSIONS, VERSIONS)
def test_of_two_versions_at_most_one_continues_the_other(one: Stored, other: Stored):
    assert not (continues(one, other) and continues(other, one))


# --- several at once, and the killed --------------------------------------------------------------------------------

_INGEST = "import sys\nfrom pdkit.cli import main\nmain(sys.argv[1:])"


def started(*words: str | Path) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-c", _INGEST, *map(str, words)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def test_several_ingests_at_once_lose_nothing(where: Path, tmp_path: Path):
    for number in range(6):
        night(tmp_path / f"in/{number % 3}/2026-11-{10 + number}", 64.0 + number)
    at_once = [tmp_path / "in/0", tmp_path / "in/1", tmp_path / "in/2", tmp_path / "in/0"]
    running = [started("ingest", folder, "--store", where, "--jobs", "1") for folder in at_once]
    assert [one.wait(120) for one in running] == [0, 0, 0, 0]
    store = pdkit.store.open(where)
    assert store.runs()["started_at"].dt.day().to_list() == [10, 11, 12, 13, 14, 15]
    assert store.experiments().height == 6


def test_a_killed_ingest_leaves_a_store_that_reads_and_goes_on(where: Path, tmp_path: Path):
    for number in range(12):
        night(tmp_path / f"in/2026-11-{10 + number}", 64.0 + number)
    killed = started("ingest", tmp_path / "in", "--store", where, "--jobs", "1")
    until = time.monotonic() + 120
    while not list(where.rglob("*.parquet")) and time.monotonic() < until:
        os.sched_yield()
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    assert pdkit.store.open(where).runs().height in (0, 12)  # one manifest speaks of them all
    stored(tmp_path / "in", where)
    assert pdkit.store.open(where).runs().height == 12


def test_a_killed_ingest_leaves_no_process_behind(where: Path, tmp_path: Path):
    for number in range(12):
        night(tmp_path / f"in/2026-11-{10 + number}", 64.0 + number)
    killed = started("ingest", tmp_path / "in", "--store", where, "--jobs", "2")
    until = time.monotonic() + 120
    while not list(where.rglob("*.parquet")) and time.monotonic() < until:
        os.sched_yield()
    workers = psutil.Process(killed.pid).children(recursive=True)
    killed.kill()
    killed.wait()
    _, alive = psutil.wait_procs(workers, timeout=60)
    assert not alive


def test_what_no_manifest_names_is_not_there(results: Path, where: Path):
    stored(results, where)
    before = pdkit.store.open(where).runs()
    (unit,) = units(found([night(results / "2026-11-26", 99.0)]))
    batch = written(Task(unit, place(where), None, Ruling(), Ruling().version))
    assert len(batch.made) == 1
    assert_frame_equal(pdkit.store.open(where).runs(), before)


# --- taking out -----------------------------------------------------------------------------------------------------


def test_vacuum_leaves_what_may_still_be_named(results: Path, where: Path):
    stored(results, where)
    before = objects(where)
    (unit,) = units(found([night(results / "2026-11-26", 99.0)]))
    written(Task(unit, place(where), None, Ruling(), Ruling().version))
    young = vacuum(place(where))
    assert (young.files, young.young) == (0, len(objects(where) - before))
    done = vacuum(place(where), now=datetime.now(UTC) + timedelta(hours=25))
    assert (done.files, done.young) == (young.young, 0)
    assert objects(where) == before


def test_vacuum_changes_nothing_that_is_read(where: Path, tmp_path: Path):
    home = tmp_path / "2026-11-09"
    for users, seconds in ((8, 64.0), (4, 100.0), (2, 200.0)):
        night(home, seconds, users=users)
        stored(home, where)
    before = pdkit.store.open(where)
    done = vacuum(place(where), now=datetime.now(UTC) + timedelta(hours=25))
    after = pdkit.store.open(where)
    assert_frame_equal(after.runs(), before.runs())
    assert done.manifests == 3
    assert done.files > 0
    assert len([name for name in objects(where) if name.startswith("manifests/")]) == 1
    assert outcomes(stored(home, where)) == ["known"]


def test_rm_takes_an_experiment_out_with_its_older_versions(where: Path, tmp_path: Path):
    home = tmp_path / "2026-11-09"
    night(home, 64.0)
    stored(home, where)
    night(home, 100.0, users=4)
    stored(home, where)
    assert pdkit_("store", "rm", "2026-11-09", "--store", where).exit_code == 0
    assert pdkit.store.open(where).experiments().is_empty()
    assert pdkit.store.open(where).runs().is_empty()


def test_what_was_taken_out_can_be_stored_again(results: Path, where: Path):
    stored(results, where)
    store = pdkit.store.open(where)
    remove(store.place, store.entries("results/2026-11-16"))
    assert pdkit.store.open(where).weeks == ["2026-W46", "2026-W48"]
    assert outcomes(stored(results, where)) == ["known", "known", "stored"]
    assert pdkit.store.open(where).weeks == ["2026-W46", "2026-W47", "2026-W48"]


def test_rm_of_a_week(results: Path, where: Path):
    stored(results, where)
    said = pdkit_("store", "rm", "--week", "2026-W47", "--store", where)
    assert said.output == "results/2026-11-16: out, 2026-W47\n"
    assert pdkit.store.open(where).weeks == ["2026-W46", "2026-W48"]


# --- when a run was -------------------------------------------------------------------------------------------------


def dates(where: Path) -> list[tuple[str, str]]:
    return pdkit.store.open(where).runs().select("week", "dated_by").rows()


def test_a_manifest_says_when_a_run_started(where: Path, tmp_path: Path):
    night(tmp_path / "in/2020-01-01", 64.0)
    plan(tmp_path / "in/2020-01-01", day="2026-11-25")
    stored(tmp_path / "in", where, week="2026-W40")
    assert dates(where) == [("2026-W48", "sweep.toml")]
    assert pdkit.store.open(where).runs()["started_at"].to_list() == [datetime(2026, 11, 25, 10, tzinfo=UTC)]


def test_a_level_that_was_planned_and_never_seen_belongs_to_its_experiment(where: Path, tmp_path: Path):
    night(tmp_path / "in", 64.0)
    plan(tmp_path / "in", users=(8, 16))
    stored(tmp_path / "in", where)
    runs = pdkit.store.open(where).runs()
    assert runs.select("week", "missing").rows() == [("2026-W48", False), ("2026-W48", True)]


def test_without_a_start_the_week_that_was_given_counts(where: Path, tmp_path: Path):
    night(tmp_path / "in/2020-01-01", 64.0)
    stored(tmp_path / "in", where, week="2026-W40")
    assert dates(where) == [("2026-W40", "--week")]


def test_else_the_newest_date_at_the_start_of_a_line(where: Path, tmp_path: Path):
    lines = [
        "[2026-11-16 23:59:59] starting",
        "WARNING 2026-11-17 00:10:00 slow",
        *log(),
        "said of 2031-01-01 00:00:00",
    ]
    write(tmp_path / "in/2020-01-01/bench.log", lines)
    stored(tmp_path / "in", where)
    assert dates(where) == [("2026-W47", "dates in the log")]  # the last line speaks of a date, and has none


def test_else_the_last_date_in_the_path(where: Path, tmp_path: Path):
    night(tmp_path / "since-2020-01-01/20261118", 64.0)
    night(tmp_path / "since-2020-01-01/20269999", 65.0)  # no date
    stored(tmp_path / "since-2020-01-01", where)
    assert dates(where) == [("2020-W01", "date in the path"), ("2026-W47", "date in the path")]


def test_else_the_time_on_disk_and_that_is_said(where: Path, tmp_path: Path):
    file = night(tmp_path / "in", 64.0)
    moment = datetime(2026, 11, 19, 12, tzinfo=UTC).timestamp()
    os.utime(file, (moment, moment))
    (said,) = stored(tmp_path / "in", where)
    assert dates(where) == [("2026-W47", "file time")]
    assert "2026-W47 by the files' time on disk (no log says when; --week would)" in said.sentence


# --- rules of another day -------------------------------------------------------------------------------------------


def test_rejudge_lists_whose_verdict_changed_and_by_which_rule(results: Path, where: Path):
    stored(results, where)
    before = {name for name in objects(where) if name.startswith("evidence/")}
    stricter = Ruling(thresholds={"PD110": {"refuse": below(1.5)}})  # 150 % of the tokens cannot come back
    anew = rejudge(place(where), ruling=stricter, engine=HERE)
    assert [(one.experiment, one.old, one.new, one.now) for one in anew.changed] == [
        ("results/2026-11-09", "measured, with doubts", NO_RESULT, ("PD110",)),
        ("results/2026-11-16", "measured, with doubts", NO_RESULT, ("PD110",)),
    ]
    assert {name for name in objects(where) if name.startswith("evidence/")} == before
    runs = pdkit.store.open(where).runs()
    assert runs[RECEIVED].to_list() == [None, None, None]
    assert set(runs["rules"]) == {stricter.version}
    back = rejudge(place(where), engine=HERE)
    assert [(one.new, one.no_more) for one in back.changed] == [("measured, with doubts", ("PD110",))] * 2


def test_rejudge_leaves_what_the_same_rules_have_judged(results: Path, where: Path):
    stored(results, where)
    before = objects(where)
    anew = rejudge(place(where), engine=HERE)
    assert (anew.judged, anew.current, anew.changed) == (0, 3, ())
    assert objects(where) == before


def test_the_version_of_the_rules_is_that_of_their_bounds():
    assert Ruling().version == Ruling().version
    assert Ruling({"PD110": {"refuse": below(0.95)}}).version != Ruling().version
    assert Ruling().version.startswith(f"{pdkit.__version__}-")


# --- who does the work ----------------------------------------------------------------------------------------------


def doubled_or_dead(task: tuple[int, Path]) -> int:
    """Twice the number; 3 kills its process, 4 does so the first time."""
    number, folder = task
    if number == 3:
        os._exit(1)
    if number == 4 and not (folder / "died").exists():
        (folder / "died").touch()
        os._exit(1)
    if number == 5:
        raise ValueError("five is right out")
    return 2 * number


def test_a_process_that_dies_takes_nobody_with_it(tmp_path: Path):
    answers = dict(mapped(Engine(jobs=2), doubled_or_dead, [(number, tmp_path) for number in range(1, 7)]))
    assert [answers[number, tmp_path] for number in (1, 2, 4, 6)] == [2, 4, 8, 12]
    assert answers[3, tmp_path] == Failed("the process that read it died")
    assert answers[5, tmp_path] == Failed("ValueError: five is right out")


def test_processes_store_what_one_does(results: Path, tmp_path: Path):
    stored(results, tmp_path / "one")
    stored(results, tmp_path / "two", engine=Engine(jobs=2))
    assert alike(tmp_path / "two", tmp_path / "one")


def alike(one: Path, other: Path) -> bool:
    """Whether two stores show the same runs."""
    shown = [pdkit.store.open(where).runs().drop("experiment_id") for where in (one, other)]
    assert_frame_equal(*shown)
    return True


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    """The address of a Dask cluster of two workers."""
    distributed = pytest.importorskip("distributed", reason="needs the extra dask")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1"
    ) as cluster:
        yield cluster.scheduler_address


def test_a_dask_cluster_stores_what_one_process_does(results: Path, tmp_path: Path, scheduler: str):
    stored(results, tmp_path / "one")
    stored(results, tmp_path / "dask", engine=Engine(scheduler=scheduler))
    assert alike(tmp_path / "dask", tmp_path / "one")


def test_dask_retries_what_a_dying_worker_left(tmp_path: Path, scheduler: str):
    answers = dict(mapped(Engine(scheduler=scheduler), doubled_or_dead, [(1, tmp_path), (4, tmp_path), (5, tmp_path)]))
    assert answers[1, tmp_path] == 2
    assert answers[4, tmp_path] == 8
    assert answers[5, tmp_path] == Failed("ValueError: five is right out")
    assert (tmp_path / "died").exists()


def test_a_scheduler_that_is_not_there_is_said_in_a_sentence(results: Path, where: Path):
    pytest.importorskip("distributed", reason="needs the extra dask")
    said = pdkit_("ingest", results, "--store", where, "--scheduler", "tcp://127.0.0.1:9")
    assert (said.exit_code, said.output.splitlines()[-1]) == (
        2, "Error: tcp://127.0.0.1:9: no Dask scheduler answers there; start one with `dask scheduler`",
    )  # fmt: skip


def test_a_file_that_fails_is_left_out_and_all_else_is_stored(results: Path, where: Path):
    write(results / "2026-11-16/sweep.toml", ["[[level]]", "concurrency = 8", 'prompts = "many"'])
    said = pdkit_("ingest", results, "--store", where, "--jobs", "1")
    assert said.exit_code == 1
    (failed,) = [line for line in said.output.splitlines() if line.endswith("skipped")]
    assert "2026-11-16/sweep.toml" in failed
    assert pdkit.store.open(where).runs().height == 3


@pytest.mark.parametrize("beside", [True, False])
def test_a_file_that_ends_early_is_said_whether_or_not_its_folder_shows_a_run(beside: bool, tmp_path: Path):
    folder, store = tmp_path / "night", tmp_path / "store"
    whole = gzip.compress(random.Random(6).randbytes(3000).hex().encode())
    (night(folder) if beside else folder / "users-8.log").parent.mkdir(exist_ok=True)
    (folder / "other.log.gz").write_bytes(whole[: len(whole) // 2])
    said = list(ingest([folder], place(store), engine=HERE))
    assert [one.outcome for one in said] == ["failed", "stored" if beside else "empty"]
    assert "night/other.log.gz: compressed data ends early" in said[0].sentence
    assert not said[0].sentence.endswith("skipped")  # what came before is read


# --- the command line -----------------------------------------------------------------------------------------------


def test_ls_show_and_series(results: Path, where: Path):
    assert pdkit_("ingest", results, "--store", where).exit_code == 0
    listed = pdkit_("store", "ls", "--store", where).output.splitlines()
    assert listed[0].split()[:4] == ["week", "experiment", "id", "runs"]
    assert listed[1].split()[:2] == ["2026-W46", "results/2026-11-09"]
    assert listed[-1].startswith("3 experiments, 3 runs, ")
    shown = pdkit_("store", "show", "results/2026-11-23", "--store", where).output
    assert "8 users: no measured result" in shown
    assert "PD101 0 of 4,096 claimed tokens came back as text (0.0%)" in shown
    series = pdkit_("series", "--store", where).output
    assert "3 runs: 2026-W46 (1), 2026-W47 (1), 2026-W48 (1)" in series
    assert "received, last: 51.12 tok/s in 2026-W47" in series


def test_no_name_from_a_log_steers_the_terminal(where: Path, tmp_path: Path):
    write(tmp_path / "in/\x1b[31mred/bench.log", log(arguments={"model": "m\x1b[2J\r\nevil"}))
    said = [
        pdkit_("ingest", tmp_path / "in", "--store", where, "--week", "2026-W48"),
        pdkit_("series", "--store", where),
    ]
    said += [pdkit_("store", "ls", "--store", where)]
    assert all(one.exit_code == 0 for one in said)
    assert not any("\x1b" in one.output or "\r" in one.output for one in said)


def test_rejudge_and_vacuum_say_what_they_did(results: Path, where: Path, tmp_path: Path):
    assert pdkit_("ingest", results, "--store", where).exit_code == 0
    bounds = write(tmp_path / "bounds.toml", ["[PD110]", "refuse = { below = 1.5 }"])
    lines = pdkit_("rejudge", "--store", where, "--thresholds", bounds).stdout.splitlines()
    assert lines[0] == "results/2026-11-09, 8 users: measured, with doubts → no measured result (PD110)"
    assert lines[-1].endswith("3 experiments judged; 2 verdicts changed")
    assert pdkit_("store", "vacuum", "--store", where, "--grace", "0").output.startswith("15 files removed, ")


WRONG = {
    "no such store": (["store", "ls", "--store", "{tmp}/none"], "none: no such store; `pdkit ingest PATH --store"),
    "a folder of something else": (["store", "ls", "--store", "{results}"], "results: not a store; `pdkit ingest"),
    "a file": (["store", "ls", "--store", "{results}/2026-11-09/users-8.log"], "users-8.log: not a store"),
    "into a folder of something else": (
        ["ingest", "{results}", "--store", "{results}"], "results: holds files, but is no store; name an empty",
    ),
    "a week": (["ingest", "{results}", "--store", "{store}", "--week", "2026-W54"], "week '2026-W54' is none; write"),
    "another week": (["store", "ls", "--store", "{store}", "--week", "last"], "week 'last' is none; write"),
    "an empty week": (["store", "rm", "--store", "{store}", "--week", "2026-W01"], "no run in 2026-W01; weeks: 2026"),
    "an experiment": (
        ["store", "show", "results/2026-11-90", "--store", "{store}"], "is not known; did you mean results/2026-11-09?",
    ),
    "nothing to remove": (["store", "rm", "--store", "{store}"], "nothing named; give an EXPERIMENT, or --week"),
    "an option": (["store", "ls", "--store", "{store}", "--storage-option", "x"], "--storage-option x: no value;"),
    "a path": (["ingest", "{tmp}/nothing", "--store", "{store}"], "nothing: no such file or folder"),
    "no run": (["ingest", "{tmp}/empty", "--store", "{store}"], "empty: nothing to store; see `pdkit list readers`"),
    "a command": (["store", "list", "--store", "{store}"], "'list' is not known; did you mean ls?"),
}  # fmt: skip


@pytest.mark.parametrize(("words", "sentence"), WRONG.values(), ids=WRONG)
def test_a_wrong_call_is_one_sentence(words: list[str], sentence: str, results: Path, where: Path, tmp_path: Path):
    stored(results, where)
    (tmp_path / "empty").mkdir()
    said = pdkit_(*(word.format(tmp=tmp_path, results=results, store=where) for word in words))
    assert said.exit_code == 2
    assert sentence in said.output.splitlines()[-1]


def test_two_experiments_of_one_name_are_told_apart(where: Path, tmp_path: Path):
    for week, seconds in (("2026-W46", 64.0), ("2026-W47", 80.0)):
        night(tmp_path / "results", seconds)
        stored(tmp_path / "results", where, week=week)
    said = pdkit_("store", "show", "results", "--store", where)
    assert "results: 2 experiments have this name; name one by its id: " in said.output
    assert pdkit_("store", "show", "results", "--week", "2026-W46", "--store", where).exit_code == 0


def test_a_store_of_a_newer_pdkit_is_not_touched(results: Path, where: Path):
    stored(results, where)
    (where / "pdkit-store.json").write_text('{"format": 2}')
    with pytest.raises(PdkitError, match=r"pdkit-store.json is of format 2, this pdkit reads up to 1; update pdkit"):
        pdkit.store.open(where)
    with pytest.raises(PdkitError, match="update pdkit"):
        stored(results, where)


def test_a_manifest_of_a_newer_pdkit_is_said(results: Path, where: Path):
    stored(results, where)
    (where / "manifests/00000002-0.json").write_text('{"format": 3, "stored": "otherwise"}')
    with pytest.raises(PdkitError, match=r"manifests/00000002-0.json is of format 3"):
        pdkit.store.open(where)


def test_a_broken_manifest_is_said(results: Path, where: Path):
    stored(results, where)
    (where / "manifests/00000002-0.json").write_text('{"format": 1, "stored"')
    with pytest.raises(PdkitError, match=r"manifests/00000002-0.json is no manifest"):
        pdkit.store.open(where)


@pytest.mark.parametrize("damage", ["garbage", "gone"])
def test_a_broken_table_is_said(damage: str, results: Path, where: Path):
    stored(results, where)
    for file in (where / "judgement/runs").rglob("*.parquet"):
        file.unlink() if damage == "gone" else file.write_bytes(b"no Parquet")
    sentence = "went while it was read" if damage == "gone" else "is no readable Parquet"
    with pytest.raises(PdkitError, match=sentence):
        pdkit.store.open(where).runs()


# --- an object store ------------------------------------------------------------------------------------------------

_BUCKET = """
import sys, urllib.request
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer("127.0.0.1", 0)
server.start()
host, port = server.get_host_and_port()
urllib.request.urlopen(urllib.request.Request(f"http://{host}:{port}/bench", method="PUT")).read()
print("port", port, flush=True)
sys.stdin.read()
server.stop()
"""


@pytest.fixture(scope="module")
def s3() -> Iterator[dict[str, str]]:
    """Options for an S3 server on loopback that has a bucket `bench`."""
    pytest.importorskip("moto.server", reason="needs moto")
    pytest.importorskip("obstore", reason="needs the extra s3")
    server = subprocess.Popen(
        [sys.executable, "-c", _BUCKET], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert server.stdin is not None
    assert server.stdout is not None
    port = next(int(line.split()[1]) for line in server.stdout if line.startswith(b"port "))
    yield {
        "aws_endpoint_url": f"http://127.0.0.1:{port}", "aws_allow_http": "true", "aws_region": "us-east-1",
        "aws_access_key_id": "none", "aws_secret_access_key": "none",
    }  # fmt: skip
    server.stdin.close()
    server.wait(20)
    server.stdout.close()


def test_an_object_store_holds_what_a_folder_does(results: Path, where: Path, s3: dict[str, str]):
    stored(results, where)
    bucket = place("s3://bench/runs", s3)
    assert outcomes(ingest([results], bucket, engine=HERE)) == ["stored"] * 3
    shared = pdkit.store.open("s3://bench/runs", options=s3)
    assert_frame_equal(shared.runs().drop("experiment_id"), pdkit.store.open(where).runs().drop("experiment_id"))
    assert {item.name.rpartition("/")[0] for item in bucket.items()} == {
        name.rpartition("/")[0] for name in objects(where)
    }
    assert outcomes(ingest([results], bucket, engine=HERE)) == ["known"] * 3
    assert shared.evidence("results/2026-11-09").runs.height == 1


def test_an_object_store_is_cleaned(results: Path, s3: dict[str, str]):
    bucket = place("s3://bench/cleaned", s3)
    list(ingest([results], bucket, engine=HERE))
    store = pdkit.store.open("s3://bench/cleaned", s3)
    remove(bucket, store.entries("results/2026-11-16"))
    before = {item.name for item in bucket.items()}
    done = vacuum(bucket, now=datetime.now(UTC) + timedelta(hours=25))
    left = {item.name for item in bucket.items()}
    assert done.files == len([name for name in before if "2026-11-16" in name])
    assert not [name for name in left if "2026-11-16" in name]
    assert len([name for name in left if name.startswith("manifests/")]) == 1
    assert pdkit.store.open("s3://bench/cleaned", s3).weeks == ["2026-W46", "2026-W48"]


def test_processes_write_to_an_object_store_at_once(results: Path, where: Path, s3: dict[str, str]):
    options = [word for key, value in s3.items() for word in ("--storage-option", f"{key}={value}")]
    running = [started("ingest", results, "--store", "s3://bench/at-once", "--jobs", "2", *options) for _ in range(2)]
    assert [one.wait(120) for one in running] == [0, 0]
    stored(results, where)
    shown = pdkit.store.open("s3://bench/at-once", s3)
    assert_frame_equal(shown.runs().drop("experiment_id"), pdkit.store.open(where).runs().drop("experiment_id"))
    assert shown.experiments().height == 3


def test_a_bucket_that_is_not_there_is_said(s3: dict[str, str]):
    with pytest.raises(PdkitError, match=r"s3://none/runs: .*see docs/store.md"):
        pdkit.store.open("s3://none/runs", s3)
    with pytest.raises(PdkitError, match=r"s3://bench/none: no such store"):
        pdkit.store.open("s3://bench/none", s3)
