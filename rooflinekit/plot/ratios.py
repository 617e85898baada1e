"""Ratios T(W) / T(1): of a model's pass by kind of work, and of measured cases."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from rooflinekit.llm import Moe
from rooflinekit.measurement import Measurement
from rooflinekit.plot.labels import Floats
from rooflinekit.target import Target
from rooflinekit.transformer import Load, experts_touched, forward_pass
from rooflinekit.validation import step_time_s
from rooflinekit.work import Machine, work_time_s, works_time_s

PARTS = {"step": "whole step", "linear": "linear layers", "attention": "attention", "experts": "experts"}
"""Kinds of work of a verify, and what they are called."""

ONE = Load(1.0, 4096.0)
"""Load of a picture that is not told another: one sequence, 4096 tokens in its cache."""


@dataclass(frozen=True, slots=True)
class MeasuredRatio:
    """A measured T(rows) / T(1), its interval, and what the machine predicts for the same case.

    ``low`` and ``high`` equal ``ratio`` where no interval was measured; ``predicted`` is nan for a step of
    another model.
    """

    shape: str
    kind: str
    width: float
    ratio: float
    low: float
    high: float
    fitted: bool
    predicted: float


def ratios_by_width(machine: Machine, target: Target, widths: Floats, load: Load = ONE) -> dict[str, Floats]:
    """R(W) = T(W) / T(1) of the whole step and of each kind of work in it.

    Parameters
    ----------
    machine, target
        The device and the model.
    widths
        Rows per sequence; a verify of K drafts has K + 1.
    load
        Batch and context.
    """
    overlap = target.routing_overlap
    result: dict[str, Floats] = {}
    for part in PARTS:
        times = []
        for width in (widths, np.ones(1)):
            works = forward_pass(
                target.llm,
                Load(load.batch, load.context, width, routing_overlap=overlap),
                target.precision,
                target.tp,
            )
            mine = works if part == "step" else [work for work in works if work.kind == part]
            times.append(np.asarray(works_time_s(mine, machine)))
        if np.all(times[1] > 0):
            result[part] = times[0] / times[1]
    return result


def experts_by_width(target: Target, widths: Floats, load: Load = ONE) -> tuple[Floats, int] | None:
    """Distinct experts that a layer reads at each width, and how many there are; ``None`` for a dense model."""
    moe = next((block.ffn for block in target.llm.blocks if isinstance(block.ffn, Moe)), None)
    if moe is None:
        return None
    wide = Load(load.batch, load.context, widths, routing_overlap=target.routing_overlap)
    return np.asarray(experts_touched(moe, wide)), moe.experts


def measured_ratios(
    cases: Sequence[Measurement], machine: Machine, used: Collection[str] = (), target: Target | None = None
) -> tuple[MeasuredRatio, ...]:
    """Ratios of measured linear layers and whole steps to the case of one row of the same shape.

    Parameters
    ----------
    cases
        Measured cases of one sequence.
    machine
        Predicts the same cases.
    used
        Ids of cases that were fitted.
    target
        Steps are predicted where they are of this model.
    """
    chosen = [case for case in cases if case.kind in ("linear", "step") and case.shape.get("batch", 1) == 1]
    single = {case.shape_key: case for case in chosen if case.is_single}
    result = []
    for case in chosen:
        one = single.get(case.shape_key)
        if one is None or one is case:
            continue
        ratio = case.ratio or (case.median_s / one.median_s,) * 3
        predicted = _predicted_s(case, machine, target) / _predicted_s(one, machine, target)
        middle, low, high = (float(value) for value in ratio[:3])
        row = MeasuredRatio(
            _shape(case), case.kind, case.width, middle, low, high, case.id in used, predicted
        )
        result.append(row)
    return tuple(sorted(result, key=lambda row: (row.kind, row.shape, row.width)))


def _shape(case: Measurement) -> str:
    if case.kind == "linear":
        return f"{case.shape['out']} x {case.shape['inner']}"
    return f"step of {case.shape['model']}"


def _predicted_s(case: Measurement, machine: Machine, target: Target | None) -> float:
    if case.kind == "linear":
        return float(work_time_s(case.work, machine))
    if target is None or target.llm.name != case.shape["model"]:
        return float("nan")
    return step_time_s(case, machine, target.llm)
