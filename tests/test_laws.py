"""What holds whatever the logs say: order, cutting and joining change nothing, and nothing raises."""

import json
import math
from itertools import permutations
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from logs import HEALTHY, RECORD, block, details, log, record, write

from pdkit.formats import json as json_format
from pdkit.formats import text as text_format
from pdkit.judge import judge
from pdkit.load import load
from pdkit.redact import redacted
from pdkit.results import Judgement

DATA = Path(__file__).parent.parent / "data"
SWEEP = DATA / "split-l4-qwen3-8b" / "swapped"
LOGS = [SWEEP / f"users-{users}.log" for users in (1, 2, 4, 8, 16, 32)]
HOSTILE = settings(
    max_examples=15, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def said(judgement: Judgement) -> tuple[list[tuple], list[tuple]]:
    """Verdict, refusals and doubts of each level, and what is published of it, wherever the files lie."""
    about = ["concurrency", "request_rate_per_s", "verdict", "refused_by", "suspected_by"]
    verdicts = judgement.verdicts.select(about).rows()
    numbers = judgement.published.join(
        judgement.verdicts.select("run_id", "concurrency", "request_rate_per_s"), on="run_id"
    )
    return sorted(verdicts, key=str), sorted(numbers.drop("run_id").rows(), key=str)


# --- order, joining and cutting -------------------------------------------------------------------------------------


def test_the_order_of_files_changes_nothing():
    orders = list(permutations([*LOGS[:3], SWEEP / "result.jsonl", SWEEP / "sweep.toml"]))[::17]
    first, *others = [judge(load(list(order))) for order in orders]
    for other in others:
        for frame in ("verdicts", "results", "published", "claimed", "conclusions", "findings"):
            assert getattr(other, frame).equals(getattr(first, frame)), frame


def test_the_order_of_records_changes_nothing(tmp_path):
    lines = (SWEEP / "result.jsonl").read_text().splitlines()
    there, back = (write(tmp_path / name / "r.jsonl", text) for name, text in (("a", lines), ("b", lines[::-1])))
    assert said(judge(load(there))) == said(judge(load(back)))


@pytest.mark.parametrize("kind", ["log", "jsonl"])
def test_two_files_are_their_concatenation(tmp_path, kind):
    texts = (
        [file.read_text() for file in LOGS]
        if kind == "log"
        else (SWEEP / "result.jsonl").read_text().splitlines(keepends=True)
    )
    for number, text in enumerate(texts):
        write(tmp_path / "apart" / f"{number}.{kind}", text)
    write(tmp_path / "joined" / f"all.{kind}", "".join(texts))
    assert said(judge(load(tmp_path / "apart"))) == said(judge(load(tmp_path / "joined")))


def test_a_log_and_a_record_glued_to_server_lines_say_the_same(tmp_path):
    server = (SWEEP / "server/decode.log").read_text()
    write(tmp_path / "glued" / "all.log", server + LOGS[3].read_text() + server)
    write(tmp_path / "plain" / "all.log", LOGS[3].read_text())
    assert said(judge(load(tmp_path / "glued"))) == said(judge(load(tmp_path / "plain")))


def test_judging_folders_together_is_judging_each():
    folders = [DATA / "split-l4-qwen3-8b" / name for name in ("original", "swapped", "open-loop")]
    folders += [DATA / "first-pd-benchmark" / name for name in ("healthy", "crashed", "never-started")]
    together, each = judge(load(folders)), [judge(load(folder)) for folder in folders]
    for frame in ("verdicts", "results", "published", "conclusions", "findings"):
        # rows of requests are numbered over all files
        apart = pl.concat([getattr(judgement, frame) for judgement in each]).select(pl.exclude("first"))
        keys = [name for name in ("experiment", "run_id", "rule", "fact") if name in apart.columns]
        assert getattr(together, frame).select(apart.columns).sort(keys).equals(apart.sort(keys)), frame


def test_an_unrelated_folder_beside_it_changes_no_verdict(tmp_path):
    write(tmp_path / "other" / "bench.log", log())
    alone, beside = judge(load(SWEEP)), judge(load([SWEEP, tmp_path / "other"]))
    mine = beside.verdicts.filter(experiment="swapped")
    assert mine.equals(alone.verdicts)


def test_judging_twice_says_the_same():
    first, second = judge(load(SWEEP)), judge(load(SWEEP))
    assert json_format.text(first) == json_format.text(second)
    assert text_format.text(first) == text_format.text(second)


# --- hostile evidence -----------------------------------------------------------------------------------------------


def all_said(folder: Path) -> Judgement:
    """The whole way, redacted and not; what is printed is strict JSON and names every run."""
    evidence = load(folder)
    judgement = judge(evidence)
    for one in (judgement, judge(redacted(evidence))):
        document = json.loads(json_format.text(one), parse_constant=lambda word: pytest.fail(f"{word} in JSON"))
        assert len(document["runs"]) == one.verdicts.height
        printed = text_format.text(one)
        for word in ("nan", "inf ", "None", "null"):
            assert word not in printed.lower().split(), printed
    assert judgement.verdicts["verdict"].null_count() == 0
    assert judgement.published.filter(pl.col("value").is_nan() | pl.col("value").is_infinite()).is_empty()
    return judgement


ONE = {"duration": 15.0, "completed": 1, "total_input_tokens": 256, "total_output_tokens": 128,
       "total_output_tokens_retokenized": 128, "request_throughput": 1 / 15, "input_throughput": 256 / 15,
       "output_throughput": 128 / 15, "total_throughput": 384 / 15, "concurrency": 1.0,
       "max_concurrency": 1}  # fmt: skip
ZEROS = {key: 0 for key, value in RECORD.items() if isinstance(value, int | float) and not isinstance(value, bool)}
ONE_TOKEN = details(tokens=1) | {
    "total_output_tokens": 32, "total_output_tokens_retokenized": 32, "random_output_len": 1, "duration": 9.2,
    "output_throughput": 32 / 9.2, "input_throughput": 8192 / 9.2, "request_throughput": 32 / 9.2,
    "total_throughput": 8224 / 9.2, "concurrency": 8.0, "mean_e2e_latency_ms": 2300.0,
    "median_e2e_latency_ms": 2300.0, "p99_e2e_latency_ms": 2300.0, "mean_ttft_ms": 2300.0, "median_ttft_ms": 2300.0,
    "p99_ttft_ms": 2300.0, "mean_tpot_ms": 0.0, "median_tpot_ms": 0.0, "p99_tpot_ms": 0.0, "mean_itl_ms": 0.0,
    "median_itl_ms": 0.0, "p99_itl_ms": 0.0, "p95_itl_ms": 0.0,
}  # fmt: skip
FAILED = details() | {"errors": ["timeout"] * 32, "output_lens": [0] * 32, "ttfts": [0.0] * 32, "itls": [[]] * 32,
                      "generated_texts": [""] * 32, "completed": 0, "total_output_tokens": 0,
                      "total_output_tokens_retokenized": 0, "total_input_tokens": 0}  # fmt: skip
HOSTILE_RECORDS = {
    "one request": record(**ONE | details(1)),
    "one token each": record(**ONE_TOKEN),
    "all failed": record(**FAILED),
    "all failed, without details": record(**ZEROS | {"max_concurrency": 8}),
    "no request": record(**details(0)),
    "all zero": record(**details() | ZEROS),
    "nulls": record(**dict.fromkeys(RECORD)),
    "nulls in the details": record(**dict.fromkeys(details())),
    "nulls but for its totals": record(
        **dict.fromkeys(RECORD) | {"completed": 32, "duration": 64.0, "total_output_tokens": 4096}
    ),
    "no time": record(duration=0, **details()),
    "less than no time": record(duration=-1),
    "huge": record(completed=10**15, duration=1e300, total_output_tokens=1e308),
    "tiny": record(duration=5e-324),
    "twice": record(**details()) + "\n" + record(**details()),
    "NaN": record(**{key: math.nan for key, value in RECORD.items() if isinstance(value, float)} | details()),
    "infinite": record(**{key: math.inf for key, value in RECORD.items() if isinstance(value, float)}),
}  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE_RECORDS.values(), ids=HOSTILE_RECORDS)
def test_hostile_records_are_judged(tmp_path, text):
    write(tmp_path / "r.jsonl", text + "\n")
    judgement = all_said(tmp_path)
    assert judgement.verdicts.height + judgement.evidence.unread.height >= 1


