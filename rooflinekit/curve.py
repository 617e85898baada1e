"""Speculation over K: one point per number of drafted tokens, and where the gain goes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rooflinekit.acceptance import Acceptance
from rooflinekit.drafters.base import Drafter
from rooflinekit.prediction import breakdown
from rooflinekit.speculation import Round, speculate
from rooflinekit.target import Target
from rooflinekit.transformer import Load, forward_pass
from rooflinekit.work import Machine, Pass


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePoint:
    """One K of the curve (times in s)."""

    k: int
    acceptance_length: float
    draft_s: float
    verify_s: float
    host_s: float
    decode_s: float
    round_cost: float
    speedup: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """What one term takes from the ideal speedup of K + 1."""

    term: str
    speedup_lost: float


def allowed_k(drafter: Drafter, acceptance: Acceptance, max_k: int) -> int:
    """Largest K that may be recommended: asked for, trained and measured."""
    limits = [limit for limit in (max_k, drafter.max_k, acceptance.max_k) if limit is not None]
    return min(limits)


def rounds_by_k(
    machine: Machine, target: Target, drafter: Drafter, acceptance: Acceptance, load: Load, top: int
) -> Round:
    """Rounds for K = 1 .. top as arrays of one axis."""
    ks = np.arange(1.0, top + 1.0)
    return speculate(machine, target, drafter, acceptance, batch=load.batch, context=load.context, k=ks)


def plan_at(drafter: Drafter, target: Target, load: Load, point: CurvePoint) -> tuple[Pass, ...]:
    """The drafter's passes of a round at one point of the curve."""
    return drafter.plan(
        k=float(point.k),
        batch=load.batch,
        context=load.context,
        refresh=point.acceptance_length,
        tp=target.tp,
    )


def curve_of(rounds: Round) -> tuple[CurvePoint, ...]:
    """Points of rounds evaluated over K."""
    shape = np.shape(rounds.k)
    columns = {
        name: np.broadcast_to(np.asarray(getattr(rounds, name), dtype=float), shape)
        for name in (
            "acceptance_length",
            "draft_s",
            "verify_s",
            "host_s",
            "decode_s",
            "round_cost",
            "speedup",
        )
    }
    return tuple(
        CurvePoint(k=int(k), **{name: float(column[i]) for name, column in columns.items()})
        for i, k in enumerate(np.asarray(rounds.k))
    )


def loss_account(
    machine: Machine, target: Target, load: Load, point: CurvePoint, plain_s: float
) -> tuple[Loss, ...]:
    """Split ``K + 1 - speedup`` exactly: rejected drafts, drafting, the wider verify by kind of work, host.

    With A tokens per round and ``rho - 1`` the sum of relative extra times x_i, the loss below A is
    ``A (rho - 1) / rho`` and each term takes its share ``A x_i / rho``.
    """
    per_second = point.acceptance_length / point.round_cost / plain_s
    losses = [Loss(term="rejected drafts", speedup_lost=point.k + 1.0 - point.acceptance_length)]
    losses.append(Loss(term="drafting", speedup_lost=point.draft_s * per_second))
    wide = Load(load.batch, load.context, point.k + 1.0, routing_overlap=target.routing_overlap)
    narrow = Load(load.batch, load.context, 1.0, routing_overlap=target.routing_overlap)
    grown = _by_kind(machine, target, wide)
    for kind, seconds in _by_kind(machine, target, narrow).items():
        grown[kind] = grown.get(kind, 0.0) - seconds
    losses += [Loss(term=f"wider verify: {kind}", speedup_lost=s * per_second) for kind, s in grown.items()]
    extra_host = point.host_s - (plain_s - point.decode_s)
    losses.append(Loss(term="host", speedup_lost=extra_host * per_second))
    return tuple(loss for loss in losses if abs(loss.speedup_lost) > 1e-12)


def _by_kind(machine: Machine, target: Target, load: Load) -> dict[str, float]:
    lines = breakdown(forward_pass(target.llm, load, target.precision, target.tp), machine)
    totals: dict[str, float] = {}
    for line in lines:
        kind = "lm head" if line.label == "lm head" else line.kind
        totals[kind] = totals.get(kind, 0.0) + line.time_s
    return totals
