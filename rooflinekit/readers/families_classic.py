"""Phi-3, Falcon, GPT-2 and T5: families with names, norms and biases of their own."""

from __future__ import annotations

from dataclasses import replace

from rooflinekit.llm import Attention, Block, Mlp
from rooflinekit.readers.family import Family, Layers, Shape, dense, gqa, window_of
from rooflinekit.readers.hf_fields import Fields

_SHORT = ("hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size")


def _phi3(fields: Fields) -> Layers:
    block = Block(1, gqa(fields, window=window_of(fields)), dense(fields))
    return [block] * fields.count("num_hidden_layers")


def _falcon_attention(fields: Fields, *, modern: bool) -> Attention:
    """KV heads: ``num_kv_heads`` in the newer decoder only; else one with ``multi_query``, or all."""
    heads = fields.count("num_attention_heads")
    if modern:
        kv_heads = fields.count_or("num_kv_heads", heads)
    else:
        kv_heads = 1 if fields.flag("multi_query", default=True) else heads
    if heads % kv_heads:
        fields.bad("num_kv_heads", f"a divisor of num_attention_heads {heads}")
    bias, hidden = fields.flag("bias"), fields.count("hidden_size")
    if hidden % heads:
        fields.bad("num_attention_heads", f"a divisor of hidden_size {hidden}")
    return Attention(heads=heads, kv_heads=kv_heads, head_dim=hidden // heads, qkv_bias=bias, out_bias=bias)


def _falcon(fields: Fields) -> Shape:
    modern = fields.flag("new_decoder_architecture")
    # Attention and MLP side by side share a norm in the older decoder; the newer one has one for each.
    norms = 1 if fields.flag("parallel_attn", default=True) and not modern else 2
    if modern:
        norms = fields.count_or("num_ln_in_parallel_attn", 2)
    width = fields.count_or("ffn_hidden_size", 4 * fields.count("hidden_size"))
    ffn = Mlp(intermediate=width, gated=False, bias=fields.flag("bias"))
    block = Block(1, _falcon_attention(fields, modern=modern), ffn, norms=norms, norm_bias=True)
    return Shape(blocks=[block] * fields.count("num_hidden_layers"), final_norm_bias=True)


def _gpt2(fields: Fields, *, one_kv_head: bool = False) -> Shape:
    """Biases and LayerNorms throughout, a table of positions, one KV head with ``multi_query``."""
    hidden = fields.count("hidden_size")
    attention = gqa(fields, qkv_bias=True, out_bias=True)
    if fields.flag("multi_query", default=one_kv_head) or fields.text("attention_head_type") == "multiquery":
        attention = replace(attention, kv_heads=1)
    ffn = Mlp(intermediate=fields.count_or("n_inner", 4 * hidden), gated=False, bias=True)
    block = Block(1, attention, ffn, norm_bias=True)
    return Shape(
        blocks=[block] * fields.count("num_hidden_layers"),
        extra=fields.count_or("max_position_embeddings", 1024) * hidden,
        final_norm_bias=True,
    )


def _gpt_bigcode(fields: Fields) -> Shape:
    return _gpt2(fields, one_kv_head=True)


def _t5(fields: Fields) -> Shape:
    """Decoder layers with attention to the encoder's output; relative positions once for each stack."""
    heads, hidden = fields.count("num_attention_heads"), fields.count("hidden_size")
    attention = Attention(heads=heads, kv_heads=heads, head_dim=fields.count("d_kv"))
    gated = "gated" in (fields.text("feed_forward_proj") or "relu")
    ffn = Mlp(intermediate=fields.count("intermediate_size"), gated=gated)
    layers = fields.count("num_hidden_layers")
    positions = fields.count_or("relative_attention_num_buckets", 32) * heads
    return Shape(
        blocks=[Block(1, attention, ffn, norms=3, cross=replace(attention, over_encoder=True))]
        * fields.count_or("num_decoder_layers", layers),
        encoder=[Block(1, attention, ffn)] * layers,
        extra=2 * positions + hidden,
        # Files of T5 1.1 say false, which only turns off a scaling of the outputs: transformers 5 reads
        # one table for both.
        tied=True,
    )


_GPT2_NAMES = {
    "hidden_size": "n_embd",
    "num_hidden_layers": "n_layer",
    "num_attention_heads": "n_head",
    "max_position_embeddings": "n_positions",
}
_FALCON_NAMES = {
    "num_hidden_layers": "n_layer",
    "num_attention_heads": "n_head",
    "num_kv_heads": "n_head_kv",
}
_T5_NAMES = {
    "hidden_size": "d_model",
    "num_hidden_layers": "num_layers",
    "num_attention_heads": "num_heads",
    "intermediate_size": "d_ff",
}

CLASSIC_FAMILIES: dict[str, Family] = {
    "phi3": Family("Phi3ForCausalLM", _phi3),
    "falcon": Family("FalconForCausalLM", _falcon, _SHORT, tied=True, aliases=_FALCON_NAMES),
    "gpt2": Family(
        ("GPT2LMHeadModel", "GPT2LMHeadCustomModel"), _gpt2, _SHORT, tied=True, aliases=_GPT2_NAMES
    ),
    "gpt_bigcode": Family("GPTBigCodeForCausalLM", _gpt_bigcode, _SHORT, tied=True, aliases=_GPT2_NAMES),
    "t5": Family(
        "T5ForConditionalGeneration", _t5, (*_SHORT, "intermediate_size", "d_kv"), aliases=_T5_NAMES
    ),
}
"""Families by ``model_type``."""
