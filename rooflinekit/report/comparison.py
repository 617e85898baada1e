"""Drafters side by side as text."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from rooflinekit.comparison import Comparison
from rooflinekit.report.prediction import source_line
from rooflinekit.report.style import BAD, DIM, GOOD, seconds, size, table, times


def comparison_table(rows: Sequence[Comparison]) -> Table:
    """One line per drafter, the best one bold."""
    shown = table()
    shown.add_column("drafter", no_wrap=True)
    shown.add_column("passes", no_wrap=True)
    for name in ("bytes", "draft K=1", "K=4", "K=16", "per K"):
        shown.add_column(name, justify="right")
    shown.add_column("bound")
    for name in ("best K", "tokens", "break-even", "speedup"):
        shown.add_column(name, justify="right")
    best = max(rows, key=lambda row: row.speedup)
    for row in rows:
        shown.add_row(
            _called(row),
            row.serial_passes,
            size(row.bytes_per_round),
            *(
                seconds(row.draft_s[k - 1] + row.draft_host_s[k - 1]) if len(row.draft_s) >= k else "-"
                for k in (1, 4, 16)
            ),
            seconds(row.slope_s) if len(row.draft_s) > 1 else "-",
            row.bound,
            str(row.k),
            f"{row.acceptance_length:.2f}",
            f"{row.break_even_acceptance_length:.2f}",
            times(row.speedup) if row.pays else Text(f"{times(row.speedup)} N/A", BAD),
            style="bold" if row is best else None,
        )
    return shown


def comparison_text(rows: Sequence[Comparison], *, heading: bool = True, load: str = "") -> RenderableType:
    """Drafters side by side, with what they were compared at (``load``: batch and context) and how far to trust it."""
    best = max(rows, key=lambda row: row.speedup)
    lines: list[RenderableType] = [comparison_table(rows)]
    if heading:
        shared = {row.acceptance for row in rows}
        said = (
            f"every drafter at {best.acceptance}"
            if len(shared) == 1
            else "each drafter at its own acceptance"
        )
        lines.insert(
            0, Text(f"{best.model} on {best.hardware}{f' ({load})' if load else ''}, {said}", "bold")
        )
        lines.insert(1, _verdict(rows))
        if len(shared) > 1:
            lines += [Text(f"{_called(row)}: {row.acceptance}", DIM) for row in rows]
        elif len(rows) > 1:
            lines.append(Text("to choose, give each its own acceptance, such as eagle3@0.7,ngram@0.3", DIM))
        edge = [_called(row) for row in rows if row.k == len(row.draft_s)]
        if edge:
            lines.append(
                Text(
                    "at the largest K that could be tried (trained block, K up to which acceptance was measured, or "
                    f"--max-k): {', '.join(edge)}",
                    DIM,
                )
            )
        if not best.hosted:
            lines.append(Text("device time only: an engine adds host time to every serial pass", DIM))
        if not all(row.pays for row in rows):
            lines.append(Text("N/A: no K pays; the least loss is shown", DIM))
        lines.append(Text(source_line(best.calibration, None, "")))
    missing = next((row for row in rows if not row.fits), None)
    if missing is not None:
        lines.append(
            Text(f"DOES NOT FIT into {best.hardware} with {_called(missing)}: {missing.remedy}", BAD)
        )
    return Group(*lines)


def _verdict(rows: Sequence[Comparison]) -> Text:
    """Which drafter to take, in one line, with the runner-up and what it gives."""
    best, *others = sorted(rows, key=lambda row: row.speedup, reverse=True)
    if not best.pays:
        return Text(f"None pays: at best {_called(best)}, {times(best.speedup)} at K = {best.k}", BAD)
    # Copies and heads are accepted less often than a drafter that sees its own tokens: no ranking at one rate decides.
    equal = len(rows) > 1 and len({row.acceptance for row in rows}) == 1
    head = "Best if all were accepted as often" if equal else "Best"
    text = Text(f"{head}: {_called(best)}, {times(best.speedup)} at K = {best.k}", GOOD)
    if others:
        text.append(f"   next: {_called(others[0])}, {times(others[0].speedup)} at K = {others[0].k}")
    return text


def _called(row: Comparison) -> str:
    """Name of a drafter; an independent model is called by its own."""
    return row.title.partition(",")[0] if row.drafter == "small-lm" else row.drafter
