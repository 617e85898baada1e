"""Posteriors of one or two rates by plain numerics: no special functions, any number of rounds.

Rates are handled as angles, ``p = sin^2(angle)``: there the Jeffreys prior Beta(1/2, 1/2) is flat and a
posterior is about equally wide wherever it lies.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from rooflinekit.acceptance.base import LEVEL, Floats

CELLS = 160
"""Cells of a grid along each axis."""
DEPTH = 18.0
"""Log density below the peak from which a cell counts as empty (exp(-18) = 1.5e-8)."""
RIGHT_ANGLE = math.pi / 2


class Estimate(NamedTuple):
    """A fitted rate, and its interval where rounds were counted."""

    estimate: float
    low: float | None
    high: float | None


def rate_of(angle: Floats) -> Floats:
    """Rate that belongs to an angle."""
    return np.sin(angle) ** 2


class Grid(NamedTuple):
    """A posterior on a grid: centres of the cells along each axis (angles), and the weight of each cell."""

    axes: tuple[Floats, ...]
    weights: Floats

    def quantiles(self, axis: int, level: float = LEVEL) -> tuple[float, float]:
        """Ends of the central interval of one rate."""
        other = tuple(i for i in range(len(self.axes)) if i != axis)
        nodes = self.axes[axis]
        half = 0.5 * (nodes[1] - nodes[0])
        steps = np.concatenate([[0.0], np.cumsum(self.weights.sum(axis=other))])
        edges = np.concatenate([nodes - half, [nodes[-1] + half]])
        ends = np.interp([(1 - level) / 2, (1 + level) / 2], steps / steps[-1], edges)
        low, high = rate_of(ends)
        return float(low), float(high)

    def draws(self, count: int, seed: int) -> tuple[Floats, ...]:
        """Rates drawn from the posterior, one array of ``count`` for each axis."""
        rng = np.random.default_rng(seed)
        cells = rng.choice(self.weights.size, size=count, p=self.weights.ravel())
        places = np.unravel_index(cells, self.weights.shape)
        return tuple(
            rate_of(nodes[place] + (rng.random(count) - 0.5) * (nodes[1] - nodes[0]))
            for nodes, place in zip(self.axes, places, strict=True)
        )


def grid_posterior(log_likelihood: Callable[..., Floats], peak: Sequence[float]) -> Grid:
    """Posterior of rates with independent Jeffreys priors, on a grid that closes in on the peak.

    Parameters
    ----------
    log_likelihood
        Takes one array of rates per parameter (they broadcast) and gives the log likelihood.
    peak
        Rates of largest likelihood, which the grid must contain.
    """
    centre = [math.asin(math.sqrt(min(max(rate, 0.0), 1.0))) for rate in peak]
    box = [(0.0, RIGHT_ANGLE)] * len(peak)
    while True:
        axes = tuple(low + (np.arange(CELLS) + 0.5) * (high - low) / CELLS for low, high in box)
        mesh = np.meshgrid(*axes, indexing="ij", sparse=True)
        density = log_likelihood(*(np.clip(rate_of(angle), 1e-15, 1 - 1e-15) for angle in mesh))
        density = density - density.max()
        closer = [
            _around(density > -DEPTH, axis, axes[axis], centre[axis], box[axis]) for axis in range(len(box))
        ]
        sizes = [(new[1] - new[0]) / (old[1] - old[0]) for new, old in zip(closer, box, strict=True)]
        if min(sizes) > 0.4:
            weights = np.exp(density)
            return Grid(axes, weights / weights.sum())
        box = closer


def _around(
    filled: np.ndarray[tuple[int, ...], np.dtype[np.bool_]],
    axis: int,
    nodes: Floats,
    centre: float,
    box: tuple[float, float],
) -> tuple[float, float]:
    """Part of a box that holds the filled cells, the peak and two cells on either side."""
    other = tuple(i for i in range(filled.ndim) if i != axis)
    inside = nodes[filled.any(axis=other)]
    margin = 2.5 * (nodes[1] - nodes[0])
    low = max(box[0], min(float(inside[0]), centre) - margin)
    return low, min(box[1], max(float(inside[-1]), centre) + margin)


def beta_interval(accepted: float, refused: float, level: float = LEVEL) -> tuple[float, float]:
    """Central interval of a rate after so many accepted and refused trials (Jeffreys prior).

    >>> [round(end, 3) for end in beta_interval(8, 2)]
    [0.547, 0.94]
    """

    def log_likelihood(rate: Floats) -> Floats:
        return np.asarray(accepted * np.log(rate) + refused * np.log1p(-rate))

    total = accepted + refused
    return grid_posterior(log_likelihood, (accepted / total if total else 0.5,)).quantiles(0, level)


def beta_draws(accepted: float, refused: float, count: int, seed: int) -> Floats:
    """Draws of a rate after so many accepted and refused trials (Jeffreys prior)."""
    return np.random.default_rng(seed).beta(accepted + 0.5, refused + 0.5, count)


def chi_square_tail(value: float, degrees: int) -> float:
    """Probability that a chi-square variable of whole degrees of freedom exceeds a value.

    >>> round(chi_square_tail(3.841, 1), 3), round(chi_square_tail(5.991, 2), 3)
    (0.05, 0.05)
    """
    half = max(value, 0.0) / 2
    if degrees <= 0:
        return 1.0
    # Abramowitz and Stegun 26.4.4 and 26.4.5: a finite series, after erfc where the degrees are odd.
    odd = degrees % 2
    total = math.erfc(math.sqrt(half)) if odd else 0.0
    term = math.sqrt(half / math.pi) * 2 * math.exp(-half) if odd else math.exp(-half)
    for step in range(degrees // 2):
        total += term
        term *= half / (step + (1.5 if odd else 1.0))
    return min(total, 1.0)
