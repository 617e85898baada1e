"""Leviathan's trade-off: speedup over acceptance rate against the cost of a draft, or against K."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rooflinekit.plot.labels import Floats, Label, place
from rooflinekit.plot.style import INK, MUTED, SMALL, axes_or_new, head
from rooflinekit.speculation import eta

if TYPE_CHECKING:
    from matplotlib.axes import Axes


LEVELS = (0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 12.0, 16.0)
ALPHAS = np.linspace(0.0, 1.0, 401)
COSTS = np.linspace(0.0, 0.5, 401)
ASSUMES = "a verify costs one plain step; acceptance is independent"


def best_k(alphas: Floats, costs: Floats, max_k: int = 16) -> tuple[NDArray[np.int64], Floats]:
    """Best K, and its speedup eta, by exact search over K = 1 .. max_k.

    Returns
    -------
    k, speedup
        Arrays of shape ``(len(costs), len(alphas))``.
    """
    ks = np.arange(1.0, max_k + 1.0)[:, None, None]
    values = np.asarray(eta(np.asarray(alphas)[None, None, :], ks, np.asarray(costs)[None, :, None]))
    return values.argmax(axis=0) + 1, values.max(axis=0)


def speedup_surface(
    ax: Axes | None = None,
    *,
    k: int | None = None,
    c: float | None = None,
    alphas: Floats = ALPHAS,
    costs: Floats = COSTS,
    max_k: int = 16,
    marks: Mapping[str, tuple[float, float]] | None = None,
    title: str = "",
) -> Axes:
    """Draw eta over the acceptance rate (x) and the cost of a draft, or K (y); the contour at 1 is bold.

    Parameters
    ----------
    ax
        Where to draw; a new figure when not given.
    k
        Drafted tokens: the y axis is then the cost c at this K.
    c
        Cost of one draft step in plain steps: the y axis is then K at this cost.
    alphas, costs, max_k
        Ranges; with neither ``k`` nor ``c``, the best K up to ``max_k`` is taken at every point.
    marks
        Points to name: ``{text: (alpha, y)}``.
    title
        Text above.
    """
    ax = axes_or_new(ax)
    if c is not None:
        ys = np.linspace(1.0, float(max_k), 201)
        values, what = eta(alphas[None, :], ys[:, None], c), f"c = {c:g}"
        ax.set_ylabel("K, drafted tokens per round")
    else:
        ys = costs
        values = (
            eta(alphas[None, :], float(k), ys[:, None]) if k is not None else best_k(alphas, ys, max_k)[1]
        )
        what = f"K = {k}" if k is not None else f"the best K up to {max_k}"
        ax.set_ylabel("c, one draft step over one plain step")
    _contours(ax, alphas, ys, np.asarray(values))
    ax.set(
        xlabel="alpha, acceptance rate of a drafted token", xlim=(alphas[0], alphas[-1]), ylim=(ys[0], ys[-1])
    )
    head(ax, title or f"Speedup of speculative decoding, {what}", f"eta of Leviathan et al.: {ASSUMES}")
    _marks(ax, marks or {})
    return ax


def _levels(values: Floats) -> list[float]:
    inside = [level for level in LEVELS if values.min() < level < values.max()]
    return sorted({*inside, 1.0})


def _contours(ax: Axes, alphas: Floats, ys: Floats, values: Floats) -> None:
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap, TwoSlopeNorm

    levels = _levels(values)
    edges = [min(float(values.min()), levels[0]) - 1e-9, *levels, max(float(values.max()), levels[-1]) + 1e-9]
    # The pale middle of the map only: ink must stay readable on every band.
    colors = ListedColormap(colormaps["PuOr"](np.linspace(0.22, 0.76, 256)))
    norm = TwoSlopeNorm(vcenter=1.0, vmin=0.2, vmax=max(4.0, 0.5 * float(values.max())))
    ax.contourf(alphas, ys, values, levels=edges, cmap=colors, norm=norm, zorder=0)
    thin = ax.contour(alphas, ys, values, levels=[v for v in levels if v != 1.0], colors=INK, linewidths=0.7)
    bold = ax.contour(alphas, ys, values, levels=[1.0], colors=INK, linewidths=2.2)
    bold.set_gid("eta = 1")
    for lines in (bold, thin):
        ax.clabel(lines, fmt="%gx", fontsize=SMALL, inline_spacing=3, manual=_label_points(lines, alphas, ys))
    ax.grid(visible=False)


def _label_points(lines: Any, alphas: Floats, ys: Floats) -> list[tuple[float, float]]:
    """Where each contour crosses the falling diagonal; none near an edge or near the one before."""
    origin, size = np.array([alphas[0], ys[0]]), np.array([alphas[-1] - alphas[0], ys[-1] - ys[0]])
    chosen: list[Floats] = []
    for path in lines.get_paths():
        nodes = (path.vertices - origin) / size
        nodes = nodes[((nodes > 0.035) & (nodes < 0.965)).all(axis=1)]
        if len(nodes):
            node = nodes[np.argmin(np.abs(nodes.sum(axis=1) - 1.0))]
            if all(np.hypot(*(node - other)) > 0.06 for other in chosen):
                chosen.append(node)
    return [(float(x), float(y)) for x, y in (node * size + origin for node in chosen)]


def _marks(ax: Axes, marks: Mapping[str, tuple[float, float]]) -> None:
    labels = [Label(x, y, text, INK) for text, (x, y) in marks.items()]
    for label in labels:
        ax.plot([label.x], [label.y], "o", color=INK, mec="white", ms=7, zorder=4)
    place(ax, labels)


def best_k_map(
    ax: Axes | None = None,
    *,
    alphas: Floats = ALPHAS,
    costs: Floats = COSTS,
    max_k: int = 16,
    title: str = "",
) -> Axes:
    """Draw the K that maximises eta over acceptance rate and draft cost; grey where no K pays.

    Parameters
    ----------
    ax
        Where to draw; a new figure when not given.
    alphas, costs, max_k
        Ranges.
    title
        Text above.
    """
    ax = axes_or_new(ax)
    ks, speedups = best_k(alphas, costs, max_k)
    shown = np.where(speedups > 1.0 + 1e-12, ks, 0)
    _regions(ax, alphas, costs, shown, max_k)
    ax.contour(alphas, costs, speedups - 1.0, levels=[1e-9], colors=INK, linewidths=2.2)
    ax.grid(visible=False)
    ax.set(xlabel="alpha, acceptance rate of a drafted token", ylabel="c, one draft step over one plain step")
    ax.set(xlim=(alphas[0], alphas[-1]), ylim=(costs[0], costs[-1]))
    head(ax, title or f"Best K up to {max_k}", f"argmax of eta; {ASSUMES}")
    return ax


def _regions(ax: Axes, alphas: Floats, costs: Floats, shown: NDArray[np.int64], max_k: int) -> None:
    from matplotlib import colormaps
    from matplotlib.colors import BoundaryNorm, ListedColormap

    # A stretched scale: K = 1 .. 4 fill most of the map and must be told apart.
    scale = np.sqrt(np.linspace(0.02, 0.85, max_k))
    colors: list[Any] = ["#e6e6e6", *colormaps["YlGnBu"](scale)]
    norm = BoundaryNorm(np.arange(-0.5, max_k + 1.0), max_k + 1)
    ax.pcolormesh(
        alphas,
        costs,
        shown,
        cmap=ListedColormap(colors),
        norm=norm,
        shading="nearest",
        rasterized=True,
        gid="best K",
    )
    names = {0: "does not pay", 1: "K = 1", **{k: f"{k}" for k in range(2, max_k)}, max_k: f"{max_k}+"}
    for value, text in names.items():
        at = _label_cell(shown == value, (0.012 + 0.012 * len(text)) * len(alphas), anywhere=value == max_k)
        if at is None:
            continue
        color = MUTED if not value else "white" if value > 0.55 * max_k else INK
        where = alphas[at[1]], costs[at[0]]
        ax.text(*where, text, ha="center", va="center", fontsize=SMALL, color=color)


def _label_cell(region: NDArray[np.bool_], room: float, *, anywhere: bool) -> tuple[int, int] | None:
    """Row and column for a text inside a region: its middle row, or its widest too; ``None`` if too narrow."""
    widths = region.sum(axis=1)
    inner = widths[len(widths) // 20 : -len(widths) // 20]
    if not inner.any():
        return None
    middle = int(np.median(np.nonzero(region)[0]))
    widest = len(widths) // 20 + int(np.argmax(inner))
    for row in (middle, widest) if anywhere else (middle,):
        if widths[row] >= room:
            return row, int(np.median(np.nonzero(region[row])[0]))
    return None
