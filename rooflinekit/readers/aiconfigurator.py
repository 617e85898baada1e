"""Measured kernels of ``aiconfigurator-core`` as our own measurement rows.

What the tables do not say and a row must: how many weight copies a timing loop rotated (from the package's
collectors), so that a row found its weights in memory or in the cache; and how many experts a routing reads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from rooflinekit.measurement import Measurement
from rooflinekit.precision import find_format
from rooflinekit.profiles.library import find_hardware
from rooflinekit.readers.kernel_tables import DEVICES, PACKAGE, VERSION, Table
from rooflinekit.readers.routing_law import touched

FORMATS = {"bfloat16": "bf16", "fp8": "fp8", "fp8_block": "fp8", "nvfp4": "nvfp4"}
"""Our number format of each of theirs that is read."""

NOT_GATED = {(1024, 2688), (2048, 5120), (2688, 1856)}
"""Hidden and intermediate size of the experts with two matrices (Nemotron 3): the tables do not say it."""

Record = Mapping[str, Any]


def run_id(table: Table) -> str:
    """Name of the package, the system, the stack and its version: the first part of each case's id."""
    return f"{PACKAGE}-{VERSION}:{table.system}:{table.stack}-{table.version}"


def measurements(table: Table) -> list[Measurement]:
    """Turn a table into measurement rows; rows of other formats, sizes or windows than we model are not read."""
    make = _READERS[table.name]
    l2 = find_hardware(DEVICES[table.system]).l2
    cache_bytes = l2.value if l2 else 0.0
    prefix = run_id(table)
    found = []
    for number, record in enumerate(table.records):
        case = make(record, table, cache_bytes, f"{prefix}/{table.name} {number}")
        if case is not None:
            found.append(case)
    return found


def weight_copies(stack: str, version: str, weight_bytes: float, cache_bytes: float) -> int:
    """Copies of a weight matrix that a timing loop rotates (read in the collectors).

    TensorRT-LLM: min(5, ceil(L2 / W)); vLLM: 6; SGLang: 6, and one in its 0.5.6 tables.

    >>> weight_copies("trtllm", "1.3.0rc20", 20e6, 50e6), weight_copies("vllm", "0.24.0", 20e6, 50e6)
    (3, 6)
    """
    if stack == "trtllm":
        return max(1, min(5, math.ceil(cache_bytes / weight_bytes)))
    return 1 if stack == "sglang" and version.startswith("0.5.6") else 6


def _linear(record: Record, table: Table, cache_bytes: float, name: str) -> Measurement | None:
    form = (
        find_format(FORMATS[record["gemm_dtype"]])
        if record["gemm_dtype"] in ("bfloat16", "fp8", "nvfp4")
        else None
    )
    if form is None:
        return None
    rows, out, inner = record["m"], record["n"], record["k"]
    weights = out * inner * form.bits / 8
    return Measurement(
        id=name,
        kind="linear",
        dtype=form.compute,
        shape={"rows": rows, "out": out, "inner": inner},
        samples_s=(record["latency"] * 1e-3,),
        weight_bytes=weights,
        activation_bytes=rows * (out + inner) * form.activation_bits / 8,
        flops=2.0 * rows * out * inner,
        footprint_bytes=weights * weight_copies(table.stack, table.version, weights, cache_bytes),
        implementation=record["kernel_source"],
    )


HEAD_DIM = 128
"""Size of a head in the attention rows that are read."""


def _dense(record: Record) -> bool:
    plain = record["attn_dtype"] == record["kv_cache_dtype"] == "bfloat16"
    return plain and record["head_dim"] == HEAD_DIM and not record["window_size"]


def _decode(record: Record, table: Table, cache_bytes: float, name: str) -> Measurement | None:  # noqa: ARG001
    if not _dense(record):
        return None
    batch, context, heads, kv_heads = _heads(record, "step")
    cache = 2.0 * batch * (context + 1) * 2 * kv_heads * HEAD_DIM
    return Measurement(
        id=name,
        kind="attention",
        dtype="bf16",
        shape=_attention_shape(batch, context, 1, heads, kv_heads),
        samples_s=(record["latency"] * 1e-3,),
        kv_bytes=cache,
        activation_bytes=2.0 * batch * heads * 2 * HEAD_DIM,
        flops=4.0 * batch * heads * HEAD_DIM * (context + 1),
        footprint_bytes=cache,
        implementation=record["kernel_source"],
    )


LATENT, ROPE = 512, 64
"""Elements of DeepSeek's latent, and of the key with the positions that is cached beside it: MLA in the tables."""


