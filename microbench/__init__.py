"""Microbenchmarks of the local device: what calibrates the model, and what it is validated against.

Weights are rotated until they outrun the caches, results are checked against float64 before any time is
kept, implementations compete at each number of rows, all cases of a sweep and a read of the same memory
are sampled in the same shuffled rounds, and each sample says whether the machine was ours. Nothing here
imports torch until a device is opened; the library prints nothing, progress goes to a callback.

>>> from rooflinekit.microbench import plan
>>> [case.name for case in plan("quick")][:2]
['read', 'compute/2048/bf16']
"""

from __future__ import annotations

from rooflinekit.microbench.device import Device, Sample, Timer, open_device
from rooflinekit.microbench.plans import BUDGETS, plan
from rooflinekit.microbench.suite import Progress, SuiteResult, run_suite

__all__ = [
    "BUDGETS",
    "Device",
    "Progress",
    "Sample",
    "SuiteResult",
    "Timer",
    "open_device",
    "plan",
    "run_suite",
]
