"""Bytes and FLOPs of a pass against arithmetic written out here, not taken from the library."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooflinekit.errors import ModelError
from rooflinekit.llm import Attention, Block, Llm, Mla, Mlp, Moe
from rooflinekit.memory import kv_cache_bytes, resident_weight_bytes
from rooflinekit.mixers import attended, mixer_works
from rooflinekit.precision import precision
from rooflinekit.readers.models import find_llm
from rooflinekit.transformer import Load, experts_touched, forward_pass
from rooflinekit.work import works_time_s
from tests.strategies import llms, loads, machines

BF16 = precision("bf16")


def model(attention, ffn, layers=2, hidden=1024, vocab=32_000, *, tied=False):
    return Llm(name="hand", hidden=hidden, vocab=vocab, blocks=(Block(layers, attention, ffn),), tied=tied)


def total(works, name):
    return sum(float(getattr(work, name)) for work in works)


def attention(block, load, numbers, tp):
    return mixer_works(block, load, numbers, tp)[-1]


def pick(works, label):
    (found,) = [work for work in works if work.label == label]
    return found


# --- dense grouped-query attention: Llama-3.1-8B, by hand


def test_a_dense_decode_reads_what_the_shapes_say():
    """32 layers of 4096, 32 query and 8 KV heads of 128, MLP 14336, vocabulary 128,256, bf16."""
    works = forward_pass(find_llm("llama-3.1-8b"), Load(3.0, 1000.0, 1.0), BF16)
    qkv = (32 + 2 * 8) * 128 * 4096
    out = 4096 * 32 * 128
    mlp = 3 * 14336 * 4096
    head = 128_256 * 4096
    assert total(works, "weight_bytes") == 2 * (32 * (qkv + out + mlp) + head)
    assert total(works, "kv_bytes") == 32 * 3 * 1001 * 2 * 8 * 128 * 2
    linear = 2 * 3 * (32 * (qkv + out + mlp) + head)
    attention = 32 * 4 * 3 * 32 * 128 * 1001
    assert total(works, "flops") == pytest.approx(linear + attention, rel=1e-12)


def test_activation_traffic_of_a_linear_layer_is_its_rows_in_and_out():
    """Each row of a product reads its input and writes its output once."""
    work = pick(forward_pass(find_llm("llama-3.1-8b"), Load(3.0, 0.0, 5.0), BF16), "output projection")
    assert work.activation_bytes == 32 * 15 * (4096 + 4096) * 2
    assert work.rows == 15
    assert work.kernels == 32


def test_multi_query_attention_keeps_one_head():
    """With one KV head, 16 query heads share it: bytes of one, FLOPs of sixteen."""
    work = attention(
        Block(3, Attention(heads=16, kv_heads=1, head_dim=64), Mlp(intermediate=2048)),
        Load(2.0, 10.0),
        BF16,
        1,
    )
    assert work.kv_bytes == 3 * 2 * 11 * 2 * 1 * 64 * 2
    assert work.flops == 3 * 4 * 2 * 16 * 64 * 11
    assert work.activation_bytes == 3 * 2 * 2 * 16 * 64 * 2
    assert work.rows == 16


def test_the_cache_is_read_once_for_all_rows_of_a_verify():
    """Eight rows read the cache of one sequence once, plus their own eight entries."""
    block = Block(1, Attention(heads=32, kv_heads=8, head_dim=128), Mlp(intermediate=2048))
    one, eight = (attention(block, Load(1.0, 131_072.0, w), BF16, 1) for w in (1.0, 8.0))
    assert eight.kv_bytes - one.kv_bytes == 7 * 2 * 8 * 128 * 2
    assert eight.flops > 7.9 * one.flops


@given(st.integers(0, 60), st.integers(1, 40), st.one_of(st.none(), st.integers(1, 120)))
def test_pairs_and_positions_are_those_of_a_count(context, width, window):
    """Positions and query-key pairs, counted one by one, causal and inside the window."""
    pairs, seen = 0, set()
    for row in range(width):
        last = context + row
        first = 0 if window is None else max(0, last - window + 1)
        pairs += last - first + 1
        seen |= set(range(first, last + 1))
    positions, found = attended(Load(1.0, float(context), float(width)), window)
    assert found == pairs
    assert positions == len(seen)
    if window is None:
        assert found == width * context + width * (width + 1) // 2


def test_a_windowed_layer_reads_its_window_beside_a_full_layer():
    """Alternating layers, 4096 of context: the windowed one reads 512 positions, the full one all."""
    blocks = tuple(
        Block(4, Attention(heads=8, kv_heads=4, head_dim=64, window=w), Mlp(intermediate=1024))
        for w in (512, None)
    )
    llm = Llm(name="mixed", hidden=512, vocab=1000, blocks=blocks)
    works = forward_pass(llm, Load(2.0, 4096.0), BF16)
    assert total(works, "kv_bytes") == 4 * 2 * 2 * 4 * 64 * 2 * (512 + 4097)
    assert kv_cache_bytes(llm, 2.0, 4096.0, BF16) == 4 * 2 * 2 * 4 * 64 * 2 * (512 + 4096)
    assert kv_cache_bytes(llm, 2.0, 100.0, BF16) == 4 * 2 * 2 * 4 * 64 * 2 * 200


# --- latent attention: DeepSeek-V3's shape, by hand

V3_MLA = Mla(heads=128, q_lora_rank=1536, kv_lora_rank=512, nope_dim=128, rope_dim=64, value_dim=128)


def test_latent_attention_reads_one_latent_per_token():
    """512 + 64 elements a token and layer, 128 heads in the latent space: absorbed decode."""
    work = attention(Block(61, V3_MLA, Mlp(intermediate=18432)), Load(2.0, 999.0, 3.0), BF16, 1)
    assert work.kv_bytes == 61 * 2 * 1002 * 576 * 2
    pairs = 3 * 999 + 6
    # Scores over latent and rotary part, values over the latent: two FLOPs an element.
    assert work.flops == 61 * 2 * 128 * pairs * 2 * ((512 + 64) + 512)


def test_the_intensity_of_latent_attention_is_that_of_the_paper():
    """2 h W (2 r + d) / ((r + d) kv): about 484 FLOP per cached byte at one row, past the ridge of an H100."""
    work = attention(Block(1, V3_MLA, Mlp(intermediate=18432)), Load(1.0, 1e7, 1.0), BF16, 1)
    assert work.flops / work.kv_bytes == pytest.approx(2 * 128 * (2 * 512 + 64) / ((512 + 64) * 2), rel=1e-5)


def test_a_prefill_of_latent_attention_runs_in_expanded_form():
    """Per pair and head 128 + 64 products for the score and 128 for the value, instead of 576 + 512."""
    work = attention(Block(1, V3_MLA, Mlp(intermediate=18432)), Load(1.0, 0.0, 100.0, prefill=True), BF16, 1)
    assert work.flops == 128 * (100 * 101 / 2) * 2 * (128 + 64 + 128)


def test_latent_attention_has_the_weights_of_its_checkpoint():
    """q_a, q_b, kv_a with the rotary key, kv_b, o: 187,107,328 elements a layer in DeepSeek-V3."""
    hand = 7168 * 1536 + 1536 * 128 * 192 + 7168 * 576 + 512 * 128 * 256 + 128 * 128 * 7168
    assert hand == 187_105_280
    assert sum(one.parameters for one in V3_MLA.linears(7168)) == hand


def test_an_absorbed_decode_multiplies_by_the_up_projection_as_often_as_an_expanded_one():
    """Absorbing moves the up-projection to query and output: rank x (128 + 128) x heads a row either way."""
    works = forward_pass(model(V3_MLA, Mlp(intermediate=1024), layers=1, hidden=7168), Load(1.0, 10.0), BF16)
    assert pick(works, "kv up-projection").flops == 2 * 512 * 128 * (128 + 128)


# --- mixture of experts

QWEN = Moe(experts=128, top_k=8, intermediate=768)


def test_the_union_of_experts_is_the_published_value():
    """Eight tokens of a model with 8 of 128 experts read 51.62 of them, not 64 and not 8."""
    assert experts_touched(QWEN, Load(width=8.0)) == pytest.approx(51.62, abs=0.005)
    assert experts_touched(QWEN, Load(batch=8.0)) == pytest.approx(51.62, abs=0.005)
    assert experts_touched(QWEN, Load()) == pytest.approx(8.0)


@pytest.mark.parametrize(
    ("experts", "top_k", "tokens"), [(128, 8, 8), (256, 8, 2), (8, 2, 4), (64, 6, 60), (16, 1, 16)]
)
def test_the_union_of_experts_is_that_of_drawn_tokens(experts, top_k, tokens):
    """Drawing top-k sets uniformly and counting their union gives the formula within four standard errors."""
    rng = np.random.default_rng(7)
    draws = 2000
    chosen = np.argsort(rng.random((draws, tokens, experts)), axis=2)[:, :, :top_k]
    union = np.array([len(np.unique(one)) for one in chosen])
    moe = Moe(experts=experts, top_k=top_k, intermediate=1)
    error = 4 * union.std() / math.sqrt(draws) + 1e-9
    assert experts_touched(moe, Load(width=float(tokens))) == pytest.approx(union.mean(), abs=error)


@given(
    st.integers(1, 64),
    st.integers(1, 64),
    st.floats(0.0, 1.0),
    st.sampled_from([(8, 2), (128, 8), (256, 8), (4, 4)]),
)
def test_the_union_lies_between_one_token_and_all_experts(batch, width, overlap, shape):
    """At least one token's experts, at most those of all tokens or all there are; overlap only saves."""
    moe = Moe(experts=shape[0], top_k=shape[1], intermediate=1)
    found = experts_touched(moe, Load(float(batch), 0.0, float(width), routing_overlap=overlap))
    free = experts_touched(moe, Load(float(batch), 0.0, float(width)))
    shared = experts_touched(moe, Load(float(batch), 0.0, float(width), routing_overlap=1.0))
    assert shape[1] * (1 - 1e-9) <= found <= min(shape[0], shape[1] * batch * width) * (1 + 1e-9)
    assert shared * (1 - 1e-12) <= found <= free * (1 + 1e-12)
    assert shared == pytest.approx(experts_touched(moe, Load(float(batch))))


