"""Compare predictions with measurements that were not fitted, and print the error by band."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from rooflinekit.calibration import Calibration
from rooflinekit.errors import CalibrationError
from rooflinekit.fitting import fastest_roof, usable
from rooflinekit.forms import Floats, errors
from rooflinekit.held_out import falls_in_fit
from rooflinekit.llm import Llm
from rooflinekit.measurement import CLEAN, Measurement
from rooflinekit.precision import precision
from rooflinekit.target import Target
from rooflinekit.work import Machine, work_time_s

BANDS = ((1, 1), (2, 8), (9, 16), (17, 64), (65, 256))
"""Bands of rows, first and last included."""

COMPARED_KINDS = ("linear", "attention", "step")
"""Kinds of measurements with a suite of their own."""

TOLERANCE = {"linear": 0.15, "linear ratio": 0.15, "attention": 0.30, "step": 0.15, "step ratio": 0.15}
"""Largest median absolute error of a suite on a clean run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """Errors of one suite in one band of rows (fractions); ``tolerance`` and ``ok`` where it is judged.

    ``tolerance_p90`` is the limit of the 90th percentile, and ``plain`` the median error of the plain guess
    beside it: the datasheet roofline, R = 1, uniform routing.
    """

    suite: str
    band: str
    n: int
    median_abs_error: float
    p90_abs_error: float
    bias: float
    tolerance: float | None
    ok: bool | None
    tolerance_p90: float | None = None
    plain: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """Plain data; the key is ``pass`` as on the command line."""
        data = asdict(self)
        data["pass"] = data.pop("ok")
        return data


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceBand(Band):
    """Error of one published source.

    Attributes
    ----------
    judged, value
        Statistic that the tolerance limits (``worst``, ``mean``, ``median``: at most; ``sign``, the share of
        right signs: at least), and what it is.
    lowest, highest
        Ends of the signed error (fractions).
    flags
        Special rows, counted by reason.
    url, formula, limits
        Where it was published, which function is judged, what the line does not show.
    group
        Heading under which the line stands.
    """

    judged: str
    value: float
    lowest: float
    highest: float
    flags: tuple[str, ...]
    url: str
    formula: str
    limits: str
    group: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One held-out case: predicted beside measured (s), or ratios for a ``ratio`` suite."""

    suite: str
    case: str
    rows: float
    predicted: float
    measured: float

    @property
    def error(self) -> float:
        """Relative error."""
        return self.predicted / self.measured - 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Result of a validation.

    Attributes
    ----------
    bands
        Errors by suite and band; the band ``all`` is judged.
    cases
        Every comparison.
    fitted_left_out
        Cases that were in the fit and so not compared.
    left_out
        Other cases not compared, by reason: disturbed, faster than the roof.
    contended
        Whether most samples were disturbed by other programs; ``None`` where nothing was measured.
    """

    bands: tuple[Band, ...]
    cases: tuple[Compared, ...]
    fitted_left_out: int
    contended: bool | None
    left_out: Mapping[str, int] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        """Whether every judged suite is within its tolerance."""
        return all(band.ok is not False for band in self.bands)

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return {
            "suites": [band.as_dict() for band in self.bands],
            "cases": [{**asdict(case), "error": case.error} for case in self.cases],
            "fitted_left_out": self.fitted_left_out,
            "left_out": dict(self.left_out),
            "contended": self.contended,
            "pass": self.passed,
        }


def _name(case: Measurement) -> str:
    shape = case.shape
    if case.kind == "linear":
        return f"{shape['out']:g} x {shape['inner']:g}, {case.rows:g} rows"
    if case.kind == "attention":
        return f"context {shape['context']:g}, {shape['width']:g} rows"
    return f"{shape.get('model', case.kind)}, width {shape.get('width', 1):g}"


def step_time_s(case: Measurement, machine: Machine, llm: Llm) -> float:
    """Predicted device time of a measured whole step (s)."""
    target = Target(llm, precision(case.dtype))
    shape = case.shape
    return float(
        target.step_s(machine, float(shape.get("batch", 1)), float(shape["context"]), float(shape["width"]))
    )


def fitted_ids(cases: Sequence[Measurement], calibration: Calibration) -> set[str]:
    """Ids of the cases that the calibration was fitted on."""
    used = set(calibration.used)
    share = calibration.fitted_share
    return used | {c.id for c in cases if share is not None and falls_in_fit(c, share)}


