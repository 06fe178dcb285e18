"""`sglang.bench_serving`'s captured output, every version and every way it ends."""

import pytest
from logs import (
    HEALTHY,
    RULE,
    TITLE,
    VERSIONS,
    block,
    dump,
    facts_of,
    levels,
    line,
    log,
    printed,
    read_log,
    record,
    write,
)

from pdkit.evidence import Evidence
from pdkit.judge import judge
from pdkit.load import load
from pdkit.results import NO_RESULT, Judgement

CLIENT = "/usr/lib/python3.12/site-packages/sglang/bench_serving.py"
CLIENT_CRASH = (
    "Traceback (most recent call last):",
    f'  File "{CLIENT}", line 2912, in <module>',
    "    run_benchmark(args)",
    "KeyError: 'internal_states'",
)
DRIVER_CRASH = (
    "Traceback (most recent call last):",
    '  File "/repo/test/srt/test_bench_serving.py", line 30, in test_online',
    "    self.assertGreater(res['output_throughput'], 950)",
    "AssertionError: 64.0 not greater than 950",
)
BARS = "  0%|          | 0/32 [00:00<?, ?it/s]\r 50%|█████     | 16/32 [00:32<00:32,  2.00s/it]"
LAST_BAR = "\r100%|██████████| 32/32 [01:04<00:00,  2.00s/it]"
FACT_OF_LABEL = {
    "Traffic request rate": ("request_rate_per_s", float("inf")),
    "Max request concurrency": ("concurrency", 8),
    "Successful requests": ("completed", 32),
    "Benchmark duration (s)": ("duration_s", 64),
    "Total input tokens": ("input_tok_sum", 8192),
    "Total generated tokens": ("output_tok_sum", 4096),
    "Total generated tokens (retokenized)": ("retokenized_tok_sum", 4090),
    "Request throughput (req/s)": ("request_throughput_per_s", 0.5),
    "Input token throughput (tok/s)": ("input_throughput_tok_per_s", 128),
    "Output token throughput (tok/s)": ("output_throughput_tok_per_s", 64),
    "Peak output token throughput (tok/s)": ("peak_output_throughput_tok_per_s", 80),
    "Peak concurrent requests": ("peak_running_requests", 10),
    "Total token throughput (tok/s)": ("total_throughput_tok_per_s", 192),
    "Concurrency": ("concurrency_mean", 7.5),
    "Mean E2E Latency (ms)": ("e2e_ms_mean", 15000),
    "Median E2E Latency (ms)": ("e2e_ms_median", 15010),
    "P90 E2E Latency (ms)": ("e2e_ms_p90", 15100),
    "P95 E2E Latency (ms)": ("e2e_ms_p95", 15200),
    "P99 E2E Latency (ms)": ("e2e_ms_p99", 15300),
    "Mean TTFT (ms)": ("ttft_ms_mean", 2300),
    "Median TTFT (ms)": ("ttft_ms_median", 2310),
    "P90 TTFT (ms)": ("ttft_ms_p90", 2400),
    "P95 TTFT (ms)": ("ttft_ms_p95", 2450),
    "P99 TTFT (ms)": ("ttft_ms_p99", 2500),
    "Mean TPOT (ms)": ("tpot_ms_mean", 100),
    "Median TPOT (ms)": ("tpot_ms_median", 100.1),
    "P90 TPOT (ms)": ("tpot_ms_p90", 101),
    "P95 TPOT (ms)": ("tpot_ms_p95", 101.5),
    "P99 TPOT (ms)": ("tpot_ms_p99", 102),
    "Mean ITL (ms)": ("itl_ms_mean", 100),
    "Median ITL (ms)": ("itl_ms_median", 99),
    "P90 ITL (ms)": ("itl_ms_p90", 120),
    "P95 ITL (ms)": ("itl_ms_p95", 130),
    "P99 ITL (ms)": ("itl_ms_p99", 150),
    "Max ITL (ms)": ("itl_ms_max", 200),
}


def verdicts(evidence: Evidence) -> list[str]:
    return judge(evidence).verdicts["verdict"].to_list()


def endings(evidence: Evidence) -> list[str]:
    return evidence.runs["ending"].to_list()


def rules(judgement: Judgement, severity: str) -> set[str]:
    return set(judgement.views.filter(judgement.views["severity"] == severity)["rule"])


