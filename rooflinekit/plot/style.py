"""The house style: palette, fonts, grid, and the one way a figure becomes a file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rooflinekit.errors import RooflineError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, MUTED, FAINT = "#222222", "#6b6b6b", "#dddddd"
BLUE, ORANGE, GREEN, VERMILION, PURPLE, SKY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9"
PALETTE = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, INK)
"""Okabe and Ito's colours, told apart with every common kind of colour vision (without their yellow)."""

MARKERS = ("o", "s", "^", "D", "v", "P", "X")
"""A marker for each colour, for print without any."""

LINES = {"assumed": ":", "datasheet": (0, (5, 2.5)), "fitted": "-", "measured": "-"}
"""How a line is drawn by kind of evidence: solid only where somebody measured."""

HALO = {"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 1.0}
"""Box behind text that a grid line may cross."""

SIZE = (7.2, 4.6)
SMALL = 8.5
SUFFIXES = (".png", ".svg", ".pdf")
DPI = 160

_RC: Mapping[str, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9.5,
    "axes.labelsize": 9.5,
    "axes.labelcolor": INK,
    "axes.edgecolor": MUTED,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.facecolor": "white",
    "figure.facecolor": "white",
    "grid.color": FAINT,
    "grid.linewidth": 0.6,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "text.color": INK,
    "svg.hashsalt": "rooflinekit",
    "pdf.fonttype": 42,
}
_METADATA = {".png": {"Software": None}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}


@contextmanager
def house_style() -> Iterator[None]:
    """Set the house style while the block runs, and the user's own again after it.

    Raises
    ------
    RooflineError
        matplotlib is not installed.
    """
    try:
        import matplotlib as mpl
    except ImportError as error:
        raise RooflineError(
            "drawing needs matplotlib, which is not installed; install the extra: pip install 'rooflinekit[plot]'"
        ) from error
    with mpl.rc_context(dict(_RC)):
        yield


def axes_or_new(ax: Axes | None, size: tuple[float, float] = SIZE) -> Axes:
    """Return the Axes given, or one of a new figure that pyplot does not know."""
    if ax is not None:
        return ax
    with house_style():
        from matplotlib.figure import Figure

        return Figure(figsize=size, layout="constrained").add_subplot()


def figure_of(what: Axes | Figure) -> Figure:
    """Root figure of an Axes, or the figure itself."""
    return what.canvas.figure if hasattr(what, "canvas") else what.figure.canvas.figure


def settle(ax: Axes) -> None:
    """Let the layout run, so that positions in pixels are those of the finished picture."""
    figure_of(ax).draw_without_rendering()


def head(ax: Axes, title: str, subtitle: str = "") -> None:
    """Title and, in grey below it, what the numbers hold for: a line, or several."""
    pad = 22 + 12 * subtitle.count("\n") if subtitle else 8
    ax.set_title(title, loc="left", pad=pad, fontsize=11.5, fontweight="bold", color=INK)
    if subtitle:
        ax.annotate(
            subtitle,
            (0, 1),
            (0, 7),
            xycoords="axes fraction",
            textcoords="offset points",
            va="bottom" if "\n" in subtitle else "baseline",
            fontsize=SMALL,
            color=MUTED,
        )


def legend(ax: Axes, **options: Any) -> None:
    """Legend in the house style: no frame line, white behind the text."""
    made = ax.legend(fontsize=SMALL, framealpha=0.85, edgecolor="none", borderaxespad=0.6, **options)
    made.set_zorder(6)


def plain_ticks(axis: Any, values: list[float], suffix: str = "") -> None:
    """Ticks at these values only, written as plain numbers."""
    axis.set_ticks(values, [f"{value:g}{suffix}" for value in values])
    axis.set_ticks([], minor=True)


def powers_of_two(low: float, high: float) -> list[float]:
    """Powers of two from low to high.

    >>> powers_of_two(1, 10)
    [1.0, 2.0, 4.0, 8.0]
    """
    return [2.0**i for i in range(-6, 31) if low <= 2.0**i <= high]


def one_two_five(low: float, high: float) -> list[float]:
    """Round numbers from low to high for a logarithmic axis: 1, 2 and 5 of every decade, or 1 of many decades.

    >>> one_two_five(0.15, 12)
    [0.2, 0.5, 1.0, 2.0, 5.0, 10.0]
    """
    leading = (1, 2, 5) if high / low < 5e3 else (1,)
    found = [float(f"{lead}e{exponent}") for exponent in range(-12, 13) for lead in leading]
    return [value for value in found if low <= value <= high]


def save(what: Axes | Figure, path: str | Path) -> Path:
    """Write a figure as PNG, SVG or PDF, by the ending of the name; equal pictures give equal files.

    The file appears whole or not at all.

    Raises
    ------
    RooflineError
        Another ending, a folder that cannot be written, or no matplotlib.
    """
    path = Path(path)
    ending = path.suffix.lower()
    if ending not in SUFFIXES:
        raise RooflineError(f"{path}: {ending or 'no ending'} cannot be written; use {' or '.join(SUFFIXES)}")
    part = path.with_name(f".{path.name}.part")
    try:
        with house_style():
            figure_of(what).savefig(
                part,
                format=ending[1:],
                dpi=DPI,
                bbox_inches="tight",
                pad_inches=0.12,
                metadata=_METADATA[ending],
            )
        os.replace(part, path)  # noqa: PTH105 - pathlib's replace says the same
    except OSError as error:
        raise RooflineError(
            f"{path} cannot be written ({error.strerror}); choose another file name"
        ) from error
    finally:
        part.unlink(missing_ok=True)
    return path
