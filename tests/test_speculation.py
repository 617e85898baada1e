"""What a round costs and buys: published formulas as special cases, limits, and arrays."""

import csv
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooflinekit.acceptance import Constant, Survival, expected_tokens
from rooflinekit.drafters import BUILDERS, WEIGHTLESS, dflash, dspark, eagle3
from rooflinekit.drafters.base import OnDevice
from rooflinekit.drafters.dspark import DSpark
from rooflinekit.drafters.small_lm import SmallLm
from rooflinekit.precision import precision
from rooflinekit.readers.models import find_llm
from rooflinekit.speculation import Round, eta, s_up, speculate
from rooflinekit.target import Target
from rooflinekit.transformer import Load, forward_pass
from rooflinekit.work import Machine, Pass, plan_time_s, works_time_s
from tests.strategies import drafters_for, llms, log_floats, machines, small_llm

TABLES = Path(__file__).parent / "reference" / "leviathan.csv"
with TABLES.open(encoding="utf-8") as _file:
    LEVIATHAN = list(csv.DictReader(line for line in _file if not line.startswith("#")))

BF16 = precision("bf16")
H100 = Machine("h", 3.35e12, {"bf16": 989e12}, 450e9)
LLAMA = Target(find_llm("llama-3.1-8b"), BF16)

alphas = st.floats(0.0, 1.0)
counts = st.integers(1, 32)
costs = st.floats(0.0, 2.0)


# --- published formulas


@given(alphas, counts, costs, log_floats(1e-6, 1.0))
def test_the_speedup_reduces_to_leviathan(alpha, k, c, step):
    """With a verify as cheap as a plain step, no host time and K serial drafts of cost c."""
    one = Round(k, expected_tokens(alpha, k), draft_s=k * c * step, verify_s=step, decode_s=step)
    assert one.speedup == pytest.approx(eta(alpha, k, c))
    assert one.draft_cost == pytest.approx(c)
    assert one.verify_ratio == pytest.approx(1.0)


@given(alphas, counts, costs, log_floats(1e-6, 1.0))
def test_s_up_is_leviathan(alpha, k, c, step):
    """(E[N_acc] + 1) tau_p / (K tau_q + tau_p) with c = tau_q / tau_p and E[N_acc] the sum of the powers."""
    accepted = sum(alpha**i for i in range(1, k + 1))
    assert s_up(accepted, k, c * step, step) == pytest.approx(eta(alpha, k, c))


@pytest.mark.parametrize("row", LEVIATHAN, ids=lambda row: f"table {row['table']} {row['case']}")
def test_leviathan_as_printed(row):
    """Expected improvement to the printed digits: exact in Table 1, from two-digit inputs in Table 4."""
    alpha, gamma, c = float(row["alpha"]), int(row["gamma"]), float(row["c"])
    found, printed = eta(alpha, gamma, c), float(row["expected"])
    if row["table"] == "4":
        assert found == pytest.approx(printed, rel=0.04)
    else:
        assert found == pytest.approx(printed, abs=0.0051)
    if row["operations"]:
        # Table 1: operations grow by (1 - alpha) (gamma + 1) / (1 - alpha^(gamma + 1)) at c = 0.
        assert (gamma + 1) / found == pytest.approx(float(row["operations"]), abs=0.0051)


@pytest.mark.parametrize(("k", "value"), [(4, 2.801), (2, 2.44 / 1.1)])
def test_hand_values_of_eta(k, value):
    """alpha 0.8, c 0.05."""
    assert eta(0.8, k, 0.05) == pytest.approx(value, abs=5e-4)


def test_everything_accepted_for_nothing_gives_k_plus_one():
    """The ideal that the loss account starts from."""
    assert eta(1.0, 7, 0.0) == 8.0
    assert eta(0.0, 7, 0.0) == 1.0


# --- break-even and host


@given(log_floats(1e-6, 1.0), log_floats(1e-6, 1.0), log_floats(1e-6, 1.0), costs, costs, counts)
def test_the_round_cost_is_the_break_even_length(draft, verify, decode, host, decode_host, k):
    """A round that emits rho tokens is exactly as fast as plain decoding; one more token pays, one less loses."""
    one = Round(k, 1.0, draft, verify, decode, host, decode_host)
    assert replace(one, acceptance_length=one.round_cost).speedup == pytest.approx(1.0)
    assert replace(one, acceptance_length=one.round_cost * 1.01).speedup > 1.0
    assert replace(one, acceptance_length=one.round_cost * 0.99).speedup < 1.0
    assert one.round_cost == pytest.approx((draft + verify + host) / (decode + decode_host))


