"""Drafters as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from rooflinekit.report.style import DIM, size, table


def drafters_table(found: Sequence[Mapping[str, Any]]) -> RenderableType:
    """One line per drafter: passes, K, its own weights, what a round moves; then those that cannot be used."""
    usable = [one for one in found if one["reason"] is None]
    rows = table(f"for {found[0]['target']}")
    for name in ("name", "serial passes", "K"):
        rows.add_column(name)
    for name in ("own parameters", "weights", "bytes per round"):
        rows.add_column(name, justify="right")
    rows.add_column("shape")
    for one in usable:
        rows.add_row(
            one["name"],
            one["serial_passes"],
            one["k_rule"],
            f"{one['own_params'] / 1e9:.3f} B",
            size(one["memory_bytes"]),
            f"{size(one['bytes_per_round'])} at K = {one['k']}" if one["bytes_per_round"] else "-",
            one["title"],
        )
    refused = [Text(f"{one['name']}: {one['reason']}", DIM) for one in found if one["reason"] is not None]
    return Group(*([rows] if usable else []), *refused)
