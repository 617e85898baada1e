"""All model families by ``model_type``, joined from the family modules, and the choice among them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

from rooflinekit.readers.families_classic import CLASSIC_FAMILIES
from rooflinekit.readers.families_experts import EXPERT_FAMILIES
from rooflinekit.readers.families_hybrid import HYBRID_FAMILIES
from rooflinekit.readers.families_window import WINDOW_FAMILIES
from rooflinekit.readers.family import COMMON, Family
from rooflinekit.readers.hf_families import BASIC_FAMILIES
from rooflinekit.readers.hf_fields import Fields, shown

FAMILIES: dict[str, Family] = {
    **BASIC_FAMILIES,
    **CLASSIC_FAMILIES,
    **WINDOW_FAMILIES,
    **EXPERT_FAMILIES,
    **HYBRID_FAMILIES,
}
"""Families by ``model_type``; a nested model has a row for its inner and one for its outer type."""

_NO_SHAPE = ("token_id", "token_index", "_position_embeddings", "eos", "bos", "pad", "version", "dropout")
_MOST_NAMED = 12


def find_family(outer: Fields, fields: Fields) -> Family:
    """Choose the family by ``model_type``, by the class where that is absent; both must agree.

    Parameters
    ----------
    outer
        The whole config.
    fields
        The language model's part: the same where nothing is nested.
    """
    model_type, classes = fields.text("model_type"), fields.texts("architectures")
    if model_type is None and not classes:
        fields.fail(
            "neither model_type nor architectures in it, so it is no model's config; give a config.json"
        )
    lower = {name.lower() for name in classes}
    if model_type is not None:
        found = FAMILIES.get(model_type)
    else:
        by_class = (one for one in FAMILIES.values() if lower & _lower(one.architectures))
        found = next(by_class, None)
    nested = fields is not outer
    if found is not None and (nested or not classes or lower & _lower(found.architectures)):
        return found
    if found is not None and model_type is not None:
        fields.fail(
            f"model_type {model_type} expects class {' or '.join(found.architectures)}, but architectures says"
            f" {shown(', '.join(classes))}; give the config of the language model, or correct the wrong one"
        )
    return refuse_architecture(fields, model_type, classes)


def _lower(names: tuple[str, ...]) -> set[str]:
    return {name.lower() for name in names}


def refuse_architecture(fields: Fields, model_type: str | None, classes: tuple[str, ...]) -> NoReturn:
    """Refuse an unknown family: what it is, which of its fields have no known meaning, which are supported."""
    given = [] if model_type is None else [f"model_type {shown(model_type)}"]
    given += [f"class {shown(', '.join(classes))}"] if classes else []
    missing = [key for key in COMMON if not fields.has(key)]
    unknown = _unresolved(fields.config)
    what = f"; not found: {', '.join(missing)}" if missing else ""
    what += f"; fields whose meaning would have to be known: {', '.join(unknown)}" if unknown else ""
    fields.fail(
        f"architecture not supported ({', '.join(given)}){what}; give a model of a supported model_type with"
        f" its ForCausalLM class: {', '.join(FAMILIES)}"
    )


def _unresolved(config: Mapping[str, object]) -> list[str]:
    """Fields that may set the shape: numbers, flags and lists, beyond those every family has."""
    found = [
        key
        for key, value in config.items()
        if isinstance(value, int | list | dict)
        and key not in (*COMMON, "architectures", "quantization_config", "use_cache", "tie_word_embeddings")
        and not any(part in key for part in _NO_SHAPE)
    ]
    extra = len(found) - _MOST_NAMED
    return [*sorted(found)[:_MOST_NAMED], f"{extra} more"] if extra > 0 else sorted(found)
