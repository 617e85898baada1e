"""TensorRT-LLM's PyTorch backend: ``speculative_config`` of the YAML that ``--extra_llm_api_options`` names.

Sources: ``llmapi/llm_args.py`` of 2026-09, pull request 10860 (``draft_len_schedule``),
``_torch/speculative/interface.py``; ``num_nextn_predict_layers`` is K, whatever the modules of the
checkpoint.
"""

from __future__ import annotations

from rooflinekit.engines.wanted import DRAFT_MODEL, OWN_MODULES, Ranges, Wanted, number

TYPES = {"small-lm": "DraftTarget", "eagle3": "Eagle3", "mtp": "MTP", "ngram": "NGram"}
TREES = ("eagle3",)
NGRAM_SIZE = 2

NOTES = {"ngram": "without the overlap scheduler, which it cannot run with"}
CHAINS_ONLY = "takes trees with Eagle3 only, of at most topk x depth drafts"
SCHEDULED = (
    "keys are the last batch of each range since 2026-03 (pull request 10860), the first one before that; beyond the "
    "last key nothing is drafted"
)
FORCED = (
    "accepts the whole part of A - 1 always and one more by its fraction (least variance); not the distribution that "
    "was assumed; some releases read whole numbers only"
)


def _fields(ask: Wanted) -> str:
    count = "num_nextn_predict_layers" if ask.drafter == OWN_MODULES else "max_draft_len"
    fields = f"decoding_type: {TYPES[ask.drafter]}, {count}: {ask.k}"
    if ask.drafter == "ngram":
        return f"{fields}, max_matching_ngram_size: {NGRAM_SIZE}"
    return fields if ask.drafter == OWN_MODULES else f"{fields}, speculative_model: {DRAFT_MODEL}"


def _yaml(fields: str) -> str:
    return f"speculative_config: {{{fields}}}"


def flags(ask: Wanted) -> str | None:
    """The YAML for a chain, or for EAGLE-3's dynamic tree (its drafts do not count the root)."""
    if ask.drafter not in TYPES:
        return None
    if not ask.is_tree:
        return _yaml(_fields(ask))
    if ask.drafter not in TREES or not ask.k <= ask.nodes - 1 <= ask.topk * ask.k:
        return None
    tree = f"use_dynamic_tree: true, dynamic_tree_max_topK: {ask.topk}"
    return _yaml(f"{_fields(ask)}, {tree}, max_total_draft_tokens: {ask.nodes - 1}")


def schedule(ask: Wanted, ranges: Ranges) -> str | None:
    """K by batch size: the last batch of each range is its key; the first K has to be the largest."""
    if ask.drafter not in TYPES or ask.drafter == "ngram" or ranges[0][2] != ask.k:
        return None
    drafted = list(ranges)
    while drafted and not drafted[-1][2]:
        drafted.pop()
    pairs = ", ".join(f"{last}: {k}" for _, last, k in drafted)
    return _yaml(f"{_fields(ask)}, draft_len_schedule: {{{pairs}}}")


def forced(ask: Wanted | None, survival: tuple[float, ...]) -> str | None:
    """A variable of the environment: accepted drafts without the bonus token."""
    if ask is not None and (ask.drafter not in TYPES or ask.drafter == "ngram" or ask.is_tree):
        return None
    return f"TLLM_SPEC_DECODE_FORCE_NUM_ACCEPTED_TOKENS={number(sum(survival))}"
