"""A post-mortem says in a minute whether anything was measured, why not, and what would have to change."""

import re
import shutil
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from pdkit import report, tables
from pdkit.errors import PdkitError
from pdkit.machines import read_machines
from pdkit.postmortem import Claim, PostMortem, claim, next_steps, postmortem, questions, verdict
from pdkit.results import CLAIMED
from pdkit.tables.layout import Answer
from pdkit.tables.watch import WATCHED
from tests import inprocess
from tests.test_report import Page

REPOSITORY = Path(__file__).parents[1]
CASE = "data/split-l4-qwen3-8b"
SUSPECT, BASELINE = f"{CASE}/open-loop/split", f"{CASE}/open-loop/baseline"
SAID = Claim("751.85 beats 728.61", 751.85, 728.61)
CORPUS = REPOSITORY.parent / "shared" / "corpus" / "client-runs"
SECTIONS = [
    "The claim", "Verdict", "Six questions", "What led to what", "Capacity", "The two sides", "No measured result",
    "Measured", "Doubts", "What to do next", "What to watch in production", "How server logs were joined", "Rules",
    "What could not be checked", "Sources", "Parameters and versions", "Glossary",
]  # fmt: skip
ASKED = [
    "Did it even happen?", "Did it error?", "Did it break a limit?", "Why not double?", "Does it reproduce?",
    "Does it matter?",
]  # fmt: skip


@pytest.fixture(scope="module")
def case() -> PostMortem:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(REPOSITORY)
        return postmortem([SUSPECT], baseline=[BASELINE], claim=SAID)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    said = {"baseline": [BASELINE], "claim": SAID.text, "claimed_tok_per_s": 751.85, "baseline_tok_per_s": 728.61}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(REPOSITORY)
        out = tmp_path_factory.mktemp("case")
        return report.build("postmortem", [SUSPECT], out=out, parameters=said, engine=inprocess.NAME).html.read_text()


def of(*paths: str | Path, **more: object) -> PostMortem:
    return postmortem(paths, **more)


def answers(case: PostMortem) -> dict[str, Answer]:
    return {part.question: part for part in questions(case).parts if isinstance(part, Answer)}


def recorded(name: str) -> PostMortem:
    if not CORPUS.is_dir():
        pytest.skip(f"no corpus of real logs at {CORPUS}")
    return of(CORPUS / name)


# --- the case of the split server -----------------------------------------------------------------------------------


def test_the_first_sentence_says_that_nothing_was_measured(case):
    assert "No measured result: none of the 30,720 tokens claimed at 8 requests/s came back as text." in str(
        verdict(case)
    )


def test_the_verdict_says_why_what_that_means_for_the_claim_and_what_to_change(case):
    text = str(verdict(case))
    assert "memory short on decode → transfer queue filling → first rejection → session or server died" in text
    assert "Why: A transfer session was dead, and the KV transfers of 240 requests failed" in text
    assert "Against the baseline: No winner: the suspect has no measured result" in text
    assert "To change: 1. Enlarge the decode side's KV pool" in text
    assert "Start both servers of the pair again" in text
    assert "751.85" not in text


def test_the_claim_is_quoted_and_each_side_is_what_it_is(case):
    text = str(claim(case))
    assert f'"751.85 beats 728.61" ({CLAIMED})' in text
    assert f"751.85 tok/s, {CLAIMED}" in text
    assert "no measured result (PD101, PD103, PD110, PD201, PD601, PD602)" in text
    assert "728.61 tok/s received, with doubts" in text


def test_a_number_that_no_log_prints_is_said(in_repository):
    text = str(claim(of(SUSPECT, claim=Claim("900!", 900.0))))
    assert f"No log of the suspect prints 900.00 tok/s ({CLAIMED})." in text


def test_a_claim_may_be_numbers_alone(in_repository):
    assert f"The claim: 751.85 tok/s, {CLAIMED}." in str(claim(of(SUSPECT, claim=Claim(tok_per_s=751.85))))
    assert "The claim: 728.61 tok/s." in str(claim(of(BASELINE, claim=Claim(tok_per_s=728.61))))


