"""The arithmetic of a split: what each side holds, how fast it can be there, and the claim beside it."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from pdkit.capacity import Capacity, Side, Step, capacity
from pdkit.evidence import Evidence
from pdkit.judge import judge
from pdkit.load import load, same_runs, with_missing_levels
from pdkit.machines import read_machines
from pdkit.results import Judgement

DATA = Path(__file__).parents[1] / "data"
START = datetime(2026, 8, 21, 9, 0)
PROMPTS = [256, 640, 1024]
LAYERS, EMBEDDING = 6_946_075_648, 622_329_856  # parameters of Qwen3-8B


def place(file: str, line: int) -> dict[str, Any]:
    return {"source_file": file, "source_line": line}


def client(
    *, users: float = 2, claimed: float = 50.0, listed: bool = True, model: str | None = "Qwen/Qwen3-8B"
) -> Evidence:
    seen = f"users-{users:g}.log"
    facts = {
        "concurrency": users, "completed": 3, "duration_s": 3 * 128 / claimed, "input_tok_sum": sum(PROMPTS),
        "output_tok_sum": 384, "output_tok_asked_each": 128, "output_throughput_tok_per_s": claimed,
    }  # fmt: skip
    claims = [
        {"seen_id": seen, "fact": fact, "value": float(value), "resolution": 0.0} | place(seen, line)
        for line, (fact, value) in enumerate(facts.items(), 1)
    ]
    requests = [
        {"seen_id": seen, "request_index": i, "ok": True, "input_tok": tok, "output_tok": 128} | place(seen, 90)
        for i, tok in enumerate(PROMPTS if listed else [])
    ]
    run = {"seen_id": seen, "experiment": "e", "tool": "sglang", "complete": True, "model": model}
    return Evidence.of(runs=[run | place(seen, 99)], claims=claims, requests=requests)


def manifest(gpu: str | None = "NVIDIA L4") -> Evidence:
    return Evidence.of(experiments=[{"experiment": "e", "gpu": gpu, "gpu_count": 2.0} | place("sweep.toml", 1)])


def server(
    role: str, *, lines: Sequence[tuple[int, float, int]] = (), running: int = 1, **settings: float | str
) -> Evidence:
    """A server's settings, and its lines: tokens held, share of the pool, requests that wait for memory."""
    about = {"experiment": "e", "instance": f"{role}.log", "role": role}
    said = [
        about | {"name": name, "text" if isinstance(value, str) else "value": value} | place(f"{role}.log", line)
        for line, (name, value) in enumerate(({"disaggregation_mode": role} | settings).items(), 1)
    ]
    gauges = [
        about
        | {"rank": "", "clock": START + timedelta(seconds=second), "metric": metric, "n": 1}
        | {"value_min": float(value), "value_mean": float(value), "value_max": float(value)}
        | place(f"{role}.log", 100 + second)
        for second, (tok, ratio, waiting) in enumerate(lines)
        for metric, value in (
            ("kv_used_tok", tok),
            ("kv_used_ratio", ratio),
            ("prealloc_requests", waiting),
            ("running_requests", running),
        )
    ]
    return Evidence.of(settings=said, samples=gauges)


def judged(*parts: Evidence) -> Judgement:
    return judge(with_missing_levels(same_runs(Evidence.joined(parts))))


def made(*parts: Evidence) -> Capacity:
    (only,) = capacity(judged(*(parts or (client(), manifest(), *SPLIT))))
    return only


SPLIT = (
    server("prefill", pool_tok=24_094.0, kv_dtype="torch.bfloat16"),
    server("decode", pool_tok=2_925.0, kv_dtype="torch.bfloat16", quantization="fp8", tp_size=1.0),
)


def step(side: Side | None, title: str) -> Step:
    assert side is not None
    return next(step for step in side.steps if step.title.startswith(title))


# --- the pool -------------------------------------------------------------------------------------------------------


def test_a_stated_pool_is_shown_with_its_line():
    pool = step(made().side("decode"), "KV pool")
    assert (pool.value, pool.places) == (2925, ("decode.log:2",))


