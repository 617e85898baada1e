"""Signs of a fault in measured acceptance, and numbers that contradict each other."""

from __future__ import annotations

from collections.abc import Sequence

from rooflinekit.errors import AcceptanceError

CLIFF = 0.25
"""A conditional rate below this share of the one before it is a cliff."""
HEALTHY = 0.4
"""Conditional rate before a cliff from which the fall is a sign of a fault and not of a weak drafter."""
ROUNDING = 0.011
"""Difference that two printed digits explain."""


def cliff(values: Sequence[float]) -> int | None:
    """Last position before acceptance breaks off, or ``None``.

    Published drafters lose at most half of their rate from one position to the next. A drafter whose
    later positions see wrong inputs (a cache or a position that is not advanced) loses nearly all of it.

    >>> cliff([0.80, 0.60, 0.01, 0.01, 0.0, 0.0])
    2
    >>> cliff([0.8, 0.6, 0.42]) is None
    True
    """
    rates = [now / before if before > 0 else 0.0 for before, now in zip([1.0, *values], values, strict=False)]
    for i in range(1, len(rates)):
        if rates[i - 1] >= HEALTHY and rates[i] < CLIFF * rates[i - 1]:
            return i
    return None


def survival_warnings(values: Sequence[float]) -> tuple[str, ...]:
    """Sentences about a survival vector that looks like a fault."""
    place = cliff(values)
    if place is None:
        return ()
    text = (
        f"survival breaks off after position {place} ({values[place - 1]:.3g}, then {values[place]:.3g}): a fault of "
        "the drafter or the engine looks like this (later positions drafted from wrong inputs), so fit nothing to "
        f"it; use K = {place} until it is found"
    )
    return (text,)


def check_sum(values: Sequence[float], acceptance_length: float) -> tuple[str, ...]:
    """Hold a survival vector against the acceptance length of the same rounds: ``A - 1 = sum S_i``.

    Raises
    ------
    AcceptanceError
        They contradict each other.
    """
    total = sum(values)
    # Each printed survival is rounded too.
    slack = ROUNDING + 0.001 * len(values)
    if abs(acceptance_length - 1.0 - total) <= slack:
        return ()
    if abs(acceptance_length - total) <= slack:
        text = (
            f"acceptance length {acceptance_length:g} equals the sum of the survivals, so it leaves the bonus token "
            f"out; {total + 1:.3g} is used"
        )
        return (text,)
    raise AcceptanceError(
        f"acceptance length {acceptance_length:g} and survivals contradict each other: 1 + their sum is "
        f"{total + 1:.4g}; if these are conditional rates, call them 'conditional'"
    )


def check_rate(rate: float, acceptance_length: float, measured_k: int) -> tuple[str, ...]:
    """Hold an acceptance rate against the acceptance length of the same rounds: ``rate = (A - 1) / K``.

    SGLang before pull request 23530 (2026) printed A / (K + 1) as its rate, which counts the bonus token as an
    accepted draft; Chen et al. 2023 and DSpark's Figure 5 do so too.

    Raises
    ------
    AcceptanceError
        The rate fits no definition.

    Examples
    --------
    >>> check_rate(0.39, 2.17, 3)
    ()
    >>> check_rate(0.54, 2.17, 3)[0].startswith("rate 0.54 is A / (K + 1)")
    True
    """
    if not 0.0 <= rate <= 1.0:
        raise AcceptanceError(
            f"acceptance rate {rate:g} is not in 0..1; divide percent by 100, and give tokens per round as "
            "'acceptance_length'"
        )
    drafts = (acceptance_length - 1.0) / measured_k
    if abs(rate - drafts) <= ROUNDING:
        return ()
    if abs(rate - acceptance_length / (measured_k + 1)) <= ROUNDING:
        text = (
            f"rate {rate:g} is A / (K + 1), which counts the bonus token (SGLang before pull request 23530 prints "
            f"it so); of the drafts {drafts:.3g} are accepted, and the acceptance length is what is used"
        )
        return (text,)
    raise AcceptanceError(
        f"rate {rate:g} and acceptance length {acceptance_length:g} contradict each other at K = {measured_k}: "
        f"(A - 1) / K is {drafts:.3g}; check measured_k, and whether the length includes the bonus token"
    )


def check_block(measured_k: int, trained_k: int) -> tuple[str, ...]:
    """Say where acceptance was measured past the block that the drafter was trained with."""
    if measured_k <= trained_k:
        return ()
    text = (
        f"K = {measured_k} is past the trained block of {trained_k}: drafts behind it come from positions the drafter "
        f"never saw, so trust K up to {trained_k} only"
    )
    return (text,)
