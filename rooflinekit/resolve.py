"""From names and options to objects: devices, calibrations, targets.

Every function refuses what cannot be used with one sentence: the thing, the value, the reason, the next step.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from rooflinekit.calibration import Calibration, calibrated
from rooflinekit.errors import ProfileError, RooflineError
from rooflinekit.hardware import Hardware, machine, require_peak
from rooflinekit.hosts import NO_HOST, Host, host_of, with_host
from rooflinekit.llm import Llm
from rooflinekit.precision import WEIGHT_ONLY, Precision, find_format, on_device, precision
from rooflinekit.profiles.library import find_hardware
from rooflinekit.readers.models import find_llm
from rooflinekit.target import Target
from rooflinekit.transformer import Load
from rooflinekit.work import Machine

LOCAL_FILE = Path("rooflinekit-out/calibration.yaml")
"""Where ``local`` is looked for, below the current folder; ``$ROOFLINEKIT_LOCAL`` overrides it."""


@dataclass(frozen=True, slots=True)
class Setup:
    """A device with its ceilings and a target model on it."""

    hardware: Hardware
    machine: Machine
    calibration: Calibration | None
    target: Target


def number(value: float, name: str, low: float, high: float, *, whole: bool = True) -> float:
    """Check that a number of the user's is finite, within bounds and, unless told otherwise, whole."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise RooflineError(f"{name} {value!r:.40} is not a number; give one from {low:g} to {high:g}")
    # Comparing needs no float, so an integer past the floats is refused like any other number.
    if not low <= value <= high or (whole and value != round(value)):
        kind = "a whole number" if whole else "a number"
        shown = f"{value:g}" if isinstance(value, float) else f"{value!s:.24}"
        raise RooflineError(f"{name} {shown} is out of range; give {kind} from {low:g} to {high:g}")
    return float(value)


def local_file() -> Path:
    """File of the ``local`` profile."""
    return Path(os.environ.get("ROOFLINEKIT_LOCAL") or LOCAL_FILE)


def load_device(name: str) -> tuple[Hardware, Calibration | None]:
    """Find a device by name or file; a calibration that carries a profile is a device too.

    Raises
    ------
    ProfileError
        Unknown name, or a file with faults.
    """
    from rooflinekit.profiles.calibration_file import is_calibration, load_calibration

    if name == "local":
        path = local_file()
        if not path.exists():
            raise ProfileError(
                f"no measured profile of this machine at {path}; make one with `rooflinekit demo`, or `rooflinekit "
                f"bench` and `rooflinekit calibrate --base auto --out {path}`"
            )
        name = str(path)
    # os.path.isfile: False, not an error, for a text too long to be a name.
    if name.endswith((".yaml", ".yml")) and os.path.isfile(name) and is_calibration(Path(name)):  # noqa: PTH113
        calibration = load_calibration(Path(name))
        return calibration.profile or find_hardware(calibration.base), calibration
    return find_hardware(name), None


def pick_calibration(
    spec: str, hardware: Hardware, own: Calibration | None, stack: str | None = None
) -> Calibration | None:
    """Decide which calibration applies: ``auto``, ``datasheet`` or a file.

    ``auto`` takes the one the device came with, else the shipped one for this profile and stack, else none.
    """
    from rooflinekit.profiles.calibration_file import load_calibration, shipped_calibration

    if stack is not None and spec != "auto":
        raise RooflineError(
            f"--stack {stack} chooses among shipped calibrations; leave out --calibration {spec}"
        )
    if spec.lower() == "datasheet":
        return None
    if spec.lower() == "auto":
        if stack is not None:
            return _of_stack(hardware.name, stack.strip().lower())
        return own or shipped_calibration(hardware.name)
    if not spec:
        raise RooflineError("--calibration is empty; write auto, datasheet or the name of a YAML file")
    found = load_calibration(Path(spec))
    if found.base != hardware.name:
        raise ProfileError(
            f"calibration {spec} was fitted for {found.base}, not for {hardware.name}; use --hardware {found.base}"
        )
    return found


def _of_stack(hardware: str, stack: str) -> Calibration:
    from rooflinekit.profiles.calibration_file import shipped_calibration

    found = shipped_calibration(hardware, stack) if stack else None
    if found is None:
        reason = f"no calibration is shipped for {hardware}" if stack else "it is empty"
        raise ProfileError(f"--stack {stack!r} has no meaning: {reason}; leave it out")
    if all(fit.kind == "collective" for fit in found.fits):
        raise ProfileError(
            f"--stack {stack} timed collectives alone; choose an engine (trtllm, vllm, sglang), or give "
            "--calibration its file"
        )
    return found


