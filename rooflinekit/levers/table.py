"""The table: every lever's cost by the library's own prediction, its speed related to the target as it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from rooflinekit.acceptance import Acceptance, solve_alpha
from rooflinekit.capacity import drafting_bytes, memory_bytes, no_drafter, remedy
from rooflinekit.curve import Case, CurvePoint, allowed_k, curve_of, plan_at, rounds_by_k
from rooflinekit.hardware import Hardware
from rooflinekit.levers.example import TOKENS, VOCABULARY, distance, example_chain
from rooflinekit.levers.rows import Lever, LeverPoint, LeverTable, Option
from rooflinekit.memory import resident_weight_bytes
from rooflinekit.prediction import UNPACKING, unpacks
from rooflinekit.sampling import Chain
from rooflinekit.target import Target
from rooflinekit.transformer import Load, forward_pass
from rooflinekit.work import Pass

CHANGED = {
    "quantisation": "not computed: depends on the weights and how they were quantised",
    "smaller model": "not computed: another model, as near as it was trained (distilled) to be",
}


def lever_table(
    options: Sequence[Option],
    hardware: Hardware,
    acceptance: Acceptance,
    *,
    batches: Sequence[float] = (1.0, 32.0),
    context: float = 4096.0,
    max_k: int = 16,
    calibration: str = "datasheet",
    left_out: Iterable[tuple[str, str]] = (),
) -> LeverTable:
    """Compare ways to more tokens per second.

    Parameters
    ----------
    options
        The target as it is first, then its quantised forms and smaller models; those with a drafter are
        shown with speculation too, at the same acceptance.
    hardware
        The device, for its memory.
    acceptance
        Of the drafter.
    batches, context
        Sequences; tokens in the cache.
    max_k
        Largest K to try; each row takes its best.
    calibration, left_out
        What the ceilings came from; options that could not be built, and why.
    """
    room = _Room(hardware, tuple(batches), context, max_k)
    plain = [_row(room, option) for option in options]
    base = plain[0]
    rows = [_against(base, row) for row in plain]
    alone: Lever | None = None
    for option, row in zip(options, plain, strict=True):
        if option.drafter is not None and option.kind != "smaller model":
            both = _row(room, option, acceptance, "speculation")
            rows.append(_against(base, both, (row, alone) if alone is not None else None))
            alone = alone or both
    first = options[0]
    if first.drafter is not None and alone is not None:
        chain = example_chain(_alpha(acceptance, alone.points[0].k), lossy=True)
        survival = chain.survival(allowed_k(first.drafter, acceptance, max_k))
        rows.append(_against(base, _row(room, first, survival, "typical acceptance", chain)))
    return LeverTable(
        model=first.target.llm.name,
        hardware=hardware.name,
        calibration=calibration,
        drafter=first.drafter.name if first.drafter is not None else "",
        acceptance=acceptance.label,
        context=context,
        levers=tuple(rows),
        left_out=tuple(left_out),
        notes=_notes(options),
    )


@dataclass(frozen=True, slots=True)
class _Room:
    hardware: Hardware
    batches: tuple[float, ...]
    context: float
    max_k: int


def _row(
    room: _Room,
    option: Option,
    acceptance: Acceptance | None = None,
    rule: str = "",
    chain: Chain | None = None,
) -> Lever:
    """One lever, its speedup still to be related to the target as it is."""
    weights = resident_weight_bytes(option.target.llm, option.target.precision, option.target.tp)
    if rule and option.drafter is not None:
        weights += float(option.drafter.memory_bytes(batch=0.0, context=0.0, tp=option.target.tp))
    points = tuple(_point(room, option, acceptance, batch) for batch in room.batches)
    kinds = (option.kind,) if option.kind in CHANGED else ()
    output, distant, reason = _output(option, acceptance, points[0].k, chain)
    return Lever(
        name=f"{option.name} + {rule}" if rule else option.name,
        changes=(*kinds, rule) if rule else kinds,
        output=output,
        total_variation=distant,
        reason=reason,
        resident_bytes=weights,
        points=points,
    )


def _alpha(acceptance: Acceptance, k: int) -> float:
    """The constant rate with the same acceptance length."""
    return solve_alpha(float(acceptance.expected(k)), k)


def _output(
    option: Option, acceptance: Acceptance | None, k: int, chain: Chain | None
) -> tuple[str, float | None, str]:
    """What becomes of the output distribution, by how much, and how that is known."""
    if option.kind in CHANGED:
        added = "" if acceptance is None else "; speculation leaves that as it is"
        return "changed", None, CHANGED[option.kind] + added
    if acceptance is None:
        return "unchanged", 0.0, "the reference"
    example = chain or example_chain(_alpha(acceptance, k))
    where = f"next {TOKENS} tokens of an example ({VOCABULARY} tokens, {VOCABULARY} contexts), exact"
    if example.verdict.lossless:
        return "unchanged", distance(example, k), f"{where}; 0 to rounding for every target and drafter"
    return "changed", distance(example, k), f"{where}; the acceptance, and so the speed, is the example's too"


def _point(room: _Room, option: Option, acceptance: Acceptance | None, batch: float) -> LeverPoint:
    target, machine, drafter = option.target, option.machine, option.drafter
    load = Load(batch, room.context, 1.0, routing_overlap=target.routing_overlap)
    if acceptance is None or drafter is None:
        host = machine.host_s(batch)
        step_s = float(target.step_s(machine, batch, room.context, 1.0) + host)
        return _measured(room, target, load, step_s, (), None, no_drafter)
    top = allowed_k(drafter, acceptance, room.max_k)
    case = Case(machine, target, drafter, acceptance)
    best = max(curve_of(rounds_by_k(case, load, top)), key=lambda point: point.speedup)
    plan = plan_at(case, load, best)
    return _measured(
        room, target, load, best.round_s, plan, best, drafting_bytes(drafter, target, load, best.k)
    )


def _measured(
    room: _Room,
    target: Target,
    load: Load,
    step_s: float,
    plan: tuple[Pass, ...],
    best: CurvePoint | None,
    extra: Callable[[int], float],
) -> LeverPoint:
    """What a step or round of this time moves and emits, and whether it fits."""
    k, length = (best.k, best.acceptance_length) if best is not None else (0, 1.0)
    batch, held = float(load.batch), room.context + k + 1.0
    judged = replace(load, width=k + 1.0)
    passes = (Pass(forward_pass(target.llm, judged, target.precision, target.tp)), *plan)
    # Bytes over a link are another roof.
    works = [(float(one.repeats), work) for one in passes for work in one.works]
    moved = sum(times * float(work.bytes) for times, work in works if work.kind != "collective")
    flops = sum(times * float(work.flops) for times, work in works)
    # Recurrent states that wait for the verdict are in `extra`.
    missing = remedy(target, room.hardware, batch, held, extra)
    return LeverPoint(
        batch=batch,
        k=k,
        acceptance_length=length,
        step_s=step_s,
        tokens_per_s=batch * length / step_s,
        bytes_per_token=moved / (batch * length),
        flops_per_token=flops / (batch * length),
        speedup=1.0,
        of_product=None,
        fits=not missing,
        memory_bytes=memory_bytes(target, batch, held, extra(target.tp)),
        remedy=missing,
    )


def _against(base: Lever, row: Lever, parts: tuple[Lever, Lever] | None = None) -> Lever:
    """Relate a lever's speed to the target as it is, and to the product of its parts' speedups."""
    points = []
    for i, point in enumerate(row.points):
        plain = base.points[i].tokens_per_s
        speedup, share = point.tokens_per_s / plain, None
        if parts is not None:
            share = speedup / (parts[0].points[i].tokens_per_s * parts[1].points[i].tokens_per_s / plain**2)
        points.append(replace(point, speedup=speedup, of_product=share))
    return replace(row, points=tuple(points))


def _notes(options: Sequence[Option]) -> tuple[str, ...]:
    weight_only = [one for one in options if unpacks(one.target.precision)]
    unpacked = any("ceilings" in one.machine.evidence for one in weight_only)
    found = (UNPACKING,) if unpacked else ()
    if options[0].drafter is None:
        return found
    return (
        *found,
        "every target is drafted for with the same acceptance; a quantised one may agree with its drafter less",
        "unchanged means the distribution: kernels of another width round differently, so greedy text may still differ",
    )
