"""From what an engine counted to acceptance, with the numbers it printed held against each other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rooflinekit.acceptance import Acceptance, Survival, from_histogram, from_length
from rooflinekit.acceptance.checks import ROUNDING
from rooflinekit.acceptance.fits import fit_rate
from rooflinekit.errors import AcceptanceError
from rooflinekit.readers.engine_outputs.fields import bounded_k
from rooflinekit.readers.engine_outputs.output import EngineOutput

SCATTER = 0.002
"""A survival that rises by less than this share of the rounds was read while the counters moved, or rounded."""
ENDS = 0.02
"""Share of the drafts that the ends of requests cut off; more means that K varies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """Counts over all rounds of all sequences.

    Attributes
    ----------
    rounds
        Verifies of single sequences.
    accepted
        Drafts accepted.
    drafted
        Drafts proposed, where it is known.
    by_position
        Rounds that accepted the first i drafts, for positions i = 1 .. K.
    histogram
        Rounds that accepted exactly 0, 1, ... drafts; says all of the above but ``drafted``.
    k
        K where the engine or the user says it.
    printed_length, printed_rate
        Acceptance length and rate (fraction) as printed, to be held against the counts.
    exact
        Whether the counts are whole rounds, so that intervals can be given.
    """

    rounds: float
    accepted: float
    drafted: float | None = None
    by_position: tuple[float, ...] = ()
    histogram: tuple[float, ...] = ()
    k: int | None = None
    printed_length: float | None = None
    printed_rate: float | None = None
    exact: bool = True
    notes: tuple[str, ...] = field(default=())


def of_histogram(histogram: Sequence[float], k: int | None = None, **more: Any) -> Counted:
    """Counts of a histogram of accepted drafts per round, filled up with zeros to K."""
    if k is not None:
        bounded_k(k, "a histogram")
    cells = [*histogram, *[0.0] * max((k or 1) + 1 - len(histogram), 0)]
    while k is not None and len(cells) > k + 1 and not cells[-1]:
        cells.pop()
    accepted = sum(place * cell for place, cell in enumerate(cells))
    return Counted(rounds=sum(cells), accepted=accepted, histogram=tuple(cells), k=k, **more)


def output_of(
    counted: Counted, *, engine: str, what: str, where: str, definition: str, **facts: Any
) -> EngineOutput:
    """Make the result from counts.

    Acceptance is a counted survival where positions were counted; else a constant rate, with the spread of
    its totals where K is fixed. ``A = 1 + accepted / rounds``.

    Raises
    ------
    AcceptanceError
        No round drafted anything, or the counts are impossible.
    """
    if not counted.rounds > 0:
        raise AcceptanceError(
            f"{where}: no round drafted anything, so there is no acceptance; send requests with speculation on, then "
            "read it again"
        )
    if counted.accepted > 0 and counted.drafted is not None and counted.accepted > counted.drafted:
        raise AcceptanceError(
            f"{where}: {counted.accepted:g} drafts accepted of {counted.drafted:g} is impossible; the file is damaged"
        )
    length = 1.0 + counted.accepted / counted.rounds
    k, notes = k_of(counted, where)
    bounded_k(k, where)
    mean = None if counted.drafted is None else counted.drafted / counted.rounds
    notes += _cross_checks(counted, length, k, mean)
    label = f"{engine}, {short_names(where)}: A {length:.3g} at K {k}, {counted.rounds:.0f} rounds"
    all_notes = (*counted.notes, *notes, *facts.pop("notes", ()))
    made = _acceptance(counted, length, k, mean, where)
    # Positions that contradict the total are what acceptance is made of; the note above says so.
    length = float(made.expected(k)) if counted.by_position else length
    return EngineOutput(
        engine=engine,
        what=what,
        where=where,
        definition=definition,
        acceptance=noted(made, label, all_notes),
        k=k,
        drafted_per_round=mean if mean is not None and mean < k * (1.0 - ENDS) else None,
        acceptance_length=length,
        rounds=counted.rounds,
        accepted=counted.accepted,
        notes=all_notes,
        **facts,
    )


