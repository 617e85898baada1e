"""Measurements in, calibrations and errors out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rooflinekit.calibration import Calibration, calibrated
from rooflinekit.errors import RooflineError, nearest
from rooflinekit.hardware import Hardware, machine
from rooflinekit.profiles.library import find_hardware
from rooflinekit.readers.models import find_llm
from rooflinekit.resolve import load_device
from rooflinekit.units import render

# `rooflinekit predict` is the command run most: what only other calls need is imported by them.
if TYPE_CHECKING:
    from rooflinekit.measurement import Measurement, Run
    from rooflinekit.validation import Report


def load_measurements(files: Sequence[Path]) -> tuple[list[Run], list[Measurement]]:
    """Read measurement files as one set."""
    from rooflinekit.measurement import cleanest
    from rooflinekit.measurement_file import load

    runs: list[Run] = []
    cases: list[Measurement] = []
    for file in files:
        more_runs, more_cases = load(Path(file))
        runs += more_runs
        cases += more_cases
    return runs, cleanest(cases)


def calibrate(files: Sequence[Path], *, base: str = "auto", name: str | None = None) -> Calibration:
    """Fit ceilings to measurement files.

    Parameters
    ----------
    files
        What ``rooflinekit bench`` wrote.
    base
        Profile to lie over; ``auto`` makes a complete profile ``local`` of the machine that was measured.
    name
        Name of the calibration; by default the base and the date.
    """
    from rooflinekit.fitting import calibrate_cases
    from rooflinekit.local_profile import local_profile
    from rooflinekit.measurement import with_drift

    runs, cases = load_measurements(files)
    own = base == "auto"
    hardware = local_profile(runs, cases) if own else load_device(base)[0]
    if not own:
        _check_same_device(cases, hardware)
    cases = with_drift(runs, cases, hardware.bandwidth.value if own else None)
    return calibrate_cases(
        runs, cases, hardware, name or f"{hardware.name}-{runs[0].started[:10]}", own_profile=own
    )


def _check_same_device(cases: Sequence[Measurement], hardware: Hardware) -> None:
    """Refuse to lay measurements over a profile whose memory is of another order."""
    rates = [case.bytes / case.median_s for case in cases if case.kind == "read"]
    if rates and not 0.2 <= max(rates) / hardware.bandwidth.value <= 2.0:
        raise RooflineError(
            f"the measurements read {render(max(rates), 'B/s', 3)} at best, {hardware.name} is sold with "
            f"{render(hardware.bandwidth.value, 'B/s', 3)}: not the same device; name its profile or use --base auto"
        )


def validate_files(files: Sequence[Path], calibration: Path) -> Report:
    """Compare a calibration's predictions with the measurements it was not fitted on."""
    from rooflinekit.measurement import with_drift
    from rooflinekit.profiles.calibration_file import load_calibration
    from rooflinekit.validation import validate_cases

    chosen = load_calibration(calibration)
    hardware = chosen.profile or find_hardware(chosen.base)
    runs, cases = load_measurements(files)
    others = {str(run.device.get("name")) for run in runs} - {chosen.device}
    if chosen.device and others:
        raise RooflineError(
            f"{calibration} was fitted on {chosen.device}, the measurements are of {', '.join(sorted(others))}; "
            "give measurements of the same device"
        )
    cases = with_drift(runs, cases, chosen.profile.bandwidth.value if chosen.profile else None)
    return validate_cases(cases, calibrated(machine(hardware), chosen), chosen, find_llm)


def validate_suite(name: str, *, full: bool = False) -> Report:
    """Run a shipped suite against values that others computed or measured; ``full``: all installed kernel rows."""
    from rooflinekit.suites import SUITES

    if name not in SUITES:
        raise RooflineError(f"suite {name!r} is unknown; {nearest(name, SUITES)}")
    if full and name != "kernels":
        raise RooflineError(f"suite {name} is always run in full; leave out --full")
    return SUITES[name](full=True) if full else SUITES[name]()
