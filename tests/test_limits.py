"""Where speculation stops paying, what would help, and K by batch: against plain searches and hand values."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooflinekit.acceptance import Constant, Mixture, expected_tokens
from rooflinekit.advice import changes
from rooflinekit.app import outlook, recommend
from rooflinekit.curve import Case, CurvePoint, curve_of, rounds_by_k
from rooflinekit.drafters import dflash, eagle3, layer_skip, medusa, mtp, ngram, suffix
from rooflinekit.errors import CapacityError
from rooflinekit.limits import (
    batches_that_pay,
    best_k_table,
    break_even_alpha,
    contexts_that_pay,
    idle_drafter,
    largest_draft_cost,
    limits_of,
    paying,
    schedule,
)
from rooflinekit.load import Load
from rooflinekit.precision import precision
from rooflinekit.profiles.library import find_hardware
from rooflinekit.prospect import outlook_of
from rooflinekit.readers.models import find_llm
from rooflinekit.resolve import setup
from rooflinekit.speculation import Drafting, Round, eta
from rooflinekit.target import Target
from rooflinekit.work import Machine

BF16 = precision("bf16")
LLAMA = Target(find_llm("llama-3.1-8b"), BF16)
EXPERTS = Target(find_llm("qwen3-30b-a3b"), BF16)
H100 = Machine("h", 3.35e12, {"bf16": 989e12}, 450e9)
DEVICE = find_hardware("h100-sxm")


def case(target=LLAMA, alpha=0.7, machine=H100, drafting=Drafting()):  # noqa: B008 - frozen
    return Case(machine, target, eagle3.for_target(target.llm, BF16), Constant(alpha), drafting)


def speedup(one, batch=1.0, context=4096.0, k=4.0):
    return float(one.rounds(batch=batch, context=context, k=k).speedup)


def leviathan(c):
    """A point of the paper's own model: verify at the price of a plain step of one second."""
    return Drafting(cost=c)


@given(st.floats(0.05, 0.95), st.integers(1, 12), st.floats(0.0, 0.5))
def test_break_even_of_the_closed_formula(alpha, k, c):
    """Where eta is 1: at the rate returned, whatever K and c; and at the largest c."""
    point = CurvePoint(
        k=k,
        acceptance_length=float(expected_tokens(alpha, k)),
        draft_s=k * c,
        verify_s=1.0,
        host_s=0.0,
        decode_s=1.0,
        round_cost=1.0 + k * c,
        speedup=float(eta(alpha, k, c)),
    )
    rate = break_even_alpha(point)
    if 1.0 + k * c > k + 1.0:
        assert rate is None
    else:
        assert eta(rate, k, c) == pytest.approx(1.0, rel=1e-6)
    largest = largest_draft_cost(point)
    assert eta(alpha, k, largest) == pytest.approx(1.0, rel=1e-9)


def test_a_round_dearer_than_k_plus_1_cannot_pay():
    """omlx issue 2077: the verify of two tokens takes 2.196 plain steps, K = 1 emits at most 2."""
    point = CurvePoint(
        k=1,
        acceptance_length=1.86,
        draft_s=0.0,
        verify_s=0.112,
        host_s=0.0,
        decode_s=0.051,
        round_cost=2.196,
        speedup=0.85,
    )
    assert break_even_alpha(point) is None
    assert largest_draft_cost(point) is None


@pytest.mark.parametrize(
    ("speedups", "found"),
    [
        ([0.9, 0.9, 0.9], ()),
        ([1.1, 1.2, 1.3], ((1.0, 3.0),)),
        ([1.1, 0.9, 1.3], ((1.0, 1.0), (3.0, 3.0))),
        ([1.0, 1.1, 1.0], ((2.0, 2.0),)),
    ],
)
def test_ranges_that_pay(speedups, found):
    assert paying(np.array([1.0, 2.0, 3.0]), np.array(speedups)) == found


