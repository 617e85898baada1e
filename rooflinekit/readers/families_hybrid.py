"""Families with recurrent layers, and those that mix two kinds of attention heads.

Contract: ``HYBRID_FAMILIES`` maps a ``model_type`` to a :class:`~rooflinekit.readers.family.Family`. A
nested model (``text_config``) has a row for its inner type (``qwen3_5_text``), which is the one used, and
one for its outer type (``qwen3_5``), used where the inner part names none. A builder gets the language
model's fields; ``architectures``, ``tie_word_embeddings``, ``quantization_config`` and the dtype of the
outer level are already in them. It returns a list of blocks, one a layer, or a ``Shape``.

Families whose attention chooses what it reads are in ``families_sparse``, Kimi Linear and K3 in
``families_kimi``; their tables are joined here.
"""

from __future__ import annotations

from dataclasses import replace

from rooflinekit.llm import Attention, Block, GatedDelta, Mamba2, Mlp, Moe, Mtp
from rooflinekit.readers.families_kimi import KIMI_FAMILIES
from rooflinekit.readers.families_sparse import SPARSE_FAMILIES
from rooflinekit.readers.family import (
    COMMON,
    DENSE,
    Family,
    Layers,
    Shape,
    dense,
    gqa,
    layer_kinds,
    moe,
    mtp_modules,
    window_of,
)
from rooflinekit.readers.hf_fields import Fields

_LINEAR, _FULL = "linear_attention", "full_attention"


def _linear_layers(fields: Fields) -> list[bool]:
    """Whether each layer is recurrent: ``layer_types``, else all but every ``full_attention_interval``-th."""
    kinds = layer_kinds(fields, (_LINEAR, _FULL))
    if kinds:
        return [kind == _LINEAR for kind in kinds]
    every = fields.count_or("full_attention_interval", 4)
    return [(layer + 1) % every != 0 for layer in range(fields.count("num_hidden_layers"))]


def _gated_delta(fields: Fields) -> GatedDelta:
    key_heads, value_heads = fields.count("linear_num_key_heads"), fields.count("linear_num_value_heads")
    if value_heads % key_heads:
        fields.bad("linear_num_value_heads", f"a multiple of linear_num_key_heads {key_heads}")
    return GatedDelta(
        key_heads=key_heads,
        value_heads=value_heads,
        key_dim=fields.count("linear_key_head_dim"),
        value_dim=fields.count("linear_value_head_dim"),
        conv_kernel=fields.count("linear_conv_kernel_dim"),
    )


def _gated_attention(fields: Fields) -> Attention:
    bias = fields.flag("attention_bias")
    attention = gqa(fields, qkv_bias=bias, out_bias=bias, qk_norm=True, default_head_dim=256)
    return replace(attention, gate=fields.flag("attn_output_gate", default=True))


def _qwen_moe(fields: Fields) -> Moe:
    shared = fields.count("shared_expert_intermediate_size")
    experts = moe(fields, "num_experts", "moe_intermediate_size")
    return replace(experts, shared_intermediate=shared, shared_gate=True)


def _qwen_hybrid(fields: Fields, ffns: list[Mlp | Moe]) -> Shape:
    """Gated delta rule, every fourth layer gated attention; draft modules have attention."""
    delta, attention = _gated_delta(fields), _gated_attention(fields)
    blocks = [
        Block(1, delta if linear else attention, ffn)
        for linear, ffn in zip(_linear_layers(fields), ffns, strict=True)
    ]
    modules = mtp_modules(fields, Block(1, attention, ffns[-1]), "mtp_num_hidden_layers")
    return Shape(blocks=blocks, mtp=modules)


def _qwen3_next(fields: Fields) -> Shape:
    layers = fields.count("num_hidden_layers")
    plain = set(fields.indices("mlp_only_layers", layers))
    step = fields.count_or("decoder_sparse_step", 1)
    plain |= {layer for layer in range(layers) if (layer + 1) % step}
    mlp, experts = dense(fields) if plain else None, _qwen_moe(fields)
    return _qwen_hybrid(fields, [mlp if mlp and layer in plain else experts for layer in range(layers)])