def test_full_overlap_reads_one_tokens_experts():
    """Where neighbours route alike, a verify of eight reads eight experts."""
    assert experts_touched(QWEN, Load(width=8.0, routing_overlap=1.0)) == pytest.approx(8.0)


def test_a_mixture_reads_the_union_and_computes_every_token():
    """Qwen3-30B-A3B, eight rows: weights of 51.62 experts, FLOPs of 8 x 8 expert passes, router and head beside."""
    works = forward_pass(find_llm("qwen3-30b-a3b"), Load(1.0, 4096.0, 8.0), BF16)
    expert = 3 * 2048 * 768
    union = 128 * (1 - (1 - 8 / 128) ** 8)
    routed = pick(works, "experts")
    assert routed.weight_bytes == pytest.approx(48 * union * expert * 2)
    assert routed.flops == pytest.approx(48 * 8 * 8 * 2 * expert)
    assert routed.rows == pytest.approx(64 / union)
    assert pick(works, "router").weight_bytes == 48 * 128 * 2048 * 2
    attention = 2048 * (32 + 8) * 128 + 2048 * 32 * 128
    rest = 48 * (attention + 128 * 2048) + 151_936 * 2048
    assert total(works, "weight_bytes") == pytest.approx(2 * (48 * union * expert + rest))


