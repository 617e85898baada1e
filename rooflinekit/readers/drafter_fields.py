"""Fields that drafters of several kinds share: layers, windows, proposed K, and files of the speculators library."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rooflinekit.readers.hf_fields import Fields, head_shape

LAYER_FIELDS = ("hidden_size", "intermediate_size", "num_attention_heads", "num_hidden_layers", "vocab_size")
_LATENT = {"nope_dim": "qk_nope_head_dim", "rope_dim": "qk_rope_head_dim", "value_dim": "v_head_dim"}
_WINDOWS = {"full_attention": False, "sliding_attention": True}


def flattened(config: Mapping[str, Any], where: str) -> Fields:
    """Return the fields of a drafter, those of a nested layer config included; outer ones go first."""
    fields = Fields(config, where)
    key = "transformer_layer_config" if fields.has("speculators_model_type") else "model"
    if not isinstance(config.get(key), Mapping):
        return fields
    own = {name: value for name, value in config.items() if value is not None and name != key}
    return Fields({**config[key], **own}, where)


def proposed_k(fields: Fields) -> int | None:
    """Return the tokens that a speculators file proposes: its default method's, else the first one's."""
    outer = fields.section("speculators_config")
    if outer is None or not outer.has("proposal_methods"):
        return None
    methods = outer.config["proposal_methods"]
    if not isinstance(methods, list) or not methods or not all(isinstance(one, Mapping) for one in methods):
        outer.bad("proposal_methods", "a list of objects")
    default = outer.text("default_proposal_method")
    chosen = [one for one in methods if one.get("proposal_type") == default] or methods
    method = Fields(chosen[0], f"{outer.where}: proposal_methods")
    return method.count("speculative_tokens") if method.has("speculative_tokens") else None


def _attention(fields: Fields) -> dict[str, int]:
    flags = {"attention_bias": 1} if fields.flag("attention_bias") else {}
    if fields.has("kv_lora_rank"):
        fields.require(_LATENT.values())
        shape = {"heads": fields.count("num_attention_heads"), "kv_lora_rank": fields.count("kv_lora_rank")}
        if fields.has("q_lora_rank"):
            shape["q_lora_rank"] = fields.count("q_lora_rank")
        return shape | {name: fields.count(key) for name, key in _LATENT.items()} | flags
    heads, kv_heads, head_dim = head_shape(fields)
    if str(fields.config.get("model_type")).startswith("qwen3"):
        flags["qk_norm"] = 1
    return {"heads": heads, "kv_heads": kv_heads, "head_dim": head_dim} | flags


def _windows(fields: Fields, layers: int) -> dict[str, int]:
    types = fields.texts("layer_types")
    if types:
        if len(types) != layers:
            fields.bad("layer_types", f"one type for each of num_hidden_layers {layers}")
        unknown = sorted(set(types) - set(_WINDOWS))
        if unknown:
            fields.bad("layer_types", f"of {' and '.join(_WINDOWS)} (not {', '.join(unknown)})")
        windowed = sum(_WINDOWS[name] for name in types)
    else:
        windowed = layers if fields.flag("use_sliding_window") and fields.has("sliding_window") else 0
    return {"window": fields.count("sliding_window"), "window_layers": windowed} if windowed else {}


def layer_shape(fields: Fields) -> dict[str, int]:
    """Return width, feed-forward width, attention (grouped or latent), layers and windows."""
    layers = fields.count("num_hidden_layers")
    return {
        "hidden": fields.count("hidden_size"),
        "intermediate": fields.count("intermediate_size"),
        **_attention(fields),
        "layers": layers,
        **_windows(fields, layers),
    }


def either(parts: tuple[Fields, ...], keys: tuple[str, ...], low: int) -> int:
    """Read a number that writers put in several places (at the top, inside ``dflash_config``) and spellings."""
    found = {
        f"{key} in {part.where}": part.count(key, low) for part in parts for key in keys if part.has(key)
    }
    if not found:
        parts[0].require((keys[0],))
    if len(set(found.values())) > 1:
        words = " and ".join(f"{value} ({place})" for place, value in found.items())
        parts[0].fail(f"{keys[0]} is given as {words}; correct the config.json")
    return next(iter(found.values()))
