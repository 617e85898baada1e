"""CUDA (and ROCm builds of torch) behind the device layer: graph replay between events, behind a delay."""

from __future__ import annotations

import gc
import importlib
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rooflinekit.errors import DeviceError
from rooflinekit.microbench.buffers import cuda_copies
from rooflinekit.microbench.device import Call, Sample

REPLAY_S = 3e-3
"""Length of one replay (s): long against the resolution of an event, short against a change of clocks."""
DELAY_S = 2e-3
"""Time the stream is held while the host queues a batch (s), so that no launch gap is inside a sample."""
MOST_CALLS = 2000
BATCH = 5
"""Samples of one batch."""
# Hardware slowdown, hardware thermal, hardware power brake, software thermal. The software power cap is no
# fault: it is the honest ceiling of a matrix product.
FAULTS = 0x8 | 0x40 | 0x80 | 0x20
INFINITY_CACHE_BYTES = 256 * 2**20


@contextmanager
def _no_collection() -> Iterator[None]:
    """Keep the collector out: a tensor freed during capture would end it."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def calls_per_replay(call_s: float, copies: int) -> int:
    """Choose the calls of one graph: a multiple of the copies, about 3 ms, at most 2000.

    >>> calls_per_replay(1e-5, 7), calls_per_replay(1e-2, 3)
    (301, 3)
    """
    wanted = min(MOST_CALLS, max(1, math.ceil(REPLAY_S / max(call_s, 1e-8))))
    return max(1, math.ceil(wanted / copies)) * copies


class Watch:
    """Asks NVML why clocks are held back; knows nothing where NVML is absent."""

    def __init__(self, uuid: str | None) -> None:
        self._nvml: Any = None
        self._handle: Any = None
        try:
            self._nvml = importlib.import_module("pynvml")
            self._nvml.nvmlInit()
            # By uuid, since NVML counts devices that CUDA_VISIBLE_DEVICES hides.
            self._handle = self._nvml.nvmlDeviceGetHandleByUUID(f"GPU-{uuid}") if uuid else None
        except Exception:  # noqa: BLE001 - NVML's own errors are not importable where it is absent
            self._handle = None

    def _ask(self, *names: str, args: tuple[Any, ...] = ()) -> Any:
        for name in names:
            try:
                return getattr(self._nvml, name)(self._handle, *args)
            except Exception:  # noqa: BLE001, S112 - an older driver or library: try the next name
                continue
        return None

    def clean(self) -> bool | None:
        """Whether nothing but the power cap holds the clocks; ``None`` where unknown."""
        if self._handle is None:
            return None
        reasons = self._ask(
            "nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"
        )
        return None if reasons is None else not int(reasons) & FAULTS

    def facts(self) -> dict[str, Any]:
        """Driver, clocks, power limit and ECC, as far as NVML tells."""
        if self._handle is None:
            return {}
        driver = getattr(self._nvml, "nvmlSystemGetDriverVersion", str)()
        power = self._ask("nvmlDeviceGetPowerManagementLimit")
        ecc = self._ask("nvmlDeviceGetEccMode")
        return {
            "driver": driver.decode() if isinstance(driver, bytes) else str(driver),
            "sm_clock_mhz": self._ask("nvmlDeviceGetClockInfo", args=(1,)),
            "memory_clock_mhz": self._ask("nvmlDeviceGetClockInfo", args=(2,)),
            "power_limit_w": power / 1e3 if power is not None else None,
            "ecc": bool(ecc[0]) if ecc is not None else None,
        }


class CudaTimer:
    """Times replays of a captured graph."""

    def __init__(self, torch: Any, graph: Any, calls: int, delay_cycles: int, watch: Watch) -> None:
        self._torch, self._graph, self.calls = torch, graph, calls
        self._cycles, self._watch = delay_cycles, watch

    def batch(self) -> tuple[Sample, ...]:
        """Hold the stream, queue a few replays between events, wait, read."""
        cuda = self._torch.cuda
        pairs = [(cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)) for _ in range(BATCH)]
        cuda._sleep(self._cycles)  # noqa: SLF001 - torch's only spin kernel
        for begin, end in pairs:
            begin.record()
            self._graph.replay()
            end.record()
        cuda.synchronize()
        clean = self._watch.clean()
        return tuple(Sample(begin.elapsed_time(end) * 1e-3 / self.calls, clean) for begin, end in pairs)


class CudaDevice:
    """The first visible CUDA or ROCm device, through PyTorch."""

    kind = "cuda"
    torch_device = "cuda"

    def __init__(self, torch: Any) -> None:
        if not torch.cuda.is_available():
            raise DeviceError(
                "device cuda is not available: torch sees no CUDA or ROCm device; use --device cpu, "
                "or install a build of torch for your driver"
            )
        self.torch = torch
        self._properties = torch.cuda.get_device_properties(0)
        self.llc_bytes = self._cache_bytes()
        low = ("bf16", "fp16") if torch.cuda.is_bf16_supported() else ("fp16",)
        self.dtypes: tuple[str, ...] = (*low, "fp32")
        uuid = getattr(self._properties, "uuid", None)
        self._watch = Watch(None if torch.version.hip else (str(uuid) if uuid else None))
        clock_hz = float(getattr(self._properties, "clock_rate", 0) or 1.8e6) * 1e3
        self._cycles = int(DELAY_S * clock_hz)

    def _cache_bytes(self) -> float:
        cache = float(getattr(self._properties, "L2_cache_size", 0) or 50e6)
        if str(getattr(self._properties, "gcnArchName", "")).startswith(("gfx94", "gfx95")):
            # Behind the L2 of these stands the Infinity Cache, which no property tells.
            return max(cache, float(INFINITY_CACHE_BYTES))
        return cache

    def facts(self) -> dict[str, Any]:
        """Name, visible memory, L2, multiprocessors and formats."""
        free, total = self.torch.cuda.mem_get_info()
        return {
            "kind": self.kind,
            "name": str(self._properties.name),
            "capacity_bytes": float(total),
            "free_bytes": float(free),
            "llc_bytes": self.llc_bytes,
            "units": int(self._properties.multi_processor_count),
            "compute_capability": f"{self._properties.major}.{self._properties.minor}",
            "dtypes": list(self.dtypes),
            "vendor": "amd" if self.torch.version.hip else "nvidia",
        }

    def environment(self) -> dict[str, Any]:
        """Versions and what NVML tells."""
        return {"cuda": self.torch.version.cuda, "hip": self.torch.version.hip, **self._watch.facts()}

    def free_bytes(self) -> float:
        """Memory that is free on the device (B)."""
        return float(self.torch.cuda.mem_get_info()[0])

    def copies(self, nbytes: float) -> int:
        """Count the copies that make each call find its operand outside the L2."""
        return cuda_copies(nbytes, self.llc_bytes, self.free_bytes())

    def synchronise(self) -> None:
        """Wait for the device."""
        self.torch.cuda.synchronize()

    def _estimate_s(self, call: Call, copies: int) -> float:
        cuda = self.torch.cuda
        begin, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
        count = min(copies, 8)
        cuda._sleep(self._cycles)  # noqa: SLF001
        begin.record()
        for index in range(count):
            call(index)
        end.record()
        cuda.synchronize()
        return float(begin.elapsed_time(end)) * 1e-3 / count

    def timer(self, call: Call, copies: int) -> CudaTimer:
        """Warm up on a side stream, as capture asks, then capture calls over all buffers in one graph."""
        cuda = self.torch.cuda
        side = cuda.Stream()
        side.wait_stream(cuda.current_stream())
        with cuda.stream(side):
            for index in range(min(copies, 3)):
                call(index)
        cuda.current_stream().wait_stream(side)
        calls = calls_per_replay(self._estimate_s(call, copies), copies)
        graph = cuda.CUDAGraph()
        with _no_collection(), cuda.graph(graph):
            for index in range(calls):
                call(index % copies)
        graph.replay()
        cuda.synchronize()
        return CudaTimer(self.torch, graph, calls, self._cycles, self._watch)

    def release(self) -> None:
        """Return cached blocks, so that the next case starts with all memory."""
        gc.collect()
        self.torch.cuda.empty_cache()
