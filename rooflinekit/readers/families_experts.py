"""GLM-4.5, MiniMax-M2, Kimi-K2, and relatives of Qwen: MiMo and the text parts of Qwen-VL."""

from __future__ import annotations

from dataclasses import replace

from rooflinekit.llm import Block
from rooflinekit.readers.family import (
    COMMON,
    DENSE,
    Family,
    Shape,
    dense,
    first_dense,
    gqa,
    moe,
    mtp_modules,
)
from rooflinekit.readers.hf_families import (
    DEEPSEEK,
    DEEPSEEK_NULLABLE,
    deepseek,
    qwen2,
    qwen3,
    qwen3_moe,
)
from rooflinekit.readers.hf_fields import Fields


def _glm4_moe(fields: Fields) -> Shape:
    bias, norm = fields.flag("attention_bias"), fields.flag("use_qk_norm")
    attention = gqa(fields, qkv_bias=bias, qk_norm=norm)
    shared = fields.count_or("n_shared_experts", 0, low=0)
    experts = moe(fields, "n_routed_experts", "moe_intermediate_size", shared)
    mlp, first = dense(fields), first_dense(fields)
    blocks = [
        Block(1, attention, mlp if layer < first else experts)
        for layer in range(fields.count("num_hidden_layers"))
    ]
    return Shape(blocks=blocks, mtp=mtp_modules(fields, Block(1, attention, experts)))


def _minimax_m2(fields: Fields) -> Shape:
    attention = replace(gqa(fields), wide_qk_norm=fields.flag("use_qk_norm", default=True))
    experts = moe(fields, "num_local_experts", "intermediate_size")
    experts = replace(experts, shared_intermediate=fields.count_or("shared_intermediate_size", 0, low=0))
    block = Block(1, attention, experts)
    deep = replace(block, count=fields.count_or("mtp_transformer_layers", 1))
    mtp = mtp_modules(fields, deep, "num_mtp_modules") if fields.flag("use_mtp") else None
    return Shape(blocks=[block] * fields.count("num_hidden_layers"), mtp=mtp)


def _mimo(fields: Fields) -> Shape:
    blocks = qwen2(fields)
    return Shape(blocks=blocks, mtp=mtp_modules(fields, blocks[-1]))


_QWEN_MOE = (*COMMON, "num_experts", "num_experts_per_tok", "moe_intermediate_size")
_GLM = (
    *DENSE,
    *("n_routed_experts", "num_experts_per_tok", "moe_intermediate_size", "first_k_dense_replace"),
)
kimi_k2 = Family(
    ("DeepseekV3ForCausalLM", "KimiK2ForCausalLM", "KimiK25ForConditionalGeneration"),
    deepseek,
    DEEPSEEK,
    DEEPSEEK_NULLABLE,
)
qwen3_vl = Family("Qwen3VLForConditionalGeneration", qwen3)
qwen3_vl_moe = Family("Qwen3VLMoeForConditionalGeneration", qwen3_moe, _QWEN_MOE)
qwen2_5_vl = Family("Qwen2_5_VLForConditionalGeneration", qwen2)

EXPERT_FAMILIES: dict[str, Family] = {
    "glm4_moe": Family("Glm4MoeForCausalLM", _glm4_moe, _GLM),
    "minimax_m2": Family(
        "MiniMaxM2ForCausalLM", _minimax_m2, (*DENSE, "num_local_experts", "num_experts_per_tok")
    ),
    "mimo": Family("MiMoForCausalLM", _mimo),
    "kimi_k2": kimi_k2,
    "kimi_k25": kimi_k2,
    "qwen3_vl": qwen3_vl,
    "qwen3_vl_text": qwen3_vl,
    "qwen3_vl_moe": qwen3_vl_moe,
    "qwen3_vl_moe_text": qwen3_vl_moe,
    "qwen2_5_vl": qwen2_5_vl,
    "qwen2_5_vl_text": qwen2_5_vl,
}
"""Families by ``model_type``."""
