"""The contract of every drafter, found by name: a finite plan that grows, broadcasts and takes memory."""

import csv
import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from rooflinekit.cli import cli
from rooflinekit.drafters import (
    BUILDERS,
    CARRIED,
    SHAPE_BUILDERS,
    WEIGHTLESS,
    dflash,
    domino,
    dspark,
    eagle1,
    eagle3,
    medusa,
    mtp,
    peagle,
)
from rooflinekit.drafters.parts import blocks_of
from rooflinekit.drafters.small_lm import SmallLm
from rooflinekit.drafting_options import _small_lm, make_drafter
from rooflinekit.engines import flags
from rooflinekit.errors import ModelError
from rooflinekit.llm import Block, Mla, Mlp, Moe, Mtp
from rooflinekit.memory import resident_weight_bytes
from rooflinekit.precision import precision
from rooflinekit.readers.models import find_llm, model_names
from rooflinekit.target import Target
from rooflinekit.transformer import Load, forward_pass
from rooflinekit.work import Machine, plan_time_s, works_time_s
from tests.strategies import llms, log_floats, machines, small_llm

BF16 = precision("bf16")
NAMES = [*BUILDERS, *CARRIED, "small-lm", *WEIGHTLESS]
SERIAL = ["eagle", "eagle3", "mtp", "small-lm", "layer-skip"]
BLOCK = ["peagle", "dflash", "dspark", "domino", "medusa"]
HOST = ["ngram", "suffix"]
ON_DEVICE = [name for name in NAMES if name not in HOST]
UNSERVED = {"domino", "medusa"}
"""Drafters that no engine we print flags for runs."""
PUBLISHED = Path(__file__).parent / "reference" / "drafter_parameters.csv"
LLAMA = find_llm("llama-3.1-8b")
H100 = Machine("h", 3.35e12, {"bf16": 989e12}, 450e9)


def build(name, target=LLAMA):
    if name == "small-lm":
        return SmallLm(small_llm(), BF16)
    if name == "mtp" and target.mtp is None:
        target = replace(target, mtp=Mtp(modules=1, block=replace(target.blocks[-1], count=1)))
    return (BUILDERS | CARRIED | WEIGHTLESS)[name](target, BF16)


def plan_s(drafter, machine, k, **options):
    return plan_time_s(drafter.plan(k=k, **({"batch": 1.0, "context": 4096.0} | options)), machine)


def plan_bytes(drafter, k, **options):
    plan = drafter.plan(k=k, **({"batch": 1.0, "context": 4096.0} | options))
    return sum(one.repeats * sum(work.bytes for work in one.works) for one in plan)


def test_every_drafter_is_serial_or_in_blocks():
    """A new drafter must be sorted into one of the families tested here."""
    assert sorted(NAMES) == sorted(SERIAL + BLOCK + HOST)
    assert set(SHAPE_BUILDERS) == set(BUILDERS) | set(CARRIED)


@pytest.mark.parametrize("name", NAMES)
@given(
    llm=llms(),
    machine=machines(),
    batch=st.integers(1, 256),
    context=st.integers(0, 10**6),
    k=st.integers(1, 15),
)
def test_a_plan_is_finite_and_costs_something(name, llm, machine, batch, context, k):
    """Any target shape, machine and load: works without nan, a positive time, memory where it has weights."""
    drafter = build(name, llm)
    load = {"batch": float(batch), "context": float(context)}
    found = plan_s(drafter, machine, float(k), refresh=2.5, **load)
    host = drafter.host_s(k=float(k), **load)
    assert math.isfinite(found + host)
    assert (found > 0, host > 0) == ((False, True) if name in HOST else (True, False))
    assert math.isfinite(drafter.memory_bytes(**load))
    assert (drafter.memory_bytes(**load) > 0) == (name not in WEIGHTLESS)
    assert (drafter.own_params > 0) == (name not in WEIGHTLESS)


