"""DFlash: a block of tokens in one parallel pass, conditioned on target features (arXiv:2602.06036)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rooflinekit.drafters.eagle3 import dense_width, first_attention
from rooflinekit.llm import Attention, Block, Linear, Llm, Mlp
from rooflinekit.memory import kv_cache_bytes, resident_weight_bytes
from rooflinekit.precision import Precision
from rooflinekit.transformer import Load, block_works, embedding_work, head_works, linear_work
from rooflinekit.work import Pass, Real, Work

LAYERS = 5
BLOCK = 16
TARGET_FEATURES = 5


@dataclass(frozen=True, slots=True)
class DFlash:
    """One pass over the block: anchor and K masked positions, whatever K (up to the trained block).

    Attributes
    ----------
    llm
        The draft layers at the target's width; ``vocab`` is the target's, whose LM head it uses.
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
    """

    llm: Llm
    features: int
    target_hidden: int
    block: int
    precision: Precision
    origin: str
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
        works: list[Work] = [linear_work(self.fusion, batch * refresh, self.precision)]
        works.append(embedding_work(self.llm.hidden, load.rows, self.precision))
        for block in self.llm.blocks:
            works += block_works(block, self.llm.hidden, load, self.precision, tp)
        works += head_works(self.llm.hidden, self.llm.vocab, batch * rows_out, self.precision, tp)
        return Pass(tuple(works), 1.0, "block pass")

    def plan(
        self, *, k: Real, batch: Real, context: Real, refresh: Real = 1.0, tp: int = 1
    ) -> tuple[Pass, ...]:
        """One pass over K + 1 positions, the LM head over K rows."""
        one = self.backbone(batch=batch, context=context, width=k + 1.0, rows_out=k, refresh=refresh, tp=tp)
        return (one,)

    def memory_bytes(self, *, batch: Real, context: Real, tp: int = 1) -> Real:
        """Layers, fusion and cache; embedding and LM head are the target's."""
        fusion = self.fusion.parameters * self.precision.bytes_per_weight
        tables = self.llm.embedding_params * self.precision.bytes_per("embedding") / tp
        own = resident_weight_bytes(self.llm, self.precision, tp) - tables
        return own + fusion + kv_cache_bytes(self.llm, batch, context, self.precision, tp)


def backbone_llm(target: Llm, layers: int) -> Llm:
    """Draft layers of the target's width; embedding and head shared with the target."""
    block = Block(layers, first_attention(target), Mlp(intermediate=dense_width(target)))
    return Llm(name="block drafter", hidden=target.hidden, vocab=target.vocab, blocks=(block,), tied=True)


def llm_of_shape(shape: dict[str, Any], target: Llm) -> Llm:
    """Draft layers from the numbers of a config.json."""
    attention = Attention(heads=shape["heads"], kv_heads=shape["kv_heads"], head_dim=shape["head_dim"])
    block = Block(shape["layers"], attention, Mlp(intermediate=shape["intermediate"]))
    vocab = shape.get("vocab") or target.vocab
    return Llm(name="block drafter", hidden=shape["hidden"], vocab=vocab, blocks=(block,), tied=True)


def for_target(target: Llm, precision: Precision) -> DFlash:
    """DFlash with five layers of the target's width and block 16."""
    origin = f"shape assumed from {target.name}"
    return DFlash(backbone_llm(target, LAYERS), TARGET_FEATURES, target.hidden, BLOCK, precision, origin)


def from_shape(shape: dict[str, Any], target: Llm, precision: Precision, origin: str) -> DFlash:
    """DFlash from the numbers of its config.json."""
    llm = llm_of_shape(shape, target)
    return DFlash(llm, shape["target_layers"], target.hidden, shape["block_size"], precision, origin)
