"""Hugging Face ``config.json`` to :class:`~rooflinekit.llm.Llm`; the families are in ``hf_families``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any, NoReturn

from rooflinekit.errors import ModelError
from rooflinekit.llm import Block, Llm
from rooflinekit.readers.config_file import CONFIG, config_path, modelopt_algorithm, read_config
from rooflinekit.readers.drafter_config import KINDS, drafter_kind, drafter_mark
from rooflinekit.readers.hf_families import FAMILIES, Family
from rooflinekit.readers.hf_fields import Fields, shown

__all__ = ["FAMILIES", "llm_from_config", "load_llm", "read_config"]

_DTYPES = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32", "half": "fp16", "float": "fp32"}


def _refuse_drafter(fields: Fields) -> None:
    mark = drafter_mark(fields.config)
    if mark is None:
        return
    kind = drafter_kind(fields.config)
    what = f"a drafter ({kind}, by its {mark})" if kind else f"a drafter (by its {mark})"
    end = "" if kind else f" (supported: {', '.join(KINDS)})"
    fields.fail(
        f"this is the config of {what}, not of a target model;"
        f" give it to --drafter{end} and the target to --model"
    )


def _family(fields: Fields) -> Family:
    """Choose the family by ``model_type``, by the class where that is absent; both must agree."""
    model_type, classes = fields.text("model_type"), fields.texts("architectures")
    if model_type is None and not classes:
        fields.fail(
            "neither model_type nor architectures in it, so it is no model's config; give a config.json"
        )
    lower = {name.lower() for name in classes}
    if model_type is None:
        found = [family for family in FAMILIES.values() if family.architecture.lower() in lower]
    else:
        found = [FAMILIES[model_type]] if model_type in FAMILIES else []
    if found and (not classes or found[0].architecture.lower() in lower):
        return found[0]
    return _refuse_architecture(fields, model_type, classes)


def _refuse_architecture(fields: Fields, model_type: str | None, classes: tuple[str, ...]) -> NoReturn:
    given = [] if model_type is None else [f"model_type {shown(model_type)}"]
    given += [f"class {shown(', '.join(classes))}"] if classes else []
    fields.fail(
        f"architecture not supported ({', '.join(given)}); give a model of a supported model_type with its"
        f" ForCausalLM class: {', '.join(FAMILIES)}"
    )


def _dtype(fields: Fields) -> str:
    """Return the stored format: of the quantization, else of ``torch_dtype`` or ``dtype``, else bf16."""
    quantization = fields.section("quantization_config")
    if quantization is not None:
        method, algorithm = quantization.text("quant_method"), quantization.text("quant_algo")
        if method == "fp8" or (method == "modelopt" and algorithm == "FP8"):
            return "fp8"
        detail = f" with quant_algo {shown(algorithm)}" if algorithm else ""
        fields.fail(
            f"quantization_config has quant_method {shown(method)}{detail}, but only fp8 can be read from a"
            " config; give the unquantized model and name the format with --dtype"
        )
    key = "torch_dtype" if fields.has("torch_dtype") else "dtype"
    name = fields.text(key)
    if name is None:
        return "bf16"
    if name.removeprefix("torch.") not in _DTYPES:
        fields.bad(key, "one of bfloat16, float16, float32")
    return _DTYPES[name.removeprefix("torch.")]


def _merge(layers: Iterable[Block]) -> tuple[Block, ...]:
    groups = [list(group) for _, group in groupby(layers)]
    return tuple(replace(group[0], count=len(group)) for group in groups)


def llm_from_config(config: Mapping[str, Any], name: str, where: str | None = None) -> Llm:
    """Build a model from the fields of its ``config.json``.

    Parameters
    ----------
    config
        The object in the file.
    name
        Name of the model.
    where
        The file, for messages; the name by default.

    Returns
    -------
    Llm
        The language model: no MTP module, no vision tower.

    Raises
    ------
    ModelError
        If the family is not supported, or a field is missing or cannot be.
    """
    where = where or name
    if not isinstance(config, Mapping):
        raise ModelError(f"{where} is {shown(config)}, not an object; give the content of a config.json")
    fields = Fields(config, where)
    _refuse_drafter(fields)
    family = _family(fields)
    fields.require(family.required, family.nullable)
    return Llm(
        name=name,
        hidden=fields.count("hidden_size"),
        vocab=fields.count("vocab_size"),
        blocks=_merge(family.build(fields)),
        tied=fields.flag("tie_word_embeddings"),
        dtype=_dtype(fields),
        max_context=fields.count_or("max_position_embeddings", 0),
    )


def load_llm(path: Path) -> Llm:
    """Read a model from a ``config.json`` or the folder that holds it.

    Parameters
    ----------
    path
        The file or folder. A ``hf_quant_config.json`` beside it gives the number format.

    Returns
    -------
    Llm
        The model, named after the folder (``config.json``) or the file.

    Raises
    ------
    ModelError
        If it cannot be read or built.
    """
    file = config_path(Path(path))
    config = read_config(file)
    algorithm = modelopt_algorithm(file)
    if algorithm is not None and config.get("quantization_config") is None:
        config["quantization_config"] = {"quant_method": "modelopt", "quant_algo": algorithm}
    name = file.resolve().parent.name if file.name == CONFIG else file.stem
    return llm_from_config(config, name or file.stem, str(file))
