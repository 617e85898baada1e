"""Whether weights, caches and a drafter fit into a device, and what would."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from rooflinekit.errors import ModelError
from rooflinekit.hardware import Hardware
from rooflinekit.load import Load
from rooflinekit.memory import kv_cache_bytes, resident_weight_bytes, snapshot_bytes
from rooflinekit.precision import precision, with_kv
from rooflinekit.target import Target

if TYPE_CHECKING:
    # Predicting a step needs no drafter, and importing all of them takes its time.
    from rooflinekit.drafters.base import Drafter


def memory_bytes(target: Target, batch: float, context: float, extra: float = 0.0) -> float:
    """Weights and cache of one rank, and what a drafter adds (B)."""
    weights = resident_weight_bytes(target.llm, target.precision, target.tp)
    cache = kv_cache_bytes(target.llm, batch, context, target.precision, target.tp)
    return weights + float(cache) + extra


def drafting_bytes(drafter: Drafter, target: Target, load: Load, k: int) -> Callable[[int], float]:
    """What rounds of ``k`` add on one rank: drafter, its caches, states that wait for the verdict (B, by ranks)."""
    batch, context = float(load.batch), float(load.context) + k + 1

    def added(tp: int) -> float:
        waiting = snapshot_bytes(target.llm, batch, k, tp)
        return float(drafter.memory_bytes(batch=batch, context=context, tp=tp) + waiting)

    return added


def largest_batch(
    target: Target, hardware: Hardware, drafter: Drafter | None, context: float, k: int = 0
) -> float:
    """Sequences that fit at the end of a round of ``k`` drafts; below 1 where not even one does.

    Beside weights and drafter, if any: caches that have grown by the round, and states that wait for the verdict.
    """

    def held(batch: float) -> float:
        extra = 0.0
        if drafter is not None:
            extra = drafting_bytes(drafter, target, Load(batch, context), k)(target.tp)
        return memory_bytes(target, batch, context + k + 1, extra)

    per_sequence = held(2.0) - held(1.0)
    room = hardware.usable_bytes - held(1.0)
    return float(math.floor(1.0 + room / per_sequence)) if per_sequence > 0 else float("inf")


def no_drafter(tp: int) -> float:  # noqa: ARG001 - the same question is asked of every drafter
    """Memory of no drafter, on any number of ranks (B)."""
    return 0.0


def remedy(
    target: Target,
    hardware: Hardware,
    batch: float,
    context: float,
    extra: Callable[[int], float] = no_drafter,
) -> str:
    """Name the smallest tensor parallelism, number format and batch that would fit; '' where it fits.

    Parameters
    ----------
    target, hardware, batch, context
        What is to fit.
    extra
        What a drafter adds on one rank, by the number of ranks (B).
    """
    room = hardware.usable_bytes
    if memory_bytes(target, batch, context, extra(target.tp)) <= room:
        return ""
    options = [
        f"--tp {tp}"
        for tp in _ranks(target, hardware)
        if _fits_split(target, tp, batch, context, extra, room)
    ]
    options = options[:1]
    for name in ("fp8", "w8a16", "w4a16"):
        smaller = with_kv(precision(name), target.precision.kv_bits)
        if smaller.main.bits >= target.precision.main.bits:
            continue
        if hardware.peak and any(compute not in hardware.peak for compute in smaller.computes):
            continue
        if memory_bytes(Target(target.llm, smaller, target.tp), batch, context, extra(target.tp)) <= room:
            options.append(f"--dtype {name}")
            break
    weights = resident_weight_bytes(target.llm, target.precision, target.tp)
    per_sequence = (memory_bytes(target, batch, context) - weights) / batch
    left = int((room - weights - extra(target.tp)) / per_sequence) if per_sequence else 0
    if batch > left >= 1:
        options.append(f"--batch {left}")
    return (
        "what fits: " + " or ".join(options)
        if options
        else "split it over more devices or choose a smaller model"
    )


def _ranks(target: Target, hardware: Hardware) -> tuple[int, ...]:
    """Larger tensor-parallel groups to try; none where the device has no link to its peers."""
    return tuple(tp for tp in (2, 4, 8, 16) if tp > target.tp) if hardware.link is not None else ()


def _fits_split(
    target: Target, tp: int, batch: float, context: float, extra: Callable[[int], float], room: float
) -> bool:
    try:
        return memory_bytes(Target(target.llm, target.precision, tp), batch, context, extra(tp)) <= room
    except ModelError:
        return False  # heads that this number of ranks does not divide
