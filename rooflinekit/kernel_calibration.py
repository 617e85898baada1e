"""Calibrate one engine stack on one device from public kernel tables: scope, split, form, fit, held-out error.

A stack's kernels are never mixed with another's: they differ by tens of per cent at the knee.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from rooflinekit.calibration import BandError, Calibration, Fit, HeldOut
from rooflinekit.ceiling import Ceiling
from rooflinekit.errors import CalibrationError
from rooflinekit.forms import Floats, errors, predicted_s
from rooflinekit.hardware import Hardware, machine
from rooflinekit.held_out import falls_in_fit
from rooflinekit.kernel_forms import choose, fit_form
from rooflinekit.kernel_scope import BANDS, Scoped, by_kind, in_scope
from rooflinekit.measurement import Measurement
from rooflinekit.work import Machine

SHARE = 0.4
"""Share of the shapes that are fitted; the others are never seen."""
UNTRUSTED = 0.1
"""A table of which a larger share of rows beats the roof is not fitted: it does not measure what it says."""
HOPELESS, HOPELESS_P90 = 0.2, 0.6
"""A fit whose held-out error exceeds one of these (median, 90th percentile) is not used."""
FEWEST = 12
"""Fewer rows in the fit than this are no fit."""


def fit_scoped(scoped: Scoped, base: Machine) -> Fit:
    """Choose the form on the fitted shapes, fit it, and report its error on the others."""
    inside = [case for case in scoped.cases if falls_in_fit(case, SHARE)]
    outside = [case for case in scoped.cases if not falls_in_fit(case, SHARE)]
    form, _ = choose(inside, base)
    ceiling, standard = fit_form(form, inside, base)
    fit = Fit(
        kind=scoped.kind,
        dtype=scoped.dtype,
        ceiling=ceiling,
        form=form.name,
        n=len(inside),
        standard_errors=standard,
        follows_bandwidth=False,
        kernel=inside[0].implementation,
    )
    return with_errors(fit, outside, base) if outside else fit


def with_errors(fit: Fit, outside: Sequence[Measurement], base: Machine) -> Fit:
    """The fit with its errors on held-out cases, overall and by rows."""
    measured = np.array([case.median_s for case in outside])
    predicted = predicted_s(outside, base, fit.ceiling)
    widths = np.array([case.width for case in outside])
    first, second = ratios(outside, predicted)
    near = widths <= BANDS[-1][1] if fit.kind in ("linear", "experts") else np.ones(len(widths), dtype=bool)
    held = errors(predicted[near], measured[near])
    ratio = _errors_where(first, second, near & (widths > 1))
    if fit.kind not in ("linear", "experts"):
        return replace(fit, held_out=held)
    bands = []
    for low, high in BANDS:
        inside = (widths >= low) & (widths <= high)
        if inside.any():
            time = errors(predicted[inside], measured[inside])
            of_ratio = _errors_where(first, second, inside & (widths > 1))
            bands.append(BandError(low=low, high=high, time=time, ratio=of_ratio))
    return replace(fit, held_out=held, held_out_ratio=ratio, bands=tuple(bands))


def _errors_where(predicted: Floats, measured: Floats, chosen: NDArray[np.bool_]) -> HeldOut | None:
    inside = chosen & np.isfinite(predicted)
    return errors(predicted[inside], measured[inside]) if inside.any() else None


def ratios(cases: Sequence[Measurement], predicted: Floats) -> tuple[Floats, Floats]:
    """Predicted and measured T(rows) / T(1) of each case; nan where its shape has no one-row case here."""
    single = {case.shape_key: i for i, case in enumerate(cases) if case.is_single}
    index = [single.get(case.shape_key, -1) for case in cases]
    measured = np.array([case.median_s for case in cases])
    known = np.array([i >= 0 for i in index])
    one = np.array([max(i, 0) for i in index])
    first, second = (np.where(known, values / values[one], np.nan) for values in (predicted, measured))
    return first, second


def calibrate_stack(
    cases: Iterable[Measurement],
    hardware: Hardware,
    stack: str,
    *,
    name: str,
    source: str,
    run_ids: Sequence[str],
) -> Calibration:
    """Fit every kind of work of one stack's tables over a hardware profile.

    Raises
    ------
    CalibrationError
        Nothing could be fitted.
    """
    base = machine(hardware)
    cache_bytes = hardware.l2.value if hardware.l2 else 0.0
    fits: list[Fit] = []
    left_out: dict[str, int] = {}
    warnings: list[str] = []
    for (kind, dtype), some in by_kind(cases).items():
        if dtype not in base.peak_flop_per_s and dtype != "*":
            continue
        scoped = in_scope(some, base, stack, cache_bytes)
        left_out |= {f"{kind} {dtype}: {reason}": count for reason, count in scoped.left_out.items()}
        doubt = _doubt(scoped)
        fit = None if doubt else fit_scoped(scoped, base)
        doubt = doubt or _hopeless(fit)
        if doubt or fit is None:
            warnings.append(f"{kind} {dtype}: {doubt}")
        else:
            fits.append(fit)
    if not fits:
        raise CalibrationError(f"no kind of work of {name} could be fitted: {'; '.join(warnings)}")
    return Calibration(
        name=name,
        base=hardware.name,
        stack=stack,
        fits=tuple(_with_compute(fit, fits) for fit in fits),
        run_ids=tuple(run_ids),
        used=(),
        left_out=left_out,
        warnings=tuple(warnings),
        source=source,
        fitted_share=SHARE,
    )


def _doubt(scoped: Scoped) -> str:
    """Why the cases cannot be fitted, or ''."""
    inside = sum(falls_in_fit(case, SHARE) for case in scoped.cases)
    if inside < FEWEST:
        return f"not fitted, only {inside} rows are usable"
    beaten = scoped.left_out.get("faster than the roof", 0)
    if beaten > UNTRUSTED * (beaten + len(scoped.cases)):
        return f"not fitted, {beaten} of {beaten + len(scoped.cases)} rows are faster than the roof"
    return ""


def _hopeless(fit: Fit | None) -> str:
    """Why a fit is not used, or ''."""
    held = fit.held_out if fit is not None else None
    if held is None or (held.median_abs_error <= HOPELESS and held.p90_abs_error <= HOPELESS_P90):
        return ""
    median, tenth = held.median_abs_error, held.p90_abs_error
    return f"not used, the fit misses held-out rows by {median:.0%}, a tenth of them by {tenth:.0%} or more"


def _with_compute(fit: Fit, fits: Sequence[Fit]) -> Fit:
    """Decode attention of one row says nothing about the matrix rate: it takes the prompt's."""
    if fit.kind != "attention":
        return fit
    prompt = next((one for one in fits if one.kind == "prefill" and one.dtype == fit.dtype), None)
    if prompt is None:
        return fit
    ceiling: Ceiling = replace(fit.ceiling, compute_efficiency=prompt.ceiling.compute_efficiency)
    return replace(fit, ceiling=ceiling)
