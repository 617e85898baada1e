"""The shape of a language model: what has weights, how many, and what a token leaves in the cache.

A model is a tuple of :class:`Block` groups (equal layers together), so that dense-then-MoE stacks and
alternating windows need no special case. Every weight matrix is listed once, by
:meth:`Attention.linears` and its siblings; parameter counts and streamed bytes both come from that list.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from rooflinekit.errors import ModelError


@dataclass(frozen=True, slots=True)
class Linear:
    """A weight matrix: ``out`` x ``inner`` elements, used once per layer and token."""

    label: str
    out: float
    inner: float

    @property
    def parameters(self) -> float:
        """Elements of the matrix."""
        return self.out * self.inner


def _shard(count: int, tp: int, what: str) -> float:
    if count % tp:
        raise ModelError(f"{what} {count} cannot be split over {tp} ranks; choose a --tp that divides it")
    return count / tp


@dataclass(frozen=True, slots=True, kw_only=True)
class Attention:
    """Multi-head, multi-query or grouped-query attention with a key-value cache per KV head.

    Attributes
    ----------
    heads, kv_heads, head_dim
        Query heads, key-value heads, elements of a head (counts).
    window
        Positions a token sees (sliding window); ``None`` for all.
    qkv_bias, out_bias, qk_norm
        Whether the projections have biases, and queries and keys a norm of their own.
    input_multiple
        Width of the input over the model's width (EAGLE-3 concatenates two: 2).
    """

    heads: int
    kv_heads: int
    head_dim: int
    window: int | None = None
    qkv_bias: bool = False
    out_bias: bool = False
    qk_norm: bool = False
    input_multiple: int = 1

    def kv_heads_per_rank(self, tp: int) -> float:
        """KV heads of one rank: split while there are enough, then replicated."""
        if self.kv_heads >= tp:
            return _shard(self.kv_heads, tp, "number of KV heads")
        if tp % self.kv_heads:
            raise ModelError(
                f"{self.kv_heads} KV heads cannot be shared evenly by {tp} ranks; choose another --tp"
            )
        return 1.0

    def linears(self, hidden: int, tp: int = 1) -> tuple[Linear, ...]:
        """Weight matrices of one layer on one rank (QKV fused, as engines do)."""
        heads = _shard(self.heads, tp, "number of attention heads")
        qkv = (heads + 2 * self.kv_heads_per_rank(tp)) * self.head_dim
        return (
            Linear("qkv projection", qkv, hidden * self.input_multiple),
            Linear("output projection", hidden, heads * self.head_dim),
        )

    def vector_parameters(self, hidden: int) -> float:
        """Biases and norms of one layer."""
        qkv = (self.heads + 2 * self.kv_heads) * self.head_dim if self.qkv_bias else 0
        return qkv + (hidden if self.out_bias else 0) + (2 * self.head_dim if self.qk_norm else 0)

    def kv_elements(self, tp: int = 1) -> float:
        """Elements one token leaves in one layer's cache on one rank: K and V."""
        return 2 * self.kv_heads_per_rank(tp) * self.head_dim


@dataclass(frozen=True, slots=True, kw_only=True)
class Mla:
    """Multi-head latent attention (DeepSeek-V2, arXiv:2405.04434): the cache holds one latent per token.

    Attributes
    ----------
    heads
        Query heads.
    q_lora_rank
        Rank of the query's down-projection; ``None`` where queries are projected directly.
    kv_lora_rank
        Elements of the cached latent.
    nope_dim, rope_dim, value_dim
        Elements of a head without and with rotary position, and of a value head.
    """

    heads: int
    q_lora_rank: int | None
    kv_lora_rank: int
    nope_dim: int
    rope_dim: int
    value_dim: int
    qkv_bias: bool = False

    def linears(self, hidden: int, tp: int = 1) -> tuple[Linear, ...]:
        """Weight matrices of one layer on one rank; the down-projections are on every rank."""
        heads = _shard(self.heads, tp, "number of attention heads")
        q_dim = heads * (self.nope_dim + self.rope_dim)
        down = self.kv_lora_rank + self.rope_dim + (self.q_lora_rank or 0)
        return (
            Linear("q, kv down-projection", down, hidden),
            Linear("q up-projection", q_dim, self.q_lora_rank or hidden),
            Linear("kv up-projection", heads * (self.nope_dim + self.value_dim), self.kv_lora_rank),
            Linear("output projection", hidden, heads * self.value_dim),
        )

    def vector_parameters(self, hidden: int) -> float:
        """Norms of the latents, and biases of the down-projections where there are any."""
        bias = self.kv_lora_rank + self.rope_dim + (self.q_lora_rank or 0) if self.qkv_bias else 0
        bias += hidden if self.qkv_bias else 0
        return self.kv_lora_rank + (self.q_lora_rank or 0) + bias

    def kv_elements(self, tp: int = 1) -> float:  # noqa: ARG002 - every rank holds the whole latent
        """Elements one token leaves in one layer's cache: latent and rotary key, on every rank."""
        return self.kv_lora_rank + self.rope_dim


