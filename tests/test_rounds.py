"""Rounds with host time, overlap, given drafting and free widths."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooflinekit.acceptance import Constant
from rooflinekit.app import compare, recommend
from rooflinekit.cli import run
from rooflinekit.comparison import compare_drafters
from rooflinekit.curve import Case, curve_of, loss_account
from rooflinekit.drafters import dflash, dspark, eagle3, medusa, ngram
from rooflinekit.errors import RooflineError
from rooflinekit.hosts import HOSTS, NO_HOST, VLLM, Host, host_of, with_host
from rooflinekit.load import Load
from rooflinekit.orders import orders_of_magnitude
from rooflinekit.precision import precision
from rooflinekit.profiles.library import find_hardware
from rooflinekit.readers.models import find_llm
from rooflinekit.speculation import Drafting, eta, speculate
from rooflinekit.target import Target
from rooflinekit.work import Ceiling, Machine

BF16 = precision("bf16")
MODELS = {name: Target(find_llm(name), BF16) for name in ("llama-3.1-8b", "qwen3-30b-a3b", "llama-3.2-1b")}
LLAMA = MODELS["llama-3.1-8b"]
H100 = Machine("h", 3.35e12, {"bf16": 989e12}, 450e9)
EAGLE = eagle3.for_target(LLAMA.llm, BF16)


def one(drafting=Drafting(), machine=H100, drafter=EAGLE, k=4.0, **load):  # noqa: B008 - frozen
    load = {"batch": 1.0, "context": 1000.0} | load
    return speculate(machine, LLAMA, drafter, Constant(0.8), k=k, drafting=drafting, **load)


@given(st.floats(0.0, 1.0), st.floats(0.0, 0.5), st.integers(1, 10))
def test_a_given_c_is_leviathans(alpha, c, k):
    """With c given and rows free, the whole model collapses to eta."""
    flat = replace(H100, ceilings={}, peak_flop_per_s={"bf16": 1e30}, bandwidth_bytes_per_s=3e12)
    found = speculate(
        flat,
        LLAMA,
        EAGLE,
        Constant(alpha),
        k=float(k),
        drafting=Drafting(cost=c, width=1.0),
    )
    assert found.speedup == pytest.approx(eta(alpha, k, c), rel=1e-12)
    assert found.draft_cost == pytest.approx(c)


def test_measured_drafting_replaces_the_models():
    """A time per token counts K times, a time per round once; the host of the passes is in it already."""
    machine = with_host(H100, VLLM)
    assert one(Drafting(step_s=1e-3), machine).draft_s == pytest.approx(4e-3)
    assert one(Drafting(round_s=1e-3), machine).draft_s == pytest.approx(1e-3)
    assert one(Drafting(round_s=1e-3), machine).draft_host_s == 0.0
    assert one(machine=machine).draft_host_s == pytest.approx(4 * VLLM.pass_s)


def test_host_time_is_added_where_it_is_spent():
    """A step, K passes, and each row; a block drafter starts one pass."""
    host = Host(name="h", step_s=1e-3, pass_s=2e-4, row_s=1e-5, round_s=3e-4)
    machine = with_host(H100, host)
    bare, hosted = one(batch=8.0), one(machine=machine, batch=8.0)
    assert hosted.plain_s - bare.plain_s == pytest.approx(1e-3 + 8e-5)
    assert hosted.round_s - bare.round_s == pytest.approx(1e-3 + 4 * 2e-4 + 40 * 1e-5 + 3e-4)
    block = one(machine=machine, drafter=dflash.for_target(LLAMA.llm, BF16), batch=8.0)
    assert block.draft_host_s == pytest.approx(2e-4)


def test_host_time_passes_by_drafter():
    """Heads of Medusa and light steps of DSpark run inside one launch."""
    machine = with_host(H100, Host(name="h", pass_s=1e-3))
    for drafter in (medusa.for_target(LLAMA.llm, BF16), dspark.for_target(LLAMA.llm, BF16)):
        assert one(machine=machine, drafter=drafter).draft_host_s == pytest.approx(1e-3)


def test_host_time_of_passes_is_doubted_in_a_batch():
    """Figure 4 of arXiv:2601.11580: at 64 requests most of it is hidden."""
    from rooflinekit.caveats import HIDDEN_HOST, caveats

    case = Case(with_host(H100, VLLM), LLAMA, EAGLE, Constant(0.8))

    def notes(batch):
        curve = curve_of(case.rounds(batch=batch, context=500.0, k=np.arange(1.0, 5.0)))
        return caveats(case, Load(batch, 500.0), curve[2], curve[3], 4)

    assert HIDDEN_HOST in notes(64.0)
    assert HIDDEN_HOST not in notes(1.0)


def test_overlap_hides_the_shorter_part():
    bare, half, whole = one(), one(Drafting(overlap=0.5)), one(Drafting(overlap=1.0))
    assert whole.round_s == pytest.approx(max(bare.draft_s, bare.verify_s))
    assert half.round_s == pytest.approx((bare.round_s + whole.round_s) / 2)


def test_a_tree_verifies_more_rows_than_it_is_deep():
    """Depth 4, 21 rows: the verify of width 21; the drafter's later passes of 4 rows cost no less than of one."""
    tree = one(Drafting(width=21.0, rows=4.0), batch=64.0)
    chain = one(batch=64.0)
    assert tree.verify_s == pytest.approx(LLAMA.step_s(H100, 64.0, 1000.0, 21.0))
    assert tree.verify_s > chain.verify_s
    assert tree.draft_s >= chain.draft_s
    assert tree.acceptance_length == chain.acceptance_length


