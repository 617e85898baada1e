"""A recommendation and a comparison as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from rooflinekit.curve import CurvePoint
from rooflinekit.limits import Stretch
from rooflinekit.prospect import ByConfidence, Outlook
from rooflinekit.recommendation import Recommendation
from rooflinekit.report.prediction import source_line
from rooflinekit.report.style import BAD, DIM, GOOD, seconds, size, table, times

LEGEND = (
    "R(W): a verify of K + 1 rows over a plain step; round cost: draft, verify and host in plain steps, the tokens per "
    "round at which speculation breaks even"
)
AT_THE_EDGE = "the best K is the largest that could be tried"
DOUBTFUL = 0.3
"""An expected error above this is said in the headline."""


def verdict(one: Recommendation) -> Text:
    """The answer in one line."""
    text = Text()
    if one.pays:
        text.append(f"Speculation pays: K = {one.k}, {times(one.speedup)}", GOOD)
    elif one.k in one.near_best:
        text.append(f"Speculation does not pay: at best {times(one.speedup)} (K = {one.k})", BAD)
    else:
        text.append(f"K = {one.k} does not pay: {times(one.speedup)}", BAD)
    if one.low is not None and one.high is not None:
        text.append(f" ({one.low:.2f} .. {one.high:.2f})")
    text.append(f"   break-even acceptance length {one.break_even_acceptance_length:.2f}")
    near = [str(k) for k in one.near_best if k != one.k]
    if near and one.k in one.near_best:
        text.append(f"   within 1 %: K = {', '.join(near)}")
    if any(note.startswith(AT_THE_EDGE) for note in one.notes):
        text.append("   the largest K that could be tried: see the note")
    if one.expected_error is not None and one.expected_error > DOUBTFUL:
        text.append(f"   DOUBTFUL: the calibration misses held-out cases by {one.expected_error:.0%}", BAD)
    return text


def shown_points(one: Recommendation) -> list[CurvePoint]:
    """A readable selection of the curve: small K, powers, the best and its neighbours."""
    keep = {1, 2, 3, 4, 5, 6, 8, 12, 16, one.k - 1, one.k, one.k + 1, one.curve[-1].k}
    return [point for point in one.curve if point.k in keep]


def curve_table(one: Recommendation) -> RenderableType:
    """Times and speedup by K."""
    rows = table()
    for name in ("K", "tokens per round", "draft", "verify", "R(W)", "round cost", "speedup"):
        rows.add_column(name, justify="right")
    for point in shown_points(one):
        rows.add_row(
            str(point.k),
            f"{point.acceptance_length:.2f}",
            seconds(point.draft_s + point.draft_host_s),
            seconds(point.verify_s),
            f"{point.verify_s / point.decode_s:.2f}",
            f"{point.round_cost:.2f}",
            times(point.speedup),
            style="bold" if point.k == one.k else None,
        )
    return rows


def recommendation_text(
    one: Recommendation, around: Outlook | None = None, engine: str = ""
) -> RenderableType:
    """Verdict, curve, loss account, limits, flags, evidence.

    Parameters
    ----------
    one
        The answer.
    around
        Where it stops paying and what would help.
    engine
        Print flags of this engine only; '' for all.
    """
    head = Text()
    head.append(f"{one.model} + {one.drafter} on {one.hardware}", "bold")
    ranks = f", {one.tp} ranks" if one.tp > 1 else ""
    head.append(f"  ({one.dtype}, batch {one.batch:g}, context {one.context:g}{ranks}, {one.acceptance})")
    lost = ", ".join(
        f"{loss.term} {loss.speedup_lost:.2f}" for loss in one.loss if abs(loss.speedup_lost) >= 0.005
    )
    parts: list[RenderableType] = [head, verdict(one), rates(one), curve_table(one)]
    parts.append(Text(LEGEND, DIM))
    parts += _options("run it", one.flags, engine)
    parts.append(Text(f"lost from the ideal {one.k + 1}: {lost}"))
    if around is not None:
        parts += outlook_lines(around)
    if around is not None:
        parts += _options("K by batch", around.schedule_flags if len(around.schedule) > 1 else {}, engine)
        forced = "check the cost alone: these force the acceptance assumed (the text written is unusable)"
        parts += _options(forced, around.forced_acceptance, engine)
    parts.append(Text(f"drafter: {one.drafter_title}", DIM))
    parts.append(Text(source_line(one.calibration, one.expected_error, one.evidence["weakest"])))
    if one.best.decode_host_s:
        spent = f"{seconds(one.best.decode_host_s)} of a plain step, {seconds(one.best.host_s)} of a round"
        parts.append(Text(f"host time counted: {spent}"))
    parts += [Text(f"note: {note}") for note in one.notes]
    if not one.fits:
        need = f"{size(one.memory_bytes)} of {size(one.memory_capacity_bytes)}"
        parts.append(Text(f"DOES NOT FIT: needs {need} per device; {one.remedy}", BAD))
    return Group(*parts)


def _options(heading: str, flags: Mapping[str, str], engine: str) -> list[RenderableType]:
    """Options by engine under a heading; nothing where no engine has any."""
    found = {name: text for name, text in flags.items() if not engine or name.startswith(engine)}
    lines = [Text(f"  {name}: {text}", DIM) for name, text in found.items()]
    return [Text(heading), *lines] if found else []


def rates(one: Recommendation) -> Text:
    """Tokens per second of one sequence, and of the batch where there are several."""
    text = Text(
        f"each sequence: {one.tokens_per_s:.4g} tokens per second, {one.plain_tokens_per_s:.4g} without speculation; "
        f"a round of {seconds(one.best.round_s)} gives {one.best.acceptance_length:.2f}"
    )
    if one.batch > 1:
        text.append(f"; all {one.batch:g} sequences: {one.batch * one.tokens_per_s:.4g}")
    return text


def outlook_lines(one: Outlook) -> list[RenderableType]:
    """Where speculation stops paying, what would help more, and K by batch."""
    limits = one.limits
    top = limits.largest_useful_k
    parts = [f"the largest K that pays is {top}" if top else "no K pays"]
    if limits.break_even_alpha is not None:
        parts.append(f"K = {limits.k} breaks even at acceptance rate {limits.break_even_alpha:.2f}")
    else:
        parts.append(f"K = {limits.k} cannot pay at any acceptance")
    if limits.largest_draft_cost is not None:
        parts[-1] += f", or at draft cost c = {limits.largest_draft_cost:.2f}"
    fits = "" if limits.batch_fits == float("inf") else f" ({limits.batch_fits:.0f} fit)"
    lines: list[RenderableType] = [
        Text(f"limits: {'; '.join(parts)}"),
        Text(
            f"pays with this context at {_ranges('batch', limits.batch, limits.batch_looked)}{fits}, "
            f"with this batch at {_ranges('context', limits.context, limits.context_looked)}"
        ),
    ]
    if one.changes:
        best = one.changes[0]
        condition = f", {best.condition}" if best.condition else ""
        lines.append(Text(f"would help most: {best.what} ({times(best.speedup)} at K = {best.k}{condition})"))
    else:
        lines.append(Text("would help most: nothing that was tried gains 2 %"))
    lines.append(Text(f"K by batch, within 2 % of the best: {stretches_text(one.schedule)}"))
    if one.by_confidence is not None:
        lines.append(_confidence(one.by_confidence))
    if any(not part.k for part in one.schedule) and one.idle_drafter >= 0.005:
        lines.append(
            Text(f"note: a drafter that stays loaded while K is 0 takes {one.idle_drafter:.0%} of a step")
        )
    return lines


def stretches_text(schedule: Sequence[Stretch]) -> str:
    """K by batch in a line: ``1: 6, 2-40: 5, 41-256: off``."""
    return ", ".join(
        f"{part.first}{f'-{part.last}' if part.last > part.first else ''}: {part.k or 'off'}"
        for part in schedule
    )


def _ranges(what: str, found: tuple[tuple[float, float], ...], looked: float) -> str:
    """Ranges of a load in words; the one that goes as far as was looked has no end."""
    if not found:
        return f"no {what}"
    parts = []
    for low, high in found:
        start = f"{low:,.0f}"
        parts.append(f"{start} and more" if high >= looked else f"{start} to {high:,.0f}")
    return f"any {what}" if parts in (["1 and more"], ["0 and more"]) else f"{what} {', '.join(parts)}"


def _confidence(found: ByConfidence) -> Text:
    """Drafts verified by sequence, in short, and what that gains."""
    counts = Counter(found.lengths)
    lengths = ", ".join(f"{length} for {counts[length]}" for length in sorted(counts, reverse=True))
    return Text(
        f"verifying by confidence: K = {found.k} drafted, of which {lengths} sequences are verified: "
        f"{found.gain:+.1%} over one K for all"
    )
