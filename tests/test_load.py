"""Which files there are, whose they are, and which sightings are one run."""

import gzip
import os
from itertools import permutations
from pathlib import Path

import polars as pl
import pytest
from logs import block, details, facts_of, levels, line, log, record, write

from pdkit.errors import PdkitError
from pdkit.judge import judge
from pdkit.load import load
from pdkit.results import NO_RESULT
from pdkit.source import Source

PLAN = "[[level]]\nconcurrency = 8\n\n[[level]]\nconcurrency = 16\nprompts = 64\n"
ROLE = '\n[[file]]\npath = "{path}"\nrole = "client"\n'
CRASH = [*log()[:7], "Killed"]
PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"


def reasons(path: Path) -> dict[str, str | None]:
    """Why each file was not read, by its place below the folder."""
    folder = path.as_posix() + "/"
    return {
        name.removeprefix(folder): reason for name, reason in load(path).sources.select("path", "reason").iter_rows()
    }


# --- one run, two sources -------------------------------------------------------------------------------------------


def test_a_run_seen_in_its_log_and_its_record_is_one_run(tmp_path):
    write(tmp_path / "bench.log", log())
    write(tmp_path / "result.jsonl", record(**details()) + "\n")
    judgement = judge(load(tmp_path))
    (run,) = judgement.verdicts.to_dicts()
    assert judgement.evidence.runs["source_file"].n_unique() == 2
    assert judgement.facts["sources"].to_list() == [2]
    assert run["evidence_level"] == "text"
    assert judgement.findings.filter(rule="PD315").is_empty()
    assert judgement.facts["duration_s"].to_list() == [64.00123]  # the finer digit


def test_what_the_two_say_differently_is_a_finding(tmp_path):
    write(
        tmp_path / "bench.log", log(values={"Total generated tokens (retokenized)": "4000", "Mean TTFT (ms)": "9.00"})
    )
    write(tmp_path / "result.jsonl", record() + "\n")
    (told,) = judge(load(tmp_path)).findings.filter(rule="PD315").to_dicts()
    assert told["severity"] != "note"
    assert "4000" in told["sentence"].replace(",", "") or "9.0" in told["sentence"]
    assert {Path(place.rpartition(":")[0]).name for place in told["lines"]} == {"bench.log", "result.jsonl"}


@pytest.mark.parametrize("change", [{"completed": 31}, {"duration": 64.01}, {"output_throughput": 64.01}])
def test_another_count_duration_or_throughput_is_another_run(tmp_path, change):
    write(tmp_path / "bench.log", log())
    write(tmp_path / "result.jsonl", record(**change) + "\n")
    assert judge(load(tmp_path)).verdicts.height == 2


def test_a_digit_that_rounds_alike_is_the_same_run(tmp_path):
    write(tmp_path / "bench.log", log(values={"Benchmark duration (s)": "64.00"}))
    write(tmp_path / "result.jsonl", record(duration=64.004999, output_throughput=63.996) + "\n")
    assert judge(load(tmp_path)).verdicts.height == 1


def test_the_same_numbers_in_two_experiments_are_two_runs(tmp_path):
    for name in ("a", "b"):
        write(tmp_path / name / "bench.log", log())
    assert judge(load(tmp_path)).verdicts["experiment"].to_list() == [f"{tmp_path.name}/a", f"{tmp_path.name}/b"]


def test_logs_in_one_folder_and_records_in_another_are_one_experiment(tmp_path):
    write(tmp_path / "logs" / "8.log", log())
    write(tmp_path / "logs" / "16.log", CRASH)
    write(tmp_path / "results" / "8.jsonl", record(**details()) + "\n")
    judgement = judge(load(tmp_path))
    assert judgement.verdicts["experiment"].to_list() == [tmp_path.name] * 2
    assert set(judgement.evidence.sources["experiment"]) == {tmp_path.name}
    assert judgement.facts.drop_nulls("requests_seen")["sources"].to_list() == [2]


