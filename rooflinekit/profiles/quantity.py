"""Numbers in a file: a unit, bounds beyond which the unit must be wrong, and who said it.

::

    BANDWIDTH = Quantity("B/s", 1e9, 1e15, "3.35 TB/s")
    cited(fields["bandwidth"], BANDWIDTH)   # {value: 3.35 TB/s, kind: datasheet, ref: "..."} -> Cited
    BANDWIDTH.read(fields["probe"])         # 3.35 TB/s -> float, without an origin

The same :class:`Quantity` makes the JSON Schema of the field (:func:`cited_schema`).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, cast

from rooflinekit import units
from rooflinekit.errors import UnitError
from rooflinekit.evidence import STRENGTH, Cited, Confidence, Kind
from rooflinekit.profiles.node import TODO, Node, short

KINDS: tuple[str, ...] = tuple(STRENGTH)
MAX_LENGTH = 80


class Quantity(NamedTuple):
    """What a number of a field may be.

    Attributes
    ----------
    unit
        Key of :data:`rooflinekit.units.EXAMPLES`; empty for a plain number.
    low, high
        Bounds (SI), both allowed; a value outside is a slip of unit or prefix.
    example
        How it is written.
    whole
        Only whole numbers.
    """

    unit: str
    low: float
    high: float
    example: str
    whole: bool = False

    def read(self, node: Node) -> float:
        """Read a number (SI); a faulty one is reported and comes back as nan."""
        if not isinstance(node.content, str):
            node.scalar()  # reports what it is instead
            return math.nan
        fault, value = self.parsed(node.content)
        if node.content == TODO:
            fault = f"is still to be filled in; write it like '{self.example}'"
        if fault:
            node.problem(fault)
            return math.nan
        return value

    def bounds(self) -> str:
        """Write the bounds for people.

        >>> Quantity("B/s", 1e9, 1e15, "3.35 TB/s").bounds()
        '1 GB/s to 1 PB/s'
        """
        return f"{units.render(self.low, self.unit)} to {units.render(self.high, self.unit)}"

    def parsed(self, written: str) -> tuple[str, float]:
        """Return what is wrong with a written number (empty: nothing) and its value (SI)."""
        if not written:
            return f"is empty; write it like '{self.example}'", math.nan
        if len(written) > MAX_LENGTH:
            return f"{short(written)} is too long for a number; write it like '{self.example}'", math.nan
        try:
            value = units.parse(written, self.unit)
        except UnitError as error:
            # units.parse ends with an example of the unit; the one of this field says more.
            return f"{str(error).partition(';')[0]}; write it like '{self.example}'", math.nan
        if not self.low <= value <= self.high:
            return f"{written!r} is not within {self.bounds()}; check number and unit", math.nan
        if self.whole and value != int(value):
            return f"{written!r} is not a whole number; write it like '{self.example}'", math.nan
        return "", value

    def pattern(self) -> str:
        """Regular expression of the written form, for the JSON Schema.

        >>> import re
        >>> bool(re.match(Quantity("B", 1.0, 1e15, "80 GB").pattern(), "80 GiB"))
        True
        """
        small = self.unit == "s"
        prefixes = [p for p in (units.SMALL_EXPONENT if small else units.PREFIX_EXPONENT) if p]
        if self.unit in ("B", "B/s"):
            prefixes += units.BINARY_EXPONENT
        unit = f"({'|'.join(prefixes)})?{self.unit}" if self.unit else ""
        if self.unit == "FLOP/s":
            unit = f"({unit}|TOPS)"
        return rf"^\s*\+?([0-9][0-9_]*\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*{unit}\s*$"


def cited(node: Node, quantity: Quantity) -> Cited:
    """Read ``{value, kind, ref}``, and ``confidence: low`` where it stands.

    Parameters
    ----------
    node
        The value of the field.
    quantity
        What the number may be.

    Returns
    -------
    Cited
        With nan, ``assumed`` and an empty reference for what was faulty (and is reported).
    """
    if isinstance(node.content, str):
        fault = quantity.parsed(node.content)[0].partition(";")[0]
        said = f"{fault} and has no origin" if fault else f"{short(node.content)} has no origin"
        node.problem(
            f'{said}; write it like {{value: {quantity.example}, kind: datasheet, ref: "document and page"}}'
        )
        return Cited(math.nan, "assumed", "")
    fields = node.mapping(required=("value", "kind", "ref"), optional=("confidence",))
    value = quantity.read(fields["value"])
    kind = fields["kind"].choice(KINDS, "a kind of evidence")
    known = cast("Kind", kind if kind in STRENGTH else "assumed")
    return Cited(value, known, fields["ref"].text(), _confidence(fields.get("confidence")))


def _confidence(node: Node | None) -> Confidence | None:
    if node is None:
        return None
    word = node.scalar()
    if word != "low" and isinstance(node.content, str):
        node.problem(f"{short(word)} is not a mark here; write low, or leave the field out")
    return "low"


def cited_schema(quantity: Quantity, description: str) -> dict[str, Any]:
    """JSON Schema of a cited number."""
    text: dict[str, Any] = {"type": "string", "pattern": quantity.pattern(), "examples": [quantity.example]}
    kind = "integer" if quantity.whole else "number"
    limits = {"minimum": quantity.low, "maximum": quantity.high}
    value = text if quantity.unit else {"type": kind, **limits, "examples": [float(quantity.example)]}
    return {
        "description": description,
        "type": "object",
        "additionalProperties": False,
        "required": ["value", "kind", "ref"],
        "properties": {
            "value": {"description": f"A number with its unit, {quantity.bounds()}.".strip(), **value},
            "kind": {"description": "How the number is known.", "enum": list(KINDS)},
            "confidence": {"description": "A mark for a number to doubt.", "const": "low"},
            "ref": {
                "description": "Where it comes from: document and page, measurement id, or the reason.",
                "type": "string",
                "minLength": 1,
            },
        },
    }
