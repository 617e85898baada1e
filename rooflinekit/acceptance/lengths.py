"""Survival from acceptance lengths measured at several K, as serving benchmarks publish them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from rooflinekit.acceptance.base import Floats
from rooflinekit.acceptance.checks import ROUNDING
from rooflinekit.acceptance.survival import Survival
from rooflinekit.errors import AcceptanceError

FALL = 0.02
"""Share of the largest length below which a later one has fallen, and not only scattered."""


def from_lengths(lengths: Mapping[int, float]) -> Survival:
    """Survival whose acceptance lengths come nearest to those measured at several K.

    For a drafter whose first drafts do not depend on K (serial ones), ``S_K = A(K) - A(K-1)``. Noise, and block
    drafters run past their block, give differences that rise or fall below 0, which no rounds can: they are
    replaced by the nearest non-increasing ones in 0..1 (pool adjacent violators, least squares), with a
    warning where a length then differs from the measured one by more than its printed digits. K that were
    not measured share the difference of their neighbours evenly.

    Parameters
    ----------
    lengths
        Acceptance length, bonus included, by K (from 1).

    Raises
    ------
    AcceptanceError
        No K, a K below 1, or a length outside 1 .. K + 1.

    Examples
    --------
    >>> from_lengths({1: 1.79, 2: 2.27, 3: 2.49}).expected(3)
    2.49
    """
    ks = sorted(lengths)
    if not ks or ks[0] < 1:
        raise AcceptanceError(f"lengths by K need K from 1, not {ks}; write for example 1: 1.8, 2: 2.3")
    for k in ks:
        if not 1.0 <= lengths[k] <= k + 1.0 + 1e-9:
            raise AcceptanceError(
                f"acceptance length {lengths[k]:g} is impossible with K = {k}: it counts the bonus token and lies "
                f"between 1 and {k + 1}"
            )
    gaps = np.diff([0, *ks])
    steps = np.diff([1.0, *(lengths[k] for k in ks)]) / gaps
    values = np.clip(np.repeat(_non_increasing(steps, gaps.astype(float)), gaps), 0.0, 1.0)
    found = np.round(np.concatenate([[1.0], 1.0 + np.cumsum(values)]), 12)
    survival = tuple(np.minimum.accumulate(np.clip(np.diff(found), 0.0, 1.0)).tolist())
    return Survival(survival, source=_label(lengths, ks), notes=_notes(lengths, ks, found), derived=True)


def _label(lengths: Mapping[int, float], ks: list[int]) -> str:
    return f"A by K: {lengths[ks[0]]:g} at {ks[0]}" + (
        f" .. {lengths[ks[-1]]:g} at {ks[-1]}" if len(ks) > 1 else ""
    )


def _notes(lengths: Mapping[int, float], ks: list[int], found: Floats) -> tuple[str, ...]:
    notes = []
    best = max(ks, key=lambda k: lengths[k])
    if lengths[ks[-1]] < (1.0 - FALL) * lengths[best]:
        notes.append(
            f"the acceptance length falls from {lengths[best]:g} at K = {best} to {lengths[ks[-1]]:g} at K = {ks[-1]}, "
            f"as block drafters do past the block they were trained with: drafts past {best} count as never accepted"
        )
    worst = max(ks, key=lambda k: abs(float(found[k]) - lengths[k]))
    if abs(float(found[worst]) - lengths[worst]) > ROUNDING:
        notes.append(
            f"the lengths by K are not those of one survival vector (differences that rise or are negative); smoothed, "
            f"at most {abs(float(found[worst]) - lengths[worst]):.2f} tokens off (K = {worst})"
        )
    missing = sorted(set(range(1, ks[-1])) - set(ks))
    if missing:
        shown = ", ".join(map(str, missing[:8])) + (", ..." if len(missing) > 8 else "")
        notes.append(f"K = {shown} was not measured: filled in evenly between its neighbours")
    return tuple(notes)


def _non_increasing(values: Floats, weights: Floats) -> Floats:
    """Nearest non-increasing sequence, weighted least squares (pool adjacent violators)."""
    blocks: list[tuple[float, float, int]] = []
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        blocks.append((value, weight, 1))
        while len(blocks) > 1 and blocks[-2][0] < blocks[-1][0]:
            (a, wa, na), (b, wb, nb) = blocks[-2:]
            blocks[-2:] = [((a * wa + b * wb) / (wa + wb), wa + wb, na + nb)]
    return np.repeat([value for value, _, _ in blocks], [count for _, _, count in blocks])
