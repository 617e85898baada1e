"""Numbers out of parsed documents, checked as they are taken."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rooflinekit.errors import AcceptanceError, nearest

LARGEST = 1e15
LARGEST_K = 1000
NUMBER = r"(\d{1,15}(?:\.\d{1,15})?)"
"""A printed number from 0 on."""
_NUMBER = re.compile(NUMBER)
_DEEPEST = 8


def real(data: Mapping[str, Any], name: str, where: str) -> float | None:
    """A number from 0 on; ``None`` where the field is absent or null.

    Raises
    ------
    AcceptanceError
        It is something else.
    """
    value = data.get(name)
    if value is None:
        return None
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < LARGEST:
        raise AcceptanceError(
            f"{where}: {name} {value!r:.40} is not a finite number from 0 on; the file is damaged, write it again"
        )
    return float(value)


def needed(data: Mapping[str, Any], name: str, where: str) -> float:
    """A number that has to be there.

    Raises
    ------
    AcceptanceError
        It is missing or no number.
    """
    found = real(data, name, where)
    if found is None:
        raise AcceptanceError(f"{where}: {name} is missing; the file is cut off or of another version")
    return found


def bounded_k(k: int, where: str) -> int:
    """K, where a round can draft so many.

    Raises
    ------
    AcceptanceError
        It is below 1 or far above what any drafter drafts.
    """
    if not 1 <= k <= LARGEST_K:
        raise AcceptanceError(f"{where}: K = {k:g} is not in 1..{LARGEST_K}; the file is damaged")
    return k


def numbers_in(text: str) -> tuple[float, ...]:
    """Printed numbers of a list such as ``0.8, 0.5``."""
    return tuple(float(one) for one in _NUMBER.findall(text))


def milliseconds(data: Mapping[str, Any], *names: str, where: str) -> float | None:
    """The first of these times that is there and not 0, in seconds; their unit is in their names (ms, else s)."""
    for name in names:
        value = real(data, name, where)
        if value:
            return value / 1e3 if name.endswith("_ms") else value
    return None


def reals(value: Any, name: str, where: str) -> tuple[float, ...]:
    """A list of numbers from 0 on, or the same keyed by place (``{"0": 12}``, places left out are 0).

    Raises
    ------
    AcceptanceError
        It is something else.
    """
    if isinstance(value, Mapping):
        keys = [str(key) for key in value]
        if not keys or not all(key.isascii() and key.isdecimal() and len(key) < 5 for key in keys):
            raise AcceptanceError(f"{where}: {name} needs whole numbers from 0 as keys; the file is damaged")
        sparse = {int(key): one for key, one in value.items()}
        value = [sparse.get(place, 0) for place in range(max(sparse) + 1)]
    if not isinstance(value, list):
        raise AcceptanceError(f"{where}: {name} is not a list of numbers; the file is damaged")
    return tuple(needed({name: one}, name, where) for one in value)


def find_all(data: Any, *names: str, deepest: int = _DEEPEST) -> Iterator[Mapping[str, Any]]:
    """Every object in a document that has one of these names, outermost first."""
    if isinstance(data, Mapping):
        if any(name in data for name in names):
            yield data
        children: Iterable[Any] = data.values()
    elif isinstance(data, list):
        children = data
    else:
        return
    if deepest:
        for child in children:
            if isinstance(child, Mapping | list):
                yield from find_all(child, *names, deepest=deepest - 1)


def find_first(data: Any, *names: str) -> Any:
    """Value of the first of these names anywhere in a document that is not null."""
    for name in names:
        for found in find_all(data, name):
            if found[name] is not None:
                return found[name]
    return None


def chosen(parts: Mapping[str, Any], part: str, where: str, what: str) -> str:
    """The one part of a file that was named, or the only one.

    Raises
    ------
    AcceptanceError
        None of that name, or several to choose from.
    """
    if part:
        same = [name for name in parts if name == part or name.rpartition("/")[2] == part]
        if len(same) != 1:
            raise AcceptanceError(f"{where} has no {what} {part!r:.60}; {nearest(part[:60], parts)}")
        return same[0]
    if len(parts) > 1:
        names = list(parts)
        shown = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
        raise AcceptanceError(
            f"{where} holds more than one {what} ({shown}); name one after the file: {where}#{names[0]}"
        )
    return next(iter(parts))


def median(values: Iterable[float]) -> float | None:
    """Median of the finite values; ``None`` of none."""
    found = sorted(value for value in values if math.isfinite(value))
    if not found:
        return None
    middle = len(found) // 2
    return found[middle] if len(found) % 2 else (found[middle - 1] + found[middle]) / 2
