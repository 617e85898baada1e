"""SGLang: steps, branching and verified tokens, which count the root of a tree and the anchor of a block.

Sources: SGLang 0.5.23 ``arg_groups``, ``speculative/adaptive_spec_params.py``, ``adaptive_step_router.py``,
``speculative/dspark_components/dspark_sps.py``, ``environ.py``, ``speculative/spec_utils.py``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from rooflinekit.engines.wanted import DRAFT_MODEL, OWN_MODULES, Ranges, Wanted, number
from rooflinekit.errors import RooflineError

ALGORITHMS = {
    "small-lm": "STANDALONE",
    "eagle": "EAGLE",
    "eagle3": "EAGLE3",
    "dflash": "DFLASH",
    "dspark": "DSPARK",
    "mtp": "NEXTN",
    "ngram": "NGRAM",
}
BLOCKS = ("dflash", "dspark")
ADAPTIVE = ("eagle", "eagle3")
"""Algorithms whose number of steps may change while serving."""
ADAPTIVE_FILE = "adaptive.json"

NOTES = {"ngram": "on CUDA only; searches a trie of what was served, not the prompt alone"}
BLOCKS_ONLY = "verifies the block as a chain: no flags for a tree"
SCHEDULED = f"for EAGLE and EAGLE-3 chains; write {ADAPTIVE_FILE} first; a batch is taken as its CUDA graph's"
FORCED = (
    "accepts the whole number below or above the length, so that the mean is right (least variance), with one draw "
    "for the whole batch; not the distribution that was assumed"
)


def flags(ask: Wanted) -> str | None:
    """Flags for a chain or, for drafters that take one step after the other, a tree."""
    if ask.drafter not in ALGORITHMS:
        return None
    path = "" if ask.drafter in (OWN_MODULES, "ngram") else f"--speculative-draft-model-path {DRAFT_MODEL} "
    start = f"--speculative-algorithm {ALGORITHMS[ask.drafter]} {path}"
    # A chain verifies K + 1 rows, and this engine counts the root among its draft tokens.
    verified = ask.nodes if ask.is_tree else ask.k + 1
    if ask.drafter == "ngram":
        breadth = f"--speculative-ngram-max-bfs-breadth {ask.topk}"
        return start + f"--speculative-num-draft-tokens {verified} {breadth}"
    if ask.drafter in BLOCKS:
        if ask.is_tree:
            return None
        size = f"dflash-block-size {ask.k + 1}" if ask.drafter == "dflash" else f"dspark-block-size {ask.k}"
        return start + f"--speculative-{size}"
    return start + (
        f"--speculative-num-steps {ask.k} --speculative-eagle-topk {ask.topk} "
        f"--speculative-num-draft-tokens {verified}"
    )


def schedule(ask: Wanted, ranges: Ranges) -> dict[str, str]:
    """Flags, and the text of the file that they name; empty where the engine cannot follow."""
    chain = flags(ask)
    if chain is None or ask.drafter not in ADAPTIVE:
        return {}
    switch = f"--speculative-adaptive --speculative-adaptive-config {ADAPTIVE_FILE}"
    text = json.dumps(adaptive_config(ranges), separators=(",", ":"))
    return {"sglang": f"{chain} {switch}", f"sglang {ADAPTIVE_FILE}": text}


def adaptive_config(ranges: Sequence[tuple[int, int, int]]) -> dict[str, dict[str, list[int]]]:
    """Steps by batch size: each key is the smallest batch of its range, with one candidate so that K is fixed.

    Examples
    --------
    >>> adaptive_config([(1, 8, 5), (9, 64, 0)])
    {'1': {'candidate_steps': [5]}, '9': {'candidate_steps': [0]}}
    """
    return {str(first): {"candidate_steps": [k]} for first, _, k in ranges}


def forced(ask: Wanted | None, survival: tuple[float, ...]) -> str | None:
    """Variables of the server's environment; the length includes the bonus token."""
    if ask is not None and (ask.drafter not in ALGORITHMS or ask.drafter == "ngram"):
        return None
    # Real draft tokens can be taken along a chain only.
    tokens = "fixed" if ask is not None and ask.is_tree else "real-draft-token"
    return (
        f"SGLANG_SIMULATE_ACC_LEN={number(1.0 + sum(survival))} SGLANG_SIMULATE_ACC_METHOD=match-expected "
        f"SGLANG_SIMULATE_ACC_TOKEN_MODE={tokens}"
    )


def dspark_step_table(tokens: Sequence[int], step_s: Sequence[float], max_tokens: int) -> dict[str, Any]:
    """The step-cost table of ``--speculative-dspark-sps-table-path``, by which DSpark picks what to verify.

    Parameters
    ----------
    tokens
        Rows of a verify over all sequences (requests and their drafts), rising. The engine takes the row
        below without interpolating, so give many.
    step_s
        Time of a step that verifies so many (s).
    max_tokens
        Largest number of rows that is to be verified.

    Raises
    ------
    RooflineError
        The rows do not rise from 1 on, there are as many times as rows, or a time is not positive.

    Examples
    --------
    >>> dspark_step_table([8, 16], [0.01, 0.0125], 64)["sample_steps_per_sec"]
    [100.0, 80.0]
    """
    rows = [int(count) for count in tokens]
    rising = rows and rows[0] >= 1 and all(a < b for a, b in pairwise(rows)) and max_tokens >= rows[-1]
    if not rising or len(rows) != len(step_s) or not all(0.0 < time < float("inf") for time in step_s):
        raise RooflineError(
            f"no step table from {len(rows)} numbers of tokens, {len(step_s)} times and at most {max_tokens} tokens; "
            "give rising tokens from 1 to that largest number, and a time above 0 for each"
        )
    rates = [1.0 / float(time) for time in step_s]
    return {"sample_batch_tokens": rows, "sample_steps_per_sec": rates, "max_batch_tokens": int(max_tokens)}
