"""A waiver marks a finding and accepts its run; it gives no number back and hides nothing."""

import json
import re
from datetime import date
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner, Result
from logs import details, log, record, write

from pdkit import report, tables
from pdkit.cli import main
from pdkit.judge import judge
from pdkit.load import load
from pdkit.policy import Waiver, read_waivers
from pdkit.results import Judgement
from tests import inprocess

DOCS = Path(__file__).parents[1] / "docs"
LAST_DAY = date(2099, 12, 31)
SAID = "waived until 2099-12-31 by ada: known since May"
ON_PAGE = f"W{SAID[1:]}"
EMPTY = {"Total generated tokens (retokenized)": "0"}
# what speaks against 8 users on EMPTY; the block is short, so there are doubts as well
REFUSING = ("PD101", "PD110")


def waived(judgement: Judgement, *rules: str) -> tuple[Waiver, ...]:
    """A waiver of each rule for the only run."""
    (run,) = judgement.verdicts["run_id"]
    return tuple(Waiver(rule, "known since May", "ada", LAST_DAY, run_id=run) for rule in rules)


def toml(*waivers: Waiver) -> str:
    return "".join(
        f"[[waiver]]\nrule = '{w.rule}'\nreason = '{w.reason}'\nowner = '{w.owner}'\nexpiry = {w.expiry}\n"
        + (f"run_id = '{w.run_id}'\n" if w.run_id else f"series_key = '{w.series_key}'\n")
        for w in waivers
    )


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    """One run whose claimed tokens did not come back."""
    write(tmp_path / "logs" / "bench.log", log(values=EMPTY))
    return tmp_path / "logs"


def check(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["check", *map(str, arguments)])


# --- what it does not do --------------------------------------------------------------------------------------------


def test_verdicts_and_numbers_stay_as_they_are(empty):
    evidence = load(empty)
    plain = judge(evidence)
    assert plain.verdicts["refused_by"].to_list() == [list(REFUSING)]
    marked = judge(evidence, waivers=waived(plain, *REFUSING))
    assert marked.verdicts.equals(plain.verdicts)
    assert marked.published.equals(plain.published)
    assert marked.results.equals(plain.results)
    assert marked.published["value"].null_count() == marked.published.height


def test_the_page_shows_the_waiver_and_no_number(empty):
    evidence = load(empty)
    judgement = judge(evidence, waivers=waived(judge(evidence), *REFUSING))
    assert str(tables.measured(judgement)) == "No run has a measured result, so there is no number to show."
    text = str(tables.no_measured_result(judgement))
    assert "8 users (logs): no measured result" in text
    assert text.count(SAID) == len(REFUSING)  # on the card
    assert text.count(ON_PAGE) == len(REFUSING)  # in the table of its rules


def test_an_unverified_run_has_no_rule_to_waive(tmp_path):
    write(tmp_path / "bench.log", [line for line in log() if "retokenized" not in line])
    judgement = judge(load(tmp_path))
    assert judgement.verdicts["verdict"].to_list() == ["unverified"]
    every = judge(load(tmp_path), waivers=waived(judgement, *judgement.results["rule"]))
    assert every.accepted().to_list() == [False]


# --- what it does ---------------------------------------------------------------------------------------------------


def test_a_run_is_accepted_where_each_rule_that_refuses_it_is_waived(empty, tmp_path):
    both = waived(judge(load(empty)), *REFUSING)
    assert check(empty).exit_code == 1
    assert check(empty, "--waivers", write(tmp_path / "one.toml", toml(both[0]))).exit_code == 1
    result = check(empty, "--waivers", write(tmp_path / "both.toml", toml(*both)))
    assert (result.exit_code, result.stderr) == (0, "")
    assert "no measured result at 8 users" in result.stdout
    assert result.stdout.count(f"      {SAID}\n") == len(REFUSING)


def test_strict_asks_the_same_of_doubts(tmp_path):
    folder = write(tmp_path / "logs" / "bench.log", log()).parent
    judgement = judge(load(folder))
    doubts = judgement.verdicts["suspected_by"].to_list()[0]
    assert "PD508" in doubts  # 64 s are less than 5 times the mean E2E of 15 s
    some = write(tmp_path / "some.toml", toml(*waived(judgement, *doubts[1:])))
    every = write(tmp_path / "every.toml", toml(*waived(judgement, *doubts)))
    assert check(folder).exit_code == 0
    assert [check(folder, "--strict", *more).exit_code for more in ([], ["--waivers", some])] == [1, 1]
    assert check(folder, "--strict", "--waivers", every).exit_code == 0
    assert ON_PAGE in str(tables.doubts(judge(load(folder), waivers=waived(judgement, *doubts))))


def test_a_refused_run_is_accepted_strictly_only_without_further_doubts(empty):
    evidence = load(empty)
    judgement = judge(evidence)
    doubts = judgement.verdicts["suspected_by"].to_list()[0]
    refusals = judge(evidence, waivers=waived(judgement, *REFUSING))
    assert doubts
    assert (refusals.accepted().to_list(), refusals.accepted(strict=True).to_list()) == ([True], [False])
    both = judge(evidence, waivers=waived(judgement, *REFUSING, *doubts))
    assert both.accepted(strict=True).to_list() == [True]


