"""Real logs beside the project, where they are: no healthy run refused, no silent failure believed."""

import re
from functools import cache
from pathlib import Path

import polars as pl
import pytest

from pdkit.calibrate import refusals
from pdkit.judge import judge
from pdkit.load import load
from pdkit.results import Judgement

CORPUS = Path(__file__).parents[2] / "shared" / "corpus"
pytestmark = pytest.mark.skipif(not CORPUS.is_dir(), reason=f"no corpus of real logs at {CORPUS}")

BELIEVED = ["measured", "measured, with doubts"]
# levels of an organic failure: how many answers of each came back empty stands in server/truth.jsonl
LANES = {1: "good", 8: "bad", 16: "bad"}
# the grep of the sweep script in cases.md
KEPT = re.compile(
    r"Successful requests|Benchmark duration|Output token throughput|Total token throughput|Mean TPOT|Median TPOT"
    r"|Mean TTFT|Median TTFT|Mean E2E",
    re.IGNORECASE,
)


@cache
def judged(*patterns: str) -> Judgement:
    paths = [path for pattern in patterns for path in CORPUS.glob(pattern)]
    return judge(load(paths))


def truth(experiment: str, users: float | None) -> str:
    name = experiment.rpartition("client-runs/")[2].partition("/")[0]
    if "organic-lanes" in name:
        return LANES[int(users or 0)]
    return "good" if "healthy" in name or "smallpool" in name else "bad"


def verdicts(judgement: Judgement) -> list[tuple[str, float | None, str, str]]:
    rows = judgement.verdicts.select("experiment", "concurrency", "verdict").rows()
    return [(name, users, truth(name, users), str(verdict)) for name, users, verdict in rows]


CONSOLE, RECORD = "client-runs/[abcnr]-*/stdout*.log", "client-runs/[abcnr]-*/result.jsonl"


@pytest.mark.parametrize("given", [(CONSOLE, RECORD), (CONSOLE,), (RECORD,)], ids=["both", "console", "record"])
def test_no_healthy_run_of_a_real_client_is_refused_and_no_failure_is_called_measured(given: tuple[str, ...]):
    for name, users, true, verdict in verdicts(judged(*given)):
        if true == "good":
            assert verdict in BELIEVED, (name, users)
        else:
            assert verdict != "measured", (name, users)


def test_with_per_request_evidence_every_silent_failure_is_refused():
    bad = [row for row in verdicts(judged(CONSOLE, RECORD)) if row[2] == "bad"]
    assert len(bad) == 15
    assert {verdict for *_, verdict in bad} == {"no measured result"}


def test_from_the_record_alone_only_short_answers_that_all_came_back_are_merely_doubted():
    """Nothing in a record says that stopping early was forbidden: docs/decisions/0010."""
    bad = [row for row in verdicts(judged(RECORD)) if row[2] == "bad"]
    assert len(bad) == 14  # one left no record
    doubted = [(name.rpartition("/")[2], verdict) for name, _, _, verdict in bad if verdict != "no measured result"]
    assert doubted == [("c-partial-cut64of256-abort-sglang-0.5.23", "measured, with doubts")]


@pytest.mark.parametrize("given", [(CONSOLE, RECORD), (CONSOLE,), (RECORD,)], ids=["both", "console", "record"])
def test_no_rule_takes_any_number_of_a_healthy_run(given: tuple[str, ...]):
    refused = refusals(judged(*given)).join(judged(*given).facts.select("run_id", "concurrency"), on="run_id")
    rows = refused.select("experiment", "concurrency", "rule").rows()
    assert [row for row in rows if truth(row[0], row[1]) == "good"] == []


@pytest.mark.parametrize("given", [(CONSOLE, RECORD), (CONSOLE,), (RECORD,)], ids=["both", "console", "record"])
def test_healthy_runs_are_doubted_only_for_what_the_simulation_is(given: tuple[str, ...]):
    """Short runs of few requests, from a server that gives every prompt one text: docs/calibration.md."""
    rows = judged(*given).verdicts.select("experiment", "concurrency", "suspected_by").rows()
    doubts = {rule for name, users, rules in rows if truth(name, users) == "good" for rule in rules}
    assert doubts <= {"PD106", "PD502", "PD508"}


