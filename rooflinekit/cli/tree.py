"""``rooflinekit tree``."""

from __future__ import annotations

from typing import Any

import click

from rooflinekit.cli.common import (
    ACCEPTANCE,
    DEVICE,
    DRAFTING,
    HARDWARE,
    JSON,
    LOAD,
    MODEL,
    options,
    print_json,
    show,
)
from rooflinekit.cli.recommend import DRAFTER_HELP

RANKS = options(
    click.option(
        "--rank-decay",
        type=float,
        default=0.55,
        show_default=True,
        help="How often the next best candidate of a node is accepted, over the better one, once that was refused.",
    ),
    click.option(
        "--rank-accuracies",
        help="Accuracies by head and rank, in place of a chain's acceptance: medusa-vicuna-7b, or a CSV.",
    ),
)

SIZES = options(
    click.option("--max-nodes", type=int, default=64, show_default=True, help="Most drafted nodes to try."),
    click.option("--max-depth", type=int, default=8, show_default=True, help="Most levels to try."),
)

TREE = options(
    RANKS,
    click.option(
        "--tree",
        "trees",
        multiple=True,
        help="A tree to judge as well: eagle-mc-sim-7b-63, medusa-mc-sim-7b-63 ..., a file of paths, or "
        "STEPS,TOPK,TOKENS as SGLang takes them.",
    ),
    SIZES,
)


@click.command("tree")
@MODEL
@HARDWARE
@click.option("--drafter", required=True, help=DRAFTER_HELP)
@ACCEPTANCE
@TREE
@LOAD
@DRAFTING
@DEVICE
@JSON
def command(as_json: bool, **options: Any) -> None:  # noqa: FBT001 - click passes it by name
    """Find the draft tree with the highest speedup.

    The acceptance is that of a chain; other candidates of a node follow by --rank-decay.
    """
    from rooflinekit.app import best_tree

    asked = [options.pop(name) for name in ("model", "hardware", "drafter")]
    answer = best_tree(*asked, **options)
    if as_json:
        print_json(answer.as_dict())
        return
    from rooflinekit.report.tree import tree_text

    show(tree_text(answer))