def test_shared_experts_and_dense_layers_are_read_whatever_the_routing():
    """DeepSeek-V3's first three layers are dense, the others have one shared expert of 2048."""
    works = forward_pass(find_llm("deepseek-v3"), Load(), BF16)
    dense = sum(work.weight_bytes for work in works if work.label.startswith("mlp"))
    shared = sum(work.weight_bytes for work in works if work.label == "shared experts")
    assert dense == 3 * 3 * 7168 * 18432 * 2
    assert shared == 58 * 3 * 7168 * 2048 * 2
    assert pick(works, "experts").weight_bytes == pytest.approx(58 * 8 * 3 * 7168 * 2048 * 2)


# --- LM head, embedding


@pytest.mark.parametrize(("prefill", "rows"), [(True, 4), (False, 4 * 100)])
def test_the_head_runs_over_every_row_of_a_verify_and_the_last_of_a_prompt(prefill, rows):
    """B rows in a prefill, B W in a verify; its weights once, its logits in fp32."""
    works = forward_pass(find_llm("llama-3.1-8b"), Load(4.0, 0.0, 100.0, prefill=prefill), BF16)
    head = pick(works, "lm head")
    assert head.flops == 2 * 128_256 * 4096 * rows
    assert head.weight_bytes == 128_256 * 4096 * 2
    assert head.activation_bytes == rows * 4096 * 2 + rows * 128_256 * 4
    assert pick(works, "qkv projection").rows == 400


