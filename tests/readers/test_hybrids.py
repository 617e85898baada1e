"""Hybrids and sparse attention: counts, cache, state and streamed bytes against hand arithmetic."""

import csv
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooflinekit.errors import ModelError
from rooflinekit.llm import Attention, BlockSparse, Compressed, GatedDelta, Mamba2, Mla, Moe
from rooflinekit.load import Load
from rooflinekit.memory import kv_cache_bytes
from rooflinekit.precision import precision
from rooflinekit.readers.hf_config import llm_from_config
from rooflinekit.readers.models import find_llm, model_names
from rooflinekit.transformer import forward_pass

BF16 = precision("bf16")
PRESETS = Path(find_llm.__code__.co_filename).parents[1] / "presets" / "models"
COUNTS = Path(__file__).parents[1] / "reference" / "parameter_counts_hybrid.csv"
with COUNTS.open(encoding="utf-8", newline="") as _file:
    ROWS = list(csv.DictReader(_file))


def preset(name):
    return json.loads((PRESETS / f"{name}.json").read_text(encoding="utf-8"))


def attention_layers(layers, every):
    return [layer for layer in range(1, layers + 1) if layer % every == 0]


# -- models that differ from a preset in a few fields, or are small enough to write out ---------------

QWEN_122B = {
    **preset("qwen3.5-35b-a3b"),
    "hidden_size": 3072,
    "num_hidden_layers": 48,
    "num_attention_heads": 32,
    "linear_num_value_heads": 64,
    "moe_intermediate_size": 1024,
    "shared_expert_intermediate_size": 1024,
}
QWEN_397B = {
    **QWEN_122B,
    "hidden_size": 4096,
    "num_hidden_layers": 60,
    "num_experts": 512,
    "num_experts_per_tok": 10,
}
SUPER = {
    **preset("nemotron-3-nano-30b-a3b"),
    "hidden_size": 4096,
    "num_hidden_layers": 88,
    "hybrid_override_pattern": "MEMEMEM*EMEMEMEM*EMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEM*EMEMEMEME",
    "mamba_num_heads": 128,
    "n_routed_experts": 512,
    "num_experts_per_tok": 22,
    "moe_intermediate_size": 2688,
    "moe_shared_expert_intermediate_size": 5376,
    "moe_latent_size": 1024,
    "num_nextn_predict_layers": 1,
    "mtp_hybrid_override_pattern": "*E",
}
V4_PRO = {
    **preset("deepseek-v4-flash"),
    "hidden_size": 7168,
    "num_hidden_layers": 61,
    "num_attention_heads": 128,
    "q_lora_rank": 1536,
    "o_groups": 16,
    "n_routed_experts": 384,
    "moe_intermediate_size": 3072,
    "index_topk": 1024,
    "compress_ratios": [128, *[128, 4] * 30, 0],
}
GLM_5_2 = {**preset("glm-5"), "index_topk_freq": 4, "index_skip_topk_offset": 3}
M3 = {
    "model_type": "minimax_m3",
    "architectures": ["MiniMaxM3ForCausalLM"],
    "hidden_size": 6144,
    "num_hidden_layers": 60,
    "num_attention_heads": 64,
    "num_key_value_heads": 4,
    "head_dim": 128,
    "vocab_size": 200064,
    "dense_intermediate_size": 12288,
    "shared_intermediate_size": 3072,
    "n_shared_experts": 1,
    "moe_intermediate_size": 3072,
    "num_local_experts": 128,
    "num_experts_per_tok": 4,
    "moe_layer_freq": [0] * 3 + [1] * 57,
    "num_mtp_modules": 7,
    "sparse_attention_config": {
        "use_sparse_attention": True,
        "sparse_attention_freq": [0] * 3 + [1] * 57,
        "sparse_block_size": 128,
        "sparse_topk_blocks": 16,
        "sparse_num_index_heads": 4,
        "sparse_index_dim": 128,
    },
}
KIMI = {
    "model_type": "kimi_linear",
    "architectures": ["KimiLinearForCausalLM"],
    "hidden_size": 2304,
    "intermediate_size": 9216,
    "num_hidden_layers": 27,
    "num_attention_heads": 32,
    "vocab_size": 163840,
    "q_lora_rank": None,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "num_experts": 256,
    "num_experts_per_token": 8,
    "num_shared_experts": 1,
    "moe_intermediate_size": 1024,
    "first_k_dense_replace": 1,
    "linear_attn_config": {
        "full_attn_layers": list(range(5, 26, 4)),
        "kda_layers": [layer for layer in range(1, 28) if layer not in range(5, 26, 4)],
        "head_dim": 128,
        "num_heads": 32,
        "short_conv_kernel_size": 4,
    },
}
_K3_FULL = [*attention_layers(93, 4), 93]
K3 = {
    **KIMI,
    "hidden_size": 7168,
    "intermediate_size": 33792,
    "num_hidden_layers": 93,
    "num_attention_heads": 96,
    "q_lora_rank": 1536,
    "num_experts": 896,
    "num_experts_per_token": 16,
    "num_shared_experts": 2,
    "moe_intermediate_size": 3072,
    "routed_expert_hidden_size": 3584,
    "latent_moe_use_norm": True,
    "attn_res_block_size": 12,
    "mla_use_output_gate": True,
    "linear_attn_config": {
        "full_attn_layers": _K3_FULL,
        "head_dim": 128,
        "num_heads": 96,
        "short_conv_kernel_size": 4,
        "kda_layers": [layer for layer in range(1, 94) if layer not in _K3_FULL],
        "use_full_rank_gate": True,
    },
}
WRITTEN = {
    "qwen3.5-122b-a10b": QWEN_122B,
    "qwen3.5-397b-a17b": QWEN_397B,
    "nemotron-3-super-120b-a12b": SUPER,
    "deepseek-v4-pro": V4_PRO,
    "glm-5.2": GLM_5_2,
    "minimax-m3": M3,
    "kimi-linear-default": KIMI,
    "kimi-k3": K3,
}


