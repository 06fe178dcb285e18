"""Sections say what a judgement says: no refused number as a result, no log line as markup, nothing left out."""

import json
import re
import sys
from datetime import datetime
from pathlib import Path

import polars as pl
import pytest

import pdkit
from pdkit import tables
from pdkit.evidence import Evidence
from pdkit.judge import judge
from pdkit.load import load
from pdkit.results import CLAIMED, NO_RESULT, Judgement

SPLIT = "data/split-l4-qwen3-8b"
SECTIONS = ("banner", "no_measured_result", "measured", "doubts", "rule_table", "not_checked", "sources", "versions")
SERVER_SECTIONS = {
    "chain_table": lambda judgement: tables.chain_table(pdkit.chain(judgement)),
    "capacity_table": lambda judgement: tables.capacity_table(judgement, pdkit.capacity(judgement)),
    "watch": tables.watch,
    "windows": tables.windows,
}
EVIL = "<script>alert(1)</script>"


def judged(*paths: str | Path) -> Judgement:
    return judge(load(paths))


@pytest.fixture(scope="module")
def split() -> Judgement:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(Path(__file__).parents[1])
        return judged(SPLIT)


def html(section: tables.Section) -> str:
    return section._repr_html_()


def test_the_banner_counts_every_run_and_says_that_the_data_is_synthetic(split):
    text = str(tables.banner(split))
    assert "5 of 11 load points in 4 experiments have no measured result." in text
    assert "● 5 measured, ◆ 1 measured, with doubts, ■ 0 unverified, ✕ 5 no measured result" in text
    assert "SYNTHETIC DATA: the logs of all 4 experiments were made by a program" in text
    assert "measured to 8 users; no measured result at 16 and 32 users" in text


def test_a_recorded_run_is_not_called_synthetic(in_repository):
    assert "SYNTHETIC" not in str(tables.banner(judged("data/real-client/healthy")))


def test_a_refused_number_stands_only_in_evidence_and_with_its_label(split):
    for name in SECTIONS:
        text = html(getattr(tables, name)(split))
        assert ("751.85" in text) == (name == "no_measured_result")
    evidence = html(tables.no_measured_result(split))
    assert f"751.85 tok/s {CLAIMED}" in evidence
    for found in re.finditer(r"751\.85", evidence):  # a rule's own sentence quotes it too, in a table that says so
        assert CLAIMED in evidence[max(0, found.start() - 4000) : found.end() + 40]


def test_what_came_back_is_said_and_labelled(split):
    text = str(tables.no_measured_result(split))
    assert "Came back, not a result: 2,048 tokens in 21.08 s from 16 of 64 requests" in text
    assert "2,048 of 8,192 claimed tokens came back as text" in text
    assert "data/split-l4-qwen3-8b/swapped/result.jsonl:5" in text
    assert "at least 0.5" in text


def test_no_measured_result_says_so_when_none_was_refused(in_repository):
    text = str(tables.no_measured_result(judged("data/real-client/healthy")))
    assert text == "No load point was refused, and none is missing."


def test_a_missing_level_is_named(in_repository):
    text = str(tables.no_measured_result(judged("data/first-pd-benchmark/never-started")))
    assert "16 users (First PD benchmark, never started (synthetic)): no measured result" in text
    assert "Planned, but no file has this level." in text


def test_a_percentile_on_too_few_requests_gives_way_to_what_it_needs(split):
    text = str(tables.measured(split))
    assert "needs n ≥ 662" in text
    assert "98.15" in text  # 8 users, swapped: the received throughput
    assert "388.67" not in text  # 16 users, swapped: claimed


def test_a_number_that_a_rule_took_names_the_rule():
    place = {"source_file": "a.log", "source_line": 1}
    run = {"run_id": "r", "seen_id": "r", "experiment": "e", "reader": "x", "complete": True} | place
    counts = {"completed": 1000.0, "prompts_asked": 1000.0, "concurrency": 8.0, "duration_s": 100.0}
    tokens = {"output_tok_sum": 128000.0, "retokenized_tok_sum": 128000.0, "output_throughput_tok_per_s": 1280.0}
    times = {"ttft_ms_mean": 50.0, "ttft_ms_median": 900.0, "ttft_ms_p99": 60.0}
    claims = [
        {"run_id": "r", "seen_id": "r", "fact": fact, "value": value, "resolution": 0.0} | place
        for fact, value in (counts | tokens | times).items()
    ]
    evidence = Evidence.of(runs=[run], claims=claims)
    judgement = judge(evidence)
    text = str(tables.measured(judgement))
    assert f"{NO_RESULT} (PD306" in text  # a median above the p99
    assert "900.00" not in text


def test_an_unverified_run_stands_apart(in_repository):
    text = str(tables.measured(judged("data/first-pd-benchmark/filtered")))
    assert "No run has a measured result, so there is no number to show." in text
    assert "Unverified: no log shows that text came back." in text


def test_a_doubt_stands_with_its_rule_and_line(split):
    text = str(tables.doubts(split))
    assert "PD508" in text
    assert "The run lasted 42.16 s" in text
    assert "data/split-l4-qwen3-8b/open-loop/baseline/result.jsonl:1" in text


def test_the_rule_table_counts_what_was_looked_at(split):
    text = str(tables.rule_table(split))
    line = next(line for line in text.splitlines() if line.startswith("PD101"))
    assert "11 runs" in line
    assert "5 refused" in line
    assert "848 requests in 11 runs" in text


def test_every_rule_has_one_row(split):
    text = str(tables.rule_table(split))
    for rule in split.results["rule"].unique():
        assert len(re.findall(rf"^ *{rule}\b", text, re.MULTILINE)) == 1


