"""Suffix decoding: the likeliest continuation in suffix trees of prompts and earlier outputs (arXiv:2411.04975).

The trees stand in the host's memory and the device does nothing. K is an upper limit: drafts are as long as
the match and the counts in the tree allow.
"""

from __future__ import annotations

from dataclasses import dataclass

from rooflinekit.drafters.lookup import Lookup
from rooflinekit.llm import Llm
from rooflinekit.precision import Precision
from rooflinekit.work import Real

PER_TOKEN_S = 20e-6
"""Host time of one drafted token (s): "20 microseconds per token" (Arctic Inference's documentation)."""


@dataclass(frozen=True, slots=True)
class Suffix(Lookup):
    """A walk down the trees, token by token and one sequence after the other.

    Attributes
    ----------
    precision
        The target's number formats (the drafter computes nothing).
    per_token_s
        Host time of one drafted token of one sequence (s).
    name
        The word of ``--drafter``.
    """

    precision: Precision
    per_token_s: float = PER_TOKEN_S
    name: str = "suffix"

    @property
    def title(self) -> str:
        """Where its host time comes from."""
        cost = f"{self.per_token_s * 1e6:.0f} us a drafted token"
        return f"suffix trees on the host, {cost} (Arctic Inference; assumed for other hosts)"

    @property
    def k_rule(self) -> str:
        """What vLLM drafts unless told otherwise."""
        return "any; an upper limit (vLLM: 24), drafts are as long as the match allows"

    def host_s(self, *, k: Real, batch: Real, context: Real = 0.0) -> Real:
        """Drafting of every sequence (s): ``per_token_s * k * batch``, whatever the context.

        Arctic Inference walks the trees for one request after the other (its issue 204 asks for a parallel
        version). A match is found in a time that grows with its length, not with the text searched.

        Examples
        --------
        >>> from rooflinekit.precision import precision
        >>> float(Suffix(precision("bf16")).host_s(k=5.0, batch=64.0))
        0.0064
        """
        return self.per_token_s * k * batch + 0.0 * context


def for_target(target: Llm, precision: Precision) -> Suffix:  # noqa: ARG001 - the same for all targets
    """Suffix decoding for any target."""
    return Suffix(precision)
