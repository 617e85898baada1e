"""Model families: one builder of layers each, and the table that finds it by ``model_type``.

To add a family, write a builder that returns its layers in order and add a row to ``FAMILIES``. Absent
fields take the default that ``transformers`` gives the family, since engines read the config through it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from rooflinekit.llm import Attention, Block, Mla, Mlp, Moe
from rooflinekit.readers.hf_fields import Fields, head_shape

if TYPE_CHECKING:
    from collections.abc import Callable

Layers: TypeAlias = list[Block]
"""The layers of a model in order, one block each; equal neighbours are merged afterwards."""


def _dense(fields: Fields) -> Mlp:
    return Mlp(intermediate=fields.count("intermediate_size"))


def _moe(fields: Fields, experts_key: str, width_key: str, shared: int = 0) -> Moe:
    experts = fields.count(experts_key)
    top_k = fields.count("num_experts_per_tok")
    if top_k > experts:
        fields.bad("num_experts_per_tok", f"at most {experts_key} {experts}")
    width = fields.count(width_key)
    return Moe(experts=experts, top_k=top_k, intermediate=width, shared_intermediate=shared * width)


def _gqa(
    fields: Fields,
    *,
    window: int | None = None,
    qkv_bias: bool = False,
    out_bias: bool = False,
    qk_norm: bool = False,
    default_head_dim: int | None = None,
) -> Attention:
    heads, kv_heads, head_dim = head_shape(fields, default_head_dim)
    return Attention(
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        window=window,
        qkv_bias=qkv_bias,
        out_bias=out_bias,
        qk_norm=qk_norm,
    )


def _llama(fields: Fields) -> Layers:
    bias = fields.flag("attention_bias")
    ffn = Mlp(intermediate=fields.count("intermediate_size"), bias=fields.flag("mlp_bias"))
    block = Block(1, _gqa(fields, qkv_bias=bias, out_bias=bias), ffn)
    return [block] * fields.count("num_hidden_layers")


def _window(fields: Fields) -> int | None:
    return fields.count("sliding_window") if fields.has("sliding_window") else None


def _mistral(fields: Fields) -> Layers:
    # Published files write null where there is no window, because the default is one of 4,096.
    window = _window(fields) if "sliding_window" in fields.config else 4096
    return [Block(1, _gqa(fields, window=window), _dense(fields))] * fields.count("num_hidden_layers")


def _mixtral(fields: Fields) -> Layers:
    ffn = _moe(fields, "num_local_experts", "intermediate_size")
    return [Block(1, _gqa(fields, window=_window(fields)), ffn)] * fields.count("num_hidden_layers")


def _qwen_windows(fields: Fields) -> list[int | None]:
    """Window of each layer: a pattern in ``layer_types``, else the layers from ``max_window_layers`` on."""
    layers = fields.count("num_hidden_layers")
    window = _window(fields) if fields.flag("use_sliding_window") else None
    kinds = fields.texts("layer_types")
    if not kinds:
        first = fields.count_or("max_window_layers", 28, low=0)
        return [window if layer >= first else None for layer in range(layers)]
    known = {"full_attention": None, "sliding_attention": window}
    if len(kinds) != layers or not set(kinds) <= set(known):
        fields.bad("layer_types", f"{layers} times full_attention or sliding_attention")
    return [known[kind] for kind in kinds]


def _qwen2(fields: Fields) -> Layers:
    ffn = _dense(fields)
    return [Block(1, _gqa(fields, window=window, qkv_bias=True), ffn) for window in _qwen_windows(fields)]


def _qwen3_attention(fields: Fields, default_head_dim: int | None) -> list[Attention]:
    bias = fields.flag("attention_bias")
    return [
        _gqa(
            fields,
            window=window,
            qkv_bias=bias,
            out_bias=bias,
            qk_norm=True,
            default_head_dim=default_head_dim,
        )
        for window in _qwen_windows(fields)
    ]


def _qwen3(fields: Fields) -> Layers:
    ffn = _dense(fields)
    return [Block(1, attention, ffn) for attention in _qwen3_attention(fields, 128)]


def _qwen3_moe(fields: Fields) -> Layers:
    layers = fields.count("num_hidden_layers")
    dense = set(fields.indices("mlp_only_layers", layers))
    step = fields.count_or("decoder_sparse_step", 1)
    dense |= {layer for layer in range(layers) if (layer + 1) % step}
    moe = _moe(fields, "num_experts", "moe_intermediate_size")
    mlp = _dense(fields) if dense else None
    return [
        Block(1, attention, mlp if mlp and layer in dense else moe)
        for layer, attention in enumerate(_qwen3_attention(fields, None))
    ]


def _mla(fields: Fields) -> Mla:
    return Mla(
        heads=fields.count("num_attention_heads"),
        q_lora_rank=fields.count("q_lora_rank") if fields.has("q_lora_rank") else None,
        kv_lora_rank=fields.count("kv_lora_rank"),
        nope_dim=fields.count("qk_nope_head_dim"),
        rope_dim=fields.count("qk_rope_head_dim"),
        value_dim=fields.count("v_head_dim"),
        qkv_bias=fields.flag("attention_bias"),
    )


def _deepseek(fields: Fields) -> Layers:
    # DeepSeek-V3's e_score_correction_bias (a number per expert) is a buffer, not a parameter.
    layers = fields.count("num_hidden_layers")
    first = fields.count("first_k_dense_replace", low=0)
    if first > layers:
        fields.bad("first_k_dense_replace", f"at most num_hidden_layers {layers}")
    every = fields.count_or("moe_layer_freq", 1)
    moe = _moe(
        fields, "n_routed_experts", "moe_intermediate_size", fields.count_or("n_shared_experts", 0, low=0)
    )
    mlp, attention = _dense(fields), _mla(fields)
    return [
        Block(1, attention, moe if layer >= first and layer % every == 0 else mlp) for layer in range(layers)
    ]


_COMMON = ("hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size")
_DENSE = (*_COMMON, "intermediate_size")
_DEEPSEEK = (
    *_DENSE,
    *("kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"),
    *("n_routed_experts", "num_experts_per_tok", "moe_intermediate_size", "first_k_dense_replace"),
)


@dataclass(frozen=True, slots=True)
class Family:
    """How a ``model_type`` is read.

    Attributes
    ----------
    architecture
        Class name in ``architectures``.
    build
        Builder of the layers in order.
    required
        Fields without a default.
    nullable
        Fields without a default that may be null.
    """

    architecture: str
    build: Callable[[Fields], Layers]
    required: tuple[str, ...] = _DENSE
    nullable: tuple[str, ...] = ()


FAMILIES: dict[str, Family] = {
    "llama": Family("LlamaForCausalLM", _llama),
    "mistral": Family("MistralForCausalLM", _mistral),
    "mixtral": Family("MixtralForCausalLM", _mixtral, (*_DENSE, "num_local_experts", "num_experts_per_tok")),
    "qwen2": Family("Qwen2ForCausalLM", _qwen2),
    "qwen3": Family("Qwen3ForCausalLM", _qwen3),
    "qwen3_moe": Family(
        "Qwen3MoeForCausalLM",
        _qwen3_moe,
        (*_COMMON, "num_experts", "num_experts_per_tok", "moe_intermediate_size"),
    ),
    "deepseek_v2": Family("DeepseekV2ForCausalLM", _deepseek, _DEEPSEEK, ("q_lora_rank", "n_shared_experts")),
    "deepseek_v3": Family("DeepseekV3ForCausalLM", _deepseek, _DEEPSEEK, ("q_lora_rank", "n_shared_experts")),
}
"""Families by ``model_type``."""
