"""Who said a number: every profile number is a :class:`Cited` value, and results carry the weakest kind."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Kind = Literal["assumed", "datasheet", "fitted", "measured"]
"""From weakest to strongest: assumed < datasheet < fitted < measured."""

Confidence = Literal["low"]
"""A mark for numbers to doubt: sources disagree, or the number is derived from weak ones."""

STRENGTH: dict[str, int] = {"assumed": 0, "datasheet": 1, "fitted": 2, "measured": 3}


@dataclass(frozen=True, slots=True)
class Cited:
    """A number with its origin.

    Attributes
    ----------
    value
        The number, SI units (the field that holds it says which).
    kind
        How it is known.
    ref
        Where it comes from: document and page, measurement id, or the reason for an assumption.
    confidence
        ``low`` for a number to doubt; None, the default, for any other.
    """

    value: float
    kind: Kind
    ref: str
    confidence: Confidence | None = None


def weakest(kinds: Iterable[Kind]) -> Kind:
    """Return the weakest kind of evidence; ``measured`` when there is none.

    >>> weakest(["measured", "datasheet", "fitted"])
    'datasheet'
    """
    return min(kinds, key=STRENGTH.__getitem__, default="measured")
