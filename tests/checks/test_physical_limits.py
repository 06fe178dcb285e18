"""PD8xx: each rule fires on what GPU and model do not allow, and is quiet where there is a good reason.

Qwen3-8B in fp8 on H100 SXM: a step reads 7.568 GB at 3.35 TB/s in 2.259 ms; the peak is 1,979 TFLOPS over 13.892 GFLOP,
so 142,455 prompt tokens/s; a token's KV cache weighs 147,456 bytes, and NVLink carries 450 GB/s.
"""

from typing import Any

import pytest
from given import evidence, judged, outcome, said, verdict
from servers import server

from pdkit.evidence import Evidence
from pdkit.parts import register_checks
from pdkit.results import Judgement
from pdkit.rules import CHECKS

register_checks()
FAMILY = sorted(check.id for check in CHECKS.values() if check.family == "physical_limits")
FP8 = {"quantization": "fp8", "kv_dtype": "torch.bfloat16", "tp_size": 1.0, "pool_tok": 24_000.0}
LONG = {"input_tok": 100_000}  # takes 2.19 s: 1.389e15 + 2.949e15 operations


def manifest(**said_of: Any) -> Evidence:
    about = {"gpu": "H100 SXM", "model": "Qwen/Qwen3-8B", "topology": "1p1d"} | said_of
    return Evidence.of(experiments=[about | {"experiment": "e", "source_file": "sweep.toml", "source_line": 1}])


def servers(*, cached_tok: float | None = 0.0, running: float = 1.0, **settings: float | str) -> tuple[Evidence, ...]:
    """A prefill and a decode server with the given settings; no prompt token came from a cache."""
    prefill = server(role="prefill", settings=FP8 | settings, new_tok=1000.0, cached_tok=cached_tok)
    return prefill, server(role="decode", settings=FP8 | settings, running_requests=running)


PAIR = servers()
ALONE = manifest(topology=None, model="Qwen/Qwen3-8B-FP8")
SHARING = servers(pool_tok=1000.0, cached_tok=50.0)
UNCOUNTED = servers(cached_tok=None)

# (rule, severity, facts of the client, what is beside it)
FAULTS: list[tuple[str, str, dict[str, Any], tuple[Evidence, ...]]] = [
    ("PD801", "refuse", {"tpot_ms_mean": 2.2}, (manifest(), *PAIR)),
    ("PD801", "suspect", {"tpot_ms_mean": 2.4}, (manifest(), *PAIR)),
    ("PD801", "refuse", {"tpot_ms_mean": 0.7, "accept_length": 3.0}, (manifest(), *PAIR)),
    (
        "PD801",
        "suspect",
        {"tpot_ms_mean": 2.2, "gpu_count": 1},
        (ALONE,),
    ),  # a draft may help: nobody says that none does
    ("PD801", "refuse", {"tpot_ms_mean": 0.28, "gpu_count": 1}, (ALONE,)),  # 8.07 times as fast
    # four requests in flight: 4 x 3.35e12 / (7.568e9 + 4 x 500 x 147,456) = 1,704; (400,000 - 400) / 200 = 1,998
    ("PD802", "refuse", {"output_tok_sum": 400_000}, (manifest(), *PAIR)),
    ("PD802", "suspect", {"output_tok_sum": 330_000}, (manifest(), *PAIR)),  # 1,648 of 1,715
    # a pool of 1,000 holds one of 100 + 512: 3.35e12 / (7.568e9 + 225 x 147,456) = 440.7; 99,600 / 200 = 498
    (
        "PD802",
        "refuse",
        {"output_tok_sum": 100_000, "requests": [{"input_tok": 100}] * 400},
        (manifest(), *servers(pool_tok=1000.0)),
    ),
    ("PD803", "refuse", {"input_tok_sum": 30_000_000}, (manifest(), *PAIR)),  # 150,000/s
    ("PD803", "suspect", {"input_tok_sum": 24_000_000}, (manifest(), *PAIR)),  # 120,000/s
    ("PD804", "refuse", {"requests": [LONG] * 201 + [{"input_tok": 100}] * 199}, (manifest(), *PAIR)),
    ("PD804", "suspect", {"requests": [LONG] + [{"input_tok": 100}] * 399}, (manifest(), *PAIR)),
    ("PD804", "refuse", {"ttft_ms_mean": 0.6}, (manifest(), *PAIR)),  # 100 tokens take 0.70 ms
    ("PD805", "suspect", {}, (manifest(), *servers(pool_tok=1000.0))),  # 1,000 / 612 = 1.6 of 4
    ("PD806", "refuse", {"input_tok_sum": 700_000_000}, (manifest(), *PAIR)),  # 3.5e6 x 147,456 = 516 GB/s
    ("PD807", "suspect", {}, (manifest(), *servers(pool_tok=530_000.0))),  # 8.19 + 78.15 GB of 85.9
    ("PD808", "note", {}, (manifest(), *servers(tp_size=4.0))),  # 198 of 4 x 1,400
]