def test_every_question_is_answered_from_its_evidence(case):
    found = answers(case)
    assert list(found) == ASKED
    assert {question: answer.word for question, answer in found.items()} == {
        "Did it even happen?": "No",
        "Did it error?": "Yes",
        "Did it break a limit?": "Yes",
        "Why not double?": "The memory of the decode side",
        "Does it reproduce?": "Not evaluated",
        "Does it matter?": "Nobody can tell",
    }
    places = {question: " ".join(answer.places) for question, answer in found.items()}
    assert f"{SUSPECT}/bench.log:13" in places["Did it even happen?"]
    assert f"{SUSPECT}/server/prefill.log.gz:" in places["Did it error?"]
    assert f"{SUSPECT}/server/decode.log:3" in places["Why not double?"]


def test_the_answers_hold_the_figures_of_the_case(case):
    said = {question: " ".join(answer.sentences) for question, answer in answers(case).items()}
    assert "First token at 0 ms in 240 of 240 requests" in said["Did it even happen?"]
    assert "The client counts 240 of 240 requests as successful all the same." in said["Did it error?"]
    # two requests at a time: 2 tok / ((8.19 GB + 2 x 704 x 147,456 B) / 300 GB/s) = 71.4 tok/s; 751.85 / 71.4 = 10.5
    assert f"751.85 tok/s ({CLAIMED}) at 8 requests/s is 10.5 times the 71 tok/s" in said["Did it break a limit?"]
    assert "2 for 89% of draws, 1 for 2%, 3 for 9%; 62 were in flight" in said["Why not double?"]
    assert "2 running at most while up to 19 waited" in said["Why not double?"]
    assert "Needs 3 or more measured runs a side" in said["Does it reproduce?"]
    assert "GPUs (2 against 1) and topology (1p1d against colocated)" in said["Does it matter?"]


def test_the_chain_shows_the_published_decode_line_and_its_place(case):
    text = str(tables.chain_table(case.chains))
    line = next(
        number
        for number, line in enumerate((REPOSITORY / SUSPECT / "server/decode.log").read_text().splitlines(), 1)
        if "#running-req: 2, #token: 1206, token usage: 0.41" in line
    )
    assert "2 running, 19 waiting for memory, pool 41 % used" in text
    assert f"{SUSPECT}/server/decode.log:{line}" in text
    assert "That one link led to the next is inferred" in text
    assert "No server log was read of Single FP8 server (synthetic)" in text


def test_the_capacity_shows_its_inputs_beside_what_was_seen(case):
    text = str(tables.capacity_table(case.judgement, case.capacities))
    assert "1,206 tok / 0.41" in text
    assert "24,094 tok" in text
    assert "The decode side is the smaller one and limits the pair." in text
    assert f"751.85 tok/s {CLAIMED}" in text
    assert "Single FP8 server (synthetic): Not evaluated: no server log" in text


def test_what_to_do_comes_in_the_order_of_causes(case):
    text = str(next_steps(case))
    steps = ["Enlarge the decode side's KV pool", "Start both servers", "Keep a check that output exists", "Run both"]
    assert [text.index(step) for step in steps] == sorted(text.index(step) for step in steps)
    assert "--num-reserved-decode-tokens" in text
    # 61.69 requests in flight, 640 tokens of prompt and 512 set aside: 61.69 x 1152 = 71,068
    assert "62 in flight at 1,152 tokens each need about 71,068." in text
    assert "PD602  Start both servers again" in text


def test_the_metrics_to_watch_have_the_names_of_the_version_seen(case):
    text = str(tables.watch(case.judgement))
    assert "Names as SGLang 0.5.23 has them." in text
    assert "sglang:num_prefill_bootstrap_queue_reqs" in text
    assert "sglang:num_prefill_prealloc_queue_reqs" not in text  # its name before 0.5.12
    assert "histogram" in text


def test_the_windows_say_how_each_server_was_joined(case):
    text = str(tables.windows(case.judgement))
    assert f"{SUSPECT}/server/prefill.log.gz" in text
    assert "The times in sweep.toml, on the clock of the server beside it: this one did nothing then" in text


# --- the page -------------------------------------------------------------------------------------------------------


def test_the_page_has_its_sections_in_order(page):
    assert Page(page).headings == SECTIONS
    assert [page.index(f"<h3>{question}</h3>") for question in ASKED] == sorted(
        page.index(f"<h3>{question}</h3>") for question in ASKED
    )
    assert page.count('class="chart-spec"') == 3


