"""The one change that would help most: another K, another drafter, a smaller one, another batch, or none."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from rooflinekit.curve import Case, CurvePoint
from rooflinekit.drafters.base import Drafter
from rooflinekit.load import Load

WORTH = 0.02
"""A change that gains less than this fraction is not worth naming."""

FACTORS = (2.0, 4.0, 8.0, 16.0)
"""Larger batches to try, relative to the one asked about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change and what it does.

    Attributes
    ----------
    what
        The change, in words.
    k, speedup
        Best K after it, and the speedup over plain decoding under the same conditions.
    gain
        Speedup after over speedup before, less 1.
    condition
        What has to hold besides; '' for nothing.
    """

    what: str
    k: int
    speedup: float
    gain: float
    condition: str = ""


SAME_ACCEPTANCE = "if it is accepted as often"
PREDICTED = ", and drafts as fast as predicted"
"""Of other drafters, where the time of drafting was given for the one asked about."""


def changes(
    case: Case,
    load: Load,
    chosen: CurvePoint,
    batch_fits: float,
    *,
    max_k: int,
    variants: Iterable[tuple[str, Drafter]] = (),
    drafters: Iterable[tuple[str, Drafter]] = (),
) -> tuple[Change, ...]:
    """Every change that was tried and would gain, the best one first.

    Parameters
    ----------
    case, load
        What was asked about.
    chosen
        The K that was judged.
    batch_fits
        Largest batch that fits into memory.
    max_k
        Largest K to try.
    variants, drafters
        The same drafter made lighter, and others, with what to call them. A given time of drafting is that of the
        drafter asked about: lighter ones have no known relation to it and are left out, others are predicted.
    """
    batch, context = np.array([float(load.batch)]), np.array([float(load.context)])
    own = case.speedups(batch=batch, context=context, max_k=max_k)[0, 0]
    found = [_change("fewer" if own.argmax() + 1 < chosen.k else "more", own, chosen)]
    found[0] = replace(found[0], what=f"{found[0].what} drafted tokens: K = {found[0].k}")
    given = case.drafting.given
    drafting = replace(case.drafting, cost=None, step_s=None, round_s=None)
    for words, drafter in (*(() if given else variants), *drafters):
        other = replace(case, drafter=drafter, drafting=drafting)
        grid = other.speedups(batch=batch, context=context, max_k=max_k)[0, 0]
        found.append(_change(words, grid, chosen, SAME_ACCEPTANCE + (PREDICTED if given else "")))
    found += _batches(case, load, chosen, max_k, batch_fits)
    worth = [one for one in found if one.gain >= WORTH]
    return tuple(sorted(worth, key=lambda one: -one.gain))


def _change(what: str, speedups: np.ndarray, chosen: CurvePoint, condition: str = "") -> Change:
    best = int(speedups.argmax())
    speedup = float(speedups[best])
    return Change(
        what=what, k=best + 1, speedup=speedup, gain=speedup / chosen.speedup - 1.0, condition=condition
    )


def _batches(case: Case, load: Load, chosen: CurvePoint, max_k: int, fits: float) -> list[Change]:
    """The larger batch at which speculation gains most; there it competes with plain decoding at that batch."""
    batch = float(load.batch) * np.array(FACTORS)
    batch = batch[batch <= fits]
    if not len(batch):
        return []
    grid = case.speedups(batch=batch, context=np.array([float(load.context)]), max_k=max_k)[:, 0]
    at = int(grid.max(axis=1).argmax())
    words = f"a larger batch: {batch[at]:g}"
    return [_change(words, grid[at], chosen, "the gain is over plain decoding at that batch")]
