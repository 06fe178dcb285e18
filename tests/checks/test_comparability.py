"""PD7xx, PD902-906: rules about a pair fire on its planted fault, and are quiet on what is unknown or no fault."""

from typing import Any

import polars as pl
import pytest
from given import evidence, judged, outcome, verdict

from pdkit.evidence import Evidence
from pdkit.judge import judge
from pdkit.load import same_runs
from pdkit.parts import register_checks
from pdkit.results import Judgement
from pdkit.rules import CHECKS, Pairs

register_checks()
OF_REPEATS = ("PD902", "PD903", "PD904", "PD905", "PD906")
RULES = sorted(rule for rule in CHECKS if CHECKS[rule].family == "comparability" or rule in OF_REPEATS)
Given = dict[str, Any]


def beside(repeats: float = 3, unlike: str = "", **facts: float) -> Given:
    """What the runs beside it tell of a run."""
    return {"said": {"level_repeats": repeats, "repeats_unlike": unlike, **facts}}


def called(low: float, high: float, *, p: float = 0.01, levels: float = 1) -> Given:
    """A run of three whose ratio lies in an interval; the line is at 3 %."""
    return beside(call_low=low, call_high=high, call_delta=0.03, call_p=p, calls_tested=levels)


# (rule, outcome, what is planted into the baseline, what into the candidate)
FAULTS: list[tuple[str, str, Given, Given]] = [
    ("PD701", "refuse", {"settings": {"model": "Qwen/Qwen3-8B"}}, {"settings": {"model": "Qwen/Qwen3-8B-FP8"}}),
    ("PD701", "refuse", {"settings": {"model": "/models/Qwen3-4B/"}}, {"settings": {"model": "Qwen/Qwen3-8B"}}),
    ("PD701", "refuse", {"settings": {"precision": "fp8"}}, {"settings": {"precision": "w8a8_int8"}}),
    ("PD702", "refuse", {}, {"input_tok_sum": 40_801}),
    ("PD702", "refuse", {}, {"output_tok_sum": 39_199}),
    ("PD702", "refuse", {}, {"settings": {"dataset": "sharegpt"}}),
    ("PD702", "note", {"settings": {"seed": 1}}, {"settings": {"seed": 2}}),
    ("PD703", "refuse", {}, {"concurrency": 8}),
    ("PD703", "refuse", {"request_rate_per_s": 2}, {}),
    ("PD704", "refuse", {"settings": {"topology": "colocated"}}, {"settings": {"topology": "1p1d"}}),
    ("PD704", "refuse", {"settings": {"topology": "colocated"}, "gpu_count": 1}, {"settings": {"topology": "1p1d"}}),
    ("PD705", "refuse", {"cached_tok_sum": 0}, {"cached_tok_sum": 401}),
    ("PD706", "suspect", {}, {"settings": {"tool": "vllm"}}),
    ("PD706", "suspect", {}, {"settings": {"client_definition": "rust"}}),
    ("PD706", "suspect", {"settings": {"tool_version": "0.5.4"}}, {"settings": {"tool_version": "0.5.8"}}),
    ("PD706", "suspect", {}, {"settings": {"backend": "sglang-oai"}}),
    ("PD707", "suspect", {}, {"settings": {"server_version": "0.5.24", "dataset": "sharegpt"}}),
    ("PD708", "refuse", {}, {"settings": {"ignore_eos": False}}),
    ("PD708", "suspect", {}, {"accept_length": 2.7}),
    ("PD708", "suspect", {"accept_length": 2.7}, {}),
    ("PD709", "refuse", {"retokenized_tok_sum": 0}, {}),
    ("PD709", "refuse", {}, {"retokenized_tok_sum": 0}),
    ("PD710", "note", beside(2), beside(2, side_changes=1)),
    ("PD710", "note", beside(1), beside(1, hours_apart=24.1)),
    ("PD711", "suspect", {}, {"settings": {"server_version": "0.5.24"}}),
    ("PD711", "suspect", {}, {"settings": {"backend": "vllm"}}),
    ("PD711", "suspect", {"settings": {"precision": "fp8"}}, {"settings": {"precision": "w8a8_int8"}}),
    ("PD712", "suspect", {}, {"completed": 395}),
    ("PD713", "refuse", {}, {"retokenized_tok_sum": 37_000}),
    ("PD713", "refuse", {"retokenized_tok_sum": 37_000}, {}),
    ("PD902", "refuse", beside(3), beside(2)),
    ("PD902", "refuse", beside(1), beside(3)),
    ("PD902", "refuse", beside(3), beside(3, "engine version (0.5.23 and 0.5.24)")),
    ("PD902", "refuse", beside(3, "engine version (0.5.23 and 0.5.24)"), beside(3)),
    ("PD903", "note", beside(3), called(1.0, 1.031)),
    ("PD903", "note", beside(3), called(1.02, 1.2)),
    ("PD903", "note", beside(3), called(0.96, 1.0)),
    ("PD903", "note", beside(3), called(0.9, 1.1)),
    ("PD904", "suspect", beside(3), beside(3, repeats_cv=0.051)),
    ("PD904", "suspect", beside(3, repeats_cv=0.051), beside(3, repeats_cv=0.01)),
    ("PD905", "note", {}, beside(1, ttft_modes=2)),
    ("PD906", "note", beside(3), called(1.04, 1.1, p=0.051, levels=4)),
    ("PD906", "note", beside(3), called(0.8, 0.96, p=0.051, levels=2)),
]

