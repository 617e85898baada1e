"""Where the gain goes: from the ideal K + 1 down to the speedup, a bar for each loss."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rooflinekit.curve import Loss
from rooflinekit.plot.style import BLUE, GREEN, INK, MUTED, SMALL, VERMILION, axes_or_new, head
from rooflinekit.recommendation import Recommendation

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SMALLEST = 0.01
"""A term below this share of the ideal goes into ``other``."""

OTHER = "other"
WORDS = {
    "rejected drafts": "rejected drafts",
    "drafting": "drafting, on the device",
    "drafting: host": "drafting, on the host",
    "host": "host time of wider steps",
    "overlap": "overlap of drafting and verify",
}
"""Terms of the account in the words of the picture; those of the verify speak for themselves."""


def merged_losses(losses: Sequence[Loss], ideal: float, smallest: float = SMALLEST) -> tuple[Loss, ...]:
    """Terms in the order of the account, small ones added up as ``other`` at the end; the sum stays.

    Parameters
    ----------
    losses
        Terms of :func:`~rooflinekit.curve.loss_account`.
    ideal
        Speedup without any loss: K + 1.
    smallest
        Share of the ideal below which a term is small. A single small one keeps its name.
    """
    small = [one for one in losses if abs(one.speedup_lost) < smallest * ideal]
    if len(small) < 2:
        return tuple(losses)
    large = [one for one in losses if abs(one.speedup_lost) >= smallest * ideal]
    return (*large, Loss(term=OTHER, speedup_lost=sum(one.speedup_lost for one in small)))


def loss_waterfall(
    answer: Recommendation, ax: Axes | None = None, *, title: str = "", subtitle: str = ""
) -> Axes:
    """Draw the loss account of a recommendation as a waterfall, from the ideal down to the speedup.

    Parameters
    ----------
    answer
        The recommendation; its account belongs to its K.
    ax
        Where to draw; a new figure when not given.
    title, subtitle
        Text above.
    """
    ideal = answer.k + 1.0
    losses = merged_losses(answer.loss, ideal)
    ax = axes_or_new(ax, (7.2, 1.6 + 0.34 * (len(losses) + 2)))
    _bar(ax, 0, 0.0, ideal, MUTED, "ideal")
    _text(ax, 0, ideal, f"{ideal:g}x")
    left = ideal
    for row, one in enumerate(losses, start=1):
        after = left - one.speedup_lost
        _bar(
            ax,
            row,
            min(after, left),
            max(after, left),
            VERMILION if one.speedup_lost > 0 else GREEN,
            one.term,
        )
        _text(ax, row, max(after, left), _signed(-one.speedup_lost))
        ax.plot([left, left], [row - 1 + 0.36, row - 0.36], color=MUTED, lw=0.8, gid="level")
        left = after
    last = len(losses) + 1
    ax.plot([left, left], [last - 1 + 0.36, last - 0.36], color=MUTED, lw=0.8, gid="level")
    _bar(ax, last, 0.0, answer.speedup, BLUE, "speedup")
    _text(ax, last, answer.speedup, f"{answer.speedup:.2f}x", bold=True)
    names = [f"ideal: {ideal:g} tokens for a plain step", *(_words(one.term) for one in losses)]
    _finish(ax, [*names, "speedup"], ideal)
    said = f"Where the gain of {answer.drafter} goes, K = {answer.k}"
    head(ax, title or said, subtitle or conditions(answer))
    return ax


def conditions(answer: Recommendation) -> str:
    """What a recommendation holds for, in two lines."""
    ranks = f"{answer.tp} x " if answer.tp > 1 else ""
    load = f"{answer.acceptance}, {answer.dtype}, batch {answer.batch:g}, context {answer.context:g}"
    return f"{answer.model} on {ranks}{answer.hardware}; {answer.calibration}\n{load}"


def _signed(value: float) -> str:
    return f"{value:+.2f}".replace("-", "\u2212") if abs(value) >= 0.005 else "less than 0.01"


def _words(term: str) -> str:
    return WORDS.get(term, term)


def _bar(ax: Axes, row: int, low: float, high: float, color: str, name: str) -> None:
    # Whole amounts are solid; what is taken is pale, so that the picture can be read without colour.
    whole = name in ("ideal", "speedup")
    ax.barh(
        [row],
        [high - low],
        left=[low],
        height=0.72,
        color=color,
        alpha=0.9 if whole else 0.45,
        edgecolor=color,
        gid=f"bar {name}",
    )


def _text(ax: Axes, row: int, x: float, text: str, *, bold: bool = False) -> None:
    ax.annotate(
        text,
        (x, row),
        (5, 0),
        textcoords="offset points",
        va="center",
        fontsize=SMALL,
        color=INK,
        fontweight="bold" if bold else "normal",
    )


def _finish(ax: Axes, names: Sequence[str], ideal: float) -> None:
    ax.axvline(1.0, color=INK, lw=1.0, ls=":", gid="break even", zorder=3)
    ax.annotate(
        "break even",
        (1.0, 0.0),
        (4, 5),
        xycoords=("data", "axes fraction"),
        textcoords="offset points",
        fontsize=SMALL,
        color=MUTED,
    )
    ax.set_yticks(range(len(names)), names)
    ax.tick_params(axis="y", length=0)
    ax.set(ylim=(len(names) + 0.05, -0.6), xlim=(0.0, 1.08 * ideal))
    ax.grid(visible=False, axis="y")
    ax.xaxis.set_major_formatter("{x:g}x")
    ax.set_xlabel("tokens per second over plain decoding")
