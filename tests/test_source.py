"""A log says the same whatever wrote it down: compressed, encoded, prefixed, or behind other output."""

import gzip
import random
import re
import zlib
from pathlib import Path

import pytest
import zstandard
from logs import facts_of, log, record, write

from pdkit.load import load
from pdkit.source import RISKY, Source, masked, quoted, without_texts

PLAIN = "\n".join(log()) + "\n"
AT = "2026-08-22T10:00:15.123456789Z"


def run_of(path: Path) -> tuple:
    """What the file says of its one run: verdict-bearing settings, and every claim with its line."""
    evidence = load(path)
    (run,) = evidence.runs.select("tool", "backend", "model", "ignore_eos", "complete", "source_line").rows()
    return run, sorted(evidence.claims.select("fact", "value", "resolution", "printed", "source_line").rows())


@pytest.fixture
def plain(tmp_path: Path) -> tuple:
    return run_of(write(tmp_path / "plain.log", PLAIN))


def zst(content: bytes) -> bytes:
    return zstandard.compress(content)


ENCODED = {
    "gzip": gzip.compress(PLAIN.encode()),
    "gzip of two members": gzip.compress(PLAIN[:2000].encode()) + gzip.compress(PLAIN[2000:].encode()),
    "zstd": zst(PLAIN.encode()),
    "zstd of two frames": zst(PLAIN[:2000].encode()) + zst(PLAIN[2000:].encode()),
    "UTF-16, little end first": b"\xff\xfe" + PLAIN.encode("utf-16-le"),
    "UTF-16, big end first": b"\xfe\xff" + PLAIN.encode("utf-16-be"),
    "UTF-16 in gzip": gzip.compress(b"\xff\xfe" + PLAIN.encode("utf-16-le")),
    "UTF-8 with BOM": b"\xef\xbb\xbf" + PLAIN.encode(),
    "CRLF": PLAIN.replace("\n", "\r\n").encode(),
    "invalid UTF-8": PLAIN.replace("Warmup completed", "caf\udce9 \udcff\udcfe").encode("utf-8", "surrogateescape"),
    "invalid UTF-8 in gzip": gzip.compress(PLAIN.replace("Warmup c", "\udce9").encode("utf-8", "surrogateescape")),
    "no newline at the end": PLAIN.rstrip("\n").encode(),
    "ANSI colours": "".join(f"\x1b[1;32m{text}\x1b[0m\n" for text in PLAIN.splitlines()).encode(),
}


@pytest.mark.parametrize("content", ENCODED.values(), ids=ENCODED)
def test_an_encoding_changes_nothing(tmp_path: Path, plain: tuple, content: bytes):
    (tmp_path / "encoded.log").write_bytes(content)
    assert run_of(tmp_path / "encoded.log") == plain


PREFIXES = {
    "kubectl logs --timestamps": f"{AT} ",
    "kubectl logs --prefix": "[pod/bench-7d9f-x2x4z/client] ",
    "kubectl logs --prefix --timestamps": f"[pod/bench-7d9f-x2x4z/client] {AT} ",
    "docker compose": "bench-1  | ",
    "docker compose, an older one": "pd_bench_1        | ",
    "docker compose --timestamps": f"bench-1  | {AT} ",
    "stern": "bench-7d9f-x2x4z client ",
    "stern with a bar": "bench-7d9f-x2x4z │ ",
    "journald": "Aug 22 10:00:15 gpu-01 bench[4711]: ",
    "journald short-iso": "2026-08-22T10:00:15+0200 gpu-01 bench[4711]: ",
    "journald short-iso with a unit": "2026-08-22T10:00:15+02:00 gpu-01 pd-bench@8.service[4711]: ",
    "GitHub Actions, downloaded": "2026-08-22T10:00:15.1234567Z ",
    "gh run view --log": "bench (8)\tRun sweep\t2026-08-22T10:00:15.1234567Z ",
    "GitLab": "2026-08-22T10:00:15.123456Z 01O ",
    "GitLab, standard error, continued": "2026-08-22T10:00:15.123456Z 00E+",
    "Jenkins": "[2026-08-22T10:00:15.123Z] ",
    "Jenkins pipeline in parallel": "[bench-8] ",
    "moreutils ts": "Aug 22 10:00:15 ",
    "moreutils ts %H:%M:%S": "10:00:15 ",
    "CRI": "2026-08-22T10:00:15.123456789+02:00 stdout F ",
    "CRI, a part": f"{AT} stdout P ",
    "syslog": "Aug  2 10:00:15 gpu-01 bench: ",
    "Python logging": "2026-08-22 10:00:15,123 ",
    "grep -H": "bench.log:",
    "grep -H in a folder": "./logs/users8:",
    "grep -H, an odd name": "stdout_8:",
    "grep -n": "12:",
    "grep -Hn": "bench.log:12:",
    "grep -H of a log of docker compose": f"bench.log:bench-1  | {AT} ",
    "cat -n, nl": "     1\t",
    "srun --label": "0: ",
    "srun --label of many tasks": " 0: ",
    "srun --label behind a clock": f"{AT} 0: ",
    "an epoch stamp": "1795972210.872 ",
    "an epoch stamp in brackets": "[1795972210] ",
    "an epoch stamp of nanoseconds": "1795972210872000000 ",
}


