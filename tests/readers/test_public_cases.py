"""Cases from public threads of people who size models, each with the value that is right (arithmetic in the comments)."""

import pytest

from rooflinekit.llm import GatedDelta
from rooflinekit.memory import kv_cache_bytes
from rooflinekit.precision import precision
from rooflinekit.prediction import streamed_bytes_per_step
from rooflinekit.readers.hf_config import llm_from_config
from rooflinekit.readers.models import find_llm
from rooflinekit.transformer import Load, forward_pass
from rooflinekit.work import Machine, works_time_s

BF16 = precision("bf16")


def per_token(llm):
    return llm.kv_elements_per_token() * 2


def read_by_a_step(llm, context):
    return sum(float(work.kv_bytes) for work in forward_pass(llm, Load(1.0, context), BF16))


# hahnyuan/LLM-Viewer issue 12: the cache multiplied by query heads instead of KV heads.


@pytest.mark.parametrize(
    ("model", "bytes_per_token"),
    [
        ("llama-3.1-70b", 2 * 80 * 8 * 128 * 2),
        ("llama-2-70b", 2 * 80 * 8 * 128 * 2),
        ("llama-3.1-8b", 131_072),
    ],
)
def test_a_cache_holds_kv_heads_not_query_heads(model, bytes_per_token):
    """327,680 B per token for the 70B, not eight times that."""
    assert per_token(find_llm(model)) == bytes_per_token


def test_a_decode_of_the_70b_reads_a_gigabyte_and_a_third_of_cache():
    """4096 cached tokens and the new one, 1.342 GB; attention computes 4 H_q d per position and layer."""
    llm = find_llm("llama-3.1-70b")
    assert read_by_a_step(llm, 4095.0) == 1_342_177_280
    flops = sum(float(w.flops) for w in forward_pass(llm, Load(1.0, 4095.0), BF16) if w.label == "attention")
    assert flops == 80 * 4 * 64 * 128 * 4096


# cli99/llm-analysis, InferSim and others: head_dim null, absent, or different from hidden / heads.


def small(model_type, architecture, **fields):
    base = {
        "model_type": model_type,
        "architectures": [architecture],
        "vocab_size": 32_768,
        "intermediate_size": 1024,
        "num_key_value_heads": 8,
        "torch_dtype": "bfloat16",
    }
    return llm_from_config(base | fields, "case")


def test_a_null_head_dim_is_hidden_over_heads():
    """Mixtral-8x22B: 6144 / 48 = 128, 2 x 56 x 8 x 128 x 2 = 229,376 B."""
    llm = small(
        "mixtral",
        "MixtralForCausalLM",
        head_dim=None,
        hidden_size=6144,
        num_attention_heads=48,
        num_hidden_layers=56,
        num_local_experts=8,
        num_experts_per_tok=2,
    )
    assert per_token(llm) == 229_376


def test_a_given_head_dim_is_not_recomputed():
    """Mistral-Small-24B: 128, not 5120 / 32 = 160; 163,840 B."""
    llm = small(
        "mistral",
        "MistralForCausalLM",
        head_dim=128,
        hidden_size=5120,
        num_attention_heads=32,
        num_hidden_layers=40,
        sliding_window=None,
    )
    assert per_token(llm) == 163_840


def test_gpt_oss_has_heads_of_64():
    """64, not 2880 / 64 = 45: 49,152 B in all layers, of which half see 128 positions only."""
    llm = find_llm("gpt-oss-20b")
    assert per_token(llm) == 49_152
    assert float(kv_cache_bytes(llm, 1.0, 100_000.0, BF16)) == pytest.approx(
        12 * 2048 * (100_000 + 128), rel=1e-3
    )


# CambrianTech/continuum PR 4156: a hybrid charged for a cache on every layer.


