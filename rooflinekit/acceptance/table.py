"""An acceptance position by position, with intervals where rounds were counted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rooflinekit.acceptance.base import LEVEL, Acceptance

DRAWS = 4000
TOP = 8
"""Positions shown of an acceptance that speaks about any K."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionRow:
    """One position i of a draft, and the acceptance length of a round of K = i drafts.

    Attributes
    ----------
    position
        i, from 1.
    conditional, survival, acceptance_length
        alpha_i, S_i and A(i).
    survival_low, survival_high, length_low, length_high
        90 % intervals; ``None`` where nothing was counted.
    """

    position: int
    conditional: float
    survival: float
    acceptance_length: float
    survival_low: float | None = None
    survival_high: float | None = None
    length_low: float | None = None
    length_high: float | None = None


def by_position(
    acceptance: Acceptance, max_k: int | None = None, level: float = LEVEL, seed: int = 0
) -> tuple[PositionRow, ...]:
    """Rows for positions 1 .. max_k; by default all that were measured, or eight of any.

    The intervals are central ones of the posterior, widened to hold the value itself where counts at the
    edge of what is possible pull the posterior away from it.
    """
    last = max_k or acceptance.max_k or TOP
    places = np.arange(1.0, last + 1.0)
    values = {
        "conditional": np.asarray(acceptance.conditional_at(places)),
        "survival": np.asarray(acceptance.survival_at(places)),
        "acceptance_length": np.asarray(acceptance.expected(places)),
    }
    drawn = acceptance.expected_draws(np.arange(last + 1.0), DRAWS, seed)
    if drawn is not None:
        ends = [(1.0 - level) / 2.0, (1.0 + level) / 2.0]
        for name, draws, centre in (
            ("survival", np.diff(drawn, axis=1), values["survival"]),
            ("length", drawn[:, 1:], values["acceptance_length"]),
        ):
            low, high = np.quantile(draws, ends, axis=0)
            values[f"{name}_low"], values[f"{name}_high"] = np.minimum(low, centre), np.maximum(high, centre)
    return tuple(
        PositionRow(position=i + 1, **{name: float(column[i]) for name, column in values.items()})
        for i in range(last)
    )
