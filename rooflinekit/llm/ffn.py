"""Feed-forward layers: dense, and mixtures of experts."""

from __future__ import annotations

from dataclasses import dataclass

from rooflinekit.llm.linear import Linear, shard


@dataclass(frozen=True, slots=True, kw_only=True)
class Mlp:
    """A dense feed-forward layer: two matrices, three when gated.

    Attributes
    ----------
    intermediate
        Width inside.
    gated
        Three matrices instead of two.
    bias
        Whether the matrices have biases.
    layer_input
        Elements of an input of the layer's own for each token (Gemma-4 E2B and E4B), which three more
        matrices make, gate and bring back to the model's width; 0 for none.
    """

    intermediate: int
    gated: bool = True
    bias: bool = False
    layer_input: int = 0

    def linears(self, hidden: int, tp: int = 1) -> tuple[Linear, ...]:
        """Weight matrices of one layer on one rank (gate and up fused)."""
        inner = shard(self.intermediate, tp, "MLP width")
        name = "mlp gate and up" if self.gated else "mlp up"
        matrices = [
            Linear(name, (2 if self.gated else 1) * inner, hidden),
            Linear("mlp down", hidden, inner),
        ]
        if self.layer_input:
            matrices.append(Linear("layer input", 2 * self.layer_input, hidden))
            matrices.append(Linear("layer input", hidden, self.layer_input))
        return tuple(matrices)

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
        Total width of the shared experts (or of a dense layer beside the experts); 0 for none.
    gated
        Three matrices per expert instead of two.
    router_bias, shared_gate, expert_bias
        Whether the router has a bias per expert, the shared expert a scalar gate, each expert biases.
    expert_input
        Width that the experts see where it is not the model's (a latent); 0 for the model's.
    """

    experts: int
    top_k: int
    intermediate: int
    shared_intermediate: int = 0
    gated: bool = True
    router_bias: bool = False
    shared_gate: bool = False
    expert_bias: bool = False
    expert_input: int = 0

    def expert_parameters(self, hidden: int) -> float:
        """Elements of one routed expert, biases included."""
        width = self.expert_input or hidden
        rows = (2 if self.gated else 1) * self.intermediate
        bias = rows + width if self.expert_bias else 0
        return (3 if self.gated else 2) * width * self.intermediate + bias

    def linears(self, hidden: int, tp: int = 1) -> tuple[Linear, ...]:
        """Weight matrices every token uses: router and latent (on every rank), shared experts."""
        matrices = [Linear("router", self.experts, hidden, "router")]
        if self.expert_input:
            matrices.append(Linear("expert latent", self.expert_input, hidden, "experts"))
            matrices.append(Linear("expert latent", hidden, self.expert_input, "experts"))
        if self.shared_intermediate:
            inner = shard(self.shared_intermediate, tp, "shared-expert width")
            rows = (2 if self.gated else 1) * inner
            matrices.append(Linear("shared experts", rows, hidden, "shared"))
            matrices.append(Linear("shared experts", hidden, inner, "shared"))
        return tuple(matrices)

    def vector_parameters(self, hidden: int) -> float:
        """Router bias and shared gate."""
        return (self.experts if self.router_bias else 0) + (hidden if self.shared_gate else 0)
