"""Ways of drafting, one file each; every one is a plan of passes (``base.Drafter``)."""

from __future__ import annotations

from collections.abc import Callable

from rooflinekit.drafters import (
    dflash,
    domino,
    dspark,
    eagle1,
    eagle3,
    layer_skip,
    medusa,
    mtp,
    ngram,
    peagle,
    suffix,
)
from rooflinekit.drafters.base import Drafter
from rooflinekit.llm import Llm
from rooflinekit.precision import Precision

__all__ = ["BUILDERS", "CARRIED", "SHAPE_BUILDERS", "WEIGHTLESS", "Drafter"]

BUILDERS: dict[str, Callable[[Llm, Precision], Drafter]] = {
    "eagle": eagle1.for_target,
    "eagle3": eagle3.for_target,
    "peagle": peagle.for_target,
    "dflash": dflash.for_target,
    "dspark": dspark.for_target,
    "domino": domino.for_target,
    "medusa": medusa.for_target,
}
"""Drafters that can take their shape from any target."""

CARRIED: dict[str, Callable[[Llm, Precision], Drafter]] = {"mtp": mtp.for_target}
"""Drafters that come with some targets; others are refused."""

WEIGHTLESS: dict[str, Callable[[Llm, Precision], Drafter]] = {
    "layer-skip": layer_skip.for_target,
    "ngram": ngram.for_target,
    "suffix": suffix.for_target,
}
"""Drafters without weights of their own, for any target; ``layer-skip`` keeps half of the layers here."""

SHAPE_BUILDERS: dict[str, Callable[..., Drafter]] = {
    "eagle": eagle1.from_shape,
    "eagle3": eagle3.from_shape,
    "peagle": peagle.from_shape,
    "dflash": dflash.from_shape,
    "dspark": dspark.from_shape,
    "domino": domino.from_shape,
    "medusa": medusa.from_shape,
    "mtp": mtp.from_shape,
}
"""Drafters that are built from the numbers of a config.json: ``(shape, target, precision, origin)``."""
