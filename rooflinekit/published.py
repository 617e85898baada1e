"""The shipped calibrations: made from the public kernel tables, one file for each device and stack."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from statistics import fmean

from rooflinekit.calibration import Calibration
from rooflinekit.errors import CalibrationError, ProfileError
from rooflinekit.kernel_calibration import calibrate_stack
from rooflinekit.kernel_suite import Subject, chosen_cases
from rooflinekit.profiles.calibration_file import shipped_calibration, write_calibration
from rooflinekit.profiles.library import find_hardware
from rooflinekit.readers.aiconfigurator import measurements, run_id
from rooflinekit.readers.kernel_tables import (
    DEVICES,
    PACKAGE,
    SHIPPED,
    STACKS,
    VERSION,
    Table,
    tables_of,
)

SOURCE = f"{PACKAGE} {VERSION}, Apache-2.0, NVIDIA"


def calibrate_tables(tables: Sequence[Table]) -> Calibration:
    """Calibrate a device from the tables of one stack."""
    first = tables[0]
    hardware = find_hardware(DEVICES[first.system])
    cases = [case for table in tables for case in measurements(table)]
    return calibrate_stack(
        cases,
        hardware,
        first.stack,
        name=f"{hardware.name}-{first.stack}",
        source=f"{SOURCE}; systems/data/{first.system}",
        run_ids=tuple(dict.fromkeys(run_id(table) for table in tables)),
    )


def calibrations_of(system: str, stacks: Iterable[str] = STACKS) -> list[Calibration]:
    """Calibrations of every stack of a system that could be fitted, the best measured first."""
    found = []
    for stack in stacks:
        tables = tables_of(system, stack)
        if tables:
            with suppress(CalibrationError):
                found.append(calibrate_tables(tables))
    return sorted(found, key=_rank)


ROTATING = ("vllm", "sglang")
"""Stacks timed over enough weight copies that small linears, too, came from memory."""


def _rank(calibration: Calibration) -> tuple[int, bool, float]:
    """Most kinds of work first, then those with small linears, then the least median error on held-out rows.

    Latent attention does not count: vLLM's was timed with the projections around it alone, which are other
    works here.
    """
    fits = [fit for fit in calibration.fits if fit.kind != "latent"]
    found = [fit.held_out.median_abs_error for fit in fits if fit.held_out is not None]
    return -len(fits), calibration.stack not in ROTATING, fmean(found)


def write_calibrations(
    folder: Path, written_by: str, systems: Iterable[str] = SHIPPED
) -> list[tuple[Path, Calibration]]:
    """Write the files of the systems: ``<profile>.yaml`` for the best stack, ``<profile>.<stack>.yaml`` else."""
    written = []
    for system in systems:
        for place, calibration in enumerate(calibrations_of(system)):
            ending = "" if place == 0 else f".{calibration.stack}"
            path = folder / f"{calibration.base}{ending}.yaml"
            write_calibration(calibration, path, written_by)
            if place == 0:
                # Another stack may have been the default when the folder was written last.
                (folder / f"{calibration.base}.{calibration.stack}.yaml").unlink(missing_ok=True)
            written.append((path, calibration))
    return written


def subjects_of(tables: Iterable[Table]) -> list[Subject]:
    """Shipped calibrations beside the tables of their device and stack; tables without one are passed over."""
    grouped: dict[tuple[str, str], list[Table]] = {}
    for table in tables:
        grouped.setdefault((table.system, table.stack), []).append(table)
    found = []
    for (system, stack), some in grouped.items():
        hardware = find_hardware(DEVICES[system])
        with suppress(ProfileError):
            calibration = shipped_calibration(hardware.name, stack)
            if calibration is not None:
                cases = [case for table in some for case in measurements(table)]
                found.append(Subject(calibration, hardware, cases))
    return found


def slice_tables(systems: Iterable[str] = SHIPPED) -> list[Table]:
    """Few held-out rows of every table that has a calibration, chosen by hash: what comes with the package."""
    found = []
    for system in systems:
        for stack in STACKS:
            tables = tables_of(system, stack)
            for subject in subjects_of(tables):
                kept = {case.id for case in chosen_cases(subject)}
                found += [_kept(table, kept) for table in tables]
    return [table for table in found if table.records]


def _kept(table: Table, ids: set[str]) -> Table:
    prefix = f"{run_id(table)}/{table.name} "
    return replace(table, records=tuple(r for i, r in enumerate(table.records) if f"{prefix}{i}" in ids))
