"""What GPUs and models can do: sizes as published, bounds worked out by hand, names as people spell them."""

import json
from pathlib import Path

import pytest

from pdkit.errors import PdkitError
from pdkit.machines import (
    attention_flop_per_pair,
    decode_ceiling_tok_per_s,
    decode_step_s,
    experts_touched,
    known,
    kv_bytes_per_token,
    least_streamed_bytes,
    precision_of,
    prefill_floor_s,
    prefill_flop_per_tok,
    read_machines,
    read_model,
    transfer_floor_s,
    weights_precision_of,
    weights_resident_bytes,
    weights_streamed_bytes,
)

QWEN = known().model("Qwen/Qwen3-8B")
assert QWEN is not None
# of Qwen3-8B: layers with their norms, and one embedding of 151,936 x 4,096
LAYERS, EMBEDDING = 6_946_075_648, 622_329_856
L4_BYTES_PER_S = 300e9


def gpu(name: str):
    found = known().gpu(name)
    assert found is not None
    return found


def model(name: str):
    found = known().model(name)
    assert found is not None
    return found


# --- sizes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "params"),
    [  # as their pages count them
        ("Qwen/Qwen3-0.6B", 596_049_920),
        ("Qwen/Qwen3-4B", 4_022_468_096),
        ("Qwen/Qwen3-8B", 8_190_735_360),
        ("Qwen/Qwen3-32B", 32_762_123_264),
        ("Qwen/Qwen3-30B-A3B", 30_532_122_624),
        ("Qwen/Qwen3-235B-A22B", 235_093_634_560),
        ("Qwen/Qwen2.5-3B", 3_085_938_688),
        ("Qwen/Qwen2.5-7B", 7_615_616_512),
        ("meta-llama/Llama-3.1-8B", 8_030_261_248),
        ("meta-llama/Llama-3.1-70B", 70_553_706_496),
        ("mistralai/Mixtral-8x7B", 46_702_792_704),
        ("deepseek-ai/DeepSeek-V3", 671_026_419_200 - 58 * 256),  # without the bias of its 58 routers
    ],
)
def test_a_model_has_as_many_parameters_as_its_page_says(name: str, params: int):
    assert model(name).params == params


def test_the_kv_cache_of_a_token_is_two_values_a_layer_head_and_dimension():
    assert QWEN.kv_values_per_tok == 36 * 2 * 8 * 128 == 73_728
    assert kv_bytes_per_token(QWEN) == 147_456
    assert kv_bytes_per_token(QWEN, bytes_per_value=1) == 73_728


def test_latent_attention_keeps_one_latent_a_layer():
    assert kv_bytes_per_token(model("deepseek-ai/DeepSeek-V3")) == 61 * (512 + 64) * 2 == 70_272


def test_a_step_reads_layers_and_head_but_no_input_embedding():
    assert weights_streamed_bytes(QWEN, weights="bf16") == 2 * (LAYERS + EMBEDDING) == 15_136_811_008
    assert weights_streamed_bytes(QWEN, weights="fp8") == LAYERS + 2 * EMBEDDING == 8_190_735_360
    assert weights_streamed_bytes(QWEN, weights="fp8", head="fp8") == LAYERS + EMBEDDING == 7_568_405_504


def test_memory_holds_the_input_embedding_too():
    assert weights_resident_bytes(QWEN, weights="bf16") == 2 * (LAYERS + 2 * EMBEDDING) == 16_381_470_720
    assert weights_resident_bytes(QWEN, weights="fp8") == LAYERS + 4 * EMBEDDING == 9_435_395_072


def test_a_tied_head_is_held_once_and_read_each_step():
    small = model("Qwen/Qwen3-0.6B")
    assert weights_resident_bytes(small, weights="bf16") == weights_streamed_bytes(small, weights="bf16")


