"""The environment of a run, as far as it explains times; nothing that names a host, a user or a path."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

from rooflinekit.microbench.device import Device

VARIABLES = (
    "OMP_NUM_THREADS",
    "OMP_WAIT_POLICY",
    "OMP_PROC_BIND",
    "OMP_PLACES",
    "GOMP_SPINCOUNT",
    "KMP_BLOCKTIME",
    "KMP_AFFINITY",
    "MKL_NUM_THREADS",
    "THP_MEM_ALLOC_ENABLE",
    "ONEDNN_MAX_CPU_ISA",
    "CUDA_DEVICE_ORDER",
    "NVIDIA_TF32_OVERRIDE",
)


def environment(device: Device) -> dict[str, Any]:
    """Collect versions, threads, instruction set, clocks and load."""
    return {
        "python": platform.python_version(),
        "torch": str(device.torch.__version__),
        "numpy": _numpy_version(),
        "system": platform.system(),
        "kernel": platform.release(),
        "container": container(),
        "load_average": load_average(),
        "variables": {name: os.environ[name] for name in VARIABLES if name in os.environ},
        **device.environment(),
    }


def _numpy_version() -> str:
    import numpy as np

    return np.__version__


def load_average() -> list[float]:
    """Runnable tasks over 1, 5 and 15 minutes; empty where the system does not tell."""
    try:
        return [round(value, 2) for value in os.getloadavg()]
    except (OSError, AttributeError):
        return []


def container(root: Path = Path("/")) -> str | None:
    """Name the kind of container, if there are signs of one."""
    if (root / ".dockerenv").exists():
        return "docker"
    if (root / "run/.containerenv").exists():
        return "podman"
    return "kubernetes" if "KUBERNETES_SERVICE_HOST" in os.environ else None
