"""An example small enough to follow exactly: what speculation does to the distribution of a text."""

from __future__ import annotations

from rooflinekit.sampling import (
    Chain,
    contexts,
    draft_at,
    random_distributions,
    round_outcomes,
    sequence_distribution,
    speculative,
    target_sequences,
    total_variation,
    typical,
)

TOKENS = 3
"""Tokens of text over which output distributions are compared."""
VOCABULARY = 12
"""Tokens, and contexts, of the example."""


def example_chain(alpha: float, *, lossy: bool = False) -> Chain:
    """Random target of 12 tokens in 12 contexts, and a drafter that it accepts with ``alpha`` in each.

    Parameters
    ----------
    alpha
        Acceptance rate; raised to what the example's rarest token allows.
    lossy
        Judge by typical acceptance instead of speculative sampling.
    """
    target = random_distributions((VOCABULARY, VOCABULARY), 3, concentration=0.12)
    draft = draft_at(target, max(alpha, float(target.min(axis=-1).max())), seed=4)
    return Chain((typical if lossy else speculative)(target, draft), contexts(VOCABULARY, 1))


def distance(chain: Chain, k: int) -> float:
    """Total variation between emitted and plain text of the next three tokens, in the worst context."""
    outcomes = round_outcomes(chain, min(k, TOKENS))
    emitted = sequence_distribution(outcomes, chain.next_state, TOKENS)
    plain = target_sequences(chain.verdict.target, chain.next_state, TOKENS)
    return float(total_variation(emitted, plain, axes=TOKENS).max())