# (rule, why the pair is comparable all the same, what is given to the baseline, what to the candidate)
EXCEPTIONS: list[tuple[str, str, Given, Given]] = [
    ("PD701", "a path and a public name", {"settings": {"model": "Qwen/Qwen3-8B"}}, {"settings": {"model": "/models/qwen3-8b/"}}),
    ("PD701", "a folder of the cache", {"settings": {"model": "Qwen/Qwen3-8B"}}, {"settings": {"model": "/models/hub/models--Qwen--Qwen3-8B/snapshots/9c925d"}}),
    ("PD701", "one side does not say", {"settings": {"model": None}}, {}),
    ("PD701", "one side does not say its precision", {"settings": {"precision": "fp8"}}, {}),
    ("PD702", "lengths 2 % off", {}, {"input_tok_sum": 40_800, "output_tok_sum": 39_200}),
    ("PD702", "fewer requests of one length", {}, {"completed": 200, "input_tok_sum": 20_000, "output_tok_sum": 20_000}),
    ("PD702", "a data set is not stated", {}, {"settings": {"dataset": None}}),
    ("PD702", "a seed is not stated", {"settings": {"seed": 1}}, {}),
    ("PD703", "a rate is not stated", {"request_rate_per_s": None}, {}),
    ("PD704", "per GPU", {"settings": {"topology": "colocated", "gpu": "NVIDIA L4"}, "gpu_count": 1}, {"settings": {"topology": "1p1d", "gpu": "NVIDIA L4"}, "gpu_count": 2}),
    ("PD704", "a topology is not stated", {}, {"settings": {"topology": "1p1d"}}),
    ("PD705", "one point apart", {"cached_tok_sum": 0}, {"cached_tok_sum": 400}),
    ("PD705", "unknown on one side", {}, {"cached_tok_sum": 20_000}),
    ("PD706", "a version is not stated", {}, {"settings": {"tool_version": "0.5.8"}}),
    ("PD707", "topology and number of GPUs", {"settings": {"topology": "colocated"}, "gpu_count": 1}, {"settings": {"topology": "1p1d"}, "gpu_count": 2}),
    ("PD707", "another client is one thing", {}, {"settings": {"tool": "vllm", "client_definition": "vllm", "backend": "vllm"}}),
    ("PD707", "what is not stated does not count", {"settings": {"model": None, "server_version": None, "dataset": None}}, {}),
    ("PD708", "a filter may have taken the accept length", {"settings": {"complete": None}}, {"accept_length": 2.7}),
    ("PD708", "another client may not tell it", {"settings": {"client_definition": "rust"}}, {"accept_length": 2.7}),
    ("PD708", "the end token's fate is unknown", {"settings": {"ignore_eos": None}}, {}),
    ("PD710", "the sides took turns within a day", beside(2), beside(2, side_changes=3, hours_apart=23.9)),
    ("PD710", "no times are known", beside(3), beside(3)),
    ("PD710", "one run a side has no turns", beside(1), beside(1, side_changes=1, hours_apart=1)),
    ("PD711", "one engine through another endpoint", {}, {"settings": {"backend": "sglang-oai-chat"}}),
    ("PD711", "a version is not stated", {}, {"settings": {"server_version": None}}),
    ("PD712", "less than a point apart", {}, {"completed": 397}),
    ("PD712", "nobody says how many were sent", {"prompts_asked": None}, {"completed": 300}),
    ("PD713", "a standing level of both sides", {"retokenized_tok_sum": 38_000}, {"retokenized_tok_sum": 38_100}),
    ("PD713", "tokens were not counted again", {"retokenized_tok_sum": None}, {}),
    ("PD902", "three measured runs of one set-up on each side", beside(3), beside(3)),
    ("PD902", "a side without a measured run is PD709's", beside(0), beside(1)),
    ("PD903", "beyond the line", beside(3), called(1.031, 1.1)),
    ("PD903", "beyond it on the other side", beside(3), called(0.8, 0.97)),
    ("PD903", "within it", beside(3), called(0.98, 1.02)),
    ("PD903", "two runs a side have no interval", beside(2), beside(2)),
    ("PD904", "repeats within 5 %", beside(3, repeats_cv=0.049), beside(3, repeats_cv=0.05)),
    ("PD904", "one run has no spread", beside(1), beside(1)),
    ("PD905", "one mode", {}, beside(1, ttft_modes=1)),
    ("PD905", "too few requests to tell", {}, beside(1)),
    ("PD906", "one level", beside(3), called(1.04, 1.1, p=0.06)),
    ("PD906", "no difference was found", beside(3), called(0.98, 1.02, p=0.9, levels=4)),
    ("PD906", "rarer than chance among them all", beside(3), called(1.04, 1.1, p=0.049, levels=4)),
]  # fmt: skip


