"""Hugging Face transformers: arguments of ``generate`` (source: ``generation/configuration_utils.py``, 5.24)."""

from __future__ import annotations

from rooflinekit.engines.wanted import Wanted

CHAINS_ONLY = "verifies chains only: no arguments for a tree"
NOTES = {
    "small-lm": "Python, not a server: draft_model is the loaded model; one sequence at a time",
    "ngram": "Python, not a server: one sequence at a time",
    "layer-skip": "Python, not a server: drafts with the first layers, of models trained to exit early",
}
# Without these the engine drafts fewer tokens where it is unsure and adapts K from round to round.
_FIXED = 'num_assistant_tokens_schedule="constant", assistant_confidence_threshold=0.0'


def flags(ask: Wanted) -> str | None:
    """A call of ``generate`` with K drafts."""
    if ask.is_tree:
        return None
    if ask.drafter == "ngram":
        return f"model.generate(**inputs, prompt_lookup_num_tokens={ask.k})"
    drafts = f"num_assistant_tokens={ask.k}, {_FIXED}"
    if ask.drafter == "small-lm":
        return f"model.generate(**inputs, assistant_model=draft_model, {drafts})"
    if ask.drafter == "layer-skip":
        return f"model.generate(**inputs, assistant_early_exit={ask.layers or 'LAYERS'}, {drafts})"
    return None
