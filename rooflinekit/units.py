"""Text quantities at the border, SI floats inside.

Inside the package every number is a float in SI base units (bytes, seconds, FLOP) and the unit is in
the name. Text such as ``3.35 TB/s`` exists only in files, options and printed results; this module is
the only place that translates. 1 GB is 1e9 bytes; GiB is accepted because vendors print it.
"""

from __future__ import annotations

import math
import re

from rooflinekit.errors import UnitError

PREFIX_EXPONENT = {"": 0, "K": 3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
SMALL_EXPONENT = {"": 0, "m": -3, "u": -6, "\u00b5": -6, "\u03bc": -6, "n": -9}
BINARY_EXPONENT = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40}

EXAMPLES = {
    "B": "80 GB",
    "B/s": "3.35 TB/s",
    "FLOP/s": "989.4 TFLOP/s",
    "s": "20 us",
    "Hz": "1.83 GHz",
    "W": "700 W",
    "": "0.92",
}
"""How a quantity of each unit is written; the keys are the units this package knows."""

_NUMBER = re.compile(r"\s*([+-]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(.*?)\s*")


def _scaled(number: str, exponent: int) -> float:
    """Shift by building the literal, so that ``20 us`` is exactly 2e-05."""
    mantissa, _, old = number.lower().replace("_", "").partition("e")
    return float(f"{mantissa}e{int(old or 0) + exponent}")


def parse(text: str, unit: str) -> float:
    """Read a text quantity into an SI float.

    Parameters
    ----------
    text
        Number and unit, for example ``3.35 TB/s``.
    unit
        The unit asked for: a key of :data:`EXAMPLES`.

    Raises
    ------
    UnitError
        The text is not a number with that unit.

    Examples
    --------
    >>> parse("3.35 TB/s", "B/s")
    3350000000000.0
    >>> parse("20 us", "s")
    2e-05
    >>> parse("80 GiB", "B")
    85899345920.0
    >>> parse("3.35e12", "B/s")
    Traceback (most recent call last):
        ...
    rooflinekit.errors.UnitError: '3.35e12' has no unit; write it like '3.35 TB/s'
    """
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise UnitError(f"{text!r} is not a number with a unit; write it like '{EXAMPLES[unit]}'")
    number, given = match.groups()
    if not given and unit:
        raise UnitError(f"{text!r} has no unit; write it like '{EXAMPLES[unit]}'")
    value = _with_unit(number, given, unit)
    if value is None:
        raise UnitError(f"{text!r} is not in {unit or 'a plain number'}; write it like '{EXAMPLES[unit]}'")
    if math.isinf(value):
        raise UnitError(f"{text!r} is too large for a number; write it like '{EXAMPLES[unit]}'")
    return value


def _with_unit(number: str, given: str, unit: str) -> float | None:
    if not unit:
        return _scaled(number, 0) if not given else None
    if unit == "FLOP/s" and given.endswith(("FLOPS", "TOPS", "OP/s", "FLOP/s", "FLOPs/s")):
        # int8 rates are printed as TOPS; FLOPS is ambiguous (count or rate) and is refused below.
        given = re.sub(
            r"(FLOPs/s|TOPS|(?<!FL)OP/s)$", lambda m: "TFLOP/s" if m[1] == "TOPS" else "FLOP/s", given
        )
    if not given.endswith(unit):
        return None
    prefix = given[: len(given) - len(unit)]
    if unit in ("B", "B/s") and prefix in BINARY_EXPONENT:
        return _scaled(number, 0) * 2.0 ** BINARY_EXPONENT[prefix]
    exponents = SMALL_EXPONENT if unit == "s" else PREFIX_EXPONENT
    if prefix not in exponents:
        return None
    return _scaled(number, exponents[prefix])


def render(value: float, unit: str, digits: int = 4) -> str:
    """Write an SI float for people, with the prefix that keeps it between 1 and 1000.

    >>> render(3.352e12, "B/s")
    '3.352 TB/s'
    >>> render(2.5e-05, "s")
    '25 us'
    >>> render(0.0418953, "s")
    '41.9 ms'
    >>> render(0.0, "s")
    '0 s'
    """
    if not unit:
        return f"{value:.{digits}g}"
    small = unit == "s"
    digits = 3 if small else digits
    steps = {0: "", -3: "m", -6: "u", -9: "n"} if small else {0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P"}
    exponent = 0
    for step in sorted(steps):
        if abs(value) >= (1 - 0.5 * 10.0**-digits) * 10.0**step or (not value and not step):
            exponent = step
    if small and value and abs(value) < 1e-9:
        exponent = -9
    return f"{value / 10.0**exponent:.{digits}g} {steps[exponent]}{unit}"
