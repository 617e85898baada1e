"""Drafters as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import RenderableType

from rooflinekit.report.style import size, table


def drafters_table(found: Sequence[Mapping[str, Any]]) -> RenderableType:
    """One line per drafter."""
    rows = table(f"for {found[0]['target']}")
    rows.add_column("name")
    rows.add_column("serial passes")
    rows.add_column("largest K", justify="right")
    rows.add_column("weights", justify="right")
    rows.add_column("shape")
    for one in found:
        largest = str(one["max_k"]) if one["max_k"] else "any"
        rows.add_row(one["name"], one["serial_passes"], largest, size(one["memory_bytes"]), one["title"])
    return rows
