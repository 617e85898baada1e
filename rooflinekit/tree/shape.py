"""A draft tree: which candidates of which candidates are verified together in one pass of the target."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rooflinekit.errors import AcceptanceError

Path = tuple[int, ...]
"""Ranks from the root down to a node: ``(0, 1)`` is the second best child of the best first token."""


@dataclass(frozen=True, slots=True)
class Tree:
    """Drafted nodes below a root that is already known (the token of the last verify; not drafted).

    Nodes are numbered from 0, parents before their children. Constructors: :func:`chain`,
    :func:`from_paths`, :func:`from_children`, :func:`full` and ``best_first``; they number level by level,
    so that equal trees compare equal.

    Attributes
    ----------
    parents
        For each node the number of its parent; -1 is the root.
    ranks
        For each node its place among the candidates of its parent, **from 0**: 0 is the best one.

    Raises
    ------
    AcceptanceError
        A parent that does not come before its child, a negative rank, or the same rank twice below one parent.
    """

    parents: tuple[int, ...] = ()
    ranks: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Refuse lists that are not a tree."""
        if len(self.parents) != len(self.ranks):
            raise AcceptanceError(
                f"a tree with {len(self.parents)} parents and {len(self.ranks)} ranks is incomplete; give one of each "
                "per node"
            )
        seen = set()
        for node, (parent, rank) in enumerate(zip(self.parents, self.ranks, strict=True)):
            if not -1 <= parent < node:
                raise AcceptanceError(
                    f"node {node} of the tree has parent {parent}, which does not come before it; number parents first "
                    "and give -1 for the root"
                )
            if rank < 0:
                raise AcceptanceError(
                    f"node {node} of the tree has rank {rank}; the best candidate has rank 0"
                )
            if (parent, rank) in seen:
                raise AcceptanceError(
                    f"node {node} of the tree repeats rank {rank} below parent {parent}; name each candidate once"
                )
            seen.add((parent, rank))

    @property
    def nodes(self) -> int:
        """Drafted nodes, the root left out."""
        return len(self.parents)

    @property
    def width(self) -> int:
        """W: rows per sequence in the verify, the root included."""
        return self.nodes + 1

    @property
    def levels(self) -> tuple[int, ...]:
        """Level of each node; children of the root are on level 1."""
        found: list[int] = []
        for parent in self.parents:
            found.append(1 if parent < 0 else found[parent] + 1)
        return tuple(found)

    @property
    def depth(self) -> int:
        """Most tokens a round can accept."""
        return max(self.levels, default=0)

    @property
    def rows_by_level(self) -> tuple[int, ...]:
        """Drafted nodes on level 1, 2, ..."""
        levels = self.levels
        return tuple(levels.count(level) for level in range(1, self.depth + 1))

    @property
    def draft_rows(self) -> tuple[int, ...]:
        """Rows per sequence of each pass of a serial drafter: the root, then the nodes of a level that have children.

        One entry per level, so a drafter that runs once for all levels (Medusa's heads, a block) ignores them.
        """
        levels, parents = self.levels, set(self.parents)
        rows = [0] * self.depth
        for parent in parents:
            rows[0 if parent < 0 else levels[parent]] += 1
        return tuple(rows)

    @property
    def leaves(self) -> tuple[int, ...]:
        """Nodes without children."""
        return tuple(sorted(set(range(self.nodes)) - set(self.parents)))

    @property
    def paths(self) -> tuple[Path, ...]:
        """Path of ranks to each node, in the order of the nodes."""
        found: list[Path] = []
        for parent, rank in zip(self.parents, self.ranks, strict=True):
            found.append((rank,) if parent < 0 else (*found[parent], rank))
        return tuple(found)

    @property
    def branching(self) -> int:
        """Most candidates that one node needs: highest rank + 1."""
        return max(self.ranks, default=-1) + 1


