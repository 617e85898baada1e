"""How the kernel tables route tokens to experts: how many experts a row of theirs really reads."""

from __future__ import annotations

from functools import cache

import numpy as np

LOW, HIGH = 0.01, 2.0
"""Range of the power law's weights where there are fewer choices than experts."""
SHARE = 0.8
"""Upper end of the range over the tokens, where there are more."""


def touched(experts: int, top_k: int, tokens: int, routing: str) -> float:
    """Experts that a routing of the tables reads.

    ``balanced`` places the choices on disjoint experts, min(E, k t); ``power_law_x`` is :func:`quota`.

    >>> touched(128, 8, 8, "balanced"), round(touched(128, 8, 8, "power_law_1.01"), 1)
    (64.0, 48.7)
    """
    if routing == "balanced":
        return float(min(experts, top_k * tokens))
    return quota(experts, top_k, tokens, float(routing.rpartition("_")[2]))


DRAWS = 200
"""Draws of the weights that are averaged; always the same ones."""


@cache
def quota(experts: int, top_k: int, tokens: int, exponent: float) -> float:
    """Mean number of experts read when each gets a rounded quota of the choices, by a power law.

    Weights are drawn from a density ``x^-exponent`` between 1 and 0.8 t, or between 0.01 and 2 where k t does
    not exceed E; a quota is the weight's share of the k t choices, rounded, and at most t. Choices that
    rounding and the cap leave over go one by one to the experts with the fewest, so to those that have none
    (as read in the collector of ai-dynamo/aiconfigurator).

    >>> [round(quota(128, 8, tokens, 1.01)) for tokens in (8, 16, 32, 64)]
    [49, 65, 107, 115]
    """
    choices = top_k * tokens
    low, high = (1.0, SHARE * tokens) if choices > experts else (LOW, HIGH)
    power = 1.0 - exponent
    share = np.random.default_rng(0).random((DRAWS, experts))
    weights = ((high**power - low**power) * share + low**power) ** (1.0 / power)
    quotas = np.minimum(np.rint(weights / weights.sum(axis=1, keepdims=True) * choices), tokens)
    left = np.maximum(0.0, choices - quotas.sum(axis=1))
    return float(np.minimum(experts, np.count_nonzero(quotas, axis=1) + left).mean())
