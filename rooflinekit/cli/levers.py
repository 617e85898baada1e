"""``rooflinekit levers``."""

from __future__ import annotations

from typing import Any

import click

from rooflinekit.cli.common import ACCEPTANCE, DEVICE, HARDWARE, JSON, MODEL, print_json, show
from rooflinekit.cli.recommend import DRAFTER_HELP

FORMATS = "fp8,w8a16,w4a16"


@click.command("levers")
@MODEL
@HARDWARE
@click.option("--drafter", required=True, help=DRAFTER_HELP)
@ACCEPTANCE
@click.option("--small", help="A smaller model to serve instead.")
@click.option(
    "--formats", default=FORMATS, show_default=True, help="Number formats to quantise the target to."
)
@click.option(
    "--batch", type=float, default=32, show_default=True, help="Sequences of the second half of the table."
)
@click.option("--context", type=float, default=4096, show_default=True, help="Tokens in the KV cache.")
@click.option("--max-k", type=int, default=16, show_default=True, help="Largest K to try.")
@DEVICE
@JSON
def command(as_json: bool, **options: Any) -> None:  # noqa: FBT001 - click passes it by name
    """Put quantisation, a smaller model and speculation in one table: what each changes, how fast it is."""
    from rooflinekit.app import levers

    found = levers(options.pop("model"), options.pop("hardware"), options.pop("drafter"), **options)
    if as_json:
        print_json(found.as_dict())
        return
    from rooflinekit.report.levers import levers_text

    show(levers_text(found))
