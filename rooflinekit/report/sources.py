"""Published sources, one line each, as text."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from rooflinekit.report.style import BAD, DIM, GOOD, table
from rooflinekit.validation import Report, SourceBand


def short(value: float) -> str:
    """Fraction in per cent, without the word."""
    return f"{100 * value:.1f}"


def signed(value: float) -> str:
    """Error in per cent with its sign; no decimals where they mean nothing."""
    return f"{100 * value:+.1f}" if abs(value) < 1.0 else f"{100 * value:+.0f}"


def judged_words(band: SourceBand) -> tuple[str, str]:
    """The judged statistic and its limit, for people."""
    limit = band.tolerance
    if band.judged == "sign":
        return f"{round(band.value * band.n)} right", "" if limit is None else f">= {100 * limit:g}"
    shown = "exact" if limit == 0.0 else ("" if limit is None else f"{100 * limit:g}")
    return f"{band.judged} {short(band.value)}", shown


def plain_words(band: SourceBand) -> str:
    """The judged statistic of the plain guess, where there is one."""
    if band.plain is None:
        return ""
    return f"{round(band.plain * band.n)} right" if band.judged == "sign" else short(band.plain)


def sources_text(report: Report) -> RenderableType:
    """One line per source: n, error, the judged statistic beside the plain guess's, and the verdict."""
    rows = table()
    rows.add_column("source", no_wrap=True)
    rows.add_column("compared", no_wrap=True)
    for name in ("n", "median", "range, %", "judged", "plain", "limit"):
        rows.add_column(name, justify="right", no_wrap=True)
    rows.add_column("")
    flags: list[Text] = []
    group = ""
    for band in report.bands:
        if not isinstance(band, SourceBand):
            continue
        if band.group != group:
            group = band.group
            rows.add_row(Text(group, "bold"))
        value, limit = judged_words(band)
        rows.add_row(
            band.suite,
            band.band,
            str(band.n),
            short(band.median_abs_error),
            f"{signed(band.lowest)}..{signed(band.highest)}",
            value,
            plain_words(band),
            limit,
            "" if band.ok is None else (Text("ok", GOOD) if band.ok else Text("MISSED", BAD)),
            style=DIM if band.ok is None else None,
        )
        flags += [Text(f"{band.suite}, {band.band}: {flag}", DIM) for flag in band.flags]
    notes = (
        "errors are predicted / published - 1, in %; plain: the same statistic of the guess made without the model",
        "(with host time: the same model without it; growth and sign of trees in SGLang: that of a chain as deep)",
        "what each line does not show: docs/published.md, or --json",
    )
    return Group(rows, *flags, *(Text(note, DIM) for note in notes))
