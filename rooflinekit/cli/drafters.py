"""``rooflinekit drafters``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from rooflinekit.cli.common import JSON, print_json, show


@click.group("drafters")
def command() -> None:
    """List drafters, show what one costs to hold for a target, check a config.json."""


COUNT = click.option(
    "--k", type=int, default=4, show_default=True, help="K of the bytes per round (or the largest it drafts)."
)


def facts(drafter: Any, llm: Any, k: int) -> dict[str, Any]:
    """Key numbers of a drafter built for a target; a round is that of one request without context."""
    from rooflinekit.comparison import plan_bytes

    count = min(k, drafter.max_k or k)
    plan = drafter.plan(k=float(count), batch=1.0, context=0.0)
    return {
        "name": drafter.name,
        "title": drafter.title,
        "target": llm.name,
        "serial_passes": drafter.serial_passes,
        "max_k": drafter.max_k,
        "k_rule": drafter.k_rule,
        "own_params": drafter.own_params,
        "memory_bytes": float(drafter.memory_bytes(batch=1.0, context=0.0)),
        "k": count,
        "bytes_per_round": float(plan_bytes(plan)),
        "reason": None,
    }


def build(spec: str, model: str, k: int) -> dict[str, Any]:
    """Build a drafter for a target in bf16 and describe it."""
    from rooflinekit.drafting_options import make_drafter
    from rooflinekit.precision import precision
    from rooflinekit.readers.models import find_llm
    from rooflinekit.resolve import number
    from rooflinekit.target import Target

    number(k, "--k", 1, 1024)
    llm = find_llm(model)
    return facts(make_drafter(spec, Target(llm, precision("bf16"))), llm, k)


@command.command("list")
@click.option(
    "--model", default="llama-3.1-8b", show_default=True, help="Target that the shapes are taken from."
)
@COUNT
@JSON
def list_(model: str, k: int, as_json: bool) -> None:  # noqa: FBT001
    """List the drafters, the shape each takes for a target, and what a round moves."""
    from rooflinekit.drafters import BUILDERS, CARRIED
    from rooflinekit.errors import ModelError

    rows = [build(name, model, k) for name in ("small-lm:llama-3.2-1b", *BUILDERS)]
    for name in CARRIED:
        try:
            rows.append(build(name, model, k))
        except ModelError as error:
            rows.append(
                dict.fromkeys(rows[0]) | {"name": name, "target": rows[0]["target"], "reason": str(error)}
            )
    if as_json:
        print_json(rows)
        return
    from rooflinekit.report.drafters import drafters_table

    show(drafters_table(rows))


@command.command("show")
@click.argument("name")
@click.option(
    "--model", default="llama-3.1-8b", show_default=True, help="Target that the shape is taken from."
)
@COUNT
@JSON
def show_(name: str, model: str, k: int, as_json: bool) -> None:  # noqa: FBT001
    """Show one drafter, by name or config.json."""
    row = build(name, model, k)
    if as_json:
        print_json(row)
        return
    from rooflinekit.report.drafters import drafters_table

    show(drafters_table([row]))


@command.command("check")
@click.argument("file", type=click.Path(path_type=Path))
def check(file: Path) -> None:
    """Check that a drafter's config.json can be read, and say what it is."""
    from rooflinekit.readers.drafter_config import drafter_shape, k_words
    from rooflinekit.readers.hf_config import read_config

    kind, shape = drafter_shape(read_config(file), str(file))
    words = ", ".join(f"{key} {value}" for key, value in shape.items())
    click.echo(f"{file}: {kind}, {words}; {k_words(kind, shape)}")
