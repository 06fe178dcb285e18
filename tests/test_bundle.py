"""From a bundle somebody else can check every figure of a report, and learn nothing that is not theirs to know."""

import hashlib
import html
import json
import os
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import zstandard
from click.testing import CliRunner
from logs import details, log, record, write

from pdkit import bundle, report
from pdkit.cli import main
from pdkit.errors import PdkitError
from pdkit.redact import masked_lines
from tests import inprocess

SPLIT, HEALTHY, PD = "data/split-l4-qwen3-8b", "data/real-client/healthy", "data/first-pd-benchmark"
NAME = "sweep_review"
NOTEBOOK = Path(__file__).parents[1] / "notebooks" / f"{NAME}.ipynb"
FIXED = {"README.txt", "SHA256SUMS", "cited.json", "report.html", "report.json", "sources.json", "versions.json"}


def build(out: Path, *paths: str | Path, **parameters: report.Value) -> report.Report:
    return report.build(NAME, paths, out=out, parameters=parameters, bundle=True, engine=inprocess.NAME)


def listed(*files: Path, names: dict[Path, str] | None = None) -> list[dict[str, Any]]:
    """What a document says of these files."""
    contents = {file: file.read_bytes() for file in files}
    return [
        {
            "path": (names or {}).get(file, file.as_posix()),
            "bytes": len(said),
            "sha256": hashlib.sha256(said).hexdigest(),
        }
        for file, said in contents.items()
    ]


def bundled(tmp_path: Path, document: object, *given: Path, redacted: bool = False) -> "Bundle":
    """The bundle of a report with that document."""
    made = bundle.Made("mine", "<html></html>", json.dumps(document), NOTEBOOK, redacted)
    file = tmp_path / "mine.zip"
    bundle.write(file, made, given=given)
    return Bundle(file)


def of_lines(tmp_path: Path, file: Path, *places: str, redacted: bool = False, name: str = "") -> list[dict[str, Any]]:
    """The quotes of one file of which these places are cited."""
    known = name or file.as_posix()
    document = {"sources": listed(file, names={file: known}), "lines": [f"{known}:{place}" for place in places]}
    return bundled(tmp_path, document, file, redacted=redacted).lines("lines/001.json")


class Bundle:
    """What is in a bundle."""

    def __init__(self, file: Path) -> None:
        with zipfile.ZipFile(file) as archive:
            self.entries = archive.infolist()
            self.content = {entry.filename: archive.read(entry) for entry in self.entries}

    def json(self, name: str) -> Any:
        return json.loads(self.content[name], parse_constant=pytest.fail)

    def lines(self, name: str) -> list[dict[str, Any]]:
        return self.json(name)["lines"]

    @property
    def cited(self) -> dict[str, list[str]]:
        return {row["cited"]: row["lines"] for row in self.json("cited.json")}

    @property
    def text(self) -> str:
        return "\n".join(said.decode() for said in self.content.values())


def strings(said: object) -> Iterator[str]:
    if isinstance(said, str):
        yield said
    inside = said.values() if isinstance(said, dict) else said if isinstance(said, list) else ()
    for one in inside:
        yield from strings(one)


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> report.Report:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(Path(__file__).parents[1])
        return build(tmp_path_factory.mktemp("cases"), SPLIT, HEALTHY, PD)


# --- every figure can be checked ------------------------------------------------------------------------------------


def test_every_line_that_the_document_cites_is_there_as_it_is_in_the_file(cases, in_repository):
    made, document = Bundle(cases.bundle), json.loads(cases.json.read_text("utf-8"))
    places = {at for said in strings(document) for at in re.findall(r"data/[\w./-]+:\d+", said)}
    assert len(places) > 100
    assert {place.rpartition(":")[0] for place in places} >= {
        f"{SPLIT}/swapped/users-32.log",
        f"{PD}/filtered/pd_bench.log",
    }
    for place in places:
        path, _, number = place.rpartition(":")
        (name,) = made.cited[place]
        assert made.json(name)["file"] == path
        (quote,) = [one for one in made.lines(name) if one["line"] == int(number)]
        assert quote["cited"]
        content = Path(path).read_bytes()
        line = (zstd_or_gzip(path, content)).split(b"\n")[int(number) - 1]
        if "text" in quote:
            assert quote["text"] == line.decode().rstrip("\r") or quote["chars"] > 2000, place
        else:
            assert quote["sha256"] == hashlib.sha256(line).hexdigest(), place


