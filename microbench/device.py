"""The one thin layer between the suite and a device: facts, memory, and how a sample is timed and judged."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Protocol, TypeAlias

from rooflinekit.errors import DeviceError

Call: TypeAlias = Callable[[int], object]
"""One call of a kernel on the rotated buffer with this index."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One timed sample.

    Attributes
    ----------
    seconds
        Time of one call (s): the sample's time over its number of calls.
    clean
        Whether the machine was ours meanwhile; ``None`` where that cannot be known.
    """

    seconds: float
    clean: bool | None = None


class Timer(Protocol):
    """A kernel made ready to be timed."""

    def batch(self) -> tuple[Sample, ...]:
        """Take the samples of one round: one on a CPU, a few back to back on an accelerator."""
        ...


class Device(Protocol):
    """What the suite asks of a device; everything that differs between devices is behind it."""

    kind: str
    torch: Any
    torch_device: str
    dtypes: tuple[str, ...]
    llc_bytes: float

    def facts(self) -> dict[str, Any]:
        """Name, kind, capacity, cache, units and formats, as stored in the run record."""
        ...

    def environment(self) -> dict[str, Any]:
        """Device side of the environment: driver, clocks, instruction set."""
        ...

    def free_bytes(self) -> float:
        """Memory that can be taken now (B)."""
        ...

    def copies(self, nbytes: float) -> int:
        """Count the copies of an operand of this size that make every call find it cold."""
        ...

    def synchronise(self) -> None:
        """Wait until everything queued has run."""
        ...

    def timer(self, call: Call, copies: int) -> Timer:
        """Make a kernel ready that walks through so many rotated buffers."""
        ...

    def release(self) -> None:
        """Give memory of dropped buffers back."""
        ...


def load_torch() -> ModuleType:
    """Import torch, or say how to get it."""
    try:
        return importlib.import_module("torch")
    except ImportError as error:
        raise DeviceError(
            "torch is not installed, so nothing can be measured; "
            "install the extra: pip install 'rooflinekit[bench]'"
        ) from error


def open_device(name: str = "auto") -> Device:
    """Open the device to measure.

    Parameters
    ----------
    name
        ``cpu``, ``cuda`` (also ROCm builds of torch), or ``auto``: CUDA where torch sees it, else the CPU.

    Raises
    ------
    DeviceError
        The name is unknown, torch is missing, or CUDA was asked for and is absent.
    """
    if name not in ("auto", "cpu", "cuda"):
        raise DeviceError(f"device {name!r} is unknown; choose auto, cpu or cuda")
    torch: Any = load_torch()
    if name == "cuda" or (name == "auto" and torch.cuda.is_available()):
        from rooflinekit.microbench.cuda import CudaDevice

        return CudaDevice(torch)
    from rooflinekit.microbench.cpu import CpuDevice

    return CpuDevice(torch)
