"""Ways of drafting, one file each; every one is a plan of passes (``base.Drafter``)."""

from __future__ import annotations

from collections.abc import Callable

from rooflinekit.drafters import dflash, dspark, eagle3
from rooflinekit.drafters.base import Drafter
from rooflinekit.llm import Llm
from rooflinekit.precision import Precision

__all__ = ["BUILDERS", "SHAPE_BUILDERS", "Drafter"]

BUILDERS: dict[str, Callable[[Llm, Precision], Drafter]] = {
    "eagle3": eagle3.for_target,
    "dflash": dflash.for_target,
    "dspark": dspark.for_target,
}
"""Drafters that can take their shape from the target alone."""

SHAPE_BUILDERS: dict[str, Callable[..., Drafter]] = {
    "eagle3": eagle3.from_shape,
    "dflash": dflash.from_shape,
    "dspark": dspark.from_shape,
}
"""Drafters that are built from the numbers of a config.json: ``(shape, target, precision, origin)``."""