def _qwen3_5(fields: Fields) -> Shape:
    return _qwen_hybrid(fields, [dense(fields)] * fields.count("num_hidden_layers"))


def _qwen3_5_moe(fields: Fields) -> Shape:
    return _qwen_hybrid(fields, [_qwen_moe(fields)] * fields.count("num_hidden_layers"))


def _nemotron_mamba(fields: Fields) -> Block:
    heads, groups = fields.count("mamba_num_heads"), fields.count_or("n_groups", 8)
    if heads % groups:
        fields.bad("n_groups", f"a divisor of mamba_num_heads {heads}")
    mixer = Mamba2(
        heads=heads,
        head_dim=fields.count("mamba_head_dim"),
        groups=groups,
        state=fields.count("ssm_state_size"),
        conv_kernel=fields.count_or("conv_kernel", 4),
        conv_bias=fields.flag("use_conv_bias", default=True),
        bias=fields.flag("mamba_proj_bias"),
    )
    return Block(1, mixer, None, norms=1)


def _nemotron_attention(fields: Fields) -> Block:
    bias = fields.flag("attention_bias")
    mixer = gqa(fields, window=window_of(fields), qkv_bias=bias, out_bias=bias, default_head_dim=128)
    return Block(1, mixer, None, norms=1)


def _nemotron_experts(fields: Fields) -> Block:
    # Squared ReLU: two matrices an expert. In Super the routed experts see a latent, the shared ones do not.
    shared = fields.count_or("n_shared_experts", 1, low=0)
    width = fields.count("moe_shared_expert_intermediate_size") if shared else 0
    latent = fields.count_or("moe_latent_size", 0)
    experts = moe(fields, "n_routed_experts", "moe_intermediate_size")
    ffn = replace(experts, shared_intermediate=shared * width, gated=False, expert_input=latent)
    return Block(1, None, ffn, norms=1)


def _nemotron_mlp(fields: Fields) -> Block:
    ffn = Mlp(intermediate=fields.count("intermediate_size"), gated=False, bias=fields.flag("mlp_bias"))
    return Block(1, None, ffn, norms=1)


_NEMOTRON = {
    "M": _nemotron_mamba,
    "*": _nemotron_attention,
    "E": _nemotron_experts,
    "-": _nemotron_mlp,
}
"""Layer by its letter in ``hybrid_override_pattern``: one part each, with one norm."""
_NEMOTRON_KINDS = {"linear_attention": "M", "mamba": "M", "full_attention": "*", "attention": "*"} | {
    "moe": "E",
    "mlp": "-",
}


def _pattern(fields: Fields, key: str) -> str:
    kinds = layer_kinds(fields, tuple(_NEMOTRON_KINDS), "layers_block_type")
    if kinds and not fields.has(key):
        return "".join(_NEMOTRON_KINDS[kind] for kind in kinds)
    pattern = fields.text(key) or ""
    if not pattern or not set(pattern) <= set(_NEMOTRON):
        fields.bad(key, "a text of M (Mamba-2), * (attention), E (experts) and - (MLP)")
    return pattern


def _nemotron_mtp(fields: Fields) -> Mtp | None:
    """Draft modules of an attention and an expert layer, as one block of two norms."""
    key = "mtp_hybrid_override_pattern"
    if not fields.count_or("num_nextn_predict_layers", 0, low=0) or not fields.has(key):
        return None
    if _pattern(fields, key) != "*E":
        fields.bad(key, "*E (an attention and an expert layer; others are not supported yet)")
    block = replace(_nemotron_attention(fields), ffn=_nemotron_experts(fields).ffn, norms=2)
    return mtp_modules(fields, block)


def _nemotron(fields: Fields) -> Shape:
    key = "hybrid_override_pattern"
    pattern, layers = _pattern(fields, key), fields.count("num_hidden_layers")
    if len(pattern) != layers:
        fields.bad(key, f"{layers} letters, as num_hidden_layers says")
    kinds = {letter: _NEMOTRON[letter](fields) for letter in set(pattern)}
    return Shape(blocks=[kinds[letter] for letter in pattern], mtp=_nemotron_mtp(fields))


