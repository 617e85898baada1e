"""Confidence-scheduled verification: tokens per second against the rows verified, for a batch of unlike drafts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from rooflinekit.plot.labels import Floats, Label, place
from rooflinekit.plot.style import BLUE, INK, MUTED, VERMILION, axes_or_new, head
from rooflinekit.scheduling import Verification, choices_by_rows, verify_by_confidence

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEGEND = "line: the likeliest drafts first; diamonds: as many of every sequence"


def schedule_curve(
    survival: Floats,
    round_s: Callable[[Floats], Floats],
    ax: Axes | None = None,
    *,
    title: str = "Which drafts to verify",
    subtitle: str = "",
) -> Axes:
    """Draw tokens per second against verified rows, the optimum and the best equal length marked.

    Parameters
    ----------
    survival
        P(the first i drafts of a sequence are all accepted), shape (sequences, K), falling along K.
    round_s
        Time of a round (s) by its verified rows in all, as :func:`~rooflinekit.scheduling.round_time` gives it.
    ax
        Where to draw; a new figure when not given.
    title, subtitle
        Text above.

    Raises
    ------
    AcceptanceError
        Not a table of falling probabilities.
    """
    ax = axes_or_new(ax)
    choices, best = choices_by_rows(survival, round_s), verify_by_confidence(survival, round_s)
    sequences, k = choices.survival.shape
    ax.plot(choices.rows, choices.tokens_per_s, color=BLUE, lw=1.8, gid="by confidence")
    same_rows, same_per_s = sequences * np.arange(1.0, k + 2.0), choices.same_tokens / choices.same_s
    ax.plot(same_rows, same_per_s, "D-", color=VERMILION, lw=0.8, ms=5, mec="white", gid="equal lengths")
    rows = float(sequences + sum(best.lengths))
    top, same = best.tokens / best.round_s, best.same_tokens / best.same_s
    at = float(sequences * (best.same_length + 1))
    ax.plot([rows], [top], "*", color=BLUE, mec="white", ms=16, zorder=4, gid="best")
    ax.plot([at], [same], "D", color=VERMILION, mec=INK, ms=8, zorder=4, gid="best equal length")
    values = np.concatenate([choices.tokens_per_s, same_per_s])
    span = float(np.ptp(values)) or float(values.max())
    ax.set(ylim=(float(values.min()) - 0.15 * span, float(values.max()) + 0.25 * span))
    ax.set(xlabel="rows verified in all (one known token per sequence included)")
    ax.set(ylabel="tokens per second of the whole batch")
    ax.yaxis.set_major_formatter("{x:,.0f}")
    head(ax, title, f"{subtitle}\n{LEGEND}".strip())
    words = f"{_words(best)}\n{rows:g} rows, {100 * best.gain:+.1f} % over equal lengths"
    equal = f"{best.same_length} of every draft\n{at:g} rows"
    labels = [Label(rows, top, words, BLUE), Label(at, same, equal, VERMILION)]
    others = [Label(x, y, str(n), MUTED) for n, (x, y) in enumerate(zip(same_rows, same_per_s, strict=True))]
    place(ax, labels, spots=_AROUND)
    place(ax, [one for one in others if one.x != at], spots=_CLOSE)
    return ax


_AROUND = (
    (0.0, 10.0, "center", "bottom"),
    (10.0, 8.0, "left", "bottom"),
    (-10.0, 8.0, "right", "bottom"),
    (10.0, -10.0, "left", "top"),
    (-10.0, -10.0, "right", "top"),
    (0.0, -12.0, "center", "top"),
)
_CLOSE = (
    (0.0, -6.0, "center", "top"),
    (-5.0, -5.0, "right", "top"),
    (5.0, -5.0, "left", "top"),
    (5.0, 5.0, "left", "bottom"),
)


def _words(best: Verification) -> str:
    """How many drafts of how many sequences: ``24 x 7, 24 x 2 drafts``; a range where there are many lengths."""
    lengths, counts = np.unique(best.lengths, return_counts=True)
    if len(lengths) > 4:
        return f"{lengths[0]} to {lengths[-1]} of a draft"
    return ", ".join(f"{n} x {one}" for one, n in zip(lengths[::-1], counts[::-1], strict=True)) + " drafts"
