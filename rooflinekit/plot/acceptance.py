"""Survival by position: what was measured, and what a constant or a decaying rate would make of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from rooflinekit.acceptance import Acceptance, Survival
from rooflinekit.acceptance.fits import Fit, fit_constant, fit_decay
from rooflinekit.acceptance.posterior import Estimate
from rooflinekit.acceptance.table import PositionRow, by_position
from rooflinekit.plot.style import (
    BLUE,
    INK,
    LINES,
    MUTED,
    SMALL,
    VERMILION,
    axes_or_new,
    head,
    legend,
    plain_ticks,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLORS = {"constant": VERMILION, "decay": BLUE}


def fits_of(acceptance: Acceptance) -> dict[str, Fit]:
    """Constant and decaying fit of a survival; none of what is such a model already, or shows a fault."""
    if not isinstance(acceptance, Survival) or acceptance.faults or len(acceptance.values) < 2:
        return {}
    return {"constant": fit_constant(acceptance), "decay": fit_decay(acceptance)}


def survival_curve(
    acceptance: Acceptance,
    ax: Axes | None = None,
    *,
    max_k: int | None = None,
    fits: bool = True,
    title: str = "",
    subtitle: str = "",
) -> Axes:
    """Draw S_i against the position i: points with 90 % intervals where counted, fitted models as lines.

    Parameters
    ----------
    acceptance
        Any kind; fits are drawn to a survival only, and not to one that shows a fault.
    ax
        Where to draw; a new figure when not given.
    max_k
        Last position; by default all that were measured, or eight of any.
    fits
        Whether to draw fits.
    title, subtitle
        Text above; by default the label, and rounds.
    """
    ax = axes_or_new(ax)
    rows = by_position(acceptance, max_k)
    places = np.array([row.position for row in rows], dtype=float)
    if fits:
        for name, fit in fits_of(acceptance).items():
            _model(ax, name, fit, places)
    _points(ax, rows, measured=isinstance(acceptance, Survival))
    top = float(places[-1])
    ax.set(xlim=(0.5, top + 0.5), ylim=(0.0, 1.03), xlabel="position i of the draft")
    ax.set_ylabel("survival S_i, the first i drafts all accepted")
    plain_ticks(ax.xaxis, list(places[:: max(1, len(places) // 16)]))
    rounds = (
        "rounds not counted" if acceptance.rounds is None else f"{acceptance.rounds} rounds, 90 % intervals"
    )
    head(ax, title or "Acceptance by position", subtitle or f"{_short(acceptance.label)}; {rounds}")
    # High survival fills the upper right; then there is room below.
    high = rows[len(rows) // 2].survival > 0.7
    legend(ax, loc="lower left" if high else "upper right", reverse=True)
    _warn(ax, acceptance.warnings, left=not high)
    return ax


def _short(text: str, longest: int = 78) -> str:
    return text if len(text) <= longest else f"{text[: longest - 3]}..."


def _points(ax: Axes, rows: Sequence[PositionRow], *, measured: bool) -> None:
    xs, ys = [row.position for row in rows], [row.survival for row in rows]
    low = [row.survival - (row.survival if row.survival_low is None else row.survival_low) for row in rows]
    high = [(row.survival if row.survival_high is None else row.survival_high) - row.survival for row in rows]
    last = rows[-1]
    name = "measured" if measured else "as described"
    text = f"{name}: {last.acceptance_length:.2f} tokens per round at K = {last.position}"
    if last.length_low is not None and last.length_high is not None:
        text += f" ({last.length_low:.2f} .. {last.length_high:.2f})"
    if any(low) or any(high):
        ax.errorbar(
            xs, ys, [low, high], fmt="none", ecolor=INK, elinewidth=1.1, capsize=3, zorder=3, clip_on=False
        )
    ax.plot(
        xs,
        ys,
        "o" if measured else "o-",
        color=INK,
        ms=5.5,
        mec="white",
        mew=0.8,
        zorder=4,
        clip_on=False,
        label=text,
        gid=name,
    )


def _model(ax: Axes, name: str, fit: Fit, places: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> None:
    values = np.asarray(fit.model.survival_at(places))
    rates = " to ".join(_rate(one) for one in fit.estimates.values())
    wide = "" if fit.adequate else ", not good enough"
    length = float(fit.model.expected(float(places[-1])))
    ax.plot(
        places,
        values,
        color=COLORS[name],
        lw=1.6,
        ls=LINES["assumed"] if not fit.adequate else LINES["fitted"],
        label=f"{name} rate {rates}: {length:.2f}{wide}",
        gid=f"fit {name}",
    )


def _rate(one: Estimate) -> str:
    around = "" if one.low is None or one.high is None else f" ({one.low:.3f} .. {one.high:.3f})"
    return f"{one.estimate:.3f}{around}"


def _warn(ax: Axes, warnings: Sequence[str], *, left: bool) -> None:
    """First warning below the picture's data, where a reader of the picture alone sees it."""
    if warnings:
        more = f" (and {len(warnings) - 1} more)" if len(warnings) > 1 else ""
        ax.annotate(
            f"note: {_wrapped(warnings[0])}{more}",
            (0.015 if left else 0.985, 0.02),
            ha="left" if left else "right",
            xycoords="axes fraction",
            fontsize=SMALL - 1.0,
            color=MUTED,
            va="bottom",
        )


def _wrapped(text: str, width: int = 62) -> str:
    from textwrap import fill

    return fill(text, width)