# --- the block, by version ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_says_what_it_prints_and_nothing_else(tmp_path, version):
    evidence = read_log(tmp_path, block(version))
    expected = {fact: value for label, (fact, value) in FACT_OF_LABEL.items() if printed(label, version)}
    assert facts_of(evidence) == expected
    assert evidence.runs.select("tool", "backend", "complete").row(0) == ("sglang", "sglang", True)


def test_a_printed_number_is_off_by_half_its_last_digit(tmp_path):
    evidence = read_log(tmp_path, block())
    off = dict(evidence.claims.select("fact", "resolution").iter_rows())
    assert (off["duration_s"], off["completed"], off["concurrency"]) == (0.005, 0.0, 0.0)


def test_every_claim_cites_its_line(tmp_path):
    lines = ["first", *block()]
    evidence = read_log(tmp_path, lines)
    for fact, at in evidence.claims.select("fact", "source_line").iter_rows():
        label = next(label for label, (name, _) in FACT_OF_LABEL.items() if name == fact)
        assert lines[at - 1].startswith(f"{label}:")


def test_the_rust_client_is_told_by_its_protocol(tmp_path):
    start = "Running 32 requests on 4 worker threads (concurrency: 8)..."
    evidence = read_log(tmp_path, [start, *block(values={"Protocol": "http"}), "Result appended to r.jsonl"])
    assert evidence.runs.select("client_definition", "complete").row(0) == ("rust", True)
    assert facts_of(evidence)["requests_dispatched"] == 32


def test_an_all_failed_rust_run_has_no_result(tmp_path):
    zeros = {label: "0.00" for label in HEALTHY if "(ms)" in label or "/s)" in label}
    nan = {label: "NaN" for label in HEALTHY if "E2E" in label}
    counts = {
        "Protocol": "http", "Successful requests": "0", "Total generated tokens": "0", "Total input tokens": "0",
        "Total generated tokens (retokenized)": "0", "Concurrency": "-0.00", "Benchmark duration (s)": "0.42",
    }  # fmt: skip
    tail = ["", "32 of 32 requests failed.", "  32 x the response contained no generated tokens"]
    evidence = read_log(
        tmp_path, ["Running 32 requests on 4 worker threads", *block(values=zeros | nan | counts), *tail]
    )
    facts = facts_of(evidence)
    assert (facts["completed"], facts["requests_failed_said"], facts["e2e_ms_mean"]) == (0, 32, None)
    assert evidence.claims.filter(fact="e2e_ms_mean")["printed"].to_list() == ["NaN"]
    assert verdicts(evidence) == [NO_RESULT]


def test_a_rust_client_told_not_to_count_is_not_accused(tmp_path):
    said = "Running without a tokenizer (--vocab-size given); retokenized totals report 0."
    values = {"Protocol": "http", "Total generated tokens (retokenized)": "0"}
    evidence = read_log(tmp_path, ["Running 32 requests on 4 worker threads", said, *block(values=values)])
    assert evidence.runs["retokenizes"].to_list() == [False]
    assert verdicts(evidence) == ["unverified"]


def test_goodput_lines_are_read(tmp_path):
    values = {
        "SLOs (ms)": "ttft:500 tpot:30", "Request goodput (req/s)": "0.45", "SLO attainment (%)": "90.00",
        "TTFT SLO attainment (%)": "91.00", "Accept length": "2.50",
    }  # fmt: skip
    facts = facts_of(read_log(tmp_path, block(values=values)))
    assert (facts["request_goodput_per_s"], facts["slo_attainment_ratio"], facts["accept_length"]) == (0.45, 0.9, 2.5)


def test_the_cache_report_keeps_its_count_though_its_labels_come_twice(tmp_path):
    report = [
        f"{'Cache Hit Details':-^50}",
        line("Total prompt tokens", "8192"),
        line("Total cached tokens", "4096"),
        line("  Device", "4000"),
        line("  Host", "96"),
        line("Cache hit rate", "50.0%"),
        line("  Device", "48.8%"),
        line("  Host", "1.2%"),
    ]
    evidence = read_log(tmp_path, [*block()[:-1], *report, RULE])
    assert facts_of(evidence)["cached_tok_sum"] == 4096
    assert evidence.runs["complete"].to_list() == [True]
    assert evidence.unread.is_empty()


def test_embeddings_have_no_output_and_are_not_refused_for_it(tmp_path):
    evidence = read_log(
        tmp_path,
        log(values={"Backend": "sglang-embedding"})[:-42]
        + block(values={"Backend": "sglang-embedding"}, embedding=True),
    )
    facts = facts_of(evidence)
    assert "output_tok_sum" not in facts
    assert "ttft_ms_mean" not in facts
    assert evidence.runs["complete"].to_list() == [True]
    assert verdicts(evidence) == ["unverified"]


