"""What measured numbers give away: one rule each, one sentence each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rooflinekit.implied.measured import Implied, Measured
from rooflinekit.speculation import Round

SAME_LENGTH = 0.02
"""Acceptance lengths of one run that differ by more than this fraction contradict each other."""
SAME_RATIO = 0.005
"""A printed ratio further than this fraction from its parts does not follow from them."""
LIKE_WIDTH = 0.75
"""From this growth per further row on (in plain steps) a verify costs about what separate steps would."""
MUCH_REST = 0.25
"""Share of a round that is neither draft nor verify from which on the engine is the thing to look at."""
FAR_FROM_MODEL = 2.0
"""A round this many times the modelled one is no matter of a model's accuracy."""
READ_TWICE = 2.0
"""Growth of a round with the context over that of a plain step: 1 where the verify reads the cache once."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A cause or a contradiction: its code, and the sentence with the numbers."""

    code: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DepthEffect:
    """The same two runs at a short and at a long context.

    Attributes
    ----------
    plain_growth_s, round_growth_s
        What the longer context adds to a plain step and to a round (s).
    growth_ratio
        The second over the first: about 1 where a verify reads the cache once, W where it reads it per row.
    expected_token_s
        Time per token at the long context if the round had grown only as the plain step did (s).
    """

    plain_growth_s: float
    round_growth_s: float
    growth_ratio: float
    expected_token_s: float


def depth_effect(short: Measured, deep: Measured, acceptance_length: float) -> DepthEffect:
    """Compare how a plain step and a round grow with the context, at equal acceptance.

    A verify of W rows attends to the same cache as a plain step and should read it once, so a round should
    grow by what the plain step grows (and by the drafter's own, far smaller cache).

    Parameters
    ----------
    short, deep
        The setting at a short and at a long context; both with ``token_s``.
    acceptance_length
        Tokens per round; an assumption where it was not measured. It scales both growths of the round.
    """
    plain = deep.plain_s - short.plain_s
    before, after = ((one.token_s or one.plain_s) * acceptance_length for one in (short, deep))
    ratio = (after - before) / plain if plain > 0 else float("inf")
    return DepthEffect(
        plain_growth_s=plain,
        round_growth_s=after - before,
        growth_ratio=ratio,
        expected_token_s=(before + plain) / acceptance_length,
    )


def sequential_cost(implied: Implied) -> float:
    """Plain steps of a round that gains nothing from width: a step per row, and per draft c of one (1 if unknown)."""
    m = implied.measured
    return m.rows + m.k * (1.0 if implied.draft_cost is None else implied.draft_cost)


def disagreement(statements: Mapping[str, float], tolerance: float = SAME_LENGTH) -> Finding | None:
    """Say that statements of one acceptance length differ; None where they agree within ``tolerance``.

    Examples
    --------
    >>> disagreement({"counters": 2.0, "survival": 2.01}) is None
    True
    >>> disagreement({"fast path": 1.33, "exact path": 1.77}).code
    'inconsistent'
    """
    if len(statements) < 2:
        return None
    low, high = min(statements, key=statements.__getitem__), max(statements, key=statements.__getitem__)
    if statements[high] <= (1.0 + tolerance) * statements[low]:
        return None
    return Finding(
        "inconsistent",
        f"{low} says {statements[low]:.2f} tokens per round, {high} says {statements[high]:.2f}: different prompts, "
        "settings or ways of counting (with or without the bonus token)",
    )


