"""Shared pieces of terminal output."""

from __future__ import annotations

from rich.box import SIMPLE_HEAD
from rich.table import Table

from rooflinekit.units import render

GOOD, BAD, DIM = "bold green", "bold red", "dim"


def table(title: str = "") -> Table:
    """Return an empty table in the house style."""
    return Table(
        title=title or None,
        title_justify="left",
        title_style="bold",
        box=SIMPLE_HEAD,
        pad_edge=False,
        show_edge=False,
    )


def seconds(value: float) -> str:
    """Time with its unit, three digits."""
    number, _, unit = render(value, "s").partition(" ")
    return f"{float(number):#.3g}".rstrip(".") + f" {unit}" if value else "0 s"


def size(value: float) -> str:
    """Bytes with their unit."""
    return render(value, "B", digits=4) if value else "-"


def count(value: float) -> str:
    """FLOPs with their unit."""
    return render(value, "FLOP", digits=4) if value else "-"


def percent(value: float) -> str:
    """Fraction as percent: one digit below ten, none above."""
    return f"{100 * value:.1f} %" if abs(value) < 0.0995 else f"{100 * value:.0f} %"


def times(value: float) -> str:
    """Speedup or ratio."""
    return f"{value:.2f}x"
