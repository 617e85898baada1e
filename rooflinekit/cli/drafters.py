"""``rooflinekit drafters``."""

from __future__ import annotations

from itertools import takewhile
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


FACTS = (
    "name",
    "title",
    "target",
    "serial_passes",
    "max_k",
    "k_rule",
    "own_params",
    "memory_bytes",
    "k",
    "bytes_per_round",
    "reason",
)


def refusal(name: str, llm: Any, reason: str) -> dict[str, Any]:
    """Facts of a drafter that a target cannot have."""
    return dict.fromkeys(FACTS) | {"name": name, "target": llm.name, "reason": reason}


def build(spec: str, llm: Any, k: int) -> dict[str, Any]:
    """Build a drafter for a target in the formats of its checkpoint and describe it."""
    from rooflinekit.drafting_options import make_drafter
    from rooflinekit.precision import precision
    from rooflinekit.target import Target

    numbers = precision(llm.dtype, llm.kv_dtype, llm.formats)
    return facts(make_drafter(spec, Target(llm, numbers)), llm, k)


def target_of(model: str, k: int) -> Any:
    """Check the options and find the target."""
    from rooflinekit.readers.models import find_llm
    from rooflinekit.resolve import number

    number(k, "--k", 1, 1024)
    return find_llm(model)


def family(name: str) -> str:
    """Letters that a model's name begins with."""
    return "".join(takewhile(str.isalpha, name.lower()))


def small_preset(llm: Any) -> str | None:
    """Name of a smaller preset with the target's vocabulary: its own family (padding aside) first, then any.

    Examples
    --------
    >>> from rooflinekit.readers.models import find_llm
    >>> small_preset(find_llm("qwen3-8b")), small_preset(find_llm("gpt2-large"))
    ('qwen3-0.6b', None)
    """
    from rooflinekit.drafting_options import PADDING
    from rooflinekit.readers.models import find_llm, model_names

    def kin(one: Any) -> bool:
        return family(one.name) == family(llm.name) and abs(one.vocab - llm.vocab) <= PADDING

    found = [
        one
        for one in map(find_llm, model_names())
        if (kin(one) or one.vocab == llm.vocab) and one.total_params < llm.total_params and not one.encoder
    ]
    found.sort(key=lambda one: (not kin(one), one.total_params))
    return found[0].name if found else None


@command.command("list")
@click.option(
    "--model", default="llama-3.1-8b", show_default=True, help="Target that the shapes are taken from."
)
@COUNT
@JSON
def list_(model: str, k: int, as_json: bool) -> None:  # noqa: FBT001
    """List the drafters, the shape each takes for a target, and what a round moves."""
    from rooflinekit.drafters import BUILDERS, CARRIED, WEIGHTLESS
    from rooflinekit.errors import RooflineError

    llm = target_of(model, k)
    small = small_preset(llm)
    rows = []
    if small is None:
        rows.append(
            refusal(
                "small-lm", llm, f"no smaller preset has the {llm.vocab} tokens of {llm.name}'s tokenizer"
            )
        )
    weightless = ["layer-skip:0.5" if name == "layer-skip" else name for name in WEIGHTLESS]
    for name in (*([f"small-lm:{small}"] if small else []), *BUILDERS, *CARRIED, *weightless):
        try:
            rows.append(build(name, llm, k))
        except RooflineError as error:
            rows.append(refusal(name.partition(":")[0], llm, str(error)))
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
    row = build(name, target_of(model, k), k)
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
