"""What runs through a pass: sequences, their context, and the new rows of each."""

from __future__ import annotations

from dataclasses import dataclass

from rooflinekit.work import Real


@dataclass(frozen=True, slots=True)
class Load:
    """What runs through a pass.

    Attributes
    ----------
    batch
        Concurrent sequences.
    context
        Tokens already in the cache, per sequence.
    width
        New rows per sequence: 1 in a decode step, K+1 in a verify, the prompt in a prefill.
    prefill
        Whether the rows are a prompt: the LM head then runs on the last one only, and MLA in expanded form.
    routing_overlap
        How much neighbouring tokens share experts, 0 (independent) to 1 (the same).
    last_row_only
        Whether only the last row of each sequence meets the LM head (always so in a prefill).
    """

    batch: Real = 1.0
    context: Real = 0.0
    width: Real = 1.0
    prefill: bool = False
    routing_overlap: float = 0.0
    last_row_only: bool = False

    @property
    def rows(self) -> Real:
        """Rows of the linear layers."""
        return self.batch * self.width

    @property
    def head_rows(self) -> Real:
        """Rows of the LM head: all of a verify, the last of each prompt."""
        return self.batch if self.prefill or self.last_row_only else self.rows
