"""Validation suite ``foreign``: linear layers that others timed with other software, predicted unfitted.

The kernel tables form a grid of shapes, so held-out shapes there are interpolation; these are not.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from rooflinekit.calibration import calibrated
from rooflinekit.forms import errors
from rooflinekit.hardware import machine
from rooflinekit.kernel_suite import predicted
from rooflinekit.measurement import Measurement
from rooflinekit.profiles.calibration_file import shipped_calibration
from rooflinekit.profiles.library import find_hardware
from rooflinekit.validation import Band, Report

FILE = Path(__file__).resolve().parent / "data" / "vidur_linears.csv"
DEVICES = {"a100": "a100-sxm4-80gb", "h100": "h100-sxm5-80gb"}
TOLERANCE, BETTER = 0.12, 2.0
"""Largest median error up to 64 rows, and the factor by which the datasheet must be beaten."""
BANDS = ((1, 64), (65, 256), (257, 512))


def linears(path: Path = FILE) -> dict[tuple[str, str], list[Measurement]]:
    """Rows by device and model; see the head of the file for their source."""
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    found: dict[tuple[str, str], list[Measurement]] = {}
    for number, row in enumerate(csv.DictReader(lines)):
        rows, out, inner = int(row["rows"]), int(row["out"]), int(row["inner"])
        case = Measurement(
            id=f"vidur/{row['device']} {row['model']} tp {row['tp']} {row['op']} {number}",
            kind="linear",
            dtype="bf16",
            shape={"rows": rows, "out": out, "inner": inner},
            samples_s=(float(row["median_us"]) * 1e-6,),
            weight_bytes=2.0 * out * inner,
            activation_bytes=2.0 * rows * (out + inner),
            flops=2.0 * rows * out * inner,
        )
        found.setdefault((row["device"], row["model"]), []).append(case)
    return found


def foreign() -> Report:
    """Errors of the shipped default calibrations by device, model and rows, beside the datasheet's."""
    bands = [
        band for (device, model), cases in linears().items() for band in _bands(DEVICES[device], model, cases)
    ]
    return Report(bands=tuple(bands), cases=(), fitted_left_out=0, contended=None)


def _bands(device: str, model: str, cases: Iterable[Measurement]) -> list[Band]:
    hardware = find_hardware(device)
    base = machine(hardware)
    calibration = shipped_calibration(device)
    ready = calibrated(base, calibration) if calibration is not None else base
    found = []
    for low, high in BANDS:
        some = [case for case in cases if low <= case.rows <= high]
        measured = np.array([case.median_s for case in some])
        error = errors(predicted(some, ready), measured)
        plain = errors(predicted(some, base), measured).median_abs_error
        judged = high <= BANDS[0][1]
        good = error.median_abs_error <= TOLERANCE and plain >= BETTER * error.median_abs_error
        found.append(
            Band(
                suite=f"{device} {model} linear",
                band=f"{low}-{high}",
                n=error.n,
                median_abs_error=error.median_abs_error,
                p90_abs_error=error.p90_abs_error,
                bias=error.bias,
                tolerance=TOLERANCE if judged else None,
                ok=good if judged else None,
                plain=plain,
            )
        )
    return found
