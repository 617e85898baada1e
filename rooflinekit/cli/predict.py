"""``rooflinekit predict``."""

from __future__ import annotations

from typing import Any

import click

from rooflinekit.cli.common import DEVICE, HARDWARE, JSON, LOAD, MODEL, print_json, show


@click.command("predict")
@MODEL
@HARDWARE
@LOAD
@click.option(
    "--width", type=float, default=1, show_default=True, help="Rows per sequence: 1 decode, K+1 verify."
)
@click.option("--prefill", is_flag=True, help="The rows are a prompt (LM head on the last one only).")
@DEVICE
@JSON
def command(as_json: bool, **options: Any) -> None:  # noqa: FBT001 - click passes it by name
    """Predict one step: its time, what takes it, which roof binds, whether it fits."""
    from rooflinekit.app import predict

    if options["prefill"] and options["width"] == 1:
        raise click.UsageError(
            "--prefill needs the length of the prompt: add --width, and --context 0 for an empty cache"
        )

    prediction = predict(options.pop("model"), options.pop("hardware"), **options)
    if as_json:
        print_json(prediction.as_dict())
        return
    from rooflinekit.report.prediction import prediction_text

    show(prediction_text(prediction))
