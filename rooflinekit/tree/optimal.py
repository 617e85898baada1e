"""The tree with the largest expected acceptance length for a number of nodes and a depth.

A is a sum over nodes and no node is likelier than its parent, so the n likeliest nodes of the levels allowed
form a tree, and no tree of n nodes has a larger sum. Growing a tree by its likeliest neighbour (Medusa,
arXiv:2401.10774) therefore gives the optimum that Sequoia (arXiv:2402.12374) finds by dynamic programming,
with a depth limit too. Both are here: the first is what the library uses, the second proves it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rooflinekit.errors import AcceptanceError
from rooflinekit.tree.rank_acceptance import Floats, RankAcceptance
from rooflinekit.tree.shape import Path, Tree, from_paths

Ints = NDArray[np.int64]


class _Level(NamedTuple):
    """The likeliest nodes of one level, likeliest first: P, place of the parent one level above, rank."""

    values: Floats
    parents: Ints
    ranks: Ints


def _levels(acceptance: RankAcceptance, nodes: int, depth: int) -> list[_Level]:
    """Candidates for a tree of so many nodes: no level needs more, and a level's come from those above it.

    Ends early where no candidate has a probability above zero or could be among the likeliest any more.
    """
    found: list[_Level] = []
    above, pool = np.ones(1), np.zeros(0)
    for number in range(1, depth + 1):
        row = np.asarray(acceptance.row(number))
        values = np.outer(above, row).ravel()
        order = np.argsort(-values, kind="stable")[:nodes]
        order = order[values[order] > 0.0]
        if not len(order) or (len(pool) >= nodes and values[order[0]] <= pool[nodes - 1]):
            break
        found.append(_Level(values[order], order // len(row), order % len(row)))
        above = values[order]
        pool = -np.sort(-np.concatenate([pool, above]))[:nodes]
    return found


def _likeliest(levels: list[_Level], nodes: int) -> tuple[Ints, Ints]:
    """Level (from 0) and place in it of the likeliest nodes, likeliest first, parents before children."""
    if not levels:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    values = np.concatenate([level.values for level in levels])
    where = np.concatenate([np.full(len(level.values), i) for i, level in enumerate(levels)])
    place = np.concatenate([np.arange(len(level.values)) for level in levels])
    # Stable: of equal values the shallower comes first, so that a parent is never behind its child.
    order = np.argsort(-values, kind="stable")[:nodes]
    return where[order], place[order]


def _check(nodes: int, depth: int | None) -> None:
    if nodes < 0 or (depth is not None and depth < 0):
        raise AcceptanceError(f"a tree of {nodes} nodes and depth {depth} is impossible; give 0 or more")


def best_first(acceptance: RankAcceptance, nodes: int, depth: int | None = None) -> Tree:
    """Tree of the likeliest nodes: the largest expected acceptance length for this many nodes and this depth.

    Parameters
    ----------
    acceptance
        Rank acceptance.
    nodes
        Most drafted nodes, the root left out. Fewer come back where all others are never accepted.
    depth
        Most levels; any by default.

    Examples
    --------
    >>> best_first(RankAcceptance(((0.6, 0.3),)), 4).paths
    ((0,), (1,), (0, 0), (0, 0, 0))
    """
    _check(nodes, depth)
    levels = _levels(acceptance, nodes, nodes if depth is None else min(depth, nodes))
    paths: list[list[Path]] = []
    for level in levels:
        above = paths[-1] if paths else [()]
        paths.append(
            [(*above[parent], int(rank)) for parent, rank in zip(level.parents, level.ranks, strict=True)]
        )
    where, place = _likeliest(levels, nodes)
    return from_paths(paths[i][j] for i, j in zip(where, place, strict=True))


def growth(acceptance: RankAcceptance, max_nodes: int, max_depth: int) -> Floats:
    """Largest expected acceptance length G for at most n nodes and at most d levels.

    Parameters
    ----------
    acceptance
        Rank acceptance.
    max_nodes, max_depth
        Size of the grid.

    Returns
    -------
    array
        ``G[n, d]``, shape ``(max_nodes + 1, max_depth + 1)``; 1 where n or d is 0.

    Examples
    --------
    >>> growth(RankAcceptance(((0.5, 0.25),)), 3, 2)[3].tolist()
    [1.0, 1.75, 2.0]
    """
    _check(max_nodes, max_depth)
    found = np.ones((max_nodes + 1, max_depth + 1))
    levels = _levels(acceptance, max_nodes, max_depth)
    for depth in range(1, max_depth + 1):
        values = -np.sort(-np.concatenate([np.zeros(max_nodes), *(one.values for one in levels[:depth])]))
        found[1:, depth] += np.cumsum(values[:max_nodes])
    return found


def growth_by_budget(acceptance: RankAcceptance, max_nodes: int, max_depth: int) -> Floats:
    """:func:`growth` by Sequoia's dynamic programme, which does not use that the likeliest nodes form a tree.

    With F_i[m, d] the largest expected length of a subtree of m nodes and d levels below a node of level i
    (itself counted), and the candidates of the node taken rank by rank, each with a share y of the nodes::

        F_i = max over shares of 1 + sum_r p_(i+1),r F_(i+1)[y_r, d - 1]
    """
    _check(max_nodes, max_depth)
    rows = len(acceptance.rates)
    below: dict[int, Floats] = {i: np.ones(max_nodes + 1) for i in range(rows)}
    found = np.ones((max_nodes + 1, max_depth + 1))
    for depth in range(1, max_depth + 1):
        # Levels beyond the last row share its rates: a state is the row, not the level.
        below = {
            i: _best_shares(acceptance.rates[i], below[min(i + 1, rows - 1)], max_nodes) for i in range(rows)
        }
        found[:, depth] = below[0]
    return found


def _best_shares(rates: tuple[float, ...], child: Floats, nodes: int) -> Floats:
    """Best expected length of a node over all ways to give its candidates 0 .. m nodes; ``child[y]``: y below it."""
    best = np.ones(nodes + 1)
    total, share = np.meshgrid(np.arange(nodes + 1), np.arange(1, nodes + 1), indexing="ij")
    left = total - share
    for rate in rates:
        # A candidate with y nodes is itself one of them, and has y - 1 below it.
        gains = np.where(left >= 0, best[left] + rate * child[share - 1], 0.0)
        best = np.maximum(best, gains.max(axis=1, initial=0.0))
    return best


def draft_rows_grid(acceptance: RankAcceptance, max_nodes: int, max_depth: int) -> Ints:
    """Rows per sequence of each serial draft pass, for the best tree of every number of nodes and depth.

    Returns
    -------
    array
        Shape ``(max_nodes + 1, max_depth + 1, max_depth)``: ``[n, d, j]`` is pass j + 1 of the tree that
        ``best_first(acceptance, n, d)`` gives; 0 where it has no such pass.
    """
    _check(max_nodes, max_depth)
    found = np.zeros((max_nodes + 1, max_depth + 1, max_depth), dtype=np.int64)
    levels = _levels(acceptance, max_nodes, max_depth)
    for depth in range(1, max_depth + 1):
        where, place = _likeliest(levels[:depth], max_nodes)
        parents = np.array([levels[i].parents[j] for i, j in zip(where, place, strict=True)], dtype=np.int64)
        # A pass gets a row when the first child of a node joins the tree.
        _, first = np.unique(np.column_stack([where, parents]), axis=0, return_index=True)
        for at in first:
            found[at + 1, depth, where[at]] += 1
    return found.cumsum(axis=0)
