"""``rooflinekit hardware``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from rooflinekit.cli.common import JSON, print_json, show, writable
from rooflinekit.errors import CheckFailed, ProfileError
from rooflinekit.hardware import Hardware

SORTS: dict[str, Callable[[Hardware], float | None]] = {
    "bandwidth": lambda one: one.bandwidth.value,
    "memory": lambda one: one.usable_bytes,
    "bf16": lambda one: one.peak["bf16"].value if "bf16" in one.peak else None,
    "fp8": lambda one: one.peak["fp8"].value if "fp8" in one.peak else None,
    "ridge": lambda one: one.ridge_tokens_by_format().get("w16a16"),
}
"""Largest first; devices without the number come last in either direction."""


@click.group("hardware")
def command() -> None:
    """List, show, check, start and detect hardware profiles."""


@command.command("list")
@click.option(
    "--sort",
    type=click.Choice([*SORTS, "name"]),
    default="bandwidth",
    show_default=True,
    help="Column to sort by, largest first; ridge is that of bf16.",
)
@click.option("--reverse", is_flag=True, help="Smallest first.")
@JSON
def list_(sort: str, reverse: bool, as_json: bool) -> None:  # noqa: FBT001
    """List every profile: bandwidth, memory, peaks, ridge."""
    found = ordered(_known(), sort, reverse=reverse)
    if as_json:
        print_json([_row(hardware) for hardware in found])
        return
    from rooflinekit.report.hardware import hardware_table

    show(hardware_table(found))


@command.command("show")
@click.argument("name")
@JSON
def show_(name: str, as_json: bool) -> None:  # noqa: FBT001
    """Show a profile with the source of every number."""
    from rooflinekit.app import load_device

    hardware, _ = load_device(name)
    if as_json:
        tokens = hardware.ridge_tokens_by_format()
        print_json({**asdict(hardware), "ridge_flop_per_byte": _ridges(hardware), "ridge_tokens": tokens})
        return
    from rooflinekit.report.hardware import hardware_text

    show(hardware_text(hardware))


@command.command("check")
@click.argument("file", type=click.Path(path_type=Path))
def check(file: Path) -> None:
    """Check a profile: its form, then whether its numbers agree with each other and with the shipped ones."""
    from rooflinekit.profiles.checks import NOTE, check_hardware
    from rooflinekit.profiles.hardware_file import load_hardware
    from rooflinekit.profiles.library import shipped_hardware

    hardware = load_hardware(file)
    findings = check_hardware(hardware, shipped_hardware())
    for finding in findings:
        click.echo(f"{file}: {finding}")
    doubtful = sum(not finding.startswith(NOTE) for finding in findings)
    if doubtful:
        raise CheckFailed(f"{doubtful} doubtful number{'s' if doubtful > 1 else ''} in {file}")
    click.echo(f"{file}: {hardware.name} is well formed and its numbers agree")


@command.command("new")
@click.argument("name")
@click.option("--out", type=click.Path(path_type=Path), help="File to write; NAME.yaml when not given.")
def new(name: str, out: Path | None) -> None:
    """Write a commented skeleton of a profile, to be filled in."""
    from rooflinekit.profiles.hardware_file import KEBAB_CASE
    from rooflinekit.profiles.library import hardware_aliases, hardware_names
    from rooflinekit.profiles.skeleton import skeleton_text

    if not re.fullmatch(KEBAB_CASE[1:-1], name) or len(name) > 60:
        raise ProfileError(f"hardware name {name!r:.70} is not in kebab-case; write it like h100-sxm5-80gb")
    taken = name if name in hardware_names() else hardware_aliases().get(name)
    if taken:
        raise ProfileError(f"hardware name {name!r} is taken by {taken}; choose another name")
    path = out or Path(f"{name}.yaml")
    if path.exists():
        raise ProfileError(f"{path} exists and is left as it is; choose another --out")
    writable(path, (".yaml", ".yml"))
    with path.open("x", encoding="utf-8") as file:
        file.write(skeleton_text(name))
    click.echo(f"{path}: fill in every TODO, then `rooflinekit hardware check {path}`")


@command.command("detect")
@JSON
def detect(as_json: bool) -> None:  # noqa: FBT001
    """Name the profile that fits this machine's GPU, and say what differs."""
    from rooflinekit.microbench.inventory import gpu_facts
    from rooflinekit.profiles.detect import match

    known = _known()
    found = [(facts, match(facts, known)) for facts in gpu_facts()]
    if as_json:
        print_json([_found(facts, fits) for facts, fits in found])
        return
    if not found:
        click.echo("no GPU found: torch and nvidia-smi see none. For the CPU: `rooflinekit demo` measures it")
    for index, (facts, fits) in enumerate(found):
        for line in detected_lines(facts, fits):
            click.echo(f"GPU {index}: {line}")


