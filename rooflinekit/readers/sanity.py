"""Doubts about a config that can be read: a size or format unlike the model's own name, parts left out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rooflinekit.llm import Llm
from rooflinekit.precision import find_format

TOLERANCE = 0.15
"""How far a count may be from the size in a name."""

# "70B", "0.6b", "135M"; not "A3B" (active) nor "128E" (experts). "8x7B" names experts that share a trunk.
_SIZE = re.compile(r"(?<![A-Za-z0-9.])(?:(\d{1,4})x)?(\d{1,4}(?:\.\d{1,3})?)([BbMm])(?![A-Za-z0-9])")
_FORMAT = re.compile(
    r"(?<![A-Za-z0-9])(?:(?:NV|MX)?FP[48]|INT[48]|W[48]A(?:4|8|16)|AWQ|GPTQ)(?![A-Za-z0-9])", re.IGNORECASE
)
_SHARED_LOW = 0.6
_VISION = ("vision_config", "audio_config")


def sizes_in(name: str) -> tuple[tuple[float, float, float], ...]:
    """Sizes that a name states: lowest and highest count that fit, and the size itself.

    A size is rounded, so half a unit of its last digit fits as well as 15 %.

    >>> sizes_in("Qwen3-8B")
    ((6800000000.0, 9200000000.0, 8000000000.0),)
    """
    found = []
    for experts, number, letter in _SIZE.findall(name):
        unit = 1e9 if letter in "Bb" else 1e6
        value = float(number) * unit * (int(experts) if experts else 1)
        half = 0.5 * 10.0 ** -len(number.partition(".")[2]) * unit
        slack = max(TOLERANCE * value, half)
        found.append((_SHARED_LOW * value if experts else value - slack, value + slack, value))
    return tuple(found)


def warnings(config: Mapping[str, Any], llm: Llm, name: str) -> tuple[str, ...]:
    """Say what about a config is doubtful though it can be read.

    Parameters
    ----------
    config
        The object in the file.
    llm
        The model it gave.
    name
        Name of the model or its file.

    Returns
    -------
    tuple of str
        One sentence each.
    """
    said = []
    own = config.get("_name_or_path")
    for text in (name, own if isinstance(own, str) else ""):
        sizes = sizes_in(text.rstrip("/").rpartition("/")[2].removesuffix(".json"))
        counts = (llm.total_params, llm.active_params, llm.total_params + llm.mtp_params)
        if sizes and not any(low <= one <= high for low, high, _ in sizes for one in counts):
            said.append(
                f"the config counts {llm.total_params / 1e9:.3g} B parameters, but the name {text!r:.60} says"
                f" {sizes[0][2] / 1e9:.3g} B: the file may be cut short or belong to another model"
            )
            break
    stated = _FORMAT.search(name.rstrip("/").rpartition("/")[2])
    if stated is not None and all(find_format(one).bits >= 16 for one in (llm.dtype, *llm.formats.values())):
        said.append(
            f"the name {name!r:.60} says {stated[0]}, but the config has no quantization: the weights count as"
            f" {llm.dtype}; a quantization_config or hf_quant_config.json may be missing, or name the format"
            " with --dtype"
        )
    if any(isinstance(config.get(key), Mapping) for key in _VISION):
        said.append("the language model only: the encoders for images or sound are not counted")
    return tuple(said)