def test_a_refused_number_stands_nowhere_without_its_label(page):
    shown = re.sub(r"<script.*?</script>|<img[^>]*>|<title>.*?</title>", "", page, flags=re.DOTALL)
    parts = re.split(r'(?=<div class="section section-)', shown)
    for part in parts:
        name = re.match(r'<div class="section section-(\w+)', part)
        if "751.85" in part and name and name[1] != "versions":  # there it is a parameter
            assert CLAIMED in part, name[1]
    of_results = [part for part in parts if re.match(r'<div class="section section-(verdict|measured|doubts)', part)]
    assert len(of_results) == 3
    assert not any("751.85" in part for part in of_results)


def test_what_tells_of_the_house_is_masked_when_redacted(tmp_path, in_repository):
    home = tmp_path / "secret-host"
    shutil.copytree(SUSPECT, home)
    said = {"baseline": [BASELINE], "claim": "10.1.2.3 beats all", "redact": True}
    made = report.build("postmortem", [home], out=tmp_path / "out", parameters=said, engine=inprocess.NAME)
    for file in (made.html, made.json, made.notebook):
        assert "secret-host" not in file.read_text("utf-8")
        assert not re.search(r"192\.0\.2\.41|10\.1\.2\.3", file.read_text("utf-8"))


def test_a_baseline_that_is_not_there_is_one_sentence(tmp_path, in_repository):
    with pytest.raises(PdkitError, match=r"^nowhere: no such file or folder; the baseline is logs"):
        report.build("postmortem", [SUSPECT], out=tmp_path, parameters={"baseline": ["nowhere"]}, engine=inprocess.NAME)


def test_a_log_on_both_sides_is_one_sentence(in_repository):
    with pytest.raises(PdkitError, match="the same log as"):
        of(SUSPECT, baseline=[SUSPECT])


def test_ones_own_machines_move_the_limit(tmp_path, in_repository):
    own = tmp_path / "machines.toml"
    own.write_text(
        '[[gpu]]\nname = "NVIDIA L4"\nsource = "made up"\nbandwidth_tb_per_s = 3.0\nmemory_gib = 24\nfp8_tflops = 242\n'
    )
    case = of(SUSPECT, claim=SAID, machines=read_machines(own))
    # ten times the bandwidth: 714 tok/s with two requests, 1,059 with three; the claim lies between them
    assert "3,000 GB/s" in str(tables.capacity_table(case.judgement, case.capacities))
    assert "10.5 times" not in " ".join(answers(case)["Did it break a limit?"].sentences)


def test_both_sides_may_have_one_name(tmp_path, in_repository):
    for side, folder in (("mine", SUSPECT), ("theirs", BASELINE)):
        shutil.copytree(folder, tmp_path / side / "run")
        for file in (tmp_path / side / "run").glob("sweep.toml"):
            file.unlink()
    both = of(tmp_path / "mine" / "run", baseline=[tmp_path / "theirs" / "run"])
    assert len(both.suspect) == len(both.baseline) == 1
    assert both.judgement.verdicts["experiment"].n_unique() == 2


# --- other suspects -------------------------------------------------------------------------------------------------


def test_a_sweep_that_lost_its_text_says_where(in_repository):
    case = of(f"{CASE}/swapped")
    assert "No measured result at 16 and 32 users; measured at 1, 2, 4 and 8 users." in str(verdict(case))
    found = answers(case)
    assert found["Did it even happen?"].word == "Not at 16 and 32 users"
    assert found["Why not double?"].word == "The memory of the prefill side"  # 2,925 tokens there, 24,094 on decode


def test_several_experiments_are_counted_not_mixed(in_repository):
    assert "No measured result at 5 of 11 load points in 4 experiments." in str(verdict(of(CASE)))


def test_what_nothing_shows_is_unverified_and_the_page_says_what_would_show_it(in_repository):
    case = of("data/first-pd-benchmark/filtered")
    assert "Unverified at 1, 8 and 16 users: nothing shows that text came back." in str(verdict(case))
    assert answers(case)["Did it even happen?"].word == "Not evaluated"
    assert "Keep what shows that text came back" in str(next_steps(case))


def test_server_logs_alone_are_no_result_and_the_chain_asks_for_the_other_side(in_repository):
    case = of(f"{CASE}/original/server/prefill.log")
    assert "No measured result: the suspect's files hold no run" in str(verdict(case))
    assert answers(case)["Did it error?"].word == "The servers did"
    text = str(tables.chain_table(case.chains))
    assert "needs the decode log" in text
    assert "Name the client's output" in str(next_steps(case))


