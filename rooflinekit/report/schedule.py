"""Best K over batch and context as text."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from rooflinekit.prospect import Schedule
from rooflinekit.report.recommendation import stretches_text
from rooflinekit.report.style import DIM, table, times


def schedule_text(one: Schedule, heading: str, engine: str = "") -> RenderableType:
    """K and speedup by batch (rows) and context (columns), and the schedule of each context."""
    rows = table()
    rows.add_column("batch", justify="right")
    for context in one.context:
        rows.add_column(f"context {context:,.0f}", justify="right")
    for i, batch in enumerate(one.batch):
        cells = [
            _cell(one.k[i][j], one.speedup[i][j], fits=batch <= one.batch_fits[j])
            for j in range(len(one.context))
        ]
        rows.add_row(f"{batch:g}", *cells)
    lines: list[RenderableType] = [Text(f"{heading}, {one.acceptance}: best K and its speedup", "bold"), rows]
    lines.append(Text("off: no K pays; *: does not fit into memory", DIM))
    lines.append(
        Text("K by batch below: as few stretches as stay within 2 % of the best, as far as memory goes", DIM)
    )
    for context, stretches, flags in zip(one.context, one.by_context, one.flags, strict=True):
        lines.append(Text(f"context {context:,.0f}, K by batch: {stretches_text(stretches)}"))
        wanted = {name: text for name, text in flags.items() if not engine or name.startswith(engine)}
        lines += [Text(f"  {name}: {text}", DIM) for name, text in wanted.items()]
        if engine and not wanted:
            lines.append(
                Text(f"  {engine}: no option known that lets K of {one.drafter} follow the batch", DIM)
            )
    return Group(*lines)


def _cell(k: int, speedup: float, *, fits: bool) -> Text:
    words = f"{'' if fits else '*'}{k or 'off'}  {times(speedup)}"
    return Text(words, "" if fits else DIM)
