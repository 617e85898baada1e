"""Fit ceilings to measured times: held-out split, robust fit in log space, choice of form.

The split is decided by hashes of the shapes (``measurement.fold``), so it never depends on the data or
on chance and is written into the calibration. Forms compete by leave-one-shape-out error inside the
fitted part; the held-out part is looked at once, to report the error.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from rooflinekit.calibration import Calibration, Fit
from rooflinekit.ceiling import beats_roof
from rooflinekit.errors import CalibrationError
from rooflinekit.forms import errors, fit_p_norm, fit_staircase, predicted_s, stacked
from rooflinekit.hardware import Hardware, machine
from rooflinekit.measurement import CLEAN, Measurement, Run, fold, without_drift
from rooflinekit.work import ANY, Ceiling, Machine, work_time_s

FITTED_KINDS = ("linear", "attention", "experts", "elementwise")
HELD_OUT_SHAPES = 0.34
"""Share of shapes that are held out whole (rounded down, at least one where there are two)."""
HELD_OUT_ROWS = 0.25
"""Share of the row counts of a fitted shape that are held out; one row and the most rows stay in."""
HOPELESS = 0.5
"""A fit whose median held-out error exceeds this is not used."""
FEWEST = 4
"""A kind of work with fewer fitted cases than this is not fitted."""
IMPOSSIBLE = 1.02
"""A time that beats bandwidth and peak by more than this is left out, and counted."""
PROBED = "bandwidth and peak are what probes reached or what is rated: lower bounds, which a kernel may pass"
"""Why a fit of our own may pass the profile's rates."""
PARSIMONY = 0.85
"""A tile or a staircase must reach this fraction of the plain form's error to be preferred."""


def split(cases: Sequence[Measurement]) -> tuple[list[Measurement], list[Measurement]]:
    """Divide cases of one kind into fitted and held out, by hashes of shape and rows.

    The elementwise part of a layer has one shape and a handful of widths: all are fitted, and whole steps
    judge it.
    """
    if cases and cases[0].kind == "elementwise":
        return list(cases), []
    shapes = sorted({case.shape_key for case in cases}, key=fold)
    count = max(1, int(len(shapes) * HELD_OUT_SHAPES)) if len(shapes) > 1 else 0
    away = set(shapes[len(shapes) - count :])
    widths = {key: [c.rows for c in cases if c.shape_key == key] for key in shapes}

    def held(case: Measurement) -> bool:
        if case.shape_key in away:
            return True
        ends = (min(widths[case.shape_key]), max(widths[case.shape_key]))
        return case.rows not in ends and fold(f"{case.shape_key} at {case.rows:g}") < HELD_OUT_ROWS

    return [c for c in cases if not held(c)], [c for c in cases if held(c)]


def _candidates(kind: str, cases: Sequence[Measurement]) -> dict[str, float | None]:
    """Forms to try: tile of the p-norm, or None for a staircase."""
    forms: dict[str, float | None] = {"p-norm": 1.0}
    if kind == "linear":
        forms |= {"p-norm, tile 8": 8.0, "p-norm, tile 16": 16.0}
        if len({case.rows for case in cases}) >= 6:
            forms["staircase"] = None
    return forms


def _fit_form(
    cases: Sequence[Measurement], base: Machine, tile: float | None
) -> tuple[Ceiling, dict[str, float]]:
    return fit_staircase(cases, base) if tile is None else fit_p_norm(cases, base, tile)


def _cross_error(cases: Sequence[Measurement], base: Machine, tile: float | None) -> float:
    """Median absolute log error: each shape by a fit to the others, each other row where there is but one shape."""
    ordered = sorted(cases, key=lambda case: (case.shape_key, case.rows))
    several = len({case.shape_key for case in cases}) > 1
    group = {case.id: case.shape_key if several else str(n % 2) for n, case in enumerate(ordered)}
    collected: list[float] = []
    for key in sorted(set(group.values())):
        inside = [case for case in ordered if group[case.id] != key]
        outside = [case for case in ordered if group[case.id] == key]
        ceiling, _ = _fit_form(inside or outside, base, tile)
        _, measured = stacked(outside)
        collected += np.abs(np.log(predicted_s(outside, base, ceiling) / measured)).tolist()
    return float(np.median(collected))