def test_a_batch_touches_more_experts_and_never_more_than_there_are():
    mixtral = model("mistralai/Mixtral-8x7B")
    assert experts_touched(mixtral, batch=1) == pytest.approx(2)
    assert experts_touched(mixtral, batch=2) == pytest.approx(8 * (1 - 0.75**2))  # 3.5
    assert experts_touched(mixtral, batch=1000) == pytest.approx(8)
    assert experts_touched(QWEN, batch=8) == 0
    assert least_streamed_bytes(mixtral, weights="bf16") == weights_streamed_bytes(mixtral, weights="bf16", batch=1)


# --- bounds ---------------------------------------------------------------------------------------------------------


def ceiling(*, batch: float, context_tok: float, weights_bytes: float = 8_190_735_360) -> float:
    return decode_ceiling_tok_per_s(
        weights_bytes=weights_bytes, batch=batch, context_tok=context_tok, kv_bytes_per_tok=147_456,
        bandwidth_bytes_per_s=L4_BYTES_PER_S,
    )  # fmt: skip


def test_one_stream_is_no_faster_than_the_weights_are_read():
    # 300 GB/s over 15.14 GB and over 8.19 GB
    assert ceiling(batch=1, context_tok=0, weights_bytes=15_136_811_008) == pytest.approx(19.8, abs=0.05)
    assert ceiling(batch=1, context_tok=0) == pytest.approx(36.6, abs=0.05)


@pytest.mark.parametrize(("batch", "tok_per_s"), [(2, 71.4), (3, 106), (7, 235), (32, 834)])
def test_the_ceiling_of_a_batch_adds_the_kv_cache_of_each_request(batch: int, tok_per_s: float):
    # batch / ((8.19 GB + batch x 704 x 147,456 B) / 300 GB/s)
    assert ceiling(batch=batch, context_tok=704) == pytest.approx(tok_per_s, rel=0.005)


def test_tokens_that_a_draft_gets_accepted_count_as_many_times():
    bounds = {"weights_bytes": 1e9, "batch": 1, "context_tok": 0, "kv_bytes_per_tok": 0, "bandwidth_bytes_per_s": 1e9}
    assert decode_step_s(**bounds) == 1
    assert decode_ceiling_tok_per_s(**bounds, accept_tok=2.5) == 2.5


def test_a_prompt_takes_two_operations_a_parameter_and_four_a_pair_and_dimension():
    # 2 x 6.946e9 x 640 + 4 x 36 x 32 x 128 x 640 x 641 / 2 = 9.012e12, over 121e12 a second
    assert prefill_flop_per_tok(QWEN) == 2 * LAYERS
    assert attention_flop_per_pair(QWEN) == 4 * 36 * 32 * 128
    peak = gpu("L4").most.flops_per_s("bf16")
    assert prefill_floor_s(QWEN, prompt_tok=640, flops_per_s=peak) == pytest.approx(0.0745, abs=0.0001)


def test_a_prompts_kv_cache_takes_its_time_on_the_link():
    # 640 x 147,456 B = 94.4 MB, over 32 GB/s
    seconds = transfer_floor_s(prompt_tok=640, kv_bytes_per_tok=147_456, link_bytes_per_s=32e9)
    assert seconds == pytest.approx(0.00295, abs=0.00001)


# --- names ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("NVIDIA L4", "L4"),
        ("l4", "L4"),
        ("2x L4", "L4"),
        ("NVIDIA L40S", "L40S"),
        ("H100 SXM", "H100 SXM"),
        ("NVIDIA H100 80GB HBM3", "H100 SXM"),
        ("NVIDIA H100 PCIe", "H100 PCIe"),
        ("NVIDIA A100-SXM4-80GB", "A100 80GB SXM"),
        ("NVIDIA A100 80GB PCIe", "A100 80GB PCIe"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "RTX PRO 6000 Blackwell"),
        ("AMD Instinct MI300X", "MI300X"),
    ],
)
def test_a_gpu_is_found_however_it_is_spelt(said: str, name: str):
    assert [found.name for found in gpu(said).gpus] == [name]
    assert gpu(said).said == ""


