"""The records of `--output-file`: what JSON may hold and what it may not."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from logs import RECORD, details, facts_of, record, write

from pdkit.evidence import Evidence
from pdkit.judge import judge
from pdkit.load import load
from pdkit.readers import sglang_bench_record
from pdkit.readers.sglang_bench_record import gap_statistics
from pdkit.results import NO_RESULT

PROPERTY = settings(
    max_examples=40, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def read(tmp_path: Path, *lines: str, end: str = "\n") -> Evidence:
    return load(write(tmp_path / "result.jsonl", "\n".join(lines) + end))


def claims(evidence: Evidence, column: str = "value") -> dict[str, object]:
    return dict(evidence.claims.select("fact", column).iter_rows())


# --- numbers --------------------------------------------------------------------------------------------------------


def test_a_record_says_what_its_keys_hold(tmp_path):
    evidence = read(tmp_path, record())
    assert claims(evidence) == {
        "request_rate_per_s": math.inf, "concurrency": 8, "completed": 32, "duration_s": 64.00123,
        "input_tok_sum": 8192, "output_tok_sum": 4096, "retokenized_tok_sum": 4090,
        "request_throughput_per_s": 0.49999, "input_throughput_tok_per_s": 127.99754,
        "output_throughput_tok_per_s": 63.99877, "total_throughput_tok_per_s": 191.99631, "concurrency_mean": 7.5001,
        "e2e_ms_mean": 15000.001, "e2e_ms_median": 15010.001, "e2e_ms_std": 50.0, "e2e_ms_p99": 15300.001,
        "ttft_ms_mean": 2300.001, "ttft_ms_median": 2310.001, "ttft_ms_std": 40.0, "ttft_ms_p99": 2500.001,
        "tpot_ms_mean": 100.001, "tpot_ms_median": 100.101, "tpot_ms_std": 1.0, "tpot_ms_p99": 102.001,
        "itl_ms_mean": 100.001, "itl_ms_median": 99.001, "itl_ms_std": 9.0, "itl_ms_p95": 130.001,
        "itl_ms_p99": 150.001, "output_tok_asked_each": 128,
    }  # fmt: skip
    row = evidence.runs.select("tool", "client_definition", "model", "server_version", "dataset", "complete").row(0)
    assert row == ("sglang", "python", "Qwen/Qwen3-8B", "0.5.23", "random", True)
    assert evidence.requests.is_empty()


@pytest.mark.parametrize("said", ["Infinity", '"inf"', "null"])
@pytest.mark.parametrize(("key", "fact"), [("request_rate", "request_rate_per_s"), ("max_concurrency", "concurrency")])
def test_no_limit_is_infinity_however_it_is_written(tmp_path, said, key, fact):
    line = record(**{key: "@"}).replace('"@"', said)
    assert claims(read(tmp_path, line))[fact] == math.inf


@pytest.mark.parametrize(
    ("said", "printed"), [("NaN", "nan"), ("Infinity", "inf"), ("-Infinity", "-inf"), ('"inf"', "inf")]
)
def test_a_result_that_is_no_number_is_kept_as_printed(tmp_path, said, printed):
    evidence = read(tmp_path, record(mean_ttft_ms="@", median_itl_ms="@").replace('"@"', said))
    assert [claims(evidence, c)["ttft_ms_mean"] for c in ("value", "printed")] == [None, printed]
    assert [claims(evidence, c)["itl_ms_median"] for c in ("value", "printed")] == [None, printed]
    assert claims(evidence)["completed"] == 32


def test_null_says_nothing(tmp_path):
    stated = claims(read(tmp_path, record(mean_ttft_ms=None, accept_length=None, total_output_tokens_retokenized=None)))
    assert not {"ttft_ms_mean", "accept_length", "retokenized_tok_sum"} & set(stated)


def test_a_record_without_its_totals_is_not_whole(tmp_path):
    evidence = read(tmp_path, record(duration=None))
    assert evidence.runs.select("complete", "ending").row(0) == (False, "the record lacks its totals")


@pytest.mark.parametrize("said", ["trace", "whatever"])
def test_a_rate_in_words_says_nothing(tmp_path, said):
    assert "request_rate_per_s" not in claims(read(tmp_path, record(request_rate=said)))


def test_keys_that_nobody_knows_are_passed_over(tmp_path):
    odd = {"x": [1, {"y": [[]]}], "Infinity": "NaN", "": None, "plugin": {"mean_ttft_ms": 1}}
    assert claims(read(tmp_path, record(**odd))) == claims(read(tmp_path / "plain", record()))


def test_bare_words_inside_texts_stay(tmp_path):
    texts = ['": Infinity, "x": NaN', "], [", "[[", 'a "quoted" \\ ] text', "ünïcode 漢字 🙂", "\ud83d"]
    line = record(**details(6) | {"generated_texts": texts}, server_info={"NaN": "-Infinity, NaN", "x": math.nan})
    evidence = read(tmp_path, line)
    assert evidence.runs["complete"].to_list() == [True]
    assert evidence.requests["text_chars"].to_list() == list(map(len, texts))
    assert evidence.requests["text_hash"].n_unique() == 6
    assert evidence.requests["itl_count"].to_list() == [127] * 6


@pytest.mark.parametrize("separators", [(", ", ": "), (",", ":")], ids=["json", "orjson"])
@pytest.mark.parametrize("bare", [0, 3, 500])
def test_bare_numbers_in_arrays_are_impossible_and_the_rest_counts(tmp_path, separators, bare):
    made = details(600) | {"ttfts": [math.nan] * bare + [2.3] * (600 - bare)}
    line = json.dumps(RECORD | made | {"server_info": {"version": "0.5.23", "x": math.nan}}, separators=separators)
    evidence = read(tmp_path, line)
    assert evidence.runs.select("complete", "server_version").row(0) == (True, "0.5.23")
    assert evidence.requests["ttft_ms"].null_count() == bare
    assert evidence.requests["nonfinite_count"].sum() == bare
    assert evidence.requests["itl_count"].to_list() == [127] * 600


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, -0.1, None])
def test_an_impossible_gap_is_counted_where_it_is(tmp_path, bad):
    made = details(2) | {"itls": [[0.1, bad, 0.3], [0.1, 0.2, 0.3]], "output_lens": [4, 4]}
    evidence = read(tmp_path, record(**made))
    assert evidence.runs["complete"].to_list() == [True]
    assert evidence.requests["nonfinite_count"].to_list() == [1, 0]
    assert evidence.requests["itl_mean_ms"].to_list()[1] == pytest.approx(200)
    assert evidence.requests["itl_count"].to_list() == [3, 3]


# --- server_info ----------------------------------------------------------------------------------------------------

INFOS = {
    "null": (None, (None, None, None)),
    "a list": ([1, 2], (None, None, None)),
    "a string": ("down", (None, None, None)),
    "a number": (7, (None, None, None)),
    "ints inside": ({"internal_states": [1, 2], "version": "1"}, (None, "1", None)),
    "odd types": ({"model_path": 7, "version": ["x"], "prefill": {}, "decode": None}, (None, None, None)),
    "a pair": (
        {"prefill": [{"model_path": "m", "version": "2"}], "decode": [{}, {}], "internal_states": []},
        ("m", "2", "1p2d"),
    ),
    "only prefill": ({"prefill": [{"version": "2"}]}, (None, "2", None)),
    "huge": ({"version": "3", "x": "y" * 5_000_000}, (None, None, None)),
    "large": ({"x": ["y"] * 100_000, "version": "3"}, (None, "3", None)),
}


@pytest.mark.parametrize(("info", "expected"), INFOS.values(), ids=INFOS)
def test_a_server_may_say_anything(tmp_path, info, expected):
    evidence = read(tmp_path, record(server_info=info))
    assert evidence.runs.select("model", "server_version", "topology").row(0) == expected
    assert evidence.runs["complete"].to_list() == [True]


def test_a_deeply_nested_server_is_survived(tmp_path):
    deep = record(server_info="@").replace('"@"', "[" * 100_000 + "]" * 100_000)
    evidence = read(tmp_path, record(), deep)
    assert evidence.runs["complete"].to_list()[0] is True
    assert evidence.runs.height == 2


# --- requests -------------------------------------------------------------------------------------------------------


def test_a_failed_request_has_no_ttft(tmp_path):
    made = details(3) | {
        "ttfts": [0.1, 0.0, 0.25], "errors": ["", "timeout", ""], "output_lens": [3, 0, 2],
        "itls": [[0.1, 0.3], [], [0.5]], "generated_texts": ["abc", "", "de"],
    }  # fmt: skip
    requests = read(tmp_path, record(**made)).requests
    assert requests["ok"].to_list() == [True, False, True]
    assert requests["ttft_ms"].to_list() == [100.0, None, 250.0]
    assert requests["output_tok"].to_list() == [3, None, 2]
    assert requests["text_chars"].to_list() == [3, None, 2]
    assert requests["e2e_ms"].to_list() == [pytest.approx(500), None, pytest.approx(750)]
    assert requests["tpot_ms"].to_list() == [pytest.approx(200), None, pytest.approx(500)]
    assert requests["error"].to_list() == ["", "timeout", ""]
    assert requests["source_item"].to_list() == [0, 1, 2]


def test_an_empty_answer_has_a_ttft_of_zero_and_no_end(tmp_path):
    made = details(1) | {"ttfts": [0.0], "itls": [[]], "generated_texts": [""], "output_lens": [128]}
    requests = read(tmp_path, record(**made)).requests
    row = requests.select("ok", "ttft_ms", "e2e_ms", "tpot_ms", "text_chars", "itl_count", "itl_mean_ms").row(0)
    assert row == (True, 0.0, None, None, 0, 0, None)


def test_one_token_has_no_time_per_further_token(tmp_path):
    made = details(1) | {"itls": [[]], "output_lens": [1]}
    assert read(tmp_path, record(**made)).requests.select("tpot_ms", "ttft_ms").row(0) == (None, 2300.0)


@pytest.mark.parametrize("dropped", list(details(1)))
def test_an_array_that_is_absent_is_null(tmp_path, dropped):
    made = {key: value for key, value in details(4).items() if key != dropped}
    evidence = read(tmp_path, record(**made))
    column = {"input_lens": "input_tok", "output_lens": "output_tok", "ttfts": "ttft_ms", "itls": "itl_count",
              "generated_texts": "text_chars", "errors": "ok"}[dropped]  # fmt: skip
    assert evidence.requests[column].to_list() == [None] * 4
    assert evidence.runs["complete"].to_list() == [True]


@pytest.mark.parametrize("cut", list(details(1)))
def test_an_array_of_another_length_says_nothing_of_any_request(tmp_path, cut):
    made = details(4)
    made[cut] = made[cut][:-1]
    evidence = read(tmp_path, record(**made))
    facts = claims(evidence)
    assert (facts["detail_rows_min"], facts["detail_rows_max"]) == (3, 4)
    assert "PD310" in judge(evidence).verdicts["refused_by"][0]


@pytest.mark.parametrize("nulled", list(details(1)))
@pytest.mark.parametrize("whole", [True, False], ids=["the array", "an entry"])
def test_nulls_in_the_details_lose_only_themselves(tmp_path, nulled, whole):
    made = details(4)
    made[nulled] = None if whole else [None, *made[nulled][1:]]
    evidence = read(tmp_path, record(**made))
    assert evidence.runs["complete"].to_list() == [True]
    assert evidence.requests.height == 4
    others = {"ttfts": "ttft_ms", "input_lens": "input_tok", "output_lens": "output_tok"}
    for key, column in others.items():
        expected = 0 if key != nulled else 4 if whole else 1
        assert evidence.requests[column].null_count() == expected
    judge(evidence)


def test_details_without_their_errors_are_not_the_record_of_one_run(tmp_path):
    arrays = {key: values for key, values in details().items() if key != "errors"}
    judgement = judge(load(write(tmp_path / "result.jsonl", record(**arrays) + "\n")))
    assert judgement.verdicts["refused_by"].to_list() == [["PD310"]]


def test_a_count_beyond_all_reason_is_damage(tmp_path):
    arrays = details() | {"output_lens": [10**30] + [128] * 31}
    judgement = judge(load(write(tmp_path / "result.jsonl", record(**arrays) + "\n")))
    assert judgement.verdicts["refused_by"].to_list() == [["PD401"]]


def test_details_of_no_request_are_no_requests(tmp_path):
    evidence = read(tmp_path, record(**details(0)))
    assert evidence.requests.is_empty()
    assert evidence.runs["complete"].to_list() == [True]


@pytest.mark.parametrize(
    "errors",
    [["Authorization: Bearer SECRETVALUE1"], ["401: Incorrect API key provided: sk-SECRETVALUE1"]],
)
def test_secrets_in_errors_are_masked(tmp_path, errors):
    evidence = read(tmp_path, record(**details(1) | {"errors": errors}))
    assert "SECRETVALUE1" not in str(evidence.requests.to_dicts())


# --- many records, damaged records ----------------------------------------------------------------------------------


def test_every_line_is_a_run(tmp_path):
    lines = [record(duration=64.0 + i, max_concurrency=2**i) for i in range(5)]
    evidence = read(tmp_path, lines[0], "", *lines[1:], "   ")
    assert [facts_of(evidence, i)["duration_s"] for i in range(5)] == [64, 65, 66, 67, 68]
    assert evidence.runs["source_line"].to_list() == [1, 3, 4, 5, 6]


def test_the_same_record_twice_is_shown_once_and_said(tmp_path):
    judgement = judge(read(tmp_path, record(), record()))
    assert judgement.verdicts.height == 1
    assert judgement.results.filter(rule="PD405").select("outcome", "severity", "observed").row(0) == (
        "fail",
        "note",
        2.0,
    )


OTHER = {"max_concurrency": 16, "duration": 128.0, "output_throughput": 32.0, "input_throughput": 64.0}
OTHER |= {key: 2 * value for key, value in RECORD.items() if key.endswith("_ms")}
CUT_OFF = record(**details(3) | {"generated_texts": ['x", "input_lens": [', "{}", "é漢🙂"]} | OTHER)


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> dict[int, dict[str, object]]:
    """What each of the two records says where both are whole."""
    evidence = read(tmp_path_factory.mktemp("whole"), record(), CUT_OFF)
    return {line: claims_on(evidence, line) for line in (1, 2)}


def claims_on(evidence: Evidence, line: int) -> dict[str, object]:
    return dict(evidence.claims.filter(source_line=line).select("fact", "value").iter_rows())


@PROPERTY
@given(at=st.integers(1, len(CUT_OFF.encode()) - 1))
def test_a_cut_off_last_line_takes_nothing_from_the_earlier_ones(tmp_path_factory, whole, at):
    """Wherever it is cut: nothing raises, what stands is read, and no number is invented."""
    file = tmp_path_factory.mktemp("cut") / "result.jsonl"
    file.write_bytes((record() + "\n").encode() + CUT_OFF.encode()[:at])
    evidence = load(file)
    assert evidence.runs["complete"].to_list() == [True, False]
    assert evidence.unread["source_line"].to_list() == [2]
    assert claims_on(evidence, 1) == whole[1]
    assert claims_on(evidence, 2).items() <= whole[2].items()


def test_a_record_that_is_cut_off_is_no_result_and_takes_none_away(tmp_path):
    judgement = judge(read(tmp_path, record(), CUT_OFF[:900]))
    verdicts = dict(judgement.verdicts.select("concurrency", "verdict").iter_rows())
    assert verdicts[16] == NO_RESULT != verdicts[8]


@pytest.mark.parametrize("separators", [(", ", ": "), (",", ":")], ids=["json", "orjson"])
def test_a_record_cut_off_in_its_arrays_keeps_its_numbers(tmp_path, separators):
    line = json.dumps(RECORD | details(), separators=separators)
    evidence = read(tmp_path, line[: line.index("generated_texts")], end="")
    assert evidence.runs["complete"].to_list() == [False]
    assert facts_of(evidence)["output_tok_sum"] == 4096
    assert evidence.requests.is_empty()


@pytest.mark.parametrize(
    "line", ["null", "[1, 2]", '"text"', "7", "{", "}", "not json", '{"completed": true, "duration": "x"}']
)
def test_lines_that_are_no_records_are_said(tmp_path, line):
    evidence = read(tmp_path, record(), line)
    assert facts_of(evidence)["completed"] == 32
    assert evidence.unread["source_line"].to_list() == [2]


def test_json_lines_of_another_tool_are_not_read(tmp_path):
    other = ['{"completed": 32, "duration": 64.0, "total_output_tokens": 4096, "mean_ttft_ms": 1.0}'] * 3
    evidence = load(write(tmp_path / "x" / "other.jsonl", other).parent)
    assert evidence.runs.is_empty()
    assert evidence.sources["reason"].to_list() == ["no reader knows this format"]


def test_foreign_lines_among_records_are_said(tmp_path):
    evidence = read(tmp_path, record(), '{"event": "done"}')
    assert evidence.runs.height == 1
    assert evidence.unread.select("source_line", "reason").row(0) == (
        2,
        "a JSON object, but not a record of bench_serving",
    )


@pytest.mark.parametrize("indent", [1, 2, 4])
def test_a_pretty_printed_record_says_the_same(tmp_path, indent):
    made = details(2) | {"itls": [[0.1, 0.2], []], "output_lens": [3, 1]}
    pretty = read(tmp_path / "pretty", json.dumps(RECORD | made, indent=indent))
    plain = read(tmp_path / "plain", record(**made))
    for table in ("claims", "requests", "gaps"):
        away = ["run_id", "seen_id", "source_file"]
        assert getattr(pretty, table).drop(away).equals(getattr(plain, table).drop(away)), table
    assert pretty.runs["complete"].to_list() == [True]


# --- gaps -----------------------------------------------------------------------------------------------------------

GAPS = st.lists(
    st.lists(st.one_of(st.just(0.0), st.floats(1e-9, 100), st.integers(0, 9)), max_size=7), min_size=0, max_size=12
)


@PROPERTY
@given(arrays=GAPS, compact=st.booleans(), size=st.sampled_from([4, 17, 64, 1 << 22]))
def test_gap_statistics_are_numpys(arrays, compact, size):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sglang_bench_record, "_SLICE_BYTES", size)
        text = json.dumps(arrays, separators=(",", ":") if compact else None)
        found = gap_statistics(memoryview(text.encode()))
    assert found is not None
    assert found.length.tolist() == list(map(len, arrays))
    for i, gaps in enumerate(arrays):
        seen = [found.total_s[i], found.p50_s[i], found.p99_s[i], found.max_s[i]]
        if gaps:
            expected = [np.sum(gaps), np.percentile(gaps, 50), np.percentile(gaps, 99), np.max(gaps)]
            assert seen == pytest.approx(expected, rel=1e-12, abs=1e-15)
        else:
            assert np.isnan(seen).all()
        assert found.zeros[i] == gaps.count(0)
    assert sum(found.histogram.values()) == sum(map(len, arrays))


@pytest.mark.parametrize(
    "text",
    ["null", "7", '"x"', "{}", "[]", "[ ]", "[null]", "[0.1, 0.2]", "[[[0.1]]]", '[["0.1"]]', "[[0.1], null]",
     "[[0.1], 7]", "[[true]]", "[[{}]]", "[[0.1,\n  0.2],\n []]", "[ [ 0.1 , 0.2 ] , [ ] ]", "[[1e400]]"],
)  # fmt: skip
def test_odd_gaps_lose_nothing_but_themselves(tmp_path, text):
    made = details(2)
    line = record(**made | {"itls": "@"}).replace('"@"', text.replace("\n", " "))
    evidence = read(tmp_path, line)
    assert evidence.runs["complete"].to_list() == [True]
    assert evidence.requests["ttft_ms"].to_list() == [2300.0, 2300.0]
    counted = {"[[0.1,\n  0.2],\n []]": [2, 0], "[ [ 0.1 , 0.2 ] , [ ] ]": [2, 0]}.get(text, [None, None])
    assert evidence.requests["itl_count"].to_list() == counted


def test_bins_hold_every_gap_once(tmp_path):
    made = details(2) | {"itls": [[0.0, 0.001, 0.0011], [0.1]], "output_lens": [4, 2]}
    gaps = read(tmp_path, record(**made)).gaps
    assert gaps["count"].to_list() == [1, 2, 1]
    assert gaps.select("low_ms", "high_ms").row(0) == (0.0, 0.0)
    for low, high, inside in zip(gaps["low_ms"][1:], gaps["high_ms"][1:], ((1.0, 1.1), (100.0,)), strict=True):
        assert all(low <= gap * (1 + 1e-12) and gap < high for gap in inside)
