"""DSpark: a parallel backbone pass, then a light head step per token (semi-autoregressive drafting).

The backbone is DFlash's; the head adds a low-rank bigram term to the block's logits, token by token
(``markov_rank`` in published configs). With a head of rank 0 the cost is DFlash's; with a head as heavy
as the backbone (``heavy_head``) it becomes one full pass per token, as EAGLE's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from rooflinekit.drafters import dflash
from rooflinekit.drafters.base import OnDevice
from rooflinekit.drafters.dflash import DFlash
from rooflinekit.drafters.parts import Shape, corrected_sampling
from rooflinekit.llm import Linear, Llm
from rooflinekit.memory import resident_weight_bytes
from rooflinekit.precision import Precision
from rooflinekit.transformer import Load, forward_pass, linear_work
from rooflinekit.work import Pass, Real, Work

BLOCK = 7
RANK = 256
HEAVY = "dspark:heavy"
"""DSpark whose light head is a second backbone: what it must not become."""


@dataclass(frozen=True, slots=True)
class DSpark(OnDevice):
    """One backbone pass over K positions, then K steps of a head.

    Attributes
    ----------
    backbone
        The parallel part.
    rank
        Rank of the bigram head; 0 for none.
    block
        Trained block; the anchor position is itself sampled from, so K is at most ``block``.
    heavy_head
        A whole model in place of the low-rank head (the degenerate case).
    """

    backbone: DFlash
    rank: int
    block: int
    heavy_head: Llm | None = None
    name: str = "dspark"

    @property
    def precision(self) -> Precision:
        """Number formats of the backbone and the head."""
        return self.backbone.precision

    @property
    def title(self) -> str:
        """Shape in one line."""
        llm = self.backbone.llm
        head = f"rank {self.rank} head" if self.heavy_head is None else f"{self.heavy_head.name} as head"
        return (
            f"{llm.layers} layers of width {llm.hidden}, block {self.block}, {head}, {self.backbone.origin}"
        )

    @property
    def max_k(self) -> int | None:
        """Trained block."""
        return self.block

    @property
    def k_rule(self) -> str:
        """Trained block."""
        return f"up to {self.block}: the whole block"

    @property
    def own_params(self) -> int:
        """Backbone and head."""
        head = 2 * self.backbone.llm.vocab * self.rank
        if self.heavy_head is not None:
            head = self.heavy_head.total_params
        return self.backbone.own_params + head

    @property
    def serial_passes(self) -> str:
        """One backbone pass and K head steps."""
        return "1 + K light" if self.heavy_head is None else "1 + K heavy"

    def _head_step(self, batch: Real, context: Real, tp: int) -> tuple[Work, ...]:
        if self.heavy_head is not None:
            return forward_pass(self.heavy_head, Load(batch, context, 1.0), self.precision, tp)
        if not self.rank:
            return ()
        vocab = self.backbone.llm.vocab
        head = linear_work(Linear("bigram head", vocab / tp, self.rank), batch, self.precision)
        return head, *corrected_sampling(vocab, batch, self.precision, tp)

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
        """Backbone once over K positions, then the head K times.

        Engines capture backbone and head steps in one graph (vLLM's model runner 2 does), so that the host
        starts nothing for the steps; a whole model as head is started each time.
        """
        wide = self.backbone.backbone(
            batch=batch, context=context, width=k + 0.0, rows_out=k, refresh=refresh, tp=tp
        )
        started = 0.0 if self.heavy_head is None else None
        return wide, Pass(self._head_step(batch, context, tp), k, "head steps", started)

    def memory_bytes(self, *, batch: Real, context: Real, tp: int = 1) -> Real:
        """Backbone and head (two tables of vocabulary x rank)."""
        head = 2.0 * self.backbone.llm.vocab * self.rank * self.precision.bytes_per_weight / tp
        if self.heavy_head is not None:
            head = resident_weight_bytes(self.heavy_head, self.precision, tp)
        return self.backbone.memory_bytes(batch=batch, context=context, tp=tp) + head


def for_target(target: Llm, precision: Precision) -> DSpark:
    """DSpark on DFlash's backbone: block 7, rank-256 head."""
    return DSpark(dflash.for_target(target, precision), RANK, BLOCK)


def heavy_for_target(target: Llm, precision: Precision) -> DSpark:
    """The degenerate case: a sequential head as heavy as the backbone, which then pays per token as EAGLE does."""
    plain = for_target(target, precision)
    return replace(plain, heavy_head=replace(plain.backbone.llm, name="the backbone again"), name=HEAVY)


def from_shape(shape: Shape, target: Llm, precision: Precision, origin: str) -> DSpark:
    """DSpark from the numbers of its config.json."""
    return DSpark(
        dflash.from_shape(shape, target, precision, origin), shape["markov_rank"], shape["block_size"]
    )
