"""The shape of a language model: what has weights, how many, and what a token leaves in memory.

A model is a tuple of :class:`~rooflinekit.llm.model.Block` groups (equal layers together), so that
dense-then-MoE stacks, alternating windows and hybrids of attention and recurrent layers need no special
case. Every weight matrix is listed once, by the ``linears`` of its mixer or feed-forward layer; parameter
counts and streamed bytes both come from that list.
"""

from rooflinekit.llm.attention import Attention, Indexer, Mla
from rooflinekit.llm.ffn import Mlp, Moe
from rooflinekit.llm.linear import Linear
from rooflinekit.llm.model import AnyMixer, Block, Llm, Mtp
from rooflinekit.llm.recurrent import GatedDelta, Mamba2
from rooflinekit.llm.sparse import BlockSparse, Compressed

__all__ = [
    "AnyMixer",
    "Attention",
    "Block",
    "BlockSparse",
    "Compressed",
    "GatedDelta",
    "Indexer",
    "Linear",
    "Llm",
    "Mamba2",
    "Mla",
    "Mlp",
    "Moe",
    "Mtp",
]
