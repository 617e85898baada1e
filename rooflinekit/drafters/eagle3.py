"""EAGLE-3: one decoder layer on fused target features, one pass per drafted token (arXiv:2503.01840)."""

from __future__ import annotations

from dataclasses import dataclass

from rooflinekit.drafters.base import OnDevice
from rooflinekit.drafters.parts import (
    Shape,
    blocks_of,
    dense_width,
    draft_bytes,
    first_attention,
    proposal_words,
)
from rooflinekit.llm import Block, Linear, Llm, Mlp
from rooflinekit.precision import Precision
from rooflinekit.transformer import Load, forward_pass, linear_work
from rooflinekit.work import Pass, Real, Work

DRAFT_VOCAB = 32_000
FUSED_LAYERS = 3


@dataclass(frozen=True, slots=True)
class Eagle3(OnDevice):
    """A chain of K passes through one small layer and an LM head over a reduced vocabulary.

    Attributes
    ----------
    llm
        The draft layers; ``vocab`` is the draft vocabulary. The first layer's input is twice as wide as
        the model (token embedding beside feature).
    target_hidden
        Width of the target's hidden states.
    precision
        Number formats.
    origin
        Where the shape came from.
    fused
        Hidden states of the target that the fusion fc takes.
    proposed_k
        K that the config proposes; 0 for none.
    """

    llm: Llm
    target_hidden: int
    precision: Precision
    origin: str
    fused: int = FUSED_LAYERS
    proposed_k: int = 0
    name: str = "eagle3"

    @property
    def title(self) -> str:
        """Shape in one line."""
        vocabulary = f"head over {self.llm.vocab} tokens"
        return f"{self.llm.layers} layer of width {self.llm.hidden}, {vocabulary}, {self.origin}"

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
        """The fc that fuses several of the target's hidden states into one."""
        return Linear("feature fusion", self.llm.hidden, self.fused * self.target_hidden)

    @property
    def own_params(self) -> int:
        """Layer, fusion and draft head; the embedding is the target's."""
        return self.llm.total_params + round(self.fusion.parameters)

    def _pass(self, load: Load, head_rows: Real, tp: int) -> tuple[Work, ...]:
        return forward_pass(self.llm, load, self.precision, tp, head_rows)

    def plan(
        self, *, k: Real, batch: Real, context: Real, refresh: Real = 1.0, rows: Real = 1.0, tp: int = 1
    ) -> tuple[Pass, ...]:
        """Fusion fc once per round; first pass over the tokens of the last round, then K - 1 of ``rows``."""
        first = Load(batch, context, refresh)
        fusion = linear_work(self.fusion, first.rows, self.precision)
        return (
            Pass((fusion, *self._pass(first, batch, tp)), 1.0, "first draft"),
            Pass(self._pass(Load(batch, context, rows), batch * rows, tp), k - 1.0, "later drafts"),
        )

    def memory_bytes(self, *, batch: Real, context: Real, tp: int = 1) -> Real:
        """Layer, fusion (on every rank) and draft head, and the draft cache; the target's embedding is shared."""
        return draft_bytes(
            self.llm, self.fusion, self.precision, batch=batch, context=context, tp=tp, own_head=True
        )


def for_target(target: Llm, precision: Precision) -> Eagle3:
    """EAGLE-3 with the target's own layer shape, a fusion of three states and a draft vocabulary of 32,000."""
    block = Block(1, first_attention(target, 2), Mlp(intermediate=dense_width(target)), norms=3)
    vocab = min(DRAFT_VOCAB, target.vocab)
    # `tied` because the embedding is the target's: only the draft head is the drafter's own.
    llm = Llm(name="eagle3", hidden=target.hidden, vocab=vocab, blocks=(block,), tied=True)
    return Eagle3(llm, target.hidden, precision, f"shape assumed from {target.name}")


def llm_of_shape(shape: Shape, extra: int = 0) -> Llm:
    """Draft layers and draft head from the numbers of a config.json; ``extra`` further weights."""
    return Llm(
        name="eagle3",
        hidden=shape["hidden"],
        vocab=shape["draft_vocab"],
        blocks=blocks_of(shape, wide_first=True),
        tied=True,
        extra=extra + shape.get("fusion_norms", 0),
    )


def from_shape(shape: Shape, target: Llm, precision: Precision, origin: str) -> Eagle3:
    """EAGLE-3 from the numbers of its config.json."""
    width, proposed = shape.get("target_hidden") or target.hidden, shape.get("proposed_k", 0)
    fused = shape.get("fused", FUSED_LAYERS)
    return Eagle3(llm_of_shape(shape), width, precision, origin, fused, proposed)
