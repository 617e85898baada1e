"""EAGLE-3: one decoder layer on fused target features, one pass per drafted token (arXiv:2503.01840)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rooflinekit.llm import Attention, Block, Linear, Llm, Mlp
from rooflinekit.memory import kv_cache_bytes, resident_weight_bytes
from rooflinekit.precision import Precision
from rooflinekit.transformer import Load, block_works, embedding_work, head_works, linear_work
from rooflinekit.work import Pass, Real, Work

DRAFT_VOCAB = 32_000
FUSED_LAYERS = 3


@dataclass(frozen=True, slots=True)
class Eagle3:
    """A chain of K passes through one small layer and an LM head over a reduced vocabulary.

    Attributes
    ----------
    llm
        The draft layers; ``vocab`` is the draft vocabulary. The layer's input is twice as wide as the
        model (token embedding beside feature).
    target_hidden
        Width of the target's hidden states.
    precision
        Number formats.
    origin
        Where the shape came from.
    """

    llm: Llm
    target_hidden: int
    precision: Precision
    origin: str
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
    def serial_passes(self) -> str:
        """One pass per token."""
        return "K"

    @property
    def fusion(self) -> Linear:
        """The fc that fuses three of the target's hidden states into one."""
        return Linear("feature fusion", self.llm.hidden, FUSED_LAYERS * self.target_hidden)

    def _pass(self, load: Load, tp: int) -> tuple[Work, ...]:
        works = [embedding_work(self.llm.hidden, load.rows, self.precision)]
        for block in self.llm.blocks:
            works += block_works(block, self.llm.hidden, load, self.precision, tp)
        works += head_works(self.llm.hidden, self.llm.vocab, load.batch, self.precision, tp)
        return tuple(works)

    def plan(
        self, *, k: Real, batch: Real, context: Real, refresh: Real = 1.0, tp: int = 1
    ) -> tuple[Pass, ...]:
        """Fusion fc once per round; first pass over the tokens of the last round, then K - 1 of one row."""
        first = Load(batch, context, refresh)
        fusion = linear_work(self.fusion, first.rows, self.precision)
        return (
            Pass((fusion, *self._pass(first, tp)), 1.0, "first draft"),
            Pass(self._pass(Load(batch, context, 1.0), tp), k - 1.0, "later drafts"),
        )

    def memory_bytes(self, *, batch: Real, context: Real, tp: int = 1) -> Real:
        """Layer, fusion and draft head, and the draft cache; the target's embedding is shared."""
        fusion = self.fusion.parameters * self.precision.bytes_per_weight
        cache = kv_cache_bytes(self.llm, batch, context, self.precision, tp)
        return resident_weight_bytes(self.llm, self.precision, tp) + fusion + cache


def first_attention(target: Llm, input_multiple: int = 1) -> Attention:
    """Attention of a draft layer that takes its shape from the target's last such layer, over the whole context.

    Targets without plain heads (latent attention, recurrent layers) get heads of 128 elements.
    """
    for block in reversed(target.blocks):
        spec = block.mixer
        if isinstance(spec, Attention):
            return Attention(
                heads=spec.heads,
                kv_heads=spec.kv_heads,
                head_dim=spec.head_dim,
                input_multiple=input_multiple,
            )
    # A power of two, so that the usual numbers of ranks divide it.
    heads = 1 << ((target.hidden // 128).bit_length() - 1) if target.hidden >= 128 else 1
    return Attention(heads=heads, kv_heads=heads, head_dim=128, input_multiple=input_multiple)


def dense_width(target: Llm) -> int:
    """Width of a dense feed-forward layer of a drafter for this target: the target's own, else 4 x hidden."""
    widths = [block.ffn.intermediate for block in target.blocks if isinstance(block.ffn, Mlp)]
    return widths[-1] if widths else 4 * target.hidden


def for_target(target: Llm, precision: Precision) -> Eagle3:
    """EAGLE-3 with the target's own layer shape, a fusion of three states and a draft vocabulary of 32,000."""
    block = Block(1, first_attention(target, 2), Mlp(intermediate=dense_width(target)), norms=3)
    vocab = min(DRAFT_VOCAB, target.vocab)
    # `tied` because the embedding is the target's: only the draft head is the drafter's own.
    llm = Llm(name="eagle3", hidden=target.hidden, vocab=vocab, blocks=(block,), tied=True)
    return Eagle3(llm, target.hidden, precision, f"shape assumed from {target.name}")


def from_shape(shape: dict[str, Any], target: Llm, precision: Precision, origin: str) -> Eagle3:
    """EAGLE-3 from the numbers of its config.json."""
    attention = Attention(
        heads=shape["heads"], kv_heads=shape["kv_heads"], head_dim=shape["head_dim"], input_multiple=2
    )
    block = Block(shape["layers"], attention, Mlp(intermediate=shape["intermediate"]), norms=3)
    llm = Llm(name="eagle3", hidden=shape["hidden"], vocab=shape["draft_vocab"], blocks=(block,), tied=True)
    return Eagle3(llm, shape.get("target_hidden") or target.hidden, precision, origin)