def test_one_line_gives_the_pool_to_within_its_printed_digits():
    # 1,206 / 0.41 = 2,941; 0.41 stands for 0.405 to 0.415: 1,206 / 0.415 = 2,906, 1,206 / 0.405 = 2,978
    split = made(client(), manifest(), server("decode", lines=[(1206, 0.41, 19)]))
    side = split.side("decode")
    pool = step(side, "The same from one line")
    assert [round(number) for number in (pool.value, pool.low or 0, pool.high or 0)] == [2941, 2906, 2978]
    assert (pool.shown, pool.places) == ("2,941 tok (2,906 to 2,978)", ("decode.log:100",))
    assert pool.formula == "1,206 tok / 0.41, which is rounded: 0.405 to 0.415"
    assert side is not None
    assert round(side.pool_tok or 0) == 2941


def test_the_line_is_the_first_on_which_most_waited():
    lines = [(1851, 0.63, 15), (1206, 0.41, 19), (1286, 0.44, 19), (1481, 0.51, 0)]
    side = made(client(), manifest(), server("decode", pool_tok=2925.0, lines=lines)).side("decode")
    assert step(side, "The same from one line").places == ("decode.log:101",)


def test_where_nothing_waits_it_is_the_line_with_the_fullest_pool():
    lines = [(292, 0.10, 0), (2340, 0.80, 0), (1170, 0.40, 0)]
    side = made(client(), manifest(), server("decode", lines=lines)).side("decode")
    assert step(side, "The same from one line").places == ("decode.log:101",)


def test_all_lines_together_narrow_the_pool():
    # 1,206 / 0.41 allows 2,906 to 2,978; 2,340 / 0.80 allows 2,906.8 to 2,943.4
    side = made(client(), manifest(), server("decode", lines=[(1206, 0.41, 0), (2340, 0.80, 0)])).side("decode")
    pool = step(side, "The same from all lines")
    assert (round(pool.low or 0), round(pool.high or 0)) == (2907, 2943)


def test_lines_that_no_pool_fits_are_not_narrowed():
    side = made(client(), manifest(), server("decode", lines=[(1000, 0.50, 0), (3000, 0.50, 0)])).side("decode")
    assert side is not None
    assert not any("all lines" in step.title for step in side.steps)


def test_an_empty_pool_says_nothing_of_its_size():
    side = made(client(), manifest(), server("decode", lines=[(0, 0.0, 0), (5, 0.0, 0)])).side("decode")
    assert side is not None
    assert (side.pool_tok, side.fit) == (None, None)
    assert "pool of the decode side not stated" in side.unknown[0]


# --- what fits ------------------------------------------------------------------------------------------------------


def test_a_decode_side_sets_tokens_aside_for_each_request():
    side = made().side("decode")
    request = step(side, "A request takes")
    assert request.value == 640 + 512  # the mean prompt, and SGLang's default
    assert "--num-reserved-decode-tokens" in request.formula
    assert side is not None
    assert (side.full_at_requests, side.fit and side.fit.low, side.fit and side.fit.high) == (2, 1, 3)


def test_what_is_set_aside_may_be_stated():
    decode = server("decode", pool_tok=2925.0, reserved_tok=128.0)
    request = step(made(client(), manifest(), decode).side("decode"), "A request takes")
    assert (request.value, request.places) == (640 + 128, ("decode.log:3",))


def test_where_more_ran_than_that_lets_in_less_is_set_aside():
    # 8 x (256 + 512) = 6,144 do not fit into 4,096; prompt and output of 8 do: 8 x (256 + 128) = 3,072
    decode = server("decode", pool_tok=4096.0, lines=[(2000, 0.49, 8)], running=8)
    side = made(client(), manifest(), decode).side("decode")
    assert step(side, "A request takes").value == 640 + 128
    assert side is not None
    assert side.unknown == ("8 ran at once: less is set aside than SGLang's 512 tok a request",)