@pytest.mark.parametrize("said", ["0", "0.00", "-1.00", "nan", "inf", "1e300", "", "x", "not set"])
@pytest.mark.parametrize("which", ["/s)", "(ms)", "TPOT", "tokens", "duration", "requests", ""])
def test_hostile_blocks_are_judged(tmp_path, said, which):
    write(tmp_path / "bench.log", block(values={label: said for label in HEALTHY if which in label}))
    judgement = all_said(tmp_path)
    assert judgement.verdicts.height + judgement.evidence.unread.height >= 1


def test_no_evidence_is_no_run(tmp_path):
    write(tmp_path / "notes.txt", "x\n")
    assert text_format.text(all_said(tmp_path)).startswith("no run found")


def test_one_token_each_is_not_refused_and_has_no_speed_of_further_tokens(tmp_path):
    write(tmp_path / "r.jsonl", record(**ONE_TOKEN) + "\n")
    judgement = all_said(tmp_path)
    facts = dict(judgement.published.select("fact", "value").iter_rows())
    assert judgement.verdicts["refused_by"].to_list() == [[]]
    assert "interactivity_tok_per_s" not in facts
    assert facts["ttft_ms_mean"] == 2300


@pytest.mark.parametrize("labels", [("Mean TTFT (ms)",), ("Median TTFT (ms)",), ("Mean TTFT (ms)", "Median TTFT (ms)")])
@pytest.mark.parametrize(("said", "sure"), [("0.00", True), ("0.000", True), ("0.0", False)])
def test_a_printed_ttft_of_nothing_is_refused_without_any_other_sign(tmp_path, labels, said, sure):
    write(tmp_path / "bench.log", log(values=dict.fromkeys(labels, said)))
    (refused,) = all_said(tmp_path).verdicts["refused_by"]
    assert ("PD201" in refused) == sure  # 0.0 may hide 0.05 ms


