"""Orders of magnitude that people carry in their heads, beside what the model computes.

One request, a 70B-class target in bf16, K = 4: the figures from which the choice of a drafter is argued.
"""

from __future__ import annotations

from dataclasses import dataclass

from rooflinekit.acceptance import Constant, expected_tokens
from rooflinekit.drafters import dflash, eagle1
from rooflinekit.drafters.base import Drafter
from rooflinekit.speculation import Drafting, Round, speculate
from rooflinekit.target import Target
from rooflinekit.work import Machine, Real

ALPHA, K = 0.8, 4
SMALL_C = 0.05
"""A drafter whose step takes a twentieth of a plain one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A figure as it is told, and as it comes out.

    Attributes
    ----------
    what
        The quantity.
    unit
        ``T_d`` (plain steps) or ``tokens``.
    told_low, told_high
        The range that is told; equal for a single figure.
    computed
        What the model gives.
    """

    what: str
    unit: str
    told_low: float
    told_high: float
    computed: float

    @property
    def inside(self) -> bool:
        """Whether it lies in the range that is told, to half a percent."""
        return 0.995 * self.told_low <= self.computed <= 1.005 * self.told_high


def orders_of_magnitude(machine: Machine, target: Target, context: float = 4096.0) -> tuple[Order, ...]:
    """The table for a device and a target at one request.

    Parameters
    ----------
    machine, target
        The device and the model; figures are told for 70B in bf16.
    context
        Tokens in the cache.
    """

    def one(drafter: Drafter, k: float, drafting: Drafting | None = None) -> Round:
        return speculate(
            machine,
            target,
            drafter,
            Constant(ALPHA),
            batch=1.0,
            context=context,
            k=k,
            drafting=drafting or Drafting(),
        )

    eagle = eagle1.for_target(target.llm, target.precision)
    block = dflash.for_target(target.llm, target.precision)
    chain, deep, wide = one(eagle, float(K)), one(eagle, 5.0), one(block, 15.0)
    given = one(eagle, float(K), Drafting(cost=SMALL_C))
    rows = (
        (f"verify of {K + 1} rows", "T_d", 1.0, 1.2, chain.verify_ratio),
        (f"{K} steps of a drafter with c = {SMALL_C:g}", "T_d", 0.2, 0.2, _drafting(given)),
        ("EAGLE, one layer, depth 5", "T_d", 0.15, 0.3, _drafting(deep)),
        ("DFlash, five layers, 16 positions", "T_d", 0.1, 0.2, _drafting(wide)),
        (f"tokens per round, alpha {ALPHA:g}, K {K}", "tokens", 3.3616, 3.3616, expected_tokens(ALPHA, K)),
    )
    return tuple(
        Order(what=what, unit=unit, told_low=low, told_high=high, computed=float(value))
        for what, unit, low, high, value in rows
    )


def _drafting(one: Round) -> Real:
    """All drafting of a round, host included, in plain steps."""
    return one.k * one.draft_cost
