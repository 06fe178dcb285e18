"""The weekly review: what was planted in twelve made-up weeks is found, and nothing is called that was not."""

import json
import re
from datetime import date
from pathlib import Path

import pytest
from click.testing import CliRunner

from pdkit import report, store, weekly
from pdkit.cli import main
from pdkit.errors import PdkitError
from pdkit.index import write_index
from pdkit.policy import Waiver
from pdkit.weekly.calls import Call, Week, among_all, called
from pdkit.weekly.review import Series, labelled
from tests import inprocess

REPOSITORY = Path(__file__).parent.parent
DATA = REPOSITORY / "data" / "weekly-synthetic"
CORPUS = REPOSITORY.parent / "shared" / "corpus" / "public" / "shun8686__for_debug" / "performance" / "metrics"
RECEIVED = "received_throughput_tok_per_s"


def ingested(path: Path, where: Path) -> Path:
    place = store.place(where)
    assert {one.outcome for one in store.ingest([path], place, engine=store.Engine(jobs=1))} <= {"stored", "empty"}
    return where


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ingested(DATA, tmp_path_factory.mktemp("weekly") / "store")


@pytest.fixture(scope="module")
def plan() -> weekly.Plan:
    return weekly.read_plan(DATA / "targets.toml")


@pytest.fixture(scope="module")
def reviewed(home: Path, plan: weekly.Plan) -> weekly.Review:
    return weekly.review(home, plan=plan)


def one(review: weekly.Review, *words: str) -> Series:
    (found,) = [series for series in review.series if all(word in series.key for word in words)]
    return found


def call_of(series: Series) -> Call:
    assert series.call
    return series.call


def weeks(*means: float, spread: float = 0.0) -> list[Week]:
    """Three runs a week, the outer ones so far from the middle."""
    return [Week(f"2026-W{n:02d}", (mean * (1 - spread), mean, mean * (1 + spread))) for n, mean in enumerate(means, 1)]


# --- calls ----------------------------------------------------------------------------------------------------------

CALM = (100.0, 101.0, 100.0, 101.0, 100.0, 101.0)


def test_a_step_down_for_two_weeks_is_slower():
    found = called(RECEIVED, weeks(*CALM, 90.0, 91.0), baseline=8)
    assert (found.word, found.since) == ("slower", "2026-W07")
    assert found.interval
    assert found.interval.ratio == pytest.approx((90 * 91) ** 0.5 / (100 * 101) ** 0.5)


def test_of_a_latency_the_same_step_is_faster():
    assert called("tpot_ms_mean", weeks(*CALM, 90.0, 91.0), baseline=8).word == "faster"


def test_one_week_outside_is_told_and_not_called():
    found = called(RECEIVED, weeks(*CALM, 100.0, 90.0), baseline=8)
    assert found.word == "can't tell"
    assert "for the first time" in found.why
    assert found.would_tell == "next week's runs"


def test_weeks_alike_are_the_same():
    found = called(RECEIVED, weeks(*CALM, 100.0, 101.0), baseline=8)
    assert (found.word, found.verdict) == ("same", "same within 3 %")


def test_of_seven_weeks_nobody_can_tell_and_one_more_would():
    found = called(RECEIVED, weeks(*CALM, 90.0), baseline=8)
    assert (found.word, found.would_tell) == ("can't tell", "1 more measured week")


def test_a_noisy_series_is_told_how_many_runs_would():
    noisy = called(RECEIVED, weeks(100, 110, 95, 108, 92, 104, 101, 97, spread=0.1), baseline=8)
    assert noisy.word == "can't tell"
    assert noisy.smallest is not None
    assert noisy.smallest > 0.2
    assert "runs a week, which would show a change of" in noisy.would_tell


def test_a_shift_that_nobody_acts_on_is_the_same():
    still = [100.0, 100.1, 100.0, 100.1, 100.0, 100.1]
    found = called(RECEIVED, weeks(*still, 99.0, 99.1), baseline=8)
    assert found.walk.is_alarm
    assert found.word == "same"


