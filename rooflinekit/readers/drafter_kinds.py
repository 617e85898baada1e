"""Which drafter a ``config.json`` describes.

A drafter's config often names the architecture of the target (``model_type: qwen3``); what tells it apart
is the class in ``architectures``, ``draft_vocab_size``, ``dflash_config``, ``speculators_model_type`` or
``medusa_num_heads``. A one-layer model without any of these is EAGLE-1 only where it is given as a drafter.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

KINDS: tuple[str, ...] = ("eagle", "eagle3", "peagle", "dflash", "dspark", "domino", "medusa", "mtp")
_MARKS: tuple[str, ...] = ("draft_vocab_size", "dflash_config", "speculators_model_type", "medusa_num_heads")
_CLASSES: tuple[str, ...] = ("DraftModel", "DSparkModel", "Speculator")

UNREADABLE: dict[str, str] = {
    "dflare": "it weighs the target's states layer by layer without a fusion matrix and has key and value "
    "projections of its own for them",
    "dflash2": "its layers are not described by a config this reader knows",
    "xpress": "its layers are not described by a config this reader knows",
}
"""Drafters known by name whose cost cannot be read from their config, and why."""


def _architectures(config: Mapping[str, Any]) -> list[str]:
    names = config.get("architectures")
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []


def _block_kind(config: Mapping[str, Any], names: list[str]) -> str | None:
    nested = config.get("dflash_config")
    projector = nested.get("projector_type") if isinstance(nested, Mapping) else None
    if projector == "dspark" or any(name.endswith(("DSparkDraftModel", "DSparkModel")) for name in names):
        return "dspark"
    if projector == "domino" or any(name.endswith("DominoDraftModel") for name in names):
        return "domino"
    flash = any(name.endswith("DFlashDraftModel") for name in names)
    return "dflash" if flash and projector in (None, "dflash") else None


def _serial_kind(config: Mapping[str, Any], names: list[str]) -> str | None:
    if any(name.endswith("PEagleDraftModel") for name in names):
        return "peagle"
    if any("eagle3" in name.lower() for name in names):
        return "eagle3"
    if any(name.endswith(_CLASSES) for name in names):
        return None
    if any("eagle" in name.lower() for name in names):
        return "eagle"
    return "eagle3" if _one_layer(config) and config.get("draft_vocab_size") is not None else None


def drafter_kind(config: Mapping[str, Any]) -> str | None:
    """Return which drafter a config describes by its own words.

    Parameters
    ----------
    config
        A config.json.

    Returns
    -------
    str or None
        One of :data:`KINDS`, or ``None`` for anything else.

    Examples
    --------
    >>> drafter_kind({"architectures": ["DFlashDraftModel"]})
    'dflash'
    >>> drafter_kind({"architectures": ["LlamaForCausalLM"], "num_hidden_layers": 32}) is None
    True
    """
    declared = config.get("speculators_model_type")
    if declared is not None:
        return declared if declared in KINDS else None
    if config.get("medusa_num_heads") is not None or config.get("model_type") == "medusa":
        return "medusa"
    names = _architectures(config)
    return _block_kind(config, names) or _serial_kind(config, names)


def _one_layer(config: Mapping[str, Any]) -> bool:
    layers = config.get("num_hidden_layers")
    return layers == 1 and not isinstance(layers, bool)


def kind_as_drafter(config: Mapping[str, Any]) -> str | None:
    """Return which drafter a config describes where the user says that it is one.

    Examples
    --------
    >>> kind_as_drafter({"architectures": ["LlamaForCausalLM"], "num_hidden_layers": 1})
    'eagle'
    """
    found = drafter_kind(config)
    if found is None and drafter_mark(config) is None and _one_layer(config):
        return "eagle"
    return found


def drafter_mark(config: Mapping[str, Any]) -> str | None:
    """Return what shows that a config is a drafter's, of a supported kind or not; else ``None``."""
    for name in _architectures(config):
        if name.endswith(_CLASSES) or "eagle" in name.lower() or "medusa" in name.lower():
            return f"architecture {name}"
    found = [key for key in _MARKS if config.get(key) is not None]
    return f"field {found[0]}" if found else None


def why_unreadable(config: Mapping[str, Any]) -> str | None:
    """Return why a known drafter's cost cannot be read from its config; ``None`` where it is not known."""
    words = [*_architectures(config), str(config.get("speculators_model_type"))]
    return next(
        (why for name, why in UNREADABLE.items() if any(name in word.lower() for word in words)), None
    )
