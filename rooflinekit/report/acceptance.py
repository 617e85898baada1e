"""Acceptance as text: profiles, one of them position by position, and fits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from rooflinekit.acceptance import Acceptance
from rooflinekit.acceptance.fits import Fit
from rooflinekit.acceptance.posterior import Estimate
from rooflinekit.acceptance.profiles import AcceptanceProfile
from rooflinekit.acceptance.table import PositionRow
from rooflinekit.report.style import BAD, DIM, GOOD, percent, table

LEGEND = (
    "conditional: of the rounds that accepted all earlier drafts, those that accept this one; survival: of all rounds; "
    "A(K): tokens per round of K drafts, bonus token included"
)
ORDER = ("constant", "decay")


def profiles_table(profiles: Iterable[AcceptanceProfile]) -> RenderableType:
    """One line per shipped profile."""
    listed = list(profiles)
    rows = table()
    # A cut name is of no use to whoever wants to type it.
    rows.add_column("name", no_wrap=True, min_width=max((len(one.name) for one in listed), default=1))
    for name in ("target", "data set"):
        rows.add_column(name)
    for name in ("K", "A(K)"):
        rows.add_column(name, justify="right")
    for one in listed:
        k = one.largest_k
        rows.add_row(
            one.name,
            one.target.rpartition("/")[2],
            one.dataset,
            str(k),
            f"{float(one.acceptance.expected(k)):.2f}",
        )
    return rows


def acceptance_text(
    acceptance: Acceptance, rows: Sequence[PositionRow], profile: AcceptanceProfile | None = None
) -> RenderableType:
    """Positions with their intervals, where the numbers are from, and what is doubtful about them."""
    counted = rows[0].survival_low is not None
    shown = table()
    for name in ("position", "conditional", "survival", "A(K = position)"):
        shown.add_column(name, justify="right")
    for row in rows:
        shown.add_row(
            str(row.position),
            f"{row.conditional:.3f}",
            f"{row.survival:.3f}" + _span(row.survival_low, row.survival_high),
            f"{row.acceptance_length:.2f}" + _span(row.length_low, row.length_high, digits=2),
        )
    parts: list[RenderableType] = [Text(acceptance.label, "bold"), shown, Text(LEGEND, DIM)]
    if counted:
        parts.append(Text(f"in brackets: 90 % intervals from {acceptance.rounds} rounds", DIM))
    if profile is not None:
        facts = (
            ("target", profile.target),
            ("drafter", profile.drafter),
            ("data set", profile.dataset),
            ("temperature", profile.temperature),
            ("verification", profile.verification),
            ("source", profile.source),
        )
        parts += [Text(f"{name}: {value}") for name, value in facts]
    return Group(*parts, *warning_lines(acceptance.warnings))


def warning_lines(warnings: Iterable[str]) -> list[Text]:
    """One line for each warning."""
    return [Text(f"warning: {warning}", BAD) for warning in warnings]


def _span(low: float | None, high: float | None, digits: int = 3) -> str:
    return "" if low is None or high is None else f"  ({low:.{digits}f} .. {high:.{digits}f})"


def _value(estimate: Estimate) -> str:
    return f"{estimate.estimate:.3f}" + _span(estimate.low, estimate.high)


def choice(fits: dict[str, Fit]) -> str | None:
    """Simplest model that is good enough, or ``None``."""
    return next((name for name in ORDER if name in fits and fits[name].adequate), None)


def fits_text(acceptance: Acceptance, fits: dict[str, Fit]) -> RenderableType:
    """Each model with its parameters, how it fits, and which one is good enough."""
    rows = table()
    for name in ("model", "parameters", "largest error of A", "p", "good enough"):
        rows.add_column(name)
    for name, fit in fits.items():
        rows.add_row(
            name,
            ", ".join(f"{key} {_value(estimate)}" for key, estimate in fit.estimates.items()),
            f"{percent(fit.worst_error)} at K = {fit.worst_k}",
            "-" if fit.p_value is None else f"{fit.p_value:.2g}",
            "yes" if fit.adequate else "no",
        )
    chosen = choice(fits)
    verdict = (
        Text(f"{chosen} is good enough: {fits[chosen].model.label}", GOOD)
        if chosen
        else Text("neither is good enough; keep what was measured", BAD)
    )
    rounds = (
        "no rounds counted, so no intervals" if acceptance.rounds is None else f"{acceptance.rounds} rounds"
    )
    note = (
        f"{rounds}; p: probability of a worse fit if the model holds; good enough: p of 0.05 or more, or every A "
        "within 1 %"
    )
    head = Text(acceptance.label, "bold")
    return Group(head, rows, verdict, Text(note, DIM), *warning_lines(acceptance.warnings))