def test_among_many_series_one_may_be_by_chance():
    shifted = called(RECEIVED, weeks(100, 101, 99, 102, 98, 101, 93.5, 92.0), baseline=8)
    assert shifted.interval
    crowd = [called(RECEIVED, weeks(*CALM, 100.0, 101.0), baseline=8)] * 9
    alone, *_ = among_all([shifted])
    first, *_ = among_all([shifted, *crowd])
    assert alone.holm_p == shifted.interval.p
    assert first.holm_p == pytest.approx(min(1.0, 10 * shifted.interval.p))


# --- what was planted -----------------------------------------------------------------------------------------------


def test_the_regression_of_8_percent_is_found_with_the_engine_that_came_that_week(reviewed):
    series = one(reviewed, "topology=colocated", "level=32 users")
    found = call_of(series)
    assert found.interval
    assert (found.word, found.since) == ("slower", "2026-W47")
    assert found.interval.low < 0.92 < found.interval.high
    assert [change.text for change in series.changes if change.week == found.since] == ["engine 0.5.22 → 0.5.23"]
    assert [point.side for point in series.points][-3:] == [0, -1, -1]
    assert [one.key for one in reviewed.of("slower")] == [series.key]


def test_nothing_is_called_faster(reviewed):
    assert reviewed.of("faster") == []


def test_the_week_of_empty_answers_is_a_gap_in_every_series(reviewed):
    for series in reviewed.series:
        (gap,) = [point for point in series.points if point.week == "2026-W44"]
        assert (gap.value, gap.runs, gap.refused) == (None, 0, 3)
        assert "PD101" in gap.refused_by


def test_the_week_of_empty_answers_reads_as_not_measured(home):
    empty = weekly.review(home, week="2026-W44")
    assert len(empty.unmeasured) == 5
    assert all(series.covered.refused == 3 and "PD101" in series.covered.refused_by for series in empty.series)
    assert "0 of 15 runs measured" in str(weekly.in_a_minute(empty))
    assert "PD101" in str(weekly.top_three(empty))


def test_no_claimed_figure_enters_a_series(home, reviewed):
    claimed = store.open(home).claimed(weeks=["2026-W44"])
    prints = {round(value, 3) for value in claimed["value"] if not float(value).is_integer()}
    shown = {round(point.value, 3) for series in reviewed.series for point in series.points if point.value}
    assert prints
    assert not prints & shown


def test_the_change_of_configuration_is_a_mark_and_no_speed_up(home):
    change = "decode.max_running_requests 16 → 64"
    for week in ("2026-W42", "2026-W43", "2026-W45", "2026-W48"):
        reviewed = weekly.review(home, week=week)
        series = one(reviewed, "topology=1p1d", "level=32 users")
        (mark,) = [mark for mark in series.changes if mark.is_restart]
        assert (mark.week, mark.text) == ("2026-W42", change)
        assert mark.ratio == pytest.approx(1.25, abs=0.02)
        assert call_of(series).word == "can't tell"
        assert change in call_of(series).why
    assert "no call leads across it" in str(weekly.changes(reviewed))


def test_a_level_that_never_ran_is_missing(reviewed):
    (lost,) = reviewed.unmeasured
    assert (lost.covered.missing, lost.covered.refused_by) == (1, ("PD404",))
    assert lost.points[-1].value is None


def test_the_noisy_level_is_told_so(reviewed):
    noisy = call_of(one(reviewed, "level=16 users"))
    assert noisy.word == "can't tell"
    assert noisy.spread is not None
    assert noisy.spread > 0.015
    assert "16 users" in str(weekly.noise(reviewed)).splitlines()[1]


def test_the_top_three_begin_with_what_is_slower_and_each_has_a_next_step(reviewed):
    first, second, third = str(weekly.top_three(reviewed)).splitlines()
    assert "slower" in first
    assert "PD404" in second
    assert all("Next: " in line for line in (first, second, third))


