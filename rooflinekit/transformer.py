"""A forward pass as a list of works: what a decode step, a verify, a draft or a prefill moves and computes.

One function serves all of them: a decode step has ``width`` 1, a verify the number of drafted tokens
plus one, a prefill the length of the prompt. Equal layers are one work (times are homogeneous in bytes,
FLOPs and kernels, so the sum is exact). All numbers are those of one tensor-parallel rank.
"""

from __future__ import annotations

from rooflinekit.llm import Attention, Block, Linear, Llm, Mla, Moe
from rooflinekit.load import Load
from rooflinekit.mixers import attention_dtype, mixer_works
from rooflinekit.precision import Format, Precision
from rooflinekit.work import Real, Work

__all__ = ["Load", "block_works", "forward_pass", "head_works", "linear_work"]

LOGIT_BYTES = 4.0
"""Logits are written, and read again to be sampled, in fp32."""


def linear_work(linear: Linear, rows: Real, precision: Precision, count: Real = 1.0) -> Work:
    """A matrix product, ``count`` equal layers: weights once whatever the rows, inputs and outputs per row."""
    parameters = count * linear.parameters
    form = precision.of(linear.tensor_class)
    return Work(
        linear.label,
        "linear",
        form.compute,
        rows,
        flops=2.0 * rows * parameters,
        weight_bytes=parameters * form.bits / 8 + 0.0 * rows,
        activation_bytes=count * rows * (linear.out + linear.inner) * form.activation_bits / 8,
        kernels=count,
        inner=linear.inner,
        groups=linear.out,
    )


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


def expert_work(moe: Moe, count: Real, hidden: int, load: Load, precision: Precision, tp: int = 1) -> Work:
    """Routed experts of ``count`` equal layers: the weights of every expert that any row chose, once."""
    union = experts_touched(moe, load)
    form = precision.of("experts")
    per_expert = moe.expert_parameters(hidden) / tp
    routed = load.rows * moe.top_k
    matrices = 3 if moe.gated else 2
    io = routed * (2 * (moe.expert_input or hidden) + matrices * moe.intermediate / tp)
    return Work(
        "experts",
        "experts",
        form.compute,
        routed / union,
        flops=count * 2.0 * routed * per_expert,
        weight_bytes=count * union * per_expert * form.bits / 8,
        activation_bytes=count * io * form.activation_bits / 8,
        kernels=2.0 * count,
        inner=moe.expert_input or hidden,
        groups=union,
        crowding=load.rows / moe.experts,
    )


def elementwise_work(block: Block, hidden: int, load: Load, precision: Precision, tp: int) -> Work:
    """Norms with residual (read two, write two), rotary embedding, gate: fused as engines fuse them."""
    mixer = block.mixer
    rotary = 0.0
    if isinstance(mixer, Attention):
        rotary = 2.0 * (mixer.heads / tp + mixer.kv_heads_per_rank(tp)) * mixer.head_dim
    elif isinstance(mixer, Mla):
        rotary = 2.0 * (mixer.heads / tp + 1) * mixer.rope_dim
    ffn = block.ffn
    inner = 0.0
    if ffn is not None:
        routed = ffn.top_k * ffn.intermediate + ffn.shared_intermediate if isinstance(ffn, Moe) else 0
        inner = (routed or ffn.intermediate) / tp * ((2 if ffn.gated else 1) + 1)
    elements = block.norms * 4.0 * hidden * block.streams + rotary + inner
    return Work(
        "norms, rotary, activation",
        "elementwise",
        attention_dtype(precision),
        load.rows,
        flops=0.0 * load.rows,
        activation_bytes=block.count * load.rows * elements * precision.bytes_per_activation,
        kernels=(block.norms + 2.0) * block.count,
    )


def all_reduce_work(message_bytes: Real, count: float, tp: int) -> Work:
    """All-reduces over ``tp`` ranks: bytes over one rank's link.

    A reduce-scatter and an all-gather move ``2 (n - 1) / n`` times the message, on rings and on switches
    alike; for two ranks that is one exchange.
    """
    factor = 2.0 * (tp - 1.0) / tp
    return Work(
        "all-reduce",
        "collective",
        "*",
        1.0,
        flops=0.0 * message_bytes,
        activation_bytes=count * factor * message_bytes,
        kernels=count,
        groups=tp - 1.0,
    )