def test_from_the_console_alone_only_three_empty_answers_of_24_are_merely_doubted():
    doubted = [
        (name, users)
        for name, users, true, verdict in verdicts(judged(CONSOLE))
        if true == "bad" and verdict in BELIEVED
    ]
    assert [(name.rpartition("/")[2][:15], users) for name, users in doubted] == [("c-organic-lanes", 8)]


def test_console_and_record_of_one_invocation_are_one_run():
    judgement = judged(CONSOLE, RECORD)
    sources = judgement.facts.group_by("sources").len().sort("sources").rows()
    assert sources == [(1.0, 1), (2.0, 30)]  # the one run that left no record


def test_a_filtered_console_is_never_measured(tmp_path: Path):
    for number, log in enumerate(sorted(CORPUS.glob(CONSOLE))):
        kept = [line for line in re.split(r"[\r\n]", log.read_text("utf-8")) if KEPT.search(line)]
        (tmp_path / f"{number}.log").write_text("\n".join(["===== PD concurrency=8 (n=24) =====", *kept, "ALL_DONE"]))
    judgement = judge(load(tmp_path))
    assert judgement.verdicts.height == 31  # a run a log
    assert judgement.verdicts["verdict"].cast(str).is_in(["unverified", "no measured result"]).all()


def test_another_clients_output_is_not_read_as_sglangs():
    judgement = judged("client-runs/v-*/*", "other-clients/**/*.*")
    assert judgement.verdicts.is_empty()


@pytest.mark.parametrize(
    "name", ["healthy", "0.4.3-0.4.5", "0.4.6-0.5.3", "0.5.4-0.5.5", "0.5.6-0.5.7", "0.5.8-0.5.12", "2to1"]
)
def test_healthy_samples_of_every_version_are_believed(name: str):
    judgement = judged(f"sglang-samples/*{name}*.txt")
    assert judgement.verdicts["verdict"].cast(str).is_in(BELIEVED).all()
    assert judgement.verdicts.height == 1


@pytest.mark.parametrize("name", ["PD_all_empty", "half_empty", "RUST_client_all_failed", "all_failed_no_summary"])
def test_faulty_samples_are_refused(name: str):
    judgement = judged(f"sglang-samples/*{name}*.txt")
    assert judgement.verdicts["verdict"].cast(str).to_list() == ["no measured result"]


def test_of_the_samples_with_details_only_the_healthy_records_are_believed():
    judgement = judged("sglang-samples/details*.jsonl")
    lines = judgement.evidence.runs.select("run_id", "source_file", "source_line")
    told = judgement.verdicts.select("run_id", pl.col("verdict").cast(str)).join(lines, on="run_id")
    believed = told.filter(pl.col("verdict").is_in(BELIEVED)).select("source_file", "source_line").rows()
    assert sorted((Path(name).name, line) for name, line in believed) == [
        ("details_0.4.6-0.5.3.jsonl", 1),
        ("details_0.5.23.jsonl", 1),  # then: 3 of 5 failed, half empty, all empty
    ]
    assert set(told.filter(~pl.col("verdict").is_in(BELIEVED))["verdict"]) == {"no measured result"}


def test_each_refusal_of_a_public_run_is_one_that_docs_calibration_argues():
    refused = refusals(judged("public/**/*"))
    owners = [files[0].rpartition("/public/")[2].partition("/")[0] for files in refused["files"]]
    assert set(zip(refused["rule"], owners, strict=True)) == {
        ("PD101", "sgl-project__sglang"),
        ("PD201", "sgl-project__sglang"),
        ("PD203", "sgl-project__sglang"),
        ("PD401", "shun8686__for_debug"),
        ("PD501", "TonyLi15__sglang-benchmark"),
    }


