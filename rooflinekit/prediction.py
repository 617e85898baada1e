"""Predict one step: its time, what takes it, which roof binds each work, and whether it fits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from rooflinekit.calibration import Calibration
from rooflinekit.capacity import memory_bytes, remedy
from rooflinekit.evidence import Kind, weakest
from rooflinekit.hardware import Hardware
from rooflinekit.llm import Llm
from rooflinekit.memory import resident_weight_bytes, snapshot_bytes
from rooflinekit.precision import Precision
from rooflinekit.target import Target
from rooflinekit.transformer import Load, forward_pass
from rooflinekit.work import Machine, Work, bound, work_time_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One row of a breakdown: bytes, FLOPs, time (s) and the roof that binds."""

    label: str
    kind: str
    bytes: float
    flops: float
    time_s: float
    bound: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """One predicted step; all numbers are those of one rank.

    Attributes
    ----------
    prefill
        Whether the rows are a prompt.
    step_s, decode_s
        This step, host included; the device time of a plain step of the same batch and context (s).
    low_s, high_s
        Where nine of ten measured steps should lie, if works err as their held-out cases do and all to the same
        side (s); ``None`` without such errors.
    verify_ratio
        Device time of this step over that of the plain step.
    weight_bytes, kv_bytes
        Weights and cache read by this step (B).
    resident_bytes
        Weights held (B).
    flops, arithmetic_intensity
        FLOPs of the step; FLOPs per byte moved.
    fits, memory_bytes, memory_capacity_bytes
        Whether weights and cache fit into what a program can allocate (B).
    remedy
        What would fit, where this does not.
    breakdown
        Rows that sum to ``step_s``.
    calibration, expected_error
        Which ceilings were used; their median error on held-out cases, by time share; ``None`` when none
        was measured.
    evidence
        Weakest kind, and the kind by term.
    """

    model: str
    hardware: str
    dtype: str
    kv_dtype: str
    batch: float
    context: float
    width: float
    prefill: bool
    tp: int
    step_s: float
    low_s: float | None
    high_s: float | None
    decode_s: float
    verify_ratio: float
    weight_bytes: float
    resident_bytes: float
    kv_bytes: float
    flops: float
    arithmetic_intensity: float
    fits: bool
    memory_bytes: float
    memory_capacity_bytes: float
    remedy: str
    breakdown: tuple[Line, ...]
    calibration: str
    expected_error: float | None
    evidence: Mapping[str, Any]
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return asdict(self)


def breakdown(works: tuple[Work, ...], machine: Machine) -> tuple[Line, ...]:
    """Time and binding roof of each label; equal labels are one row."""
    merged: dict[str, list[Work]] = {}
    for work in works:
        merged.setdefault(work.label, []).append(work)
    lines = []
    for label, group in merged.items():
        times = [float(work_time_s(work, machine)) for work in group]
        largest = group[times.index(max(times))]
        moved, flops = sum(float(w.bytes) for w in group), sum(float(w.flops) for w in group)
        lines.append(
            Line(
                label=label,
                kind=largest.kind,
                bytes=moved,
                flops=flops,
                time_s=sum(times),
                bound=bound(largest, machine),
            )
        )
    return tuple(lines)


def expected_error(
    calibration: Calibration | None, works: tuple[Work, ...], machine: Machine, percentile: int = 50
) -> float | None:
    """Held-out error of the fits used, weighted by the time of the works they serve.

    Parameters
    ----------
    calibration, works, machine
        Where the ceilings came from; what is timed; with which ceilings.
    percentile
        50 for the median of the absolute error, 90 for what nine of ten held-out cases stay within.
    """
    if calibration is None:
        return None
    total = weighted = 0.0
    for work in works:
        fit = calibration.fit(work.kind, work.dtype)
        if fit is not None and fit.held_out is not None:
            time_s = float(work_time_s(work, machine))
            found = fit.held_out.median_abs_error if percentile == 50 else fit.held_out.p90_abs_error
            total += time_s
            weighted += time_s * found
    return weighted / total if total else None


def time_interval(step_s: float, error: float | None) -> tuple[float | None, float | None]:
    """Times that a measurement would lie between, for an error of ``predicted / measured - 1`` of either sign (s)."""
    if error is None:
        return None, None
    return step_s / (1.0 + error), step_s / (1.0 - min(error, 0.9))


