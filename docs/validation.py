"""Write ``docs/validation.md`` and its figures: ``python docs/validation.py`` (needs the extras data and plot)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from rooflinekit.calibration import Calibration, calibrated
from rooflinekit.foreign_suite import foreign
from rooflinekit.hardware import machine
from rooflinekit.held_out import falls_in_fit
from rooflinekit.kernel_calibration import ratios
from rooflinekit.kernel_scope import BANDS, by_kind, in_scope
from rooflinekit.kernel_suite import LARGE_BYTES, Subject, kernel_report, predicted, uniformly
from rooflinekit.measurement import Measurement
from rooflinekit.plot.style import save
from rooflinekit.plot.validation import Curve, curve_panels, efficiency_map, error_bars
from rooflinekit.profiles.calibration_file import shipped_calibration
from rooflinekit.published import subjects_of
from rooflinekit.readers.kernel_tables import SHIPPED, STACKS, tables_of
from rooflinekit.validation import Band, Report

HERE = Path(__file__).resolve().parent
DENSE_STACK = "trtllm"
"""Stack of the pictures of linears: its tables have the least noise."""
ROWS = (1, 2, 4, 8, 16, 32, 64, 96, 128, 160, 192, 224, 256)
MIXTRAL = (4096, 14336)
SIZES = ((16e6, 32e6), (32e6, 64e6), (64e6, 128e6), (128e6, 512e6), (512e6, 1e12))
MAP_ROWS = (1, 4, 16, 32, 64, 128, 256, 512)


def subjects() -> Iterator[Subject]:
    """Every shipped calibration beside its tables, one stack at a time."""
    for system in SHIPPED:
        for stack in STACKS:
            yield from subjects_of(tables_of(system, stack))


def held_out(subject: Subject, kind: str, dtype: str) -> list[Measurement]:
    """Cold rows of a kind and format that were not fitted."""
    some = by_kind(subject.cases).get((kind, dtype), [])
    if not some:
        return []
    l2 = subject.hardware.l2
    scoped = in_scope(some, machine(subject.hardware), subject.calibration.stack, l2.value if l2 else 0.0)
    share = subject.calibration.fitted_share or 0.0
    return [case for case in scoped.cases if not falls_in_fit(case, share)]


def dense_ratio(subject: Subject) -> Curve:
    """Median of T(W)/T(1) over the held-out shapes of large linears."""
    cases = [case for case in held_out(subject, "linear", "bf16") if case.weight_bytes >= LARGE_BYTES]
    model, measured = ratios(
        cases, predicted(cases, calibrated(machine(subject.hardware), subject.calibration))
    )
    width = np.array([case.width for case in cases])
    rows = [row for row in ROWS if np.isfinite(measured[width == row]).any()]
    of = {row: measured[(width == row) & np.isfinite(measured)] for row in rows}
    return Curve(
        rows=rows,
        measured=[float(np.median(of[row])) for row in rows],
        predicted=[float(np.nanmedian(model[width == row])) for row in rows],
        low=[float(np.quantile(of[row], 0.25)) for row in rows],
        high=[float(np.quantile(of[row], 0.75)) for row in rows],
    )


def expert_times(subject: Subject) -> Curve:
    """One layer of Mixtral's experts (TP 1, skewed routing), in ms by tokens."""
    cases = [
        case
        for case in held_out(subject, "experts", "bf16")
        if (case.shape["hidden"], case.shape["intermediate"]) == MIXTRAL
        and case.shape["tp"] == 1
        and case.shape["routing"] == "power_law_1.2"
        and case.width <= 256
    ]
    cases.sort(key=lambda case: case.width)
    on = calibrated(machine(subject.hardware), subject.calibration)
    return Curve(
        rows=[case.width for case in cases],
        measured=[1e3 * case.median_s for case in cases],
        predicted=list(1e3 * predicted(cases, on)),
        plain=list(1e3 * predicted([uniformly(case) for case in cases], on)),
    )


def band_errors(bands: list[Band]) -> list[tuple[str, float, float]]:
    """Errors of large linears by band of rows."""
    wanted = {f"{low}-{high}" for low, high in BANDS}
    found = [b for b in bands if "linear bf16 >= 64 MB" in b.suite and b.band in wanted]
    return [(b.band, b.median_abs_error, b.plain or 0.0) for b in found]


def reached(subject: Subject) -> list[list[float]]:
    """Median share of the datasheet roofline, by size of the weights and rows."""
    cases = [
        case
        for case in subject.cases
        if (case.kind, case.dtype) == ("linear", "bf16") and case.rows in MAP_ROWS
    ]
    l2 = subject.hardware.l2
    base = machine(subject.hardware)
    kept = list(in_scope(cases, base, subject.calibration.stack, l2.value if l2 else 0.0).cases)
    share = predicted(kept, base) / np.array([case.median_s for case in kept])
    rows = np.array([case.rows for case in kept])
    size = np.array([case.weight_bytes for case in kept])
    return [
        [
            float(np.median(share[inside])) if inside.any() else float("nan")
            for inside in ((rows == row) & (size >= low) & (size < high) for row in MAP_ROWS)
        ]
        for low, high in SIZES
    ]


