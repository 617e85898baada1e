"""Calibration files: written by ``rooflinekit calibrate``, read back with the same strictness as profiles."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path
from typing import Any

from rooflinekit import units
from rooflinekit.calibration import Calibration, Fit, HeldOut
from rooflinekit.errors import ProfileError
from rooflinekit.evidence import Cited
from rooflinekit.hardware import Hardware
from rooflinekit.profiles.document import read_document, require_schema
from rooflinekit.profiles.hardware_file import FIELDS, PEAK_FORMATS, read_hardware
from rooflinekit.profiles.library import hardware_folder
from rooflinekit.profiles.node import Node
from rooflinekit.profiles.quantity import Quantity
from rooflinekit.work import ANY, Ceiling, Staircase

SCHEMA_VERSION = 1
KINDS_OF_WORK = ("linear", "attention", "experts", "elementwise", "recurrent", "collective")

T0 = Quantity("s", 0.0, 1.0, "2.1 us")
EFFICIENCY = Quantity("", 1e-4, 2.0, "0.85")
SHARPNESS = Quantity("", 1.0, 1e6, "2.4")
TILE = Quantity("", 1.0, 4096.0, "16", whole=True)
PASS_ROWS = Quantity("", 1.0, 1e9, "3", whole=True)
ERROR = Quantity("", 0.0, 1e6, "0.05")
FRACTION = Quantity("", -1e6, 1e6, "0.05")
COUNT = Quantity("", 0.0, 1e9, "40", whole=True)
ROWS = Quantity("", 1.0, 1e9, "16")
READS = Quantity("", 1e-6, 1e9, "1.3")


def load_calibration(path: str | Path) -> Calibration:
    """Read a calibration file.

    Raises
    ------
    ProfileError
        Every problem of the file, one ``file:line: field: message`` a line.
    """
    root = read_document(path)
    require_schema(root, SCHEMA_VERSION)
    fields = root.mapping(
        required=("schema", "name", "base", "stack", "dtype", "fits", "runs", "used"),
        optional=("left_out", "contended", "profile", "written_by", "device", "warnings"),
    )
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
        stack=fields["stack"].text(),
        dtype=fields["dtype"].text(),
        device=fields["device"].text() if "device" in fields else "",
        fits=tuple(_fit(node) for node in fields["fits"].items()),
        run_ids=tuple(node.text() for node in fields["runs"].items()),
        used=tuple(node.text() for node in fields["used"].items()),
        warnings=tuple(node.text() for node in fields["warnings"].items()) if "warnings" in fields else (),
        left_out={reason: int(_number(node, COUNT)) for reason, node in left_out.items()},
        contended=_flag(fields.get("contended"), default=False),
        profile=profile,
    )
    root.problems.finish()
    return result


def is_calibration(path: Path) -> bool:
    """Tell a calibration file from a hardware file by its fields; faults are left to the loader."""
    root = read_document(path)
    return "fits" in root.entries() or "base" in root.entries()


def shipped_calibration(hardware: str) -> Calibration | None:
    """Return the calibration shipped for a profile, if there is one."""
    path = hardware_folder() / "calibrations" / f"{hardware}.yaml"
    return load_calibration(path) if path.is_file() else None


def _number(node: Node, quantity: Quantity) -> float:
    value = quantity.read(node)
    return 0.0 if math.isnan(value) else value


def _flag(node: Node | None, *, default: bool) -> bool:
    return default if node is None else node.choice(("true", "false"), "a yes or no") == "true"


def _fit(node: Node) -> Fit:
    fields = node.mapping(
        required=("kind", "dtype", "form", "n", "ceiling"),
        optional=("staircase", "standard_errors", "follows_bandwidth", "held_out", "held_out_ratio"),
    )
    errors = fields["standard_errors"].entries() if "standard_errors" in fields else {}
    return Fit(
        kind=fields["kind"].choice(KINDS_OF_WORK, "a kind of work"),
        dtype=fields["dtype"].choice((*PEAK_FORMATS, ANY), "a number format"),
        form=fields["form"].text(),
        n=int(_number(fields["n"], COUNT)),
        ceiling=_ceiling(fields["ceiling"], fields.get("staircase")),
        standard_errors={name: _number(value, FRACTION) for name, value in errors.items()},
        follows_bandwidth=_flag(fields.get("follows_bandwidth"), default=True),
        held_out=_held_out(fields["held_out"]) if "held_out" in fields else None,
        held_out_ratio=_held_out(fields["held_out_ratio"]) if "held_out_ratio" in fields else None,
    )


def _ceiling(node: Node, staircase: Node | None) -> Ceiling:
    fields = node.mapping(
        required=("t0", "memory_efficiency", "compute_efficiency"), optional=("p", "tile", "rows_per_pass")
    )
    return Ceiling(
        t0_s=_number(fields["t0"], T0),
        memory_efficiency=_number(fields["memory_efficiency"], EFFICIENCY) or 1.0,
        compute_efficiency=_number(fields["compute_efficiency"], EFFICIENCY) or 1.0,
        p=_number(fields["p"], SHARPNESS) if "p" in fields else math.inf,
        tile=_number(fields["tile"], TILE) if "tile" in fields else 1.0,
        rows_per_pass=_number(fields["rows_per_pass"], PASS_ROWS) if "rows_per_pass" in fields else math.inf,
        staircase=_staircase(staircase) if staircase is not None else None,
    )


def _staircase(node: Node) -> Staircase:
    fields = node.mapping(required=("rows", "reads"), optional=("breaks",))
    rows = tuple(_number(item, ROWS) for item in fields["rows"].items())
    reads = tuple(_number(item, READS) for item in fields["reads"].items())
    if len(rows) != len(reads) or not rows:
        node.problem(f"has {len(rows)} rows and {len(reads)} reads; give one cost per row count")
    elif any(b <= a for a, b in pairwise(rows)):
        fields["rows"].problem("do not rise; sort them")
    breaks = tuple(_number(item, ROWS) for item in fields["breaks"].items()) if "breaks" in fields else ()
    return Staircase(rows, reads, breaks)


def _held_out(node: Node) -> HeldOut:
    fields = node.mapping(required=("n", "median_abs_error", "p90_abs_error", "bias"))
    return HeldOut(
        n=int(_number(fields["n"], COUNT)),
        median_abs_error=_number(fields["median_abs_error"], ERROR),
        p90_abs_error=_number(fields["p90_abs_error"], ERROR),
        bias=_number(fields["bias"], FRACTION),
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
        "used": list(calibration.used),
    }
    if calibration.profile is not None:
        data["profile"] = hardware_data(calibration.profile)
    return str(yaml.safe_dump(data, sort_keys=False, width=110, allow_unicode=True))


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


def _six(value: float) -> float:
    return float(f"{value:.6g}")


def _fit_data(fit: Fit) -> dict[str, Any]:
    ceiling = fit.ceiling
    numbers: dict[str, Any] = {
        "t0": f"{_six(float(ceiling.t0_s) * 1e6):g} us",
        "memory_efficiency": _six(float(ceiling.memory_efficiency)),
        "compute_efficiency": _six(float(ceiling.compute_efficiency)),
    }
    if math.isfinite(ceiling.p):
        numbers["p"] = _six(ceiling.p)
    if ceiling.tile != 1.0:
        numbers["tile"] = int(ceiling.tile)
    if math.isfinite(ceiling.rows_per_pass):
        numbers["rows_per_pass"] = int(ceiling.rows_per_pass)
    data: dict[str, Any] = {
        "kind": fit.kind,
        "dtype": fit.dtype,
        "form": fit.form,
        "n": fit.n,
        "ceiling": numbers,
    }
    if ceiling.staircase is not None:
        table = ceiling.staircase
        data["staircase"] = {"rows": list(table.rows), "reads": [_six(r) for r in table.reads]}
        if table.breaks:
            data["staircase"]["breaks"] = list(table.breaks)
    data["follows_bandwidth"] = fit.follows_bandwidth
    if fit.standard_errors:
        data["standard_errors"] = {name: _six(value) for name, value in fit.standard_errors.items()}
    for name, held in (("held_out", fit.held_out), ("held_out_ratio", fit.held_out_ratio)):
        if held is not None:
            rest = {key: _six(getattr(held, key)) for key in ("median_abs_error", "p90_abs_error", "bias")}
            data[name] = {"n": held.n, **rest}
    return data


def hardware_data(hardware: Hardware) -> dict[str, Any]:
    """A hardware profile as the content of its file."""
    data: dict[str, Any] = {"schema": 1}
    for name, field in FIELDS.items():
        if name == "schema":
            continue
        value = getattr(hardware, name)
        if field.form == "cited" and value is not None and field.quantity is not None:
            data[name] = _cited_data(value, field.quantity.unit)
        elif field.form == "peaks":
            data[name] = {dtype: _cited_data(cited, "FLOP/s") for dtype, cited in value.items()}
        elif value:
            data[name] = list(value) if isinstance(value, tuple) else value
    return data


def _cited_data(cited: Cited, unit: str) -> dict[str, Any]:
    if unit == "B" and cited.value == int(cited.value):
        shown: str | int = f"{int(cited.value)} B"
    elif unit:
        shown = units.render(cited.value, unit, digits=6)
    else:
        shown = int(cited.value)
    mark = {"confidence": cited.confidence} if cited.confidence else {}
    return {"value": shown, "kind": cited.kind, **mark, "ref": cited.ref}
