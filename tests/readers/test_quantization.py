"""Number formats of checkpoints: methods, exceptions by module name, cache format, unquantized MTP."""

import pytest

from rooflinekit.errors import ModelError
from rooflinekit.precision import precision
from rooflinekit.readers.hf_config import llm_from_config
from rooflinekit.readers.quant_modules import Modules, left_out
from rooflinekit.resolve import setup

DENSE = {
    "model_type": "qwen3",
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 6,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "vocab_size": 500,
}
DEEPSEEK = {
    **DENSE,
    "model_type": "deepseek_v3",
    "q_lora_rank": 24,
    "kv_lora_rank": 16,
    "qk_nope_head_dim": 8,
    "qk_rope_head_dim": 4,
    "v_head_dim": 6,
    "n_routed_experts": 8,
    "n_shared_experts": 1,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 16,
    "first_k_dense_replace": 2,
    "num_nextn_predict_layers": 1,
}
EXPERTS = {**DENSE, "model_type": "gpt_oss", "num_local_experts": 8, "num_experts_per_tok": 2}


def stored(base=DENSE, **quantization):
    return llm_from_config(base | {"quantization_config": quantization}, "tiny")


def group(bits, kind, size=None, *, alone=True, targets=("Linear",)):
    weights = {"num_bits": bits, "type": kind, "group_size": size}
    inputs = None if alone else {"num_bits": bits, "type": kind}
    return {"weights": weights, "input_activations": inputs, "targets": list(targets)}


@pytest.mark.parametrize(
    ("quantization", "main"),
    [
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, "fp8"),
        ({"quant_method": "awq", "bits": 4, "group_size": 128}, "w4a16"),
        ({"quant_method": "gptq", "bits": 8}, "w8a16"),
        ({"quant_method": "modelopt", "quant_algo": "FP8"}, "fp8"),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "nvfp4"),
        ({"quant_method": "modelopt", "quant_algo": "W4A16_AWQ"}, "w4a16"),
        ({"quant_method": "modelopt"}, "bf16"),
        ({"quant_method": "compressed-tensors", "config_groups": {"a": group(8, "float")}}, "w8a16"),
        (
            {"quant_method": "compressed-tensors", "config_groups": {"a": group(8, "float", alone=False)}},
            "fp8",
        ),
        (
            {"quant_method": "compressed-tensors", "config_groups": {"a": group(8, "int", alone=False)}},
            "int8",
        ),
        ({"quant_method": "compressed-tensors", "config_groups": {"a": group(4, "int", 128)}}, "w4a16"),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"a": group(4, "float", 16, alone=False)},
            },
            "nvfp4",
        ),
        (
            {"quant_method": "compressed-tensors", "config_groups": {"a": group(4, "float", 32)}},
            "w4a16-mxfp4",
        ),
    ],
)
def test_main_format(quantization, main):
    model = stored(**quantization)
    assert (model.dtype, dict(model.formats), model.kv_dtype) == (main, {}, "auto")


def test_integers_in_groups_of_32_take_four_and_a_half_bits():
    model = stored(quant_method="compressed-tensors", config_groups={"a": group(4, "int", 32)})
    assert precision(model.dtype).main.bits == 4.5
    assert precision(model.dtype).compute == "bf16"


def test_mxfp4_covers_experts_only():
    model = stored(EXPERTS, quant_method="mxfp4", modules_to_not_convert=["model.layers.*.self_attn"])
    assert (model.dtype, dict(model.formats)) == ("bf16", {"experts": "mxfp4"})
    ours = setup(model, "h100-sxm", calibration="datasheet").target.precision
    assert (ours.of("experts").compute, ours.of("experts").bits) == ("bf16", 4.25)


@pytest.mark.parametrize(
    "exceptions",
    [
        ["model.layers.*.self_attn", "lm_head"],
        ["re:.*self_attn.*"],
        [f"model.layers.{layer}.self_attn" for layer in range(6)],
        ["self_attn"],
    ],
)
def test_attention_left_in_sixteen_bits(exceptions):
    model = stored(quant_method="fp8", modules_to_not_convert=exceptions)
    assert (model.dtype, dict(model.formats)) == ("fp8", {"attention": "bf16"})


def test_exceptions_in_few_layers_and_of_small_parts_change_nothing():
    few = ["model.layers.0.mlp", "model.layers.5.self_attn", "gate", "lm_head", "input_layernorm"]
    assert dict(stored(quant_method="fp8", modules_to_not_convert=few).formats) == {}