def zstd_or_gzip(path: str, content: bytes) -> bytes:
    import gzip

    return gzip.decompress(content) if path.endswith(".gz") else content


def test_every_claimed_figure_stands_in_the_line_that_is_named_for_it(cases):
    made, document = Bundle(cases.bundle), json.loads(cases.json.read_text("utf-8"))
    checked = 0
    for run in document["runs"]:
        for fact, place in run["claimed_at"].items():
            path, _, number = place.rpartition(":")
            (name,) = made.cited[place]
            (quote,) = [one for one in made.lines(name) if one["line"] == int(number)]
            said = [quote["text"]] if "text" in quote else [str(value) for value in quote["fields"].values()]
            figures = [float(one) for text in said for one in re.findall(r"\d+(?:\.\d+)?(?:e-?\d+)?", text)]
            value = run["claimed"][fact]
            assert any(abs(figure * unit - value) < 1e-6 * max(1, value) for figure in figures for unit in (1, 1000)), (
                f"{path} {fact} {value}"
            )
            checked += 1
    assert checked > 100


def test_three_lines_before_and_behind_come_with_it(tmp_path):
    file = write(tmp_path / "bench.log", [f"line {number}" for number in range(1, 21)])
    assert of_lines(tmp_path, file, "2", "10") == [
        {"line": number, "cited": number in (2, 10), "text": f"line {number}"}
        for number in (1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 12, 13)
    ]


def test_hash_and_size_of_every_source_are_those_on_disk(cases, in_repository):
    rows = {row["path"]: row for row in Bundle(cases.bundle).json("sources.json")}
    for folder in (SPLIT, HEALTHY, PD):
        for file in (file for file in Path(folder).rglob("*") if file.is_file() and "__pycache__" not in file.parts):
            content = file.read_bytes()
            row = rows[file.as_posix()]
            assert (row["bytes"], row["sha256"]) == (len(content), hashlib.sha256(content).hexdigest())


def test_the_bundle_holds_the_report_the_versions_and_how_to_check(cases):
    made = Bundle(cases.bundle)
    assert set(made.content) >= FIXED
    assert made.content["report.html"] == cases.html.read_bytes()
    assert made.content["report.json"] == cases.json.read_bytes()
    versions = made.json("versions.json")
    assert set(versions) == {"pdkit", "python", "polars", "notebook"}
    assert versions["notebook"] == {"name": NAME, "sha256": hashlib.sha256(NOTEBOOK.read_bytes()).hexdigest()}
    assert "To check a figure" in made.content["README.txt"].decode()
    sums = dict(reversed(line.split("  ")) for line in made.content["SHA256SUMS"].decode().splitlines())
    assert sums == {
        name: hashlib.sha256(content).hexdigest() for name, content in made.content.items() if name != "SHA256SUMS"
    }


def test_the_same_report_makes_the_same_bytes(tmp_path, cases, in_repository):
    again = build(tmp_path, SPLIT, HEALTHY, PD)
    assert again.bundle.read_bytes() == cases.bundle.read_bytes()
    entries = Bundle(again.bundle).entries
    assert {entry.date_time for entry in entries} == {(1980, 1, 1, 0, 0, 0)}
    assert [entry.filename for entry in entries] == sorted(entry.filename for entry in entries)


# --- whatever the sources are ---------------------------------------------------------------------------------------


def test_a_source_is_read_through_compression_encoding_and_prefix(tmp_path):
    lines = [f"2026-05-01T10:00:0{number}Z line {number} ü" for number in range(1, 6)]
    for name, encoding in (("a.log", "utf-8"), ("b.log.gz", "utf-8"), ("c.log", "utf-16")):
        file = write(tmp_path / name, lines, encoding=encoding)
        assert [quote["text"] for quote in of_lines(tmp_path, file, "1")] == lines[:4], name
    packed = tmp_path / "d.log.zst"
    packed.write_bytes(zstandard.ZstdCompressor().compress("\r\n".join(lines).encode()))
    assert [quote["text"] for quote in of_lines(tmp_path, packed, "5")] == lines[1:]


def test_a_line_without_end_keeps_its_beginning_and_its_end(tmp_path):
    file = write(tmp_path / "bench.log", ["a" * 1000 + "b" * 1_000_000 + "c" * 1000])
    (quote,) = of_lines(tmp_path, file, "1")
    assert quote == {"line": 1, "cited": True, "text": "a" * 1000 + " […] " + "c" * 1000, "chars": 1_002_000}


