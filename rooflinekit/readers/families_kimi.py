"""Kimi Linear and Kimi-K3: delta attention with a decay per channel, latent attention in every fourth layer.

``KIMI_FAMILIES`` is joined to the table of ``families_hybrid``; the contract is the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from rooflinekit.llm import Block, GatedDelta, Mla
from rooflinekit.readers.family import DENSE, Family, Shape, dense, first_dense, mla, moe
from rooflinekit.readers.hf_fields import Fields


def _kimi_delta(linear: Fields) -> GatedDelta:
    """Kimi Delta Attention: a decay per channel, made through the rank of one head."""
    heads, dim = linear.count("num_heads"), linear.count("head_dim")
    return GatedDelta(
        key_heads=heads,
        value_heads=heads,
        key_dim=dim,
        value_dim=dim,
        conv_kernel=linear.count("short_conv_kernel_size"),
        decay_rank=dim,
        gate_rank=0 if linear.flag("use_full_rank_gate") else dim,
    )


def _kimi_mixers(fields: Fields) -> list[GatedDelta | Mla]:
    """The mixer of each layer; the config counts layers from 1."""
    linear = fields.section("linear_attn_config") or fields
    layers = fields.count("num_hidden_layers")
    full, delta = (set(linear.indices(key, layers + 1)) for key in ("full_attn_layers", "kda_layers"))
    if full & delta or full | delta != set(range(1, layers + 1)):
        linear.bad("kda_layers", f"the layers from 1 to {layers} that full_attn_layers leaves")
    attention = replace(mla(fields), gate=fields.flag("mla_use_output_gate"))
    recurrent = _kimi_delta(linear)
    return [recurrent if layer in delta else attention for layer in range(1, layers + 1)]


def _delta_format(fields: Fields) -> Mapping[str, str]:
    """Kimi's recurrent layers are ``self_attn`` modules: plain where the quantization leaves those out."""
    quantization = fields.section("quantization_config")
    left_out = quantization.texts("ignore") if quantization is not None else ()
    return {"recurrent": "bf16"} if any("self_attn" in pattern for pattern in left_out) else {}


def _kimi(fields: Fields) -> Shape:
    """Kimi Linear and K3: delta attention with latent attention every fourth layer.

    K3 adds attention over the outputs of earlier blocks of layers (a norm and a query, both of the model's
    width, before each part and before the last norm), which is counted and not charged: its reads are
    activations. Its routed experts see a latent that has a norm.
    """
    hidden, first = fields.count("hidden_size"), first_dense(fields, 1)
    latent = fields.count_or("routed_expert_hidden_size", 0)
    residual = 2 * hidden if fields.has("attn_res_block_size") else 0
    shared = fields.count_or("num_shared_experts", 0, low=0)
    experts = moe(fields, "num_experts", "moe_intermediate_size", shared, top_k_key="num_experts_per_token")
    experts = replace(experts, expert_input=latent)
    norm = latent if fields.flag("latent_moe_use_norm") else 0
    every, mlp = fields.count_or("moe_layer_freq", 1), dense(fields)
    blocks = []
    for layer, mixer in enumerate(_kimi_mixers(fields)):
        sparse = layer >= first and layer % every == 0
        extra = 2 * residual + (norm if sparse else 0)
        blocks.append(Block(1, mixer, experts if sparse else mlp, extra=extra))
    return Shape(blocks=blocks, extra=residual, formats=_delta_format(fields))


_LATENT = ("kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")
_EXPERTS = ("num_experts", "num_experts_per_token", "moe_intermediate_size")
_REQUIRED = (*DENSE, *_LATENT, "linear_attn_config", *_EXPERTS)
_CLASSES = ("KimiK3ForConditionalGeneration", "KimiLinearForCausalLM")

KIMI_FAMILIES: dict[str, Family] = {
    "kimi_k3": Family(_CLASSES, _kimi, _REQUIRED),
    "kimi_linear": Family(_CLASSES, _kimi, _REQUIRED),
}
"""Families by ``model_type``."""