def test_no_public_run_is_refused_by_an_output_or_identity_rule_but_the_known_fake():
    judgement = judged("public/**/*")
    refused = judgement.results.filter(pl.col("severity") == "refuse", pl.col("rule").str.contains("PD[123]"))
    by_run = refused.join(judgement.verdicts.select("run_id", "experiment"), on="run_id")
    assert {name.rpartition("/")[2] for name in by_run["experiment"]} == {"issues"}  # sgl-project/sglang#12389
    assert {"PD101", "PD201"} <= set(by_run["rule"])


def test_public_runs_without_a_block_have_no_measured_result():
    judgement = judged("public/**/*")
    without = judgement.verdicts.filter(pl.col("refused_by").list.contains("PD401"))
    assert without.height == 9
    assert without["without_block"].all()


# --- with the servers' logs -----------------------------------------------------------------------------------------

ALL_ROLES = "shun8686__for_debug/scripts/log/test_ascend_qwen3_235b_w8a8_1p1d_24p_in3k5_out1k5_50ms_*.log"


@cache
def with_servers() -> Judgement:
    return judge(load([path for path in sorted((CORPUS / "client-runs").iterdir()) if path.name[0] in "abcnr"]))


def test_every_run_of_a_real_client_is_joined_to_its_three_servers():
    judgement = with_servers()
    servers = judgement.windows.group_by("run_id").agg(pl.col("instance").n_unique())["instance"].to_list()
    assert servers == [3] * judgement.verdicts.height
    assert set(judgement.windows["way"]) == {"only run", "bursts"}


def test_with_the_servers_logs_no_verdict_of_a_real_client_is_another():
    for name, users, true, verdict in verdicts(with_servers()):
        assert (verdict in BELIEVED) == (true == "good"), (name, users)


def test_failed_transfers_are_as_many_as_the_simulation_did_not_serve():
    """server/truth.jsonl says of each request how it ended; a request that got nothing failed its transfer."""
    judgement = with_servers()
    for name in ("b-openloop-empty-done-sglang-0.5.23", "c-partial-empty75-done-sglang-0.5.23"):
        ends = [
            line for line in (CORPUS / "client-runs" / name / "server/truth.jsonl").read_text().splitlines() if line
        ]
        empty = sum('"end": "empty"' in line for line in ends)
        facts = judgement.facts.filter(pl.col("experiment").str.ends_with(name))
        assert facts["failed_transfers"].to_list() == [float(empty)]


def test_a_pool_too_small_is_a_doubt_of_the_level_that_it_starves():
    rows = with_servers().verdicts.filter(pl.col("experiment").str.contains("smallpool"))
    starved = {users: "PD605" in rules for users, rules in rows.select("concurrency", "suspected_by").iter_rows()}
    assert starved == {1.0: False, 8.0: False, 16.0: True}
    assert set(rows["verdict"].cast(str)) == {"measured, with doubts"}


def test_two_aborted_transfers_among_3440_answers_refuse_nothing(tmp_path: Path):
    """A public prefill/decode pair: two runs, two bursts, one `Aborted by AbortReq` in each."""
    logs = sorted((CORPUS / "public").glob(ALL_ROLES))
    assert len(logs) == 3
    for log in logs:
        (tmp_path / log.name).write_bytes(log.read_bytes())
    judgement = judge(load(tmp_path))
    assert judgement.verdicts["verdict"].cast(str).to_list() == ["measured, with doubts"] * 2
    assert judgement.facts.select("failed_transfers", "aborted_transfers").rows() == [(0.0, 1.0)] * 2
    assert not any(rule.startswith("PD6") for rules in judgement.verdicts["suspected_by"] for rule in rules)


def test_server_logs_of_several_tests_in_one_folder_are_given_to_nobody():
    judgement = judged("public/shun8686__for_debug/scripts/log/*.log")
    assert judgement.windows.is_empty()
    assert judgement.unjoined.height >= 8