def test_a_colocated_server_needs_prompt_and_output():
    alone = made(client(), manifest(), server("colocated", pool_tok=50_000.0, disaggregation_mode="null"))
    assert [side.role for side in alone.sides] == ["colocated"]
    assert step(alone.side("colocated"), "A request takes").value == 640 + 128


def test_a_prefill_side_holds_prompts_alone():
    side = made().side("prefill")
    assert step(side, "A request takes").value == 640
    assert "24,094 / 640 = 37.6" in step(side, "Prompts that fit").formula


def test_the_smaller_side_limits_in_either_direction():
    limit = made().limit
    assert limit is not None
    assert limit.role == "decode"
    swapped = made(
        client(), manifest(), server("prefill", pool_tok=2925.0), server("decode", pool_tok=24_094.0)
    )  # fmt: skip
    assert swapped.limit is not None
    assert swapped.limit.role == "prefill"
    assert "2,925 / 640 = 4.6" in step(swapped.side("prefill"), "Prompts that fit").formula
    # both sides are there, whichever limits
    assert [side.role for side in swapped.sides] == ["prefill", "decode"]
    assert swapped.side("decode") is not None


def test_without_the_other_sides_log_no_side_is_called_the_limit():
    half = made(client(), manifest(), SPLIT[1])
    assert half.limit is None
    other = half.side("prefill")
    assert other is not None
    assert other.unknown == ("no prefill log: its start-up lines would tell the pool",)


def test_without_lengths_of_requests_the_mean_stands_for_each():
    side = made(client(listed=False), manifest(), *SPLIT).side("decode")
    assert "the length of each is not known" in step(side, "A request takes").formula
    assert side is not None
    assert side.full_at_requests == 2


def test_several_replicas_each_have_a_pool():
    side = made(client(), manifest(), server("decode", pool_tok=2925.0, dp_size=2.0)).side("decode")
    assert side is not None
    assert (side.pool_tok, side.full_at_requests) == (5850, 4)


# --- speed ----------------------------------------------------------------------------------------------------------


def test_the_ceiling_is_what_the_memory_can_read():
    side = made().side("decode")
    assert step(side, "KV cache of a token").value == 2 * 36 * 8 * 128 * 2
    assert step(side, "Weights read a step").value == LAYERS + 2 * EMBEDDING  # fp8, the head in bf16
    # two requests at 640 + 64 tokens: 2 / ((8.19 GB + 2 x 704 x 147,456 B) / 300 GB/s)
    ceiling = step(side, "Most it can give then")
    assert ceiling.value == pytest.approx(71.4, abs=0.1)
    assert ceiling.high == pytest.approx(106, abs=0.5)  # three
    assert side is not None
    assert side.requests_per_s == pytest.approx(71.4 / 128, abs=0.005)
    assert side.weights == "fp8"


def test_a_precision_that_nobody_states_is_assumed_and_said():
    unsaid = made(client(), manifest(), server("decode", pool_tok=2925.0))
    side = unsaid.side("decode")
    assert side is not None
    assert side.weights == "fp8, assumed"
    assert "precision of the weights not stated: fp8 assumed; server_args would tell" in unsaid.unknown


def test_the_weights_that_were_loaded_tell_the_precision():
    decode = server("decode", pool_tok=2925.0, weights_gb=15.27, tp_size=1.0)
    side = made(client(), manifest(), decode).side("decode")
    assert side is not None
    assert side.weights == "bf16"
    assert step(side, "Weights read a step").value == 2 * (LAYERS + EMBEDDING)
    assert step(side, "Weights read a step").places == ("decode.log:3",)


def test_prefill_is_bounded_by_arithmetic():
    # 640 tokens in fp8 on 242 TFLOPS: half of the 74.5 ms that bf16 takes
    peak = step(made().side("prefill"), "Most it can prefill")
    assert peak.value == pytest.approx(640 / (0.0745 / 2), rel=0.001)