def block_works(block: Block, hidden: int, load: Load, precision: Precision, tp: int = 1) -> tuple[Work, ...]:
    """Works of one group of equal layers on one rank."""
    rows, count = load.rows, float(block.count)
    cached = load.batch * (load.context + load.width) if load.prefill else rows
    works: list[Work] = []
    for part in (block.mixer, block.cross):
        if part is not None:
            works += [
                linear_work(linear, cached if linear.over_cache or linear.once else rows, precision, count)
                for linear in part.linears(hidden, tp)
                if load.prefill or not linear.once
            ]
    works += mixer_works(block, load, precision, tp)
    works += [linear_work(linear, rows, precision, count) for linear in block.hyper_linears(hidden)]
    if block.ffn is not None:
        works += [linear_work(linear, rows, precision, count) for linear in block.ffn.linears(hidden, tp)]
    if isinstance(block.ffn, Moe):
        works.append(expert_work(block.ffn, count, hidden, load, precision, tp))
    works.append(elementwise_work(block, hidden, load, precision, tp))
    if tp > 1:
        reduced = sum(part is not None for part in (block.mixer, block.cross, block.ffn))
        works.append(all_reduce_work(rows * hidden * precision.bytes_per_activation, reduced * count, tp))
    return tuple(works)


def head_works(hidden: int, vocab: int, rows: Real, precision: Precision, tp: int = 1) -> tuple[Work, ...]:
    """LM head, its logits in fp32, and the pass over them that samples."""
    weights = vocab * hidden / tp
    logits = rows * (vocab / tp) * LOGIT_BYTES
    form: Format = precision.of("head")
    head = Work(
        "lm head",
        "linear",
        form.compute,
        rows,
        flops=2.0 * rows * weights,
        weight_bytes=weights * form.bits / 8 + 0.0 * rows,
        activation_bytes=rows * hidden * form.activation_bits / 8 + logits,
        inner=hidden,
        groups=vocab / tp,
    )
    return head, *sampling_works(vocab, rows, precision, tp)


def sampling_works(vocab: int, rows: Real, precision: Precision, tp: int = 1) -> tuple[Work, ...]:
    """Sampling from fp32 logits: gathered from the ranks that hold them, then read whole on one."""
    dtype = attention_dtype(precision)
    whole = rows * vocab * LOGIT_BYTES
    sampling = Work("sampling", "elementwise", dtype, rows, flops=0.0 * rows, activation_bytes=whole)
    if tp == 1:
        return (sampling,)
    moved = (tp - 1) * whole / tp
    gather = Work("logits gather", "collective", "*", 1.0, flops=0.0 * rows, activation_bytes=moved)
    return gather, sampling


def embedding_works(hidden: int, rows: Real, precision: Precision, tp: int = 1) -> tuple[Work, ...]:
    """Input embedding: a row lookup per token, never the table; split over ranks by token, then summed."""
    moved = rows * hidden * (precision.bytes_per("embedding") + precision.bytes_per_activation)
    dtype = attention_dtype(precision)
    lookup = Work("embedding", "elementwise", dtype, rows, flops=0.0 * rows, activation_bytes=moved)
    if tp == 1:
        return (lookup,)
    return lookup, all_reduce_work(rows * hidden * precision.bytes_per_activation, 1.0, tp)


def forward_pass(
    llm: Llm, load: Load, precision: Precision, tp: int = 1, head_rows: Real | None = None
) -> tuple[Work, ...]:
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
    head_rows
        Rows that meet the LM head where the load does not say it: those that a block drafter drafts.

    Returns
    -------
    tuple of Work
        In the order they run; a group of equal layers is one work per label.
    """
    works: list[Work] = list(embedding_works(llm.hidden, load.rows, precision, tp))
    for block in llm.blocks:
        works += block_works(block, llm.hidden, load, precision, tp)
    rows = load.head_rows if head_rows is None else head_rows
    works += head_works(llm.hidden, llm.vocab, rows, precision, tp)
    return tuple(works)
