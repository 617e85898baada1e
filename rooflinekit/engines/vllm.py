"""vLLM: one JSON object after ``--speculative-config``; ``num_speculative_tokens`` is K.

Sources: vLLM 0.33 ``config/speculative.py`` (it has no Medusa any more in that release); ``docs/features/
speculative_decoding/dynamic_speculative_decoding.md``; P-EAGLE: model card of amazon/gpt-oss-20b-p-eagle.
"""

from __future__ import annotations

import json
from typing import Any

from rooflinekit.engines.wanted import DRAFT_MODEL, OWN_MODULES, Ranges, Wanted, number

METHODS = {
    "small-lm": "draft_model",
    "eagle": "eagle",
    "eagle3": "eagle3",
    "peagle": "eagle3",
    "dflash": "dflash",
    "dspark": "dspark",
    "mtp": "mtp",
    "ngram": "ngram",
    "suffix": "suffix",
}
LOOKUPS = ("ngram", "suffix")
NGRAM_SIZES = {"prompt_lookup_min": 2, "prompt_lookup_max": 5}
"""Lengths of the n-gram that is searched for, as vLLM's own benchmarks set them."""

CHAINS_ONLY = "verifies chains only: no flags for a tree"
NOTES = {
    "ngram": '"method":"ngram_gpu" searches on the device and keeps asynchronous scheduling',
    "suffix": "needs the package arctic-inference; K is an upper limit, drafts are as long as the match allows",
}
SCHEDULED = (
    "tested by vLLM with EAGLE, EAGLE-3 and DFlash; ignored with data parallelism; full CUDA graphs need its "
    "model runner 2"
)
FORCED = "every position survives with the rate given: the distribution that was assumed"


def config(ask: Wanted) -> dict[str, Any]:
    """The fields of ``--speculative-config``."""
    fields: dict[str, Any] = {"method": METHODS[ask.drafter]}
    if ask.drafter not in (OWN_MODULES, *LOOKUPS):
        fields["model"] = DRAFT_MODEL
    fields["num_speculative_tokens"] = ask.k
    if ask.drafter == "peagle":
        fields["parallel_drafting"] = True
    if ask.drafter == "ngram":
        fields |= NGRAM_SIZES
    return fields


def option(fields: dict[str, Any]) -> str:
    """The option with its JSON in single quotes, which JSON itself never needs."""
    return f"--speculative-config '{json.dumps(fields, separators=(',', ':'))}'"


def flags(ask: Wanted) -> str | None:
    """Flags for a chain."""
    return None if ask.drafter not in METHODS or ask.is_tree else option(config(ask))


def schedule(ask: Wanted, ranges: Ranges) -> str | None:
    """K by batch size: ranges with both ends included, K = 0 allowed, none above ``num_speculative_tokens``."""
    if ask.drafter not in METHODS or ask.drafter in LOOKUPS:
        return None
    return option(config(ask) | {"num_speculative_tokens_per_batch_size": [list(one) for one in ranges]})


def forced(ask: Wanted | None, survival: tuple[float, ...]) -> str | None:
    """Synthetic acceptance: unconditional rates by position, as many as drafted tokens."""
    fields: dict[str, Any] = {"num_speculative_tokens": len(survival)}
    if ask is not None:
        if ask.drafter not in METHODS or ask.is_tree:
            return None
        fields = config(ask)
    rates = [float(number(value)) for value in survival]
    return option(fields | {"rejection_sample_method": "synthetic", "synthetic_acceptance_rates": rates})
