"""A forward pass as a list of works: what a decode step, a verify, a draft or a prefill moves and computes.

One function serves all of them: a decode step has ``width`` 1, a verify the number of drafted tokens
plus one, a prefill the length of the prompt. Equal layers are one work (times are homogeneous in bytes,
FLOPs and kernels, so the sum is exact). All numbers are those of one tensor-parallel rank.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rooflinekit.llm import Attention, Block, Linear, Llm, Mla, Moe
from rooflinekit.precision import Precision
from rooflinekit.work import Real, Work

LOGIT_BYTES = 4.0
"""Logits are written, and read again to be sampled, in fp32."""


@dataclass(frozen=True, slots=True)
class Load:
    """What runs through a pass.

    Attributes
    ----------
    batch
        Concurrent sequences.
    context
        Tokens already in the cache, per sequence.
    width
        New rows per sequence: 1 in a decode step, K+1 in a verify, the prompt in a prefill.
    prefill
        Whether the rows are a prompt: the LM head then runs on the last one only, and MLA in expanded form.
    routing_overlap
        How much neighbouring tokens share experts, 0 (independent) to 1 (the same).
    last_row_only
        Whether only the last row of each sequence meets the LM head (always so in a prefill).
    """

    batch: Real = 1.0
    context: Real = 0.0
    width: Real = 1.0
    prefill: bool = False
    routing_overlap: float = 0.0
    last_row_only: bool = False

    @property
    def rows(self) -> Real:
        """Rows of the linear layers."""
        return self.batch * self.width

    @property
    def head_rows(self) -> Real:
        """Rows of the LM head: all of a verify, the last of each prompt."""
        return self.batch if self.prefill or self.last_row_only else self.rows


def linear_work(linear: Linear, rows: Real, precision: Precision, count: Real = 1.0) -> Work:
    """A matrix product, ``count`` equal layers: weights once whatever the rows, inputs and outputs per row."""
    parameters = count * linear.parameters
    return Work(
        linear.label,
        "linear",
        precision.compute,
        rows,
        flops=2.0 * rows * parameters,
        weight_bytes=parameters * precision.weight_bytes + 0.0 * rows,
        activation_bytes=count * rows * (linear.out + linear.inner) * precision.activation_bytes,
        kernels=count,
    )


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


def attention_work(block: Block, load: Load, precision: Precision, tp: int) -> Work:
    """Scores and values of one group of layers: the KV cache once per sequence, not per query row."""
    count, spec = block.count, block.attention
    if isinstance(spec, Mla):
        return _mla_work(spec, count, load, precision, tp)
    positions, pairs = attended(load, spec.window)
    heads = spec.heads / tp
    return Work(
        "attention",
        "attention",
        _attention_dtype(precision),
        load.width * heads / spec.kv_heads_per_rank(tp),
        flops=count * 4.0 * load.batch * heads * spec.head_dim * pairs,
        kv_bytes=count * load.batch * positions * spec.kv_elements(tp) * precision.kv_bytes,
        activation_bytes=count * load.rows * 2 * heads * spec.head_dim * precision.activation_bytes,
        kernels=count,
    )


def _mla_work(spec: Mla, count: int, load: Load, precision: Precision, tp: int) -> Work:
    positions, pairs = attended(load, None)
    heads = spec.heads / tp
    if load.prefill:
        per_pair = 2.0 * (spec.nope_dim + spec.rope_dim + spec.value_dim)
        # Queries in, expanded keys and values in, values out.
        io = 2 * (spec.nope_dim + spec.rope_dim) + 2 * spec.value_dim
    else:
        # Absorbed: queries and outputs live in the latent space (DeepSeek-V2, section 2.1.2).
        per_pair = 2.0 * (2 * spec.kv_lora_rank + spec.rope_dim)
        io = 2 * spec.kv_lora_rank + spec.rope_dim
    return Work(
        "attention",
        "attention",
        _attention_dtype(precision),
        load.width * spec.heads / tp,
        flops=count * load.batch * heads * per_pair * pairs,
        kv_bytes=count * load.batch * positions * spec.kv_elements(tp) * precision.kv_bytes,
        activation_bytes=count * load.rows * heads * io * precision.activation_bytes,
        kernels=count,
    )


def _attention_dtype(precision: Precision) -> str:
    # Queries, scores and values are in 16 bits behind quantised linears, whatever the cache is stored in.
    return precision.compute if precision.compute in ("bf16", "fp16", "fp32") else "bf16"


def experts_touched(moe: Moe, load: Load) -> Real:
    """Distinct routed experts a layer reads: ``U = E (1 - (1 - top_k/E)^r)``.

    The standard occupancy result for uniform independent routing, with
    ``r = B (1 + (W - 1)(1 - overlap))`` independent draws.

    Examples
    --------
    >>> moe = Moe(experts=128, top_k=8, intermediate=768)
    >>> round(experts_touched(moe, Load(width=8.0)), 2)
    51.62
    """
    draws = load.batch * (1.0 + (load.width - 1.0) * (1.0 - load.routing_overlap))
    return moe.experts * (1.0 - (1.0 - moe.top_k / moe.experts) ** draws)


def _expert_work(block: Block, moe: Moe, hidden: int, load: Load, precision: Precision, tp: int) -> Work:
    union = experts_touched(moe, load)
    per_expert = moe.expert_parameters(hidden) / tp
    routed = load.rows * moe.top_k
    matrices = 3 if moe.gated else 2
    io = routed * (2 * hidden + matrices * moe.intermediate / tp)
    return Work(
        "experts",
        "experts",
        precision.compute,
        routed / union,
        flops=block.count * 2.0 * routed * per_expert,
        weight_bytes=block.count * union * per_expert * precision.weight_bytes,
        activation_bytes=block.count * io * precision.activation_bytes,
        kernels=2.0 * block.count,
    )


def elementwise_work(block: Block, hidden: int, load: Load, precision: Precision, tp: int) -> Work:
    """Norms with residual (read two, write two), rotary embedding, gate: fused as engines fuse them."""
    spec = block.attention
    if isinstance(spec, Attention):
        rotary = 2.0 * (spec.heads / tp + spec.kv_heads_per_rank(tp)) * spec.head_dim
    else:
        rotary = 2.0 * (spec.heads / tp + 1) * spec.rope_dim
    ffn = block.ffn
    inner = (
        ffn.top_k * ffn.intermediate + ffn.shared_intermediate if isinstance(ffn, Moe) else ffn.intermediate
    ) / tp
    elements = block.norms * 4.0 * hidden + rotary + 3.0 * inner
    return Work(
        "norms, rotary, activation",
        "elementwise",
        _attention_dtype(precision),
        load.rows,
        flops=0.0 * load.rows,
        activation_bytes=block.count * load.rows * elements * precision.activation_bytes,
        kernels=(block.norms + 2.0) * block.count,
    )


def all_reduce_work(message_bytes: Real, count: float, tp: int) -> Work:
    """All-reduces over ``tp`` ranks: bytes over one rank's link.

    One-shot sends the message to every peer, ``(n - 1)`` times; a ring ``2 (n - 1) / n`` times; the
    smaller is charged.
    """
    factor = min(tp - 1.0, 2.0 * (tp - 1.0) / tp)
    return Work(
        "all-reduce",
        "collective",
        "*",
        1.0,
        flops=0.0 * message_bytes,
        activation_bytes=count * factor * message_bytes,
        kernels=count,
    )


def block_works(block: Block, hidden: int, load: Load, precision: Precision, tp: int = 1) -> tuple[Work, ...]:
    """Works of one group of equal layers on one rank."""
    rows, count = load.rows, float(block.count)
    works = [linear_work(linear, rows, precision, count) for linear in block.attention.linears(hidden, tp)]
    works.append(attention_work(block, load, precision, tp))
    works += [linear_work(linear, rows, precision, count) for linear in block.ffn.linears(hidden, tp)]
    if isinstance(block.ffn, Moe):
        works.append(_expert_work(block, block.ffn, hidden, load, precision, tp))
    works.append(elementwise_work(block, hidden, load, precision, tp))
    if tp > 1:
        works.append(all_reduce_work(rows * hidden * precision.activation_bytes, 2.0 * count, tp))
    return tuple(works)


def head_works(hidden: int, vocab: int, rows: Real, precision: Precision, tp: int = 1) -> tuple[Work, ...]:
    """LM head, its logits in fp32, and the pass over them that samples."""
    weights = vocab * hidden / tp
    logits = rows * (vocab / tp) * LOGIT_BYTES
    # The head stays in 16 bits in quantised checkpoints, and then computes in 16 bits.
    compute = precision.compute if precision.head_bits == precision.weight_bits else "bf16"
    head = Work(
        "lm head",
        "linear",
        compute,
        rows,
        flops=2.0 * rows * weights,
        weight_bytes=weights * precision.head_bytes + 0.0 * rows,
        activation_bytes=rows * hidden * precision.activation_bytes + logits,
    )
    sampling = Work("sampling", "elementwise", compute, rows, flops=0.0 * rows, activation_bytes=logits)
    if tp == 1:
        return head, sampling
    gather = Work(
        "logits gather",
        "collective",
        "*",
        1.0,
        flops=0.0 * rows,
        activation_bytes=(tp - 1) * logits,
        kernels=1.0,
    )
    return head, gather, sampling


def embedding_work(hidden: int, rows: Real, precision: Precision) -> Work:
    """Input embedding: a row lookup per token, never the table."""
    moved = rows * hidden * (precision.head_bytes + precision.activation_bytes)
    dtype = _attention_dtype(precision)
    return Work("embedding", "elementwise", dtype, rows, flops=0.0 * rows, activation_bytes=moved)


def forward_pass(llm: Llm, load: Load, precision: Precision, tp: int = 1) -> tuple[Work, ...]:
    """Works of one pass of a model on one rank: decode, verify or prefill by the same function.

    Parameters
    ----------
    llm
        The model.
    load
        Batch, context and width; floats, or arrays that broadcast.
    precision
        Formats of weights, cache, activations and compute.
    tp
        Tensor-parallel ranks.

    Returns
    -------
    tuple of Work
        In the order they run; a group of equal layers is one work per label.
    """
    works: list[Work] = [embedding_work(llm.hidden, load.rows, precision)]
    for block in llm.blocks:
        works += block_works(block, llm.hidden, load, precision, tp)
    works += head_works(llm.hidden, llm.vocab, load.head_rows, precision, tp)
    return tuple(works)
