"""Measurement files: JSON Lines, first the run, then its cases; strict when they are read back."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rooflinekit.errors import ProfileError
from rooflinekit.measurement import Measurement, Run, cleanest

SCHEMA = 1
"""Version of the file format; a file with another version is refused."""


def to_line(record: Run | Measurement) -> str:
    """Write a run or a case as one line of JSON."""
    kind = "run" if isinstance(record, Run) else "case"
    data = asdict(record)
    data.pop("bandwidth_factor", None)
    return json.dumps({"record": kind, "schema": SCHEMA, **data}, separators=(",", ":"))


def load(path: Path) -> tuple[list[Run], list[Measurement]]:
    """Read a measurement file.

    A last line cut off by an interruption is left out; any other broken line is refused.

    Raises
    ------
    ProfileError
        The file cannot be read, has another schema version, or has a broken line.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ProfileError(
            f"{path}: cannot be read ({error}); give a file that `rooflinekit bench` wrote"
        ) from error
    runs: list[Run] = []
    cases: list[Measurement] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            if number == len(lines) and runs:
                break
            raise ProfileError(
                f"{path}:{number}: not a line of JSON ({error.msg}); give a file that `rooflinekit bench` wrote"
            ) from error
        _append(record, f"{path}:{number}", runs, cases)
    if not runs:
        raise ProfileError(f"{path}: no run record; give a file that `rooflinekit bench` wrote")
    return runs, cleanest(cases)


def _append(record: Any, where: str, runs: list[Run], cases: list[Measurement]) -> None:
    kind = record.pop("record", None) if isinstance(record, dict) else None
    if kind not in ("run", "case"):
        raise ProfileError(f"{where}: neither a run nor a case; give a file that `rooflinekit bench` wrote")
    schema = record.pop("schema", None)
    if schema != SCHEMA:
        raise ProfileError(f"{where}: schema {schema!r}, this version reads {SCHEMA}; measure again")
    try:
        _check_types(record, TYPES[kind])
        if kind == "run":
            runs.append(Run(**record))
        else:
            for name in ("samples_s", "clean", "ratio", "warnings"):
                record[name] = tuple(record.get(name, ()))
            cases.append(_checked(Measurement(**record)))
    except (TypeError, ValueError) as error:
        raise ProfileError(f"{where}: {error}; the file was changed or cut, measure again") from error


TYPES: dict[str, dict[str, tuple[type, ...]]] = {
    "run": {"id": (str,), "started": (str,), "device": (dict,), "environment": (dict,), "options": (dict,)},
    "case": {
        **dict.fromkeys(("id", "kind", "dtype", "implementation"), (str,)),
        **dict.fromkeys(("shape", "alternatives"), (dict,)),
        **dict.fromkeys(("samples_s", "clean", "ratio", "warnings"), (list,)),
        **dict.fromkeys(
            ("weight_bytes", "kv_bytes", "activation_bytes", "flops", "kernels", "footprint_bytes", "error"),
            (int, float),
        ),
        "attempt": (int,),
    },
}
"""Types of the fields of a record, as JSON reads them."""

SHAPES = {
    "linear": ("rows", "out", "inner"),
    "attention": ("batch", "context", "width", "heads", "kv_heads", "head_dim"),
    "latent": ("batch", "context", "width", "heads", "kv_heads", "head_dim"),
    "prefill": ("batch", "context", "width", "heads", "kv_heads", "head_dim"),
    "experts": ("rows", "hidden", "intermediate", "experts", "top_k", "touched"),
    "collective": ("message_bytes", "ranks"),
    "step": ("model", "context", "width"),
}
"""What the shape of a case must say, by kind."""


def _check_types(record: dict[str, Any], types: dict[str, tuple[type, ...]]) -> None:
    for name, value in record.items():
        if name in types and (not isinstance(value, types[name]) or isinstance(value, bool)):
            raise TypeError(f"{name} is {value!r:.60}")


def _checked(case: Measurement) -> Measurement:
    if not case.samples_s or not all(_is_number(s) and s > 0 for s in case.samples_s):
        raise ValueError(f"case {case.id!r} has no usable samples")
    if not all(_is_number(value) for value in case.ratio):
        raise ValueError(f"case {case.id!r} has a ratio that is no number")
    for name in SHAPES.get(case.kind, ()):
        if name not in case.shape or (
            name != "model" and not (_is_number(case.shape[name]) and case.shape[name] >= 0)
        ):
            raise ValueError(f"case {case.id!r} does not say its {name}")
    amounts = (case.weight_bytes, case.kv_bytes, case.activation_bytes, case.flops, case.kernels)
    if not all(_is_number(value) and value >= 0 for value in amounts):
        raise ValueError(f"case {case.id!r} has a negative or endless amount of work")
    return case


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
