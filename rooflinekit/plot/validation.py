"""Pictures of a validation: measured ratios beside the model, errors by band, and the share of the roof reached."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rooflinekit.plot.style import (
    BLUE,
    FAINT,
    GREEN,
    INK,
    MUTED,
    ORANGE,
    SMALL,
    VERMILION,
    house_style,
    plain_ticks,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMNS = 3
PANEL = (3.1, 2.5)


@dataclass(frozen=True, slots=True)
class Curve:
    """Measured and predicted values over rows; ``low`` and ``high`` are quartiles of the measured ones."""

    rows: Sequence[float]
    measured: Sequence[float]
    predicted: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()
    plain: Sequence[float] = ()


def _grid(titles: Sequence[str], title: str) -> tuple[Figure, list[Axes]]:
    """A figure with a panel for each title."""
    with house_style():
        from matplotlib.figure import Figure

        lines = -(-len(titles) // COLUMNS)
        size = (PANEL[0] * min(COLUMNS, len(titles)), PANEL[1] * lines + 0.4)
        figure = Figure(figsize=size, layout="constrained")
        axes: Any = figure.subplots(lines, min(COLUMNS, len(titles)), squeeze=False).ravel()
        for ax, name in zip(axes, titles, strict=False):
            ax.set_title(name, loc="left", fontsize=SMALL + 1, color=INK)
        for ax in axes[len(titles) :]:
            ax.set_axis_off()
        figure.suptitle(title, x=0.01, ha="left", fontsize=11.5, fontweight="bold", color=INK)
    return figure, list(axes)


def curve_panels(
    curves: Mapping[str, Curve], *, title: str, y_label: str, plain_label: str = "", x_label: str = "rows"
) -> Figure:
    """Measured values (points, with quartiles) beside the model (line), a panel for each name."""
    figure, axes = _grid(list(curves), title)
    with house_style():
        for ax, curve in zip(axes, curves.values(), strict=False):
            if len(curve.low):
                ax.fill_between(curve.rows, curve.low, curve.high, color=FAINT, lw=0, label="middle half")
            if len(curve.plain):
                ax.plot(curve.rows, curve.plain, color=ORANGE, lw=1.2, ls="--", label=plain_label)
            ax.plot(curve.rows, curve.predicted, color=BLUE, lw=1.4, label="model")
            ax.plot(curve.rows, curve.measured, ".", color=VERMILION, ms=6, label="measured, held out")
            ax.set_xscale("log", base=2)
            plain_ticks(ax.xaxis, [row for row in (1, 4, 16, 64, 256) if row <= max(curve.rows)])
            ax.set_ylim(bottom=0)
            ax.set_xlabel(x_label)
        for ax in axes[::COLUMNS]:
            ax.set_ylabel(y_label)
        axes[0].legend(fontsize=SMALL - 1, framealpha=0.85, edgecolor="none")
    return figure


def error_bars(
    errors: Mapping[str, Sequence[tuple[str, float, float]]], *, title: str, plain_label: str
) -> Figure:
    """Median errors by band of rows, model beside the plain guess (fractions), a panel for each name."""
    figure, axes = _grid(list(errors), title)
    with house_style():
        for ax, bands in zip(axes, errors.values(), strict=False):
            places = range(len(bands))
            ax.bar(
                [x + 0.2 for x in places],
                [100 * one[2] for one in bands],
                0.38,
                color=MUTED,
                label=plain_label,
            )
            ax.bar(
                [x - 0.2 for x in places],
                [100 * one[1] for one in bands],
                0.38,
                color=GREEN,
                label="calibrated",
            )
            ax.set_xticks(list(places), [one[0] for one in bands], fontsize=SMALL - 1)
            ax.grid(visible=False, axis="x")
        for ax in axes[::COLUMNS]:
            ax.set_ylabel("median error, %")
        axes[0].legend(fontsize=SMALL - 1, framealpha=0.85, edgecolor="none")
    return figure


def efficiency_map(
    rows: Sequence[float], sizes: Sequence[str], reached: Sequence[Sequence[float]], *, title: str
) -> Figure:
    """Share of the datasheet roofline that kernels reach, by rows and size of the weights."""
    with house_style():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(7.2, 2.9), layout="constrained")
        ax = figure.add_subplot()
        mesh = ax.imshow(reached, aspect="auto", vmin=0.2, vmax=1.0, cmap="viridis", origin="lower")
        ax.set_xticks(range(len(rows)), [f"{row:g}" for row in rows], fontsize=SMALL)
        ax.set_yticks(range(len(sizes)), sizes, fontsize=SMALL)
        ax.grid(visible=False)
        ax.set_xlabel("rows")
        ax.set_title(title, loc="left", fontsize=11.5, fontweight="bold", color=INK)
        for y, line in enumerate(reached):
            for x, value in enumerate(line):
                if value == value:  # noqa: PLR0124 - not a number
                    ax.text(
                        x,
                        y,
                        f"{100 * value:.0f}",
                        ha="center",
                        va="center",
                        fontsize=SMALL - 1.5,
                        color="white",
                    )
        figure.colorbar(mesh, ax=ax, label="share of the roofline")
    return figure
