"""Flags that carry a recommended K to the engines, each with its own way of counting.

Sources: vLLM 0.33 ``config/speculative.py`` (it has no Medusa any more); SGLang 0.5.23 ``arg_groups``;
TensorRT-LLM PyTorch backend recipes (``num_nextn_predict_layers`` is K there, whatever the modules of the
checkpoint); llama.cpp ``common/arg.cpp`` of 2026-10; P-EAGLE: model card of amazon/gpt-oss-20b-p-eagle. In
every engine the printed acceptance length includes the bonus token; TensorRT-LLM's forced number of
accepted tokens does not.
"""

from __future__ import annotations

_VLLM = {
    "small-lm": "draft_model",
    "eagle": "eagle",
    "eagle3": "eagle3",
    "peagle": "eagle3",
    "dflash": "dflash",
    "dspark": "dspark",
    "mtp": "mtp",
}
_SGLANG = {
    "small-lm": "STANDALONE",
    "eagle": "EAGLE",
    "eagle3": "EAGLE3",
    "dflash": "DFLASH",
    "dspark": "DSPARK",
    "mtp": "NEXTN",
}
_TENSORRT = {"small-lm": "DraftTarget", "eagle3": "Eagle3", "mtp": "MTP"}
_LLAMA_CPP = {
    "small-lm": "draft-simple",
    "eagle3": "draft-eagle3",
    "dflash": "draft-dflash",
    "dspark": "draft-dspark",
    "mtp": "draft-mtp",
}

DRAFT_MODEL = "DRAFT_MODEL"
"""Stands for the path of the drafter's weights, which only the user knows."""

OWN_MODULES = "mtp"
"""The drafter whose weights lie in the target's checkpoint: no engine needs a path for it."""


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
    >>> flags("mtp", 2)["tensorrt-llm"], flags("medusa", 3)
    ('speculative_config: {decoding_type: MTP, num_nextn_predict_layers: 2}', {})
    """
    result = {}
    own = drafter == OWN_MODULES
    if drafter in _VLLM:
        result["vllm"] = _vllm(drafter, k)
    if drafter in _SGLANG:
        result["sglang"] = _sglang(drafter, k)
    if drafter in _TENSORRT:
        count = f"num_nextn_predict_layers: {k}" if own else f"max_draft_len: {k}"
        model = "" if own else f", speculative_model: {DRAFT_MODEL}"
        result["tensorrt-llm"] = (
            f"speculative_config: {{decoding_type: {_TENSORRT[drafter]}, {count}{model}}}"
        )
    if drafter in _LLAMA_CPP:
        model = "" if own else f" -md {DRAFT_MODEL}"
        result["llama.cpp"] = (
            f"--spec-type {_LLAMA_CPP[drafter]}{model} --spec-draft-n-max {k} --spec-draft-p-min 0"
        )
    return result


def _vllm(drafter: str, k: int) -> str:
    model = "" if drafter == OWN_MODULES else f'"model":"{DRAFT_MODEL}",'
    parallel = ',"parallel_drafting":true' if drafter == "peagle" else ""
    fields = f'"method":"{_VLLM[drafter]}",{model}"num_speculative_tokens":{k}{parallel}'
    return f"--speculative-config '{{{fields}}}'"


def _sglang(drafter: str, k: int) -> str:
    path = "" if drafter == OWN_MODULES else f"--speculative-draft-model-path {DRAFT_MODEL} "
    start = f"--speculative-algorithm {_SGLANG[drafter]} {path}"
    if drafter == "dflash":
        return start + f"--speculative-dflash-block-size {k + 1}"
    if drafter == "dspark":
        return start + f"--speculative-dspark-block-size {k}"
    # A chain verifies K + 1 rows, and this engine counts the root among its draft tokens.
    return start + (
        f"--speculative-num-steps {k} --speculative-eagle-topk 1 --speculative-num-draft-tokens {k + 1}"
    )