def compare(
    cases: Sequence[Measurement],
    machine: Machine,
    calibration: Calibration,
    find_llm: Callable[[str], Llm],
) -> list[Compared]:
    """Predict every case that was not fitted, and its ratio to the one-row case of the same shape.

    Parameters
    ----------
    cases
        Measured cases.
    machine
        Calibrated machine.
    calibration
        What it was calibrated with; the cases it was fitted on are refused here.
    find_llm
        Finds a model by the name a ``step`` case carries.
    """
    used = fitted_ids(cases, calibration)
    times: dict[str, float] = {}
    for case in cases:
        fit = calibration.fit("linear" if case.kind == "step" else case.kind, case.dtype)
        factor = case.bandwidth_factor if fit is None or fit.follows_bandwidth else 1.0
        there = replace(machine, bandwidth_bytes_per_s=machine.bandwidth_bytes_per_s * factor)
        if case.kind in ("linear", "attention"):
            times[case.id] = float(work_time_s(case.work, there))
        elif case.kind == "step":
            times[case.id] = step_time_s(case, there, find_llm(str(case.shape["model"])))
    single = {c.shape_key: c for c in cases if c.id in times and c.is_single}
    result = []
    for case in cases:
        if case.id not in times or case.id in used:
            continue
        time = Compared(
            suite=case.kind,
            case=_name(case),
            rows=case.width,
            predicted=times[case.id],
            measured=case.median_s,
        )
        result.append(time)
        one = single.get(case.shape_key)
        if one is not None and one is not case and case.kind in ("linear", "step"):
            measured = case.ratio[0] if case.ratio else case.median_s / one.median_s
            predicted = times[case.id] / times[one.id]
            result.append(replace(time, suite=f"{case.kind} ratio", predicted=predicted, measured=measured))
    return result


def bands_of(compared: Sequence[Compared]) -> list[Band]:
    """Errors by suite: judged over all rows, then shown by band."""
    result = []
    for suite in dict.fromkeys(one.suite for one in compared):
        mine = [one for one in compared if one.suite == suite]
        result.append(_band(suite, "all", mine, TOLERANCE.get(suite)))
        for low, high in BANDS:
            inside = [one for one in mine if low <= one.rows <= high]
            if inside and len(inside) < len(mine):
                label = f"{low}" if low == high else f"{low}-{high}"
                result.append(_band(suite, label, inside, None))
    return result


def _band(suite: str, label: str, compared: Sequence[Compared], tolerance: float | None) -> Band:
    predicted: Floats = np.array([one.predicted for one in compared])
    found = errors(predicted, np.array([one.measured for one in compared]))
    return Band(
        suite=suite,
        band=label,
        n=found.n,
        median_abs_error=found.median_abs_error,
        p90_abs_error=found.p90_abs_error,
        bias=found.bias,
        tolerance=tolerance,
        ok=None if tolerance is None else found.median_abs_error <= tolerance,
    )


def validate_cases(
    cases: Sequence[Measurement],
    machine: Machine,
    calibration: Calibration,
    find_llm: Callable[[str], Llm],
) -> Report:
    """Validate a calibrated machine against the measurements its calibration did not use.

    What a fit would leave out is left out here too, and counted: disturbed cases (unless most are) and times
    that no machine of this bandwidth and peak can reach.

    Raises
    ------
    CalibrationError
        Nothing is left to compare.
    """
    roof = fastest_roof(machine, cases)
    kept: list[Measurement] = []
    left_out = Counter[str]()
    for kind in COMPARED_KINDS:
        some, reasons = usable([case for case in cases if case.kind == kind], roof)
        kept += some
        left_out += reasons
    compared = compare(kept, machine, calibration, find_llm)
    if not compared:
        raise CalibrationError(
            "nothing is left to compare: every case was fitted or is a probe; measure again with another --seed or a "
            "larger --budget"
        )
    shares = [case.clean_share for case in cases if case.clean]
    used = fitted_ids(cases, calibration)
    return Report(
        bands=tuple(bands_of(compared)),
        cases=tuple(compared),
        fitted_left_out=sum(case.id in used for case in cases),
        contended=float(np.median(shares)) < CLEAN if shares else None,
        left_out=dict(left_out),
    )