@pytest.mark.parametrize("name", NAMES)
@given(
    bandwidth=log_floats(1e10, 1e13),
    peak=log_floats(1e12, 1e15),
    batch=st.integers(1, 100),
    k=st.integers(1, 14),
    context=st.integers(0, 10**5),
)
def test_longer_drafts_larger_batches_and_longer_contexts_never_cost_less(
    name, bandwidth, peak, batch, k, context
):
    """On a plain roofline the draft time grows with each of them."""
    drafter, machine = build(name), Machine("m", bandwidth, {"bf16": peak})
    base = plan_s(drafter, machine, float(k), batch=float(batch), context=float(context))
    assert plan_s(drafter, machine, k + 1.0, batch=float(batch), context=float(context)) >= base * (1 - 1e-12)
    assert plan_s(drafter, machine, float(k), batch=batch + 1.0, context=float(context)) >= base * (1 - 1e-12)
    assert plan_s(drafter, machine, float(k), batch=float(batch), context=context + 100.0) >= base * (
        1 - 1e-12
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_plan_broadcasts(name):
    """Axes of batch, context and K give a grid, and memory does so too."""
    drafter = build(name)
    batch, context, k = (
        np.array([1.0, 8.0])[:, None, None],
        np.array([0.0, 1e4])[:, None],
        np.array([1.0, 3.0, 7.0]),
    )
    grid = plan_time_s(drafter.plan(k=k, batch=batch, context=context), H100)
    assert np.shape(grid) == (2, 2, 3)
    assert grid[1, 0, 2] == pytest.approx(plan_s(drafter, H100, 7.0, batch=8.0, context=0.0))
    assert np.shape(drafter.memory_bytes(batch=batch, context=context)) == (2, 2, 1)
    host = np.broadcast_to(drafter.host_s(k=k, batch=batch, context=context), (2, 2, 3))
    assert host[1, 0, 2] == drafter.host_s(k=7.0, batch=8.0, context=0.0)


@pytest.mark.parametrize("name", SERIAL)
def test_serial_drafters_cost_in_proportion_to_k(name):
    """Each token after the first is one more pass of one row: equal steps, no bend."""
    drafter = build(name)
    times = [plan_s(drafter, H100, float(k)) for k in range(1, 17)]
    steps = np.diff(times)
    assert steps == pytest.approx(steps[0], rel=1e-9)
    assert times[15] / times[0] == pytest.approx(16, rel=0.2 if name == "eagle3" else 0.001)


@pytest.mark.parametrize("name", BLOCK)
def test_block_drafters_hardly_notice_k(name):
    """One pass whatever K: from 1 to the trained block the cost grows by less than a tenth at batch 1."""
    drafter = build(name)
    assert drafter.max_k is not None
    rise = plan_s(drafter, H100, float(drafter.max_k)) / plan_s(drafter, H100, 1.0)
    assert 1.0 <= rise < {"dspark": 1.25, "domino": 1.5}.get(name, 1.02)


@pytest.mark.parametrize(
    ("name", "max_k"),
    [
        *((name, None) for name in SERIAL + HOST),
        ("dflash", 15),
        ("domino", 15),
        ("dspark", 7),
        ("peagle", 10),
        ("medusa", 5),
    ],
)
def test_the_trained_block_limits_k(name, max_k):
    """A DFlash block of 16 holds an anchor and 15 drafts; a DSpark block of 7 drafts 7; a Medusa head one."""
    drafter = build(name)
    assert drafter.max_k == max_k
    assert drafter.k_rule.startswith("any" if max_k is None else f"up to {max_k}")


@pytest.mark.parametrize("name", NAMES)
def test_a_drafter_says_what_it_is(name):
    """Its name is the word of the command line, its title one line, and some engine runs it."""
    drafter = build(name)
    assert drafter.name == name
    assert drafter.title
    assert "\n" not in drafter.title
    assert drafter.serial_passes
    assert drafter.precision == BF16
    assert bool(flags(name, 3)) == (name not in UNSERVED)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_held_is_its_own_parameters(name):
    """Two bytes each, whatever the table or matrix; tables shared with the target are neither counted nor held."""
    drafter = build(name)
    assert drafter.memory_bytes(batch=1.0, context=0.0) == pytest.approx(2 * drafter.own_params, rel=1e-12)


@pytest.mark.parametrize("name", BUILDERS)
@pytest.mark.parametrize("target", model_names())
def test_every_preset_can_be_drafted_for(name, target):
    """A drafter takes its shape from any shipped target: windows, latent attention and mixtures included."""
    drafter = build(name, find_llm(target))
    assert plan_s(drafter, H100, 3.0) > 0
    assert target in drafter.title


@pytest.mark.parametrize("name", ON_DEVICE)
def test_ranks_share_the_work_of_drafting(name):
    """On two ranks a drafter moves fewer weights and holds less, and pays for collectives."""
    drafter = build(name)
    one, two = (drafter.plan(k=3.0, batch=1.0, context=4096.0, tp=tp) for tp in (1, 2))
    weights = [sum(p.repeats * sum(w.weight_bytes for w in p.works) for p in plan) for plan in (one, two)]
    assert 0.49 * weights[0] <= weights[1] < 0.85 * weights[0]
    fusion = [
        w for p in two for w in p.works if w.label in ("feature fusion", "residual block", "recurrent unit")
    ]
    whole = [
        w for p in one for w in p.works if w.label in ("feature fusion", "residual block", "recurrent unit")
    ]
    assert [w.weight_bytes for w in fusion] == [w.weight_bytes for w in whole]  # on every rank
    assert any(work.kind == "collective" for p in two for work in p.works)
    held, whole = (drafter.memory_bytes(batch=1.0, context=4096.0, tp=tp) for tp in (2, 1))
    assert held < whole or name in WEIGHTLESS


# --- shapes by hand


def test_the_small_model_is_run_as_any_model():
    """K passes at width 1 where nothing was accepted before; the refresh only widens the first."""
    drafter = build("small-lm")
    one = works_time_s(forward_pass(small_llm(), Load(2.0, 1000.0, 1.0), BF16), H100)
    assert plan_s(drafter, H100, 5.0, batch=2.0, context=1000.0) == pytest.approx(5 * one)
    assert plan_s(drafter, H100, 5.0, batch=2.0, context=1000.0, refresh=4.0) > 5 * one
    assert (
        drafter.memory_bytes(batch=2.0, context=1000.0)
        == resident_weight_bytes(small_llm(), BF16) + 2 * 1000 * 16 * 2 * 8 * 64 * 2
    )


def test_the_head_of_a_small_model_runs_on_one_row_per_sequence():
    """Refreshing the cache of four tokens needs the logits of the last only."""
    (head,) = [
        w
        for w in build("small-lm").plan(k=2.0, batch=3.0, context=10.0, refresh=4.0)[0].works
        if w.label == "lm head"
    ]
    assert head.rows == 3.0


def test_eagle_for_an_eight_billion_model_has_its_published_shape():
    """Llama-3.1-8B: fusion 50.3 M, qkv over twice the width 50.3 M, o 16.8 M, MLP 176.2 M, head 131.1 M: 425 M."""
    fusion = 3 * 4096 * 4096
    qkv = 2 * 4096 * (32 + 2 * 8) * 128
    out = 4096 * 4096
    mlp = 3 * 4096 * 14336
    head = 32_000 * 4096
    assert [round(n / 1e6, 1) for n in (fusion, qkv, out, mlp, head)] == [50.3, 50.3, 16.8, 176.2, 131.1]
    matrices = fusion + qkv + out + mlp + head
    assert matrices == pytest.approx(425e6, rel=0.002)
    held = eagle3.for_target(LLAMA, BF16).memory_bytes(batch=1.0, context=0.0)
    assert held == pytest.approx(2 * matrices, rel=1e-4)  # norms besides
    first, later = eagle3.for_target(LLAMA, BF16).plan(k=4.0, batch=1.0, context=0.0)
    assert sum(work.weight_bytes for work in first.works) == 2 * matrices
    assert sum(work.weight_bytes for work in later.works) == 2 * (matrices - fusion)
    assert later.repeats == 3.0


def test_eagle_keeps_one_layer_of_cache():
    """Two KV matrices of one layer, beside the target's 32."""
    drafter = eagle3.for_target(LLAMA, BF16)
    grown = drafter.memory_bytes(batch=2.0, context=1000.0) - drafter.memory_bytes(batch=2.0, context=0.0)
    assert grown == 2 * 1000 * 2 * 8 * 128 * 2


def test_the_parallel_drafter_has_five_of_the_targets_layers():
    """5 of 32 layers, a fusion of five states, and the target's own head, which it reads but does not hold."""
    layer = (32 + 16) * 128 * 4096 + 4096 * 4096 + 3 * 4096 * 14336
    fusion = 5 * 4096 * 4096
    drafter = dflash.for_target(LLAMA, BF16)
    (one,) = drafter.plan(k=15.0, batch=1.0, context=0.0)
    assert sum(work.weight_bytes for work in one.works) == 2 * (5 * layer + fusion + 128_256 * 4096)
    assert drafter.memory_bytes(batch=1.0, context=0.0) == pytest.approx(2 * (5 * layer + fusion), rel=1e-4)
    body = 2 * 32 * layer
    streamed = sum(work.weight_bytes for work in forward_pass(LLAMA, Load(), BF16) if work.label != "lm head")
    assert streamed == body
    assert 2 * 5 * layer / body == 5 / 32


def test_the_block_is_k_and_its_anchor():
    """K + 1 positions go through DFlash's layers and K through DSpark's; the head runs over K rows of both."""
    for drafter, rows in ((dflash.for_target(LLAMA, BF16), 6.0), (dspark.for_target(LLAMA, BF16), 5.0)):
        works = drafter.plan(k=5.0, batch=1.0, context=100.0)[0].works
        assert {work.rows for work in works if work.label == "qkv projection"} == {rows}
        assert {work.rows for work in works if work.label == "lm head"} == {5.0}


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("medusa", *WEIGHTLESS)])
def test_refreshing_more_tokens_costs_a_little_more(name):
    """The tokens of the last round pass once through the first draft pass."""
    drafter = build(name)
    assert plan_bytes(drafter, 5.0, refresh=4.0) > plan_bytes(drafter, 5.0, refresh=1.0)
    assert plan_bytes(drafter, 5.0, refresh=4.0) < 1.01 * plan_bytes(drafter, 5.0, refresh=1.0)


