"""The JSON Schema of hardware files, for completion and checks in an editor.

Made from the table that the loader reads by; ``hardware/schema/hardware.schema.json`` is its committed
copy, and a test holds the two together::

    python -c "from rooflinekit.profiles.schema import schema_text; print(schema_text(), end='')"
"""

from __future__ import annotations

import json
from typing import Any

from rooflinekit.profiles.hardware_file import FIELDS, KEBAB_CASE, PEAK_FORMATS, SCHEMA_VERSION, Field
from rooflinekit.profiles.quantity import cited_schema


def hardware_json_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of a hardware file."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "rooflinekit hardware profile",
        "description": "One device: dense peaks, one direction, one device; 1 GB is 1e9 bytes.",
        "type": "object",
        "additionalProperties": False,
        "required": [name for name, field in FIELDS.items() if field.required],
        "properties": {name: _property(field) for name, field in FIELDS.items()},
    }


def schema_text() -> str:
    """Return the schema as the text of the committed file."""
    return json.dumps(hardware_json_schema(), indent=2) + "\n"


def _property(field: Field) -> dict[str, Any]:
    text = {"type": "string", "minLength": 1}
    name = {"type": "string", "pattern": KEBAB_CASE}
    if field.form == "cited" and field.quantity is not None:
        return cited_schema(field.quantity, field.description)
    if field.form == "peaks" and field.quantity is not None:
        formats = {key: cited_schema(field.quantity, said) for key, said in PEAK_FORMATS.items()}
        shape: dict[str, Any] = {"type": "object", "additionalProperties": False, "properties": formats}
    else:
        shapes: dict[str, dict[str, Any]] = {
            "version": {"const": SCHEMA_VERSION},
            "name": name,
            "names": {"type": "array", "items": name, "uniqueItems": True},
            "text": text,
            "texts": {"type": "array", "items": text},
        }
        shape = shapes[field.form]
    return {"description": field.description, **shape}
