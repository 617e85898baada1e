"""The contract of every drafter, found by name: a finite plan that grows, broadcasts and takes memory."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooflinekit.drafters import BUILDERS, SHAPE_BUILDERS, dflash, dspark, eagle3
from rooflinekit.drafters.small_lm import SmallLm
from rooflinekit.engines import flags
from rooflinekit.memory import resident_weight_bytes
from rooflinekit.precision import precision
from rooflinekit.readers.models import find_llm, model_names
from rooflinekit.transformer import Load, forward_pass
from rooflinekit.work import Machine, plan_time_s, works_time_s
from tests.strategies import llms, log_floats, machines, small_llm

BF16 = precision("bf16")
NAMES = [*BUILDERS, "small-lm"]
SERIAL = ["eagle3", "small-lm"]
BLOCK = ["dflash", "dspark"]
LLAMA = find_llm("llama-3.1-8b")
H100 = Machine("h", 3.35e12, {"bf16": 989e12}, 450e9)


def build(name, target=LLAMA):
    return SmallLm(small_llm(), BF16) if name == "small-lm" else BUILDERS[name](target, BF16)


def plan_s(drafter, machine, k, **options):
    return plan_time_s(drafter.plan(k=k, **({"batch": 1.0, "context": 4096.0} | options)), machine)


def plan_bytes(drafter, k, **options):
    plan = drafter.plan(k=k, **({"batch": 1.0, "context": 4096.0} | options))
    return sum(one.repeats * sum(work.bytes for work in one.works) for one in plan)


def test_every_drafter_is_serial_or_in_blocks():
    """A new drafter must be sorted into one of the two families tested here."""
    assert sorted(NAMES) == sorted(SERIAL + BLOCK)
    assert set(SHAPE_BUILDERS) == set(BUILDERS)


@pytest.mark.parametrize("name", NAMES)
@given(
    llm=llms(),
    machine=machines(),
    batch=st.integers(1, 256),
    context=st.integers(0, 10**6),
    k=st.integers(1, 15),
)
def test_a_plan_is_finite_and_costs_something(name, llm, machine, batch, context, k):
    """Any target shape, machine and load: works without nan, a positive time, memory above zero."""
    drafter = build(name, llm)
    load = {"batch": float(batch), "context": float(context)}
    found = plan_s(drafter, machine, float(k), refresh=2.5, **load)
    assert math.isfinite(found)
    assert found > 0
    assert math.isfinite(drafter.memory_bytes(**load))
    assert drafter.memory_bytes(**load) > 0


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


@pytest.mark.parametrize("name", SERIAL)
def test_serial_drafters_cost_in_proportion_to_k(name):
    """Each token after the first is one more pass of one row: equal steps, no bend."""
    drafter = build(name)
    times = [plan_s(drafter, H100, float(k)) for k in range(1, 17)]
    steps = np.diff(times)
    assert steps == pytest.approx(steps[0], rel=1e-9)
    assert times[15] / times[0] == pytest.approx(16, rel=0.05 if name == "small-lm" else 0.2)


@pytest.mark.parametrize("name", BLOCK)
def test_block_drafters_hardly_notice_k(name):
    """One pass whatever K: from 1 to the trained block the cost grows by less than a tenth at batch 1."""
    drafter = build(name)
    assert drafter.max_k is not None
    rise = plan_s(drafter, H100, float(drafter.max_k)) / plan_s(drafter, H100, 1.0)
    assert 1.0 <= rise < {"dflash": 1.02, "dspark": 1.25}[name]


@pytest.mark.parametrize(
    ("name", "max_k"), [("eagle3", None), ("small-lm", None), ("dflash", 15), ("dspark", 7)]
)
def test_the_trained_block_limits_k(name, max_k):
    """A DFlash block of 16 holds an anchor and 15 drafts; a DSpark block of 7 drafts 7."""
    assert build(name).max_k == max_k


@pytest.mark.parametrize("name", NAMES)
def test_a_drafter_says_what_it_is(name):
    """Its name is the word of the command line, its title one line, and some engine runs it."""
    drafter = build(name)
    assert drafter.name == name
    assert drafter.title
    assert "\n" not in drafter.title
    assert drafter.serial_passes
    assert drafter.precision == BF16
    assert flags(name, 3)


@pytest.mark.parametrize("name", BUILDERS)
@pytest.mark.parametrize("target", model_names())
def test_every_preset_can_be_drafted_for(name, target):
    """A drafter takes its shape from any shipped target: windows, latent attention and mixtures included."""
    drafter = build(name, find_llm(target))
    assert plan_s(drafter, H100, 3.0) > 0
    assert target in drafter.title


@pytest.mark.parametrize("name", NAMES)
def test_ranks_share_the_work_of_drafting(name):
    """On two ranks a drafter moves fewer weights and holds less, and pays for collectives."""
    drafter = build(name)
    one, two = (drafter.plan(k=3.0, batch=1.0, context=4096.0, tp=tp) for tp in (1, 2))
    weights = [sum(p.repeats * sum(w.weight_bytes for w in p.works) for p in plan) for plan in (one, two)]
    assert 0.49 * weights[0] <= weights[1] < 0.85 * weights[0]
    assert any(work.kind == "collective" for p in two for work in p.works)
    assert drafter.memory_bytes(batch=1.0, context=4096.0, tp=2) < drafter.memory_bytes(
        batch=1.0, context=4096.0
    )


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


@pytest.mark.parametrize("name", NAMES)
def test_refreshing_more_tokens_costs_a_little_more(name):
    """The tokens of the last round pass once through the first draft pass."""
    drafter = build(name)
    assert plan_bytes(drafter, 5.0, refresh=4.0) > plan_bytes(drafter, 5.0, refresh=1.0)
    assert plan_bytes(drafter, 5.0, refresh=4.0) < 1.01 * plan_bytes(drafter, 5.0, refresh=1.0)
