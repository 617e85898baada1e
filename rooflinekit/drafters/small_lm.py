"""An independent small language model that drafts one token at a time (Leviathan et al. 2023; Chen et al. 2023)."""

from __future__ import annotations

from dataclasses import dataclass

from rooflinekit.drafters.base import OnDevice
from rooflinekit.llm import Llm
from rooflinekit.memory import kv_cache_bytes, resident_weight_bytes
from rooflinekit.precision import Precision
from rooflinekit.transformer import Load, forward_pass
from rooflinekit.work import Pass, Real


@dataclass(frozen=True, slots=True)
class SmallLm(OnDevice):
    """A whole model, run K times per round at width 1; it has a cache of its own over the whole context."""

    llm: Llm
    precision: Precision
    name: str = "small-lm"

    @property
    def title(self) -> str:
        """The model's name."""
        return f"{self.llm.name}, {self.llm.layers} layers, {self.precision.label}"

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
        """The whole model."""
        return self.llm.total_params

    @property
    def serial_passes(self) -> str:
        """One pass per token."""
        return "K"

    def plan(
        self, *, k: Real, batch: Real, context: Real, refresh: Real = 1.0, rows: Real = 1.0, tp: int = 1
    ) -> tuple[Pass, ...]:
        """First pass over the tokens of the last round, then K - 1 passes of ``rows``."""
        # The last of the refreshed tokens is the one drafted from; earlier ones only fill the cache.
        first = forward_pass(self.llm, Load(batch, context, refresh, last_row_only=True), self.precision, tp)
        later = forward_pass(self.llm, Load(batch, context, rows), self.precision, tp)
        return Pass(first, 1.0, "first draft"), Pass(later, k - 1.0, "later drafts")

    def memory_bytes(self, *, batch: Real, context: Real, tp: int = 1) -> Real:
        """Weights and cache."""
        cache = kv_cache_bytes(self.llm, batch, context, self.precision, tp)
        return resident_weight_bytes(self.llm, self.precision, tp) + cache
