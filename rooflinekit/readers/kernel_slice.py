"""A small slice of the measured kernel tables that comes with the package: held-out rows to validate with.

The rows are from ``aiconfigurator-core`` (Apache-2.0, Copyright NVIDIA CORPORATION & AFFILIATES), chosen
and rearranged; the file says so in its first lines.
"""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rooflinekit.readers.kernel_tables import COLUMNS, PACKAGE, VERSION, Table

FILE = Path(__file__).resolve().parent.parent / "data" / "kernels.csv.gz"
HEADER = (
    f"# Rows of {PACKAGE} {VERSION}, systems/data, chosen and rearranged by rooflinekit.\n"
    "# Copyright (c) NVIDIA CORPORATION & AFFILIATES. Apache-2.0, https://www.apache.org/licenses/LICENSE-2.0\n"
    "# table,system,stack,version,kernel,latency in ms,values of the table's columns joined by ;\n"
)


def read_slice(path: Path = FILE) -> list[Table]:
    """Tables of the slice, one for each system, stack and kind."""
    with gzip.open(path, "rt", encoding="utf-8", newline="") as stream:
        lines = [line for line in stream if not line.startswith("#")]
    found: dict[tuple[str, str, str, str], list[dict[str, Any]]] = {}
    for name, system, stack, version, kernel, latency, values in csv.reader(lines):
        record: dict[str, Any] = dict(zip(COLUMNS[name], map(_value, values.split(";")), strict=True))
        record |= {"kernel_source": kernel, "latency": float(latency)}
        found.setdefault((name, system, stack, version), []).append(record)
    return [Table(*key, tuple(records)) for key, records in found.items()]


def _value(text: str) -> int | str:
    return int(text) if text.isdigit() else text


def write_slice(tables: Iterable[Table], path: Path = FILE) -> None:
    """Write tables as a slice; equal rows give an equal file."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for table in tables:
        for record in table.records:
            values = ";".join(str(record[name]) for name in COLUMNS[table.name])
            latency = f"{record['latency']:.6g}"
            writer.writerow(
                [
                    table.name,
                    table.system,
                    table.stack,
                    table.version,
                    record["kernel_source"],
                    latency,
                    values,
                ]
            )
    path.parent.mkdir(parents=True, exist_ok=True)
    # No time stamp and no name inside: the file depends on its rows alone.
    with path.open("wb") as raw, gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as stream:
        stream.write((HEADER + out.getvalue()).encode())