def model(name):
    return llm_from_config(WRITTEN[name], name) if name in WRITTEN else find_llm(name)


def refuse(match, config, **changes):
    with pytest.raises(ModelError, match=match) as caught:
        llm_from_config({**config, **changes}, "tiny")
    assert "\n" not in str(caught.value)


def without(config, *keys):
    return {key: value for key, value in config.items() if key not in keys}


def read(llm, label, load, tp=1, precision=BF16):
    return sum(work.kv_bytes for work in forward_pass(llm, load, precision, tp) if work.label == label)


# -- counts ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", ROWS, ids=[row["model"] for row in ROWS])
def test_parameter_counts_are_exact(row):
    found = model(row["model"])
    assert found.total_params == int(row["total_params"])
    assert found.active_params == int(row["active_params_incl_embedding"])
    assert row["source"]


def test_every_written_model_but_kimi_k3_has_a_counted_value():
    assert set(WRITTEN) - {row["model"] for row in ROWS} == {"kimi-k3"}
    assert {row["model"] for row in ROWS} - set(WRITTEN) <= set(model_names())


def test_kimi_k3_has_the_published_size():
    """Published 2.8T in all and 104B active; 896 experts of 3 x 3584 x 3072 = 33,030,144 in 92 layers."""
    found = model("kimi-k3")
    experts = 92 * 896 * 3 * 3584 * 3072
    assert experts / found.total_params > 0.97
    assert found.total_params == pytest.approx(2.78e12, rel=0.005)
    assert found.active_params - found.embedding_params == pytest.approx(104e9, rel=0.005)


def test_draft_modules_are_beside_the_total():
    """DeepSeek-V3.2: layer 61 again (index included), 2 h x h fusion, three norms; see the V3 report's 11.5B."""
    found = model("deepseek-v3.2")
    layer = found.blocks[-1].parameters(7168)
    assert found.mtp_params == layer + 2 * 7168 * 7168 + 3 * 7168
    # Qwen3.5: attention layer of 4 x 256 x 2 KV columns and a gate, MLP, fusion, norms.
    layer = 5120 * (2 * 24 + 2 * 4) * 256 + 24 * 256 * 5120 + 3 * 17408 * 5120 + 2 * 5120 + 2 * 256
    assert model("qwen3.5-27b").mtp_params == layer + 2 * 5120 * 5120 + 3 * 5120
    # Nemotron's module has an attention and an expert layer.
    block = model("nemotron-3-super-120b-a12b").mtp.block
    assert (type(block.mixer), type(block.ffn), block.norms) == (Attention, Moe, 2)


