"""Prompt lookup: the tokens that followed the last n-gram where it stood before (vLLM ``ngram``, SGLang ``NGRAM``).

The drafts are copies, so the device does nothing; what a round costs is the search on the host.
"""

from __future__ import annotations

from dataclasses import dataclass

from rooflinekit.drafters.lookup import Lookup
from rooflinekit.llm import Llm
from rooflinekit.precision import Precision
from rooflinekit.work import Real

FRACTION_OF_VERIFY = 0.005875
VERIFY_S = 0.00588590713
FIXED_S = FRACTION_OF_VERIFY * VERIFY_S
"""Host time of a round whatever is searched (s): the share of a verify that n-gram drafting takes in the
simulator of arXiv:2601.11580 (vLLM, Llama-3.1-8B, H100), of its verify without cache or further tokens."""

SCANNED_TOKENS = 512 * 129_536
SCAN_S = 0.07028 / SCANNED_TOKENS
"""Search of one token of context on one thread (s): 70.28 ms for 66.3 million (vLLM pull request 56732)."""


@dataclass(frozen=True, slots=True)
class NGram(Lookup):
    """The search for the last n-gram in every sequence, on one thread as vLLM does it.

    Attributes
    ----------
    precision
        The target's number formats (the drafter computes nothing).
    fixed_s
        Host time of a round whatever is searched (s).
    scan_s
        Host time per token of context that is searched (s).
    name
        The word of ``--drafter``.
    """

    precision: Precision
    fixed_s: float = FIXED_S
    scan_s: float = SCAN_S
    name: str = "ngram"

    @property
    def title(self) -> str:
        """Where its host time comes from."""
        cost = f"{self.fixed_s * 1e6:.0f} us a round and {self.scan_s * 1e9:.1f} ns a token searched"
        return f"prompt lookup on the host, {cost} (vLLM beside an H100; assumed for other hosts)"

    @property
    def k_rule(self) -> str:
        """What engines draft unless told otherwise."""
        return "any; a copy may be shorter (llama.cpp drafts up to 48 unless told otherwise)"

    def host_s(self, *, k: Real, batch: Real, context: Real = 0.0) -> Real:
        """Search of every sequence (s): ``fixed_s + scan_s * batch * context``, whatever K.

        vLLM searches the sequences one after the other on one thread: in proportion to their tokens. Eight
        threads took a seventh of the time (pull request 56732).

        Examples
        --------
        >>> from rooflinekit.precision import precision
        >>> round(float(NGram(precision("bf16")).host_s(k=3.0, batch=512.0, context=129536.0)), 4)
        0.0703
        """
        return self.fixed_s + self.scan_s * batch * context + 0.0 * k


def for_target(target: Llm, precision: Precision) -> NGram:  # noqa: ARG001 - the same for all targets
    """Prompt lookup for any target."""
    return NGram(precision)
