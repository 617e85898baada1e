"""Orders of magnitude as text."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from rooflinekit.orders import Order
from rooflinekit.report.style import BAD, DIM, GOOD, table


def orders_text(
    device: Sequence[Order], engine: Sequence[Order], heading: str, engine_name: str = "in vLLM"
) -> RenderableType:
    """What is told beside what is computed, on the device alone and with the host time of an engine."""
    rows = table()
    rows.add_column("quantity")
    for name in ("told", "kernels alone", engine_name, "unit"):
        rows.add_column(name, justify="left" if name == "unit" else "right")
    for alone, hosted in zip(device, engine, strict=True):
        told = f"{alone.told_low:g}"
        if alone.told_high != alone.told_low:
            told += f" .. {alone.told_high:g}"
        rows.add_row(alone.what, told, _computed(alone), _computed(hosted), alone.unit)
    lines: list[RenderableType] = [Text(heading, "bold"), rows]
    lines.append(Text("green: in the range that is told; T_d: one plain step", DIM))
    return Group(*lines)


def _computed(one: Order) -> Text:
    digits = 4 if one.unit == "tokens" else 3
    return Text(f"{one.computed:.{digits}f}", GOOD if one.inside else BAD)
