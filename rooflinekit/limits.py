"""How far speculation pays: break-even acceptance, largest K and draft cost, batches and contexts, K by batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rooflinekit.acceptance import solve_alpha
from rooflinekit.capacity import largest_batch
from rooflinekit.curve import Case, CurvePoint, Floats
from rooflinekit.hardware import Hardware
from rooflinekit.load import Load
from rooflinekit.work import host_launches, plan_time_s

NEAR = 0.01
"""A K whose speedup lies within this fraction of the best is as good."""

STEADY = 0.02
"""What a schedule gives up for fewer changes of K."""

Range = tuple[float, float]

BATCHES, CONTEXTS = 1024.0, 131_072.0
"""How far batch and context are looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Where speculation stops paying.

    Attributes
    ----------
    k
        K that the first four are about.
    break_even_acceptance_length
        Tokens per round, bonus included, below which this K loses: the round cost.
    break_even_alpha
        Constant acceptance rate that gives this length; ``None`` where not even rate 1 does.
    largest_draft_cost
        c at which this K stops paying, other costs as they are; ``None`` where it loses with free drafts.
    largest_useful_k
        Largest K tried that pays; ``None`` where none does.
    batch, context
        Ranges that pay with the best K of each, ends included; the other one as asked.
    batch_looked, context_looked
        How far was looked.
    batch_fits
        Largest batch that fits at this context with every K that was tried; infinity where nothing grows with it.
    """

    k: int
    break_even_acceptance_length: float
    break_even_alpha: float | None
    largest_draft_cost: float | None
    largest_useful_k: int | None
    batch: tuple[Range, ...]
    context: tuple[Range, ...]
    batch_looked: float
    context_looked: float
    batch_fits: float


def break_even_alpha(point: CurvePoint) -> float | None:
    """Constant rate at which a point breaks even; ``None`` where its round costs more than K + 1 steps."""
    return solve_alpha(max(point.round_cost, 1.0), point.k) if point.round_cost <= point.k + 1.0 else None


def largest_draft_cost(point: CurvePoint, overlap: float = 0.0) -> float | None:
    """Draft cost c at which a point breaks even: what A plain steps leave beside verify and host, per draft.

    With ``overlap`` (0..1) the shorter of drafting and verify is partly hidden: drafting that is shorter than the
    verify may take ``room / (1 - overlap)``, a longer one ``room + overlap * verify``.
    """
    room_s = point.acceptance_length * point.plain_s - point.verify_s - (point.host_s - point.draft_host_s)
    hidden_s = overlap * point.verify_s
    if room_s + hidden_s >= point.verify_s:
        room_s += hidden_s
    elif room_s > 0.0:
        room_s /= 1.0 - overlap
    return room_s / (point.k * point.plain_s) if room_s > 0.0 else None


def paying(values: Floats, speedups: Floats) -> tuple[Range, ...]:
    """Ranges of rising values whose speedup exceeds 1, both ends among the values.

    >>> paying(np.array([1.0, 2.0, 4.0, 8.0]), np.array([0.9, 1.1, 1.2, 0.8]))
    ((2.0, 4.0),)
    """
    pays = np.concatenate([[False], speedups > 1.0, [False]])
    starts = np.nonzero(pays[1:] & ~pays[:-1])[0]
    ends = np.nonzero(~pays[1:] & pays[:-1])[0] - 1
    return tuple((float(values[i]), float(values[j])) for i, j in zip(starts, ends, strict=True))


def whole_grid(largest: float, per_octave: int = 8) -> Floats:
    """Whole numbers from 1 up, evenly on a logarithmic scale.

    >>> whole_grid(8.0, per_octave=1)
    array([1., 2., 4., 8.])
    """
    count = int(np.ceil(np.log2(max(largest, 2.0)) * per_octave)) + 1
    return np.unique(np.round(np.geomspace(1.0, max(largest, 1.0), count)))


def batches_that_pay(case: Case, context: float, max_k: int, up_to: float = BATCHES) -> tuple[Range, ...]:
    """Ranges of batch that pay with the best K of each, to the whole sequence."""

    def best(batch: Floats) -> Floats:
        found: Floats = case.speedups(batch=batch, context=np.array([context]), max_k=max_k).max(axis=(1, -1))
        return found

    coarse = whole_grid(up_to)
    return paying(*_refined(coarse, best(coarse), best))


def contexts_that_pay(case: Case, batch: float, max_k: int, up_to: float = CONTEXTS) -> tuple[Range, ...]:
    """Ranges of context that pay with the best K of each, to about a percent."""

    def best(context: Floats) -> Floats:
        found: Floats = case.speedups(batch=np.array([batch]), context=context, max_k=max_k).max(axis=(0, -1))
        return found

    coarse = np.concatenate([[0.0], whole_grid(up_to, 4)])
    return paying(*_refined(coarse, best(coarse), best))


def _refined(values: Floats, speedups: Floats, best: Callable[[Floats], Floats]) -> tuple[Floats, Floats]:
    """Add whole numbers between neighbours of which one pays and the other does not."""
    turns = np.nonzero((speedups[1:] > 1.0) != (speedups[:-1] > 1.0))[0]
    if not len(turns):
        return values, speedups
    more = [np.unique(np.round(np.linspace(values[i], values[i + 1], 65))) for i in turns]
    between = np.setdiff1d(np.concatenate(more), values)
    if not len(between):
        return values, speedups
    both, found = np.concatenate([values, between]), np.concatenate([speedups, best(between)])
    order = np.argsort(both)
    return both[order], found[order]


def limits_of(case: Case, hardware: Hardware, load: Load, curve: tuple[CurvePoint, ...], k: int) -> Limits:
    """Limits around one K of a curve.

    Parameters
    ----------
    case, hardware
        Machine, target, drafter, acceptance; the device, for its memory.
    load
        Batch and context that were asked about.
    curve
        Every K that was tried.
    k
        The K that is judged.
    """
    point = curve[k - 1]
    useful = [one.k for one in curve if one.speedup > 1.0]
    batch, context = float(load.batch), float(load.context)
    batch_looked, context_looked = max(BATCHES, batch), max(CONTEXTS, context)
    return Limits(
        k=k,
        break_even_acceptance_length=point.round_cost,
        break_even_alpha=break_even_alpha(point),
        largest_draft_cost=largest_draft_cost(point, case.drafting.overlap),
        largest_useful_k=max(useful, default=None),
        batch=batches_that_pay(case, context, len(curve), batch_looked),
        context=contexts_that_pay(case, batch, len(curve), context_looked),
        batch_looked=batch_looked,
        context_looked=context_looked,
        batch_fits=largest_batch(case.target, hardware, case.drafter, context, len(curve)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Batches, ends included, that one K serves; K 0 where speculation does not pay.

    ``speedup`` is the least of the stretch; for K 0 it is 1, an idle drafter's cost left out.
    """

    first: int
    last: int
    k: int
    speedup: float


