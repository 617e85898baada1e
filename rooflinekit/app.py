"""The front door: names and options in, results out. What the command line and the notebooks call.

>>> import rooflinekit as rk
>>> one = rk.predict("llama-3.1-70b", "h100-sxm", context=4096, calibration="datasheet")
>>> round(one.step_s * 1e3, 1), one.fits
(41.9, False)
>>> rk.recommend("llama-3.1-8b", "h100-sxm", "eagle3", alpha=0.8, context=4096).pays
True
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rooflinekit.calibration import Calibration, calibrated
from rooflinekit.errors import RooflineError, nearest
from rooflinekit.hardware import Hardware, machine
from rooflinekit.llm import Llm
from rooflinekit.prediction import Prediction, predict_step
from rooflinekit.profiles.library import find_hardware
from rooflinekit.readers.models import find_llm
from rooflinekit.resolve import load_device, load_of, number, setup
from rooflinekit.units import render

# `rooflinekit predict` is the command run most: what only other calls need is imported by them.
if TYPE_CHECKING:
    import xarray as xr

    from rooflinekit.acceptance import Acceptance
    from rooflinekit.comparison import Comparison
    from rooflinekit.drafters import Drafter
    from rooflinekit.measurement import Measurement, Run
    from rooflinekit.recommendation import Recommendation
    from rooflinekit.validation import Report

__all__ = [
    "calibrate",
    "compare",
    "load_device",
    "predict",
    "recommend",
    "setup",
    "sweep",
    "validate_files",
    "validate_suite",
]


def predict(
    model: str | Path | Llm,
    hardware: str | Path | Hardware,
    *,
    batch: float = 1,
    context: float = 4096,
    width: float = 1,
    prefill: bool = False,
    **options: Any,
) -> Prediction:
    """Predict one decode step (width 1), verify (width K + 1) or prefill (width = prompt).

    Parameters
    ----------
    model, hardware
        As in :func:`setup`; so are the remaining options.
    batch, context, width
        Sequences; tokens in the cache; new rows per sequence.
    prefill
        Whether the rows are a prompt.
    """
    ready = setup(model, hardware, **options)
    load = load_of(batch, context, width, prefill=prefill, overlap=ready.target.routing_overlap)
    return predict_step(ready.machine, ready.target, ready.hardware, load, ready.calibration)


def recommend(
    model: str | Path | Llm,
    hardware: str | Path | Hardware,
    drafter: str | Drafter,
    *,
    alpha: float | None = None,
    acceptance_length: float | None = None,
    measured_k: int | None = None,
    survival: str | Sequence[float] | None = None,
    acceptance: str | Path | Acceptance | None = None,
    batch: float = 1,
    context: float = 4096,
    max_k: int = 16,
    k: int | None = None,
    draft_dtype: str = "auto",
    allow_oversize: bool = False,
    **options: Any,
) -> Recommendation:
    """Say whether speculation pays and with which K.

    Parameters
    ----------
    model, hardware
        As in :func:`setup`; so are the remaining options.
    drafter
        ``eagle3``, ``dflash``, ``dspark``, ``small-lm:MODEL``, a drafter's config.json, or an object.
    alpha, acceptance_length, measured_k, survival, acceptance
        Exactly one description of acceptance; ``acceptance`` is a file or an object.
    batch, context
        Sequences; tokens in the cache.
    max_k, k
        Largest K to try; or the K to judge.
    draft_dtype
        Number format of the drafter.
    allow_oversize
        Answer even where it does not fit.
    """
    from rooflinekit.drafting_options import make_acceptance, make_drafter
    from rooflinekit.recommendation import recommend_k

    ready = setup(model, hardware, **options)
    number(max_k, "--max-k", 1, 1024)
    if k is not None:
        number(k, "--k", 1, 1024)
    described = (alpha, acceptance_length, survival)
    if acceptance is None or isinstance(acceptance, str | Path):
        acceptance = make_acceptance(alpha, acceptance_length, measured_k, survival, acceptance)
    elif any(value is not None for value in described):
        raise RooflineError("acceptance was given twice: as an object and as numbers; give one of them")
    return recommend_k(
        ready.machine,
        ready.target,
        ready.hardware,
        make_drafter(drafter, ready.target, draft_dtype, ready.hardware),
        acceptance,
        load_of(batch, context),
        max_k=max_k,
        k=k,
        calibration=ready.calibration,
        allow_oversize=allow_oversize,
    )


def compare(
    model: str | Path | Llm,
    hardware: str | Path | Hardware,
    drafters: Sequence[str | Drafter],
    *,
    alpha: float | None = None,
    acceptance_length: float | None = None,
    measured_k: int | None = None,
    survival: str | Sequence[float] | None = None,
    acceptance: str | Path | None = None,
    batch: float = 1,
    context: float = 4096,
    max_k: int = 16,
    **options: Any,
) -> tuple[Comparison, ...]:
    """Put drafters side by side at equal acceptance; parameters as in :func:`recommend`."""
    from rooflinekit.comparison import compare_drafters
    from rooflinekit.drafting_options import make_acceptance, make_drafter

    ready = setup(model, hardware, **options)
    number(max_k, "--max-k", 1, 1024)
    if isinstance(drafters, str):
        drafters = [drafters]
    accepted = make_acceptance(alpha, acceptance_length, measured_k, survival, acceptance)
    built = tuple(make_drafter(spec, ready.target) for spec in drafters)
    return compare_drafters(
        ready.machine,
        ready.target,
        ready.hardware,
        built,
        accepted,
        load_of(batch, context),
        max_k=max_k,
        calibration=ready.calibration.name if ready.calibration else "datasheet",
    )


def sweep(
    model: str | Path | Llm,
    hardware: str | Path | Hardware,
    drafter: str | Drafter,
    *,
    batch: Sequence[float] = (1,),
    context: Sequence[float] = (4096,),
    k: Sequence[float] | None = None,
    alpha: Sequence[float] = (0.8,),
    **options: Any,
) -> xr.Dataset:
    """Evaluate speculation over a grid of batch x context x K x alpha, labelled with names and units.

    Parameters
    ----------
    model, hardware, drafter
        As in :func:`recommend`; so are the remaining options.
    batch, context, k, alpha
        Axes; K is 1 to 8 by default, or up to the drafter's trained block.
    """
    from rooflinekit.drafting_options import make_drafter
    from rooflinekit.sweeps import speculation_grid

    ready = setup(model, hardware, **options)
    built = make_drafter(drafter, ready.target)
    largest = built.max_k or 1024
    ks = range(1, min(8, largest) + 1) if k is None else k
    for name, values, low, high in (
        ("batch", batch, 1, 1e6),
        ("context", context, 0, 1e8),
        (f"k of {built.name}", ks, 1, largest),
    ):
        for value in values:
            number(value, name, low, high)
    return speculation_grid(
        ready.machine, ready.target, built, batch=batch, context=context, k=ks, alpha=alpha
    )


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