def test_not_knowing_how_many_were_sent_is_waived_as_pd403(tmp_path):
    lines = [line for line in log() if "amespace" not in line and "#" not in line]
    folder = write(tmp_path / "logs" / "bench.log", lines).parent
    judgement = judge(load(folder))
    assert judgement.verdicts.select("verdict", "sent_unknown").rows() == [("measured, with doubts", True)]
    doubts = judgement.verdicts["suspected_by"].to_list()[0]
    without, with_it = (judge(load(folder), waivers=waived(judgement, *doubts, *more)) for more in ([], ["PD403"]))
    assert without.accepted(strict=True).to_list() == [False]
    assert with_it.accepted(strict=True).to_list() == [True]
    assert with_it.idle_waivers == ()
    assert f"{ON_PAGE}." in str(tables.doubts(with_it))
    waivers = write(tmp_path / "w.toml", toml(*waived(judgement, "PD403")))
    assert f"failures unknown (PD403), {SAID}" in check(folder, "--waivers", waivers).stdout


def test_a_series_is_waived_for_each_of_its_runs(tmp_path):
    for name, seconds in (("one", 64.0), ("two", 64.5)):
        write(tmp_path / name / "r.jsonl", record(duration=seconds) + "\n")
    judgement = judge(load(tmp_path))
    (key,) = judgement.verdicts["series_key"].unique()
    waiver = Waiver("PD508", "smoke", "ada", LAST_DAY, series_key=key)
    marked = judge(load(tmp_path), waivers=[waiver])
    assert marked.waived.select("run_id", "rule").rows() == [
        (run, "PD508") for run in sorted(marked.verdicts["run_id"])
    ]
    assert marked.findings.filter(pl.col("waiver").is_not_null())["rule"].to_list() == ["PD508", "PD508"]


def test_a_runs_own_waiver_comes_before_that_of_its_series(empty):
    evidence = load(empty)
    judgement = judge(evidence)
    (key,) = judgement.verdicts["series_key"]
    of_series = Waiver("PD101", "all of them", "bob", LAST_DAY, series_key=key)
    both = judge(evidence, waivers=[of_series, *waived(judgement, "PD101")])
    assert both.waived["owner"].to_list() == ["ada"]
    assert both.idle_waivers == ()


def test_a_waiver_that_matches_nothing_is_said(empty, tmp_path):
    other = Waiver("PD101", "x", "ada", LAST_DAY, run_id="0123456789ab")
    passed = waived(judge(load(empty)), "PD301")[0]  # a rule that the run passes
    file = write(tmp_path / "w.toml", toml(other, passed))
    result = check(empty, "--waivers", file)
    assert "the waiver for PD101 of 0123456789ab matches no finding\n" in result.stdout
    assert f"the waiver for PD301 of {passed.run_id} matches no finding\n" in result.stdout
    page = str(tables.rule_table(judge(load(empty), waivers=read_waivers(file))))
    assert "The waiver for PD101 of 0123456789ab matches no finding." in page
    said = json.loads(check(empty, "--waivers", file, "--format", "json").stdout)["decided"]
    assert said == [f"the waiver for {w.rule} of {w.run_id} matches no finding" for w in (other, passed)]


def test_the_document_carries_reason_owner_and_expiry(empty, tmp_path):
    file = write(tmp_path / "w.toml", toml(*waived(judge(load(empty)), "PD101")))
    (run,) = json.loads(check(empty, "--waivers", file, "--format", "json").stdout)["runs"]
    waivers = {result["rule"]: result["waiver"] for result in run["results"] if result["waiver"]}
    assert waivers == {"PD101": {"reason": "known since May", "owner": "ada", "expiry": "2099-12-31"}}


def test_redaction_masks_what_people_wrote(empty, tmp_path):
    (waiver,) = waived(judge(load(empty)), "PD101")
    text = toml(Waiver("PD101", "see wiki.acme.com", "ada@acme.com", LAST_DAY, run_id=waiver.run_id))
    said = check(empty, "--redact", "--waivers", write(tmp_path / "w.toml", text)).stdout
    assert "waived until 2099-12-31 by [address]: see [host]" in said


def test_a_waiver_that_is_wrong_is_a_wrong_call(empty, tmp_path):
    file = write(tmp_path / "w.toml", toml(Waiver("PD101", "x", "ada", date(2020, 1, 1), run_id="0123456789ab")))
    result = check(empty, "--waivers", file)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "waiver 1: expired on 2020-01-01" in result.stderr


def test_the_example_of_the_docs_is_read(tmp_path):
    example = re.search(r"```toml\n(.*?)```", (DOCS / "waivers.md").read_text("utf-8"), re.DOTALL)
    assert [w.rule for w in read_waivers(write(tmp_path / "w.toml", example[1]))] == ["PD508", "PD403"]


