"""Acceptance from named fields, as they stand in a file, a profile or a mixture, with their checks."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from rooflinekit.acceptance.base import Acceptance
from rooflinekit.acceptance.checks import check_block, check_rate, check_sum
from rooflinekit.acceptance.constant import Constant, from_length
from rooflinekit.acceptance.decaying import Decaying
from rooflinekit.acceptance.fits import fit_rate
from rooflinekit.acceptance.lengths import from_lengths
from rooflinekit.acceptance.mixture import Mixture
from rooflinekit.acceptance.survival import Survival, from_conditional, from_histogram
from rooflinekit.errors import AcceptanceError, nearest

LARGEST = 1e15
"""Counts from here on are no counts of rounds (floats no longer tell neighbours apart)."""

LONGEST = 1001
"""Most numbers of a list: no engine drafts more than 1000 tokens."""

WHOLE = ("histogram", "survival", "conditional", "lengths", "decay", "alpha", "mixture", "profile")
"""Fields each of which is a whole description."""
TOTALS = ("accepted", "acceptance_length", "rate")
"""Fields that describe by a total, with ``measured_k``; beside a survival the last two are held against it."""
BESIDE = ("rounds", "measured_k", "proposed", "trained_k", "source", "dataset")
FIELDS = (*WHOLE, *TOTALS, *BESIDE)

HINT = (
    'write {"histogram": [rounds with 0, 1, 2 ... accepted drafts]}, {"survival": [...], "rounds": N}, '
    '{"conditional": [...]}, {"lengths": {"1": 1.8, "2": 2.3}}, {"decay": [first rate, limit]}, '
    '{"acceptance_length": A, "measured_k": K} or {"mixture": [{"weight": 0.5, ...}, ...]}'
)

Lookup = Callable[[str], Acceptance]


def from_fields(fields: Mapping[str, Any], where: str, lookup: Lookup) -> Acceptance:
    """Build acceptance from named fields.

    Parameters
    ----------
    fields
        One whole description (``histogram``, ``survival``, ``conditional``, ``lengths``, ``decay``, ``alpha``,
        ``mixture``, ``profile``) or a total (``accepted`` and ``proposed``, ``acceptance_length``, ``rate``) with
        ``measured_k``; beside it ``rounds``, ``trained_k``, ``source``, ``dataset``.
    where
        What the fields are of, for messages.
    lookup
        Finds a shipped profile by name.

    Raises
    ------
    AcceptanceError
        Unknown, missing or impossible fields, or fields that contradict each other.
    """
    for name in fields:
        if name not in FIELDS:
            raise AcceptanceError(f"{where}: field {name!r:.40} is unknown; {nearest(str(name), FIELDS)}")
    given = [name for name in WHOLE if name in fields]
    if len(given) > 1 or not (given or any(name in fields for name in TOTALS)):
        said = " and ".join(map(repr, given)) + " were given" if given else "none was given"
        raise AcceptanceError(f"{where}: exactly one description is needed, {said}; {HINT}")
    try:
        made = _whole(given[0], fields, where, lookup) if given else _total(fields, where)
    except AcceptanceError as error:
        text = str(error)
        raise AcceptanceError(text if text.startswith(where) else f"{where}: {text}") from error
    return _labelled(made, fields, where)


def _whole(name: str, fields: Mapping[str, Any], where: str, lookup: Lookup) -> Acceptance:
    value = fields[name]
    if name == "mixture":
        return _mixture(value, where, lookup)
    if name == "profile":
        return lookup(str(value))
    if name == "alpha":
        return Constant(_number(value, name, where))
    if name == "lengths":
        return from_lengths(_by_k(value, where))
    numbers = _numbers(value, name, where)
    if name == "decay":
        if len(numbers) != 2:
            raise AcceptanceError(f"{where}: decay needs two rates, [first, limit], not {len(numbers)}")
        return Decaying(numbers[0], numbers[1])
    if name == "histogram":
        found = from_histogram(numbers)
    elif name == "survival":
        found = Survival(tuple(numbers), _rounds(fields, where))
    else:
        found = from_conditional(numbers, _rounds(fields, where))
    return replace(found, notes=_held_against(found, fields, where))


def _held_against(found: Survival, fields: Mapping[str, Any], where: str) -> tuple[str, ...]:
    """Warnings from length and rate that were given beside a survival."""
    notes: tuple[str, ...] = ()
    if "acceptance_length" in fields:
        notes += check_sum(found.values, _number(fields["acceptance_length"], "acceptance_length", where))
    if "rate" in fields:
        k = len(found.values)
        notes += check_rate(_number(fields["rate"], "rate", where), float(found.expected(k)), k)
    return notes


def _total(fields: Mapping[str, Any], where: str) -> Acceptance:
    if "measured_k" not in fields:
        raise AcceptanceError(f"{where}: measured_k is missing; add the K that it was measured with")
    k = _count(fields["measured_k"], "measured_k", where, 1000)
    notes: tuple[str, ...] = ()
    if "accepted" in fields:
        if "proposed" not in fields:
            raise AcceptanceError(f"{where}: 'accepted' needs 'proposed' beside it; add the drafts proposed")
        accepted, proposed = (_number(fields[name], name, where) for name in ("accepted", "proposed"))
        found = fit_rate(accepted, proposed, k)
        length = 1.0 + k * accepted / proposed
    elif "acceptance_length" in fields:
        length = _number(fields["acceptance_length"], "acceptance_length", where)
        found = from_length(length, k)
    else:
        rate = _number(fields["rate"], "rate", where)
        if not 0.0 <= rate <= 1.0:
            raise AcceptanceError(f"{where}: rate {rate:g} is not in 0..1; divide percent by 100")
        notes = (
            "the rate is taken as accepted over proposed drafts; one that counts the bonus token is higher",
        )
        return replace(from_length(1.0 + k * rate, k), notes=notes)
    if "rate" in fields:
        notes = check_rate(_number(fields["rate"], "rate", where), length, k)
    return replace(found, notes=notes)


def _mixture(value: Any, where: str, lookup: Lookup) -> Mixture:
    if not isinstance(value, list) or not all(isinstance(one, Mapping) for one in value):
        raise AcceptanceError(f'{where}: mixture needs a list of members, [{{"weight": 0.5, ...}}, ...]')
    weights, members = [], []
    for place, one in enumerate(value, start=1):
        name = f"{where}: member {place}"
        rest = {key: part for key, part in one.items() if key != "weight"}
        if "mixture" in rest:
            raise AcceptanceError(f"{name} is a mixture itself; write its members into the outer one")
        weights.append(_number(one.get("weight", 1.0), "weight", name))
        members.append(from_fields(rest, name, lookup))
    return Mixture(tuple(weights), tuple(members))


def _labelled(made: Any, fields: Mapping[str, Any], where: str) -> Acceptance:
    """Put source and data set into the label, and say where K went past the trained block."""
    for name in ("source", "dataset"):
        if not isinstance(fields.get(name, ""), str):
            raise AcceptanceError(f"{where}: {name} {fields[name]!r:.40} is not text; write it in quotes")
    named = ", ".join(fields[name] for name in ("dataset", "source") if fields.get(name))
    notes = made.notes
    if "trained_k" in fields:
        measured = made.max_k or fields.get("measured_k", 0)
        notes += check_block(int(measured), _count(fields["trained_k"], "trained_k", where, 1000))
    found: Acceptance = replace(made, notes=notes, source=f"{made.label} ({named})" if named else made.source)
    return found


def _number(value: Any, name: str, where: str) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not abs(value) < LARGEST:
        raise AcceptanceError(
            f"{where}: {name} {value!r:.40} is not a finite number below {LARGEST:g}; give one such as 0.8"
        )
    return float(value)


def _numbers(value: Any, name: str, where: str) -> list[float]:
    if not isinstance(value, list):
        raise AcceptanceError(f"{where}: {name} must be a list of finite numbers; {HINT}")
    if len(value) > LONGEST:
        raise AcceptanceError(f"{where}: {name} has {len(value)} numbers; give at most {LONGEST}")
    return [_number(one, f"{name} at place {place}", where) for place, one in enumerate(value, start=1)]


def _count(value: Any, name: str, where: str, largest: float) -> int:
    found = _number(value, name, where)
    if not 1 <= found <= largest or found != math.floor(found):
        raise AcceptanceError(f"{where}: {name} {value!r:.40} is not a whole number from 1 to {largest:g}")
    return int(found)


def _rounds(fields: Mapping[str, Any], where: str) -> int | None:
    return None if fields.get("rounds") is None else _count(fields["rounds"], "rounds", where, LARGEST)


def _by_k(value: Any, where: str) -> dict[int, float]:
    hint = f'{where}: lengths need a K and a length each, {{"1": 1.8, "2": 2.3}}'
    if not isinstance(value, Mapping):
        raise AcceptanceError(hint)
    found = {}
    for key, length in value.items():
        text = str(key)
        if not (text.isascii() and text.isdecimal() and 1 <= int(text[:9]) <= 1000):
            raise AcceptanceError(f"{hint}, with K a whole number from 1 to 1000, not {text!r:.40}")
        found[int(text)] = _number(length, f"length at K = {text}", where)
    return found
