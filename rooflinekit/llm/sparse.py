"""Mixers that choose, or condense, what they read of the past: block-sparse and compressed attention."""

from __future__ import annotations

from dataclasses import dataclass

from rooflinekit.llm.attention import Attention, Indexer
from rooflinekit.llm.linear import Linear, shard


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockSparse:
    """Grouped-query attention over the blocks of keys that an index chose (MiniMax-M3).

    Attributes
    ----------
    attention
        The attention over the chosen positions.
    indexer
        The index; its ``top_k`` counts positions, not blocks.
    """

    attention: Attention
    indexer: Indexer

    @property
    def heads(self) -> int:
        """Query heads."""
        return self.attention.heads

    def linears(self, hidden: int, tp: int = 1) -> tuple[Linear, ...]:
        """Weight matrices of one layer on one rank; the index is on every rank."""
        return (*self.attention.linears(hidden, tp), *self.indexer.linears(hidden, hidden))

    def vector_parameters(self, hidden: int) -> float:
        """Vectors of the attention and norms of the index."""
        return self.attention.vector_parameters(hidden) + self.indexer.vector_parameters()

    def kv_elements(self, tp: int = 1) -> float:
        """Elements one token leaves in one layer's cache on one rank: K, V and the index key."""
        return self.attention.kv_elements(tp) + self.indexer.kv_elements()

    def state_elements(self, tp: int = 1) -> float:  # noqa: ARG002 - the same question is asked of every mixer
        """Elements of a recurrent state: none."""
        return 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Compressed:
    """Attention of DeepSeek-V4: the last tokens as they are, the past condensed ``ratio`` tokens to one entry.

    One key-value head whose entries serve as key and as value; queries and outputs of low rank. With an
    index the entries overlap (each condenses two neighbouring windows, from two series of projections) and
    a query reads the ``top_k`` entries that score best; without one it reads them all.

    Attributes
    ----------
    heads, head_dim
        Query heads; elements of a head and of a cached entry.
    q_lora_rank
        Rank of the query's down-projection.
    out_groups, out_rank
        Groups of heads of the output projection, and the rank of each.
    window
        Last positions that are read uncondensed.
    ratio
        Tokens condensed to one entry; 0 for a layer that sees its window only.
    indexer
        The index over condensed entries; its ``top_k`` counts entries.
    """

    heads: int
    head_dim: int
    q_lora_rank: int
    out_groups: int
    out_rank: int
    window: int
    ratio: int = 0
    indexer: Indexer | None = None

    @property
    def series(self) -> int:
        """Series of projections that make an entry: two where entries overlap."""
        return 2 if self.indexer is not None else 1

    @property
    def entry(self) -> int:
        """Elements of a condensed entry, its index key included; 0 where nothing is condensed."""
        index = self.indexer.kv_elements() if self.indexer is not None else 0
        return self.head_dim + int(index) if self.ratio else 0

    def linears(self, hidden: int, tp: int = 1) -> tuple[Linear, ...]:
        """Weight matrices of one layer on one rank; everything that makes the cache is on every rank."""
        queries = shard(self.heads, tp, "number of attention heads") * self.head_dim
        groups = shard(self.out_groups, tp, "number of output groups")
        per_group = self.heads * self.head_dim / self.out_groups
        matrices = [
            Linear("q, kv down-projection", self.q_lora_rank + self.head_dim, hidden, "attention"),
            Linear("q up-projection", queries, self.q_lora_rank, "attention"),
            Linear("output projection", groups * self.out_rank, per_group, "attention"),
            Linear("output projection", hidden, groups * self.out_rank, "attention"),
        ]
        if self.ratio:
            # Each series is a value and the gate it is weighted by.
            matrices.append(Linear("kv compressor", 2 * self.series * self.entry, hidden, "attention"))
        if self.indexer is not None:
            index = self.indexer
            matrices.append(
                Linear("index queries", index.heads * index.head_dim, self.q_lora_rank, "attention")
            )
            matrices.append(Linear("index weights", index.heads, hidden, "attention"))
        return tuple(matrices)

    def vector_parameters(self, hidden: int) -> float:  # noqa: ARG002 - the same question is asked of every mixer
        """Norms of query, entry and condensed entry, sinks, and a bias per position of a window."""
        compressor = self.series * self.ratio * self.entry + self.entry
        return self.q_lora_rank + self.head_dim + self.heads + compressor

    def kv_elements(self, tp: int = 1) -> float:  # noqa: ARG002 - every rank holds the whole entry
        """Elements one token leaves in one layer's cache: its own, kept for the window, and its share of an entry."""
        return self.head_dim + (self.entry / self.ratio if self.ratio else 0.0)

    def state_elements(self, tp: int = 1) -> float:  # noqa: ARG002
        """Elements that wait for their window to fill: values and gates of it, and of the one it overlaps."""
        return 2.0 * (2 * self.series - 1) * self.ratio * self.entry

    def pending_per_token(self) -> float:
        """Elements one token adds to that buffer: a value and a gate per series."""
        return 2.0 * self.series * self.entry
