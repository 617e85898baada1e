"""The same conditional rate at every position: Leviathan's closed form and its inverse."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rooflinekit.acceptance.base import Floats, scalar_or_array
from rooflinekit.acceptance.posterior import beta_draws
from rooflinekit.errors import AcceptanceError
from rooflinekit.work import Real


def expected_tokens(alpha: Real, k: Real) -> Real:
    """Tokens per round at a constant acceptance rate: ``(1 - alpha^(K+1)) / (1 - alpha)``.

    Leviathan et al. 2023 (arXiv:2211.17192), equation 1; the bonus token is included, and alpha = 1
    gives K + 1.

    Parameters
    ----------
    alpha
        Probability that a drafted token is accepted given that those before it were (0..1).
    k
        Drafted tokens per round.

    Examples
    --------
    >>> round(expected_tokens(0.8, 4), 4)
    3.3616
    >>> expected_tokens(1.0, 4)
    5.0
    """
    a, n = np.asarray(alpha, dtype=float), np.asarray(k, dtype=float) + 1.0
    if not np.all((a >= 0) & (a <= 1)):
        raise AcceptanceError(f"acceptance rate {alpha} is not in 0..1; give a probability such as 0.8")
    if not np.all(n >= 1):
        raise AcceptanceError(f"K = {k} drafted tokens is negative; give 0 or more")
    gap = 1.0 - a
    # Near 1 the quotient loses digits; expm1 and log1p keep them. At 1 itself the limit is K + 1.
    safe = np.where(gap > 0.0, gap, 1.0)
    with np.errstate(divide="ignore"):
        power = -np.expm1(n * np.log1p(-np.minimum(safe, 1.0)))
    return scalar_or_array(np.where(gap > 0.0, power / safe, n))


def solve_alpha(acceptance_length: float, k: float) -> float:
    """Constant acceptance rate that gives this acceptance length at this K, by bisection.

    Parameters
    ----------
    acceptance_length
        Tokens per round, bonus included (1 .. K+1).
    k
        Drafted tokens per round when it was measured.

    Raises
    ------
    AcceptanceError
        The length is impossible for this K.

    Examples
    --------
    >>> round(solve_alpha(3.3616, 4), 6)
    0.8
    """
    if not 1.0 <= acceptance_length <= k + 1.0:
        raise AcceptanceError(
            f"acceptance length {acceptance_length:g} is impossible with K = {k:g}: it counts the bonus token and "
            f"lies between 1 and {k + 1:g}; check --measured-k, or add 1 if your engine leaves the bonus out"
        )
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if float(expected_tokens(middle, k)) < acceptance_length:
            low = middle
        else:
            high = middle
    return (low + high) / 2


@dataclass(frozen=True, slots=True)
class Constant:
    """The same conditional rate alpha at every position (float, or an array that broadcasts with K).

    Attributes
    ----------
    alpha
        Probability that a draft is accepted given that those before it were (0..1).
    source
        Where it came from, for the label.
    trials
        Drafts accepted and drafts refused at positions that were reached, where it was counted: the
        posterior is Beta of these and half a trial each (Jeffreys).
    counted
        Rounds it was counted on.
    notes
        Warnings that its maker has.
    """

    alpha: Real
    source: str = ""
    trials: tuple[float, float] | None = None
    counted: int | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse rates outside 0..1."""
        if not np.all((np.asarray(self.alpha) >= 0) & (np.asarray(self.alpha) <= 1)):
            raise AcceptanceError(
                f"acceptance rate {self.alpha} is not in 0..1; give a probability such as 0.8"
            )

    @property
    def max_k(self) -> int | None:
        """Any K."""
        return None

    @property
    def rounds(self) -> int | None:
        """Rounds it was counted on."""
        return self.counted

    @property
    def label(self) -> str:
        """The rate, or where it came from."""
        return self.source or f"alpha {self.alpha:g}" if not isinstance(self.alpha, np.ndarray) else "alpha"

    @property
    def warnings(self) -> tuple[str, ...]:
        """What its maker has to say."""
        return self.notes

    def expected(self, k: Real) -> Real:
        """Leviathan's closed form."""
        return expected_tokens(self.alpha, k)

    def survival_at(self, position: Real) -> Real:
        """``alpha^i``."""
        return scalar_or_array(np.asarray(self.alpha, dtype=float) ** _from_one(position))

    def conditional_at(self, position: Real) -> Real:
        """Alpha, at every position."""
        shape = np.broadcast_shapes(np.shape(self.alpha), _from_one(position).shape)
        return scalar_or_array(np.broadcast_to(np.asarray(self.alpha, dtype=float), shape).copy())

    def expected_draws(self, k: Real, count: int, seed: int = 0) -> Floats | None:
        """The closed form of alphas from their Beta posterior."""
        if self.trials is None:
            return None
        alphas = beta_draws(*self.trials, count, seed)
        return np.asarray(expected_tokens(alphas.reshape(count, *(1,) * np.ndim(k)), k))


def _from_one(position: Real) -> Floats:
    wanted = np.asarray(position, dtype=float)
    if not np.all(wanted >= 1):
        raise AcceptanceError(f"position {position} is below 1; the first draft has position 1")
    return wanted


def from_length(acceptance_length: float, measured_k: int) -> Constant:
    """Constant rate that reproduces a measured acceptance length (bonus included) at the K it was measured with.

    A single number cannot tell decay along the block: the constant rate is an assumption, and K beyond
    the measured one an extrapolation.
    """
    alpha = solve_alpha(acceptance_length, measured_k)
    return Constant(alpha, f"A {acceptance_length:g} at K {measured_k} (constant alpha {alpha:.3f})")
