"""What drafting costs: the time of all drafting of a round against K, for drafters of every kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from rooflinekit.curve import Case, allowed_k, rounds_by_k
from rooflinekit.load import Load
from rooflinekit.plot.labels import Floats, Label, label_ends
from rooflinekit.plot.style import (
    INK,
    MARKERS,
    MUTED,
    PALETTE,
    SMALL,
    axes_or_new,
    head,
    one_two_five,
    plain_ticks,
    settle,
)
from rooflinekit.units import render

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FLAT, PROPORTIONAL = 0.07, 0.15
"""A draft time that grows by less than the first share over all K counts as constant; one that would leave less
than the second share of its first token at K = 0 counts as proportional."""


ENDS_AT = 0.68
"""Where labels start, as a fraction of the width."""


@dataclass(frozen=True, slots=True)
class DraftCurve:
    """Draft time of one drafter by K.

    Attributes
    ----------
    label
        Name of the line.
    k
        Drafted tokens per round, 1 and up.
    device_s, host_s
        Time of all drafting of a round on the device and on the host (s).
    plain_s
        A plain step, host included (s).
    """

    label: str
    k: Floats
    device_s: Floats
    host_s: Floats
    plain_s: float

    @property
    def total_s(self) -> Floats:
        """All drafting of a round, host included (s)."""
        return self.device_s + self.host_s

    @property
    def slope_s(self) -> float:
        """What one drafted token more costs, between the first K and the last (s)."""
        total = self.total_s
        return float((total[-1] - total[0]) / (self.k[-1] - self.k[0])) if len(total) > 1 else 0.0

    @property
    def words(self) -> str:
        """The line as a formula: so much a round, so much a drafted token."""
        first, slope = float(self.total_s[0]), self.slope_s
        once = first - slope * float(self.k[0])
        if abs(slope) * float(self.k[-1] - self.k[0]) <= FLAT * first:
            return f"{_two_digits(first)} for any K"
        if abs(once) <= PROPORTIONAL * first:
            return f"{_two_digits(slope)} per token"
        sign = "-" if slope < 0 else "+"
        return f"{_two_digits(once)} {sign} {_two_digits(abs(slope))} per token"


def _two_digits(seconds: float) -> str:
    return render(float(f"{seconds:.2g}"), "s")


def draft_curves(
    cases: Sequence[Case], load: Load, max_k: int = 16, labels: Sequence[str] = ()
) -> tuple[DraftCurve, ...]:
    """Draft time by K, a curve for each case, as far as its drafter was trained and its acceptance measured.

    Parameters
    ----------
    cases
        One for each drafter, of one target on one device.
    load
        Batch and context.
    max_k
        Largest K.
    labels
        Names; by default the drafters'.
    """
    found = []
    for case, label in zip(cases, labels or [case.drafter.name for case in cases], strict=True):
        rounds = rounds_by_k(case, load, allowed_k(case.drafter, case.acceptance, max_k))
        k = np.asarray(rounds.k)
        device_s, host_s = (
            np.broadcast_to(np.asarray(values, dtype=float), k.shape)
            for values in (rounds.draft_s, rounds.draft_host_s)
        )
        found.append(DraftCurve(label, k, device_s, host_s, float(np.max(rounds.plain_s))))
    return tuple(found)


def draft_cost_curve(
    curves: Sequence[DraftCurve],
    ax: Axes | None = None,
    *,
    title: str = "Time of drafting by K",
    subtitle: str = "",
) -> Axes:
    """Draw draft time against K on logarithmic axes: in proportion to K is a diagonal, constant is level.

    Parameters
    ----------
    curves
        What :func:`draft_curves` returns; their plain step is the unit of the right-hand axis.
    ax
        Where to draw; a new figure when not given.
    title, subtitle
        Text above.

    Notes
    -----
    Thick lines count the host. Where it adds to drafting on the device, a thin line is the device alone.
    """
    ax = axes_or_new(ax)
    top = max(float(curve.k[-1]) for curve in curves)
    ends = []
    for index, curve in enumerate(curves):
        color, marker = PALETTE[index % len(PALETTE)], MARKERS[index % len(MARKERS)]
        milliseconds = 1e3 * curve.total_s
        ax.plot(curve.k, milliseconds, color=color, lw=1.8, marker=marker, ms=4.5, gid=f"draft {curve.label}")
        if np.any(curve.host_s > 0.0) and np.all(curve.device_s > 0.0):
            alone = 1e3 * curve.device_s
            ax.plot(curve.k, alone, color=color, lw=0.9, gid=f"device {curve.label}")
            ax.fill_between(curve.k, alone, milliseconds, color=color, alpha=0.1, lw=0)
        ends.append(
            Label(float(curve.k[-1]), float(milliseconds[-1]), f"{curve.label}\n{curve.words}", color)
        )
    _scales(ax, curves, top)
    if ax.findobj(lambda artist: str(artist.get_gid()).startswith("device ")):
        subtitle = f"{subtitle}\nthick: host included; thin below it: the device alone".strip()
    head(ax, title, subtitle)
    label_ends(ax, ends, at=ENDS_AT)
    return ax


def _scales(ax: Axes, curves: Sequence[DraftCurve], top: float) -> None:
    """Logarithmic axes with room for labels on the right; on the left milliseconds, on the right plain steps."""
    values = 1e3 * np.concatenate([part for curve in curves for part in (curve.total_s, curve.device_s)])
    plain_ms = 1e3 * curves[0].plain_s
    low = min(float(values[values > 0].min(initial=plain_ms)), 0.5 * plain_ms)
    high = max(float(values.max()), 1.2 * plain_ms)
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    left, top = 0.93, max(top, 2.0)
    right = left * (top / left) ** (1.0 / (ENDS_AT - 0.03))
    ax.set(xlim=(left, right), ylim=(low / 1.4, high * 1.4))
    plain_ticks(ax.xaxis, [float(k) for k in (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 128) if k <= top])
    plain_ticks(ax.yaxis, one_two_five(*ax.get_ylim()), " ms")
    ax.set(xlabel="K, drafted tokens per round", ylabel="time of all drafting of a round")
    ax.axhline(plain_ms, 0.0, ENDS_AT - 0.02, color=MUTED, lw=1.0, ls=":", gid="plain step")
    ax.annotate(
        f"a plain step, {render(curves[0].plain_s, 's')}",
        (left, plain_ms),
        (5, 3),
        textcoords="offset points",
        fontsize=SMALL,
        color=MUTED,
    )
    steps = ax.secondary_yaxis(
        "right", functions=(partial(np.multiply, 1.0 / plain_ms), partial(np.multiply, plain_ms))
    )
    steps.set_ylabel("in plain steps", color=INK, fontsize=ax.yaxis.label.get_fontsize())
    steps.spines["right"].set(visible=True, color=MUTED, lw=0.8)
    steps.tick_params(
        color=MUTED, labelcolor=INK, labelsize=ax.xaxis.get_major_ticks()[0].label1.get_fontsize()
    )
    settle(ax)
    plain_ticks(steps.yaxis, one_two_five(*(y / plain_ms for y in ax.get_ylim())))
