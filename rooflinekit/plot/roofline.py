"""The roofline: how fast a device can compute at each arithmetic intensity, and where a model's steps lie."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from rooflinekit.evidence import weakest
from rooflinekit.plot.labels import SPOTS, Label, place
from rooflinekit.plot.points import Point, fitted_roof
from rooflinekit.plot.style import (
    BLUE,
    GREEN,
    HALO,
    INK,
    LINES,
    MUTED,
    SMALL,
    VERMILION,
    axes_or_new,
    head,
    legend,
    settle,
)
from rooflinekit.precision import FORMATS, Precision, precision
from rooflinekit.units import render
from rooflinekit.work import Machine

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLORS = {"decode": INK, "verify": BLUE, "batch": VERMILION, "prefill": GREEN}
"""Colour of each group of points."""

MARKERS = {"step": "o", "linear": "s", "attention": "^", "experts": "D", "lm head": "v"}
"""Marker of a whole step and of each kind of work in it."""

# A slope rises to the right: its free sides are right below and left above.
_UNDER = sorted(SPOTS, key=lambda spot: not (spot[1] < 0 and spot[0] >= 0))
_OVER = sorted(SPOTS, key=lambda spot: not (spot[1] > 0 and spot[0] <= 0))


def roofline(
    machine: Machine,
    points: Sequence[Point] = (),
    ax: Axes | None = None,
    *,
    numbers: Precision | None = None,
    dtypes: Sequence[str] | None = None,
    title: str = "",
    subtitle: str = "",
) -> Axes:
    """Draw the roofline of a machine with a model's steps on it.

    Lines of a datasheet are dashed, measured and fitted ones solid. A calibrated machine shows the curve
    its linear layers reach (without the fixed time of a kernel) below the datasheet's.

    Parameters
    ----------
    machine
        The device.
    points
        What :func:`points_of` returns.
    ax
        Where to draw; a new figure when not given.
    numbers
        Number formats: the ridge of their compute format is marked, in FLOP per byte and in tokens.
    dtypes
        Compute formats whose ceilings are drawn; all that the device has when not given.
    title, subtitle
        Text above; by default the machine, and the evidence behind its numbers.
    """
    ax = axes_or_new(ax)
    numbers = numbers or _numbers_of(machine)
    shown = {d: float(p) for d, p in machine.peak_flop_per_s.items() if dtypes is None or d in dtypes}
    bandwidth, main = float(machine.bandwidth_bytes_per_s), numbers.compute
    _limits(ax, machine, points, shown, main)
    _roofs(ax, machine, shown, main)
    _fitted(ax, machine, numbers)
    _scatter(ax, points)
    known = "; ".join(filter(None, (subtitle, evidence_text(machine, main))))
    head(ax, title or f"Roofline of {machine.name}", known)
    ax.set_xlabel("arithmetic intensity (FLOP per byte)")
    ax.set_ylabel("attained rate (FLOP/s)")
    settle(ax)
    _slope_label(ax, machine, points, shown.get(main))
    if main in shown:
        _ridge(ax, bandwidth, shown[main], numbers)
    else:
        ax.text(
            0.98, 0.04, f"no {main} matrix rate is published", transform=ax.transAxes, ha="right", color=MUTED
        )
    for spots, over in ((_UNDER, False), (_OVER, True)):
        mine = [p for p in points if p.part == "step" and (p.group == "batch") is over]
        place(ax, [Label(p.intensity, p.flop_per_s, p.label, COLORS[p.group]) for p in mine], spots=spots)
    return ax


def evidence_text(machine: Machine, dtype: str) -> str:
    """Say how the roofs of a format are known."""
    terms = [term for term in ("bandwidth", f"peak {dtype}") if term in machine.evidence]
    roofs = f"roofs: {weakest(machine.evidence[term] for term in terms)}" if terms else ""
    return roofs + (", what is reached of them: fitted" if "ceilings" in machine.evidence else "")


def _numbers_of(machine: Machine) -> Precision:
    known = [
        dtype for dtype in ("bf16", "fp16", *machine.peak_flop_per_s) if dtype in machine.peak_flop_per_s
    ]
    return precision(next((dtype for dtype in known if dtype in FORMATS), "bf16"))


def _limits(ax: Axes, machine: Machine, points: Sequence[Point], shown: dict[str, float], main: str) -> None:
    bandwidth = float(machine.bandwidth_bytes_per_s)
    ridge = shown.get(main, 100 * bandwidth) / bandwidth
    xs = [point.intensity for point in points] or [1.0]
    rates = [point.flop_per_s for point in points]
    left, right = min(xs) / 2.0, max(*xs, ridge) * 14.0
    bottom = min([*rates, left * bandwidth * 2.0]) / 2.5
    top = max(shown.values(), default=ridge * bandwidth) * 2.2
    ax.set(xscale="log", yscale="log", xlim=(left, right), ylim=(bottom, top))


def _roofs(ax: Axes, machine: Machine, shown: dict[str, float], main: str) -> None:
    """Bandwidth slope up to the highest ceiling, and one ceiling per distinct peak from its ridge on."""
    bandwidth, (left, right) = float(machine.bandwidth_bytes_per_s), ax.get_xlim()
    end = max(shown.values(), default=bandwidth * right) / bandwidth
    style = LINES[machine.evidence.get("bandwidth", "datasheet")]
    ax.plot(
        [left, end], [left * bandwidth, end * bandwidth], color=INK, lw=1.8, ls=style, gid="roof bandwidth"
    )
    for peak in sorted(set(shown.values())):
        same = [dtype for dtype, value in shown.items() if value == peak]
        own = main in same
        kind = weakest(machine.evidence.get(f"peak {dtype}", "datasheet") for dtype in same)
        color, width = (INK, 1.8) if own else (MUTED, 0.8)
        xs = [peak / bandwidth, right]
        ax.plot(xs, [peak, peak], color=color, lw=width, ls=LINES[kind], gid=f"roof {same[0]}")
        text = f"{', '.join(same)}: {render(peak, 'FLOP/s', digits=3)}"
        ax.annotate(
            text,
            (right, peak),
            (-2, 2.5),
            textcoords="offset points",
            ha="right",
            va="bottom",
            color=color,
            fontsize=SMALL,
        )


def _fitted(ax: Axes, machine: Machine, numbers: Precision) -> None:
    if "ceilings" not in machine.evidence or ("linear", numbers.compute) not in machine.ceilings:
        return
    left, right = (limit * numbers.bytes_per_weight / 2 for limit in ax.get_xlim())
    xs, rates = fitted_roof(machine, numbers, np.geomspace(left, right, 600))
    ax.plot(
        xs, rates, color=BLUE, lw=1.6, gid="roof fitted", label=f"linear layers, {numbers.compute}, fitted"
    )
    legend(ax, loc="upper left")


def _scatter(ax: Axes, points: Sequence[Point]) -> None:
    extra = any(point.part != "step" for point in points)
    for part, marker in MARKERS.items():
        for group, color in COLORS.items():
            mine = [p for p in points if (p.part, p.group) == (part, group)]
            if not mine:
                continue
            whole = part == "step"
            ax.plot(
                [p.intensity for p in mine],
                [p.flop_per_s for p in mine],
                marker,
                color=color,
                ms=7 if whole else 5,
                mfc=color if whole else "none",
                mew=0.8 if whole else 1.1,
                mec="white" if whole else color,
                zorder=4,
                gid=f"points {group} {part}",
            )
        if extra and any(p.part == part for p in points):
            ax.plot(
                [],
                [],
                marker,
                color=MUTED,
                mfc=MUTED if part == "step" else "none",
                ms=5,
                label="whole " * (part == "step") + part,
            )
    if extra:
        legend(ax, loc="upper left")


def _slope_label(ax: Axes, machine: Machine, points: Sequence[Point], peak: float | None) -> None:
    """Bandwidth along the slope, between the last point on it and the ridge."""
    bandwidth, (left, right) = float(machine.bandwidth_bytes_per_s), ax.get_xlim()
    ridge = peak / bandwidth if peak else right
    lower = max((p.intensity for p in points if p.intensity < ridge / 3), default=left)
    x = math.sqrt(lower * ridge)
    start, end = ax.transData.transform([(x, x * bandwidth), (2 * x, 2 * x * bandwidth)])
    angle = math.degrees(math.atan2(end[1] - start[1], end[0] - start[0]))
    shift = 4.0
    ax.annotate(
        render(bandwidth, "B/s", digits=3),
        (x, x * bandwidth),
        (-shift * math.sin(math.radians(angle)), shift * math.cos(math.radians(angle))),
        textcoords="offset points",
        rotation=angle,
        rotation_mode="anchor",
        ha="center",
        va="bottom",
        fontsize=SMALL,
    )


def _ridge(ax: Axes, bandwidth: float, peak: float, numbers: Precision) -> None:
    ridge = peak / bandwidth
    bottom = ax.get_ylim()[0]
    ax.plot([ridge, ridge], [bottom, peak], color=MUTED, lw=0.9, ls=":", gid="ridge")
    ax.plot([ridge], [peak], "o", color="white", mec=INK, ms=5, zorder=4, gid="ridge point")
    tokens = ridge * numbers.bytes_per_weight / 2
    text = f"ridge of {numbers.compute}\n{ridge:.3g} FLOP per byte\n= {tokens:.3g} tokens ({numbers.name} weights)"
    ax.annotate(
        text,
        (ridge, bottom),
        (6, 8),
        textcoords="offset points",
        va="bottom",
        fontsize=SMALL,
        color=MUTED,
        bbox=HALO,
    )