# --- the other shapes by hand

H, V = 4096, 128_256
LAYER = (32 + 16) * 128 * H + H * H + 3 * H * 14336
HEAD = V * H


def weights_of(one):
    return sum(work.weight_bytes for work in one.works)


def test_eagle_reads_the_whole_head_and_its_fusion_in_every_step():
    """One layer, 2H x H and the target's 128,256-token head each time: 1.55 GB, of which a third is held."""
    drafter = eagle1.for_target(LLAMA, BF16)
    first, later = drafter.plan(k=4.0, batch=1.0, context=0.0)
    assert weights_of(first) == weights_of(later) == 2 * (LAYER + 2 * H * H + HEAD)
    assert later.repeats == 3.0
    assert drafter.own_params == LAYER + 2 * H * H + H + H  # fc with bias, one norm
    four, eight = (plan_bytes(drafter, k, context=0.0) for k in (4.0, 8.0))
    assert eight == pytest.approx(2 * four)


def test_parallel_eagle_moves_its_layers_once():
    """Four layers, the first twice as wide; the fusion over refreshed tokens, the rest over K - 1 more."""
    drafter = peagle.for_target(LLAMA, BF16)
    (one,) = drafter.plan(k=6.0, batch=2.0, context=100.0, refresh=3.0)
    wide = (32 + 16) * 128 * H
    assert weights_of(one) == 2 * (4 * LAYER + wide + 3 * H * H + 32_000 * H)
    rows = {work.label: work.rows for work in one.works}
    assert (rows["feature fusion"], rows["qkv projection"], rows["lm head"]) == (6.0, 16.0, 12.0)