def test_sweeps_side_by_side_stay_apart_though_each_is_in_two_folders(tmp_path):
    for name, users in (("v1", "8"), ("v2", "16")):
        values = {"Max request concurrency": users, "Mean TTFT (ms)": f"23{users}.00", "Successful requests": "31"}
        alike = {"max_concurrency": int(users), "mean_ttft_ms": float(f"23{users}"), "completed": 31, "duration": 64.0}
        write(tmp_path / "logs" / name / "bench.log", log(values=values | {"Benchmark duration (s)": f"64.{users}"}))
        write(tmp_path / "records" / name / "r.jsonl", record(**alike | {"duration": float(f"64.{users}")}) + "\n")
    judgement = judge(load(tmp_path))
    assert judgement.verdicts.height == judgement.verdicts["experiment"].n_unique() == 2
    assert judgement.facts["sources"].to_list() == [2, 2]


def test_levels_at_which_all_requests_failed_are_as_many_runs(tmp_path):
    nothing = {"completed": 0, "duration": 0.02, "output_throughput": 0.0, "total_output_tokens": 0}
    lines = [record(max_concurrency=users, **nothing) for users in (8, 16)]
    write(tmp_path / "a" / "result.jsonl", lines)
    write(tmp_path / "b" / "result.jsonl", lines[:1])
    names = judge(load(tmp_path)).verdicts.select("experiment", "concurrency").rows()
    assert [(Path(name).name, users) for name, users in names] == [("a", 8), ("a", 16), ("b", 8)]


def test_a_file_that_gives_no_bytes_is_listed(tmp_path, monkeypatch):
    def fails(_: Source) -> bool:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(Source, "is_empty", property(fails))
    file = write(tmp_path / "bench.log", log())
    assert load(file).sources["reason"].to_list() == ["cannot be read: Input/output error"]


def test_a_copy_elsewhere_parts_no_log_from_its_record(tmp_path):
    write(tmp_path / "a" / "logs" / "8.log", log())
    write(tmp_path / "a" / "results" / "8.jsonl", record(**details()) + "\n")
    write(tmp_path / "archive" / "8.jsonl", record(**details()) + "\n")
    names = judge(load(tmp_path)).verdicts["experiment"].to_list()
    assert names == [f"{tmp_path.name}/a", f"{tmp_path.name}/archive"]


def test_a_log_and_its_record_in_two_folders_are_judged_by_both(tmp_path):
    arrays = details()
    empty = arrays | {"generated_texts": ["", "", *arrays["generated_texts"][2:]]}
    write(tmp_path / "logs" / "8.log", log())
    write(tmp_path / "results" / "8.jsonl", record(**empty) + "\n")
    assert judge(load(tmp_path)).verdicts["verdict"].to_list() == [NO_RESULT]


def test_folders_that_share_a_run_stay_apart_where_each_has_a_manifest(tmp_path):
    for name, file, lines in (("a", "8.log", log()), ("b", "8.jsonl", [record(**details())])):
        write(tmp_path / name / file, lines)
        write(tmp_path / name / "sweep.toml", 'label = "x"\n')
    assert judge(load(tmp_path)).verdicts.height == 2


def test_a_level_copied_into_another_folder_under_another_cap_is_refused(tmp_path):
    write(tmp_path / "a" / "bench.log", log())
    write(
        tmp_path / "b" / "bench.log", log(values={"Max request concurrency": "16"}, arguments={"max_concurrency": 16})
    )
    assert judge(load(tmp_path)).verdicts["refused_by"].to_list() == [["PD314"], ["PD314"]]


def test_a_log_of_embeddings_and_its_record_are_one_run(tmp_path):
    nothing = {"total_output_tokens": 0, "total_output_tokens_retokenized": 0, "output_throughput": 0.0,
               "total_throughput": 127.99754}  # fmt: skip
    head = log(arguments={"backend": "sglang-embedding"})[:8]
    write(tmp_path / "bench.log", head + block(values={"Backend": "sglang-embedding"}, embedding=True))
    write(tmp_path / "result.jsonl", record(backend="sglang-embedding", **nothing) + "\n")
    assert judge(load(tmp_path)).verdicts["verdict"].to_list() == ["unverified"]


