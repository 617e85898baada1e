"""What drafters share: layers shaped like the target's or by a config's numbers, and what is their own.

On several ranks, layers, LM heads and vocabulary tables are split as in the target; the matrices that fuse
hidden states (and other small ones before a layer) are whole on every rank, as vLLM and SGLang hold them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from rooflinekit.llm import Attention, Block, Linear, Llm, Mla, Mlp
from rooflinekit.memory import kv_cache_bytes, resident_weight_bytes
from rooflinekit.mixers import attention_dtype
from rooflinekit.precision import Precision
from rooflinekit.transformer import LOGIT_BYTES, sampling_works
from rooflinekit.work import Real, Work

Shape = Mapping[str, int]
"""Numbers of a drafter's config.json, as the reader hands them over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WideMla(Mla):
    """Latent attention whose input is twice as wide as the model (token embedding beside feature)."""

    def linears(self, hidden: int, tp: int = 1) -> tuple[Linear, ...]:
        """Weight matrices; those that read the layer's input are twice as wide."""
        reading = {"q, kv down-projection"} | ({"q up-projection"} if self.q_lora_rank is None else set())
        return tuple(
            replace(linear, inner=2 * linear.inner) if linear.label in reading else linear
            for linear in Mla.linears(self, hidden, tp)
        )


def corrected_sampling(vocab: int, rows: Real, precision: Precision, tp: int) -> tuple[Work, ...]:
    """Sampling of one token whose logits a light head corrects: the block's logits are read, then sampled."""
    shared = rows * (vocab / tp) * LOGIT_BYTES
    dtype = attention_dtype(precision)
    added = Work("corrected logits", "elementwise", dtype, rows, flops=0.0 * rows, activation_bytes=shared)
    return added, *sampling_works(vocab, rows, precision, tp)


def first_attention(target: Llm, input_multiple: int = 1) -> Attention:
    """Attention of a draft layer that takes its shape from the target's last such layer, over the whole context.

    Targets without plain heads (latent attention, recurrent layers) get heads of 128 elements.
    """
    for block in reversed(target.blocks):
        spec = block.mixer
        if isinstance(spec, Attention):
            return Attention(
                heads=spec.heads,
                kv_heads=spec.kv_heads,
                head_dim=spec.head_dim,
                input_multiple=input_multiple,
            )
    # A power of two, so that the usual numbers of ranks divide it.
    heads = 1 << ((target.hidden // 128).bit_length() - 1) if target.hidden >= 128 else 1
    return Attention(heads=heads, kv_heads=heads, head_dim=128, input_multiple=input_multiple)


def dense_width(target: Llm) -> int:
    """Width of a dense feed-forward layer of a drafter for this target: the target's own, else 4 x hidden."""
    widths = [block.ffn.intermediate for block in target.blocks if isinstance(block.ffn, Mlp)]
    return widths[-1] if widths else 4 * target.hidden


def _mixer(shape: Shape, *, wide: bool, window: int | None) -> Attention | Mla:
    if "kv_lora_rank" in shape:
        return (WideMla if wide else Mla)(
            heads=shape["heads"],
            q_lora_rank=shape.get("q_lora_rank"),
            kv_lora_rank=shape["kv_lora_rank"],
            nope_dim=shape["nope_dim"],
            rope_dim=shape["rope_dim"],
            value_dim=shape["value_dim"],
            qkv_bias="attention_bias" in shape,
        )
    return Attention(
        heads=shape["heads"],
        kv_heads=shape["kv_heads"],
        head_dim=shape["head_dim"],
        window=window,
        qkv_bias="attention_bias" in shape,
        out_bias="attention_bias" in shape,
        qk_norm="qk_norm" in shape,
        input_multiple=2 if wide else 1,
    )


def blocks_of(shape: Shape, *, wide_first: bool = False, norms: float = 2) -> tuple[Block, ...]:
    """Draft layers by a config's numbers: windowed ones, full ones, and the first apart where it is wider.

    The order of windowed and full layers does not change the cost; the first layer counts as windowed only
    where all are.
    """
    layers, windowed = shape["layers"], shape.get("window_layers", 0)
    ffn = Mlp(intermediate=shape["intermediate"])
    groups = [(windowed, shape.get("window")), (layers - windowed, None)]
    found: list[Block] = []
    if wide_first:
        at = 0 if windowed == layers else 1
        count, window = groups[at]
        groups[at] = (count - 1, window)
        found.append(Block(1, _mixer(shape, wide=True, window=window), ffn, norms=norms + 1))
    found += [
        Block(count, _mixer(shape, wide=False, window=window), ffn, norms=norms)
        for count, window in groups
        if count
    ]
    return tuple(found)


def draft_bytes(
    llm: Llm,
    fusion: Linear,
    precision: Precision,
    *,
    batch: Real,
    context: Real,
    tp: int,
    own_head: bool = False,
) -> Real:
    """Layers, fusion (whole on every rank), cache and, where it is its own, LM head of a drafter on one rank (B)."""
    layers = resident_weight_bytes(replace(llm, vocab=0), precision, tp)
    head = llm.embedding_params * precision.bytes_per("head") / tp if own_head else 0.0
    fused = fusion.parameters * precision.bytes_per("mlp")
    return layers + head + fused + kv_cache_bytes(llm, batch, context, precision, tp)


def own_layer_params(llm: Llm) -> int:
    """Parameters of a drafter's layers, without the embedding and head it shares with the target."""
    return llm.total_params - llm.embedding_params


def proposal_words(proposed: int) -> str:
    """K rule of a serial drafter: any, and what its config proposes (0 for nothing)."""
    return f"any; its config proposes {proposed}" if proposed else "any"