def test_the_account_sums_on_ten_thousand_random_configurations():
    """K + 1 less every loss is the speedup: models, drafters, calibrated machines, hosts, overlap, trees."""
    rng = np.random.default_rng(0)
    builders = (eagle3, dflash, dspark, medusa)
    made = {
        (name, builder): builder.for_target(target.llm, BF16)
        for name, target in MODELS.items()
        for builder in builders
    }
    worst = 0.0
    for _ in range(10_000):
        name, builder = rng.choice(list(MODELS)), builders[rng.integers(len(builders))]
        drafter = made[name, builder]
        ceiling = Ceiling(
            t0_s=float(rng.choice([0.0, 5e-6])),
            memory_efficiency=rng.uniform(0.3, 1.0),
            compute_efficiency=rng.uniform(0.3, 1.0),
            p=float(rng.choice([1.5, 3.0, np.inf])),
            tile=float(rng.choice([1.0, 64.0])),
        )
        machine = Machine(
            "random",
            10 ** rng.uniform(10.5, 13),
            {"bf16": 10 ** rng.uniform(12, 15.5)},
            4e11,
            {("linear", "*"): ceiling, ("experts", "*"): ceiling, ("attention", "*"): Ceiling(t0_s=3e-6)},
            step_host_s=float(rng.choice([0.0, 1e-3])),
            token_host_s=float(rng.choice([0.0, 1e-5])),
            pass_host_s=float(rng.choice([0.0, 4e-4])),
            round_host_s=float(rng.choice([0.0, 7e-4])),
        )
        k = float(rng.integers(1, (drafter.max_k or 16) + 1))
        width = None if rng.random() < 0.7 else k + 1.0 + rng.integers(0, 60)
        drafting = Drafting(
            width=width,
            overlap=float(rng.choice([0.0, 1.0])),
            cost=None if rng.random() < 0.8 else rng.uniform(0, 1),
        )
        load = Load(float(rng.integers(1, 300)), float(rng.integers(0, 50_000)))
        case = Case(machine, MODELS[name], drafter, Constant(rng.uniform(0, 1)), drafting)
        point = curve_of(case.rounds(batch=load.batch, context=load.context, k=np.array([k])))[0]
        losses = loss_account(machine, MODELS[name], load, point, width)
        total = k + 1.0 - sum(loss.speedup_lost for loss in losses)
        worst = max(worst, abs(total - point.speedup) / point.speedup)
        assert len({loss.term for loss in losses}) == len(losses)
    assert worst < 1e-9


def test_a_larger_bandwidth_can_lower_the_speedup_and_the_account_says_why():
    """It moves the ridge: the plain step gets faster, the verify is held by its arithmetic."""
    load, fast = Load(32.0, 100.0), replace(H100, bandwidth_bytes_per_s=3 * 3.35e12)

    def judged(machine):
        case = Case(machine, LLAMA, EAGLE, Constant(0.8))
        point = curve_of(case.rounds(batch=32.0, context=100.0, k=np.array([7.0])))[0]
        return point, {loss.term: loss.speedup_lost for loss in loss_account(machine, LLAMA, load, point)}

    (slow_point, _), (fast_point, fast_loss) = judged(H100), judged(fast)
    assert fast_point.speedup < slow_point.speedup
    assert fast_loss["wider verify: linear layers, compute-bound"] > 1.0


# --- host times as text


@pytest.mark.parametrize(
    ("text", "times"),
    [("1.2ms", (1.2e-3, 0, 0)), ("1ms,400us", (1e-3, 4e-4, 0)), ("0s,0.4ms,5us", (0, 4e-4, 5e-6))],
)
def test_host_times_are_read(text, times):
    found = host_of(text)
    assert (found.step_s, found.pass_s, found.row_s) == pytest.approx(times)


