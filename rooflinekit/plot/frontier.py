"""Throughput against the speed that one user sees, with and without speculation, over the batches that fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rooflinekit.curve import Case, allowed_k
from rooflinekit.limits import NEAR, whole_grid
from rooflinekit.plot.labels import Floats, Label, place
from rooflinekit.plot.style import (
    BLUE,
    GREEN,
    INK,
    MUTED,
    PURPLE,
    SMALL,
    VERMILION,
    axes_or_new,
    figure_of,
    head,
    one_two_five,
    plain_ticks,
    powers_of_two,
    settle,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PLAIN, BEST = "plain decoding", "best K of each batch"
COLORS = {PLAIN: MUTED, BEST: INK}
FIXED = ((PURPLE, "-."), (BLUE, "--"), (GREEN, (0, (1, 1))))
LEGEND = "arrows: throughput with the best K over that of plain decoding, at the same speed per user"
RIGHT = (
    (7.0, 0.0, "left", "center"),
    (7.0, 7.0, "left", "bottom"),
    (0.0, 9.0, "center", "bottom"),
    (7.0, -9.0, "left", "top"),
    (-7.0, -7.0, "right", "top"),
    (-7.0, 0.0, "right", "center"),
)
LEFT = (
    (-7.0, 0.0, "right", "center"),
    (-7.0, -5.0, "right", "top"),
    (7.0, 0.0, "left", "center"),
    (0.0, -9.0, "center", "top"),
)
"""Places for labels, best first: outside of the best line, and inside of the plain one."""

GAPS = (0.3, 0.75)
"""Where gaps are measured, as shares of the range of speeds that both ways of decoding reach."""


APART = 0.06
"""Share of the width that two arrows stay apart."""


@dataclass(frozen=True, slots=True)
class Frontier:
    """One way of decoding over batches.

    Attributes
    ----------
    label
        Its name.
    batch
        Concurrent sequences, rising.
    user_per_s, total_per_s
        Tokens per second of one sequence, and of the batch.
    k
        Drafted tokens per round at each batch; 0 is plain decoding.
    """

    label: str
    batch: Floats
    user_per_s: Floats
    total_per_s: Floats
    k: Floats

    def total_at(self, user_per_s: float) -> float:
        """Most tokens per second at which every user still gets this many; nan where no batch is that fast.

        Linear between neighbouring batches.
        """
        speed, total = self.user_per_s, self.total_per_s
        found = [float(total[i]) for i in np.nonzero(speed >= user_per_s)[0]]
        for i in np.nonzero((speed[:-1] - user_per_s) * (speed[1:] - user_per_s) < 0)[0]:
            share = (speed[i] - user_per_s) / (speed[i] - speed[i + 1])
            found.append(float(total[i] + share * (total[i + 1] - total[i])))
        return max(found, default=float("nan"))


def frontiers(
    case: Case,
    *,
    context: float,
    max_batch: float,
    plain_max_batch: float | None = None,
    ks: Sequence[int] = (3,),
    max_k: int = 16,
) -> tuple[Frontier, ...]:
    """Plain decoding, a few fixed K, and the best K of each batch, from one sequence up.

    Parameters
    ----------
    case
        Device, target, drafter, acceptance.
    context
        Tokens in the cache.
    max_batch, plain_max_batch
        Largest batch that fits beside the drafter; and without one (default: the same).
    ks
        K to draw besides; those that the drafter or the acceptance does not reach are left out.
    max_k
        Largest K of the best one; where none pays, it decodes plainly, an idle drafter's cost left out.
    """
    batch, plain_batch = _batch_grid(max_batch), _batch_grid(plain_max_batch or max_batch)
    grid = case.speedups(batch=batch, context=np.array([context]), max_k=max(max_k, *ks, 1))[:, 0]
    machine = case.machine

    def plain_per_s(batches: Floats) -> Floats:
        step_s = np.asarray(case.target.step_s(machine, batches, context, 1.0))
        return 1.0 / (step_s + machine.host_s(batches))

    def along(label: str, speedup: Floats, k: Floats) -> Frontier:
        user = plain_per_s(batch) * speedup
        return Frontier(label, batch, user, batch * user, k)

    user = plain_per_s(plain_batch)
    found = [Frontier(PLAIN, plain_batch, user, plain_batch * user, np.zeros(len(plain_batch)))]
    found += [
        along(f"K = {k}", grid[:, k - 1], np.full(len(batch), float(k))) for k in ks if k <= grid.shape[1]
    ]
    tried = np.concatenate(
        [np.ones((len(batch), 1)), grid[:, : allowed_k(case.drafter, case.acceptance, max_k)]], axis=1
    )
    found.append(along(BEST, tried.max(axis=1), tried.argmax(axis=1).astype(float)))
    return tuple(found)


def _batch_grid(largest: float) -> Floats:
    """Whole batches, powers of two among them."""
    return np.union1d(whole_grid(largest), powers_of_two(1.0, largest))


@dataclass(frozen=True, slots=True)
class Gap:
    """Throughput at equal speed per user.

    Attributes
    ----------
    user_per_s
        Tokens per second that each user gets.
    plain_per_s, best_per_s
        Tokens per second of the batch, plain and with the best K.
    """

    user_per_s: float
    plain_per_s: float
    best_per_s: float

    @property
    def gain(self) -> float:
        """How many times the throughput of plain decoding."""
        return self.best_per_s / self.plain_per_s


def gaps(plain: Frontier, best: Frontier, shares: Sequence[float] = GAPS) -> tuple[Gap, ...]:
    """Compare two ways of decoding at equal speeds per user, spread over the speeds that both reach."""
    low = max(plain.user_per_s.min(), best.user_per_s.min())
    high = min(plain.user_per_s.max(), best.user_per_s.max())
    if high <= low:
        return ()
    speeds = [float(low + share * (high - low)) for share in shares]
    return tuple(Gap(speed, plain.total_at(speed), best.total_at(speed)) for speed in speeds)


def frontier_curve(
    curves: Sequence[Frontier],
    ax: Axes | None = None,
    *,
    title: str = "Throughput against speed per user",
    subtitle: str = "",
) -> Axes:
    """Draw tokens per second of the batch against those of one user, batch and best K written along.

    Parameters
    ----------
    curves
        What :func:`frontiers` returns: plain decoding first, the best K last.
    ax
        Where to draw; a new figure when not given.
    title, subtitle
        Text above.

    Notes
    -----
    Up and to the right is better. The scale of the throughput is logarithmic: equal gaps are equal ratios.
    """
    ax = axes_or_new(ax, (7.2, 5.0))
    colors = [COLORS.get(curve.label, FIXED[i % len(FIXED)][0]) for i, curve in enumerate(curves)]
    for i, (curve, color) in enumerate(zip(curves, colors, strict=True)):
        bold = curve.label in COLORS
        ax.plot(
            curve.user_per_s,
            curve.total_per_s,
            color=color,
            ls="-" if bold else FIXED[i % len(FIXED)][1],
            lw=2.2 if bold else 1.3,
            zorder=2 + (curve.label == BEST),
            gid=f"frontier {curve.label}",
        )
    _scales(ax, curves)
    head(ax, title, f"{subtitle}\n{LEGEND}".strip())
    settle(ax)
    names = _names(curves, colors)
    labels = [names[-1], *names[:-1], *_gaps(ax, curves), *_batches(ax, curves[-1])]
    inner = _batches(ax, curves[0])
    place(ax, labels, spots=RIGHT)
    place(ax, inner, spots=LEFT)
    return ax


def _scales(ax: Axes, curves: Sequence[Frontier]) -> None:
    totals = np.concatenate([curve.total_per_s for curve in curves])
    speeds = np.concatenate([curve.user_per_s for curve in curves])
    ax.set_yscale("log")
    ax.set(xlim=(0.0, 1.32 * speeds.max()), ylim=(totals.min() / 1.5, totals.max() * 1.6))
    plain_ticks(ax.yaxis, one_two_five(*ax.get_ylim()))
    ax.set(xlabel="tokens per second of each user", ylabel="tokens per second of the whole batch")


def _gaps(ax: Axes, curves: Sequence[Frontier]) -> list[Label]:
    """Arrows from plain decoding up to the best K."""
    labels: list[Label] = []
    arrow = {"arrowstyle": "<->", "color": VERMILION, "lw": 1.1, "shrinkA": 1, "shrinkB": 1}
    for gap in gaps(curves[0], curves[-1]):
        near = bool(labels) and gap.user_per_s - labels[-1].x < APART * ax.get_xlim()[1]
        if gap.gain < 1.0 + NEAR or near:
            continue
        x, ends = gap.user_per_s, [gap.plain_per_s, gap.best_per_s]
        ax.annotate("", (x, ends[1]), (x, ends[0]), arrowprops=arrow)
        ax.plot([x, x], ends, color=VERMILION, lw=0.8, gid="gap")
        labels.append(Label(x, float(np.sqrt(ends[0] * ends[1])), f"{gap.gain:.2g}x", VERMILION))
    return labels


def _names(curves: Sequence[Frontier], colors: Sequence[str]) -> list[Label]:
    """Name each line at its fast end, where there is one sequence."""
    return [
        Label(float(curve.user_per_s[0]), float(curve.total_per_s[0]), _name(curve), color)
        for curve, color in zip(curves, colors, strict=True)
    ]


def _name(curve: Frontier) -> str:
    if curve.label not in COLORS:
        return curve.label
    return f"{curve.label}\n{_batch_and_k(curve, 0)}"


def _batch_and_k(curve: Frontier, i: int) -> str:
    k = f", K = {curve.k[i]:g}" if curve.k[i] else "" if curve.label == PLAIN else ", plain"
    return f"batch {curve.batch[i]:g}{k}"


def _batches(ax: Axes, curve: Frontier) -> list[Label]:
    """Points at powers of two and at the largest batch; names where there is room for them."""
    last = len(curve.batch) - 1
    powers = [i for i in range(1, last) if np.log2(curve.batch[i]) % 1.0 == 0.0]
    shown, color = sorted({0, *powers, last}), COLORS[curve.label]
    points = curve.user_per_s[shown], curve.total_per_s[shown]
    ax.plot(*points, "o", color=color, mec="white", ms=6, zorder=4, gid=f"batches {curve.label}")
    # In units of a label's width and height.
    unit = SMALL / 72 * figure_of(ax).dpi * np.array([9.0, 1.7])
    window = ax.get_window_extent()
    at = ax.transData.transform(np.column_stack([curve.user_per_s, curve.total_per_s])) / unit
    named = [last] if last and curve.label == BEST else []
    kept = [0, *named]
    for i in powers:
        # Text left of the plain line's slow end would run into the axis.
        inside = curve.label == BEST or at[i, 0] - window.x0 / unit[0] > 0.8
        if inside and np.hypot(*(at[kept] - at[i]).T).min() > 1.0:
            named.append(i)
            kept.append(i)
    return [
        Label(float(curve.user_per_s[i]), float(curve.total_per_s[i]), _batch_and_k(curve, i), color)
        for i in named
    ]
