"""Pictures of draft trees: ``plot tree``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from rooflinekit.cli.common import ACCEPTANCE, DEVICE, DRAFTING, HARDWARE, LOAD, MODEL, writable
from rooflinekit.cli.plotting.options import ENDINGS, OUT, save
from rooflinekit.cli.recommend import DRAFTER_HELP
from rooflinekit.cli.tree import RANKS, SIZES


@click.command("tree")
@MODEL
@HARDWARE
@click.option("--drafter", required=True, help=DRAFTER_HELP)
@click.option(
    "--kind",
    type=click.Choice(["tree", "surface"]),
    default="tree",
    show_default=True,
    help="The best tree itself, or the speedup over size and depth.",
)
@ACCEPTANCE
@RANKS
@SIZES
@LOAD
@DRAFTING
@DEVICE
@OUT
def tree(model: str, hardware: str, drafter: str, kind: str, out: Path, **options: Any) -> None:
    """The best draft tree, or the speedup over size and depth.

    As `rooflinekit tree` finds it.
    """
    from rooflinekit.app import best_tree
    from rooflinekit.plot.tree import draw_tree, tree_surface

    writable(out, ENDINGS)
    answer = best_tree(model, hardware, drafter, **options)
    ranks = f"{options['tp']} x " if options["tp"] > 1 else ""
    where = f"{answer.model} with {answer.drafter} on {ranks}{answer.hardware}"
    load = f"{answer.dtype}, batch {answer.batch:g}, context {answer.context:g}"
    subtitle = f"{where}; {answer.calibration}\n{answer.acceptance}, {load}"
    if kind == "surface":
        save(tree_surface(answer.choice, subtitle=subtitle), out)
        return
    choice = answer.choice
    title = f"Best draft tree: {choice.acceptance_length:.2f} tokens per round, {choice.speedup:.2f}x"
    save(draw_tree(choice.tree, answer.rates, title=title, subtitle=subtitle), out)


COMMANDS = (tree,)