def test_a_copied_record_is_shown_once_and_said(tmp_path):
    write(tmp_path / "one.jsonl", record(**details()) + "\n")
    write(tmp_path / "two.jsonl", record(**details()) + "\n")
    judgement = judge(load(tmp_path))
    assert judgement.verdicts.height == 1
    assert judgement.facts["requests_seen"].to_list() == [32]
    (told,) = judgement.findings.filter(rule="PD405").to_dicts()
    assert (told["severity"], told["observed"]) == ("note", 2)


# --- runs without a result stay apart -------------------------------------------------------------------------------


def test_crashes_in_folders_of_one_experiment_are_as_many_runs(tmp_path):
    write(tmp_path / "sweep.toml", PLAN)
    for users in (8, 16):
        lines = log(arguments={"max_concurrency": users})[:7]
        write(tmp_path / f"users-{users}" / "bench.log", [*lines, "Killed"])
    judgement = judge(load(tmp_path))
    assert judgement.verdicts["concurrency"].to_list() == [8, 16]
    assert judgement.verdicts["refused_by"].to_list() == [["PD401"], ["PD401"]]


def test_empty_logs_in_folders_of_one_experiment_are_as_many_runs(tmp_path):
    roles = [ROLE.format(path=f"users-{users}/bench.log") for users in (8, 16)]
    write(tmp_path / "sweep.toml", PLAN + "".join(roles))
    for users in (8, 16):
        write(tmp_path / f"users-{users}" / "bench.log", "")
    assert load(tmp_path).runs.filter(ending="empty file")["run_id"].n_unique() == 2


def test_a_crash_is_the_same_run_from_wherever_it_is_loaded(tmp_path, monkeypatch):
    file = write(tmp_path / "exp" / "bench.log", CRASH)
    ids = {load(file.parent).runs["run_id"][0], load(file).runs["run_id"][0]}
    monkeypatch.chdir(file.parent)
    ids |= {load("bench.log").runs["run_id"][0], load(".").runs["run_id"][0]}
    assert len(ids) == 1


# --- the plan -------------------------------------------------------------------------------------------------------


def test_a_planned_level_that_no_file_shows_is_a_run_without_claims(tmp_path):
    write(tmp_path / "bench.log", log())
    write(tmp_path / "sweep.toml", PLAN)
    judgement = judge(load(tmp_path))
    missing = judgement.verdicts.filter(concurrency=16)
    assert missing.select("verdict", "refused_by", "without_block").row(0) == (NO_RESULT, ["PD404"], True)
    (told,) = judgement.findings.filter(rule="PD404").to_dicts()
    assert told["lines"] == [f"{tmp_path.as_posix()}/sweep.toml:4"]


def test_a_heading_without_a_block_is_the_level_and_not_a_missing_one(tmp_path):
    write(tmp_path / "bench.log", [*log(), "===== concurrency=16 (n=64) ====="])
    write(tmp_path / "sweep.toml", PLAN)
    judgement = judge(load(tmp_path))
    assert judgement.verdicts.filter(concurrency=16)["refused_by"].to_list() == [["PD401"]]


def test_a_planned_log_that_is_empty_is_a_run_without_a_result(tmp_path):
    write(tmp_path / "bench.log", log())
    write(tmp_path / "users-16.log", "")
    assert load(tmp_path).runs.height == 1
    write(tmp_path / "sweep.toml", PLAN + ROLE.format(path="users-16.log"))
    assert sorted(load(tmp_path).runs["ending"].drop_nulls()) == ["empty file", "planned, but no file has this level"]


