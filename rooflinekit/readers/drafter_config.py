"""Drafter configs: the shape that sets a drafter's cost, and K by each format's own rule.

K (drafted tokens): EAGLE-1, EAGLE-3 and MTP run any; DFlash and Domino draft a block less its known first
position; DSpark drafts its whole block; Medusa drafts one token per head; P-EAGLE drafts what it was trained
for. What a file of the speculators library proposes goes before its block.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rooflinekit.errors import ModelError
from rooflinekit.readers.drafter_fields import LAYER_FIELDS, either, flattened, layer_shape, proposed_k
from rooflinekit.readers.drafter_kinds import (
    KINDS,
    drafter_kind,
    drafter_mark,
    kind_as_drafter,
    why_unreadable,
)
from rooflinekit.readers.hf_fields import Fields

__all__ = ["KINDS", "drafter_kind", "drafter_mark", "drafter_shape", "k_words", "kind_as_drafter", "shape_of"]

_EXPERTS = ("num_experts", "n_routed_experts", "num_local_experts")
_TAPS = ("target_layer_ids", "aux_hidden_state_layer_ids", "dspark_target_layer_ids")
_FUSED = ("eagle_aux_hidden_state_layer_ids", "aux_hidden_state_layer_ids")


def _proposal(fields: Fields) -> dict[str, int]:
    proposed = proposed_k(fields)
    return {"proposed_k": proposed} if proposed else {}


def _eagle(fields: Fields) -> dict[str, int]:
    fields.require(LAYER_FIELDS)
    return layer_shape(fields) | {"vocab": fields.count("vocab_size")} | _proposal(fields)


def _eagle3(fields: Fields) -> dict[str, int]:
    fields.require(LAYER_FIELDS)
    shape = layer_shape(fields)
    vocab = fields.count("vocab_size")
    draft_vocab = fields.count_or("draft_vocab_size", vocab)
    if draft_vocab > vocab:
        fields.bad("draft_vocab_size", f"at most vocab_size {vocab}")
    nested = fields.section("eagle_config") or Fields({}, fields.where)
    taps = {len(part.indices(key, None)) for part in (nested, fields) for key in _FUSED if part.has(key)}
    if len(taps) > 1 or 0 in taps:
        fields.fail("the lists of the target's layers differ or are empty; correct the config.json")
    target = fields.count_or("target_hidden_size", shape["hidden"])
    fused = taps.pop() if taps else 3
    norms = {"fusion_norms": fused * target} if fields.flag("fc_norm") else {}
    return (
        shape
        | {"vocab": vocab, "draft_vocab": draft_vocab, "target_hidden": target, "fused": fused}
        | norms
        | _proposal(fields)
    )


def _k_of_block(fields: Fields, parts: tuple[Fields, ...], kind: str) -> int:
    """K by the format's own rule: a speculators file's proposal, else the block with or without its anchor."""
    proposed = proposed_k(fields)
    if proposed:
        return proposed
    native = kind == "dspark" and not fields.has("speculators_model_type")
    whole = native or fields.flag("sample_from_anchor")
    return either(parts, ("block_size", "dspark_block_size"), 1 if whole else 2) - (0 if whole else 1)


def _parts(fields: Fields) -> tuple[Fields, ...]:
    return fields, fields.section("dflash_config") or Fields({}, fields.where)


def _missing(parts: tuple[Fields, ...], kind: str) -> list[str]:
    """Fields a block drafter needs and does not have, in the spelling and place of most files."""
    wanted: dict[str, tuple[str, ...]] = {key: (key,) for key in LAYER_FIELDS}
    if not proposed_k(parts[0]):
        wanted["block_size"] = ("block_size", "dspark_block_size")
    wanted["dflash_config.target_layer_ids"] = _TAPS
    if kind == "dspark":
        wanted["dflash_config.markov_rank"] = ("markov_rank", "dspark_markov_rank")
    if kind == "domino":
        wanted |= {f"dflash_config.{key}": (key,) for key in ("gru_hidden_dim", "emb_dim")}
    return [name for name, keys in wanted.items() if not any(part.has(key) for part in parts for key in keys)]


def _taps(fields: Fields, parts: tuple[Fields, ...]) -> int:
    below = fields.count("num_target_layers") if fields.has("num_target_layers") else None
    part, key = next((part, key) for part in parts for key in _TAPS if part.has(key))
    taps = part.indices(key, below)
    if not taps or len(set(taps)) < len(taps):
        part.bad(key, "a list of different layers, one at least")
    return len(taps)


def _block(fields: Fields, kind: str) -> dict[str, int]:
    parts = _parts(fields)
    fields.require(_missing(parts, kind))
    shape = layer_shape(fields)
    if fields.count_or("target_hidden_size", shape["hidden"]) != shape["hidden"]:
        fields.bad(
            "target_hidden_size", f"hidden_size {shape['hidden']} (other widths are not supported yet)"
        )
    vocab = fields.count("vocab_size")
    draft = fields.count_or("draft_vocab_size", vocab)
    k = _k_of_block(fields, parts, kind)
    return shape | {
        "block_size": k if kind == "dspark" else k + 1,
        "target_layers": _taps(fields, parts),
        "vocab": vocab,
        **({"draft_vocab": draft} if draft < vocab else {}),
    }


def _dflash(fields: Fields) -> dict[str, int]:
    return _block(fields, "dflash")


def _dspark(fields: Fields) -> dict[str, int]:
    shape, parts = _block(fields, "dspark"), _parts(fields)
    heads = {part.text("markov_head_type") for part in parts} - {None, "vanilla"}
    if heads:
        fields.fail(
            f"markov_head_type {heads.pop()!r} is not supported; only 'vanilla' (a low-rank bigram) is"
        )
    return shape | {"markov_rank": either(parts, ("markov_rank", "dspark_markov_rank"), 1)}


def _domino(fields: Fields) -> dict[str, int]:
    shape, parts = _block(fields, "domino"), _parts(fields)
    return shape | {
        "gru_width": either(parts, ("gru_hidden_dim",), 1),
        "correction_width": either(parts, ("emb_dim",), 1),
    }


def _medusa(fields: Fields) -> dict[str, int]:
    heads = either((fields,), ("medusa_num_heads", "num_heads"), 1)
    shape = {"heads": heads, "layers": 1}
    for key in ("medusa_num_layers", "num_hidden_layers"):
        if fields.has(key):
            shape["layers"] = fields.count(key)
            break
    if fields.has("hidden_size"):
        shape["hidden"] = fields.count("hidden_size")
    for name, key in (("vocab", "vocab_size"), ("draft_vocab", "truncated_vocab_size")):
        if fields.has(key):
            shape[name] = fields.count(key)
    return shape


def _mtp(fields: Fields) -> dict[str, int]:
    fields.require(LAYER_FIELDS)
    modules = fields.count_or("num_nextn_predict_layers", 1)
    experts = [fields.count(key) for key in _EXPERTS if fields.has(key)]
    found = {"experts": experts[0]} if experts else {}
    if experts:  # a mixture takes its layer from the target
        found |= {"hidden": fields.count("hidden_size")}
    else:
        found = layer_shape(fields)
    return found | {"vocab": fields.count("vocab_size"), "modules": modules} | _proposal(fields)


_READERS: dict[str, Callable[[Fields], dict[str, int]]] = {
    "eagle": _eagle,
    "eagle3": _eagle3,
    "peagle": _eagle3,
    "dflash": _dflash,
    "dspark": _dspark,
    "domino": _domino,
    "medusa": _medusa,
    "mtp": _mtp,
}


def shape_of(kind: str, config: Mapping[str, Any], where: str) -> dict[str, int]:
    """Return the shape of a drafter of a known kind.

    Parameters
    ----------
    kind
        One of :data:`KINDS`.
    config
        Its config.json.
    where
        The file, for messages.

    Returns
    -------
    dict
        Whole numbers above zero. Layers of all kinds but Medusa: ``hidden``, ``intermediate``, ``heads``,
        ``kv_heads`` and ``head_dim`` (or the ranks of latent attention), ``layers``, ``window`` of
        ``window_layers``. ``vocab`` of the tokenizer, ``draft_vocab`` of an LM head of its own, ``fused`` or
        ``target_layers`` (hidden states read), ``target_hidden``, ``target_depth`` (layers of the target),
        ``block_size`` (K + 1 for DFlash and Domino, K for DSpark), ``proposed_k``, and the sizes of the
        kind's head.

    Raises
    ------
    ModelError
        A field is missing or cannot be.
    """
    fields = flattened(config, where)
    depth = {"target_depth": fields.count("num_target_layers")} if fields.has("num_target_layers") else {}
    return _READERS[kind](fields) | depth


def drafter_shape(config: Mapping[str, Any], where: str) -> tuple[str, dict[str, int]]:
    """Return kind and shape of a drafter's config of any supported kind.

    Parameters
    ----------
    config
        Its config.json; a one-layer model without marks is EAGLE-1.
    where
        The file, for messages.

    Raises
    ------
    ModelError
        If it is none of the supported drafters.
    """
    kind = kind_as_drafter(config)
    if kind is not None:
        return kind, shape_of(kind, config, where)
    mark, why = drafter_mark(config), why_unreadable(config)
    what = f"a drafter that is not supported ({mark})" if mark else "not a drafter's config"
    reason = f", because {why}" if why else ""
    raise ModelError(f"{where}: this is {what}{reason}; supported drafters: {', '.join(KINDS)}")


def k_words(kind: str, shape: Mapping[str, int]) -> str:
    """Say which K a drafter drafts, for people.

    Examples
    --------
    >>> k_words("dflash", {"block_size": 16}), k_words("eagle3", {"proposed_k": 3})
    ('K up to 15', 'any K, 3 proposed')
    """
    if kind in ("dflash", "domino", "dspark"):
        return f"K up to {shape['block_size'] - (0 if kind == 'dspark' else 1)}"
    if kind == "medusa":
        return f"K up to {shape['heads']} (count the heads in the weights: published configs say 2, weights hold 5)"
    proposed = shape.get("proposed_k")
    if kind == "peagle" and proposed:
        return f"K up to {proposed}"
    return f"any K, {proposed} proposed" if proposed else "any K"
