"""Ceilings inside a calibration file: the same numbers, read and written."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

from rooflinekit.ceiling import Ceiling, ColumnFactors, RowFactors, Staircase
from rooflinekit.profiles.node import Node
from rooflinekit.profiles.quantity import Quantity

T0 = Quantity("s", 0.0, 1.0, "2.1 us")
EFFICIENCY = Quantity("", 1e-4, 2.0, "0.85")
SHARPNESS = Quantity("", 1.0, 1e6, "2.4")
TILE = Quantity("", 1.0, 4096.0, "16", whole=True)
PASS_ROWS = Quantity("", 1.0, 1e9, "3", whole=True)
ROWS = Quantity("", 1e-3, 1e9, "16")
READS = Quantity("", 1e-6, 1e9, "1.3")
FILL = Quantity("", 0.0, 1e9, "0.4")
FACTOR = Quantity("", 0.01, 100.0, "1.05")


def six(value: float) -> float:
    """Round to six digits: what a file keeps."""
    return float(f"{value:.6g}")


def number(node: Node, quantity: Quantity) -> float:
    """Read a number; a faulty one is reported and comes back as 0."""
    value = quantity.read(node)
    return 0.0 if math.isnan(value) else value


def flag(node: Node | None, *, default: bool) -> bool:
    """Read true or false; the default where there is nothing."""
    return default if node is None else node.choice(("true", "false"), "a yes or no") == "true"


def read_ceiling(
    node: Node, staircase: Node | None = None, factors: Node | None = None, columns: Node | None = None
) -> Ceiling:
    """Read a ceiling, with its measured tables where it has any."""
    fields = node.mapping(
        required=("t0", "memory_efficiency", "compute_efficiency"),
        optional=(
            "p",
            "tile",
            "rows_per_pass",
            "inner",
            "group",
            "memory_fill",
            "compute_fill",
            "crowded",
            "one_shot",
            "other",
        ),
    )

    def of(name: str, quantity: Quantity, default: float) -> float:
        return number(fields[name], quantity) if name in fields else default

    return Ceiling(
        t0_s=number(fields["t0"], T0),
        memory_efficiency=number(fields["memory_efficiency"], EFFICIENCY) or 1.0,
        compute_efficiency=number(fields["compute_efficiency"], EFFICIENCY) or 1.0,
        p=of("p", SHARPNESS, math.inf),
        tile=of("tile", TILE, 1.0),
        rows_per_pass=of("rows_per_pass", PASS_ROWS, math.inf),
        staircase=_staircase(staircase) if staircase is not None else None,
        inner_s=of("inner", T0, 0.0),
        group_s=of("group", T0, 0.0),
        memory_fill=of("memory_fill", FILL, 0.0),
        compute_fill=of("compute_fill", FILL, 0.0),
        factors=_factors(factors) if factors is not None else None,
        columns=_columns(columns) if columns is not None else None,
        crowded=of("crowded", FACTOR, 1.0),
        one_shot=flag(fields.get("one_shot"), default=False),
        other=read_ceiling(fields["other"]) if "other" in fields else None,
    )


def _staircase(node: Node) -> Staircase:
    fields = node.mapping(required=("rows", "reads"), optional=("breaks",))
    rows, reads = _table(node, fields["rows"], fields["reads"], READS)
    breaks = tuple(number(item, ROWS) for item in fields["breaks"].items()) if "breaks" in fields else ()
    return Staircase(rows, reads, breaks)


def _factors(node: Node) -> RowFactors:
    fields = node.mapping(required=("rows", "factors"))
    return RowFactors(*_table(node, fields["rows"], fields["factors"], FACTOR))


def _columns(node: Node) -> ColumnFactors:
    fields = node.mapping(required=("last_rows", "columns", "factors"), optional=("between",))
    last, columns = (
        tuple(number(item, ROWS) for item in fields[name].items()) for name in ("last_rows", "columns")
    )
    for name, values in (("last_rows", last), ("columns", columns)):
        if any(b <= a for a, b in pairwise(values)):
            fields[name].problem("do not rise; sort them")
    factors = tuple(
        tuple(number(item, FACTOR) for item in band.items()) for band in fields["factors"].items()
    )
    if len(factors) != len(last) + 1 or any(len(band) != len(columns) for band in factors) or not columns:
        fields["factors"].problem(
            f"must be {len(last) + 1} lists (one more than last_rows) of {len(columns)} factors, one for each column"
        )
    return ColumnFactors(last, columns, factors, flag(fields.get("between"), default=True))


def _table(
    node: Node, keys: Node, items: Node, quantity: Quantity
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    rows = tuple(number(item, ROWS) for item in keys.items())
    values = tuple(number(item, quantity) for item in items.items())
    if len(rows) != len(values) or not rows:
        what = items.path.rpartition(".")[2]
        node.problem(f"has {len(rows)} rows and {len(values)} {what}; give one cost per row count")
    elif any(b <= a for a, b in pairwise(rows)):
        keys.problem("do not rise; sort them")
    return rows, values


def ceiling_data(ceiling: Ceiling) -> dict[str, Any]:
    """A ceiling as the content of its field, without its tables."""
    data: dict[str, Any] = {
        "t0": f"{six(float(ceiling.t0_s) * 1e6):g} us",
        "memory_efficiency": six(float(ceiling.memory_efficiency)),
        "compute_efficiency": six(float(ceiling.compute_efficiency)),
    }
    if math.isfinite(ceiling.p):
        data["p"] = six(ceiling.p)
    if ceiling.tile != 1.0:
        data["tile"] = int(ceiling.tile)
    if math.isfinite(ceiling.rows_per_pass):
        data["rows_per_pass"] = int(ceiling.rows_per_pass)
    for name, value in (("inner", ceiling.inner_s), ("group", ceiling.group_s)):
        if value:
            data[name] = f"{six(value * 1e9):g} ns"
    for name, usual in (("memory_fill", 0.0), ("compute_fill", 0.0), ("crowded", 1.0)):
        value = getattr(ceiling, name)
        if value != usual:
            data[name] = six(value)
    if ceiling.one_shot:
        data["one_shot"] = True
    if ceiling.other is not None:
        data["other"] = ceiling_data(ceiling.other)
    return data


def tables_data(ceiling: Ceiling) -> dict[str, Any]:
    """Measured tables of a ceiling as the content of their fields."""
    data: dict[str, Any] = {}
    if ceiling.staircase is not None:
        stairs = ceiling.staircase
        data["staircase"] = {"rows": list(stairs.rows), "reads": [six(r) for r in stairs.reads]}
        if stairs.breaks:
            data["staircase"]["breaks"] = list(stairs.breaks)
    if ceiling.factors is not None:
        whole = [int(row) if row == int(row) else row for row in ceiling.factors.rows]
        data["factors"] = {"rows": whole, "factors": [float(f"{f:.4g}") for f in ceiling.factors.factors]}
    if ceiling.columns is not None:
        table = ceiling.columns
        data["columns"] = {
            "last_rows": [int(row) for row in table.last_rows],
            "columns": [int(one) for one in table.columns],
            "factors": [[float(f"{f:.4g}") for f in band] for band in table.factors],
            "between": table.between,
        }
    return data
