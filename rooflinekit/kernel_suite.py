"""Validation suite ``kernels``: shipped calibrations against measured kernels that none of them was fitted on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rooflinekit.calibration import Calibration, Fit, calibrated
from rooflinekit.forms import Floats, errors, stacked
from rooflinekit.hardware import Hardware, machine
from rooflinekit.held_out import falls_in_fit
from rooflinekit.kernel_calibration import UNTRUSTED, ratios
from rooflinekit.kernel_limits import BETTER, Limit, limit, stated_limit
from rooflinekit.kernel_scope import BANDS, by_kind, in_scope
from rooflinekit.measurement import Measurement, fold
from rooflinekit.validation import Band, Report
from rooflinekit.work import Machine, work_time_s

Chosen = NDArray[np.bool_]
LARGE_BYTES = 64e6
"""Weights from which a linear layer counts as large (B)."""


FEWEST_JUDGED = 12
"""Fewer rows of a slice than this are shown and not judged."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A shipped calibration, its device, and measured cases of its stack."""

    calibration: Calibration
    hardware: Hardware
    cases: Sequence[Measurement]


def kernel_report(subjects: Iterable[Subject], *, stated: bool = False) -> Report:
    """Errors of held-out kernels by device, stack, kind, format and band of rows.

    Parameters
    ----------
    subjects
        What to compare.
    stated
        Judge by the error that the calibration itself states (for a small slice), not by the limits that the
        project set itself.
    """
    bands: list[Band] = []
    left_out: Counter[str] = Counter()
    fitted = 0
    for subject in subjects:
        base = machine(subject.hardware)
        cache_bytes = subject.hardware.l2.value if subject.hardware.l2 else 0.0
        for (kind, dtype), some in by_kind(subject.cases).items():
            fit = _own_fit(subject.calibration, kind, dtype)
            if fit is None:
                left_out["no calibration of this kind"] += len(some)
                continue
            scoped = in_scope(some, base, subject.calibration.stack, cache_bytes)
            left_out.update(scoped.left_out)
            share = subject.calibration.fitted_share or 0.0
            held = [case for case in scoped.cases if not falls_in_fit(case, share)]
            fitted += len(scoped.cases) - len(held)
            beaten = scoped.left_out.get("faster than the roof", 0)
            if beaten > UNTRUSTED * (beaten + len(scoped.cases)):
                bands.append(_beaten(subject, kind, dtype, beaten, len(scoped.cases)))
            if held:
                bands += Judge(subject, fit, held, stated=stated).bands()
    return Report(
        bands=tuple(bands), cases=(), fitted_left_out=fitted, contended=None, left_out=dict(left_out)
    )


def _beaten(subject: Subject, kind: str, dtype: str, beaten: int, kept: int) -> Band:
    """A failed row of the report: more rows than a few beat the roof, so the bytes are counted wrong."""
    share = beaten / (beaten + kept)
    return Band(
        suite=f"{subject.calibration.base} {subject.calibration.stack} {kind} {dtype} faster than the roof",
        band="all",
        n=beaten,
        median_abs_error=share,
        p90_abs_error=share,
        bias=share,
        tolerance=UNTRUSTED,
        ok=False,
    )


def _own_fit(calibration: Calibration, kind: str, dtype: str) -> Fit | None:
    return next((fit for fit in calibration.fits if (fit.kind, fit.dtype) == (kind, dtype)), None)