def test_without_server_logs_every_question_on_them_says_what_it_needs(in_repository):
    case = of("data/real-client/healthy")
    found = answers(case)
    assert found["Did it even happen?"].word == "Yes"
    needs = {question: " ".join(found[question].sentences) for question in ASKED[1:]}
    assert "needs the prefill and decode logs" in needs["Did it error?"]
    assert "Needs the servers' start-up lines" in needs["Why not double?"]
    assert "Needs the baseline's logs." in needs["Does it matter?"]
    assert "No server log was read" in str(tables.chain_table(case.chains))
    assert "No log tells the servers' version" not in str(tables.watch(case.judgement))  # the client asked for it


def test_an_empty_folder_is_no_measured_result(tmp_path):
    case = of(tmp_path)
    assert "No measured result" in str(verdict(case))
    assert len(answers(case)) == 6
    assert "Nothing has to change" not in str(next_steps(case))


@pytest.mark.parametrize("name", ["a-healthy-sglang-0.5.23", "r-real-router-healthy-sglang-0.5.23"])
def test_a_healthy_split_finds_nothing_wrong_and_says_so(name):
    case = recorded(name)
    text = str(verdict(case))
    assert re.search(r"^Measured at .*, with doubts: the text came back\.$", text, re.MULTILINE)
    assert "Nothing wrong: no text is missing, and no rule took a number away." in text
    found = answers(case)
    assert [found[question].word for question in ASKED[:2]] == ["Yes", "No"]
    assert found["Why not double?"].word == "Nothing on the servers held it back"
    assert "No load point was refused" in str(tables.no_measured_result(case.judgement))
    assert str(next_steps(case)).startswith("Nothing has to change for these numbers to be used.")
    spoken = f"{text}{questions(case)}{tables.chain_table(case.chains)}{next_steps(case)}".lower()
    for alarm in ("refused", "no measured result.", "crashed", "died", "starved"):
        assert alarm not in spoken.replace("0 unverified, ✕ 0 no measured result", "")


def test_a_pool_that_is_short_is_named_though_all_was_served():
    case = recorded("c-organic-smallpool-sglang-0.5.23")
    assert "Measured at 1, 8 and 16 users, with doubts: the text came back." in str(verdict(case))
    answer = answers(case)["Why not double?"]
    assert answer.word == "The memory of the decode side"
    assert "8 running at most while up to 8 waited" in " ".join(answer.sentences)
    assert "no transfer was rejected or failed, and all text came back" in str(tables.chain_table(case.chains))


def test_lost_lanes_are_the_cause_and_no_memory_is_blamed():
    case = recorded("c-organic-lanes-sglang-0.5.23")
    text = str(verdict(case))
    assert "No measured result at 8 and 16 users; measured at 1 user." in text
    assert "Why: The KV transfers of 3 requests failed on the servers; likewise at 1 more level." in text
    assert answers(case)["Why not double?"].word == "The text was lost first"


# --- metrics --------------------------------------------------------------------------------------------------------


def test_of_two_names_of_one_metric_each_version_has_one():
    """As formats of SGLang changed: 0.5.12 renamed the prefill queue, 0.5.11 made gauges of a transfer histograms."""

    def names(*version: int) -> list[str]:
        return [f"{watched.name} {watched.kind}" for watched in WATCHED if watched.is_of(version)]

    assert "num_prefill_prealloc_queue_reqs gauge" in names(0, 5, 11)
    assert "num_prefill_bootstrap_queue_reqs gauge" in names(0, 5, 12)
    assert "kv_transfer_latency_ms gauge" in names(0, 5, 9)
    assert "kv_transfer_latency_ms histogram (_sum / _count)" in names(0, 5, 11)
    for version in ((0, 4, 6), (0, 5, 3), (0, 5, 9), (0, 5, 12), (0, 5, 23)):
        assert len({name.partition(" ")[0] for name in names(*version)}) == len(names(*version))


def test_where_no_version_is_known_all_names_are_listed(case):
    judgement = case.judgement
    evidence = replace(judgement.evidence, settings=judgement.evidence.settings.clear())
    facts = judgement.facts.with_columns(pl.lit(None, pl.String).alias("server_version"))
    text = str(tables.watch(replace(judgement, evidence=evidence, facts=facts)))
    assert "No log tells the servers' version" in text
    assert "sglang:num_prefill_prealloc_queue_reqs" in text
    assert "before 0.5.12" in text