def of_length(
    length: float, k: int | None, *, engine: str, what: str, where: str, definition: str, **facts: Any
) -> EngineOutput:
    """Make the result from an acceptance length alone.

    Raises
    ------
    AcceptanceError
        K is not known, or the length is impossible with it.
    """
    if k is None:
        raise AcceptanceError(
            f"{where} gives an acceptance length of {length:.3g} but not the K it was measured with; add --measured-k"
        )
    try:
        made = from_length(length, k)
    except AcceptanceError as error:
        raise AcceptanceError(f"{where}: {error}") from error
    notes = facts.pop("notes", ())
    label = f"{engine}, {short_names(where)}: {made.label}"
    return EngineOutput(
        engine=engine,
        what=what,
        where=where,
        definition=definition,
        acceptance=noted(made, label, notes),
        k=k,
        acceptance_length=length,
        notes=notes,
        **facts,
    )


def short_names(where: str) -> str:
    """Files without their folders."""
    return ",".join(Path(one).name for one in where.split(","))


def noted(acceptance: Any, label: str, notes: tuple[str, ...]) -> Acceptance:
    """Acceptance with where it is from, and warnings before its own."""
    made: Acceptance = replace(acceptance, source=label, notes=(*notes, *acceptance.notes))
    return made


def k_of(counted: Counted, where: str) -> tuple[int, tuple[str, ...]]:
    """K, and how it was found where it is not plain."""
    places = len(counted.by_position) or len(counted.histogram) - 1
    mean = None if counted.drafted is None else counted.drafted / counted.rounds
    if places > 0:
        differs = counted.k is not None and counted.k != places
        note = (
            f"K = {counted.k} was given, but {short_names(where)} counts {places} positions: the acceptance is that of "
            f"K = {places}"
        )
        return places, ((note,) if differs else ())
    if counted.k is not None:
        return counted.k, ()
    if mean is None:
        raise AcceptanceError(f"{where} does not say how many tokens a round drafts; add --measured-k")
    whole = max(round(mean), 1)
    if abs(mean - whole) <= 1e-3 * whole:
        return whole, ()
    k = max(math.ceil(mean), math.ceil(counted.accepted / counted.rounds), 1)
    note = (
        f"K is not in the file: {mean:.2f} drafts a round on average, so K = {k} is taken; add --measured-k with the "
        "largest number the engine may draft"
    )
    return k, (note,)


def _acceptance(counted: Counted, length: float, k: int, mean: float | None, where: str) -> Any:
    try:
        if counted.histogram:
            return from_histogram(counted.histogram)
        if counted.by_position:
            return _survival(counted)
        if counted.exact and mean is not None and abs(mean - k) <= 1e-3 * k:
            return fit_rate(counted.accepted, counted.drafted or 0.0, k)
        return from_length(length, k)
    except AcceptanceError as error:
        raise AcceptanceError(f"{where}: {error}") from error


def _survival(counted: Counted) -> Survival:
    """Survival of counts by position; what rises by less than scatter is levelled."""
    values, before = [], 1.0
    for count in counted.by_position:
        value = count / counted.rounds
        value = before if before < value <= before + SCATTER else value
        values.append(value)
        before = value
    return Survival(tuple(values), round(counted.rounds) if counted.exact else None)


def _cross_checks(counted: Counted, length: float, k: int, mean: float | None) -> tuple[str, ...]:
    """``A - 1 = sum S_i`` and ``rate = accepted / drafted``; drafts that are not always K."""
    notes: tuple[str, ...] = ()
    total = sum(counted.by_position) / counted.rounds
    if counted.by_position and abs(total - (length - 1.0)) > ROUNDING + 0.001 * k:
        text = (
            f"the positions add up to {total:.3g} accepted drafts a round, but {length - 1:.3g} were counted: "
            "the positions are used"
        )
        notes += (text,)
    printed = counted.printed_length
    if printed is not None and abs(printed - length) > ROUNDING + 0.005 * length:
        notes += (
            f"acceptance length {printed:.3g} is printed, but the counts give {length:.3g}, which is used",
        )
    drafts = None if counted.drafted is None else counted.accepted / max(counted.drafted, 1e-9)
    if (
        counted.printed_rate is not None
        and drafts is not None
        and abs(counted.printed_rate - drafts) > ROUNDING
    ):
        text = (
            f"acceptance rate {counted.printed_rate:.3g} is printed, but {drafts:.3g} of the drafts were accepted: "
            "the counts are used"
        )
        notes += (text,)
    if mean is not None and mean < k * (1.0 - ENDS):
        text = (
            f"{mean:.2f} drafts a round on average of up to {k}: later positions were drafted in some rounds only "
            "but are divided by all of them, so their survival is a lower bound"
        )
        notes += (text,)
    return notes