def test_the_embedding_is_a_lookup():
    """A row per token, never the table."""
    work = pick(forward_pass(find_llm("llama-3.1-8b"), Load(4.0, 0.0, 3.0), BF16), "embedding")
    assert work.weight_bytes == 0
    assert work.bytes == 12 * 4096 * (2 + 2)


def test_a_quantised_checkpoint_keeps_its_head_in_sixteen_bits():
    """w4a16: 4.125 bits a linear weight, 16 for the head."""
    works = forward_pass(find_llm("llama-3.1-8b"), Load(), precision("w4a16"))
    body = 32 * ((32 + 16) * 128 * 4096 + 4096 * 4096 + 3 * 14336 * 4096)
    assert total(works, "weight_bytes") == body * 4.125 / 8 + 128_256 * 4096 * 2


# --- published sizes: a decode computes two FLOPs per active parameter


@pytest.mark.parametrize(
    ("name", "active", "embedding"),
    [
        ("llama-3.1-8b", 8.03e9, 128_256 * 4096),
        ("llama-3.1-70b", 70.55e9, 128_256 * 8192),
        ("llama-2-7b", 6.738e9, 32_000 * 4096),
        ("qwen3-30b-a3b", 3.35e9, 151_936 * 2048),
        ("mixtral-8x7b", 12.88e9, 32_000 * 4096),
        ("deepseek-v3", 37.55e9, 129_280 * 7168),
        ("llama-3.2-1b", 1.236e9 + 128_256 * 2048, 128_256 * 2048),
    ],
)
def test_a_decode_computes_two_flops_per_active_parameter(name, active, embedding):
    """Published sizes less the embedding (a tied one serves as head), empty cache."""
    works = forward_pass(find_llm(name), Load(), BF16)
    linear = sum(work.flops for work in works if work.kind in ("linear", "experts"))
    assert linear == pytest.approx(2 * (active - embedding), rel=0.005)


# --- tensor parallelism


def test_ranks_divide_weights_and_replicate_kv_heads():
    """Eight KV heads on 16 ranks: one whole head on each, half of it redundant; query heads are divided."""
    llm = find_llm("llama-3.1-70b")
    for tp, kv_heads in ((2, 4), (8, 1), (16, 1)):
        works = forward_pass(llm, Load(1.0, 1000.0), BF16, tp)
        assert total(works, "kv_bytes") == 80 * 1001 * 2 * kv_heads * 128 * 2
        qkv = (64 / tp + 2 * kv_heads) * 128 * 8192
        rest = (64 * 128 * 8192 + 3 * 28672 * 8192) / tp
        assert total(works, "weight_bytes") == pytest.approx(2 * (80 * (qkv + rest) + 128_256 * 8192 / tp))
        assert pick(works, "attention").flops == 80 * 4 * 64 / tp * 128 * 1001


def test_the_rows_of_attention_are_query_heads_per_kv_head_of_a_rank():
    """Llama-3.1-70B on 16 ranks: four query heads beside one KV head, times the width."""
    works = forward_pass(find_llm("llama-3.1-70b"), Load(1.0, 1000.0, 3.0), BF16, 16)
    assert pick(works, "attention").rows == 3 * 4


