"""``rooflinekit orders``."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from rooflinekit.cli.common import DEVICE, JSON, print_json, show


@click.command("orders")
@click.option(
    "--model", default="llama-3.1-70b", show_default=True, help="Name of `models list`, or a config.json."
)
@click.option(
    "--hardware",
    default="h100-sxm",
    show_default=True,
    help="Name of `hardware list`, a YAML file, or local.",
)
@click.option("--context", type=float, default=4096, show_default=True, help="Tokens in the KV cache.")
@DEVICE
@JSON
def command(model: str, hardware: str, context: float, as_json: bool, **options: Any) -> None:  # noqa: FBT001
    """Orders of magnitude that are told about drafting, beside what comes out here."""
    from rooflinekit.hosts import NO_HOST, VLLM, host_of, with_host
    from rooflinekit.orders import orders_of_magnitude
    from rooflinekit.resolve import load_of, setup

    load_of(1, context)
    host = host_of(options.pop("host"))
    host = VLLM if host is NO_HOST else host
    ready = setup(model, hardware, **options)
    hosted = with_host(ready.machine, host)
    alone, engine = (
        orders_of_magnitude(machine, ready.target, context) for machine in (ready.machine, hosted)
    )
    if as_json:
        pairs = zip(alone, engine, strict=True)
        print_json(
            [{**asdict(one), "inside": one.inside, f"in_{host.name}": other.computed} for one, other in pairs]
        )
        return
    from rooflinekit.report.orders import orders_text

    calibration = ready.calibration.name if ready.calibration else "datasheet"
    heading = (
        f"{ready.target.llm.name} on {ready.hardware.name}, one request, {ready.target.precision.label}, "
    )
    engine_name = "in vLLM" if host is VLLM else "with --host"
    show(orders_text(alone, engine, f"{heading}context {context:g}; {calibration}", engine_name))