def test_medusa_runs_every_head_whatever_k():
    """Five heads of H x H and H x V: the same at K = 1 and 5, and no cache."""
    drafter = medusa.for_target(LLAMA, BF16)
    one = plan_bytes(drafter, 1.0)
    assert plan_bytes(drafter, 5.0) == one
    (heads,) = drafter.plan(k=1.0, batch=1.0, context=0.0)
    assert heads.repeats * weights_of(heads) == 5 * 2 * (H * H + HEAD)
    assert drafter.memory_bytes(batch=9.0, context=1e5) == drafter.memory_bytes(batch=1.0, context=0.0)


def test_published_medusa_configs_name_too_few_heads():
    """The config says 2, the weights hold 5: the title says so."""
    two, three = (medusa.from_shape({"heads": n, "layers": 1}, LLAMA, BF16, "x") for n in (2, 3))
    assert "weights hold 5" in two.title
    assert "weights" not in three.title


def test_domino_adds_a_recurrent_unit_and_a_correction_to_dflash():
    """Three gates over embedding and state, then 256 wide to the vocabulary, K times."""
    drafter, plain = domino.for_target(LLAMA, BF16), dflash.for_target(LLAMA, BF16)
    block, steps = drafter.plan(k=5.0, batch=1.0, context=64.0)
    assert block == plain.plan(k=5.0, batch=1.0, context=64.0)[0]
    assert weights_of(steps) == 2 * (3 * 1024 * (H + 1024) + 256 * (H + 1024) + 256 * V)
    assert steps.repeats == 5.0


def mixture(modules):
    """A target of latent attention and experts, with modules of that kind."""
    latent = Mla(heads=16, q_lora_rank=768, kv_lora_rank=512, nope_dim=128, rope_dim=64, value_dim=128)
    block = Block(1, latent, Moe(experts=64, top_k=6, intermediate=1408, shared_intermediate=2816))
    own = Mtp(modules=modules, block=block, format="fp8")
    return replace(LLAMA, name="mixture", hidden=2048, blocks=(replace(block, count=4),), mtp=own)


def test_modules_of_a_target_are_layers_of_it():
    """One token reads router, shared and six experts; the projection and the head come on top; K times."""
    target = mixture(1)
    drafter = mtp.for_target(target, BF16)
    first, later = drafter.plan(k=3.0, batch=1.0, context=50.0)
    assert (first.repeats, later.repeats) == (1.0, 2.0)
    shared = 3 * 2048 * 2816 + 64 * 2048
    expert = 3 * 2048 * 1408
    attention = sum(linear.parameters for linear in target.blocks[0].mixer.linears(2048))
    once = attention + shared + 6 * expert + 2 * 2048 * 2048 + V * 2048
    assert weights_of(later) == pytest.approx(2 * once)
    assert drafter.own_params == round(target.mtp.parameters(2048))


def test_several_modules_take_turns():
    """Each fills its own cache once; K passes in all, whether fewer or more than the modules."""
    drafter = mtp.for_target(mixture(3), BF16)
    for k, first in ((2.0, 2.0), (3.0, 3.0), (7.0, 3.0)):
        passes = drafter.plan(k=k, batch=1.0, context=50.0, refresh=4.0)
        assert [one.repeats for one in passes] == [first, k - first]
    assert drafter.own_params == 3 * mtp.for_target(mixture(1), BF16).own_params
    grown = [
        d.memory_bytes(batch=1.0, context=1000.0) - d.memory_bytes(batch=1.0, context=0.0)
        for d in (drafter, mtp.for_target(mixture(1), BF16))
    ]
    assert grown[0] == 3 * grown[1] == pytest.approx(3 * 1000 * 576 * 2)
    assert "multiples of 3" in drafter.k_rule


