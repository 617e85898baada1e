"""MTP: the multi-token-prediction modules that come with the target, one serial pass per token.

A module fuses the token's embedding with a hidden state (2H x H), runs one layer of the target's kind and
the target's LM head (DeepSeek-V3, arXiv:2412.19437, section 2.2). Engines reuse a single module for every
token; where there are several, token i takes module i, and later tokens take them in turn again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from rooflinekit.drafters.base import OnDevice
from rooflinekit.drafters.parts import Shape, blocks_of, draft_bytes, proposal_words
from rooflinekit.errors import ModelError
from rooflinekit.llm import Linear, Llm, Mtp
from rooflinekit.precision import Precision
from rooflinekit.transformer import Load, forward_pass, linear_work
from rooflinekit.work import Pass, Real, Work


@dataclass(frozen=True, slots=True)
class MtpDrafter(OnDevice):
    """K passes through the target's own modules.

    Attributes
    ----------
    modules
        The modules.
    hidden, vocab
        Width and vocabulary of the target, whose embedding and LM head are shared.
    precision
        Number formats of the modules.
    origin
        Where the shape came from.
    proposed_k
        K that a config proposes; 0 for none.
    """

    modules: Mtp
    hidden: int
    vocab: int
    precision: Precision
    origin: str
    proposed_k: int = 0
    name: str = "mtp"

    @property
    def title(self) -> str:
        """Shape in one line."""
        count = self.modules.modules
        return f"{count} module{'s' * (count > 1)} of width {self.hidden}, the target's head, {self.origin}"

    @property
    def max_k(self) -> int | None:
        """Any K: modules are used again."""
        return None

    @property
    def k_rule(self) -> str:
        """Any K, in multiples of the modules where there are several."""
        count = self.modules.modules
        turns = f"; beyond {count} vLLM takes multiples of {count}" if count > 1 else ""
        return proposal_words(self.proposed_k) + turns

    @property
    def serial_passes(self) -> str:
        """One pass per token."""
        return "K"

    @property
    def module(self) -> Llm:
        """One module: its layer, three norms, and the tables it shares with the target."""
        # An Llm counts its last norm; the norms of embedding and hidden state are extra.
        block, extra = self.modules.block, 2 * self.hidden
        return Llm(name="mtp", hidden=self.hidden, vocab=self.vocab, blocks=(block,), tied=True, extra=extra)

    @property
    def fusion(self) -> Linear:
        """The projection of embedding and hidden state, run in every pass."""
        return Linear("feature fusion", self.hidden, 2 * self.hidden)

    @property
    def own_params(self) -> int:
        """All modules: layer, projection and norms."""
        return round(self.modules.parameters(self.hidden))

    def _pass(self, load: Load, head_rows: Real, tp: int) -> tuple[Work, ...]:
        fusion = linear_work(self.fusion, load.rows, self.precision)
        return fusion, *forward_pass(self.module, load, self.precision, tp, head_rows)

    def plan(
        self, *, k: Real, batch: Real, context: Real, refresh: Real = 1.0, rows: Real = 1.0, tp: int = 1
    ) -> tuple[Pass, ...]:
        """Each module's first pass runs over the tokens of the last round, passes after that over ``rows``.

        Engines grow trees with a single module only; with several, a tree's rows are counted from the
        second turn on.
        """
        first = np.minimum(k, float(self.modules.modules))
        return (
            Pass(self._pass(Load(batch, context, refresh), batch, tp), first, "first drafts"),
            Pass(self._pass(Load(batch, context, rows), batch * rows, tp), k - first, "later drafts"),
        )

    def memory_bytes(self, *, batch: Real, context: Real, tp: int = 1) -> Real:
        """Modules (projection on every rank) and a cache of each; embedding and LM head are the target's."""
        return self.modules.modules * draft_bytes(
            self.module, self.fusion, self.precision, batch=batch, context=context, tp=tp
        )


def for_target(target: Llm, precision: Precision) -> MtpDrafter:
    """The target's own modules.

    Raises
    ------
    ModelError
        The target has none.
    """
    if target.mtp is None:
        raise ModelError(
            f"{target.name} has no multi-token-prediction modules (no num_nextn_predict_layers or the like in "
            "its config), so it cannot draft for itself; choose another drafter, such as eagle3"
        )
    return MtpDrafter(target.mtp, target.hidden, target.vocab, precision, f"of {target.name}")


def from_shape(shape: Shape, target: Llm, precision: Precision, origin: str) -> MtpDrafter:
    """Modules trained apart from the target, from the numbers of their config.json.

    Raises
    ------
    ModelError
        They are mixtures of experts and the target has no modules to take the layer from.
    """
    if "experts" not in shape:
        (block,) = blocks_of({**shape, "layers": 1})
        mtp = Mtp(modules=shape["modules"], block=block)
        own = MtpDrafter(mtp, target.hidden, target.vocab, precision, origin)
    else:
        own = replace(for_target(target, precision), origin=origin)
    return replace(own, proposed_k=shape.get("proposed_k", 0))