def test_a_hybrid_has_a_cache_in_every_fourth_layer_only():
    """16 x 2 x 4 x 256 x 2 = 65,536 B per token; with all 64 layers it would be 262,144."""
    llm = find_llm("qwen3.5-27b")
    assert llm.layers == 64
    assert sum(block.count for block in llm.blocks if isinstance(block.mixer, GatedDelta)) == 48
    assert per_token(llm) == 65_536
    grown = [float(kv_cache_bytes(llm, 1.0, context, BF16)) for context in (0.0, 144_000.0)]
    assert (grown[1] - grown[0]) / 1e9 == pytest.approx(9.4, rel=0.01)
    assert llm.total_params == pytest.approx(26.9e9, rel=0.01)


# GPT-2-era names and multi_query (E06: fixing the alias alone gives sixteen times too much).


def test_gpt2_names_are_read():
    """2 x 12 layers x 12 heads x 64 x 2 B x 8192 tokens = 288 MiB."""
    config = {
        "model_type": "gpt2",
        "architectures": ["GPT2LMHeadModel"],
        "n_layer": 12,
        "n_embd": 768,
        "n_head": 12,
        "n_positions": 8192,
        "vocab_size": 50_257,
        "torch_dtype": "float16",
    }
    assert per_token(llm_from_config(config, "gpt2")) * 8192 == 301_989_888


# inference-sim/inference-sim PR 561: two matrices counted in a gated MLP.


@pytest.mark.parametrize(
    ("model", "params", "streamed_gb", "step_ms"),
    [
        # 32 (4 x 4096^2 + 3 x 4096 x 11008) + 2 x 32000 x 4096; 13.21 GB over 3.35 TB/s.
        ("llama-2-7b", 6_738_149_376, 13.21, 3.94),
        ("llama-3.1-8b", 8_029_995_008, 15.01, 4.48),
    ],
)
def test_a_gated_mlp_has_three_matrices(model, params, streamed_gb, step_ms):
    """Parameters within 0.1 %, streamed bytes, and the step at 3.35 TB/s without a cache."""
    llm = find_llm(model)
    assert llm.total_params == pytest.approx(params, rel=1e-3)
    assert streamed_bytes_per_step(llm, BF16) / 1e9 == pytest.approx(streamed_gb, rel=2e-3)
    step = works_time_s(forward_pass(llm, Load(), BF16), Machine("m", 3.35e12, {"bf16": 989e12}))
    assert float(step) * 1e3 == pytest.approx(step_ms, rel=5e-3)


# 0xBakeer/inference-atlas PR 153: 16.44 "bits per weight" in bf16, because the headline size was used.


def test_bits_per_weight_come_from_a_count_not_from_the_name():
    """Body 34.66 B; 71.93 GB of bf16 over 35.952 B counted parameters (vision and MTP included) are 16.0 bits."""
    body = find_llm("qwen3.5-35b-a3b").total_params
    assert body == pytest.approx(34.66e9, rel=2e-3)
    counted = body + 0.845e9 + 0.447e9
    assert 35e9 * 16.44 / counted == pytest.approx(16.0, abs=0.02)


def test_quantised_experts_do_not_shrink_what_a_token_reads_in_proportion():
    """A 5.9-bit file whose experts alone are nvfp4: 1.01 B x 9/16 + 1.94 B x 2 = 4.4 GB a token, not 2.2."""
    assert precision("nvfp4").bytes_per("experts") == 0.5625
    mixed = precision("bf16", classes={"experts": "nvfp4"})
    assert streamed_bytes_per_step(find_llm("qwen3.5-35b-a3b"), mixed) / 1e9 == pytest.approx(4.4, rel=0.1)


# A STREAM triad as the ceiling made decode look 186 % efficient (Raspberry Pi 5).


def test_the_read_rate_is_the_ceiling_of_a_decode():
    """10.25 GB/s of weights over 11.59 GB/s read-only is 88 %; over a triad's 5.52 it is no fraction at all."""
    weights = 4.92e9
    measured_s = weights / 10.25e9
    for rate, fraction in ((11.59e9, 0.884), (5.52e9, 1.857)):
        bound = weights / Machine("pi", rate, {}).bandwidth_bytes_per_s
        assert bound / measured_s == pytest.approx(fraction, rel=0.01)
