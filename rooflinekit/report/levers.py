"""Quantisation, a smaller model and speculation as text."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from rooflinekit.levers import Lever, LeverTable
from rooflinekit.report.prediction import source_line
from rooflinekit.report.style import BAD, DIM, count, seconds, size, table, times


def output_cell(row: Lever) -> str:
    """What becomes of the output distribution, in short."""
    if row.total_variation is None:
        return "changed (not computed)"
    if not row.changes:
        return "the reference"
    if row.output == "unchanged":
        return f"unchanged (distance {row.total_variation:.0e})"
    return f"changed (distance {row.total_variation:.2f})"


def _called(row: Lever) -> str:
    """Name of a row; one whose acceptance is the example's says so."""
    return (
        f"{row.name} (example)" if row.output == "changed" and row.total_variation is not None else row.name
    )


def changes_table(rows: tuple[Lever, ...]) -> Table:
    """Output distribution and weights held."""
    shown = table("What it changes")
    shown.add_column("")
    shown.add_column("output distribution")
    shown.add_column("weights held", justify="right")
    for row in rows:
        shown.add_row(_called(row), output_cell(row), size(row.resident_bytes))
    return shown


def speed_table(rows: tuple[Lever, ...], at: int) -> Table:
    """K, time, traffic, tokens per second and speedup at one batch, and how far parts combine."""
    shown = table(f"Batch {rows[0].points[at].batch:g}")
    shown.add_column("")
    names = ("K", "A", "step or round", "bytes/token", "FLOPs/token", "tok/s", "speedup", "of product")
    for name in names:
        shown.add_column(name, justify="right")
    for row in rows:
        point = row.points[at]
        drafted = (str(point.k), f"{point.acceptance_length:.2f}") if point.k else ("-", "-")
        shown.add_row(
            _called(row) if point.fits else f"{_called(row)} !",
            *drafted,
            seconds(point.step_s),
            size(point.bytes_per_token),
            count(point.flops_per_token),
            f"{point.tokens_per_s:,.0f}",
            times(point.speedup),
            f"{100 * point.of_product:.0f} %" if point.of_product is not None else "",
            style=None if point.fits else BAD,
        )
    return shown


def levers_text(found: LeverTable) -> RenderableType:
    """Both tables, how the distances are known, what does not fit, what was left out."""
    head = Text(f"{found.model} on {found.hardware}, context {found.context:g}", "bold")
    if found.drafter:
        head.append(f"; drafter {found.drafter} at {found.acceptance}")
    lines: list[RenderableType] = [head, changes_table(found.levers)]
    for at in range(len(found.levers[0].points)):
        lines += [Text(), speed_table(found.levers, at)]
    lines.append(Text())
    by_reason: dict[str, list[str]] = {}
    for row in found.levers:
        if row.changes:
            by_reason.setdefault(row.reason, []).append(row.name)
    notes = [f"{', '.join(names)}: {reason}" for reason, names in by_reason.items()]
    if any(point.of_product is not None for row in found.levers for point in row.points):
        notes.append("of product: speedup over (that of the format alone x that of speculation alone)")
    notes += found.notes
    notes += [f"left out: {name}: {reason}" for name, reason in found.left_out]
    lines += [Text(note, DIM) for note in notes]
    lines.append(Text(source_line(found.calibration, None, "")))
    for at, first in enumerate(found.levers[0].points):
        wrong = [f"{row.name} ({row.points[at].remedy})" for row in found.levers if not row.points[at].fits]
        if wrong:
            lines.append(Text(f"! DOES NOT FIT at batch {first.batch:g}: {'; '.join(wrong)}", BAD))
    return Group(*lines)
