"""``rooflinekit calibrate``."""

from __future__ import annotations

from pathlib import Path

import click

from rooflinekit.cli.common import JSON, print_json, show, writable


@click.command("calibrate")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--source",
    type=click.Choice(["aiconfigurator"]),
    help="Instead of FILES: the public kernel tables; --out is then the folder of the shipped calibrations.",
)
@click.option(
    "--slice", "slice_file", type=click.Path(path_type=Path), help="With --source: write the slice, too."
)
@click.option(
    "--base",
    default="auto",
    show_default=True,
    help="Hardware profile that is refined; auto: that of this machine, or a new one.",
)
@click.option("--name", help="Name of the calibration; by default the profile's and the date.")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="YAML file to write, or folder.")
@click.option("--overwrite", is_flag=True, help="Replace an existing file.")
@JSON
def command(
    files: tuple[Path, ...],
    source: str | None,
    slice_file: Path | None,
    base: str,
    name: str | None,
    out: Path,
    overwrite: bool,  # noqa: FBT001
    as_json: bool,  # noqa: FBT001
) -> None:
    """Fit ceilings to measurements; the datasheet profile is never edited.

    FILES are what `rooflinekit bench` wrote.
    """
    from dataclasses import asdict

    from rooflinekit import __version__
    from rooflinekit.app import calibrate
    from rooflinekit.profiles.calibration_file import write_calibration

    if source is None and slice_file is not None:
        raise click.UsageError("--slice belongs to --source")
    if bool(files) == (source is not None):
        raise click.UsageError("give measurement files, or --source for the public kernel tables")
    if source is not None:
        if base != "auto" or name is not None:
            raise click.UsageError("--source writes every shipped calibration; leave out --base and --name")
        _published(out, slice_file, f"rooflinekit {__version__}")
        return
    writable(out, (".yaml", ".yml"), overwrite=overwrite)
    calibration = calibrate(files, base=base, name=name)
    write_calibration(calibration, out, f"rooflinekit {__version__}")
    if as_json:
        print_json(asdict(calibration))
        return
    from rooflinekit.report.validation import calibration_text, contended_line

    show(calibration_text(calibration), contended_line(contended=calibration.contended))
    use = f"--hardware {out}" if calibration.profile else f"--hardware {calibration.base} --calibration {out}"
    click.echo(f"wrote {out}; use it with {use}")


def _published(folder: Path, slice_file: Path | None, written_by: str) -> None:
    """Write the shipped calibrations, and the slice of rows that the suite compares them with."""
    from rooflinekit.published import slice_tables, write_calibrations
    from rooflinekit.readers.kernel_slice import write_slice

    for path, calibration in write_calibrations(folder, written_by):
        kinds = ", ".join(f"{fit.kind} {fit.dtype}".removesuffix(" *") for fit in calibration.fits)
        click.echo(f"wrote {path}: {kinds}")
    if slice_file is not None:
        write_slice(slice_tables(), slice_file)
        click.echo(f"wrote {slice_file}")
