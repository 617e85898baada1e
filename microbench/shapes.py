"""Layer shapes that are measured, and their work in the terms of the model."""

from __future__ import annotations

from dataclasses import dataclass

from rooflinekit import transformer
from rooflinekit.errors import ModelError
from rooflinekit.llm import Attention, Block, Linear, Llm, Mlp
from rooflinekit.load import Load
from rooflinekit.mixers import attention_work as attention_scores
from rooflinekit.precision import precision
from rooflinekit.readers.models import find_llm
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


def decoder(llm: Llm) -> Decoder:
    """Dimensions of a model of equal dense layers with grouped-query attention."""
    (block,) = llm.blocks
    if not isinstance(block.mixer, Attention) or not isinstance(block.ffn, Mlp):
        raise ModelError(
            f"{llm.name} has no plain layers; measure a dense model with grouped-query attention"
        )
    spec = block.mixer
    return Decoder(
        llm.name,
        llm.hidden,
        block.ffn.intermediate,
        block.count,
        spec.heads,
        spec.kv_heads,
        spec.head_dim,
        llm.vocab,
    )


LLAMA_1B = decoder(find_llm("llama-3.2-1b"))
LLAMA_8B = decoder(find_llm("llama-3.1-8b"))


def linear_work(rows: int, out: int, inner: int, dtype: str) -> Work:
    """Work of ``y = x W^T`` by the model's own count: weights once whatever the rows, activations in and out.

    >>> linear_work(1, 4, 8, "bf16").weight_bytes, linear_work(1, 4, 8, "bf16").activation_bytes
    (64.0, 24.0)
    """
    return transformer.linear_work(Linear("linear", out, inner), float(rows), precision(dtype))


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
    spec = Attention(heads=shape.heads, kv_heads=shape.kv_heads, head_dim=shape.head_dim)
    load = Load(float(shape.batch), float(shape.context), float(shape.width))
    return attention_scores(spec, 1.0, load, precision(dtype))


def step_works(model: Decoder, context: int, width: int, dtype: str) -> tuple[Work, ...]:
    """All linears, all attention and the LM head of one decode or verify step of one sequence."""
    linears = [linear_work(width, out, inner, dtype) for out, inner in model.matrices.values()]
    shape = AttentionShape(1, context, width, model.heads, model.kv_heads, model.head_dim)
    layer = (*linears, attention_work(shape, dtype))
    return (*layer * model.layers, linear_work(width, *model.head, dtype))


def elementwise_work(model: Decoder, width: int, dtype: str) -> Work:
    """Norms, rotary embedding, gate and residuals of one layer, by the model's own count."""
    spec = Attention(heads=model.heads, kv_heads=model.kv_heads, head_dim=model.head_dim)
    block = Block(1, spec, Mlp(intermediate=model.intermediate))
    return transformer.elementwise_work(block, model.hidden, Load(width=float(width)), precision(dtype), 1)


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