def percent(value: float | None) -> str:
    """Per cent with one digit."""
    return "" if value is None else f"{100 * value:.1f}"


def row(band: Band, *, whole: bool = False) -> str:
    """A row of the table of errors."""
    limits = " / ".join(percent(one) for one in (band.tolerance, band.tolerance_p90) if one is not None)
    verdict = {True: "yes", False: "**no**", None: ""}[band.ok]
    cells = (
        band.suite if whole else band.suite.split(" ", 1)[1],
        band.band,
        str(band.n),
        percent(band.median_abs_error),
        percent(band.p90_abs_error),
        percent(band.bias),
        percent(band.plain),
        limits,
        verdict,
    )
    return "| " + " | ".join(cells) + " |"


TABLE = (
    "| stack, kind, format | rows | n | median | 90 % | bias | plain guess | limit | met |\n"
    "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |"
)


def device_section(name: str, bands: list[Band]) -> str:
    """Errors of one device as a folded table; judged rows stand above."""
    judged = [row(band) for band in bands if band.ok is not None]
    others = [row(band) for band in bands if band.ok is None]
    folded = f"<details><summary>all bands</summary>\n\n{TABLE}\n" + "\n".join(others) + "\n\n</details>"
    return f"### {name}\n\n{TABLE}\n" + "\n".join(judged) + f"\n\n{folded}\n"


def calibration_row(calibration: Calibration, *, default: bool) -> str:
    """A row of the table of fits."""
    return "\n".join(
        f"| {calibration.base} | {calibration.stack}{' (default)' if default else ''} | {fit.kind} | {fit.dtype} | "
        f"{fit.form} | {float(fit.ceiling.t0_s) * 1e6:.1f} | {float(fit.ceiling.memory_efficiency):.2f} | "
        f"{float(fit.ceiling.compute_efficiency):.2f} | {fit.n} |"
        for fit in calibration.fits
    )


def page(report: Report, fits: list[str]) -> str:
    """The whole page."""
    devices: dict[str, list[Band]] = {}
    for band in report.bands:
        devices.setdefault(band.suite.split()[0], []).append(band)
    judged = [band for band in report.bands if band.ok is not None]
    met = sum(band.ok is True for band in judged)
    left = "\n".join(f"| {reason} | {count} |" for reason, count in sorted(report.left_out.items()))
    others = "\n".join(row(band, whole=True) for band in foreign().bands)
    sections = "\n".join(device_section(name, bands) for name, bands in devices.items())
    text = (HERE / "validation.md.in").read_text(encoding="utf-8")
    for key, value in {
        "MET": f"{met} of {len(judged)}",
        "FITTED": str(report.fitted_left_out),
        "LEFT": left,
        "TABLE": TABLE,
        "FOREIGN": others,
        "DEVICES": sections,
        "FITS": "\n".join(fits),
    }.items():
        text = text.replace("{{" + key + "}}", value)
    return text


def main() -> None:
    """Go through the tables once, draw, and write the page."""
    bands: list[Band] = []
    left_out: Counter[str] = Counter()
    fitted = 0
    dense, experts, errors, fits = {}, {}, {}, []
    for subject in subjects():
        report = kernel_report([subject])
        bands += report.bands
        left_out.update(report.left_out)
        fitted += report.fitted_left_out
        name, stack = subject.calibration.base, subject.calibration.stack
        fits.append(calibration_row(subject.calibration, default=_is_default(subject.calibration)))
        if stack == DENSE_STACK:
            dense[name] = dense_ratio(subject)
            errors[name] = band_errors(list(report.bands))
            experts[name] = expert_times(subject)
        if (name, stack) == ("h100-sxm5-80gb", "sglang"):
            title = "H100, SGLang, linears in bf16: share of the datasheet roofline, %"
            sizes = [f"{low / 1e6:.0f}-{high / 1e6:.0f} MB" for low, high in SIZES[:-1]] + ["> 512 MB"]
            save(
                efficiency_map(MAP_ROWS, sizes, reached(subject), title=title),
                HERE / "img/validation-map.png",
            )
        print(name, stack, len(report.bands))
    title = "T(W)/T(1) of linears of 64 MB and more, bf16, TensorRT-LLM"
    save(curve_panels(dense, title=title, y_label="T(W) / T(1)"), HERE / "img/validation-ratio.png")
    title = "A layer of Mixtral's experts, skewed routing, bf16, TensorRT-LLM: left out of the fits"
    figure = curve_panels(experts, title=title, y_label="ms", plain_label="uniform routing", x_label="tokens")
    save(figure, HERE / "img/validation-experts.png")
    title = "Linears of 64 MB and more, bf16, TensorRT-LLM: median error by rows"
    save(error_bars(errors, title=title, plain_label="datasheet"), HERE / "img/validation-errors.png")
    whole = Report(
        bands=tuple(bands), cases=(), fitted_left_out=fitted, contended=None, left_out=dict(left_out)
    )
    (HERE / "validation.md").write_text(page(whole, fits), encoding="utf-8")


def _is_default(calibration: Calibration) -> bool:
    best = shipped_calibration(calibration.base)
    return best is not None and best.stack == calibration.stack


if __name__ == "__main__":
    main()