def test_the_latent_is_on_every_rank():
    """Latent attention gains no cache capacity from more ranks."""
    llm = find_llm("deepseek-v3")
    one, eight = (forward_pass(llm, Load(1.0, 1000.0), BF16, tp) for tp in (1, 8))
    assert total(one, "kv_bytes") == total(eight, "kv_bytes") == 61 * 1001 * 576 * 2
    attention = [sum(work.flops for work in works if work.label == "attention") for works in (one, eight)]
    assert attention[1] == attention[0] / 8


@pytest.mark.parametrize(("tp", "factor"), [(2, 1.0), (3, 4 / 3), (4, 1.5), (8, 1.75)])
def test_an_all_reduce_sends_what_scatter_and_gather_send(tp, factor):
    """2 (n - 1) / n messages of rows x width: one for the embedding, two a layer."""
    llm = Llm(
        name="m",
        hidden=768,
        vocab=24_000,
        blocks=(Block(5, Attention(heads=24, kv_heads=24, head_dim=32), Mlp(intermediate=2400)),),
    )
    works = [w for w in forward_pass(llm, Load(2.0, 0.0, 3.0), BF16, tp) if w.label == "all-reduce"]
    assert sum(work.bytes for work in works) == pytest.approx((1 + 2 * 5) * factor * 6 * 768 * 2)
    assert sum(work.kernels for work in works) == 11


@pytest.mark.parametrize("tp", [1, 8])
def test_sampling_reads_the_whole_vocabulary(tp):
    """After the gather one rank looks at every logit, however the head was split."""
    work = pick(forward_pass(find_llm("llama-3.1-8b"), Load(4.0, 0.0, 2.0), BF16, tp), "sampling")
    assert work.bytes == 8 * 128_256 * 4


def test_a_prefill_expands_the_cached_latents_too():
    """Expanded keys and values of 1000 cached and 50 new positions; a verify multiplies its own rows only."""
    llm, per_row = find_llm("deepseek-v3"), 2 * 61 * 128 * (128 + 128) * 512
    for prefill, rows in ((True, 2 * 1050), (False, 2 * 50)):
        works = forward_pass(llm, Load(2.0, 1000.0, 50.0, prefill=prefill), BF16)
        expanded = [work for work in works if work.label == "kv up-projection"]
        assert total(expanded, "flops") == rows * per_row


def test_the_logits_are_gathered():
    """Each rank gets the other ranks' share of the logits."""
    work = pick(forward_pass(find_llm("llama-3.1-8b"), Load(3.0), BF16, 4), "logits gather")
    assert work.bytes == 3 * 3 * (128_256 / 4) * 4


def test_one_rank_talks_to_nobody():
    """No collectives without tensor parallelism."""
    assert not [
        work for work in forward_pass(find_llm("llama-3.1-8b"), Load(), BF16) if work.kind == "collective"
    ]


@pytest.mark.parametrize(("name", "tp"), [("llama-3.1-8b", 3), ("qwen3-30b-a3b", 3), ("llama-3.1-8b", 5)])
def test_ranks_that_do_not_divide_the_heads_are_refused(name, tp):
    """The message names the number that does not divide."""
    with pytest.raises(ModelError, match=rf"cannot be split over {tp} ranks"):
        forward_pass(find_llm(name), Load(), BF16, tp)


# --- what holds for every model


@given(llms(), loads(), st.sampled_from(["bf16", "fp8", "w4a16", "nvfp4"]))
def test_all_bytes_and_flops_are_finite_and_not_negative(llm, load, name):
    """Any shape under any load gives a sane list of works."""
    for work in forward_pass(llm, load, precision(name)):
        for field in ("rows", "flops", "weight_bytes", "kv_bytes", "activation_bytes", "kernels"):
            value = float(getattr(work, field))
            assert math.isfinite(value)
            assert value >= 0
        assert work.rows > 0


