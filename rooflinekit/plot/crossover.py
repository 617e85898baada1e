"""Acceptance needed to break even against batch, beside the acceptance there is: they cross where it stops paying."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rooflinekit.acceptance import solve_alpha
from rooflinekit.curve import Case, allowed_k
from rooflinekit.plot.batch import oversize
from rooflinekit.plot.labels import Floats, Label, label_ends, place
from rooflinekit.plot.style import (
    INK,
    MARKERS,
    PALETTE,
    axes_or_new,
    head,
    plain_ticks,
    powers_of_two,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, slots=True)
class Needed:
    """What one drafter at one K needs in order to break even, by batch.

    Attributes
    ----------
    label
        Name of the line.
    k
        Drafted tokens per round.
    batch
        Concurrent sequences, rising.
    length
        Round cost: the acceptance length needed (tokens per round).
    given_length
        The acceptance length there is at this K.
    """

    label: str
    k: int
    batch: Floats
    length: Floats
    given_length: float

    @property
    def rate(self) -> Floats:
        """Constant acceptance rate needed; nan where not even rate 1 breaks even."""
        return np.array([_rate(float(length), self.k) for length in self.length])

    @property
    def given_rate(self) -> float:
        """The constant rate that gives the acceptance length there is."""
        return _rate(self.given_length, self.k)

    @property
    def crossings(self) -> tuple[float, ...]:
        """Batches at which the need rises through what there is, or falls below it again; interpolated."""
        above = self.length - self.given_length
        turns = np.nonzero((above[:-1] > 0) != (above[1:] > 0))[0]
        at, share = np.log(self.batch), above[turns] / (above[turns] - above[turns + 1])
        return tuple(
            float(np.exp(at[i] + s * (at[i + 1] - at[i]))) for i, s in zip(turns, share, strict=True)
        )


def _rate(length: float, k: int) -> float:
    return solve_alpha(max(length, 1.0), float(k)) if length <= k + 1.0 else float("nan")


def needed_by_batch(
    cases: Sequence[Case],
    *,
    batches: Floats,
    context: float,
    ks: Sequence[int],
    labels: Sequence[str] = (),
) -> tuple[Needed, ...]:
    """Round cost over batches: a line for each drafter and K.

    Parameters
    ----------
    cases
        One for each drafter.
    batches, context
        Sequences, rising; tokens in the cache.
    ks
        Drafted tokens per round; those that a drafter or its acceptance does not reach are left out.
    labels
        Names of the cases; by default the drafters'.
    """
    found = []
    for case, label in zip(cases, labels or [case.drafter.name for case in cases], strict=True):
        for k in ks:
            if k > allowed_k(case.drafter, case.acceptance, k):
                continue
            rounds = case.rounds(batch=batches, context=context, k=float(k))
            length = np.broadcast_to(np.asarray(rounds.round_cost, dtype=float), batches.shape)
            given = float(np.asarray(case.acceptance.expected(float(k))))
            name = f"K = {k}" if len(cases) == 1 else f"{label}, K = {k}" if len(ks) > 1 else label
            found.append(Needed(name, k, batches, length, given))
    return tuple(found)


def crossover_curve(
    curves: Sequence[Needed],
    ax: Axes | None = None,
    *,
    lengths: bool = False,
    fits_up_to: float | None = None,
    title: str = "Acceptance needed to break even",
    subtitle: str = "",
) -> Axes:
    """Draw the acceptance needed against batch, with the acceptance there is as level lines.

    Parameters
    ----------
    curves
        What :func:`needed_by_batch` returns.
    ax
        Where to draw; a new figure when not given.
    lengths
        Draw acceptance lengths (tokens per round) in place of constant rates.
    fits_up_to
        Largest batch whose caches fit; beyond it the picture is shaded.
    title, subtitle
        Text above.
    """
    ax = axes_or_new(ax)
    largest = float(curves[0].batch[-1])
    ends = []
    for index, curve in enumerate(curves):
        color, marker = PALETTE[index % len(PALETTE)], MARKERS[index % len(MARKERS)]
        ys = curve.length if lengths else curve.rate
        every = max(1, len(ys) // 8)
        ax.plot(
            curve.batch,
            ys,
            color=color,
            lw=1.6,
            marker=marker,
            ms=4.5,
            markevery=(index, every),
            gid=f"needed {curve.label}",
        )
        known = np.nonzero(np.isfinite(ys))[0]
        if len(known):
            ends.append(Label(float(curve.batch[known[-1]]), float(ys[known[-1]]), curve.label, color))
    _scales(ax, curves, largest, lengths=lengths)
    ends += _given(ax, curves, lengths=lengths)
    head(ax, title, subtitle)
    if fits_up_to is not None and fits_up_to < largest:
        oversize(ax, max(fits_up_to, 0.94), largest * 1.04)
    stops = _stops(ax, curves, lengths=lengths)
    label_ends(ax, ends)
    place(ax, stops, spots=_NEAR)
    return ax


_NEAR = (
    (-6.0, 6.0, "right", "bottom"),
    (6.0, -6.0, "left", "top"),
    (-6.0, -7.0, "right", "top"),
    (6.0, 7.0, "left", "bottom"),
    (0.0, -14.0, "center", "top"),
    (0.0, 14.0, "center", "bottom"),
)


def _scales(ax: Axes, curves: Sequence[Needed], largest: float, *, lengths: bool) -> None:
    ax.set_xscale("log", base=2)
    ax.set_xlim(0.94, largest * 1.04)
    plain_ticks(ax.xaxis, powers_of_two(1, largest))
    if lengths:
        highest = max(max(float(one.length.max()), one.given_length) for one in curves)
        enough = 2.0 * max(one.given_length for one in curves)
        ax.set_ylim(0.9, 1.06 * min(highest, enough))
        ax.set_ylabel("tokens per round needed to break even")
    else:
        ax.set_ylim(0.0, 1.02)
        ax.set_ylabel("acceptance rate needed to break even")
    ax.set_xlabel("batch, concurrent sequences")


def _given(ax: Axes, curves: Sequence[Needed], *, lengths: bool) -> list[Label]:
    """Level lines at what there is: one where it is the same for all, else one for each line in its colour."""
    values = [one.given_length if lengths else one.given_rate for one in curves]
    same = bool(np.ptp(values) < 1e-6)
    labels = []
    for index, (curve, value) in enumerate(zip(curves, values, strict=True)):
        color = INK if same else PALETTE[index % len(PALETTE)]
        ax.axhline(value, color=color, lw=1.4 if same else 1.0, ls=(0, (4, 2)), gid=f"given {curve.label}")
        text = f"accepted: {value:.2f}" if same else f"{curve.label} gives {value:.2f}"
        labels.append(Label(float(curve.batch[-1]), value, text, color))
        if same:
            break
    return labels


def _stops(ax: Axes, curves: Sequence[Needed], *, lengths: bool) -> list[Label]:
    """Points where need and supply cross, named by the first whole batch on the other side."""
    labels = []
    for index, curve in enumerate(curves):
        color, y = PALETTE[index % len(PALETTE)], curve.given_length if lengths else curve.given_rate
        pays = bool(curve.length[0] < curve.given_length)
        for at in curve.crossings:
            verb = "stops" if pays else "pays"
            pays = not pays
            ax.plot([at], [y], "o", color=color, mec="white", ms=7.5, zorder=4, gid=f"{verb} {curve.label}")
            labels.append(Label(at, y, f"{verb} at {np.ceil(at):.0f}", color))
    return labels
