"""Families whose layers see different stretches of the context: Gemma, gpt-oss, Llama-4, Step."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from rooflinekit.llm import Attention, Block, Mlp, Moe, Mtp
from rooflinekit.readers.family import (
    DENSE,
    Family,
    Layers,
    Shape,
    dense,
    first_dense,
    gqa,
    layer_kinds,
    moe,
    window_of,
)
from rooflinekit.readers.hf_fields import Fields

_KINDS = ("full_attention", "sliding_attention")


def _windowed(fields: Fields, otherwise: Callable[[int], bool]) -> list[bool]:
    """Whether each layer has a window: by ``layer_types``, else by the family's own rule."""
    kinds = layer_kinds(fields, _KINDS)
    if kinds:
        return [kind == "sliding_attention" for kind in kinds]
    return [otherwise(layer) for layer in range(fields.count("num_hidden_layers"))]


def _every(fields: Fields, keys: Iterable[str], default: int) -> int:
    """Length of a pattern whose last layer sees everything."""
    return next((fields.count(key) for key in keys if fields.has(key)), default)


def _gemma(fields: Fields) -> Layers:
    return [Block(1, gqa(fields), dense(fields))] * fields.count("num_hidden_layers")


def _gemma2(fields: Fields) -> Layers:
    # No published file of Gemma-2 has a pattern: windows on every other layer, from the first on.
    bias, window = fields.flag("attention_bias"), window_of(fields)
    ffn = dense(fields)
    return [
        Block(1, gqa(fields, window=window if limited else None, qkv_bias=bias, out_bias=bias), ffn, norms=4)
        for limited in _windowed(fields, lambda layer: layer % 2 == 0)
    ]


def _gemma3(fields: Fields) -> Layers:
    every = _every(fields, ("sliding_window_pattern", "_sliding_window_pattern"), 6)
    bias, window, ffn = fields.flag("attention_bias"), window_of(fields), dense(fields)
    local = gqa(fields, window=window, qkv_bias=bias, out_bias=bias, qk_norm=True)
    return [
        Block(1, local if limited else replace(local, window=None), ffn, norms=4)
        for limited in _windowed(fields, lambda layer: (layer + 1) % every != 0)
    ]


def _gemma4_full(fields: Fields, local: Attention) -> Attention:
    """Attention over everything: larger heads, and fewer KV heads where keys serve as values."""
    shared = fields.flag("attention_k_eq_v")
    kv_heads = fields.count_or("num_global_key_value_heads", local.kv_heads) if shared else local.kv_heads
    if local.heads % kv_heads:
        fields.bad("num_global_key_value_heads", f"a divisor of num_attention_heads {local.heads}")
    return replace(
        local,
        kv_heads=kv_heads,
        head_dim=fields.count_or("global_head_dim", local.head_dim),
        window=None,
        shared_values=shared,
    )


def _gemma4_ffn(fields: Fields, *, wide: bool) -> tuple[Mlp | Moe, float]:
    """The feed-forward layer, and further weights: norms and scales around the experts."""
    width = fields.count("intermediate_size") * (2 if wide else 1)
    side = fields.count_or("hidden_size_per_layer_input", 0, low=0)
    if not fields.flag("enable_moe_block"):
        return Mlp(intermediate=width, layer_input=side), 0
    if side:
        fields.bad("hidden_size_per_layer_input", "0 in a mixture of experts")
    experts = moe(fields, "num_experts", "moe_intermediate_size", top_k_key="top_k_experts")
    extra = 4 * fields.count("hidden_size") + experts.experts
    return replace(experts, shared_intermediate=width), extra


def _gemma4(fields: Fields) -> Shape:
    layers, bias = fields.count("num_hidden_layers"), fields.flag("attention_bias")
    local = gqa(fields, window=window_of(fields), qkv_bias=bias, out_bias=bias, qk_norm=True)
    full = _gemma4_full(fields, local)
    sharing = fields.count_or("num_kv_shared_layers", 0, low=0)
    if sharing >= layers:
        fields.bad("num_kv_shared_layers", f"under num_hidden_layers {layers}")
    side = fields.count_or("hidden_size_per_layer_input", 0, low=0)
    blocks = []
    for layer, limited in enumerate(_windowed(fields, lambda layer: (layer + 1) % 6 != 0)):
        late = layer >= layers - sharing
        attention = replace(local if limited else full, shared_cache=late)
        ffn, extra = _gemma4_ffn(fields, wide=late and fields.flag("use_double_wide_mlp"))
        blocks.append(Block(1, attention, ffn, norms=5 if side else 4, extra=extra))
    # An embedding for each layer, looked up like the other, and one norm.
    tables = fields.count_or("vocab_size_per_layer_input", 262_144) * layers * side + side
    return Shape(blocks=blocks, extra=tables)


def _gpt_oss(fields: Fields) -> Layers:
    bias = fields.flag("attention_bias", default=True)
    local = gqa(fields, window=window_of(fields, 128), qkv_bias=bias, out_bias=bias, default_head_dim=64)
    local = replace(local, sinks=True)
    experts = replace(
        moe(fields, "num_local_experts", "intermediate_size", router_bias=True), expert_bias=True
    )
    return [
        Block(1, local if limited else replace(local, window=None), experts)
        for limited in _windowed(fields, lambda layer: layer % 2 == 0)
    ]