@pytest.mark.parametrize(("target", "alpha"), [(LLAMA, 0.35), (EXPERTS, 0.45), (EXPERTS, 0.6)])
def test_ends_of_batch_ranges_are_exact(target, alpha):
    """The whole batch beyond an end does not pay, the end does; between coarse points nothing is missed at the ends."""
    one = case(target, alpha)
    ranges = batches_that_pay(one, 1000.0, 8, 1024.0)
    assert ranges

    def best(batch):
        return max(speedup(one, batch, 1000.0, float(k)) for k in range(1, 9))

    for low, high in ranges:
        assert best(low) > 1.0
        assert best(high) > 1.0
        assert low == 1.0 or best(low - 1.0) <= 1.0
        assert high == 1024.0 or best(high + 1.0) <= 1.0


def test_long_contexts_bring_speculation_back():
    """MagicDec (2408.11049): at a batch where short contexts lose, long ones pay, since the cache is read once."""
    one = case(LLAMA, 0.35, drafting=Drafting(cost=0.05))
    ranges = contexts_that_pay(one, 512.0, 4, 131072.0)
    assert len(ranges) == 1
    low, high = ranges[0]
    assert low > 0
    assert high == 131072.0
    assert max(speedup(one, 512.0, low, float(k)) for k in range(1, 5)) > 1.0
    assert max(speedup(one, 512.0, 0.95 * low, float(k)) for k in range(1, 5)) <= 1.0


def test_limits_agree_with_the_curve():
    one, load = case(alpha=0.5), Load(1.0, 4096.0)
    curve = curve_of(rounds_by_k(one, load, 16))
    best = max(curve, key=lambda point: point.speedup)
    found = limits_of(one, DEVICE, load, curve, best.k)
    assert found.break_even_acceptance_length == best.round_cost
    assert found.largest_useful_k == max(point.k for point in curve if point.speedup > 1.0)
    given = replace(one, drafting=Drafting(cost=found.largest_draft_cost))
    assert speedup(given, k=float(best.k)) == pytest.approx(1.0, rel=1e-9)
    rate = replace(one, acceptance=Constant(found.break_even_alpha))
    # The refresh of the drafter's cache follows the acceptance, hence not to rounding.
    assert speedup(rate, k=float(best.k)) == pytest.approx(1.0, rel=1e-3)
    # 85 GB less 16 GB of weights and 1 GB of drafter, over 0.537 + 0.017 GB a sequence.
    assert found.batch_fits == pytest.approx(122, abs=4)


