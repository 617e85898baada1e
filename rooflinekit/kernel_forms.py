"""Forms of a kernel's time that compete for tables of thousands of rows, and how one is fitted.

Every form is a :class:`~rooflinekit.ceiling.Ceiling` with some terms free. A richer form must beat a simpler
one on shapes that neither saw (:func:`choose`): a term that does not earn its place goes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rooflinekit.ceiling import Ceiling
from rooflinekit.errors import CalibrationError
from rooflinekit.forms import (
    UNHELD,
    Floats,
    column_factors,
    part_of,
    row_factors,
    stacked,
    with_ceiling,
)
from rooflinekit.held_out import expert_model
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
    "crowded": Range(1.2, 1.0, 3.0),
}


@dataclass(frozen=True, slots=True)
class Form:
    """A form: its free terms, what is fixed, which tables correct it, and a second kernel.

    ``columns``: a factor by columns and bands of rows, that holds ``between`` the columns measured or only at
    the ``known`` ones.
    """

    name: str
    terms: tuple[str, ...]
    fixed: Mapping[str, Any]
    by_rows: bool = False
    columns: str = ""
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


def _linears() -> list[Form]:
    """Plain; with the inner dimension; with tables; with too few columns to fill the device."""
    plain = _grown(Form("p-norm", (*_ROOF, "p"), {}), ("inner", ("inner_s",)))
    inner = plain[-1]
    fill = replace(inner, name="p-norm, inner, fill, by rows", terms=(*inner.terms, "compute_fill"))
    tables = [
        replace(form, name=f"{form.name} and {word}columns", columns=table)
        for form in (inner, fill)
        for word, table in (("", "between"), ("known ", "known"))
    ]
    return [*plain, fill, *tables]


_LATENCY = ("t0_s", "group_s", "memory_efficiency")
_RING = Form("ring", _LATENCY, {})

FORMS: Mapping[str, Sequence[Form]] = {
    "linear": _linears(),
    "attention": _grown(
        Form("bandwidth", ("t0_s", "memory_efficiency"), {}),
        ("groups", ("group_s",)),
        ("fill", ("memory_fill",)),
        ("groups, fill", ("group_s", "memory_fill")),
    ),
    "latent": _grown(Form("p-norm", (*_ROOF, "p"), {}), ("groups", ("group_s",)), ("fill", ("memory_fill",))),
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
        Form("p-norm, inner, groups, crowded", (*_ROOF, "p", "inner_s", "group_s", "crowded"), {}),
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
EARNED_TABLE = 0.98
"""A table by columns, which is many numbers, must bring it to this fraction."""
FOLDS = 5
COLUMN_FOLDS = 7
CAP = 0.5
"""Errors count up to this much when forms are compared, so that a few broken rows choose nothing."""
NEAR_ROWS, FAR_WEIGHT = {"linear": 512.0, "experts": 64.0}, 0.1
"""More rows than these count less: there the padding of tiles decides, and no step of a decode has them."""


def fit_form(form: Form, cases: Sequence[Measurement], base: Machine) -> tuple[Ceiling, dict[str, float]]:
    """Fit the free terms to the logarithms of the times, robustly; then the table over rows.

    Returns
    -------
    ceiling, standard_errors
        Standard errors are relative (log space), by term; a term at its bound has none.
    """
    rows = Rows(*stacked(cases), weights_of(cases))
    ceiling, standard = _fit(form, rows, base)
    return _with_tables(form, ceiling, rows, base), standard


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
    return ceiling, _errors(form, best, low, high)


def _with_tables(form: Form, ceiling: Ceiling, rows: Rows, base: Machine) -> Ceiling:
    """Add the tables of a form to its fitted terms: what the formula leaves, by rows, then by columns."""
    if form.by_rows:
        left = rows.measured / _times(rows.work, base, ceiling)
        ceiling = replace(ceiling, factors=row_factors(rows.work, left))
    if form.columns:
        left = rows.measured / _times(rows.work, base, ceiling)
        ceiling = replace(ceiling, columns=column_factors(rows.work, left, between=form.columns == "between"))
    return ceiling


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


class Contest:
    """Errors of competing forms on parts of the cases that a fit did not see; equal fits are made once."""

    def __init__(self, rows: Rows, base: Machine) -> None:
        self.rows, self.base = rows, base
        self.fitted: dict[tuple[Any, ...], Ceiling] = {}

    def error(self, form: Form, parts: Floats) -> float:
        """Mean absolute log error, each part predicted by a fit to the others."""
        total = 0.0
        for part in np.unique(parts):
            inside, outside = self.rows.part(parts != part), self.rows.part(parts == part)
            if len(inside.measured) > form.size:
                ceiling = _with_tables(form, self._terms(form, inside, parts, part), inside, self.base)
                error = np.abs(np.log(_times(outside.work, self.base, ceiling) / outside.measured))
                total += float((outside.weights * np.minimum(error, CAP)).sum())
        return total / float(self.rows.weights.sum())

    def _terms(self, form: Form, inside: Rows, parts: Floats, part: float) -> Ceiling:
        bare = replace(form, name="", by_rows=False, columns="")
        key = (bare.terms, repr(bare.fixed), repr(bare.other), parts.tobytes(), float(part))
        if key not in self.fitted:
            self.fitted[key], _ = _fit(form, inside, self.base)
        return self.fitted[key]


def _parts(cases: Sequence[Measurement]) -> Floats:
    """What is predicted together: a fifth of the shapes, or a model's experts, as in the split of the file."""
    if cases[0].kind != "experts":
        return np.array([int(fold(f"part of {case.shape_key}") * FOLDS) for case in cases], dtype=float)
    models = [expert_model(case) for case in cases]
    place = {model: float(i) for i, model in enumerate(sorted(set(models)))}
    return np.array([place[model] for model in models])


def choose(cases: Sequence[Measurement], base: Machine) -> tuple[Form, Mapping[str, float]]:
    """Form with the least error on unseen shapes, a richer one only where it earns it; and all errors.

    A table that is to hold between columns must not lose on unseen columns either.
    """
    forms = [form for form in FORMS[cases[0].kind] if form.size < len(cases)]
    if cases[0].implementation == "NCCL":
        # Its kernels are rings and trees, whatever the message.
        forms = [form for form in forms if not form.fixed.get("one_shot")]
    contest = Contest(Rows(*stacked(cases), weights_of(cases)), base)
    shapes = _parts(cases)
    _, place = np.unique(contest.rows.work.groups, return_inverse=True)
    columns = np.asarray(place % COLUMN_FOLDS, dtype=float)
    scores = {form.name: contest.error(form, shapes) for form in forms}
    chosen = forms[0]
    for form in forms[1:]:
        wanted = EARNED_TABLE if form.columns and not chosen.columns else EARNED
        earned = scores[form.name] < wanted * scores[chosen.name]
        if earned and form.columns == "between":
            earned = contest.error(form, columns) <= contest.error(chosen, columns)
        if earned:
            chosen = form
    return chosen, scores