@pytest.mark.parametrize(("said", "value"), [("not set", float("inf")), ("inf", float("inf")), ("16", 16)])
def test_not_set_says_no_limit(tmp_path, said, value):
    assert facts_of(read_log(tmp_path, block(values={"Max request concurrency": said})))["concurrency"] == value


def test_a_trace_has_no_rate(tmp_path):
    evidence = read_log(tmp_path, block(values={"Traffic request rate": "trace"}))
    assert "request_rate_per_s" not in facts_of(evidence)
    assert evidence.unread.is_empty()


@pytest.mark.parametrize("said", ["nan", "inf", "-inf"])
def test_a_number_that_is_none_is_no_zero(tmp_path, said):
    evidence = read_log(tmp_path, block(values={"Mean E2E Latency (ms)": said}))
    assert evidence.claims.filter(fact="e2e_ms_mean").select("value", "printed").row(0) == (None, said)
    assert "PD209" in rules(judge(evidence), "refuse")


@pytest.mark.parametrize("label", ["Successful requests", "Benchmark duration (s)"])
@pytest.mark.parametrize("said", ["nan", "inf", "NaN"])
def test_a_block_without_a_number_that_it_must_have_is_not_whole(tmp_path, label, said):
    evidence = read_log(tmp_path, log(values={label: said}))
    assert evidence.runs["complete"].to_list() == [False]
    assert endings(evidence) == [f"its block has no number for {label}"]
    assert "PD401" in rules(judge(evidence), "refuse")


@pytest.mark.parametrize(
    "said",
    [
        "3x2",
        "1,024.00",
        "",
        "12.3.4",
        "32  100%|███| 1/1",
        "1_000",
        "\uff13\uff12",
        "\u0663\u0662",
        "+32",
        "3 2",
        "infinity",
    ],
)
def test_a_damaged_number_is_said_and_not_guessed(tmp_path, said):
    evidence = read_log(tmp_path, block(values={"Successful requests": said}))
    assert "completed" not in facts_of(evidence)
    assert evidence.unread.select("source_line", "text").row(0)[0] == 5
    assert "Successful requests" in evidence.unread["text"][0]
    assert verdicts(evidence) == [NO_RESULT]


# --- before the block -----------------------------------------------------------------------------------------------


def test_of_two_dumps_the_second_counts(tmp_path):
    lines = log(arguments={"num_prompts": 32, "model": "resolved"})
    lines[0] = f"benchmark_args={dump({'num_prompts': 1000, 'model': None, 'port': None})}"
    evidence = read_log(tmp_path, lines)
    assert evidence.runs.height == 1
    assert facts_of(evidence)["prompts_asked"] == 32
    assert evidence.runs["model"].to_list() == ["resolved"]


def test_arguments_are_read_as_literals(tmp_path):
    evidence = read_log(tmp_path, log())
    facts = facts_of(evidence)
    assert (facts["prompts_asked"], facts["output_tok_asked_each"]) == (32, 128)
    assert (facts["input_tok_asked"], facts["output_tok_asked"]) == (8192, 4096)
    row = evidence.runs.select("client_definition", "model", "dataset", "ignore_eos", "streaming", "seed").row(0)
    assert row == ("python", "Qwen/Qwen3-8B", "random", True, True, 42)


@pytest.mark.parametrize(
    ("arguments", "ignores"),
    [
        ({"disable_ignore_eos": True}, False),
        ({"extra_request_body": '{"ignore_eos": false}'}, None),
        ({"extra_request_body": '{"top_k": 1}'}, True),
    ],
)
def test_whether_the_end_token_was_ignored(tmp_path, arguments, ignores):
    assert read_log(tmp_path, log(arguments=arguments)).runs["ignore_eos"].to_list() == [ignores]


@pytest.mark.parametrize("ratio", [0.0, 0.5])
def test_random_lengths_are_no_single_length(tmp_path, ratio):
    assert "output_tok_asked_each" not in facts_of(read_log(tmp_path, log(arguments={"random_range_ratio": ratio})))


def test_a_simple_namespace_is_a_dump_too(tmp_path):
    lines = [f"benchmark_args={dump(name='namespace')}", dump(name="namespace"), *block()]
    assert facts_of(read_log(tmp_path, lines))["prompts_asked"] == 32


