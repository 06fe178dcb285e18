"""Facts of the machines behind a run: stated where stated, else the most generous, and null where unknown."""

import polars as pl

from pdkit.evidence import Evidence
from pdkit.limits import MACHINE_FACTS, machine_facts

LAYERS, EMBEDDING = 6_946_075_648, 622_329_856  # parameters of Qwen3-8B
L4_BYTES_PER_S = 300e9


def facts_of(**known_of: object) -> dict[str, float | None]:
    row = {"run_id": "r", "model": None, "gpu": None} | known_of
    return machine_facts(pl.DataFrame([row])).row(0, named=True)


def test_facts_of_a_stated_precision():
    facts = facts_of(model="Qwen/Qwen3-8B", gpu="NVIDIA L4", weights_precision="fp8", kv_bytes_per_value=2)
    assert facts["weights_streamed_bytes"] == LAYERS + EMBEDDING  # the head too, at the least
    assert facts["weights_whole_bytes"] == LAYERS + 4 * EMBEDDING
    assert facts["kv_bytes_per_tok"] == 147_456
    assert facts["gpu_bandwidth_bytes_per_s"] == L4_BYTES_PER_S
    assert facts["gpu_flops_per_s"] == 242e12


def test_facts_of_a_precision_that_nobody_states_are_the_most_generous():
    facts = facts_of(model="Qwen/Qwen3-8B", gpu="NVIDIA L4")
    assert facts["weights_streamed_bytes"] == (LAYERS + EMBEDDING) / 2  # four bits a weight
    assert facts["weights_whole_bytes"] == 2 * (LAYERS + 2 * EMBEDDING)  # as published
    assert facts["kv_bytes_per_tok"] == 73_728 / 2


def test_a_clients_log_may_state_the_precision():
    assert facts_of(model="Qwen/Qwen3-8B", precision="fp8")["weights_streamed_bytes"] == LAYERS + EMBEDDING


def settings(**said: float | str | None) -> pl.DataFrame:
    rows = [
        {"experiment": "e", "instance": "decode.log", "role": "decode", "name": name}
        | {"text" if isinstance(value, str) else "value": value, "source_file": "decode.log", "source_line": 1}
        for name, value in said.items()
    ]
    return Evidence.of(settings=rows).settings


def of_servers(**said: float | str | None) -> dict[str, float | None]:
    run = pl.DataFrame([{"run_id": "r", "experiment": "e", "model": "Qwen/Qwen3-8B", "gpu": None}])
    return machine_facts(run, settings=settings(**said)).row(0, named=True)


def test_the_weights_that_a_server_loaded_tell_their_precision():
    # 16.38 GB in bf16, 9.44 in fp8 with embeddings in bf16; on two GPUs each has half
    assert of_servers(weights_gb=15.27, tp_size=1.0)["weights_streamed_bytes"] == 2 * (LAYERS + EMBEDDING)
    assert of_servers(weights_gb=4.5, tp_size=2.0)["weights_streamed_bytes"] == LAYERS + EMBEDDING
    # neither: as if nothing were said
    assert of_servers(weights_gb=12.6, tp_size=1.0)["weights_streamed_bytes"] == (LAYERS + EMBEDDING) / 2
    # on how many GPUs is not known
    assert of_servers(weights_gb=15.27)["weights_streamed_bytes"] == (LAYERS + EMBEDDING) / 2


def test_a_server_that_names_no_draft_makes_one_token_a_step():
    assert of_servers(tp_size=1.0)["drafts"] == 0
    assert of_servers(speculative="EAGLE")["drafts"] == 1
    assert facts_of()["drafts"] is None


def test_a_server_may_say_that_it_keeps_no_prefixes():
    assert of_servers(prefix_cache=0.0)["prefix_cache_on"] == 0
    assert of_servers(tp_size=1.0)["prefix_cache_on"] is None


def test_the_accelerator_may_stand_in_the_log():
    assert of_servers(device="NVIDIA L4")["gpu_bandwidth_bytes_per_s"] == L4_BYTES_PER_S
    assert of_servers(device="cuda")["gpu_bandwidth_bytes_per_s"] is None


def test_what_is_not_known_is_null():
    assert {value for name, value in facts_of().items() if name != "run_id"} == {None}
    assert facts_of(gpu="H100 SXM")["weights_streamed_bytes"] is None
    assert list(facts_of()) == ["run_id", *MACHINE_FACTS]


def test_each_run_has_its_own_row_in_the_order_given():
    runs = pl.DataFrame(
        {"run_id": ["b", "a", "c"], "model": ["Qwen/Qwen3-8B", None, "Qwen/Qwen3-8B"], "gpu": ["L4"] * 3}
    )
    facts = machine_facts(runs)
    assert facts["run_id"].to_list() == ["b", "a", "c"]
    assert facts["gpu_memory_bytes"].to_list() == [24 * 2**30] * 3
    assert facts["prefill_flop_per_tok"].is_null().to_list() == [False, True, False]


def test_no_runs_have_no_facts():
    nothing = machine_facts(pl.DataFrame(schema={"run_id": pl.String, "model": pl.String, "gpu": pl.String}))
    assert (nothing.height, nothing.columns) == (0, ["run_id", *MACHINE_FACTS])
