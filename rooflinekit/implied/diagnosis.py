"""Everything that measured numbers of one setting say, as one answer."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rooflinekit.acceptance import Survival, expected_tokens
from rooflinekit.implied.facts import (
    Fact,
    depth_facts,
    part_facts,
    predicted_facts,
    round_facts,
    sweep_facts,
)
from rooflinekit.implied.findings import (
    DepthEffect,
    Finding,
    depth_effect,
    disagreement,
    findings,
    launch_bound_draft,
    verdict,
    verify_attention,
)
from rooflinekit.implied.measured import Implied, Measured, imply
from rooflinekit.implied.rounds import best_k, rounds_over, verify_at, verify_line
from rooflinekit.implied.sweep import Sweep, sweep_of
from rooflinekit.speculation import Round

__all__ = ["Diagnosis", "Fact", "Sweep", "curve_over_k", "diagnose", "sweep_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """The answer.

    Attributes
    ----------
    verdict
        ``pays``, ``does_not_pay`` or ``unknown``.
    k
        The K that was judged.
    implied
        Its numbers.
    facts
        The same with a sentence each.
    findings
        Causes and contradictions.
    over_k
        Rounds over K, where the measurements say anything about other K.
    over_k_source
        What they rest on.
    best_k, near_best
        Best K of those rounds, and every K within 1 %.
    predicted_by
        What the predicted numbers among the facts were predicted with.
    """

    verdict: str
    k: int
    implied: Implied
    facts: tuple[Fact, ...]
    findings: tuple[Finding, ...]
    over_k: Round | None
    over_k_source: str
    best_k: int | None
    near_best: tuple[int, ...]
    predicted_by: str = ""

    def codes(self) -> tuple[str, ...]:
        """The verdict and the codes of the findings."""
        return (self.verdict, *dict.fromkeys(one.code for one in self.findings))

    def curve(self) -> tuple[dict[str, float], ...]:
        """Rounds over K as rows: ``k``, ``acceptance_length``, ``round_s``, ``round_cost``, ``speedup``, rate."""
        if self.over_k is None:
            return ()
        names = ("k", "acceptance_length", "round_s", "round_cost", "speedup")
        shape = np.shape(self.over_k.k)
        columns = [np.broadcast_to(np.asarray(getattr(self.over_k, name)), shape) for name in names]
        rows = [dict(zip(names, map(float, row), strict=True)) for row in zip(*columns, strict=True)]
        return tuple({**row, "tokens_per_s": row["acceptance_length"] / row["round_s"]} for row in rows)

    def as_dict(self) -> dict[str, Any]:
        """Plain data: the facts by name, why each holds, findings, curve."""
        return {
            "verdict": self.verdict,
            "k": self.k,
            **{fact.name: fact.value for fact in self.facts},
            "break_even_acceptance_length": self.implied.round_cost,
            "best_k": self.best_k,
            "near_best": list(self.near_best),
            "findings": [{"code": one.code, "text": one.text} for one in self.findings],
            "curve": [{**row, "k": int(row["k"])} for row in self.curve()],
            "curve_source": self.over_k_source,
            "predicted_by": self.predicted_by,
            "why": {fact.name: fact.why for fact in self.facts},
        }


def curve_over_k(implied: Implied, survival: Survival | None = None) -> tuple[Round, str] | None:
    """Rounds at other K from one measured setting; None where acceptance or the verify is unknown, or for a tree.

    Acceptance is the survival vector, else the constant rate. The verify is the timed one between the timed
    widths, else the straight line through the one that is known. Drafting costs c per token where it was
    timed, else nothing; what is neither draft nor verify is in every round.
    """
    m = implied.measured
    if (
        m.rows != m.k + 1
        or math.isnan(m.plain_s)
        or (implied.alpha is None and survival is None)
        or implied.row_growth is None
    ):
        return None
    low, top = 1, m.k
    tabled = implied.verify_measured and len(m.verify_s) > 1
    if tabled:
        low, top = max(min(m.verify_s) - 1, 1), max(m.verify_s) - 1
    top = top if survival is None else min(top, len(survival.values))
    if top < max(low, 2):
        return None
    ks = np.arange(float(low), top + 1.0)
    verify = (
        verify_at(m.verify_s, ks + 1.0) if tabled else m.plain_s * verify_line(implied.row_growth, ks + 1.0)
    )
    step = 0.0 if implied.draft_cost is None else implied.draft_cost * m.plain_s
    rest = max(implied.rest_s or 0.0, 0.0)
    lengths = expected_tokens(implied.alpha or 0.0, ks) if survival is None else survival.expected(ks)
    rounds = rounds_over(ks, lengths, m.plain_s, verify, step, rest)
    accepted = "a constant acceptance rate" if survival is None else "the survival vector"
    grown = "the timed verify" if tabled else "R(W) on a straight line"
    drafting = f"c = {implied.draft_cost:.3f}" if implied.draft_cost is not None else "a free drafter"
    return rounds, f"{accepted}, {grown}, {drafting}" + (f", {rest * 1e3:.3g} ms beside them" if rest else "")


def _rounds(implied: Implied, sweep: Sweep | None, survival: Survival | None) -> tuple[Round, str] | None:
    if sweep is None:
        return curve_over_k(implied, survival)
    if survival is not None:
        rounds = sweep.line.over(survival, sweep.plain_s)
        return rounds, "the survival vector on the straight line through the measured rounds"
    return sweep.over_k, "as measured"


def diagnose(
    measured: Measured | Sweep,
    *,
    statements: Mapping[str, float] | None = None,
    survival: Survival | None = None,
    deep: Measured | None = None,
    predicted: Round | None = None,
    launch_draft_cost: float | None = None,
    predicted_by: str = "",
) -> Diagnosis:
    """Say what measured numbers imply.

    Parameters
    ----------
    measured
        One setting, or a sweep over K, of which the best run is judged.
    statements
        Acceptance lengths by where each was read; they should agree.
    survival
        P(the first i drafts are all accepted), for other K.
    deep
        The same setting at a long context.
    predicted, launch_draft_cost
        The library's round for the same target, drafter and device; c if all were launches
        (:func:`~rooflinekit.implied.device.launch_draft_cost`).
    predicted_by
        What they were predicted with, in words.
    """
    sweep = measured if isinstance(measured, Sweep) else None
    implied = sweep.best_run if sweep is not None else imply(measured)  # type: ignore[arg-type]
    facts = round_facts(implied) + part_facts(implied)
    found = list(findings(implied, predicted))
    over = _rounds(implied, sweep, survival)
    if sweep is not None and over is not None:
        facts += sweep_facts(sweep, over[0])
        found = [*sweep.findings(), *(one for one in found if one.code != "inconsistent")]
    differing = disagreement(statements or {})
    if differing is not None:
        found.insert(0, differing)
    effect = _depth(implied, deep)
    if effect is not None:
        facts += depth_facts(effect)
        seen = verify_attention(effect)
        found += [seen] if seen is not None else []
    if predicted is not None:
        facts += predicted_facts(implied, predicted, launch_draft_cost)
        deeper = launch_bound_draft(launch_draft_cost or 0.0)
        found += [deeper] if deeper is not None and verdict(implied) != "pays" else []
    best, near = best_k(over[0]) if over is not None else (None, ())
    return Diagnosis(
        verdict=verdict(implied),
        k=implied.measured.k,
        implied=implied,
        facts=tuple(facts),
        findings=tuple(found),
        over_k=None if over is None else over[0],
        over_k_source="" if over is None else over[1],
        best_k=best,
        near_best=near,
        predicted_by=predicted_by,
    )


def _depth(implied: Implied, deep: Measured | None) -> DepthEffect | None:
    short = implied.measured
    known = deep is not None and not math.isnan(short.plain_s) and None not in (short.token_s, deep.token_s)
    if deep is None or not known or implied.acceptance_length is None:
        return None
    return depth_effect(short, deep, implied.acceptance_length)
