"""Text beside lines and points that does not cover other text, points or lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rooflinekit.plot.style import SMALL, figure_of, settle

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Annotation

Floats = NDArray[np.float64]

_NEAR, _FAR = 6.0, 15.0
SPOTS = (
    (_NEAR, 0.0, "left", "center"),
    (_NEAR, -_NEAR, "left", "top"),
    (_NEAR, _NEAR, "left", "bottom"),
    (-_NEAR, _NEAR, "right", "bottom"),
    (-_NEAR, -_NEAR, "right", "top"),
    (0.0, -_NEAR, "center", "top"),
    (0.0, _NEAR, "center", "bottom"),
    (-_NEAR, 0.0, "right", "center"),
    (_FAR, -5.0, "left", "center"),
    (_NEAR, -_FAR, "left", "top"),
    (-_NEAR, _FAR, "right", "bottom"),
    (_NEAR, _FAR, "left", "bottom"),
    (0.0, -_FAR, "center", "top"),
)
"""Places for a label around its point: offset in points, alignments; the first that is free is taken."""


_DISC = np.stack(np.meshgrid(np.linspace(-5, 5, 13), np.linspace(-5, 5, 13)), axis=-1).reshape(-1, 2)
"""Pixels that a marker covers."""


class Label(NamedTuple):
    """Text for a point in data coordinates."""

    x: float
    y: float
    text: str
    color: str


def spread(wanted: Sequence[float], gap: float, low: float = 0.0, high: float = 1.0) -> list[float]:
    """Move positions as little as possible (least squares) until neighbours are a gap apart.

    >>> spread([0.5, 0.5], 0.1)
    [0.45, 0.55]
    >>> spread([0.2, 0.8], 0.1)
    [0.2, 0.8]
    """
    order = np.argsort(wanted, kind="stable")
    blocks: list[list[float]] = []
    for rank, index in enumerate(order):
        blocks.append([wanted[index] - rank * gap])
        while len(blocks) > 1 and np.mean(blocks[-2]) > np.mean(blocks[-1]):
            last = blocks.pop()
            blocks[-1] += last
    flat = [float(np.mean(block)) for block in blocks for _ in block]
    top = high - (len(order) - 1) * gap
    result = [0.0] * len(order)
    for rank, index in enumerate(order):
        result[index] = round(min(max(flat[rank], low), max(low, top)) + rank * gap, 9)
    return result


def label_ends(ax: Axes, labels: Sequence[Label], *, at: float = 1.0) -> None:
    """Write labels in the right margin, each level with the end of its line as far as there is room.

    Call it when the limits are set.

    Parameters
    ----------
    ax
        Axes with everything drawn.
    labels
        Text for the ends of lines.
    at
        Where the labels start, as a fraction of the width of the Axes; below 1 they stand inside, and a thin line
        leads to each.
    """
    settle(ax)
    to_axes = ax.transData + ax.transAxes.inverted()
    ends = [to_axes.transform((label.x, label.y)) for label in labels]
    box = ax.get_window_extent()
    lines = max((label.text.count("\n") + 1 for label in labels), default=1)
    gap = lines * 1.3 * SMALL / 72 * figure_of(ax).dpi / box.height
    heights = spread([float(end[1]) for end in ends], gap, *((gap / 2, 1.0 - gap / 2) if at < 1.0 else ()))
    for label, end, height in zip(labels, ends, heights, strict=True):
        if at < 1.0:
            leader = [float(end[0]), at], [float(end[1]), height]
            ax.plot(*leader, color=label.color, lw=0.6, transform=ax.transAxes, gid="leader", zorder=1)
        ax.annotate(
            label.text,
            (at, height),
            (6 if at >= 1.0 else 3, 0),
            xycoords="axes fraction",
            textcoords="offset points",
            va="center",
            color=label.color,
            fontsize=SMALL,
            annotation_clip=False,
        )


def line_pixels(ax: Axes, *, points: int = 400) -> Floats:
    """Floats that the lines of an Axes pass through, at equal steps, for :func:`place` to avoid."""
    found = [np.empty((0, 2))]
    for line in ax.lines:
        nodes = line.get_transform().transform(np.column_stack([line.get_xdata(), line.get_ydata()]))
        nodes = nodes[np.isfinite(nodes).all(axis=1)]
        if len(nodes) < 2 or line.get_linestyle() == "None":
            found.append((nodes[:, None, :] + _DISC).reshape(-1, 2))
            continue
        along = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(nodes, axis=0).T))])
        at = np.linspace(0.0, along[-1], points)
        found.append(np.column_stack([np.interp(at, along, nodes[:, 0]), np.interp(at, along, nodes[:, 1])]))
    return np.vstack(found)


def place(
    ax: Axes,
    labels: Sequence[Label],
    avoid: Floats | None = None,
    spots: Sequence[tuple[float, float, str, str]] = SPOTS,
) -> list[Annotation]:
    """Write each label at the spot around its point that covers the least of lines, points and other text.

    Parameters
    ----------
    ax
        Axes with its limits set and everything else drawn.
    labels
        In order of importance.
    avoid
        Floats to keep free; those of all lines when not given.
    spots
        Places to try, best first.
    """
    settle(ax)
    busy = line_pixels(ax) if avoid is None else avoid
    taken = [text.get_window_extent() for text in ax.texts if text.get_text()]
    window, made = ax.get_window_extent(), []
    for label in labels:
        best, best_cost = None, np.inf
        for rank, spot in enumerate(spots):
            note = _write(ax, label, spot)
            box = note.get_window_extent()
            low, high = np.asarray(box.min) - 1.0, np.asarray(box.max) + 1.0
            covered = int(((busy > low) & (busy < high)).all(axis=1).sum())
            inside = (
                window.x0 <= box.x0 and box.x1 <= window.x1 and window.y0 <= box.y0 and box.y1 <= window.y1
            )
            cost = (
                1000 * sum(box.overlaps(other) for other in taken) + 500 * (not inside) + covered + 0.3 * rank
            )
            if cost < best_cost:
                if best is not None:
                    best.remove()
                best, best_cost = note, cost
            else:
                note.remove()
        if best is not None:
            made.append(best)
            taken.append(best.get_window_extent())
    return made


def freest_node(ax: Axes, nodes: Floats, taken: Sequence[Floats]) -> Floats | None:
    """Pixels of the node that is farthest from those taken; None where all are near them or the border."""
    if not len(nodes):
        return None
    pixels, window = ax.transData.transform(nodes), ax.get_window_extent()
    margin = np.minimum(pixels - window.min, window.max - pixels).min(axis=1)
    pixels = pixels[margin > 18.0]
    far = np.full(len(pixels), np.inf)
    for other in taken:
        # Text is wider than high.
        far = np.minimum(far, np.hypot(*((pixels - other) * (0.6, 1.0)).T))
    needed = 2.0 * SMALL / 72 * figure_of(ax).dpi
    return np.asarray(pixels[int(np.argmax(far))]) if far.max(initial=0.0) > needed else None


def _write(ax: Axes, label: Label, spot: tuple[float, float, str, str]) -> Annotation:
    from matplotlib.patheffects import withStroke

    dx, dy, ha, va = spot
    return ax.annotate(
        label.text,
        (label.x, label.y),
        (dx, dy),
        textcoords="offset points",
        ha=ha,
        va=va,
        color=label.color,
        fontsize=SMALL,
        linespacing=1.05,
        zorder=5,
        path_effects=[withStroke(linewidth=2.5, foreground="white")],
    )
