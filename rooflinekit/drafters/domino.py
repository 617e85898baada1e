"""Domino: DFlash's block pass, then a recurrent correction of the logits, token by token.

A gated recurrent unit reads the embedding of each drafted token; its state and the position's hidden state
give, through a narrow layer, a term added to that position's logits (SpecForge ``DominoDraftModel``).
"""

from __future__ import annotations

from dataclasses import dataclass

from rooflinekit.drafters import dflash
from rooflinekit.drafters.base import OnDevice
from rooflinekit.drafters.dflash import DFlash
from rooflinekit.drafters.parts import Shape, corrected_sampling
from rooflinekit.llm import Linear, Llm
from rooflinekit.precision import Precision
from rooflinekit.transformer import embedding_works, linear_work
from rooflinekit.work import Pass, Real

GRU_WIDTH = 1024
CORRECTION_WIDTH = 256


@dataclass(frozen=True, slots=True)
class Domino(OnDevice):
    """One block pass, then K light steps.

    Attributes
    ----------
    backbone
        The parallel part.
    gru_width
        Elements of the recurrent unit's state.
    correction_width
        Width of the narrow layer between state and logits.
    """

    backbone: DFlash
    gru_width: int
    correction_width: int
    name: str = "domino"

    @property
    def precision(self) -> Precision:
        """Number formats of backbone and correction."""
        return self.backbone.precision

    @property
    def title(self) -> str:
        """Shape in one line."""
        llm, block = self.backbone.llm, self.backbone.block
        steps = f"recurrent unit of {self.gru_width}"
        return f"{llm.layers} layers of width {llm.hidden}, block {block}, {steps}, {self.backbone.origin}"

    @property
    def max_k(self) -> int | None:
        """Trained block less the anchor."""
        return self.backbone.max_k

    @property
    def k_rule(self) -> str:
        """Trained block less the anchor."""
        return self.backbone.k_rule

    @property
    def serial_passes(self) -> str:
        """One block pass and K light steps."""
        return "1 + K light"

    @property
    def matrices(self) -> tuple[Linear, Linear, Linear]:
        """Recurrent unit (input and state, three gates) and the two of the correction."""
        into = self.backbone.llm.hidden + self.gru_width
        return (
            Linear("recurrent unit", 3 * self.gru_width, into),
            Linear("correction", self.correction_width, into),
            Linear("correction to logits", self.backbone.llm.vocab, self.correction_width),
        )

    @property
    def own_params(self) -> int:
        """Backbone, recurrent unit and correction."""
        return self.backbone.own_params + round(sum(linear.parameters for linear in self.matrices))

    def _split(self, tp: int) -> tuple[Linear, ...]:
        unit, narrow, wide = self.matrices
        return unit, narrow, Linear(wide.label, wide.out / tp, wide.inner)

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
        """The block pass, then K steps of unit and correction (the first ones of a block may skip the latter).

        The steps are assumed to be in the block pass's graph, as DSpark's are.
        """
        works = [*embedding_works(self.backbone.llm.hidden, batch, self.precision, tp)]
        works += [linear_work(linear, batch, self.precision) for linear in self._split(tp)]
        works += corrected_sampling(self.backbone.llm.vocab, batch, self.precision, tp)
        wide = self.backbone.plan(k=k, batch=batch, context=context, refresh=refresh, tp=tp)
        return (*wide, Pass(tuple(works), k, "correction steps", launches=0.0))

    def memory_bytes(self, *, batch: Real, context: Real, tp: int = 1) -> Real:
        """Backbone, recurrent unit and correction."""
        own = sum(linear.parameters for linear in self._split(tp)) * self.precision.bytes_per("mlp")
        return self.backbone.memory_bytes(batch=batch, context=context, tp=tp) + own


def for_target(target: Llm, precision: Precision) -> Domino:
    """Domino on DFlash's backbone, with the widths of the published config."""
    return Domino(dflash.for_target(target, precision), GRU_WIDTH, CORRECTION_WIDTH)


def from_shape(shape: Shape, target: Llm, precision: Precision, origin: str) -> Domino:
    """Domino from the numbers of its config.json."""
    backbone = dflash.from_shape(shape, target, precision, origin)
    return Domino(backbone, shape["gru_width"], shape["correction_width"])
