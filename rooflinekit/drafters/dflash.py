"""DFlash: a block of tokens in one parallel pass, conditioned on target features (arXiv:2602.06036)."""

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
)
from rooflinekit.llm import Block, Linear, Llm, Mlp
from rooflinekit.precision import Precision
from rooflinekit.transformer import Load, forward_pass, linear_work
from rooflinekit.work import Pass, Real

LAYERS = 5
BLOCK = 16
TARGET_FEATURES = 5


@dataclass(frozen=True, slots=True)
class DFlash(OnDevice):
    """One pass over the block: anchor and K masked positions, whatever K (up to the trained block).

    Attributes
    ----------
    llm
        The draft layers at the target's width; ``vocab`` is the target's, whose LM head it uses, or a
        draft vocabulary with a head of its own.
    features
        Target layers whose hidden states the fusion fc takes.
    target_hidden
        Width of the target's hidden states.
    block
        Trained block: position 0 is the known token, so K is at most ``block - 1``.
    precision
        Number formats of the drafter's own layers.
    origin
        Where the shape came from.
    own_head
        Whether the LM head is the drafter's own (a reduced vocabulary).
    """

    llm: Llm
    features: int
    target_hidden: int
    block: int
    precision: Precision
    origin: str
    own_head: bool = False
    name: str = "dflash"

    @property
    def title(self) -> str:
        """Shape in one line."""
        return f"{self.llm.layers} layers of width {self.llm.hidden}, block {self.block}, {self.origin}"

    @property
    def max_k(self) -> int | None:
        """Trained block less the anchor."""
        return self.block - 1

    @property
    def k_rule(self) -> str:
        """Trained block less the anchor."""
        return f"up to {self.block - 1}: block of {self.block} less the known token"

    @property
    def own_params(self) -> int:
        """Layers and fusion, and the head where it is the drafter's own."""
        head = self.llm.embedding_params if self.own_head else 0
        return own_layer_params(self.llm) + round(self.fusion.parameters) + head

    @property
    def serial_passes(self) -> str:
        """One pass per round."""
        return "1"

    @property
    def fusion(self) -> Linear:
        """The fc over the target's features."""
        return Linear("feature fusion", self.llm.hidden, self.features * self.target_hidden)

    def backbone(
        self, *, batch: Real, context: Real, width: Real, rows_out: Real, refresh: Real, tp: int
    ) -> Pass:
        """The parallel pass: ``width`` positions in, logits for ``rows_out`` of them."""
        load = Load(batch, context, width)
        fusion = linear_work(self.fusion, batch * refresh, self.precision)
        works = (fusion, *forward_pass(self.llm, load, self.precision, tp, batch * rows_out))
        return Pass(works, 1.0, "block pass")

    def plan(
        self,
        *,
        k: Real,
        batch: Real,
        context: Real,
        refresh: Real = 1.0,
        rows: Real = 1.0,  # noqa: ARG002 - one pass drafts a whole block: no later passes
        tp: int = 1,
    ) -> tuple[Pass, ...]:
        """One pass over K + 1 positions, the LM head over K rows."""
        one = self.backbone(batch=batch, context=context, width=k + 1.0, rows_out=k, refresh=refresh, tp=tp)
        return (one,)

    def memory_bytes(self, *, batch: Real, context: Real, tp: int = 1) -> Real:
        """Layers, fusion (on every rank) and cache; embedding and mostly the LM head are the target's."""
        return draft_bytes(
            self.llm, self.fusion, self.precision, batch=batch, context=context, tp=tp, own_head=self.own_head
        )


def backbone_llm(target: Llm, layers: int) -> Llm:
    """Draft layers of the target's width; embedding and head shared with the target."""
    block = Block(layers, first_attention(target), Mlp(intermediate=dense_width(target)))
    return _llm((block,), target.hidden, target.vocab)


def _llm(blocks: tuple[Block, ...], hidden: int, vocab: int) -> Llm:
    # Beside the last norm there is one over the fused features.
    return Llm(name="block drafter", hidden=hidden, vocab=vocab, blocks=blocks, tied=True, extra=hidden)


def llm_of_shape(shape: Shape, target: Llm) -> Llm:
    """Draft layers from the numbers of a config.json."""
    vocab = shape.get("draft_vocab") or shape.get("vocab") or target.vocab
    return _llm(blocks_of(shape), shape["hidden"], vocab)


def for_target(target: Llm, precision: Precision) -> DFlash:
    """DFlash with five layers of the target's width and block 16."""
    origin = f"shape assumed from {target.name}"
    return DFlash(backbone_llm(target, LAYERS), TARGET_FEATURES, target.hidden, BLOCK, precision, origin)


def from_shape(shape: Shape, target: Llm, precision: Precision, origin: str) -> DFlash:
    """DFlash from the numbers of its config.json."""
    llm, own = llm_of_shape(shape, target), "draft_vocab" in shape
    block, features = shape["block_size"], shape["target_layers"]
    return DFlash(llm, features, target.hidden, block, precision, origin, own)
