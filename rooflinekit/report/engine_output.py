"""What was read from an engine's output, as text."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from rooflinekit.readers.engine_outputs import EngineOutput
from rooflinekit.report.style import BAD, DIM, seconds


def output_text(read: EngineOutput) -> RenderableType:
    """Source, what was counted and timed, and by which definition."""
    parts = []
    if read.k is not None:
        parts.append(f"K {read.k}" + (f", {read.width} rows" if read.width else ""))
    if read.drafted_per_round is not None:
        parts.append(f"{read.drafted_per_round:.2f} drafts a round")
    if read.acceptance_length is not None:
        parts.append(f"A {read.acceptance_length:.3g}")
    if read.rounds is not None:
        parts.append(f"{read.rounds:.0f} rounds")
    for name, value in (("round", read.round_at()), ("token", read.token_at()), ("drafting", read.draft_s)):
        if value is not None:
            parts.append(f"{name} {seconds(value)}")
    if read.concurrency is not None:
        parts.append(f"{read.concurrency:g} running")
    elif read.rounds_per_s is not None:
        parts.append("times for one sequence")
    source = f"read: {read.engine}, {read.what}, {read.where}" + (f" ({read.model})" if read.model else "")
    return Group(Text(source, "bold"), Text(", ".join(parts)), Text(f"definition: {read.definition}", DIM))


def warning_text(note: str) -> Text:
    """A warning in a line."""
    return Text(f"warning: {note}", BAD)
