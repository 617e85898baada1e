"""Matrix rate: square products, whose FLOPs hide their bytes."""

from __future__ import annotations

from rooflinekit.microbench.probes.linear import LinearSweep


def compute_sweep(size: int, dtype: str) -> LinearSweep:
    """Return a sweep over one ``size`` x ``size`` x ``size`` product; its time is not in its bytes."""
    return LinearSweep(out=size, inner=size, rows=(size,), dtype=dtype, kind="compute", copies=2)
