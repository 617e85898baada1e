"""Hardware files: the one table of their fields, and the loader that reads a file by it.

The table :data:`FIELDS` is the schema. :func:`load_hardware` walks it, and
:func:`rooflinekit.profiles.schema.hardware_json_schema` writes it as JSON Schema; a field is added here and
in :class:`~rooflinekit.hardware.Hardware`, nowhere else.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal, NamedTuple

from rooflinekit import units
from rooflinekit.errors import nearest
from rooflinekit.evidence import Cited
from rooflinekit.hardware import Hardware
from rooflinekit.profiles.document import read_document, require_schema
from rooflinekit.profiles.node import Node, short
from rooflinekit.profiles.quantity import Quantity, cited

SCHEMA_VERSION = 1
KEBAB_CASE = r"^[a-z0-9]+(-[a-z0-9]+)*$"

Form = Literal["version", "name", "names", "text", "texts", "cited", "peaks"]


class Field(NamedTuple):
    """One field of a hardware file.

    Attributes
    ----------
    form
        How it is written.
    description
        For the JSON Schema.
    required
        The file must have it.
    quantity
        Unit and bounds of a number.
    """

    form: Form
    description: str
    required: bool = False
    quantity: Quantity | None = None


BYTES = Quantity("B", 1e6, 1e14, "80 GB")
BANDWIDTH = Quantity("B/s", 1e9, 1e15, "3.35 TB/s")
PEAK = Quantity("FLOP/s", 1e9, 1e18, "989.4 TFLOP/s")
CACHE = Quantity("B", 1e4, 1e11, "50 MiB")
LINK = Quantity("B/s", 1e8, 1e14, "450 GB/s")
UNITS = Quantity("", 1.0, 1e6, "132", whole=True)
POWER = Quantity("W", 1.0, 1e5, "700 W")
CLOCK = Quantity("Hz", 1e7, 1e11, "1830 MHz")

PEAK_FORMATS: dict[str, str] = {
    "fp64": "64-bit floating point on the matrix unit.",
    "fp32": "32-bit floating point (the vector rate where the matrix unit has none).",
    "tf32": "32-bit storage, 10-bit mantissa on the matrix unit.",
    "bf16": "bfloat16, fp32 accumulation.",
    "fp16": "IEEE half, fp32 accumulation.",
    "fp16-acc16": "IEEE half, fp16 accumulation, where it is faster (GeForce); no prediction uses it.",
    "fp8": "8-bit floating point, fp32 accumulation.",
    "fp8-acc16": "8-bit floating point, fp16 accumulation, where it is faster; no prediction uses it.",
    "int8": "8-bit integers, int32 accumulation (TOPS).",
    "fp6": "6-bit floating point.",
    "fp4": "4-bit floating point.",
    "int4": "4-bit integers.",
}

FIELDS: dict[str, Field] = {
    "schema": Field("version", f"Version of this format: {SCHEMA_VERSION}.", required=True),
    "name": Field("name", "Id in kebab-case; the name of the file without .yaml.", required=True),
    "title": Field("text", "Full product name.", required=True),
    "vendor": Field("text", "As the vendor writes itself.", required=True),
    "architecture": Field("text", "As the vendor writes it.", required=True),
    "aliases": Field("names", "Short names in kebab-case, in no other file."),
    "driver_names": Field("texts", "What the driver calls it: nvidia-smi, or the device name in torch."),
    "capacity": Field("cited", "Device memory as the driver reports it.", True, BYTES),
    "visible_capacity": Field("cited", "What an allocation can see, where known.", False, BYTES),
    "bandwidth": Field("cited", "Memory bandwidth.", True, BANDWIDTH),
    "peak": Field("peaks", "Dense rate by format, never sparse; {} when none is published.", True, PEAK),
    "l2": Field("cited", "Last-level cache of the device.", False, CACHE),
    "link": Field("cited", "Link to peers, per direction: NVLink if it has one, else PCIe.", False, LINK),
    "units": Field("cited", "Streaming multiprocessors, compute units or cores.", False, UNITS),
    "tdp": Field("cited", "Board power.", False, POWER),
    "clock": Field("cited", "Boost clock of the matrix units.", False, CLOCK),
    "notes": Field("texts", "What a reader of the numbers should know."),
}


def load_hardware(path: str | Path, *, named_as_file: bool = False) -> Hardware:
    """Read a hardware file.

    Parameters
    ----------
    path
        The YAML file.
    named_as_file
        The name must be the file name, as in a folder that is searched by name.

    Raises
    ------
    ProfileError
        Every problem of the file, one ``file:line: field: message`` a line.
    """
    root = read_document(path)
    require_schema(root, SCHEMA_VERSION)
    hardware = read_hardware(root, Path(path).stem if named_as_file else "")
    root.problems.finish()
    return hardware


def read_hardware(root: Node, stem: str = "") -> Hardware:
    """Read a hardware profile from a node: a whole file, or a field of another one.

    Parameters
    ----------
    root
        The mapping of the profile. Faults are left in its problems; the caller finishes them. Inside
        another file the profile needs no ``schema`` of its own.
    stem
        The name it must have; empty for any.
    """
    nodes = root.mapping(
        required=[
            name for name, field in FIELDS.items() if field.required and (name != "schema" or not root.path)
        ],
        optional=[name for name, field in FIELDS.items() if not field.required or name == "schema"],
    )
    values = {name: _READERS[FIELDS[name].form](node, FIELDS[name]) for name, node in nodes.items()}
    values.pop("schema", None)
    hardware = Hardware(**values)
    _check_whole(hardware, nodes, stem)
    return hardware


def _check_whole(hardware: Hardware, nodes: dict[str, Node], stem: str) -> None:
    """Report what only several fields together show."""
    if stem and hardware.name and hardware.name != stem:
        nodes["name"].problem(f"{short(hardware.name)} is not the name of the file; write {stem}")
    visible = hardware.visible_capacity
    if visible is not None and visible.value > hardware.capacity.value:
        nodes["visible_capacity"].problem("is larger than capacity; check both")
    for index, alias in enumerate(hardware.aliases):
        if alias == hardware.name or alias in hardware.aliases[:index]:
            nodes["aliases"].items()[index].problem(f"{short(alias)} is there already; remove it")


def _name(node: Node, _: Field | None = None) -> str:
    name = node.text()
    if name and not re.fullmatch(KEBAB_CASE[1:-1], name):
        node.problem(f"{short(name)} is not in kebab-case; write it like h100-sxm5-80gb")
        return ""
    return name


def _peaks(node: Node, field: Field) -> dict[str, Cited]:
    peaks: dict[str, Cited] = {}
    for name, value in node.entries().items():
        if name in PEAK_FORMATS:
            peaks[name] = _cited(value, field)
        else:
            value.problem(f"is not a number format; {nearest(name, PEAK_FORMATS)}")
    return peaks


def _cited(node: Node, field: Field) -> Cited:
    quantity = field.quantity
    if quantity is None:  # pragma: no cover - a slip in the table above
        raise AssertionError(field)
    return cited(node, quantity)


_READERS: dict[Form, Any] = {
    "version": lambda node, _: node.scalar(),
    "name": _name,
    "names": lambda node, _: tuple(_name(item) for item in node.items()),
    "text": lambda node, _: node.text(),
    "texts": lambda node, _: tuple(item.text() for item in node.items()),
    "cited": _cited,
    "peaks": _peaks,
}


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