@pytest.mark.parametrize("evil", ["__import__('os').system('touch owned')", "open('owned', 'w')", "(" * 5000, "1 +"])
def test_a_dump_is_never_evaluated(tmp_path, monkeypatch, evil):
    monkeypatch.chdir(tmp_path)
    evidence = read_log(tmp_path, [f"Namespace(backend='sglang', num_prompts=32, model={evil})", *block()])
    assert not (tmp_path / "owned").exists()
    assert evidence.runs["complete"].to_list() == [True]


def test_statistics_of_a_prefix_data_set_are_not_the_result(tmp_path):
    lines = log(arguments={"dataset_name": "generated-shared-prefix", "gsp_num_groups": 4, "gsp_prompts_per_group": 8})
    before = ["Generated shared prefix dataset statistics:", "Number of groups: 4", "Prompts per group: 8",
              "Total prompts: 32", "Total input tokens: 99999", "Total output tokens: 88888"]  # fmt: skip
    evidence = read_log(tmp_path, [*lines[:3], *before, *lines[5:]])
    facts = facts_of(evidence)
    assert (evidence.runs.height, facts["input_tok_sum"], facts["prompts_asked"]) == (1, 8192, 32)


def test_a_bar_tells_how_many_were_sent(tmp_path):
    lines = log()
    lines[7] = BARS + LAST_BAR
    evidence = read_log(tmp_path, lines)
    assert facts_of(evidence)["requests_dispatched"] == 32


def test_text_glued_to_a_bar_is_read(tmp_path):
    lines = log()
    glued = [*lines[:7], f"{BARS}\r\r{CLIENT_CRASH[0]}", *CLIENT_CRASH[1:]]
    assert endings(read_log(tmp_path, glued)) == ["KeyError: 'internal_states'"]
    bar_and_title = [*lines[:8], BARS + LAST_BAR + "\r" + lines[8], *lines[9:]]
    assert read_log(tmp_path, bar_and_title, "b.log").runs["complete"].to_list() == [True]


def test_errors_of_single_requests_end_nothing(tmp_path):
    lines = log()
    errors = ["output.error='Traceback (most recent call last):\\n'", *CLIENT_CRASH[:3],
              "aiohttp.client_exceptions.ClientPayloadError: Response payload is not completed", "'"]  # fmt: skip
    evidence = read_log(tmp_path, [*lines[:7], *errors * 3, *lines[7:]])
    assert evidence.runs.select("complete", "crashed_after").rows() == [(True, False)]
    assert facts_of(evidence)["completed"] == 32


# --- runs without a result ------------------------------------------------------------------------------------------

NO_BLOCK = {
    "crash": ([*log()[:7], *CLIENT_CRASH], "KeyError: 'internal_states'"),
    "warm-up": (
        [*log()[:6], *CLIENT_CRASH[:3], "ValueError: Warmup failed - Please make sure benchmark arguments are correct"],
        "ValueError: Warmup failed",
    ),
    "all failed": (
        [*log()[:7], f"{CLIENT}:2000: UserWarning: All requests failed. Please check", *CLIENT_CRASH[:3],
         "IndexError: index -1 is out of bounds for axis 0 with size 0"],
        "All requests failed; IndexError",
    ),
    "killed": ([*log()[:7], BARS, "Killed"], "Killed"),
    "interrupted": ([*log()[:7], *CLIENT_CRASH[:3], "KeyboardInterrupt"], "KeyboardInterrupt"),
    "server not ready": (
        [log()[0], "Server did not become ready within 60s timeout.", "Server at http://h:1 is not ready. Exiting."],
        "Server at",
    ),
    "cut off": ([*log()[:7], "something else"], "its last line is: something else"),
    "a shell error": (["bash: /run_pd_bench.sh: No such file or directory"], "bash: /run_pd_bench.sh"),
    "no command": (["+ run", "/bin/sh: 1: pdbench: command not found"], "/bin/sh"),
    "only a heading": (["===== PD concurrency=16 (n=32) ====="], "its last line is: ===== PD"),
}  # fmt: skip


@pytest.mark.parametrize(("lines", "ending"), NO_BLOCK.values(), ids=NO_BLOCK)
def test_a_run_without_a_block_is_a_run_without_a_result(tmp_path, lines, ending):
    evidence = read_log(tmp_path, lines)
    assert evidence.runs["complete"].to_list() == [False]
    assert endings(evidence)[0].startswith(ending)
    assert verdicts(evidence) == [NO_RESULT]
    asked = {"prompts_asked", "concurrency", "request_rate_per_s", "output_tok_asked_each", "requests_dispatched",
             "input_tok_asked", "output_tok_asked"}  # fmt: skip
    assert set(facts_of(evidence)) <= asked


