"""``rooflinekit validate``."""

from __future__ import annotations

from pathlib import Path

import click

from rooflinekit.cli.common import JSON, print_json, show
from rooflinekit.errors import CheckFailed


@click.command("validate")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@click.option("--calibration", type=click.Path(path_type=Path), help="Calibration to test against FILES.")
@click.option("--suite", help="A shipped suite: hand-values, kernels, foreign, published.")
@click.option("--full", is_flag=True, help="Suite kernels: all rows of the installed tables, not the slice.")
@JSON
def command(
    files: tuple[Path, ...],
    calibration: Path | None,
    suite: str | None,
    full: bool,  # noqa: FBT001
    as_json: bool,  # noqa: FBT001
) -> None:
    """Compare predictions with measurements that were not fitted; exit 1 where a tolerance is missed.

    FILES are what `rooflinekit bench` wrote; or name a --suite.
    """
    from rooflinekit.app import validate_files, validate_suite

    if full and suite is None:
        raise click.UsageError("--full belongs to --suite kernels")
    if bool(files) == (suite is not None):
        raise click.UsageError("give measurement files with --calibration, or one --suite")
    if suite is not None:
        if calibration is not None:
            raise click.UsageError("a suite compares with the shipped calibrations; leave out --calibration")
        report = validate_suite(suite, full=full)
    else:
        if calibration is None:
            raise click.UsageError(
                "--calibration is missing: name the file that `rooflinekit calibrate` wrote"
            )
        report = validate_files(files, calibration)
    if as_json:
        print_json(report.as_dict())
    else:
        from rooflinekit.report.validation import report_text

        show(report_text(report))
    if not report.passed:
        missed = ", ".join(f"{band.suite}, {band.band}" for band in report.bands if band.ok is False)
        raise CheckFailed(f"tolerance missed: {missed}")