def test_a_target_without_modules_says_so():
    with pytest.raises(
        ModelError, match=r"llama-3\.1-8b has no multi-token-prediction modules.*choose another"
    ):
        mtp.for_target(LLAMA, BF16)
    assert mtp.from_shape(
        {
            "hidden": H,
            "intermediate": 11008,
            "heads": 32,
            "kv_heads": 8,
            "head_dim": 128,
            "layers": 36,
            "modules": 1,
            "proposed_k": 3,
        },
        LLAMA,
        BF16,
        "x",
    ).k_rule.endswith("3")
    with pytest.raises(ModelError, match="has no multi-token"):
        mtp.from_shape({"hidden": H, "modules": 1, "experts": 8}, LLAMA, BF16, "x")
    assert mtp.from_shape({"hidden": 2048, "modules": 1, "experts": 64}, mixture(1), BF16, "x").own_params


def test_modules_keep_the_format_of_the_checkpoint():
    """fp8 modules of a bf16 target are read in fp8, with the target's cache; another format only if asked."""
    target = Target(mixture(1), BF16)
    assert make_drafter("mtp", target).precision.name == "fp8"
    assert make_drafter("mtp", target).precision.kv_bits == 16
    assert make_drafter("mtp", target, "bf16").precision.name == "bf16"
    plain = replace(
        target, precision=precision("w4a16"), llm=replace(target.llm, mtp=replace(target.llm.mtp, format=""))
    )
    assert make_drafter("mtp", plain).precision.name == "w4a16"
    assert make_drafter("eagle3", plain).precision.name == "bf16"


def works_of(drafter, label, k=2.0):
    """One step's works with a label."""
    plan = drafter.plan(k=k, batch=1.0, context=0.0)
    return next(w for one in plan for w in one.works if w.label == label)


SHARING = ["eagle", "dflash", "dspark", "domino"]
OWN = ["eagle3", "peagle", "medusa"]


@pytest.mark.parametrize("dtype", ["auto", "w4a16", "fp32"])
@pytest.mark.parametrize("name", SHARING)
def test_a_shared_head_is_read_in_the_format_of_the_target(name, dtype):
    """A q4_k_m file holds its head in q6_k, 210 bytes per 256: 0.431 GB, whatever the drafter's own format."""
    drafter = make_drafter(name, Target(LLAMA, precision("q4_k_m")), dtype)
    assert works_of(drafter, "lm head").weight_bytes == HEAD * 210 / 256 == pytest.approx(0.431e9, rel=1e-3)
    own, layers = {"auto": 2.0, "w4a16": 4.125 / 8, "fp32": 4.0}[dtype], 1 if name == "eagle" else 5
    assert works_of(drafter, "mlp down").weight_bytes == layers * 14336 * H * own
    # A row of the embedding (q4_k: 144 bytes per 256) and the activations it becomes.
    rows = works_of(drafter, "embedding")
    assert rows.activation_bytes == rows.rows * H * (144 / 256 + drafter.precision.bytes_per_activation)


@pytest.mark.parametrize("name", OWN)
def test_a_head_of_its_own_has_the_format_of_the_drafter(name):
    """Two bytes a weight of EAGLE-3's 32,000 tokens beside a 4-bit target, read and held; the embedding is shared."""
    target = Target(LLAMA, precision("q4_k_m"))
    drafter = make_drafter(name, target)
    vocab = V if name == "medusa" else 32_000
    assert works_of(drafter, "lm head").weight_bytes == 2 * vocab * H
    assert drafter.memory_bytes(batch=1.0, context=0.0) == pytest.approx(2 * drafter.own_params, rel=1e-12)
    quantised = make_drafter(name, target, "q8_0")
    assert works_of(quantised, "lm head").weight_bytes == vocab * H * 34 / 32


@pytest.mark.parametrize("dtype", ["auto", "bf16"])
def test_modules_read_a_quantised_head_of_their_target(dtype):
    """Qwen3.6-27B-NVFP4: bf16 modules, a head of 248,320 x 5,120 in 4.5 bits: 0.715 GB, not 2.543."""
    llm = find_llm("qwen3.5-27b")
    llm = replace(llm, mtp=replace(llm.mtp, format="bf16"))
    drafter = make_drafter("mtp", Target(llm, precision("nvfp4", classes={"head": "nvfp4"})), dtype)
    head = works_of(drafter, "lm head")
    assert head.weight_bytes == 248_320 * 5_120 * 4.5 / 8 == pytest.approx(0.715e9, rel=1e-3)
    assert head.dtype == "fp4"
    assert works_of(drafter, "feature fusion").weight_bytes == 2 * 2 * 5_120 * 5_120


