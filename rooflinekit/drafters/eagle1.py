"""EAGLE and EAGLE-2 as a chain: one decoder layer and the target's whole LM head per token (arXiv:2401.15077)."""

from __future__ import annotations

from dataclasses import dataclass

from rooflinekit.drafters.base import OnDevice
from rooflinekit.drafters.parts import (
    Shape,
    blocks_of,
    dense_width,
    draft_bytes,
    first_attention,
    own_layer_params,
    proposal_words,
)
from rooflinekit.llm import Block, Linear, Llm, Mlp
from rooflinekit.precision import Precision
from rooflinekit.transformer import Load, forward_pass, linear_work
from rooflinekit.work import Pass, Real, Work


@dataclass(frozen=True, slots=True)
class Eagle(OnDevice):
    """A chain of K passes; each fuses token embedding and feature, runs one layer and the target's LM head.

    EAGLE-2 has the same weights and grows its tree at run time; a chain costs the same in both.

    Attributes
    ----------
    llm
        The draft layer; ``vocab`` is the target's, whose embedding and LM head it shares.
    precision
        Number formats.
    origin
        Where the shape came from.
    proposed_k
        K that the config proposes; 0 for none.
    own_head
        Whether the LM head is a copy of some of the target's rows (a reduced vocabulary, as FR-Spec's,
        arXiv:2502.14856).
    """

    llm: Llm
    precision: Precision
    origin: str
    proposed_k: int = 0
    own_head: bool = False
    name: str = "eagle"

    @property
    def title(self) -> str:
        """Shape in one line."""
        head = f"head over {self.llm.vocab} tokens" if self.own_head else "the target's head"
        return f"{self.llm.layers} layer of width {self.llm.hidden}, {head}, {self.origin}"

    @property
    def max_k(self) -> int | None:
        """Any K."""
        return None

    @property
    def k_rule(self) -> str:
        """Any K."""
        return proposal_words(self.proposed_k)

    @property
    def serial_passes(self) -> str:
        """One pass per token."""
        return "K"

    @property
    def fusion(self) -> Linear:
        """The fc from token embedding and feature to the layer's input, run in every pass."""
        return Linear("feature fusion", self.llm.hidden, 2 * self.llm.hidden)

    @property
    def own_params(self) -> int:
        """Layer and fusion, and the head where it is the drafter's own."""
        head = self.llm.embedding_params if self.own_head else 0
        return own_layer_params(self.llm) + round(self.fusion.parameters) + head

    def _pass(self, load: Load, head_rows: Real, tp: int) -> tuple[Work, ...]:
        fusion = linear_work(self.fusion, load.rows, self.precision)
        return fusion, *forward_pass(self.llm, load, self.precision, tp, head_rows)

    def plan(
        self, *, k: Real, batch: Real, context: Real, refresh: Real = 1.0, rows: Real = 1.0, tp: int = 1
    ) -> tuple[Pass, ...]:
        """First pass over the tokens of the last round, then K - 1 of ``rows``; fusion and head in each."""
        return (
            Pass(self._pass(Load(batch, context, refresh), batch, tp), 1.0, "first draft"),
            Pass(self._pass(Load(batch, context, rows), batch * rows, tp), k - 1.0, "later drafts"),
        )

    def memory_bytes(self, *, batch: Real, context: Real, tp: int = 1) -> Real:
        """Layer, fusion (on every rank) and draft cache; embedding and mostly the LM head are the target's."""
        return draft_bytes(
            self.llm, self.fusion, self.precision, batch=batch, context=context, tp=tp, own_head=self.own_head
        )


def _drafter(blocks: tuple[Block, ...], target: Llm, precision: Precision, origin: str, k: int = 0) -> Eagle:
    # No last norm: the one vector that an Llm counts outside its layers is the bias of the fc.
    llm = Llm(name="eagle", hidden=target.hidden, vocab=target.vocab, blocks=blocks, tied=True)
    return Eagle(llm, precision, origin, k)


def for_target(target: Llm, precision: Precision) -> Eagle:
    """EAGLE with the target's own layer shape (its layer has no norm before attention)."""
    block = Block(1, first_attention(target), Mlp(intermediate=dense_width(target)), norms=1)
    return _drafter((block,), target, precision, f"shape assumed from {target.name}")


def from_shape(shape: Shape, target: Llm, precision: Precision, origin: str) -> Eagle:
    """EAGLE from the numbers of its config.json."""
    return _drafter(blocks_of(shape, norms=1), target, precision, origin, shape.get("proposed_k", 0))
