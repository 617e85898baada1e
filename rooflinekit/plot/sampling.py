"""Acceptance sampled and computed, and what lossy rules pay for more of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from rooflinekit.plot.style import INK, MUTED, PALETTE, SMALL, axes_or_new, head, legend, plain_ticks
from rooflinekit.sampling import Chain, simulate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

KS = (1, 2, 3, 4, 5, 6, 7, 8)


def length_curve(
    chains: Mapping[str, Chain],
    ax: Axes | None = None,
    *,
    ks: Sequence[int] = KS,
    sequences: int = 300,
    rounds: int = 20,
    seed: int = 0,
    title: str = "",
    subtitle: str = "",
) -> Axes:
    """Draw acceptance length against K: sampled points, the exact line, and the formula with one alpha.

    Parameters
    ----------
    chains
        What to sample, by name.
    ax
        Where to draw; a new figure when not given.
    ks
        K to try.
    sequences, rounds, seed
        Of the simulation.
    title, subtitle
        Text above.

    Notes
    -----
    Bars are two standard errors to either side. The formula, dashed, takes alpha = E[beta] over the target's
    text and assumes independent drafts (Leviathan et al. 2023, equation 1): it is exact where beta is the same
    in every context, where dashes and line coincide.
    """
    ax = axes_or_new(ax)
    for color, (name, chain) in zip(PALETTE, chains.items(), strict=False):
        exact = [chain.acceptance_length(k) for k in ks]
        formula = [chain.independent_length(k) for k in ks]
        sampled = [simulate(chain, k, sequences=sequences, rounds=rounds, seed=seed + k) for k in ks]
        ax.plot(
            ks, exact, color=color, lw=1.5, label=f"{name}, E[beta] = {chain.alpha:.2f}", gid=f"exact {name}"
        )
        ax.plot(ks, formula, color=INK, lw=1.2, ls=(0, (4, 3)), zorder=3, gid=f"formula {name}")
        ax.errorbar(
            ks,
            [one.acceptance_length for one in sampled],
            yerr=[2 * one.standard_error for one in sampled],
            fmt="o",
            color=color,
            ms=4,
            capsize=3,
            lw=1.2,
            zorder=4,
            gid=f"sampled {name}",
        )
    ax.plot([], [], color=INK, lw=1.2, ls=(0, (4, 3)), label="formula with alpha = E[beta]")
    ax.set(xlabel="K, drafted tokens per round", ylabel="acceptance length, tokens per round")
    ax.set_ylim(bottom=1.0)
    plain_ticks(ax.xaxis, [float(k) for k in ks])
    counted = f"points: {sequences} sequences of {rounds} rounds, two standard errors; lines: exact"
    head(ax, title or "Acceptance length, sampled and computed", subtitle or counted)
    legend(ax, loc="upper left")
    return ax


def lossy_curve(
    rules: Mapping[str, Sequence[Chain]],
    ax: Axes | None = None,
    *,
    k: int = 4,
    exact: Chain | None = None,
    title: str = "",
    subtitle: str = "",
) -> Axes:
    """Draw acceptance length against distance from the target, one line per rule as its knob turns.

    Parameters
    ----------
    rules
        Chains of one target and drafter, by rule; along each the knob goes from strict to loose.
    ax
        Where to draw; a new figure when not given.
    k
        Drafted tokens per round.
    exact
        The lossless rule, marked as a point at distance 0.
    title, subtitle
        Text above.

    Notes
    -----
    The distance is the total variation of the next emitted token, averaged over the contexts of the target's
    text.
    """
    ax = axes_or_new(ax)
    marks = ("o", "s", "^", "D", "v", "P", "X")
    for color, mark, (name, chains) in zip(PALETTE, marks, rules.items(), strict=False):
        points = np.array([[distance_of(one), one.acceptance_length(k)] for one in chains])
        ax.plot(
            *points.T, color=color, lw=1.4, marker=mark, ms=4, label=name, gid=f"rule {name}", clip_on=False
        )
    if exact is not None:
        at = exact.acceptance_length(k)
        ax.plot([0.0], [at], "*", color=INK, ms=13, mec="white", zorder=5, gid="exact", clip_on=False)
        ax.axhline(at, color=MUTED, lw=0.9, ls=":", zorder=1)
        ax.annotate(
            f"lossless: {at:.2f}",
            (1.0, at),
            (-4, 3),
            xycoords=("axes fraction", "data"),
            textcoords="offset points",
            ha="right",
            va="bottom",
            fontsize=SMALL,
            color=MUTED,
        )
    ax.set(
        xlabel="distance of the output from the target (total variation of a token)",
        ylabel="acceptance length, tokens per round",
    )
    ax.set_xlim(left=0.0)
    head(
        ax,
        title or f"What lossy acceptance pays, K = {k}",
        subtitle or "exact, on an example; up and left is better",
    )
    legend(ax, loc="upper left")
    return ax


def distance_of(chain: Chain) -> float:
    """Total variation of the next emitted token, averaged over the contexts of the target's text."""
    return float(chain.text_share() @ chain.verdict.total_variation)
