"""Mixers with a cache that grows with the context: grouped-query attention and latent attention."""

from __future__ import annotations

from dataclasses import dataclass

from rooflinekit.errors import ModelError
from rooflinekit.llm.linear import Linear, shard


@dataclass(frozen=True, slots=True, kw_only=True)
class Attention:
    """Multi-head, multi-query or grouped-query attention with a key-value cache per KV head.

    Attributes
    ----------
    heads, kv_heads, head_dim
        Query heads, key-value heads, elements of a head (counts).
    value_dim
        Elements of a value head where they differ from ``head_dim``; 0 for the same.
    window
        Positions a token sees (sliding window or chunk); ``None`` for all.
    qkv_bias, out_bias, qk_norm
        Whether the projections have biases, and queries and keys a norm of their own (per head).
    wide_qk_norm
        Whether the norms of queries and keys span all heads at once.
    gate
        Whether the query projection also makes an output gate (twice the width).
    head_gate
        Whether the input also makes one gate for each query head.
    sinks
        Whether each query head has a learned attention sink.
    shared_values
        Whether values are the keys: no value projection; both are cached.
    shared_cache
        Whether the layer reads another layer's keys and values: no projections and no cache of its own.
    input_multiple
        Width of the input over the model's width (EAGLE-3 concatenates two: 2).
    output_class
        Tensor class of the output projection, where a checkpoint stores it unlike the others.
    over_encoder
        Whether keys and values are made of an encoder's output: once, before the first token.
    """

    heads: int
    kv_heads: int
    head_dim: int
    value_dim: int = 0
    window: int | None = None
    qkv_bias: bool = False
    out_bias: bool = False
    qk_norm: bool = False
    wide_qk_norm: bool = False
    gate: bool = False
    head_gate: bool = False
    sinks: bool = False
    shared_values: bool = False
    shared_cache: bool = False
    input_multiple: int = 1
    output_class: str = "attention"
    over_encoder: bool = False

    @property
    def values(self) -> int:
        """Elements of a value head."""
        return self.value_dim or self.head_dim

    def kv_heads_per_rank(self, tp: int) -> float:
        """KV heads of one rank: split while there are enough, then replicated."""
        if self.kv_heads >= tp:
            return shard(self.kv_heads, tp, "number of KV heads")
        if tp % self.kv_heads:
            raise ModelError(
                f"{self.kv_heads} KV heads cannot be shared evenly by {tp} ranks; choose another --tp"
            )
        return 1.0

    def _kv_out(self, kv_heads: float) -> float:
        if self.shared_cache:
            return 0.0
        return kv_heads * (self.head_dim + (0 if self.shared_values else self.values))

    def linears(self, hidden: int, tp: int = 1) -> tuple[Linear, ...]:
        """Weight matrices of one layer on one rank (QKV fused, as engines do)."""
        heads = shard(self.heads, tp, "number of attention heads")
        queries = heads * (self.head_dim * (2 if self.gate else 1) + (1 if self.head_gate else 0))
        inner, cached = hidden * self.input_multiple, self._kv_out(self.kv_heads_per_rank(tp))
        back = Linear("output projection", hidden, heads * self.values, self.output_class)
        if self.over_encoder:
            keys = Linear("encoder kv projection", cached, inner, "attention", once=True)
            return Linear("query projection", queries, inner, "attention"), keys, back
        return Linear("qkv projection", queries + cached, inner, "attention"), back

    def vector_parameters(self, hidden: int) -> float:
        """Biases, norms and sinks of one layer."""
        queries = self.heads * self.head_dim * (2 if self.gate else 1)
        total = queries + self._kv_out(self.kv_heads) if self.qkv_bias else 0.0
        total += hidden if self.out_bias else 0
        norms = 1 if self.shared_cache else 2
        total += norms * self.head_dim if self.qk_norm else 0
        total += (self.heads + self.kv_heads) * self.head_dim if self.wide_qk_norm else 0
        return total + (self.heads if self.sinks else 0)

    def kv_elements(self, tp: int = 1) -> float:
        """Elements one token leaves in one layer's cache on one rank: K and V."""
        if self.shared_cache:
            return 0.0
        return self.kv_heads_per_rank(tp) * (self.head_dim + self.values)

    def state_elements(self, tp: int = 1) -> float:  # noqa: ARG002 - the same question is asked of every mixer
        """Elements of a recurrent state: none."""
        return 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Indexer:
    """Sparse attention's index (DeepSeek-V3.2): scores every cached position, keeps the ``top_k`` best.

    Attributes
    ----------
    heads, head_dim
        Index heads; elements of an index key, one per position.
    top_k
        Positions the attention itself reads.
    shared
        Whether the layer reads what the index of an earlier layer chose: no weights, keys or scan of its own.
    head_weights
        Whether a projection weights the index heads.
    """

    heads: int
    head_dim: int
    top_k: int
    shared: bool = False
    head_weights: bool = True

    def linears(self, hidden: int, query_input: int) -> tuple[Linear, ...]:
        """Weight matrices, on every rank; ``query_input`` is the width its queries are made from."""
        if self.shared:
            return ()
        keys = self.head_dim + (self.heads if self.head_weights else 0)
        return (
            Linear("index queries", self.heads * self.head_dim, query_input, "attention"),
            Linear("index keys and weights", keys, hidden, "attention"),
        )

    def vector_parameters(self) -> float:
        """Two vectors over a head: weight and bias of the keys' norm, or norms of queries and of keys."""
        return 0.0 if self.shared else 2.0 * self.head_dim

    def kv_elements(self) -> float:
        """Elements of the index key that one token leaves in one layer's cache."""
        return 0.0 if self.shared else float(self.head_dim)


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
    qkv_bias
        Whether the down-projections and the output projection have biases.
    indexer
        Sparse attention's index; ``None`` for attention over the whole context.
    gate
        Whether a projection makes a gate over the heads' values.
    output_class
        Tensor class of the output projection, where a checkpoint stores it unlike the others.
    """

    heads: int
    q_lora_rank: int | None
    kv_lora_rank: int
    nope_dim: int
    rope_dim: int
    value_dim: int
    qkv_bias: bool = False
    indexer: Indexer | None = None
    gate: bool = False
    output_class: str = "attention"

    def linears(self, hidden: int, tp: int = 1) -> tuple[Linear, ...]:
        """Weight matrices of one layer on one rank; down-projections and index are on every rank."""
        heads = shard(self.heads, tp, "number of attention heads")
        q_dim = heads * (self.nope_dim + self.rope_dim)
        down = self.kv_lora_rank + self.rope_dim + (self.q_lora_rank or 0)
        matrices = [
            Linear("q, kv down-projection", down, hidden, "attention"),
            Linear("q up-projection", q_dim, self.q_lora_rank or hidden, "attention"),
            Linear(
                "kv up-projection",
                heads * (self.nope_dim + self.value_dim),
                self.kv_lora_rank,
                "attention",
                over_cache=True,
            ),
            Linear("output projection", hidden, heads * self.value_dim, self.output_class),
        ]
        if self.gate:
            matrices.append(Linear("output gate", heads * self.value_dim, hidden, "attention"))
        if self.indexer is not None:
            matrices += self.indexer.linears(hidden, self.q_lora_rank or hidden)
        return tuple(matrices)

    def vector_parameters(self, hidden: int) -> float:
        """Norms of the latents and of the index keys, and biases where there are any."""
        bias = self.kv_lora_rank + self.rope_dim + (self.q_lora_rank or 0) + hidden if self.qkv_bias else 0
        index = self.indexer.vector_parameters() if self.indexer is not None else 0
        return self.kv_lora_rank + (self.q_lora_rank or 0) + bias + index

    def kv_elements(self, tp: int = 1) -> float:  # noqa: ARG002 - every rank holds the whole latent
        """Elements one token leaves in one layer's cache: latent, rotary key and index key, on every rank."""
        index = self.indexer.kv_elements() if self.indexer is not None else 0
        return self.kv_lora_rank + self.rope_dim + index

    def state_elements(self, tp: int = 1) -> float:  # noqa: ARG002 - the same question is asked of every mixer
        """Elements of a recurrent state: none."""
        return 0.0
