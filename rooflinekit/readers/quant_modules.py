"""Which tensor classes the module names of a quantized checkpoint mean: plain names, globs and ``re:`` patterns."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations

OUTPUT = "attention output"
"""Class of an attention's output projection where a checkpoint stores it unlike the others."""

_COMMON = {
    "attention": (
        *("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.qkv_proj"),
        *("self_attn.q_a_proj", "self_attn.q_b_proj", "self_attn.kv_b_proj"),
        "self_attn.kv_a_proj_with_mqa",
    ),
    OUTPUT: ("self_attn.o_proj",),
    "mlp": (
        *("mlp.gate_proj", "mlp.up_proj", "mlp.gate_up_proj", "mlp.down_proj"),
        *("feed_forward.gate_proj", "feed_forward.up_proj", "feed_forward.down_proj"),
    ),
    "experts": (
        *("mlp.experts", "mlp.experts.0.gate_proj", "mlp.experts.0.up_proj", "mlp.experts.0.down_proj"),
        *("mlp.experts.gate_up_proj", "mlp.experts.down_proj"),
        *("feed_forward.experts", "feed_forward.experts.gate_up_proj", "feed_forward.experts.down_proj"),
        *(f"feed_forward.experts.0.{name}_proj" for name in ("gate", "up", "down")),
        *(f"block_sparse_moe.experts.0.{name}" for name in ("w1", "w2", "w3")),
    ),
    "shared": (
        *(f"mlp.shared_expert.{name}_proj" for name in ("gate", "up", "down")),
        *(f"mlp.shared_experts.{name}_proj" for name in ("gate", "up", "down")),
        *(f"feed_forward.shared_expert.{name}_proj" for name in ("gate", "up", "down")),
    ),
    "recurrent": ("linear_attn.in_proj_qkv", "linear_attn.in_proj_qkvz", "linear_attn.out_proj"),
}
_MIXERS = {
    "attention": ("mixer.q_proj", "mixer.k_proj", "mixer.v_proj", "mixer.qkv_proj"),
    OUTPUT: ("mixer.o_proj",),
    "mlp": ("mixer.up_proj", "mixer.down_proj"),
    "experts": ("mixer.experts", "mixer.experts.0.up_proj", "mixer.experts.0.down_proj"),
    "shared": ("mixer.shared_experts.up_proj", "mixer.shared_experts.down_proj"),
    "recurrent": ("mixer.in_proj", "mixer.out_proj"),
}
_OLDER = {
    "attention": ("attn.c_attn", "self_attention.query_key_value"),
    OUTPUT: ("attn.c_proj", "self_attention.dense"),
    "mlp": ("mlp.c_fc", "mlp.c_proj", "mlp.dense_h_to_4h", "mlp.dense_4h_to_h"),
}
_PREFIXES = ("model.layers", "model.language_model.layers", "language_model.model.layers")
# Where the layers stand, and what their matrices are called there: most families; Nemotron, whose layers
# have one part each; GPT-2 and Falcon.
_NAMES: tuple[tuple[tuple[str, ...], Mapping[str, tuple[str, ...]]], ...] = (
    (_PREFIXES, _COMMON),
    (("backbone.layers", "language_model.backbone.layers", "model.layers"), _MIXERS),
    (("transformer.h", "h"), _OLDER),
)
_ONCE = {
    "head": ("lm_head", "language_model.lm_head"),
    "embedding": (
        *("model.embed_tokens", "model.language_model.embed_tokens", "language_model.model.embed_tokens"),
        *("backbone.embeddings", "transformer.wte", "transformer.word_embeddings"),
    ),
}

LINEARS = (*_COMMON,)
"""Classes that hold the matrices of the layers."""
TABLES = (*_ONCE,)
"""Classes that a model has once."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Which layers of a model have matrices of which class.

    Attributes
    ----------
    layers
        Layers in all; draft modules may be numbered from there on.
    having
        Numbers of the layers that have a class, for each of :data:`LINEARS` that the model has.
    """

    layers: int
    having: Mapping[str, frozenset[int]]

    @property
    def classes(self) -> tuple[str, ...]:
        """Those of :data:`LINEARS` that the model has."""
        return tuple(one for one in LINEARS if self.having.get(one))


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
        if self._plain:
            parts = name.split(".")
            spans = combinations(range(len(parts) + 1), 2)
            if any(".".join(parts[start:end]) in self._plain for start, end in spans):
                return True
        return any(test(name) for test in self._tests)

    def layers_of(self, tensor_class: str, layout: Layout) -> frozenset[int]:
        """Layers in which a tensor class is meant, among those that have it."""
        if not self._plain and not self._tests:
            return frozenset()
        names = [
            (prefix, probe)
            for prefixes, probes in _NAMES
            for prefix in prefixes
            for probe in probes.get(tensor_class, ())
        ]
        return frozenset(
            layer
            for layer in layout.having.get(tensor_class, ())
            if any(f"{prefix}.{layer}.{probe}" in self for prefix, probe in names)
        )

    def has_table(self, tensor_class: str) -> bool:
        """Whether the head or the embedding is meant."""
        return any(name in self for name in _ONCE[tensor_class])

    def has_mtp(self, layers: int) -> bool:
        """Whether the MTP modules are meant: ``mtp`` by name, or the layer after the last."""
        probes = ("mtp.layers.0.mlp.up_proj", "mtp.layers.0.mixer.q_proj")
        after = (f"{prefix}.{layers}.mlp.up_proj" for prefix in (*_PREFIXES, "backbone.layers"))
        return any(name in self for name in (*probes, *after))


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error:
        return re.compile(re.escape(pattern))


def left_out(patterns: Iterable[str], layout: Layout) -> tuple[str, ...]:
    """Classes that a list of exceptions leaves unquantized in most layers that have them; ``mtp`` is one here."""
    modules = Modules(patterns)
    found = [
        one for one in layout.classes if 2 * len(modules.layers_of(one, layout)) > len(layout.having[one])
    ]
    return (*found, "mtp") if modules.has_mtp(layout.layers) else tuple(found)
