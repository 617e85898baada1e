"""Several candidates for one position, as in a tree: how often each rank is accepted, and what comes out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rooflinekit.errors import AcceptanceError
from rooflinekit.sampling.distributions import Floats, distribution, normalised, total_variation

LARGEST = 20_000_000
"""Most entries of one array (ordered draws x vocabulary)."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """One position with n candidates, tried in order (arrays over contexts ``(...)``).

    Attributes
    ----------
    rule
        What it is called.
    lossless
        Whether the output is the target's for every target and drafter.
    target
        p, shape ``(..., V)``.
    rank_acceptance
        P(the candidate of rank j is the accepted one), shape ``(..., n)``: what a tree needs of its children.
    output
        Distribution of the emitted token, shape ``(..., V)``.
    """

    rule: str
    lossless: bool
    target: Floats
    rank_acceptance: Floats
    output: Floats

    @property
    def acceptance(self) -> Floats:
        """P(one of the candidates is accepted)."""
        return np.asarray(self.rank_acceptance.sum(axis=-1))

    @property
    def conditional(self) -> Floats:
        """P(rank j accepted given that all before it were rejected); 0 where it is never tried."""
        before = 1.0 - np.cumsum(self.rank_acceptance, axis=-1) + self.rank_acceptance
        never = before <= 1e-15
        return np.divide(self.rank_acceptance, before, out=np.zeros_like(self.rank_acceptance), where=~never)

    @property
    def total_variation(self) -> Floats:
        """Total variation between output and target."""
        return total_variation(self.output, self.target)


def recursive_rejection(target: Any, draft: Any, count: int, *, replace: bool = False) -> Candidates:
    """Recursive rejection sampling: candidates drawn from q one by one, the target replaced by its residual.

    Draw x from q, accept it with ``min(1, p(x)/q(x))``; else ``p <- norm(max(0, p - q))``, strike x out of q, and
    go on; after ``count`` rejections the token is drawn from the last p. The output is the target's. SpecInfer's
    multi-step speculative sampling (Miao et al. 2023, arXiv:2305.09781; with replacement) and Sequoia's
    verification (Chen et al. 2024, arXiv:2402.12374; without). Exact: every ordered draw is followed.

    Parameters
    ----------
    target, draft
        p and q, shape ``(..., V)``.
    count
        Candidates (>= 1); ranks past q's support are never drawn.
    replace
        Draw with replacement: q stays as it is.

    Examples
    --------
    >>> both = recursive_rejection([0.5, 0.3, 0.2], [0.2, 0.5, 0.3], 2)
    >>> np.round(both.output, 12).tolist(), bool(both.acceptance > 0.7)
    ([0.5, 0.3, 0.2], True)
    """
    p, q = np.broadcast_arrays(distribution(target, "target"), distribution(draft, "draft"))
    shape, vocab = p.shape[:-1], p.shape[-1]
    rows = int(np.prod(shape))
    if count < 1 or rows * float(vocab) ** (1 if replace else count) > LARGEST:
        raise AcceptanceError(
            f"{count} candidates of {vocab} tokens cannot be enumerated (most: {LARGEST:,} ordered draws); give fewer"
        )
    # Axes: context, ordered draws so far, token.
    left, drafter, weight = p.reshape(rows, 1, vocab), q.reshape(rows, 1, vocab), np.ones((rows, 1))
    output, ranks = np.zeros((rows, vocab)), []
    for _ in range(count):
        accepted = weight[..., None] * np.minimum(left, drafter)
        rejected = weight[..., None] * np.maximum(drafter - left, 0.0)
        # A drafter that has nothing left draws nothing: its weight waits for the end.
        waiting = weight * (drafter.sum(axis=-1) == 0.0)
        output += (accepted + waiting[..., None] * left).sum(axis=1)
        ranks.append(accepted.sum(axis=(1, 2)))
        rest = normalised(np.maximum(left - drafter, 0.0))
        if replace:
            left, weight = rest, rejected.sum(axis=-1)
            continue
        struck = drafter[:, :, None, :] * (1.0 - np.eye(vocab))
        drafter = normalised(struck).reshape(rows, -1, vocab)
        left = np.broadcast_to(rest[:, :, None, :], struck.shape).reshape(rows, -1, vocab)
        weight = rejected.reshape(rows, -1)
    output += (weight[..., None] * left).sum(axis=1)
    name = f"recursive rejection, {count} drawn with{'' if replace else 'out'} replacement"
    rates = np.stack(ranks, axis=-1).reshape(*shape, count)
    return Candidates(name, True, p, rates, output.reshape(*shape, vocab))


def top_ranks(
    target: Any, draft: Any, count: int, *, threshold_single: float = 1.0, threshold_acc: float = 1.0
) -> Candidates:
    """The drafter's ``count`` most likely tokens as candidates, judged by the target alone.

    One coin u serves all: rank j is accepted when ``u <= (p(x_1) + ... + p(x_j)) / threshold_acc`` or
    ``p(x_j) >= threshold_single``; after the last, the token is drawn from p without the candidates. With both
    thresholds 1, rank j is accepted with exactly ``p(x_j)`` and the output is the target's. What SGLang's tree
    kernel does with EAGLE's top-k candidates; greedy trees are the case of a one-hot target.

    Parameters
    ----------
    target, draft
        p and q, shape ``(..., V)``; ties go to the first token.
    count
        Candidates (1 .. V).
    threshold_single, threshold_acc
        In 0..1; 1 is lossless.
    """
    p, q = np.broadcast_arrays(distribution(target, "target"), distribution(draft, "draft"))
    vocab = p.shape[-1]
    if not 1 <= count <= vocab or not (0.0 < threshold_single <= 1.0 and 0.0 < threshold_acc <= 1.0):
        raise AcceptanceError(
            f"{count} candidates of {vocab} tokens at thresholds {threshold_single:g}, {threshold_acc:g} are out of "
            "range; give 1 to the vocabulary's size, and thresholds above 0 up to 1"
        )
    chosen = np.argsort(-q, axis=-1, kind="stable")[..., :count]
    mass = np.take_along_axis(p, chosen, axis=-1)
    passed = np.minimum(np.cumsum(mass, axis=-1) / threshold_acc, 1.0)
    sure = np.maximum.accumulate(np.where(mass >= threshold_single, 1.0, 0.0), axis=-1)
    until = np.maximum(passed, sure)
    rates = np.diff(until, axis=-1, prepend=0.0)
    rest = np.array(p)
    np.put_along_axis(rest, chosen, 0.0, axis=-1)
    output = (1.0 - until[..., -1:]) * normalised(rest)
    np.put_along_axis(output, chosen, rates, axis=-1)
    exact = threshold_single == 1.0 and threshold_acc == 1.0
    name = f"top {count} of the drafter" + (
        "" if exact else f", thresholds {threshold_single:g} and {threshold_acc:g}"
    )
    return Candidates(name, exact, p, rates, output)