def test_the_target_and_the_note_are_on_the_page(reviewed):
    said = str(weekly.changes(reviewed))
    assert "the model's folder was moved" in said
    assert "300.00 tok/s" in said
    assert "86% of it this week" in said
    assert [note.letter for note in reviewed.drawn.notes] == ["1"]


def test_waivers_are_listed_with_their_last_day(home):
    waiver = Waiver("PD508", "short on purpose", "ops", date(2027, 1, 31), series_key="model=x")
    shown = str(weekly.waivers(weekly.review(home, waivers=[waiver]), today=date(2027, 1, 29)))
    assert "short on purpose" in shown
    assert "2027-01-31, 2 days left" in shown


def test_a_page_that_leaves_the_house_names_neither_store_nor_folder(home):
    shown = weekly.review(home, redact=True)
    text = weekly.json_text(shown)
    assert str(home) not in text
    assert "weekly-synthetic/" not in text


def test_findings_of_such_a_page_cite_numbered_files(home):
    found = weekly.review(home, redact=True).findings
    assert found.height
    lines = [line for lines in found["lines"] for line in lines]
    assert all(re.fullmatch(r"file-\d\d:\d+(?:\[\d+\])?", line) for line in lines)
    assert set(found["series_key"]) <= set(weekly.review(home).findings["series_key"])  # a key without names stays


def test_labels_leave_out_what_all_begin_with():
    keys = ["level=8 users; client=sglang python via sglang", "level=8 users; client=sglang python via sglang-oai"]
    assert list(labelled(keys)[0].values()) == ["8 users · via sglang", "8 users · via sglang-oai"]


def test_labels_hold_what_differs():
    keys = ["model=a; gpu=?; level=8 users", "model=b; gpu=?; level=8 users"]
    labels, common = labelled(keys)
    assert list(labels.values()) == ["a · 8 users", "b · 8 users"]
    assert common == ()


# --- the files ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def built(home: Path, tmp_path_factory: pytest.TempPathFactory) -> report.Report:
    out = tmp_path_factory.mktemp("reports")
    asked = {"store": str(home), "targets": str(DATA / "targets.toml")}
    return report.build("weekly_review", out=out, parameters=asked, engine=inprocess.NAME)


def test_the_page_says_what_a_reader_looks_for_on_monday(built):
    page = built.html.read_text("utf-8")
    assert "2026-W48: 1 series slower; 1 not measured." in page
    assert "SYNTHETIC DATA" in page
    assert page.index('id="Coverage"') < page.index('id="Calls"')
    assert len(page) < 4_000_000


def test_the_document_for_machines_holds_calls_and_points(built):
    said = json.loads(built.json.read_text("utf-8"))
    words = {series["label"]: series["word"] for series in said["series"]}
    assert words["32 users · 1x NVIDIA L4 · colocated"] == "slower"
    assert said["week"] == "2026-W48"
    assert said["look_at"][0]["task"].startswith("32 users · 1x NVIDIA L4 · colocated: slower")


def test_an_index_lists_every_report_of_a_folder(built):
    (built.html.parent / "other.html").write_text("<title>somebody else's</title>", "utf-8")
    page = write_index(built.html.parent).read_text("utf-8")
    assert 'href="weekly_review.html"' in page
    assert "Weekly performance review" in page
    assert "other.html" not in page
    assert "<script" not in page


def test_an_index_of_nothing_is_one_sentence(tmp_path):
    with pytest.raises(PdkitError, match="no report in it"):
        write_index(tmp_path)
    with pytest.raises(PdkitError, match="no such folder"):
        write_index(tmp_path / "absent")


def test_the_message_is_a_few_lines_of_markdown(home):
    done = CliRunner().invoke(main, ["weekly", "--store", str(home)])
    assert done.exit_code == 0
    assert done.output.startswith("**2026-W48: 1 series slower; 1 not measured.**")
    assert "- **Faster**: none" in done.output


