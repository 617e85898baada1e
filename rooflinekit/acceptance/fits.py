"""A constant or a decaying rate fitted to counted rounds: estimate, interval, and whether it is good enough.

Rounds are taken as independent. Rounds of one request are not quite, so intervals are lower bounds of the
true spread.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rooflinekit.acceptance.base import LEVEL, Floats
from rooflinekit.acceptance.constant import Constant, solve_alpha
from rooflinekit.acceptance.decaying import Decaying, decay_likelihood, decay_posterior, trials_by_position
from rooflinekit.acceptance.posterior import Estimate, beta_interval, chi_square_tail
from rooflinekit.acceptance.survival import Survival
from rooflinekit.errors import AcceptanceError

SIGNIFICANT = 0.05
"""A model whose deviance is this unlikely does not describe the counts."""
CLOSE = 0.01
"""A model whose lengths are all within this fraction of the measured ones is good enough all the same."""

_TINY = 1e-15


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """A fitted model of acceptance.

    Attributes
    ----------
    model
        The fitted acceptance; it carries the counts, so it has draws.
    estimates
        By parameter: ``alpha``, or ``first`` and ``limit``; with 90 % intervals (Jeffreys posterior) where
        rounds were counted.
    deviance, degrees, p_value
        Likelihood ratio against one free rate per position: twice the log, degrees of freedom, and the
        probability of a larger one if the model holds. ``None`` where nothing was counted.
    worst_error, worst_k
        Largest relative error of the acceptance length over the measured K, and that K.
    adequate
        Whether the model is good enough: not refuted by the counts (p >= 0.05), or within 1 % of every
        measured length; never where the survival shows a fault.
    warnings
        Signs of a fault in what was fitted.
    """

    model: Constant | Decaying
    estimates: Mapping[str, Estimate]
    deviance: float | None
    degrees: int
    p_value: float | None
    worst_error: float
    worst_k: int
    adequate: bool
    warnings: tuple[str, ...]


def fit_constant(measured: Survival, level: float = LEVEL) -> Fit:
    """Constant rate of largest likelihood: accepted drafts over drafts at positions that were reached.

    Parameters
    ----------
    measured
        Survival, best with its rounds: a fit to shares has no interval.
    level
        Share of the posterior in the interval.

    Examples
    --------
    >>> from rooflinekit.acceptance import from_histogram
    >>> fit = fit_constant(from_histogram([200, 160, 640]))
    >>> round(fit.estimates["alpha"].estimate, 3), fit.adequate
    (0.8, True)
    """
    counts = _cells(measured)
    reached, accepted = trials_by_position(counts)
    passed, failed = float(accepted.sum()), float((reached - accepted).sum())
    alpha = passed / (passed + failed)
    counted = measured.counted is not None
    ends = beta_interval(passed, failed, level) if counted else None
    model = Constant(
        alpha,
        f"constant alpha {alpha:.3f}, fitted",
        (passed, failed) if counted else None,
        measured.counted,
    )
    found = passed * np.log(max(alpha, _TINY)) + failed * np.log(max(1.0 - alpha, _TINY))
    return _judged(model, {"alpha": _estimate(alpha, ends)}, measured, float(found))


def fit_decay(measured: Survival, level: float = LEVEL) -> Fit:
    """First rate and limit of largest likelihood (:class:`~rooflinekit.acceptance.decaying.Decaying`).

    Parameters
    ----------
    measured
        Survival of two positions or more, best with its rounds.
    level
        Share of the posterior in the intervals.

    Raises
    ------
    AcceptanceError
        Fewer than two positions: they say nothing about a decay.
    """
    if len(measured.values) < 2:
        raise AcceptanceError("a decay needs survival at two positions or more; measure with a larger K")
    counts = _cells(measured)
    first, limit = _largest(*trials_by_position(counts))
    counted = measured.counts
    grid = decay_posterior(counted, (first, limit)) if counted is not None else None
    ends = [grid.quantiles(axis, level) if grid is not None else None for axis in (0, 1)]
    model = Decaying(first, limit, f"alpha {first:.3f} settling at {limit:.3f}, fitted", counted)
    found = decay_likelihood(*trials_by_position(counts), np.asarray(first), np.asarray(limit))
    estimates = {"first": _estimate(first, ends[0]), "limit": _estimate(limit, ends[1])}
    return _judged(model, estimates, measured, float(found))


def fit_rate(accepted: float, proposed: float, measured_k: int) -> Constant:
    """Constant rate from totals: drafts accepted of drafts proposed in rounds of K drafts.

    The acceptance length ``1 + K accepted / proposed`` gives alpha; accepted over proposed is *not* alpha,
    since drafts behind a refused one were proposed too. The posterior is Beta with as many trials as give
    the spread that the mean of so many truncated geometric counts has.

    Raises
    ------
    AcceptanceError
        Totals that no rounds can give.
    """
    if measured_k < 1 or not 0 <= accepted <= proposed < 1e15 or proposed < measured_k:
        raise AcceptanceError(
            f"{accepted:g} accepted of {proposed:g} proposed drafts at K = {measured_k} is impossible; give totals of "
            "whole rounds, accepted no more than proposed"
        )
    rounds = proposed / measured_k
    length = 1.0 + accepted / rounds
    alpha = solve_alpha(length, measured_k)
    trials = rounds * _trials_per_round(min(max(alpha, 1e-6), 1.0 - 1e-6), measured_k)
    source = f"A {length:.3g} at K {measured_k} (constant alpha {alpha:.3f}, {rounds:.0f} rounds)"
    return Constant(alpha, source, (trials * alpha, trials * (1.0 - alpha)), round(rounds))


def _trials_per_round(alpha: float, k: int) -> float:
    """Trials whose Beta spread is that of alpha solved from the mean of accepted drafts, per round."""
    accepted = np.arange(k + 1.0)
    shares = alpha**accepted * np.where(accepted < k, 1.0 - alpha, 1.0)
    mean = float((shares * accepted).sum())
    variance = float((shares * (accepted - mean) ** 2).sum())
    slope = float((accepted[1:] * alpha ** (accepted[1:] - 1.0)).sum())
    return alpha * (1.0 - alpha) * slope**2 / variance


def _estimate(value: float, ends: tuple[float, float] | None) -> Estimate:
    """Estimate with its interval; at the edge of what is possible the posterior lies beside the estimate."""
    return (
        Estimate(value, None, None)
        if ends is None
        else Estimate(value, min(ends[0], value), max(ends[1], value))
    )


def _cells(measured: Survival) -> tuple[float, ...]:
    """Histogram to fit: counts, or shares where nothing was counted."""
    return measured.counts or tuple(measured.shares.tolist())


def _largest(reached: Floats, accepted: Floats) -> tuple[float, float]:
    """First rate and limit of largest likelihood, on grids that close in: the log likelihood is concave."""
    nodes = np.linspace(0.0, 1.0, 33)
    low, high = np.zeros(2), np.ones(2)
    best = (0.5, 0.5)
    for _ in range(14):
        first = low[0] + (high[0] - low[0]) * nodes
        # For every first rate the best limit, closed in on in the same way.
        bottom, top = np.zeros(33), np.ones(33)
        for _ in range(14):
            limit = bottom[:, None] + (top - bottom)[:, None] * nodes
            values = decay_likelihood(reached, accepted, first[:, None], limit)
            at = values.argmax(axis=1)
            rows = np.arange(33)
            best_limit, best_value = limit[rows, at], values[rows, at]
            bottom, top = limit[rows, np.maximum(at - 1, 0)], limit[rows, np.minimum(at + 1, 32)]
        place = int(best_value.argmax())
        best = (float(first[place]), float(best_limit[place]))
        low[0], high[0] = first[max(place - 1, 0)], first[min(place + 1, 32)]
    return best


def _judged(
    model: Constant | Decaying, estimates: Mapping[str, Estimate], measured: Survival, log_likelihood: float
) -> Fit:
    """Hold a fitted model against one free rate per position, and its lengths against the measured ones."""
    reached, accepted = trials_by_position(_cells(measured))
    seen = reached > 0
    rates = np.clip(accepted[seen] / reached[seen], _TINY, 1.0 - _TINY)
    free = float((accepted[seen] * np.log(rates) + (reached - accepted)[seen] * np.log1p(-rates)).sum())
    degrees = int(seen.sum()) - len(estimates)
    deviance = max(2.0 * (free - log_likelihood), 0.0) if measured.counted is not None else None
    p_value = None if deviance is None else chi_square_tail(deviance, degrees)
    ks = np.arange(1.0, len(measured.values) + 1.0)
    errors = np.abs(np.asarray(model.expected(ks)) / np.asarray(measured.expected(ks)) - 1.0)
    worst = int(errors.argmax())
    holds = float(errors[worst]) <= CLOSE or (p_value is not None and p_value >= SIGNIFICANT)
    return Fit(
        model=model,
        estimates=estimates,
        deviance=deviance,
        degrees=max(degrees, 0),
        p_value=p_value,
        worst_error=float(errors[worst]),
        worst_k=worst + 1,
        adequate=holds and not measured.faults,
        warnings=measured.faults,
    )
