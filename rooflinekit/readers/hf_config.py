"""Hugging Face ``config.json`` to :class:`~rooflinekit.llm.Llm`; the families are in ``registry``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

from rooflinekit.errors import ModelError
from rooflinekit.llm import Block, Llm
from rooflinekit.readers.config_file import CONFIG, config_path, modelopt_algorithm, read_config
from rooflinekit.readers.drafter_config import KINDS, drafter_kind, drafter_mark
from rooflinekit.readers.family import Family, Shape
from rooflinekit.readers.hf_fields import Fields, language_part, shown
from rooflinekit.readers.quantization import stored_formats
from rooflinekit.readers.registry import FAMILIES, find_family

__all__ = ["FAMILIES", "llm_from_config", "load_llm", "read_config"]


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


def _merge(layers: Iterable[Block]) -> tuple[Block, ...]:
    # Builders may give a block for several layers already.
    groups = [list(group) for _, group in groupby(layers, key=lambda layer: replace(layer, count=1))]
    return tuple(replace(group[0], count=sum(layer.count for layer in group)) for group in groups)


def _tied(fields: Fields, family: Family, shape: Shape) -> bool:
    said = fields.flag("tie_word_embeddings", default=family.tied)
    return said if shape.tied is None else shape.tied


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
        The language model, its MTP modules beside it; no vision tower.

    Raises
    ------
    ModelError
        If the family is not supported, or a field is missing or cannot be.
    """
    where = where or name
    if not isinstance(config, Mapping):
        raise ModelError(f"{where} is {shown(config)}, not an object; give the content of a config.json")
    outer = Fields(config, where)
    _refuse_drafter(outer)
    fields = language_part(outer)
    family = find_family(outer, fields)
    fields = fields.renamed(family.aliases).filled(family.defaults)
    fields.require(family.required, family.nullable)
    built = family.build(fields)
    shape = built if isinstance(built, Shape) else Shape(blocks=built)
    stored = stored_formats(fields)
    mtp = shape.mtp
    return Llm(
        name=name,
        hidden=fields.count("hidden_size"),
        vocab=fields.count("vocab_size"),
        blocks=_merge(shape.blocks),
        tied=_tied(fields, family, shape),
        dtype=stored.main,
        formats={**shape.formats, **stored.classes},
        kv_dtype=stored.kv,
        max_context=fields.count_or("max_position_embeddings", 0),
        encoder=_merge(shape.encoder),
        head_bias=shape.head_bias,
        extra=shape.extra,
        final_norm_bias=shape.final_norm_bias,
        mtp=replace(mtp, format=mtp.format or stored.mtp) if mtp is not None else None,
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
