"""What a model's weights, cache and states cost, class by class, and the tables that show it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from rooflinekit.llm import AnyMixer, Attention, Block, BlockSparse, Compressed, Llm, Mla, Moe
from rooflinekit.memory import kv_cache_bytes, resident_weight_bytes
from rooflinekit.mixers import STATE_BYTES
from rooflinekit.precision import Precision
from rooflinekit.report.style import DIM, count, size, table
from rooflinekit.transformer import Load, forward_pass


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightRow:
    """Weights of one tensor class: elements, bytes held, bytes a decode step reads, FLOPs of a token."""

    tensor_class: str
    format: str
    parameters: float
    bytes: float
    streamed_bytes: float
    flops_per_token: float


def _elements(llm: Llm) -> Iterator[tuple[str, float, float]]:
    """Tensor class, elements held, elements used by a token; piece by piece."""
    for blocks, used in ((llm.blocks, 1.0), (llm.encoder, 0.0)):
        for block in blocks:
            for linear in block.linears(llm.hidden):
                held = block.count * linear.parameters
                yield linear.tensor_class, held, used * held * (not linear.once)
            if isinstance(block.ffn, Moe):
                each = block.count * block.ffn.expert_parameters(llm.hidden)
                yield "experts", block.ffn.experts * each, used * block.ffn.top_k * each
            yield "vectors", block.count * block.vector_parameters(llm.hidden), 0.0
    yield "embedding", float(llm.embedding_params), 0.0
    yield "head", 0.0 if llm.tied else float(llm.embedding_params), float(llm.embedding_params)
    yield "vectors", llm.other_params, 0.0


def weight_rows(llm: Llm, numbers: Precision) -> tuple[WeightRow, ...]:
    """One row for each tensor class that a model has.

    Parameters, bytes and streamed bytes sum to ``total_params``, ``resident_weight_bytes`` and
    ``streamed_bytes_per_step``: a decode step reads every matrix once, of the experts those that its one
    token chose, of the embedding only a row. Tied tables are held once, as the embedding.
    """
    held: dict[str, float] = {}
    used: dict[str, float] = {}
    for name, parameters, read in _elements(llm):
        held[name] = held.get(name, 0.0) + parameters
        used[name] = used.get(name, 0.0) + read
    # A tied table has the format of the head that it is, too.
    forms = {name: numbers.of("head" if llm.tied and name == "embedding" else name) for name in held}
    return tuple(
        WeightRow(
            tensor_class=name,
            format=form.name,
            parameters=held[name],
            bytes=held[name] * form.bits / 8,
            streamed_bytes=used[name] * form.bits / 8,
            flops_per_token=2.0 * used[name],
        )
        for name, form in forms.items()
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MixerRow:
    """One kind of layer's cache and state: bytes a token leaves, and at a context bytes read and kept."""

    layers: int
    kind: str
    window: int | None
    kv_bytes_per_token: float
    kv_read_bytes: float
    kv_reserved_bytes: float
    state_bytes: float


def mixer_rows(llm: Llm, numbers: Precision, context: float) -> tuple[MixerRow, ...]:
    """One row for each kind of mixer, at a context of one sequence; the step's own token is cached too."""
    kinds: dict[tuple[str, int | None, float, float], list[Block]] = {}
    for block in llm.blocks:
        key = (_kind(block), block.window, block.kv_elements(), block.state_elements())
        kinds.setdefault(key, []).append(block)
    rows = []
    for (kind, window, elements, state), blocks in kinds.items():
        layers = sum(block.count for block in blocks)
        part = Llm(name="", hidden=llm.hidden, vocab=llm.vocab, blocks=tuple(blocks))
        states = layers * state * STATE_BYTES
        rows.append(
            MixerRow(
                layers=layers,
                kind=kind,
                window=window,
                kv_bytes_per_token=layers * elements * numbers.bytes_per_kv,
                kv_read_bytes=kv_read_bytes(part, numbers, context),
                kv_reserved_bytes=float(kv_cache_bytes(part, 1.0, context + 1.0, numbers)) - states,
                state_bytes=states,
            )
        )
    return tuple(rows)


def _kind(block: Block) -> str:
    mixer = block.mixer
    if mixer is None:
        return "no mixer"
    if isinstance(mixer, Attention) and mixer.shared_cache:
        return "attention to another layer's cache"
    if isinstance(mixer, Attention):
        crossed = " and to an encoder" if block.cross is not None else ""
        return ("attention in a window" if mixer.window else "attention") + crossed
    sparse = ", sparse" if getattr(mixer, "indexer", None) is not None else ""
    return _mixer_words(mixer) + sparse


def _mixer_words(mixer: AnyMixer) -> str:
    if isinstance(mixer, Compressed):
        return f"attention, past {mixer.ratio:g}:1" if mixer.ratio else "attention in a window"
    if isinstance(mixer, Mla):
        return "latent attention"
    return "attention" if isinstance(mixer, BlockSparse) else "recurrent"