def test_a_report_shows_waivers_and_bounds_and_the_files_they_are_from(empty, tmp_path):
    rules = waived(judge(load(empty)), "PD101")
    idle = Waiver("PD301", "x", "ada", LAST_DAY, run_id="0123456789ab")
    files = {
        "waivers": str(write(tmp_path / "mine" / "w.toml", toml(*rules, idle))),
        "thresholds": str(write(tmp_path / "mine" / "t.toml", "[PD508]\nsuspect = { below = 30, instead_of = 60 }\n")),
    }
    plain, masked = (
        report.build("sweep_review", [empty], out=tmp_path / name, parameters=files | more, engine=inprocess.NAME)
        for name, more in (("plain", {}), ("masked", {"redact": True}))
    )
    page = plain.html.read_text("utf-8")
    assert SAID in page
    assert "The waiver for PD301 of 0123456789ab matches no finding." in page
    assert re.search(
        r"PD508.*suspect unless at least 30.*looser than the default.*suspect unless at least 60", page, re.DOTALL
    )
    assert all(file in page for file in files.values())
    assert not any(file in masked.html.read_text("utf-8") for file in files.values())
    assert json.loads(plain.json.read_text("utf-8"))["decided"] == [
        "PD508: suspect unless at least 30, looser than at least 60",
        "the waiver for PD301 of 0123456789ab matches no finding",
    ]


# --- what makes two runs the same series ----------------------------------------------------------------------------


def keys(folder: Path) -> list[str]:
    return judge(load(folder)).verdicts["series_key"].to_list()


def test_a_key_reads_as_what_was_run(tmp_path):
    write(tmp_path / "bench.log", log())
    write(tmp_path / "sweep.toml", "gpu = 'NVIDIA L4'\ngpu_count = 2\ntopology = '1p1d'\n[[level]]\nconcurrency = 8\n")
    (key,) = keys(tmp_path)
    assert key.split("; ") == [
        "model=Qwen/Qwen3-8B", "gpu=2x NVIDIA L4", "topology=1p1d", "dataset=random 256/128 tok", "level=8 users",
        "client=sglang python via sglang",
    ]  # fmt: skip


def test_a_key_does_not_depend_on_names_or_order(tmp_path):
    first, second = record(), record(duration=66.0, max_concurrency=16)
    write(tmp_path / "a" / "may" / "result.jsonl", f"{first}\n{second}\n")
    write(tmp_path / "b" / "june-run" / "x.jsonl", f"{second}\n{first}\n")
    assert sorted(keys(tmp_path / "a")) == sorted(keys(tmp_path / "b"))
    assert len(set(keys(tmp_path / "a"))) == 2


def test_repeats_have_one_key(tmp_path):
    """Other times and throughputs, another path to the same model, another seed whose lengths differ by 0.2 %."""
    lengths = {"random_range_ratio": 0.5, "total_input_tokens": 6100, "total_output_tokens": 3050}
    again = lengths | {"total_input_tokens": 6110, "total_output_tokens": 3052, "duration": 70.1, "seed": 7}
    one = {"server_info": {"model_path": "/mnt/a/Qwen3-8B", "version": "0.5.23"}}
    other = {"server_info": {"model_path": "/home/x/models/Qwen3-8B/", "version": "0.5.23"}}
    write(tmp_path / "r.jsonl", f"{record(**lengths, **one)}\n{record(**again, **other)}\n")
    found = keys(tmp_path)
    assert len(found) == 2
    assert len(set(found)) == 1
    assert "model=Qwen3-8B; " in found[0]
    assert "dataset=random ~190/~95 tok" in found[0]


@pytest.mark.parametrize(
    "change",
    [
        {"max_concurrency": 16},
        {"request_rate": 4.0},
        {"backend": "sglang-oai"},
        {"dataset_name": "sharegpt"},
        {"random_output_len": 256, "total_output_tokens": 8192},
        {"server_info": {"model_path": "Qwen/Qwen3-32B", "version": "0.5.23"}},
    ],
    ids=lambda change: next(iter(change)),
)
def test_what_is_another_series_has_another_key(tmp_path, change):
    write(tmp_path / "a.jsonl", record() + "\n")
    write(tmp_path / "b" / "b.jsonl", record(**change) + "\n")
    assert len(set(keys(tmp_path))) == 2


def test_a_failed_run_belongs_to_the_series_that_it_was_meant_for(tmp_path):
    write(tmp_path / "good" / "r.jsonl", record(**details()) + "\n")
    failed = details() | {"generated_texts": [""] * 32, "errors": ["timeout"] * 16 + [""] * 16}
    halves = {"completed": 16, "total_input_tokens": 4096, "total_output_tokens": 2048}
    write(tmp_path / "bad" / "r.jsonl", record(**failed, **halves) + "\n")
    assert len(keys(tmp_path)) == 2
    assert len(set(keys(tmp_path))) == 1


def test_a_name_cannot_forge_a_part(tmp_path):
    write(tmp_path / "r.jsonl", record(server_info={"model_path": "m; gpu=8x  B200\n", "version": "0.5.23"}) + "\n")
    (key,) = keys(tmp_path)
    assert key.startswith("model=m gpu=8x B200; gpu=?; ")
