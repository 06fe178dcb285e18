"""What every reader owes, held on its samples in tests/data/<reader>/."""

from pathlib import Path

import pytest

from pdkit.evidence import PLACE, UNPLACED
from pdkit.load import load
from pdkit.parts import readers
from pdkit.source import Source

DATA = Path(__file__).parent.parent / "data"
SAMPLES = sorted(path for path in DATA.glob("*/*") if path.is_file())


def test_every_reader_has_a_sample_and_a_page():
    assert {path.parent.name for path in SAMPLES} == set(readers())
    for name, reader in readers().items():
        assert "Left out" in reader.doc, name


def test_every_sample_is_in_sources():
    said = (DATA / "SOURCES.md").read_text("utf-8")
    assert all(f"`{path.relative_to(DATA)}`" in said for path in SAMPLES)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: str(path.relative_to(DATA)))
def test_a_sample_is_known_to_its_reader_alone(sample):
    source = Source(sample)
    whole = {name for name, reader in readers().items() if reader.sniff and reader.sniff(source)}
    lines = {name for name, reader in readers().items() if reader.signs and source.holds({"it": reader.signs})["it"]}
    assert whole | (lines if not whole else set()) == {sample.parent.name}


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: str(path.relative_to(DATA)))
def test_a_line_with_a_sign_holds_one_of_the_words(sample):
    signs = {name: reader.signs for name, reader in readers().items() if reader.signs}
    words = {name: readers()[name].words for name in signs}
    assert all(words.values())
    source = Source(sample)
    for name, sign in signs.items():
        assert source.holds({"it": sign}, words=words[name]) == source.holds({"it": sign}), name


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: str(path.relative_to(DATA)))
def test_every_row_cites_a_line_that_is_there(sample):
    evidence = load(sample)
    lines = len(sample.read_bytes().splitlines())
    for name, frame in vars(evidence).items():
        if name in UNPLACED or frame.is_empty():
            continue
        assert set(PLACE) <= set(frame.columns)
        assert frame["source_file"].unique().to_list() == [sample.as_posix()], name
        assert frame["source_line"].is_between(1, lines).all(), name


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: str(path.relative_to(DATA)))
def test_missing_is_null(sample):
    for name, frame in vars(load(sample)).items():
        for column in frame.columns:
            if frame[column].dtype.is_float():
                assert not frame[column].is_nan().any(), f"{name}.{column}"
            if column in ("source_file", "run_id", "experiment"):
                assert "" not in frame[column].to_list(), f"{name}.{column}"


def test_the_real_log_says_what_stands_in_it():
    evidence = load(DATA / "sglang_bench_log" / "users-8.log")
    facts = dict(evidence.claims.select("fact", "value").iter_rows())
    expected = {
        "concurrency": 8, "completed": 24, "duration_s": 7.42, "output_tok_sum": 6144, "retokenized_tok_sum": 6144,
        "output_throughput_tok_per_s": 827.72, "ttft_ms_p99": 138.23, "itl_ms_max": 25.59, "prompts_asked": 24,
        "requests_dispatched": 24, "output_tok_asked": 6144, "output_tok_asked_each": 256,
    }  # fmt: skip
    assert {fact: facts[fact] for fact in expected} == expected
    assert evidence.runs.select("model", "complete", "client_definition").row(0) == ("tok", True, "python")


def test_the_real_record_says_what_stands_in_it():
    evidence = load(DATA / "sglang_bench_record" / "trimmed.jsonl")
    facts = dict(evidence.claims.select("fact", "value").iter_rows())
    assert (facts["completed"], facts["output_tok_sum"], facts["retokenized_tok_sum"]) == (240, 30720, 0)
    assert (facts["ttft_ms_mean"], facts["concurrency"]) == (0, float("inf"))
    assert evidence.runs.select("topology", "server_version").row(0) == ("1p1d", "0.5.23")
    requests = evidence.requests.select("ok", "output_tok", "text_chars", "ttft_ms", "itl_count", "e2e_ms")
    assert requests.rows() == [(True, 128, 0, 0.0, 0, None)] * 3