def _latent(record: Record, table: Table, cache_bytes: float, name: str) -> Measurement | None:  # noqa: ARG001
    if not record["mla_dtype"] == record["kv_cache_dtype"] == "bfloat16":
        return None
    batch, context, heads = record["batch_size"], record["step"], record["num_heads"]
    cache = 2.0 * batch * (context + 1) * (LATENT + ROPE)
    return Measurement(
        id=name,
        kind="latent",
        dtype="bf16",
        shape={**_attention_shape(batch, context, 1, heads, 1), "head_dim": LATENT + ROPE},
        samples_s=(record["latency"] * 1e-3,),
        kv_bytes=cache,
        activation_bytes=2.0 * batch * heads * (2 * LATENT + ROPE),
        flops=2.0 * batch * heads * (2 * LATENT + ROPE) * (context + 1),
        footprint_bytes=cache,
        implementation=record["kernel_source"],
    )


def _prefill(record: Record, table: Table, cache_bytes: float, name: str) -> Measurement | None:  # noqa: ARG001
    if not _dense(record):
        return None
    batch, width, heads, kv_heads = _heads(record, "isl")
    return Measurement(
        id=name,
        kind="prefill",
        dtype="bf16",
        shape=_attention_shape(batch, 0, width, heads, kv_heads),
        samples_s=(record["latency"] * 1e-3,),
        kv_bytes=2.0 * batch * width * 2 * kv_heads * HEAD_DIM,
        activation_bytes=2.0 * batch * width * heads * 2 * HEAD_DIM,
        flops=4.0 * batch * heads * HEAD_DIM * width * (width + 1) / 2,
        implementation=record["kernel_source"],
    )


def _heads(record: Record, length: str) -> tuple[int, int, int, int]:
    return record["batch_size"], record[length], record["num_heads"], record["num_key_value_heads"]


def _attention_shape(batch: int, context: int, width: int, heads: int, kv_heads: int) -> dict[str, int]:
    return {
        "batch": batch,
        "context": context,
        "width": width,
        "heads": heads,
        "kv_heads": kv_heads,
        "head_dim": HEAD_DIM,
    }


def _experts(record: Record, table: Table, cache_bytes: float, name: str) -> Measurement | None:  # noqa: ARG001
    # With expert parallelism a rank times its own experts alone, and the table does not say which tokens.
    if record["moe_ep_size"] != 1 or record["moe_dtype"] not in FORMATS:
        return None
    form = find_format(FORMATS[record["moe_dtype"]])
    hidden, size, tp = record["hidden_size"], record["inter_size"], record["moe_tp_size"]
    tokens, top_k, experts = record["num_tokens"], record["topk"], record["num_experts"]
    matrices = 2 if (hidden, size) in NOT_GATED else 3
    read = touched(experts, top_k, tokens, record["distribution"])
    per_expert = matrices * hidden * size / tp
    weights = read * per_expert * form.bits / 8
    routed = float(tokens * top_k)
    return Measurement(
        id=name,
        kind="experts",
        dtype=form.compute,
        shape={
            "rows": tokens,
            "hidden": hidden,
            "intermediate": size,
            "experts": experts,
            "top_k": top_k,
            "tp": tp,
            "routing": record["distribution"],
            "touched": read,
        },
        samples_s=(record["latency"] * 1e-3,),
        weight_bytes=weights,
        activation_bytes=routed * (2 * hidden + matrices * size / tp) * form.activation_bits / 8,
        flops=2.0 * routed * per_expert,
        kernels=2.0,
        # The routing is drawn once and timed over and over: what was read last time may still be there.
        footprint_bytes=weights,
        implementation=f"{record['moe_dtype']} {record['kernel_source']}",
    )


ELEMENT_BYTES = 2
"""Message sizes of the tables count elements of 16 bits."""


def _all_reduce(record: Record, table: Table, cache_bytes: float, name: str) -> Measurement | None:  # noqa: ARG001
    if record.get("op_name", "all_reduce") != "all_reduce" or record.get("nccl_dtype", "half") != "half":
        return None
    ranks, message = record["num_gpus"], record["message_size"] * ELEMENT_BYTES
    return Measurement(
        id=name,
        kind="collective",
        dtype="*",
        shape={"message_bytes": message, "ranks": ranks},
        samples_s=(record["latency"] * 1e-3,),
        activation_bytes=2.0 * (ranks - 1) / ranks * message,
        implementation=record["kernel_source"],
    )


_READERS: dict[str, Callable[[Record, Table, float, str], Measurement | None]] = {
    "gemm": _linear,
    "generation_attention": _decode,
    "context_attention": _prefill,
    "generation_mla": _latent,
    "moe": _experts,
    "custom_allreduce": _all_reduce,
    "nccl": _all_reduce,
}
