"""A redacted judgement tells no host, no address, no path, no user, and judges the same."""

import re

import pytest
from logs import details, log, record, write

from pdkit.formats import json as json_format
from pdkit.formats import text as text_format
from pdkit.judge import judge
from pdkit.load import load
from pdkit.redact import masked, masked_lines, redacted

# each word of this is private; it is strewn over everything that a log, a record or a manifest can hold
PRIVATE = ("alice", "gpu-node7", "acme", "10.1.2.3", "fe80::1", "sweeps_q3", "hunter2secret", "secretproject")
ERRORS = (
    "Cannot connect to host gpu-node7:8000 ssl:default [Connect call failed ('10.1.2.3', 8000)]",
    "http://alice:hunter2secret@gpu-node7.acme.internal:30000/v1/chat failed",
    "File /home/alice/sweeps_q3/run.py: no space left",
    "ssh alice@gpu-node7 died",
    "fe80::1:2:3:4 unreachable; see ~alice/sweeps_q3/x and ~/sweeps_q3/alice.log",
    "[pod/gpu-node7-abc] gpu-node7.acme.com refused",
    r"C:\Users\alice\sweeps_q3\x.log",
    "gpu-node7.acme.corp:30000: bootstrap failed",
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    home = tmp_path / "home" / "alice" / "sweeps_q3"
    arguments = {"base_url": "http://gpu-node7.acme.internal:30000", "host": "10.1.2.3", "max_concurrency": 16,
                 "dataset_name": "/home/alice/acme.jsonl",
                 "model": "/home/alice/models/Qwen3-8B", "output_file": "/home/alice/sweeps_q3/r.jsonl"}  # fmt: skip
    made = details(32) | {"errors": [*ERRORS, *[""] * (32 - len(ERRORS))], "completed": 32 - len(ERRORS)}
    server = {"model_path": "/home/alice/secretproject/Qwen3-8B", "version": "0.5.23", "host": "gpu-node7"}
    write(home / "acme" / "bench.log.gpu-node7", [*log(), *log(arguments=arguments)[:7], f"OSError: {ERRORS[2]}"])
    write(
        home / "acme" / "r.alice.jsonl", record(server_info=server, **made) + "\n" + '{"completed": "/home/alice/x"}\n'
    )
    write(home / "acme" / "notes-alice.md", "host gpu-node7\n")
    write(home / "acme" / "sweep.toml", (
        'label = "Sweep of alice@gpu-node7 on gpu-node7.acme.internal"\nmodel = "/home/alice/models/Qwen3-8B"\n'
        'topology = "prefill on gpu-node7, decode on acme-2"\ngpu = "H100 at 10.1.2.3"\n'
        'end_marker = "done on gpu-node7.acme.com"\n[[level]]\nconcurrency = 8\n[[level]]\nconcurrency = 32\n'
        '[[file]]\npath = "bench.log.gpu-node7"\nrole = "client"\n'
    ))  # fmt: skip
    monkeypatch.chdir(tmp_path)
    return home


@pytest.mark.parametrize("form", [json_format, text_format])
def test_nothing_private_is_left(folder, form):
    evidence = load(folder)
    said = form.text(judge(redacted(evidence)))
    plain = form.text(judge(evidence))
    assert [word for word in PRIVATE if word in said] == []
    assert [word for word in PRIVATE if word in plain]
    assert str(folder.parent.parent) not in said


def test_no_table_keeps_a_private_word(folder):
    evidence = redacted(load(folder))
    for name, frame in vars(evidence).items():
        kept = [word for word in PRIVATE if word in str(frame.to_dicts())]
        assert kept == [], name


def test_verdicts_numbers_and_lines_stay(folder):
    plain, hidden = judge(load(folder)), judge(redacted(load(folder)))
    about = ["run_id", "verdict", "refused_by", "suspected_by", "concurrency", "evidence_level"]
    assert plain.verdicts.height == hidden.verdicts.height == 4
    assert sorted(hidden.verdicts.select(about).rows()) == sorted(plain.verdicts.select(about).rows())
    assert hidden.published.sort("run_id", "fact").equals(plain.published.sort("run_id", "fact"))
    assert numbers_of(hidden) == numbers_of(plain)


def numbers_of(judgement) -> list[tuple[str, str, list[str]]]:
    """The line numbers that each finding cites."""
    return sorted(
        (run, rule, sorted(re.findall(r":(\d+(?:\[\d+\])?)$", line)[0] for line in lines))
        for run, rule, lines in judgement.findings.select("run_id", "rule", "lines").iter_rows()
    )


def test_files_are_still_found_by_their_hash(folder):
    plain, hidden = load(folder).sources, redacted(load(folder)).sources
    assert sorted(hidden["sha256"]) == sorted(plain["sha256"])
    assert all(re.fullmatch(r"file-\d\d(\.[a-z]+)?", path) for path in hidden["path"])


@pytest.mark.parametrize(
    "said",
    ["Qwen/Qwen3-8B", "meta-llama/Llama-3.1-8B-Instruct", "ValueError: Warmup failed", "32 of 32 requests failed",
     "KeyError: 'internal_states'", "index -1 is out of bounds for axis 0 with size 0", "at 12:30:15 it took 0.5 s",
     "sglang 0.5.10.post1", "its last line is: ===== PD concurrency=16 (n=32) ====="],
)  # fmt: skip
def test_what_tells_nothing_private_stays(said):
    assert masked(said) == said


def test_what_the_topology_says_stays_where_it_names_no_machine(tmp_path):
    write(tmp_path / "bench.log", log())
    write(tmp_path / "sweep.toml", 'topology = "1p1d"\n')
    assert redacted(load(tmp_path)).experiments["topology"].to_list() == ["1p1d"]


def test_a_model_given_as_a_path_keeps_its_name():
    assert masked("/home/alice/models/Qwen3-8B") == "Qwen3-8B"
    assert masked(None) is None


PEERS = ("decode-worker-a_17", "fd00:abcd::12:15367", "gpunode7:15367")


def test_two_transfer_sessions_stay_two(tmp_path):
    """One died and stayed dead, another came back: under one name the dead one would live again."""
    said = (
        "Session {} failed.",
        "Session {} recovered",
        "Lost connection with prefill instance (bootstrap_addr: {}), 3 affected",
    )
    lines = [
        f"[2026-09-10 10:00:{second:02} TP0] {words.format(peer)}"
        for second, (peer, words) in enumerate((peer, words) for peer in PEERS for words in said)
    ]
    write(tmp_path / "server" / "prefill.log", "\n".join(lines))
    write(tmp_path / "bench.log", log())
    plain, shown = load(tmp_path).events, redacted(load(tmp_path)).events
    assert plain["subject"].n_unique() == shown["subject"].n_unique() == len(PEERS)
    kept = "\n".join(f"{subject} {text}" for subject, text in shown.select("subject", "text").iter_rows())
    assert not [peer for peer in PEERS if peer in kept]
    assert not [peer for peer in PEERS if peer in "\n".join(masked_lines(lines, []))]


def test_a_copy_names_what_it_is_a_copy_of_by_number(tmp_path):
    lines = [f"[2026-09-10 10:00:{s:02} TP0] Session 192.0.2.{s}:15367 failed." for s in range(9)]
    for folder in ("acme-prod", "acme-copy"):
        write(tmp_path / folder / "prefill.log", "\n".join(lines))
    write(tmp_path / "bench.log", log())
    reasons = redacted(load(tmp_path)).sources["reason"].drop_nulls().to_list()
    assert [re.sub(r"\d+", "0", reason) for reason in reasons] == [
        "its lines stand in file-0.log as well: counted once"
    ]


def test_a_container_before_the_lines_and_a_host_in_a_label_are_not_named(tmp_path):
    said = "[2026-09-10 10:00:01 TP0] Decode batch, #running-req: 1, #token: 9, token usage: 0.01, "
    said += "pre-allocated usage: 0.00, gen throughput (token/s): 9.0, #queue-req: 0"
    write(tmp_path / "server" / "compose.log", "\n".join(f"acme-{name} | {said}" for name in ("decode-0", "decode-1")))
    label = 'engine_type="decode",instance="gpu-node-{}.acme.internal:9090"'
    dump = [f"sglang:num_running_reqs{{{label.format(host)}}} {host}" for host in (1, 2)]
    write(tmp_path / "server" / "metrics.prom", "\n".join(["# 2026-09-10 10:00:05", *dump]))
    write(tmp_path / "bench.log", log())
    plain, shown = load(tmp_path).samples, redacted(load(tmp_path)).samples
    assert plain["instance"].n_unique() == shown["instance"].n_unique() == 4
    assert not [name for name in shown["instance"] if "acme" in name]
