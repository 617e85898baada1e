"""Competing implementations: a short trial, then the close ones in the same rounds, then the best.

Speculation looks better than it is against a slow decode, so the best implementation counts at one row
as at any other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rooflinekit.microbench.device import Timer
from rooflinekit.microbench.sampling import Series, paired_ratio, run_rounds, trial

if TYPE_CHECKING:
    from rooflinekit.microbench.session import Session

CLOSE = 1.2
"""Implementations within this factor of the quickest in the trial stay in (ratio)."""

Key = tuple[int, str]
"""Rows (or width) and implementation."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Best implementation by rows, with the samples of all that stayed in.

    Attributes
    ----------
    best
        Implementation by rows.
    series
        Samples by rows and implementation, and of what was measured beside them.
    medians
        Median (s) of each implementation by rows: of the trial for those left out after it.
    """

    best: dict[int, str]
    series: dict[str, Series]
    medians: dict[int, dict[str, float]]

    def winner(self, rows: int) -> Series:
        """Return the samples of the best implementation."""
        return self.series[_name((rows, self.best[rows]))]

    def ratio(self, rows: int) -> tuple[float, ...]:
        """Paired ratio to the best implementation at one row; empty where one row was not measured."""
        return paired_ratio(self.winner(rows), self.winner(1)) if 1 in self.best else ()


def _name(key: Key) -> str:
    return f"{key[0]}/{key[1]}"


def contest(
    session: Session,
    timers: Mapping[Key, Timer],
    beside: Mapping[str, Timer] | None = None,
    cap: float = 1.0,
    *,
    try_first: bool = True,
) -> Outcome:
    """Find and measure the best implementation at each number of rows.

    Parameters
    ----------
    session
        Limits, order and clock.
    timers
        Right implementations by rows.
    beside
        Measured in every round with them (the read probe).
    cap
        Factor on the time limit of the session.
    try_first
        Whether a trial sorts out slow implementations; without it all are measured to the end.
    """
    medians: dict[int, dict[str, float]] = {}
    for rows, kernel in timers:
        medians.setdefault(rows, {})[kernel] = 0.0
    if try_first and any(len(kernels) > 1 for kernels in medians.values()):
        first = trial({_name(k): t for k, t in timers.items()}, session.limits, session.rng, session.clock)
        for rows, kernel in timers:
            medians[rows][kernel] = first[_name((rows, kernel))]
    close = [(r, k) for r, k in timers if medians[r][k] <= CLOSE * min(medians[r].values())]
    chosen = {_name(key): timers[key] for key in close}
    extra = dict(beside or {})
    # The base of the ratios and the probe stay in every round, though their own medians may stand.
    always = frozenset({_name(key) for key in close if key[0] == 1} | extra.keys())
    limits = replace(session.limits, cap_s=cap * session.limits.cap_s)
    series = run_rounds({**chosen, **extra}, limits, session.rng, always, session.clock)
    best = _best(close, series)
    for rows, kernel in close:
        medians[rows][kernel] = series[_name((rows, kernel))].median_s
    return Outcome(best, series, medians)


def _best(close: list[Key], series: Mapping[str, Series]) -> dict[int, str]:
    best: dict[int, str] = {}
    for rows, kernel in close:
        one = series[_name((rows, kernel))]
        if rows not in best or one.standing_s < series[_name((rows, best[rows]))].standing_s:
            best[rows] = kernel
    return best
