"""Mixers whose memory of the past is a state of constant size: gated delta rule and Mamba-2."""

from __future__ import annotations

from dataclasses import dataclass

from rooflinekit.llm.linear import Linear, shard


@dataclass(frozen=True, slots=True, kw_only=True)
class GatedDelta:
    """Linear attention by the gated delta rule (arXiv:2412.06464), as in Qwen3-Next, or Kimi's (2510.26692).

    Attributes
    ----------
    key_heads, value_heads
        Heads of keys (and queries), heads of values (counts).
    key_dim, value_dim
        Elements of a key head and of a value head.
    conv_kernel
        Positions of the short convolution over queries, keys and values.
    decay_rank
        Rank of the projection that makes a decay per channel of the keys (Kimi Delta Attention); 0 for one
        decay per value head.
    gate_rank
        Rank of the projection that makes the output gate; 0 for a full one.
    """

    key_heads: int
    value_heads: int
    key_dim: int
    value_dim: int
    conv_kernel: int
    decay_rank: int = 0
    gate_rank: int = 0

    def _channels(self, tp: int) -> float:
        keys = shard(self.key_heads, tp, "number of key heads") * self.key_dim
        return 2 * keys + shard(self.value_heads, tp, "number of value heads") * self.value_dim

    def linears(self, hidden: int, tp: int = 1) -> tuple[Linear, ...]:
        """Weight matrices of one layer on one rank: q, k, v and gate; decay and write strength; output."""
        values = shard(self.value_heads, tp, "number of value heads") * self.value_dim
        wide = self._channels(tp) + (0 if self.gate_rank else values)
        strengths = (1 if self.decay_rank else 2) * self.value_heads / tp
        matrices = [
            Linear("linear attention in", wide, hidden, "recurrent"),
            Linear("linear attention in", strengths, hidden, "recurrent"),
            Linear("linear attention out", hidden, values, "recurrent"),
        ]
        for rank, out in ((self.decay_rank, self.key_heads / tp * self.key_dim), (self.gate_rank, values)):
            if rank:
                matrices.append(Linear("decay and gate", rank, hidden, "recurrent"))
                matrices.append(Linear("decay and gate", out, rank, "recurrent"))
        return tuple(matrices)

    def vector_parameters(self, hidden: int) -> float:  # noqa: ARG002 - the same question is asked of every mixer
        """Convolution, decay, bias of the step, norm of the values."""
        steps = self.key_heads * self.key_dim if self.decay_rank else self.value_heads
        return self._channels(1) * self.conv_kernel + self.value_heads + steps + self.value_dim

    def kv_elements(self, tp: int = 1) -> float:  # noqa: ARG002
        """Elements one token leaves in a cache: none."""
        return 0.0

    def state_elements(self, tp: int = 1) -> float:
        """Elements of one sequence's state in one layer: a matrix per value head, and the convolution's past."""
        matrix = self.value_heads / tp * self.key_dim * self.value_dim
        return matrix + self._channels(tp) * (self.conv_kernel - 1)

    def flops_per_token(self, tp: int = 1) -> float:
        """FLOPs of one token: decay, two products with the state and a rank-one update (8 per element)."""
        return 8.0 * self.value_heads / tp * self.key_dim * self.value_dim

    def io_elements(self, tp: int = 1) -> float:
        """Activations of one token: convolution in and out, inputs of the recurrence, gated norm of its output."""
        return 3 * self._channels(tp) + 4 * self.value_heads / tp * self.value_dim


@dataclass(frozen=True, slots=True, kw_only=True)
class Mamba2:
    """Mamba-2 state-space layer (arXiv:2405.21060), as in Nemotron-H.

    Attributes
    ----------
    heads, head_dim
        Heads and elements of a head (counts); their product is the inner width.
    groups, state
        Groups that share B and C, and elements of the state per channel.
    conv_kernel
        Positions of the short convolution.
    conv_bias, bias
        Whether the convolution, and the projections, have biases.
    """

    heads: int
    head_dim: int
    groups: int
    state: int
    conv_kernel: int
    conv_bias: bool = True
    bias: bool = False

    @property
    def inner(self) -> int:
        """Inner width."""
        return self.heads * self.head_dim

    def _channels(self, tp: int) -> float:
        return self.inner / tp + 2 * self.groups * self.state / min(tp, self.groups)

    def linears(self, hidden: int, tp: int = 1) -> tuple[Linear, ...]:
        """Weight matrices of one layer on one rank: gate, channels and step in; output."""
        heads = shard(self.heads, tp, "number of state-space heads")
        into = heads * self.head_dim + self._channels(tp) + heads
        return (
            Linear("state space in", into, hidden, "recurrent"),
            Linear("state space out", hidden, heads * self.head_dim, "recurrent"),
        )

    def vector_parameters(self, hidden: int) -> float:
        """Convolution, decay, skip, step bias, norm, and biases where there are any."""
        convolution = self._channels(1) * (self.conv_kernel + (1 if self.conv_bias else 0))
        bias = self.inner + self._channels(1) + self.heads + hidden if self.bias else 0
        return convolution + 3 * self.heads + self.inner + bias

    def kv_elements(self, tp: int = 1) -> float:  # noqa: ARG002 - the same question is asked of every mixer
        """Elements one token leaves in a cache: none."""
        return 0.0

    def state_elements(self, tp: int = 1) -> float:
        """Elements of one sequence's state in one layer: channels x state, and the convolution's past."""
        return self.inner / tp * self.state + self._channels(tp) * (self.conv_kernel - 1)

    def flops_per_token(self, tp: int = 1) -> float:
        """FLOPs of one token: decay, input and output product per element of the state (6)."""
        return 6.0 * self.inner / tp * self.state

    def io_elements(self, tp: int = 1) -> float:
        """Activations of one token: convolution in and out, inputs of the recurrence, gated norm of its output."""
        return 3 * self._channels(tp) + 4 * self.inner / tp