EXCEPTIONS: list[tuple[str, str, dict[str, Any], tuple[Evidence, ...]]] = [
    ("PD801", "a draft gets three tokens a step", {"tpot_ms_mean": 1.0, "accept_length": 3.0}, (manifest(), *PAIR)),
    ("PD801", "two GPUs read twice as fast", {"tpot_ms_mean": 1.5}, (manifest(), *servers(tp_size=2.0))),
    ("PD801", "it may be 4 bits", {"tpot_ms_mean": 1.3}, (manifest(), *servers(quantization="auto"))),
    ("PD801", "the name leaves the fastest open", {"tpot_ms_mean": 2.2}, (manifest(gpu="H100"), *PAIR)),
    ("PD801", "answers of a few tokens", {"tpot_ms_mean": 1.0, "output_tok_sum": 4_000}, (manifest(), *PAIR)),
    ("PD801", "not streamed", {"tpot_ms_mean": 1.0, "settings": {"streaming": False}}, (manifest(), *PAIR)),
    ("PD801", "GPU not known", {"tpot_ms_mean": 0.01}, (manifest(gpu="Z9"), *PAIR)),
    ("PD801", "model not known", {"tpot_ms_mean": 0.01}, (manifest(model="own"), *PAIR)),
    ("PD802", "a draft helps", {"output_tok_sum": 400_000, "accept_length": 2.0}, (manifest(), *PAIR)),
    ("PD802", "two GPUs", {"output_tok_sum": 400_000}, (manifest(), *servers(tp_size=2.0))),
    ("PD802", "one token each comes from prefill", {"output_tok_sum": 400}, (manifest(), *PAIR)),
    ("PD802", "prompts share what a small pool holds", {"output_tok_sum": 100_000}, (manifest(), *SHARING)),
    ("PD803", "the cache had most", {"input_tok_sum": 30_000_000, "cached_tok_sum": 29_000_000}, (manifest(), *PAIR)),
    ("PD803", "nobody counts what the cache had", {"input_tok_sum": 30_000_000}, (manifest(), *UNCOUNTED)),
    ("PD804", "prompts came from the cache", {"ttft_ms_mean": 0.6, "cached_tok_sum": 39_000}, (manifest(), *PAIR)),
    ("PD804", "nobody counts what the cache had", {"requests": [LONG] * 400}, (manifest(), *UNCOUNTED)),
    ("PD804", "not streamed", {"requests": [LONG] * 400, "settings": {"streaming": False}}, (manifest(), *PAIR)),
    ("PD805", "prompts share a prefix", {}, (manifest(), *SHARING)),
    ("PD805", "it holds them", {}, (manifest(), *servers(pool_tok=2500.0))),  # 2,500 / 612 = 4.1
    ("PD805", "more ran than 512 a request let in", {}, (manifest(), *servers(running=4.0, pool_tok=1000.0))),
    ("PD806", "one server does both", {"input_tok_sum": 700_000_000}, (manifest(topology="colocated"), *PAIR)),
    ("PD806", "both sides share a GPU", {"input_tok_sum": 700_000_000, "gpu_count": 1}, (manifest(), *PAIR)),
    ("PD807", "it just fits", {}, (manifest(), *servers(pool_tok=520_000.0))),  # 8.19 + 76.68 GB of 85.9
    ("PD808", "a tenth is used", {}, (manifest(), *PAIR)),  # 198 of 1,400
]  # fmt: skip


