"""The draft tree for a device: how many nodes and how deep, given the times of verify and draft passes.

Sequoia's second step (Chen et al. 2024, arXiv:2402.12374): with G(n, d) the largest expected acceptance length
of n drafted nodes on d levels, take the n and d with the least time per token::

    (T_q(n, d) + T_v(n + 1) + h) / G(n, d)

Times come in as functions or tables, so that any model of them, or a measured table, will do.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rooflinekit.errors import AcceptanceError
from rooflinekit.limits import NEAR
from rooflinekit.tree import RankAcceptance, Tree, best_first, draft_rows_grid, growth
from rooflinekit.tree.times import Times, passes_s, sizes, times_at

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Surface:
    """Every choice; all arrays have shape ``(len(nodes), len(depths))`` or broadcast to it.

    Attributes
    ----------
    nodes, depths
        Drafted nodes tried, and most levels tried.
    acceptance_length
        G(n, d), bonus token included.
    draft_s, verify_s, host_s
        T_q, T_v, h of a round (s).
    plain_s
        A plain step, host included (s).
    overlap
        Share of the shorter of drafting and verify that runs beside the longer (0..1).
    """

    nodes: NDArray[np.int64]
    depths: NDArray[np.int64]
    acceptance_length: Floats
    draft_s: Floats
    verify_s: Floats
    host_s: Floats
    plain_s: float
    overlap: float = 0.0

    @property
    def round_s(self) -> Floats:
        """A round, host included (s)."""
        hidden_s = self.overlap * np.minimum(self.draft_s, self.verify_s)
        return self.draft_s + self.verify_s + self.host_s - hidden_s

    @property
    def speedup(self) -> Floats:
        """Tokens per second over those of plain decoding."""
        return self.acceptance_length * self.plain_s / self.round_s


@dataclass(frozen=True, slots=True)
class Freed:
    """The best speedup if one term of the round cost nothing, and the tree that would then be best."""

    term: str
    speedup: float
    nodes: int
    depth: int


@dataclass(frozen=True, slots=True)
class TreeChoice:
    """The answer.

    Attributes
    ----------
    tree
        The best tree; ``tree.nodes`` and ``tree.depth`` are its size.
    acceptance_length, speedup, round_s
        Of that tree; tokens per round, ratio, s.
    surface
        All choices.
    near_best
        ``(nodes, depth)`` of every choice within 1 % of the best, fewest nodes first. Choices whose depth the
        best tree of so many nodes does not use are left out: they are the same tree.
    chain_k, chain_speedup
        The best chain under the same times, for comparison.
    freed
        What each term costs: best speedup without it, the term that limits most first.
    at_edge
        Whether the grid ends at this choice in nodes or depth, so that a larger one might be better.
    """

    tree: Tree
    acceptance_length: float
    speedup: float
    round_s: float
    surface: Surface
    near_best: tuple[tuple[int, int], ...]
    chain_k: int
    chain_speedup: float
    freed: tuple[Freed, ...]
    at_edge: bool

    @property
    def pays(self) -> bool:
        """Whether the speedup exceeds 1."""
        return self.speedup > 1.0

    @property
    def limit(self) -> str:
        """What limits the speedup, in one sentence."""
        first = self.freed[0]
        edge = "; the grid ends at this tree, so a larger one may be better" if self.at_edge else ""
        if first.speedup <= self.speedup * (1 + 1e-9):
            return f"acceptance limits it: drafting, wider verifies and the host cost nothing here{edge}"
        return (
            f"{first.term} limits it most: if that cost nothing, {first.nodes} nodes of depth {first.depth} would give "
            f"{first.speedup:.2f}x instead of {self.speedup:.2f}x{edge}"
        )

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON, without the surface."""
        return {
            "nodes": self.tree.nodes,
            "width": self.tree.width,
            "depth": self.tree.depth,
            "paths": [list(path) for path in self.tree.paths],
            "draft_rows": list(self.tree.draft_rows),
            "acceptance_length": self.acceptance_length,
            "round_s": self.round_s,
            "speedup": self.speedup,
            "pays": self.pays,
            "near_best": [{"nodes": nodes, "depth": depth} for nodes, depth in self.near_best],
            "chain": {"k": self.chain_k, "speedup": self.chain_speedup},
            "limit": self.limit,
            "freed": [asdict(one) for one in self.freed],
        }