def _known() -> list[Hardware]:
    from rooflinekit.profiles.library import known_hardware

    found, faulty = known_hardware()
    for line in faulty:
        click.echo(f"warning: {line}", err=True)
    return found


@command.command("schema")
def schema() -> None:
    """Print the JSON Schema of a profile, for editors."""
    from rooflinekit.profiles.schema import schema_text

    click.echo(schema_text(), nl=False)


def ordered(found: Iterable[Hardware], sort: str, *, reverse: bool) -> list[Hardware]:
    """Sort devices by a column of the list; ties by name.

    Parameters
    ----------
    found
        The devices.
    sort
        A key of :data:`SORTS`, or ``name``.
    reverse
        Smallest first; for names, from the end.
    """
    by_name = sorted(found, key=lambda one: one.name, reverse=reverse and sort == "name")
    if sort == "name":
        return by_name
    values = [(SORTS[sort](one), one) for one in by_name]
    known = [(value, one) for value, one in values if value is not None]
    known.sort(key=lambda pair: pair[0] if reverse else -pair[0])
    return [one for _, one in known] + [one for value, one in values if value is None]


def detected_lines(facts: Any, fits: Any) -> list[str]:
    """Say which profile fits a GPU, or how to get one.

    Parameters
    ----------
    facts
        What the driver says (``rooflinekit.profiles.detect.Facts``).
    fits
        What was found (``rooflinekit.profiles.detect.Match``).
    """
    if fits.profile is None:
        similar = f" (similar in name, not the same part: {', '.join(fits.similar)})" if fits.similar else ""
        return [
            f"{facts.name} has no profile{similar}",
            "measure it with `rooflinekit demo`, or start one with `rooflinekit hardware new NAME`",
        ]
    agrees = [] if fits.differences else ["what the driver tells agrees with the profile"]
    return [
        f"{facts.name}: --hardware {fits.profile.name} ({fits.profile.title})",
        *fits.differences,
        *agrees,
    ]


def _found(facts: Any, fits: Any) -> dict[str, Any]:
    return {
        **asdict(facts),
        "profile": fits.profile.name if fits.profile else None,
        "differences": list(fits.differences),
        "similar": list(fits.similar),
    }


def _ridges(hardware: Hardware) -> dict[str, float]:
    return {dtype: hardware.ridge_flop_per_byte(dtype) for dtype in hardware.peak}


def _row(hardware: Hardware) -> dict[str, Any]:
    return {
        "name": hardware.name,
        "aliases": list(hardware.aliases),
        "title": hardware.title,
        "vendor": hardware.vendor,
        "architecture": hardware.architecture,
        "bandwidth_bytes_per_s": hardware.bandwidth.value,
        "memory_capacity_bytes": hardware.usable_bytes,
        "peak_flop_per_s": {dtype: cited.value for dtype, cited in hardware.peak.items()},
        "ridge_flop_per_byte": _ridges(hardware),
        "ridge_tokens": hardware.ridge_tokens_by_format(),
        "low_confidence": hardware.doubtful(),
    }