def test_an_empty_log_that_was_named_is_a_run_without_a_result(tmp_path):
    assert endings(read_log(tmp_path, "")) == ["empty file"]


@pytest.mark.parametrize("kept", range(2, 40, 4))
def test_a_block_that_is_cut_off_is_no_result(tmp_path, kept):
    lines = log()
    evidence = read_log(tmp_path, lines[: 8 + kept])
    assert evidence.runs["complete"].to_list() == [False]
    assert verdicts(evidence) == [NO_RESULT]


def test_a_block_that_is_cut_off_is_not_closed_by_the_next_heading(tmp_path):
    cut = ["===== concurrency=8 =====", *log()[:20]]
    evidence = read_log(tmp_path, [*cut, "===== concurrency=16 =====", *log(arguments={"max_concurrency": 16})])
    assert evidence.runs["complete"].to_list() == [False, True]


def test_a_ruler_of_the_script_does_not_close_a_block(tmp_path):
    cut = log()[:20]
    evidence = read_log(tmp_path, [*cut, "=" * 80, "next"])
    assert evidence.runs["complete"].to_list() == [False]


def test_a_shells_complaint_in_a_long_log_is_no_run(tmp_path):
    other = [f"step {i}" for i in range(30)]
    evidence = load(write(tmp_path / "build.log", [*other, "bash: foo: command not found", *other]).parent)
    assert evidence.runs.is_empty()
    assert evidence.sources["reason"].to_list() == ["no reader knows this format"]


# --- after the block ------------------------------------------------------------------------------------------------


def test_a_client_that_crashes_after_its_block_is_doubted(tmp_path):
    evidence = read_log(tmp_path, [*log(), *CLIENT_CRASH])
    assert evidence.runs.select("complete", "crashed_after", "ending").row(0) == (
        True,
        True,
        "KeyError: 'internal_states'",
    )
    assert "PD402" in rules(judge(evidence), "suspect")


@pytest.mark.parametrize(
    "after",
    [
        DRIVER_CRASH,
        (DRIVER_CRASH[0], '  File "/repo/plot_bench_serving.py", line 3, in <module>', *DRIVER_CRASH[2:]),
        ("Exception ignored in: <function _f at 0x7f>", *CLIENT_CRASH),
        ("Killed",),
    ],
    ids=["test driver", "plotter", "ignored", "killed"],
)
def test_another_programs_end_is_no_doubt(tmp_path, after):
    evidence = read_log(tmp_path, [*log(), *after])
    assert evidence.runs.select("complete", "crashed_after").row(0) == (True, False)
    assert "PD402" not in rules(judge(evidence), "suspect")


# --- several runs in a file -----------------------------------------------------------------------------------------


def at_level(users: int) -> list[str]:
    """The same 32 requests, faster with more users: 8 tok/s a user."""
    values = {
        "Max request concurrency": str(users),
        "Benchmark duration (s)": f"{512 / users:.2f}",
        "Request throughput (req/s)": f"{users / 16:.2f}",
        "Input token throughput (tok/s)": f"{16 * users:.2f}",
        "Output token throughput (tok/s)": f"{8 * users:.2f}",
        "Total token throughput (tok/s)": f"{24 * users:.2f}",
        "Concurrency": f"{0.9375 * users:.2f}",
    }
    return log(values=values, arguments={"max_concurrency": users})


HEADINGS = (
    "===== PD concurrency={users} (n={n}) =====",
    "=== concurrency: {users} ===",
    "--- users={users} ---",
    "### conc={users}, n={n}",
    "*** running with max-concurrency {users} ***",
    "== Concurrency {users} ==",
    "=== {users} users ===",
    "## {users} concurrent users, {n} prompts",
    "===== C={users} =====",
)


@pytest.mark.parametrize("heading", HEADINGS)
def test_a_sweep_is_a_run_a_level(tmp_path, heading):
    lines = [text for users in (1, 8, 16) for text in [heading.format(users=users, n=32), *at_level(users)]]
    evidence = read_log(tmp_path, [*lines, "ALL_DONE"])
    assert levels(evidence) == [1, 8, 16]
    assert evidence.runs["complete"].to_list() == [True] * 3