def _contradictions(implied: Implied) -> list[Finding]:
    m, found = implied.measured, []
    if m.printed_speedup is not None and m.token_s is not None:
        own = m.plain_s / m.token_s
        if abs(m.printed_speedup / own - 1.0) > SAME_RATIO:
            text = (
                f"the speedup of {m.printed_speedup:g} at K = {m.k} does not follow: its parts give {own:.3f}"
            )
            found.append(Finding("inconsistent", text))
    length = implied.acceptance_length
    if length is not None and not 1.0 <= length <= m.k + 1.0:
        text = (
            f"drafting, verify and speed together imply {length:.2f} tokens per round where K = {m.k} allows 1 to "
            f"{m.k + 1}: one of the times is not that of this run"
        )
        found.append(Finding("inconsistent", text))
    if m.draft_s and implied.round_s and m.draft_s >= implied.round_s:
        text = (
            f"drafting takes {m.draft_s * 1e3:.3g} ms, a round by tokens and speed {implied.round_s * 1e3:.3g} ms: is "
            "the drafting that of one round?"
        )
        found.append(Finding("inconsistent", text))
    if implied.rest_s is not None and implied.round_s and implied.rest_s < -SAME_LENGTH * implied.round_s:
        parts = implied.round_s - implied.rest_s
        needed = parts / implied.token_s if implied.token_s else 0.0
        text = (
            f"drafting and verify take {parts * 1e3:.3g} ms, the round that tokens and speed give only "
            f"{implied.round_s * 1e3:.3g} ms: with these times the speed would need {needed:.2f} tokens per round"
        )
        found.append(Finding("inconsistent", text))
    return found


def _verify(implied: Implied, predicted: Round | None) -> list[Finding]:
    """Judge the timed verify: no kernel for several rows, or simply too long."""
    m = implied.measured
    found: list[Finding] = []
    if not implied.verify_measured or implied.verify_ratio is None or implied.row_growth is None:
        return found
    explained = predicted is not None and implied.verify_ratio <= 1.15 * float(predicted.verify_ratio)
    if implied.row_growth >= LIKE_WIDTH and not explained:
        why = "the model's own traffic explains " + (
            f"{float(predicted.verify_ratio):.2f}"
            if predicted is not None
            else "about 1 for a dense model, and for a mixture of experts what its rows do not share"
        )
        text = (
            f"a verify of {m.rows} rows costs {implied.verify_ratio:.2f} plain steps, nearly one for each row: the "
            f"kernel reads the weights again for every row, or there is none for several rows ({why})"
        )
        found.append(Finding("missing_kernel", text))
    if implied.budget_s is not None and implied.budget_s < 0:
        text = (
            f"the verify alone takes longer than plain decoding of the {implied.acceptance_length:.2f} tokens of a "
            f"round (by {-implied.budget_s * 1e3:.3g} ms): no drafter is cheap enough"
        )
        found.append(Finding("verify_too_dear", text))
    return found


def _elsewhere(implied: Implied) -> list[Finding]:
    """Time outside the verify against its budget."""
    outside, budget = implied.outside_verify_s, implied.budget_s
    if implied.round_from_parts or outside is None or budget is None or not 0 <= budget < outside:
        return []
    m = implied.measured
    free = (implied.acceptance_length or 1.0) * m.plain_s / (implied.verify_s or 1.0)
    text = (
        f"{outside * 1e3:.3g} ms of each round are not verify, and break-even allows {budget * 1e3:.3g} ms: with a "
        f"free drafter and no other time this verify would give {free:.2f}x"
    )
    return [Finding("rest_too_dear", text)]


def _overhead(implied: Implied, predicted: Round | None) -> list[Finding]:
    """Time that no model of the devices explains."""
    m = implied.measured
    if implied.round_cost is None or implied.round_s is None or implied.verify_measured:
        share = (implied.rest_s or 0.0) / implied.round_s if implied.round_s else 0.0
        if share < MUCH_REST:
            return []
        text = f"{share:.0%} of each round ({(implied.rest_s or 0) * 1e3:.3g} ms) is neither draft nor verify"
        return [Finding("implementation_overhead", f"{text}: look at the engine before the drafter")]
    most = sequential_cost(implied)
    # Without a drafter the modelled round lacks its drafting.
    whole = predicted is not None and float(predicted.draft_s) > 0
    model = float(predicted.round_cost) if predicted is not None and whole else None
    if implied.round_cost <= most and (model is None or implied.round_cost <= FAR_FROM_MODEL * model):
        return []
    allowed = most if model is None else min(model, most)
    excess_ms = (implied.round_cost - allowed) * m.plain_s * 1e3
    than = (
        f"the {most:.3g} of {m.rows} steps one by one and {m.k} draft{'s' * (m.k > 1)} as dear as a step"
        if allowed == most
        else f"the {allowed:.2f} of the model of target, drafter and device"
    )
    text = f"a round costs {implied.round_cost:.2f} plain steps, {excess_ms:.3g} ms more than {than}"
    more = "not a roofline effect; look for lost CUDA graphs, host time and extra passes before changing K"
    return _too_slow(m, text, more)


