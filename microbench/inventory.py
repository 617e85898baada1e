"""The GPUs of this machine as their driver describes them: torch where it sees one, else nvidia-smi."""

from __future__ import annotations

import importlib
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from rooflinekit.profiles.detect import Facts

QUERY = ("--query-gpu=uuid,name,memory.total,power.limit", "--format=csv,noheader,nounits")
PATIENCE_S = 20.0


def gpu_facts() -> list[Facts]:
    """Ask torch, then nvidia-smi; an empty list where neither knows a GPU."""
    by_uuid = parse_smi(_run_smi())
    try:
        torch: Any = importlib.import_module("torch")
    except ImportError:
        return list(by_uuid.values())
    return torch_facts(torch, by_uuid) or list(by_uuid.values())


def torch_facts(torch: Any, by_uuid: dict[str, Facts]) -> list[Facts]:
    """Facts of the GPUs that torch sees, with the power limits that only nvidia-smi knows.

    Parameters
    ----------
    torch
        The module.
    by_uuid
        What :func:`parse_smi` returned.
    """
    if not torch.cuda.is_available():
        return []
    found = []
    for index in range(torch.cuda.device_count()):
        one = torch.cuda.get_device_properties(index)
        facts = Facts(str(one.name), float(one.total_memory), float(one.multi_processor_count))
        listed = by_uuid.get(str(getattr(one, "uuid", "")).removeprefix("GPU-"))
        found.append(replace(facts, power_limit_w=listed.power_limit_w) if listed else facts)
    return found


def parse_smi(text: str) -> dict[str, Facts]:
    """Read what nvidia-smi printed for :data:`QUERY`, by uuid without its prefix; MiB become bytes.

    >>> parse_smi("GPU-1, NVIDIA L4, 23034, 72.00")["1"].memory_bytes
    24152899584.0
    >>> parse_smi("GPU-2, NVIDIA GB10, [N/A], [N/A]")["2"].memory_bytes
    """
    found: dict[str, Facts] = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) == 4:
            memory, limit = _number(cells[2]), _number(cells[3])
            found[cells[0].removeprefix("GPU-")] = Facts(
                cells[1], memory_bytes=None if memory is None else memory * 2**20, power_limit_w=limit
            )
    return found


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _run_smi(which: Callable[[str], str | None] = shutil.which) -> str:
    program = which("nvidia-smi")
    if program is None:
        return ""
    try:
        done = subprocess.run(  # noqa: S603 - the program that which found, fixed arguments
            [program, *QUERY], capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""