@pytest.mark.parametrize("heading", HEADINGS)
def test_a_level_that_crashed_at_once_is_there_without_a_result(tmp_path, heading):
    first, second = (heading.format(users=users, n=32) for users in (8, 16))
    evidence = read_log(tmp_path, [first, *at_level(8), second])
    assert levels(evidence) == [8, 16]
    assert evidence.runs["complete"].to_list() == [True, False]


def test_runs_without_headings_are_told_by_their_dumps(tmp_path):
    evidence = read_log(tmp_path, [*at_level(1), *at_level(8), *at_level(16)[:7]])
    assert levels(evidence) == [1, 8, 16]
    assert evidence.runs["complete"].to_list() == [True, True, False]


def swept(*templates: str, last: tuple[str, ...] = ()) -> list[str]:
    """A sweep of three levels: the first template before each, the second behind it."""
    before, after = templates
    parts = [[before.format(users=u, n=32), *at_level(u), after.format(users=u, n=32)] for u in (1, 8, 16)]
    return [text for part in parts for text in part if text] + [*last, "ALL_DONE"]


ENDINGS = (
    "===== concurrency={users} done =====",
    "=== finished {users} users ===",
    "--- End of concurrency={users} ---",
    "### conc={users}, n={n}: completed in 64 s",
    "=== Benchmark complete: {users} users ===",
    "== concurrency {users} (exit code 0) ==",
    "--- users={users} took 64 s ---",
    "===== concurrency={users} =====",
    "=== {users} users results above ===",
)


@pytest.mark.parametrize("before", ["", "===== concurrency={users} start =====", "===== concurrency={users} ====="])
@pytest.mark.parametrize("after", ENDINGS)
def test_a_heading_that_closes_a_level_begins_no_run(tmp_path, before, after):
    evidence = read_log(tmp_path, swept(before, after))
    assert levels(evidence) == [1, 8, 16]
    assert evidence.runs["complete"].to_list() == [True] * 3
    assert "PD315" not in rules(judge(evidence), "suspect")


REMARKS = (
    "=== Summary: best at 8 users ===",
    "--- note: 64 users expected ---",
    "=== Sweep done: 3 levels, 64 users max ===",
    "=== Results for 8 users ===",
    "=== Peak throughput at concurrency=16 ===",
    "=== Sweep over concurrency: 1 8 16 ===",
    "=== Sweep over concurrency=1,8,16 ===",
    "=== 1 to 64: concurrency 1-64 ===",
    "=== up to 64 users ===",
)


@pytest.mark.parametrize("remark", REMARKS)
def test_a_heading_that_only_speaks_of_levels_begins_no_run(tmp_path, remark):
    lines = swept("=== concurrency={users} ===", "", last=(remark,))
    for name, given in {"last": lines, "first": [remark, *lines], "inside": [*lines[:9], remark, *lines[9:]]}.items():
        evidence = read_log(tmp_path, given, f"{name}.log")
        assert levels(evidence) == [1, 8, 16], name
        assert evidence.runs["complete"].to_list() == [True] * 3, name
        assert "PD315" not in rules(judge(evidence), "suspect"), name


@pytest.mark.parametrize(
    "heading",
    [
        *HEADINGS,
        "=== warmup done, starting concurrency={users} ===",
        "=== server startup complete; {users} users ===",
        "=== end-to-end, concurrency={users} ===",
        "=== concurrency={users} (expected: {n} requests, results in out/c{users}.jsonl) ===",
        "=== concurrency={users}, best of 3 ===",
        "===== concurrency={users} start =====",
        "=== users={users} 2026-08-22 10:00:15 ===",
    ],
)
def test_levels_that_were_announced_and_never_ran_are_missing(tmp_path, heading):
    announced = [heading.format(users=users, n=32) for users in (8, 16, 64)]
    evidence = read_log(tmp_path, [*at_level(1), *announced, "ALL_DONE"])
    assert levels(evidence) == [1, 8, 16, 64]
    assert evidence.runs["complete"].to_list() == [True, False, False, False]


def test_a_level_that_failed_and_says_so_is_one_run(tmp_path):
    failed = ["=== c=8 start ===", *at_level(8)[:7], *CLIENT_CRASH, "=== c=8 failed (rc=1) ==="]
    silent = ["=== c=16 start ===", "=== c=16 done ==="]
    evidence = read_log(tmp_path, [*failed, *silent, *at_level(64)])
    assert levels(evidence) == [8, 16, 64]
    assert evidence.runs["complete"].to_list() == [False, False, True]


