"""Forms of a kernel's time that compete for tables of thousands of rows, and how one is fitted.

Every form is a :class:`~rooflinekit.ceiling.Ceiling` with some terms free. A richer form must beat a simpler
one on shapes that neither saw (:func:`choose`): a term that does not earn its place goes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rooflinekit.ceiling import Ceiling, RowFactors
from rooflinekit.errors import CalibrationError
from rooflinekit.forms import UNHELD, Floats, stacked, with_ceiling
from rooflinekit.measurement import Measurement, fold
from rooflinekit.work import Machine, Work, work_time_s


class Range(NamedTuple):
    """Start and bounds of a term; no efficiency passes 1."""

    start: float
    low: float
    high: float


TERMS: Mapping[str, Range] = {
    "t0_s": Range(4e-6, 2e-8, 3e-4),
    "memory_efficiency": Range(0.85, 0.05, 1.0),
    "compute_efficiency": Range(0.7, 0.02, 1.0),
    "p": Range(2.5, 1.0, 16.0),
    "inner_s": Range(1e-10, 1e-14, 1e-8),
    "group_s": Range(1e-8, 1e-13, 1e-4),
    "memory_fill": Range(1.0, 1e-3, 1e3),
    "compute_fill": Range(6e3, 1.0, 1e6),
}


@dataclass(frozen=True, slots=True)
class Form:
    """A form: its free terms, what is fixed, whether a table over rows corrects it, and a second kernel."""

    name: str
    terms: tuple[str, ...]
    fixed: Mapping[str, Any]
    by_rows: bool = False
    other: Form | None = None

    @property
    def size(self) -> int:
        """Number of free terms."""
        return len(self.terms) + (self.other.size if self.other else 0)

    def ceiling(self, values: Sequence[float]) -> Ceiling:
        """Ceiling with these values for the free terms, in their order."""
        mine: dict[str, Any] = dict(zip(self.terms, map(float, values), strict=False))
        other = self.other.ceiling(values[len(self.terms) :]) if self.other else None
        return Ceiling(**self.fixed, **mine, other=other)

    def ranges(self) -> list[Range]:
        """Ranges of the free terms."""
        return [TERMS[name] for name in self.terms] + (self.other.ranges() if self.other else [])


def _grown(base: Form, *growths: tuple[str, tuple[str, ...]]) -> list[Form]:
    """The base form and richer ones, each without and with a table over the rows."""
    forms = [base] + [
        replace(base, name=f"{base.name}, {name}", terms=base.terms + more) for name, more in growths
    ]
    return forms + [replace(form, name=f"{form.name}, by rows", by_rows=True) for form in forms]


_ROOF = ("t0_s", "memory_efficiency", "compute_efficiency")
_LATENCY = ("t0_s", "group_s", "memory_efficiency")
_RING = Form("ring", _LATENCY, {})
_ONE_SHOT = Form("one shot", _LATENCY, {"one_shot": True})

FORMS: Mapping[str, Sequence[Form]] = {
    "linear": _grown(Form("p-norm", (*_ROOF, "p"), {}), ("inner", ("inner_s",))),
    "attention": _grown(
        Form("bandwidth", ("t0_s", "memory_efficiency"), {}),
        ("groups", ("group_s",)),
        ("fill", ("memory_fill",)),
        ("groups, fill", ("group_s", "memory_fill")),
    ),
    "prefill": [
        Form("sum", _ROOF, {"p": 1.0}),
        Form("sum, fill", (*_ROOF, "compute_fill"), {"p": 1.0}),
        Form("p-norm", (*_ROOF, "p"), {}),
        Form("p-norm, fill", (*_ROOF, "p", "compute_fill"), {}),
    ],
    "experts": [
        Form("p-norm", (*_ROOF, "p"), {}),
        Form("p-norm, groups", (*_ROOF, "p", "group_s"), {}),
        Form("p-norm, inner, groups", (*_ROOF, "p", "inner_s", "group_s"), {}),
    ],
    "collective": [
        _RING,
        Form("ring or ring", _LATENCY, {}, other=_RING),
        Form("one shot or ring", _LATENCY, {"one_shot": True}, other=_RING),
    ],
}
"""Forms by kind of work, simplest first."""

EARNED = 0.995
"""A richer form must bring the error on unseen shapes to this fraction of the simpler one's."""
FOLDS = 5
CAP = 0.5
"""Errors count up to this much when forms are compared, so that a few broken rows choose nothing."""
NEAR_ROWS, FAR_WEIGHT = {"linear": 512.0, "experts": 64.0}, 0.1
"""More rows than these count less: there the padding of tiles decides, and no step of a decode has them."""
FEWEST_PER_ROW = 5
"""A row count with fewer fitted cases than this has no factor of its own."""


def fit_form(form: Form, cases: Sequence[Measurement], base: Machine) -> tuple[Ceiling, dict[str, float]]:
    """Fit the free terms to the logarithms of the times, robustly; then the table over rows.

    Returns
    -------
    ceiling, standard_errors
        Standard errors are relative (log space), by term; a term at its bound has none.
    """
    work, measured = stacked(cases)
    return _fit(form, Rows(work, measured, weights_of(cases)), base)


class Rows(NamedTuple):
    """Cases as arrays: the work, the measured times (s) and how much each counts."""

    work: Work
    measured: Floats
    weights: Floats

    def part(self, chosen: NDArray[np.bool_]) -> Rows:
        """Some of the cases."""
        return Rows(part_of(self.work, chosen), self.measured[chosen], self.weights[chosen])


