"""Conditional rates that settle along the draft: two numbers, the first rate and the rate far on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rooflinekit.acceptance.base import Floats, positions, scalar_or_array, whole_k
from rooflinekit.acceptance.posterior import Grid, grid_posterior
from rooflinekit.errors import AcceptanceError
from rooflinekit.work import Real

HALVING = 0.5
"""Share of the distance to the limit that is left after each position (docs/decisions/012)."""


def fading(count: int) -> Floats:
    """Weight of the first rate at positions 1 .. count: 1, 1/2, 1/4 ..."""
    return HALVING ** np.arange(count, dtype=float)


@dataclass(frozen=True, slots=True)
class Decaying:
    """``alpha_i = limit + (first - limit) / 2^(i-1)``.

    The form is ours, chosen for its fit to published rates by position (``docs/decisions/012``). Both
    numbers are probabilities that can be read off a table: the rate of the first draft, and the rate that
    far drafts tend to. Equal numbers are a constant rate; a limit above the first rate describes drafters
    whose later drafts are accepted more often, since the rounds that come so far are the easy ones.

    Attributes
    ----------
    first, limit
        alpha_1, and alpha_i for large i (0..1).
    source
        Where it came from, for the label.
    counts
        Histogram of accepted drafts per round that it was fitted to, where it was.
    notes
        Warnings that its maker has.
    """

    first: float
    limit: float
    source: str = ""
    counts: tuple[float, ...] | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse rates outside 0..1."""
        for name, rate in (("first rate", self.first), ("limit", self.limit)):
            if not 0.0 <= rate <= 1.0:
                raise AcceptanceError(
                    f"{name} {rate:g} of a decay is not in 0..1; give two probabilities, the rate of the first draft "
                    "and the rate of far ones, such as 0.8,0.65"
                )

    @property
    def max_k(self) -> int | None:
        """Any K."""
        return None

    @property
    def rounds(self) -> int | None:
        """Rounds it was fitted to."""
        return None if self.counts is None else round(sum(self.counts))

    @property
    def label(self) -> str:
        """Both rates, or where they came from."""
        return self.source or f"alpha {self.first:g} settling at {self.limit:g}"

    @property
    def warnings(self) -> tuple[str, ...]:
        """What its maker has to say."""
        return self.notes

    def expected(self, k: Real) -> Real:
        """1 + the sum of the products, for whole K."""
        wanted = whole_k(k)
        return scalar_or_array(_lengths(self.first, self.limit, int(wanted.max(initial=0)))[wanted])

    def survival_at(self, position: Real) -> Real:
        """Product of the rates up to a position."""
        place = positions(position)
        rates = self.limit + (self.first - self.limit) * fading(int(place.max(initial=1)))
        return scalar_or_array(np.asarray(np.cumprod(rates)[place - 1], dtype=np.float64))

    def conditional_at(self, position: Real) -> Real:
        """The rate at a position."""
        steps = positions(position).astype(float) - 1.0
        return scalar_or_array(np.asarray(self.limit + (self.first - self.limit) * HALVING**steps))

    def expected_draws(self, k: Real, count: int, seed: int = 0) -> Floats | None:
        """Lengths of pairs from their posterior."""
        if self.counts is None:
            return None
        wanted = whole_k(k)
        first, limit = decay_posterior(self.counts, (self.first, self.limit)).draws(count, seed)
        return _lengths(first[:, None], limit[:, None], int(wanted.max(initial=0)))[:, wanted]


def _lengths(first: Real, limit: Real, top: int) -> Floats:
    """A at K = 0 .. top, along the last axis."""
    rates = limit + (first - limit) * fading(top)
    one = np.ones((*rates.shape[:-1], 1))
    return np.concatenate([one, 1.0 + np.cumsum(np.cumprod(rates, axis=-1), axis=-1)], axis=-1)


def decay_likelihood(reached: Floats, accepted: Floats, first: Floats, limit: Floats) -> Floats:
    """Log likelihood of a decay: at each position, accepted of the rounds that reached it."""
    weight = fading(len(reached))
    total = np.zeros(np.broadcast_shapes(np.shape(first), np.shape(limit)))
    for tried, passed, share in zip(reached, accepted, weight, strict=True):
        rate = np.clip(limit + (first - limit) * share, 1e-15, 1.0 - 1e-15)
        total = total + passed * np.log(rate) + (tried - passed) * np.log1p(-rate)
    return total


def decay_posterior(counts: tuple[float, ...], peak: tuple[float, float]) -> Grid:
    """Posterior of first rate and limit given a histogram, Jeffreys prior on each."""
    reached, accepted = trials_by_position(counts)

    def log_likelihood(first: Floats, limit: Floats) -> Floats:
        return decay_likelihood(reached, accepted, first, limit)

    return grid_posterior(log_likelihood, peak)


def trials_by_position(counts: tuple[float, ...] | Floats) -> tuple[Floats, Floats]:
    """Rounds that reached each position and rounds that accepted it, from a histogram.

    >>> reached, accepted = trials_by_position((20, 30, 50))
    >>> reached.tolist(), accepted.tolist()
    ([100.0, 80.0], [80.0, 50.0])
    """
    tail = np.cumsum(np.asarray(counts, dtype=float)[::-1])[::-1]
    return tail[:-1], tail[1:]
