"""``rooflinekit models``."""

from __future__ import annotations

from typing import Any

import click

from rooflinekit.cli.common import JSON, print_json, show


@click.group("models")
def command() -> None:
    """List, show and check models."""


def facts(name: str) -> dict[str, Any]:
    """Key numbers of a model, in its own number format."""
    from rooflinekit.precision import precision
    from rooflinekit.prediction import streamed_bytes_per_step
    from rooflinekit.readers.models import find_llm

    llm = find_llm(name)
    numbers = precision(llm.dtype)
    return {
        "name": llm.name,
        "dtype": llm.dtype,
        "layers": llm.layers,
        "hidden": llm.hidden,
        "vocab": llm.vocab,
        "total_params": llm.total_params,
        "active_params": llm.active_params,
        "streamed_bytes_per_step": streamed_bytes_per_step(llm, numbers),
        "kv_bytes_per_token": llm.kv_elements_per_token() * numbers.bytes_per_kv,
        "max_context": llm.max_context,
    }


@command.command("list")
@JSON
def list_(as_json: bool) -> None:  # noqa: FBT001
    """List the presets."""
    from rooflinekit.readers.models import model_names

    rows = [facts(name) for name in model_names()]
    if as_json:
        print_json(rows)
        return
    from rooflinekit.report.listing import models_table

    show(models_table(rows))


@command.command("show")
@click.argument("name")
@JSON
def show_(name: str, as_json: bool) -> None:  # noqa: FBT001
    """Show a model: parameters, streamed bytes, cache per token, by class of weights."""
    row = facts(name)
    if as_json:
        print_json(row)
        return
    from rooflinekit.readers.models import find_llm
    from rooflinekit.report.listing import model_text

    show(model_text(find_llm(name), row))


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