def choose_tree(  # noqa: PLR0913 - times of five kinds and two sizes, by name
    acceptance: RankAcceptance,
    *,
    verify_s: Times,
    plain_s: float,
    draft_pass_s: Times = 0.0,
    draft_once_s: float = 0.0,
    host_s: Times = 0.0,
    overlap: float = 0.0,
    max_nodes: int = 64,
    max_depth: int = 16,
) -> TreeChoice:
    """Find the number of nodes and the depth with the highest speedup, by exact search over the grid.

    Parameters
    ----------
    acceptance
        Rank acceptance.
    verify_s
        T_v by width (rows per sequence, the root included). With a table, only its widths are tried.
    plain_s
        A plain decode step, host included (s).
    draft_pass_s
        Time of one pass of a serial drafter by its rows per sequence: the first runs over the root, each
        later one over the nodes of a level that have children. 0 for a drafter that runs once.
    draft_once_s
        Drafting that a round pays once, whatever the tree: Medusa's heads, a block, the first pass's extra rows.
    host_s
        h by width.
    overlap
        Share of the shorter of drafting and verify that runs beside the longer (0..1).
    max_nodes, max_depth
        Largest tree to try.

    Raises
    ------
    AcceptanceError
        An empty grid, a table too short for it, or a time that is not positive.

    Notes
    -----
    For each (n, d) the tree with the largest G is timed. Where a draft pass costs more with more rows, a tree of
    slightly smaller G but fewer parents might be faster; Sequoia's search has the same limit.

    Examples
    --------
    >>> rates = RankAcceptance(((0.6, 0.2),))
    >>> found = choose_tree(rates, verify_s=lambda rows: 1 + 0.05 * rows, plain_s=1.05, draft_pass_s=0.1)
    >>> found.tree.nodes, found.tree.depth, round(found.speedup, 2)
    (5, 2, 1.68)
    """
    surface = _surface(
        acceptance, verify_s, plain_s, draft_pass_s, draft_once_s, host_s, (max_nodes, max_depth)
    )
    surface = replace(surface, overlap=overlap)
    speedup = surface.speedup
    i, j = np.unravel_index(int(np.argmax(speedup)), speedup.shape)
    nodes, depth = int(surface.nodes[i]), int(surface.depths[j])
    tree = best_first(acceptance, nodes, depth)
    chain_k, chain_speedup = _best_chain(acceptance, surface, draft_pass_s, draft_once_s)
    return TreeChoice(
        tree=tree,
        acceptance_length=float(surface.acceptance_length[i, j]),
        speedup=float(speedup[i, j]),
        round_s=float(surface.round_s[i, j]),
        surface=surface,
        near_best=_near(surface),
        chain_k=chain_k,
        chain_speedup=chain_speedup,
        freed=_freed(surface),
        at_edge=bool(nodes == surface.nodes[-1] or depth == surface.depths[-1]),
    )


def _surface(
    acceptance: RankAcceptance,
    verify_s: Times,
    plain_s: float,
    draft_pass_s: Times,
    draft_once_s: float,
    host_s: Times,
    most: tuple[int, int],
) -> Surface:
    max_nodes, max_depth = most
    tried = sizes(verify_s, max_nodes)
    if max_depth < 1 or not len(tried) or not plain_s > 0.0:
        raise AcceptanceError(
            f"no tree can be chosen from {len(tried)} sizes, depth {max_depth} and a plain step of {plain_s:g} s; give "
            "at least one of each and a positive time"
        )
    widths = np.asarray(tried + 1, dtype=np.float64)
    rows = draft_rows_grid(acceptance, max_nodes, max_depth)[tried][:, 1:]
    verify = times_at(verify_s, widths, "verify_s")
    if not np.all(verify > 0.0):
        raise AcceptanceError(f"verify_s holds {verify.min():g} s; give positive times")
    return Surface(
        nodes=tried,
        depths=np.arange(1, max_depth + 1),
        acceptance_length=growth(acceptance, max_nodes, max_depth)[tried][:, 1:],
        draft_s=draft_once_s + passes_s(draft_pass_s, rows),
        verify_s=verify[:, None],
        host_s=times_at(host_s, widths, "host_s")[:, None],
        plain_s=plain_s,
    )


def _near(surface: Surface) -> tuple[tuple[int, int], ...]:
    """Choices within 1 % of the best; of depths with the same tree, the first."""
    speedup, length = surface.speedup, surface.acceptance_length
    near = speedup >= (1 - NEAR) * speedup.max()
    near[:, 1:] &= np.diff(length, axis=1) > 0.0
    return tuple((int(surface.nodes[i]), int(surface.depths[j])) for i, j in np.argwhere(near))


def _best_chain(
    acceptance: RankAcceptance, surface: Surface, draft_pass_s: Times, draft_once_s: float
) -> tuple[int, float]:
    """Best chain among the sizes and depths of the grid; K = 0 and no gain where none of its sizes is a chain's."""
    best = (0, 1.0)
    lengths = growth(acceptance.limited(1), int(surface.depths[-1]), int(surface.depths[-1])).diagonal()
    kept = np.flatnonzero(surface.nodes <= surface.depths[-1])
    ks = surface.nodes[kept]
    if len(ks):
        each = float(times_at(draft_pass_s, np.ones(1), "draft_pass_s")[0])
        verify_s, host_s = surface.verify_s[kept, 0], surface.host_s[kept, 0]
        chains = replace(
            surface,
            acceptance_length=lengths[ks],
            draft_s=np.asarray(draft_once_s + ks * each, dtype=np.float64),
            verify_s=verify_s,
            host_s=host_s,
        )
        speedup = chains.speedup
        at = int(np.argmax(speedup))
        best = int(ks[at]), float(speedup[at])
    return best


def _freed(surface: Surface) -> tuple[Freed, ...]:
    """Best speedup of the grid without drafting, without the growth of the verify, without the host."""
    found = []
    freed = {
        "drafting": replace(surface, draft_s=0.0 * surface.draft_s),
        "the verify of more rows": replace(
            surface, verify_s=np.minimum(surface.verify_s, surface.verify_s[:1])
        ),
        "host time": replace(surface, host_s=0.0 * surface.host_s),
    }
    for term, one in freed.items():
        speedup = one.speedup
        i, j = np.unravel_index(int(np.argmax(speedup)), speedup.shape)
        found.append(Freed(term, float(speedup[i, j]), int(surface.nodes[i]), int(surface.depths[j])))
    return tuple(sorted(found, key=lambda one: -one.speedup))
