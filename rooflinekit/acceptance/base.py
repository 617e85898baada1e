"""What every description of acceptance offers, and the small steps they share."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rooflinekit.errors import AcceptanceError
from rooflinekit.work import Real

Floats = NDArray[np.float64]

LEVEL = 0.9
"""Share of the posterior that an interval holds."""


class Acceptance(Protocol):
    """How many drafts of a round the target accepts.

    ``expected(k) = 1 + survival_at(1) + ... + survival_at(k)`` for every kind; all of them take floats or
    arrays. A new kind is one frozen class with these members.
    """

    @property
    def max_k(self) -> int | None:
        """Largest K it can speak about; ``None`` for any."""
        ...

    @property
    def rounds(self) -> int | None:
        """Rounds it was counted on; ``None`` when it was not counted."""
        ...

    @property
    def label(self) -> str:
        """One line for tables and plots."""
        ...

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is doubtful about it, a sentence each; whoever shows the numbers shows these."""
        ...

    def expected(self, k: Real) -> Real:
        """Acceptance length A at K drafted tokens (tokens per round, bonus included; K >= 0)."""
        ...

    def survival_at(self, position: Real) -> Real:
        """S_i, the probability that the first i drafts are all accepted (positions from 1)."""
        ...

    def conditional_at(self, position: Real) -> Real:
        """alpha_i = S_i / S_(i-1), the rate at a position that was reached; 0 where none is reached."""
        ...

    def expected_draws(self, k: Real, count: int, seed: int = 0) -> Floats | None:
        """Draws of A at K from its posterior, to push through whatever depends on it.

        Returns
        -------
        ndarray or None
            Shape ``(count,)`` for one K, ``(count, *k.shape)`` for an array; ``None`` where nothing was
            counted. Equal seeds give equal draws, and a draw is one world: its values at several K belong
            together.
        """
        ...


def scalar_or_array(values: Floats) -> Real:
    """Give back a float for no dimension, else the array."""
    return values if values.ndim else float(values)


def positions(position: Real, top: int | None = None) -> NDArray[np.int64]:
    """Whole positions 1 .. top.

    Raises
    ------
    AcceptanceError
        A position below 1, between whole numbers, or past ``top``.
    """
    wanted = np.asarray(position)
    past = wanted > (np.inf if top is None else top)
    if np.any((wanted < 1) | past | (wanted != np.round(wanted))):
        limit = "1, 2, ..." if top is None else f"1..{top}"
        raise AcceptanceError(f"position {position} is not one of {limit}; the first draft has position 1")
    return wanted.astype(np.int64)


def whole_k(k: Real) -> NDArray[np.int64]:
    """Whole K from 0.

    Raises
    ------
    AcceptanceError
        K is negative or between whole numbers.
    """
    wanted = np.asarray(k)
    if np.any((wanted < 0) | (wanted != np.round(wanted))):
        raise AcceptanceError(f"K = {k} drafted tokens is not a whole number from 0; give 0, 1, 2, ...")
    return wanted.astype(np.int64)


def ratio(survival: Floats, before: Floats) -> Real:
    """Conditional rate from two neighbours of the survival; 0 where no round came that far."""
    return scalar_or_array(np.where(before > 0, survival / np.where(before > 0, before, 1.0), 0.0))
