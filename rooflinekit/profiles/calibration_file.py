"""Calibration files: written by ``rooflinekit calibrate``, read back with the same strictness as profiles."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from rooflinekit.calibration import BandError, Calibration, Fit, HeldOut
from rooflinekit.ceiling import beats_roof
from rooflinekit.errors import ProfileError
from rooflinekit.profiles.ceiling_fields import ceiling_data, flag, number, read_ceiling, six, tables_data
from rooflinekit.profiles.document import read_document, require_schema
from rooflinekit.profiles.hardware_file import PEAK_FORMATS, hardware_data, read_hardware
from rooflinekit.profiles.library import hardware_folder
from rooflinekit.profiles.node import Node
from rooflinekit.profiles.quantity import Quantity
from rooflinekit.remember import remembered
from rooflinekit.work import ANY

SCHEMA_VERSION = 1
KINDS_OF_WORK = (
    "linear",
    "attention",
    "latent",
    "prefill",
    "experts",
    "elementwise",
    "recurrent",
    "collective",
)
STACK_NAMES = ("pytorch", "trtllm", "vllm", "sglang", "nccl")
"""Software whose kernels a calibration may hold: our own microbenchmarks' is ``pytorch``."""

ERROR = Quantity("", 0.0, 1e6, "0.05")
FRACTION = Quantity("", -1e6, 1e6, "0.05")
COUNT = Quantity("", 0.0, 1e9, "40", whole=True)
CASES = Quantity("", 1.0, 1e9, "40", whole=True)
ROW = Quantity("", 1.0, 1e9, "16", whole=True)
SHARE = Quantity("", 0.0, 1.0, "0.4")


@remembered
def load_calibration(path: Path) -> Calibration:
    """Read a calibration file.

    Raises
    ------
    ProfileError
        Every problem of the file, one ``file:line: field: message`` a line.
    """
    root = read_document(path)
    require_schema(root, SCHEMA_VERSION)
    fields = root.mapping(
        required=("schema", "name", "base", "stack", "dtype", "fits", "runs"),
        optional=(
            "used",
            "fitted_share",
            "source",
            "left_out",
            "contended",
            "profile",
            "written_by",
            "device",
            "warnings",
        ),
    )
    if "used" not in fields and "fitted_share" not in fields:
        root.problem("says neither which cases were fitted (used) nor by which rule (fitted_share)")
    profile = read_hardware(fields["profile"]) if "profile" in fields else None
    left_out = fields["left_out"].entries() if "left_out" in fields else {}
    seen: set[tuple[str, str]] = set()
    for node in fields["fits"].items():
        entry = node.entries()
        if {"kind", "dtype"} <= entry.keys():
            key = (entry["kind"].scalar(), entry["dtype"].scalar())
            if key in seen:
                node.problem(f"{key[0]} in {key[1]} is there already; keep one")
            seen.add(key)
    if fields["base"].scalar() == "local" and profile is None:
        fields["base"].problem("is local, so the file must carry a profile; was it cut? calibrate again")
    result = Calibration(
        name=fields["name"].text(),
        base=fields["base"].text(),
        stack=fields["stack"].choice(STACK_NAMES, "an engine stack"),
        dtype=fields["dtype"].text(),
        device=fields["device"].text() if "device" in fields else "",
        fits=tuple(_fit(node) for node in fields["fits"].items()),
        run_ids=tuple(node.text() for node in fields["runs"].items()),
        used=tuple(node.text() for node in fields["used"].items()) if "used" in fields else (),
        source=fields["source"].text() if "source" in fields else "",
        fitted_share=number(fields["fitted_share"], SHARE) if "fitted_share" in fields else None,
        warnings=tuple(node.text() for node in fields["warnings"].items()) if "warnings" in fields else (),
        left_out={reason: int(number(node, COUNT)) for reason, node in left_out.items()},
        contended=flag(fields.get("contended"), default=False),
        profile=profile,
    )
    root.problems.finish()
    return result


def is_calibration(path: Path) -> bool:
    """Tell a calibration file from a hardware file by its fields; faults are left to the loader."""
    root = read_document(path)
    return "fits" in root.entries() or "base" in root.entries()


def calibrations_folder() -> Path:
    """Folder of the shipped calibrations: ``<profile>.yaml``, and ``<profile>.<stack>.yaml`` for other stacks."""
    return hardware_folder() / "calibrations"


def shipped_calibration(hardware: str, stack: str | None = None) -> Calibration | None:
    """Return the calibration shipped for a profile, if there is one.

    Parameters
    ----------
    hardware
        Name of the profile.
    stack
        Engine stack; None takes the one that was measured best.

    Raises
    ------
    ProfileError
        There are calibrations for the profile, but none for this stack.
    """
    folder = calibrations_folder()
    best = folder / f"{hardware}.yaml"
    if not best.is_file():
        return None
    if stack is None:
        return load_calibration(best)
    path = folder / f"{hardware}.{stack}.yaml"
    if path.is_file():
        return load_calibration(path)
    found = load_calibration(best)
    if found.stack == stack:
        return found
    others = [
        found.stack,
        *(other.name.split(".")[-2] for other in sorted(folder.glob(f"{hardware}.*.yaml"))),
    ]
    raise ProfileError(f"no calibration of {stack} for {hardware}; there are {', '.join(others)}")


