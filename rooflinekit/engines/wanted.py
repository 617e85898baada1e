"""What is asked of an engine: a drafter and its K, a tree, a schedule over the batch, a survival to force."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from rooflinekit.errors import AcceptanceError, RooflineError

DRAFT_MODEL = "DRAFT_MODEL"
"""Stands for the path of the drafter's weights, which only the user knows."""

OWN_MODULES = "mtp"
"""The drafter whose weights lie in the target's checkpoint: no engine needs a path for it."""

Ranges = tuple[tuple[int, int, int], ...]
"""Batch sizes from ... to (both included) and their K."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A drafter as an engine is to run it.

    Attributes
    ----------
    drafter
        Short name.
    k
        Drafted tokens of a chain, depth of a tree (bonus token and anchor not counted).
    topk
        Candidates that a node of the tree branches into; 1 for a chain.
    nodes
        Tokens verified per round, root included.
    layers
        Layers that self-speculation drafts with; 0 where it is not told.
    """

    drafter: str
    k: int
    topk: int = 1
    nodes: int = 0
    layers: int = 0

    @property
    def is_tree(self) -> bool:
        """Whether anything branches."""
        return self.topk > 1


def checked_schedule(schedule: Sequence[tuple[int, int, int]]) -> Ranges:
    """The ranges of a schedule, neighbours of the same K joined.

    Raises
    ------
    RooflineError
        They do not start at batch 1, leave a gap or overlap, or a K is negative.
    """
    joined: list[tuple[int, int, int]] = []
    expected = 1
    for first, last, k in schedule:
        if first != expected or last < first or k < 0:
            raise RooflineError(
                f"schedule range {first}-{last} with K = {k} does not continue at batch {expected}; give ranges "
                "(first, last, K) from batch 1 on without gaps, each K at least 0"
            )
        expected = last + 1
        if joined and joined[-1][2] == k:
            joined[-1] = (joined[-1][0], last, k)
        else:
            joined.append((first, last, k))
    if not joined:
        raise RooflineError("the schedule is empty; give at least one range (first batch, last batch, K)")
    return tuple(joined)


def checked_survival(survival: Sequence[float]) -> tuple[float, ...]:
    """Survival as engines take it: each in 0..1, none above the one before.

    Raises
    ------
    AcceptanceError
        It is empty, or no survival.
    """
    found = tuple(float(value) for value in survival)
    falls = all(later <= earlier for earlier, later in pairwise(found))
    if not found or not falls or not all(0.0 <= value <= 1.0 for value in found):
        raise AcceptanceError(
            f"survival {list(found)} cannot be forced on an engine; give P(first i drafts accepted) for i = 1 .. K, "
            "each in 0..1 and none above the one before"
        )
    return found


def number(value: float) -> str:
    """A number as options and JSON take it."""
    return f"{value:.6g}"
