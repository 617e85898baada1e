"""Times by rows per sequence, in whatever form they are known: a function, a list, a table, or one number."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from rooflinekit.errors import AcceptanceError
from rooflinekit.tree.rank_acceptance import Floats

Times = Callable[[Floats], Floats] | Sequence[float] | Mapping[int, float] | float
"""Seconds by rows per sequence: a function of an array of rows; a list for 1, 2, ... rows; a table of
``{rows: seconds}``; or one number for all."""


def sizes(verify_s: Times, max_nodes: int) -> NDArray[np.int64]:
    """Sizes to try: all, or those whose width a table has."""
    if isinstance(verify_s, Mapping):
        return np.array(sorted(width - 1 for width in verify_s if 1 < width <= max_nodes + 1), dtype=np.int64)
    return np.arange(1, max_nodes + 1)


def times_at(given: Times, rows: Floats, name: str) -> Floats:
    """Seconds at each number of rows (>= 1)."""
    if callable(given):
        return np.broadcast_to(np.asarray(given(rows), dtype=float), rows.shape)
    if isinstance(given, Mapping):
        table = dict(given)
    elif isinstance(given, Sequence | np.ndarray):
        table = dict(enumerate(given, start=1))
    else:
        return np.full(rows.shape, float(given))
    missing = sorted({int(row) for row in rows.ravel()} - table.keys())
    if missing:
        raise AcceptanceError(
            f"{name} has no time for {missing[0]} rows; extend the table or lower the largest tree"
        )
    return np.array([float(table[int(row)]) for row in rows.ravel()]).reshape(rows.shape)


def passes_s(draft_pass_s: Times, rows: NDArray[np.int64]) -> Floats:
    """Sum of the serial passes over the last axis; a pass without rows is not run."""
    wanted = np.unique(rows[rows > 0])
    table = np.zeros(int(rows.max(initial=0)) + 1)
    table[wanted] = times_at(draft_pass_s, wanted.astype(float), "draft_pass_s")
    if np.any(table < 0.0):
        raise AcceptanceError(f"draft_pass_s holds {table.min():g} s; give times of 0 or more")
    return np.asarray(table[rows].sum(axis=-1))
