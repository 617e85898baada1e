"""The speedup curve: what each K buys, one line per drafter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from rooflinekit.limits import NEAR
from rooflinekit.plot.labels import Label, place
from rooflinekit.plot.style import MUTED, PALETTE, SMALL, axes_or_new, head, plain_ticks
from rooflinekit.recommendation import Recommendation

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NEAR_TEXT = f"thick: within {100 * NEAR:g} % of the best"

_BESIDE = ((7.0, 0.0, "left", "center"), (7.0, 7.0, "left", "bottom"), (7.0, -7.0, "left", "top"))


def speedup_curve(
    recommendations: Sequence[Recommendation],
    ax: Axes | None = None,
    *,
    labels: Sequence[str] = (),
    title: str = "",
    subtitle: str = "",
) -> Axes:
    """Draw speedup against K: the best K marked, every K within 1 % of it thick, 1 as the line that must be beaten.

    Parameters
    ----------
    recommendations
        One per line; equal model, hardware and load make a fair picture.
    ax
        Where to draw; a new figure when not given.
    labels
        Names of the lines; by default the drafters'.
    title, subtitle
        Text above; by default model and hardware, and acceptance and load.

    Notes
    -----
    A bar on the marked K is the 90 % interval, where acceptance was counted or a calibration's error is known.
    """
    ax = axes_or_new(ax)
    names = list(labels) or [one.drafter for one in recommendations]
    top = max((point.k for one in recommendations for point in one.curve), default=1)
    ax.axhline(1.0, color=MUTED, lw=1.0, ls=":", gid="break even")
    ends = []
    for index, (one, name) in enumerate(zip(recommendations, names, strict=True)):
        color = PALETTE[index % len(PALETTE)]
        _line(ax, one, color, name)
        last = one.curve[-1]
        ends.append(Label(float(last.k), last.speedup, f"{name}\n{one.speedup:.2f}x at K = {one.k}", color))
    _finish(ax, recommendations, top)
    if recommendations:
        first = recommendations[0]
        host = "with host time" if first.best.decode_host_s else "device time alone"
        load = f"{first.acceptance}, batch {first.batch:g}, context {first.context:g}; {first.calibration}, {host}"
        load = f"{load}; {NEAR_TEXT}"
        head(ax, title or f"Speculation with {first.model} on {first.hardware}", subtitle or load)
    note = "break even"
    ax.annotate(
        note,
        (1.0, 1.0),
        (-4, -3),
        xycoords=("axes fraction", "data"),
        textcoords="offset points",
        ha="right",
        va="top",
        fontsize=SMALL,
        color=MUTED,
    )
    place(ax, ends, spots=_BESIDE)
    return ax


def _finish(ax: Axes, recommendations: Sequence[Recommendation], top: int) -> None:
    """Limits, with room on the right for the names, ticks and axis labels."""
    speeds = [point.speedup for one in recommendations for point in one.curve]
    bars = [value for one in recommendations for value in (one.low, one.high) if value is not None]
    low, high = min([*speeds, *bars, 1.0]), max([*speeds, *bars, 1.0])
    ax.set(
        xlim=(0.5, top + max(1.5, 0.28 * top)), ylim=(max(0.0, low - 0.35), high + 0.08 * (high - low) + 0.1)
    )
    plain_ticks(ax.xaxis, [float(k) for k in range(1, top + 1, 1 if top <= 20 else 1 + top // 16)])
    ax.yaxis.set_major_formatter("{x:g}x")
    ax.set(xlabel="K, drafted tokens per round", ylabel="tokens per second over plain decoding")


def near_runs(one: Recommendation) -> list[list[int]]:
    """Split the K within 1 % of the best into runs of neighbours."""
    runs: list[list[int]] = []
    for k in sorted(one.near_best):
        if runs and k == runs[-1][-1] + 1:
            runs[-1].append(k)
        else:
            runs.append([k])
    return runs


def _line(ax: Axes, one: Recommendation, color: str, name: str) -> None:
    ks, speeds = [point.k for point in one.curve], [point.speedup for point in one.curve]
    ax.plot(ks, speeds, color=color, lw=1.4, marker="o", ms=2.5, gid=f"speedup {name}")
    by_k = dict(zip(ks, speeds, strict=True))
    for run in near_runs(one):
        band = [by_k[k] for k in run]
        if len(run) == 1:
            # A lone K has no length: half a step to either side shows it.
            around = np.clip([run[0] - 0.25, run[0], run[0] + 0.25], ks[0], ks[-1])
            ax.plot(
                around, np.interp(around, ks, speeds), color=color, lw=6, alpha=0.3, solid_capstyle="round"
            )
        else:
            ax.plot(run, band, color=color, lw=6, alpha=0.3, solid_capstyle="round", gid=f"near best {name}")
    if one.low is not None and one.high is not None:
        ax.plot(
            [one.k, one.k], [one.low, one.high], color=color, lw=1.2, marker="_", ms=6, gid=f"interval {name}"
        )
    ax.plot(
        [one.k], [one.speedup], "o", color=color, mec="white", mew=1.0, ms=8.5, zorder=4, gid=f"best {name}"
    )