def schedule(case: Case, context: float, max_k: int, up_to: int = 256) -> tuple[Stretch, ...]:
    """K by batch, in as few stretches as 2 % of the speedup allows.

    A stretch is carried on as long as its K stays within 2 % of the best: engines capture graphs for each
    K, and neighbours that are equally good should not flicker. Every batch is tried up to 1,024, beyond them
    a logarithmic grid, whose K hold up to the next one.
    """
    far = whole_grid(float(up_to))
    batch = np.concatenate([np.arange(1.0, min(up_to, BATCHES) + 1.0), far[far > BATCHES]])
    ends = [*(int(after) - 1 for after in batch[1:]), up_to]
    grid = case.speedups(batch=batch, context=np.array([context]), max_k=max_k)[:, 0]
    table = np.concatenate([np.ones((len(batch), 1)), grid], axis=1)
    best = table.max(axis=1)
    good = table >= (1.0 - STEADY) * best[:, None]
    # Without a gain beyond 1 % there is nothing to speculate for.
    good[:, 0] = best <= 1.0 + NEAR
    good[good[:, 0], 1:] = False
    found: list[Stretch] = []
    start = 0
    while start < len(batch):
        lasts = np.where(good[start:].all(axis=0), len(batch) - start, np.argmin(good[start:], axis=0))
        longest = int(lasts.max())
        # Of those that last longest, the one with the largest gain on the way.
        held = np.where(lasts == longest, table[start : start + longest].mean(axis=0), 0.0)
        k = int(held.argmax())
        least = float(table[start : start + longest, k].min())
        found.append(Stretch(first=int(batch[start]), last=ends[start + longest - 1], k=k, speedup=least))
        start += longest
    return tuple(found)


def best_k_table(case: Case, batch: Floats, context: Floats, max_k: int) -> tuple[Floats, Floats]:
    """Best K and its speedup over batch x context; K 0 where no K pays.

    Returns
    -------
    k, speedup
        Arrays of shape (batch, context).
    """
    grid = case.speedups(batch=batch, context=context, max_k=max_k)
    speedup = grid.max(axis=-1)
    return np.where(speedup > 1.0, grid.argmax(axis=-1) + 1.0, 0.0), speedup


def idle_drafter(case: Case, load: Load) -> float:
    """What a loaded drafter costs while K is 0, as a fraction of a plain step: one pass that keeps its cache.

    Engines that switch K to 0 go on filling the drafter's cache (vLLM issue 49548 measures 5 to 8 % of a step
    for an MTP module); a drafter without one (heads, lookups, the target's own layers) never runs and costs
    nothing, and then K = 0 gives exactly 1.
    """
    empty, longer = (
        case.drafter.memory_bytes(batch=1.0, context=held, tp=case.target.tp) for held in (0.0, 1.0)
    )
    if longer <= empty:
        return 0.0
    plan = case.drafter.plan(k=1.0, batch=load.batch, context=load.context, tp=case.target.tp)
    plain_s = case.target.step_s(case.machine, load.batch, load.context, 1.0)
    host_s = case.machine.host_s(load.batch)
    idle_s = plan_time_s(plan, case.machine) + host_launches(plan) * case.machine.pass_host_s
    return float(idle_s / (plain_s + host_s))
