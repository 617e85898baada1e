"""The CPU behind the device layer: wall clock, a gate before each sample, run delay and steal after it."""

from __future__ import annotations

import math
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rooflinekit.microbench import procfs
from rooflinekit.microbench.buffers import cpu_copies
from rooflinekit.microbench.device import Call, Sample

GATE_S = 0.5
"""Longest wait for the run queue to hold only us (s)."""
CLEAN_SHARE = 0.02
"""Run delay that a clean sample may have, as a share of its time."""
SAMPLE_S = 1e-3
"""Shortest time of a sample (s): shorter calls are repeated within one sample."""


class Gate:
    """Waits until only we want to run; loses patience on a machine that is never ours.

    Parameters
    ----------
    others
        Counts runnable tasks of others; ``None`` where that is unknown.
    longest_s
        Longest wait (s). Each wait in vain halves the next one, each success doubles it again, so that a
        busy machine costs samples their cleanness and not the whole budget.
    """

    def __init__(
        self,
        others: Callable[[], int | None] = procfs.others_running,
        longest_s: float = GATE_S,
        clock: Callable[[], float] = time.perf_counter,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._others, self._longest_s, self._clock, self._sleep = others, longest_s, clock, sleep
        self.patience_s = longest_s

    def wait(self) -> bool:
        """Wait for a quiet moment; tell whether it came (also where nobody can tell)."""
        end = self._clock() + self.patience_s
        while self._others():
            if self._clock() >= end:
                self.patience_s = max(self.patience_s / 2, 2e-3)
                return False
            self._sleep(1e-3)
        self.patience_s = min(self.patience_s * 2, self._longest_s)
        return True


def judge(before: procfs.Usage | None, after: procfs.Usage | None, elapsed_s: float) -> bool | None:
    """Say whether the machine was ours during a sample.

    >>> judge(procfs.Usage(1.0, 3), procfs.Usage(1.00001, 3), 0.01)
    True
    >>> judge(procfs.Usage(1.0, 3), procfs.Usage(1.008, 3), 0.01)
    False
    """
    if before is None or after is None:
        return None
    delayed = after.run_delay_s - before.run_delay_s >= CLEAN_SHARE * elapsed_s
    return not delayed and after.steal_ticks == before.steal_ticks


class Cursor:
    """Index of the copy that was touched longest ago.

    All timers over one rotation share it: with an index each, they would all take the same copy in the
    same round, and every call after the first would find it in the cache.
    """

    def __init__(self, copies: int) -> None:
        self.copies = copies
        self._next = 0

    def take(self, calls: int) -> range:
        """Reserve the next copies for so many calls (indices modulo the copies)."""
        start = self._next
        self._next = (start + calls) % self.copies
        return range(start, start + calls)


class CpuTimer:
    """Times calls on the CPU that walk through rotated buffers."""

    def __init__(self, call: Call, cursor: Cursor, gate: Gate, wake: Callable[[], object]) -> None:
        self._call, self._cursor, self._gate, self._wake = call, cursor, gate, wake
        quickest = self._timed(1)
        for _ in range(2):
            # A call that fills a sample alone needs no finer estimate; a short one may be slow at first.
            if quickest < SAMPLE_S * 5:
                quickest = min(quickest, self._timed(1))
        self.calls = max(1, min(2000, math.ceil(SAMPLE_S / max(quickest, 1e-7))))

    def _timed(self, calls: int) -> float:
        call, copies, indices = self._call, self._cursor.copies, self._cursor.take(calls)
        begin = time.perf_counter()
        for index in indices:
            call(index % copies)
        return time.perf_counter() - begin

    def batch(self) -> tuple[Sample, ...]:
        """Take one sample: wait for quiet, wake the worker threads, time, judge."""
        self._gate.wait()
        before = procfs.usage()
        # Worker threads sleep after a wait; a small parallel operation wakes them before the clock starts.
        self._wake()
        elapsed_s = self._timed(self.calls)
        return (Sample(elapsed_s / self.calls, judge(before, procfs.usage(), elapsed_s)),)


class CpuDevice:
    """The processor of this machine, through PyTorch."""

    kind = "cpu"
    torch_device = "cpu"

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.llc_bytes = procfs.last_level_cache_bytes() or 32e6
        self._flags = procfs.cpu_flags()
        fast = {"amx_bf16", "avx512_bf16", "bf16", "sve_bf16"} & self._flags
        self.dtypes: tuple[str, ...] = ("bf16", "fp32") if fast else ("fp32",)
        self._gate = Gate()
        self._cursors: dict[int, Cursor] = {}
        self._wake = torch.ones(1 << 17)

    def facts(self) -> dict[str, Any]:
        """Name, memory, cache, threads and formats."""
        return {
            "kind": self.kind,
            "name": procfs.cpu_name(),
            "capacity_bytes": procfs.memory_bytes()[0],
            "llc_bytes": self.llc_bytes,
            "units": self.torch.get_num_threads(),
            "cores": os.cpu_count() or 0,
            "dtypes": list(self.dtypes),
            "virtual": "hypervisor" in self._flags,
        }

    def environment(self) -> dict[str, Any]:
        """Instruction set, threads and policy."""
        base = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"
        interesting = ("amx", "avx512f", "avx512_bf16", "avx512_vnni", "avx2", "sve", "bf16", "asimd")
        return {
            "machine": platform.machine(),
            "cpu_flags": sorted(f for f in self._flags if f.startswith(interesting)),
            "cpu_capability": self.torch.backends.cpu.get_cpu_capability(),
            "threads": self.torch.get_num_threads(),
            "governor": procfs.read_text(Path(base)).strip() or None,
            "huge_pages": procfs.read_text(Path("/sys/kernel/mm/transparent_hugepage/enabled")).strip()
            or None,
        }

    def free_bytes(self) -> float:
        """Memory available now (B); unlimited where the system does not tell."""
        return procfs.memory_bytes()[1] or math.inf

    def copies(self, nbytes: float) -> int:
        """Count the copies that together exceed the caches."""
        return cpu_copies(nbytes, self.llc_bytes)

    def synchronise(self) -> None:
        """Do nothing: calls on a CPU return when they are done."""

    def timer(self, call: Call, copies: int) -> CpuTimer:
        """Make a kernel ready to be timed."""
        cursor = self._cursors.setdefault(copies, Cursor(copies))
        return CpuTimer(call, cursor, self._gate, self._wake.sum)

    def release(self) -> None:
        """Do nothing: memory goes back when its tensor does."""