@dataclass(frozen=True, slots=True, kw_only=True)
class Mlp:
    """A dense feed-forward layer: two matrices, three when gated."""

    intermediate: int
    gated: bool = True
    bias: bool = False

    def linears(self, hidden: int, tp: int = 1) -> tuple[Linear, ...]:
        """Weight matrices of one layer on one rank (gate and up fused)."""
        inner = _shard(self.intermediate, tp, "MLP width")
        name = "mlp gate and up" if self.gated else "mlp up"
        return (Linear(name, (2 if self.gated else 1) * inner, hidden), Linear("mlp down", hidden, inner))

    def vector_parameters(self, hidden: int) -> float:
        """Biases."""
        return (2 if self.gated else 1) * self.intermediate + hidden if self.bias else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Moe:
    """A mixture of experts: a router picks ``top_k`` of ``experts``; shared experts always run.

    Attributes
    ----------
    experts, top_k
        Routed experts, and how many a token uses.
    intermediate
        Width of one routed expert.
    shared_intermediate
        Total width of the shared experts; 0 for none.
    gated
        Three matrices per expert instead of two.
    router_bias, shared_gate
        Whether the router has a bias per expert, and the shared expert a scalar gate.
    """

    experts: int
    top_k: int
    intermediate: int
    shared_intermediate: int = 0
    gated: bool = True
    router_bias: bool = False
    shared_gate: bool = False

    def expert_parameters(self, hidden: int) -> float:
        """Elements of one routed expert."""
        return (3 if self.gated else 2) * hidden * self.intermediate

    def linears(self, hidden: int, tp: int = 1) -> tuple[Linear, ...]:
        """Weight matrices every token uses: router (on every rank) and shared experts."""
        router = (Linear("router", self.experts, hidden),)
        if not self.shared_intermediate:
            return router
        inner = _shard(self.shared_intermediate, tp, "shared-expert width")
        return (
            *router,
            Linear("shared experts", (2 if self.gated else 1) * inner, hidden),
            Linear("shared experts", hidden, inner),
        )

    def vector_parameters(self, hidden: int) -> float:
        """Router bias and shared gate."""
        return (self.experts if self.router_bias else 0) + (hidden if self.shared_gate else 0)


AnyAttention: TypeAlias = Attention | Mla
AnyFfn: TypeAlias = Mlp | Moe


@dataclass(frozen=True, slots=True)
class Block:
    """A group of equal layers."""

    count: int
    attention: AnyAttention
    ffn: AnyFfn
    norms: int = 2

    def linears(self, hidden: int, tp: int = 1) -> tuple[Linear, ...]:
        """Weight matrices of one layer on one rank, without routed experts."""
        return self.attention.linears(hidden, tp) + self.ffn.linears(hidden, tp)

    def parameters(self, hidden: int) -> float:
        """Elements of one layer, all experts counted."""
        total = sum(linear.parameters for linear in self.linears(hidden))
        if isinstance(self.ffn, Moe):
            total += self.ffn.experts * self.ffn.expert_parameters(hidden)
        vectors = self.attention.vector_parameters(hidden) + self.ffn.vector_parameters(hidden)
        return total + vectors + self.norms * hidden


@dataclass(frozen=True, slots=True, kw_only=True)
class Llm:
    """A decoder-only language model.

    Attributes
    ----------
    name
        Name for messages.
    hidden, vocab
        Width and vocabulary (counts).
    blocks
        Groups of equal layers, in order.
    tied
        Whether the LM head shares the embedding's weights.
    dtype
        Number format the checkpoint is stored in (a name of ``rooflinekit.precision``).
    max_context
        Longest context the model was trained for (tokens); 0 when unknown.
    """

    name: str
    hidden: int
    vocab: int
    blocks: tuple[Block, ...]
    tied: bool = False
    dtype: str = "bf16"
    max_context: int = 0

    @property
    def layers(self) -> int:
        """Number of layers."""
        return sum(block.count for block in self.blocks)

    @property
    def embedding_params(self) -> int:
        """Elements of the input embedding."""
        return self.vocab * self.hidden

    @property
    def total_params(self) -> int:
        """All parameters of the language model (no vision tower, no MTP module)."""
        body = sum(block.count * block.parameters(self.hidden) for block in self.blocks)
        tables = self.embedding_params * (1 if self.tied else 2)
        return round(body + tables + self.hidden)

    @property
    def active_params(self) -> int:
        """Parameters one token uses, input embedding counted whole as publishers mostly do."""
        unused = sum(
            block.count * (block.ffn.experts - block.ffn.top_k) * block.ffn.expert_parameters(self.hidden)
            for block in self.blocks
            if isinstance(block.ffn, Moe)
        )
        return round(self.total_params - unused)

    @property
    def is_moe(self) -> bool:
        """Whether any layer routes to experts."""
        return any(isinstance(block.ffn, Moe) for block in self.blocks)

    def kv_elements_per_token(self, tp: int = 1) -> float:
        """Cache elements one token leaves over all layers, on one rank."""
        return sum(block.count * block.attention.kv_elements(tp) for block in self.blocks)

    def moe_layers(self) -> Iterator[tuple[int, Moe]]:
        """Each group of MoE layers with its count."""
        for block in self.blocks:
            if isinstance(block.ffn, Moe):
                yield block.count, block.ffn
