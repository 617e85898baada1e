"""What a round of speculative decoding costs and buys: draft, verify, and the plain step it replaces.

``speedup = A / rho`` with the acceptance length A (bonus token included) and the round cost
``rho = (T_q + T_v + h) / (T_d + h_d)``, which is also the break-even acceptance length.
Leviathan's eta and the S_up formula are the case T_v = T_d, no host time, T_q = K c T_d.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rooflinekit.acceptance import Acceptance, expected_tokens
from rooflinekit.drafters.base import Drafter
from rooflinekit.errors import AcceptanceError
from rooflinekit.load import Load
from rooflinekit.target import Target
from rooflinekit.work import Machine, Real, host_launches, plan_time_s


def eta(alpha: Real, k: Real, c: Real) -> Real:
    """Expected walltime improvement of Leviathan et al. 2023 (arXiv:2211.17192), Theorem 3.8.

    ``eta = (1 - alpha^(K+1)) / ((1 - alpha) (K c + 1))``; assumes that a verify costs a plain step, a
    serial drafter and independent acceptance.

    Parameters
    ----------
    alpha
        Acceptance rate of a drafted token (0..1).
    k
        Drafted tokens per round (gamma in the paper).
    c
        Time of one draft step over one plain step (>= 0).

    Examples
    --------
    >>> round(eta(0.8, 4, 0.05), 3)
    2.801
    """
    if not np.all(np.asarray(c) >= 0):
        raise AcceptanceError(
            f"draft cost c = {c} is negative; give the time of a draft step over a plain step"
        )
    return expected_tokens(alpha, k) / (k * c + 1.0)


def s_up(expected_accepted: Real, k: Real, draft_step_s: Real, target_step_s: Real) -> Real:
    """Speedup from the mean number of accepted drafts: ``(E[N_acc] + 1) tau_p / (K tau_q + tau_p)``.

    The same number as :func:`eta` with c = tau_q / tau_p and E[N_acc] = A - 1.

    Parameters
    ----------
    expected_accepted
        Accepted drafts per round, bonus token left out (0..K).
    k
        Drafted tokens per round.
    draft_step_s, target_step_s
        tau_q and tau_p: one draft step and one plain step (s).

    Examples
    --------
    >>> round(s_up(2.3616, 4, 0.05, 1.0), 3)
    2.801
    """
    accepted = np.asarray(expected_accepted)
    if not np.all((accepted >= 0) & (accepted <= np.asarray(k))):
        raise AcceptanceError(
            f"{expected_accepted} accepted drafts of {k} are impossible; leave the bonus token out of E[N_acc]"
        )
    return (expected_accepted + 1.0) * target_step_s / (k * draft_step_s + target_step_s)


@dataclass(frozen=True, slots=True)
class Round:
    """One round of speculation and the plain step it competes with (floats or arrays).

    Attributes
    ----------
    k
        Drafted tokens in a row: of a chain all, of a tree its depth.
    acceptance_length
        Tokens emitted per round, bonus included.
    draft_s, verify_s, decode_s
        T_q, T_v, T_d: device times of all drafting, of one verify, of one plain step (s).
    host_s, decode_host_s
        h, h_d: host time of a round and of a plain step (s).
    draft_host_s
        The part of ``host_s`` that drafting takes (s).
    overlap
        Share of the shorter of drafting and verify that runs beside the longer, 0 (one after the other) to 1.
    """

    k: Real
    acceptance_length: Real
    draft_s: Real
    verify_s: Real
    decode_s: Real
    host_s: Real = 0.0
    decode_host_s: Real = 0.0
    draft_host_s: Real = 0.0
    overlap: float = 0.0

    @property
    def plain_s(self) -> Real:
        """A plain step, host included (s)."""
        return self.decode_s + self.decode_host_s

    @property
    def hidden_s(self) -> Real:
        """Time of a round that overlap hides (s)."""
        if not self.overlap:
            return 0.0
        return self.overlap * np.minimum(self.draft_s + self.draft_host_s, self.verify_s)

    @property
    def round_s(self) -> Real:
        """A round, host included (s)."""
        return self.draft_s + self.verify_s + self.host_s - self.hidden_s

    @property
    def round_cost(self) -> Real:
        """rho: the round in plain steps, and the acceptance length at which it breaks even."""
        return self.round_s / self.plain_s

    @property
    def verify_ratio(self) -> Real:
        """R(W): one verify over one plain step, device time."""
        return self.verify_s / self.decode_s

    @property
    def draft_cost(self) -> Real:
        """c: drafting of one token over one plain step, host included where there is any."""
        return (self.draft_s + self.draft_host_s) / (self.k * self.plain_s)

    @property
    def speedup(self) -> Real:
        """Tokens per second over those of plain decoding."""
        return self.acceptance_length / self.round_cost


@dataclass(frozen=True, slots=True, kw_only=True)
class Drafting:
    """How a round is run where it is not a chain on the device alone, with the drafter's own cost.

    Attributes
    ----------
    width
        Rows verified per sequence, the known token included; ``None``: K + 1, a chain.
    rows
        Rows of each draft pass after the first, per sequence: more than one where a tree is drafted.
    overlap
        Share of the shorter of drafting and verify that runs beside the longer (0..1).
    cost
        c that is given: one drafted token in plain steps, host included, in place of the model's.
    step_s, round_s
        Measured time of drafting one token, or of all drafting of a round (s), in place of the model's.
    """

    width: Real | None = None
    rows: Real = 1.0
    overlap: float = 0.0
    cost: Real | None = None
    step_s: Real | None = None
    round_s: Real | None = None

    @property
    def given(self) -> bool:
        """Whether the time of drafting is given instead of predicted."""
        return any(value is not None for value in (self.cost, self.step_s, self.round_s))

    def given_s(self, k: Real, plain_s: Real) -> Real:
        """Time of all drafting of a round as it was given (s)."""
        if self.cost is not None:
            return self.cost * k * plain_s
        return self.step_s * k if self.step_s is not None else (self.round_s or 0.0) + 0.0 * k


CHAIN = Drafting()


def speculate(
    machine: Machine,
    target: Target,
    drafter: Drafter,
    acceptance: Acceptance,
    *,
    batch: Real = 1.0,
    context: Real = 0.0,
    k: Real,
    drafting: Drafting = CHAIN,
) -> Round:
    """Cost and yield of a round of K drafts, by the works of target and drafter.

    Parameters
    ----------
    machine
        The device, plain roofline or calibrated, with the host time of an engine or without.
    target, drafter
        What verifies and what drafts.
    acceptance
        How many drafts survive.
    batch, context
        Sequences; tokens in the cache. Floats, or arrays that broadcast with ``k``.
    k
        Drafted tokens per round (>= 1); the verify has ``k + 1`` rows per sequence unless ``drafting`` says
        otherwise.
    drafting
        A tree, overlap, or a given time of drafting.

    Notes
    -----
    Costs are evaluated on the axes they depend on and broadcast against acceptance afterwards, except
    that the drafter's first pass refreshes the cache of the A tokens of the last round: where A has more
    axes than the costs (an axis of alphas), the mean over those axes is used for that small term.
    """
    length = acceptance.expected(k)
    return round_of(machine, target, drafter, Load(batch, context), length, k=k, drafting=drafting)


def round_of(
    machine: Machine,
    target: Target,
    drafter: Drafter,
    load: Load,
    acceptance_length: Real,
    *,
    k: Real,
    drafting: Drafting = CHAIN,
) -> Round:
    """A round whose acceptance length is known, as of a tree; parameters as in :func:`speculate`."""
    batch, context = load.batch, load.context
    refresh = _reduced(
        acceptance_length, np.broadcast_shapes(np.shape(batch), np.shape(context), np.shape(k))
    )
    width = k + 1.0 if drafting.width is None else drafting.width
    decode_s = target.step_s(machine, batch, context, 1.0)
    plain_host_s = machine.host_s(batch)
    if drafting.given:
        draft_s, draft_host_s = drafting.given_s(k, decode_s + plain_host_s), 0.0 * batch
    else:
        plan = drafter.plan(
            k=k, batch=batch, context=context, refresh=refresh, rows=drafting.rows, tp=target.tp
        )
        draft_s = plan_time_s(plan, machine)
        own_host_s = drafter.host_s(k=k, batch=batch, context=context)
        draft_host_s = host_launches(plan) * machine.pass_host_s + own_host_s
    return Round(
        k=k,
        acceptance_length=acceptance_length,
        draft_s=draft_s,
        verify_s=target.step_s(machine, batch, context, width),
        decode_s=decode_s,
        host_s=machine.host_s(batch * width) + machine.round_host_s + draft_host_s,
        decode_host_s=plain_host_s,
        draft_host_s=draft_host_s,
        overlap=drafting.overlap,
    )


def _reduced(length: Real, shape: tuple[int, ...]) -> Real:
    """Average acceptance over axes the costs do not have."""
    values = np.asarray(length)
    if not values.ndim:
        return float(values)
    padded = ((1,) * values.ndim + shape)[-values.ndim :]
    axes = tuple(i for i, size in enumerate(values.shape) if size != 1 and padded[i] == 1)
    return values.mean(axis=axes, keepdims=True) if axes else values
