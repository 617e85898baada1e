"""Llama, Mistral, Mixtral, Qwen2, Qwen3 and DeepSeek: a builder of layers each, and their table."""

from __future__ import annotations

from rooflinekit.llm import Attention, Block, Mlp
from rooflinekit.readers.family import (
    COMMON,
    DENSE,
    Family,
    Layers,
    Shape,
    dense,
    first_dense,
    gqa,
    layer_kinds,
    mla,
    moe,
    mtp_modules,
    window_of,
)
from rooflinekit.readers.hf_fields import Fields


def _llama(fields: Fields) -> Layers:
    bias = fields.flag("attention_bias")
    ffn = Mlp(intermediate=fields.count("intermediate_size"), bias=fields.flag("mlp_bias"))
    block = Block(1, gqa(fields, qkv_bias=bias, out_bias=bias), ffn)
    return [block] * fields.count("num_hidden_layers")


def _mistral(fields: Fields) -> Layers:
    # Published files write null where there is no window, because the default is one of 4,096.
    return [Block(1, gqa(fields, window=window_of(fields, 4096)), dense(fields))] * fields.count(
        "num_hidden_layers"
    )


def _mixtral(fields: Fields) -> Layers:
    ffn = moe(fields, "num_local_experts", "intermediate_size")
    return [Block(1, gqa(fields, window=window_of(fields)), ffn)] * fields.count("num_hidden_layers")


def _qwen_windows(fields: Fields) -> list[int | None]:
    """Window of each layer: a pattern in ``layer_types``, else the layers from ``max_window_layers`` on."""
    layers = fields.count("num_hidden_layers")
    window = window_of(fields) if fields.flag("use_sliding_window") else None
    known = {"full_attention": None, "sliding_attention": window}
    kinds = layer_kinds(fields, tuple(known))
    if not kinds:
        first = fields.count_or("max_window_layers", 28, low=0)
        return [window if layer >= first else None for layer in range(layers)]
    return [known[kind] for kind in kinds]


def qwen2(fields: Fields) -> Layers:
    """Biases in q, k and v."""
    ffn = dense(fields)
    return [Block(1, gqa(fields, window=window, qkv_bias=True), ffn) for window in _qwen_windows(fields)]


def _qwen3_attention(fields: Fields, default_head_dim: int | None) -> list[Attention]:
    bias = fields.flag("attention_bias")
    return [
        gqa(
            fields,
            window=window,
            qkv_bias=bias,
            out_bias=bias,
            qk_norm=True,
            default_head_dim=default_head_dim,
        )
        for window in _qwen_windows(fields)
    ]


def qwen3(fields: Fields) -> Layers:
    """Norms of queries and keys."""
    ffn = dense(fields)
    return [Block(1, attention, ffn) for attention in _qwen3_attention(fields, 128)]


def qwen3_moe(fields: Fields) -> Layers:
    """Mixtures, some layers dense by `mlp_only_layers` or `decoder_sparse_step`."""
    layers = fields.count("num_hidden_layers")
    plain = set(fields.indices("mlp_only_layers", layers))
    step = fields.count_or("decoder_sparse_step", 1)
    plain |= {layer for layer in range(layers) if (layer + 1) % step}
    sparse = moe(fields, "num_experts", "moe_intermediate_size")
    mlp = dense(fields) if plain else None
    return [
        Block(1, attention, mlp if mlp and layer in plain else sparse)
        for layer, attention in enumerate(_qwen3_attention(fields, None))
    ]


def deepseek(fields: Fields) -> Shape:
    """Latent attention, dense layers first, then mixtures with shared experts: DeepSeek-V2, V3, Kimi-K2."""
    # DeepSeek-V3's e_score_correction_bias (a number per expert) is a buffer, not a parameter.
    first, every = first_dense(fields), fields.count_or("moe_layer_freq", 1)
    shared = fields.count_or("n_shared_experts", 0, low=0)
    sparse = moe(fields, "n_routed_experts", "moe_intermediate_size", shared)
    mlp, attention = dense(fields), mla(fields)
    layers = [
        Block(1, attention, sparse if layer >= first and layer % every == 0 else mlp)
        for layer in range(fields.count("num_hidden_layers"))
    ]
    return Shape(blocks=layers, mtp=mtp_modules(fields, Block(1, attention, sparse)))


DEEPSEEK = (
    *DENSE,
    *("kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"),
    *("n_routed_experts", "num_experts_per_tok", "moe_intermediate_size", "first_k_dense_replace"),
)
DEEPSEEK_NULLABLE = ("q_lora_rank", "n_shared_experts")

BASIC_FAMILIES: dict[str, Family] = {
    "llama": Family("LlamaForCausalLM", _llama),
    "mistral": Family("MistralForCausalLM", _mistral),
    "mixtral": Family("MixtralForCausalLM", _mixtral, (*DENSE, "num_local_experts", "num_experts_per_tok")),
    "qwen2": Family("Qwen2ForCausalLM", qwen2),
    "qwen3": Family("Qwen3ForCausalLM", qwen3),
    "qwen3_moe": Family(
        "Qwen3MoeForCausalLM",
        qwen3_moe,
        (*COMMON, "num_experts", "num_experts_per_tok", "moe_intermediate_size"),
    ),
    "deepseek_v2": Family("DeepseekV2ForCausalLM", deepseek, DEEPSEEK, DEEPSEEK_NULLABLE),
    "deepseek_v3": Family("DeepseekV3ForCausalLM", deepseek, DEEPSEEK, DEEPSEEK_NULLABLE),
}
"""Families by ``model_type``."""
