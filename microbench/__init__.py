"""Microbenchmarks of the local device: what calibrates the model, and what it is validated against.

Nothing here imports torch until a device is opened. The library prints nothing; progress goes to a
callback. The method is described in ``docs/microbenchmarks.md``.

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
