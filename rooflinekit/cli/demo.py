"""``rooflinekit demo``."""

from __future__ import annotations

import json
from pathlib import Path

import click

from rooflinekit.cli.common import console, plain, writable


@click.command("demo")
@click.option("--device", default="auto", show_default=True, type=click.Choice(["auto", "cpu", "cuda"]))
@click.option("--budget", default="quick", show_default=True, type=click.Choice(["quick", "normal", "full"]))
@click.option(
    "--out", default="rooflinekit-out", show_default=True, type=click.Path(path_type=Path), help="Folder."
)
def command(device: str, budget: str, out: Path) -> None:
    """Measure this machine, calibrate, validate, answer, draw: the whole job."""
    from rooflinekit.demo.answering import answer, summary
    from rooflinekit.demo.measuring import measure
    from rooflinekit.demo.pictures import draw
    from rooflinekit.demo.screen import closing, opening, screen
    from rooflinekit.microbench.device import open_device

    writable(out / "measurements.jsonl")
    screen_out = console()
    screen_out.print(opening(open_device(device).facts()))
    measured = measure(device, out / "measurements.jsonl", budget=budget, overwrite=True)
    found = answer(measured, out)
    (out / "summary.json").write_text(json.dumps(plain(summary(found)), indent=2), encoding="utf-8")
    pictures = draw(found, out)
    screen_out.print(screen(found))
    names = ["measurements.jsonl", "calibration.yaml", "summary.json", *(path.name for path in pictures)]
    for line in closing(str(out), names):
        screen_out.print(line)
