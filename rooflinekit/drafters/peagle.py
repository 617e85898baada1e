"""P-EAGLE: EAGLE-3's inputs and head, several layers, all K tokens in one parallel pass.

The first layer is EAGLE-3's (twice as wide an input), later ones are plain. Positions beyond the first
draft stand on a learned vector in place of a feature (amazon/gpt-oss-20b-p-eagle: four layers, trained for
ten positions in parallel).
"""

from __future__ import annotations

from dataclasses import dataclass

from rooflinekit.drafters import eagle3
from rooflinekit.drafters.base import OnDevice
from rooflinekit.drafters.eagle3 import FUSED_LAYERS
from rooflinekit.drafters.parts import Shape, dense_width, draft_bytes, first_attention
from rooflinekit.llm import Block, Linear, Llm, Mlp
from rooflinekit.precision import Precision
from rooflinekit.transformer import Load, forward_pass, linear_work
from rooflinekit.work import Pass, Real

LAYERS = 4
TRAINED_K = 10


@dataclass(frozen=True, slots=True)
class PEagle(OnDevice):
    """One pass over the tokens of the last round and K - 1 masked positions.

    Attributes
    ----------
    llm
        The draft layers; ``vocab`` is the draft vocabulary.
    target_hidden
        Width of the target's hidden states.
    fused
        Hidden states of the target that the fusion fc takes.
    trained_k
        Positions it was trained to draft in parallel; 0 where its config does not say.
    precision
        Number formats.
    origin
        Where the shape came from.
    """

    llm: Llm
    target_hidden: int
    fused: int
    trained_k: int
    precision: Precision
    origin: str
    name: str = "peagle"

    @property
    def title(self) -> str:
        """Shape in one line."""
        return (
            f"{self.llm.layers} layers of width {self.llm.hidden}, head over {self.llm.vocab} tokens,"
            f" {self.origin}"
        )

    @property
    def max_k(self) -> int | None:
        """Positions it was trained for; any K where its config does not say."""
        return self.trained_k or None

    @property
    def k_rule(self) -> str:
        """Positions it was trained for."""
        if self.trained_k:
            return f"up to {self.trained_k}: positions it drafts in parallel"
        return f"any; its config does not say how many positions it was trained for (published: {TRAINED_K})"

    @property
    def serial_passes(self) -> str:
        """One pass per round."""
        return "1"

    @property
    def fusion(self) -> Linear:
        """The fc that fuses several of the target's hidden states into one."""
        return Linear("feature fusion", self.llm.hidden, self.fused * self.target_hidden)

    @property
    def own_params(self) -> int:
        """Layers, fusion, draft head and the masked positions' vector; the embedding is the target's."""
        return self.llm.total_params + round(self.fusion.parameters)

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
        """One pass; the fusion over the tokens of the last round, the LM head over K rows."""
        load = Load(batch, context, refresh + k - 1.0)
        fusion = linear_work(self.fusion, batch * refresh, self.precision)
        works = (fusion, *forward_pass(self.llm, load, self.precision, tp, batch * k))
        return (Pass(works, 1.0, "parallel draft"),)

    def memory_bytes(self, *, batch: Real, context: Real, tp: int = 1) -> Real:
        """Layers, fusion (on every rank), draft head and cache; the target's embedding is shared."""
        return draft_bytes(
            self.llm, self.fusion, self.precision, batch=batch, context=context, tp=tp, own_head=True
        )


def for_target(target: Llm, precision: Precision) -> PEagle:
    """P-EAGLE with four layers of the target's width, trained for ten positions."""
    ffn = Mlp(intermediate=dense_width(target))
    blocks = (
        Block(1, first_attention(target, 2), ffn, norms=3),
        Block(LAYERS - 1, first_attention(target), ffn),
    )
    llm = Llm(
        name="peagle",
        hidden=target.hidden,
        vocab=min(eagle3.DRAFT_VOCAB, target.vocab),
        blocks=blocks,
        tied=True,
        extra=FUSED_LAYERS * target.hidden,
    )
    origin = f"shape assumed from {target.name}"
    return PEagle(llm, target.hidden, FUSED_LAYERS, TRAINED_K, precision, origin)


def from_shape(shape: Shape, target: Llm, precision: Precision, origin: str) -> PEagle:
    """P-EAGLE from the numbers of its config.json."""
    width, fused = shape.get("target_hidden") or target.hidden, shape.get("fused", FUSED_LAYERS)
    llm = eagle3.llm_of_shape(shape, extra=fused * width)
    return PEagle(llm, width, fused, shape.get("proposed_k", 0), precision, origin)