@given(st.floats(1e-5, 1e-2), st.floats(0.0, 1e-2))
def test_host_time_of_a_step_helps_speculation(device, host):
    """A fixed host time per step, paid once a round: the round cost falls towards 1."""
    bare, slow = (
        Round(3, 2.5, 0.1 * device, 1.2 * device, device),
        Round(3, 2.5, 0.1 * device, 1.2 * device, device, host, host),
    )
    assert 1.0 <= slow.round_cost <= bare.round_cost * (1 + 1e-12)


def test_host_times_are_counted_per_step_and_per_row():
    """A round pays one step and a token's share for each of its K + 1 rows of every sequence."""
    machine = replace(H100, step_host_s=1e-3, token_host_s=1e-5)
    one = speculate(
        machine, LLAMA, eagle3.for_target(LLAMA.llm, BF16), Constant(0.8), batch=4.0, context=100.0, k=3.0
    )
    assert one.host_s == pytest.approx(1e-3 + 4 * 4 * 1e-5)
    assert one.decode_host_s == pytest.approx(1e-3 + 4 * 1e-5)


# --- the model against its parts


@given(
    st.data(),
    llms(),
    machines(stairs=False),
    st.integers(1, 64),
    st.integers(0, 50_000),
    st.integers(1, 15),
    alphas,
)
def test_a_round_is_made_of_draft_verify_and_plain_step(data, llm, machine, batch, context, k, alpha):
    """Draft = the plan's passes; verify = K + 1 rows; decode = one row; all on the same machine."""
    target, drafter = Target(llm, BF16), data.draw(drafters_for(llm))
    one = speculate(
        machine, target, drafter, Constant(alpha), batch=float(batch), context=float(context), k=float(k)
    )
    verify, decode = (
        works_time_s(forward_pass(llm, Load(float(batch), float(context), w), BF16), machine)
        for w in (k + 1.0, 1.0)
    )
    assert one.verify_s == pytest.approx(verify)
    assert one.decode_s == pytest.approx(decode)
    plan = drafter.plan(k=float(k), batch=float(batch), context=float(context), refresh=one.acceptance_length)
    assert one.draft_s == pytest.approx(plan_time_s(plan, machine))
    assert (one.draft_s > 0) == (drafter.name not in ("ngram", "suffix"))
    round_s = verify + one.draft_s + one.host_s
    assert one.speedup == pytest.approx(expected_tokens(alpha, k) * decode / round_s)


@given(llms(), machines(plain=True), st.integers(1, 32), st.integers(0, 50_000), st.integers(1, 15))
def test_a_verify_is_never_cheaper_than_a_plain_step_on_a_roofline(llm, machine, batch, context, k):
    """R(W) >= 1 where nothing but bytes and FLOPs counts; it is not clamped, since measured kernels differ."""
    target = Target(llm, BF16)
    ratio = target.step_s(machine, float(batch), float(context), k + 1.0) / target.step_s(
        machine, float(batch), float(context), 1.0
    )
    assert ratio >= 1 - 1e-12


def test_a_table_may_make_a_plain_step_dearer_than_a_verify():
    """Measured kernels with a slow one-row path: R(W) below one is shown as it is."""
    from rooflinekit.work import Ceiling, Staircase

    slow = Ceiling(staircase=Staircase((1.0, 2.0, 16.0), (1.6, 1.0, 1.05), (2.0,)))
    machine = replace(H100, ceilings={("linear", "bf16"): slow})
    one = speculate(machine, LLAMA, eagle3.for_target(LLAMA.llm, BF16), Constant(0.8), context=100.0, k=3.0)
    assert one.verify_ratio < 0.8


# --- limits of drafters