def test_quantised_classes_of_a_target_are_not_those_of_its_drafter():
    """A bf16 target with a quantised feed-forward layer: the drafter's is in bf16."""
    drafter = make_drafter("eagle3", Target(LLAMA, precision("bf16", "fp8", {"mlp": "w4a16"})))
    assert drafter.precision.bytes_per("mlp") == 2.0
    assert drafter.precision.kv_bits == 8


GPT = find_llm("gpt-oss-120b")


@pytest.mark.parametrize(
    ("numbers", "experts"),
    [
        (precision("bf16", classes={"experts": "mxfp4"}), "fp4"),
        (precision("bf16", classes={"experts": "w4a16-mxfp4"}), "bf16"),
        (BF16, "bf16"),
        (precision("fp16"), "fp16"),
    ],
)
def test_a_small_model_keeps_the_formats_of_its_checkpoint(numbers, experts):
    """gpt-oss-20b: 24 layers x 32 experts of 3 x 2,880^2 in 4.25 bits, 1.8 B others in 16: 13.8 GB, not 41.8."""
    llm = replace(find_llm("gpt-oss-20b"), formats={"experts": "mxfp4"})
    drafter = _small_lm(llm, Target(GPT, numbers), "auto")
    weights = 24 * 32 * 3 * 2880**2
    held = weights * 4.25 / 8 + 2 * (drafter.own_params - weights)
    assert drafter.memory_bytes(batch=1.0, context=0.0) == pytest.approx(held, rel=1e-3)
    assert held == pytest.approx(13.8e9, rel=0.005)
    assert drafter.precision.of("experts").compute == experts
    assert drafter.precision.compute == numbers.compute
    named = make_drafter("small-lm:gpt-oss-20b", Target(GPT, numbers))
    assert named.memory_bytes(batch=1.0, context=0.0) == drafter.memory_bytes(batch=1.0, context=0.0)


def test_a_small_model_takes_another_format_only_if_asked_or_needed():
    """The format asked for; weights of 16 bits in the target's; its cache in the target's format."""
    target = Target(GPT, precision("bf16", "fp8"))
    assert make_drafter("small-lm:gpt-oss-20b", target, "bf16").memory_bytes(
        batch=1.0, context=0.0
    ) == pytest.approx(41.8e9, rel=0.002)
    assert make_drafter("small-lm:gpt-oss-20b", target).precision.kv_bits == 8
    plain = make_drafter("small-lm:llama-3.2-1b", Target(LLAMA, precision("fp32")))
    assert plain.precision == precision("fp32")
    quantised = make_drafter("small-lm:llama-3.2-1b", Target(LLAMA, precision("q4_k_m")))
    assert quantised.precision == BF16


def test_a_config_of_a_small_model_keeps_its_formats(tmp_path):
    """fp8 weights beside a target that computes in bf16: the same bytes, dequantised."""
    config = {
        "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 2048,
        "intermediate_size": 8192, "num_hidden_layers": 16, "num_attention_heads": 32,
        "num_key_value_heads": 8, "vocab_size": V, "torch_dtype": "bfloat16",
        "quantization_config": {"quant_method": "fp8"},
    }  # fmt: skip
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    assert make_drafter(str(path), Target(LLAMA, BF16)).precision.main.name == "w8a16"
    assert make_drafter(str(path), Target(LLAMA, precision("fp8"))).precision.main.name == "fp8"
    assert make_drafter(str(path), Target(LLAMA, BF16), "bf16").precision == BF16


SHAPE = {"hidden": H, "intermediate": 14336, "heads": 32, "kv_heads": 8, "head_dim": 128, "layers": 5}


def test_windowed_draft_layers_hold_and_read_less():
    """Four of five layers see 2,048 positions; their weights are the same."""
    full = dflash.from_shape(SHAPE | {"block_size": 16, "target_layers": 5}, LLAMA, BF16, "x")
    short = dflash.from_shape(
        SHAPE | {"block_size": 16, "target_layers": 5, "window": 2048, "window_layers": 4}, LLAMA, BF16, "x"
    )
    token = 2 * 8 * 128 * 2
    assert short.own_params == full.own_params
    assert full.memory_bytes(batch=1.0, context=1e5) - short.memory_bytes(
        batch=1.0, context=1e5
    ) == 4 * token * (1e5 - 2048)
    assert plan_s(short, H100, 8.0, context=1e5) < plan_s(full, H100, 8.0, context=1e5)


