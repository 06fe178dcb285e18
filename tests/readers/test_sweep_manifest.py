"""`sweep.toml`: what it says is kept with its line; what is wrong in it is one sentence."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from logs import block, write

from pdkit.errors import PdkitError
from pdkit.evidence import Evidence
from pdkit.load import load

WHOLE = """\
# a comment
label = "My sweep"
synthetic = false
model = "Qwen/Qwen3-8B"
topology = "1p1d"
gpu = "NVIDIA L4"
gpu_count = 2
repeats = 3
end_marker = "ALL_DONE"

[[level]]  # the first
concurrency = 1
prompts = 40
started_at = 2026-08-22T10:00:15Z
ended_at = 2026-08-22T12:06:17+02:00

[[level]]
request_rate = 8.5

[[file]]
path = "server/decode.log"
role = "decode"
"""


def manifest(tmp_path: Path, text: str, *, encoding: str = "utf-8") -> Evidence:
    return load(write(tmp_path / "sweep" / "sweep.toml", text, encoding=encoding))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_what_it_says_is_kept_with_its_line(tmp_path, encoding, newline):
    evidence = manifest(tmp_path, WHOLE.replace("\n", newline), encoding=encoding)
    said = ["label", "synthetic", "model", "topology", "gpu", "gpu_count", "repeats", "end_marker"]
    assert evidence.experiments.select(said).row(0) == (
        "My sweep", False, "Qwen/Qwen3-8B", "1p1d", "NVIDIA L4", 2.0, 3, "ALL_DONE",
    )  # fmt: skip
    started, ended = (datetime(2026, 8, 22, 10, m, s, tzinfo=UTC) for m, s in ((0, 15), (6, 17)))
    inf = float("inf")
    plan = evidence.plan.select(
        "concurrency", "request_rate_per_s", "prompts_asked", "started_at", "ended_at", "source_line"
    )
    assert plan.rows() == [(1.0, None, 40.0, started, ended, 11), (inf, 8.5, None, None, None, 17)]
    file = (tmp_path / "sweep/server/decode.log").as_posix()
    assert evidence.files.select("path", "role", "source_line").rows() == [(file, "decode", 20)]


@pytest.mark.parametrize(
    "text",
    [
        "[[level]]\nconcurrency = 1\n[[ level ]]\nconcurrency = 2\n[[level ]]\nconcurrency = 4\n",
        "level = [{concurrency = 1}, {concurrency = 2}, {concurrency = 4}]\n",
        "label = '''\n[[level]]\n'''\n[[level]]\nconcurrency = 1\n[['level']]\nconcurrency=2\n[[level]]\nconcurrency=4",
        "[[level]]\nconcurrency = 1\n[['level']]\nconcurrency=2\n[[\"level\"]]\nconcurrency=4",
    ],
)
def test_no_planned_level_is_lost_however_it_is_written(tmp_path, text):
    assert manifest(tmp_path, text).plan["concurrency"].to_list() == [1, 2, 4]


WRONG = {
    "unknown key": ('lable = "x"', "key: 'lable' is not known; did you mean label?"),
    "unknown key, none near": ("zzz = 1", "key: 'zzz' is not known; known: end_marker, file, gpu"),
    "unknown key of a level": ("[[level]]\nconcurency = 8", ":1: level: key: 'concurency' is not known; did you mean"),
    "a later level": ("[[level]]\nconcurrency = 8\n\n[[level]]\nusers = 8", ":4: level: key: 'users' is not known"),
    "unknown key of a file": ('[[file]]\npath = "x"\nroles = "client"', ":1: file: key: 'roles' is not known"),
    "unknown role": ('[[file]]\npath = "x"\nrole = "decoder"', "role: 'decoder' is not known; did you mean decode?"),
    "no role": ('[[file]]\npath = "x"', ":1: file: "),
    "no path": ('[[file]]\nrole = "client"', ":1: file: names no path"),
    "an empty path": ('[[file]]\npath = ""\nrole = "client"', ":1: file: names no path"),
    "wrong type": ('gpu_count = "two"', "gpu_count is 'two'; it takes int"),
    "a number that is a yes": ("gpu_count = true", "gpu_count is True; it takes int"),
    "a level in words": ('[[level]]\nconcurrency = "8"', ":1: level: concurrency is '8'; it takes int or float"),
    "a date without a time": ("[[level]]\nconcurrency = 1\nstarted_at = 2026-08-22", "it takes datetime"),
    "levels that are numbers": ("level = [1, 2]", "level is 1; it takes a table"),
    "a level that is a table": ("[level]\nconcurrency = 1", "level is {'concurrency': 1}; it takes list"),
    "files that are names": ('file = ["x"]', "file is 'x'; it takes a table"),
    "no load": ("[[level]]\nprompts = 8", ":1: level: names no load; a level has a concurrency or a request_rate"),
    "no users": ("[[level]]\nconcurrency = 0", ":1: level: concurrency is 0; it takes a number above 0"),
    "fewer than none": ("[[level]]\nconcurrency = -8", "concurrency is -8; it takes a number above 0"),
    "no number": ("[[level]]\nrequest_rate = nan", "request_rate is nan; it takes a number above 0"),
    "no prompts": ("[[level]]\nconcurrency = 1\nprompts = 0", "prompts is 0; it takes a number above 0"),
    "no GPUs": ("gpu_count = 0", "gpu_count is 0; it takes a number above 0"),
    "a number beyond reason": ("repeats = 99999999999999999999", "repeats is 99999999999999999999; it takes"),
    "no zone": (
        "[[level]]\nconcurrency = 1\nstarted_at = 2026-08-22T10:00:00",
        ":1: level: the time 2026-08-22T10:00:00 has no zone; end it with Z, or with +02:00",
    ),
    "out of the folder": (
        '[[file]]\npath = "../other/bench.log"\nrole = "client"',
        ":1: file: path '../other/bench.log' leads out of the folder",
    ),
    "an absolute path": ('[[file]]\npath = "/etc/passwd"\nrole = "client"', "leads out of the folder"),
    "not TOML": ("label = ", "not valid TOML"),
    "twice": ("label = 'a'\nlabel = 'b'", "not valid TOML"),
}


@pytest.mark.parametrize(("text", "sentence"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_one_sentence_with_its_place(tmp_path, text, sentence):
    with pytest.raises(PdkitError) as problem:
        manifest(tmp_path, text)
    said = str(problem.value)
    assert sentence in said
    assert said.startswith((tmp_path / "sweep/sweep.toml").as_posix())
    assert "\n" not in said


def test_a_manifest_under_another_name_is_told_by_its_levels(tmp_path):
    assert load(write(tmp_path / "plan.toml", WHOLE)).plan.height == 2


def test_another_toml_is_not_a_manifest(tmp_path):
    evidence = load(write(tmp_path / "pyproject.toml", "[project]\nname = 'x'\n").parent)
    assert evidence.sources["reason"].to_list() == ["no reader knows this format"]


def test_an_empty_manifest_says_nothing(tmp_path):
    write(tmp_path / "bench.log", block())
    write(tmp_path / "sweep.toml", "# nothing yet\n")
    evidence = load(tmp_path)
    assert evidence.runs.height == 1
    assert evidence.plan.is_empty()