def fit_kind(cases: Sequence[Measurement], base: Machine) -> tuple[Fit, list[Measurement]]:
    """Fit one kind of work in one format: split, choose the form, fit, report the held-out error."""
    inside, outside = split(cases)
    kind, dtype = cases[0].kind, cases[0].dtype
    moving = any(case.bandwidth_factor != 1.0 for case in inside)
    follows = moving and _best(inside, base)[1] < _best(without_drift(inside), base)[1]
    if not follows:
        cases, inside, outside = (without_drift(some) for some in (cases, inside, outside))
    chosen = _best(inside, base)[0]
    ceiling, standard = _fit_form(inside, base, _candidates(kind, inside)[chosen])
    fit = Fit(
        kind=kind,
        dtype=dtype,
        ceiling=ceiling,
        form=chosen,
        n=len(inside),
        standard_errors=standard,
        follows_bandwidth=follows,
        reason=PROBED if beats_roof(ceiling) else "",
    )
    if outside:
        _, measured = stacked(outside)
        fit = replace(fit, held_out=errors(predicted_s(outside, base, ceiling), measured))
        pairs = np.array(ratio_pairs(cases, outside, base, ceiling))
        if pairs.size:
            fit = replace(fit, held_out_ratio=errors(pairs[:, 0], pairs[:, 1]))
    return fit, inside


def _best(cases: Sequence[Measurement], base: Machine) -> tuple[str, float]:
    """Form with the least leave-one-shape-out error, and that error."""
    scores = {
        form: _cross_error(cases, base, tile) for form, tile in _candidates(cases[0].kind, cases).items()
    }
    # The plain form stands unless another is clearly better: tiles and tables must earn their place.
    other = min(scores, key=scores.__getitem__)
    chosen = other if scores[other] < PARSIMONY * scores["p-norm"] else "p-norm"
    return chosen, scores[chosen]


def ratio_pairs(
    cases: Sequence[Measurement], chosen: Sequence[Measurement], base: Machine, ceiling: Ceiling
) -> list[tuple[float, float]]:
    """Predicted and measured R = T(rows) / T(1) of the chosen cases whose shape has a one-row case."""
    single = {case.shape_key: case for case in cases if case.is_single}
    pairs = []
    for case in chosen:
        one = single.get(case.shape_key)
        if one is None or one is case:
            continue
        both = predicted_s([case, one], base, ceiling)
        measured = case.ratio[0] if case.ratio else case.median_s / one.median_s
        pairs.append((float(both[0] / both[1]), float(measured)))
    return pairs


def usable(cases: Sequence[Measurement], roof: Machine) -> tuple[list[Measurement], Counter[str]]:
    """Leave out disturbed cases, and times that no machine of this bandwidth and peak can reach; count both."""
    kept, reasons = [], Counter[str]()
    disturbed = {case.id for case in cases if case.clean_share < CLEAN}
    for case in cases:
        if case.id in disturbed:
            reasons["disturbed"] += 1
        elif float(work_time_s(case.work, roof)) > IMPOSSIBLE * case.median_s:
            reasons["faster than the roof"] += 1
        else:
            kept.append(case)
    return kept, reasons


def fastest_roof(base: Machine, cases: Sequence[Measurement]) -> Machine:
    """The plain roofline at the highest bandwidth and rate that any single sample of the run reached."""
    bandwidth = float(np.max(base.bandwidth_bytes_per_s))
    peaks = {dtype: float(np.max(peak)) for dtype, peak in base.peak_flop_per_s.items()}
    for case in cases:
        if case.kind == "read":
            bandwidth = max(bandwidth, case.bytes / min(case.samples_s))
        if case.kind == "compute":
            peaks[case.dtype] = max(peaks.get(case.dtype, 0.0), case.flops / min(case.samples_s))
    return replace(base, bandwidth_bytes_per_s=bandwidth, peak_flop_per_s=peaks, ceilings={})