def evidence_of(machine: Machine, calibration: Calibration | None, works: tuple[Work, ...]) -> dict[str, Any]:
    """Weakest kind of evidence behind a result, the kind by term, and what no calibration covers."""
    used = {f"peak {work.dtype}" for work in works}
    without = {w.kind for w in works if calibration is None or calibration.fit(w.kind, w.dtype) is None}
    fitted = any(work.kind not in without for work in works)
    kinds: dict[str, Kind] = {
        term: kind
        for term, kind in machine.evidence.items()
        if (not term.startswith("peak ") or term in used) and (term != "ceilings" or fitted)
    }
    return {"weakest": weakest(kinds.values()), "by_term": kinds, "without_calibration": sorted(without)}


def predict_step(
    machine: Machine,
    target: Target,
    hardware: Hardware,
    load: Load,
    calibration: Calibration | None = None,
) -> Prediction:
    """Predict one step of a model.

    Parameters
    ----------
    machine
        Ceilings to use.
    target
        Model, number formats, ranks.
    hardware
        The device, for its memory.
    load
        Batch, context, width; floats.
    calibration
        What the machine's ceilings came from; for the expected error.
    """
    llm, numbers, tp = target.llm, target.precision, target.tp
    works = forward_pass(llm, load, numbers, tp)
    lines = breakdown(works, machine)
    tenth = expected_error(calibration, works, machine, 90)
    device_s = sum(line.time_s for line in lines)
    decode_s = float(target.step_s(machine, load.batch, load.context, 1.0))
    host_s = float(machine.host_s(load.head_rows))
    if host_s:
        lines = (*lines, Line(label="host", kind="host", bytes=0.0, flops=0.0, time_s=host_s, bound="host"))
    batch, context = float(load.batch), float(load.context)
    # The tokens of this step enter the cache too, and of a recurrent layer a state for each row to judge.
    judged = 0.0 if load.prefill else float(load.width) - 1.0
    waiting = partial(snapshot_bytes, llm, batch, judged)
    held = memory_bytes(target, batch, context + float(load.width), float(waiting(tp)))
    # Intensity is against device memory: bytes over a link are another roof.
    moved = sum(line.bytes for line in lines if line.kind != "collective")
    flops = sum(line.flops for line in lines)
    missing = remedy(target, hardware, batch, context + float(load.width), waiting)
    low_s, high_s = time_interval(device_s, tenth)
    return Prediction(
        model=llm.name,
        hardware=hardware.name,
        dtype=numbers.label,
        kv_dtype=f"{numbers.kv_bits:g} bit",
        batch=batch,
        context=context,
        width=float(load.width),
        prefill=load.prefill,
        tp=tp,
        step_s=device_s + host_s,
        low_s=None if low_s is None else low_s + host_s,
        high_s=None if high_s is None else high_s + host_s,
        decode_s=decode_s,
        verify_ratio=device_s / decode_s,
        weight_bytes=sum(float(work.weight_bytes) for work in works),
        resident_bytes=resident_weight_bytes(llm, numbers, tp),
        kv_bytes=sum(float(work.kv_bytes) for work in works),
        flops=flops,
        arithmetic_intensity=flops / moved,
        fits=not missing,
        memory_bytes=held,
        memory_capacity_bytes=hardware.usable_bytes,
        remedy=missing,
        breakdown=lines,
        calibration=calibration.name if calibration else "datasheet",
        expected_error=expected_error(calibration, works, machine),
        evidence=evidence_of(machine, calibration, works),
        notes=_notes(machine, target, load),
    )


def _notes(machine: Machine, target: Target, load: Load) -> tuple[str, ...]:
    notes = []
    missing = [compute for compute in target.precision.computes if compute not in machine.peak_flop_per_s]
    if missing:
        notes.append(f"{machine.name} publishes no {missing[0]} matrix rate: the compute bound is unknown")
    longest = target.llm.max_context
    if longest and float(load.context) + float(load.width) > longest:
        notes.append(f"the context is longer than the {longest} tokens the model was trained for")
    if target.tp > 1 and machine.evidence.get("collective latency") == "assumed":
        notes.append("the latency of collectives is assumed, not measured")
    if "ceilings" in machine.evidence and unpacks(target.precision):
        notes.append(UNPACKING)
    return tuple(notes)


UNPACKING = (
    "weights of fewer bits than they compute in are timed with the 16-bit kernels' ceilings: what unpacking costs is "
    "not measured, so this is a lower bound"
)


def unpacks(numbers: Precision) -> bool:
    """Whether the bulk of the weights is stored in fewer than 16 bits and computed in 16."""
    return numbers.main.bits < 16 and numbers.main.compute in ("bf16", "fp16")


def streamed_bytes_per_step(llm: Llm, numbers: Precision) -> float:
    """Weights that a plain step of one sequence reads (B): no embedding table, ``top_k`` experts."""
    return sum(float(work.weight_bytes) for work in forward_pass(llm, Load(), numbers))