@given(llms(), loads(), st.sampled_from(["bf16", "fp8", "w4a16", "mxfp4", "q4_0", "q4_k_m", "q5_k_m"]))
def test_streamed_weights_never_exceed_those_held(llm, load, name):
    """No pass reads more weights than the model has; a tied table is read as the head."""
    numbers = precision(name)
    works = forward_pass(llm, load, numbers)
    assert total(works, "weight_bytes") <= resident_weight_bytes(llm, numbers) * (1 + 1e-12)


@given(llms(), loads(prefill=False), machines(stairs=False), st.integers(1, 50))
def test_wider_longer_and_larger_never_take_less_time(llm, load, machine, more):
    """A pass of more rows, more context or more sequences is not faster on any smooth machine."""
    base = works_time_s(forward_pass(llm, load, BF16), machine)
    smooth = machine.ceilings.get(("experts", "*"))
    for change in ((more, 0, 0), (0, more, 0), (0, 0, more)):
        grown = Load(
            load.batch + change[0],
            load.context + change[1],
            load.width + change[2],
            routing_overlap=load.routing_overlap,
        )
        if smooth is not None and (smooth.tile != 1.0 or smooth.rows_per_pass != math.inf):
            continue  # rows per expert may shrink across a tile while the union grows
        assert works_time_s(forward_pass(llm, grown, BF16), machine) >= base * (1 - 1e-9)


@given(llms(), loads(), st.integers(2, 6))
def test_passes_of_arrays_are_those_of_their_elements(llm, load, count):
    """A grid of batches and widths through one call equals a call for each."""
    batch, width = load.batch * np.arange(1.0, count)[:, None], load.width + np.arange(count)[None, :]
    options = {"prefill": load.prefill, "routing_overlap": load.routing_overlap}
    grid = forward_pass(llm, Load(batch, load.context, width, **options), BF16)
    for i, j in ((0, 0), (count - 2, count - 1)):
        single = forward_pass(llm, Load(batch[i, 0], load.context, width[0, j], **options), BF16)
        for left, right in zip(grid, single, strict=True):
            for field in ("flops", "weight_bytes", "kv_bytes", "activation_bytes"):
                found = np.broadcast_to(getattr(left, field), (count - 1, count))[i, j]
                assert found == pytest.approx(float(getattr(right, field)))


@given(llms(moe=False), st.integers(0, 5000), st.integers(1, 12))
def test_a_chunked_prompt_fills_the_same_pairs(llm, context, width):
    """Two passes of half the rows compute the pairs of one pass, full attention and window alike."""
    for block in llm.blocks:
        window = getattr(block.mixer, "window", None)
        _, whole = attended(Load(1.0, float(context), 2.0 * width), window)
        _, first = attended(Load(1.0, float(context), float(width)), window)
        _, second = attended(Load(1.0, float(context + width), float(width)), window)
        assert first + second == whole


@given(llms())
def test_the_parameters_are_those_of_the_matrices_and_vectors(llm):
    """Counted from the shapes here: attention, feed-forward, norms, tables."""
    count = llm.hidden
    for block in llm.blocks:
        a, f, h = block.mixer, block.ffn, llm.hidden
        if isinstance(a, Attention):
            one = h * (a.heads + 2 * a.kv_heads) * a.head_dim + a.heads * a.head_dim * h
        else:
            query = a.heads * (a.nope_dim + a.rope_dim)
            one = h * query if a.q_lora_rank is None else a.q_lora_rank * (h + query + 1)
            one += (
                h * (a.kv_lora_rank + a.rope_dim)
                + a.kv_lora_rank
                + a.kv_lora_rank * a.heads * (a.nope_dim + a.value_dim)
            )
            one += a.heads * a.value_dim * h
        matrices = 3 if f.gated else 2
        if isinstance(f, Moe):
            one += h * f.experts + matrices * h * (f.experts * f.intermediate + f.shared_intermediate)
        else:
            one += matrices * h * f.intermediate
        count += block.count * (one + 2 * h)
    count += llm.vocab * llm.hidden * (1 if llm.tied else 2)
    assert llm.total_params == count
    assert resident_weight_bytes(llm, BF16) == 2 * count
