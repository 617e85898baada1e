"""Number formats of checkpoints: methods, exceptions by module name, cache format, unquantized MTP."""

import pytest

from rooflinekit.errors import ModelError
from rooflinekit.precision import precision
from rooflinekit.readers.hf_config import llm_from_config
from rooflinekit.readers.quant_modules import Layout, Modules, left_out
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


HYBRID = {
    **DENSE,
    "model_type": "qwen3_5_text",
    "full_attention_interval": 3,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 8,
    "linear_conv_kernel_dim": 4,
}
LLAMA4 = {
    **DENSE,
    "model_type": "llama4",
    "num_local_experts": 8,
    "num_experts_per_tok": 1,
    "intermediate_size_mlp": 70,
    "interleave_moe_layer_step": 2,
}
NEMOTRON = {
    **DENSE,
    "model_type": "nemotron_h",
    "hybrid_override_pattern": "ME*M-E",
    "head_dim": 8,
    "mamba_num_heads": 8,
    "mamba_head_dim": 8,
    "ssm_state_size": 8,
    "n_routed_experts": 8,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 16,
    "moe_shared_expert_intermediate_size": 16,
}
GPT2 = {"model_type": "gpt2", "n_embd": 64, "n_layer": 4, "n_head": 4, "vocab_size": 500}
FALCON = {
    "model_type": "falcon",
    "hidden_size": 64,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "vocab_size": 500,
}


def stored(base=DENSE, **quantization):
    return llm_from_config(base | {"quantization_config": quantization}, "tiny")


def group(bits, kind, size=None, *, alone=True, inputs=None, targets=("Linear",)):
    weights = {"num_bits": bits, "type": kind, "group_size": size}
    inputs = None if alone else inputs or {"num_bits": bits, "type": kind}
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


@pytest.mark.parametrize(
    ("weights", "inputs", "name"),
    [
        ((4, "float", 16), (8, "float"), "w4a16-nvfp4"),
        ((4, "float", 32), (8, "float"), "w4a16-mxfp4"),
        ((4, "float", 32), (4, "float"), "mxfp4"),
        ((4, "int", 128), (8, "int"), "w4a16"),
        ((4, "int", 128), (8, "float"), "w4a16"),
        ((8, "float"), (16, "float"), "w8a16"),
        ((8, "int"), (8, "float"), "w8a16"),
    ],
)
def test_the_rate_is_that_of_weights_and_inputs_together(weights, inputs, name):
    """No format has 4-bit weights that compute in 8 bits: they are priced as weight-only, not at the 4-bit rate."""
    bits, kind = inputs
    one = group(*weights, alone=False, inputs={"num_bits": bits, "type": kind})
    assert stored(quant_method="compressed-tensors", config_groups={"a": one}).dtype == name


@pytest.mark.parametrize(
    ("size", "name"),
    [
        (None, "w4a16"),
        (-1, "w4a16"),
        (16, "w4a16-g32"),
        (32, "w4a16-g32"),
        (64, "w4a16-g64"),
        (128, "w4a16"),
        (1024, "w4a16"),
    ],
)
@pytest.mark.parametrize("method", ["awq", "gptq"])
def test_groups_of_integers_have_the_format_of_the_nearest_bits(method, size, name):
    """4 + 16 / group bits by hand: 5, 4.5, 4.25 and 4.125; a whole column takes next to 4."""
    assert stored(quant_method=method, bits=4, group_size=size).dtype == name
    assert precision("w4a16-g64").main.bits == 4 + 16 / 64


def test_integers_in_groups_of_32_take_four_and_a_half_bits():
    model = stored(quant_method="compressed-tensors", config_groups={"a": group(4, "int", 32)})
    assert precision(model.dtype).main.bits == 4.5
    assert precision(model.dtype).compute == "bf16"


def test_mxfp4_covers_experts_only():
    model = stored(EXPERTS, quant_method="mxfp4", modules_to_not_convert=["model.layers.*.self_attn"])
    assert (model.dtype, dict(model.formats)) == ("bf16", {"experts": "w4a16-mxfp4"})
    for device in ("h100-sxm", "b200"):
        ours = setup(model, device, calibration="datasheet").target.precision
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


def test_a_class_that_few_layers_have_is_compared_with_those():
    """Qwen3.5: 2 of 6 layers have attention; Llama 4: every second one has experts. Lists give what globs give."""
    every = [
        f"model.language_model.layers.{layer}.self_attn.{name}_proj" for layer in (2, 5) for name in "qkvo"
    ]
    for exceptions in (every, ["model.language_model.layers.*.self_attn*"]):
        model = stored(HYBRID, quant_method="fp8", modules_to_not_convert=exceptions)
        assert (model.dtype, dict(model.formats)) == ("fp8", {"attention": "bf16"})
    half = stored(HYBRID, quant_method="fp8", modules_to_not_convert=every[:4])
    assert dict(half.formats) == {}
    delta = [f"model.layers.{layer}.linear_attn" for layer in (0, 1, 3, 4)]
    recurrent = stored(HYBRID, quant_method="fp8", modules_to_not_convert=delta)
    assert dict(recurrent.formats) == {"recurrent": "bf16"}
    experts = [f"language_model.model.layers.{layer}.feed_forward.experts" for layer in (1, 3, 5)]
    model = stored(LLAMA4, quant_method="fp8", modules_to_not_convert=experts)
    assert dict(model.formats) == {"experts": "bf16"}


