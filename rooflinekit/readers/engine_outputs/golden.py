"""InferenceX's golden curves: acceptance length by K, a YAML file for each model and method."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rooflinekit.acceptance import from_lengths
from rooflinekit.errors import AcceptanceError
from rooflinekit.readers.engine_outputs.counts import noted, short_names
from rooflinekit.readers.engine_outputs.fields import bounded_k, chosen, real
from rooflinekit.readers.engine_outputs.files import Opened
from rooflinekit.readers.engine_outputs.output import Asked, EngineOutput, Reader

DEFINITION = (
    "A = 1 + accepted / drafts from vLLM's counters (bonus token included) by num_speculative_tokens; differences of "
    "neighbouring K give the survival of a serial drafter"
)
_KEYS = ("dataset", "Measured on", "speculative-config")


def recognises(first: Any) -> bool:
    """Whether a document is ``{model: {mode: {K: A}}}``."""
    return bool(_curves(first))


def _curves(first: Any) -> dict[str, Mapping[Any, Any]]:
    """Curves by ``model/mode``."""
    if not isinstance(first, Mapping) or not first:
        return {}
    found = {}
    for model, modes in first.items():
        if not isinstance(modes, Mapping):
            return {}
        for mode, lengths in modes.items():
            if not isinstance(lengths, Mapping) or not lengths or not all(type(k) is int for k in lengths):
                return {}
            found[f"{model}/{mode}"] = lengths
    return found


def read(files: tuple[Opened, ...], asked: Asked) -> EngineOutput:
    """Read the one curve of a file, or the one that is named (``FILE#thinking_on``).

    Raises
    ------
    AcceptanceError
        Several curves and none named, or lengths that cannot be.
    """
    where = str(files[0].path)
    if len(files) > 1:
        raise AcceptanceError(f"{where}: give one golden curve at a time")
    curves = _curves(files[0].first)
    short = {name.partition("/")[2]: name for name in curves}
    names = short if len(short) == len(curves) else {name: name for name in curves}
    name = names[
        chosen(names, asked.part.rpartition("/")[2] if names is short else asked.part, where, "curve")
    ]
    lengths = {
        bounded_k(k, f"{where}, {name}"): real({"A": value}, "A", f"{where}, {name}, K = {k}") or 0.0
        for k, value in curves[name].items()
    }
    try:
        made = from_lengths(lengths)
    except AcceptanceError as error:
        raise AcceptanceError(f"{where}, {name}: {error}") from error
    k = max(lengths)
    label = f"golden curve of {name}, {short_names(where)}: A {lengths[k]:g} at K {k}"
    return EngineOutput(
        engine="InferenceX",
        what="golden acceptance lengths; " + "; ".join(_header(files[0])),
        where=where,
        definition=DEFINITION,
        acceptance=noted(made, label, ()),
        k=k,
        acceptance_length=lengths[k],
        model=name.partition("/")[0],
        notes=(),
    )


def _header(file: Opened) -> list[str]:
    """Lines of the header that say what was measured: the verification rule is part of it."""
    lines = file.lines(*(key.encode() for key in _KEYS))
    return [line.lstrip("# ").strip() for line in lines if line.startswith("#")]


READER = Reader(
    name="inferencex-golden",
    reads="InferenceX golden_al_distribution (YAML), a curve of several by FILE#thinking_on",
    read=read,
    recognises=recognises,
)
