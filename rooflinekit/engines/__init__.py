"""Flags that carry a recommended K, tree or schedule to the engines, each with its own way of counting.

One file for each engine. In every engine the printed acceptance length includes the bonus token;
TensorRT-LLM's forced number of accepted tokens does not.
"""

from __future__ import annotations

from collections.abc import Sequence

from rooflinekit.engines import llama_cpp, sglang, tensorrt_llm, transformers, vllm
from rooflinekit.engines.sglang import adaptive_config, dspark_step_table
from rooflinekit.engines.wanted import (
    DRAFT_MODEL,
    OWN_MODULES,
    Wanted,
    checked_schedule,
    checked_survival,
)

__all__ = [
    "DRAFT_MODEL",
    "FORCED_NOTES",
    "OWN_MODULES",
    "SCHEDULE_NOTES",
    "adaptive_config",
    "dspark_step_table",
    "flags",
    "forced_acceptance",
    "notes",
    "schedule_flags",
]

FORCED_NOTES = {
    "vllm": vllm.FORCED,
    "sglang": sglang.FORCED,
    "tensorrt-llm": tensorrt_llm.FORCED,
    "llama.cpp": llama_cpp.FORCED,
}
"""The distribution that each engine makes of a forced acceptance; the text it then writes is unusable."""

SCHEDULE_NOTES = {
    "vllm": vllm.SCHEDULED,
    "sglang": sglang.SCHEDULED,
    "tensorrt-llm": tensorrt_llm.SCHEDULED,
}
"""What to know of each engine's schedule over the batch."""


def _asked(drafter: str, k: int, topk: int, nodes: int | None, layers: int | None = None) -> Wanted:
    return Wanted(drafter, k, topk, topk * k + 1 if nodes is None else nodes, layers or 0)


def _present(found: dict[str, str | None]) -> dict[str, str]:
    return {engine: text for engine, text in found.items() if text is not None}


def flags(
    drafter: str, k: int, *, topk: int = 1, nodes: int | None = None, layers: int | None = None
) -> dict[str, str]:
    """Runnable flags by engine; engines that cannot run the drafter, or its tree, are left out.

    Parameters
    ----------
    drafter
        Short name of the drafter.
    k
        Drafted tokens per round (the bonus token and the anchor not counted); depth of a tree.
    topk
        Candidates that each node of a tree branches into; 1 for a chain.
    nodes
        Tokens of a tree that are verified, root included; topk x K + 1 by default.
    layers
        Layers that ``layer-skip`` drafts with.

    Examples
    --------
    >>> flags("eagle3", 3)["llama.cpp"]
    '--spec-type draft-eagle3 -md DRAFT_MODEL --spec-draft-n-max 3 --spec-draft-p-min 0'
    >>> "--speculative-dflash-block-size 16" in flags("dflash", 15)["sglang"]
    True
    >>> flags("mtp", 2)["tensorrt-llm"], flags("medusa", 3)
    ('speculative_config: {decoding_type: MTP, num_nextn_predict_layers: 2}', {})
    >>> sorted(flags("eagle", 5, topk=4, nodes=16))
    ['sglang']
    """
    ask = _asked(drafter, k, topk, nodes, layers)
    found = {
        "vllm": vllm.flags(ask),
        "sglang": sglang.flags(ask),
        "tensorrt-llm": tensorrt_llm.flags(ask),
        "llama.cpp": llama_cpp.flags(ask),
        "transformers": transformers.flags(ask),
    }
    return _present(found)


def notes(drafter: str, *, topk: int = 1) -> dict[str, str]:
    """What the flags leave unsaid, by engine: other methods of it, limits, and why there are none for a tree.

    Parameters
    ----------
    drafter
        Short name of the drafter.
    topk
        Branching of a tree; 1 for a chain.

    Examples
    --------
    >>> notes("eagle3", topk=4)["vllm"]
    'verifies chains only: no flags for a tree'
    """
    if topk > 1:
        blocks = sglang.BLOCKS_ONLY if drafter in sglang.BLOCKS else None
        trees = {
            "vllm": vllm.CHAINS_ONLY if drafter in vllm.METHODS else None,
            "sglang": blocks,
            "tensorrt-llm": tensorrt_llm.CHAINS_ONLY if drafter in tensorrt_llm.TYPES else None,
            "llama.cpp": llama_cpp.CHAINS_ONLY if drafter in llama_cpp.TYPES else None,
            "transformers": transformers.CHAINS_ONLY if drafter in transformers.NOTES else None,
        }
        return _present(trees)
    found = {
        "vllm": vllm.NOTES.get(drafter),
        "sglang": sglang.NOTES.get(drafter),
        "tensorrt-llm": tensorrt_llm.NOTES.get(drafter),
        "llama.cpp": llama_cpp.NOTES.get(drafter),
        "transformers": transformers.NOTES.get(drafter),
    }
    return _present(found)


def schedule_flags(drafter: str, schedule: Sequence[tuple[int, int, int]]) -> dict[str, str]:
    """Flags that let K follow the batch size, by engine; engines that cannot are left out.

    SGLang reads its schedule from a file: the entry ``sglang adaptive.json`` is the text to write into it.

    Parameters
    ----------
    drafter
        Short name of the drafter.
    schedule
        Ranges (first batch, last batch, K), both ends included, from batch 1 on and without gaps; K = 0 is
        plain decoding.

    Raises
    ------
    RooflineError
        The ranges are no schedule.

    Examples
    --------
    >>> schedule_flags("mtp", [(1, 16, 3), (17, 64, 1), (65, 256, 0)])["tensorrt-llm"]
    'speculative_config: {decoding_type: MTP, num_nextn_predict_layers: 3, draft_len_schedule: {16: 3, 64: 1}}'
    """
    ranges = checked_schedule(schedule)
    largest = max(k for _, _, k in ranges)
    if not largest:
        return {}
    ask = _asked(drafter, largest, 1, None)
    found: dict[str, str | None] = {
        "vllm": vllm.schedule(ask, ranges),
        **sglang.schedule(ask, ranges),
        "tensorrt-llm": tensorrt_llm.schedule(ask, ranges),
    }
    return _present(found)


def forced_acceptance(
    survival: Sequence[float], drafter: str | None = None, *, topk: int = 1, nodes: int | None = None
) -> dict[str, str]:
    """Options or variables that force an acceptance, so that an engine's times show the cost alone.

    What each engine makes of it stands in :data:`FORCED_NOTES`; the text that is written is unusable.

    Parameters
    ----------
    survival
        P(first i drafts all accepted) for i = 1 .. K, where K is that of the flags.
    drafter
        Short name of the drafter: vLLM's option is then complete, and engines that cannot run it are left
        out. Without it vLLM's option has only the fields to add.
    topk, nodes
        A tree, as for :func:`flags`.

    Raises
    ------
    AcceptanceError
        It is no survival.

    Examples
    --------
    >>> forced_acceptance([0.8, 0.6])["tensorrt-llm"]
    'TLLM_SPEC_DECODE_FORCE_NUM_ACCEPTED_TOKENS=1.4'
    >>> forced_acceptance([0.8, 0.6])["llama.cpp"]
    '--spec-synth-rates 0.8,0.6'
    """
    values = checked_survival(survival)
    ask = None if drafter is None else _asked(drafter, len(values), topk, nodes)
    found = {
        "vllm": vllm.forced(ask, values),
        "sglang": sglang.forced(ask, values),
        "tensorrt-llm": tensorrt_llm.forced(ask, values),
        "llama.cpp": llama_cpp.forced(ask, values),
    }
    return _present(found)