@pytest.mark.parametrize("said", [None, "", "NVIDIA", "A10", "H100 with a fan", "RTX 6000 Ada", "L4 L40S"])
def test_an_unknown_gpu_is_none(said: str | None):
    assert known().gpu(said) is None


def test_a_name_that_leaves_several_open_gets_the_most_of_each_number():
    found = gpu("H100")
    assert (found.most.bandwidth_bytes_per_s, found.least_bandwidth_bytes_per_s) == (3.9e12, 2.0e12)
    assert found.most.flops_per_s("fp8") == 1979e12
    assert found.said == "'H100' may be H100 PCIe, H100 NVL, H100 SXM: the most of each number is taken"


def test_a_precision_that_a_gpu_lacks_is_computed_in_a_coarser_one():
    assert gpu("L4").most.flops_per_s("bf16") == 121e12
    assert gpu("L4").most.flops_per_s("fp8") == 242e12
    assert gpu("A30").most.flops_per_s("fp8") == 330e12  # as int8, at most
    assert gpu("B200").most.flops_per_s(None) == 9000e12


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("Qwen/Qwen3-8B", "Qwen/Qwen3-8B"),
        ("qwen3-8b", "Qwen/Qwen3-8B"),
        ("Qwen/Qwen3-8B-FP8", "Qwen/Qwen3-8B"),
        ("/models/Qwen3-8B/", "Qwen/Qwen3-8B"),
        ("hub/models--Qwen--Qwen3-8B/snapshots/0a1b", "Qwen/Qwen3-8B"),
        ("meta-llama/Meta-Llama-3.1-8B-Instruct", "meta-llama/Llama-3.1-8B"),
        ("deepseek-ai/DeepSeek-R1-0528", "deepseek-ai/DeepSeek-R1"),
    ],
)
def test_a_model_is_found_by_name_or_path(said: str, name: str):
    assert model(said).name == name


@pytest.mark.parametrize(
    "said", [None, "", "/", "m", "DeepSeek-R1-Distill-Qwen-7B", "Qwen/Qwen3-8B-pruned", "deepseek-ai/DeepSeek-V3.2"]
)
def test_a_model_whose_sizes_may_differ_is_none(said: str | None):
    assert known().model(said) is None


@pytest.mark.parametrize(
    ("said", "precision"),
    [
        (("fp8",), "fp8"),
        (("torch.bfloat16",), "bf16"),
        ((None, "Qwen/Qwen3-8B-AWQ"), "int4"),
        (("compressed-tensors", "RedHatAI/Qwen3-8B-FP8-dynamic"), "fp8"),
        (("nvfp4",), "fp4"),
        ((None, "Qwen/Qwen3-8B"), None),
        ((None,), None),
    ],
)
def test_a_precision_is_read_where_one_is_named(said: tuple[str | None, ...], precision: str | None):
    assert precision_of(*said) == precision


@pytest.mark.parametrize("said", ["auto", "bfloat16", "torch.float16", None])
def test_the_type_of_the_arithmetic_is_not_that_of_the_weights(said: str | None):
    assert weights_precision_of(said) is None
    assert weights_precision_of(said, "fp8") == "fp8"


def test_every_number_has_its_source():
    for row in known().gpus:
        cells = [row.memory_gib, row.bandwidth_tb_per_s, *row.tflops.values(), row.link_gb_per_s]
        assert all(cell is not None and cell.value > 0 and cell.source for cell in cells), row.name
    assert all(row.source for row in known().models)


# --- a user's own ---------------------------------------------------------------------------------------------------

OWN_GPU = '[[gpu]]\nname = "L4"\nsource = "measured"\nmemory_gib = 22\nbandwidth_tb_per_s = 0.25\nbf16_tflops = 60\n'


def written(folder: Path, text: str) -> Path:
    file = folder / "machines.toml"
    file.write_text(text, "utf-8")
    return file