@given(
    machines(stairs=False), st.integers(1, 32), st.integers(0, 50_000), st.integers(1, 7), st.floats(1.0, 8.0)
)
def test_a_semi_autoregressive_drafter_without_a_head_is_the_parallel_one(
    machine, batch, context, k, refresh
):
    """DSpark with rank 0 costs DFlash's backbone over K positions (its block has no anchor of its own)."""
    parallel = dflash.for_target(LLAMA.llm, BF16)
    bare = DSpark(parallel, 0, 7)
    options = {"batch": float(batch), "context": float(context), "refresh": refresh}
    same = parallel.backbone(width=float(k), rows_out=float(k), tp=1, **options)
    assert plan_time_s(bare.plan(k=float(k), **options), machine) == pytest.approx(
        plan_time_s((same,), machine)
    )
    assert bare.memory_bytes(batch=1.0, context=10.0) == parallel.memory_bytes(batch=1.0, context=10.0)


@given(machines(plain=True), st.integers(1, 4), st.integers(0, 20_000))
def test_the_parallel_drafter_and_the_headless_one_differ_by_one_row_at_most(machine, batch, context):
    """Block sizes aside, DSpark's cost goes to DFlash's as its head vanishes."""
    options = {"k": 7.0, "batch": float(batch), "context": float(context)}
    wide = plan_time_s(dflash.for_target(LLAMA.llm, BF16).plan(**options), machine)
    bare = plan_time_s(DSpark(dflash.for_target(LLAMA.llm, BF16), 0, 7).plan(**options), machine)
    assert bare <= wide * (1 + 1e-12)
    assert wide <= bare * 8 / 7 * (1 + 1e-12)


@given(machines(stairs=False), st.integers(1, 32), st.integers(0, 50_000), st.integers(2, 15))
def test_a_heavy_head_is_one_serial_pass_per_token(machine, batch, context, k):
    """With a whole model as its head, each further DSpark token costs what each further serial token does."""
    heavy = DSpark(dflash.for_target(LLAMA.llm, BF16), 0, 16, heavy_head=small_llm())
    serial = SmallLm(small_llm(), BF16)
    options = {"batch": float(batch), "context": float(context)}
    head = heavy.plan(k=float(k), **options)[1]
    one = plan_time_s(serial.plan(k=1.0, **options), machine)
    assert plan_time_s((head,), machine) == pytest.approx(k * one)
    more = plan_time_s(serial.plan(k=k + 1.0, **options), machine) - plan_time_s(
        serial.plan(k=float(k), **options), machine
    )
    assert more == pytest.approx(one, rel=1e-6)


@pytest.mark.parametrize("rank", [1, 16, 256])
def test_the_light_head_costs_in_proportion_to_its_rank(rank):
    """Its weights are vocabulary x rank; the logits it writes and reads do not depend on the rank."""
    head = DSpark(dflash.for_target(LLAMA.llm, BF16), rank, 7).plan(k=5.0, batch=1.0, context=100.0)[1]
    assert head.repeats == 5.0
    assert sum(work.weight_bytes for work in head.works) == 128_256 * rank * 2


@given(st.data(), llms(), machines(stairs=False), st.integers(1, 32))
def test_a_drafter_whose_tokens_all_fail_only_costs(data, llm, machine, batch):
    """alpha = 0: one token a round, so the speedup is 1 / rho and below 1."""
    drafter = data.draw(drafters_for(llm))
    one = speculate(
        machine, Target(llm, BF16), drafter, Constant(0.0), batch=float(batch), context=100.0, k=3.0
    )
    assert one.acceptance_length == 1.0
    assert one.speedup == pytest.approx(1.0 / one.round_cost)


def test_drafting_for_nothing_with_no_draft_is_plain_decoding():
    """K = 0 and no passes: length 1, cost 1, speedup 1."""

    class Nothing(OnDevice):
        name = title = serial_passes = "0"
        max_k = None
        precision = BF16

        def plan(self, **_options):
            return (Pass((), 1.0),)

        def memory_bytes(self, **_options):
            return 0.0

        def host_s(self, **_options):
            return 0.0

    one = speculate(H100, LLAMA, Nothing(), Constant(0.9), context=4096.0, k=0.0)
    assert (one.acceptance_length, one.round_cost, one.speedup) == (
        pytest.approx(1.0),
        pytest.approx(1.0),
        pytest.approx(1.0),
    )


# --- arrays


