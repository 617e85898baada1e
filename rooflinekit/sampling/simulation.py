"""Draft and verify with random numbers: many sequences side by side, seeded."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rooflinekit.acceptance import Survival, from_histogram
from rooflinekit.errors import AcceptanceError
from rooflinekit.sampling.chain import Chain
from rooflinekit.sampling.distributions import Floats, Integers, normalised


@dataclass(frozen=True, slots=True)
class Simulation:
    """Sampled rounds.

    Attributes
    ----------
    k
        Drafted tokens per round.
    tokens
        Emitted tokens, shape ``(rounds, sequences, K + 1)``; -1 where a round emitted fewer.
    """

    k: int
    tokens: Integers

    @property
    def lengths(self) -> Integers:
        """Tokens emitted by each round, shape ``(rounds, sequences)``."""
        return np.asarray((self.tokens >= 0).sum(axis=-1))

    @property
    def acceptance_length(self) -> float:
        """Mean tokens per round."""
        return float(self.lengths.mean())

    @property
    def standard_error(self) -> float:
        """Standard error of the mean; rounds of one sequence depend on each other, sequences do not."""
        means = self.lengths.mean(axis=0)
        return float(means.std(ddof=1) / np.sqrt(means.size))

    @property
    def survival(self) -> Survival:
        """Counted survival, as an engine would report it."""
        return from_histogram(np.bincount(self.lengths.ravel() - 1, minlength=self.k + 1).tolist())

    def first(self, count: int) -> Integers:
        """First ``count`` tokens of every sequence, shape ``(sequences, count)``.

        Raises
        ------
        AcceptanceError
            A sequence is shorter: simulate more rounds.
        """
        joined = np.moveaxis(self.tokens, 0, 1).reshape(self.tokens.shape[1], -1)
        written = joined >= 0
        if int(written.sum(axis=1).min()) < count:
            raise AcceptanceError(f"some sequences have fewer than {count} tokens; simulate more rounds")
        order = np.argsort(~written, axis=1, kind="stable")
        return np.asarray(np.take_along_axis(joined, order, axis=1)[:, :count])


def _draw(rng: np.random.Generator, cumulative: Floats) -> Integers:
    """One token per row of cumulative probabilities."""
    coins = rng.random(len(cumulative))[:, None] * cumulative[:, -1:]
    return np.asarray((coins >= cumulative).sum(axis=-1))


def simulate(
    chain: Chain, k: int, *, sequences: int = 4000, rounds: int = 20, seed: int = 0, start: int | None = None
) -> Simulation:
    """Draft K tokens, judge them, emit; again and again, for many sequences.

    Parameters
    ----------
    chain
        Rule and contexts.
    k
        Drafted tokens per round (>= 1).
    sequences, rounds
        How many, and how long.
    seed
        Same seed, same result.
    start
        Context that every sequence starts in; by default rounds are in their long-run state from the first.
    """
    if sequences < 2 or rounds < 1:
        raise AcceptanceError(f"{sequences} sequences of {rounds} rounds give no error; use 2 or more")
    rng, verdict = np.random.default_rng(seed), chain.verdict
    drafts, bonuses = np.cumsum(verdict.draft, axis=-1), np.cumsum(verdict.bonus, axis=-1)
    others = np.cumsum(normalised(verdict.replaced), axis=-1)
    if start is None:
        at = rng.choice(len(drafts), size=sequences, p=chain.round_starts(k))
    else:
        at = np.full(sequences, start)
    tokens = np.full((rounds, sequences, k + 1), -1, dtype=np.int64)
    for turn in range(rounds):
        going = np.arange(sequences)
        for i in range(k):
            here = at[going]
            drafted = _draw(rng, drafts[here])
            kept = rng.random(going.size) < verdict.accept[here, drafted]
            emitted = drafted.copy()
            emitted[~kept] = _draw(rng, others[here[~kept]])
            tokens[turn, going, i] = emitted
            at[going] = chain.next_state[here, emitted]
            going = going[kept]
        emitted = _draw(rng, bonuses[at[going]])
        tokens[turn, going, k] = emitted
        at[going] = chain.next_state[at[going], emitted]
    return Simulation(k, tokens)
