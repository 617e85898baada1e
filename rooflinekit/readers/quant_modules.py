"""Which tensor classes the module names of a quantized checkpoint mean: plain names, globs and ``re:`` patterns."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterable
from itertools import combinations

OUTPUT = "attention output"
"""Class of an attention's output projection where a checkpoint stores it unlike the others."""

_PREFIXES = ("model.layers", "model.language_model.layers", "language_model.model.layers", "backbone.layers")
_IN_LAYER = {
    "attention": (
        *("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.qkv_proj"),
        *("self_attn.q_a_proj", "self_attn.q_b_proj", "self_attn.kv_b_proj"),
        "self_attn.kv_a_proj_with_mqa",
    ),
    OUTPUT: ("self_attn.o_proj",),
    "mlp": ("mlp.gate_proj", "mlp.up_proj", "mlp.gate_up_proj", "mlp.down_proj", "feed_forward.up_proj"),
    "experts": (
        *("mlp.experts", "mlp.experts.0.up_proj", "feed_forward.experts"),
        *("block_sparse_moe.experts.0.w1", "mixer.experts.0.up_proj"),
    ),
    "shared": (
        *("mlp.shared_expert.up_proj", "mlp.shared_experts.up_proj"),
        *("feed_forward.shared_expert.up_proj", "mixer.shared_experts.up_proj"),
    ),
    "recurrent": ("linear_attn.in_proj_qkv", "linear_attn.in_proj_qkvz", "linear_attn.out_proj"),
}
_ONCE = {"head": ("lm_head",), "embedding": ("model.embed_tokens", "model.language_model.embed_tokens")}

LINEARS = (*_IN_LAYER,)
"""Classes that hold the matrices of the layers."""


class Modules:
    """A list of module names or patterns, ready to ask about one name after the other.

    A plain name also means everything inside it, wherever it stands: ``lm_head``, ``model.layers.3``,
    ``self_attn`` and ``gate`` are all in use.
    """

    def __init__(self, patterns: Iterable[str]) -> None:
        self._plain: set[str] = set()
        self._tests: list[Callable[[str], object]] = []
        for pattern in dict.fromkeys(patterns):
            if pattern.startswith("re:"):
                self._tests.append(_compiled(pattern[3:]).match)
            elif any(mark in pattern for mark in "*?["):
                self._tests.append(re.compile(fnmatch.translate(pattern)).match)
                self._tests.append(re.compile(fnmatch.translate(pattern + ".*")).match)
            else:
                self._plain.add(pattern)

    def __contains__(self, name: str) -> bool:
        """Whether a module is meant."""
        parts = name.split(".")
        spans = combinations(range(len(parts) + 1), 2)
        if any(".".join(parts[start:end]) in self._plain for start, end in spans):
            return True
        return any(test(name) for test in self._tests)

    def layers_of(self, tensor_class: str, layers: int) -> int:
        """In how many layers a tensor class is meant; all or none for tables."""
        if tensor_class in _ONCE:
            return layers if any(name in self for name in _ONCE[tensor_class]) else 0
        probes = _IN_LAYER[tensor_class]
        return sum(
            any(f"{prefix}.{layer}.{probe}" in self for prefix in _PREFIXES for probe in probes)
            for layer in range(layers)
        )

    def has_mtp(self, layers: int) -> bool:
        """Whether the MTP modules are meant: ``mtp`` by name, or the layer after the last."""
        probes = ("mtp.layers.0.mlp.up_proj", *(f"{prefix}.{layers}.mlp.up_proj" for prefix in _PREFIXES))
        return any(name in self for name in probes)


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error:
        return re.compile(re.escape(pattern))


def left_out(patterns: Iterable[str], layers: int) -> tuple[str, ...]:
    """Classes that a list of exceptions leaves unquantized in most layers; ``mtp`` is one of them here."""
    modules = Modules(patterns)
    found = [one for one in LINEARS if 2 * modules.layers_of(one, layers) > layers]
    return (*found, "mtp") if modules.has_mtp(layers) else tuple(found)
