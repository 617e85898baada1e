"""Rounds out of measured numbers: how a verify grows with its width, a line through rounds of several K, curves over K.

Everything here ends in a :class:`~rooflinekit.speculation.Round`, whose properties are the round cost, R(W),
c and the speedup; the plain step stands in its ``decode_s``, host included, since that is what a stopwatch sees.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rooflinekit.acceptance import Survival
from rooflinekit.errors import AcceptanceError
from rooflinekit.speculation import Round
from rooflinekit.work import Real

NEAR = 0.01
"""K whose speedup lies within this fraction of the best are named with it."""


def acceptance_length_of_counts(accepted: float, rounds: float) -> float:
    """Acceptance length from counters: ``A = 1 + accepted / rounds``; each round emits one token of the target's own.

    Parameters
    ----------
    accepted
        Drafted tokens that were accepted, over all rounds.
    rounds
        Verifies. Where an engine counts generated tokens instead: generated - accepted.

    Raises
    ------
    AcceptanceError
        No round, or a negative count.

    Examples
    --------
    >>> round(acceptance_length_of_counts(313, 371 - 313), 2)
    6.4
    """
    if not (rounds > 0 and accepted >= 0):
        raise AcceptanceError(
            f"{accepted:g} accepted drafts in {rounds:g} rounds cannot be: rounds (generated - accepted) must be "
            "positive; check the counters"
        )
    return 1.0 + accepted / rounds


def verify_growth(verify_ratio: float, width: float) -> float:
    """Growth s of a verify per further row, in plain steps, if it is a straight line: ``R(W) = 1 + s (W - 1)``.

    One measured width fixes one slope; kernels grow in steps, so a width in between may lie off the line.

    Examples
    --------
    >>> round(verify_growth(4.86, 17), 3)
    0.241
    """
    if width <= 1:
        raise AcceptanceError(
            f"a verify of {width:g} rows shows no growth; give the time of a verify of K + 1 rows"
        )
    return (verify_ratio - 1.0) / (width - 1.0)


def verify_line(growth: Real, width: Real) -> Real:
    """R(W) on the straight line ``1 + s (W - 1)`` of :func:`verify_growth`."""
    return 1.0 + growth * (width - 1.0)


def verify_at(verify_s: Mapping[int, float], width: Real) -> Real:
    """Time of a verify between measured widths (s), on straight lines from one width to the next.

    Raises
    ------
    AcceptanceError
        A width outside the measured ones: nothing is known there.
    """
    known = sorted(verify_s)
    wanted = np.asarray(width, dtype=float)
    if not known or np.any((wanted < known[0]) | (wanted > known[-1])):
        span = f"{known[0]} to {known[-1]}" if known else "no width"
        raise AcceptanceError(
            f"verify times were given for widths {span}, not for {np.max(wanted):g} rows; add "
            f"{np.max(wanted):g}=MS to --verify-ms"
        )
    found = np.interp(wanted, known, [verify_s[one] for one in known])
    return found if found.ndim else float(found)


def shared_ratio(share: Real, union_ratio: Real) -> Real:
    """R(W) by bytes where only a share of them grows: ``(1 - share) + share * union``.

    Parameters
    ----------
    share
        Share of the bytes of a plain step that the routed experts are (0..1).
    union_ratio
        Distinct experts that W tokens choose, over those of one token
        (:func:`~rooflinekit.transformer.experts_touched` over ``top_k``).

    Examples
    --------
    >>> round(shared_ratio(0.9, 15.75 / 8), 2)
    1.87
    """
    return 1.0 - share + share * union_ratio


def rounds_over(
    k: Real,
    acceptance_length: Real,
    plain_s: Real,
    verify_s: Real,
    draft_step_s: Real = 0.0,
    rest_s: Real = 0.0,
) -> Round:
    """Rounds over K from measured pieces; no drafting time is a free drafter.

    Parameters
    ----------
    k, acceptance_length
        Drafted tokens and tokens per round; arrays of one axis, or floats.
    plain_s, verify_s
        A plain step; a verify of K + 1 rows (s).
    draft_step_s, rest_s
        Drafting of one token; what else a round takes whatever K (s).
    """
    return Round(k, acceptance_length, k * draft_step_s, verify_s, plain_s, rest_s)


def best_k(rounds: Round) -> tuple[int, tuple[int, ...]]:
    """Best K of rounds over an array of K, and every K within 1 % of it; by tokens per second."""
    ks = np.atleast_1d(np.asarray(rounds.k))
    gains = np.atleast_1d(np.asarray(rounds.acceptance_length / rounds.round_s))
    top = float(gains.max())
    near = tuple(int(k) for k, gain in zip(ks, gains, strict=True) if gain >= (1.0 - NEAR) * top)
    return int(ks[int(gains.argmax())]), near


@dataclass(frozen=True, slots=True)
class RoundLine:
    """Round time as a straight line of K: ``fixed_s + k * slope_s``.

    Attributes
    ----------
    fixed_s
        What a round takes whatever K: a verify of few rows and the engine's own time (s).
    slope_s
        What one more drafted token takes: its draft step and one more row to verify (s).
    misfit
        Largest relative distance of a measured round from the line; 0 through two points.
    """

    fixed_s: float
    slope_s: float
    misfit: float = 0.0

    def round_s(self, k: Real) -> Real:
        """Time of a round (s)."""
        return self.fixed_s + k * self.slope_s

    def rounds(self, k: Real, acceptance_length: Real, plain_s: Real) -> Round:
        """Rounds on the line: what does not grow with K stands for the verify, what does for drafting."""
        return Round(k, acceptance_length, k * self.slope_s, self.fixed_s + 0.0 * k, plain_s)

    def over(self, survival: Survival, plain_s: float) -> Round:
        """Rounds at every K that a survival vector, measured at its largest K, can speak about."""
        ks = np.arange(1.0, len(survival.values) + 1.0)
        return self.rounds(ks, survival.expected(ks), plain_s)

    def tokens_per_s(self, gained: Real) -> Real:
        """Rate at which one more position works: tokens it adds to a round over the time it adds (tokens/s)."""
        return gained / self.slope_s


def fit_rounds(k: Sequence[float], round_s: Sequence[float]) -> RoundLine:
    """Least-squares line through measured rounds at two or more K.

    Raises
    ------
    AcceptanceError
        Fewer than two different K, or rounds that get shorter as K grows.

    Examples
    --------
    >>> line = fit_rounds([2, 3, 4, 5, 6, 7], [9.18e-3, 9.82e-3, 10.71e-3, 11.45e-3, 12.10e-3, 12.84e-3])
    >>> round(line.fixed_s * 1e3, 2), round(line.slope_s * 1e3, 2)
    (7.69, 0.74)
    """
    if len(set(k)) < 2:
        raise AcceptanceError(f"a line over K needs rounds at two different K, not at {sorted(set(k))} alone")
    ks, times = np.asarray(k, dtype=float), np.asarray(round_s, dtype=float)
    slope, fixed = (float(value) for value in np.polyfit(ks, times, 1))
    if slope <= 0:
        raise AcceptanceError(
            f"rounds do not get longer with K (slope {slope * 1e3:.3g} ms per token): the runs differ in more than K; "
            "measure them again side by side"
        )
    misfit = float(np.max(np.abs(fixed + slope * ks - times) / times))
    return RoundLine(fixed, slope, misfit)


def last_paying_k(k: Sequence[int], acceptance_length: Sequence[float], line: RoundLine) -> int:
    """Largest K whose last position pays: it adds tokens faster than the rounds before it run.

    Positions are taken in order; the first that does not pay ends the search, since survival falls.
    """
    ks, lengths = list(k), list(acceptance_length)
    last = ks[0]
    for i in range(1, len(ks)):
        gained = (lengths[i] - lengths[i - 1]) / (ks[i] - ks[i - 1])
        if line.tokens_per_s(gained) <= lengths[i - 1] / float(line.round_s(ks[i - 1])):
            break
        last = ks[i]
    return last
