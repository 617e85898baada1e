"""Medusa: heads on the target's last hidden state, each for one further token (arXiv:2401.10774).

Verified as the chain of each head's best token. The reference code and its engines run every head of the
checkpoint in each round, so the cost does not depend on K.
"""

from __future__ import annotations

from dataclasses import dataclass

from rooflinekit.drafters.base import OnDevice
from rooflinekit.drafters.parts import Shape
from rooflinekit.llm import Linear, Llm
from rooflinekit.precision import Precision
from rooflinekit.transformer import head_works, linear_work
from rooflinekit.work import Pass, Real

HEADS = 5
WRITTEN_HEADS = 2
"""Heads that published configs name although their weights hold :data:`HEADS`."""


@dataclass(frozen=True, slots=True)
class Medusa(OnDevice):
    """Independent heads: residual blocks of the target's width, then an LM head of their own.

    Attributes
    ----------
    heads
        Heads of the checkpoint; one token each.
    layers
        Residual blocks per head.
    hidden, vocab
        Width of the target, and vocabulary of each head.
    precision
        Number formats.
    origin
        Where the shape came from.
    caution
        What to check in the weights; '' for nothing.
    """

    heads: int
    layers: int
    hidden: int
    vocab: int
    precision: Precision
    origin: str
    caution: str = ""
    name: str = "medusa"

    @property
    def title(self) -> str:
        """Shape in one line."""
        words = f"{self.heads} heads of width {self.hidden} over {self.vocab} tokens, {self.origin}"
        return f"{words} ({self.caution})" if self.caution else words

    @property
    def max_k(self) -> int | None:
        """One token per head."""
        return self.heads

    @property
    def k_rule(self) -> str:
        """One token per head."""
        return f"up to {self.heads}: one per head"

    @property
    def serial_passes(self) -> str:
        """One pass per round."""
        return "1"

    @property
    def block(self) -> Linear:
        """One residual block of a head, on every rank whole."""
        return Linear("residual block", self.hidden, self.hidden)

    @property
    def own_params(self) -> int:
        """Residual blocks with biases, and an LM head per head."""
        blocks = self.layers * (self.block.parameters + self.hidden)
        return round(self.heads * (blocks + self.vocab * self.hidden))

    def plan(
        self,
        *,
        k: Real,
        batch: Real,
        context: Real,
        refresh: Real = 1.0,  # noqa: ARG002 - no cache to fill
        rows: Real = 1.0,  # noqa: ARG002 - heads run once, whatever is made of their tokens
        tp: int = 1,
    ) -> tuple[Pass, ...]:
        """Every head once, on the row that the last verify left."""
        # Context and K give the axes only: the heads read one hidden state per sequence.
        each = batch + 0.0 * context
        blocks = linear_work(self.block, each, self.precision, float(self.layers))
        head = head_works(self.hidden, self.vocab, each, self.precision, tp)
        # All heads are one graph of the target's step.
        return (Pass((blocks, *head), self.heads + 0.0 * k, "heads", launches=1.0),)

    def memory_bytes(self, *, batch: Real, context: Real, tp: int = 1) -> Real:
        """Residual blocks and LM heads; no cache."""
        blocks = self.layers * self.block.parameters * self.precision.bytes_per("mlp")
        biases = self.layers * self.hidden * self.precision.bytes_per("vectors")
        head = self.vocab * self.hidden * self.precision.bytes_per("head") / tp
        return self.heads * (blocks + biases + head) + 0.0 * batch + 0.0 * context


def for_target(target: Llm, precision: Precision) -> Medusa:
    """Medusa with five heads of one residual block."""
    origin = f"shape assumed from {target.name}"
    return Medusa(HEADS, 1, target.hidden, target.vocab, precision, origin)


def from_shape(shape: Shape, target: Llm, precision: Precision, origin: str) -> Medusa:
    """Medusa from the numbers of its config.json."""
    heads = shape["heads"]
    caution = f"published configs say {heads} where the weights hold {HEADS}: count them"
    return Medusa(
        heads,
        shape["layers"],
        target.hidden,
        shape.get("draft_vocab") or shape.get("vocab") or target.vocab,
        precision,
        origin,
        caution if heads == WRITTEN_HEADS else "",
    )
