"""Drafter configs: which kind a ``config.json`` describes, and the shape that sets its cost.

A drafter's config often names the architecture of the target (``model_type: qwen3``); what tells it
apart is the class in ``architectures``, ``draft_vocab_size`` or ``dflash_config``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rooflinekit.errors import ModelError
from rooflinekit.readers.hf_fields import Fields, head_shape

KINDS: tuple[str, ...] = ("eagle3", "dflash", "dspark")
_MARKS: tuple[str, ...] = ("draft_vocab_size", "dflash_config", "speculators_model_type", "medusa_num_heads")


def _architectures(config: Mapping[str, Any]) -> list[str]:
    names = config.get("architectures")
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []


def drafter_kind(config: Mapping[str, Any]) -> str | None:
    """Return which drafter a config describes.

    Parameters
    ----------
    config
        A config.json.

    Returns
    -------
    str or None
        ``"eagle3"``, ``"dflash"``, ``"dspark"``, or ``None`` for anything else.

    Examples
    --------
    >>> drafter_kind({"architectures": ["DFlashDraftModel"]})
    'dflash'
    >>> drafter_kind({"architectures": ["LlamaForCausalLM"], "num_hidden_layers": 32}) is None
    True
    """
    names = _architectures(config)
    nested = config.get("dflash_config")
    projector = nested.get("projector_type") if isinstance(nested, Mapping) else None
    if projector == "dspark" or any(name.endswith(("DSparkDraftModel", "DSparkModel")) for name in names):
        return "dspark"
    if projector in (None, "dflash") and any(name.endswith("DFlashDraftModel") for name in names):
        return "dflash"
    if "LlamaForCausalLMEagle3" in names:
        return "eagle3"
    other = any(name.endswith("DraftModel") for name in names)
    layers = config.get("num_hidden_layers")
    one_layer = layers == 1 and not isinstance(layers, bool)
    return "eagle3" if one_layer and config.get("draft_vocab_size") is not None and not other else None


def drafter_mark(config: Mapping[str, Any]) -> str | None:
    """Return what shows that a config is a drafter's, of a supported kind or not; else ``None``."""
    for name in _architectures(config):
        if (
            name.endswith(("DraftModel", "DSparkModel"))
            or "eagle" in name.lower()
            or "medusa" in name.lower()
        ):
            return f"architecture {name}"
    found = [key for key in _MARKS if config.get(key) is not None]
    return f"field {found[0]}" if found else None


def _open(config: Mapping[str, Any], kind: str, where: str) -> Fields:
    fields = Fields(config, where)
    found = drafter_kind(config)
    if found != kind:
        mark = drafter_mark(config)
        other = found or (f"another drafter ({mark})" if mark else "a model that is no drafter")
        fields.fail(f"this is the config of {other}, not of {kind}; supported drafters: {', '.join(KINDS)}")
    if fields.has("kv_lora_rank"):
        fields.fail(
            "a drafter with latent attention (kv_lora_rank) is not supported yet;"
            f" give `--drafter {kind}` to take the shape from the target"
        )
    return fields


def _common(fields: Fields) -> dict[str, int]:
    heads, kv_heads, head_dim = head_shape(fields)
    return {
        "hidden": fields.count("hidden_size"),
        "intermediate": fields.count("intermediate_size"),
        "heads": heads,
        "kv_heads": kv_heads,
        "head_dim": head_dim,
        "layers": fields.count("num_hidden_layers"),
    }


_REQUIRED = ("hidden_size", "intermediate_size", "num_attention_heads", "num_hidden_layers", "vocab_size")


def eagle3_shape(config: Mapping[str, Any], where: str = "EAGLE-3 config") -> dict[str, int]:
    """Return the shape of an EAGLE-3 drafter.

    Parameters
    ----------
    config
        Its config.json.
    where
        The file, for messages.

    Returns
    -------
    dict
        ``hidden``, ``intermediate``, ``heads``, ``kv_heads``, ``head_dim``, ``layers``, ``draft_vocab`` (the
        whole vocabulary where no ``draft_vocab_size`` is given) and ``target_hidden``.

    Raises
    ------
    ModelError
        If it is not such a config or a field cannot be.
    """
    fields = _open(config, "eagle3", where)
    fields.require(_REQUIRED)
    shape = _common(fields)
    vocab = fields.count("vocab_size")
    draft_vocab = fields.count_or("draft_vocab_size", vocab)
    if draft_vocab > vocab:
        fields.bad("draft_vocab_size", f"at most vocab_size {vocab}")
    return shape | {
        "draft_vocab": draft_vocab,
        "target_hidden": fields.count_or("target_hidden_size", shape["hidden"]),
    }


