"""``rooflinekit hardware``."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from rooflinekit.cli.common import JSON, print_json, show
from rooflinekit.errors import CheckFailed


@click.group("hardware")
def command() -> None:
    """List, show and check hardware profiles."""


@command.command("list")
@JSON
def list_(as_json: bool) -> None:  # noqa: FBT001
    """List every profile: bandwidth, peak, ridge, memory."""
    from rooflinekit.profiles.library import find_hardware, hardware_names

    found = [find_hardware(name) for name in hardware_names()]
    if as_json:
        print_json([_row(hardware) for hardware in found])
        return
    from rooflinekit.report.listing import hardware_table

    show(hardware_table(found))


@command.command("show")
@click.argument("name")
@JSON
def show_(name: str, as_json: bool) -> None:  # noqa: FBT001
    """Show a profile with the source of every number."""
    from rooflinekit.app import load_device

    hardware, _ = load_device(name)
    if as_json:
        print_json({**asdict(hardware), "ridge_flop_per_byte": _ridges(hardware)})
        return
    from rooflinekit.report.listing import hardware_text

    show(hardware_text(hardware))


@command.command("check")
@click.argument("file", type=click.Path(path_type=Path))
def check(file: Path) -> None:
    """Check a profile: the file's form, then whether its numbers agree with each other."""
    from rooflinekit.profiles.checks import check_hardware
    from rooflinekit.profiles.hardware_file import load_hardware

    hardware = load_hardware(file)
    findings = check_hardware(hardware)
    for finding in findings:
        click.echo(f"{file}: {finding}")
    if findings:
        raise CheckFailed(f"{len(findings)} doubtful numbers in {file}")
    click.echo(f"{file}: {hardware.name} is well formed and its numbers agree")


@command.command("schema")
def schema() -> None:
    """Print the JSON Schema of a profile, for editors."""
    from rooflinekit.profiles.schema import schema_text

    click.echo(schema_text(), nl=False)


def _ridges(hardware: Any) -> dict[str, float]:
    return {dtype: hardware.ridge_flop_per_byte(dtype) for dtype in hardware.peak}


def _row(hardware: Any) -> dict[str, Any]:
    return {
        "name": hardware.name,
        "aliases": list(hardware.aliases),
        "title": hardware.title,
        "bandwidth_bytes_per_s": hardware.bandwidth.value,
        "memory_capacity_bytes": hardware.usable_bytes,
        "peak_flop_per_s": {dtype: cited.value for dtype, cited in hardware.peak.items()},
        "ridge_flop_per_byte": _ridges(hardware),
    }
