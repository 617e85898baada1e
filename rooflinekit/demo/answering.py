"""From a measurement file to answers: calibration, validation, prediction, recommendation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rooflinekit import __version__, app
from rooflinekit.calibration import Calibration, calibrated
from rooflinekit.comparison import Comparison
from rooflinekit.errors import CalibrationError
from rooflinekit.hardware import Hardware, machine
from rooflinekit.prediction import Prediction
from rooflinekit.profiles.calibration_file import write_calibration
from rooflinekit.readers.models import find_llm
from rooflinekit.recommendation import Recommendation
from rooflinekit.validation import Report
from rooflinekit.work import Machine

if TYPE_CHECKING:
    from rooflinekit.microbench.suite import SuiteResult

ALPHA = 0.8
"""Acceptance rate the demo assumes, for every drafter alike."""
CONTEXT = 1024
ELSEWHERE = ("llama-3.1-8b", "h100-sxm")
DRAFTERS = ("small-lm:llama-3.2-1b", "eagle3", "dflash", "dspark")
SMALL = "llama-3.2-1b"
LARGER = ("llama-3.1-70b", "qwen3-32b", "llama-3.1-8b", "llama-3.2-3b")
"""What an accelerator is asked about: the first that fills at most nine tenths of its memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What was found.

    Attributes
    ----------
    measured
        The microbenchmark's result.
    hardware, machine, calibration
        This machine as measured, and with its fitted ceilings.
    report
        Errors on held-out cases.
    decode, recommendation
        A plain step of the model on this machine, and whether an EAGLE-3 drafter pays.
    comparison
        Drafters for another model on an H100, by its shipped calibration.
    """

    measured: SuiteResult
    hardware: Hardware
    machine: Machine
    calibration: Calibration
    report: Report
    decode: Prediction
    recommendation: Recommendation
    comparison: tuple[Comparison, ...]


def local_model(device: Mapping[str, Any], hardware: Hardware) -> str:
    """Llama-3.2-1B on a CPU; on an accelerator the largest of a few presets that fits."""
    if device.get("kind") == "cpu":
        return SMALL
    room = 0.9 * hardware.usable_bytes
    return next((name for name in LARGER if 2 * find_llm(name).total_params < room), SMALL)


def answer(measured: SuiteResult, folder: Path) -> Answer:
    """Calibrate, validate and answer; writes ``calibration.yaml`` into the folder."""
    calibration = app.calibrate([measured.path])
    file = folder / "calibration.yaml"
    write_calibration(calibration, file, f"rooflinekit {__version__}")
    hardware = calibration.profile
    if hardware is None:  # pragma: no cover - `--base auto` always makes one
        raise CalibrationError(f"{file} carries no profile of this machine; calibrate with --base auto")
    ready = calibrated(machine(hardware), calibration)
    model = local_model(measured.run.device, hardware)
    options: dict[str, Any] = {"dtype": calibration.dtype, "context": CONTEXT}
    return Answer(
        measured=measured,
        hardware=hardware,
        machine=ready,
        calibration=calibration,
        report=app.validate_files([measured.path], file),
        decode=app.predict(model, str(file), **options),
        recommendation=app.recommend(model, str(file), "eagle3", alpha=ALPHA, allow_oversize=True, **options),
        comparison=app.compare(*ELSEWHERE, DRAFTERS, alpha=ALPHA),
    )


def summary(found: Answer) -> dict[str, Any]:
    """Everything in numbers, for ``summary.json``."""
    fits = [
        {
            "kind": fit.kind,
            "dtype": fit.dtype,
            "form": fit.form,
            "cases": fit.n,
            "held_out": asdict(fit.held_out) if fit.held_out else None,
            "held_out_ratio": asdict(fit.held_out_ratio) if fit.held_out_ratio else None,
        }
        for fit in found.calibration.fits
    ]
    return {
        "rooflinekit": __version__,
        "device": dict(found.measured.run.device),
        "measured_in_s": found.measured.seconds,
        "clean_share": found.measured.clean_share,
        "contended": found.report.contended,
        "fits": fits,
        "validation": found.report.as_dict(),
        "decode": found.decode.as_dict(),
        "recommendation": found.recommendation.as_dict(),
        "comparison": {
            "model": ELSEWHERE[0],
            "hardware": ELSEWHERE[1],
            "alpha": ALPHA,
            "calibration": found.comparison[0].calibration,
            "drafters": [asdict(row) for row in found.comparison],
        },
    }