def test_a_cited_line_that_is_not_there_has_nothing_but_its_number(tmp_path):
    empty = write(tmp_path / "empty.log", "")
    assert of_lines(tmp_path, empty, "1") == [{"line": 1, "cited": True}]
    short = write(tmp_path / "short.log", ["one"])
    assert of_lines(tmp_path, short, "99")[-1] == {"line": 99, "cited": True}


def test_one_line_cited_ten_thousand_times_is_there_once(tmp_path):
    file = write(tmp_path / "bench.log", ["only"])
    results = [{"rule": f"PD{number}", "lines": [f"{file}:1", f"{file}:1[{number}]"]} for number in range(10_000)]
    made = bundled(tmp_path, {"sources": listed(file), "results": results}, file)
    assert made.lines("lines/001.json") == [{"line": 1, "cited": True, "text": "only"}]
    assert len(made.cited) == 1


@pytest.mark.parametrize("folder", ["two words/日本 ü", "a:1 [b]", "-rf", "..."])
def test_folders_with_odd_names_are_cited_and_found(tmp_path, folder, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / folder / "bench.log", log())
    made = Bundle(build(tmp_path / "out", folder).bundle)
    cited = [place for place in made.cited if place.startswith(f"{folder}/bench.log:")]
    assert len(cited) > 10
    assert all(made.cited[place] == ["lines/001.json"] for place in cited)


def test_no_name_in_the_archive_comes_from_a_log(tmp_path, monkeypatch):
    inner = tmp_path / "inner"
    inner.mkdir()
    monkeypatch.chdir(inner)
    write(tmp_path / "evil" / "bench.log", log())
    odd = os.fsdecode(b"../evil/\xff\n.log")
    os.link("../evil/bench.log", odd)
    Path(odd).write_bytes(Path("../evil/bench.log").read_bytes().replace(b"64.00", b"65.00"))
    made = Bundle(build(tmp_path / "out", "../evil").bundle)
    assert all(name in FIXED or re.fullmatch(r"lines/\d{3,}\.json", name) for name in made.content)
    assert {row["path"] for row in made.json("sources.json")} == {"../evil/bench.log", "../evil/\\xff\n.log"}


def test_a_source_that_cannot_be_read_is_listed_without_a_hash(tmp_path, in_repository):
    write(tmp_path / "logs" / "bench.log", log())
    (tmp_path / "logs" / "gone.log").symlink_to(tmp_path / "nowhere")
    rows = {
        Path(row["path"]).name: row
        for row in Bundle(build(tmp_path / "out", tmp_path / "logs").bundle).json("sources.json")
    }
    assert (rows["gone.log"]["sha256"], rows["gone.log"]["reason"]) == (None, "a link to nothing")
    assert rows["gone.log"]["lines"] is None


def test_two_sides_of_a_document_are_both_found(tmp_path):
    one, other = write(tmp_path / "a" / "x.log", ["one"]), write(tmp_path / "b" / "x.log", ["two"])
    document = {
        "suspect": {"sources": listed(one), "says": f"see {one}:1, and nothing else"},
        "baseline": {"sources": listed(other), "chain": [{"at": f"{other}:1"}]},
    }
    made = bundled(tmp_path, document, one, tmp_path / "b")
    assert made.cited == {f"{one}:1": ["lines/001.json"], f"{other}:1": ["lines/002.json"]}
    assert [made.lines(f"lines/00{side}.json")[0]["text"] for side in (1, 2)] == ["one", "two"]


def test_what_the_page_alone_cites_is_there_too(tmp_path, in_repository):
    parameters: dict[str, report.Value] = {"baseline": [f"{SPLIT}/open-loop/baseline"]}
    paths = [f"{SPLIT}/open-loop/split"]
    made = report.build("postmortem", paths, out=tmp_path, parameters=parameters, bundle=True, engine=inprocess.NAME)
    places = set(re.findall(rf"{SPLIT}/[\w./-]+:\d+", made.html.read_text("utf-8")))
    assert any("baseline" in place for place in places)
    assert any("/server/" in place and place not in made.json.read_text("utf-8") for place in places)
    held = Bundle(made.bundle)
    for place in places:
        (name,) = held.cited[place]
        path, _, number = place.rpartition(":")
        quote = next(one for one in held.lines(name) if one["line"] == int(number))
        assert quote["cited"]
        assert held.json(name)["file"] == path
        assert "text" in quote or "fields" in quote


