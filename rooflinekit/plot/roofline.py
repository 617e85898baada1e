"""The roofline: how fast a device can compute at each arithmetic intensity, and where a model's steps lie."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rooflinekit.evidence import weakest
from rooflinekit.plot.labels import SPOTS, Label, place
from rooflinekit.plot.style import (
    BLUE,
    GREEN,
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
from rooflinekit.target import Target
from rooflinekit.transformer import Load, forward_pass
from rooflinekit.units import render
from rooflinekit.work import Machine, Work, work_time_s, works_time_s

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GROUPS = {"decode": INK, "verify": BLUE, "batch": VERMILION, "prefill": GREEN}
"""Colour of each group of points."""

PARTS = {"step": "o", "linear": "s", "attention": "^", "experts": "D", "lm head": "v"}
"""Marker of a whole step and of each kind of work in it."""

_UNDER = tuple(spot for spot in SPOTS if spot[1] <= 0 and spot[0] >= 0)


@dataclass(frozen=True, slots=True)
class Point:
    """A step, or one kind of work in it, on the roofline.

    Attributes
    ----------
    label
        Text beside it; only whole steps are labelled.
    group
        Key of :data:`GROUPS`.
    part
        Key of :data:`PARTS`.
    intensity
        Arithmetic intensity (FLOP per byte of memory traffic).
    flop_per_s
        FLOPs over the time they take (FLOP/s).
    """

    label: str
    group: str
    part: str
    intensity: float
    flop_per_s: float


def points_of(
    machine: Machine,
    target: Target,
    *,
    context: float = 4096,
    ks: Sequence[int] = (1, 3, 7, 15),
    batches: Sequence[int] = (8, 64),
    prompt: int = 2048,
    parts: bool = False,
) -> tuple[Point, ...]:
    """Place a model's steps on the roofline: decode, verifies of K drafts, batched decodes, a prefill.

    Parameters
    ----------
    machine
        The device; times are those of this machine, plain roofline or calibrated.
    target
        The model.
    context
        Tokens in the cache (of all but the prefill).
    ks, batches, prompt
        Drafted tokens of the verifies; sequences of the batched decodes; tokens of the prefill.
    parts
        Whether to add a point for each kind of work besides those of whole steps.

    Notes
    -----
    Bytes are those of memory: what collectives move over a link is left out, the time they take is not.
    """
    overlap = target.routing_overlap
    loads = [("decode", "decode", Load(1.0, context, 1.0))]
    loads += [(f"verify K = {k}", "verify", Load(1.0, context, k + 1.0, routing_overlap=overlap)) for k in ks]
    loads += [(f"batch {b}", "batch", Load(float(b), context, 1.0)) for b in batches]
    loads.append((f"prefill {prompt}", "prefill", Load(1.0, 0.0, float(prompt), prefill=True)))
    found = []
    for label, group, load in loads:
        works = forward_pass(target.llm, load, target.precision, target.tp)
        found.append(_point(label, group, "step", works, machine))
        if parts:
            found += [_point(label, group, part, mine, machine) for part, mine in _by_part(works).items()]
    return tuple(found)


def _by_part(works: tuple[Work, ...]) -> dict[str, tuple[Work, ...]]:
    result: dict[str, tuple[Work, ...]] = {}
    for work in works:
        part = "lm head" if work.label == "lm head" else work.kind
        if part in PARTS:
            result[part] = (*result.get(part, ()), work)
    return result


def _point(label: str, group: str, part: str, works: tuple[Work, ...], machine: Machine) -> Point:
    flops = float(sum(float(work.flops) for work in works))
    moved = float(sum(float(work.bytes) for work in works if work.kind != "collective"))
    return Point(label, group, part, flops / moved, flops / float(works_time_s(works, machine)))


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
    kinds = [
        machine.evidence[k] for k in ("bandwidth", *(f"peak {d}" for d in shown)) if k in machine.evidence
    ]
    known = f"ceilings: {weakest(kinds)}" + (
        ", fitted for measured kinds" if "ceilings" in machine.evidence else ""
    )
    head(ax, title or f"Roofline of {machine.name}", subtitle or known)
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
    place(
        ax,
        [Label(p.intensity, p.flop_per_s, p.label, GROUPS[p.group]) for p in points if p.part == "step"],
        spots=_UNDER,
    )
    return ax


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
    left, right = min(xs) / 2.0, max(*xs, ridge) * 5.0
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
        color, width = (INK, 1.8) if own else (MUTED, 1.0)
        xs = [peak / bandwidth, right]
        ax.plot(xs, [peak, peak], color=color, lw=width, ls=LINES[kind], gid=f"roof {same[0]}")
        text = f"{', '.join(same)}: {render(peak, 'FLOP/s')}"
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


def fitted_roof(
    machine: Machine, numbers: Precision, rows: NDArray[np.float64]
) -> tuple[NDArray[np.float64], ...]:
    """Rate that a large linear layer reaches on its weights alone, by rows, without the fixed time of a kernel.

    Returns
    -------
    intensity, flop_per_s
        FLOP per byte; FLOP/s.
    """
    weights = 1e9
    flops, moved = 2.0 * rows * weights, np.full_like(rows, weights * numbers.weight_bytes)
    work = Work("roof", "linear", numbers.compute, rows, flops, weight_bytes=moved, kernels=0.0)
    return flops / moved, flops / np.asarray(work_time_s(work, machine))


def _fitted(ax: Axes, machine: Machine, numbers: Precision) -> None:
    if "ceilings" not in machine.evidence or ("linear", numbers.compute) not in machine.ceilings:
        return
    left, right = (limit * numbers.weight_bytes / 2 for limit in ax.get_xlim())
    xs, rates = fitted_roof(machine, numbers, np.geomspace(left, right, 600))
    ax.plot(
        xs, rates, color=BLUE, lw=1.6, gid="roof fitted", label=f"linear layers, {numbers.compute}, fitted"
    )
    legend(ax, loc="upper left")


def _scatter(ax: Axes, points: Sequence[Point]) -> None:
    extra = any(point.part != "step" for point in points)
    for part, marker in PARTS.items():
        for group, color in GROUPS.items():
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
        render(bandwidth, "B/s"),
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
    tokens = ridge * numbers.weight_bytes / 2
    text = f"ridge of {numbers.compute}\n{ridge:.0f} FLOP per byte\n= {tokens:.0f} tokens ({numbers.name} weights)"
    ax.annotate(
        text, (ridge, bottom), (5, 8), textcoords="offset points", va="bottom", fontsize=SMALL, color=MUTED
    )