def test_the_end_marker_is_looked_for_in_the_logs(tmp_path):
    write(tmp_path / "sweep.toml", 'end_marker = "ALL_DONE (8)"\n[[level]]\nconcurrency = 8\n')
    write(tmp_path / "bench.log", [*log(), "ALL_DONE (8)"])
    assert judge(load(tmp_path)).findings.filter(rule="PD402").is_empty()
    write(tmp_path / "bench.log", [*log(), "echo ALL_DONE"])
    (told,) = judge(load(tmp_path)).findings.filter(rule="PD402").to_dicts()
    assert told["severity"] == "note"
    assert "ALL_DONE (8)" in told["sentence"]


# --- empty files ----------------------------------------------------------------------------------------------------

EMPTY = {"plain": b"", "blank": b"\n \n", "gzip": gzip.compress(b""), "mark": b"\xff\xfe"}


@pytest.mark.parametrize("content", EMPTY.values(), ids=EMPTY)
def test_an_empty_file_that_is_named_is_a_run_without_a_result(tmp_path, content):
    (tmp_path / "bench.log").write_bytes(content)
    evidence = load(tmp_path / "bench.log")
    assert evidence.runs.select("ending", "complete").rows() == [("empty file", False)]


def test_an_empty_log_that_is_alone_in_its_folder_was_meant_to_be_one(tmp_path):
    write(tmp_path / "bench.log", "")
    write(tmp_path / "run.sh", "exit 1\n")
    assert load(tmp_path).runs["ending"].to_list() == ["empty file"]


def test_an_empty_file_beside_others_is_only_listed(tmp_path):
    write(tmp_path / "bench.log", log())
    write(tmp_path / "nohup.out", "")
    assert load(tmp_path).runs.height == 1
    assert reasons(tmp_path)["nohup.out"] == "empty file"


# --- which files ----------------------------------------------------------------------------------------------------


def test_what_is_no_log_is_listed_as_not_read(tmp_path):
    write(tmp_path / "bench.log", log())
    for name in ("README.md", "run.sh", "conf/values.yaml", ".hidden"):
        write(tmp_path / name, "Mean TTFT is good\n")
    (tmp_path / "plot.png").write_bytes(PNG)
    unknown = "no reader knows this format"
    assert reasons(tmp_path) == {
        ".hidden": unknown, "README.md": unknown, "bench.log": None, "conf/values.yaml": unknown,
        "plot.png": "not text", "run.sh": unknown,
    }  # fmt: skip


def test_a_file_given_in_many_ways_is_read_once(tmp_path, monkeypatch):
    file = write(tmp_path / "exp" / "bench.log", log())
    (tmp_path / "link").symlink_to("exp")
    (tmp_path / "exp" / "again.log").symlink_to("bench.log")
    monkeypatch.chdir(tmp_path)
    paths = [file, file, "exp", "exp/../exp/bench.log", "link", "link/bench.log", tmp_path / "exp"]
    evidence = load(paths)
    assert (evidence.sources.height, evidence.runs.height) == (1, 1)
    assert judge(evidence).findings.filter(rule="PD405").is_empty()


@pytest.mark.parametrize(
    "paths",
    [["exp", "link"], ["exp", "."], ["exp/sub", "exp"], ["exp/sub/r.jsonl", "exp"], ["link/sub/r.jsonl", "exp/sub"]],
    ids=" ".join,
)
def test_the_order_of_paths_changes_nothing(tmp_path, monkeypatch, paths):
    write(tmp_path / "exp" / "sub" / "bench.log", log())
    write(tmp_path / "exp" / "sub" / "r.jsonl", record() + "\n")
    write(tmp_path / "exp" / "crash.log", CRASH)
    (tmp_path / "link").symlink_to("exp")
    monkeypatch.chdir(tmp_path)
    seen = [load(list(given)) for given in permutations(paths)]
    for name in ("runs", "claims", "sources"):
        assert all(getattr(evidence, name).equals(getattr(seen[0], name)) for evidence in seen), name


