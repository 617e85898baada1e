"""Families with names, windows, biases or nesting of their own: exact counts, patterns, refusals."""

import pytest

from rooflinekit.errors import ModelError
from rooflinekit.llm import Mlp, Moe
from rooflinekit.readers.hf_config import FAMILIES, llm_from_config

BASE = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 6,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "vocab_size": 500,
}
EXPERTS = {"num_local_experts": 8, "num_experts_per_tok": 2}
GLM = {
    "head_dim": 8,
    "n_routed_experts": 8,
    "n_shared_experts": 2,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 16,
    "first_k_dense_replace": 2,
}
QWEN_MOE = {"head_dim": 8, "num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
FALCON = {"hidden_size": 64, "n_layer": 3, "n_head": 8, "vocab_size": 500, "alibi": False}
GPT2 = {"n_embd": 64, "n_layer": 3, "n_head": 8, "n_positions": 100, "vocab_size": 500}
STEP = {**{key: QWEN_MOE[key] for key in QWEN_MOE}, "share_expert_dim": 16, "sliding_window": 32}
PER_LAYER = {
    "hidden_size_per_layer_input": 16,
    "vocab_size_per_layer_input": 300,
    "num_kv_shared_layers": 2,
    "use_double_wide_mlp": True,
    "head_dim": 16,
    "global_head_dim": 32,
    "layer_types": ["sliding_attention", "sliding_attention", "full_attention"] * 2,
}


def build(model_type, base=BASE, **changes):
    return llm_from_config({"model_type": model_type, **base, **changes}, "tiny")


def windows(model):
    return [(block.count, block.window) for block in model.blocks]


# Counted with transformers 5.19.0 on the meta device from the same fields.
@pytest.mark.parametrize(
    ("model_type", "base", "changes", "counted"),
    [
        ("gemma", BASE, {}, 2_109_504),
        ("gemma2", BASE, {}, 2_110_272),
        ("gemma3_text", BASE, {}, 2_113_344),
        ("gemma4_text", BASE, PER_LAYER, 380_448),
        (
            "gemma4_text",
            BASE,
            {
                "head_dim": 16,
                "global_head_dim": 32,
                "attention_k_eq_v": True,
                "num_global_key_value_heads": 1,
            },
            281_632,
        ),
        (
            "gemma4_text",
            BASE,
            {
                "head_dim": 16,
                "enable_moe_block": True,
                "num_experts": 8,
                "top_k_experts": 2,
                "moe_intermediate_size": 16,
            },
            1_055_248,
        ),
        ("falcon", FALCON, {"multi_query": True, "parallel_attn": True, "bias": False}, 158_464),
        ("falcon", FALCON, {"multi_query": False, "parallel_attn": False, "bias": True}, 182_080),
        (
            "falcon",
            FALCON,
            {"new_decoder_architecture": True, "num_kv_heads": 2, "num_ln_in_parallel_attn": 1},
            161_536,
        ),
        ("gpt_bigcode", GPT2, {"multi_query": True}, 166_640),
        ("gpt_bigcode", GPT2, {"multi_query": False, "n_inner": 70}, 116_498),
        ("phi3", BASE, {}, 236_864),
        ("gpt_oss", BASE, EXPERTS, 1_461_536),
        ("glm4_moe", BASE, GLM | {"attention_bias": True, "use_qk_norm": True}, 288_736),
        ("glm4_moe", BASE, GLM | {"n_shared_experts": 1}, 275_776),
        ("minimax_m2", BASE, EXPERTS | {"head_dim": 8}, 1_014_560),
        ("qwen3_vl_text", BASE, {"head_dim": 8}, 236_960),
        ("qwen3_vl_moe_text", BASE, QWEN_MOE, 276_896),
        ("qwen2_5_vl_text", BASE, {}, 237_440),
    ],
)
def test_counts_are_those_of_transformers(model_type, base, changes, counted):
    assert build(model_type, base, **changes).total_params == counted


def test_patterns_without_layer_types():
    assert windows(build("gemma2", sliding_window=32)) == [(1, 32), (1, None)] * 3
    assert windows(build("gemma3", sliding_window=32)) == [(5, 32), (1, None)]
    assert windows(build("gemma3", sliding_window=32, sliding_window_pattern=3)) == [(2, 32), (1, None)] * 2
    assert windows(build("gemma4", sliding_window=32)) == [(5, 32), (1, None)]
    assert windows(build("gpt_oss", **EXPERTS)) == [(1, 128), (1, None)] * 3


def test_absent_fields_of_sparse_gemma_files():
    sparse = {key: BASE[key] for key in ("hidden_size", "intermediate_size", "num_hidden_layers")}
    model = build("gemma3_text", sparse)
    mixer = model.blocks[0].mixer
    assert (mixer.heads, mixer.kv_heads, mixer.head_dim, mixer.window) == (8, 4, 256, 4096)
    assert (model.vocab, model.tied) == (262_208, True)


def test_gpt_oss_sinks_biases_and_spellings():
    model = build("gpt_oss", num_experts=8, experts_per_token=2)
    mixer, ffn = model.blocks[0].mixer, model.blocks[0].ffn
    assert (mixer.sinks, mixer.qkv_bias, mixer.out_bias, mixer.head_dim) == (True, True, True, 64)
    assert (ffn.experts, ffn.top_k, ffn.router_bias, ffn.expert_bias) == (8, 2, True, True)


def test_llama_4_chunks_and_experts():
    llama = {"num_hidden_layers": 8, "intermediate_size_mlp": 70, **EXPERTS}
    every_second = build("llama4_text", **llama, interleave_moe_layer_step=2, attention_chunk_size=16)
    assert [block.window for block in every_second.blocks] == [16, 16, 16, None] * 2
    assert [type(block.ffn) for block in every_second.blocks] == [Mlp, Moe] * 4
    assert every_second.blocks[0].ffn.intermediate == 70
    assert every_second.blocks[1].ffn.shared_intermediate == 96
    assert windows(build("llama4_text", **llama, attention_chunk_size=None)) == [(8, None)]
    assert windows(build("llama4_text", **llama)) == [(3, 8192), (1, None)] * 2
    assert windows(build("llama4_text", **llama, no_rope_layers=[1] * 7 + [0])) == [(7, 8192), (1, None)]
    kinds = ["full_attention"] * 4 + ["chunked_attention"] * 4
    assert windows(build("llama4_text", **llama, layer_types=kinds)) == [(4, None), (4, 8192)]
    with pytest.raises(ModelError, match="no_rope_layers"):
        build("llama4_text", **llama, no_rope_layers=[1])


def test_gemma_4_shares_caches_and_values():
    model = build("gemma4_text", **PER_LAYER)
    assert [block.mixer.shared_cache for block in model.blocks] == [False, False, False, True, True]
    # Four layers of six leave keys and values: three with heads of 16, one of 32.
    assert model.kv_elements_per_token() == 2 * 2 * (3 * 16 + 32)
    assert [block.ffn.intermediate for block in model.blocks] == [96, 96, 96, 192, 192]
    same = build("gemma4_text", attention_k_eq_v=True, num_global_key_value_heads=1).blocks[-1].mixer
    assert (same.shared_values, same.kv_heads, same.kv_elements()) == (True, 1, 2 * 512)
    with pytest.raises(ModelError, match="num_kv_shared_layers is 6"):
        build("gemma4_text", num_kv_shared_layers=6)


def test_gpt_2_names_and_one_kv_head():
    # Published example: GPT-2 and santacoder at 8,192 tokens in fp16, 288 MiB and 96 MiB.
    gpt2 = build("gpt2", {"n_layer": 12, "n_embd": 768, "n_head": 12, "vocab_size": 50_257})
    assert gpt2.kv_elements_per_token() * 2 * 8192 == 288 * 2**20
    santacoder = {"n_layer": 24, "n_embd": 2048, "n_head": 16, "n_inner": 8192, "vocab_size": 49_280}
    for found in (
        build("gpt2", santacoder, multi_query=True),
        build("gpt2", santacoder, attention_head_type="multiquery"),
        build("gpt_bigcode", santacoder),
    ):
        assert found.kv_elements_per_token() * 2 * 8192 == 96 * 2**20
    assert build("gpt_bigcode", santacoder, multi_query=False).kv_elements_per_token() == 24 * 2 * 2048
    with pytest.raises(ModelError, match="n_embd is 0"):
        build("gpt2", {"n_layer": 12, "n_embd": 0, "n_head": 12, "vocab_size": 100})


def test_head_dimension_is_the_explicit_one():
    # Mistral-Small-24B and Gemma-3-12B: 128 and 256, not width over heads (160 and 240).
    small = {"hidden_size": 5120, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128}
    model = build("mistral", **small | {"num_hidden_layers": 40, "sliding_window": None})
    assert model.kv_elements_per_token() * 2 == 163_840
    gemma = {"hidden_size": 3840, "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 256}
    assert build("gemma3_text", **gemma | {"num_hidden_layers": 48}).kv_elements_per_token() * 2 == 393_216


def test_t5_decoder_with_an_encoder():
    t5 = {"d_model": 64, "d_ff": 96, "d_kv": 8, "num_heads": 8, "num_layers": 3, "vocab_size": 500}
    model = build("t5", t5, num_decoder_layers=2)
    attention, mlp = 4 * 64 * 64, 2 * 64 * 96
    decoder, encoder = 2 * (2 * attention + mlp + 3 * 64), 3 * (attention + mlp + 2 * 64)
    assert model.total_params == decoder + encoder + 500 * 64 + 2 * 64 + 2 * 32 * 8
    assert (model.layers, model.blocks[0].cross is not None) == (2, True)
    assert build("t5", t5, feed_forward_proj="gated-gelu").blocks[0].ffn.gated


def test_step_gates_heads_and_has_others_in_windows():
    layer_types = ["full_attention"] + ["sliding_attention"] * 5
    model = build("step3p7", **STEP, first_k_dense_replace=1, layer_types=layer_types)
    assert windows(model) == [(1, None), (5, 32)]
    first = model.blocks[0]
    # Queries and one gate for each of 8 heads, keys and values of 2, output.
    assert sum(one.parameters for one in first.mixer.linears(64)) == 64 * (8 * 9 + 4 * 8) + 64 * 64
    other = build(
        "step3p7", **STEP, layer_types=layer_types, attention_other_setting={"num_attention_heads": 16}
    )
    assert [block.mixer.heads for block in other.blocks][::2] == [8, 16]


def test_step_lists_that_go_on_for_the_mtp_modules():
    layer_types = ["sliding_attention"] * 6 + ["full_attention"] * 2
    model = build(
        "step3p5", **STEP, layer_types=layer_types, num_nextn_predict_layers=2, moe_layers_enum="2,3,4,5"
    )
    assert [(block.count, type(block.ffn), block.window) for block in model.blocks] == [
        (2, Mlp, 32),
        (4, Moe, 32),
    ]
    assert type(build("step3p5", **STEP, moe_layers_enum=[0]).blocks[0].ffn) is Moe


@pytest.mark.parametrize(
    ("model_type", "changes", "modules"),
    [
        ("glm4_moe", GLM | {"num_nextn_predict_layers": 1}, 1),
        ("glm4_moe", GLM | {"num_nextn_predict_layers": 0}, 0),
        ("minimax_m2", EXPERTS | {"use_mtp": True, "num_mtp_modules": 3, "mtp_transformer_layers": 2}, 3),
        ("minimax_m2", EXPERTS | {"use_mtp": False, "num_mtp_modules": 3}, 0),
        ("mimo", {"num_nextn_predict_layers": 1}, 1),
        ("step3p7", STEP | {"num_nextn_predict_layers": 3}, 3),
    ],
)
def test_mtp_modules(model_type, changes, modules):
    model = build(model_type, **changes)
    assert (model.mtp.modules if model.mtp else 0) == modules
    assert (model.mtp_params > 0) == (modules > 0)
    assert (
        model.total_params == build(model_type, **{**changes, "num_nextn_predict_layers": None}).total_params
    )


def test_mtp_modules_of_several_layers():
    one = build("minimax_m2", **EXPERTS, use_mtp=True, num_mtp_modules=1)
    two = build("minimax_m2", **EXPERTS, use_mtp=True, num_mtp_modules=1, mtp_transformer_layers=2)
    assert two.mtp_params - one.mtp_params == one.mtp.block.parameters(64)


# -- nesting ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["text_config", "llm_config"])
def test_nested_config_is_opened(key):
    text = {**BASE, "model_type": "qwen3_vl_text", "head_dim": 8}
    outer = {
        "model_type": "qwen3_vl",
        "architectures": ["Qwen3VLForConditionalGeneration"],
        "tie_word_embeddings": True,
        "torch_dtype": "float16",
        "quantization_config": {"quant_method": "fp8"},
        key: text,
        "vision_config": {"hidden_size": 3},
    }
    model = llm_from_config(outer, "tiny")
    assert (model.tied, model.dtype) == (True, "fp8")
    assert model.total_params == build("qwen3_vl_text", head_dim=8, tie_word_embeddings=True).total_params
    plain = {name: value for name, value in outer.items() if name != "quantization_config"}
    assert llm_from_config(plain, "tiny").dtype == "fp16"
    inner_says = plain | {key: text | {"dtype": "float32", "tie_word_embeddings": False}}
    assert (llm_from_config(inner_says, "tiny").dtype, llm_from_config(inner_says, "tiny").tied) == (
        "fp32",
        False,
    )
    unnamed = plain | {key: {name: text[name] for name in text if name != "model_type"}}
    assert llm_from_config(unnamed, "tiny").total_params == model.total_params


def test_nested_twice_and_around_a_plain_language_model():
    twice = {"model_type": "omni", "thinker_config": {"text_config": {**BASE, "model_type": "llama"}}}
    assert llm_from_config(twice, "tiny").layers == 6
    other = {"model_type": "pixel", "architectures": ["PixelForConditionalGeneration"]}
    assert llm_from_config(other | {"text_config": {**BASE, "model_type": "mistral"}}, "tiny").layers == 6
    with pytest.raises(ModelError, match=r"model_type 'squid'"):
        llm_from_config(other | {"text_config": {**BASE, "model_type": "squid"}}, "tiny")
    with pytest.raises(ModelError, match="text_config is 3"):
        llm_from_config(other | {"text_config": 3}, "tiny")


def test_unknown_architecture_names_what_could_not_be_resolved():
    with pytest.raises(ModelError) as caught:
        llm_from_config(
            {"model_type": "squid", "hidden_size": 64, "arms": 10, "ink_layers": [1], "bos_token_id": 1},
            "tiny",
        )
    text = str(caught.value)
    assert "not found: num_hidden_layers, num_attention_heads, vocab_size" in text
    assert "meaning would have to be known: arms, ink_layers;" in text
    assert all(name in text for name in FAMILIES)


# -- published shapes without a preset ----------------------------------------------------------------

GEMMA_4 = {
    "model_type": "gemma4",
    "architectures": ["Gemma4ForConditionalGeneration"],
    "text_config": {
        "model_type": "gemma4_text",
        "hidden_size": 2816,
        "intermediate_size": 2112,
        "num_hidden_layers": 30,
        "num_attention_heads": 16,
        "num_key_value_heads": 8,
        "num_global_key_value_heads": 2,
        "head_dim": 256,
        "global_head_dim": 512,
        "attention_k_eq_v": True,
        "enable_moe_block": True,
        "num_experts": 128,
        "top_k_experts": 8,
        "moe_intermediate_size": 704,
        "sliding_window": 1024,
        "vocab_size": 262_144,
    },
}
STEP_37 = {
    "model_type": "step3p7",
    "hidden_size": 4096,
    "intermediate_size": 11_264,
    "num_hidden_layers": 45,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "vocab_size": 128_896,
    "sliding_window": 512,
    "layer_types": ["full_attention" if layer % 4 == 0 else "sliding_attention" for layer in range(45)],
    "first_k_dense_replace": 3,
    "num_experts": 288,
    "num_experts_per_tok": 8,
    "moe_intermediate_size": 1280,
    "share_expert_dim": 1280,
}
QWEN_VL = {
    "model_type": "qwen3_vl",
    "architectures": ["Qwen3VLForConditionalGeneration"],
    "text_config": {
        "model_type": "qwen3_vl_text",
        "hidden_size": 4096,
        "intermediate_size": 12_288,
        "num_hidden_layers": 36,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "vocab_size": 151_936,
    },
}


# Counted with transformers 5.19.0 on the meta device, vision towers taken off; KV bytes by hand.
@pytest.mark.parametrize(
    ("config", "total", "active", "kv_bytes"),
    [
        (GEMMA_4, 25_233_141_760, 3_822_530_560, 25 * 2 * 8 * 256 * 2 + 5 * 2 * 2 * 512 * 2),
        (STEP_37, 195_844_496_640, 10_875_690_240, 45 * 2 * 8 * 128 * 2),
        (QWEN_VL, 8_190_735_360, 8_190_735_360, 36 * 2 * 8 * 128 * 2),
    ],
    ids=["gemma-4-26b-a4b", "step-3.7-flash", "qwen3-vl-8b"],
)
def test_published_shapes(config, total, active, kv_bytes):
    model = llm_from_config(config, "published")
    assert (model.total_params, model.active_params) == (total, active)
    assert model.kv_elements_per_token() * 2 == kv_bytes