def test_a_run_that_crashed_behind_a_closing_heading_is_not_the_run_before(tmp_path):
    crashed = log(arguments={"max_concurrency": 16})[0]
    evidence = read_log(tmp_path, [*at_level(8), "=== c=8 done ===", crashed, "=== c=16 done ===", crashed])
    assert evidence.runs["complete"].to_list() == [True, False, False]


def test_the_same_level_at_another_rate_is_another_run(tmp_path):
    lines = ["=== users=8 rate=4 ===", *at_level(8), "=== users=8 rate=16 ==="]
    assert read_log(tmp_path, lines).runs["complete"].to_list() == [True, False]


def test_the_same_level_that_starts_again_is_another_run(tmp_path):
    lines = ["=== starting users=8 ===", *at_level(8), "=== starting users=8 ==="]
    assert read_log(tmp_path, lines).runs["complete"].to_list() == [True, False]


def test_a_heading_gives_a_filtered_block_its_level_from_either_side(tmp_path):
    numbers = filtered("Successful", "duration", "Output token", "TTFT")
    numbers = [text for text in numbers if "PD conc" not in text]
    half = len(numbers) // 2
    for name, (first, second) in {
        "before": ("=== Results for {} users ===", ""), "after": ("", "=== {} users done ==="),
    }.items():  # fmt: skip
        one, eight = (
            [first.format(u), *part, second.format(u)] for u, part in ((1, numbers[:half]), (8, numbers[half:]))
        )
        assert levels(read_log(tmp_path, [*one, *eight], f"{name}.log")) == [1, 8]


def test_two_blocks_alone_are_two_runs(tmp_path):
    evidence = read_log(tmp_path, [*block(), *block(values={"Successful requests": "33"})])
    assert [facts_of(evidence, run)["completed"] for run in (0, 1)] == [32, 33]


def test_a_crash_between_two_levels_belongs_to_its_own(tmp_path):
    evidence = read_log(tmp_path, [*at_level(1), *at_level(8)[:7], *CLIENT_CRASH, *at_level(16)])
    assert evidence.runs.select("complete", "ending").rows() == [
        (True, None), (False, "KeyError: 'internal_states'"), (True, None),
    ]  # fmt: skip


def test_a_heading_that_disagrees_with_the_arguments_is_a_finding(tmp_path):
    evidence = read_log(tmp_path, ["===== PD concurrency=16 (n=32) =====", *at_level(8)])
    judgement = judge(evidence)
    told = judgement.findings.filter(rule="PD315")
    assert evidence.runs.height == 1
    assert "concurrency: 8" in told["sentence"][0]
    assert "16" in told["sentence"][0]
    assert {text.rpartition(":")[2] for text in told["lines"][0]} >= {"1"}


def test_the_same_heading_twice_is_one_run(tmp_path):
    evidence = read_log(tmp_path, ["=== concurrency=8 ===", "--- concurrency=8, n=32 ---", *at_level(8)])
    assert evidence.runs.height == 1


def filtered(*words: str) -> list[str]:
    lines = [text for users in (1, 8) for text in [f"===== PD concurrency={users} (n=32) =====", *at_level(users)]]
    return [text for text in lines if any(word in text for word in words)]


def test_a_filtered_sweep_keeps_its_levels_and_is_unverified(tmp_path):
    evidence = read_log(tmp_path, filtered("=====", "Backend", "Successful", "duration", "Output token", "TTFT"))
    assert levels(evidence) == [1, 8]
    numbers_only = filtered("PD conc", "Successful", "duration", "Output token", "TTFT")
    evidence = read_log(tmp_path, numbers_only, "numbers.log")
    assert evidence.runs["complete"].to_list() == [None, None]
    assert verdicts(evidence) == ["unverified", "unverified"]


def test_a_filtered_log_without_headings_still_tells_its_runs(tmp_path):
    lines = [text for text in filtered("Successful", "duration", "Mean E2E", "retokenized") if "PD conc" not in text]
    evidence = read_log(tmp_path, lines)
    assert [facts_of(evidence, run)["completed"] for run in (0, 1)] == [32, 32]
    assert [facts_of(evidence, run)["e2e_ms_mean"] for run in (0, 1)] == [15000, 15000]


def test_lines_of_two_clients_that_are_mixed_are_no_result(tmp_path):
    """Two containers in one log: whose number is whose, nobody can tell."""
    pairs = zip(at_level(8), at_level(16), strict=True)
    evidence = read_log(tmp_path, [f"bench-{i}  | {text}" for pair in pairs for i, text in enumerate(pair, 1)])
    assert True not in evidence.runs["complete"].to_list()
    assert any("two results are mixed" in ending for ending in endings(evidence))
    assert set(verdicts(evidence)) == {NO_RESULT}


