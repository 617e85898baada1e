"""The skeleton of a hardware file: every field with what it means, and TODO where something must be filled in.

Made from the table that the loader reads by. Loading it names every TODO that is left.
"""

from __future__ import annotations

from collections.abc import Iterator

from rooflinekit.profiles.hardware_file import FIELDS, PEAK_FORMATS, SCHEMA_VERSION, Field
from rooflinekit.profiles.node import TODO

_HEAD = """\
# yaml-language-server: $schema=schema/hardware.schema.json
# Replace every {todo}; take the # off what you know, delete what you do not. Then
#   rooflinekit hardware check {name}.yaml
# One device, dense rates, one direction of a link, 1 GB = 1e9 B (GiB is understood). kind: datasheet,
# measured, fitted or assumed. ref: document and page. A number to doubt gets `confidence: low`.
"""
_CITED = f"{{value: {TODO}, kind: datasheet, ref: {TODO}}}"
_EXAMPLES = {
    "aliases": "[short-name]",
    "driver_names": "[NVIDIA My Card]",
    "notes": '["No NVLink."]',
}


def skeleton_text(name: str) -> str:
    """Return a hardware file that :func:`~rooflinekit.profiles.hardware_file.load_hardware` refuses.

    Parameters
    ----------
    name
        Id of the device, in kebab-case.
    """
    lines = list(_lines(name))
    return _HEAD.format(todo=TODO, name=name) + "\n".join(lines) + "\n"


def _lines(name: str) -> Iterator[str]:
    for key, field in FIELDS.items():
        if field.form == "version":
            yield f"{key}: {SCHEMA_VERSION}"
        elif field.form == "name":
            yield f"{key}: {name}"
        elif field.form == "text":
            yield f"{key}: {TODO}  # {field.description}"
        elif field.form == "peaks":
            yield from ("", *_peaks(key, field))
        else:
            yield from ("", *_optional(key, field))


def _optional(key: str, field: Field) -> Iterator[str]:
    written = f" For example {field.quantity.example}." if field.quantity else ""
    yield f"# {field.description}{written}"
    yield ("" if field.required else "# ") + f"{key}: {_EXAMPLES.get(key, _CITED)}"


def _peaks(key: str, field: Field) -> Iterator[str]:
    yield f"# {field.description}"
    yield f"{key}:"
    for dtype, description in PEAK_FORMATS.items():
        yield f"  {'' if dtype == 'bf16' else '# '}{dtype}: {_CITED}  # {description}"
