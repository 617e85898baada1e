"""Errors by band, and held-out cases predicted beside measured, as text."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from rooflinekit.calibration import Calibration
from rooflinekit.report.sources import sources_text
from rooflinekit.report.style import BAD, DIM, GOOD, percent, seconds, table
from rooflinekit.validation import Band, Compared, Report, SourceBand


def report_text(report: Report, *, worst: int = 3) -> RenderableType:
    """Errors by suite and band, the worst cases, and whether the machine was ours."""
    if any(isinstance(band, SourceBand) for band in report.bands):
        return sources_text(report)
    guessed = any(band.plain is not None for band in report.bands)
    rows = table()
    rows.add_column("suite")
    rows.add_column("rows")
    for name in ("n", "median error", "90 %", "bias", *(["plain guess"] if guessed else []), "tolerance"):
        rows.add_column(name, justify="right")
    rows.add_column("")
    shown = ""
    for band in report.bands:
        rows.add_row(
            band.suite if band.suite != shown else "",
            band.band,
            str(band.n),
            percent(band.median_abs_error),
            percent(band.p90_abs_error),
            f"{100 * band.bias:+.1f} %",
            *([percent(band.plain) if band.plain is not None else ""] if guessed else []),
            _tolerance(band),
            "" if band.ok is None else (Text("ok", GOOD) if band.ok else Text("MISSED", BAD)),
            style=DIM if band.ok is None else None,
        )
        shown = band.suite
    lines = []
    if report.fitted_left_out or report.left_out:
        counted = f"{report.fitted_left_out} cases were fitted and are not compared"
        others = "".join(f"; {count} {reason}" for reason, count in report.left_out.items())
        lines.append(Text(f"{counted}{others}; errors are |predicted / measured - 1|", DIM))
    bad = sorted((c for c in report.cases if abs(c.error) > 0.15), key=lambda c: -abs(c.error))[:worst]
    lines += [Text(f"worst: {c.suite}, {c.case}: {c.error:+.0%}") for c in bad]
    if guessed:
        lines.append(
            Text("plain guess: the datasheet roofline; for R(W), R = 1; for skewed routing, uniform", DIM)
        )
    if report.contended is not None:
        lines.append(contended_line(contended=report.contended))
    return Group(rows, *lines)


def _tolerance(band: Band) -> str:
    """Limits of the median and of the 90th percentile, where they are set."""
    limits = (band.tolerance, band.tolerance_p90)
    return " / ".join(percent(one) for one in limits if one is not None)


def contended_line(*, contended: bool | None) -> Text:
    """Whether other programs disturbed the measurement."""
    if contended is None:
        return Text("this device does not tell whether other programs disturbed the samples", DIM)
    if contended:
        return Text("contended run: other programs disturbed most samples; trust ratios more than times", BAD)
    return Text("clean run: most samples were undisturbed", DIM)


def spread(cases: Sequence[Compared], count: int) -> Sequence[Compared]:
    """Pick at most ``count`` cases, evenly over the list, first and last included."""
    if len(cases) <= count:
        return cases
    return [cases[i * (len(cases) - 1) // (count - 1)] for i in range(count)]


def compared_text(cases: Sequence[Compared], title: str, limit: int = 10) -> RenderableType:
    """Predicted beside measured for a spread of cases."""
    rows = table(title)
    rows.add_column("case")
    for name in ("predicted", "measured", "error"):
        rows.add_column(name, justify="right")
    for one in spread(cases, limit):
        ratio = one.suite.endswith("ratio")
        show = (lambda v: f"{v:.2f}") if ratio else seconds
        rows.add_row(one.case, show(one.predicted), show(one.measured), f"{100 * one.error:+.0f} %")
    return rows


def calibration_text(calibration: Calibration) -> RenderableType:
    """Fitted numbers, with the error on held-out cases."""
    rows = table()
    for name in ("work", "format", "form"):
        rows.add_column(name)
    for name in ("cases", "per kernel", "of bandwidth", "of peak", "p", "held-out error", "of ratios"):
        rows.add_column(name, justify="right")
    for fit in calibration.fits:
        ceiling = fit.ceiling
        launch = fit.form.startswith("launch")
        plain = ceiling.staircase is None and fit.kind != "elementwise"
        rows.add_row(
            fit.kind,
            fit.dtype,
            fit.form,
            str(fit.n),
            seconds(float(ceiling.t0_s)),
            "" if launch else percent(float(ceiling.memory_efficiency)),
            percent(float(ceiling.compute_efficiency)) if plain else "",
            f"{ceiling.p:.1f}" if plain else "",
            percent(fit.held_out.median_abs_error) if fit.held_out else "",
            percent(fit.held_out_ratio.median_abs_error) if fit.held_out_ratio else "",
        )
    left = ", ".join(f"{count} {reason}" for reason, count in calibration.left_out.items())
    warnings = [Text(warning, BAD) for warning in calibration.warnings]
    return Group(rows, *warnings, Text(f"left out: {left}" if left else "no case was left out", DIM))
