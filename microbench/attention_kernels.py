"""Implementations of decode and verify attention that compete for each shape.

All take q (batch, heads, width, dim) and k, v (batch, kv heads, length, dim), with the ``width`` newest
positions last, masked causally among themselves. The cache is contiguous per head; engines page it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Tensor = Any


@dataclass(frozen=True, slots=True)
class Mask:
    """Additive causal mask, made once per shape as an engine does.

    Attributes
    ----------
    full
        (width, length) in the format of q; ``None`` at width 1.
    folded
        (group * width, length): ``full`` repeated for the query heads of a KV head; ``None`` at width 1.
    corner
        (width, width): the part that is not zero.
    """

    full: Tensor | None
    folded: Tensor | None
    corner: Tensor


def make_mask(torch: Any, width: int, length: int, group: int, like: Tensor) -> Mask:
    """Build the mask for ``width`` new positions at the end of ``length``."""
    corner = torch.full((width, width), -math.inf, dtype=like.dtype, device=like.device).triu(1)
    if width == 1:
        return Mask(None, None, corner)
    full = torch.zeros((width, length), dtype=like.dtype, device=like.device)
    full[:, length - width :] = corner
    return Mask(full, full.repeat(group, 1), corner)


AttentionCall = Callable[[Tensor, Tensor, Tensor, Mask], Tensor]


def attention_kernels(torch: Any) -> dict[str, AttentionCall]:
    """Implementations by name."""
    sdpa = torch.nn.functional.scaled_dot_product_attention

    def sdpa_gqa(q: Tensor, k: Tensor, v: Tensor, mask: Mask) -> Tensor:
        return sdpa(q, k, v, attn_mask=mask.full, enable_gqa=True)

    def sdpa_folded(q: Tensor, k: Tensor, v: Tensor, mask: Mask) -> Tensor:
        # Query heads of one KV head become rows: the cache is then read once, not once per query head.
        batch, heads, width, dim = q.shape
        rows = q.view(batch, k.shape[1], heads // k.shape[1] * width, dim)
        return sdpa(rows, k, v, attn_mask=mask.folded).view(batch, heads, width, dim)

    def grouped(q: Tensor, k: Tensor, v: Tensor, mask: Mask) -> Tensor:
        batch, heads, width, dim = q.shape
        group = heads // k.shape[1]
        rows = (q * (1 / math.sqrt(dim))).view(batch, k.shape[1], group * width, dim)
        scores = torch.matmul(rows, k.transpose(-1, -2))
        if width > 1:
            scores.view(batch, k.shape[1], group, width, -1)[..., -width:].add_(mask.corner)
        return torch.matmul(torch.softmax(scores, -1), v).view(batch, heads, width, dim)

    def cache_left(q: Tensor, k: Tensor, v: Tensor, mask: Mask) -> Tensor:
        # The long operand stands left, where oneDNN does not pack it before the product.
        batch, heads, width, dim = q.shape
        group = heads // k.shape[1]
        rows = (q * (1 / math.sqrt(dim))).view(batch, k.shape[1], group * width, dim)
        scores = torch.matmul(k, rows.transpose(-1, -2)).transpose(-1, -2).contiguous()
        if width > 1:
            scores.view(batch, k.shape[1], group, width, -1)[..., -width:].add_(mask.corner)
        return torch.matmul(torch.softmax(scores, -1), v).view(batch, heads, width, dim)

    return {
        "sdpa gqa": sdpa_gqa,
        "sdpa folded": sdpa_folded,
        "grouped matmul": grouped,
        "grouped matmul, cache left": cache_left,
    }
