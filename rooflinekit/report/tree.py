"""A draft tree as text."""

from __future__ import annotations

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from rooflinekit.report.prediction import source_line
from rooflinekit.report.style import BAD, DIM, GOOD, seconds, table, times
from rooflinekit.tree_choice import TreeChoice
from rooflinekit.tree_round import TreeAnswer

SHOWN_NODES = (1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256, 512)


def tree_text(one: TreeAnswer) -> RenderableType:
    """Verdict, sizes, named trees, flags."""
    choice, tree = one.choice, one.choice.tree
    head = Text(f"{one.model} + {one.drafter} on {one.hardware}", "bold")
    head.append(f"  ({one.dtype}, batch {one.batch:g}, context {one.context:g}, {one.acceptance})")
    lines: list[RenderableType] = [head, _verdict(choice)]
    by_level = ", ".join(str(count) for count in tree.rows_by_level)
    shape = f"{choice.acceptance_length:.2f} tokens per round of {seconds(choice.round_s)}; nodes by level {by_level}"
    if "K" in one.serial_passes:
        shape += f"; rows of the draft passes {', '.join(str(rows) for rows in tree.draft_rows)}"
    lines.append(Text(shape))
    lines.append(_sizes(one))
    lines.append(Text(choice.limit))
    near = ", ".join(f"{nodes} nodes of depth {depth}" for nodes, depth in choice.near_best[:3])
    lines.append(Text(f"within 1 %: from {near}" + (" ..." if len(choice.near_best) > 3 else ""), DIM))
    lines += [Text(f"{engine}: {text}", DIM) for engine, text in one.flags.items()]
    lines.append(
        Text(
            "engines rank nodes by the drafter's confidence, so their small trees accept less than these", DIM
        )
    )
    lines.append(Text(source_line(one.calibration, None, "assumed")))
    if not one.fits:
        lines.append(Text(f"DOES NOT FIT into {one.hardware}: {one.remedy}", BAD))
    return Group(*lines)


def _verdict(choice: TreeChoice) -> Text:
    tree = choice.tree
    words = f"{tree.nodes} nodes, depth {tree.depth}" if tree.branching > 1 else f"a chain of {tree.nodes}"
    words = words if tree.nodes else "no draft is ever accepted"
    text = Text()
    if choice.pays:
        text.append(f"Best: {words}, {times(choice.speedup)}", GOOD)
    else:
        text.append(f"No tree pays: at best {times(choice.speedup)} ({words})", BAD)
    text.append(f"   best chain: K = {choice.chain_k}, {times(choice.chain_speedup)}")
    return text


def _sizes(one: TreeAnswer) -> Table:
    """The best depth for some sizes, and the trees that were named."""
    rows = table()
    for name in ("tree", "rows", "depth", "tokens", "draft", "verify", "round cost", "speedup"):
        rows.add_column(name, justify="left" if name == "tree" else "right")
    surface = one.choice.surface
    shape = surface.speedup.shape
    draft, verify, length = (
        np.broadcast_to(values, shape)
        for values in (surface.draft_s, surface.verify_s, surface.acceptance_length)
    )
    for i, nodes in enumerate(surface.nodes):
        if nodes not in SHOWN_NODES and nodes != one.choice.tree.nodes:
            continue
        j = int(np.argmax(surface.speedup[i]))
        rows.add_row(
            f"{nodes} nodes" if nodes > 1 else "1 node",
            str(nodes + 1),
            str(surface.depths[j]),
            f"{length[i, j]:.2f}",
            seconds(draft[i, j]),
            seconds(verify[i, j]),
            f"{surface.round_s[i, j] / surface.plain_s:.2f}",
            times(float(surface.speedup[i, j])),
            style="bold" if nodes == one.choice.tree.nodes else None,
        )
    for given in one.given:
        rows.add_row(
            given.name,
            str(given.width),
            str(given.depth),
            f"{given.acceptance_length:.2f}",
            "",
            "",
            f"{given.round_cost:.2f}",
            times(given.speedup),
        )
    return rows