def test_a_file_that_is_named_beside_its_folder_stays_in_its_experiment(tmp_path):
    write(tmp_path / "exp" / "sweep.toml", "[[level]]\nconcurrency = 8\n")
    file = write(tmp_path / "exp" / "users-8" / "bench.log", log())
    write(tmp_path / "exp" / "users-8" / "result.jsonl", record() + "\n")
    evidence = load([tmp_path / "exp", file])
    assert evidence.runs["experiment"].unique().to_list() == ["exp"]
    assert evidence.runs["run_id"].n_unique() == 1


def test_one_folder_named_in_two_ways_is_one_experiment(tmp_path, monkeypatch):
    write(tmp_path / "exp" / "bench.log", log())
    write(tmp_path / "exp" / "result.jsonl", record() + "\n")
    monkeypatch.chdir(tmp_path)
    evidence = load(["exp/bench.log", tmp_path / "exp" / "result.jsonl"])
    assert evidence.runs["run_id"].n_unique() == 1


def test_a_link_out_of_the_folder_is_not_followed_and_is_said(tmp_path):
    write(tmp_path / "secret" / "bench.log", log())
    write(tmp_path / "exp" / "mine.log", log())
    (tmp_path / "exp" / "file.log").symlink_to(tmp_path / "secret" / "bench.log")
    (tmp_path / "exp" / "folder").symlink_to(tmp_path / "secret")
    (tmp_path / "exp" / "broken.log").symlink_to(tmp_path / "nothing")
    (tmp_path / "exp" / "self").symlink_to(tmp_path / "exp")
    assert load(tmp_path / "exp").runs.height == 1
    assert reasons(tmp_path / "exp") == {
        "mine.log": None,
        "file.log": "a link out of the folder",
        "folder": "a link out of the folder",
        "broken.log": "a link to nothing",
    }


def test_what_is_no_file_is_said(tmp_path):
    write(tmp_path / "bench.log", log())
    os.mkfifo(tmp_path / "pipe")
    assert reasons(tmp_path) == {"bench.log": None, "pipe": "not a file"}


def test_a_file_that_cannot_be_opened_is_said(tmp_path):
    write(tmp_path / "bench.log", log())
    locked = write(tmp_path / "locked.log", log())
    locked.chmod(0)
    if os.access(locked, os.R_OK):
        pytest.skip("this user may read everything")
    assert "ermission" in str(reasons(tmp_path)["locked.log"])


@pytest.mark.parametrize(
    "name",
    ["a b.log", "x[1].log", "*.log", "?.log", "größe 漢字.log", "a#1.log", "a:8.log", "{x}.log", "-.log", "$HOME.log",
     "bad\udcff.log"],
)  # fmt: skip
def test_any_name_will_do(tmp_path, name):
    write(tmp_path / "exp ü" / name, log())
    write(tmp_path / "exp ü" / "other.log", log(values={"Successful requests": "31"}))
    judgement = judge(load(tmp_path / "exp ü"))
    assert judgement.verdicts.height == 2
    assert judgement.evidence.sources["reader"].to_list() == ["sglang_bench_log"] * 2
    assert all(judgement.findings["lines"].list.len() > 0)


def test_a_path_that_is_not_there_is_one_sentence(tmp_path):
    with pytest.raises(PdkitError, match=r"^.*nothing: no such file or folder$"):
        load(tmp_path / "nothing")


# --- experiments ----------------------------------------------------------------------------------------------------


def test_an_experiment_is_the_nearest_folder_with_client_output(tmp_path):
    write(tmp_path / "sweeps" / "a" / "bench.log", log())
    write(tmp_path / "sweeps" / "a" / "server" / "decode.log", "Decode batch\n")
    write(tmp_path / "sweeps" / "b" / "deep" / "bench.log", log())
    write(tmp_path / "sweeps" / "notes.txt", "x\n")
    homes = dict(load(tmp_path / "sweeps").sources.select("path", "experiment").iter_rows())
    below = {name.removeprefix(f"{tmp_path.as_posix()}/sweeps/"): home for name, home in homes.items()}
    assert below == {
        "a/bench.log": "sweeps/a", "a/server/decode.log": "sweeps/a", "b/deep/bench.log": "sweeps/b/deep",
        "notes.txt": "sweeps",
    }  # fmt: skip


