"""What Linux tells about interference and memory under /proc and /sys; readers cope with their absence."""

from __future__ import annotations

import os
import platform
import re
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
CGROUP = Path("/sys/fs/cgroup")


def read_text(path: Path) -> str:
    """Return a file's text, or nothing where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def read_number(path: Path) -> float | None:
    """Return a file that holds one number."""
    text = read_text(path).strip()
    return float(text) if text.isdigit() else None


@dataclass(frozen=True, slots=True)
class Usage:
    """Time our threads waited for a core (s) and ticks the hypervisor took, since their start."""

    run_delay_s: float
    steal_ticks: int


def usage(proc: Path = PROC) -> Usage | None:
    """Read run delay of all our threads and steal; ``None`` where the kernel does not tell."""
    delay, found = 0, False
    try:
        tasks = os.listdir(proc / "self" / "task")  # noqa: PTH208 - read around every sample: listdir is quick
    except OSError:
        return None
    for task in tasks:
        fields = read_text(proc / "self" / "task" / task / "schedstat").split()
        if len(fields) >= 2:
            delay, found = delay + int(fields[1]), True
    steal = re.match(r"cpu +(?:\d+ ){7}(\d+)", read_text(proc / "stat"))
    if not found or steal is None:
        return None
    return Usage(delay * 1e-9, int(steal[1]))


def others_running(proc: Path = PROC) -> int | None:
    """Count runnable tasks that are not threads of ours; ``None`` where the kernel does not tell."""
    total = re.search(r"^procs_running (\d+)", read_text(proc / "stat"), re.MULTILINE)
    if total is None:
        return None
    try:
        tasks = os.listdir(proc / "self" / "task")  # noqa: PTH208
    except OSError:
        return None
    ours = 0
    for task in tasks:
        # The command name is in brackets and may hold spaces; the state follows the last bracket.
        state = read_text(proc / "self" / "task" / task / "stat").rpartition(")")[2].split()
        ours += bool(state) and state[0] == "R"
    return max(0, int(total[1]) - max(1, ours))


def last_level_cache_bytes(caches: Path = CACHES) -> float:
    """Size of the last cache that this machine shows (B); a guest sees a share; 0 if unknown."""
    best, found = 0, 0.0
    for entry in sorted(caches.glob("index*")):
        level = read_number(entry / "level")
        size = re.fullmatch(r"(\d+)([KMG]?)", read_text(entry / "size").strip())
        if level is not None and size is not None and level >= best:
            best, found = int(level), int(size[1]) * 1024.0 ** " KMG".index(size[2] or " ")
    return found


def memory_bytes(proc: Path = PROC, cgroup: Path = CGROUP) -> tuple[float, float]:
    """Total and available memory (B), no more than the container may take; 0 where unknown."""
    text = read_text(proc / "meminfo")
    values = {m[1]: float(m[2]) * 1024 for m in re.finditer(r"^(\w+): +(\d+) kB", text, re.MULTILINE)}
    total, free = values.get("MemTotal", 0.0), values.get("MemAvailable", 0.0)
    limit = read_number(cgroup / "memory.max")
    if limit is not None and total:
        used = read_number(cgroup / "memory.current") or 0.0
        total, free = min(total, limit), min(free, limit - used)
    if not total:
        # No /proc (macOS): the C library knows the size; what is free is unknown, so all counts as free.
        total = free = _sysconf_bytes()
    return total, free


def _sysconf_bytes() -> float:
    try:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, OSError, ValueError):
        return 0.0


def cpu_name(proc: Path = PROC) -> str:
    """Name of the processor."""
    match = re.search(
        r"^(?:model name|Model|cpu model)\s*:\s*(.+)$", read_text(proc / "cpuinfo"), re.MULTILINE
    )
    return match[1].strip() if match else platform.processor() or platform.machine() or "unknown CPU"


def cpu_flags(proc: Path = PROC) -> frozenset[str]:
    """Instruction-set flags of the first core."""
    match = re.search(r"^(?:flags|Features)\s*:\s*(.+)$", read_text(proc / "cpuinfo"), re.MULTILINE)
    return frozenset(match[1].split()) if match else frozenset()
