"""How many drafted tokens the target accepts, as one object with one question: ``expected(k)``.

Words (``docs/glossary.md``): the *survival* S_i is the probability that the first i drafts are all
accepted; the *acceptance length* A counts the tokens a round emits, bonus token included:
``A = 1 + S_1 + ... + S_K``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from rooflinekit.errors import AcceptanceError
from rooflinekit.work import Real


class Acceptance(Protocol):
    """What every description of acceptance offers."""

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

    def expected(self, k: Real) -> Real:
        """Acceptance length A at K drafted tokens (floats or arrays)."""
        ...


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
    result = np.where(gap > 0.0, power / safe, n)
    return result if result.ndim else float(result)


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
    """The same conditional rate alpha at every position (float, or an array that broadcasts with K)."""

    alpha: Real
    source: str = ""

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
        """Not counted."""
        return None

    @property
    def label(self) -> str:
        """The rate, or where it came from."""
        return self.source or f"alpha {self.alpha:g}" if not isinstance(self.alpha, np.ndarray) else "alpha"

    def expected(self, k: Real) -> Real:
        """Leviathan's closed form."""
        return expected_tokens(self.alpha, k)


@dataclass(frozen=True, slots=True)
class Survival:
    """Measured survival: ``values[i-1]`` = P(the first i drafts are all accepted).

    Attributes
    ----------
    values
        Non-increasing probabilities for positions 1..K.
    counted
        Rounds they were counted on; ``None`` when unknown (then no interval can be given).
    """

    values: tuple[float, ...]
    counted: int | None = None

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
    def label(self) -> str:
        """The vector in short."""
        shown = ", ".join(f"{value:g}" for value in self.values[:6])
        return f"survival {shown}" + (", ..." if len(self.values) > 6 else "")

    def expected(self, k: Real) -> Real:
        """``1 + S_1 + ... + S_K`` for whole K up to the measured positions."""
        wanted = np.asarray(k)
        if np.any((wanted < 0) | (wanted > len(self.values)) | (wanted != np.round(wanted))):
            raise AcceptanceError(
                f"acceptance was measured for K = 1..{len(self.values)}, not for K = {np.max(wanted):g}; "
                "lower --max-k or measure with more drafted tokens"
            )
        cumulative = np.concatenate([[1.0], 1.0 + np.cumsum(self.values)])
        result = cumulative[wanted.astype(int)]
        return result if result.ndim else float(result)

    def draws(self, count: int, seed: int = 0) -> list[Survival]:
        """Survival vectors drawn from the Dirichlet posterior of the histogram (prior: one round in all).

        Raises
        ------
        AcceptanceError
            The rounds were not counted.
        """
        if self.counted is None:
            raise AcceptanceError("survival without a number of rounds has no interval; give the rounds")
        steps = np.maximum(-np.diff(np.concatenate([[1.0], self.values, [0.0]])), 0.0)
        cells = np.random.default_rng(seed).dirichlet(steps * self.counted + 1.0 / len(steps), size=count)
        tails = np.clip(1.0 - np.cumsum(cells, axis=1)[:, :-1], 0.0, 1.0)
        return [Survival(tuple(np.minimum.accumulate(row).tolist()), self.counted) for row in tails]


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

    >>> from_histogram([20, 30, 50]).values
    (0.8, 0.5)
    """
    total = float(sum(counts))
    if len(counts) < 2 or not 0 < total < math.inf or min(counts) < 0:
        raise AcceptanceError(
            f"histogram {list(counts)} needs counts for 0, 1, ... accepted drafts, none negative and not all zero"
        )
    tail = np.cumsum(np.asarray(counts, dtype=float)[::-1])[::-1]
    return Survival(tuple((tail[1:] / tail[0]).tolist()), round(total))


def from_length(acceptance_length: float, measured_k: int) -> Constant:
    """Constant rate that reproduces a measured acceptance length (bonus included) at the K it was measured with.

    A single number cannot tell decay along the block: the constant rate is an assumption, and K beyond
    the measured one an extrapolation.
    """
    alpha = solve_alpha(acceptance_length, measured_k)
    return Constant(alpha, f"A {acceptance_length:g} at K {measured_k} (constant alpha {alpha:.3f})")
