"""Works of a layer's mixer: attention over the cache, latent attention, recurrent states."""

from __future__ import annotations

import numpy as np

from rooflinekit.llm import Attention, Block, BlockSparse, Compressed, GatedDelta, Indexer, Mamba2, Mla
from rooflinekit.load import Load
from rooflinekit.precision import Precision
from rooflinekit.work import Real, Work

STATE_BYTES = 4.0
"""Recurrent states are kept in fp32 by the engines we know."""


def attention_dtype(precision: Precision) -> str:
    """Format that scores and values compute in."""
    # Queries, scores and values are in 16 bits behind quantised linears, whatever the cache is stored in.
    plain = precision.compute in ("bf16", "fp16", "fp32")
    return precision.compute if plain else precision.of("vectors").compute


def attention_kind(load: Load) -> str:
    """Kind of work: a prompt's attention runs in other kernels than that of a decode or a verify."""
    return "prefill" if load.prefill else "attention"


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


def chosen(positions: Real, pairs: Real, load: Load, top_k: int | None) -> tuple[Real, Real]:
    """Positions read and pairs computed where an index keeps ``top_k`` positions per query row.

    Rows of a verify are charged as if they chose different ones: an upper bound, never more than all.
    """
    if top_k is None:
        return positions, pairs
    most = top_k * load.width
    return np.minimum(positions, most), np.minimum(pairs, most)


def index_work(index: Indexer, count: Real, load: Load, precision: Precision, condensed: float = 1.0) -> Work:
    """Scan of the index: a key per cached position (or per ``condensed`` of them), on every rank."""
    positions, pairs = attended(load, None)
    width = index.heads * index.head_dim
    return Work(
        "index scan",
        "attention",
        attention_dtype(precision),
        load.width * index.heads,
        flops=count * 2.0 * load.batch * width * pairs / condensed,
        kv_bytes=count * load.batch * positions / condensed * index.head_dim * precision.bytes_per_kv,
        activation_bytes=count * load.rows * width * precision.bytes_per_activation,
        kernels=count,
    )


def compressed_works(
    spec: Compressed, count: Real, load: Load, precision: Precision, tp: int
) -> tuple[Work, ...]:
    """DeepSeek-V4's attention: the window as it is, the past in condensed entries, all or the best of them.

    An entry serves as key and as value, so it is read once. Entries are counted as context over ratio,
    without the window that is still filling (at most one entry off). Values and gates of tokens wait for
    their window in the state's format: written once, read once.
    """
    seen, pairs = attended(load, spec.window)
    works = []
    if spec.ratio:
        entries, scored = attended(load, None)
        entries, scored = entries / spec.ratio, scored / spec.ratio
        if spec.indexer is not None:
            works.append(index_work(spec.indexer, count, load, precision, spec.ratio))
            entries, scored = chosen(entries, scored, load, spec.indexer.top_k)
        seen, pairs = seen + entries, pairs + scored
        works.append(condensing_work(spec, count, load, precision))
    heads = spec.heads / tp
    works.append(
        Work(
            "attention",
            "attention",
            attention_dtype(precision),
            load.width * heads,
            flops=count * 4.0 * load.batch * heads * spec.head_dim * pairs,
            kv_bytes=count * load.batch * seen * spec.head_dim * precision.bytes_per_kv,
            activation_bytes=count * load.rows * heads * 2 * spec.head_dim * precision.bytes_per_activation,
            kernels=count,
        )
    )
    return tuple(works)


def condensing_work(spec: Compressed, count: Real, load: Load, precision: Precision) -> Work:
    """Values and gates of the window that is filling: weighted, summed and dropped when it is full."""
    pending = spec.pending_per_token()
    return Work(
        "kv compressor",
        "recurrent",
        attention_dtype(precision),
        load.rows,
        flops=count * load.rows * 2.0 * pending,
        kv_bytes=count * load.rows * 2.0 * pending * STATE_BYTES,
        activation_bytes=0.0 * load.rows,
        kernels=count,
    )


def mixer_works(block: Block, load: Load, precision: Precision, tp: int) -> tuple[Work, ...]:
    """Works of one group's mixer besides its weight matrices, on one rank."""
    mixer, works = block.mixer, []
    if isinstance(mixer, Attention):
        works.append(attention_work(mixer, block.count, load, precision, tp))
    elif isinstance(mixer, Mla):
        works += mla_works(mixer, block.count, load, precision, tp)
    elif isinstance(mixer, BlockSparse):
        works.append(index_work(mixer.indexer, block.count, load, precision))
        top_k = mixer.indexer.top_k
        works.append(attention_work(mixer.attention, block.count, load, precision, tp, top_k=top_k))
    elif isinstance(mixer, Compressed):
        works += compressed_works(mixer, block.count, load, precision, tp)
    elif mixer is not None:
        works.append(recurrent_work(mixer, block.count, load, precision, tp))
    if block.cross is not None:
        works.append(cross_work(block.cross, block.count, load, precision, tp))
    return tuple(works)


def attention_work(
    spec: Attention,
    count: Real,
    load: Load,
    precision: Precision,
    tp: int = 1,
    *,
    top_k: int | None = None,
) -> Work:
    """Scores and values of ``count`` equal layers: the KV cache once per sequence, not per query row.

    With ``top_k`` a query reads that many positions, which an index chose.
    """
    positions, pairs = chosen(*attended(load, spec.window), load, top_k)
    heads = spec.heads / tp
    kv_heads = spec.kv_heads_per_rank(tp)
    # A layer that shares another's cache still reads it.
    kv_elements = kv_heads * (spec.head_dim + spec.values)
    return Work(
        "attention",
        attention_kind(load),
        attention_dtype(precision),
        load.width * heads / kv_heads,
        flops=count * 2.0 * load.batch * heads * (spec.head_dim + spec.values) * pairs,
        kv_bytes=count * load.batch * positions * kv_elements * precision.bytes_per_kv,
        activation_bytes=count
        * load.rows
        * heads
        * (spec.head_dim + spec.values)
        * precision.bytes_per_activation,
        kernels=count,
        groups=load.rows * heads if load.prefill else load.batch * kv_heads,
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
        groups=load.batch * spec.kv_heads_per_rank(tp),
    )


def mla_works(spec: Mla, count: Real, load: Load, precision: Precision, tp: int) -> tuple[Work, ...]:
    """Latent attention, and before it the index where attention is sparse.

    Absorbed in decode and verify (queries and outputs live in the latent space, DeepSeek-V2 section
    2.1.2), expanded in a prefill. An index scans one key per cached position, where the layer has its own;
    the attention then reads ``top_k`` positions per row (see :func:`chosen`).
    """
    positions, pairs = attended(load, None)
    heads = spec.heads / tp
    works = []
    if spec.indexer is not None:
        if not spec.indexer.shared:
            works.append(index_work(spec.indexer, count, load, precision))
        positions, pairs = chosen(positions, pairs, load, spec.indexer.top_k)
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
            attention_kind(load) if load.prefill or spec.indexer is not None else "latent",
            attention_dtype(precision),
            load.width * heads,
            flops=count * load.batch * heads * per_pair * pairs,
            kv_bytes=count * load.batch * positions * latent * precision.bytes_per_kv,
            activation_bytes=count * load.rows * heads * io * precision.bytes_per_activation,
            kernels=count,
            groups=load.rows * heads if load.prefill else load.batch,
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
        activation_bytes=count * load.rows * spec.io_elements(tp) * precision.bytes_per_activation,
        kernels=2.0 * count,
    )
