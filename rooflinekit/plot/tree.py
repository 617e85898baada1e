"""Draft trees drawn with what each node is worth, and the speedup over their size and depth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rooflinekit.limits import NEAR
from rooflinekit.plot.labels import Floats, Label, place
from rooflinekit.plot.style import FAINT, INK, MUTED, SMALL, axes_or_new, head, powers_of_two
from rooflinekit.tree import RankAcceptance, Tree, children_of
from rooflinekit.tree_choice import TreeChoice

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FAINTEST = 1e-3
"""Path probabilities below this are drawn alike."""

LARGEST = 330.0
SMALLEST = 12.0
"""Areas of a node that is always accepted and of one that never is, in points squared."""


def draw_tree(
    tree: Tree,
    acceptance: RankAcceptance | None = None,
    ax: Axes | None = None,
    *,
    title: str = "",
    subtitle: str = "",
) -> Axes:
    """Draw a tree from its root down; area and colour of a node are the probability that it is accepted.

    Parameters
    ----------
    tree
        The tree.
    acceptance
        Rank acceptance; without it all nodes are alike.
    ax
        Where to draw; a new figure when not given.
    title, subtitle
        Text above; by default the acceptance length. The tree in figures follows.
    """
    ax = axes_or_new(ax, (8.6, 4.6))
    chances = acceptance.path_probabilities(tree) if acceptance else None
    xs, ys = _places(tree), -np.array([0, *tree.levels], dtype=float)
    _edges(ax, tree, xs, ys, chances)
    _nodes(ax, tree, xs, ys, chances)
    _levels(ax, tree, acceptance)
    ax.grid(visible=False)
    ax.set_axis_off()
    room = 0.03 * max(1.0, float(np.ptp(xs))) + 0.4
    ax.set(xlim=(xs.min() - room, xs.max() + room), ylim=(-tree.depth - 0.45, 0.42))
    if acceptance:
        _footnote(ax, tree, acceptance)
    if acceptance and not title:
        title = f"Draft tree: {acceptance.expected(tree):.2f} tokens per round"
    head(ax, title or "Draft tree", f"{subtitle}\n{_subtitle(tree, acceptance)}".strip())
    return ax


def _subtitle(tree: Tree, acceptance: RankAcceptance | None) -> str:
    text = f"{tree.nodes} drafted nodes, {tree.width} rows in the verify, depth {tree.depth}"
    if acceptance:
        text += "; area and colour: probability that the whole path is accepted"
    return text


def _footnote(ax: Axes, tree: Tree, acceptance: RankAcceptance) -> None:
    """Say which nodes are drawn as never accepted only because nobody measured them."""
    missing = acceptance.unmeasured(tree)
    if missing:
        text = f"{missing} nodes of a rank that was never measured count as never accepted"
        ax.annotate(
            text, (1, 0), xycoords="axes fraction", ha="right", va="bottom", fontsize=SMALL, color=MUTED
        )


def _places(tree: Tree) -> Floats:
    """Horizontal places, the root first: leaves side by side, a parent above the middle of its children."""
    children, places = children_of(tree), np.zeros(tree.nodes + 1)
    following = 0.0
    # Depth first without recursion: a chain may be deeper than Python's stack.
    order, stack = [], [-1]
    while stack:
        node = stack.pop()
        order.append(node)
        stack += reversed(children.get(node, []))
    for node in order:
        if node not in children:
            places[node + 1] = following
            following += 1.0
    for node in reversed(order):
        if node in children:
            born = children[node]
            places[node + 1] = (places[born[0] + 1] + places[born[-1] + 1]) / 2
    return places


def _edges(ax: Axes, tree: Tree, xs: Floats, ys: Floats, chances: Floats | None) -> None:
    from matplotlib.collections import LineCollection

    lines = [
        [(xs[parent + 1], ys[parent + 1]), (xs[node + 1], ys[node + 1])]
        for node, parent in enumerate(tree.parents)
    ]
    widths: Any = 1.0 if chances is None else 0.6 + 3.4 * chances
    ax.add_collection(LineCollection(lines, colors="#b8b8b8", linewidths=widths, zorder=1))


def _nodes(ax: Axes, tree: Tree, xs: Floats, ys: Floats, chances: Floats | None) -> None:
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap, LogNorm

    ax.scatter(xs[:1], ys[:1], s=90, marker="s", color=INK, zorder=3, gid="root")
    ax.annotate(
        "known token",
        (xs[0], ys[0]),
        (9, 0),
        textcoords="offset points",
        va="center",
        fontsize=SMALL,
        color=MUTED,
    )
    if not tree.nodes:
        return
    if chances is None:
        ax.scatter(xs[1:], ys[1:], s=60, color="#56B4E9", edgecolors="white", zorder=3, gid="nodes")
        return
    shown = np.maximum(chances, FAINTEST)
    ax.scatter(
        xs[1:],
        ys[1:],
        s=SMALLEST + (LARGEST - SMALLEST) * chances,
        c=shown,
        cmap=ListedColormap(colormaps["YlGnBu"](np.linspace(0.18, 0.95, 256))),
        norm=LogNorm(FAINTEST, 1.0),
        edgecolors=MUTED,
        linewidths=0.6,
        zorder=3,
        gid="nodes",
    )
    _values(ax, xs, ys, chances)


def _values(ax: Axes, xs: Floats, ys: Floats, chances: Floats) -> None:
    """Probabilities that are worth reading: inside a large node, beside a smaller one."""
    for node in np.flatnonzero(chances >= 0.095):
        inside = chances[node] >= 0.28
        ax.annotate(
            f"{chances[node]:.2f}".lstrip("0"),
            (xs[node + 1], ys[node + 1]),
            (0, 0) if inside else (3 + 8 * chances[node] ** 0.5, 2),
            textcoords="offset points",
            ha="center" if inside else "left",
            va="center" if inside else "bottom",
            fontsize=SMALL - 1.5,
            color="white" if inside else INK,
            zorder=4,
        )


def _levels(ax: Axes, tree: Tree, acceptance: RankAcceptance | None) -> None:
    """At the right, per level: nodes, and how often a round gets so far."""
    survival = acceptance.survival(tree) if acceptance else None
    for level, count in enumerate(tree.rows_by_level, start=1):
        text = f"{count} node{'s' if count > 1 else ''}"
        if survival is not None:
            text += f"\nS{level} = {survival[level - 1]:.2f}"
        ax.axhline(-level, color=FAINT, lw=0.6, zorder=0)
        ax.annotate(
            text,
            (1.0, -level),
            (6, 0),
            xycoords=("axes fraction", "data"),
            textcoords="offset points",
            va="center",
            fontsize=SMALL,
            color=INK,
            annotation_clip=False,
        )


def tree_surface(choice: TreeChoice, ax: Axes | None = None, *, title: str = "", subtitle: str = "") -> Axes:
    """Draw the speedup over the number of drafted nodes and the depth, with the best tree and those near it.

    Parameters
    ----------
    choice
        From ``choose_tree``.
    ax
        Where to draw; a new figure when not given.
    title, subtitle
        Text above. What limits the best tree, and how to read the picture, follow.
    """
    from matplotlib.ticker import MaxNLocator

    ax = axes_or_new(ax)
    surface = choice.surface
    speedup = np.ma.masked_where(_same_tree(surface.acceptance_length), surface.speedup)
    nodes, depths = surface.nodes.astype(float), surface.depths.astype(float)
    _cells(ax, nodes, depths, speedup)
    near = np.array(choice.near_best, dtype=float).reshape(-1, 2)
    ax.plot(near[:, 0], near[:, 1], "o", ms=2.6, color=INK, mec="none", ls="none", gid="near best", zorder=3)
    if nodes[-1] > 8:
        ax.set_xscale("log", base=2)
        ticks = powers_of_two(nodes[0], nodes[-1])
        ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        ax.set_xticks([], minor=True)
    ax.set(
        xlabel="drafted nodes (the verify has one row more)",
        ylabel="depth, levels drafted one after the other",
    )
    ax.yaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_ylim(top=depths[-1] + 0.9)
    best = choice.tree.nodes, choice.tree.depth
    ax.plot(*best, marker="*", ms=17, color=INK, mec="white", ls="none", gid="best", zorder=4, clip_on=False)
    labels = [
        Label(float(best[0]), float(best[1]), f"{choice.speedup:.2f}x: {best[0]} nodes, depth {best[1]}", INK)
    ]
    if choice.chain_k:
        ax.plot(choice.chain_k, choice.chain_k, "D", ms=6, color=INK, mec="white", gid="chain", zorder=4)
        text = f"chain of {choice.chain_k}: {choice.chain_speedup:.2f}x"
        labels.append(Label(float(choice.chain_k), float(choice.chain_k), text, INK))
    limit = choice.limit.split(":")[0].split(";")[0]
    said = f"{limit}; white: no deeper tree of this size; dots: within {100 * NEAR:g} %"
    head(ax, title or "Speedup of the best tree of each size and depth", f"{subtitle}\n{said}".strip())
    place(ax, labels)
    return ax


def _same_tree(lengths: Floats) -> NDArray[np.bool_]:
    """Cells whose tree is that of one level less: more depth does not help so few nodes."""
    return np.diff(lengths, axis=1, prepend=0.0) <= 0.0


def _cells(ax: Axes, nodes: Floats, depths: Floats, speedup: Floats) -> None:
    """Speedup as coloured cells with contours, orange below 1 and violet above, as in the trade-off pictures."""
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap, TwoSlopeNorm

    colors = ListedColormap(colormaps["PuOr"](np.linspace(0.22, 0.76, 256)))
    high = max(1.5, float(speedup.max()))
    norm = TwoSlopeNorm(vcenter=1.0, vmin=min(0.5, float(speedup.min())), vmax=high)
    mesh = ax.pcolormesh(
        2.0 ** _edges_of(np.log2(nodes)),
        _edges_of(depths),
        speedup.T,
        cmap=colors,
        norm=norm,
        rasterized=True,
        gid="speedup",
    )
    mesh.set_zorder(0)
    if min(speedup.shape) > 1:
        step = next(
            one for one in (0.05, 0.1, 0.2, 0.25, 0.5, 1.0, 2.0) if np.ptp(speedup) / one <= 9 or one == 2.0
        )
        levels = np.arange(np.ceil(speedup.min() / step), speedup.max() / step) * step
        levels = levels[(levels > speedup.min()) & (np.abs(levels - 1.0) > 1e-6)]
        if len(levels):
            lines = ax.contour(nodes, depths, speedup.T, levels=levels, colors=INK, linewidths=0.7)
            ax.clabel(lines, fmt="%gx", fontsize=SMALL, inline_spacing=3)
        if speedup.min() < 1.0 < speedup.max():
            bold = ax.contour(nodes, depths, speedup.T, levels=[1.0], colors=INK, linewidths=2.2)
            ax.clabel(bold, fmt="%gx", fontsize=SMALL, inline_spacing=3)
    ax.grid(visible=False)


def _edges_of(centres: Floats) -> Floats:
    """Borders of cells, halfway between their centres."""
    if len(centres) == 1:
        return np.array([centres[0] - 0.5, centres[0] + 0.5])
    inner = (centres[1:] + centres[:-1]) / 2
    return np.concatenate([[2 * centres[0] - inner[0]], inner, [2 * centres[-1] - inner[-1]]])
