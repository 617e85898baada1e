"""Which K, why, how sure, and with which flags."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooflinekit.acceptance import Constant, Survival, expected_tokens, from_histogram, solve_alpha
from rooflinekit.calibration import Calibration, Fit, HeldOut
from rooflinekit.capacity import memory_bytes, remedy
from rooflinekit.ceiling import RowFactors
from rooflinekit.curve import Case
from rooflinekit.drafters import dflash, dspark, eagle3
from rooflinekit.engines import flags
from rooflinekit.errors import AcceptanceError, CapacityError
from rooflinekit.evidence import Cited
from rooflinekit.hardware import Hardware
from rooflinekit.precision import precision
from rooflinekit.readers.models import find_llm
from rooflinekit.recommendation import interval, recommend_k
from rooflinekit.speculation import Round, speculate
from rooflinekit.target import Target
from rooflinekit.transformer import Load
from rooflinekit.work import Ceiling, Machine
from tests.strategies import drafters_for, llms, machines

BF16 = precision("bf16")
LLAMA = Target(find_llm("llama-3.1-8b"), BF16)
H100 = Machine("h", 3.35e12, {"bf16": 989e12}, 450e9)
EAGLE = eagle3.for_target(LLAMA.llm, BF16)


def device(capacity=1e15, **peaks):
    peaks = {name: Cited(value, "assumed", "") for name, value in (peaks or {"bf16": 989e12}).items()}
    return Hardware(
        name="d",
        title="d",
        vendor="v",
        architecture="a",
        capacity=Cited(capacity, "assumed", ""),
        bandwidth=Cited(3.35e12, "assumed", ""),
        peak=peaks,
    )


RATE = Constant(0.8)
ONE = Load(1.0, 4096.0)


def ask(acceptance=RATE, machine=H100, target=LLAMA, drafter=EAGLE, load=ONE, **options):
    hardware = options.pop("hardware", device())
    return recommend_k(Case(machine, target, drafter, acceptance), hardware, load, **options)


configurations = st.fixed_dictionaries(
    {
        "batch": st.integers(1, 300),
        "context": st.integers(0, 50_000),
        "alpha": st.floats(0.0, 1.0),
        "max_k": st.integers(1, 16),
        "overlap": st.floats(0.0, 1.0),
    }
)


# --- the account and the search


@given(st.data(), llms(), machines(host=True), configurations)
def test_the_loss_account_sums_to_what_is_missing(data, llm, machine, c):
    """K + 1 less every loss is the speedup, whatever model, machine, drafter, load and host."""
    target, drafter = Target(llm, BF16, routing_overlap=c["overlap"]), data.draw(drafters_for(llm))
    found = ask(
        Constant(c["alpha"]),
        machine,
        target,
        drafter,
        Load(float(c["batch"]), float(c["context"])),
        max_k=c["max_k"],
    )
    assert found.k + 1 - sum(loss.speedup_lost for loss in found.loss) == pytest.approx(
        found.speedup, rel=1e-9
    )
    assert len({loss.term for loss in found.loss}) == len(found.loss)
    assert all(math.isfinite(loss.speedup_lost) for loss in found.loss)


@given(st.data(), llms(), machines(host=True), configurations)
def test_the_best_k_is_that_of_a_plain_search(data, llm, machine, c):
    """Evaluating every K one by one finds the same best, the same neighbours and the same numbers."""
    target, drafter = Target(llm, BF16, routing_overlap=c["overlap"]), data.draw(drafters_for(llm))
    load = Load(float(c["batch"]), float(c["context"]))
    found = ask(Constant(c["alpha"]), machine, target, drafter, load, max_k=c["max_k"])
    top = min(c["max_k"], drafter.max_k or 99)
    speedups = {
        k: float(
            speculate(
                machine,
                target,
                drafter,
                Constant(c["alpha"]),
                batch=load.batch,
                context=load.context,
                k=float(k),
            ).speedup
        )
        for k in range(1, top + 1)
    }
    best = max(speedups.values())
    assert found.speedup == pytest.approx(best)
    assert speedups[found.k] == pytest.approx(best)
    assert [point.k for point in found.curve] == list(speedups)
    assert [point.speedup for point in found.curve] == pytest.approx(list(speedups.values()))
    clear = {k for k, value in speedups.items() if abs(value / best - 0.99) > 1e-9}
    assert {k for k in found.near_best if k in clear} == {k for k in clear if speedups[k] >= 0.99 * best}
    assert found.pays == (found.speedup > 1.0)
    assert found.break_even_acceptance_length == pytest.approx(found.best.round_cost)
    assert found.best.acceptance_length / found.best.round_cost == pytest.approx(found.speedup)


@given(machines(), st.integers(1, 64), st.floats(0.0, 0.99), st.floats(0.0, 0.01))
def test_more_acceptance_never_lowers_the_best_speedup(machine, batch, alpha, more):
    """With block drafters, whose cost hardly knows alpha, exactly; the refresh of serial ones is small."""
    load, drafter = Load(float(batch), 1000.0), dspark.for_target(LLAMA.llm, BF16)
    low, high = (ask(Constant(a), machine, drafter=drafter, load=load).speedup for a in (alpha, alpha + more))
    assert high >= low * (1 - 1e-3)


@given(machines(host=True), st.integers(1, 64), st.floats(0.0, 1.0), st.integers(1, 8))
def test_a_cheaper_drafter_never_lowers_the_best_speedup(machine, batch, alpha, layers):
    """Fewer layers at equal acceptance."""
    load = Load(float(batch), 1000.0)

    def best(count):
        llm = dflash.backbone_llm(LLAMA.llm, count)
        drafter = dflash.DFlash(llm, 5, 4096, 16, BF16, "drawn")
        return ask(Constant(alpha), machine, drafter=drafter, load=load).speedup

    assert best(layers) >= best(layers + 1) * (1 - 1e-12)


# --- limits of K


def test_the_trained_block_is_never_exceeded():
    """A block of 7 or 16 was trained for that; more is not recommended however good it looks."""
    assert ask(Constant(1.0), drafter=dspark.for_target(LLAMA.llm, BF16), max_k=64).k == 7
    assert ask(Constant(1.0), drafter=dflash.for_target(LLAMA.llm, BF16), max_k=64).k == 15
    with pytest.raises(AcceptanceError, match=r"K = 8.*dspark \(7\).*--k 7"):
        ask(drafter=dspark.for_target(LLAMA.llm, BF16), k=8)


def test_a_survival_vector_is_never_exceeded():
    """What was not measured is not recommended."""
    found = ask(Survival((0.9, 0.85, 0.8)), max_k=16)
    assert [point.k for point in found.curve] == [1, 2, 3]
    assert any("(3): acceptance was measured no further" in note for note in found.notes)
    with pytest.raises(AcceptanceError, match="3 positions"):
        ask(Survival((0.9, 0.85, 0.8)), k=4)


def test_a_named_k_is_judged_and_the_better_one_mentioned():
    """K = 12 is answered as asked, with the K that would give more."""
    found = ask(Constant(0.6), k=12)
    best = ask(Constant(0.6))
    assert found.k == 12
    assert found.speedup < best.speedup
    assert any(f"K = {best.k} would give" in note for note in found.notes)
    assert found.break_even_acceptance_length == pytest.approx(found.best.round_cost)
    assert best.k in found.near_best


# --- intervals


def test_there_is_no_interval_without_counts_or_a_measured_error():
    """A bare rate is a what-if: no error bar is made up."""
    for acceptance in (Constant(0.8), Survival((0.8, 0.6))):
        found = ask(acceptance)
        assert (found.low, found.high) == (None, None)


@given(st.lists(st.integers(50, 2000), min_size=2, max_size=12))
def test_an_interval_of_counted_rounds_contains_the_point(counts):
    """Thousands of rounds: the printed speedup lies inside the printed interval."""
    found = ask(from_histogram(counts))
    assert found.low < found.speedup < found.high


@pytest.mark.parametrize(
    "counts", [[0, 0, 0, 50], [100, 0, 0], [0] * 15 + [20], [30] + [0] * 10 + [1], [1, 1]]
)
def test_an_interval_of_extreme_counts_contains_the_point(counts):
    """Where every round went alike, or few rounds were counted over many positions, too."""
    found = ask(from_histogram(counts))
    assert found.low <= found.speedup <= found.high


def test_more_rounds_give_a_narrower_interval():
    """A hundred times the rounds, about a tenth of the width."""
    few, many = ask(Survival((0.8, 0.6, 0.4), 100)), ask(Survival((0.8, 0.6, 0.4), 10_000))
    assert (few.high - few.low) / (many.high - many.low) == pytest.approx(10, rel=0.3)
    assert (few.low, few.high) == (
        ask(Survival((0.8, 0.6, 0.4), 100)).low,
        ask(Survival((0.8, 0.6, 0.4), 100)).high,
    )


def calibration(ratio=0.05):
    held = HeldOut(n=10, median_abs_error=ratio, p90_abs_error=0.1, bias=0.0)
    fit = Fit(
        kind="linear", dtype="bf16", ceiling=Ceiling(), form="p-norm", n=9, held_out=held, held_out_ratio=held
    )
    return Calibration(name="c", base="d", stack="pytorch", fits=(fit,), run_ids=("r",), used=("r/a",))


def test_the_error_of_a_calibration_gives_an_interval():
    """A median error of 5 % is 7.4 % standard deviation: 90 % lie within a factor 1.13 either way."""
    found = ask(Constant(0.8), calibration=calibration())
    assert found.low < found.speedup < found.high
    assert math.log(found.high / found.low) / 2 == pytest.approx(1.645 * 0.05 / 0.6745, rel=0.12)
    assert found.expected_error == pytest.approx(0.05)
    assert found.calibration == "c"


def test_both_sources_of_doubt_widen_the_interval():
    """Counts and calibration error together are wider than each alone."""
    point = ask(Constant(0.8)).best
    counted = Survival(tuple(0.8**i for i in range(1, 17)), 300)
    widths = [
        np.diff(interval(a, point, e)) for a, e in ((counted, None), (Constant(0.8), 0.05), (counted, 0.05))
    ]
    assert widths[2] > max(widths[0], widths[1])


# --- memory


def test_what_does_not_fit_is_refused_with_what_would():
    """Target, drafter and cache against memory; the answer is given when asked for anyway."""
    with pytest.raises(
        CapacityError, match=r"llama-3\.1-8b with eagle3 needs 1\d\.\d GB .* 10\.0 GB; what fits: "
    ):
        ask(hardware=device(1e10))
    found = ask(hardware=device(1e10), allow_oversize=True)
    assert not found.fits
    assert found.remedy.startswith("what fits")
    assert found.speedup == pytest.approx(ask().speedup)


def test_the_memory_of_the_drafter_counts():
    """Room for the target alone is not room for both."""
    alone = memory_bytes(LLAMA, 1.0, 4096.0 + 17)
    with pytest.raises(CapacityError):
        ask(hardware=device(alone + 1e8))
    assert ask(hardware=device(alone + 1.1e9)).fits


@given(
    st.sampled_from(["llama-3.1-8b", "llama-3.1-70b", "qwen3-30b-a3b", "deepseek-v3", "mixtral-8x7b"]),
    st.floats(10e9, 300e9),
    st.integers(1, 64),
    st.sampled_from([100.0, 4096.0, 131_072.0]),
    st.sampled_from(["auto", "fp8"]),
    st.sampled_from([1, 2]),
    st.sampled_from([0.0, 1e9, 9e9]),
)
def test_what_is_said_to_fit_does_fit(name, room, batch, context, kv, tp, whole):
    """Each named remedy, applied alone, brings the memory below the room; at the border it was not too large before."""
    target = Target(find_llm(name), precision("bf16", kv), tp)
    hardware = device(room, bf16=989e12, fp8=1979e12)

    def held(ranks):
        """A drafter of which one gigabyte is on every rank and the rest is split."""
        return min(whole, 1e9) + max(whole - 1e9, 0.0) / ranks

    said = remedy(target, hardware, float(batch), context, held)
    extra = held(tp)
    fits = memory_bytes(target, float(batch), context, extra) <= room
    assert (said == "") == fits
    for option, value in (
        part.split() for part in said.removeprefix("what fits: ").split(" or ") if part.startswith("--")
    ):
        numbers, ranks, sequences = target.precision, tp, float(batch)
        if option == "--tp":
            ranks = int(value)
        elif option == "--dtype":
            numbers = precision(value, kv)
        else:
            sequences = float(value)
            bigger = memory_bytes(Target(target.llm, numbers, ranks), sequences + 1, context, extra)
            assert bigger > room or sequences + 1 > batch - 1
        share = min(whole, 1e9) + max(whole - 1e9, 0.0) / ranks
        assert memory_bytes(Target(target.llm, numbers, ranks), sequences, context, share) <= room * (
            1 + 1e-12
        )


def test_a_smaller_weight_format_is_named_with_the_cache_format_kept():
    """With an fp8 cache chosen, fp8 weights fit where they would not beside a 16-bit cache."""
    target = Target(find_llm("llama-3.1-8b"), precision("bf16", "fp8"))
    room = memory_bytes(Target(target.llm, precision("fp8", "fp8")), 8.0, 131_072.0) * 1.01
    assert "--dtype fp8" in remedy(target, device(room, bf16=989e12, fp8=1979e12), 8.0, 131_072.0)


# --- flags: every engine counts in its own way


@pytest.mark.parametrize(
    ("drafter", "engine", "parts"),
    [
        ("eagle3", "vllm", ['"method":"eagle3"', '"num_speculative_tokens":5']),
        ("dflash", "vllm", ['"method":"dflash"', '"num_speculative_tokens":5']),
        ("dspark", "vllm", ['"num_speculative_tokens":5']),
        ("small-lm", "vllm", ['"method":"draft_model"', '"num_speculative_tokens":5']),
        (
            "eagle3",
            "sglang",
            ["--speculative-num-steps 5", "--speculative-eagle-topk 1", "--speculative-num-draft-tokens 6"],
        ),
        (
            "small-lm",
            "sglang",
            ["STANDALONE", "--speculative-num-steps 5", "--speculative-num-draft-tokens 6"],
        ),
        ("dflash", "sglang", ["--speculative-dflash-block-size 6"]),
        ("dspark", "sglang", ["--speculative-dspark-block-size 5"]),
        ("eagle3", "tensorrt-llm", ["max_draft_len: 5"]),
        ("small-lm", "tensorrt-llm", ["max_draft_len: 5"]),
        ("eagle3", "llama.cpp", ["--spec-draft-n-max 5"]),
    ],
)
def test_flags_count_as_the_engine_counts(drafter, engine, parts):
    """K drafts: vLLM and TensorRT-LLM say K, SGLang counts the root of a chain and the anchor of a DFlash block."""
    for part in parts:
        assert part in flags(drafter, 5)[engine]


def test_flags_of_vllm_are_json():
    """The shell passes one JSON object."""
    import json
    import shlex

    option, text = shlex.split(flags("eagle3", 3)["vllm"])
    assert option == "--speculative-config"
    assert json.loads(text)["num_speculative_tokens"] == 3


def test_flags_come_with_the_recommended_k():
    """The answer and the flags agree."""
    found = ask(Constant(0.7))
    assert found.flags == flags("eagle3", found.k)


# --- cases from public threads: times as reported there, arithmetic checked against the thread's numbers


def test_a_sixteen_token_draft_on_a_laptop_does_not_pay():
    """llama.cpp PR 10455: 32B target, 3B draft, R(17) = 4.86 and c = 0.113; best K 3 or 4 at 1.55x, 0.97x at 16."""
    step, alpha = 90.9e-3, solve_alpha(6.40, 16)
    assert alpha == pytest.approx(0.854, abs=0.003)
    k = np.arange(1.0, 17.0)
    rounds = Round(k, expected_tokens(alpha, k), k * 10.3e-3, step * (1 + 0.245 * k), step)
    assert rounds.verify_ratio[15] == pytest.approx(4.86, rel=0.05)
    assert int(k[np.argmax(rounds.speedup)]) in (3, 4)
    assert rounds.speedup.max() == pytest.approx(1.55, rel=0.08)
    assert rounds.speedup[15] == pytest.approx(0.97, rel=0.05)


def test_a_draft_deeper_than_its_target_never_pays():
    """vllm issue 15025: 30 layers draft for 24, launch-bound, c = 1.25: 0.83x at K = 5 even when all is accepted."""
    k = np.arange(1.0, 6.0)
    rounds = Round(k, expected_tokens(1.0, k), k * 1.25, 1.0, 1.0)
    assert rounds.speedup == pytest.approx([0.89, 0.86, 0.84, 0.833, 0.83], abs=0.006)


def test_a_round_of_five_plain_steps_is_host_time():
    """vllm issue 39680: 342.2 tokens/s plain, 128.3 with length 1.97: a round of 15.35 ms, 5.25 plain steps."""
    plain, spent = 1 / 342.2, 1.97 / 128.3
    one = Round(1.0, 1.97, 0.0, plain, plain, host_s=spent - plain)
    assert one.round_cost == pytest.approx(5.25, rel=0.01)
    assert one.speedup == pytest.approx(128.3 / 342.2)
    assert one.round_s == pytest.approx(15.35e-3, rel=0.01)


def test_two_rows_of_a_mixture_that_cost_two_steps_cannot_pay():
    """jundot/omlx issue 2077: verify of two 112 ms against 51 ms; at most 0.91x; a union gather at best 1.07x."""
    one = Round(1.0, 2.0, 0.0, 112e-3, 51e-3)
    assert one.verify_ratio == pytest.approx(2.196, rel=0.01)
    assert one.speedup == pytest.approx(0.91, abs=0.005)
    from rooflinekit.llm import Moe
    from rooflinekit.transformer import experts_touched

    union = experts_touched(Moe(experts=256, top_k=8, intermediate=1), Load(width=2.0)) / 8
    ideal = 0.1 + 0.9 * union
    assert ideal == pytest.approx(1.87, rel=0.02)
    assert Round(1.0, 1.86, 0.0, ideal, 1.0).speedup == pytest.approx(0.99, rel=0.02)


def test_a_free_draft_is_judged_by_its_verify():
    """waybarrios/vllm-mlx PR 763: measured widths 1.59, 1.85, 2.44, 3.32: a free draft gives 1.39x at K = 4."""
    alpha = solve_alpha(4.20, 7)
    assert alpha == pytest.approx(0.803, abs=0.003)
    k = np.array([1.0, 2.0, 4.0, 7.0])
    rounds = Round(k, expected_tokens(alpha, k), 0.0, np.array([13.49, 15.64, 20.67, 28.13]), 8.47)
    assert rounds.verify_ratio[2] == pytest.approx(2.44, rel=0.01)
    assert rounds.speedup == pytest.approx([1.13, 1.33, 1.39, 1.26], rel=0.03)
    assert k[np.argmax(rounds.speedup)] == 4


def test_break_even_decides_between_an_exact_and_a_fast_verify():
    """antirez/ds4 issue 468: 28 ms plain, 2 ms draft, verify 33 or 67 ms: break-even 1.25 and 2.46 of at most 2."""
    fast, exact = (Round(1.0, 2.0, 2e-3, v, 28e-3) for v in (33e-3, 67e-3))
    assert fast.round_cost == pytest.approx(1.25, rel=0.01)
    assert exact.round_cost == pytest.approx(2.46, rel=0.03)
    assert fast.speedup > 1.0 > exact.speedup
    assert 1.065 * fast.round_cost - 1 == pytest.approx(0.33, abs=0.02)


def test_best_k_of_two_eagle_heads():
    """vllm issue 20780, Llama-3.1-8B: round 7.69 + 0.740 K ms gives K = 3, 8.35 + 1.016 K ms gives K = 4."""
    k = np.arange(2.0, 8.0)
    for fixed, step, length, best, top in (
        (7.69, 0.740, [2.1, 2.29, 2.39, 2.43, 2.45, 2.47], 3, 1.648),
        (8.35, 1.016, [2.36, 2.79, 3.08, 3.32, 3.46, 3.54], 4, 1.746),
    ):
        rounds = Round(k, np.array(length), k * step, fixed, 7.07)
        assert k[np.argmax(rounds.speedup)] == best
        assert rounds.speedup.max() == pytest.approx(top, rel=0.03)


def test_best_k_of_positions_that_fade():
    """eugr/spark-vllm-docker issue 343: survival 0.844 ... 0.271, round 28.42 + 6.82 K ms: K = 2 or 3."""
    k = np.arange(1.0, 5.0)
    length = Survival((0.844, 0.599, 0.385, 0.271)).expected(k)
    rounds = Round(k, length, 0.0, 55.7e-3 - 6.82e-3 * (4 - k), 1.0)
    rate = length / rounds.round_s
    assert rate == pytest.approx([52.3, 58.0, 57.8, 55.6], rel=0.01)
    assert k[np.argmax(rate)] in (2, 3)


def test_the_verify_of_a_mixture_reads_more_bytes_than_a_plain_step():
    """SpecForge issue 339, Qwen3-30B-A3B: 6.08 GB a token; W = 4, 8, 16 read 2.57, 4.25, 6.54 times that."""
    from rooflinekit.transformer import forward_pass

    llm = find_llm("qwen3-30b-a3b")
    read = {
        w: sum(float(one.weight_bytes) for one in forward_pass(llm, Load(width=float(w)), BF16))
        for w in (1, 4, 8, 16, 60)
    }
    assert read[1] == pytest.approx(6.08e9, rel=0.01)
    assert [read[w] / read[1] for w in (4, 8, 16, 60)] == pytest.approx([2.57, 4.25, 6.54, 9.74], rel=0.01)


def test_the_gain_of_a_block_drafter_fades_past_the_ridge():
    """sglang PR 19952: 16-row blocks reach the bf16 ridge of an H100 near 18 streams, so 32 gain less than 4."""
    hardware = device()
    assert hardware.ridge_tokens("bf16", 2.0) == pytest.approx(295, rel=0.01)
    assert hardware.ridge_tokens("bf16", 2.0) / 16 == pytest.approx(18.5, rel=0.03)
    drafter = dflash.for_target(LLAMA.llm, BF16)
    gains = [
        ask(Constant(0.8), drafter=drafter, load=Load(float(b), 1000.0), k=15).speedup for b in (1, 4, 64)
    ]
    assert gains[0] == pytest.approx(gains[1], rel=0.1)
    assert gains[2] < 0.6 * gains[1]


def test_host_time_appears_in_the_account():
    """A token's host time grows with the rows of a verify, and the account names it."""
    machine = replace(H100, step_host_s=1e-3, token_host_s=2e-4)
    losses = {loss.term: loss.speedup_lost for loss in ask(machine=machine, k=4).loss}
    assert losses["host"] > 0
    assert losses["drafting"] > 0
    assert losses["rejected drafts"] == pytest.approx(5 - expected_tokens(0.8, 4))