def test_output_projection_and_mtp_may_differ_from_the_rest():
    names = ("q_a_proj", "q_b_proj", "kv_a_proj_with_mqa", "kv_b_proj")
    exceptions = [f"model.layers.{layer}.self_attn.{name}" for layer in range(6) for name in names]
    model = stored(
        DEEPSEEK,
        quant_method="modelopt",
        quant_algo="NVFP4",
        kv_cache_quant_algo="FP8",
        exclude_modules=[*exceptions, "model.layers.6*", "lm_head"],
    )
    assert dict(model.formats) == {"attention": "bf16", "attention output": "nvfp4"}
    assert (model.dtype, model.kv_dtype, model.mtp.format) == ("nvfp4", "fp8", "bf16")
    classes = {one.label: one.tensor_class for one in model.blocks[0].mixer.linears(64)}
    assert classes["output projection"] == "attention output"
    assert classes["kv up-projection"] == "attention"
    numbers = precision(model.dtype, model.kv_dtype, model.formats)
    assert numbers.bytes_per("attention output") == 4.5 / 8
    assert stored(DEEPSEEK, quant_method="fp8").mtp.format == ""


def test_mixed_precision_by_module():
    layers = range(6)
    listed = {
        f"model.layers.{layer}.mlp.{name}_proj": {"quant_algo": "W4A16_NVFP4"}
        for layer in layers
        for name in ("gate", "up", "down")
    }
    listed |= {
        f"model.layers.{layer}.self_attn.{name}_proj": {"quant_algo": "FP8"}
        for layer in layers
        for name in "qkvo"
    }
    listed |= {"lm_head": {"quant_algo": "W4A16_NVFP4"}}
    model = stored(
        quant_method="modelopt",
        quant_algo="MIXED_PRECISION",
        quantized_layers=listed,
        ignore=["mtp*"],
        kv_cache_scheme={"num_bits": 8, "type": "float"},
    )
    assert (model.dtype, model.kv_dtype) == ("w4a16-nvfp4", "fp8")
    assert dict(model.formats) == {"attention": "fp8", "head": "w4a16-nvfp4"}
    kept = stored(
        quant_method="modelopt",
        quant_algo="MIXED_PRECISION",
        quantized_layers={"lm_head": {"quant_algo": "FP8"}},
    )
    assert (kept.dtype, dict(kept.formats)) == ("bf16", {"head": "fp8"})


def test_groups_of_modules():
    model = stored(
        quant_method="compressed-tensors",
        config_groups={
            "a": group(8, "float", alone=False, targets=["re:.*self_attn.*"]),
            "b": group(4, "float", 16, alone=False, targets=["re:.*mlp.*"]),
        },
        ignore=["lm_head"],
    )
    assert (model.dtype, dict(model.formats)) == ("nvfp4", {"attention": "fp8"})


def test_cache_format_of_the_checkpoint_is_used_unless_named():
    model = stored(quant_method="modelopt", quant_algo="FP8", kv_cache_quant_algo="FP8")
    assert setup(model, "h100-sxm", calibration="datasheet").target.precision.kv_bits == 8
    assert setup(model, "h100-sxm", kv_dtype="bf16", calibration="datasheet").target.precision.kv_bits == 16


@pytest.mark.parametrize(
    ("match", "quantization"),
    [
        ("quant_method 'bitsandbytes', but only fp8", {"quant_method": "bitsandbytes"}),
        ("quant_method None", {}),
        ("bits is 3, but must be 4 or 8", {"quant_method": "gptq", "bits": 3}),
        ("group_size is 64", {"quant_method": "awq", "bits": 4, "group_size": 64}),
        ("quant_algo is 'W2'", {"quant_method": "modelopt", "quant_algo": "W2"}),
        (
            "kv_cache_quant_algo is 'NVFP4'",
            {"quant_method": "modelopt", "quant_algo": "FP8", "kv_cache_quant_algo": "NVFP4"},
        ),
        ("config_groups is", {"quant_method": "compressed-tensors"}),
        ("num_bits is 2", {"quant_method": "compressed-tensors", "config_groups": {"a": group(2, "int")}}),
    ],
)
def test_unknown_formats_are_refused(match, quantization):
    with pytest.raises(ModelError, match=match):
        stored(**quantization)


def test_module_names():
    modules = Modules(["model.layers.3", "gate", "mtp*", "re:.*experts.*", "re:(", "[odd"])
    assert "model.layers.3.mlp.up_proj" in modules
    assert "model.layers.31.mlp.up_proj" not in modules
    assert "model.layers.0.mlp.gate" in modules
    assert "model.layers.0.mlp.gate_proj" not in modules
    assert "mtp.layers.0" in modules
    assert "model.layers.0.mlp.experts.1.up_proj" in modules
    assert left_out([], 4) == ()
