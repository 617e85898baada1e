"""A diagnosis as text."""

from __future__ import annotations

import math
from collections.abc import Callable

from rich.console import Group, RenderableType
from rich.text import Text

from rooflinekit.implied import Diagnosis, Fact
from rooflinekit.report.style import BAD, DIM, GOOD, percent, seconds, table, times

FREE = "a free drafter"
"""How the source of a curve says that drafting was not timed."""
SLOWER = 0.9
"""A predicted round cost below this share of the measured one leaves something to explain."""
SAME_SETTING = (0.85, 1.3)
"""Measured plain step over predicted one; outside it, the two are rarely the same setting."""

UNITS: dict[str, Callable[[float], str]] = {
    "x": times,
    "fraction": percent,
    "steps": lambda value: f"{value:.3g} steps",
    "tokens": lambda value: f"{value:.3g} tokens",
    "tokens/s": lambda value: f"{value:.1f} tokens/s",
    "count": lambda value: f"{value:g}",
}


def value_text(fact: Fact) -> str:
    """Return a number with its unit."""
    if fact.unit == "s":
        return ("-" if fact.value < 0 else "") + seconds(abs(fact.value))
    return UNITS[fact.unit](fact.value)


def headline(one: Diagnosis) -> Text:
    """The answer in one line."""
    text, gain, cost = Text(), one.implied.speedup, one.implied.round_cost
    at = f" at K = {one.k}"
    if one.verdict == "pays":
        text.append(f"Speculation pays: {times(gain or 0)}{at}", GOOD)
    elif one.verdict == "does_not_pay" and gain is not None:
        text.append(f"Speculation does not pay: {times(gain)}{at}", BAD)
    elif one.verdict == "does_not_pay":
        text.append(f"Speculation cannot pay: at most {times(one.implied.largest_speedup or 0)}{at}", BAD)
    elif cost is not None:
        text.append(f"Speculation pays from {cost:.2f} tokens per round on{at}", "bold")
    else:
        text.append("Whether it pays needs a plain run", "bold")
    if cost is not None:
        text.append(f"   break-even acceptance length {cost:.2f}")
    if one.best_k is not None:
        best = next(row for row in one.curve() if row["k"] == one.best_k)
        gained = (
            f"{best['tokens_per_s']:.1f} tokens/s" if math.isnan(best["speedup"]) else times(best["speedup"])
        )
        # K of a drafter that costs nothing is no K to set.
        free = " with a free drafter" if FREE in one.over_k_source else ""
        text.append(f"   best K{free} = {one.best_k} ({gained})")
        near = [str(k) for k in one.near_best if k != one.best_k]
        text.append(f", within 1 %: {', '.join(near)}" if near else "")
    return text


def facts_table(one: Diagnosis) -> RenderableType:
    """Every number with its reason."""
    rows = table()
    rows.add_column("what")
    rows.add_column("value", justify="right")
    rows.add_column("why")
    for fact in one.facts:
        rows.add_row(fact.label, value_text(fact), Text(fact.why, DIM))
    return rows


def curve_table(one: Diagnosis) -> RenderableType:
    """Rounds over K."""
    rows = table()
    for name in ("K", "tokens per round", "round", "round cost", "tokens/s each", "speedup"):
        rows.add_column(name, justify="right")
    curve = one.curve()
    keep = {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, one.k, curve[-1]["k"], *one.near_best}
    for row in (row for row in curve if row["k"] in keep):
        rows.add_row(
            f"{row['k']:g}",
            f"{row['acceptance_length']:.2f}",
            seconds(row["round_s"]),
            "-" if math.isnan(row["round_cost"]) else f"{row['round_cost']:.2f}",
            f"{row['tokens_per_s']:.1f}",
            "-" if math.isnan(row["speedup"]) else times(row["speedup"]),
            style="bold" if row["k"] == one.best_k else None,
        )
    return rows


def next_steps(one: Diagnosis) -> list[str]:
    """What to give or to check where the numbers do not name a cause, or are not those of the model's setting."""
    facts = {fact.name: fact.value for fact in one.facts}
    cost, length = one.implied.round_cost, one.implied.acceptance_length
    lines = []
    if one.verdict == "does_not_pay" and not one.findings and cost is not None and length is not None:
        said = f"a round costs {cost:.2f} plain steps and gives {length:.2f} tokens"
        expected = facts.get("predicted_round_cost")
        if expected is None:
            more = (
                "these numbers do not say what takes it; add --draft-ms and --verify-ms (where the time goes), or "
                "--model, --hardware and --drafter (what it should cost)"
            )
        else:
            more = f"the model of target, drafter and device expects {expected:.2f}, so " + (
                "the engine adds the rest: compare with its --host time, then look for extra passes"
                if expected < min(length, SLOWER * cost)
                else "acceptance is too low for this K: `rooflinekit recommend` finds a better one"
            )
        lines.append(f"cause: {said}; {more}")
    predicted, plain = facts.get("predicted_plain_s"), one.implied.measured.plain_s
    if predicted and not SAME_SETTING[0] <= plain / predicted <= SAME_SETTING[1]:
        lines.append(
            f"check: the measured plain step is {plain / predicted:.2f} times the predicted one; are --batch, "
            "--context, --dtype, --tp and --host those of the run?"
        )
    return lines


def diagnosis_text(one: Diagnosis) -> RenderableType:
    """Verdict, causes, numbers, rounds over K."""
    parts: list[RenderableType] = [headline(one)]
    parts += [Text.assemble((f.code.replace("_", " "), BAD), ": ", f.text) for f in one.findings]
    parts += [Text(line) for line in next_steps(one)]
    parts.append(facts_table(one))
    if one.predicted_by:
        parts.append(Text(f"predicted: {one.predicted_by}", DIM))
    if one.over_k is not None:
        parts += [curve_table(one), Text(f"these rounds: {one.over_k_source}", DIM)]
    return Group(*parts)
