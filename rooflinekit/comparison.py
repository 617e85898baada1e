"""Drafters side by side at equal acceptance."""

from __future__ import annotations

from dataclasses import dataclass

from rooflinekit.acceptance import Acceptance
from rooflinekit.capacity import drafting_bytes, remedy
from rooflinekit.curve import allowed_k, curve_of, plan_at, rounds_by_k
from rooflinekit.drafters.base import Drafter
from rooflinekit.hardware import Hardware
from rooflinekit.prediction import breakdown
from rooflinekit.target import Target
from rooflinekit.transformer import Load
from rooflinekit.work import Machine, Pass, Real


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One drafter beside others (times in s, bytes per round at its best K; memory per device in B)."""

    model: str
    hardware: str
    calibration: str
    acceptance: str
    fits: bool
    remedy: str
    drafter: str
    title: str
    serial_passes: str
    bytes_per_round: float
    draft_s: tuple[float, ...]
    slope_s: float
    bound: str
    k: int
    acceptance_length: float
    speedup: float
    break_even_acceptance_length: float
    verify_ratio: float


def plan_bytes(plan: tuple[Pass, ...]) -> Real:
    """Bytes a plan moves, repeats counted (B)."""
    total: Real = 0.0
    for one in plan:
        total = total + one.repeats * sum((work.bytes for work in one.works), start=0.0)
    return total


def compare_drafters(
    machine: Machine,
    target: Target,
    hardware: Hardware,
    drafters: tuple[Drafter, ...],
    acceptance: Acceptance,
    load: Load,
    *,
    max_k: int = 16,
    calibration: str = "datasheet",
) -> tuple[Comparison, ...]:
    """Put drafters side by side at equal acceptance: passes, bytes, draft time by K, best K and speedup.

    What does not fit into memory is shown all the same, and says so.
    """
    name = calibration
    return tuple(
        _compared(machine, target, hardware, drafter, acceptance, load, max_k=max_k, calibration=name)
        for drafter in drafters
    )


def _compared(
    machine: Machine,
    target: Target,
    hardware: Hardware,
    drafter: Drafter,
    acceptance: Acceptance,
    load: Load,
    *,
    max_k: int,
    calibration: str,
) -> Comparison:
    top = allowed_k(drafter, acceptance, max_k)
    curve = curve_of(rounds_by_k(machine, target, drafter, acceptance, load, top))
    best = max(curve, key=lambda point: point.speedup)
    plan = plan_at(drafter, target, load, best)
    draft = tuple(point.draft_s for point in curve)
    context = float(load.context) + top + 1
    extra = drafting_bytes(drafter, target, load, top)
    missing = remedy(target, hardware, float(load.batch), context, extra)
    return Comparison(
        model=target.llm.name,
        hardware=hardware.name,
        calibration=calibration,
        acceptance=acceptance.label,
        fits=not missing,
        remedy=missing,
        drafter=drafter.name,
        title=drafter.title,
        serial_passes=drafter.serial_passes,
        bytes_per_round=float(plan_bytes(plan)),
        draft_s=draft,
        slope_s=(draft[-1] - draft[0]) / (top - 1) if top > 1 else 0.0,
        bound=max(breakdown(plan[0].works, machine), key=lambda line: line.time_s).bound,
        k=best.k,
        acceptance_length=best.acceptance_length,
        speedup=best.speedup,
        break_even_acceptance_length=best.round_cost,
        verify_ratio=best.verify_s / best.decode_s,
    )