def with_(facts: dict[str, Any], beside: tuple[Evidence, ...]) -> Judgement:
    return judged(evidence(**({"gpu_count": 2} | facts)), *beside)


@pytest.mark.parametrize(
    ("rule", "severity", "facts", "beside"), FAULTS, ids=[f"{rule}-{i}" for i, (rule, *_) in enumerate(FAULTS)]
)
def test_a_rule_fires_on_its_fault(
    rule: str, severity: str, facts: dict[str, Any], beside: tuple[Evidence, ...]
):  # fmt: skip
    judgement = with_(facts, beside)
    assert outcome(judgement, rule) == severity
    sentence = said(judgement, rule)
    assert sentence
    assert "unknown" not in sentence
    assert "{" not in sentence


@pytest.mark.parametrize(
    ("rule", "why", "facts", "beside"), EXCEPTIONS, ids=[f"{rule}: {why}" for rule, why, *_ in EXCEPTIONS]
)
def test_a_rule_is_quiet_on_a_healthy_exception(
    rule: str, why: str, facts: dict[str, Any], beside: tuple[Evidence, ...]
):  # fmt: skip
    assert outcome(with_(facts, beside), rule) in ("pass", "not_applicable", "not_evaluated"), why


def test_every_rule_of_the_family_has_its_fault():
    assert {rule for rule, *_ in FAULTS} == set(FAMILY)
    assert [f"PD80{number}" for number in range(1, 9)] == FAMILY


@pytest.mark.parametrize("rule", FAMILY)
def test_a_healthy_run_passes(rule: str):
    judgement = with_({"requests": [{"input_tok": 100}] * 400}, (manifest(), *PAIR))
    assert outcome(judgement, rule) == "pass"
    assert verdict(judgement) == "measured"


@pytest.mark.parametrize("rule", FAMILY)
@pytest.mark.parametrize("lack", [{"gpu": None}, {"gpu": "own card"}, {"model": "own model"}])
def test_without_gpu_or_model_nothing_is_said(rule: str, lack: dict[str, Any]):
    judgement = with_({}, (manifest(**lack), *PAIR))
    # what fits into a pool needs neither
    assert outcome(judgement, rule) in ("not_evaluated", "not_applicable") or rule == "PD805"


def test_how_many_gpus_there_are_must_be_known():
    judgement = with_({"tpot_ms_mean": 0.1, "gpu_count": None}, (manifest(),))
    assert outcome(judgement, "PD801") == "not_evaluated"


def test_the_sentence_sets_the_claim_beside_the_bound():
    judgement = with_({"output_tok_sum": 400_000}, (manifest(), *PAIR))
    assert said(judgement, "PD802") == (
        "1,998.00 tok/s of decoding are 1.2 times what 4.0 requests in flight can be given, 1,704.1 tok/s"
    )


def test_digits_that_were_rounded_away_refuse_nothing():
    # 2.2592 ms are read; 2.3 may be 2.25 to 2.35, and 2.2 with a digit of 0.1 may be 2.25
    sure = judged(evidence(tpot_ms_mean=2.2, resolution=0.0), manifest(), *PAIR)
    unsure = judged(evidence(tpot_ms_mean=2.25, resolution=0.05), manifest(), *PAIR)
    assert (outcome(sure, "PD801"), outcome(unsure, "PD801")) == ("refuse", "suspect")
