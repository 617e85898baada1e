"""Dynamic trees of EAGLE-2, EAGLE-3 and SGLang: their cost is fixed by three options, their shape by the context."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rooflinekit.errors import AcceptanceError
from rooflinekit.tree.rank_acceptance import RankAcceptance
from rooflinekit.tree.shape import Path, Tree, from_paths


@dataclass(frozen=True, slots=True)
class EngineShape:
    """What a dynamic tree costs, whatever it looks like in a round.

    Attributes
    ----------
    steps
        Levels drafted (``--speculative-num-steps``): the depth of the tree at most.
    topk
        Candidates per node, and nodes of a level that get any (``--speculative-eagle-topk``).
    width
        Rows of the verify, **the root included** (``--speculative-num-draft-tokens``; EAGLE-2's and EAGLE-3's
        printed 60 counts the root too).
    """

    steps: int
    topk: int
    width: int

    @property
    def nodes(self) -> int:
        """Drafted nodes that are verified."""
        return self.width - 1

    @property
    def depth(self) -> int:
        """Most tokens a round can accept."""
        return min(self.steps, self.nodes)

    @property
    def draft_rows(self) -> tuple[int, ...]:
        """Rows per sequence of each draft pass: the root first (with the last round's tokens), then ``topk``."""
        return (1, *(self.topk,) * (self.steps - 1))

    @property
    def candidates(self) -> int:
        """Nodes drafted, of which ``nodes`` are kept: topk, then topk^2 on every further level."""
        return self.topk + (self.steps - 1) * self.topk**2


def eagle2_shape(steps: int, topk: int, draft_tokens: int) -> EngineShape:
    """Shape of EAGLE-2's dynamic tree (Li et al. 2024, arXiv:2406.16858), in SGLang's options.

    The first pass runs over the root and gives ``topk`` candidates; each later pass runs over the ``topk``
    likeliest nodes of the last level. Of all candidates the ``draft_tokens - 1`` likeliest are verified.

    Parameters
    ----------
    steps, topk, draft_tokens
        ``--speculative-num-steps``, ``--speculative-eagle-topk``, ``--speculative-num-draft-tokens``.

    Raises
    ------
    AcceptanceError
        A number below 1 (2 for the draft tokens), or more draft tokens than there are candidates.

    Examples
    --------
    >>> eagle2_shape(5, 8, 32).draft_rows
    (1, 8, 8, 8, 8)
    """
    if steps < 1 or topk < 1 or draft_tokens < 2:
        raise AcceptanceError(
            f"a tree of {steps} steps, top-{topk} and {draft_tokens} draft tokens is empty; give at least "
            "1, 1 and 2 (the root counts)"
        )
    shape = EngineShape(steps, topk, draft_tokens)
    if shape.nodes > shape.candidates:
        raise AcceptanceError(
            f"{draft_tokens} draft tokens cannot be filled: {steps} steps of top-{topk} give {shape.candidates} "
            f"candidates and the root; lower the draft tokens to {shape.candidates + 1} or raise steps or top-k"
        )
    return shape


def eagle2_tree(acceptance: RankAcceptance, shape: EngineShape) -> Tree:
    """Tree that EAGLE-2's rule picks when the drafter's confidence is the rank acceptance itself.

    On every level the ``topk`` likeliest nodes get ``topk`` candidates each; the likeliest candidates stay.

    Notes
    -----
    An estimate with two errors of opposite sign. The real tree follows the context, which a tree for the
    average context cannot, so it can accept more. But the engine ranks nodes by the *drafter's* probability:
    where that is lower than the acceptance (as under greedy decoding), it spreads the nodes too widely, and
    published runs of small trees mostly accept less than a chain of the same width (SpecForge's spec_bundle,
    EAGLE-3 in SGLang: of 70 pairs at widths 6 and 8, top-3 and top-4, 53 trees are below the chain; Llama-3.1-8B,
    MT-Bench, width 6: 3.01 tokens against 3.52).
    """
    rates = acceptance.limited(shape.topk)
    beam: list[tuple[float, Path]] = [(1.0, ())]
    found: list[tuple[float, Path]] = []
    for level in range(1, shape.steps + 1):
        born = [
            (value * rate, (*path, rank))
            for value, path in beam
            for rank, rate in enumerate(rates.row(level))
        ]
        beam = sorted(born, key=lambda one: -one[0])[: shape.topk]
        found += born
    # Stable, and levels come in order: a parent is never behind its child.
    order = np.argsort([-value for value, _ in found], kind="stable")[: shape.nodes]
    return from_paths(found[i][1] for i in order)
