"""Speculation over K: one point per number of drafted tokens, and where the gain goes."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from rooflinekit.acceptance import Acceptance
from rooflinekit.drafters.base import Drafter
from rooflinekit.errors import AcceptanceError
from rooflinekit.prediction import breakdown
from rooflinekit.speculation import CHAIN, Drafting, Round, speculate
from rooflinekit.target import Target
from rooflinekit.transformer import Load, forward_pass
from rooflinekit.work import Machine, Pass, Real

Floats: TypeAlias = NDArray[np.float64]


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
    draft_host_s: float = 0.0
    hidden_s: float = 0.0
    decode_host_s: float = 0.0

    @property
    def plain_s(self) -> float:
        """A plain step, host included (s)."""
        return self.decode_s + self.decode_host_s

    @property
    def round_s(self) -> float:
        """A round, host included (s)."""
        return self.round_cost * self.plain_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """What one term takes from the ideal speedup of K + 1."""

    term: str
    speedup_lost: float


COLUMNS = tuple(field.name for field in fields(CurvePoint)[1:])
"""What a point holds besides K: attributes of a :class:`Round`."""


def allowed_k(drafter: Drafter, acceptance: Acceptance, max_k: int) -> int:
    """Largest K that may be recommended: asked for, trained and measured."""
    limits = [limit for limit in (max_k, drafter.max_k, acceptance.max_k) if limit is not None]
    return min(limits)


def check_k(drafter: Drafter, acceptance: Acceptance, k: int) -> None:
    """Refuse a K that was neither trained nor measured.

    Raises
    ------
    AcceptanceError
        With the largest K there is.
    """
    if drafter.max_k is not None and k > drafter.max_k:
        raise AcceptanceError(
            f"K = {k} is past the trained block of {drafter.name} ({drafter.max_k}); use --k {drafter.max_k} or less"
        )
    if acceptance.max_k is not None and k > acceptance.max_k:
        raise AcceptanceError(
            f"K = {k} is past the {acceptance.max_k} positions that acceptance was measured at; lower --k"
        )


@dataclass(frozen=True, slots=True)
class Case:
    """What is asked about: a device, what verifies, what drafts, how much survives, and how rounds are run."""

    machine: Machine
    target: Target
    drafter: Drafter
    acceptance: Acceptance
    drafting: Drafting = CHAIN

    def rounds(self, *, batch: Real, context: Real, k: Real) -> Round:
        """Rounds on axes that broadcast (see :func:`~rooflinekit.speculation.speculate`)."""
        return speculate(
            self.machine,
            self.target,
            self.drafter,
            self.acceptance,
            batch=batch,
            context=context,
            k=k,
            drafting=self.drafting,
        )

    def speedups(self, *, batch: Floats, context: Floats, max_k: int) -> Floats:
        """Speedup of every K up to ``max_k`` (or what was trained and measured); axes batch x context x K."""
        k = np.arange(1.0, allowed_k(self.drafter, self.acceptance, max_k) + 1.0)
        rounds = self.rounds(batch=batch[:, None, None], context=context[None, :, None], k=k)
        return np.broadcast_to(np.asarray(rounds.speedup), (len(batch), len(context), len(k)))


def rounds_by_k(case: Case, load: Load, top: int) -> Round:
    """Rounds for K = 1 .. top as arrays of one axis."""
    return case.rounds(batch=load.batch, context=load.context, k=np.arange(1.0, top + 1.0))


def plan_at(case: Case, load: Load, point: CurvePoint) -> tuple[Pass, ...]:
    """The drafter's passes of a round at one point of the curve."""
    return case.drafter.plan(
        k=float(point.k),
        batch=load.batch,
        context=load.context,
        refresh=point.acceptance_length,
        rows=case.drafting.rows,
        tp=case.target.tp,
    )


def curve_of(rounds: Round) -> tuple[CurvePoint, ...]:
    """Points of rounds evaluated over K."""
    shape = np.shape(rounds.k)
    columns = {
        name: np.broadcast_to(np.asarray(getattr(rounds, name), dtype=float), shape) for name in COLUMNS
    }
    return tuple(
        CurvePoint(k=int(k), **{name: float(column[i]) for name, column in columns.items()})
        for i, k in enumerate(np.asarray(rounds.k))
    )


def loss_account(
    machine: Machine,
    target: Target,
    load: Load,
    point: CurvePoint,
    width: float | None = None,
) -> tuple[Loss, ...]:
    """Split ``K + 1 - speedup`` exactly: rejected drafts, drafting, the wider verify by what grows, host.

    With A tokens per round and ``rho - 1`` the sum of relative extra times x_i, the loss below A is
    ``A (rho - 1) / rho`` and each term takes its share ``A x_i / rho``. Time that overlap hides is a
    negative loss; so is a verify kernel that is faster than the one of a plain step. Of a verify
    of ``width`` rows (default: K + 1), works that the arithmetic limits are terms of their own: there a larger
    bandwidth does not help, and since it speeds up the plain step alone it lowers the speedup.
    """
    per_second = point.acceptance_length / point.round_s
    losses = [Loss(term="rejected drafts", speedup_lost=point.k + 1.0 - point.acceptance_length)]
    times = {
        "drafting": point.draft_s,
        "drafting: host": point.draft_host_s,
        **_growth(machine, target, load, point.k + 1.0 if width is None else width),
        "host": point.host_s - point.draft_host_s - point.decode_host_s,
        "overlap": -point.hidden_s,
    }
    losses += [Loss(term=term, speedup_lost=seconds * per_second) for term, seconds in times.items()]
    return tuple(loss for loss in losses if abs(loss.speedup_lost) > 1e-12)


NAMES = {"linear": "linear layers", "elementwise": "norms and activations", "collective": "collectives"}
"""Kinds of work as the account calls them, where that is not their own name."""


def _growth(machine: Machine, target: Target, load: Load, width: float) -> dict[str, float]:
    """Extra time of a verify over a plain step (s), by kind of work and by what limits the wide one."""
    wide, narrow = (
        breakdown(
            forward_pass(
                target.llm,
                Load(load.batch, load.context, rows, routing_overlap=target.routing_overlap),
                target.precision,
                target.tp,
            ),
            machine,
        )
        for rows in (width, 1.0)
    )
    grown: dict[str, float] = {}
    for line, plain in zip(wide, narrow, strict=True):
        name = "lm head" if line.label == "lm head" else NAMES.get(line.kind, line.kind)
        term = f"wider verify: {name}" + (", compute-bound" if line.bound == "compute" else "")
        grown[term] = grown.get(term, 0.0) + line.time_s - plain.time_s
    return grown
