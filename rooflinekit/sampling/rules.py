"""Rules that judge one drafted token: the exact one, and those that trade the distribution for speed.

Each returns a :class:`Verdict`: how often a draft is accepted, what comes out, and how far that is from the
target. Nothing is sampled here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rooflinekit.errors import AcceptanceError
from rooflinekit.sampling.distributions import (
    Floats,
    acceptance_rate,
    distribution,
    divergence,
    greedy,
    normalised,
    residual,
    total_variation,
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """How drafted tokens are judged in each context (arrays of shape ``(..., V)`` over a vocabulary V).

    Attributes
    ----------
    rule
        What it is called.
    lossless
        Whether the rule gives the target's distribution for *every* target and drafter.
    target, draft
        p, what plain decoding would emit; q, what drafts are drawn from.
    accept
        Probability that a drafted token x is accepted, by x.
    replaced
        Probability that the draft is rejected and x emitted in its place, by x.
    bonus
        Distribution of the token after the last accepted draft.
    """

    rule: str
    lossless: bool
    target: Floats
    draft: Floats
    accept: Floats
    replaced: Floats
    bonus: Floats

    @property
    def acceptance(self) -> Floats:
        """Probability that a draft is accepted: ``sum_x q(x) accept(x)``, shape ``(...)``."""
        return np.asarray((self.draft * self.accept).sum(axis=-1))

    @property
    def output(self) -> Floats:
        """Distribution of the token that is emitted, accepted or replaced."""
        return self.draft * self.accept + self.replaced

    @property
    def total_variation(self) -> Floats:
        """Total variation between output and target, shape ``(...)``."""
        return total_variation(self.output, self.target)

    @property
    def divergence(self) -> Floats:
        """Kullback-Leibler divergence of the output from the target (nats), shape ``(...)``."""
        return divergence(self.output, self.target)

    @property
    def gain(self) -> Floats:
        """Acceptance beyond the most that a lossless rule allows, ``sum min(p, q)``; negative where it is wasted."""
        return self.acceptance - acceptance_rate(self.target, self.draft)


def _both(target: Any, draft: Any) -> tuple[Floats, Floats]:
    p, q = distribution(target, "target"), distribution(draft, "draft")
    if p.shape[-1] != q.shape[-1]:
        raise AcceptanceError(
            f"target and draft have {p.shape[-1]} and {q.shape[-1]} tokens; give both the same vocabulary"
        )
    p, q = np.broadcast_arrays(p, q)
    return p, q


def speculative(target: Any, draft: Any) -> Verdict:
    """Speculative sampling: accept x with ``min(1, p(x) / q(x))``, else draw from ``norm(max(0, p - q))``.

    The output is the target's whatever the drafter, and no lossless rule accepts a single draft more often.
    Leviathan et al. 2023 (arXiv:2211.17192), Algorithm 1; Chen et al. 2023 (arXiv:2302.01318).
    Greedy decoding is the case of one-hot distributions (:func:`~rooflinekit.sampling.greedy`).

    Parameters
    ----------
    target, draft
        p and q, shape ``(..., V)``.
    """
    p, q = _both(target, draft)
    accept = np.minimum(np.divide(p, q, out=np.ones_like(p), where=q > p), 1.0)
    rejected = (q * (1.0 - accept)).sum(axis=-1, keepdims=True)
    return Verdict("speculative sampling", True, p, q, accept, rejected * residual(p, q), p)


def target_only(
    target: Any, draft: Any, *, threshold_single: float = 1.0, threshold_acc: float = 1.0
) -> Verdict:
    """Judge by the target alone: accept x with ``min(1, p(x) / threshold_acc)``.

    Where ``p(x) >= threshold_single`` it is always accepted. A rejected x is struck out and the token drawn from
    the rest of p. With both thresholds 1 the output is the target's, at an acceptance of ``sum p q`` where
    speculative sampling has ``sum min(p, q)`` (equal for a drafter that is greedy); below 1 it is not. SGLang's
    ``speculative_accept_threshold_single`` and ``speculative_accept_threshold_acc``, with one candidate per
    position.

    Parameters
    ----------
    target, draft
        p and q, shape ``(..., V)``.
    threshold_single, threshold_acc
        In 0..1; 1 is lossless.
    """
    for name, value in (("threshold_single", threshold_single), ("threshold_acc", threshold_acc)):
        if not 0.0 < value <= 1.0:
            raise AcceptanceError(f"{name} {value:g} is out of range; give more than 0 and at most 1")
    p, q = _both(target, draft)
    accept = np.where(p >= threshold_single, 1.0, np.minimum(p / threshold_acc, 1.0))
    # Rejected y gives x != y with p(x) / (1 - p(y)): the share of each y, less that of x itself.
    share = np.divide(q * (1.0 - accept), 1.0 - p, out=np.zeros_like(p), where=p < 1.0)
    replaced = p * np.maximum(share.sum(axis=-1, keepdims=True) - share, 0.0)
    exact = threshold_single == 1.0 and threshold_acc == 1.0
    name = "target only" if exact else f"thresholds {threshold_single:g} and {threshold_acc:g}"
    return Verdict(name, exact, p, q, accept, replaced, p)


def blended(target: Any, draft: Any, share: float) -> Verdict:
    """Verify against ``(1 - share) p + share q`` instead of p: the least distance for the acceptance. Lossy.

    Acceptance rises from beta by ``share (1 - beta)``, and the distance is just that: no rule for one draft gets
    more, since acceptance cannot exceed beta by more than the total variation (Yin et al. 2024, arXiv:2411.00841).
    The yardstick for other lossy rules.

    Parameters
    ----------
    target, draft
        p and q, shape ``(..., V)``.
    share
        0 (exact) to 1 (every draft is accepted).
    """
    if not 0.0 <= share <= 1.0:
        raise AcceptanceError(f"share {share:g} is not in 0..1; give 0 for the exact rule")
    p, q = _both(target, draft)
    inner = speculative((1.0 - share) * p + share * q, q)
    return Verdict(
        f"blend with {share:g} of the drafter", share == 0.0, p, q, inner.accept, inner.replaced, p
    )


def typical(
    target: Any, draft: Any, *, epsilon: float = 0.09, delta: float = 0.3, recovered: str = "typical"
) -> Verdict:
    """Typical acceptance: accept x where ``p(x) > min(epsilon, delta exp(-H(p)))``, H the entropy (nats). Lossy.

    Cai et al. 2024 (Medusa, arXiv:2401.10774); the defaults are those of its code.

    Parameters
    ----------
    target, draft
        p and q, shape ``(..., V)``.
    epsilon, delta
        Bound, and factor of the bound that follows the entropy.
    recovered
        What replaces a rejected token: ``typical``, a draw from p cut to what would be accepted (Medusa, for the
        bonus token too), or ``greedy``, the most likely token (vLLM's former sampler).
    """
    if recovered not in ("typical", "greedy"):
        raise AcceptanceError(f"recovered {recovered!r} is unknown; known: greedy, typical")
    if not (0.0 <= epsilon <= 1.0 and delta >= 0.0):
        raise AcceptanceError(
            f"epsilon {epsilon:g} or delta {delta:g} is out of range; give 0..1 and 0 or more"
        )
    p, q = _both(target, draft)
    bound = np.minimum(epsilon, delta * np.exp(-_entropy(p)))[..., None]
    accept = np.asarray(p > bound, dtype=float)
    instead = greedy(p)
    if recovered == "typical":
        kept = p * accept
        instead = np.where(kept.sum(axis=-1, keepdims=True) > 0.0, normalised(kept), instead)
    rejected = (q * (1.0 - accept)).sum(axis=-1, keepdims=True)
    bonus = instead if recovered == "typical" else p
    name = f"typical acceptance (epsilon {epsilon:g}, delta {delta:g})"
    return Verdict(name, False, p, q, accept, rejected * instead, bonus)


def _entropy(p: Floats) -> Floats:
    logs = np.log(p, out=np.zeros_like(p), where=p > 0.0)
    return -np.asarray((p * logs).sum(axis=-1))


def relaxed(target: Any, draft: Any, *, top: int = 10, delta: float = 0.6) -> Verdict:
    """Relaxed acceptance: accept x among the target's ``top`` tokens with ``p(x) >= max p - delta``. Lossy.

    TensorRT-LLM's rule for thinking phases (``relaxed_topk``, ``relaxed_delta``), a relaxation of greedy
    decoding: the reference, the replacement and the bonus token are the target's most likely token.

    Parameters
    ----------
    target, draft
        p and q, shape ``(..., V)``.
    top, delta
        Size of the candidate set; how far below the best a candidate may be. ``top=1`` is greedy decoding.
    """
    if top < 1 or not 0.0 <= delta <= 1.0:
        raise AcceptanceError(f"top {top} or delta {delta:g} is out of range; give 1 or more and 0..1")
    p, q = _both(target, draft)
    rank = np.argsort(np.argsort(-p, axis=-1, kind="stable"), axis=-1, kind="stable")
    accept = np.asarray((rank < top) & (p >= p.max(axis=-1, keepdims=True) - delta), dtype=float)
    best = greedy(p)
    rejected = (q * (1.0 - accept)).sum(axis=-1, keepdims=True)
    name = f"relaxed acceptance (top {top}, delta {delta:g})"
    return Verdict(name, top == 1, best, q, accept, rejected * best, best)