@pytest.mark.parametrize("prefix", PREFIXES.values(), ids=PREFIXES)
def test_a_prefix_changes_nothing(tmp_path: Path, plain: tuple, prefix: str):
    write(tmp_path / "prefixed.log", [prefix + text for text in PLAIN.splitlines()])
    assert run_of(tmp_path / "prefixed.log") == plain


NUMBERED = {
    "grep -n": "{n}:{text}",
    "grep -Hn": "logs/bench.log:{n}:{text}",
    "cat -n": "{n:6}\t{text}",
    "ts %.s": "1795972210.{n:06} {text}",
    "rank": "[rank{n}] {text}",
    "Ray": "(Client pid={n}) {text}",
    "nobody knows": "<<client {n:3}>> {text}",
}


@pytest.mark.parametrize("shape", NUMBERED.values(), ids=NUMBERED)
def test_a_prefix_whose_number_changes_changes_nothing(tmp_path: Path, plain: tuple, shape: str):
    write(tmp_path / "n.log", [shape.format(n=n, text=text) for n, text in enumerate(PLAIN.splitlines(), 1)])
    assert run_of(tmp_path / "n.log") == plain


def test_a_prefix_that_only_the_client_has_changes_nothing(tmp_path: Path, plain: tuple):
    numbered = [f"{n:6}\t{text}" for n, text in enumerate(PLAIN.splitlines(), 1)]
    write(tmp_path / "piped.log", ["launching the client", *numbered, "ALL_DONE"])
    run, claims = run_of(tmp_path / "piped.log")
    assert (run[:-1], len(claims)) == (plain[0][:-1], len(plain[1]))


def test_lines_around_a_hit_of_grep_are_behind_a_hyphen(tmp_path: Path):
    hits = [f"c8.log{':' if 'Benchmark Result' in text else '-'}{text}" for text in PLAIN.splitlines()]
    evidence = load(write(tmp_path / "found.log", [*hits, "--", *[hit.replace("c8", "c16", 1) for hit in hits[:9]]]))
    assert evidence.runs["complete"].to_list() == [True, False]


def test_a_filtered_log_of_several_files_is_read(tmp_path: Path):
    kept = [text for text in PLAIN.splitlines() if text.startswith(("Successful", "Benchmark dur", "Mean E2E"))]
    evidence = load(write(tmp_path / "kept.log", [f"c{users}.log:{text}" for users in (1, 8) for text in kept]))
    assert [facts_of(evidence, run)["e2e_ms_mean"] for run in (0, 1)] == [15000, 15000]
    assert evidence.runs["complete"].to_list() == [None, None]


def test_what_a_script_greps_at_its_end_is_no_run(tmp_path: Path):
    told = ["results/c8.log:Output token throughput (tok/s):  64.00", "12:Mean TTFT (ms):   2300.00"]
    assert load(write(tmp_path / "bench.log", [*PLAIN.splitlines(), *told])).runs["complete"].to_list() == [True]


@pytest.mark.parametrize("text", ["Mean TTFT (ms): 3.00", "Request throughput (req/s): 3.00", "Concurrency: 7.50"])
def test_a_label_is_no_prefix(tmp_path: Path, text: str):
    source = Source(write(tmp_path / "x", [text] * 3))
    assert source.matching(r"\s*3\.00|\s*7\.50").is_empty()
    assert source.last_line() == (3, text)


def test_a_warning_with_its_place_is_no_prefix_and_an_error(tmp_path: Path):
    warned = "/usr/lib/python3.12/site-packages/x.py:12: FutureWarning: `sglang.bench_serving` is deprecated"
    evidence = load(write(tmp_path / "bench.log", [warned, *PLAIN.splitlines()]))
    assert evidence.runs.select("complete", "ending").rows() == [(True, None)]


