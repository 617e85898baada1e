"""Confidence-scheduled verification: verify fewer of the drafts that are likely to be rejected.

Under load each verified row costs time. With the survival of every draft known (a drafter's confidence), the
drafts worth verifying are those with the largest survival over the whole batch: since survival falls along a
draft, they are always a beginning of each one. DSpark and vLLM call it adaptive verification (vLLM blog of
2026-08-14): ``B* = argmax (N + sum of the B largest survivals) / (draft + verify(N + B rows))``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from rooflinekit.curve import Case, Floats
from rooflinekit.errors import AcceptanceError
from rooflinekit.load import Load
from rooflinekit.speculation import round_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """How many drafts of each sequence to verify in one round.

    Attributes
    ----------
    lengths
        Drafts verified, by sequence.
    tokens
        Expected tokens of the round, all sequences and their bonus tokens together.
    round_s
        Its time (s).
    same_length
        The best single length for all sequences.
    same_tokens, same_s
        Tokens and time of a round with that length.
    batch_tokens_per_s
        By the number of drafts that are verified in all, the likeliest first: 0, 1, ..., sequences x K.
    same_batch_tokens_per_s
        By the single length of all sequences: 0, 1, ..., K.
    """

    lengths: tuple[int, ...]
    tokens: float
    round_s: float
    same_length: int
    same_tokens: float
    same_s: float
    batch_tokens_per_s: Floats = field(compare=False, repr=False)
    same_batch_tokens_per_s: Floats = field(compare=False, repr=False)

    @property
    def gain(self) -> float:
        """Tokens per second over those of the best single length, less 1."""
        return self.tokens / self.round_s / (self.same_tokens / self.same_s) - 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """Every number of verified drafts, the likeliest first.

    Attributes
    ----------
    survival
        Shape (sequences, K).
    order
        Drafts in the order they are taken: ``position * sequences + sequence``.
    rows
        Verified rows in all, one known token per sequence included; none of the drafts up to all of them.
    tokens
        Expected tokens of the round, bonus tokens included.
    round_s
        Its time (s).
    """

    survival: Floats
    order: NDArray[np.int64]
    rows: Floats
    tokens: Floats
    round_s: Floats

    @property
    def tokens_per_s(self) -> Floats:
        """Tokens per second of all sequences together."""
        return self.tokens / self.round_s

    @property
    def same_tokens(self) -> Floats:
        """Expected tokens of a round where every sequence has 0 .. K drafts verified."""
        sums = np.concatenate([[0.0], np.cumsum(self.survival.sum(axis=0))])
        return np.asarray(len(self.survival) + sums)

    @property
    def same_s(self) -> Floats:
        """Time of such a round (s)."""
        return self.round_s[:: len(self.survival) or 1][: self.survival.shape[1] + 1]


def choices_by_rows(survival: Floats, round_s: Callable[[Floats], Floats]) -> Choices:
    """Tokens and time of a round by its verified rows; parameters and errors as in :func:`verify_by_confidence`."""
    values = np.asarray(survival, dtype=float)
    if values.ndim != 2 or not np.all((values >= 0) & (values <= 1)) or np.any(np.diff(values) > 1e-12):
        raise AcceptanceError(
            "survival by sequence must be a table of probabilities that fall along each row; give one row per sequence"
        )
    sequences = len(values)
    # Among equals the earlier positions come first, so that what is chosen is a beginning of each draft.
    order = np.argsort(-values.T.ravel(), kind="stable")
    tokens = sequences + np.concatenate([[0.0], np.cumsum(values.T.ravel()[order])])
    rows = sequences + np.arange(len(tokens), dtype=float)
    times = np.broadcast_to(round_s(rows), tokens.shape)
    return Choices(survival=values, order=order, rows=rows, tokens=tokens, round_s=times)


def verify_by_confidence(survival: Floats, round_s: Callable[[Floats], Floats]) -> Verification:
    """Choose the drafts to verify that give most tokens per second.

    Parameters
    ----------
    survival
        P(the first i drafts of a sequence are all accepted), shape (sequences, K), falling along K.
    round_s
        Time of a round (s) by its verified rows in all (drafts, and one known token per sequence).

    Returns
    -------
    Verification
        Exact for this cost of rows: every number of verified drafts is tried, the likeliest first.

    Raises
    ------
    AcceptanceError
        Not a table of falling probabilities.

    Examples
    --------
    >>> survival = np.array([[0.9, 0.8], [0.2, 0.1]])
    >>> verify_by_confidence(survival, lambda rows: 1.0 + 0.5 * rows).lengths
    (2, 0)
    """
    choices = choices_by_rows(survival, round_s)
    values, order, tokens, times = choices.survival, choices.order, choices.tokens, choices.round_s
    sequences = len(values)
    best = int(np.argmax(tokens / times))
    lengths = np.bincount(order[:best] % sequences, minlength=sequences)
    same_tokens, same_s = choices.same_tokens, choices.same_s
    same = int(np.argmax(same_tokens / same_s))
    return Verification(
        lengths=tuple(int(length) for length in lengths),
        tokens=float(tokens[best]),
        round_s=float(times[best]),
        same_length=same,
        same_tokens=float(same_tokens[same]),
        same_s=float(same_s[same]),
        batch_tokens_per_s=tokens / times,
        same_batch_tokens_per_s=same_tokens / same_s,
    )


def schedule_verification(case: Case, survival: Floats, context: float) -> Verification:
    """Choose the drafts to verify on a device, for sequences whose drafts are K tokens long.

    Drafting is paid for all K of every sequence; rows of unequal lengths are timed at their mean width.

    Parameters
    ----------
    case
        Machine, target, drafter, and how rounds are run; its acceptance is not used.
    survival
        As in :func:`verify_by_confidence`.
    context
        Tokens in the cache.
    """
    return verify_by_confidence(survival, round_time(case, survival, context))


def round_time(case: Case, survival: Floats, context: float) -> Callable[[Floats], Floats]:
    """Time of a round (s) by its verified rows in all; parameters as in :func:`schedule_verification`."""
    sequences, k = np.shape(survival)
    load, emitted = Load(float(sequences), context), 1.0 + float(np.sum(survival)) / sequences

    def round_s(rows: Floats) -> Floats:
        wide = replace(case.drafting, width=rows / sequences)
        found = round_of(case.machine, case.target, case.drafter, load, emitted, k=float(k), drafting=wide)
        return np.asarray(found.round_s)

    return round_s