# -- cache and state: shapes are those of the config.json on the Hub ------------------------------------

KV_BYTES = {
    # attention layers x (K and V) x KV heads x head dimension x 2 bytes
    "qwen3-next-80b-a3b": 12 * 2 * 2 * 256 * 2,
    "qwen3.5-27b": 16 * 2 * 4 * 256 * 2,
    "qwen3.5-35b-a3b": 10 * 2 * 2 * 256 * 2,
    "qwen3.5-397b-a17b": 15 * 2 * 2 * 256 * 2,
    "nemotron-3-nano-30b-a3b": 6 * 2 * 2 * 128 * 2,
    "nemotron-3-super-120b-a12b": 8 * 2 * 2 * 128 * 2,
    # layers x (latent + rotary key + index key) x 2 bytes
    "deepseek-v3.2": 61 * (512 + 64 + 128) * 2,
    "glm-5": 78 * (512 + 64 + 128) * 2,
    # an index in three layers and then in every fourth of 75: 3 + 18
    "glm-5.2": (78 * (512 + 64) + 21 * 128) * 2,
    # keys of 192 and values of 128: 4 KV heads in 9 full layers, 8 in 39 windowed ones
    "mimo-v2-flash": (9 * 4 + 39 * 8) * (192 + 128) * 2,
    # own entry in 43 windows; 21 layers condense 4 tokens, with an index key; 20 condense 128
    "deepseek-v4-flash": (43 * 512 + 21 * (512 + 128) // 4 + 20 * 512 // 128) * 2,
    "deepseek-v4-pro": (61 * 512 + 30 * (512 + 128) // 4 + 31 * 512 // 128) * 2,
    "minimax-m3": (60 * 2 * 4 * 128 + 57 * 128) * 2,
    "kimi-k3": 24 * (512 + 64) * 2,
}
STATE_BYTES = {
    # recurrent layers x (value heads x key x value dimension + 3 past positions of q, k, v) x 4 bytes
    "qwen3-next-80b-a3b": 36 * (32 * 128 * 128 + 3 * (16 + 16 + 32) * 128) * 4,
    "qwen3.5-27b": 48 * (48 * 128 * 128 + 3 * (16 + 16 + 48) * 128) * 4,
    "qwen3.5-35b-a3b": 30 * (32 * 128 * 128 + 3 * (16 + 16 + 32) * 128) * 4,
    "qwen3.5-397b-a17b": 45 * (64 * 128 * 128 + 3 * (16 + 16 + 64) * 128) * 4,
    # heads x head dimension x state, and 3 past positions of x, B and C (8 groups)
    "nemotron-3-nano-30b-a3b": 23 * (64 * 64 * 128 + 3 * (64 * 64 + 2 * 8 * 128)) * 4,
    "nemotron-3-super-120b-a12b": 40 * (128 * 64 * 128 + 3 * (128 * 64 + 2 * 8 * 128)) * 4,
    "kimi-k3": 69 * (96 * 128 * 128 + 3 * 3 * 96 * 128) * 4,
    # values and gates that wait: of 128 tokens; of 4 tokens in two series, and one series of the 4 before
    "deepseek-v4-flash": (20 * 2 * 128 * 512 + 21 * 3 * 2 * 4 * (512 + 128)) * 4,
    "deepseek-v3.2": 0,
    "mimo-v2-flash": 0,
}


@pytest.mark.parametrize(("name", "expected"), KV_BYTES.items())
def test_kv_bytes_per_token_by_hand(name, expected):
    assert model(name).kv_elements_per_token() * 2 == expected


@pytest.mark.parametrize(("name", "expected"), STATE_BYTES.items())
def test_state_bytes_by_hand(name, expected):
    assert model(name).state_elements() * 4 == expected


# Matrices one decode step reads at batch 1, two bytes an element: mixer, feed-forward, head.
_QWEN_MOE = 512 * 2048 + 11 * 3 * 512 * 2048  # router, ten routed experts and the shared one
_QWEN_DELTA = (2 * 16 + 2 * 32) * 128 * 2048 + 2 * 32 * 2048 + 32 * 128 * 2048
_QWEN_FULL = (2 * 16 + 2 * 2) * 256 * 2048 + 16 * 256 * 2048
_DELTA_27B = (2 * 16 + 2 * 48) * 128 * 5120 + 2 * 48 * 5120 + 48 * 128 * 5120
_FULL_27B = (2 * 24 + 2 * 4) * 256 * 5120 + 24 * 256 * 5120
_MAMBA = (2 * 4096 + 2 * 8 * 128 + 64) * 2688 + 4096 * 2688
_GQA_NANO = (32 + 2 * 2) * 128 * 2688 + 32 * 128 * 2688
_MOE_NANO = 128 * 2688 + 6 * 2 * 1856 * 2688 + 2 * 3712 * 2688
_MOE_SUPER = 512 * 4096 + 2 * 1024 * 4096 + 22 * 2 * 2688 * 1024 + 2 * 5376 * 4096
_MAMBA_SUPER = (2 * 8192 + 2 * 8 * 128 + 128) * 4096 + 8192 * 4096
_GQA_SUPER = (32 + 2 * 2) * 128 * 4096 + 32 * 128 * 4096
_INDEX_V32 = 64 * 128 * 1536 + (128 + 64) * 7168
_MLA_V32 = (1536 + 576) * 7168 + 128 * 192 * 1536 + 128 * 256 * 512 + 128 * 128 * 7168 + _INDEX_V32
_MLA_GLM = (2048 + 576) * 6144 + 64 * 256 * 2048 + 64 * (192 + 256) * 512 + 64 * 256 * 6144
_INDEX_GLM = 32 * 128 * 2048 + (128 + 32) * 6144
_MOE_GLM = 256 * 6144 + 9 * 3 * 2048 * 6144
_V4 = (1024 + 512) * 4096 + 64 * 512 * 1024 + 8192 * 4096 + 8192 * 4096 + 2 * 24 * 4 * 4096
_V4_INDEX = 4 * (512 + 128) * 4096 + 64 * 128 * 1024 + 64 * 4096
_V4_MOE = 256 * 4096 + 7 * 3 * 2048 * 4096
_MIMO_FULL = (64 * 192 + 4 * 320) * 4096 + 64 * 128 * 4096
_MIMO_SWA = (64 * 192 + 8 * 320) * 4096 + 64 * 128 * 4096
_M3 = (64 + 2 * 4) * 128 * 6144 + 64 * 128 * 6144
STREAMED = {
    "qwen3-next-80b-a3b": 36 * _QWEN_DELTA + 12 * _QWEN_FULL + 48 * _QWEN_MOE + 151936 * 2048,
    "qwen3.5-27b": 48 * _DELTA_27B + 16 * _FULL_27B + 64 * 3 * 17408 * 5120 + 248320 * 5120,
    "qwen3.5-35b-a3b": 30 * _QWEN_DELTA
    + 10 * _QWEN_FULL
    + 40 * (256 * 2048 + 9 * 3 * 512 * 2048)
    + 248320 * 2048,
    "nemotron-3-nano-30b-a3b": 23 * _MAMBA + 6 * _GQA_NANO + 23 * _MOE_NANO + 131072 * 2688,
    "nemotron-3-super-120b-a12b": 40 * _MAMBA_SUPER + 8 * _GQA_SUPER + 40 * _MOE_SUPER + 131072 * 4096,
    "deepseek-v3.2": 61 * _MLA_V32
    + 3 * 3 * 18432 * 7168
    + 58 * (256 * 7168 + 9 * 3 * 2048 * 7168)
    + 129280 * 7168,
    "glm-5": 78 * (_MLA_GLM + _INDEX_GLM) + 3 * 3 * 12288 * 6144 + 75 * _MOE_GLM + 154880 * 6144,
    "glm-5.2": 78 * _MLA_GLM + 21 * _INDEX_GLM + 9 * 12288 * 6144 + 75 * _MOE_GLM + 154880 * 6144,
    "deepseek-v4-flash": 43 * (_V4 + _V4_MOE) + 21 * _V4_INDEX + 20 * 2 * 512 * 4096 + 129280 * 4096,
    "mimo-v2-flash": 9 * _MIMO_FULL
    + 39 * _MIMO_SWA
    + 3 * 16384 * 4096
    + 47 * (256 * 4096 + 8 * 3 * 2048 * 4096)
    + 152576 * 4096,
    "minimax-m3": 60 * _M3
    + 57 * (4 * 128 + 128) * 6144
    + 3 * 3 * 12288 * 6144
    + 57 * (128 * 6144 + 5 * 3 * 3072 * 6144)
    + 200064 * 6144,
}


@pytest.mark.parametrize(("name", "expected"), STREAMED.items())
def test_streamed_bytes_of_a_decode_step_by_hand(name, expected):
    works = forward_pass(model(name), Load(1.0, 1024.0), BF16)
    assert sum(work.weight_bytes for work in works) == pytest.approx(2 * expected, rel=1e-12)


# -- recurrent layers ----------------------------------------------------------------------------------

HYBRIDS = [name for name, size in STATE_BYTES.items() if size and "deepseek" not in name]


@pytest.mark.parametrize("name", HYBRIDS)
def test_the_state_is_constant_in_context(name):
    found = model(name)
    short, long = (read(found, "recurrent state", Load(3.0, context)) for context in (10.0, 1e6))
    assert short == long == 3 * 2 * STATE_BYTES[name]


@pytest.mark.parametrize("name", HYBRIDS)
def test_a_verify_writes_a_state_per_row(name):
    found = model(name)
    one = read(found, "recurrent state", Load(2.0, 100.0))
    assert read(found, "recurrent state", Load(2.0, 100.0, 8.0)) == one / 2 * (1 + 8)
    assert read(found, "recurrent state", Load(2.0, 100.0, 8.0, prefill=True)) == one


@pytest.mark.parametrize("name", HYBRIDS)
def test_the_cache_of_a_hybrid_is_that_of_its_attention_layers(name):
    """Memory grows by the attention layers' tokens only; what does not grow is the state."""
    found = model(name)
    sizes = [kv_cache_bytes(found, 1.0, context, BF16) for context in (0.0, 1e4)]
    assert sizes == [STATE_BYTES[name], STATE_BYTES[name] + 1e4 * KV_BYTES[name]]
    assert read(found, "attention", Load(1.0, 9999.0)) == 1e4 * KV_BYTES[name]


def test_mixers_and_their_order():
    kinds = {"M": Mamba2, "*": Attention, "E": type(None)}
    pattern = preset("nemotron-3-nano-30b-a3b")["hybrid_override_pattern"]
    found = model("nemotron-3-nano-30b-a3b")
    assert [type(block.mixer) for block in found.blocks] == [kinds[letter] for letter in pattern]
    assert [(block.count, type(block.mixer)) for block in model("qwen3-next-80b-a3b").blocks] == [
        (3, GatedDelta),
        (1, Attention),
    ] * 12


def test_layer_types_go_before_the_interval():
    kinds = ["full_attention", *["linear_attention"] * 63]
    changed = {**preset("qwen3.5-27b"), "layer_types": kinds}
    assert [block.count for block in llm_from_config(changed, "one").blocks] == [1, 63]
    refuse("layer_types", changed, layer_types=kinds[1:])
    refuse("layer_types", changed, layer_types=["sliding_attention", *kinds[1:]])


def test_a_nested_config_is_the_same_model():
    inner = preset("qwen3.5-35b-a3b")
    outer = {
        "model_type": "qwen3_5_moe",
        "architectures": inner["architectures"],
        "tie_word_embeddings": False,
    }
    nested = {**outer, "text_config": without(inner, "architectures", "tie_word_embeddings")}
    assert llm_from_config(nested, "q").blocks == find_llm("qwen3.5-35b-a3b").blocks


def test_tensor_parallel_ranks_share_states_and_heads():
    for name in ("qwen3-next-80b-a3b", "nemotron-3-nano-30b-a3b"):
        found = model(name)
        assert found.state_elements(2) * 2 == found.state_elements()
        assert found.kv_elements_per_token(2) * 2 == found.kv_elements_per_token()


def test_nemotron_kinds_by_name_are_those_of_the_letters():
    names = {"M": "mamba", "*": "attention", "E": "moe", "-": "mlp"}
    config = preset("nemotron-3-nano-30b-a3b")
    kinds = [names[letter] for letter in config["hybrid_override_pattern"]]
    named = {**without(config, "hybrid_override_pattern"), "layers_block_type": kinds}
    assert llm_from_config(named, "n").blocks == find_llm("nemotron-3-nano-30b-a3b").blocks


def test_nemotron_with_a_dense_layer():
    """Two matrices of 1856 x 2688, one norm; biases where the config says so."""
    config = {**preset("nemotron-3-nano-30b-a3b"), "num_hidden_layers": 2, "hybrid_override_pattern": "M-"}
    dense = llm_from_config(config, "d").blocks[1]
    assert dense.parameters(2688) == 2 * 1856 * 2688 + 2688
    biased = llm_from_config({**config, "mlp_bias": True}, "d").blocks[1]
    assert biased.parameters(2688) == 2 * 1856 * 2688 + 2688 + 1856 + 2688


def test_kimi_delta_layer_by_hand():
    """q, k, v, output; decay and gate through rank 128; write strength; three convolutions of 4; vectors."""
    found = model("kimi-linear-default").blocks[0]
    wide = 32 * 128
    matrices = 4 * wide * 2304 + 2 * (128 * 2304 + wide * 128) + 32 * 2304
    assert found.mixer.decay_rank == found.mixer.gate_rank == 128
    vectors = 3 * wide * 4 + wide + 32 + 128
    assert found.parameters(2304) == matrices + vectors + 3 * 9216 * 2304 + 2 * 2304


# -- sparse attention ----------------------------------------------------------------------------------

SPARSE = {"deepseek-v3.2": 61, "glm-5": 78, "glm-5.2": 21, "minimax-m3": 57}


@pytest.mark.parametrize("name", SPARSE)
def test_sparse_attention_saturates_and_the_index_does_not(name):
    """An index key of 128 elements per position and indexed layer, whatever the attention then reads."""
    found, scans = model(name), []
    for context in (9_999.0, 99_999.0):
        load = Load(2.0, context)
        scans.append(read(found, "index scan", load))
        assert scans[-1] == 2 * SPARSE[name] * (context + 1) * 128 * 2
    reads = [read(found, "attention", Load(2.0, context)) for context in (9_999.0, 99_999.0)]
    # MiniMax-M3's first three layers read everything.
    full = 3 * 2 * 4 * 128 * 2 * 2 * 90_000 if name == "minimax-m3" else 0
    assert reads[1] - reads[0] == full


@pytest.mark.parametrize("name", SPARSE)
def test_sparse_attention_is_dense_in_a_short_context(name):
    found = model(name)
    whole = read(found, "attention", Load(1.0, 1023.0)) + read(found, "index scan", Load(1.0, 1023.0))
    assert whole == 1024 * KV_BYTES[name]


def test_shared_index_layers_read_the_same_positions():
    """GLM-5.2: 78 layers read 2048 latents, 21 scan."""
    load = Load(1.0, 1e5)
    assert read(model("glm-5.2"), "attention", load) == 78 * 2048 * 576 * 2
    assert read(model("glm-5"), "attention", load) == 78 * 2048 * 576 * 2
    owns = [not block.mixer.indexer.shared for block in model("glm-5.2").blocks for _ in range(block.count)]
    assert [layer for layer, own in enumerate(owns) if own] == [0, 1, *range(2, 78, 4)]
    spelled = {**preset("glm-5"), "indexer_types": ["full" if own else "shared" for own in owns]}
    letters = {**preset("glm-5"), "index_topk_pattern": "".join("FS"[not own] for own in owns)}
    assert llm_from_config(spelled, "g").blocks == llm_from_config(letters, "g").blocks
    assert llm_from_config(spelled, "g").blocks == model("glm-5.2").blocks


@given(st.integers(1, 16), st.integers(0, 200_000))
def test_rows_of_a_verify_never_read_more_than_the_cache(width, context):
    block = find_llm("deepseek-v3.2").blocks[0]
    llm = llm_from_config({**preset("deepseek-v3.2"), "num_hidden_layers": 3}, "three")
    assert llm.blocks[0].mixer == block.mixer
    found = read(llm, "attention", Load(1.0, float(context), float(width)))
    assert found == 3 * min(context + width, 2048 * width) * 576 * 2


def test_mla_with_a_gate_and_block_sparse_attention_by_hand():
    gated = next(block.mixer for block in model("kimi-k3").blocks if isinstance(block.mixer, Mla))
    assert gated.gate
    assert sum(one.parameters for one in gated.linears(7168)) == (
        (1536 + 576) * 7168 + 96 * 192 * 1536 + 96 * 256 * 512 + 2 * 96 * 128 * 7168
    )
    sparse = model("minimax-m3").blocks[1].mixer
    assert isinstance(sparse, BlockSparse)
    assert (sparse.heads, sparse.indexer.top_k, sparse.state_elements()) == (64, 2048, 0)
    dense = {**M3, "sparse_attention_config": {"use_sparse_attention": False}}
    assert llm_from_config(dense, "m").kv_elements_per_token() == 60 * 2 * 4 * 128


# -- compressed attention ------------------------------------------------------------------------------


def test_compressed_attention_reads_window_and_entries():
    """Flash at 65,536 positions: 2 windows; 21 layers 128 + 512 of 16,384; 20 layers 128 + 512 of 512."""
    found, load = model("deepseek-v4-flash"), Load(1.0, 65_535.0)
    entries = 2 * 128 + 21 * (128 + 512) + 20 * (128 + 65_536 // 128)
    assert read(found, "attention", load) == entries * 512 * 2
    assert read(found, "index scan", load) == 21 * 65_536 // 4 * 128 * 2
    attention = [work for work in forward_pass(found, load, BF16) if work.label == "attention"]
    assert sum(work.flops for work in attention) == 64 * 4 * 512 * entries


def test_an_entry_is_key_and_value_in_one_and_the_window_is_kept_once():
    found = model("deepseek-v4-flash")
    state = STATE_BYTES["deepseek-v4-flash"]
    past = 65_536 * (21 * (512 + 128) // 4 + 20 * 512 // 128)
    assert kv_cache_bytes(found, 2.0, 65_536.0, BF16) == 2 * (state + 2 * (43 * 128 * 512 + past))
    assert kv_cache_bytes(found, 1.0, 64.0, BF16) == state + 64 * KV_BYTES["deepseek-v4-flash"]


def test_the_compressor_moves_each_value_and_gate_twice():
    """Four bytes, written when a token comes and read when its window is full; no state in context."""
    found = model("deepseek-v4-flash")
    per_token = 21 * 2 * 2 * (512 + 128) + 20 * 2 * 512
    for context in (100.0, 1e6):
        assert read(found, "kv compressor", Load(2.0, context, 3.0)) == 2 * 3 * per_token * 2 * 4


def test_hyper_connections_are_counted_and_streamed():
    """Four streams: 24 outputs from 4 x 4096 inputs, 24 biases and 3 scales, before each of two parts."""
    block = model("deepseek-v4-flash").blocks[0]
    plain = block.parameters(4096) - 2 * (24 * 4 * 4096 + 24 + 3)
    single = llm_from_config({**preset("deepseek-v4-flash"), "hc_mult": 1}, "one")
    assert single.blocks[0].parameters(4096) == plain
    works = forward_pass(model("deepseek-v4-flash"), Load(), BF16)
    streams = sum(work.weight_bytes for work in works if work.label == "hyper-connection")
    assert streams == 43 * 2 * 24 * 4 * 4096 * 2


def test_compressed_layers_by_name_and_formats():
    config = preset("deepseek-v4-flash")
    names = {0: "sliding_attention", 4: "compressed_sparse_attention", 128: "heavily_compressed_attention"}
    kinds = [names[ratio] for ratio in config["compress_ratios"][:43]]
    named = {**without(config, "compress_ratios"), "layer_types": kinds}
    assert llm_from_config(named, "v").blocks == find_llm("deepseek-v4-flash").blocks
    assert (find_llm("deepseek-v4-flash").dtype, model("deepseek-v4-flash").formats["experts"]) == (
        "fp8",
        "w4a16-mxfp4",
    )
    mixer = model("deepseek-v4-flash").blocks[1].mixer
    assert isinstance(mixer, Compressed)
    assert (mixer.ratio, mixer.series, mixer.entry) == (4, 2, 640)


# -- two sets of heads -----------------------------------------------------------------------------------


def test_windowed_heads_read_their_window():
    """MiMo-V2-Flash at 10,000 positions: 9 layers of 4 KV heads read all, 39 of 8 the last 128."""
    found = model("mimo-v2-flash")
    expected = (9 * 4 * 10_000 + 39 * 8 * 128) * (192 + 128) * 2
    assert read(found, "attention", Load(1.0, 9_999.0)) == expected
    assert kv_cache_bytes(found, 1.0, 10_000.0, BF16) == expected


# -- what is refused -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("qwen3-next-80b-a3b", {"linear_num_value_heads": 24}),
        ("qwen3-next-80b-a3b", {"num_experts_per_tok": 600}),
        ("qwen3.5-27b", {"linear_conv_kernel_dim": None}),
        ("nemotron-3-nano-30b-a3b", {"hybrid_override_pattern": "MEX"}),
        ("nemotron-3-nano-30b-a3b", {"hybrid_override_pattern": "ME"}),
        ("nemotron-3-nano-30b-a3b", {"n_groups": 7}),
        ("nemotron-3-super-120b-a12b", {"mtp_hybrid_override_pattern": "M"}),
        ("mimo-v2-flash", {"hybrid_layer_pattern": [0, 1]}),
        ("mimo-v2-flash", {"swa_num_key_value_heads": 7}),
        ("deepseek-v3.2", {"index_topk": None}),
        ("glm-5", {"indexer_types": ["shared"] * 78}),
        ("glm-5", {"index_topk_pattern": "FSX"}),
        ("glm-5", {"mlp_layer_types": ["dense"]}),
        ("deepseek-v4-flash", {"compress_ratios": [0, 4]}),
        ("deepseek-v4-flash", {"o_groups": 7}),
        ("minimax-m3", {"moe_layer_freq": [1]}),
        ("kimi-k3", {"first_k_dense_replace": 99}),
    ],
)
def test_fields_that_cannot_be_are_named(name, changes):
    config = WRITTEN[name] if name in WRITTEN else preset(name)
    refuse(next(iter(changes)), config, **changes)


def test_kimi_layers_must_be_of_one_kind_each():
    broken = {**K3["linear_attn_config"], "kda_layers": [1, 2]}
    refuse("kda_layers", K3, linear_attn_config=broken)


def test_kimi_layers_left_out_of_a_quantization_are_plain():
    """K3 packs experts in mxfp4 and leaves every ``self_attn`` module out, its delta layers among them."""
    group = {"weights": {"num_bits": 4, "type": "float", "group_size": 32, "strategy": "group"}}
    group |= {"targets": ["Linear"], "input_activations": None, "format": "mxfp4-pack-quantized"}
    packed = {
        "quant_method": "compressed-tensors",
        "format": "mxfp4-pack-quantized",
        "config_groups": {"group_0": group},
        "ignore": ["re:.*self_attn.*", "re:.*shared_experts.*", "re:.*lm_head.*"],
    }
    found = llm_from_config({**K3, "quantization_config": packed}, "k3")
    stored = precision(found.dtype, classes=found.formats)
    assert [stored.bytes_per(one) for one in ("recurrent", "attention", "experts")] == [2, 2, 0.53125]
