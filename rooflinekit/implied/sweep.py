"""Rounds measured at several K: the line through them and the best K."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rooflinekit.errors import AcceptanceError
from rooflinekit.implied.findings import Finding, findings
from rooflinekit.implied.measured import Implied, Measured, imply
from rooflinekit.implied.rounds import RoundLine, best_k, fit_rounds, rounds_over
from rooflinekit.speculation import Round


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """Measured rounds over K.

    Attributes
    ----------
    runs
        What each K implies, K ascending.
    over_k
        The measured rounds as arrays over K.
    line
        ``round = fixed + K step`` through them.
    best_k, near_best
        K of the largest measured speedup, and every K within 1 % of it.
    """

    runs: tuple[Implied, ...]
    over_k: Round
    line: RoundLine
    best_k: int
    near_best: tuple[int, ...]

    @property
    def plain_s(self) -> float:
        """A plain step (s)."""
        return self.runs[0].measured.plain_s

    @property
    def draft_cost(self) -> float:
        """The c of the slope: a draft step and one more verified row, in plain steps."""
        return self.line.slope_s / self.plain_s

    @property
    def fixed_over_plain_s(self) -> float:
        """What a round of no drafts takes beyond a plain step (s)."""
        return self.line.fixed_s - self.plain_s

    @property
    def best_run(self) -> Implied:
        """The run at the best K."""
        return next(one for one in self.runs if one.measured.k == self.best_k)

    def findings(self) -> tuple[Finding, ...]:
        """Contradictions within the rows."""
        return tuple(f for one in self.runs for f in findings(one) if f.code == "inconsistent")


def sweep_of(rows: Sequence[Measured]) -> Sweep:
    """Analyse runs that differ in K alone; each needs ``acceptance_length`` and ``token_s``.

    Raises
    ------
    AcceptanceError
        Fewer than two K, a K twice, or a row without its acceptance length or time per token.
    """
    runs = tuple(imply(row) for row in sorted(rows, key=lambda row: row.k))
    ks = [run.measured.k for run in runs]
    if len(set(ks)) != len(ks):
        raise AcceptanceError(f"the sweep has K = {max(ks, key=ks.count)} twice; keep one row for each K")
    for run in runs:
        if run.round_s is None or run.acceptance_length is None:
            raise AcceptanceError(
                f"K = {run.measured.k} of the sweep needs an acceptance length and a time per token; add both"
            )
    times = [run.round_s or 0.0 for run in runs]
    lengths = [run.acceptance_length or 1.0 for run in runs]
    line = fit_rounds([float(k) for k in ks], times)
    over_k = rounds_over(
        np.array(ks, dtype=float), np.array(lengths), runs[0].measured.plain_s, np.array(times)
    )
    best, near = best_k(over_k)
    return Sweep(runs=runs, over_k=over_k, line=line, best_k=best, near_best=near)