@pytest.mark.parametrize("text", ["vlm", "", "1.2", "1ms,2ms,3ms,4ms,5ms", "11 s", "1ms,", "1GB", "-1ms"])
def test_what_is_no_host_time_is_refused(text):
    with pytest.raises(RooflineError):
        host_of(text)


def test_no_host_changes_nothing():
    assert with_host(H100, NO_HOST) is H100
    assert set(HOSTS) == {"none", "vllm"}
    # Read on one device: an assumption on every other.
    assert with_host(H100, VLLM).evidence["host"] == "assumed"
    assert with_host(replace(H100, name="h100-sxm5-80gb + x"), VLLM).evidence["host"] == "fitted"


# --- figures people carry in their heads


def test_orders_of_magnitude():
    """The verify of 5 rows, c = 0.05 and the formula are inside on the datasheet; the drafters are cheaper than told."""
    seventy = Target(find_llm("llama-3.1-70b"), BF16)
    found = {order.what: order for order in orders_of_magnitude(H100, seventy)}
    assert found["verify of 5 rows"].inside
    assert found["4 steps of a drafter with c = 0.05"].inside
    assert found["tokens per round, alpha 0.8, K 4"].computed == pytest.approx(3.3616)
    # By hand: 5 passes of 0.856 G layer, 0.134 G fc and 1.051 G head parameters over 139 GB: 5 * 4.08 / 140.3.
    assert found["EAGLE, one layer, depth 5"].computed == pytest.approx(0.146, abs=0.003)
    # Five layers of 0.856 G, fc of 0.336 G and the head of 1.051 G: 11.3 / 140.3.
    assert found["DFlash, five layers, 16 positions"].computed == pytest.approx(0.081, abs=0.003)


def test_a_lookup_searches_the_whole_context():
    """vLLM pull request 56732: 70.28 ms for 512 sequences of 129,536 tokens; in the round, not only in the drafter."""
    drafter = ngram.for_target(LLAMA.llm, BF16)
    found = one(drafter=drafter, batch=512.0, context=129_536.0)
    assert float(found.draft_host_s) == pytest.approx(70.28e-3, rel=0.01)
    assert float(found.host_s) == pytest.approx(float(found.draft_host_s))


def test_c_of_a_comparison_is_over_the_whole_plain_step():
    """c as `Round` has it: host time in both, so 4 passes of 1 ms beside a step of 10 ms of host are below 1/2."""
    machine = with_host(H100, Host(name="h", step_s=10e-3, pass_s=1e-3))
    case = Case(machine, LLAMA, EAGLE, Constant(0.8))
    (found,) = compare_drafters([case], find_hardware("h100-sxm"), Load(1.0, 4096.0), max_k=4)
    direct = speculate(machine, LLAMA, EAGLE, Constant(0.8), batch=1.0, context=4096.0, k=float(found.k))
    assert found.draft_cost == pytest.approx(float(direct.draft_cost))
    assert found.bound == "host"


def test_what_binds_drafting_is_what_takes_most_of_it():
    """On a device alone an EAGLE step streams weights; where a time is given nothing is known of it."""
    case, load = Case(H100, LLAMA, EAGLE, Constant(0.8)), Load(1.0, 4096.0)
    device = find_hardware("h100-sxm")
    assert compare_drafters([case], device, load)[0].bound == "memory"
    given = replace(case, drafting=Drafting(cost=0.1))
    assert compare_drafters([given], device, load)[0].bound == "given"


def test_orders_leave_the_host_out_of_the_kernels(capsys):
    """`--host` is the second column; the first stays that of the kernels alone."""
    assert run(["orders", "--json"]) == 0
    alone = json.loads(capsys.readouterr().out)
    assert run(["orders", "--host", "5ms,1ms", "--json"]) == 0
    hosted = json.loads(capsys.readouterr().out)
    assert [row["computed"] for row in alone] == [row["computed"] for row in hosted]
    deep = next(row for row in hosted if "depth 5" in row["what"])
    assert deep["in_given"] > deep["computed"]
    assert "in_vllm" in alone[0]


def test_a_time_without_a_unit_names_its_option(capsys):
    words = "recommend --model llama-3.1-8b --hardware h100-sxm --drafter eagle3 --alpha 0.8 --draft-step 0.7"
    assert run(words.split()) == 2
    assert "--draft-step: '0.7' has no unit" in capsys.readouterr().err


def test_a_heavy_head_goes_by_its_own_name():
    """No engine runs it, and beside DSpark it is told apart."""
    found = recommend("llama-3.1-8b", "h100-sxm", "dspark:heavy", alpha=0.8)
    assert found.drafter == "dspark:heavy"
    assert found.flags == {}


def test_no_drafter_is_nothing_to_compare():
    with pytest.raises(RooflineError, match="no drafter was named"):
        compare("llama-3.1-8b", "h100-sxm", [], alpha=0.8)