def test_a_file_whose_name_is_markup_is_found_on_the_page(tmp_path):
    file = write(tmp_path / "a<b>&.log", ["one"])
    made = bundle.Made(
        "mine", f"<p>{html.escape(str(file))}:1</p>", json.dumps({"sources": listed(file)}), NOTEBOOK, False
    )
    bundle.write(tmp_path / "mine.zip", made, given=[file])
    assert Bundle(tmp_path / "mine.zip").cited == {f"{file}:1": ["lines/001.json"]}


def test_a_name_that_is_the_end_of_another_is_not_cited_with_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "x.log", ["short"])
    write(tmp_path / "a" / "x.log", ["long"])
    document = {"sources": listed(Path("x.log"), Path("a/x.log")), "lines": ["a/x.log:1"]}
    assert bundled(tmp_path, document, Path("x.log"), Path("a")).cited == {"a/x.log:1": ["lines/001.json"]}


def test_a_line_of_a_file_that_is_no_source_is_named_as_lacking(tmp_path):
    file = write(tmp_path / "bench.log", ["one"])
    document = {"sources": listed(file), "lines": ["elsewhere.toml:3"]}
    assert bundled(tmp_path, document, file).cited == {"elsewhere.toml:3": []}


# --- what never enters it -------------------------------------------------------------------------------------------

ANSWER = "the patient is called Miller"


def test_a_record_gives_its_numbers_and_no_text(tmp_path):
    arrays = details(32) | {"generated_texts": [ANSWER] * 32, "errors": ["", "HTTP 500 hf_SECRETSECRET"] * 16}
    info = {
        "api_key": "SECRETVALUE1",
        "port": 3,
        "prompt": ANSWER,
        "internal_states": [{"max_total_num_tokens": 98304}],
    }
    line = record(**arrays, server_info=info, prompts=[ANSWER])
    file = write(tmp_path / "r.jsonl", [record(), line, record(completed=3)])
    (quote,) = of_lines(tmp_path, file, "2", "2[1]", "2[99]")
    assert (quote["bytes"], quote["sha256"]) == (len(line), hashlib.sha256(line.encode()).hexdigest())
    fields = quote["fields"]
    assert fields["completed"] == 32
    assert fields["request_rate"] == "inf"
    assert fields["output_throughput"] == 63.99877
    assert fields["generated_texts.length"] == 32
    assert fields["server_info.internal_states.0.max_total_num_tokens"] == 98304
    # of request 1: 2.3 s to its first token, then 127 gaps of 0.1 s
    item = quote["items"]["1"]
    assert (item["ttfts"], item["output_lens"], item["itls.length"], item["itls.longest"]) == (2.3, 128, 127, 0.1)
    assert item["itls.sum"] == pytest.approx(12.7)
    assert item["generated_texts.chars"] == len(ANSWER)
    assert item["errors"] == "HTTP 500 ***"
    assert list(quote["items"]) == ["1"]
    assert "Miller" not in str(quote)
    assert "SECRET" not in str(quote)


@pytest.mark.parametrize(
    "content",
    [
        json.dumps({"completed": 3, "generated_texts": [ANSWER]}, indent=1),
        json.dumps([{"completed": 3, "generated_texts": [ANSWER]}]),
        "[\n{" + f'"generated_texts": ["{ANSWER}"]' + "}\n]",
        f'{{"generated_texts": ["{ANSWER}"',
        f'{{"a": 1}}\n{ANSWER}\n',
        "{" * 100_000 + ANSWER,
        f'{{"{ANSWER}": 3, "x": {{"{ANSWER}": 4}}, "model": {{"prompt": "{ANSWER}"}}, "n": {"9" * 5000}}}',
        f'{{"n": 1{"0" * 400}, "itls": [[1{"0" * 400}, 1e308, 1e308, NaN]], "text": "\\ud83d {ANSWER}"}}',
        f'{{"model": "\\ud83d", "generated_texts": ["{ANSWER}"]}}',
    ],
)  # fmt: skip
def test_no_shape_of_a_record_lets_a_text_out(tmp_path, content):
    file = write(tmp_path / "r.json", content)
    places = [f"{number}{item}" for number in range(1, 9) for item in ("", "[0]")]
    assert "Miller" not in str(of_lines(tmp_path, file, *places))


def test_a_record_over_many_lines_is_cited_by_its_first(tmp_path):
    file = write(tmp_path / "config.json", json.dumps({"model": "m", "layers": 36, "text": ANSWER}, indent=1))
    first, _, layers, text = of_lines(tmp_path, file, "1", "2", "3", "4")
    assert first["fields"] == {"model": "m", "layers": 36}
    assert first["bytes"] == file.stat().st_size
    assert layers["text"] == ' "layers": 36,'
    assert "text" not in text


