"""The demo's answers on one screen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from rooflinekit import __version__
from rooflinekit.demo.answering import ALPHA, ELSEWHERE, Answer
from rooflinekit.report.comparison import comparison_text
from rooflinekit.report.recommendation import verdict
from rooflinekit.report.style import BAD, DIM, percent, seconds
from rooflinekit.report.validation import compared_text, contended_line, spread
from rooflinekit.units import render

ROUGH = (
    "measured beside other programs: a rough answer, and its interval is too narrow; "
    "run again when the machine is quiet"
)
MINUTES = {"quick": "about a minute", "normal": "about five minutes", "full": "about twenty minutes"}


def opening(device: Mapping[str, Any], budget: str = "quick") -> Text:
    """Name the device that was found."""
    size = render(float(device.get("capacity_bytes", 0.0)), "B", digits=3)
    if device.get("kind") == "cpu":
        found = f"no GPU found, measuring the CPU: {device.get('name')}, {device.get('units')} cores"
    else:
        found = f"measuring the GPU: {device.get('name')}"
    text = Text(f"rooflinekit {__version__}: {found}, {size} of memory", "bold")
    text.append(f"\n{MINUTES[budget]}; every case is saved as it finishes", DIM)
    return text


def heading(number: int, text: str) -> Text:
    """Number a part."""
    return Text(f"\n{number}  {text}", "bold cyan")


def measured_part(found: Answer) -> list[RenderableType]:
    """What the probes reached."""
    hardware = found.hardware
    peaks = ", ".join(f"{dtype} {render(cited.value, 'FLOP/s', 3)}" for dtype, cited in hardware.peak.items())
    line = f"reads {render(hardware.bandwidth.value, 'B/s', 3)}; computes {peaks}"
    if found.calibration.dtype in hardware.peak:
        ridge = hardware.ridge_flop_per_byte(found.calibration.dtype)
        line += f"; the roof turns at {ridge:.0f} FLOP per byte"
    count = f"measured {len(found.measured.cases)} cases in {found.measured.seconds:.0f} s"
    doubts = [Text(warning, DIM) for warning in found.measured.warnings[:2]]
    return [heading(1, count), Text(line), contended_line(contended=found.report.contended), *doubts]


def calibrated_part(found: Answer) -> list[RenderableType]:
    """Fitted numbers in a line per kind of work."""
    lines: list[RenderableType] = [heading(2, "calibrated: one ceiling per kind of work")]
    for fit in found.calibration.fits:
        if fit.kind == "elementwise":
            continue
        ceiling = fit.ceiling
        reached = f"{percent(float(ceiling.memory_efficiency))} of the bandwidth"
        if ceiling.staircase is None:
            reached += f", {percent(float(ceiling.compute_efficiency))} of the peak, knee p = {ceiling.p:.1f}"
        else:
            reached += f", a staircase of {len(ceiling.staircase.rows)} row counts"
        lines.append(Text(f"{fit.kind} ({fit.dtype}, {fit.n} cases fitted): {reached}"))
    lines += [Text(warning, BAD) for warning in found.calibration.warnings]
    return lines


def validated_part(found: Answer) -> list[RenderableType]:
    """Held-out errors, and predicted beside measured."""
    bands = {band.suite: band for band in found.report.bands if band.band == "all"}
    names = {
        "linear": "linear layers",
        "linear ratio": "their R(W)",
        "attention": "attention",
        "step": "whole steps",
    }
    said = "; ".join(
        f"{names[suite]} {percent(bands[suite].median_abs_error)} (n = {bands[suite].n})"
        for suite in names
        if suite in bands
    )
    shown = [case for case in found.report.cases if case.suite == "linear"]
    steps = [case for case in found.report.cases if case.suite == "step"]
    rows = [*spread(shown, 5), *spread(steps, 3)]
    worst = max(found.report.cases, key=lambda case: abs(case.error))
    return [
        heading(3, "predicted against measured, on cases the fit never saw"),
        compared_text(rows, "", limit=len(rows)),
        Text(f"median error: {said}"),
        Text(f"worst: {worst.suite}, {worst.case}: {worst.error:+.0%} (change of kernel or disturbed)", DIM),
    ]


def local_part(found: Answer) -> list[RenderableType]:
    """The answer for this machine."""
    step, advice = found.decode, found.recommendation
    ratios = {point.k + 1: point.verify_s / point.decode_s for point in advice.curve}
    shown = ", ".join(f"{width} rows {ratios[width]:.2f}" for width in (2, 4, 8, 16) if width in ratios)
    return [
        heading(4, f"{step.model} in {step.dtype} on this machine, context {step.context:g}"),
        Text(f"{seconds(step.step_s)} per token ({1 / step.step_s:.1f} tokens per second); R(W): {shown}"),
        Text(f"with an EAGLE-3 drafter at acceptance rate {ALPHA:g}:"),
        verdict(advice),
        *([Text(ROUGH, BAD)] if found.report.contended else []),
    ]


def elsewhere_part(found: Answer) -> list[RenderableType]:
    """The same question for an H100."""
    model, hardware = ELSEWHERE
    truth = found.comparison[0].calibration
    title = f"{model} on {hardware} ({truth}), every drafter at acceptance rate {ALPHA:g}, K up to 16"
    return [heading(5, title), comparison_text(found.comparison, heading=False)]


def closing(folder: str, written: Iterable[str]) -> list[RenderableType]:
    """What was written, and what to do next."""
    return [
        Text(f"\nwrote {folder}/: {', '.join(written)}", "bold"),
        Text("ask again with your own numbers, for example:", DIM),
        Text(
            f"  rooflinekit recommend --model llama-3.1-8b --hardware {folder}/calibration.yaml "
            "--drafter dflash --alpha 0.7",
            DIM,
        ),
    ]


def screen(found: Answer) -> RenderableType:
    """All parts between opening and closing."""
    parts = (measured_part, calibrated_part, validated_part, local_part, elsewhere_part)
    return Group(*(line for part in parts for line in part(found)))