def _fit(node: Node) -> Fit:
    fields = node.mapping(
        required=("kind", "dtype", "form", "n", "ceiling"),
        optional=(
            "staircase",
            "factors",
            "columns",
            "standard_errors",
            "follows_bandwidth",
            "held_out",
            "held_out_ratio",
            "bands",
            "kernel",
            "reason",
        ),
    )
    ceiling = read_ceiling(
        fields["ceiling"], fields.get("staircase"), fields.get("factors"), fields.get("columns")
    )
    beaten = "" if "reason" in fields else beats_roof(ceiling)
    if beaten:
        fields["ceiling"].problem(f"{beaten}; correct it, or say in this fit why it is so (reason: text)")
    errors = fields["standard_errors"].entries() if "standard_errors" in fields else {}
    return Fit(
        kind=fields["kind"].choice(KINDS_OF_WORK, "a kind of work"),
        dtype=fields["dtype"].choice((*PEAK_FORMATS, ANY), "a number format"),
        form=fields["form"].text(),
        n=int(number(fields["n"], CASES)),
        ceiling=ceiling,
        standard_errors={name: number(value, FRACTION) for name, value in errors.items()},
        follows_bandwidth=flag(fields.get("follows_bandwidth"), default=True),
        held_out=_held_out(fields["held_out"]) if "held_out" in fields else None,
        held_out_ratio=_held_out(fields["held_out_ratio"]) if "held_out_ratio" in fields else None,
        bands=tuple(_band(one) for one in fields["bands"].items()) if "bands" in fields else (),
        kernel=fields["kernel"].text() if "kernel" in fields else "",
        reason=fields["reason"].text() if "reason" in fields else "",
    )


def _band(node: Node) -> BandError:
    fields = node.mapping(required=("rows", "time"), optional=("ratio",))
    ends = [int(number(item, ROW)) for item in fields["rows"].items()]
    if len(ends) != 2:
        fields["rows"].problem("is not [first, last]")
        ends = [0, 0]
    elif ends[0] > ends[1]:
        fields["rows"].problem(
            f"is reversed: the first row {ends[0]} is after the last one {ends[1]}; swap them"
        )
    ratio = _held_out(fields["ratio"]) if "ratio" in fields else None
    return BandError(low=ends[0], high=ends[1], time=_held_out(fields["time"]), ratio=ratio)


def _held_out(node: Node) -> HeldOut:
    fields = node.mapping(required=("n", "median_abs_error", "p90_abs_error", "bias"))
    return HeldOut(
        n=int(number(fields["n"], CASES)),
        median_abs_error=number(fields["median_abs_error"], ERROR),
        p90_abs_error=number(fields["p90_abs_error"], ERROR),
        bias=number(fields["bias"], FRACTION),
    )


def calibration_text(calibration: Calibration, written_by: str) -> str:
    """Write a calibration as YAML; :func:`load_calibration` reads the same numbers back (6 digits)."""
    import yaml  # noqa: PLC0415 - reading profiles has imported it already, writing is rare

    data: dict[str, Any] = {
        "schema": SCHEMA_VERSION,
        "written_by": written_by,
        "name": calibration.name,
        "base": calibration.base,
        "stack": calibration.stack,
        **({"device": calibration.device} if calibration.device else {}),
        "dtype": calibration.dtype,
        "contended": calibration.contended,
        "runs": list(calibration.run_ids),
        "fits": [_fit_data(fit) for fit in calibration.fits],
        "left_out": dict(calibration.left_out),
        **({"warnings": list(calibration.warnings)} if calibration.warnings else {}),
    }
    if calibration.source:
        data["source"] = calibration.source
    if calibration.fitted_share is None:
        data["used"] = list(calibration.used)
    else:
        data["fitted_share"] = calibration.fitted_share
    if calibration.profile is not None:
        data["profile"] = hardware_data(calibration.profile)
    # Public calibrations are tables of numbers: a line each.
    flow = False if calibration.fitted_share is None else None
    return str(yaml.safe_dump(data, sort_keys=False, width=110, allow_unicode=True, default_flow_style=flow))


def write_calibration(calibration: Calibration, path: Path, written_by: str) -> None:
    """Write the file in one step, so that an interruption leaves the old one or the new one.

    Raises
    ------
    ProfileError
        The place cannot be written.
    """
    text = calibration_text(calibration, written_by)
    part = path.with_name(path.name + ".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    except OSError as error:
        raise ProfileError(f"{path} cannot be written ({error.strerror}); choose another --out") from error


def _fit_data(fit: Fit) -> dict[str, Any]:
    data: dict[str, Any] = {
        "kind": fit.kind,
        "dtype": fit.dtype,
        **({"kernel": fit.kernel} if fit.kernel else {}),
        "form": fit.form,
        "n": fit.n,
        "ceiling": ceiling_data(fit.ceiling),
        **tables_data(fit.ceiling),
    }
    if fit.reason:
        data["reason"] = fit.reason
    data["follows_bandwidth"] = fit.follows_bandwidth
    if fit.standard_errors:
        data["standard_errors"] = {name: six(value) for name, value in fit.standard_errors.items()}
    for name, held in (("held_out", fit.held_out), ("held_out_ratio", fit.held_out_ratio)):
        if held is not None:
            data[name] = _held_data(held, six)
    if fit.bands:
        data["bands"] = [_band_data(band) for band in fit.bands]
    return data


def _held_data(held: HeldOut, rounded: Callable[[float], float]) -> dict[str, Any]:
    rest = {key: rounded(getattr(held, key)) for key in ("median_abs_error", "p90_abs_error", "bias")}
    return {"n": held.n, **rest}


def _band_data(band: BandError) -> dict[str, Any]:
    data: dict[str, Any] = {"rows": [band.low, band.high], "time": _held_data(band.time, _short)}
    if band.ratio is not None:
        data["ratio"] = _held_data(band.ratio, _short)
    return data


def _short(value: float) -> float:
    return float(f"{value:.3g}")
