"""What a model keeps in memory: weights of every expert and table, and the cache of every sequence."""

from __future__ import annotations

import numpy as np

from rooflinekit.llm import Llm, Moe
from rooflinekit.precision import Precision
from rooflinekit.work import Real


def kv_cache_bytes(llm: Llm, batch: Real, context: Real, precision: Precision, tp: int = 1) -> Real:
    """Cache that ``batch`` sequences of ``context`` tokens occupy on one rank (B), windows cut off."""
    total: Real = 0.0
    for block in llm.blocks:
        window = getattr(block.attention, "window", None)
        kept = context if window is None else np.minimum(context, window)
        total = total + batch * kept * block.count * block.attention.kv_elements(tp) * precision.kv_bytes
    return total


def resident_weight_bytes(llm: Llm, precision: Precision, tp: int = 1) -> float:
    """Weights one rank holds (B): every expert, the embedding and the head (once when tied)."""
    per_layer = 0.0
    for block in llm.blocks:
        matrices = sum(linear.parameters for linear in block.linears(llm.hidden, tp))
        if isinstance(block.ffn, Moe):
            matrices += block.ffn.experts * block.ffn.expert_parameters(llm.hidden) / tp
        vectors = block.attention.vector_parameters(llm.hidden) + block.ffn.vector_parameters(llm.hidden)
        per_layer += block.count * (
            matrices * precision.weight_bytes + (vectors + block.norms * llm.hidden) * precision.head_bytes
        )
    tables = llm.embedding_params * (1 if llm.tied else 2) / tp
    return per_layer + (tables + llm.hidden) * precision.head_bytes
