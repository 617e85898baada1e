"""Best K over batch and context as text."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from rooflinekit.prospect import Schedule
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
    lines.append(Text("off: no K pays; dim: does not fit into memory", DIM))
    for context, stretches, flags in zip(one.context, one.by_context, one.flags, strict=True):
        said = ", ".join(f"{part.first}-{part.last}: {part.k or 'off'}" for part in stretches)
        lines.append(Text(f"context {context:,.0f}, K by batch: {said}"))
        wanted = {name: text for name, text in flags.items() if not engine or name.startswith(engine)}
        lines += [Text(f"  {name}: {text}", DIM) for name, text in wanted.items()]
    return Group(*lines)


def _cell(k: int, speedup: float, *, fits: bool) -> Text:
    words = f"{k}  {times(speedup)}" if k else f"off  {times(speedup)}"
    return Text(words, "" if fits else DIM)
