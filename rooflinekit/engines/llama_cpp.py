"""llama.cpp: ``--spec-type`` of llama-server; K is an upper limit (source: ``common/arg.cpp`` of 2026-10)."""

from __future__ import annotations

from rooflinekit.engines.wanted import DRAFT_MODEL, OWN_MODULES, Wanted, number

TYPES = {
    "small-lm": "draft-simple",
    "eagle3": "draft-eagle3",
    "dflash": "draft-dflash",
    "dspark": "draft-dspark",
    "mtp": "draft-mtp",
    "ngram": "ngram-simple",
}
NOTES = {"ngram": "also ngram-map-k, ngram-map-k4v, ngram-mod and ngram-cache, each with limits of its own"}
CHAINS_ONLY = "its server verifies chains only: no flags for a tree"
FORCED = (
    "every position survives with the rate given: the distribution that was assumed (--spec-synth-len takes a length "
    "and makes it one constant rate)"
)


def flags(ask: Wanted) -> str | None:
    """Flags for a chain that is not cut short by the drafter's confidence."""
    if ask.drafter not in TYPES or ask.is_tree:
        return None
    kind = f"--spec-type {TYPES[ask.drafter]}"
    if ask.drafter == "ngram":
        return f"{kind} --spec-ngram-simple-size-m {ask.k}"
    model = "" if ask.drafter == OWN_MODULES else f" -md {DRAFT_MODEL}"
    return f"{kind}{model} --spec-draft-n-max {ask.k} --spec-draft-p-min 0"


def forced(ask: Wanted | None, survival: tuple[float, ...]) -> str | None:
    """Unconditional rates by position, added to the flags."""
    if ask is not None and (ask.drafter not in TYPES or ask.is_tree):
        return None
    return f"--spec-synth-rates {','.join(map(number, survival))}"