def test_a_run_that_took_no_time_is_no_run(tmp_path):
    write(tmp_path / "bench.log", log(values={"Benchmark duration (s)": "0.00"}))
    (refused,) = all_said(tmp_path).verdicts["refused_by"]
    assert "PD407" in refused


NUMBER = st.one_of(
    st.none(), st.sampled_from([0, 1, -1, 32, 0.0, -0.0, 1e-9, 1e18, math.nan, math.inf, -math.inf, "inf", "x"])
)
ARRAY = st.one_of(st.none(), st.lists(st.sampled_from([0, 0.0, 0.1, -1.0, math.nan, None]), max_size=4))


@HOSTILE
@given(
    numbers=st.dictionaries(st.sampled_from([key for key in RECORD if key not in ("tag", "server_info")]), NUMBER),
    arrays=st.fixed_dictionaries(
        {
            "ttfts": ARRAY,
            "itls": st.one_of(ARRAY, st.lists(ARRAY, max_size=4)),
            "generated_texts": st.one_of(st.none(), st.lists(st.text(max_size=3), max_size=4)),
            "errors": st.one_of(st.none(), st.lists(st.sampled_from(["", "x", None]), max_size=4)),
            "output_lens": st.one_of(st.none(), st.lists(st.sampled_from([0, 1, 128, None]), max_size=4)),
        }
    ),
)
def test_any_record_is_judged(tmp_path_factory, numbers, arrays):
    folder = tmp_path_factory.mktemp("any")
    write(folder / "r.jsonl", json.dumps(RECORD | numbers | arrays) + "\n" + record() + "\n")
    judgement = all_said(folder)
    assert 2 in judgement.evidence.runs["source_line"].to_list()  # the healthy record behind it is not lost


LINES = [*log(), "===== concurrency=8 =====", "Killed", "Traceback (most recent call last):", "=" * 50, ""]


@HOSTILE
@given(picked=st.lists(st.integers(0, len(LINES) - 1), max_size=60), kept=st.integers(0, 40))
def test_any_lines_of_a_log_are_judged(tmp_path_factory, picked, kept):
    folder = tmp_path_factory.mktemp("any")
    write(folder / "bench.log", [*log()[:kept], *(LINES[at] for at in picked)])
    judgement = all_said(folder)
    assert judgement.evidence.sources["path"].to_list() == [str(folder / "bench.log")]