def pick_precision(
    llm: Llm, dtype: str, kv_dtype: str, hardware: Hardware, calibration: Calibration | None
) -> Precision:
    """Choose number formats; ``auto`` is the checkpoint's own, or the measured one on a measured machine.

    A checkpoint in a 4-bit format runs on a device without 4-bit units too: its weights are then
    dequantised and computed in bf16, as engines do. Other formats that the device cannot compute in are
    refused, with the weight-only format named; in a checkpoint of several formats, which no one name could
    stand for, each is replaced by what the device has. A cache format that the checkpoint names is its own.
    """
    peaks = hardware.peak
    measured = hardware.name == "local" and bool(peaks) and find_format(llm.dtype).compute not in peaks
    if kv_dtype == "auto" and not measured:
        kv_dtype = llm.kv_dtype
    if dtype != "auto":
        chosen = precision(dtype, kv_dtype)
    elif measured:
        # A CPU without bf16 units runs the model in the format it was measured in.
        chosen = precision(calibration.dtype if calibration else next(iter(hardware.peak)), kv_dtype)
    else:
        mixed = bool(llm.formats)
        formats = {key: _runnable(name, hardware, mixed=mixed) for key, name in llm.formats.items()}
        chosen = precision(_runnable(llm.dtype, hardware, mixed=mixed), kv_dtype, formats)
    chosen = on_device(chosen, hardware.peak)
    for compute in chosen.computes:
        require_peak(hardware, compute)
    return chosen


def _runnable(name: str, hardware: Hardware, *, mixed: bool) -> str:
    compute, peaks = find_format(name).compute, hardware.peak
    if not peaks or compute in peaks:
        return name
    if compute == "fp4" or (mixed and name in WEIGHT_ONLY):
        return WEIGHT_ONLY[name]
    return "fp16" if mixed and name == "bf16" and "fp16" in peaks else name


def setup(
    model: str | Path | Llm,
    hardware: str | Path | Hardware,
    *,
    dtype: str = "auto",
    kv_dtype: str = "auto",
    tp: int = 1,
    calibration: str = "auto",
    stack: str | None = None,
    routing_overlap: float = 0.0,
    host: str | Host = NO_HOST,
) -> Setup:
    """Resolve names into a machine and a target.

    Parameters
    ----------
    model
        Preset name, config.json (file or folder), or an :class:`~rooflinekit.llm.Llm`.
    hardware
        Profile name, YAML file, ``local``, or a :class:`~rooflinekit.hardware.Hardware`.
    dtype, kv_dtype
        Number formats, or ``auto``.
    tp
        Tensor-parallel ranks.
    calibration
        ``auto``, ``datasheet`` or a file.
    stack
        Engine whose kernels to assume, where calibrations of several are shipped; None: the best measured.
    routing_overlap
        How much neighbouring tokens share experts (0..1).
    host
        Engine whose host time to add (``vllm``), times as text (``1.2ms,0.4ms,5us`` of a step, a draft pass, a
        row), or a :class:`~rooflinekit.hosts.Host`; none by default.

    Raises
    ------
    RooflineError
        Anything that cannot be used, in one sentence.
    """
    number(tp, "--tp", 1, 1024)
    number(routing_overlap, "--routing-overlap", 0, 1, whole=False)
    llm = find_llm(str(model)) if isinstance(model, str | Path) else model
    device, own = load_device(str(hardware)) if isinstance(hardware, str | Path) else (hardware, None)
    chosen = pick_calibration(calibration, device, own, stack)
    numbers = pick_precision(llm, dtype, kv_dtype, device, chosen)
    base = machine(device, tp)
    ready = calibrated(base, chosen) if chosen is not None else base
    ready = with_host(ready, host_of(host) if isinstance(host, str) else host)
    return Setup(device, ready, chosen, Target(llm, numbers, tp, routing_overlap))


def load_of(
    batch: float, context: float, width: float = 1.0, *, prefill: bool = False, overlap: float = 0.0
) -> Load:
    """Check and collect what runs through a pass."""
    return Load(
        number(batch, "--batch", 1, 1e6),
        number(context, "--context", 0, 1e8),
        number(width, "--width", 1, 1e7),
        prefill=prefill,
        routing_overlap=overlap,
    )
