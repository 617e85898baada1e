"""Drafting over contexts that depend on the past: exact acceptance length, survival, and the i.i.d. shortcut."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rooflinekit.acceptance import Survival, expected_tokens
from rooflinekit.errors import AcceptanceError
from rooflinekit.sampling.distributions import Floats, Integers
from rooflinekit.sampling.rules import Verdict


def contexts(vocab: int, order: int) -> Integers:
    """Transitions where a context is the last ``order`` tokens: ``next[s, x]``, shape ``(vocab^order, vocab)``.

    >>> contexts(2, 1).tolist()
    [[0, 1], [0, 1]]
    """
    if vocab < 1 or order < 0 or vocab ** (order + 1) > 10**7:
        raise AcceptanceError(
            f"{vocab} tokens and contexts of {order} are too many to enumerate, or too few; give less than 10^7 pairs"
        )
    states = np.arange(vocab**order)[:, None]
    return np.asarray((states * vocab + np.arange(vocab)) % vocab**order, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Chain:
    """A judged drafter in every context of a Markov chain: S contexts, V tokens.

    Attributes
    ----------
    verdict
        Rule, target and drafter, arrays of shape ``(S, V)``.
    next_state
        Context after token x in context s, shape ``(S, V)``.
    """

    verdict: Verdict
    next_state: Integers

    def __post_init__(self) -> None:
        """Refuse shapes and contexts that do not belong together."""
        shape = self.verdict.draft.shape
        if self.next_state.shape != shape or len(shape) != 2:
            raise AcceptanceError(
                f"distributions have shape {shape}, transitions {self.next_state.shape}; give both (contexts, tokens)"
            )
        if self.next_state.min() < 0 or self.next_state.max() >= shape[0]:
            raise AcceptanceError(f"a transition leads out of the {shape[0]} contexts; number them from 0")

    def kernel(self, mass: Floats) -> Floats:
        """Mass of each token as mass between contexts, ``(S, V) -> (S, S)``."""
        states, vocab = mass.shape
        found = np.zeros((states, states))
        np.add.at(found, (np.repeat(np.arange(states), vocab), self.next_state.ravel()), mass.ravel())
        return found

    def survival_by_state(self, k: int) -> Floats:
        """S_1 .. S_K of a round that starts in each context, shape ``(S, K)``."""
        accepted = self.kernel(self.verdict.draft * self.verdict.accept)
        alive, found = np.ones(len(accepted)), []
        for _ in range(_checked(k)):
            alive = accepted @ alive
            found.append(alive)
        return np.stack(found, axis=-1)

    def length_by_state(self, k: int) -> Floats:
        """Exact acceptance length A (tokens, bonus included) of a round from each context, shape ``(S,)``."""
        return np.asarray(1.0 + self.survival_by_state(k).sum(axis=-1))

    def round_kernel(self, k: int) -> Floats:
        """Where a round that started in s ends, shape ``(S, S)``: rejected after i drafts, or all accepted."""
        accepted = self.kernel(self.verdict.draft * self.verdict.accept)
        replaced, bonus = self.kernel(self.verdict.replaced), self.kernel(self.verdict.bonus)
        reached, total = np.eye(len(accepted)), np.zeros_like(accepted)
        for _ in range(_checked(k)):
            total += reached @ replaced
            reached = reached @ accepted
        return total + reached @ bonus

    def round_starts(self, k: int) -> Floats:
        """Long-run share of rounds that start in each context, shape ``(S,)``.

        Not that of contexts in the text: a context after which drafts fail starts more rounds.
        """
        return long_run(self.round_kernel(k))

    def text_share(self) -> Floats:
        """Long-run share of each context in plain text of the target, shape ``(S,)``."""
        return long_run(self.kernel(self.verdict.target))

    def survival(self, k: int) -> Survival:
        """Exact survival over all rounds: what :func:`rooflinekit.recommend` takes as ``acceptance``."""
        values = self.round_starts(k) @ self.survival_by_state(k)
        return Survival(tuple(np.minimum(np.minimum.accumulate(values), 1.0).tolist()))

    def acceptance_length(self, k: int) -> float:
        """Exact mean acceptance length A (tokens per round, bonus included)."""
        return float(self.round_starts(k) @ self.length_by_state(k))

    @property
    def alpha(self) -> float:
        """E[beta] over the target's text, the one rate that Leviathan et al. describe a drafter with."""
        return float(self.text_share() @ self.verdict.acceptance)

    def independent_length(self, k: int) -> float:
        """Acceptance length if every draft were accepted with E[beta], independently.

        Equal to :meth:`acceptance_length` where beta is the same in all contexts; else an approximation.
        """
        return float(expected_tokens(min(self.alpha, 1.0), float(_checked(k))))


def _checked(k: int) -> int:
    if k < 1:
        raise AcceptanceError(f"K = {k} drafts nothing; give 1 or more")
    return k


def long_run(kernel: Floats) -> Floats:
    """Long-run share of each state of a Markov chain that starts anywhere with equal chance, shape ``(S,)``.

    The lazy chain ``(I + R) / 2`` has the same shares and no periods, so its powers settle, also where the
    chain falls apart into several.
    """
    states = len(kernel)
    power = (np.eye(states) + kernel / kernel.sum(axis=-1, keepdims=True)) / 2.0
    for _ in range(64):
        power = power @ power
        power /= power.sum(axis=-1, keepdims=True)
    return np.asarray(power.mean(axis=0))