def kv_read_bytes(llm: Llm, numbers: Precision, context: float) -> float:
    """Cache bytes that a decode step of one sequence reads, states left out."""
    works = forward_pass(llm, Load(context=context), numbers)
    return sum(float(work.kv_bytes) for work in works if work.kind != "recurrent")


def model_facts(llm: Llm, numbers: Precision, context: float) -> dict[str, Any]:
    """Key numbers of a model, and where they come from by tensor class and by kind of mixer."""
    works = forward_pass(llm, Load(context=context), numbers)
    weights, mixers = weight_rows(llm, numbers), mixer_rows(llm, numbers, context)
    form = llm.mtp.format if llm.mtp is not None else ""
    return {
        "name": llm.name,
        "dtype": numbers.label,
        "kv_dtype": f"{numbers.kv_bits:g} bit",
        "layers": llm.layers,
        "hidden": llm.hidden,
        "vocab": llm.vocab,
        "total_params": llm.total_params,
        "active_params": llm.active_params,
        "mtp_params": llm.mtp_params,
        "mtp_modules": llm.mtp.modules if llm.mtp is not None else 0,
        "mtp_format": form or (numbers.name if llm.mtp is not None else None),
        "resident_bytes": resident_weight_bytes(llm, numbers),
        "streamed_bytes_per_step": sum(float(work.weight_bytes) for work in works),
        "kv_bytes_per_token": llm.kv_elements_per_token() * numbers.bytes_per_kv,
        "context": context,
        "kv_read_bytes_per_step": sum(row.kv_read_bytes for row in mixers),
        "kv_reserved_bytes": sum(row.kv_reserved_bytes for row in mixers),
        "state_bytes": sum(row.state_bytes for row in mixers),
        "flops_per_token": sum(float(work.flops) for work in works),
        "max_context": llm.max_context,
        "breakdown": [asdict(row) for row in weights],
        "mixers": [asdict(row) for row in mixers],
    }


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


def model_text(facts: Mapping[str, Any]) -> RenderableType:
    """Weights by class, cache and states by kind of layer, and what a step and a token cost."""
    parts: list[RenderableType] = [_weights_table(facts), Text(), _mixers_table(facts), Text()]
    parts.append(
        Text(
            f"one token uses {facts['active_params']:,} parameters and {count(facts['flops_per_token'])}; a"
            f" decode step reads {size(facts['streamed_bytes_per_step'])} of weights ({facts['dtype']}), and a"
            f" token leaves {facts['kv_bytes_per_token']:,.0f} B in the KV cache"
        )
    )
    if facts["mtp_params"]:
        parts.append(
            Text(
                f"beside it {facts['mtp_modules']} MTP of {facts['mtp_params']:,} parameters"
                f" ({facts['mtp_format']}), not counted above"
            )
        )
    return Group(*parts, *(Text(f"warning: {text}", "yellow") for text in facts.get("warnings", ())))


def _weights_table(facts: Mapping[str, Any]) -> RenderableType:
    rows = table(f"{facts['name']}: {facts['total_params']:,} parameters")
    rows.add_column("weights")
    rows.add_column("format", style=DIM)
    for name in ("parameters", "bytes", "read per step", "FLOPs of a token"):
        rows.add_column(name, justify="right")
    for row in facts["breakdown"]:
        rows.add_row(
            row["tensor_class"],
            row["format"],
            f"{row['parameters']:,.0f}",
            size(row["bytes"]),
            size(row["streamed_bytes"]),
            count(row["flops_per_token"]),
        )
    rows.add_section()
    rows.add_row(
        "all",
        "",
        f"{facts['total_params']:,}",
        size(facts["resident_bytes"]),
        size(facts["streamed_bytes_per_step"]),
        count(sum(row["flops_per_token"] for row in facts["breakdown"])),
    )
    return rows


def _mixers_table(facts: Mapping[str, Any]) -> RenderableType:
    rows = table(f"one sequence at a context of {facts['context']:,.0f} tokens, cache in {facts['kv_dtype']}")
    rows.add_column("layers", justify="right")
    rows.add_column("mixer")
    rows.add_column("window", justify="right")
    for name in ("KV per token", "KV read per step", "KV reserved", "state"):
        rows.add_column(name, justify="right")
    for row in facts["mixers"]:
        rows.add_row(
            str(row["layers"]),
            row["kind"],
            f"{row['window']:,}" if row["window"] else "-",
            size(row["kv_bytes_per_token"]),
            size(row["kv_read_bytes"]),
            size(row["kv_reserved_bytes"]),
            size(row["state_bytes"]),
        )
    rows.add_section()
    rows.add_row(
        str(facts["layers"]),
        "all",
        "",
        size(facts["kv_bytes_per_token"]),
        size(facts["kv_read_bytes_per_step"]),
        size(facts["kv_reserved_bytes"]),
        size(facts["state_bytes"]),
    )
    return rows