def test_what_could_not_be_checked_names_the_flag_that_would_let_it(in_repository):
    text = str(tables.not_checked(judged("data/first-pd-benchmark/filtered")))
    assert "--output-details" in text
    assert "The client's whole log" in text
    assert "PD103" in text


def test_sources_have_hash_reader_and_reason(split):
    text = str(tables.sources(split))
    assert "91826ca4c1be844b6f9e2026593d65f136e9b4f4467e118627920ab50c921048" in text
    assert "sglang_bench_log" in text
    assert "not read: no reader knows this format" in text


def test_versions_show_the_parameters_and_hide_paths_where_they_must(split):
    text = str(tables.versions(split, paths=["/home/ada/logs"], title="T", redact=True))
    assert "/home/ada" not in text
    assert pdkit.__version__ in text
    assert "/home/ada/logs" in str(tables.versions(split, paths=["/home/ada/logs"], redact=False))


def test_the_glossary_has_ten_words():
    assert html(tables.glossary()).count('<th scope="row">') == 10


def hostile() -> Evidence:
    """Every text that a log can bring is markup."""
    place = {"source_file": f"{EVIL}.log", "source_line": 1}
    run = {"run_id": "r", "seen_id": "r", "experiment": EVIL, "reader": "x", "complete": False, "ending": EVIL}
    said = {"model": EVIL, "tool": EVIL, "backend": EVIL}
    file = {"path": EVIL, "experiment": EVIL, "reason": EVIL, "bytes": 1, "sha256": "0", "rows": 0}
    return Evidence.of(
        runs=[run | said | place],
        experiments=[{"experiment": EVIL, "label": EVIL, "gpu": EVIL} | place],
        sources=[file],
        unread=[{"reason": EVIL, "text": EVIL} | place],
    )


def test_text_of_a_log_is_never_markup():
    judgement = judge(hostile())
    sections = [getattr(tables, name)(judgement) for name in SECTIONS]
    sections += [tables.heading(EVIL), tables.versions(judgement, title=EVIL)]
    page = "".join(map(html, sections))
    assert "<script" not in page
    assert page.count("&lt;script&gt;alert(1)&lt;/script&gt;") > 5


@pytest.mark.parametrize("name", SECTIONS)
def test_every_section_can_say_that_there_is_nothing(name):
    section = getattr(tables, name)(judge(Evidence.of()))
    assert str(section)
    assert f"section-{name}" in html(section)


@pytest.mark.parametrize("name", SERVER_SECTIONS)
def test_every_section_on_servers_can_say_that_there_is_nothing(name):
    section = SERVER_SECTIONS[name](judge(Evidence.of()))
    assert str(section)
    assert f"section-{name}" in html(section)


def test_what_servers_log_stays_text():
    place = {"source_file": f"{EVIL}.log", "source_line": 1}
    at = datetime(2026, 8, 21, 9)
    about = {"experiment": EVIL, "instance": EVIL, "role": "prefill", "clock": at} | place
    run = {"run_id": "r", "seen_id": "r", "experiment": EVIL, "reader": "x", "complete": True} | place
    died = {"kind": "session_failed", "count": 1.0, "subject": EVIL, "text": EVIL}
    failed = {"kind": "transfer_failed", "count": 1.0, "subject": EVIL, "text": EVIL}
    judgement = judge(
        Evidence.of(
            runs=[run],
            events=[about | died, about | failed],
            settings=[about | {"name": "pool_tok", "value": 2925.0}, about | {"name": "device", "text": EVIL}],
        )
    )
    page = "".join(html(section(judgement)) for section in SERVER_SECTIONS.values())
    assert "<script" not in page
    assert page.count("&lt;script&gt;alert(1)&lt;/script&gt;") > 3


def test_a_printed_throughput_stands_in_the_capacity_only_with_its_label(split):
    text = html(SERVER_SECTIONS["capacity_table"](split))
    assert f"751.85 tok/s {CLAIMED}" in text
    assert text.count("751.85") == 1
    assert "98.15 tok/s</td>" in text  # 8 users, swapped: measured


def test_a_link_that_nobody_could_see_says_which_log_would_show_it(in_repository):
    judgement = judged("data/split-l4-qwen3-8b/original/server/prefill.log")
    text = str(tables.chain_table(pdkit.chain(judgement)))
    assert "Memory short on decode: not evaluated, needs the decode log." in text


def test_plain_text_and_html_say_the_same(split):
    for name in SECTIONS:
        section = getattr(tables, name)(split)
        words = set(re.findall(r"PD\d{3}", str(section)))
        assert words == set(re.findall(r"PD\d{3}", html(section)))


def test_pandas_frames_need_no_pyarrow_and_keep_what_is_missing(split, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    frame = tables.to_pandas(
        pl.DataFrame({"n": [1, None], "x": [1.5, None], "yes": [True, None], "s": ["a", None], "list": [["PD101"], []]})
    )
    assert frame["n"].isna().to_list() == [False, True]
    assert frame["n"][0] == 1
    assert frame["x"].isna().to_list() == [False, True]
    assert frame["yes"].isna().to_list() == [False, True]
    assert frame["s"].isna().to_list() == [False, True]
    assert frame["list"].to_list() == [["PD101"], []]


def test_the_results_frame_has_a_row_a_run_and_no_refused_number(split):
    frame = tables.results_frame(split)
    assert len(frame) == 11
    refused = frame[frame["verdict"] == NO_RESULT]
    assert refused["output_throughput_tok_per_s"].isna().all()
    assert json.loads(frame["verdict"].to_json())
