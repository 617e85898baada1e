"""Models and drafters as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from rooflinekit.llm import Llm, Moe
from rooflinekit.report.style import size, table


def models_table(found: Sequence[Mapping[str, Any]]) -> RenderableType:
    """One line per model."""
    rows = table()
    rows.add_column("name")
    for name in ("parameters", "active", "layers", "format", "weights read per step", "KV cache per token"):
        rows.add_column(name, justify="right")
    for one in sorted(found, key=lambda m: m["total_params"]):
        rows.add_row(
            one["name"],
            f"{one['total_params'] / 1e9:.2f} B",
            f"{one['active_params'] / 1e9:.2f} B",
            str(one["layers"]),
            one["dtype"],
            size(one["streamed_bytes_per_step"]),
            size(one["kv_bytes_per_token"]),
        )
    return rows


def model_text(llm: Llm, row: Mapping[str, Any]) -> RenderableType:
    """Parameters by class of weights, and what a step and a token cost."""
    rows = table(f"{llm.name}: {row['total_params']:,} parameters")
    rows.add_column("weights")
    for name in ("per layer", "layers", "parameters"):
        rows.add_column(name, justify="right")
    for block in llm.blocks:
        for linear in block.linears(llm.hidden):
            rows.add_row(
                linear.label,
                f"{linear.out:g} x {linear.inner:g}",
                str(block.count),
                f"{block.count * linear.parameters:,.0f}",
            )
        if isinstance(block.ffn, Moe):
            total = block.ffn.experts * block.ffn.expert_parameters(llm.hidden)
            label = f"{block.ffn.experts} experts, {block.ffn.top_k} used"
            rows.add_row(label, f"{total:,.0f}", str(block.count), f"{block.count * total:,.0f}")
    tables = "embedding, shared with LM head" if llm.tied else "embedding and LM head"
    rows.add_row(
        tables, f"{llm.vocab} x {llm.hidden}", "", f"{llm.embedding_params * (1 if llm.tied else 2):,}"
    )
    streamed = f"{size(row['streamed_bytes_per_step'])} of weights ({row['dtype']})"
    facts = (
        f"one token uses {row['active_params']:,} parameters; a decode step reads {streamed}, "
        f"and a token leaves {row['kv_bytes_per_token']:,.0f} B in the KV cache"
    )
    return Group(rows, Text(facts))


def drafters_table(found: Sequence[Mapping[str, Any]]) -> RenderableType:
    """One line per drafter."""
    rows = table(f"for {found[0]['target']}")
    rows.add_column("name")
    rows.add_column("serial passes")
    rows.add_column("largest K", justify="right")
    rows.add_column("weights", justify="right")
    rows.add_column("shape")
    for one in found:
        largest = str(one["max_k"]) if one["max_k"] else "any"
        rows.add_row(one["name"], one["serial_passes"], largest, size(one["memory_bytes"]), one["title"])
    return rows
