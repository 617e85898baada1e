"""Hardware as tables: the list one can sort, one profile with its sources, the GPUs found."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from rooflinekit.evidence import Cited
from rooflinekit.hardware import STORAGE, Hardware
from rooflinekit.report.style import DIM, size, table
from rooflinekit.units import render

DOUBT = "?"
_TOKENS = {"w16a16": "bf16", "w8a8": "w8a8", "w4a16": "w4a16"}


def hardware_table(found: Sequence[Hardware]) -> RenderableType:
    """One line per device, in the order given."""
    rows = table()
    rows.add_column("name", no_wrap=True)
    for name in ("bandwidth", "memory", "bf16\nTFLOP/s", "fp8\nTFLOP/s"):
        rows.add_column(name, justify="right", no_wrap=True)
    for name in _TOKENS.values():
        rows.add_column(f"ridge\n{name}", justify="right", no_wrap=True)
    rows.add_column("also called")
    for one in found:
        tokens = one.ridge_tokens_by_format()
        base = "bf16" if "bf16" in one.peak or "fp16" not in one.peak else "fp16"
        rows.add_row(
            one.name,
            render(one.bandwidth.value, "B/s") + _doubt(one.bandwidth),
            size(one.usable_bytes) + _doubt(one.visible_capacity or one.capacity),
            ("fp16: " if base == "fp16" else "") + _teraflops(one.peak.get(base)),
            _teraflops(one.peak.get("fp8")),
            *(f"{tokens[name]:.0f}" if name in tokens else "-" for name in _TOKENS),
            ", ".join(one.aliases),
        )
    return Group(rows, *[Text(line, DIM) for line in _legend(found)])


def _legend(found: Sequence[Hardware]) -> list[str]:
    lines = [
        "ridge: rows of a pass at which FLOPs stop hiding behind the weights, by format of weights and activations;",
        "that of bf16 (fp16 where there is none) is also the ridge in FLOP/byte",
    ]
    if any(one.doubtful() for one in found):
        lines.append(f"{DOUBT} low confidence: `rooflinekit hardware show NAME` has the reason")
    return lines


def hardware_text(one: Hardware) -> RenderableType:
    """Every number with its kind and source, then where the roofs meet."""
    rows = table(f"{one.title} ({one.name})")
    rows.add_column("")
    rows.add_column("value", justify="right")
    rows.add_column("kind")
    rows.add_column("source", style=DIM, overflow="fold")
    named: list[tuple[str, Cited | None, str]] = [
        ("bandwidth", one.bandwidth, "B/s"),
        *((f"peak {dtype}", cited, "FLOP/s") for dtype, cited in one.peak.items()),
        ("capacity", one.capacity, "B"),
        ("visible capacity", one.visible_capacity, "B"),
        ("last-level cache", one.l2, "B"),
        ("link", one.link, "B/s"),
        ("units", one.units, ""),
        ("board power", one.tdp, "W"),
        ("clock", one.clock, "Hz"),
    ]
    for label, cited, unit in named:
        if cited is not None:
            kind = f"{cited.kind}, low confidence" if cited.confidence else cited.kind
            rows.add_row(label, render(cited.value, unit).strip(), kind, cited.ref)
    if not one.peak:
        rows.add_row("peak", "-", "", "no matrix rate is published: the compute bound is unknown")
    called = ", ".join(one.aliases)
    head = f"{one.vendor} {one.architecture}" + (f"; also called {called}" if called else "")
    parts: list[RenderableType] = [rows, Text(head, DIM)]
    if one.peak:
        parts += [Text(""), _ridge_table(one), Text(""), _token_table(one), Text("")]
    return Group(*parts, *[Text(f"- {note}", DIM) for note in one.notes])


def _ridge_table(one: Hardware) -> Table:
    rows = table("ridge: arithmetic intensity at which compute binds")
    rows.add_column("format")
    rows.add_column("FLOP/byte", justify="right")
    for dtype, cited in one.peak.items():
        rows.add_row(dtype, f"{one.ridge_flop_per_byte(dtype):.4g}{_doubt(cited)}")
    return rows


def _token_table(one: Hardware) -> Table:
    rows = table("ridge in tokens: rows of a pass at which weights stop hiding the FLOPs")
    rows.add_column("weights, activations")
    rows.add_column("computes in")
    rows.add_column("tokens", justify="right")
    for name, tokens in one.ridge_tokens_by_format().items():
        dtype = next(dtype for dtype in STORAGE[name][0] if dtype in one.peak)
        rows.add_row(name, dtype, f"{tokens:.0f}{_doubt(one.peak[dtype])}")
    return rows


def _teraflops(cited: Cited | None) -> str:
    return "-" if cited is None else f"{cited.value / 1e12:.4g}" + _doubt(cited)


def _doubt(cited: Cited) -> str:
    return f" {DOUBT}" if cited.confidence else ""
