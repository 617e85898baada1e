"""The verify curve: what a pass of W rows costs in plain steps, predicted and measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rooflinekit.plot.labels import Floats, Label, label_ends, place
from rooflinekit.plot.ratios import ONE, PARTS, MeasuredRatio, experts_by_width, ratios_by_width
from rooflinekit.plot.style import (
    BLUE,
    GREEN,
    INK,
    LINES,
    MUTED,
    ORANGE,
    PURPLE,
    SIZE,
    SKY,
    VERMILION,
    axes_or_new,
    head,
    legend,
    plain_ticks,
    powers_of_two,
)
from rooflinekit.target import Target
from rooflinekit.transformer import Load
from rooflinekit.work import Machine

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLORS = {"step": INK, "linear": BLUE, "attention": GREEN, "experts": VERMILION}
SHAPES = ((ORANGE, "o"), (PURPLE, "s"), (SKY, "^"), (VERMILION, "D"), (GREEN, "v"), (BLUE, "P"), (MUTED, "X"))
"""Colour and marker of each measured shape; used again after the last."""

WITH_KEY = (7.2, 5.6)
"""Size of a figure (inches) whose key stands below it."""

LINEAR_UP_TO = 8.0
"""Largest ratio that is drawn on a linear scale."""


def verify_curve(
    machine: Machine,
    target: Target,
    ax: Axes | None = None,
    *,
    baseline: Machine | None = None,
    measured: Sequence[MeasuredRatio] = (),
    load: Load = ONE,
    max_width: int = 64,
    title: str = "",
) -> Axes:
    """Draw R(W) = T(W) / T(1), device time, of a model's verify against its width: whole, and by kind of work.

    Parameters
    ----------
    machine, target
        The device and the model.
    ax
        Where to draw; a new figure when not given.
    baseline
        A second machine, drawn dashed: the plain roofline beside a calibrated machine.
    measured
        What :func:`~rooflinekit.plot.ratios.measured_ratios` returns. Filled where the case was fitted, open
        where it was held out; a thin line joins what ``machine`` predicts for the same shape.
    load
        Batch and context.
    max_width
        Largest width; measured cases may widen it.
    title
        Text above; by default the model and the machine.
    """
    ax = axes_or_new(ax, WITH_KEY if measured else SIZE)
    widths = np.arange(1.0, max(max_width, 2, *(int(row.width) for row in measured)) + 1.0)
    curves = ratios_by_width(machine, target, widths, load)
    plain = ratios_by_width(baseline, target, widths, load) if baseline is not None else {}
    ax.plot(widths[[0, -1]], [1.0, 1.0], color=MUTED, lw=0.9, ls=":", gid="guess")
    _lines(ax, widths, plain, "baseline", lw=1.1, ls=LINES["datasheet"], alpha=0.8)
    _lines(ax, widths, curves, "ratio", lw=1.6, ls=LINES[_kind(machine)])
    _points(ax, measured)
    _finish(ax, [*curves.values(), *plain.values()], measured, float(widths[-1]))
    text = f"{target.precision.label}, batch {load.batch:g}, context {load.context:g}; ceilings: {_kind(machine)}"
    head(ax, title or f"Verify of {target.llm.name} on {machine.name}", text)
    _legend(ax, measured, machine, baseline)
    _ends(ax, widths, curves)
    _experts(ax, target, widths, curves, load)
    return ax


def _kind(machine: Machine) -> str:
    """Evidence behind the ceilings of a machine."""
    return "fitted" if "ceilings" in machine.evidence else machine.evidence.get("bandwidth", "datasheet")


def _mark(shapes: Sequence[str], shape: str) -> tuple[str, str]:
    """Colour and marker of a measured shape; whole steps are stars."""
    return (INK, "*") if shape.startswith("step") else SHAPES[shapes.index(shape) % len(SHAPES)]


def _shapes(measured: Sequence[MeasuredRatio]) -> list[str]:
    return list(dict.fromkeys(row.shape for row in measured))


def _lines(ax: Axes, widths: Floats, curves: Mapping[str, Floats], name: str, **style: Any) -> None:
    for part, ratio in curves.items():
        width = style["lw"] * (1.5 if part == "step" else 1.0)
        ax.plot(widths, ratio, color=COLORS[part], gid=f"{name} {part}", **{**style, "lw": width})


def _points(ax: Axes, measured: Sequence[MeasuredRatio]) -> None:
    shapes = _shapes(measured)
    for shape in shapes:
        color, marker = _mark(shapes, shape)
        rows = [row for row in measured if row.shape == shape]
        xs, ys = [row.width for row in rows], [row.predicted for row in rows]
        ax.plot(xs, ys, color=color, lw=0.8, alpha=0.8, gid=f"predicted {shape}")
        for fitted in (True, False):
            mine = [row for row in rows if row.fitted is fitted]
            if not mine:
                continue
            below = [max(row.ratio - row.low, 0.0) for row in mine]
            above = [max(row.high - row.ratio, 0.0) for row in mine]
            drawn = ax.errorbar(
                [row.width for row in mine],
                [row.ratio for row in mine],
                [below, above],
                fmt=marker,
                color=color,
                elinewidth=0.8,
                mfc=color if fitted else "white",
                ms=9 if marker == "*" else 5,
                mew=1.0,
                zorder=3,
            )
            drawn.lines[0].set_gid(f"measured {shape} {'fitted' if fitted else 'held out'}")


def _finish(ax: Axes, curves: Sequence[Floats], measured: Sequence[MeasuredRatio], max_width: float) -> None:
    """Scales, limits and axis labels."""
    values = np.concatenate([*curves, [row.ratio for row in measured], [1.0]])
    highest, lowest = float(np.max(values)), float(np.min(values))
    ax.set_xscale("log", base=2)
    ax.set_xlim(0.94, max_width * 1.06)
    plain_ticks(ax.xaxis, powers_of_two(1, max_width))
    if highest > LINEAR_UP_TO:
        ax.set_yscale("log", base=2)
        ax.set_ylim(min(0.8, lowest * 0.9), highest * 1.25)
        plain_ticks(ax.yaxis, powers_of_two(*ax.get_ylim()), "x")
    else:
        ax.set_ylim(0.0, max(1.5, highest * 1.12))
        ax.yaxis.set_major_formatter("{x:g}x")
    ax.set_xlabel("width W (rows per sequence; a verify of K drafts has K + 1)")
    ax.set_ylabel("R(W) = T(W) / T(1)")


def _ends(ax: Axes, widths: Floats, curves: Mapping[str, Floats]) -> None:
    end = float(widths[-1])
    labels = [Label(end, float(r[-1]), f"{PARTS[p]} {r[-1]:.2f}x", COLORS[p]) for p, r in curves.items()]
    if all(abs(label.y - 1.0) > 0.02 for label in labels):
        labels.append(Label(end, 1.0, "R = 1", MUTED))
    label_ends(ax, labels)


def _legend(ax: Axes, measured: Sequence[MeasuredRatio], machine: Machine, baseline: Machine | None) -> None:
    """Key of line kinds and of measured shapes; none where every line says what it is."""
    if baseline is not None:
        ax.plot([], [], color=MUTED, lw=1.8, ls=LINES[_kind(machine)], label=f"ceilings: {_kind(machine)}")
        ax.plot(
            [], [], color=MUTED, lw=1.1, ls=LINES["datasheet"], label=f"plain roofline ({_kind(baseline)})"
        )
    if measured:
        ax.plot([], [], "o", color=MUTED, ms=5, label="measured, fitted")
        ax.plot([], [], "o", color=MUTED, mfc="white", ms=5, label="measured, held out")
    shapes = _shapes(measured)
    for shape in shapes:
        color, marker = _mark(shapes, shape)
        ax.plot([], [], color=color, marker=marker, ms=8 if marker == "*" else 5, lw=0.8, label=shape)
    if measured:
        legend(ax, loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=3)
    elif baseline is not None:
        legend(ax, loc="upper left")


def _experts(ax: Axes, target: Target, widths: Floats, curves: Mapping[str, Floats], load: Load) -> None:
    """Say along the line of the experts how many distinct ones a layer reads."""
    found = experts_by_width(target, widths, load)
    if found is None:
        return
    union, total = found
    marked = [width for width in (1, 4, 8, 16, 64) if width <= len(widths)]
    labels = [
        Label(float(w), float(curves["experts"][w - 1]), f"{union[w - 1]:.3g} of {total}", COLORS["experts"])
        for w in marked
    ]
    ax.plot([n.x for n in labels], [n.y for n in labels], "o", color=COLORS["experts"], ms=4, gid="union")
    over = ((-3.0, 5.0, "right", "bottom"), (0.0, 6.0, "center", "bottom"), (6.0, -6.0, "left", "top"))
    notes = place(ax, labels[1:], spots=over)
    if notes:
        notes[0].set_text("experts read: " + notes[0].get_text())