def _llama4_chunked(fields: Fields) -> list[bool]:
    """Whether each layer attends within its chunk: those with rotary positions; every fourth has none."""
    layers = fields.count("num_hidden_layers")
    kinds = layer_kinds(fields, ("full_attention", "chunked_attention"))
    if kinds:
        return [kind == "chunked_attention" for kind in kinds]
    rotary = fields.config.get("no_rope_layers")
    if rotary:  # 1 where a layer has rotary positions, despite the name
        if not isinstance(rotary, list) or len(rotary) != layers:
            fields.bad("no_rope_layers", f"a list of {layers} numbers, 0 or 1")
        return [bool(one) for one in rotary]
    every = fields.count_or("no_rope_layer_interval", 4)
    return [(layer + 1) % every != 0 for layer in range(layers)]


def _llama4(fields: Fields) -> Layers:
    layers, bias = fields.count("num_hidden_layers"), fields.flag("attention_bias")
    full = gqa(fields, qkv_bias=bias, out_bias=bias)
    chunk = None
    if "attention_chunk_size" not in fields.config or fields.has("attention_chunk_size"):
        chunk = fields.count_or("attention_chunk_size", 8192)
    step = fields.count_or("interleave_moe_layer_step", 1)
    sparse = set(fields.indices("moe_layers", layers)) or set(range(step - 1, layers, step))
    experts = moe(fields, "num_local_experts", "intermediate_size", shared=1)
    mlp = dense(fields, "intermediate_size_mlp") if len(sparse) < layers else None
    return [
        Block(
            1,
            replace(full, window=chunk) if limited else full,
            experts if mlp is None or layer in sparse else mlp,
        )
        for layer, limited in enumerate(_llama4_chunked(fields))
    ]


def _step_sparse(fields: Fields, layers: int) -> set[int]:
    """Layers with experts: listed as a text or a list, else those after the first few."""
    listed = fields.config.get("moe_layers_enum")
    if listed is None:
        return set(range(first_dense(fields, min(3, layers)), layers))
    if isinstance(listed, str):
        listed = [int(one) for one in listed.split(",") if one.strip().isdecimal()]
    return set(Fields({"moe_layers_enum": listed}, fields.where).indices("moe_layers_enum", None))


def _step(fields: Fields) -> Shape:
    """A gate for each head, more heads where attention has a window, dense layers first."""
    layers = fields.count("num_hidden_layers")
    modules = fields.count_or("num_nextn_predict_layers", 0, low=0)
    kinds = fields.texts("layer_types")
    if len(kinds) == layers + modules:  # published lists go on for the MTP modules
        fields = Fields({**fields.config, "layer_types": list(kinds[:layers])}, fields.where, fields.spelled)
    full = replace(gqa(fields, qk_norm=True), head_gate=True)
    other = fields.section("attention_other_setting")
    heads = fields.count_or("num_sliding_attention_heads", full.heads)
    heads = other.count_or("num_attention_heads", heads) if other is not None else heads
    local = replace(full, heads=heads, window=window_of(fields))
    experts = moe(fields, "num_experts", "moe_intermediate_size")
    experts = replace(experts, shared_intermediate=fields.count_or("share_expert_dim", 0, low=0))
    mlp, sparse = dense(fields), _step_sparse(fields, layers)
    blocks = [
        Block(1, local if limited else full, experts if layer in sparse else mlp)
        for layer, limited in enumerate(_windowed(fields, lambda _: False))
    ]
    return Shape(blocks=blocks, mtp=Mtp(modules=modules, block=Block(1, local, mlp)) if modules else None)


_GEMMA = {"num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "sliding_window": 4096}
_GEMMA2 = {**_GEMMA, "vocab_size": 256_000}
_GEMMA3 = {**_GEMMA, "vocab_size": 262_208, "max_position_embeddings": 131_072}
_GEMMA4 = {**_GEMMA, "sliding_window": 512, "global_head_dim": 512, "vocab_size": 262_144}
_MIXTURE = ("num_local_experts", "num_experts_per_tok")
_STEP = (*DENSE, "num_experts", "num_experts_per_tok", "moe_intermediate_size")
_GEMMA3_CLASSES = ("Gemma3ForConditionalGeneration", "Gemma3ForCausalLM")
_GEMMA4_CLASSES = ("Gemma4ForConditionalGeneration", "Gemma4ForCausalLM")
_LLAMA4_CLASSES = ("Llama4ForConditionalGeneration", "Llama4ForCausalLM")
_STEP_NAMES = {
    "num_experts": "moe_num_experts",
    "num_experts_per_tok": "moe_top_k",
    "num_key_value_heads": "num_attention_groups",
    "share_expert_dim": "share_expert_dims",
}

gemma3 = Family(_GEMMA3_CLASSES, _gemma3, tied=True, defaults=_GEMMA3)
gemma4 = Family(_GEMMA4_CLASSES, _gemma4, tied=True, defaults=_GEMMA4)
llama4 = Family(_LLAMA4_CLASSES, _llama4, (*DENSE, *_MIXTURE))
step = Family(
    ("Step3p7FlashForCausalLM", "Step3p7ForConditionalGeneration"), _step, _STEP, aliases=_STEP_NAMES
)

WINDOW_FAMILIES: dict[str, Family] = {
    "gemma": Family("GemmaForCausalLM", _gemma, tied=True, defaults={"head_dim": 256}),
    "gemma2": Family("Gemma2ForCausalLM", _gemma2, tied=True, defaults=_GEMMA2),
    "gemma3": gemma3,
    "gemma3_text": gemma3,
    "gemma4": gemma4,
    "gemma4_text": gemma4,
    "gpt_oss": Family(
        "GptOssForCausalLM",
        _gpt_oss,
        (*DENSE, *_MIXTURE),
        aliases={"num_experts_per_tok": "experts_per_token", "num_local_experts": "num_experts"},
    ),
    "llama4": llama4,
    "llama4_text": llama4,
    "step3p7": step,
    "step3p5": step,
}
"""Families by ``model_type``."""