@pytest.mark.parametrize("size", [200_000, 2_000_000])
@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_other_output_may_come_first(tmp_path: Path, plain: tuple, size: int, pack):
    other = [f"Requirement already satisfied: package-{i}==1.{i}" for i in range(size // 45)]
    (tmp_path / "late.log").write_bytes(pack(("\n".join(other) + "\n" + PLAIN).encode()))
    run, claims = run_of(tmp_path / "late.log")
    moved = [(*claim[:-1], claim[-1] + len(other)) for claim in plain[1]]
    assert (run[:-1], claims) == (plain[0][:-1], moved)


def lines_read(path: Path) -> list[str]:
    return Source(path).matching(r"row \d+")["text"].to_list()


def cut_gzip(content: bytes) -> bytes:
    return gzip.compress(content)[:-2000]


def cut_zstd(content: bytes) -> bytes:
    return zst(content)[:-2000]


@pytest.mark.parametrize("pack", [cut_gzip, cut_zstd])
def test_what_is_readable_of_a_truncated_file_is_read_and_said(tmp_path: Path, pack):
    noise = random.Random(7)
    rows = "".join(f"row {i} {noise.getrandbits(2000):x}\n" for i in range(2000))
    (tmp_path / "bench.log").write_bytes(pack((PLAIN + rows).encode()))
    evidence = load(tmp_path)
    (reason,) = evidence.sources["reason"]
    assert facts_of(evidence)["completed"] == 32
    assert "ends early or is damaged" in reason
    assert 1500 < len(lines_read(tmp_path / "bench.log")) < 2000


@pytest.mark.parametrize("pack", [gzip.compress, zst])
@pytest.mark.parametrize("kept", [0.3, 0.9])
def test_a_truncated_record_file_keeps_its_first_records(tmp_path: Path, pack, kept: float):
    noise = random.Random(7)
    long = record(generated_texts=[f"{noise.getrandbits(4_000_000):x}"])
    content = pack((record() + "\n" + long + "\n").encode())
    (tmp_path / "r.jsonl").write_bytes(content[: int(len(content) * kept)])
    evidence = load(tmp_path)
    assert evidence.runs["complete"].to_list()[:1] == [True]
    assert facts_of(evidence)["completed"] == 32
    assert "ends early" in evidence.sources["reason"][0]


def test_damage_in_the_middle_of_a_gzip_is_said(tmp_path: Path):
    noise = random.Random(7)
    content = bytearray(gzip.compress((PLAIN + f"{noise.getrandbits(800_000):x}\n" + PLAIN).encode()))
    content[len(content) // 2 : len(content) // 2 + 40] = b"\xff" * 40
    (tmp_path / "bench.log").write_bytes(content)
    evidence = load(tmp_path)
    assert facts_of(evidence)["completed"] == 32
    assert "damaged" in evidence.sources["reason"][0]


def test_a_file_that_only_begins_like_gzip_is_listed(tmp_path: Path):
    (tmp_path / "odd.gz").write_bytes(b"\x1f\x8b but no gzip\n")
    assert load(tmp_path).sources.select("reader").row(0) == (None,)
    assert "damaged" in load(tmp_path).sources["reason"][0]


@pytest.mark.parametrize("content", [b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", zlib.compress(b"x" * 99) + b"\0", b"\0" * 4096])
def test_a_binary_file_is_not_text(tmp_path: Path, content: bytes):
    (tmp_path / "core.bin").write_bytes(content)
    assert load(tmp_path).sources.select("reader", "reason").row(0) == (None, "not text")


def test_a_bar_and_what_is_glued_to_it_are_lines_of_their_own(tmp_path: Path):
    source = Source(write(tmp_path / "x", "  3%|▍ | 1/32\r 50%|█ | 16/32\rrow 1 x\nno row 2\nrow 3\n"))
    assert source.matching(r"row \d+").rows() == [(1, "row 1 x"), (3, "row 3")]


def test_the_last_line_is_the_last_that_says_something(tmp_path: Path):
    assert Source(write(tmp_path / "x", "one\n\x1b[31mtwo\x1b[0m\n\n  \n")).last_line() == (2, "two")
    assert Source(write(tmp_path / "y", "\n\n")).last_line() == (0, "")


def test_lines_of_a_plain_file_are_numbered_as_an_editor_does(tmp_path: Path):
    for name, text in {"a": "1\n\n3\n", "b": "1\n\n3", "c": "1\r\n\r\n3\r\n"}.items():
        seen = [(number, bytes(line).strip()) for number, line in Source(write(tmp_path / name, text)).buffers()]
        assert seen == [(1, b"1"), (3, b"3")]


@pytest.mark.parametrize(
    "said",
    [
        "--api-key SECRETVALUE1",
        "--api-key=SECRETVALUE1",
        "api_key='SECRETVALUE1'",
        '{"api_key": "SECRETVALUE1", "x": 1}',
        "OPENAI_API_KEY=SECRETVALUE1",
        "AWS_SECRET_ACCESS_KEY=SECRETVALUE1",
        "Authorization: Bearer SECRETVALUE1",
        "Authorization: Basic SECRETVALUE1=",
        "header=['Authorization=Bearer SECRETVALUE1']",
        "{'Authorization': 'Bearer SECRETVALUE1'}",
        "bearer SECRETVALUE1",
        "HF_TOKEN=SECRETVALUE1",
        "auth_token: SECRETVALUE1",
        "password=SECRETVALUE1",
        "http://alice:SECRETVALUE1@gpu-01:8000/v1",
        "token hf_SECRETVALUE1abc",
        "key sk-SECRETVALUE1abc",
        "sk-proj-SECRETVALUE1_abc",
        "ghp_SECRETVALUE1abc",
        "github_pat_SECRETVALUE1abc",
        "glpat-SECRETVALUE1abc",
    ],
)
def test_a_secret_is_masked_when_it_is_read(said: str):
    assert "SECRETVALUE1" not in masked(said)
    assert "***" in masked(said)
    assert re.search(RISKY, said)


@pytest.mark.parametrize(
    "said", ["Qwen/Qwen3-8B", "mask-1234567890", "tokenizer=Qwen", "#Output tokens: 4096", "risk-assessment-tool"]
)
def test_what_is_no_secret_stays(said: str):
    assert masked(said) == said


def test_a_quoted_line_is_short_and_without_colours():
    assert quoted("\x1b[31m  Killed\x1b[0m\n") == "Killed"
    assert len(quoted("x" * 1000)) == 200


def test_a_secret_at_the_edge_of_a_quote_is_masked_whole():
    assert "SECRET" not in quoted("x" * 180 + " api-key=" + "SECRETVALUE" * 3)


def test_a_log_with_holes_is_text_all_the_same(tmp_path: Path):
    path = tmp_path / "holes.log"
    path.write_bytes(b"\0" * 3000 + b"Mean TTFT (ms): 3.00\nBackend: sglang\n" + b"\0" * 10)
    source = Source(path)
    assert not source.is_binary
    assert source.matching("Mean TTFT|Backend").rows() == [(1, "Mean TTFT (ms): 3.00"), (2, "Backend: sglang")]


def test_a_picture_is_no_text(tmp_path: Path):
    path = tmp_path / "chart.png"
    path.write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(256)) * 8)
    assert Source(path).is_binary


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("Receive: obj=GenerateReqInput(rid='a', text='PRIVATE', x=1)", "Receive: obj=GenerateReqInput(rid='a', text="),
        ("Received request cmpl-1: prompt: 'PRIVATE', params: P(n=1)", "Received request cmpl-1: prompt: "),
        ('{"errors": [], "generated_texts": ["PRIVATE"]}', '{"errors": [], "generated_texts": '),
        ("{'messages': [{'role': 'user', 'content': 'PRIVATE'}]}", "{'messages': "),
        ("out={'output_ids': [PRIVATE]}", "out={'output_ids': "),
        ("body.n Input should be an integer [type=int_type, input_value='PRIVATE', input_type=str]",
         "body.n Input should be an integer [type=int_type, input_value="),
    ],
)  # fmt: skip
def test_a_quote_ends_where_a_prompt_or_an_answer_begins(said: str, kept: str):
    assert without_texts(said).startswith(f"{kept}[")
    assert without_texts(said).endswith(" characters withheld]")
    assert "PRIVATE" not in quoted(said)
    assert re.search(RISKY, said)


@pytest.mark.parametrize(
    "said",
    ["Total input text tokens:   55", "prompt: None, params", "KeyError: 'text'", "context_len=4096", "text: 5",
     "Avg prompt throughput: 12.0 tokens/s", "#Input tokens: 8192", "num_prompts=32", "content-type: text/plain",
     "Namespace(image_content='random', max_concurrency=8)"],
)  # fmt: skip
def test_what_only_speaks_of_texts_stays(said: str):
    assert without_texts(said) == said
