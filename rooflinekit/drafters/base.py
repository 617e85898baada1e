"""The contract every drafter keeps: a plan of passes, a verify width, and the memory it takes."""

from __future__ import annotations

from typing import Protocol

from rooflinekit.precision import Precision
from rooflinekit.work import Pass, Real


class Drafter(Protocol):
    """A way of drafting, described by the work one round costs.

    A new drafter is one file in this folder with one frozen class and a ``for_target`` or ``from_config``
    constructor, named in ``drafters.BUILDERS``; the contract tests pick it up.
    """

    @property
    def name(self) -> str:
        """Short name (the word of ``--drafter``)."""
        ...

    @property
    def title(self) -> str:
        """One line: shape and where it comes from."""
        ...

    @property
    def max_k(self) -> int | None:
        """Largest K: the trained block of a block drafter; ``None`` for any."""
        ...

    @property
    def k_rule(self) -> str:
        """Where the limit of K comes from, for people; for a serial drafter, what its config proposes."""
        ...

    @property
    def own_params(self) -> int:
        """Parameters that are the drafter's own; tables shared with the target not counted."""
        ...

    @property
    def serial_passes(self) -> str:
        """Passes per round one after the other, for people: ``K`` or ``1`` or ``1 + K light``."""
        ...

    def plan(
        self, *, k: Real, batch: Real, context: Real, refresh: Real = 1.0, rows: Real = 1.0, tp: int = 1
    ) -> tuple[Pass, ...]:
        """Passes of one round that drafts ``k`` tokens for each of ``batch`` sequences.

        Parameters
        ----------
        k
            Drafted tokens per round (>= 1).
        batch, context
            Sequences; tokens in the target's cache.
        refresh
            Tokens the last round emitted per sequence, whose cache entries the first pass fills.
        rows
            Rows of each later pass per sequence: more than one where a tree is drafted. Drafters of one
            pass, or of heads, have no later passes and ignore it.
        tp
            Tensor-parallel ranks.
        """
        ...

    def memory_bytes(self, *, batch: Real, context: Real, tp: int = 1) -> Real:
        """Weights and cache of the drafter on one rank (B); shared tables not counted again."""
        ...

    def host_s(self, *, k: Real, batch: Real, context: Real = 0.0) -> Real:
        """Host time that drafting itself takes in a round (s); 0 for all that draft on the device.

        Parameters
        ----------
        k, batch
            Drafted tokens; sequences.
        context
            Tokens of each sequence, which a lookup searches.
        """
        ...

    @property
    def precision(self) -> Precision:
        """Its number formats."""
        ...


class OnDevice:
    """Drafters whose drafting is passes on the device: no host time beside the launches."""

    __slots__ = ()

    def host_s(self, *, k: Real, batch: Real, context: Real = 0.0) -> Real:  # noqa: ARG002
        """No host time of its own (s)."""
        return 0.0
