"""Speedup against batch: where the free rows of a verify run out and speculation stops paying."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rooflinekit.acceptance import Acceptance
from rooflinekit.curve import allowed_k
from rooflinekit.drafters.base import Drafter
from rooflinekit.limits import whole_grid
from rooflinekit.plot.labels import Floats, Label, label_ends, place
from rooflinekit.plot.style import (
    FAINT,
    INK,
    MUTED,
    PALETTE,
    SMALL,
    axes_or_new,
    head,
    plain_ticks,
    powers_of_two,
)
from rooflinekit.speculation import speculate
from rooflinekit.target import Target
from rooflinekit.work import Machine

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, slots=True)
class BatchCurve:
    """Speedup by batch at one K, or at the best K of each batch.

    Attributes
    ----------
    label
        Name of the line.
    batch, speedup
        The curve.
    k
        K at each batch.
    """

    label: str
    batch: Floats
    speedup: Floats
    k: Floats

    @property
    def stops(self) -> tuple[float, ...]:
        """Batches at which the speedup falls through 1, interpolated over the logarithm of the batch."""
        return self._crossings(self.speedup - 1.0)

    @property
    def starts(self) -> tuple[float, ...]:
        """Batches at which it rises above 1 again, as with sparse models once all experts are read anyway."""
        return self._crossings(1.0 - self.speedup)

    def _crossings(self, above: Floats) -> tuple[float, ...]:
        at = np.log(self.batch)
        falls = np.nonzero((above[:-1] > 0) & (above[1:] <= 0))[0]
        share = [float(above[i] / (above[i] - above[i + 1])) for i in falls]
        return tuple(
            float(np.exp(at[i] + s * (at[i + 1] - at[i]))) for i, s in zip(falls, share, strict=True)
        )


def batches_up_to(largest: float, per_octave: int = 8) -> Floats:
    """Whole batches from 1 up, evenly on a logarithmic scale.

    >>> batches_up_to(4, per_octave=1)
    array([1., 2., 4.])
    """
    return whole_grid(largest, per_octave)


def speedups_by_batch(
    machine: Machine,
    target: Target,
    drafter: Drafter,
    acceptance: Acceptance,
    *,
    batches: Floats,
    context: float = 4096.0,
    ks: Sequence[int] = (1, 3, 7),
    max_k: int = 16,
) -> tuple[BatchCurve, ...]:
    """Speedup over a grid of batches for some K, and for the best K at each batch.

    Parameters
    ----------
    machine, target, drafter, acceptance
        As in :func:`~rooflinekit.speculation.speculate`.
    batches, context
        Sequences; tokens in the cache.
    ks
        K to draw; those that the drafter or the acceptance does not reach are left out.
    max_k
        Largest K for the line of the best one.
    """
    top = max(allowed_k(drafter, acceptance, max(max_k, *ks) if ks else max_k), 1)
    all_k = np.arange(1.0, top + 1.0)
    rounds = speculate(
        machine, target, drafter, acceptance, batch=batches[None, :], context=context, k=all_k[:, None]
    )
    grid = np.broadcast_to(np.asarray(rounds.speedup), (top, len(batches)))
    within = grid[: min(max_k, top)]
    curves = [
        BatchCurve(f"K = {k}", batches, grid[k - 1], np.full(len(batches), float(k))) for k in ks if k <= top
    ]
    return (*curves, BatchCurve("best K", batches, within.max(axis=0), within.argmax(axis=0) + 1.0))


def batch_curve(
    curves: Sequence[BatchCurve],
    ax: Axes | None = None,
    *,
    fits_up_to: float | None = None,
    title: str = "Speedup against batch",
    subtitle: str = "",
) -> Axes:
    """Draw speedup against batch with the batch marked at which each K stops paying.

    Parameters
    ----------
    curves
        What :func:`speedups_by_batch` returns; the last one (the best K) is drawn bold.
    ax
        Where to draw; a new figure when not given.
    fits_up_to
        Largest batch whose caches fit (:func:`~rooflinekit.capacity.largest_batch`); beyond it the picture is shaded.
    title, subtitle
        Text above.
    """
    ax = axes_or_new(ax)
    largest = max(float(curve.batch[-1]) for curve in curves)
    ax.axhline(1.0, color=MUTED, lw=1.0, ls=":", gid="break even")
    ends: list[Label] = []
    stops: list[Label] = []
    for index, curve in enumerate(curves):
        best = index == len(curves) - 1
        color = INK if best else PALETTE[index % len(PALETTE)]
        ax.plot(
            curve.batch,
            curve.speedup,
            color=color,
            lw=2.4 if best else 1.4,
            zorder=3 if best else 2,
            gid=f"speedup {curve.label}",
        )
        ends.append(
            Label(largest, float(curve.speedup[-1]), f"{curve.label}, {curve.speedup[-1]:.2f}x", color)
        )
        stops += _crossing_labels(curve, color, [stop.x for stop in stops])
    _finish(ax, curves, largest)
    head(ax, title, subtitle)
    if fits_up_to is not None and fits_up_to < largest:
        oversize(ax, max(fits_up_to, 0.94), largest * 1.04)
    for stop in stops:
        ax.plot([stop.x], [1.0], "o", color=stop.color, mec="white", ms=7, zorder=4, gid=stop.text)
    label_ends(ax, ends)
    under = ((0.0, 7.0, "center", "bottom"), (8.0, 5.0, "left", "bottom"), (0.0, -7.0, "center", "top"))
    # A change of the best K beside a crossing is left unsaid: the crossing is what one looks for there.
    changes = [one for one in _best_labels(curves[-1]) if not any(_beside(one, stop) for stop in stops)]
    place(ax, [*stops, *changes], spots=under)
    return ax


def _beside(label: Label, stop: Label) -> bool:
    return abs(np.log2(label.x / stop.x)) < 1.0 and abs(label.y - 1.0) < 0.25


def _finish(ax: Axes, curves: Sequence[BatchCurve], largest: float) -> None:
    """Scales, limits and axis labels."""
    ax.set_xscale("log", base=2)
    speeds = np.concatenate([curve.speedup for curve in curves])
    ax.set(
        xlim=(0.94, largest * 1.04),
        ylim=(max(0.0, min(1.0, float(speeds.min())) - 0.3), float(speeds.max()) * 1.08),
    )
    plain_ticks(ax.xaxis, powers_of_two(1, largest))
    ax.yaxis.set_major_formatter("{x:g}x")
    ax.set(xlabel="batch, concurrent sequences", ylabel="tokens per second over plain decoding")


def _crossing_labels(curve: BatchCurve, color: str, known: Sequence[float]) -> list[Label]:
    """Name the first whole batch on the other side of 1; the best K says nothing twice."""
    found = [(at, "stops") for at in curve.stops] + [(at, "pays") for at in curve.starts]
    return [
        Label(at, 1.0, f"{verb} at {np.ceil(at):.0f}", color)
        for at, verb in sorted(found)
        if all(abs(at / other - 1.0) > 0.02 for other in known)
    ]


def _best_labels(curve: BatchCurve) -> list[Label]:
    """Name K along the line of the best one: at every eighth batch, unless K is the same all along."""
    if len(np.unique(curve.k)) == 1:
        return []
    at = [
        int(np.argmin(np.abs(np.log(curve.batch / b))))
        for b in powers_of_two(2, float(curve.batch[-1]) / 2)[::2]
    ]
    return [Label(float(curve.batch[i]), float(curve.speedup[i]), f"K = {curve.k[i]:.0f}", INK) for i in at]


def oversize(ax: Axes, start: float, end: float) -> None:
    """Shade the batches that do not fit, and say where they begin; the limits are set."""
    ax.axvspan(start, end, color=FAINT, alpha=0.55, lw=0, zorder=0, gid="does not fit")
    share = ax.transAxes.inverted().transform(ax.transData.transform((start, 1.0)))[0]
    late = share > 0.82
    ax.annotate(
        f"batch > {start:.0f}\ndoes not fit",
        (start, 0.0),
        (-5 if late else 5, 5),
        xycoords=("data", "axes fraction"),
        textcoords="offset points",
        ha="right" if late else "left",
        va="bottom",
        fontsize=SMALL,
        color=MUTED,
    )