class Judge:
    """Compares the held-out cases of one fit, part by part."""

    def __init__(self, subject: Subject, fit: Fit, cases: Sequence[Measurement], *, stated: bool) -> None:
        self.fit, self.cases, self.stated = fit, cases, stated
        self.calibration = subject.calibration
        base = machine(subject.hardware)
        self.machine = calibrated(base, subject.calibration)
        self.measured = np.array([case.median_s for case in cases])
        self.predicted = predicted(cases, self.machine)
        self.plain = predicted(cases, base)
        self.width = np.array([case.width for case in cases])
        self.name = f"{subject.calibration.base} {subject.calibration.stack} {fit.kind} {fit.dtype}"

    def bands(self) -> list[Band]:
        """All parts that the kind of work has."""
        if self.fit.kind == "linear":
            return self._linears()
        if self.fit.kind == "experts":
            return self._experts()
        whole = np.ones(len(self.cases), dtype=bool)
        return self._part(self.fit.kind, self.name, [("all", whole, True)])

    def _linears(self) -> list[Band]:
        large = np.array([case.weight_bytes >= LARGE_BYTES for case in self.cases])
        near = self.width <= 64
        middle = (self.width > 64) & (self.width <= 256)
        found = []
        for part, label, inside in (("large", ">= 64 MB", large), ("small", "1-64 MB", ~large)):
            judged = [("1-64", inside & near, True), ("65-256", inside & middle, part == "large")]
            found += self._part(part, f"{self.name} {label}", [*judged, *self._by_rows(inside)])
        return found + self._ratio(large)

    def _by_rows(self, inside: Chosen) -> list[tuple[str, Chosen, bool]]:
        return [
            (f"{low}-{high}", inside & (self.width >= low) & (self.width <= high), False)
            for low, high in BANDS
        ]

    def _ratio(self, inside: Chosen) -> list[Band]:
        first, second = ratios(self.cases, self.predicted)
        found = []
        for low, high in ((2, 16), (17, 64), (65, 256)):
            rows = inside & (self.width >= low) & (self.width <= high) & np.isfinite(second)
            if rows.any():
                ones = np.ones(int(rows.sum()))
                band = f"{low}-{high}"
                found.append(
                    self._band(
                        "ratio",
                        f"{self.name} R(W) >= 64 MB",
                        band,
                        first[rows],
                        second[rows],
                        ones,
                        judged=low > 2,
                    )
                )
        return found

    def _experts(self) -> list[Band]:
        few = self.width <= 64
        found = self._part("experts", self.name, [("1-64", few, True), *self._by_rows(few | ~few)[2:]])
        skewed = few & np.array([case.shape["routing"] != "balanced" for case in self.cases])
        if skewed.any():
            cases = [case for case, one in zip(self.cases, skewed, strict=True) if one]
            uniform = predicted([uniformly(case) for case in cases], self.machine)
            args = (self.predicted[skewed], self.measured[skewed], uniform)
            found.append(self._band("skewed", f"{self.name} skewed routing", "1-64", *args, judged=True))
        first, second = ratios(self.cases, self.predicted)
        eight = (self.width == 8) & np.isfinite(second)
        if eight.any():
            args = (first[eight], second[eight], np.ones(int(eight.sum())))
            found.append(self._band("eight", f"{self.name} T(8)/T(1)", "8", *args, judged=True))
        return found

    def _part(self, part: str, name: str, chosen: Sequence[tuple[str, Chosen, bool]]) -> list[Band]:
        return [
            self._band(
                part, name, band, self.predicted[rows], self.measured[rows], self.plain[rows], judged=judged
            )
            for band, rows, judged in chosen
            if rows.any()
        ]

    def _band(
        self,
        part: str,
        name: str,
        band: str,
        predicted: Floats,
        measured: Floats,
        plain: Floats,
        *,
        judged: bool,
    ) -> Band:
        found, guess = errors(predicted, measured), errors(plain, measured).median_abs_error
        few = self.stated and len(measured) < FEWEST_JUDGED
        bound = self._limit(part, band) if judged and not few else Limit()
        ok = None
        if bound.median is not None or (part == "skewed" and judged and not self.stated):
            median_ok = bound.median is None or found.median_abs_error <= bound.median
            p90_ok = bound.p90 is None or found.p90_abs_error <= bound.p90
            beats = 0.0 if self.stated else {"ratio": 1.0, "skewed": BETTER}.get(part, 0.0)
            ok = median_ok and p90_ok and guess >= beats * found.median_abs_error
        return Band(
            suite=name,
            band=band,
            n=found.n,
            median_abs_error=found.median_abs_error,
            p90_abs_error=found.p90_abs_error,
            bias=found.bias,
            tolerance=bound.median,
            ok=ok,
            tolerance_p90=bound.p90,
            plain=guess,
        )

    def _limit(self, part: str, band: str) -> Limit:
        return (
            stated_limit(part, band, self.fit)
            if self.stated
            else limit(part, band, self.fit, self.calibration)
        )


def predicted(cases: Sequence[Measurement], on: Machine) -> Floats:
    """Times of cases of one kind on a machine (s)."""
    work, _ = stacked(cases)
    return np.asarray(work_time_s(work, on))


def uniformly(case: Measurement) -> Measurement:
    """The same layer of experts as if the routing were uniform: ``U = E (1 - (1 - k/E)^t)``."""
    shape = case.shape
    read = shape["experts"] * (1.0 - (1.0 - shape["top_k"] / shape["experts"]) ** shape["rows"])
    return replace(
        case, shape={**shape, "touched": read}, weight_bytes=case.weight_bytes * read / shape["touched"]
    )


SLICE_ROWS = (1, 2, 8, 16, 32, 64, 65, 128, 129, 256, 257, 512)
"""Rows of the linear layers of a slice."""
SLICE_SHAPES, SLICE_CASES = 5, 32
"""Shapes of linears of each size, and cases of another kind, in a slice."""


def chosen_cases(subject: Subject) -> list[Measurement]:
    """Few held-out cases of every fit of a calibration, chosen by the hashes of their shapes."""
    base = machine(subject.hardware)
    cache_bytes = subject.hardware.l2.value if subject.hardware.l2 else 0.0
    share = subject.calibration.fitted_share or 0.0
    found: list[Measurement] = []
    for (kind, dtype), some in by_kind(subject.cases).items():
        if _own_fit(subject.calibration, kind, dtype) is not None:
            scoped = in_scope(some, base, subject.calibration.stack, cache_bytes)
            held = [case for case in scoped.cases if not falls_in_fit(case, share)]
            found += _few(held, kind)
    return found


def _few(held: Sequence[Measurement], kind: str) -> list[Measurement]:
    by_hash = sorted({case.shape_key for case in held}, key=lambda key: fold(f"slice {key}"))
    if kind == "linear":
        size = {case.shape_key: case.weight_bytes >= LARGE_BYTES for case in held}
        keys = [
            key for large in (True, False) for key in [k for k in by_hash if size[k] is large][:SLICE_SHAPES]
        ]
        return [case for case in held if case.shape_key in keys and case.rows in SLICE_ROWS]
    if kind == "experts":
        return [case for case in held if case.width <= 64 and case.shape_key in by_hash[:SLICE_SHAPES]]
    return sorted(held, key=lambda case: fold(f"slice {case.shape_key} {case.width}"))[:SLICE_CASES]