def launch_fit(cases: Sequence[Measurement], dtype: str) -> Fit | None:
    """Fixed cost of a small kernel, for works that are nearly only that (norms, rotary, activations)."""
    launches = [case for case in cases if case.kind == "launch"]
    if not launches:
        return None
    t0 = float(np.median([case.median_s / max(case.kernels, 1.0) for case in launches]))
    return Fit(
        kind="elementwise",
        dtype=ANY,
        ceiling=Ceiling(t0_s=t0),
        form=f"launch probe, {dtype}",
        n=len(launches),
    )


class _Found(NamedTuple):
    """What fitting collects, kind by kind."""

    fits: list[Fit]
    used: list[str]
    left_out: Counter[str]
    warnings: list[str]


def _fit_one_kind(mine: list[Measurement], base: Machine, roof: Machine, found: _Found) -> None:
    """Fit the cases of one kind and format, or say why not."""
    kind = mine[0].kind
    kept, reasons = usable(mine, roof)
    if kind == "linear" and len(split(kept)[0]) < FEWEST:
        # Nothing works without linears: then disturbed ones are better than none, and the file says so.
        kept, reasons = usable([replace(c, clean=()) for c in mine], roof)
        found.warnings.append("linear: most cases were disturbed by other programs, and fitted all the same")
    found.left_out.update(reasons)
    if len(split(kept)[0]) < FEWEST:
        found.left_out["too few of a kind"] += len(kept)
        found.warnings.append(
            f"{kind}: not fitted, only {len(kept)} of {len(mine)} cases are usable; measure again"
        )
        return
    fit, inside = fit_kind(kept, base)
    if fit.held_out is not None and fit.held_out.median_abs_error > HOPELESS:
        error = fit.held_out.median_abs_error
        found.warnings.append(
            f"{kind}: not used, the fit misses held-out cases by {error:.0%}; measure again"
        )
        return
    found.fits.append(fit)
    found.used.extend(case.id for case in inside)


def calibrate_cases(
    runs: Sequence[Run], cases: Sequence[Measurement], hardware: Hardware, name: str, *, own_profile: bool
) -> Calibration:
    """Fit every kind of work that was measured and lay the result over a hardware profile.

    Parameters
    ----------
    runs, cases
        Content of measurement files; all of one device.
    hardware
        Base profile.
    name
        Name of the calibration.
    own_profile
        Whether the profile was made from the same measurements and goes into the file.

    Raises
    ------
    CalibrationError
        The runs are of different devices, or too little was measured.
    """
    names = {str(run.device.get("name")) for run in runs}
    if len(names) > 1:
        raise CalibrationError(
            f"the files are of different devices ({', '.join(sorted(names))}); fit one at a time"
        )
    base = machine(hardware)
    roof = fastest_roof(base, cases)
    found = _Found([], [], Counter(), [])
    for kind, dtype in sorted({(c.kind, c.dtype) for c in cases if c.kind in FITTED_KINDS}):
        _fit_one_kind([c for c in cases if (c.kind, c.dtype) == (kind, dtype)], base, roof, found)
    fits = found.fits
    if not any(fit.kind == "linear" for fit in fits):
        raise CalibrationError(
            f"fewer than {FEWEST} usable linear layers were measured, so nothing can be fitted; measure again "
            "with a larger --budget"
        )
    dtype = next(fit.dtype for fit in fits if fit.kind == "linear")
    # Without a measured elementwise part, a small kernel's fixed cost is the next best thing.
    launch = None if any(fit.kind == "elementwise" for fit in fits) else launch_fit(cases, dtype)
    judged = [case.clean_share for case in cases if case.clean and case.kind in FITTED_KINDS]
    return Calibration(
        name=name,
        base=hardware.name,
        stack="pytorch",
        fits=(*fits, launch) if launch else tuple(fits),
        run_ids=tuple(run.id for run in runs),
        used=tuple(found.used),
        left_out=dict(found.left_out),
        contended=bool(judged) and float(np.median(judged)) < CLEAN,
        profile=hardware if own_profile else None,
        dtype=dtype,
        device=next(iter(names), ""),
        warnings=tuple(found.warnings),
    )