def test_a_filtered_block_after_a_whole_one_is_a_run_of_its_own(tmp_path):
    evidence = read_log(tmp_path, [*at_level(8), *filtered("Successful", "duration", "Output token")[:3]])
    assert evidence.runs["complete"].to_list() == [True, None]
    assert facts_of(evidence)["duration_s"] == 64


def test_an_indented_log_is_whole(tmp_path):
    assert read_log(tmp_path, [f"    {text}" for text in log()]).runs["complete"].to_list() == [True]


# --- not this client's ----------------------------------------------------------------------------------------------

FOREIGN = [text for text in block() if not text.startswith("Backend") and "retokenized" not in text]


def test_a_block_without_backend_and_retokenized_is_another_clients(tmp_path):
    evidence = read_log(tmp_path, FOREIGN)
    assert evidence.runs.is_empty()
    assert "another client" in evidence.unread["reason"][0]


def test_vllms_block_is_not_taken_for_sglangs(tmp_path):
    vllm = [
        "Namespace(version=False, backend='openai', percentile_metrics='ttft,tpot,itl', burstiness=1.0)",
        TITLE,
        line("Successful requests", "32"),
        line("Maximum request concurrency", "8"),
        line("Benchmark duration (s)", "64.00"),
        line("Total input tokens", "8192"),
        line("Total generated tokens", "4096"),
        line("Output token throughput (tok/s)", "64.00"),
        line("Mean TTFT (ms)", "2300.00"),
        RULE,
    ]
    assert read_log(tmp_path, vllm).runs.is_empty()
    both = read_log(tmp_path, [*vllm, *log()], "both.log")
    assert both.runs.select("backend", "complete").rows() == [("sglang", True)]
    assert both.unread.height == 1


SERVERS = (
    "args: Namespace(subparser='serve', model_tag='Qwen/Qwen3-8B', port=8000)",
    "Namespace(attention_backend='fa3', base_url='http://h:1', dataset_name=None)",
    "INFO 08-22 10:00:15 api_server.py:9] args: Namespace(host=None, distributed_executor_backend='mp')",
    "router_args=Namespace(backend='sglang', host='0.0.0.0', pd_disaggregation=True)",
)


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("at", [0, 1, 2, 5, 20, 99])
def test_the_arguments_of_a_server_are_no_run(tmp_path, server, at):
    lines = ["=== concurrency=8 ===", *log()]
    evidence = read_log(tmp_path, [*lines[:at], server, *lines[at:]])
    assert evidence.runs.select("complete", "model").rows() == [(True, "Qwen/Qwen3-8B")]
    assert levels(evidence) == [8]
    assert facts_of(evidence)["prompts_asked"] == 32


@pytest.mark.parametrize(
    "text",
    [
        '{"line": "============ Serving Benchmark Result ============"}',
        "print('Successful requests: 3')",
        "def f():\n    # ===== concurrency=8 =====\n    pass",
        "[2026-08-22 10:00:15] Decode batch, #running-req: 2, #token: 1206",
    ],
)
def test_what_only_looks_like_it_is_not_read(tmp_path, text):
    assert load(write(tmp_path / "other.txt", text).parent).runs.is_empty()


def test_a_record_that_quotes_a_traceback_is_a_record(tmp_path):
    write(tmp_path / "r.jsonl", record(errors=["\n".join(CLIENT_CRASH)] * 32) + "\n")
    assert load(tmp_path).runs["reader"].to_list() == ["sglang_bench_record"]


@pytest.mark.parametrize(
    "heading",
    ["=== Max concurrency: {} ===", "=== concurrency={} server ok ===", "=== concurrency={} exit on error ===",
     "=== Concurrency: {} (retry after 1 failed) ===", "=== c={} 1024 1024 ===", "=== up to {} users ==="],
)  # fmt: skip
def test_a_level_that_died_is_missing_whatever_words_its_heading_has(tmp_path, heading):
    """Its heading is made like those of the levels that are there."""
    blocks = {8: block(), 1: block(values={"Max request concurrency": "1", "Successful requests": "31"})}
    lines = [line for users, of in blocks.items() for line in (heading.format(users), *of)]
    evidence = load(write(tmp_path / "sweep.log", [*lines, heading.format(16), "some other line"]))
    verdicts = judge(evidence).verdicts.select("concurrency", "verdict")
    assert dict(verdicts.rows())[16] == "no measured result"
    assert verdicts.height == 3
