"""What surrounds a recommendation: where it stops paying, what would help more, and K by batch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from rooflinekit.advice import Change, changes
from rooflinekit.curve import Case, allowed_k, curve_of, rounds_by_k
from rooflinekit.drafters.base import Drafter
from rooflinekit.hardware import Hardware
from rooflinekit.limits import Limits, Stretch, idle_drafter, limits_of, schedule
from rooflinekit.load import Load

SCHEDULE_BATCH = 256
"""Largest batch of a schedule."""


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
    """

    limits: Limits
    changes: tuple[Change, ...]
    schedule: tuple[Stretch, ...]
    idle_drafter: float

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
    """
    tried = allowed_k(case.drafter, case.acceptance, max_k)
    curve = curve_of(rounds_by_k(case, load, max(tried, k or 0)))
    chosen = max(curve[:tried], key=lambda point: point.speedup) if k is None else curve[k - 1]
    limits = limits_of(case, hardware, load, curve, chosen.k)
    top = min(max(SCHEDULE_BATCH, load.batch), max(limits.batch_fits, load.batch))
    return Outlook(
        limits=limits,
        changes=changes(
            case, load, chosen, limits.batch_fits, max_k=max_k, variants=variants, drafters=drafters
        ),
        schedule=schedule(case, float(load.context), max_k, int(top)),
        idle_drafter=idle_drafter(case, load),
    )
