"""Fixed time of one call: a product too small to cost anything else.

One sample is many calls one after the other (on CUDA one graph), so its time over their number is the
slope per call; the operands stay in the cache by intent.
"""

from __future__ import annotations

from rooflinekit.microbench.probes.linear import LinearSweep


def launch_sweep(dtype: str) -> LinearSweep:
    """Return a sweep over one 32 x 32 matrix at one row."""
    return LinearSweep(out=32, inner=32, rows=(1,), dtype=dtype, kind="launch", copies=2)
