"""Where a model's steps lie on a roofline: intensity and attained rate, whole and by kind of work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rooflinekit.plot.labels import Floats
from rooflinekit.precision import Precision
from rooflinekit.target import Target
from rooflinekit.transformer import Load, forward_pass
from rooflinekit.work import Machine, Work, work_time_s, works_time_s

GROUPS = ("decode", "verify", "batch", "prefill")
PARTS = ("step", "linear", "attention", "experts", "lm head")


@dataclass(frozen=True, slots=True)
class Point:
    """A step, or one kind of work in it, on the roofline.

    Attributes
    ----------
    label
        Text beside it; only whole steps are labelled.
    group
        Key of :data:`GROUPS`.
    part
        Key of :data:`PARTS`.
    intensity
        Arithmetic intensity (FLOP per byte of memory traffic).
    flop_per_s
        FLOPs over the time they take (FLOP/s).
    """

    label: str
    group: str
    part: str
    intensity: float
    flop_per_s: float


def points_of(
    machine: Machine,
    target: Target,
    *,
    context: float = 4096,
    ks: Sequence[int] = (1, 3, 7, 15),
    batches: Sequence[int] = (8, 64),
    prompt: int = 2048,
    parts: bool = False,
) -> tuple[Point, ...]:
    """Place a model's steps on the roofline: decode, verifies of K drafts, batched decodes, a prefill.

    Parameters
    ----------
    machine
        The device; times are those of this machine, plain roofline or calibrated.
    target
        The model.
    context
        Tokens in the cache (of all but the prefill).
    ks, batches, prompt
        Drafted tokens of the verifies; sequences of the batched decodes; tokens of the prefill.
    parts
        Whether to add a point for each kind of work besides those of whole steps.

    Notes
    -----
    Bytes are those of memory: what collectives move over a link is left out, the time they take is not.
    """
    overlap = target.routing_overlap
    loads = [("decode", "decode", Load(1.0, context, 1.0))]
    loads += [(f"verify K = {k}", "verify", Load(1.0, context, k + 1.0, routing_overlap=overlap)) for k in ks]
    loads += [(f"batch {b}", "batch", Load(float(b), context, 1.0)) for b in batches]
    loads.append((f"prefill {prompt}", "prefill", Load(1.0, 0.0, float(prompt), prefill=True)))
    found = []
    for label, group, load in loads:
        works = forward_pass(target.llm, load, target.precision, target.tp)
        found.append(_point(label, group, "step", works, machine))
        if parts:
            found += [_point(label, group, part, mine, machine) for part, mine in _by_part(works).items()]
    return tuple(found)


def _by_part(works: tuple[Work, ...]) -> dict[str, tuple[Work, ...]]:
    result: dict[str, tuple[Work, ...]] = {}
    for work in works:
        part = "lm head" if work.label == "lm head" else work.kind
        if part in PARTS:
            result[part] = (*result.get(part, ()), work)
    return result


def _point(label: str, group: str, part: str, works: tuple[Work, ...], machine: Machine) -> Point:
    flops = float(sum(float(work.flops) for work in works))
    moved = float(sum(float(work.bytes) for work in works if work.kind != "collective"))
    return Point(label, group, part, flops / moved, flops / float(works_time_s(works, machine)))


def fitted_roof(machine: Machine, numbers: Precision, rows: Floats) -> tuple[Floats, Floats]:
    """Rate that a large linear layer reaches on its weights alone, by rows, without the fixed time of a kernel.

    Returns
    -------
    intensity, flop_per_s
        FLOP per byte; FLOP/s.
    """
    weights = 1e9
    flops, moved = 2.0 * rows * weights, np.full_like(rows, weights * numbers.bytes_per_weight)
    work = Work("roof", "linear", numbers.compute, rows, flops, weight_bytes=moved, kernels=0.0)
    return flops / moved, flops / np.asarray(work_time_s(work, machine))