def test_a_manifest_gathers_what_is_below_it(tmp_path):
    write(tmp_path / "sweep" / "sweep.toml", PLAN)
    write(tmp_path / "sweep" / "client" / "bench.log", log())
    write(tmp_path / "sweep" / "more" / "deep" / "result.jsonl", record() + "\n")
    assert load(tmp_path / "sweep").runs["experiment"].unique().to_list() == ["sweep"]


def test_two_folders_of_one_name_are_told_apart(tmp_path):
    for user in ("ann", "bob"):
        write(tmp_path / user / "results" / "bench.log", log())
    evidence = load([tmp_path / "ann" / "results", tmp_path / "bob" / "results"])
    assert evidence.runs["experiment"].n_unique() == 2
    assert evidence.runs["run_id"].n_unique() == 2


# --- several readers of one file ------------------------------------------------------------------------------------


def test_a_log_with_noise_keeps_its_line_numbers(tmp_path):
    write(tmp_path / "bench.log", ["noise", "", *block(), line("Successful requests", "32")])
    evidence = load(tmp_path)
    assert evidence.claims.filter(fact="concurrency")["source_line"].to_list() == [6]
    assert levels(evidence)[0] == 8
    assert facts_of(evidence)["completed"] == 32


def test_sources_keep_hash_size_and_rows(tmp_path):
    write(tmp_path / "note.txt", "abc")
    row = load(tmp_path).sources.select("bytes", "sha256", "rows").row(0)
    assert row == (3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", 0)


def test_a_file_that_the_manifest_names_and_nobody_finds_is_listed(tmp_path: Path):
    (tmp_path / "sweep.toml").write_text('label = "x"\n\n[[file]]\npath = "decode.log"\nrole = "decode"\n')
    listed = load(tmp_path).sources.filter(pl.col("path").str.ends_with("decode.log")).row(0, named=True)
    assert listed["reader"] is None
    assert listed["reason"].endswith("sweep.toml:3 names it, but it is not there")


# --- servers' logs and whose they are -------------------------------------------------------------------------------

SERVER_LINE = "[2026-11-02 08:01:10] Decode batch, #running-req: 5, #token: 40, #queue-req: 0\n"


@pytest.mark.parametrize("place", ["server/decode.log", "client/server/decode.log", "client/decode.log", "decode.log"])
def test_a_servers_log_belongs_to_the_experiment_above_or_beside_it(tmp_path, place):
    write(tmp_path / "bench/client/run.log", log())
    write(tmp_path / "bench" / place, SERVER_LINE)
    evidence = load(tmp_path / "bench")
    assert set(evidence.samples["experiment"]) == set(evidence.runs["experiment"])


def test_between_two_experiments_a_servers_log_belongs_to_neither(tmp_path):
    for name in ("a", "b"):
        write(tmp_path / "bench" / name / "run.log", log())
    write(tmp_path / "bench/server/decode.log", SERVER_LINE)
    evidence = load(tmp_path / "bench")
    assert not set(evidence.samples["experiment"]) & set(evidence.runs["experiment"])


def test_a_log_that_a_server_shares_is_no_other_kind_of_listing(tmp_path):
    """Two folders with one client log, one of them beside server lines: copies, which unite nothing."""
    write(tmp_path / "a/run.log", log())
    write(tmp_path / "b/run.log", [SERVER_LINE.strip(), *log()])
    evidence = load(tmp_path)
    assert evidence.runs["experiment"].n_unique() == 2
    assert set(evidence.runs["reader"]) == {"sglang_bench_log"}
    assert set(evidence.sources["reader"]) == {"sglang_bench_log", "sglang_bench_log+sglang_server_log"}
