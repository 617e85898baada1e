"""Layer shapes that are measured, and their work in the terms of the model."""

from __future__ import annotations

from dataclasses import dataclass

from rooflinekit.precision import precision
from rooflinekit.work import Work


@dataclass(frozen=True, slots=True)
class Decoder:
    """Dimensions of a dense decoder with grouped-query attention (counts)."""

    name: str
    hidden: int
    intermediate: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int

    @property
    def matrices(self) -> dict[str, tuple[int, int]]:
        """The four fused matrices of a layer: rows out, elements in."""
        return {
            "qkv": ((self.heads + 2 * self.kv_heads) * self.head_dim, self.hidden),
            "o": (self.hidden, self.heads * self.head_dim),
            "gate_up": (2 * self.intermediate, self.hidden),
            "down": (self.hidden, self.intermediate),
        }

    @property
    def head(self) -> tuple[int, int]:
        """The LM head."""
        return self.vocabulary, self.hidden

    @property
    def parameters(self) -> int:
        """Elements of all matrices read in a step."""
        layer = sum(out * inner for out, inner in self.matrices.values())
        return self.layers * layer + self.vocabulary * self.hidden


# Sources: config.json of meta-llama/Llama-3.2-1B-Instruct and meta-llama/Llama-3.1-8B-Instruct.
LLAMA_1B = Decoder("llama-3.2-1b", 2048, 8192, 16, 32, 8, 64, 128256)
LLAMA_8B = Decoder("llama-3.1-8b", 4096, 14336, 32, 32, 8, 128, 128256)


def linear_work(rows: int, out: int, inner: int, dtype: str) -> Work:
    """Work of ``y = x W^T``: weights once whatever the rows, activations in and out.

    >>> linear_work(1, 4, 8, "bf16").weight_bytes, linear_work(1, 4, 8, "bf16").activation_bytes
    (64.0, 24.0)
    """
    numbers = precision(dtype)
    return Work(
        "linear",
        "linear",
        numbers.compute,
        rows=float(rows),
        flops=2.0 * rows * out * inner,
        weight_bytes=out * inner * numbers.weight_bytes,
        activation_bytes=rows * (out + inner) * numbers.activation_bytes,
    )


@dataclass(frozen=True, slots=True)
class AttentionShape:
    """One attention call: sequences, tokens in the cache, new tokens, heads (counts)."""

    batch: int
    context: int
    width: int
    heads: int
    kv_heads: int
    head_dim: int

    @property
    def length(self) -> int:
        """Positions attended to by the last new token."""
        return self.context + self.width

    def as_dict(self) -> dict[str, int]:
        """Numbers for a measurement."""
        return {
            "batch": self.batch,
            "context": self.context,
            "width": self.width,
            "heads": self.heads,
            "kv_heads": self.kv_heads,
            "head_dim": self.head_dim,
        }


def attention_work(shape: AttentionShape, dtype: str) -> Work:
    """Work of causal attention: the cache once per sequence, not per query row.

    >>> s = AttentionShape(1, 3, 1, heads=4, kv_heads=2, head_dim=8)
    >>> attention_work(s, "bf16").kv_bytes, attention_work(s, "bf16").flops
    (256.0, 512.0)
    """
    numbers = precision(dtype)
    pairs = shape.width * shape.context + shape.width * (shape.width + 1) / 2
    elements = shape.batch * shape.length * 2 * shape.kv_heads * shape.head_dim
    return Work(
        "attention",
        "attention",
        numbers.compute,
        rows=float(shape.batch * shape.width),
        flops=4.0 * shape.batch * shape.heads * shape.head_dim * pairs,
        kv_bytes=elements * numbers.kv_bytes,
        activation_bytes=2
        * shape.batch
        * shape.width
        * shape.heads
        * shape.head_dim
        * numbers.activation_bytes,
    )


def step_works(model: Decoder, context: int, width: int, dtype: str) -> tuple[Work, ...]:
    """All linears, all attention and the LM head of one decode or verify step of one sequence."""
    linears = [linear_work(width, out, inner, dtype) for out, inner in model.matrices.values()]
    shape = AttentionShape(1, context, width, model.heads, model.kv_heads, model.head_dim)
    layer = (*linears, attention_work(shape, dtype))
    return (*layer * model.layers, linear_work(width, *model.head, dtype))


def total(works: tuple[Work, ...], kind: str = "step") -> Work:
    """Sum works of one format and width."""
    return Work(
        kind,
        kind,
        works[0].dtype,
        rows=works[0].rows,
        flops=sum(float(w.flops) for w in works),
        weight_bytes=sum(float(w.weight_bytes) for w in works),
        kv_bytes=sum(float(w.kv_bytes) for w in works),
        activation_bytes=sum(float(w.activation_bytes) for w in works),
        kernels=sum(float(w.kernels) for w in works),
    )