def pair(baseline: Given, candidate: Given) -> Judgement:
    """A run and its baseline, judged as a pair; only the candidate's results are left."""
    both = same_runs(Evidence.joined([one("base", baseline), one("here", candidate)]))
    ids = dict(both.runs.select("experiment", "run_id").iter_rows())
    verdicts = judge(both).verdicts.filter(pl.col("verdict") == "no measured result")
    told = {"base": baseline.get("said", {}), "here": candidate.get("said", {})}
    said = tuple({"run_id": ids[name], **facts} for name, facts in told.items())
    return judge(both, pairs=Pairs({ids["here"]: ids["base"]}, frozenset(verdicts["run_id"]), said))


def one(side: str, given: Given) -> Evidence:
    stated = {name: value for name, value in given.items() if name != "said"}
    settings = {"experiment": side} | given.get("settings", {})
    return evidence(seen=f"{side}.log#0", **(stated | {"settings": settings}))


def of_pair(judgement: Judgement, rule: str) -> str:
    """Outcome or severity of the candidate's result."""
    here = judgement.facts.filter(pl.col("experiment") == "here")["run_id"].item()
    row = judgement.results.filter(pl.col("rule") == rule, pl.col("run_id") == here).row(0, named=True)
    return str(row["severity"] or row["outcome"])


@pytest.mark.parametrize(("rule", "expected", "baseline", "candidate"), FAULTS)
def test_the_rule_fires_on_its_planted_difference(rule: str, expected: str, baseline: Given, candidate: Given):
    judgement = pair(baseline, candidate)
    assert of_pair(judgement, rule) == expected
    told = judgement.findings.filter(pl.col("rule") == rule).row(0, named=True)
    assert "unknown" not in told["sentence"] or rule == "PD708"
    files = {line.partition(":")[0] for line in told["lines"]}
    assert files == {"base.log", "here.log"} or rule in ("PD709", "PD708") or "said" in candidate
    assert files or rule == "PD709"


def test_another_card_is_refused_without_counts_and_compared_per_gpu_with_them():
    of_gpu = Evidence.of(
        experiments=[
            {"experiment": side, "gpu": gpu, "source_file": f"{side}.toml", "source_line": 1}
            for side, gpu in (("base", "NVIDIA L4"), ("here", "H100"))
        ]
    )
    for counts, expected in (({}, "refuse"), ({"gpu_count": 1}, "pass")):
        both = same_runs(Evidence.joined([one("base", counts), one("here", counts), of_gpu]))
        ids = dict(both.runs.select("experiment", "run_id").iter_rows())
        assert of_pair(judge(both, pairs=Pairs({ids["here"]: ids["base"]})), "PD704") == expected


@pytest.mark.parametrize(("rule", "why", "baseline", "candidate"), EXCEPTIONS)
def test_the_rule_is_quiet_where_nothing_is_known_to_differ(rule: str, why: str, baseline: Given, candidate: Given):
    assert of_pair(pair(baseline, candidate), rule) in ("pass", "not_evaluated", "not_applicable"), why


@pytest.mark.parametrize("rule", RULES)
def test_a_pair_of_healthy_runs_is_comparable(rule: str):
    assert of_pair(pair({}, {"duration_s": 201}), rule) in ("pass", "not_evaluated")


@pytest.mark.parametrize("rule", RULES)
def test_a_run_without_a_baseline_is_not_compared(rule: str):
    assert outcome(judged(), rule) == "not_applicable"


@pytest.mark.parametrize("rule", sorted({*RULES} - {"PD709"}))
def test_a_pair_of_which_nothing_is_known_does_not_pass(rule: str):
    nothing = dict.fromkeys((*evidence().claims["fact"], "request_rate_per_s"))
    settings = dict.fromkeys(
        (
            "tool",
            "backend",
            "dataset",
            "model",
            "server_version",
            "ignore_eos",
            "client_definition",
            "complete",
            "streaming",
        )
    )
    blind = nothing | {"settings": settings}
    assert of_pair(pair({}, blind), rule) in ("not_evaluated", "not_applicable")
    assert of_pair(pair(blind, {}), rule) in ("not_evaluated", "not_applicable")


def test_every_rule_of_the_family_has_its_fault_and_voids_the_comparison_alone():
    assert {rule for rule, *_ in FAULTS} == set(RULES)
    assert {CHECKS[rule].voids for rule in RULES} == {("comparison",)}


def test_a_pair_that_is_refused_leaves_the_verdicts_of_its_runs():
    judgement = pair({}, {"settings": {"dataset": "sharegpt", "server_version": "0.5.24"}, "concurrency": 4})
    assert of_pair(judgement, "PD702") == "refuse"
    assert of_pair(judgement, "PD711") == "suspect"
    assert judgement.verdicts["verdict"].to_list() == ["measured", "measured"]
    assert judgement.verdicts["suspected_by"].to_list() == [[], []]
    assert verdict(judged(settings={"model": None})) == "measured"
    assert judgement.published.equals(judge(judgement.evidence).published)
