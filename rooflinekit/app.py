"""The front door: names and options in, results out. What the command line and the notebooks call.

>>> import rooflinekit as rk
>>> one = rk.predict("llama-3.1-70b", "h100-sxm", context=4096, calibration="datasheet")
>>> round(one.step_s * 1e3, 1), one.fits
(41.9, False)
>>> rk.recommend("llama-3.1-8b", "h100-sxm", "eagle3", alpha=0.8, context=4096).pays
True
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rooflinekit.acceptance import Acceptance, Constant, Survival, from_histogram, from_length
from rooflinekit.calibration import Calibration, calibrated
from rooflinekit.drafters import BUILDERS, SHAPE_BUILDERS, Drafter
from rooflinekit.drafters.small_lm import SmallLm
from rooflinekit.errors import AcceptanceError, ModelError, ProfileError, RooflineError, nearest
from rooflinekit.hardware import Hardware, machine, require_peak
from rooflinekit.llm import Llm
from rooflinekit.precision import Precision, precision
from rooflinekit.prediction import Prediction, predict_step
from rooflinekit.profiles.library import find_hardware
from rooflinekit.readers.models import find_llm
from rooflinekit.recommendation import Comparison, Recommendation, compare_drafters, recommend_k
from rooflinekit.speculation import Target
from rooflinekit.transformer import Load
from rooflinekit.work import Machine

if TYPE_CHECKING:
    import xarray as xr

LOCAL_FILE = Path("rooflinekit-out/calibration.yaml")
"""Where ``local`` is looked for, below the current folder; ``$ROOFLINEKIT_LOCAL`` overrides it."""

DRAFTER_NAMES = ("small-lm:MODEL", *BUILDERS)


@dataclass(frozen=True, slots=True)
class Setup:
    """A device with its ceilings and a target model on it."""

    hardware: Hardware
    machine: Machine
    calibration: Calibration | None
    target: Target


def _number(value: float, name: str, low: float, high: float, *, whole: bool = True) -> float:
    if not math.isfinite(value) or not low <= value <= high or (whole and value != round(value)):
        kind = "a whole number" if whole else "a number"
        raise RooflineError(f"{name} {value:g} is out of range; give {kind} from {low:g} to {high:g}")
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
    if name.endswith((".yaml", ".yml")) and Path(name).is_file() and is_calibration(Path(name)):
        calibration = load_calibration(Path(name))
        return calibration.profile or find_hardware(calibration.base), calibration
    return find_hardware(name), None


def pick_calibration(spec: str, hardware: Hardware, own: Calibration | None) -> Calibration | None:
    """Decide which calibration applies: ``auto``, ``datasheet`` or a file.

    ``auto`` takes the one the device came with, else the shipped one for this profile, else none.
    """
    from rooflinekit.profiles.calibration_file import load_calibration, shipped_calibration

    if spec == "datasheet":
        return None
    if spec == "auto":
        return own or shipped_calibration(hardware.name)
    found = load_calibration(Path(spec))
    if found.base != hardware.name:
        raise ProfileError(
            f"calibration {spec} was fitted for {found.base}, not for {hardware.name}; use --hardware {found.base}"
        )
    return found


def pick_precision(llm: Llm, dtype: str, kv_dtype: str, hardware: Hardware, calibration: Calibration | None) -> Precision:
    """Choose number formats; ``auto`` is the checkpoint's own, or the measured one on a measured machine."""
    name = llm.dtype if dtype == "auto" else dtype
    chosen = precision(name, kv_dtype)
    if dtype == "auto" and hardware.peak and chosen.compute not in hardware.peak and hardware.name == "local":
        # A CPU without bf16 units runs the model in the format it was measured in.
        chosen = precision(calibration.dtype if calibration else next(iter(hardware.peak)), kv_dtype)
    require_peak(hardware, chosen.compute)
    return chosen


