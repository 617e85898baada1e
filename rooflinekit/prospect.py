"""What surrounds a recommendation: where it stops paying, what would help more, and K by batch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from rooflinekit.acceptance import Mixture
from rooflinekit.advice import Change, changes
from rooflinekit.capacity import largest_batch
from rooflinekit.curve import Case, allowed_k, check_k, curve_of, rounds_by_k
from rooflinekit.drafters.base import Drafter
from rooflinekit.engines import forced_acceptance, schedule_flags
from rooflinekit.hardware import Hardware
from rooflinekit.limits import Limits, Stretch, best_k_table, idle_drafter, limits_of, schedule
from rooflinekit.load import Load
from rooflinekit.scheduling import schedule_verification

SCHEDULE_BATCH = 256
"""Largest batch of a schedule, unless a larger one was asked about."""

SORTED_DRAFTS = 16_384
"""Most drafts of all sequences together that are put in order of confidence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ByConfidence:
    """Verification of unlike sequences, each as far as its drafts are worth it.

    Attributes
    ----------
    k
        Drafted tokens of each sequence.
    lengths
        Of these verified, by sequence.
    gain
        Tokens per second over the best single K for all, less 1.
    """

    k: int
    lengths: tuple[int, ...]
    gain: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """Around one K.

    Attributes
    ----------
    limits
        Break-even points, and the batches and contexts that pay.
    changes
        What would gain, the most first; empty where nothing would.
    schedule
        K by batch at the context that was asked about.
    idle_drafter
        Cost of a loaded drafter while K is 0, as a fraction of a plain step.
    schedule_flags
        Options that let K follow the batch, by engine.
    forced_acceptance
        Options that force the acceptance assumed, by engine, so that a run shows the cost alone.
    by_confidence
        Drafts worth verifying of each sequence, where sequences are accepted differently (a mixture); ``None``
        elsewhere, and for batches too large to put their drafts in order.
    """

    limits: Limits
    changes: tuple[Change, ...]
    schedule: tuple[Stretch, ...]
    idle_drafter: float
    schedule_flags: Mapping[str, str]
    forced_acceptance: Mapping[str, str]
    by_confidence: ByConfidence | None

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return asdict(self)


def outlook_of(
    case: Case,
    hardware: Hardware,
    load: Load,
    *,
    max_k: int = 16,
    k: int | None = None,
    variants: Iterable[tuple[str, Drafter]] = (),
    drafters: Iterable[tuple[str, Drafter]] = (),
) -> Outlook:
    """Look around the best K, or the K that is judged.

    Parameters
    ----------
    case, hardware, load
        Machine, target, drafter, acceptance; the device, for its memory; batch and context.
    max_k, k
        Largest K to try; or the K to judge.
    variants, drafters
        The drafter made lighter, and others, with what to call them.

    Raises
    ------
    AcceptanceError
        The K asked for was neither trained nor measured.
    """
    if k is not None:
        check_k(case.drafter, case.acceptance, k)
    tried = allowed_k(case.drafter, case.acceptance, max_k)
    curve = curve_of(rounds_by_k(case, load, max(tried, k or 0)))
    chosen = max(curve[:tried], key=lambda point: point.speedup) if k is None else curve[k - 1]
    limits = limits_of(case, hardware, load, curve, chosen.k)
    top = min(max(SCHEDULE_BATCH, load.batch), max(limits.batch_fits, load.batch))
    stretches = schedule(case, float(load.context), max_k, int(top))
    batch, oversize = float(load.batch), limits.batch_fits < load.batch
    # A drafter that does not fit is no advice, unless the one asked about does not fit either.
    others = [
        (words, one)
        for words, one in drafters
        if oversize or _fits(case, hardware, one, load, max_k) >= batch
    ]
    name, survival = case.drafter.name, case.acceptance.survival_at(np.arange(1.0, chosen.k + 1.0))
    return Outlook(
        limits=limits,
        changes=changes(
            case, load, chosen, limits.batch_fits, max_k=max_k, variants=variants, drafters=others
        ),
        schedule=stretches,
        idle_drafter=idle_drafter(case, load),
        schedule_flags=_schedule_flags(name, stretches),
        forced_acceptance=forced_acceptance(np.asarray(survival).tolist(), name),
        by_confidence=_by_confidence(case, load, tried),
    )


