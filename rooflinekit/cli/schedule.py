"""``rooflinekit schedule``."""

from __future__ import annotations

from typing import Any

import click

from rooflinekit.cli.common import ACCEPTANCE, DEVICE, DRAFTING, HARDWARE, JSON, MODEL, print_json, show
from rooflinekit.cli.recommend import DRAFTER_HELP, ENGINES


def numbers_given(context: click.Context, option: click.Parameter, text: str) -> tuple[float, ...]:  # noqa: ARG001
    """Numbers with commas, as an option takes them."""
    try:
        found = tuple(float(part) for part in text.split(",") if part.strip())
    except ValueError as error:
        raise click.BadParameter(f"{text!r} is not a list of numbers; write 1,8,64") from error
    if not found:
        raise click.BadParameter("it is empty; write 1,8,64")
    return found


@click.command("schedule")
@MODEL
@HARDWARE
@click.option("--drafter", required=True, help=DRAFTER_HELP)
@ACCEPTANCE
@click.option(
    "--batches",
    "batch",
    default="1,2,4,8,16,32,64,128,256",
    show_default=True,
    callback=numbers_given,
    help="Batches of the table.",
)
@click.option(
    "--contexts",
    "context",
    default="512,2048,8192,32768",
    show_default=True,
    callback=numbers_given,
    help="Contexts of the table.",
)
@click.option("--max-k", type=int, default=16, show_default=True, help="Largest K to try.")
@DRAFTING
@DEVICE
@click.option("--engine", type=click.Choice(ENGINES), help="Print the options of this engine only.")
@JSON
def command(as_json: bool, engine: str | None, **options: Any) -> None:  # noqa: FBT001
    """Best K over batch and context, and K by batch as engines take it."""
    from rooflinekit.app import schedule

    model, hardware = options.pop("model"), options.pop("hardware")
    ranks = f", {options['tp']} ranks" if options["tp"] > 1 else ""
    found = schedule(model, hardware, options.pop("drafter"), **options)
    if as_json:
        print_json(found.as_dict())
        return
    from rooflinekit.report.schedule import schedule_text

    show(schedule_text(found, f"{model} + {found.drafter} on {hardware}{ranks}", engine or ""))