@pytest.mark.parametrize(
    ("exceptions", "kept"),
    [
        (["backbone.layers.0.mixer.in_proj", "backbone.layers.3.mixer.in_proj"], ["recurrent"]),
        (["backbone.layers.0.mixer", "backbone.layers.3.mixer*"], ["recurrent"]),
        ([f"backbone.layers.2.mixer.{name}_proj" for name in "qkvo"], ["attention"]),
        (["backbone.layers.1.mixer.experts.*", "backbone.layers.5.mixer.experts.*"], ["experts"]),
        (["re:.*mixer.shared_experts.*"], ["shared"]),
        (["backbone.layers.4.mixer.up_proj"], ["mlp"]),
        (["backbone.layers.0.mixer.conv1d", "backbone.layers.1.mixer.gate", "lm_head"], []),
    ],
)
def test_nemotron_calls_every_part_mixer(exceptions, kept):
    model = stored(NEMOTRON, quant_method="modelopt", quant_algo="FP8", exclude_modules=exceptions)
    assert (model.dtype, dict(model.formats)) == ("fp8", dict.fromkeys(kept, "bf16"))


def test_nemotron_by_module():
    listed = {f"backbone.layers.{layer}.mixer.in_proj": {"quant_algo": "FP8"} for layer in (0, 3)}
    listed |= {
        f"backbone.layers.{layer}.mixer.experts.0.up_proj": {"quant_algo": "NVFP4"} for layer in (1, 5)
    }
    model = stored(NEMOTRON, quant_method="modelopt", quant_algo="MIXED_PRECISION", quantized_layers=listed)
    others = dict.fromkeys(("attention", "mlp", "shared"), "bf16")
    assert (model.dtype, dict(model.formats)) == ("nvfp4", {"recurrent": "fp8", **others})


@pytest.mark.parametrize(
    ("base", "names", "kept"),
    [
        (GPT2, ("attn.c_attn", "attn.c_proj"), "attention"),
        (GPT2, ("mlp.c_fc", "mlp.c_proj"), "mlp"),
        (FALCON, ("self_attention.query_key_value", "self_attention.dense"), "attention"),
        (FALCON, ("mlp.dense_h_to_4h",), "mlp"),
    ],
)
def test_older_names(base, names, kept):
    listed = [f"transformer.h.{layer}.{name}" for layer in range(4) for name in names]
    model = stored(base, quant_method="fp8", modules_to_not_convert=listed)
    assert dict(model.formats) == {kept: "bf16"}


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


def test_linear_is_the_default_of_what_no_other_group_names():
    groups = {
        "a": group(8, "float", alone=False),
        "b": group(4, "int", 128, targets=["re:.*down_proj"]),
    }
    model = stored(quant_method="compressed-tensors", config_groups=groups, ignore=["lm_head"])
    assert (model.dtype, dict(model.formats)) == ("w4a16", {"attention": "fp8"})
    kept = stored(quant_method="compressed-tensors", config_groups=groups, ignore=["re:.*self_attn.*"])
    assert (kept.dtype, dict(kept.formats)) == ("w4a16", {"attention": "bf16"})
    few = groups | {"b": group(4, "int", 128, targets=["re:.*layers.0.mlp.*"])}
    model = stored(DEEPSEEK, quant_method="compressed-tensors", config_groups=few, ignore=["re:.*layers.6.*"])
    assert (model.dtype, dict(model.formats), model.mtp.format) == ("fp8", {}, "bf16")


def test_cache_format_of_the_checkpoint_is_used_unless_named():
    model = stored(quant_method="modelopt", quant_algo="FP8", kv_cache_quant_algo="FP8")
    assert setup(model, "h100-sxm", calibration="datasheet").target.precision.kv_bits == 8
    assert setup(model, "h100-sxm", kv_dtype="bf16", calibration="datasheet").target.precision.kv_bits == 16


@pytest.mark.parametrize(
    ("match", "quantization"),
    [
        ("quant_method 'bitsandbytes', but only fp8", {"quant_method": "bitsandbytes"}),
        ("quant_method None", {}),
        ("bits 3 is not supported yet", {"quant_method": "gptq", "bits": 3}),
        ("group_size 8 is not supported yet", {"quant_method": "awq", "bits": 4, "group_size": 8}),
        ("group_size is -2, but must", {"quant_method": "gptq", "bits": 4, "group_size": -2}),
        (
            "group_size 64 is not supported yet",
            {"quant_method": "compressed-tensors", "config_groups": {"a": group(4, "float", 64)}},
        ),
        ("quant_algo 'W2' is not supported yet", {"quant_method": "modelopt", "quant_algo": "W2"}),
        (
            "kv_cache_quant_algo 'NVFP4' is not supported yet",
            {"quant_method": "modelopt", "quant_algo": "FP8", "kv_cache_quant_algo": "NVFP4"},
        ),
        ("config_groups is", {"quant_method": "compressed-tensors"}),
        (
            "num_bits 2 is not supported yet",
            {"quant_method": "compressed-tensors", "config_groups": {"a": group(2, "int")}},
        ),
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
    layout = Layout(4, {"attention": frozenset({1, 3}), "mlp": frozenset(range(4))})
    assert left_out([], layout) == ()
    names = ["model.layers.1.self_attn", "model.layers.3.self_attn", "model.layers.1.mlp"]
    assert left_out(names, layout) == ("attention",)
    assert left_out([*names, "model.layers.4"], layout) == ("attention", "mtp")
