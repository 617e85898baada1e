"""Hugging Face ``config.json`` to :class:`~rooflinekit.llm.Llm`; the families are in ``registry``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

from rooflinekit.errors import ModelError
from rooflinekit.llm import Attention, Block, Llm, Mla, Moe
from rooflinekit.readers.config_file import CONFIG, config_path, modelopt_section, read_config
from rooflinekit.readers.drafter_config import KINDS, drafter_kind, drafter_mark
from rooflinekit.readers.family import Family, Shape
from rooflinekit.readers.hf_fields import Fields, language_part, shown
from rooflinekit.readers.quant_modules import OUTPUT, Layout
from rooflinekit.readers.quantization import Stored, agreed_formats, stored_formats
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


def _stored_apart(block: Block, stored: Stored) -> Block:
    """Mark the output projection where it has a format of its own."""
    mixer = block.mixer
    if OUTPUT in stored.classes and isinstance(mixer, Attention | Mla):
        return replace(block, mixer=replace(mixer, output_class=OUTPUT))
    return block


def _layout(blocks: Iterable[Block], hidden: int) -> Layout:
    """Which layers have which tensor classes; output projections only where they can be stored apart."""
    having: dict[str, set[int]] = {}
    layers = 0
    for block in blocks:
        classes = {linear.tensor_class for linear in block.linears(hidden)}
        classes |= {"experts"} if isinstance(block.ffn, Moe) else set()
        classes |= {OUTPUT} if isinstance(block.mixer, Attention | Mla) else set()
        for one in classes:
            having.setdefault(one, set()).update(range(layers, layers + block.count))
        layers += block.count
    return Layout(layers, {one: frozenset(found) for one, found in having.items()})


def _tied(fields: Fields, family: Family, shape: Shape) -> bool:
    said = fields.flag("tie_word_embeddings", default=family.tied)
    return said if shape.tied is None else shape.tied


def _assembled(fields: Fields, family: Family, name: str, beside: Mapping[str, Any] | None) -> Llm:
    """Build the layers, read the formats, and put both together."""
    built = family.build(fields)
    shape = built if isinstance(built, Shape) else Shape(blocks=built)
    mtp, hidden = shape.mtp, fields.count("hidden_size")
    layout = _layout(shape.blocks, hidden)
    stored = stored_formats(fields, layout) if beside is None else agreed_formats(fields, layout, beside)
    blocks = tuple(_stored_apart(block, stored) for block in _merge(shape.blocks))
    held = {"head", "embedding", "vectors", *layout.having}
    return Llm(
        name=name,
        hidden=hidden,
        vocab=fields.count("vocab_size"),
        blocks=blocks,
        tied=_tied(fields, family, shape),
        dtype=stored.main,
        formats={key: one for key, one in {**shape.formats, **stored.classes}.items() if key in held},
        kv_dtype=stored.kv,
        max_context=fields.count_or("max_position_embeddings", 0),
        encoder=_merge(shape.encoder),
        extra=shape.extra,
        final_norm_bias=shape.final_norm_bias,
        mtp=replace(mtp, format=mtp.format or stored.mtp) if mtp is not None else None,
    )


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
    return _built(config, name, where or name)


def _built(config: Mapping[str, Any], name: str, where: str, beside: Mapping[str, Any] | None = None) -> Llm:
    if not isinstance(config, Mapping):
        raise ModelError(f"{where} is {shown(config)}, not an object; give the content of a config.json")
    outer = Fields(config, where)
    _refuse_drafter(outer)
    fields = language_part(outer)
    family = find_family(outer, fields)
    fields = fields.renamed(family.aliases).filled(family.defaults)
    fields.require(family.required, family.nullable)
    return _assembled(fields, family, name, beside)


def load_llm(path: Path) -> Llm:
    """Read a model from a ``config.json`` or the folder that holds it.

    Parameters
    ----------
    path
        The file or folder. A ``hf_quant_config.json`` beside it gives the number format; a config that
        gives one too must agree.

    Returns
    -------
    Llm
        The model, named after the folder (``config.json``) or the file.

    Raises
    ------
    ModelError
        If it cannot be read or built, or the two files disagree.
    """
    file = config_path(Path(path))
    config = read_config(file)
    name = file.resolve().parent.name if file.name == CONFIG else file.stem
    return _built(config, name or file.stem, str(file), modelopt_section(file))