def _either(fields: Fields, nested: Fields, key: str, low: int) -> int:
    """Read a field that writers put at the top or inside ``dflash_config``."""
    values = {part.count(key, low) for part in (fields, nested) if part.has(key)}
    if not values:
        fields.require((key,))
    if len(values) > 1:
        fields.bad(key, f"the same as in dflash_config ({nested.count(key, low)})")
    return values.pop()


def _block_shape(fields: Fields, nested: Fields, smallest_block: int) -> dict[str, int]:
    shape = _common(fields)
    if fields.count_or("target_hidden_size", shape["hidden"]) != shape["hidden"]:
        fields.bad(
            "target_hidden_size", f"hidden_size {shape['hidden']} (other widths are not supported yet)"
        )
    target_layers = fields.count("num_target_layers") if fields.has("num_target_layers") else None
    taps = nested.indices("target_layer_ids", target_layers)
    if not taps or len(set(taps)) < len(taps):
        nested.bad("target_layer_ids", "a list of different layers, one at least")
    return shape | {
        "block_size": _either(fields, nested, "block_size", smallest_block),
        "target_layers": len(taps),
        "vocab": fields.count("vocab_size"),
    }


def _sections(config: Mapping[str, Any], kind: str, where: str) -> tuple[Fields, Fields]:
    fields = _open(config, kind, where)
    nested = fields.section("dflash_config") or Fields({}, where)
    missing = [key for key in _REQUIRED if not fields.has(key)]
    missing += [key for key in ("block_size",) if not fields.has(key) and not nested.has(key)]
    missing += [] if nested.has("target_layer_ids") else ["dflash_config.target_layer_ids"]
    if kind == "dspark" and not fields.has("markov_rank") and not nested.has("markov_rank"):
        missing.append("dflash_config.markov_rank")
    fields.require(missing)
    return fields, nested


def dflash_shape(config: Mapping[str, Any], where: str = "DFlash config") -> dict[str, int]:
    """Return the shape of a DFlash drafter.

    Parameters
    ----------
    config
        Its config.json.
    where
        The file, for messages.

    Returns
    -------
    dict
        ``hidden``, ``intermediate``, ``heads``, ``kv_heads``, ``head_dim``, ``layers``, ``block_size``
        (K + 1: position 0 is the known token), ``target_layers`` (hidden states read) and ``vocab``.

    Raises
    ------
    ModelError
        If it is not such a config or a field cannot be.
    """
    fields, nested = _sections(config, "dflash", where)
    return _block_shape(fields, nested, smallest_block=2)


def dspark_shape(config: Mapping[str, Any], where: str = "DSpark config") -> dict[str, int]:
    """Return the shape of a DSpark drafter.

    Parameters
    ----------
    config
        Its config.json.
    where
        The file, for messages.

    Returns
    -------
    dict
        The keys of :func:`dflash_shape` (here ``block_size`` is K) and ``markov_rank``.

    Raises
    ------
    ModelError
        If it is not such a config or a field cannot be.
    """
    fields, nested = _sections(config, "dspark", where)
    rank = _either(fields, nested, "markov_rank", 1)
    return _block_shape(fields, nested, smallest_block=1) | {"markov_rank": rank}


def drafter_shape(config: Mapping[str, Any], where: str) -> tuple[str, dict[str, int]]:
    """Return kind and shape of a drafter's config of any supported kind.

    Parameters
    ----------
    config
        Its config.json.
    where
        The file, for messages.

    Returns
    -------
    tuple
        Kind and shape.

    Raises
    ------
    ModelError
        If it is none of the supported drafters.
    """
    kind = drafter_kind(config)
    if kind == "eagle3":
        return kind, eagle3_shape(config, where)
    if kind == "dflash":
        return kind, dflash_shape(config, where)
    if kind == "dspark":
        return kind, dspark_shape(config, where)
    mark = drafter_mark(config)
    what = f"a drafter that is not supported ({mark})" if mark else "not a drafter's config"
    raise ModelError(f"{where}: this is {what}; supported drafters: {', '.join(KINDS)}")
