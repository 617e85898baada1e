"""What a model family is to the reader, and the pieces that most builders share.

To add a family, write a builder in a ``families_*.py`` (or ``hf_families.py``) and a row in that module's
table; :mod:`rooflinekit.readers.registry` joins the tables. A builder gets the fields of the language
model (a nested ``text_config`` is already opened) and returns its layers in order, one block each, or a
:class:`Shape` where there is more to say. Absent fields take the default that ``transformers`` gives the
family, since engines read the config through it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from rooflinekit.llm import Attention, Block, Mla, Mlp, Moe, Mtp
from rooflinekit.readers.hf_fields import Fields, head_shape

Layers: TypeAlias = list[Block]
"""The layers of a model in order, one block each; equal neighbours are merged afterwards."""

COMMON = ("hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size")
DENSE = (*COMMON, "intermediate_size")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What a builder returns where layers alone do not say everything.

    Attributes
    ----------
    blocks
        The decoder's layers in order, one block each or merged.
    encoder
        The encoder's layers.
    extra
        Weights outside the layers besides tables and last norm (see ``Llm.extra``).
    final_norm_bias
        Whether the last norm has a bias.
    mtp
        Modules that come with the model and draft for it.
    formats
        Number formats by tensor class that the config's own fields give (not its ``quantization_config``,
        which is read for every family alike).
    tied
        Whether head and embedding share weights whatever the config says; ``None`` where it decides.
    """

    blocks: Sequence[Block]
    encoder: Sequence[Block] = ()
    extra: int = 0
    final_norm_bias: bool = False
    mtp: Mtp | None = None
    formats: Mapping[str, str] = field(default_factory=dict)
    tied: bool | None = None


Builder: TypeAlias = Callable[[Fields], "Layers | Shape"]


@dataclass(frozen=True, slots=True)
class Family:
    """How a ``model_type`` is read.

    Attributes
    ----------
    architecture
        Class name in ``architectures``, or several.
    build
        Builder of the layers.
    required
        Fields without a default.
    nullable
        Fields without a default that may be null.
    tied
        Whether head and embedding share weights where ``tie_word_embeddings`` is absent.
    aliases
        Other spellings that the family uses: common name to its own.
    defaults
        Values of fields that published files leave out, as ``transformers`` fills them in.
    """

    architecture: str | tuple[str, ...]
    build: Builder
    required: tuple[str, ...] = DENSE
    nullable: tuple[str, ...] = ()
    tied: bool = False
    aliases: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, int] = field(default_factory=dict)

    @property
    def architectures(self) -> tuple[str, ...]:
        """Class names that may stand in ``architectures``."""
        return (self.architecture,) if isinstance(self.architecture, str) else self.architecture


def dense(fields: Fields, key: str = "intermediate_size") -> Mlp:
    """A gated feed-forward layer without biases."""
    return Mlp(intermediate=fields.count(key))


def moe(
    fields: Fields,
    experts_key: str,
    width_key: str,
    shared: int = 0,
    *,
    top_k_key: str = "num_experts_per_tok",
    router_bias: bool = False,
) -> Moe:
    """A mixture of gated experts; ``shared`` experts of the same width always run."""
    experts = fields.count(experts_key)
    top_k = fields.count(top_k_key)
    if top_k > experts:
        fields.bad(top_k_key, f"at most {experts_key} {experts}")
    width = fields.count(width_key)
    return Moe(
        experts=experts,
        top_k=top_k,
        intermediate=width,
        shared_intermediate=shared * width,
        router_bias=router_bias,
    )


def gqa(
    fields: Fields,
    *,
    window: int | None = None,
    qkv_bias: bool = False,
    out_bias: bool = False,
    qk_norm: bool = False,
    default_head_dim: int | None = None,
) -> Attention:
    """Grouped-query attention with the usual field names."""
    heads, kv_heads, head_dim = head_shape(fields, default_head_dim)
    return Attention(
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        window=window,
        qkv_bias=qkv_bias,
        out_bias=out_bias,
        qk_norm=qk_norm,
    )


def mla(fields: Fields) -> Mla:
    """Latent attention with DeepSeek's field names."""
    return Mla(
        heads=fields.count("num_attention_heads"),
        q_lora_rank=fields.count("q_lora_rank") if fields.has("q_lora_rank") else None,
        kv_lora_rank=fields.count("kv_lora_rank"),
        nope_dim=fields.count("qk_nope_head_dim"),
        rope_dim=fields.count("qk_rope_head_dim"),
        value_dim=fields.count("v_head_dim"),
        qkv_bias=fields.flag("attention_bias"),
    )


def first_dense(fields: Fields, default: int | None = None) -> int:
    """Leading dense layers of a mixture (``first_k_dense_replace``), at most all."""
    key, layers = "first_k_dense_replace", fields.count("num_hidden_layers")
    first = fields.count(key, low=0) if default is None else fields.count_or(key, default, low=0)
    if first > layers:
        fields.bad(key, f"at most num_hidden_layers {layers}")
    return first


def window_of(fields: Fields, default: int | None = None) -> int | None:
    """The sliding window; absent gives the default, null none."""
    if "sliding_window" not in fields.config:
        return default
    return fields.count("sliding_window") if fields.has("sliding_window") else None


def layer_kinds(fields: Fields, known: Sequence[str], key: str = "layer_types") -> tuple[str, ...]:
    """The kind of each layer, one of ``known``; empty where the field is absent."""
    layers, kinds = fields.count("num_hidden_layers"), fields.texts(key)
    if kinds and (len(kinds) != layers or not set(kinds) <= set(known)):
        fields.bad(key, f"{layers} times {' or '.join(known)}")
    return kinds


def mtp_modules(fields: Fields, block: Block, key: str = "num_nextn_predict_layers") -> Mtp | None:
    """Draft modules that come with the model, one layer like ``block`` each; 0 or absent is none."""
    modules = fields.count_or(key, 0, low=0)
    return Mtp(modules=modules, block=block) if modules else None
