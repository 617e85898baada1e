"""Measured survival, counted or not: the lossless core is the histogram of accepted drafts per round."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rooflinekit.acceptance.base import Floats, positions, ratio, scalar_or_array
from rooflinekit.acceptance.checks import survival_warnings
from rooflinekit.errors import AcceptanceError
from rooflinekit.work import Real


@dataclass(frozen=True, slots=True)
class Survival:
    """Measured survival: ``values[i-1]`` = P(the first i drafts are all accepted).

    Attributes
    ----------
    values
        Non-increasing probabilities for positions 1..K.
    counted
        Rounds they were counted on; ``None`` when unknown (then no interval can be given). With it the
        histogram comes back whole: :attr:`counts`.
    source
        Where it came from, for the label.
    notes
        Warnings that its maker has; signs of a fault in the values are added.
    derived
        Whether the values are differences of lengths measured in runs of their own: single positions are
        then too noisy to look for faults in.
    """

    values: tuple[float, ...]
    counted: int | None = None
    source: str = ""
    notes: tuple[str, ...] = ()
    derived: bool = False

    def __post_init__(self) -> None:
        """Refuse vectors that no sequence of rounds can produce."""
        if not self.values:
            raise AcceptanceError("an empty survival vector says nothing; give one probability per position")
        for i, value in enumerate(self.values, start=1):
            if not 0.0 <= value <= 1.0:
                raise AcceptanceError(
                    f"survival {value:g} at position {i} is not in 0..1; give probabilities"
                )
            if i > 1 and value > self.values[i - 2] + 1e-9:
                raise AcceptanceError(
                    f"survival rises from {self.values[i - 2]:g} to {value:g} at position {i}: the first {i} drafts "
                    f"cannot all be accepted more often than the first {i - 1}; if these are conditional rates, "
                    "multiply them up first"
                )

    @property
    def max_k(self) -> int | None:
        """Number of measured positions."""
        return len(self.values)

    @property
    def rounds(self) -> int | None:
        """Rounds it was counted on."""
        return self.counted

    @property
    def counts(self) -> tuple[float, ...] | None:
        """Histogram: rounds that accepted exactly 0, 1, ... K drafts; ``None`` where none were counted."""
        if self.counted is None:
            return None
        cells = self.shares * self.counted
        whole = np.round(cells)
        return tuple(np.where(np.abs(cells - whole) < 1e-6 * max(self.counted, 1), whole, cells).tolist())

    @property
    def shares(self) -> Floats:
        """The histogram over its sum: probability of exactly 0, 1, ... K accepted drafts."""
        return np.maximum(-np.diff(np.concatenate([[1.0], self.values, [0.0]])), 0.0)

    @property
    def label(self) -> str:
        """Where it came from, or the vector in short."""
        shown = ", ".join(f"{value:.4g}" for value in self.values[:6])
        return self.source or f"survival {shown}" + (", ..." if len(self.values) > 6 else "")

    @property
    def warnings(self) -> tuple[str, ...]:
        """What its maker has to say, and signs of a fault."""
        return self.notes + self.faults

    @property
    def faults(self) -> tuple[str, ...]:
        """Signs of a fault in the values."""
        return () if self.derived else survival_warnings(self.values)

    def expected(self, k: Real) -> Real:
        """``1 + S_1 + ... + S_K`` for whole K up to the measured positions."""
        wanted = self._measured(k)
        return scalar_or_array(np.concatenate([[1.0], 1.0 + np.cumsum(self.values)])[wanted])

    def survival_at(self, position: Real) -> Real:
        """The measured value, up to the measured positions."""
        return scalar_or_array(np.asarray(self.values)[positions(position, len(self.values)) - 1])

    def conditional_at(self, position: Real) -> Real:
        """``S_i / S_(i-1)``."""
        chain, place = np.array([1.0, *self.values]), positions(position, len(self.values))
        return ratio(chain[place], chain[place - 1])

    def expected_draws(self, k: Real, count: int, seed: int = 0) -> Floats | None:
        """1 + cumulative sums of survivals from the Dirichlet posterior of the histogram.

        The prior weighs one round in all, spread evenly over its cells.
        """
        if self.counted is None:
            return None
        wanted, shares = self._measured(k), self.shares
        prior = 1.0 / len(shares)
        cells = np.random.default_rng(seed).dirichlet(shares * self.counted + prior, size=count)
        tails = np.clip(1.0 - np.cumsum(cells, axis=1)[:, :-1], 0.0, 1.0)
        return np.concatenate([np.ones((count, 1)), 1.0 + np.cumsum(tails, axis=1)], axis=1)[:, wanted]

    def _measured(self, k: Real) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
        wanted = np.asarray(k)
        if np.any((wanted < 0) | (wanted > len(self.values)) | (wanted != np.round(wanted))):
            raise AcceptanceError(
                f"acceptance was measured for K = 1..{len(self.values)}, not for K = {np.max(wanted):g}; "
                "lower --max-k or measure with more drafted tokens"
            )
        return wanted.astype(np.int64)


def from_conditional(conditional: Sequence[float], rounds: int | None = None) -> Survival:
    """Survival from conditional rates alpha_i: ``S_i = alpha_1 ... alpha_i``.

    >>> from_conditional([0.8, 0.5]).values
    (0.8, 0.4)
    """
    if not all(0.0 <= rate <= 1.0 for rate in conditional):
        raise AcceptanceError(
            f"conditional rates {list(conditional)} are not all in 0..1; give probabilities"
        )
    return Survival(tuple(np.cumprod(np.asarray(conditional, dtype=float)).tolist()), rounds)


def from_histogram(counts: Sequence[float]) -> Survival:
    """Survival from the histogram of accepted drafts per round: ``counts[j]`` rounds accepted exactly j.

    Whole numbers are counts and carry intervals; anything else is taken for shares, which do not.

    >>> found = from_histogram([20, 30, 50])
    >>> found.values, found.rounds, found.counts
    ((0.8, 0.5), 100, (20.0, 30.0, 50.0))
    """
    total = float(sum(counts))
    if len(counts) < 2 or not 0 < total < math.inf or min(counts) < 0:
        raise AcceptanceError(
            f"histogram {list(counts)} needs counts for 0, 1, ... accepted drafts, none negative and not all zero"
        )
    tail = np.cumsum(np.asarray(counts, dtype=float)[::-1])[::-1]
    whole = all(float(one).is_integer() for one in counts)
    return Survival(tuple((tail[1:] / tail[0]).tolist()), round(total) if whole else None)