@pytest.mark.parametrize(
    "line",
    [
        f"[2026-05-01 10:00:00] Receive: obj=GenerateReqInput(rid='a', text='{ANSWER}', stream=True)",
        f"INFO 05-01 10:00:00 Received request cmpl-1: prompt: '{ANSWER}', params: SamplingParams(n=1)",
        f"Finish: obj=x, out={{'text': '{'x' * 100_000}{ANSWER}'}}",
        "y" * 50_000 + f" 'generated_text': '{'x' * 100_000}{ANSWER}'",
        f'2026-05-01T10:00:00Z stdout F {{"messages": [{{"role": "user", "content": "{ANSWER}"}}]}}',
    ],
)
def test_a_server_that_logs_its_requests_has_them_withheld(tmp_path, line):
    file = write(tmp_path / "server.log", ["before", line, "behind"])
    quotes = of_lines(tmp_path, file, "1")
    assert [quote["line"] for quote in quotes] == [1, 2, 3]
    assert "Miller" not in str(quotes)
    assert "characters withheld]" in quotes[1]["text"]


@pytest.mark.parametrize(
    "line",
    ["--api-key SECRETVALUE1", "Authorization: Bearer SECRETVALUE1", "x" * 990 + " --api-key=" + "SECRETVALUE" * 20,
     "z" * 3000 + " token hf_SECRETVALUE1", "k" * 9000 + " api_key=" + "SECRET" * 200],
)  # fmt: skip
def test_keys_are_masked_without_being_asked(tmp_path, line):
    file = write(tmp_path / "bench.log", ["before", line])
    assert "SECRET" not in str(of_lines(tmp_path, file, "1"))


# --- redacted -------------------------------------------------------------------------------------------------------

PRIVATE = (
    "alice",
    "gpu-node7",
    "acme",
    "10.1.2.3",
    "10.9.8.7",
    "fe80::1",
    "sweeps_q3",
    "SECRETVALUE",
    "Miller",
    "node7",
)


@pytest.fixture
def private(tmp_path: Path) -> Path:
    """A sweep whose every place names somebody."""
    home = tmp_path / "home" / "alice" / "sweeps_q3"
    arguments = {"base_url": "http://gpu-node7.acme.internal:30000", "host": "10.1.2.3", "api_key": "SECRETVALUE1"}
    lines = log(arguments=arguments)
    at = lines.index("Starting warmup with 1 sequences...")
    noise = [
        "Nov 29 10:00:00 gpu-node7 sglang[12]: 10.9.8.7:4411 - POST /generate",
        "gpu-node7 is up, as alice@gpu-node7 says in ~alice/notes",
        "gpu-node7 | [fe80::1]:30000 joined",
        f"{home}/acme logs/bench.log.gpu-node7: written; also file {home.as_posix()}/run_q3.py",
    ]
    write(home / "acme logs" / "bench.log.gpu-node7", [*lines[: at + 1], *noise, *lines[at + 1 :]])
    made = details(32) | {
        "generated_texts": [ANSWER] * 32,
        "errors": ["http://gpu-node7.acme.internal:1/x"] + [""] * 31,
    }
    server = {"model_path": "/home/alice/models/Qwen3-8B", "version": "0.5.23", "gpu-node7": {"x": 1}}
    write(home / "acme logs" / "alice.jsonl", record(server_info=server, completed=31, **made) + "\n")
    write(
        home / "acme logs" / "sweep.toml",
        '# alice on gpu-node7\nlabel = "of alice@gpu-node7"\n[[level]]\nconcurrency = 8\n',
    )
    return home


def test_a_redacted_bundle_tells_no_host_no_path_and_nobody(tmp_path, private):
    made = Bundle(build(tmp_path / "out", private, redact=True).bundle)
    said = made.text.replace("aliceblue", "")  # a colour that Vega knows
    assert [word for word in PRIVATE if word in said] == []
    assert str(tmp_path) not in said
    assert "Successful requests:" in said
    plain = Bundle(build(tmp_path / "plain", private).bundle)
    assert "gpu-node7" in plain.text
    assert "SECRETVALUE" not in plain.text
    assert "Miller" not in plain.text