# --- wrong calls ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"week": "2026-W50"}, "no run in 2026-W50"),
        ({"week": "last"}, "week 'last' is none"),
        ({"baseline_weeks": 0}, "limits take 6 weeks or more"),
        ({"series": ["level=99 users"]}, "no series whose key holds"),
        ({"metric": "duration_s"}, "not known"),
    ],
)
def test_a_wrong_call_is_one_sentence(home, asked, said):
    with pytest.raises(PdkitError, match=said):
        weekly.review(home, **asked)


def test_no_store_and_an_empty_one_are_told(tmp_path):
    with pytest.raises(PdkitError, match="no store; name one with --store"):
        weekly.review("")
    with pytest.raises(PdkitError, match="no such store"):
        weekly.review(tmp_path / "absent")
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "notes.txt").write_text("nothing\n", "utf-8")
    list(store.ingest([tmp_path / "logs"], store.place(tmp_path / "store"), engine=store.Engine(jobs=1)))
    with pytest.raises(PdkitError, match="the store holds no run"):
        weekly.review(tmp_path / "store")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[target]\n", "not valid TOML"),
        ("[goal]\n", "'goal' is not known"),
        ("target = 3\n", "no list of tables"),
        ("[[target]]\nvalue = 'much'\n", "takes a number above 0"),
        ("[[target]]\nvalue = 3\nmetric = 'speed'\n", "'speed' is not known"),
        ("[[note]]\ntext = 'moved'\n", "takes a date without quotes"),
        ("[[note]]\ndate = 2026-11-30\n", "takes words in quotes"),
        ("[[note]]\ndate = 2026-11-30\ntext = 'x'\nwho = 'me'\n", "'who' is not known"),
    ],
)
def test_a_file_of_targets_that_is_none_is_one_sentence(tmp_path, text, said):
    file = tmp_path / "targets.toml"
    file.write_text(text, "utf-8")
    with pytest.raises(PdkitError, match=said):
        weekly.read_plan(file)


def test_a_store_has_no_bundle(home, tmp_path):
    with pytest.raises(PdkitError, match="no bundle is made of a store"):
        report.build("weekly_review", out=tmp_path, parameters={"store": str(home)}, bundle=True)


# --- nights of somebody's CI ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not CORPUS.is_dir():
        pytest.skip(f"no corpus of real logs at {CORPUS}")
    return ingested(CORPUS, tmp_path_factory.mktemp("nights") / "store")


SWITCHED = ("model=Qwen3-235B-A22B-W8A8", "level=860 users")


def test_another_backend_in_mid_series_is_another_series_and_no_speed_up(nights):
    for week in ("2026-W02", "2026-W03", "2026-W04", "2026-W05"):
        reviewed = weekly.review(nights, week=week)
        assert reviewed.of("faster") == []
        new = one(reviewed, *SWITCHED, "via sglang-oai")
        assert "via sglang → sglang python via sglang-oai" in new.kin


def test_a_night_without_a_result_block_is_a_gap(nights):
    reviewed = weekly.review(nights, week="2026-W02")
    lost = one(reviewed, "model=Qwen3-235B-A22B-W8A8", "3500/1500", "level=272 users")
    assert lost.call is None
    assert [(point.value, point.refused) for point in lost.points] == [(None, 3)]
    assert lost.covered.refused_by == ("PD401",)


def test_nights_whose_text_fell_short_are_doubted(nights):
    runs = store.open(nights).runs()
    short = runs.filter(
        runs["experiment"].str.contains("20260118|20260119"), runs["level"].is_in(["860 users", "410 users"])
    )
    assert short.height == 2
    assert all({"PD102", "PD110"} <= set(rules) for rules in short["suspected_by"])
    assert set(short["verdict"]) == {"measured, with doubts"}