def test_only_the_first_layer_of_eagle_is_wide():
    """Twice as wide an input for the first, also where layers have windows or latent attention."""
    for extra, first in (
        ({}, None),
        ({"window": 64, "window_layers": 5}, 64),
        ({"window": 64, "window_layers": 2}, None),
    ):
        blocks = blocks_of(SHAPE | extra, wide_first=True)
        assert blocks[0].mixer.input_multiple == 2
        assert blocks[0].window == first
        assert sum(block.count for block in blocks) == 5
        assert sum(block.count for block in blocks if block.window) == extra.get("window_layers", 0)
        assert {block.mixer.input_multiple for block in blocks[1:]} == {1}


@pytest.mark.parametrize("rank", [None, 1536])
def test_latent_attention_of_eagle_reads_twice_the_width(rank):
    """Down-projections (and queries projected directly) take 2H; up-projections and output do not."""
    sizes = {"kv_lora_rank": 512, "nope_dim": 128, "rope_dim": 64, "value_dim": 128, "heads": 32}
    shape = {"hidden": H, "intermediate": 12288, "layers": 1, "draft_vocab": V} | sizes
    shape |= {} if rank is None else {"q_lora_rank": rank}
    drafter = eagle3.from_shape(shape, LLAMA, BF16, "x")
    queries = 32 * 192 * (2 * H) if rank is None else rank * (2 * H) + 32 * 192 * rank
    attention = queries + 576 * 2 * H + 32 * 256 * 512 + H * 32 * 128
    matrices = attention + 3 * H * 12288 + 3 * H * H + HEAD
    assert drafter.own_params == pytest.approx(matrices, rel=1e-4)
    assert weights_of(drafter.plan(k=1.0, batch=1.0, context=0.0)[0]) == 2 * matrices


def test_a_draft_vocabulary_of_a_block_drafter_has_a_head_of_its_own():
    shape = SHAPE | {"block_size": 16, "target_layers": 5, "vocab": V}
    whole, part = (
        dflash.from_shape(shape | extra, LLAMA, BF16, "x") for extra in ({}, {"draft_vocab": 32_000})
    )
    assert part.own_params - whole.own_params == 32_000 * H
    assert plan_bytes(part, 4.0) < plan_bytes(whole, 4.0)


# --- published sizes


def published():
    with PUBLISHED.open(encoding="utf-8") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def stand_in(row):
    """A target of the published drafter's width, layer and vocabulary."""
    head = replace(LLAMA.blocks[0].mixer, heads=int(row["heads"]), kv_heads=int(row["kv_heads"]))
    block = Block(32, head, Mlp(intermediate=int(row["intermediate"])))
    return replace(LLAMA, hidden=int(row["hidden"]), vocab=int(row["vocab"]), blocks=(block,))


@pytest.mark.parametrize("row", published(), ids=lambda row: row["case"])
def test_own_parameters_are_as_published(row):
    """Each source's number to its printed digits, or the tolerance that its note explains."""
    target = find_llm("deepseek-v3") if row["drafter"] == "mtp" else stand_in(row)
    found = (BUILDERS | CARRIED)[row["drafter"]](target, BF16).own_params
    assert found == pytest.approx(float(row["params"]), abs=float(row["tolerance"]))


def test_the_module_of_deepseek_v3_is_as_published_without_its_projection():
    """11.5 B unique and 2.4 B active parameters are its layer's; 2H x H (0.10 B) comes on top of both."""
    target = find_llm("deepseek-v3")
    drafter = mtp.for_target(target, BF16)
    projection, table = 2 * 7168 * 7168, 7168 * 129_280
    assert round((drafter.own_params - projection) / 1e9, 1) == 11.5
    moe = drafter.modules.block.ffn
    idle = (moe.experts - moe.top_k) * moe.expert_parameters(7168)
    assert round((drafter.own_params - projection - idle + 2 * table) / 1e9, 1) == 2.4
    assert round(table / 1e9, 1) == 0.9


def test_a_draft_layer_costs_what_dflash_measured():
    """DFlash Table 6 (H200): 0.031-0.032 plain steps per draft layer of a 36-layer target, at batch 1.

    The roofline's 0.026 is the share of a layer in a step that also reads an LM head of two and a half
    layers; the measured 1.1-1.2 x 1/36 is above it by kernels and launches.
    """
    target = find_llm("qwen3-8b")
    machine = Machine("h200", 4.8e12, {"bf16": 989e12}, 450e9)
    step = works_time_s(forward_pass(target, Load(1.0, 1024.0, 1.0), BF16), machine)
    times = []
    for layers in (3, 5, 8):
        llm = replace(dflash.for_target(target, BF16).llm, blocks=dflash.backbone_llm(target, layers).blocks)
        drafter = replace(dflash.for_target(target, BF16), llm=llm)
        times.append(plan_s(drafter, machine, 15.0, context=1024.0) / step)
    per_layer = (times[2] - times[0]) / 5
    assert per_layer == pytest.approx((times[1] - times[0]) / 2)
    assert 0.75 * 0.0315 < per_layer < 0.0315
    assert per_layer * 36 == pytest.approx(1.0, abs=0.1)


# --- what engines are told, and what the command line shows


