"""Forms of a ceiling and how each is fitted to measured times: the p-norm and the staircase."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rooflinekit.calibration import HeldOut
from rooflinekit.ceiling import ColumnFactors, RowFactors
from rooflinekit.errors import CalibrationError
from rooflinekit.measurement import Measurement
from rooflinekit.work import Ceiling, Machine, Staircase, Work, work_time_s

Floats = NDArray[np.float64]

STEP = 1.25
"""A jump by this factor between neighbouring row counts is a change of kernel: not interpolated across."""
GROWTH = 1.1
"""Unless the rows themselves grew as much: costs may rise in proportion to the rows, and a little more."""


def errors(predicted: Floats, measured: Floats) -> HeldOut:
    """Relative errors of predictions: median and 90th percentile of the absolute value, and the bias (median)."""
    relative = predicted / measured - 1.0
    size = np.abs(relative)
    return HeldOut(
        n=len(size),
        median_abs_error=float(np.median(size)),
        p90_abs_error=float(np.quantile(size, 0.9)),
        bias=float(np.median(relative)),
    )


def stacked(cases: Sequence[Measurement]) -> tuple[Work, Floats]:
    """One array-valued work for many cases of a kind, and their measured times (s)."""
    works = [case.work for case in cases]

    def column(name: str) -> Floats:
        return np.array([float(getattr(work, name)) for work in works])

    first = works[0]
    work = Work(
        first.kind,
        first.kind,
        first.dtype,
        column("rows"),
        column("flops"),
        column("weight_bytes"),
        column("kv_bytes"),
        column("activation_bytes"),
        column("kernels"),
        column("inner"),
        column("groups"),
        column("crowding"),
    )
    return work, np.array([case.median_s for case in cases])


def at_the_time(machine: Machine, cases: Sequence[Measurement]) -> Machine:
    """The machine with the bandwidth it had when each case was measured (an entry per case)."""
    factors = np.array([case.bandwidth_factor for case in cases])
    return replace(machine, bandwidth_bytes_per_s=machine.bandwidth_bytes_per_s * factors)


def with_ceiling(base: Machine, kind: str, dtype: str, ceiling: Ceiling) -> Machine:
    """The machine with one ceiling exchanged."""
    return replace(base, ceilings={**base.ceilings, (kind, dtype): ceiling})


def predicted_s(cases: Sequence[Measurement], base: Machine, ceiling: Ceiling) -> Floats:
    """Times of cases under a ceiling, at the bandwidth of their moment (s)."""
    work, _ = stacked(cases)
    there = at_the_time(base, cases)
    return np.asarray(work_time_s(work, with_ceiling(there, work.kind, work.dtype, ceiling)))


UNHELD = 2.0
"""A relative standard error above this says that the data do not hold the parameter."""

_START = np.log([2e-6, 0.7, 0.7, 2.0])
_LOW = np.log([1e-9, 0.02, 0.005, 1.0])
_HIGH = np.log([2e-3, 1.1, 1.3, 16.0])


def fit_p_norm(
    cases: Sequence[Measurement], base: Machine, tile: float = 1.0
) -> tuple[Ceiling, dict[str, float]]:
    """Fit t0, both efficiencies and the sharpness of the knee, robustly, to logarithms of times.

    Physical bounds: memory efficiency at most 1.1 (a read probe is a lower bound), compute efficiency at
    most 1.3 (rated clocks of consumer cards are minimums), p between 1 (terms add) and 16 (a sharp
    roofline). Where the machine publishes no peak for the format, only t0 and the memory efficiency can
    be told.

    Returns
    -------
    ceiling, standard_errors
        Standard errors are relative (log space), by parameter name.
    """
    try:
        from scipy.optimize import least_squares  # noqa: PLC0415 - 0.5 s that predicting need not pay
    except ImportError as error:
        raise CalibrationError(
            "fitting needs scipy; install the extra: pip install 'rooflinekit[bench]'"
        ) from error

    work, measured = stacked(cases)
    there = at_the_time(base, cases)

    def ceiling_of(x: Floats) -> Ceiling:
        t0, memory, compute, p = np.exp(x)
        return Ceiling(
            t0_s=float(t0),
            memory_efficiency=float(memory),
            compute_efficiency=float(compute),
            p=float(p),
            tile=tile,
        )

    def residuals(x: Floats) -> Floats:
        trial = with_ceiling(there, work.kind, work.dtype, ceiling_of(x))
        return np.log(np.asarray(work_time_s(work, trial)) / measured)

    found = [
        least_squares(
            residuals,
            np.clip(_START + shift, _LOW, _HIGH),
            bounds=(_LOW, _HIGH),
            loss="soft_l1",
            f_scale=0.05,
        )
        for shift in (0.0, np.array([-3.0, 0.2, 0.3, 0.8]), np.array([2.0, -0.5, -1.0, -0.5]))
    ]
    best = min(found, key=lambda result: float(result.cost))
    return ceiling_of(best.x), _standard_errors(best.x, best.jac, best.fun)


def _standard_errors(x: Floats, jacobian: Floats, residuals: Floats) -> dict[str, float]:
    """Relative standard errors; a parameter at its bound, or that the data do not hold, has none."""
    freedom = max(1, len(residuals) - jacobian.shape[1])
    covariance = np.linalg.pinv(jacobian.T @ jacobian) * float(residuals @ residuals) / freedom
    values = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    names = ("t0", "memory_efficiency", "compute_efficiency", "p")
    inside = (x > _LOW + 1e-3) & (x < _HIGH - 1e-3) & (values < UNHELD)
    return {name: float(v) for name, v, ok in zip(names, values, inside, strict=True) if ok}


def fit_staircase(cases: Sequence[Measurement], base: Machine) -> tuple[Ceiling, dict[str, float]]:
    """Take the cost in reads of the weights at each measured row count, as a table over all shapes."""
    work, measured = stacked(cases)
    reads = measured / (np.asarray(work.bytes) / at_the_time(base, cases).bandwidth_bytes_per_s)
    rows = np.asarray(work.rows)
    grid = np.unique(rows)
    values = np.array([np.median(reads[rows == r]) for r in grid])
    spread = [float(np.std(np.log(reads[rows == r]))) for r in grid if np.sum(rows == r) > 1]
    breaks = tuple(
        float(b)
        for a, b, low, high in zip(grid, grid[1:], values, values[1:], strict=False)
        if high / low > max(STEP, GROWTH * b / a) or high / low < 1 / STEP
    )
    table = Staircase(tuple(grid.tolist()), tuple((values / values[0]).tolist()), breaks)
    ceiling = Ceiling(memory_efficiency=float(1.0 / values[0]), staircase=table)
    return ceiling, {"reads": float(np.median(spread)) if spread else 0.0}


FEWEST_PER_ROW = 5
"""A row count, or a column count in a band of rows, with fewer cases than this has no factor of its own."""
LAST_ROWS = (64.0, 128.0, 256.0)
"""Last rows of the bands that have factors by columns; the last band has no end. The rows of a verify share one
band, so that its ratio to a decode does not inherit the scatter of two factors."""


def row_factors(work: Work, ratio: Floats) -> RowFactors:
    """Median of measured over formula by rows; rows that are no whole numbers are gathered in octaves."""
    rows = np.asarray(work.rows, dtype=float)
    keys = rows if work.kind == "linear" else 2.0 ** np.rint(np.log2(rows))
    found = {float(key): ratio[keys == key] for key in np.unique(keys)}
    kept = {key: float(np.median(some)) for key, some in found.items() if len(some) >= FEWEST_PER_ROW}
    return RowFactors(tuple(kept), tuple(kept.values())) if kept else RowFactors((1.0,), (1.0,))


def column_factors(work: Work, ratio: Floats, *, between: bool) -> ColumnFactors:
    """Median of measured over formula by columns and band of rows, drawn towards 1 where shapes are few.

    With s shapes in a band the logarithm counts ``s / (s + 1)``: one shape says as much about itself as about
    its columns. A band without enough cases of some columns takes the others' factor there (or 1 where
    factors do not hold between columns).
    """
    columns, band = np.asarray(work.groups, dtype=float), np.searchsorted(LAST_ROWS, np.asarray(work.rows))
    inner, known = np.asarray(work.inner), np.unique(columns)
    factors = []
    for i in range(len(LAST_ROWS) + 1):
        cells = [(band == i) & (columns == one) for one in known]
        enough = np.array([cell.sum() >= FEWEST_PER_ROW for cell in cells])
        values = np.array(
            [_drawn(ratio[cell], inner[cell]) if ok else 1.0 for cell, ok in zip(cells, enough, strict=True)]
        )
        if between and enough.any():
            values = np.interp(np.log(known), np.log(known[enough]), values[enough])
        factors.append(tuple(values.tolist()))
    return ColumnFactors(LAST_ROWS, tuple(known.tolist()), tuple(factors), between)


def _drawn(ratio: Floats, inner: Floats) -> float:
    shapes = len(np.unique(inner))
    return float(np.median(ratio) ** (shapes / (shapes + 1.0)))


def part_of(work: Work, chosen: NDArray[np.bool_]) -> Work:
    """Some of the entries of an array-valued work."""
    arrays: dict[str, Any] = {}
    for field in fields(work):
        value = getattr(work, field.name)
        if isinstance(value, np.ndarray):
            arrays[field.name] = value[chosen]
    return replace(work, **arrays)


def lower_bound_s(case: Measurement, base: Machine) -> float:
    """Time below which no kernel can be (s): weights or cache over the bandwidth, FLOPs over the peak."""
    bandwidth = float(np.max(base.bandwidth_bytes_per_s))
    peak = base.peak_flop_per_s.get(case.dtype)
    compute = case.flops / float(np.max(peak)) if peak is not None else 0.0
    return (
        max((case.weight_bytes + case.kv_bytes) / bandwidth, compute) if math.isfinite(bandwidth) else compute
    )
