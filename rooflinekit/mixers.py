"""Works of a layer's mixer: attention over the cache, latent attention, recurrent states."""

from __future__ import annotations

import numpy as np

from rooflinekit.llm import Attention, Block, GatedDelta, Mamba2, Mla
from rooflinekit.load import Load
from rooflinekit.precision import Precision
from rooflinekit.work import Real, Work

STATE_BYTES = 4.0
"""Recurrent states are kept in fp32 by the engines we know."""


def attention_dtype(precision: Precision) -> str:
    """Format that scores and values compute in."""
    # Queries, scores and values are in 16 bits behind quantised linears, whatever the cache is stored in.
    return precision.compute if precision.compute in ("bf16", "fp16", "fp32") else "bf16"


def attended(load: Load, window: int | None) -> tuple[Real, Real]:
    """Cache positions read, and query-key pairs computed, per sequence.

    The cache is read once for all rows of a sequence, whatever the width; the pairs are causal:
    ``W S + W (W + 1) / 2``.

    Returns
    -------
    positions, pairs
        Counts per sequence. A window of w tokens leaves ``w + W - 1`` positions and at most ``W w`` pairs.
    """
    positions = load.context + load.width
    pairs = load.width * load.context + load.width * (load.width + 1) / 2
    if window is None:
        return positions, pairs
    # Rows that see fewer than `window` tokens stand at the start of a short context.
    short = np.clip(window - load.context, 0.0, load.width)
    pairs = short * load.context + short * (short + 1) / 2 + (load.width - short) * window
    limited = np.minimum(positions, window + load.width - 1)
    return limited, pairs


def mixer_works(block: Block, load: Load, precision: Precision, tp: int) -> tuple[Work, ...]:
    """Works of one group's mixer besides its weight matrices, on one rank."""
    mixer, works = block.mixer, []
    if isinstance(mixer, Attention):
        works.append(attention_work(mixer, block.count, load, precision, tp))
    elif isinstance(mixer, Mla):
        works += mla_works(mixer, block.count, load, precision, tp)
    elif mixer is not None:
        works.append(recurrent_work(mixer, block.count, load, precision, tp))
    if block.cross is not None:
        works.append(cross_work(block.cross, block.count, load, precision, tp))
    return tuple(works)


def attention_work(spec: Attention, count: Real, load: Load, precision: Precision, tp: int = 1) -> Work:
    """Scores and values of ``count`` equal layers: the KV cache once per sequence, not per query row."""
    positions, pairs = attended(load, spec.window)
    heads = spec.heads / tp
    # A layer that shares another's cache still reads it.
    kv_elements = spec.kv_heads_per_rank(tp) * (spec.head_dim + spec.values)
    return Work(
        "attention",
        "attention",
        attention_dtype(precision),
        load.width * heads / spec.kv_heads_per_rank(tp),
        flops=count * 2.0 * load.batch * heads * (spec.head_dim + spec.values) * pairs,
        kv_bytes=count * load.batch * positions * kv_elements * precision.bytes_per_kv,
        activation_bytes=count
        * load.rows
        * heads
        * (spec.head_dim + spec.values)
        * precision.bytes_per_activation,
        kernels=count,
    )


def cross_work(spec: Attention, count: Real, load: Load, precision: Precision, tp: int = 1) -> Work:
    """Attention to an encoder's output, taken as long as the context: read whole by every step, not causal."""
    heads = spec.heads / tp
    kv_elements = spec.kv_heads_per_rank(tp) * 2 * spec.head_dim
    return Work(
        "cross-attention",
        "attention",
        attention_dtype(precision),
        load.width * heads / spec.kv_heads_per_rank(tp),
        flops=count * 4.0 * load.batch * heads * spec.head_dim * load.width * load.context,
        kv_bytes=count * load.batch * load.context * kv_elements * precision.bytes_per_kv,
        activation_bytes=count * load.rows * 2 * heads * spec.head_dim * precision.bytes_per_activation,
        kernels=count,
    )


def mla_works(spec: Mla, count: Real, load: Load, precision: Precision, tp: int) -> tuple[Work, ...]:
    """Latent attention, and before it the index where attention is sparse.

    Absorbed in decode and verify (queries and outputs live in the latent space, DeepSeek-V2 section
    2.1.2), expanded in a prefill. An index scans one key per cached position; the attention then reads
    ``top_k`` positions per row. Rows of a verify are charged as if they chose different ones: an upper
    bound, never more than the whole cache.
    """
    positions, pairs = attended(load, None)
    heads = spec.heads / tp
    works = []
    if spec.indexer is not None:
        index = spec.indexer
        works.append(
            Work(
                "index scan",
                "attention",
                attention_dtype(precision),
                load.width * index.heads,
                flops=count * 2.0 * load.batch * index.heads * index.head_dim * pairs,
                kv_bytes=count * load.batch * positions * index.head_dim * precision.bytes_per_kv,
                activation_bytes=count
                * load.rows
                * index.heads
                * index.head_dim
                * precision.bytes_per_activation,
                kernels=count,
            )
        )
        positions = np.minimum(positions, index.top_k * load.width)
        pairs = np.minimum(pairs, index.top_k * load.width)
    if load.prefill:
        per_pair = 2.0 * (spec.nope_dim + spec.rope_dim + spec.value_dim)
        # Queries in, expanded keys and values in, values out.
        io = 2 * (spec.nope_dim + spec.rope_dim) + 2 * spec.value_dim
    else:
        per_pair = 2.0 * (2 * spec.kv_lora_rank + spec.rope_dim)
        io = 2 * spec.kv_lora_rank + spec.rope_dim
    latent = spec.kv_lora_rank + spec.rope_dim
    works.append(
        Work(
            "attention",
            "attention",
            attention_dtype(precision),
            load.width * heads,
            flops=count * load.batch * heads * per_pair * pairs,
            kv_bytes=count * load.batch * positions * latent * precision.bytes_per_kv,
            activation_bytes=count * load.rows * heads * io * precision.bytes_per_activation,
            kernels=count,
        )
    )
    return tuple(works)


def recurrent_work(spec: GatedDelta | Mamba2, count: Real, load: Load, precision: Precision, tp: int) -> Work:
    """A state of constant size: read once, and written after every row so that a rejected draft can be undone.

    A prefill keeps only the last state.
    """
    state = spec.state_elements(tp) * STATE_BYTES
    writes = 1.0 if load.prefill else load.width
    return Work(
        "recurrent state",
        "recurrent",
        attention_dtype(precision),
        load.rows,
        flops=count * load.rows * spec.flops_per_token(tp),
        kv_bytes=count * load.batch * state * (1.0 + writes),
        activation_bytes=0.0 * load.rows,
        kernels=2.0 * count,
    )