@given(st.floats(0.2, 0.95), st.sampled_from([LLAMA, EXPERTS]), st.integers(1, 10))
def test_a_schedule_covers_every_batch_within_two_percent(alpha, target, max_k):
    """Stretches follow one another, and each K is within 2 % of the best at every batch of its stretch."""
    one = case(target, alpha)
    found = schedule(one, 1000.0, max_k, 96)
    assert found[0].first == 1
    assert found[-1].last == 96
    assert all(after.first == before.last + 1 for before, after in pairwise(found))
    assert all(before.k != after.k for before, after in pairwise(found))
    for part in found:
        for batch in {part.first, part.last, (part.first + part.last) // 2}:
            best = max(speedup(one, float(batch), 1000.0, float(k)) for k in range(1, max_k + 1))
            if part.k:
                assert speedup(one, float(batch), 1000.0, float(part.k)) >= 0.98 * best - 1e-12
            else:
                assert best <= 1.01


def test_best_k_over_batch_and_context_is_a_plain_search():
    one = case(EXPERTS, 0.5)
    batch, context = np.array([1.0, 7.0, 64.0]), np.array([100.0, 30000.0])
    k, gain = best_k_table(one, batch, context, 6)
    for i, b in enumerate(batch):
        for j, s in enumerate(context):
            tried = [speedup(one, b, s, float(n)) for n in range(1, 7)]
            assert gain[i, j] == pytest.approx(max(tried))
            assert k[i, j] == (int(np.argmax(tried)) + 1 if max(tried) > 1.0 else 0)


def test_an_idle_drafter_costs_what_was_measured():
    """vLLM issue 49548: 8.0 and 5.0 % of a step for an MTP module of a 27B FP8 model on 2 RTX 5090, batch 8.

    The same family of drafter on other shapes: one module of a few dozen layers, so a few per cent.
    """
    ready = setup("deepseek-v3", "h200-sxm", tp=8, calibration="datasheet")
    drafter = mtp.for_target(ready.target.llm, ready.target.precision)
    share = idle_drafter(Case(ready.machine, ready.target, drafter, Constant(0.8)), Load(8.0, 4096.0))
    assert 0.01 < share < 0.1


# --- what would help


def test_fewer_tokens_are_advised_where_k_is_too_large():
    one, load = case(alpha=0.3), Load(1.0, 4096.0)
    curve = curve_of(rounds_by_k(one, load, 12))
    found = changes(one, load, curve[11], 0.0, max_k=12)
    assert found[0].what.startswith("fewer drafted tokens: K = ")
    best = max(point.speedup for point in curve)
    assert found[0].speedup == pytest.approx(best)
    assert found[0].gain == pytest.approx(best / curve[11].speedup - 1.0)


def test_a_batch_is_advised_to_a_mixture_of_experts():
    """At one request every row of the verify fetches its own experts; a batch shares them."""
    one, load = case(EXPERTS, 0.6), Load(1.0, 1000.0)
    found = outlook_of(one, DEVICE, load)
    assert found.changes[0].what.startswith("a larger batch")
    assert found.changes[0].gain > 0.2
    named = float(found.changes[0].what.rpartition(" ")[2])
    assert named <= found.limits.batch_fits
    assert speedup(one, named, 1000.0, float(found.changes[0].k)) == pytest.approx(found.changes[0].speedup)


def test_a_lighter_drafter_is_advised_where_drafting_eats_the_gain():
    """A block of the same acceptance beats a chain whose step costs half a plain step."""
    one, load = case(alpha=0.8, drafting=Drafting(cost=0.5)), Load(1.0, 4096.0)
    other = replace(one, drafting=Drafting()).drafter
    block = dflash.for_target(LLAMA.llm, BF16)
    curve = curve_of(rounds_by_k(one, load, 8))
    best = max(curve, key=lambda point: point.speedup)
    free = replace(one, drafting=Drafting())
    found = changes(free, load, best, 0.0, max_k=8, drafters=[("a block", block), ("the same", other)])
    assert {one.what for one in found} >= {"a block", "the same"}
    assert all(one.condition for one in found if one.what in ("a block", "the same"))


def test_nothing_is_advised_where_nothing_gains():
    one, load = case(alpha=0.7), Load(1.0, 4096.0)
    curve = curve_of(rounds_by_k(one, load, 8))
    best = max(curve, key=lambda point: point.speedup)
    assert changes(one, load, best, 1.0, max_k=8) == ()


@given(st.floats(0.0, 1.0), st.floats(0.1, 4.0), st.floats(1.0, 8.0))
def test_the_largest_draft_cost_under_overlap_breaks_even(overlap, verify, length):
    """Drafting of that cost, put back into a round with the same overlap, gives a speedup of 1."""
    point = CurvePoint(
        k=4,
        acceptance_length=length,
        draft_s=0.1,
        verify_s=verify,
        host_s=0.0,
        decode_s=1.0,
        round_cost=1.0,
        speedup=1.0,
    )
    largest = largest_draft_cost(point, overlap)
    if largest is None:
        assert length <= verify
    else:
        assert Round(4.0, length, 4.0 * largest, verify, 1.0, overlap=overlap).speedup == pytest.approx(1.0)
        free = Round(4.0, length, 0.0, verify, 1.0, overlap=overlap)
        assert free.speedup >= 1.0 - 1e-12


def test_limits_know_the_overlap():
    one, load = case(alpha=0.6, drafting=Drafting(overlap=1.0)), Load(64.0, 4096.0)
    curve = curve_of(rounds_by_k(one, load, 8))
    best = max(curve, key=lambda point: point.speedup)
    found = limits_of(one, DEVICE, load, curve, best.k)
    given = replace(one, drafting=Drafting(cost=found.largest_draft_cost, overlap=1.0))
    assert speedup(given, batch=64.0, k=float(best.k)) == pytest.approx(1.0, rel=1e-9)


@pytest.mark.parametrize("builder", [medusa, layer_skip, ngram, suffix])
def test_a_drafter_without_a_cache_is_idle_for_nothing(builder):
    """Heads, the target's own layers and lookups have nothing to keep up while K is 0."""
    one = replace(case(), drafter=builder.for_target(LLAMA.llm, BF16))
    assert idle_drafter(one, Load(8.0, 4096.0)) == 0.0
    assert idle_drafter(case(), Load(8.0, 4096.0)) > 0.0


def test_a_schedule_of_a_huge_batch_is_quick_and_whole():
    """Beyond 1,024 sequences a grid is looked at; stretches still cover every batch once."""
    found = schedule(case(alpha=0.5), 100.0, 4, 1_000_000)
    assert (found[0].first, found[-1].last) == (1, 1_000_000)
    assert all(after.first == before.last + 1 for before, after in pairwise(found))
    small = schedule(case(alpha=0.5), 100.0, 4, 1024)
    assert [part for part in found if part.last < 1024] == list(small[:-1])


def test_a_given_time_of_drafting_is_that_of_its_drafter_alone():
    """With c given, a lighter version has no known cost; another drafter is predicted, and that is said."""
    one, load = case(alpha=0.8, drafting=Drafting(cost=0.5)), Load(1.0, 4096.0)
    block = dflash.for_target(LLAMA.llm, BF16)
    curve = curve_of(rounds_by_k(one, load, 8))
    best = max(curve, key=lambda point: point.speedup)
    found = changes(
        one, load, best, 0.0, max_k=8, variants=[("lighter", one.drafter)], drafters=[("a block", block)]
    )
    assert [change.what for change in found] == ["a block"]
    assert "as predicted" in found[0].condition
    alone = replace(one, drafter=block, drafting=Drafting())
    assert found[0].speedup == pytest.approx(speedup(alone, k=float(found[0].k)))


def test_confidence_gains_over_one_k_on_the_same_sequences():
    """Choosing lengths one by one includes one length for all: never a loss, also with a given time of drafting."""
    mixture = Mixture((0.3, 0.7), (Constant(0.9), Constant(0.2)))
    for drafting in (Drafting(), Drafting(cost=0.3, overlap=1.0), Drafting(cost=0.0)):
        one = replace(case(drafting=drafting), acceptance=mixture)
        for batch in (3.0, 8.0, 200.0):
            found = outlook_of(one, DEVICE, Load(batch, 500.0), max_k=6).by_confidence
            assert found.gain >= -1e-12
            assert len(found.lengths) == batch


def test_confidence_pays_for_the_drafting_that_was_given():
    """Free drafts are made longer than dear ones."""
    mixture, load = Mixture((0.3, 0.7), (Constant(0.9), Constant(0.2))), Load(200.0, 500.0)
    free, dear = (
        outlook_of(replace(case(drafting=Drafting(cost=c)), acceptance=mixture), DEVICE, load, max_k=6)
        for c in (0.0, 0.3)
    )
    assert free.by_confidence.k > dear.by_confidence.k


def test_a_drafter_that_does_not_fit_is_no_advice():
    """8B in 16 bits on 25.8 GB: 15 sequences fit beside EAGLE-3 (0.85 GB), 11 beside DFlash (2.35 GB)."""
    device, block = find_hardware("rtx-4090"), dflash.for_target(LLAMA.llm, BF16)
    machine = Machine("r", 1.008e12, {"bf16": 165e12})
    for batch, named in ((8.0, True), (15.0, False)):
        found = outlook_of(case(machine=machine), device, Load(batch, 4096.0), drafters=[("a block", block)])
        assert found.limits.batch_fits >= batch
        assert any(change.what == "a block" for change in found.changes) == named


@pytest.mark.parametrize(
    ("model", "drafter", "tp"),
    [("llama-3.1-8b", "eagle3", 1), ("qwen3.5-27b", "mtp", 1), ("deepseek-v3", "mtp", 8)],
)
@pytest.mark.parametrize("context", [100, 4096])
def test_the_batch_that_fits_is_the_last_that_recommend_takes(model, drafter, tp, context):
    """Hybrids hold a state for each row that waits for the verdict: far fewer sequences than their caches allow."""
    device = "h200-sxm" if tp > 1 else "h100-sxm"
    options = {"alpha": 0.7, "context": context, "tp": tp}
    room = outlook(model, device, drafter, **options).limits.batch_fits
    assert recommend(model, device, drafter, batch=room, **options).fits
    with pytest.raises(CapacityError):
        recommend(model, device, drafter, batch=room + 1, **options)
