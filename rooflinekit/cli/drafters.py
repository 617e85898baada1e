"""``rooflinekit drafters``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from rooflinekit.cli.common import JSON, print_json, show


@click.group("drafters")
def command() -> None:
    """List drafters, show what one costs to hold for a target, check a config.json."""


def facts(drafter: Any, llm: Any) -> dict[str, Any]:
    """Key numbers of a drafter built for a target."""
    return {
        "name": drafter.name,
        "title": drafter.title,
        "target": llm.name,
        "serial_passes": drafter.serial_passes,
        "max_k": drafter.max_k,
        "memory_bytes": float(drafter.memory_bytes(batch=1.0, context=0.0)),
    }


def build(spec: str, model: str) -> dict[str, Any]:
    """Build a drafter for a target in bf16 and describe it."""
    from rooflinekit.drafting_options import make_drafter
    from rooflinekit.precision import precision
    from rooflinekit.readers.models import find_llm
    from rooflinekit.target import Target

    llm = find_llm(model)
    return facts(make_drafter(spec, Target(llm, precision("bf16"))), llm)


@command.command("list")
@click.option(
    "--model", default="llama-3.1-8b", show_default=True, help="Target that the shapes are taken from."
)
@JSON
def list_(model: str, as_json: bool) -> None:  # noqa: FBT001
    """List the drafters and the shape each takes for a target."""
    from rooflinekit.drafters import BUILDERS

    rows = [build(name, model) for name in ("small-lm:llama-3.2-1b", *BUILDERS)]
    if as_json:
        print_json(rows)
        return
    from rooflinekit.report.listing import drafters_table

    show(drafters_table(rows))


@command.command("show")
@click.argument("name")
@click.option(
    "--model", default="llama-3.1-8b", show_default=True, help="Target that the shape is taken from."
)
@JSON
def show_(name: str, model: str, as_json: bool) -> None:  # noqa: FBT001
    """Show one drafter, by name or config.json."""
    row = build(name, model)
    if as_json:
        print_json(row)
        return
    from rooflinekit.report.listing import drafters_table

    show(drafters_table([row]))


@command.command("check")
@click.argument("file", type=click.Path(path_type=Path))
def check(file: Path) -> None:
    """Check that a drafter's config.json can be read, and say what it is."""
    from rooflinekit.readers.drafter_config import drafter_shape
    from rooflinekit.readers.hf_config import read_config

    kind, shape = drafter_shape(read_config(file), str(file))
    click.echo(f"{file}: {kind}, " + ", ".join(f"{key} {value}" for key, value in shape.items()))
