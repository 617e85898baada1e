"""``rooflinekit models``."""

from __future__ import annotations

from typing import Any

import click

from rooflinekit.cli.common import JSON, options, print_json, show

FORMATS = options(
    click.option(
        "--dtype", default="auto", show_default=True, help="Number format of the weights; auto: the config's."
    ),
    click.option("--kv-dtype", default="auto", show_default=True, help="Number format of the KV cache."),
)


@click.group("models")
def command() -> None:
    """List, show and check models."""


def facts(name: str, dtype: str = "auto", kv_dtype: str = "auto", context: float = 4096) -> dict[str, Any]:
    """Key numbers of a model, in its own number formats unless others are named."""
    from rooflinekit.precision import precision
    from rooflinekit.readers.models import find_llm, find_warnings
    from rooflinekit.report.models import model_facts
    from rooflinekit.resolve import number

    number(context, "--context", 0, 1e8)
    llm = find_llm(name)
    kv = llm.kv_dtype if kv_dtype == "auto" else kv_dtype
    own = dtype == "auto"
    numbers = precision(llm.dtype if own else dtype, kv, llm.formats if own else None)
    return {**model_facts(llm, numbers, float(context)), "warnings": find_warnings(name)}


@command.command("list")
@JSON
def list_(as_json: bool) -> None:  # noqa: FBT001
    """List the presets."""
    from rooflinekit.readers.models import model_names

    rows = [facts(name) for name in model_names()]
    if as_json:
        print_json([{key: row[key] for key in row if key not in ("breakdown", "mixers")} for row in rows])
        return
    from rooflinekit.report.models import models_table

    show(models_table(rows))


@command.command("show")
@click.argument("name")
@FORMATS
@click.option("--context", type=float, default=4096, show_default=True, help="Tokens in the KV cache.")
@JSON
def show_(name: str, dtype: str, kv_dtype: str, context: float, as_json: bool) -> None:  # noqa: FBT001
    """Show a model: parameters, bytes and FLOPs by class of weights, cache and states by kind of layer."""
    row = facts(name, dtype, kv_dtype, context)
    if as_json:
        print_json(row)
        return
    from rooflinekit.report.models import model_text

    show(model_text(row))


@command.command("check")
@click.argument("file")
def check(file: str) -> None:
    """Check that a config.json can be read, and say what it is."""
    row = facts(file)
    total, active = row["total_params"] / 1e9, row["active_params"] / 1e9
    used = f", {active:.2f} B active" if active < total else ""
    click.echo(
        f"{file}: {row['layers']} layers of width {row['hidden']}, {total:.2f} B parameters{used}, {row['dtype']}"
    )
    for text in row["warnings"]:
        click.echo(f"warning: {text}", err=True)
