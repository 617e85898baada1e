"""Implied numbers with the sentence that explains each."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rooflinekit.implied.findings import DepthEffect
from rooflinekit.implied.measured import Implied
from rooflinekit.implied.rounds import last_paying_k
from rooflinekit.implied.sweep import Sweep
from rooflinekit.speculation import Round


@dataclass(frozen=True, slots=True)
class Fact:
    """A number: its key, its name for people, its value in SI units, what it is, and how it follows.

    ``unit`` is ``s``, ``x`` (a ratio of rates), ``steps`` (in plain steps), ``tokens``, ``tokens/s``, ``fraction``
    or ``count``.
    """

    name: str
    label: str
    value: float
    unit: str
    why: str


MODEL = "by the model of target, drafter and device"
WORDS: dict[str, tuple[str, str, str]] = {
    "plain_s": ("plain step", "s", "a token of one sequence without speculation"),
    "token_s": ("time per token", "s", "a token of one sequence with speculation"),
    "speedup": ("speedup", "x", "plain step over time per token, recomputed"),
    "acceptance_length": ("acceptance length", "tokens", "per round, bonus included"),
    "round_s": ("round", "s", "acceptance length x time per token"),
    "round_cost": ("round cost", "steps", "round over plain step = break-even acceptance length"),
    "least_round_cost": (
        "round cost, at least",
        "steps",
        "if no draft were accepted; K + 1 times that if all were",
    ),
    "largest_speedup": ("most this K can give", "x", "(K + 1) over round cost: every draft accepted"),
    "alpha": ("acceptance rate", "fraction", "constant rate that gives that acceptance length"),
    "break_even_alpha": ("break-even rate", "fraction", "constant rate that gives the break-even length"),
    "draft_cost": ("c", "steps", "one drafted token over a plain step"),
    "verify_s": ("verify", "s", "timed"),
    "verify_ratio": ("R(W)", "steps", "verify over plain step"),
    "verify_growth": (
        "growth of R per row",
        "steps",
        "s of R(W) = 1 + s (W - 1): a straight line through this width; kernels grow in steps",
    ),
    "last_tokens_per_s": (
        "last position adds",
        "tokens/s",
        "alpha^K tokens over c and one more row, by that line",
    ),
    "outside_verify_s": ("not verify", "s", "round - verify"),
    "rest_s": ("neither draft nor verify", "s", "round - drafting - verify"),
    "budget_s": (
        "budget besides verify",
        "s",
        "acceptance length x plain step - verify: break-even allows it",
    ),
    "line_fixed_s": ("round without drafts", "s", "fit over the sweep: round = fixed + K x slope"),
    "line_slope_s": ("one more draft", "s", "slope of that fit"),
    "line_draft_cost": ("c by the slope", "steps", "slope over plain step: a draft and one more row"),
    "fixed_over_plain_s": ("fixed part over plain", "s", "what a round adds before any draft"),
    "last_paying_k": ("last K that pays", "count", "marginal rule: tokens added over time added"),
    "running_tokens_per_s": ("rate at that K", "tokens/s", "acceptance length over round"),
    "next_tokens_per_s": ("next position adds", "tokens/s", ""),
    "plain_growth_s": ("long context adds to a step", "s", "plain step there - here"),
    "round_growth_s": ("and to a round", "s", "times per token there - here, times tokens per round"),
    "growth_ratio": ("growth ratio", "x", "the round's over the step's: 1 if a verify reads the cache once"),
    "expected_deep_tokens_per_s": ("expected there", "tokens/s", "if the round grew only as the step did"),
    "predicted_plain_s": ("plain step, predicted", "s", MODEL),
    "predicted_verify_ratio": ("R(W), predicted", "steps", MODEL),
    "predicted_draft_cost": ("c, predicted", "steps", MODEL),
    "launch_draft_cost": ("c if all were launches", "steps", "kernels of a draft over those of a plain step"),
    "predicted_round_cost": ("round cost, predicted", "steps", f"{MODEL}: break-even there"),
    "excess_s": ("round beyond that", "s", "round - predicted round cost x plain step"),
}
"""Label, unit and explanation of every number, by key."""


def _fact(name: str, value: float | None, why: str = "", label: str = "") -> list[Fact]:
    """One number in its words, or nothing where it is unknown."""
    words, unit, reason = WORDS[name]
    return (
        []
        if value is None or not math.isfinite(value)
        else [Fact(name, label or words, value, unit, why or reason)]
    )


def round_facts(one: Implied) -> list[Fact]:
    """What a round costs and buys."""
    m = one.measured
    source = token = length = ""
    if one.round_from_parts:
        source = (
            "drafting + verify, nothing beside them" if m.draft_s else "the verify: drafting taken as free"
        )
    if m.token_s is None:
        token = "implied: plain step over the printed speedup" if m.printed_speedup else "round over tokens"
    if m.acceptance_length is None:
        length = "implied: round over time per token, bonus included"
    return [
        *_fact("plain_s", m.plain_s),
        *_fact("token_s", one.token_s, token),
        *_fact("speedup", one.speedup),
        *_fact("acceptance_length", one.acceptance_length, length),
        *_fact("round_s", one.round_s, source),
        *_fact("round_cost", one.round_cost),
        *_fact("least_round_cost", one.least_round_cost),
        *_fact("largest_speedup", one.largest_speedup, label=f"most K = {m.k} can give"),
        *_fact("alpha", one.alpha),
        *_fact("break_even_alpha", one.break_even_alpha),
    ]


def part_facts(one: Implied) -> list[Fact]:
    """Draft, verify, the rest, and the budget."""
    rows = one.measured.rows
    timed = "" if one.verify_measured else "round - drafting: the engine's own time is in it"
    return [
        *_fact("draft_cost", one.draft_cost),
        *_fact("verify_s", one.verify_s, timed, f"verify of {rows} rows"),
        *_fact("verify_ratio", one.verify_ratio, label=f"R({rows})"),
        *_fact("verify_growth", one.row_growth),
        *_fact("last_tokens_per_s", one.last_tokens_per_s, label=f"position {one.measured.k} adds"),
        *_fact("outside_verify_s", one.outside_verify_s),
        *_fact("rest_s", one.rest_s),
        *_fact("budget_s", one.budget_s),
    ]


def sweep_facts(sweep: Sweep, rounds: Round) -> list[Fact]:
    """The line through rounds of several K, and the marginal rule over the rounds that are shown."""
    line = sweep.line
    ks = [int(k) for k in np.asarray(rounds.k)]
    lengths = [float(length) for length in np.asarray(rounds.acceptance_length)]
    last = last_paying_k(ks, lengths, line)
    at = ks.index(last)
    running = lengths[at] / float(np.asarray(rounds.round_s)[at])
    found = [
        *_fact("line_fixed_s", line.fixed_s),
        *_fact(
            "line_slope_s", line.slope_s, f"slope of that fit, which is at most {line.misfit:.1%} off a round"
        ),
        *_fact("line_draft_cost", sweep.draft_cost),
        *_fact("fixed_over_plain_s", sweep.fixed_over_plain_s),
        *_fact("last_paying_k", float(last)),
        *_fact("running_tokens_per_s", running, label=f"rate at K = {last}"),
    ]
    if last != ks[-1]:
        gained = (lengths[at + 1] - lengths[at]) / (ks[at + 1] - last)
        why = f"{gained:.2f} tokens for {line.slope_s * 1e3:.3g} ms, against the rate above: it does not pay"
        rate = float(line.tokens_per_s(gained))
        found += _fact("next_tokens_per_s", rate, why, f"position {last + 1} adds")
    return found


def depth_facts(effect: DepthEffect) -> list[Fact]:
    """What a long context adds."""
    return [
        *_fact("plain_growth_s", effect.plain_growth_s),
        *_fact("round_growth_s", effect.round_growth_s),
        *_fact("growth_ratio", effect.growth_ratio),
        *_fact("expected_deep_tokens_per_s", 1.0 / effect.expected_token_s),
    ]


def predicted_facts(one: Implied, predicted: Round, launch_cost: float | None) -> list[Fact]:
    """The library's own numbers beside the measured ones; a round without drafting is a verify alone."""
    facts = [
        *_fact("predicted_plain_s", float(predicted.plain_s)),
        *_fact(
            "predicted_verify_ratio",
            float(predicted.verify_ratio),
            label=f"R({one.measured.rows}), predicted",
        ),
    ]
    if not float(predicted.draft_s) > 0:
        return facts
    cost = float(predicted.round_cost)
    return [
        *facts,
        *_fact("predicted_draft_cost", float(predicted.draft_cost)),
        *_fact("launch_draft_cost", launch_cost),
        *_fact("predicted_round_cost", cost),
        *_fact("excess_s", None if one.round_s is None else one.round_s - cost * one.measured.plain_s),
    ]