@pytest.mark.parametrize(
    ("name", "engine", "parts"),
    [
        ("eagle", "vllm", ['"method":"eagle"', '"num_speculative_tokens":5']),
        ("eagle", "sglang", ["EAGLE ", "--speculative-num-steps 5", "--speculative-num-draft-tokens 6"]),
        ("peagle", "vllm", ['"method":"eagle3"', '"parallel_drafting":true', '"num_speculative_tokens":5']),
        ("mtp", "vllm", ['"method":"mtp","num_speculative_tokens":5']),
        ("mtp", "sglang", ["NEXTN --speculative-num-steps 5", "--speculative-num-draft-tokens 6"]),
        ("mtp", "tensorrt-llm", ["decoding_type: MTP, num_nextn_predict_layers: 5}"]),
        ("mtp", "llama.cpp", ["--spec-type draft-mtp --spec-draft-n-max 5"]),
    ],
)
def test_flags_of_the_newer_drafters(name, engine, parts):
    """Each engine's own counting; weights in the target's checkpoint need no path."""
    text = flags(name, 5)[engine]
    assert all(part in text for part in parts)
    assert ("DRAFT_MODEL" in text) == (name != "mtp")


def test_no_engine_is_told_to_run_what_it_cannot():
    assert flags("medusa", 3) == flags("domino", 3) == {}
    assert set(flags("eagle", 3)) == {"vllm", "sglang"}
    assert set(flags("peagle", 3)) == {"vllm"}


def shown(*arguments):
    result = CliRunner().invoke(cli, ["drafters", *arguments])
    assert result.exit_code == 0, result.output
    return result.output


def test_drafters_are_listed_with_what_they_cost():
    """Own parameters, bytes of a round at K (no more than a block drafts), and a reason where one cannot be."""
    rows = {row["name"]: row for row in json.loads(shown("list", "--k", "8", "--json"))}
    assert set(rows) == {*NAMES}
    assert rows["eagle3"]["own_params"] == pytest.approx(0.425e9, rel=0.001)
    assert (rows["medusa"]["k"], rows["dspark"]["k"], rows["eagle"]["k"]) == (5, 7, 8)
    assert rows["eagle"]["bytes_per_round"] == pytest.approx(8 * 2 * (LAYER + 2 * H * H + HEAD), rel=0.01)
    assert "has no multi-token-prediction modules" in rows["mtp"]["reason"]
    assert all(row["reason"] is None for name, row in rows.items() if name != "mtp")
    assert "mtp: llama-3.1-8b has no" in " ".join(shown("list").split())
    assert "11.610 B" in shown("show", "mtp", "--model", "deepseek-v3")


@pytest.mark.parametrize(
    "model", ["deepseek-v3", "falcon-40b", "gemma-3-27b", "gpt-oss-120b", "nemotron-3-nano-30b-a3b", "qwen2.5-7b",
              "qwen3.5-27b", "t5-v1.1-xxl"]
)  # fmt: skip
def test_drafters_are_listed_for_any_preset(model):
    """A small model of the same vocabulary, or the reason why there is none."""
    rows = {row["name"]: row for row in json.loads(shown("list", "--model", model, "--json"))}
    assert set(rows) == {*NAMES}
    assert all(row["target"] == model for row in rows.values())
    small = rows["small-lm"]
    assert (small["reason"] is None) == (small["own_params"] is not None)


def test_the_small_model_of_the_list_shares_the_tokenizer():
    """Qwen's for Qwen, Llama's for Llama; none for GPT-2, and the list says so."""
    for model, small in (("qwen2.5-7b", "qwen3-0.6b"), ("llama-3.1-70b", "llama-3.2-1b")):
        assert f"{small}, " in json.loads(shown("list", "--model", model, "--json"))[0]["title"]
    assert "small-lm: no smaller preset has the 50257 tokens of gpt2-large" in " ".join(
        shown("list", "--model", "gpt2-large").split()
    )


def test_drafters_are_shown_for_the_checkpoint_of_the_target():
    """DeepSeek-V3's modules are in fp8: one byte a weight and one scale of 4 bytes per 128 x 128."""
    row = json.loads(shown("show", "mtp", "--model", "deepseek-v3", "--json"))
    assert row["memory_bytes"] == pytest.approx(row["own_params"] * (1 + 4 / 128**2), rel=1e-3)
    assert json.loads(shown("show", "small-lm:gpt-oss-20b", "--model", "gpt-oss-120b", "--json"))[
        "memory_bytes"
    ] == pytest.approx(13.8e9, rel=0.005)


def test_a_config_is_checked_with_its_k(tmp_path):
    path = tmp_path / "config.json"
    path.write_text('{"medusa_num_heads": 2, "medusa_num_layers": 1}', encoding="utf-8")
    assert "medusa, heads 2, layers 1; K up to 2 (count the heads in the weights" in shown("check", str(path))
