"""What rounds emit, token string by token string: exact distributions, and block verification.

The *outcomes* of a round are a tuple with one array per number of emitted tokens: ``outcomes[i]`` has shape
``(S, V, ..., V)`` with i + 1 vocabulary axes, and holds the probability that a round which starts in context
s emits exactly these i + 1 tokens.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rooflinekit.errors import AcceptanceError
from rooflinekit.sampling.chain import Chain
from rooflinekit.sampling.distributions import Floats, Integers, distribution, normalised

LARGEST = 20_000_000
"""Most entries of one array."""


def _affordable(states: int, vocab: int, tokens: int) -> None:
    if tokens < 1 or states * float(vocab) ** tokens > LARGEST:
        raise AcceptanceError(
            f"{tokens} tokens of {vocab} from {states} contexts cannot be enumerated (most: {LARGEST:,} strings); "
            "give fewer, or simulate"
        )


def round_outcomes(chain: Chain, k: int) -> tuple[Floats, ...]:
    """Outcomes of a round of K drafts judged one after the other, until the first rejection.

    Parameters
    ----------
    chain
        Rule and contexts.
    k
        Drafted tokens (>= 1).
    """
    verdict = chain.verdict
    states, vocab = verdict.draft.shape
    _affordable(states, vocab, k + 1)
    kept = verdict.draft * verdict.accept
    mass, at = np.ones(states), np.arange(states)
    outcomes = []
    for _ in range(k):
        outcomes.append(mass[..., None] * verdict.replaced[at])
        mass, at = mass[..., None] * kept[at], chain.next_state[at]
    return *outcomes, mass[..., None] * verdict.bonus[at]


def block_outcomes(chain: Chain, k: int) -> tuple[Floats, ...]:
    """Outcomes of block verification: the longest prefix whose coin passes is kept, also past a failed coin.

    With ``w_0 = 1`` and ``w_i = min(1, w_(i-1) p(x_i) / q(x_i))`` a prefix of i < K drafts passes with
    ``h_i = u / (u + 1 - w_i)``, ``u = sum_x max(0, w_i p(x) - q(x))``, the whole block with ``h_K = w_K``; after
    the longest passing prefix comes a token of ``norm(max(0, w_i p - q))``, after the block one of p. Lossless,
    and on average never shorter than judging token by token. Sun et al. 2024 (arXiv:2403.10444), Algorithm 2.

    Parameters
    ----------
    chain
        Its target, drafter and contexts; the rule of its verdict is not used.
    k
        Drafted tokens (>= 1).
    """
    p, q = chain.verdict.target, chain.verdict.draft
    states, vocab = q.shape
    _affordable(states, vocab, k + 1)
    at = np.arange(states)
    weight, drafted = np.ones(states), np.ones(states)
    passes, masses, nexts = [], [], []
    for i in range(k):
        over = np.maximum(weight[..., None] * p[at] - q[at], 0.0)
        excess = over.sum(axis=-1)
        short = excess + 1.0 - weight
        passed = np.divide(excess, short, out=np.ones_like(short), where=short > 0.0)
        passes.append(passed if i else np.ones(states))
        masses.append(drafted)
        nexts.append(normalised(over))
        ratio = np.divide(p[at], q[at], out=np.zeros(q[at].shape), where=q[at] > 0.0)
        weight = np.minimum(1.0, weight[..., None] * ratio)
        drafted, at = drafted[..., None] * q[at], chain.next_state[at]
    outcomes = [(drafted * weight)[..., None] * p[at]]
    # Chance that no longer prefix passes: from the end of the block backwards, given the prefix.
    failed = drafted * (1.0 - weight)
    for i in reversed(range(k)):
        none_longer = failed.sum(axis=-1)
        outcomes.insert(0, (passes[i] * none_longer)[..., None] * nexts[i])
        failed = (1.0 - passes[i]) * none_longer
    return tuple(outcomes)


def length_distribution(outcomes: Sequence[Floats]) -> Floats:
    """Probability that a round emits 1 .. K+1 tokens from each context, shape ``(S, K + 1)``."""
    return np.stack([one.reshape(len(one), -1).sum(axis=-1) for one in outcomes], axis=-1)


def _states_after(next_state: Integers, tokens: int) -> Integers:
    """Context after every string of tokens from every context, shape ``(S, V, ..., V)``."""
    at: Integers = np.arange(len(next_state))
    for _ in range(tokens):
        at = next_state[at]
    return at


def sequence_distribution(outcomes: Sequence[Floats], next_state: Integers, tokens: int) -> Floats:
    """Exact joint distribution of the first tokens emitted by rounds one after the other.

    Parameters
    ----------
    outcomes
        Of one round, from every context.
    next_state
        Context after a token, shape ``(S, V)``.
    tokens
        How many tokens, n (rounds are cut at the end).

    Returns
    -------
    distribution
        Shape ``(S, V, ..., V)`` with n vocabulary axes; the first axis is the context it starts in.
    """
    states, vocab = next_state.shape
    _affordable(states, vocab, tokens)
    tails: list[Floats] = [np.ones(states)]
    for n in range(1, tokens + 1):
        total = np.zeros((states,) + (vocab,) * n)
        for length, one in enumerate(outcomes, start=1):
            if length >= n:
                total += one.sum(axis=tuple(range(n + 1, length + 1)))
            else:
                tail = tails[n - length][_states_after(next_state, length)]
                total += one.reshape(one.shape + (1,) * (n - length)) * tail
        tails.append(total)
    return tails[tokens]


def target_sequences(target: Floats, next_state: Integers, tokens: int) -> Floats:
    """Joint distribution of the first tokens of plain decoding, shape ``(S, V, ..., V)``."""
    states, vocab = next_state.shape
    _affordable(states, vocab, tokens)
    p = distribution(target, "target")
    mass, at = np.ones(states), np.arange(states)
    for _ in range(tokens):
        mass, at = mass[..., None] * p[at], next_state[at]
    return np.asarray(mass)