@pytest.mark.parametrize("name", [*BUILDERS, *WEIGHTLESS, "small-lm"])
def test_a_grid_in_one_call_equals_a_call_for_each_point(name):
    """Batch x context x K x alpha at once, for every drafter; acceptance of a single alpha refreshes alike."""
    known = BUILDERS | WEIGHTLESS
    drafter = SmallLm(small_llm(), BF16) if name == "small-lm" else known[name](LLAMA.llm, BF16)
    batch, context, k = np.array([1.0, 16.0]), np.array([0.0, 1e4, 1e5]), np.array([1.0, 4.0, 7.0])
    grid = speculate(
        H100, LLAMA, drafter, Constant(0.7), batch=batch[:, None, None], context=context[:, None], k=k
    )
    assert np.shape(grid.speedup) == (2, 3, 3)
    for i, j, n in np.ndindex(2, 3, 3):
        one = speculate(H100, LLAMA, drafter, Constant(0.7), batch=batch[i], context=context[j], k=k[n])
        for field in (
            "acceptance_length",
            "draft_s",
            "verify_s",
            "decode_s",
            "round_cost",
            "speedup",
            "draft_cost",
        ):
            found = np.broadcast_to(getattr(grid, field), (2, 3, 3))[i, j, n]
            assert found == pytest.approx(float(getattr(one, field))), field


@given(llms(), machines(), st.data())
def test_any_grid_equals_its_points(llm, machine, data):
    """The same for drawn models and machines, staircases and tiles included."""
    drafter = data.draw(drafters_for(llm))
    k = np.array([1.0, 2.0, 5.0])
    grid = speculate(
        machine,
        Target(llm, BF16),
        drafter,
        Survival((0.9, 0.5, 0.4, 0.1, 0.1)),
        batch=3.0,
        context=100.0,
        k=k,
    )
    for i, one_k in enumerate(k):
        one = speculate(
            machine,
            Target(llm, BF16),
            drafter,
            Survival((0.9, 0.5, 0.4, 0.1, 0.1)),
            batch=3.0,
            context=100.0,
            k=one_k,
        )
        assert np.broadcast_to(grid.speedup, 3)[i] == pytest.approx(float(one.speedup))


def test_an_axis_of_alphas_costs_one_evaluation_with_the_mean_refresh():
    """Costs do not grow an axis of alphas; the first draft pass refreshes the mean number of tokens."""
    drafter, rates = eagle3.for_target(LLAMA.llm, BF16), np.array([0.2, 0.5, 0.8])
    grid = speculate(H100, LLAMA, drafter, Constant(rates), context=1000.0, k=np.array([[2.0], [6.0]]))
    assert np.shape(grid.draft_s) == (2, 1)
    assert np.shape(grid.speedup) == (2, 3)
    for i, k in enumerate((2.0, 6.0)):
        refresh = expected_tokens(rates, k).mean()
        plan = drafter.plan(k=k, batch=1.0, context=1000.0, refresh=refresh)
        assert grid.draft_s[i, 0] == pytest.approx(plan_time_s(plan, H100))
        assert grid.acceptance_length[i] == pytest.approx([expected_tokens(a, k) for a in rates])


@pytest.mark.parametrize("name", BUILDERS)
def test_axes_of_length_one_do_not_change_a_grid(name):
    """A batch axis of one element beside an axis of K is the same as a plain batch."""
    drafter, k = BUILDERS[name](LLAMA.llm, BF16), np.array([1.0, 3.0, 7.0])
    plain = speculate(H100, LLAMA, drafter, Constant(0.8), batch=64.0, context=100.0, k=k)
    shaped = speculate(H100, LLAMA, drafter, Constant(0.8), batch=np.array([[64.0]]), context=100.0, k=k)
    assert np.ravel(shaped.draft_s) == pytest.approx(np.ravel(np.broadcast_to(plain.draft_s, 3)))


def test_the_sweep_is_the_same_round():
    """The labelled grid has the numbers of the unlabelled one, and names its axes and units."""
    from rooflinekit.sweeps import speculation_grid

    drafter = dspark.for_target(LLAMA.llm, BF16)
    data = speculation_grid(
        H100, LLAMA, drafter, batch=[1, 8], context=[100, 1000], k=[1, 3], alpha=[0.6, 0.9]
    )
    one = speculate(
        H100, LLAMA, drafter, Constant(np.array([0.6, 0.9])), batch=8.0, context=1000.0, k=np.array([[3.0]])
    )
    found = data.sel(batch=8, context=1000, k=3)
    assert found.speedup.values == pytest.approx(np.ravel(one.speedup))
    assert data.verify_s.attrs["units"] == "s"
    assert math.isfinite(float(data.speedup.min()))