def _fits(case: Case, hardware: Hardware, drafter: Drafter, load: Load, max_k: int) -> float:
    """Sequences that fit with another drafter."""
    k = allowed_k(drafter, case.acceptance, max_k)
    return largest_batch(case.target, hardware, drafter, float(load.context), k)


def _by_confidence(case: Case, load: Load, top: int) -> ByConfidence | None:
    """Verify what each member of a mixture is worth, with sequences by its weights; every K that was tried."""
    mixture, batch = case.acceptance, int(load.batch)
    top = min(top, SORTED_DRAFTS // batch)
    if not isinstance(mixture, Mixture) or batch < len(mixture.members) or not top:
        return None
    # Where each sequence stands among the weights, so that shares are kept to a sequence.
    place = (np.arange(batch) + 0.5) / batch
    member = np.minimum(np.searchsorted(np.cumsum(mixture.weights), place), len(mixture.members) - 1)
    rows = np.array([np.asarray(one.survival_at(np.arange(1.0, top + 1.0))) for one in mixture.members])
    found = []
    for k in range(1, top + 1):
        table = rows[member, :k]
        found.append(schedule_verification(case, table, float(load.context)))
    # Shares kept to a sequence are not quite the weights, so one K for all is judged on the same sequences.
    single = max(one.same_tokens / one.same_s for one in found)
    rates = [one.tokens / one.round_s / single for one in found]
    at = int(np.argmax(rates))
    return ByConfidence(k=at + 1, lengths=found[at].lengths, gain=rates[at] - 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """Best K over batch x context.

    Attributes
    ----------
    drafter, acceptance
        What drafts, how much survives.
    batch, context
        Axes.
    k, speedup
        Best K (0 where none pays) and its speedup; a row for each batch, a column for each context.
    batch_fits
        Largest batch that fits into memory, by context; infinity where caches do not grow.
    by_context
        Stretches of batch by context, and ``flags`` that carry them to engines.
    """

    drafter: str
    acceptance: str
    batch: tuple[float, ...]
    context: tuple[float, ...]
    k: tuple[tuple[int, ...], ...]
    speedup: tuple[tuple[float, ...], ...]
    batch_fits: tuple[float, ...]
    by_context: tuple[tuple[Stretch, ...], ...]
    flags: tuple[Mapping[str, str], ...]

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return asdict(self)


def schedule_of(
    case: Case, hardware: Hardware, batch: Sequence[float], context: Sequence[float], *, max_k: int = 16
) -> Schedule:
    """Best K over a grid, and the schedules of every context."""
    top = allowed_k(case.drafter, case.acceptance, max_k)
    k, speedup = best_k_table(case, np.array(batch, float), np.array(context, float), max_k)
    fits = tuple(largest_batch(case.target, hardware, case.drafter, each, k=top) for each in context)
    stretches = tuple(
        schedule(case, each, max_k, int(max(1.0, min(room, max(batch)))))
        for each, room in zip(context, fits, strict=True)
    )
    return Schedule(
        drafter=case.drafter.name,
        acceptance=case.acceptance.label,
        batch=tuple(float(one) for one in batch),
        context=tuple(float(one) for one in context),
        k=tuple(tuple(int(one) for one in row) for row in k),
        speedup=tuple(tuple(float(one) for one in row) for row in speedup),
        batch_fits=fits,
        by_context=stretches,
        flags=tuple(_schedule_flags(case.drafter.name, one) for one in stretches),
    )


def _schedule_flags(drafter: str, stretches: Iterable[Stretch]) -> Mapping[str, str]:
    return schedule_flags(drafter, [(part.first, part.last, part.k) for part in stretches])