def test_a_redacted_bundle_holds_the_same_lines_under_other_names(tmp_path, private):
    made = Bundle(build(tmp_path / "out", private, redact=True).bundle)
    assert all(re.fullmatch(r"file-\d\d(\.\w+)?:\d+", place) for place in made.cited)
    assert all(names for names in made.cited.values())
    plain = Bundle(build(tmp_path / "plain", private).bundle)

    def by_hash(held: Bundle) -> dict[str, list[int]]:
        files = [name for name in held.content if name.startswith("lines/")]
        return {held.json(name)["sha256"]: [quote["line"] for quote in held.lines(name)] for name in files}

    assert by_hash(made) == by_hash(plain)


CLOCKED = "[2026-05-01 10:00:00 DP0 TP0] Decode batch. #running-req: 2"
BLOCK = "Successful requests:                     240       "


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (CLOCKED, CLOCKED),
        (BLOCK, BLOCK),
        ("Nov 29 10:00:00 neptune sglang[12]: ready", "Nov 29 10:00:00 [host] [host][12]: ready"),
        ("prefill-0 | ready", "[host] | ready"),
        ("2026-05-01T10:00:00.123Z stdout F ready", "2026-05-01T10:00:00.123Z stdout F ready"),
        ("/srv/customer-x", "[path]"),
    ],
)
def test_a_line_keeps_its_clock_and_what_it_says(line, shown):
    assert masked_lines([line], [Path("/srv/customer-x")]) == [shown]


@pytest.mark.parametrize("name", ["sglang-decode-0", "slurm-gb300-133-191", "router-7d9f8b6c5d-x2k4q"])
def test_names_as_schedulers_make_them_are_hosts(name):
    assert masked_lines([f"ready on {name}, tensor-parallel 8, nightly-dev-cu13"], []) == [
        "ready on [host], tensor-parallel 8, nightly-dev-cu13"
    ]


def test_a_host_that_one_line_names_is_masked_in_all(tmp_path):
    said = ["ssh bob@gpu-9 now", "segment gpu-9 is gone", "scheduler.py:1234 failed, see scheduler.py", "gpu-9"]
    assert masked_lines(said, []) == [
        "ssh [address] now", "segment [host] is gone", "[host] failed, see scheduler.py", "[host]",
    ]  # fmt: skip


# --- whole, or not there --------------------------------------------------------------------------------------------


def test_a_source_that_changed_meanwhile_leaves_no_report(tmp_path, monkeypatch):
    file = write(tmp_path / "logs" / "bench.log", log())
    executed = report._executed

    def then_it_grew(*given: Any, **more: Any) -> Any:
        done = executed(*given, **more)
        with file.open("a") as more_of_it:
            more_of_it.write("another line\n")
        return done

    monkeypatch.setattr(report, "_executed", then_it_grew)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / f"{NAME}.zip").write_text("older")
    with pytest.raises(PdkitError, match=r"bench\.log: it is not what the report read any more.*no report was written"):
        build(tmp_path / "out", file)
    assert list((tmp_path / "out").iterdir()) == []


def test_a_source_that_went_meanwhile_is_told_by_its_name_in_the_report(tmp_path):
    file = write(tmp_path / "bench.log", ["one"])
    document = {"sources": listed(file, names={file: "file-01.log"}), "lines": ["file-01.log:1"]}
    file.unlink()
    with pytest.raises(PdkitError, match=r"^file-01\.log: it is not what the report read any more"):
        bundled(tmp_path, document, tmp_path, redacted=True)


def test_a_document_without_sources_makes_no_bundle(tmp_path):
    with pytest.raises(PdkitError, match=r"^mine: its document lists no sources"):
        bundled(tmp_path, {"runs": []}, tmp_path)


def test_an_older_bundle_does_not_stay_beside_a_newer_report(tmp_path, in_repository):
    made = build(tmp_path, HEALTHY)
    assert made.bundle.exists()
    report.build(NAME, [HEALTHY], out=tmp_path, engine=inprocess.NAME)
    assert sorted(file.suffix for file in tmp_path.iterdir()) == [".html", ".ipynb", ".json"]


def test_the_command_line_says_where_it_is(tmp_path, in_repository):
    done = CliRunner().invoke(main, ["report", NAME, HEALTHY, "--out", str(tmp_path), "--bundle", "--redact"])
    assert done.exit_code == 0, done.output
    assert done.output.splitlines()[-2:] == [str(tmp_path / f"{NAME}.html"), str(tmp_path / f"{NAME}.zip")]
    assert "users-8.log" not in Bundle(tmp_path / f"{NAME}.zip").text
