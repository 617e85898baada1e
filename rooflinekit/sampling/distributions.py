"""Categorical distributions on the last axis: overlap, residual, temperature, distances."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rooflinekit.errors import AcceptanceError

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

TOLERANCE = 1e-9
"""How far probabilities may be from summing to 1."""
SHAKEN = 40.0
"""Largest standard deviation of the noise on the logits of a random drafter."""


def distribution(values: Any, name: str = "distribution") -> Floats:
    """Check probabilities of shape ``(..., V)``: none negative, each row sums to 1.

    Raises
    ------
    AcceptanceError
        They are no distribution.
    """
    found: Floats = np.asarray(values, dtype=float)
    if found.ndim < 1 or not found.shape[-1]:
        raise AcceptanceError(f"{name} has no tokens; give one probability per token on the last axis")
    if not np.all(found >= 0.0):
        raise AcceptanceError(f"{name} has probabilities that are negative or nan; give numbers in 0..1")
    sums = found.sum(axis=-1)
    worst = float(np.max(np.abs(sums - 1.0)))
    if worst > TOLERANCE:
        raise AcceptanceError(f"{name} sums to 1 only within {worst:.2g}; divide each row by its sum")
    return found


def normalised(mass: Floats) -> Floats:
    """Mass over its sum on the last axis; all zero stays zero."""
    total = mass.sum(axis=-1, keepdims=True)
    share: Floats = np.divide(mass, total, out=np.zeros_like(mass), where=total > 0.0)
    return share


def acceptance_rate(target: Any, draft: Any) -> Floats:
    """Probability that rejection sampling accepts a drafted token: ``beta = sum_x min(p(x), q(x))``.

    Equal to ``1 - TV(p, q)``. Leviathan et al. 2023 (arXiv:2211.17192), Theorem 3.5.

    Parameters
    ----------
    target, draft
        p and q, shape ``(..., V)``.

    Examples
    --------
    >>> round(float(acceptance_rate([0.5, 0.3, 0.2], [0.2, 0.5, 0.3])), 12)
    0.7
    """
    return np.asarray(np.minimum(distribution(target, "target"), distribution(draft, "draft")).sum(axis=-1))


def residual(target: Any, draft: Any) -> Floats:
    """What replaces a rejected token: ``norm(max(0, p - q))``; zeros where p = q, which never rejects.

    Leviathan et al. 2023 (arXiv:2211.17192), Algorithm 1; Chen et al. 2023 (arXiv:2302.01318), Algorithm 2.

    Examples
    --------
    >>> residual([0.5, 0.3, 0.2], [0.2, 0.5, 0.3]).tolist()
    [1.0, 0.0, 0.0]
    """
    return normalised(np.maximum(distribution(target, "target") - distribution(draft, "draft"), 0.0))


def greedy(probabilities: Any) -> Floats:
    """Temperature 0: all mass on the most likely token, the first of equals."""
    p = distribution(probabilities)
    return np.asarray(np.arange(p.shape[-1]) == p.argmax(axis=-1)[..., None], dtype=float)


def tempered(probabilities: Any, temperature: float) -> Floats:
    """Probabilities at another temperature: ``p^(1/T)`` normalised, what dividing logits by T does; 0 is greedy.

    Examples
    --------
    >>> np.round(tempered([0.5, 0.3, 0.2], 0.5), 4).tolist()
    [0.6579, 0.2368, 0.1053]
    """
    if not 0.0 <= temperature < np.inf:
        raise AcceptanceError(f"temperature {temperature:g} is impossible; give 0 (greedy) or more")
    p = distribution(probabilities)
    # So cold that float powers overflow: greedy, as in engines.
    if temperature < 1e-6:
        return greedy(p)
    relative = p / p.max(axis=-1, keepdims=True)
    return normalised(relative ** (1.0 / temperature))


def total_variation(one: Any, other: Any, axes: int = 1) -> Floats:
    """Total variation distance ``sum |a - b| / 2`` over the last ``axes`` axes: 0 equal, 1 disjoint.

    It is the largest difference in the probability of any event.
    """
    difference = np.abs(np.asarray(one, dtype=float) - np.asarray(other, dtype=float))
    return np.asarray(0.5 * difference.sum(axis=tuple(range(-axes, 0))))


def divergence(one: Any, other: Any) -> Floats:
    """Kullback-Leibler divergence ``sum a ln(a / b)`` (nats) on the last axis; inf where b lacks what a has."""
    a, b = np.asarray(one, dtype=float), np.asarray(other, dtype=float)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(a > 0.0, a * (np.log(a) - np.log(b)), 0.0)
    return np.asarray(np.maximum(terms.sum(axis=-1), 0.0))


def random_distributions(shape: tuple[int, ...], seed: int, concentration: float = 0.5) -> Floats:
    """Dirichlet-distributed probabilities of shape ``(..., V)``; small concentrations give peaked ones."""
    if not concentration > 0.0:
        raise AcceptanceError(f"concentration {concentration:g} is not positive; give for example 0.5")
    rng = np.random.default_rng(seed)
    # Gamma(c) = Gamma(c + 1) U^(1/c), in logarithms: small c would underflow.
    logs = np.log(rng.standard_gamma(concentration + 1.0, size=shape))
    logs += np.log1p(-rng.random(shape)) / concentration
    return normalised(np.exp(logs - logs.max(axis=-1, keepdims=True)))


def draft_at(target: Any, alpha: float, seed: int = 0) -> Floats:
    """A random drafter whose acceptance rate is ``alpha`` in every context: noise on the target's logits.

    ``q = norm(p exp(s g))`` with g standard normal and s, the size of the noise, found by bisection: drafters
    err towards what is plausible. Where no noise is enough (it favours what p favours), mass moves to the
    target's least likely token until the rate is met.

    Parameters
    ----------
    target
        p, shape ``(..., V)``.
    alpha
        Wanted ``sum min(p, q)``, at least the smallest probability of each context.
    seed
        Of g.

    Raises
    ------
    AcceptanceError
        No drafter of this kind agrees as little as that.
    """
    p = distribution(target, "target")
    if not 0.0 <= alpha <= 1.0:
        raise AcceptanceError(f"acceptance rate {alpha:g} is not in 0..1; give a probability such as 0.8")
    least = p.min(axis=-1)
    if np.any(alpha < least):
        raise AcceptanceError(
            f"no such drafter agrees with the target only {alpha:g}: its least likely token has "
            f"{float(least.max()):.2g}; give a larger rate or a vocabulary with rarer tokens"
        )
    noise = np.random.default_rng(seed).normal(size=p.shape)
    low, high = np.zeros(p.shape[:-1]), np.full(p.shape[:-1], SHAKEN)
    for _ in range(60):
        middle = (low + high) / 2.0
        agrees = acceptance_rate(p, _shaken(p, noise, middle)) > alpha
        low, high = np.where(agrees, middle, low), np.where(agrees, high, middle)
    return _moved(p, _shaken(p, noise, high), alpha)


def _shaken(p: Floats, noise: Floats, size: Floats) -> Floats:
    shift = size[..., None] * noise
    return normalised(p * np.exp(shift - shift.max(axis=-1, keepdims=True)))


def _moved(p: Floats, q: Floats, alpha: float) -> Floats:
    """Mix q with the least likely token of p until they agree no more than alpha; rounding aside, often not at all.

    The overlap falls along the mixture, so the share is found by bisection too.
    """
    far = np.asarray(np.arange(p.shape[-1]) == p.argmin(axis=-1)[..., None], dtype=float)
    low, high = np.zeros(p.shape[:-1]), np.ones(p.shape[:-1])
    enough = acceptance_rate(p, q) <= alpha
    for _ in range(60):
        middle = (low + high) / 2.0
        agrees = np.minimum(p, _mixed(q, far, middle)).sum(axis=-1) > alpha
        low, high = np.where(agrees, middle, low), np.where(agrees, high, middle)
    return _mixed(q, far, np.where(enough, 0.0, high))


def _mixed(q: Floats, far: Floats, share: Floats) -> Floats:
    return np.asarray(q + share[..., None] * (far - q))
