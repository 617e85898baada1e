"""``rooflinekit calibrate``."""

from __future__ import annotations

from pathlib import Path

import click

from rooflinekit.cli.common import JSON, print_json, show, writable


@click.command("calibrate")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--base", default="auto", show_default=True, help="Profile to lie over; auto: a profile of this machine."
)
@click.option("--name", help="Name of the calibration.")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="YAML file to write.")
@click.option("--overwrite", is_flag=True, help="Replace an existing file.")
@JSON
def command(
    files: tuple[Path, ...],
    base: str,
    name: str | None,
    out: Path,
    overwrite: bool,  # noqa: FBT001
    as_json: bool,  # noqa: FBT001
) -> None:
    """Fit ceilings to measurements; the datasheet profile is never edited."""
    from dataclasses import asdict

    from rooflinekit import __version__
    from rooflinekit.app import calibrate
    from rooflinekit.profiles.calibration_file import write_calibration

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
