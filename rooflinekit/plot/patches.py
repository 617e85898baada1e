"""Patches of equal value on a grid, and the place inside each where a label has most room."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Patch(NamedTuple):
    """Neighbouring cells of one value.

    Attributes
    ----------
    value
        What they hold.
    places
        Row and column of the cells farthest from the border, those nearest to their middle first.
    room
        Cells from there to the nearest one of another value, up, down or to the side.
    cells
        How many they are.
    """

    value: float
    places: list[tuple[int, int]]
    room: int
    cells: int


def patches(values: NDArray[np.float64]) -> list[Patch]:
    """Split a grid into patches of neighbours that are equal; nan belongs to none. The largest first.

    >>> [(one.value, one.places, one.cells) for one in patches(np.array([[1.0, 1.0, 2.0]]))]
    [(1.0, [(0, 0), (0, 1)], 2), (2.0, [(0, 2)], 1)]
    """
    deep = _depth(values)
    left = ~np.isnan(values)
    found = []
    for row, column in zip(*np.nonzero(left), strict=True):
        if not left[row, column]:
            continue
        cells = _flood(values, left, int(row), int(column))
        depths = np.array([deep[cell] for cell in cells])
        inner = np.array(sorted(np.array(cells)[depths == depths.max()].tolist()))
        order = np.argsort(((inner - inner.mean(axis=0)) ** 2).sum(axis=1), kind="stable")
        places = [(int(i), int(j)) for i, j in inner[order]]
        found.append(Patch(float(values[row, column]), places, int(depths.max()), len(cells)))
    return sorted(found, key=lambda one: -one.cells)


def _depth(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Steps from each cell to the nearest one of another value, or to the edge of the grid; 0 for nan."""
    alive = ~np.isnan(values)
    depth = alive.astype(np.int64)
    alive &= np.all([other == values for other in _around(values, np.nan)], axis=0)
    while alive.any():
        depth[alive] += 1
        alive &= np.all(_around(alive, 0), axis=0)
    return depth


def _around(values: NDArray[Any], outside: float) -> tuple[NDArray[Any], ...]:
    """The neighbours of every cell: above, below, left, right."""
    framed = np.pad(values, 1, constant_values=outside)
    return framed[:-2, 1:-1], framed[2:, 1:-1], framed[1:-1, :-2], framed[1:-1, 2:]


def _flood(
    values: NDArray[np.float64], left: NDArray[np.bool_], row: int, column: int
) -> list[tuple[int, int]]:
    """Cells that hang together with one, taken out of those left."""
    value, stack, cells = values[row, column], [(row, column)], []
    left[row, column] = False
    while stack:
        i, j = stack.pop()
        cells.append((i, j))
        for a, b in ((i - 1, j), (i + 1, j), (i, j - 1), (i, j + 1)):
            inside = 0 <= a < values.shape[0] and 0 <= b < values.shape[1]
            if inside and left[a, b] and values[a, b] == value:
                left[a, b] = False
                stack.append((a, b))
    return cells