def test_ones_own_gpu_comes_before_the_table(tmp_path: Path):
    machines = read_machines(written(tmp_path, OWN_GPU))
    found = machines.gpu("L4")
    assert found is not None
    assert (found.most.bandwidth_bytes_per_s, found.most.bandwidth_tb_per_s.source) == (250e9, "measured")
    assert machines.gpu("H100 SXM") == gpu("H100 SXM")


def test_ones_own_model_may_be_a_config_json(tmp_path: Path):
    config = {
        "model_type": "qwen3", "num_hidden_layers": 36, "num_attention_heads": 32, "num_key_value_heads": 8,
        "head_dim": 128, "hidden_size": 4096, "intermediate_size": 12288, "vocab_size": 151936,
        "tie_word_embeddings": False, "sliding_window": None, "quantization_config": {"quant_method": "fp8"},
    }  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(config), "utf-8")
    own = read_machines(written(tmp_path, '[[model]]\nname = "our-qwen"\nconfig = "config.json"\n')).model("our-qwen")
    assert own is not None
    assert (own.params, own.precision) == (8_190_735_360, "fp8")
    assert read_model(tmp_path / "config.json").params == 8_190_735_360


def test_a_mixture_of_experts_is_read_from_its_config(tmp_path: Path):
    config = {
        "model_type": "qwen3_moe", "num_hidden_layers": 48, "num_attention_heads": 32, "num_key_value_heads": 4,
        "head_dim": 128, "hidden_size": 2048, "intermediate_size": 6144, "moe_intermediate_size": 768,
        "num_experts": 128, "num_experts_per_tok": 8, "vocab_size": 151936,
    }  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(config), "utf-8")
    assert read_model(tmp_path / "config.json").params == 30_532_122_624


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[[gpu", "not valid TOML"),
        ("[[gpus]]\n", "'gpus' is not known; did you mean gpu?"),
        ("gpu = 3\n", "gpu is no list of tables; write `[[gpu]]` above each"),
        ('[[gpu]]\nname = "x"\n', "gpu 1: no source"),
        (OWN_GPU.replace("memory_gib = 22\n", ""), "gpu 1: no memory_gib; a GPU has memory_gib and bandwidth_tb_per_s"),
        (OWN_GPU.replace("0.25", "-1"), "bandwidth_tb_per_s is -1; it takes a number above 0"),
        (OWN_GPU.replace("0.25", "nan"), "bandwidth_tb_per_s is nan"),
        (OWN_GPU.replace("bf16_tflops", "bf17_tflops"), "did you mean bf16_tflops?"),
        ('[[model]]\nname = "x"\nsource = "y"\n', "model 1: no layers; a model has layers, query_heads"),
        (
            '[[model]]\nname = "x"\nsource = "y"\nlayers = 1\nquery_heads = 1\nhidden = 8\nvocab = 9\n',
            "no kv_heads or no head_dim",
        ),
        ('[[model]]\nname = "x"\nconfig = "no.json"\n', "no such config.json"),
        ('[[model]]\nname = "x"\nconfig = "no.json"\nlayers = 3\n', "both config and layers"),
    ],
)
def test_what_is_wrong_with_a_file_is_one_sentence(tmp_path: Path, text: str, sentence: str):
    with pytest.raises(PdkitError) as problem:
        read_machines(written(tmp_path, text))
    assert sentence in str(problem.value)
    assert "\n" not in str(problem.value).strip().replace("\\n", "")


def test_a_file_that_is_not_there_is_said(tmp_path: Path):
    with pytest.raises(PdkitError, match="no such file of GPUs and models"):
        read_machines(tmp_path / "none.toml")


@pytest.mark.parametrize("content", ["[]", "{}", '{"model_type": "mamba"}', "not json", '{"model_type": "llama"}'])
def test_a_config_that_says_too_little_is_no_model(tmp_path: Path, content: str):
    file = tmp_path / "config.json"
    file.write_text(content, "utf-8")
    with pytest.raises(PdkitError):
        read_model(file)
