"""How often the target accepts the first, second, third ... candidate of a drafter, and what a tree yields.

Siblings are alternatives: the target's token equals at most one of them, so the events exclude each other
and their probabilities add. A node is accepted when every node on its path is, hence (Chen et al. 2024,
Sequoia, arXiv:2402.12374, and the node values of Cai et al. 2024, Medusa, arXiv:2401.10774)::

    P(node) = product of the rank probabilities on its path
    S_i     = sum of P over the nodes of level i
    A       = 1 + sum of P over all nodes = 1 + sum of S_i
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rooflinekit.errors import AcceptanceError
from rooflinekit.evidence import Kind
from rooflinekit.tree.shape import Tree

Floats = NDArray[np.float64]

MARGINAL = (
    "head accuracies are marginal and teacher-forced (each head alone, on the right prefix): used as if they were "
    "conditional on the path, they understate how often right heads go together"
)
"""What is wrong with head accuracies as rank acceptance; stands in ``source`` of what is made from them."""


@dataclass(frozen=True, slots=True)
class RankAcceptance:
    """Probability that the candidate of a rank is the accepted one, given that its parent was.

    Attributes
    ----------
    rates
        ``rates[i][r]``: the candidate of rank r (from 0) on level i + 1. The last row holds for all deeper
        levels; ranks beyond a row were not measured and count as never accepted.
    tried
        For each row, how many times a node of the level above was accepted and had candidates; none when
        the rates were not counted.
    kind
        Evidence: measured, fitted or assumed.
    source
        Where the rates come from and what is assumed of them.

    Raises
    ------
    AcceptanceError
        A rate outside 0..1, or a row whose sum exceeds 1.
    """

    rates: tuple[tuple[float, ...], ...]
    tried: tuple[int, ...] | None = None
    kind: Kind = "assumed"
    source: str = ""

    def __post_init__(self) -> None:
        """Refuse rows that no drafter can have."""
        if not self.rates or not all(self.rates):
            raise AcceptanceError(
                "rank acceptance without rates says nothing; give one row of rates per level"
            )
        for level, row in enumerate(self.rates, start=1):
            if not all(0.0 <= rate <= 1.0 for rate in row):
                raise AcceptanceError(
                    f"rank acceptance {list(row)} on level {level} is not all in 0..1; give probabilities"
                )
            if sum(row) > 1.0 + 1e-9:
                raise AcceptanceError(
                    f"rank acceptance on level {level} sums to {sum(row):g}: at most one candidate is accepted, so it "
                    "cannot exceed 1; take differences if these are top-1, top-2 ... accuracies"
                )
        if self.tried is not None and (len(self.tried) != len(self.rates) or min(self.tried) < 1):
            raise AcceptanceError(
                f"{len(self.rates)} rows of rank acceptance need as many positive counts, not {list(self.tried)}"
            )

    @property
    def rounds(self) -> int | None:
        """Rounds it was counted on."""
        return self.tried[0] if self.tried else None

    @property
    def label(self) -> str:
        """The first row in short."""
        shown = ", ".join(f"{rate:.3g}" for rate in self.rates[0][:4])
        return f"rank acceptance {shown}" + (", ..." if len(self.rates[0]) > 4 else "")

    def row(self, level: int) -> tuple[float, ...]:
        """Rates by rank on a level (from 1)."""
        return self.rates[min(level, len(self.rates)) - 1]

    def path_probabilities(self, tree: Tree) -> Floats:
        """P(node) for each node: the target accepts the whole path down to it.

        Returns
        -------
        array
            Shape ``(tree.nodes,)``.
        """
        found = np.zeros(tree.nodes)
        for node, (parent, rank, level) in enumerate(zip(tree.parents, tree.ranks, tree.levels, strict=True)):
            row = self.row(level)
            found[node] = (row[rank] if rank < len(row) else 0.0) * (found[parent] if parent >= 0 else 1.0)
        return found

    def survival(self, tree: Tree) -> Floats:
        """S_i: probability that at least i drafts are accepted, i = 1 .. depth; shape ``(tree.depth,)``."""
        levels = np.asarray(tree.levels, dtype=int)
        return np.asarray(np.bincount(levels, self.path_probabilities(tree), tree.depth + 1)[1:], dtype=float)

    def distribution(self, tree: Tree) -> Floats:
        """Probability that exactly i drafts are accepted, i = 0 .. depth; shape ``(tree.depth + 1,)``."""
        return -np.diff(np.concatenate([[1.0], self.survival(tree), [0.0]]))

    def expected(self, tree: Tree) -> float:
        """Acceptance length A of a tree, bonus token included (tokens per round)."""
        return 1.0 + float(self.path_probabilities(tree).sum())

    def unmeasured(self, tree: Tree) -> int:
        """Nodes whose rank was not measured: they count as never accepted, so A is a lower bound by them."""
        return sum(rank >= len(self.row(level)) for rank, level in zip(tree.ranks, tree.levels, strict=True))

    def limited(self, branching: int) -> RankAcceptance:
        """Keep the best ``branching`` ranks only."""
        if branching < 1:
            raise AcceptanceError(f"a branching of {branching} leaves no candidate; give 1 or more")
        return replace(self, rates=tuple(row[:branching] for row in self.rates))

    def draws(self, count: int, seed: int = 0) -> list[RankAcceptance]:
        """Rates drawn from the Dirichlet posterior of each row (prior: one trial in all).

        Raises
        ------
        AcceptanceError
            The rates were not counted.
        """
        if self.tried is None:
            raise AcceptanceError(
                "rank acceptance without counts has no interval; give how often each row was tried"
            )
        rng = np.random.default_rng(seed)
        rows = []
        for row, tried in zip(self.rates, self.tried, strict=True):
            cells = np.array([*row, max(0.0, 1.0 - sum(row))])
            rows.append(rng.dirichlet(cells * tried + 1.0 / len(cells), size=count)[:, :-1])
        return [
            replace(self, rates=tuple(tuple(float(rate) for rate in row[i]) for row in rows))
            for i in range(count)
        ]


def from_conditional(
    conditional: Sequence[float], rank_decay: float, ranks: int = 10, *, source: str = ""
) -> RankAcceptance:
    """Rates from what a chain measures and one more number for the other candidates.

    The best candidate of level i is accepted with ``alpha_i``; given that the better ones were refused, the
    candidate of rank r is accepted with ``alpha_i decay^r``::

        p_r = alpha_i decay^r (1 - alpha_i) (1 - alpha_i decay) ... (1 - alpha_i decay^(r-1))

    so that a row never sums beyond 1; decay 0 is the chain, decay 1 makes all candidates equally good.

    Parameters
    ----------
    conditional
        alpha_i by level (0..1); the last holds for all deeper ones. One value: a constant alpha.
    rank_decay
        Factor from one rank to the next (0..1), an assumption or a fit to one measured tree.
    ranks
        Candidates per node that are described.
    source
        Where alpha_i and decay come from.

    Examples
    --------
    >>> [round(rate, 6) for rate in from_conditional([0.8], 0.5, 3).rates[0]]
    [0.8, 0.08, 0.024]
    """
    if not 0.0 <= rank_decay <= 1.0:
        raise AcceptanceError(
            f"rank decay {rank_decay:g} is not in 0..1; give the factor from one candidate to the next"
        )
    if ranks < 1:
        raise AcceptanceError(f"{ranks} ranks describe no candidate; give 1 or more")
    if not conditional or not all(0.0 <= rate <= 1.0 for rate in conditional):
        raise AcceptanceError(
            f"conditional rates {list(conditional)} are empty or not all in 0..1; give probabilities"
        )
    rows = []
    for alpha in conditional:
        row, left = [], 1.0
        for rank in range(ranks):
            row.append(left * alpha * rank_decay**rank)
            left *= 1.0 - alpha * rank_decay**rank
        rows.append(tuple(row))
    said = (
        source
        or f"alpha {', '.join(f'{one:g}' for one in conditional[:5])}, rank decay {rank_decay:g} (assumed)"
    )
    return RankAcceptance(tuple(rows), source=said)


def from_alpha(alpha: float, rank_decay: float, ranks: int = 10) -> RankAcceptance:
    """Rates from a constant alpha and a rank decay: :func:`from_conditional` with one level."""
    return from_conditional([alpha], rank_decay, ranks)


def from_top_accuracies(accuracies: Sequence[Sequence[float]], *, source: str = "") -> RankAcceptance:
    """Rates from the top-1, top-2, ... accuracies of Medusa's heads, one row per head.

    The candidate of rank r is right with ``top_(r+1) - top_r``. These are marginal: see :data:`MARGINAL`.

    Parameters
    ----------
    accuracies
        Per head, non-decreasing fractions: how often the right token is among the best 1, 2, ...
    source
        Where they were measured.

    Raises
    ------
    AcceptanceError
        A row that falls.

    Examples
    --------
    >>> from_top_accuracies([[0.5, 0.75]]).rates
    ((0.5, 0.25),)
    """
    for head, row in enumerate(accuracies, start=1):
        if any(after < before for before, after in pairwise(row)):
            raise AcceptanceError(
                f"top-1, top-2 ... accuracies {list(row)} of head {head} fall; give how often the right token is among "
                "the best 1, 2, ..."
            )
    rates = tuple(tuple(float(step) for step in np.diff([0.0, *row])) for row in accuracies)
    return RankAcceptance(rates, source=f"{source}; {MARGINAL}" if source else MARGINAL)


def from_counts(
    accepted: Sequence[Sequence[int]], tried: Sequence[int], *, source: str = ""
) -> RankAcceptance:
    """Measured rates: ``accepted[i][r]`` of ``tried[i]`` times the candidate of rank r on level i + 1 was right.

    >>> from_counts([[60, 20]], [100]).rates
    ((0.6, 0.2),)
    """
    if len(accepted) != len(tried) or any(count < 1 for count in tried):
        raise AcceptanceError(
            f"{len(accepted)} rows of accepted candidates need as many positive counts, not {list(tried)}"
        )
    rates = tuple(tuple(one / count for one in row) for row, count in zip(accepted, tried, strict=True))
    return RankAcceptance(rates, tuple(tried), "measured", source)
