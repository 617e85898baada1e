"""The gate before any time is kept: a kernel's output against a float64 reference."""

from __future__ import annotations

import math
from typing import Any

TOLERANCE = {"bf16": 1e-2, "fp16": 1e-2, "fp32": 1e-5}
"""Largest relative deviation of a right kernel, by format (ratio)."""
COLUMNS = 64

Tensor = Any


def poison(torch: Any, shape: tuple[int, ...], dtype: Any, torch_device: str) -> None:
    """Leave NaN where the allocator will likely put the output, so that an unwritten element shows."""
    torch.full(shape, math.nan, dtype=dtype, device=torch_device)


def deviation(got: Tensor, reference: Tensor) -> float:
    """``||got - reference|| / ||reference||``; infinity where anything is not a number."""
    difference = (got.double() - reference).norm().item()
    scale = reference.norm().item()
    error = difference / scale if scale else math.inf
    return error if math.isfinite(error) else math.inf


def linear_error(torch: Any, got: Tensor, x: Tensor, weight: Tensor, seed: int) -> float:
    """Deviation of y = x W^T on up to 64 random output columns; infinity for a hole anywhere."""
    if tuple(got.shape) != (x.shape[0], weight.shape[0]) or not bool(torch.isfinite(got).all()):
        return math.inf
    generator = torch.Generator().manual_seed(seed)
    columns = torch.randperm(weight.shape[0], generator=generator)[:COLUMNS].to(weight.device)
    reference = x.double() @ weight.index_select(0, columns).double().T
    return deviation(got.index_select(1, columns), reference)


def attention_error(torch: Any, got: Tensor, q: Tensor, k: Tensor, v: Tensor, seed: int) -> float:
    """Deviation of causal attention over the query heads of one random KV head of one random sequence."""
    if got.shape != q.shape or not bool(torch.isfinite(got).all()):
        return math.inf
    generator = torch.Generator().manual_seed(seed)
    batch = int(torch.randint(q.shape[0], (1,), generator=generator))
    kv_head = int(torch.randint(k.shape[1], (1,), generator=generator))
    group, width, length = q.shape[1] // k.shape[1], q.shape[2], k.shape[2]
    heads = slice(kv_head * group, (kv_head + 1) * group)
    scores = q[batch, heads].double() @ k[batch, kv_head].double().T / math.sqrt(q.shape[-1])
    future = torch.ones(width, length, dtype=torch.bool, device=q.device).triu(length - width + 1)
    weights = torch.softmax(scores.masked_fill(future, -math.inf), -1)
    return deviation(got[batch, heads], weights @ v[batch, kv_head].double())