def setup(
    model: str | Llm,
    hardware: str | Hardware,
    *,
    dtype: str = "auto",
    kv_dtype: str = "auto",
    tp: int = 1,
    calibration: str = "auto",
    routing_overlap: float = 0.0,
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
    routing_overlap
        How much neighbouring tokens share experts (0..1).

    Raises
    ------
    RooflineError
        Anything that cannot be used, in one sentence.
    """
    _number(tp, "--tp", 1, 1024)
    _number(routing_overlap, "--routing-overlap", 0, 1, whole=False)
    llm = find_llm(model) if isinstance(model, str) else model
    device, own = load_device(hardware) if isinstance(hardware, str) else (hardware, None)
    chosen = pick_calibration(calibration, device, own)
    numbers = pick_precision(llm, dtype, kv_dtype, device, chosen)
    base = machine(device, tp)
    ready = calibrated(base, chosen) if chosen is not None else base
    return Setup(device, ready, chosen, Target(llm, numbers, tp, routing_overlap))


def load_of(batch: float, context: float, width: float = 1.0, *, prefill: bool = False, overlap: float = 0.0) -> Load:
    """Check and collect what runs through a pass."""
    return Load(
        _number(batch, "--batch", 1, 1e6),
        _number(context, "--context", 0, 1e8),
        _number(width, "--width", 1, 1e7),
        prefill=prefill,
        routing_overlap=overlap,
    )


def make_drafter(spec: str | Drafter, target: Target, dtype: str = "auto") -> Drafter:
    """Build a drafter from its word (``eagle3``, ``small-lm:MODEL`` ...) or its config.json.

    ``auto`` keeps the target's compute format where that is 16 or 32 bits, else bf16: published drafters
    of quantised targets are not quantised.
    """
    if not isinstance(spec, str):
        return spec
    numbers = target.precision
    if dtype != "auto":
        numbers = precision(dtype)
    elif numbers.compute not in ("bf16", "fp16", "fp32") or numbers.weight_bits < 16:
        numbers = precision("bf16")
    word, _, argument = spec.partition(":")
    if word == "small-lm":
        if not argument:
            raise ModelError("small-lm needs a model; write --drafter small-lm:llama-3.2-1b, or give its config.json")
        return SmallLm(find_llm(argument), numbers)
    if spec in BUILDERS:
        return BUILDERS[spec](target.llm, numbers)
    path = Path(spec)
    if path.exists() or spec.endswith(".json") or os.sep in spec:
        return _drafter_from_file(path, target, numbers)
    raise ModelError(f"drafter {spec!r} is unknown; {nearest(spec, DRAFTER_NAMES)}, or give its config.json")


def _drafter_from_file(path: Path, target: Target, numbers: Precision) -> Drafter:
    from rooflinekit.readers import drafter_config
    from rooflinekit.readers.hf_config import load_llm, read_config

    config = read_config(path)
    kind = drafter_config.drafter_kind(config)
    if kind is None:
        return SmallLm(load_llm(path), numbers)
    shape = getattr(drafter_config, f"{kind}_shape")(config)
    hidden = shape.get("target_hidden") or shape["hidden"]
    if hidden != target.llm.hidden:
        raise ModelError(
            f"{path}: this {kind} drafter is for a target of width {hidden}, {target.llm.name} has width "
            f"{target.llm.hidden}; choose the drafter trained for this target"
        )
    return SHAPE_BUILDERS[kind](shape, target.llm, numbers, f"from {path.name}")


def make_acceptance(
    alpha: float | None = None,
    acceptance_length: float | None = None,
    measured_k: int | None = None,
    survival: str | Sequence[float] | None = None,
    file: str | Path | None = None,
) -> Acceptance:
    """Build acceptance from exactly one of its descriptions.

    Raises
    ------
    AcceptanceError
        None or several were given, or the numbers are impossible.
    """
    given = [
        name
        for name, value in (
            ("--alpha", alpha),
            ("--acceptance-length", acceptance_length),
            ("--survival", survival),
            ("--acceptance", file),
        )
        if value is not None
    ]
    if len(given) != 1:
        said = "none was given" if not given else " and ".join(given) + " were given"
        raise AcceptanceError(
            "acceptance needs exactly one of --alpha, --acceptance-length with --measured-k, --survival, --acceptance; "
            f"{said}"
        )
    if alpha is not None:
        if not math.isfinite(alpha):
            raise AcceptanceError(f"acceptance rate {alpha} is not in 0..1; give a probability such as 0.8")
        return Constant(float(alpha))
    if acceptance_length is not None:
        if measured_k is None:
            raise AcceptanceError(
                f"acceptance length {acceptance_length:g} says nothing without the K it was measured with; add --measured-k"
            )
        return from_length(acceptance_length, int(_number(measured_k, "--measured-k", 1, 1000)))
    if survival is not None:
        return Survival(_survival_values(survival))
    return read_acceptance(Path(str(file)))


def _survival_values(survival: str | Sequence[float]) -> tuple[float, ...]:
    if not isinstance(survival, str):
        return tuple(float(value) for value in survival)
    try:
        return tuple(float(part) for part in survival.split(","))
    except ValueError as error:
        raise AcceptanceError(
            f"survival {survival!r} is not a list of numbers; write --survival 0.8,0.6,0.45"
        ) from error


def read_acceptance(path: Path) -> Acceptance:
    """Read a JSON file with ``histogram`` (rounds by number of accepted drafts) or ``survival`` and ``rounds``."""
    hint = 'write {"histogram": [rounds with 0, 1, 2 ... accepted drafts]} or {"survival": [...], "rounds": N}'
    try:
        data: Any = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise AcceptanceError(f"{path} cannot be read ({error.strerror}); give a JSON file: {hint}") from error
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise AcceptanceError(f"{path} is not JSON; {hint}") from error
    if not isinstance(data, dict) or ("histogram" in data) == ("survival" in data):
        raise AcceptanceError(f"{path} needs either 'histogram' or 'survival'; {hint}")
    values = data.get("histogram", data.get("survival"))
    rounds = data.get("rounds")
    plain = isinstance(values, list) and all(
        isinstance(v, int | float) and not isinstance(v, bool) and math.isfinite(v) for v in values
    )
    if not plain or not (rounds is None or (type(rounds) is int and rounds > 0)):
        raise AcceptanceError(f"{path}: values must be a list of finite numbers and rounds a positive count; {hint}")
    return from_histogram(values) if "histogram" in data else Survival(tuple(map(float, values)), rounds)


def predict(
    model: str | Llm,
    hardware: str | Hardware,
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
    model: str | Llm,
    hardware: str | Hardware,
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
    ready = setup(model, hardware, **options)
    _number(max_k, "--max-k", 1, 1024)
    if k is not None:
        _number(k, "--k", 1, 1024)
    if acceptance is None or isinstance(acceptance, str | Path):
        acceptance = make_acceptance(alpha, acceptance_length, measured_k, survival, acceptance)
    return recommend_k(
        ready.machine,
        ready.target,
        ready.hardware,
        make_drafter(drafter, ready.target, draft_dtype),
        acceptance,
        load_of(batch, context),
        max_k=max_k,
        k=k,
        calibration=ready.calibration,
        allow_oversize=allow_oversize,
    )


def compare(
    model: str | Llm,
    hardware: str | Hardware,
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
    ready = setup(model, hardware, **options)
    _number(max_k, "--max-k", 1, 1024)
    accepted = make_acceptance(alpha, acceptance_length, measured_k, survival, acceptance)
    built = tuple(make_drafter(spec, ready.target) for spec in drafters)
    return compare_drafters(ready.machine, ready.target, built, accepted, load_of(batch, context), max_k)


def sweep(
    model: str | Llm,
    hardware: str | Hardware,
    drafter: str | Drafter,
    *,
    batch: Sequence[float] = (1,),
    context: Sequence[float] = (4096,),
    k: Sequence[float] = (1, 2, 3, 4, 5, 6, 7, 8),
    alpha: Sequence[float] = (0.8,),
    **options: Any,
) -> xr.Dataset:
    """Evaluate speculation over a grid of batch x context x K x alpha, labelled with names and units."""
    from rooflinekit.sweeps import speculation_grid

    ready = setup(model, hardware, **options)
    built = make_drafter(drafter, ready.target)
    return speculation_grid(ready.machine, ready.target, built, batch=batch, context=context, k=k, alpha=alpha)
