"""The best K over batch and context, with the border where speculation stops paying and what fits into memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rooflinekit.capacity import largest_batch
from rooflinekit.curve import Case, allowed_k
from rooflinekit.hardware import Hardware
from rooflinekit.limits import best_k_table, whole_grid
from rooflinekit.plot.labels import Floats, freest_node
from rooflinekit.plot.patches import Patch, patches
from rooflinekit.plot.style import (
    INK,
    MUTED,
    SMALL,
    axes_or_new,
    head,
    plain_ticks,
    powers_of_two,
    settle,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Text

PER_OCTAVE = 4
"""Cells for each doubling of batch and of context."""

NO_K = "#e6e6e6"
SMALLEST_CONTEXT = 256.0
LEGEND, BORDER = "patches: best K; dashed lines: speedup with it", "; bold line: break even"
SMALLEST_PATCH = 5
"""Cells that a patch needs for its K to be written on it."""
WIDE = 50
"""Cells from which a patch is taken to have room for ``K =`` before the number."""


@dataclass(frozen=True, slots=True)
class KMap:
    """Best K by batch and context.

    Attributes
    ----------
    batch, context
        Axes of the grid, rising.
    k, speedup
        Shape (batch, context); K is 0 where no K pays.
    fits
        Largest batch whose caches fit, by context.
    """

    batch: Floats
    context: Floats
    k: Floats
    speedup: Floats
    fits: Floats

    @property
    def inside(self) -> NDArray[np.bool_]:
        """Cells that fit into memory."""
        return np.asarray(self.batch[:, None] <= self.fits[None, :])


def k_map(
    case: Case,
    hardware: Hardware,
    *,
    max_batch: float = 512.0,
    max_context: float = 131_072.0,
    max_k: int = 16,
) -> KMap:
    """Best K and its speedup on a logarithmic grid of whole batches and contexts, from 1 and 256 up.

    Parameters
    ----------
    case, hardware
        What is asked about; the device, for its memory.
    max_batch, max_context
        Ends of the grid (sequences; tokens).
    max_k
        Largest K to try.
    """
    batch = whole_grid(max_batch, PER_OCTAVE)
    low = min(SMALLEST_CONTEXT, max_context / 2.0)
    context = np.round(low * 2.0 ** np.arange(0.0, np.log2(max_context / low) + 1e-9, 1.0 / PER_OCTAVE))
    k, speedup = best_k_table(case, batch, context, max_k)
    top = allowed_k(case.drafter, case.acceptance, max_k)
    fits = [largest_batch(case.target, hardware, case.drafter, float(tokens), top) for tokens in context]
    return KMap(batch, context, k, speedup, np.array(fits))


def draw_k_map(
    found: KMap, ax: Axes | None = None, *, title: str = "Best K by batch and context", subtitle: str = ""
) -> Axes:
    """Draw the best K as a stepped map with K written on its patches.

    Parameters
    ----------
    found
        What :func:`k_map` returns.
    ax
        Where to draw; a new figure when not given.
    title, subtitle
        Text above.

    Notes
    -----
    The bold line is speedup 1; thin lines are speedups as labelled. Hatched: does not fit into memory.
    """
    ax = axes_or_new(ax, (7.2, 5.0))
    ax.set_xscale("log", base=2)
    ax.set_yscale("log", base=2)
    batch, context = found.batch, found.context
    _cells(ax, found)
    _contours(ax, found)
    _does_not_fit(ax, found)
    plain_ticks(ax.xaxis, powers_of_two(batch[0], batch[-1]))
    ticks = powers_of_two(context[0], context[-1])
    ax.set_yticks(ticks, [f"{t / 1024:g}k" if t >= 1024 else f"{t:g}" for t in ticks])
    ax.set_yticks([], minor=True)
    ax.grid(visible=False)
    ax.set(xlabel="batch, concurrent sequences", ylabel="context, tokens in the cache (k = 1024)")
    crossed = found.speedup.min() < 1.0 < found.speedup.max()
    head(ax, title, f"{subtitle}\n{LEGEND}{BORDER if crossed else ''}".strip())
    settle(ax)
    _contour_names(ax, found, _names(ax, found))
    return ax


def _cells(ax: Axes, found: KMap) -> None:
    """The map itself: a colour for each K, stretched so that the small ones are told apart."""
    from matplotlib import colormaps
    from matplotlib.collections import LineCollection
    from matplotlib.colors import BoundaryNorm, ListedColormap

    top = int(max(found.k.max(), 1.0))
    colors: list[Any] = [NO_K, *colormaps["YlGnBu"](np.sqrt(np.linspace(0.01, 0.4, top)))]
    xs, ys = _edges(found.batch), _edges(found.context)
    ax.set(xlim=(xs[0], xs[-1]), ylim=(ys[0], ys[-1]))
    mesh = ax.pcolormesh(
        xs,
        ys,
        found.k.T,
        cmap=ListedColormap(colors),
        norm=BoundaryNorm(np.arange(-0.5, top + 1.0), top + 1),
        rasterized=True,
        gid="best K",
    )
    mesh.set_zorder(0)
    right, up = np.nonzero(np.diff(found.k, axis=0)), np.nonzero(np.diff(found.k, axis=1))
    borders = [[(xs[i + 1], ys[j]), (xs[i + 1], ys[j + 1])] for i, j in zip(*right, strict=True)]
    borders += [[(xs[i], ys[j + 1]), (xs[i + 1], ys[j + 1])] for i, j in zip(*up, strict=True)]
    ax.add_collection(LineCollection(borders, colors="white", linewidths=0.9, gid="patches"), autolim=False)


def _edges(centres: Floats) -> Floats:
    """Borders of cells, halfway between neighbours on a logarithmic scale."""
    logs = np.log2(centres)
    inner = (logs[1:] + logs[:-1]) / 2.0
    return np.asarray(2.0 ** np.concatenate([[2 * logs[0] - inner[0]], inner, [2 * logs[-1] - inner[-1]]]))


def _contours(ax: Axes, found: KMap) -> None:
    """Speedup 1 bold, others thin; how many depends on how far it ranges where speculation fits."""
    shown = found.speedup[found.inside]
    grid = found.batch, found.context, found.speedup.T
    low, high = float(shown.min(initial=1.0)), float(shown.max(initial=1.0))
    if found.speedup.min() < 1.0 < found.speedup.max():
        border = ax.contour(*grid, levels=[1.0], colors=INK, linewidths=2.4)
        border.set_gid("speedup = 1")
    step = next((one for one in (0.1, 0.2, 0.25, 0.5, 1.0) if (high - low) / one <= 6.0), 2.0)
    levels = [level for level in np.arange(1.0 + step, high, step) if level > low]
    if levels:
        lines = ax.contour(*grid, levels=levels, colors=INK, linewidths=0.8, linestyles="--")
        lines.set_gid("speedup")


def _does_not_fit(ax: Axes, found: KMap) -> None:
    """Pale and hatched where weights, caches and drafter are larger than the memory."""
    left, right = ax.get_xlim()
    border = np.clip(found.fits, left, right)
    if border.min() >= right:
        return
    context = found.context.copy()
    context[[0, -1]] = ax.get_ylim()
    shade = ax.fill_betweenx(
        context, border, 1.1 * right, facecolor="#f6f6f6", edgecolor="#c4c4c4", hatch="///", lw=0.0
    )
    shade.set_zorder(3)
    shade.set_gid("does not fit")
    ax.plot(border, context, color=INK, lw=1.6, ls=":", gid="largest batch", zorder=3)


def _names(ax: Axes, found: KMap) -> list[Text]:
    """K on every patch that has room for it, and what the grey one and the hatched one mean."""
    made: list[Text] = []
    for one in patches(np.where(found.inside, found.k, np.nan)):
        x, y = _free_place(ax, found, one, made)
        if one.cells < SMALLEST_PATCH:
            continue
        if not one.value:
            made.append(_loses(ax, found, one, x, y))
        else:
            made.append(
                _text(
                    ax,
                    x,
                    y,
                    f"K = {one.value:g}" if one.room > 2 or one.cells >= WIDE else f"{one.value:g}",
                    INK,
                )
            )
    for one in patches(np.where(found.inside, np.nan, 0.0))[:1]:
        if one.room > 2:
            made.append(_text(ax, *_free_place(ax, found, one, made), "does not fit\ninto memory", MUTED))
    return made


def _free_place(ax: Axes, found: KMap, patch: Patch, texts: Sequence[Text]) -> tuple[float, float]:
    """Of the places that have most room, one that keeps its distance from the text that stands already."""
    points = np.array([(found.batch[i], found.context[j]) for i, j in patch.places])
    pixels, far = ax.transData.transform(points), np.full(len(points), np.inf)
    for text in texts:
        box = text.get_window_extent()
        off = np.abs(pixels - [(box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2]) - [
            box.width / 2,
            box.height / 2,
        ]
        far = np.minimum(far, off.max(axis=1))
    at = points[int(np.argmax(np.minimum(far, 2.0 * SMALL)))]
    return float(at[0]), float(at[1])


def _loses(ax: Axes, found: KMap, patch: Patch, x: float, y: float) -> Text:
    """Say inside the grey patch that nothing pays; beside the picture where there is no room."""
    if patch.room > 2 or not (found.inside[-1] & (found.k[-1] == 0)).any():
        return _text(ax, x, y, "does not pay" if patch.room > 2 else "does not\npay", INK)
    return ax.annotate(
        "does not\npay",
        (1.0, y),
        (5, 0),
        xycoords=("axes fraction", "data"),
        textcoords="offset points",
        va="center",
        fontsize=SMALL,
        color=INK,
    )


def _text(ax: Axes, x: float, y: float, text: str, color: str, size: float = SMALL) -> Text:
    """Text centred on a point, moved inwards where the picture would cut it."""
    from matplotlib.patheffects import withStroke

    halo = [withStroke(linewidth=2.2, foreground="white", alpha=0.7)]
    note = ax.text(
        x, y, text, ha="center", va="center", fontsize=size, color=color, zorder=6, path_effects=halo
    )
    box, window = note.get_window_extent(), ax.get_window_extent()
    dx = max(window.x0 + 3 - box.x0, 0.0) + min(window.x1 - 3 - box.x1, 0.0)
    dy = max(window.y0 + 3 - box.y0, 0.0) + min(window.y1 - 3 - box.y1, 0.0)
    if dx or dy:
        pixel = ax.transData.transform((x, y)) + np.array([dx, dy])
        moved = ax.transData.inverted().transform(pixel)
        note.set_position((float(moved[0]), float(moved[1])))
    return note


def _contour_names(ax: Axes, found: KMap, texts: list[Text]) -> None:
    """Write each speedup once on its line, where it is farthest from the text that stands already."""
    lines: Any = next((one for one in ax.collections if one.get_gid() == "speedup"), None)
    if lines is None:
        return
    taken = [np.mean(text.get_window_extent().get_points(), axis=0) for text in texts]
    for level, path in zip(lines.levels, lines.get_paths(), strict=True):
        inside = path.vertices[:, 0] < 0.85 * np.interp(path.vertices[:, 1], found.context, found.fits)
        best = freest_node(ax, path.vertices[inside], taken)
        if best is not None:
            x, y = ax.transData.inverted().transform(best)
            _text(ax, float(x), float(y), f"{level:g}x", INK, SMALL - 1.0)
            taken.append(best)