def test_more_gpus_read_as_many_times_faster():
    one, two = (
        step(made(client(), manifest(), server("decode", pool_tok=2925.0, tp_size=n)).side("decode"), "Most").value
        for n in (1.0, 2.0)
    )
    assert two == pytest.approx(2 * one)


def test_an_unknown_gpu_or_model_is_said_and_what_would_tell():
    nothing = made(client(model="own/model"), manifest(gpu=None), SPLIT[1])
    assert nothing.unknown[0].startswith("model 'own/model' is not in the table; `[[model]]`")
    assert nothing.unknown[1].startswith("GPU not stated; `gpu` in sweep.toml")
    side = nothing.side("decode")
    assert side is not None
    assert (side.full_at_requests, side.ceiling_tok_per_s) == (2, None)


def test_ones_own_machine_replaces_the_table(tmp_path: Path):
    file = tmp_path / "own.toml"
    file.write_text('[[gpu]]\nname = "L4"\nsource = "measured"\nmemory_gib = 24\nbandwidth_tb_per_s = 0.15\n', "utf-8")
    own = manifest(gpu="L4")
    (half,) = capacity(judged(client(), own, *SPLIT), machines=read_machines(file))
    assert step(half.side("decode"), "Most").value == pytest.approx(71.4 / 2, abs=0.1)


# --- beside what was seen -------------------------------------------------------------------------------------------


def test_a_claim_is_a_multiple_of_the_ceiling():
    (seen,) = made(client(claimed=751.85), manifest(), *SPLIT).seen
    assert (seen.asked, seen.is_cap, seen.claimed_tok_per_s) == (2, True, 751.85)
    assert seen.ceilings == pytest.approx(10.5, abs=0.05)


def test_what_it_comes_to_is_said_in_words():
    said = str(made(client(claimed=751.85), manifest(), *SPLIT))
    assert "decode holds 2,925 tok: requests that fit: 2 for" in said
    assert "With 2 requests running, decode gives at most about 71 tok/s (weights in fp8)." in said
    assert "The decode side is the smaller one and limits the pair." in said
    assert "751.85 tok/s claimed at 2 users is 10.5 times that, and 7.1 times what 3 requests could be given." in said


def test_without_server_logs_it_says_so():
    alone = made(client(), manifest())
    assert (alone.sides, alone.limit) == ((), None)
    assert str(alone) == "e: no server log: its start-up lines would tell the pool."


def test_no_runs_have_no_arithmetic():
    assert capacity(judge(Evidence.of())) == ()


# --- case 1 ---------------------------------------------------------------------------------------------------------


def of_case(name: str) -> Capacity:
    (only,) = capacity(judge(load(DATA / "split-l4-qwen3-8b" / name)))
    return only


def test_the_posted_split_could_not_have_given_what_it_claimed():
    posted = of_case("open-loop/split")
    decode, prefill = posted.side("decode"), posted.side("prefill")
    one_line = step(decode, "The same from one line")
    assert one_line.shown == "2,941 tok (2,906 to 2,978)"
    assert one_line.places[0].endswith("decode.log:62")
    assert decode is not None
    assert decode.fit is not None
    assert (decode.pool_tok, decode.fit.typical) == (2925, 2)
    assert decode.fit.shares[2] > 0.85  # of the 240 prompts of the run, drawn from 256 to 1,024
    assert decode.ceiling_tok_per_s == pytest.approx(71.4, abs=0.1)
    assert (decode.running_max, decode.waiting_max) == (2, 19)
    assert prefill is not None
    assert prefill.pool_tok == 24_094
    assert posted.limit is decode
    assert [round(seen.ceilings or 0, 1) for seen in posted.seen] == [10.5]


def test_in_the_swapped_split_prefill_is_the_small_side():
    swapped = of_case("swapped")
    assert swapped.limit is not None
    assert swapped.limit.role == "prefill"
    decode = swapped.side("decode")
    assert decode is not None
    assert decode.full_at_requests in (20, 21)  # 24,094 / (640 + 512) = 20.9