def test_a_verify_that_beats_a_plain_step_is_pointed_out():
    """Kernels that are slow at one row: padding gains as much, so the gain is not all speculation's."""
    ceiling = Ceiling(factors=RowFactors((1.0, 2.0, 64.0), (1.5, 1.0, 1.0)))
    slow = replace(H100, ceilings={("linear", "*"): ceiling})

    def notes(machine):
        found = ask(Constant(0.7), machine, load=Load(1.0, 1024.0), max_k=4)
        return " ".join(found.notes)

    assert "padding" in notes(slow)
    assert "padding" not in notes(H100)


def test_the_host_does_not_share_the_kernels_error():
    """The interval shrinks as the host takes a larger part of a round."""
    point = ask(Constant(0.7), k=4).best
    slow = replace(point, host_s=point.round_s, round_cost=2 * point.round_cost)
    low, high = interval(Constant(0.7), point, 0.05)
    lower, higher = interval(Constant(0.7), slow, 0.05)
    assert higher / lower < high / low
    assert np.log(higher / lower) == pytest.approx(0.5 * np.log(high / low), rel=0.1)


def test_weight_only_formats_are_a_lower_bound_on_calibrated_devices():
    """No kernel that unpacks weights was fitted; the datasheet is a lower bound anyway."""
    import rooflinekit as rk
    from rooflinekit.prediction import UNPACKING

    assert UNPACKING in rk.predict("llama-3.1-8b", "h100-sxm", dtype="w4a16").notes
    assert UNPACKING not in rk.predict("llama-3.1-8b", "h100-sxm", dtype="fp8").notes
    assert (
        UNPACKING not in rk.predict("llama-3.1-8b", "h100-sxm", dtype="w4a16", calibration="datasheet").notes
    )
