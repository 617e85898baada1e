"""``rooflinekit demo``."""

from __future__ import annotations

import json
from pathlib import Path

import click

from rooflinekit.cli.common import BUDGET, DEVICE_KIND, console, plain, writable


@click.command("demo")
@DEVICE_KIND
@BUDGET
@click.option(
    "--out",
    default="rooflinekit-out",
    show_default=True,
    type=click.Path(path_type=Path),
    help="Folder for measurements, calibration, summary and pictures.",
)
def command(device: str, budget: str, out: Path) -> None:
    """Measure this machine, calibrate, validate, answer, draw: the whole job."""
    from rooflinekit.demo.answering import answer, summary
    from rooflinekit.demo.measuring import measure
    from rooflinekit.demo.pictures import draw
    from rooflinekit.demo.screen import closing, opening, screen
    from rooflinekit.errors import CheckFailed, RooflineError
    from rooflinekit.microbench.device import open_device

    writable(out / "measurements.jsonl")
    printed = console()
    printed.print(opening(open_device(device).facts(), budget))
    measured = measure(device, out / "measurements.jsonl", budget=budget, overwrite=True)
    found = answer(measured, out)
    (out / "summary.json").write_text(json.dumps(plain(summary(found)), indent=2), encoding="utf-8")
    printed.print(screen(found))
    names = ["measurements.jsonl", "calibration.yaml", "summary.json"]
    try:
        names += [path.name for path in draw(found, out)]
    except RooflineError as error:
        # The answers stand without pictures.
        click.echo(f"no pictures: {error}", err=True)
    for line in closing(str(out), names):
        printed.print(line)
    if measured.wrong:
        raise CheckFailed(f"wrong results were computed, and not recorded, by: {', '.join(measured.wrong)}")
