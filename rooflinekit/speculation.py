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
from rooflinekit.target import Target
from rooflinekit.work import Machine, Real, plan_time_s


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
        Drafted tokens.
    acceptance_length
        Tokens emitted per round, bonus included.
    draft_s, verify_s, decode_s
        T_q, T_v, T_d: device times of all drafting, of one verify, of one plain step (s).
    host_s, decode_host_s
        h, h_d: host time of a round and of a plain step (s).
    """

    k: Real
    acceptance_length: Real
    draft_s: Real
    verify_s: Real
    decode_s: Real
    host_s: Real = 0.0
    decode_host_s: Real = 0.0

    @property
    def plain_s(self) -> Real:
        """A plain step, host included (s)."""
        return self.decode_s + self.decode_host_s

    @property
    def round_s(self) -> Real:
        """A round, host included (s)."""
        return self.draft_s + self.verify_s + self.host_s

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
        """c: drafting of one token over one plain step."""
        return self.draft_s / (self.k * self.plain_s)

    @property
    def speedup(self) -> Real:
        """Tokens per second over those of plain decoding."""
        return self.acceptance_length / self.round_cost


def speculate(
    machine: Machine,
    target: Target,
    drafter: Drafter,
    acceptance: Acceptance,
    *,
    batch: Real = 1.0,
    context: Real = 0.0,
    k: Real,
) -> Round:
    """Cost and yield of a chain of K drafts, by the works of target and drafter.

    Parameters
    ----------
    machine
        The device, plain roofline or calibrated.
    target, drafter
        What verifies and what drafts.
    acceptance
        How many drafts survive.
    batch, context
        Sequences; tokens in the cache. Floats, or arrays that broadcast with ``k``.
    k
        Drafted tokens per round (>= 1); the verify has ``k + 1`` rows per sequence.

    Notes
    -----
    Costs are evaluated on the axes they depend on and broadcast against acceptance afterwards, except
    that the drafter's first pass refreshes the cache of the A tokens of the last round: where A has more
    axes than the costs (an axis of alphas), the mean over those axes is used for that small term.
    """
    length = acceptance.expected(k)
    cost_shape = np.broadcast_shapes(np.shape(batch), np.shape(context), np.shape(k))
    refresh = _reduced(length, cost_shape)
    plan = drafter.plan(k=k, batch=batch, context=context, refresh=refresh, tp=target.tp)
    host = machine.step_host_s + machine.token_host_s * batch
    return Round(
        k=k,
        acceptance_length=length,
        draft_s=plan_time_s(plan, machine),
        verify_s=target.step_s(machine, batch, context, k + 1.0),
        decode_s=target.step_s(machine, batch, context, 1.0),
        host_s=machine.step_host_s + machine.token_host_s * batch * (k + 1.0),
        decode_host_s=host,
    )


def _reduced(length: Real, shape: tuple[int, ...]) -> Real:
    """Average acceptance over axes the costs do not have."""
    values = np.asarray(length)
    if not values.ndim:
        return float(values)
    padded = ((1,) * values.ndim + shape)[-values.ndim :]
    axes = tuple(i for i, size in enumerate(values.shape) if size != 1 and padded[i] == 1)
    return values.mean(axis=axes, keepdims=True) if axes else values
