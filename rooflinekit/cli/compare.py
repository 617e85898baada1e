"""``rooflinekit compare``."""

from __future__ import annotations

from typing import Any

import click

from rooflinekit.cli.common import ACCEPTANCE, DEVICE, DRAFTING, HARDWARE, JSON, LOAD, MODEL, print_json, show
from rooflinekit.cli.recommend import DRAFTER_HELP


@click.command("compare")
@MODEL
@HARDWARE
@click.option(
    "--drafters",
    required=True,
    help="Comma-separated; each may have an acceptance of its own behind @: a rate (ngram@0.3), a file or a name. "
    f"{DRAFTER_HELP}",
)
@ACCEPTANCE
@LOAD
@click.option("--max-k", type=int, default=16, show_default=True, help="Largest K to try.")
@DRAFTING
@DEVICE
@JSON
def command(as_json: bool, drafters: str, **options: Any) -> None:  # noqa: FBT001 - click passes it by name
    """Put drafters side by side, at one acceptance for all or at their own."""
    from rooflinekit.app import compare

    names = [name.strip() for name in drafters.split(",") if name.strip()]
    if not names:
        raise click.UsageError("--drafters is empty; write for example --drafters eagle3,dflash")
    load = f"batch {options['batch']:g}, context {options['context']:g}"
    load += f", {options['tp']} ranks" if options["tp"] > 1 else ""
    rows = compare(options.pop("model"), options.pop("hardware"), names, **options)
    if as_json:
        print_json([row.as_dict() for row in rows])
        return
    from rooflinekit.report.comparison import comparison_text

    show(comparison_text(rows, load=load))
