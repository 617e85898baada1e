"""Round-robin sampling: each round holds every case of a sweep in random order, until the medians stand."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from statistics import median

from rooflinekit.measurement import median_interval
from rooflinekit.microbench.device import Sample, Timer

SLICE_S = 4e-3
"""Scheduler slices are multiples of this (s) on common kernels."""


@dataclass(frozen=True, slots=True)
class Limits:
    """When a sweep stops.

    Attributes
    ----------
    half_width
        Half width of the 95 % interval over the median at which a case is done (ratio).
    rounds
        Fewest rounds, and fewest clean samples before an interval is believed (count).
    most_rounds
        Most rounds (count).
    cap_s
        Time after which a sweep stops with what it has (s).
    trial_rounds
        Rounds in which implementations compete (count).
    """

    half_width: float = 0.02
    rounds: int = 8
    most_rounds: int = 200
    cap_s: float = 4.0
    trial_rounds: int = 3


@dataclass(slots=True)
class Series:
    """Samples of one case, by the round they were taken in."""

    by_round: dict[int, tuple[Sample, ...]] = field(default_factory=dict)

    @property
    def samples(self) -> tuple[Sample, ...]:
        """All samples in the order they were taken."""
        return tuple(sample for batch in self.by_round.values() for sample in batch)

    @property
    def kept_s(self) -> tuple[float, ...]:
        """Times of the clean samples; of all where none was clean or judged (s)."""
        return tuple(s.seconds for s in self.samples if s.clean) or tuple(s.seconds for s in self.samples)

    @property
    def clean_share(self) -> float:
        """Share of samples not known to be disturbed (0..1)."""
        samples = self.samples
        return sum(s.clean is not False for s in samples) / len(samples) if samples else 1.0

    @property
    def median_s(self) -> float:
        """Median of the kept samples (s)."""
        return median(self.kept_s)

    @property
    def standing_s(self) -> float:
        """Time by which implementations are ranked (s): the median, or the quickest where few are clean.

        A disturbed sample only ever reads too long, and too long by chance.
        """
        samples = self.samples
        if sum(s.clean is not False for s in samples) >= min(3, len(samples)):
            return self.median_s
        return min(s.seconds for s in samples)

    @property
    def half_width(self) -> float:
        """Half the 95 % interval of the median, over the median (ratio)."""
        low, high = median_interval(self.kept_s)
        return (high - low) / 2 / self.median_s

    def converged(self, limits: Limits) -> bool:
        """Whether enough undisturbed samples give a narrow interval."""
        quiet = sum(s.clean is not False for s in self.samples)
        return (
            len(self.by_round) >= limits.rounds
            and quiet >= limits.rounds
            and self.half_width <= limits.half_width
        )


def run_rounds(
    timers: Mapping[str, Timer],
    limits: Limits,
    rng: random.Random,
    always: frozenset[str] = frozenset(),
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, Series]:
    """Sample all cases round by round, shuffled, until each is done or the time is used.

    Parameters
    ----------
    timers
        The cases of a sweep, ready to be timed.
    limits
        When to stop.
    rng
        Gives the order; seeded by the caller and stored with the run.
    always
        Cases that stay in every round (the base of ratios, the read probe), done or not.

    Returns
    -------
    dict
        The samples of each case.
    """
    series = {name: Series() for name in timers}
    start = clock()
    for number in range(limits.most_rounds):
        open_cases = [name for name, one in series.items() if not one.converged(limits)]
        if not open_cases:
            break
        order = sorted({*open_cases, *(always & timers.keys())})
        rng.shuffle(order)
        for name in order:
            # A machine that is never quiet stretches every sample: past two caps even the first rounds end.
            late = clock() - start >= limits.cap_s * (1 if number >= limits.rounds else 2)
            if late and series[name].by_round:
                continue
            series[name].by_round[number] = timers[name].batch()
        if clock() - start >= limits.cap_s * (1 if number + 1 >= limits.rounds else 2):
            break
    return series


def trial(
    timers: Mapping[str, Timer],
    limits: Limits,
    rng: random.Random,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """Return a first time of each implementation (s), from a few interleaved rounds."""
    few = replace(limits, rounds=limits.trial_rounds, most_rounds=limits.trial_rounds, cap_s=limits.cap_s / 4)
    return {name: one.standing_s for name, one in run_rounds(timers, few, rng, clock=clock).items()}


def paired_ratio(one: Series, base: Series, fewest: int = 3) -> tuple[float, ...]:
    """Median over rounds of T/T(base) in the same round, with its 95 % interval.

    Rounds in which both were clean, if there are enough of them, else all rounds: a common disturbance
    cancels in the ratio as long as a call is longer than a scheduler slice.

    >>> a = Series({0: (Sample(2.0),), 1: (Sample(4.0),)})
    >>> b = Series({0: (Sample(1.0),), 1: (Sample(2.0),)})
    >>> paired_ratio(a, b)
    (2.0, 2.0, 2.0)
    """
    everything, clean = [], []
    for number in one.by_round.keys() & base.by_round.keys():
        here, there = one.by_round[number], base.by_round[number]
        ratio = median(s.seconds for s in here) / median(s.seconds for s in there)
        everything.append(ratio)
        if all(s.clean is not False for s in (*here, *there)):
            clean.append(ratio)
    ratios = clean if len(clean) >= fewest else everything
    if not ratios:
        return ()
    return (median(ratios), *median_interval(ratios))


def modes(seconds: tuple[float, ...]) -> tuple[float, float, float] | None:
    """Find two modes: a gap in the sorted samples wider than three times the IQR on either side of it.

    Returns
    -------
    low_s, high_s, low_share
        Medians of both modes (s) and the share of the quick one; ``None`` for one mode.
    """
    ordered = sorted(seconds)
    n = len(ordered)
    edge = max(2, n // 5)
    if n < 10:
        return None
    split = max(range(edge, n - edge + 1), key=lambda i: ordered[i] - ordered[i - 1])
    low, high = ordered[:split], ordered[split:]
    spread = max(_iqr(low), _iqr(high))
    if high[0] - low[-1] <= max(3 * spread, 0.05 * low[-1]):
        return None
    return median(low), median(high), len(low) / n


def _iqr(ordered: list[float]) -> float:
    n = len(ordered)
    return ordered[(3 * n) // 4 if (3 * n) // 4 < n else n - 1] - ordered[n // 4]


def doubts(one: Series, limits: Limits) -> tuple[str, ...]:
    """Say in words what speaks against a series."""
    found = []
    if one.clean_share < 0.5:
        found.append(f"contended: {one.clean_share:.0%} of the samples clean, trust ratios only")
        slices = one.median_s / SLICE_S
        # Beyond a few slices every time is near a multiple of one.
        if 0.9 < slices < 8.5 and abs(slices - round(slices)) < 0.05 and one.half_width < 0.05:
            found.append(f"scheduler slice: the time is {round(slices)} x 4 ms, not that of the kernel")
    split = modes(one.kept_s)
    if split is not None:
        found.append(f"two modes: {split[0]:.3g} s ({split[2]:.0%}) and {split[1]:.3g} s")
    if not one.converged(limits):
        found.append(f"not converged: median within +-{one.half_width:.1%}")
    return tuple(found)