def _unknown_acceptance(implied: Implied) -> list[Finding]:
    """Judge a round whose yield is unknown by what it costs at least."""
    m, least = implied.measured, implied.least_round_cost
    if least is None or least < LIKE_WIDTH * m.rows:
        return []
    text = f"even with no draft accepted a round costs {least:.2f} plain steps, nearly one for each of {m.rows} rows"
    more = "unless drafting is as slow as the target, look for lost CUDA graphs, host time and extra passes"
    return _too_slow(m, text, more)


def _too_slow(m: Measured, text: str, otherwise: str) -> list[Finding]:
    """A round that no model explains: a kernel that is missing for the weight format, or time outside the kernels."""
    if m.weight_only:
        more = "the kernel of this weight format is probably made for one row; time a verify of K + 1 rows"
        return [Finding("missing_kernel", f"{text}: {more}")]
    return [Finding("implementation_overhead", f"{text}: {otherwise}")]


def _bounds(implied: Implied) -> list[Finding]:
    m = implied.measured
    found: list[Finding] = []
    if implied.largest_speedup is not None and implied.largest_speedup < 1.0:
        text = (
            f"break-even is {implied.round_cost:.2f} tokens per round and K = {m.k} gives at most {m.k + 1}: even with "
            f"every draft accepted it is {implied.largest_speedup:.2f}x"
        )
        found.append(Finding("cannot_pay", text))
    if implied.draft_cost is not None and implied.draft_cost >= 1.0:
        text = (
            f"a draft step costs {implied.draft_cost:.2f} plain steps: the longer the draft, the slower; choose a "
            "drafter with fewer layers or one parallel pass"
        )
        found.append(Finding("draft_too_dear", text))
    return found


def launch_bound_draft(launch_cost: float) -> Finding | None:
    """Say that a drafter runs as many kernels as its target; None where it does not."""
    if launch_cost < 1.0:
        return None
    return Finding(
        "draft_too_deep",
        f"the drafter runs {launch_cost:.2f} times the kernels of the target: where launches and not bytes set the "
        f"time (batch 1, no CUDA graphs), c tends to {launch_cost:.2f} and no K pays, whatever its size; choose one "
        "with fewer layers",
    )


def verify_attention(effect: DepthEffect) -> Finding | None:
    """Say that a round grows with the context as if every row read the cache; None where it does not."""
    if effect.growth_ratio < READ_TWICE or effect.round_growth_s <= 0:
        return None
    many = f"{effect.growth_ratio:.0f} times as much" if effect.growth_ratio < float("inf") else "and no more"
    return Finding(
        "verify_attention_kernel",
        f"the longer context adds {effect.plain_growth_s * 1e3:.3g} ms to a plain step and "
        f"{effect.round_growth_s * 1e3:.3g} ms to a round, {many}: a verify should read the cache once, so its "
        "attention kernel rereads it or splits it badly; expected "
        f"{1.0 / effect.expected_token_s:.3g} tokens per second",
    )


def findings(implied: Implied, predicted: Round | None = None) -> tuple[Finding, ...]:
    """Every rule that fires, contradictions first.

    Parameters
    ----------
    implied
        What was measured and what follows.
    predicted
        The same round by the library's model of target, drafter and device, where those are known.
    """
    return (
        *_contradictions(implied),
        *_bounds(implied),
        *_verify(implied, predicted),
        *_overhead(implied, predicted),
        *_unknown_acceptance(implied),
        *_elsewhere(implied),
    )


def verdict(implied: Implied) -> str:
    """``pays``, ``does_not_pay`` or ``unknown``: the measured speedup decides, else what is possible at all."""
    if implied.speedup is not None:
        return "pays" if implied.speedup > 1.0 else "does_not_pay"
    if implied.largest_speedup is not None and implied.largest_speedup < 1.0:
        return "does_not_pay"
    return "unknown"