def chain(k: int) -> Tree:
    """K drafts one after the other, the best candidate each time; K = 0 is the root alone.

    >>> chain(3).draft_rows
    (1, 1, 1)
    """
    if k < 0:
        raise AcceptanceError(f"a chain of {k} drafts is impossible; give 0 or more")
    return Tree(tuple(range(-1, k - 1)), (0,) * k)


def full(branching: Sequence[int]) -> Tree:
    """Every node of level i has ``branching[i]`` children (levels from 0, the root).

    >>> full([3, 2]).rows_by_level
    (3, 6)
    """
    if any(count < 1 for count in branching):
        raise AcceptanceError(
            f"branching {list(branching)} of a full tree holds a number below 1; leave out levels that are not there"
        )
    counts, rows = [], 1
    for count in branching:
        counts.append([count] * rows)
        rows *= count
    return from_children(counts)


def from_paths(paths: Iterable[Sequence[int]]) -> Tree:
    """Tree from the lists of ranks that Medusa and EAGLE call choices, in any order.

    Parameters
    ----------
    paths
        One list of ranks per node, from the root down and from 0; every node's parent must be listed too.

    Raises
    ------
    AcceptanceError
        An empty path (the root), a repeated path, a negative rank, or a path whose parent is missing.

    Examples
    --------
    >>> from_paths([[0], [0, 0], [0, 1], [1]]).rows_by_level
    (2, 2)
    """
    listed = [tuple(path) for path in paths]
    number: dict[Path, int] = {(): -1}
    for path in sorted(listed, key=lambda path: (len(path), path)):
        if not path:
            raise AcceptanceError("an empty path is the root, which is not drafted; leave it out")
        if path in number:
            raise AcceptanceError(f"path {list(path)} is listed twice; name each node of the tree once")
        if min(path) < 0:
            raise AcceptanceError(f"path {list(path)} holds a negative rank; the best candidate has rank 0")
        if path[:-1] not in number:
            raise AcceptanceError(
                f"path {list(path)} has no parent in the tree; list {list(path[:-1])} too, or leave it out"
            )
        number[path] = len(number) - 1
    del number[()]
    return Tree(tuple(number.get(path[:-1], -1) for path in number), tuple(path[-1] for path in number))


def from_children(counts: Iterable[Sequence[int]]) -> Tree:
    """Tree from how many children each node has, level by level: the compact form of the shipped trees.

    Parameters
    ----------
    counts
        ``[[children of the root], [children of each node of level 1], ...]``; the children of a node take
        ranks 0, 1, ... Nodes at the end of a level that have none may be left out.

    Raises
    ------
    AcceptanceError
        More counts than nodes on a level, or a negative count.

    Examples
    --------
    >>> from_children([[2], [2]]).paths
    ((0,), (1,), (0, 0), (0, 1))
    """
    parents: list[int] = []
    ranks: list[int] = []
    above = [-1]
    for level, row in enumerate(counts):
        if len(row) > len(above) or any(count < 0 for count in row):
            raise AcceptanceError(
                f"level {level} of the tree has {len(above)} nodes, but child counts {list(row)}; give one count of "
                "0 or more per node"
            )
        born = [(node, rank) for node, count in zip(above, row, strict=False) for rank in range(count)]
        above = list(range(len(parents), len(parents) + len(born)))
        parents += [node for node, _ in born]
        ranks += [rank for _, rank in born]
    return Tree(tuple(parents), tuple(ranks))


def children_of(tree: Tree) -> dict[int, list[int]]:
    """Children of each node that has any, best first; the root is -1."""
    found: dict[int, list[int]] = {}
    for node, parent in enumerate(tree.parents):
        found.setdefault(parent, []).append(node)
    for born in found.values():
        born.sort(key=tree.ranks.__getitem__)
    return found


def describe(tree: Tree) -> str:
    """Return the tree in one line, for tables and plots.

    >>> describe(chain(3))
    '3 nodes, depth 3 (1 + 1 + 1)'
    """
    return f"{tree.nodes} nodes, depth {tree.depth} ({' + '.join(map(str, _rows(tree)))})"


def _rows(tree: Tree) -> Iterator[int]:
    yield from tree.rows_by_level or (0,)
