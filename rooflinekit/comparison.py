"""Drafters side by side at equal acceptance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rooflinekit.capacity import drafting_bytes, remedy
from rooflinekit.curve import Case, CurvePoint, allowed_k, curve_of, plan_at, rounds_by_k
from rooflinekit.hardware import Hardware
from rooflinekit.load import Load
from rooflinekit.prediction import breakdown
from rooflinekit.work import Pass, Real


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One drafter beside others (times in s, bytes per round and c at its best K).

    ``draft_s`` and ``draft_host_s`` are all drafting of a round for K = 1, 2, ..., on the device and on the
    host; ``slope_s`` is what one more K adds to both on average; ``hosted`` says whether the machine has any host
    time.
    """

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
    draft_host_s: tuple[float, ...]
    slope_s: float
    bound: str
    k: int
    acceptance_length: float
    speedup: float
    break_even_acceptance_length: float
    verify_ratio: float
    draft_cost: float
    pays: bool
    hosted: bool

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON or a row of a table."""
        return asdict(self)


def plan_bytes(plan: tuple[Pass, ...]) -> Real:
    """Bytes a plan moves, repeats counted (B)."""
    total: Real = 0.0
    for one in plan:
        total = total + one.repeats * sum((work.bytes for work in one.works), start=0.0)
    return total


def compare_drafters(
    cases: Sequence[Case],
    hardware: Hardware,
    load: Load,
    *,
    max_k: int = 16,
    calibration: str = "datasheet",
) -> tuple[Comparison, ...]:
    """Put drafters side by side: passes, bytes, draft time by K, best K and speedup.

    What does not fit into memory is shown all the same, and says so.

    Parameters
    ----------
    cases
        One for each drafter; equal acceptance makes them comparable.
    hardware, load
        The device, for its memory; batch and context.
    max_k
        Largest K to try.
    calibration
        Name of what the ceilings came from.
    """
    return tuple(_compared(case, hardware, load, max_k, calibration) for case in cases)


def _compared(case: Case, hardware: Hardware, load: Load, max_k: int, calibration: str) -> Comparison:
    target, drafter, on = case.target, case.drafter, case.machine
    top = allowed_k(drafter, case.acceptance, max_k)
    curve = curve_of(rounds_by_k(case, load, top))
    best = max(curve, key=lambda point: point.speedup)
    plan = plan_at(case, load, best)
    draft = tuple(point.draft_s for point in curve)
    hosted = tuple(point.draft_host_s for point in curve)
    total = tuple(map(sum, zip(draft, hosted, strict=True)))
    context = float(load.context) + top + 1
    extra = drafting_bytes(drafter, target, load, top)
    missing = remedy(target, hardware, float(load.batch), context, extra)
    return Comparison(
        model=target.llm.name,
        hardware=hardware.name,
        calibration=calibration,
        acceptance=case.acceptance.label,
        fits=not missing,
        remedy=missing,
        drafter=drafter.name,
        title=drafter.title,
        serial_passes=drafter.serial_passes,
        bytes_per_round=float(plan_bytes(plan)),
        draft_s=draft,
        draft_host_s=hosted,
        slope_s=(total[-1] - total[0]) / (top - 1) if top > 1 else 0.0,
        bound=_bound(plan, case, best),
        k=best.k,
        acceptance_length=best.acceptance_length,
        speedup=best.speedup,
        break_even_acceptance_length=best.round_cost,
        verify_ratio=best.verify_s / best.decode_s,
        draft_cost=(best.draft_s + best.draft_host_s) / (best.k * best.plain_s),
        pays=best.speedup > 1.0,
        hosted=any((on.step_host_s, on.token_host_s, on.pass_host_s, on.round_host_s)),
    )


def _bound(plan: tuple[Pass, ...], case: Case, best: CurvePoint) -> str:
    """What binds most of the time of drafting; ``given`` where that time is not the model's."""
    if case.drafting.given:
        return "given"
    seconds = {"host": best.draft_host_s}
    for one in plan:
        for line in breakdown(one.works, case.machine):
            seconds[line.bound] = seconds.get(line.bound, 0.0) + float(one.repeats) * line.time_s
    return max(seconds, key=seconds.__getitem__)
