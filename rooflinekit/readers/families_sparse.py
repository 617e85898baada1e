"""Families whose attention reads a part of the context that an index chose, or condenses the past.

``SPARSE_FAMILIES`` is joined to the table of ``families_hybrid``; the contract is the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rooflinekit.llm import Attention, Block, BlockSparse, Compressed, Indexer, Mla, Moe
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
)
from rooflinekit.readers.hf_fields import Fields

_RATIOS = {"sliding_attention": 0, "compressed_sparse_attention": 4, "heavily_compressed_attention": 128}
_INDEXED_RATIO = 4


def _indexer(fields: Fields) -> Indexer:
    return Indexer(
        heads=fields.count("index_n_heads"),
        head_dim=fields.count("index_head_dim"),
        top_k=fields.count("index_topk"),
    )


def _sparse_ffn(fields: Fields) -> list[bool]:
    """Whether each layer has experts: ``mlp_layer_types``, else those after ``first_k_dense_replace``."""
    kinds = layer_kinds(fields, ("dense", "sparse"), "mlp_layer_types")
    if kinds:
        return [kind == "sparse" for kind in kinds]
    first, every = first_dense(fields, 3), fields.count_or("moe_layer_freq", 1)
    return [layer >= first and layer % every == 0 for layer in range(fields.count("num_hidden_layers"))]


def _latent_experts(fields: Fields) -> Moe:
    shared = fields.count_or("n_shared_experts", 1, low=0)
    return moe(fields, "n_routed_experts", "moe_intermediate_size", shared)


def _indexed_latent(fields: Fields, mixers: Sequence[Mla]) -> Shape:
    """Latent attention with an index; draft modules have an index of their own."""
    mlp, experts = dense(fields), _latent_experts(fields)
    blocks = [
        Block(1, mixer, experts if sparse else mlp)
        for mixer, sparse in zip(mixers, _sparse_ffn(fields), strict=True)
    ]
    own = replace(mla(fields), indexer=_indexer(fields))
    return Shape(blocks=blocks, mtp=mtp_modules(fields, Block(1, own, experts)))


def _deepseek_v32(fields: Fields) -> Shape:
    attention = replace(mla(fields), indexer=_indexer(fields))
    return _indexed_latent(fields, [attention] * fields.count("num_hidden_layers"))


def _own_index(fields: Fields) -> list[bool]:
    """Whether each layer has an index: ``indexer_types``, else all but those ``index_topk_freq`` skips."""
    kinds = layer_kinds(fields, ("full", "shared"), "indexer_types")
    if kinds:
        return [kind == "full" for kind in kinds]
    layers, pattern = fields.count("num_hidden_layers"), fields.text("index_topk_pattern")
    if pattern is not None:
        if len(pattern) != layers or not set(pattern) <= set("FS"):
            fields.bad("index_topk_pattern", f"{layers} letters F (full) or S (shared)")
        return [letter == "F" for letter in pattern]
    every, offset = fields.count_or("index_topk_freq", 1), fields.count_or("index_skip_topk_offset", 2, low=0)
    return [max(layer - offset + 1, 0) % every == 0 for layer in range(layers)]


def _glm_dsa(fields: Fields) -> Shape:
    attention, index, owns = mla(fields), _indexer(fields), _own_index(fields)
    mixers = [replace(attention, indexer=replace(index, shared=not own)) for own in owns]
    if not owns[0]:
        fields.bad("indexer_types", "full in the first layer, since there is none to share from")
    return _indexed_latent(fields, mixers)


def _ratios(fields: Fields) -> list[int]:
    """Tokens per condensed entry of each layer, and of the draft modules where the list goes on."""
    layers, key = fields.count("num_hidden_layers"), "compress_ratios"
    kinds = layer_kinds(fields, tuple(_RATIOS))
    if kinds:
        return [_RATIOS[kind] for kind in kinds]
    ratios = list(fields.indices(key, None))
    if len(ratios) < layers:
        fields.bad(key, f"a list of {layers} ratios, 0 for a layer that sees its window only")
    return ratios


def _deepseek_v4(fields: Fields) -> Shape:
    """A window in every layer; of the past an entry for 4 tokens (indexed) or for 128, or nothing.

    Routing of the first layers by a table over token ids moves the same weights; the table is no parameter.
    """
    layers, streams = fields.count("num_hidden_layers"), fields.count("hc_mult")
    plain = Compressed(
        heads=fields.count("num_attention_heads"),
        head_dim=fields.count("head_dim"),
        q_lora_rank=fields.count("q_lora_rank"),
        out_groups=fields.count("o_groups"),
        out_rank=fields.count("o_lora_rank"),
        window=fields.count("sliding_window"),
    )
    if plain.heads % plain.out_groups:
        fields.bad("o_groups", f"a divisor of num_attention_heads {plain.heads}")
    indexed = replace(plain, ratio=_INDEXED_RATIO, indexer=_indexer(fields))
    experts = _latent_experts(fields)

    def block(ratio: int) -> Block:
        mixer = indexed if ratio == _INDEXED_RATIO else replace(plain, ratio=ratio)
        return Block(1, mixer, experts, streams=streams)

    ratios = _ratios(fields)
    hidden = fields.count("hidden_size")
    return Shape(
        blocks=[block(ratio) for ratio in ratios[:layers]],
        # The streams are merged before the last norm: a matrix row, a bias and a scale.
        extra=streams * streams * hidden + streams + 1 if streams > 1 else 0,
        mtp=mtp_modules(fields, block(ratios[layers] if len(ratios) > layers else 0)),
        # 4-bit weights, inputs in 8 bits: no format computes so, and the 4-bit rate would be too fast.
        formats={"experts": "w4a16-mxfp4"} if fields.text("expert_dtype") == "fp4" else {},
    )


def _minimax_index(sparse: Fields) -> Indexer:
    """An index of blocks: no weights per head, positions of all chosen blocks."""
    return Indexer(
        heads=sparse.count("sparse_num_index_heads"),
        head_dim=sparse.count("sparse_index_dim"),
        top_k=sparse.count("sparse_topk_blocks") * sparse.count("sparse_block_size"),
        head_weights=False,
    )


def _marks(fields: Fields, key: str, layers: int) -> tuple[int, ...]:
    marks = fields.indices(key, 2)
    if len(marks) != layers:
        fields.bad(key, f"a list of {layers} times 0 or 1")
    return marks


def _minimax_m3(fields: Fields) -> Layers:
    """Grouped-query attention, from the fourth layer on over blocks that an index chose; experts there too.

    The config counts draft modules, but does not say they are used, and publishes no weights of them.
    """
    layers = fields.count("num_hidden_layers")
    attention: Attention = gqa(fields, qk_norm=fields.flag("use_qk_norm", default=True), default_head_dim=128)
    attention = replace(attention, gate=fields.flag("attention_output_gate"))
    sparse = fields.section("sparse_attention_config")
    if sparse is None or not sparse.flag("use_sparse_attention", default=True):
        indexed: Attention | BlockSparse = attention
        chosen: tuple[int, ...] = (0,) * layers
    else:
        indexed = BlockSparse(attention=attention, indexer=_minimax_index(sparse))
        chosen = _marks(sparse, "sparse_attention_freq", layers)
    experts = moe(fields, "num_local_experts", "moe_intermediate_size")
    shared = fields.count_or("n_shared_experts", 1, low=0) * fields.count("shared_intermediate_size")
    experts = replace(experts, shared_intermediate=shared)
    mlp, mixed = dense(fields, "dense_intermediate_size"), _marks(fields, "moe_layer_freq", layers)
    return [
        Block(1, indexed if index else attention, experts if routed else mlp)
        for index, routed in zip(chosen, mixed, strict=True)
    ]


_INDEX = ("index_n_heads", "index_head_dim", "index_topk")
_EXPERTS = ("n_routed_experts", "num_experts_per_tok", "moe_intermediate_size")
_LATENT = ("q_lora_rank", "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")
_DSA = (*DENSE, *_LATENT, *_EXPERTS, *_INDEX)
_V4 = (
    *(*COMMON, "head_dim", "q_lora_rank", "o_groups", "o_lora_rank", "sliding_window", "hc_mult"),
    *(*_EXPERTS, *_INDEX),
)
_M3 = (
    *(*COMMON, "dense_intermediate_size", "shared_intermediate_size", "moe_layer_freq"),
    *("num_local_experts", "num_experts_per_tok", "moe_intermediate_size"),
)

SPARSE_FAMILIES: dict[str, Family] = {
    "deepseek_v32": Family("DeepseekV32ForCausalLM", _deepseek_v32, _DSA),
    "deepseek_v4": Family("DeepseekV4ForCausalLM", _deepseek_v4, _V4),
    "glm_moe_dsa": Family("GlmMoeDsaForCausalLM", _glm_dsa, _DSA),
    "minimax_m3": Family("MiniMaxM3ForCausalLM", _minimax_m3, _M3),
}
"""Families by ``model_type``."""
