"""The best K by batch and context, as a table that is coloured by what it gains."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from rooflinekit.capacity import largest_batch
from rooflinekit.curve import Case, Floats
from rooflinekit.hardware import Hardware
from rooflinekit.limits import best_k_table
from rooflinekit.plot.style import INK, MUTED, SMALL, axes_or_new, head

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
CONTEXTS = (256, 1024, 4096, 16384, 65536)


def best_k_by_load(
    case: Case,
    ax: Axes | None = None,
    *,
    hardware: Hardware | None = None,
    batch: Sequence[float] = BATCHES,
    context: Sequence[float] = CONTEXTS,
    max_k: int = 16,
    title: str = "",
    subtitle: str = "",
) -> Axes:
    """Write the best K and its speedup into a cell for each batch and context.

    Parameters
    ----------
    case
        From :func:`rooflinekit.make_case`.
    ax
        Where to draw; a new figure when not given.
    hardware
        The device, whose memory tells which cells fit; those that do not stay empty. None: all are written.
    batch, context
        Sequences; tokens in the cache; rising.
    max_k
        Largest K to try.
    title, subtitle
        Text above; by default model, drafter and acceptance.
    """
    ax = axes_or_new(ax, (8.4, 3.9))
    b, s = np.asarray(batch, dtype=float), np.asarray(context, dtype=float)
    k, speedup = best_k_table(case, b, s, max_k)
    fits = np.ones(k.shape, dtype=bool)
    if hardware is not None:
        most = np.array([largest_batch(case.target, hardware, case.drafter, one) for one in s.tolist()])
        fits = b[:, None] <= most[None, :]
    _cells(ax, k, speedup, fits)
    ax.set_xticks(range(len(b)), [f"{one:g}" for one in b])
    ax.set_yticks(range(len(s)), [f"{one:,.0f}" for one in s])
    ax.tick_params(length=0)
    ax.set(
        xlabel="batch, concurrent sequences",
        ylabel="context, tokens in the cache",
        xlim=(-0.5, len(b) - 0.5),
        ylim=(-0.5, len(s) - 0.5),
    )
    ax.spines[:].set_visible(False)
    ax.grid(visible=False)
    said = "in each cell the best K and its speedup" + ("" if fits.all() else "; hatched: does not fit")
    name = f"{case.target.llm.name} with {case.drafter.name}"
    head(ax, title or f"Best K by load: {name}", subtitle or f"{case.acceptance.label}; {said}")
    return ax


def _cells(ax: Axes, k: Floats, speedup: Floats, fits: np.ndarray) -> None:
    """Colour by speedup, orange below 1 and violet above, as in the trade-off pictures; text on top."""
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap, TwoSlopeNorm
    from matplotlib.patches import Rectangle

    colors = ListedColormap(colormaps["PuOr"](np.linspace(0.22, 0.76, 256)))
    shown = np.ma.masked_where(~fits, speedup)
    norm = TwoSlopeNorm(vcenter=1.0, vmin=0.5, vmax=max(2.0, float(shown.max(fill_value=0.0))))
    edges = [np.arange(n + 1) - 0.5 for n in speedup.shape]
    ax.pcolormesh(*edges, shown.T, cmap=colors, norm=norm, edgecolors="white", linewidth=1.5, gid="speedup")
    for (i, j), gain in np.ndenumerate(speedup):
        if not fits[i, j]:
            box = Rectangle((i - 0.5, j - 0.5), 1, 1, fc="white", ec=MUTED, lw=0, hatch="///", alpha=0.35)
            ax.add_patch(box)
            continue
        text = f"{k[i, j]:.0f}" if k[i, j] else "off"
        ax.annotate(text, (i, j), (0, 1), textcoords="offset points", ha="center", fontsize=11, color=INK)
        ax.annotate(
            f"{gain:.2f}x",
            (i, j),
            (0, -10),
            textcoords="offset points",
            ha="center",
            fontsize=SMALL,
            color=INK,
        )