def weights_of(cases: Sequence[Measurement]) -> Floats:
    """How much each case counts: the rows of a decode or a verify more than those of a prompt."""
    near = NEAR_ROWS.get(cases[0].kind, np.inf)
    return np.array([1.0 if case.width <= near else FAR_WEIGHT for case in cases])


def _fit(form: Form, rows: Rows, base: Machine) -> tuple[Ceiling, dict[str, float]]:
    work, measured, weights = rows
    try:
        from scipy.optimize import least_squares  # noqa: PLC0415 - 0.5 s that predicting need not pay
    except ImportError as error:
        raise CalibrationError(
            "fitting needs scipy; install the extra: pip install 'rooflinekit[bench]'"
        ) from error
    ranges = form.ranges()
    low, high = (np.log([getattr(one, name) for one in ranges]) for name in ("low", "high"))

    def residuals(x: Floats) -> Floats:
        return weights * np.log(_times(work, base, form.ceiling(list(np.exp(x)))) / measured)

    found = [
        least_squares(residuals, np.clip(start, low, high), bounds=(low, high), loss="soft_l1", f_scale=0.03)
        for start in _starts(form, ranges)
    ]
    best = min(found, key=lambda result: float(result.cost))
    ceiling = form.ceiling(list(np.exp(best.x)))
    if form.by_rows:
        ceiling = replace(ceiling, factors=row_factors(work, measured / _times(work, base, ceiling)))
    return ceiling, _errors(form, best, low, high)


def _starts(form: Form, ranges: Sequence[Range]) -> list[Floats]:
    """Where the search begins: once, or from several places where two kernels compete for the rows."""
    start = np.log([one.start for one in ranges])
    if form.other is None:
        return [start]
    half = len(form.terms)
    shifts = ((0.0, 1.6), (-0.7, 1.6), (0.0, 2.5), (1.6, 0.0))
    return [start + np.r_[np.zeros(half - 1), small, large, np.zeros(half - 1)] for small, large in shifts]


def _times(work: Work, base: Machine, ceiling: Ceiling) -> Floats:
    return np.asarray(work_time_s(work, with_ceiling(base, work.kind, work.dtype, ceiling)))


def _errors(form: Form, result: Any, low: Floats, high: Floats) -> dict[str, float]:
    names = list(form.terms) + ([f"other {name}" for name in form.other.terms] if form.other else [])
    freedom = max(1, len(result.fun) - result.jac.shape[1])
    spread = float(result.fun @ result.fun) / freedom
    values = np.sqrt(np.maximum(np.diag(np.linalg.pinv(result.jac.T @ result.jac) * spread), 0.0))
    inside = (result.x > low + 1e-3) & (result.x < high - 1e-3) & (values < UNHELD)
    return {name: float(value) for name, value, ok in zip(names, values, inside, strict=True) if ok}


def row_factors(work: Work, ratio: Floats) -> RowFactors:
    """Median of measured over formula by rows; rows that are no whole numbers are gathered in octaves."""
    rows = np.asarray(work.rows, dtype=float)
    keys = rows if work.kind == "linear" else 2.0 ** np.rint(np.log2(rows))
    found = {float(key): ratio[keys == key] for key in np.unique(keys)}
    kept = {key: float(np.median(some)) for key, some in found.items() if len(some) >= FEWEST_PER_ROW}
    return RowFactors(tuple(kept), tuple(kept.values())) if kept else RowFactors((1.0,), (1.0,))


def cross_error(form: Form, rows: Rows, parts: Floats, base: Machine) -> float:
    """Mean absolute log error, each part of the shapes predicted by a fit to the others."""
    total = 0.0
    for part in np.unique(parts):
        inside, outside = rows.part(parts != part), rows.part(parts == part)
        if len(inside.measured) > form.size:
            ceiling, _ = _fit(form, inside, base)
            error = np.abs(np.log(_times(outside.work, base, ceiling) / outside.measured))
            total += float((outside.weights * np.minimum(error, CAP)).sum())
    return total / float(rows.weights.sum())


def part_of(work: Work, chosen: NDArray[np.bool_]) -> Work:
    """Some of the entries of an array-valued work."""
    arrays: dict[str, Any] = {}
    for field in fields(work):
        value = getattr(work, field.name)
        if isinstance(value, np.ndarray):
            arrays[field.name] = value[chosen]
    return replace(work, **arrays)


def choose(cases: Sequence[Measurement], base: Machine) -> tuple[Form, Mapping[str, float]]:
    """Form with the least error on unseen shapes, a richer one only where it earns it; and all errors."""
    forms = [form for form in FORMS[cases[0].kind] if form.size < len(cases)]
    if cases[0].implementation == "NCCL":
        # Its kernels are rings and trees, whatever the message.
        forms = [form for form in forms if not form.fixed.get("one_shot")]
    parts = np.array([int(fold(f"part of {case.shape_key}") * FOLDS) for case in cases], dtype=float)
    rows = Rows(*stacked(cases), weights_of(cases))
    scores = {form.name: cross_error(form, rows, parts, base) for form in forms}
    chosen = forms[0]
    for form in forms[1:]:
        if scores[form.name] < EARNED * scores[chosen.name]:
            chosen = form
    return chosen, scores


def lower_bound_s(case: Measurement, base: Machine) -> float:
    """Time below which no kernel can be (s): weights or cache over the bandwidth, FLOPs over the peak."""
    bandwidth = float(np.max(base.bandwidth_bytes_per_s))
    peak = base.peak_flop_per_s.get(case.dtype)
    compute = case.flops / float(np.max(peak)) if peak is not None else 0.0
    return (
        max((case.weight_bytes + case.kv_bytes) / bandwidth, compute) if math.isfinite(bandwidth) else compute
    )
