"""``rooflinekit recommend``."""

from __future__ import annotations

from typing import Any

import click

from rooflinekit.cli.common import ACCEPTANCE, DEVICE, DRAFTING, HARDWARE, JSON, LOAD, MODEL, print_json, show

ENGINES = ("vllm", "sglang", "tensorrt-llm", "llama.cpp", "transformers")
DRAFTER_HELP = "eagle3, dflash, dspark, mtp ..., small-lm:MODEL (see `drafters list`), or its config.json."


@click.command("recommend")
@MODEL
@HARDWARE
@click.option("--drafter", required=True, help=DRAFTER_HELP)
@ACCEPTANCE
@LOAD
@click.option("--max-k", type=int, default=16, show_default=True, help="Largest K to try.")
@click.option("--k", type=int, help="Judge this K instead of the best.")
@DRAFTING
@click.option("--allow-oversize", is_flag=True, help="Answer even where it does not fit into memory.")
@DEVICE
@click.option("--engine", type=click.Choice(ENGINES), help="Print the options of this engine only.")
@JSON
def command(as_json: bool, engine: str | None, **options: Any) -> None:  # noqa: FBT001 - click passes it by name
    """Say whether speculation pays, with which K, and what eats the gain."""
    from rooflinekit.app import outlook, recommend

    asked = [options.pop(name) for name in ("model", "hardware", "drafter")]
    answer = recommend(*asked, **options)
    options.pop("allow_oversize")
    around = outlook(*asked, **options)
    if as_json:
        print_json(answer.as_dict() | around.as_dict())
        return
    from rooflinekit.report.recommendation import recommendation_text

    show(recommendation_text(answer, around, engine or ""))
