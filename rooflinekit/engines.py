"""Flags that carry a recommended K to the engines, each with its own way of counting.

Sources: vLLM 0.33 ``config/speculative.py``; SGLang 0.5.23 ``arg_groups``; TensorRT-LLM PyTorch backend
recipes; llama.cpp ``common/arg.cpp`` of 2026-10. In every engine the printed acceptance length includes
the bonus token; TensorRT-LLM's forced number of accepted tokens does not.
"""

from __future__ import annotations

_VLLM = {"small-lm": "draft_model", "eagle3": "eagle3", "dflash": "dflash", "dspark": "dspark"}
_SGLANG = {"small-lm": "STANDALONE", "eagle3": "EAGLE3", "dflash": "DFLASH", "dspark": "DSPARK"}
_TENSORRT = {"small-lm": "DraftTarget", "eagle3": "Eagle3"}
_LLAMA_CPP = {
    "small-lm": "draft-simple",
    "eagle3": "draft-eagle3",
    "dflash": "draft-dflash",
    "dspark": "draft-dspark",
}

DRAFT_MODEL = "DRAFT_MODEL"
"""Stands for the path of the drafter's weights, which only the user knows."""


def flags(drafter: str, k: int) -> dict[str, str]:
    """Runnable flags by engine; engines that cannot run the drafter are left out.

    Parameters
    ----------
    drafter
        Short name of the drafter.
    k
        Drafted tokens per round (the bonus token and the anchor not counted).

    Examples
    --------
    >>> flags("eagle3", 3)["llama.cpp"]
    '--spec-type draft-eagle3 -md DRAFT_MODEL --spec-draft-n-max 3 --spec-draft-p-min 0'
    >>> "--speculative-dflash-block-size 16" in flags("dflash", 15)["sglang"]
    True
    """
    result = {}
    if drafter in _VLLM:
        result["vllm"] = (
            "--speculative-config "
            f"""'{{"method":"{_VLLM[drafter]}","model":"{DRAFT_MODEL}","num_speculative_tokens":{k}}}'"""
        )
    if drafter in _SGLANG:
        result["sglang"] = _sglang(drafter, k)
    if drafter in _TENSORRT:
        result["tensorrt-llm"] = (
            "speculative_config: "
            f"{{decoding_type: {_TENSORRT[drafter]}, max_draft_len: {k}, speculative_model: {DRAFT_MODEL}}}"
        )
    if drafter in _LLAMA_CPP:
        kind = _LLAMA_CPP[drafter]
        result["llama.cpp"] = (
            f"--spec-type {kind} -md {DRAFT_MODEL} --spec-draft-n-max {k} --spec-draft-p-min 0"
        )
    return result


def _sglang(drafter: str, k: int) -> str:
    start = f"--speculative-algorithm {_SGLANG[drafter]} --speculative-draft-model-path {DRAFT_MODEL} "
    if drafter == "dflash":
        return start + f"--speculative-dflash-block-size {k + 1}"
    if drafter == "dspark":
        return start + f"--speculative-dspark-block-size {k}"
    # A chain verifies K + 1 rows, and this engine counts the root among its draft tokens.
    return start + (
        f"--speculative-num-steps {k} --speculative-eagle-topk 1 --speculative-num-draft-tokens {k + 1}"
    )
