"""Self-speculation: the target drafts for itself with some of its layers and verifies with all.

Draft & Verify (arXiv:2309.08168) leaves out layers in the middle, LayerSkip (arXiv:2404.16710) exits early.
Either way a draft token passes through the layers that are kept and the target's LM head; there are no
weights beside the target's. What is assumed:

- Layers are left out in proportion, so many of each kind (dense and expert layers, attention and recurrent
  ones): which ones a search or a training keeps is not known before it.
- The verify runs every layer. LayerSkip can start it from the states that the first layers left in the
  drafting; engines that we know (transformers) run the whole pass.
- Drafting reads the target's cache and writes the entries of its layers where the verify puts the final
  ones: no cache of its own, nothing to refresh. Recurrent states are copied, since drafts change them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from rooflinekit.drafters.base import OnDevice
from rooflinekit.errors import ModelError
from rooflinekit.llm import Block, Llm
from rooflinekit.mixers import STATE_BYTES
from rooflinekit.precision import Precision
from rooflinekit.transformer import Load, forward_pass
from rooflinekit.work import Pass, Real


@dataclass(frozen=True, slots=True)
class LayerSkip(OnDevice):
    """The kept layers of the target, its embedding and its LM head, K times.

    Attributes
    ----------
    llm
        The target with the layers that draft.
    target_layers
        Layers of the target.
    precision
        The target's number formats.
    origin
        Whose layers they are.
    """

    llm: Llm
    target_layers: int
    precision: Precision
    origin: str
    name: str = "layer-skip"

    @property
    def title(self) -> str:
        """Layers kept and left out."""
        kept = self.llm.layers
        return (
            f"{kept} of {self.target_layers} layers and the head {self.origin}, kinds in proportion (assumed)"
        )

    @property
    def max_k(self) -> int | None:
        """Any K."""
        return None

    @property
    def k_rule(self) -> str:
        """Any K."""
        return "any"

    @property
    def own_params(self) -> int:
        """None: all weights are the target's."""
        return 0

    @property
    def serial_passes(self) -> str:
        """One pass per token."""
        return "K"

    def plan(
        self,
        *,
        k: Real,
        batch: Real,
        context: Real,
        refresh: Real = 1.0,
        rows: Real = 1.0,
        tp: int = 1,
    ) -> tuple[Pass, ...]:
        """One pass of one row, then K - 1 of ``rows``: the last verify has left its entries in the cache."""
        # Nothing is refreshed: `refresh` gives the axes only.
        first = forward_pass(self.llm, Load(batch, context, 1.0 + 0.0 * refresh), self.precision, tp)
        later = forward_pass(self.llm, Load(batch, context, rows), self.precision, tp)
        return Pass(first, 1.0, "first draft"), Pass(later, k - 1.0, "later drafts")

    def memory_bytes(self, *, batch: Real, context: Real, tp: int = 1) -> Real:
        """A copy of the recurrent states that drafting changes (B); weights and cache are the target's."""
        return batch * self.llm.state_elements(tp) * STATE_BYTES + 0.0 * context


def kept_blocks(blocks: tuple[Block, ...], layers: int) -> tuple[Block, ...]:
    """So many layers of the groups, in proportion to their counts (largest remainders).

    Examples
    --------
    >>> [one.count for one in kept_blocks((Block(3, None, None), Block(58, None, None)), 30)]
    [1, 29]
    """
    total = sum(block.count for block in blocks)
    shares = [block.count * layers / total for block in blocks]
    counts = [int(share) for share in shares]
    by_remainder = sorted(range(len(blocks)), key=lambda i: counts[i] - shares[i])
    for i in by_remainder[: layers - sum(counts)]:
        counts[i] += 1
    return tuple(replace(block, count=count) for block, count in zip(blocks, counts, strict=True) if count)


def layers_of(word: str, target: Llm) -> int:
    """Layers that ``layer-skip:WORD`` keeps: a number of them, or a fraction below 1.

    Raises
    ------
    ModelError
        None, not a number, or not between one layer and all but one.
    """
    usage = f"write --drafter layer-skip:0.5 for half of the {target.layers} layers, or a number of layers"
    try:
        value = float(word)
    except ValueError as error:
        said = f"layer-skip:{word} names no number of" if word else "layer-skip needs the"
        raise ModelError(f"{said} layers to draft with; {usage}") from error
    layers = max(1, round(value * target.layers)) if 0 < value < 1 else value
    if not (1 <= layers < target.layers and layers == int(layers)):
        raise ModelError(
            f"layer-skip:{word} keeps no number of layers from 1 to {target.layers - 1} of {target.name}; {usage}"
        )
    return int(layers)


def for_target(target: Llm, precision: Precision, layers: int | None = None) -> LayerSkip:
    """Self-speculation with ``layers`` of the target's layers; half of them by default."""
    count = max(1, target.layers // 2) if layers is None else layers
    llm = replace(
        target,
        name=f"{target.name} ({count} layers)",
        blocks=kept_blocks(target.blocks, count),
        encoder=(),
        mtp=None,
    )
    return LayerSkip(llm, target.layers, precision, f"of {target.name}")


def from_word(word: str, target: Llm, precision: Precision) -> LayerSkip:
    """Self-speculation from what stands behind ``layer-skip:``."""
    return for_target(target, precision, layers_of(word, target))