def _marks(fields: Fields, key: str) -> list[int]:
    """A list of 0 and 1, one a layer."""
    layers = fields.count("num_hidden_layers")
    marks = list(fields.indices(key, 2))
    if len(marks) != layers:
        fields.bad(key, f"a list of {layers} times 0 or 1")
    return marks


def _mimo_heads(fields: Fields, prefix: str, window: int | None, *, sinks: bool) -> Attention:
    heads = fields.count(f"{prefix}num_attention_heads")
    kv_heads = fields.count(f"{prefix}num_key_value_heads")
    if heads % kv_heads:
        fields.bad(f"{prefix}num_key_value_heads", f"a divisor of {prefix}num_attention_heads {heads}")
    return Attention(
        heads=heads,
        kv_heads=kv_heads,
        head_dim=fields.count(f"{prefix}head_dim"),
        value_dim=fields.count(f"{prefix}v_head_dim"),
        window=window,
        qkv_bias=fields.flag("attention_bias"),
        sinks=sinks,
    )


def _mimo(fields: Fields) -> Layers:
    """Two sets of heads: over the whole context, and over a window (``swa_`` fields, 1 in the pattern)."""
    sinks = fields.flag("add_full_attention_sink_bias")
    swa_sinks = fields.flag("add_swa_attention_sink_bias", default=True)
    kinds = (
        _mimo_heads(fields, "", None, sinks=sinks),
        _mimo_heads(fields, "swa_", fields.count("sliding_window"), sinks=swa_sinks),
    )
    shared = fields.count_or("n_shared_experts", 0, low=0)
    ffns = (dense(fields), moe(fields, "n_routed_experts", "moe_intermediate_size", shared))
    pattern, sparse = _marks(fields, "hybrid_layer_pattern"), _marks(fields, "moe_layer_freq")
    return [Block(1, kinds[kind], ffns[mixed]) for kind, mixed in zip(pattern, sparse, strict=True)]


_DELTA = tuple(
    f"linear_{name}" for name in ("num_key_heads", "num_value_heads", "key_head_dim", "value_head_dim")
)
_HYBRID = (*COMMON, *_DELTA, "linear_conv_kernel_dim")
_EXPERTS = ("num_experts", "num_experts_per_tok", "moe_intermediate_size")
_QWEN_MOE = (*_HYBRID, *_EXPERTS, "shared_expert_intermediate_size")
_MIMO = (
    *(*DENSE, "num_key_value_heads", "head_dim", "v_head_dim", "sliding_window", "hybrid_layer_pattern"),
    *("swa_num_attention_heads", "swa_num_key_value_heads", "swa_head_dim", "swa_v_head_dim"),
    *("moe_layer_freq", "n_routed_experts", "num_experts_per_tok", "moe_intermediate_size"),
)
_QWEN3_5 = ("Qwen3_5ForConditionalGeneration", "Qwen3_5ForCausalLM")
_QWEN3_5_MOE = ("Qwen3_5MoeForConditionalGeneration", "Qwen3_5MoeForCausalLM")

HYBRID_FAMILIES: dict[str, Family] = {
    "qwen3_next": Family("Qwen3NextForCausalLM", _qwen3_next, _QWEN_MOE),
    "qwen3_5": Family(_QWEN3_5, _qwen3_5, (*_HYBRID, "intermediate_size")),
    "qwen3_5_text": Family(_QWEN3_5, _qwen3_5, (*_HYBRID, "intermediate_size")),
    "qwen3_5_moe": Family(_QWEN3_5_MOE, _qwen3_5_moe, _QWEN_MOE),
    "qwen3_5_moe_text": Family(_QWEN3_5_MOE, _qwen3_5_moe, _QWEN_MOE),
    "nemotron_h": Family("NemotronHForCausalLM", _nemotron, COMMON),
    "mimo_v2_flash": Family("MiMoV2FlashForCausalLM", _mimo, _MIMO),
    **KIMI_FAMILIES,
    **SPARSE_FAMILIES,
}
"""Families by ``model_type``."""
