"""What a model keeps in memory: weights of every expert and table, the cache and state of every sequence."""

from __future__ import annotations

import numpy as np

from rooflinekit.llm import Block, Compressed, Llm, Moe
from rooflinekit.mixers import STATE_BYTES
from rooflinekit.precision import Precision
from rooflinekit.work import Real


def kv_cache_bytes(llm: Llm, batch: Real, context: Real, precision: Precision, tp: int = 1) -> Real:
    """Cache and recurrent states of ``batch`` sequences of ``context`` tokens on one rank (B), windows cut off."""
    total: Real = batch * llm.state_elements(tp) * STATE_BYTES
    for block in llm.blocks:
        total = total + batch * block.count * cached_elements(block, context, tp) * precision.bytes_per_kv
        if block.cross is not None:
            crossed = block.count * block.cross.kv_elements(tp)
            total = total + batch * context * crossed * precision.bytes_per_kv
    return total


def snapshot_bytes(llm: Llm, batch: float, k: float, tp: int = 1) -> float:
    """Recurrent states that a verify of ``k`` drafted tokens holds beyond one for each sequence (B).

    The state after every row is kept until it is known which rows survive; a cache needs no copies, since
    what is rejected is cut off its end.
    """
    return batch * k * llm.state_elements(tp) * STATE_BYTES


def cached_elements(block: Block, context: Real, tp: int = 1) -> Real:
    """Elements of one sequence in one layer's cache, what left the window dropped."""
    mixer = block.mixer
    if isinstance(mixer, Compressed):
        past = context * mixer.entry / mixer.ratio if mixer.ratio else 0.0
        return np.minimum(context, mixer.window) * mixer.head_dim + past
    kept = context if block.window is None else np.minimum(context, block.window)
    return kept * block.kv_elements(tp)


def layer_bytes(block: Block, hidden: int, precision: Precision, tp: int = 1) -> float:
    """Weights of one group of layers on one rank (B), each tensor class in its own format."""
    total = sum(
        linear.parameters * precision.bytes_per(linear.tensor_class) for linear in block.linears(hidden, tp)
    )
    if isinstance(block.ffn, Moe):
        experts = block.ffn.experts * block.ffn.expert_parameters(hidden) / tp
        total += experts * precision.bytes_per("experts")
    return block.count * (total + block.vector_parameters(hidden) * precision.bytes_per("vectors"))


def resident_weight_bytes(llm: Llm, precision: Precision, tp: int = 1) -> float:
    """Weights one rank holds (B): every expert, the encoder, the embedding and the head (once when tied)."""
    layers = sum(layer_bytes(block, llm.hidden, precision, tp) for block in (*llm.blocks, *llm.encoder))
    # Tied tables are one: held, and read for its rows, in the format that the head is computed in.
    each = ("head",) if llm.tied else ("embedding", "head")
    tables = sum(llm.embedding_params * precision.bytes_per(name) / tp for name in each)
    return layers + tables + llm.other_params * precision.bytes_per("vectors")
