"""Groups of equal layers, and the model they make."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from rooflinekit.llm.attention import Attention, Mla
from rooflinekit.llm.ffn import Mlp, Moe
from rooflinekit.llm.linear import Linear
from rooflinekit.llm.recurrent import GatedDelta, Mamba2
from rooflinekit.llm.sparse import BlockSparse, Compressed

AnyMixer: TypeAlias = Attention | Mla | BlockSparse | Compressed | GatedDelta | Mamba2
AnyFfn: TypeAlias = Mlp | Moe


@dataclass(frozen=True, slots=True)
class Block:
    """A group of equal layers: a mixer, a feed-forward layer, or both.

    Attributes
    ----------
    count
        Layers in the group.
    mixer, ffn
        What mixes positions, and what follows; ``None`` where a layer has only the other.
    norms
        Norms over the model's width in a layer.
    norm_bias
        Whether the norms have biases (LayerNorm instead of RMSNorm).
    cross
        Attention to an encoder's output, in a decoder that has one.
    extra
        Further weights of one layer that are not matrices (scalars, scales).
    streams
        Residual streams of hyper-connections (arXiv:2409.19606), mixed before and after the mixer and the
        feed-forward layer by weights made from all of them; 1 for a plain residual.
    """

    count: int
    mixer: AnyMixer | None
    ffn: AnyFfn | None
    norms: float = 2
    norm_bias: bool = False
    cross: Attention | None = None
    extra: float = 0
    streams: int = 1

    @property
    def hyper_outputs(self) -> int:
        """Outputs of one hyper-connection: weights in, weights out, and a mix of the streams; 0 for none."""
        return self.streams * (2 + self.streams) if self.streams > 1 else 0

    def hyper_linears(self, hidden: int) -> tuple[Linear, ...]:
        """Matrices of the hyper-connections, on every rank: one per part of the layer."""
        one = Linear("hyper-connection", self.hyper_outputs, self.streams * hidden, "vectors")
        return (one,) * sum(part is not None for part in (self.mixer, self.ffn)) if self.streams > 1 else ()

    def linears(self, hidden: int, tp: int = 1) -> tuple[Linear, ...]:
        """Weight matrices of one layer on one rank, without routed experts."""
        parts = (self.mixer, self.cross, self.ffn)
        own = tuple(linear for part in parts if part is not None for linear in part.linears(hidden, tp))
        return own + self.hyper_linears(hidden)

    def vector_parameters(self, hidden: int) -> float:
        """Norms, biases and other one-dimensional weights of one layer."""
        parts = (self.mixer, self.cross, self.ffn)
        own = sum(part.vector_parameters(hidden) for part in parts if part is not None)
        # A hyper-connection has a bias per output and three scales.
        hyper = len(self.hyper_linears(hidden)) * (self.hyper_outputs + 3)
        return own + self.norms * hidden * (2 if self.norm_bias else 1) + self.extra + hyper

    def parameters(self, hidden: int) -> float:
        """Elements of one layer, all experts counted."""
        total = sum(linear.parameters for linear in self.linears(hidden))
        if isinstance(self.ffn, Moe):
            total += self.ffn.experts * self.ffn.expert_parameters(hidden)
        return total + self.vector_parameters(hidden)

    def kv_elements(self, tp: int = 1) -> float:
        """Elements one token leaves in one layer's cache on one rank."""
        return self.mixer.kv_elements(tp) if self.mixer is not None else 0.0

    def state_elements(self, tp: int = 1) -> float:
        """Elements of one sequence's recurrent state in one layer on one rank."""
        return self.mixer.state_elements(tp) if self.mixer is not None else 0.0

    @property
    def window(self) -> int | None:
        """Positions the mixer sees; ``None`` for all."""
        if isinstance(self.mixer, BlockSparse):
            return self.mixer.attention.window
        return self.mixer.window if isinstance(self.mixer, Attention | Compressed) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Mtp:
    """Multi-token-prediction modules that come with a model and draft for it.

    Attributes
    ----------
    modules
        Modules in the checkpoint.
    block
        The layers of a module.
    format
        Number format its weights are stored in; '' for the model's.
    """

    modules: int
    block: Block
    format: str = ""

    def parameters(self, hidden: int) -> float:
        """Elements of all modules: layers, the fusion of embedding and hidden state, three norms."""
        layers = self.block.count * self.block.parameters(hidden)
        return self.modules * (layers + 2 * hidden * hidden + 3 * hidden)


