"""Should speculation pay, with which K, and what ate the gain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from rooflinekit.acceptance import Acceptance
from rooflinekit.calibration import Calibration
from rooflinekit.capacity import drafting_bytes, memory_bytes, remedy
from rooflinekit.caveats import caveats
from rooflinekit.curve import (
    Case,
    CurvePoint,
    Loss,
    allowed_k,
    check_k,
    curve_of,
    loss_account,
    plan_at,
    rounds_by_k,
)
from rooflinekit.drafters.base import Drafter
from rooflinekit.drafters.layer_skip import LayerSkip
from rooflinekit.engines import flags
from rooflinekit.errors import CapacityError
from rooflinekit.evidence import weakest
from rooflinekit.hardware import Hardware
from rooflinekit.limits import NEAR
from rooflinekit.prediction import evidence_of, expected_error
from rooflinekit.target import Target
from rooflinekit.transformer import Load, forward_pass
from rooflinekit.work import Work

DRAWS = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation:
    """The answer.

    Attributes
    ----------
    k
        Best K, or the K asked for.
    speedup, low, high
        At that K, and its 90 % interval; ``None`` where neither acceptance counts nor a calibration error
        are known.
    near_best
        Every K within 1 % of the best.
    break_even_acceptance_length
        Acceptance length below which this K loses (the round cost).
    pays
        Whether the speedup exceeds 1.
    tokens_per_s, plain_tokens_per_s
        Of one sequence, with that K and without speculation; the batch gives as many times more.
    curve
        Every K.
    loss
        From K + 1 down to the speedup; the terms sum exactly.
    flags
        By engine.
    """

    model: str
    hardware: str
    drafter: str
    drafter_title: str
    acceptance: str
    dtype: str
    tp: int
    batch: float
    context: float
    k: int
    speedup: float
    low: float | None
    high: float | None
    near_best: tuple[int, ...]
    break_even_acceptance_length: float
    pays: bool
    tokens_per_s: float
    plain_tokens_per_s: float
    fits: bool
    remedy: str
    memory_bytes: float
    memory_capacity_bytes: float
    curve: tuple[CurvePoint, ...]
    loss: tuple[Loss, ...]
    flags: Mapping[str, str]
    calibration: str
    expected_error: float | None
    evidence: Mapping[str, Any]
    notes: tuple[str, ...] = ()

    @property
    def best(self) -> CurvePoint:
        """The point of the recommended K."""
        return next(point for point in self.curve if point.k == self.k)

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return asdict(self)


def interval(
    acceptance: Acceptance, point: CurvePoint, ratio_error: float | None, seed: int = 0
) -> tuple[float | None, float | None]:
    """90 % interval of the speedup from acceptance counts and the calibration's error of ratios.

    Inputs are drawn together and pushed through; nothing is propagated per operation. The median
    absolute error of a normal deviate is 0.6745 standard deviations.
    """
    lengths = acceptance.expected_draws(float(point.k), DRAWS, seed)
    if lengths is None and ratio_error is None:
        return None, None
    if lengths is None:
        lengths = np.full(DRAWS, point.acceptance_length)
    spread = (ratio_error or 0.0) / 0.6745
    noise = np.random.default_rng(seed + 1).normal(0.0, 1.0, DRAWS) * spread
    # Kernels err; the host's share of a round does not move with them.
    kernels_s = point.round_s - point.host_s
    drawn = lengths * point.plain_s / (kernels_s * np.exp(noise) + point.host_s)
    low, high = np.quantile(drawn, [0.05, 0.95])
    # Counts at the edge of what is possible pull their posterior away from the estimate itself.
    centre = point.acceptance_length / point.round_cost
    return min(float(low), centre), max(float(high), centre)


def recommend_k(
    case: Case,
    hardware: Hardware,
    load: Load,
    *,
    max_k: int = 16,
    k: int | None = None,
    calibration: Calibration | None = None,
    allow_oversize: bool = False,
) -> Recommendation:
    """Find the best K by exact search and say why.

    Parameters
    ----------
    case
        Machine, target, drafter, acceptance, and how rounds are run.
    hardware, calibration
        The device: its memory; where its ceilings came from.
    load
        Batch and context; the width is K + 1.
    max_k, k
        Largest K to try; or the K to judge.
    allow_oversize
        Answer even where weights, caches and drafter do not fit.

    Raises
    ------
    CapacityError
        Target, drafter and caches do not fit and ``allow_oversize`` is off.
    AcceptanceError
        The K asked for was neither trained nor measured.
    """
    machine, target, drafter, acceptance = case.machine, case.target, case.drafter, case.acceptance
    if k is not None:
        check_k(drafter, acceptance, k)
    tried_k = allowed_k(drafter, acceptance, max_k)
    top = max(tried_k, k or 0)
    room = _room(target, hardware, drafter, load, top)
    if room.remedy and not allow_oversize:
        raise _too_large(target, hardware, drafter, room)
    curve = curve_of(rounds_by_k(case, load, top))
    best = max(curve[:tried_k], key=lambda point: point.speedup)
    chosen = best if k is None else curve[k - 1]
    works = forward_pass(target.llm, load, target.precision, target.tp)
    width = None if case.drafting.width is None else float(case.drafting.width)
    drafted = tuple(work for one in plan_at(case, load, chosen) for work in one.works)
    low, high = interval(acceptance, chosen, _ratio_error(calibration, target.precision.compute))
    return Recommendation(
        model=target.llm.name,
        hardware=hardware.name,
        drafter=drafter.name,
        drafter_title=drafter.title,
        acceptance=acceptance.label,
        dtype=target.precision.label,
        tp=target.tp,
        batch=float(load.batch),
        context=float(load.context),
        k=chosen.k,
        speedup=chosen.speedup,
        low=low,
        high=high,
        near_best=tuple(p.k for p in curve[:tried_k] if p.speedup >= (1 - NEAR) * best.speedup),
        break_even_acceptance_length=chosen.round_cost,
        pays=chosen.speedup > 1.0,
        tokens_per_s=chosen.acceptance_length / chosen.round_s,
        plain_tokens_per_s=1.0 / chosen.plain_s,
        fits=not room.remedy,
        remedy=room.remedy,
        memory_bytes=room.memory_bytes,
        memory_capacity_bytes=hardware.usable_bytes,
        curve=curve,
        loss=loss_account(machine, target, load, chosen, width),
        flags=flags(
            drafter.name, chosen.k, layers=drafter.llm.layers if isinstance(drafter, LayerSkip) else None
        ),
        calibration=calibration.name if calibration else "datasheet",
        expected_error=expected_error(calibration, works, machine),
        evidence=_evidence(case, calibration, works + drafted),
        notes=caveats(case, load, chosen, best, top),
    )


class _Room(NamedTuple):
    memory_bytes: float
    remedy: str


def _room(target: Target, hardware: Hardware, drafter: Drafter, load: Load, top: int) -> _Room:
    """Memory of target, drafter and caches at the end of a round, and what would fit if that does not."""
    batch, context = float(load.batch), float(load.context) + top + 1
    extra = drafting_bytes(drafter, target, load, top)
    held = memory_bytes(target, batch, context, extra(target.tp))
    return _Room(held, remedy(target, hardware, batch, context, extra))


def _too_large(target: Target, hardware: Hardware, drafter: Drafter, room: _Room) -> CapacityError:
    return CapacityError(
        f"{target.llm.name} with {drafter.name} needs {room.memory_bytes / 1e9:.1f} GB per device, {hardware.name} has "
        f"{hardware.usable_bytes / 1e9:.1f} GB; {room.remedy}, or --allow-oversize to see the times anyway"
    )


def _ratio_error(calibration: Calibration | None, dtype: str) -> float | None:
    fit = calibration.fit("linear", dtype) if calibration else None
    return fit.held_out_ratio.median_abs_error if fit is not None and fit.held_out_ratio is not None else None


def _evidence(case: Case, calibration: Calibration | None, works: tuple[Work, ...]) -> dict[str, Any]:
    """Evidence of target and drafter; a drafter's shape that was not read from a file is an assumption."""
    found = evidence_of(case.machine, calibration, works)
    if case.drafting.given:
        found["by_term"]["draft time"] = "assumed"
    elif "assumed" in case.drafter.title:
        found["by_term"]["drafter shape"] = "assumed"
    found["weakest"] = weakest(found["by_term"].values())
    return found