@dataclass(frozen=True, slots=True, kw_only=True)
class Llm:
    """A language model, seen from its decode step.

    Attributes
    ----------
    name
        Name for messages.
    hidden, vocab
        Width and vocabulary (counts).
    blocks
        Groups of equal layers of the decoder, in order.
    tied
        Whether the LM head shares the embedding's weights.
    dtype
        Main number format of the checkpoint (a name of ``rooflinekit.precision``).
    formats
        Formats of tensor classes that differ from it.
    kv_dtype
        Cache format that the checkpoint names; ``auto`` where it names none.
    max_context
        Longest context the model was trained for (tokens); 0 when unknown.
    encoder
        Layers of an encoder: counted and held, not run in a decode step.
    extra
        Further weights outside the layers (position tables, further norms); held, not streamed.
    final_norm_bias
        Whether the last norm has a bias.
    mtp
        Modules that draft for the model; not part of ``total_params``.
    """

    name: str
    hidden: int
    vocab: int
    blocks: tuple[Block, ...]
    tied: bool = False
    dtype: str = "bf16"
    formats: Mapping[str, str] = field(default_factory=dict)
    kv_dtype: str = "auto"
    max_context: int = 0
    encoder: tuple[Block, ...] = ()
    extra: int = 0
    final_norm_bias: bool = False
    mtp: Mtp | None = None

    @property
    def layers(self) -> int:
        """Number of decoder layers."""
        return sum(block.count for block in self.blocks)

    @property
    def embedding_params(self) -> int:
        """Elements of the input embedding."""
        return self.vocab * self.hidden

    @property
    def other_params(self) -> float:
        """Elements outside layers and tables: last norm and what ``extra`` counts."""
        norm = self.hidden * (2 if self.final_norm_bias else 1)
        return norm + self.extra

    @property
    def total_params(self) -> int:
        """All parameters of the language model (no vision tower, no MTP module)."""
        layers = sum(block.count * block.parameters(self.hidden) for block in (*self.blocks, *self.encoder))
        tables = self.embedding_params * (1 if self.tied else 2)
        return round(layers + tables + self.other_params)

    @property
    def active_params(self) -> int:
        """All but the experts a token does not choose; input embedding counted whole as publishers mostly do.

        An encoder counts too, though only the prompt passes through it.
        """
        unused = sum(
            count * (moe.experts - moe.top_k) * moe.expert_parameters(self.hidden)
            for count, moe in self.moe_layers()
        )
        return round(self.total_params - unused)

    @property
    def mtp_params(self) -> int:
        """Parameters of the MTP modules, shared tables not counted."""
        return round(self.mtp.parameters(self.hidden)) if self.mtp is not None else 0

    def kv_elements_per_token(self, tp: int = 1) -> float:
        """Cache elements one token leaves over all layers, on one rank."""
        return sum(block.count * block.kv_elements(tp) for block in self.blocks)

    def state_elements(self, tp: int = 1) -> float:
        """Elements of one sequence's recurrent state over all layers, on one rank."""
        return sum(block.count * block.state_elements(tp) for block in self.blocks)

    def moe_layers(self) -> Iterator[tuple[int, Moe]]:
        """Each group of MoE layers with its count."""
        for block in self.blocks:
            if isinstance(block.ffn, Moe):
                yield block.count, block.ffn
