"""Reports of people who tune speculation and size models: the right answer of each, worked out by the library.

One block for a case: where it was reported, the numbers that were reported, and what a good tool says. The
expected values are arithmetic done apart from this code, on the published numbers; tolerances are as wide as
the reports are precise. Device figures that a report leaves out are the vendors'.
"""

import json
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest

from rooflinekit.acceptance import Constant, Survival, expected_tokens
from rooflinekit.cli import run
from rooflinekit.drafters.small_lm import SmallLm
from rooflinekit.implied import (
    Measured,
    acceptance_length_of_counts,
    bandwidth_use,
    bits_per_weight,
    depth_effect,
    diagnose,
    disagreement,
    imply,
    launch_draft_cost,
    needed_alpha,
    rounds_over,
    shared_ratio,
    sweep_of,
    verify_attention,
)
from rooflinekit.llm import Moe
from rooflinekit.memory import kv_cache_bytes
from rooflinekit.precision import precision
from rooflinekit.prediction import streamed_bytes_per_step
from rooflinekit.profiles.library import find_hardware
from rooflinekit.readers.hf_config import llm_from_config
from rooflinekit.readers.models import find_llm
from rooflinekit.report.models import model_facts
from rooflinekit.resolve import setup
from rooflinekit.speculation import eta, speculate
from rooflinekit.transformer import Load, experts_touched, forward_pass
from rooflinekit.work import Machine, works_time_s

BF16 = precision("bf16")


class Check(NamedTuple):
    """A value of the library's, what it should be, and how far off it may be."""

    name: str
    value: object
    wanted: object
    rel: float = 0.0
    abs: float = 0.0

    def holds(self) -> bool:
        if isinstance(self.wanted, set):
            return self.value in self.wanted
        if not self.rel and not self.abs:
            return self.value == self.wanted
        return self.value == pytest.approx(self.wanted, rel=self.rel, abs=self.abs)


CASES: dict[str, tuple[str, Callable[[], list[Check]]]] = {}


def case(name: str, url: str):
    """Register a case."""

    def keep(function):
        CASES[name] = (url, function)
        return function

    return keep


def dense(name, **fields):
    """A model from the public shape in its config.json."""
    base = {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "torch_dtype": "bfloat16",
        "max_position_embeddings": 32_768,
    }
    return llm_from_config(base | fields, name)


def kv_per_token(llm):
    return model_facts(llm, BF16, 4096.0)["kv_bytes_per_token"]


def verdicts(measured, **more):
    return diagnose(measured, **more).codes()


def has(code, codes):
    return Check(f"says {code}", code in codes, wanted=True)


def hasnt(code, codes):
    return Check(f"does not say {code}", code in codes, wanted=False)


# --- speculation that is slower than plain decoding ---


@case("S02", "https://github.com/ggml-org/llama.cpp/pull/10455")
def long_drafts_on_a_laptop():
    """32B with a 3B drafter on an M4 Pro, 16 drafts: 371 tokens, 912 drafted, 313 accepted, 11 -> 10.78 tokens/s.

    855 draft steps of 10.3 ms in 58 rounds. A verify of 17 rows costs 4.9 plain steps; K = 3 or 4 would give 1.55x.
    """
    rounds = 371 - 313
    measured = Measured(
        plain_s=1 / 11,
        token_s=1 / 10.78,
        k=16,
        acceptance_length=acceptance_length_of_counts(313, rounds),
        draft_s=855 * 10.3e-3 / rounds,
        drafted=912 / rounds,
    )
    found = diagnose(measured)
    by_k = {int(row["k"]): row["speedup"] for row in found.curve()}
    return [
        Check("R(17)", found.implied.verify_ratio, 4.86, rel=0.05),
        Check("alpha", found.implied.alpha, 0.854, abs=0.005),
        Check("best K", found.best_k, {3, 4}),
        Check("speedup at the best K", max(by_k.values()), 1.55, rel=0.08),
        Check("speedup at K = 16", by_k[16], 0.97, rel=0.05),
        Check("speedups at K = 1, 2, 5, 8", tuple(by_k[k] for k in (1, 2, 5, 8)), (1.37, 1.51, 1.50, 1.34), rel=0.04),
        Check("codes", found.codes(), ("does_not_pay",)),
    ]  # fmt: skip


@case("S03", "https://github.com/ggml-org/llama.cpp/issues/10664")
def drafters_left_in_16_bits():
    """4- and 5-bit targets with f16 drafters on an A100: 67.73 -> 52.13, 132.32 -> 123.25, 22.16 -> 19.67 tokens/s.

    By bytes the 1B drafter in f16 costs half a step of its 8B target in q4_k_m; the 0.5B of the 72B 2 %.
    """
    runs = [(67.73, 52.13), (132.32, 123.25), (22.16, 19.67)]
    changes = tuple(100 * (imply(Measured(plain_s=1 / a, token_s=1 / b, k=4)).speedup - 1) for a, b in runs)
    qwen = {"model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"], "num_attention_heads": 64}
    big = dense("qwen2.5-72b", **qwen, hidden_size=8192, intermediate_size=29_568, num_hidden_layers=80,
                num_key_value_heads=8, vocab_size=152_064)  # fmt: skip
    small = dense("qwen2.5-0.5b", **(qwen | {"num_attention_heads": 14}), hidden_size=896, intermediate_size=4864,
                  num_hidden_layers=24, num_key_value_heads=2, vocab_size=151_936, tie_word_embeddings=True)  # fmt: skip

    def c_bytes(draft, draft_format, target, target_format):
        """Bytes of the files that were compared: weights as they are held."""
        held = [
            model_facts(llm, precision(form), 0.0)["resident_bytes"]
            for llm, form in ((draft, draft_format), (target, target_format))
        ]
        return held[0] / held[1]

    eight, one = find_llm("llama-3.1-8b"), find_llm("llama-3.2-1b")
    return [
        Check("change in percent", changes, (-23.0, -6.9, -11.2), abs=0.2),
        Check("c by bytes, 8B and 1B f16", c_bytes(one, "fp16", eight, "q4_k_m"), 0.50, rel=0.05),
        Check("c by bytes, 72B and 0.5B f16", c_bytes(small, "fp16", big, "q4_k_m"), 0.021, rel=0.1),
        Check("with the 1B in 4 bits", c_bytes(one, "q4_k_m", eight, "q4_k_m"), 0.16, rel=0.05),
        Check("best at c = 0.5, alpha 0.8", tuple(eta(0.8, np.array([1.0, 2.0, 3.0]), 0.5)), (1.20, 1.22, 1.18), abs=0.01),
    ]  # fmt: skip


@case("S05", "https://github.com/vllm-project/vllm/issues/15025")
def a_small_drafter_that_is_deeper_than_its_target():
    """SmolLM2-135M (30 layers of 576) drafting for SmolLM2-1.7B (24 of 2048): -30 % at K = 5, all acceptance high.

    By parameters c is 0.079 and the answer 4.3x. Launches rule both at batch 1, so c tends to 30 / 24.
    """
    small, big = smol_lm2("135m"), smol_lm2("1.7b")
    drafter, k, load = SmallLm(small, BF16), 5.0, Load(context=1024.0)
    plan = drafter.plan(k=k, batch=1.0, context=1024.0)
    c = launch_draft_cost(plan, k, forward_pass(big, load, BF16))
    ratio = small.total_params / big.total_params
    found = diagnose(Measured(plain_s=1.0, k=5, draft_s=5 * c, verify_s={6: 1.0}))
    return [
        Check("c by parameters", ratio, 0.079, rel=0.01),
        Check("what parameters promise", eta(1.0, 5.0, ratio), 4.3, rel=0.01),
        Check("c by depth", c, 1.25, rel=0.01),
        Check("ceiling at K = 1, 2, 3", tuple(eta(1.0, np.array([1.0, 2.0, 3.0]), c)), (0.89, 0.86, 0.84), rel=0.01),
        Check("ceiling at K = 5", found.implied.largest_speedup, 0.83, rel=0.02),
        *(has(code, found.codes()) for code in ("does_not_pay", "cannot_pay", "draft_too_dear")),
        hasnt("missing_kernel", found.codes()),
    ]  # fmt: skip


def smol_lm2(name):
    """Public shapes of HuggingFaceTB/SmolLM2."""
    shapes = {"135m": (576, 1536, 30, 9, 3), "1.7b": (2048, 8192, 24, 32, 32)}
    hidden, inner, layers, heads, kv_heads = shapes[name]
    return dense(f"smollm2-{name}", hidden_size=hidden, intermediate_size=inner, num_hidden_layers=layers,
                 num_attention_heads=heads, num_key_value_heads=kv_heads, vocab_size=49_152,
                 tie_word_embeddings=True)  # fmt: skip


@pytest.mark.parametrize(("calibration", "low", "high"), [("datasheet", 0.075, 0.085), ("auto", 0.4, 1.25)])
def test_launch_times_raise_c_of_a_deep_small_drafter(calibration, low, high):
    """S05 on an H100: bytes say 0.08, timed kernels with their fixed times 0.52 (device time, graphs replayed)."""
    ready = setup(smol_lm2("1.7b"), "h100-sxm", calibration=calibration)
    drafter = SmallLm(smol_lm2("135m"), ready.target.precision)
    one = speculate(ready.machine, ready.target, drafter, Constant(1.0), k=5.0, context=1024.0)
    assert low < float(one.draft_cost) < high


@case("S06", "https://github.com/vllm-project/vllm/issues/39680")
def mtp_on_a_small_model():
    """0.8B with its own MTP, K = 1: 342.2 -> 128.3 tokens/s at 1.97 tokens per round; a round is 5.25 plain steps."""
    found = diagnose(Measured(plain_s=1 / 342.2, token_s=1 / 128.3, k=1, acceptance_length=1.97))
    one = found.implied
    return [
        Check("plain step in ms", one.measured.plain_s * 1e3, 2.92, rel=0.01),
        Check("round in ms", one.round_s * 1e3, 15.35, rel=0.01),
        Check("round cost", one.round_cost, 5.25, rel=0.01),
        Check("at most", one.largest_speedup, 2 / 5.25, rel=0.01),
        Check("codes", found.codes(), ("does_not_pay", "cannot_pay", "implementation_overhead")),
    ]


@case("S08", "https://github.com/sgl-project/SpecForge/issues/339")
def trees_on_a_sparse_model():
    """EAGLE-3 on Qwen3-30B-A3B, two H100, bf16, batch 1: 222.47 tokens/s plain; rows (depth, rows, tokens/s, A)."""
    rows = {
        (3, 1, 4): (159.78, 1.86, 2.59),
        (3, 3, 8): (172.99, 2.2, 2.83),
        (3, 3, 4): (207.62, 1.99, 2.13),
        (7, 4, 16): (191.9, 2.52, 2.92),
        (6, 4, 12): (171.54, 2.42, 3.14),
        (8, 8, 60): (177.5, 3.2, 4.01),
    }
    checks = []
    for (depth, branches, width), (rate, length, cost) in rows.items():
        found = diagnose(
            Measured(plain_s=1 / 222.47, token_s=1 / rate, k=depth, width=width, acceptance_length=length)
        )
        checks.append(
            Check(f"round cost of {depth, branches, width}", found.implied.round_cost, cost, rel=0.01)
        )
        checks.append(has("does_not_pay", found.codes()))
    llm = find_llm("qwen3-30b-a3b")
    read = streamed_bytes_per_step(llm, BF16)

    def bytes_at(width):
        return sum(float(work.weight_bytes) for work in forward_pass(llm, Load(width=width), BF16)) / read

    both = Machine("two H100", 6.7e12, {})
    moe = next(moe for _, moe in llm.moe_layers())
    widths = (4.0, 8.0, 16.0, 60.0)
    return [
        *checks,
        Check("parameters read", read / 2, 3.04e9, rel=0.01),
        Check("tokens/s of the bound", 1 / works_time_s(forward_pass(llm, Load(), BF16), both), 1101, rel=0.02),
        Check("experts", tuple(experts_touched(moe, Load(width=w)) for w in widths), (29.12, 51.6, 82.4, 125.3), rel=0.01),
        Check("bytes of a verify", tuple(bytes_at(w) for w in widths), (2.57, 4.25, 6.54, 9.74), rel=0.02),
    ]  # fmt: skip


@case("S11", "https://github.com/jundot/omlx/issues/2077")
def two_rows_that_share_no_experts():
    """MTP with K = 1 on an 8-of-256 MoE (M3 Ultra): a step 51 ms, a verify of two rows 112 ms, 90 % routed bytes."""
    found = diagnose(Measured(plain_s=51e-3, k=1, acceptance_length=1.86, verify_s={2: 112e-3}))
    union = experts_touched(Moe(experts=256, top_k=8, intermediate=1), Load(width=2.0)) / 8
    ideal = shared_ratio(0.9, union)
    gain = {a: float(rounds_over(1.0, 1 + a, 1.0, ideal).speedup) for a in (0.8, 0.86, 0.92, 1.0)}
    return [
        Check("R(2)", found.implied.verify_ratio, 2.196, rel=0.01),
        Check("at most", found.implied.largest_speedup, 0.91, rel=0.01),
        Check("at 86 %", found.implied.speedup, 0.85, rel=0.01),
        Check("R(2) of the union", ideal, 1.87, rel=0.02),
        Check("ideal gather", tuple(gain.values()), (0.96, 0.99, 1.03, 1.07), rel=0.02),
        *(has(code, found.codes()) for code in ("does_not_pay", "cannot_pay", "verify_too_dear")),
    ]


@case("S13", "https://github.com/waybarrios/vllm-mlx/pull/763")
def a_verify_that_is_blamed_for_the_rest():
    """Block drafter on a hybrid MoE (M5 Max): verify 8.47 .. 28.13 ms for 1 .. 8 rows, 3.2 of 7 drafts accepted.

    Measured at K = 4: 88.5 tokens/s against 118 plain. A free drafter would give 1.39x; 17 ms a round are elsewhere.
    """
    verify = {1: 8.47e-3, 2: 13.49e-3, 3: 15.64e-3, 5: 20.67e-3, 8: 28.13e-3}
    free = diagnose(Measured(plain_s=8.47e-3, k=7, acceptance_length=4.2, verify_s=verify))
    by_k = {int(row["k"]): row["speedup"] for row in free.curve()}
    length = expected_tokens(free.implied.alpha, 4.0)
    found = diagnose(
        Measured(plain_s=8.47e-3, token_s=1 / 88.5, k=4, acceptance_length=length, verify_s=verify)
    )
    one = found.implied
    return [
        Check("alpha", free.implied.alpha, 0.803, rel=0.005),
        Check("A at K = 4", length, 3.38, rel=0.01),
        Check("R(5)", one.verify_ratio, 2.44, rel=0.01),
        Check("R(8)", free.implied.verify_ratio, 3.32, rel=0.01),
        Check("free drafter at K = 1, 2, 4, 7", tuple(by_k[k] for k in (1, 2, 4, 7)), (1.13, 1.33, 1.39, 1.26), rel=0.03),
        Check("best K with a free drafter", free.best_k, {3, 4, 5}),
        Check("not verify, ms", one.outside_verify_s * 1e3, 17.5, rel=0.15),
        Check("budget at K = 4, ms", one.budget_s * 1e3, 8.0, rel=0.02),
        Check("budget at K = 7, ms", free.implied.budget_s * 1e3, 7.4, rel=0.02),
        Check("codes", found.codes(), ("does_not_pay", "rest_too_dear")),
    ]  # fmt: skip


@case("S16", "https://github.com/antirez/ds4/issues/468")
def two_reports_of_one_drafter():
    """MTP with K = 1 (M5 Max): step 28 ms, draft 2 ms, fast verify 33 ms (+6.5 %), exact verify 67 ms (-28 %)."""
    setting = {"plain_s": 28e-3, "k": 1, "draft_s": 2e-3}
    fast = imply(Measured(**setting, verify_s={2: 33e-3}, printed_speedup=1.065))
    exact = imply(Measured(**setting, verify_s={2: 67e-3}, printed_speedup=0.72))
    said = {"fast path": fast.acceptance_length, "exact path": exact.acceptance_length}
    contradiction = disagreement(said)
    same = verdicts(Measured(**setting, verify_s={2: 67e-3}, printed_speedup=0.72, acceptance_length=1.33))
    exact_codes = verdicts(Measured(**setting, verify_s={2: 67e-3}))
    return [
        Check("break-even, fast", fast.round_cost, 1.25, rel=0.01),
        Check("break-even, exact", exact.round_cost, 2.46, rel=0.03),
        Check("exact, at most", exact.largest_speedup, 0.81, rel=0.01),
        Check("acceptance rate, fast", fast.alpha, 0.33, abs=0.02),
        Check("acceptance length, exact", exact.acceptance_length, 1.77, rel=0.01),
        Check("rate for 1.5x, fast", needed_alpha(fast, 1.5), 0.88, abs=0.01),
        Check("the reports contradict", contradiction is not None, wanted=True),
        Check("and each alone with the other's length", "inconsistent" in same, wanted=True),
        *(has(code, exact_codes) for code in ("does_not_pay", "cannot_pay")),
    ]


@case("S17", "https://github.com/meta-pytorch/gpt-fast/issues/21")
def a_weight_only_kernel_for_one_row():
    """Llama-2-70B int8 weight-only on eight MI100 (1.2288 TB/s each), 7B drafter, K = 5: 33 -> 7 tokens/s."""
    llm, numbers, bandwidth = find_llm("llama-2-70b"), precision("w8a16"), 8 * 1.2288e12
    bound = works_time_s(forward_pass(llm, Load(), numbers), Machine("eight MI100", bandwidth, {}))
    read = streamed_bytes_per_step(llm, numbers)
    use = bandwidth_use(read * 33, {"read": {8: bandwidth}}, 8)
    setting = {"plain_s": 1 / 33, "token_s": 1 / 7, "k": 5, "weight_only": True}
    unknown = diagnose(Measured(**setting))
    guessed = diagnose(Measured(**setting, acceptance_length=expected_tokens(0.7, 5.0)))
    draft = streamed_bytes_per_step(find_llm("llama-2-7b"), numbers)
    return [
        Check("tokens/s of the bound", 1 / float(bound), 142, rel=0.03),
        Check("fraction of the bound", use.fraction, 0.23, rel=0.05),
        Check("c by bytes", draft / read, 0.10, rel=0.05),
        Check("healthy speedup at alpha 0.7", 33 * eta(0.7, 5.0, 0.1), 65, rel=0.01),
        Check("plain steps without any acceptance", unknown.implied.least_round_cost, 4.7, rel=0.01),
        Check("round at alpha 0.7, ms", guessed.implied.round_s * 1e3, 420, rel=0.01),
        Check("round cost at alpha 0.7", guessed.implied.round_cost, 13.9, rel=0.01),
        Check("codes", unknown.codes(), ("does_not_pay", "missing_kernel")),
        *(has(code, guessed.codes()) for code in ("does_not_pay", "cannot_pay", "missing_kernel")),
        hasnt("implementation_overhead", guessed.codes()),
    ]


@case("S19", "https://github.com/steveseguin/b70-optimization-lab/pull/18")
def mtp_that_collapses_at_depth():
    """MTP on an Arc B70 at depth 0 and 32k: 35B-A3B 103.3 -> 24.8 (off 108.1 -> 85.5), 27B 46.3 -> 14.9 (28 -> 23.3)."""
    checks = []
    cases = (
        # model, plain and MTP at depth 0, at 32k, KV bytes per token, expected tokens/s, growth ratio
        ("qwen3.5-35b-a3b", (108.1, 103.3), (85.5, 24.8), 20_480, 92, 25, 0.96),
        ("qwen3.5-27b", (28.0, 46.3), (23.3, 14.9), 65_536, 40, 13, 1.65),
    )
    for model, (plain, mtp), (deep_plain, deep_mtp), kv, expected, ratio, gain in cases:
        short = Measured(plain_s=1 / plain, token_s=1 / mtp, k=3, acceptance_length=2.0)
        deep = Measured(plain_s=1 / deep_plain, token_s=1 / deep_mtp, k=3, acceptance_length=2.0)
        effect = depth_effect(short, deep, 2.0)
        found = diagnose(short, deep=deep)
        checks += [
            # The later members of the family have these shapes.
            Check(f"KV bytes per token, {model}", kv_per_token(find_llm(model)), kv),
            Check(f"expected tokens/s, {model}", 1 / effect.expected_token_s, expected, rel=0.06),
            Check(f"growth ratio, {model}", effect.growth_ratio, ratio, rel=0.03),
            Check(f"speedup at depth 0, {model}", found.implied.speedup, gain, rel=0.01),
            has("verify_attention_kernel", found.codes()),
        ]
    healthy = depth_effect(
        Measured(plain_s=10e-3, token_s=6e-3, k=3), Measured(plain_s=12e-3, token_s=7.1e-3, k=3), 2.0
    )
    return [
        *checks,
        Check("a healthy verify is not blamed", verify_attention(healthy) is None, wanted=True),
    ]


# --- which K ---


@case("K01", "https://github.com/vllm-project/vllm/issues/20780")
def eagle_1_and_3_over_k():
    """Llama-3.1-8B, batch 1, plain 7.07 ms; A and TPOT at K = 2 .. 7. The report's own ratios are stale at K = 4 to 6."""
    ks = range(2, 8)
    lengths = {1: (2.1, 2.29, 2.39, 2.43, 2.45, 2.47), 3: (2.36, 2.79, 3.08, 3.32, 3.46, 3.54)}
    tpot_ms = {1: (4.37, 4.29, 4.48, 4.71, 4.94, 5.2), 3: (4.32, 4.09, 4.05, 4.13, 4.2, 4.29)}
    printed = {1: (None, None, 1.568, 1.610, 1.544, None), 3: (None,) * 6}
    checks = []
    for version, best, c, gain, fixed_ms in ((1, 3, 0.105, 1.648, 7.69), (3, 4, 0.144, 1.746, 8.35)):
        sweep = sweep_of(
            [
                Measured(plain_s=7.07e-3, k=k, acceptance_length=a, token_s=t * 1e-3, printed_speedup=p)
                for k, a, t, p in zip(ks, lengths[version], tpot_ms[version], printed[version], strict=True)
            ]
        )
        found = diagnose(sweep)
        facts = {fact.name: fact.value for fact in found.facts}
        checks += [
            Check(f"best K, EAGLE-{version}", found.best_k, best),
            Check(f"last K that pays, EAGLE-{version}", facts["last_paying_k"], best),
            Check(f"c, EAGLE-{version}", sweep.draft_cost, c, rel=0.03),
            Check(f"fixed part, EAGLE-{version}, ms", sweep.line.fixed_s * 1e3, fixed_ms, rel=0.01),
            Check(f"speedup, EAGLE-{version}", found.implied.speedup, gain, rel=0.005),
            Check(f"misfit under 3 %, EAGLE-{version}", sweep.line.misfit < 0.03, wanted=True),
            Check(f"stale ratios, EAGLE-{version}", len(found.findings), {1: 3, 3: 0}[version]),
            has("pays", found.codes()),
        ]
    # The fifth position of EAGLE-3: 0.24 tokens for 1.02 ms against a running 247 tokens/s.
    return [
        *checks,
        Check("fifth position", facts["next_tokens_per_s"], 235, rel=0.01),
        Check("running", facts["running_tokens_per_s"], 247, rel=0.01),
    ]


@case("K02", "https://github.com/eugr/spark-vllm-docker/issues/343")
def four_or_two_drafts():
    """26B-A4B on a DGX Spark, batch 1: K = 4 55.6 tokens/s, K = 2 54.9; survival .844 .599 .385 .271 and .766 .545."""
    four, two = Survival((0.844, 0.599, 0.385, 0.271)), Survival((0.766, 0.545))
    rows = [
        Measured(plain_s=math.nan, k=k, token_s=1 / rate, acceptance_length=survival.expected(float(k)))
        for k, rate, survival in ((4, 55.6, four), (2, 54.9, two))
    ]
    sweep = sweep_of(rows)
    found = diagnose(sweep, survival=four)
    rates = tuple(row["tokens_per_s"] for row in found.curve())
    facts = {fact.name: fact.value for fact in found.facts}
    return [
        Check("A at K = 4", four.expected(4.0), 3.099, rel=0.001),
        Check("A at K = 2", two.expected(2.0), 2.311, rel=0.001),
        Check("ms per position", sweep.line.slope_s * 1e3, 6.82, rel=0.02),
        Check("best K", found.best_k, {2, 3}),
        Check("tokens/s by K", rates, (52.3, 58.0, 57.8, 55.6), rel=0.005),
        Check("third position", facts["next_tokens_per_s"], 56, rel=0.01),
        Check("no verdict without a plain run", found.codes(), ("unknown",)),
    ]


# --- batch and bandwidth ---


@case("B01", "https://github.com/sgl-project/sglang/pull/19952")
def a_gain_that_fades_with_concurrency():
    """DFlash on a dense 27B, four H100, 1, 4 and 32 streams: 103.61 -> 207.19, 361.46 -> 684.67, 1860.84 -> 2115.39."""
    rates = ((1, 103.61, 207.19), (4, 361.46, 684.67), (32, 1860.84, 2115.39))
    gains = tuple(imply(Measured(plain_s=n / a, token_s=n / b, k=15)).speedup for n, a, b in rates)
    ridge = find_hardware("h100-sxm").ridge_tokens("bf16", 2.0)
    llm = find_llm("qwen3.5-27b")
    verify = sum(
        work.flops for work in forward_pass(llm, Load(32.0, 0.0, 16.0), BF16) if work.kind == "linear"
    )
    return [
        Check("speedups", gains, (2.0, 1.894, 1.137), rel=0.005),
        Check("ridge in tokens", ridge, 295, rel=0.01),
        Check("streams of 16 rows at the ridge", ridge / 16, 18.5, rel=0.03),
        Check("512 rows at four peaks, ms", verify / (4 * 989e12) * 1e3, 6.6, rel=0.03),
        Check("weights, GB", streamed_bytes_per_step(llm, BF16) / 1e9, 51, rel=0.02),
    ]


@case("R02", "https://github.com/ggml-org/llama.cpp/issues/26484")
def a_triad_as_the_roof():
    """Raspberry Pi 5: q4_k_m decodes at 10.25 GB/s with four threads; read-only 9.26, 13.23, 11.59, triad 8.0, 5.52."""
    probes = {
        "copy": {1: 10.22e9, 4: 6.19e9},
        "triad": {1: 8.0e9, 4: 5.52e9},
        "read": {1: 9.26e9, 2: 13.23e9, 4: 11.59e9},
    }
    use = bandwidth_use(10.25e9, probes, 4)
    triad = bandwidth_use(10.25e9, {"triad": probes["triad"]}, 4)
    return [
        Check("roof", use.ceiling, "read"),
        Check("fraction", use.fraction, 0.884, rel=0.01),
        Check("of the triad", triad.fraction, 1.86, rel=0.01),
        Check("threads to try", use.best_threads, 2),
        Check("gain there", use.headroom, 1.14, rel=0.01),
    ]


# --- models ---


@case("E01", "https://github.com/hahnyuan/LLM-Viewer/issues/12")
def a_cache_counted_with_query_heads():
    """KV bytes go by KV heads, FLOPs by query heads."""
    seventy, eight = find_llm("llama-3.1-70b"), find_llm("llama-3.1-8b")
    works = forward_pass(seventy, Load(context=4095.0), BF16)
    flops = sum(float(work.flops) for work in works if work.label == "attention")
    return [
        Check("70B, bytes per token", kv_per_token(seventy), 327_680),
        Check("8B, bytes per token", kv_per_token(eight), 131_072),
        Check("70B, read at 4096", sum(float(work.kv_bytes) for work in works), 1_342_177_280),
        Check("70B, FLOPs of attention", flops, 80 * 4 * 64 * 128 * 4096),
    ]


@case("E02", "https://github.com/llm-d/llm-d-benchmark/issues/426")
def head_dim_null_absent_or_its_own():
    """A given head_dim wins; null or absent is hidden over heads. Shapes are those of the public configs."""
    moe = {"num_local_experts": 8, "num_experts_per_tok": 2}
    mixtral = dense("8x22b", model_type="mixtral", architectures=["MixtralForCausalLM"], head_dim=None,
                    hidden_size=6144, intermediate_size=16_384, num_hidden_layers=56, num_attention_heads=48,
                    num_key_value_heads=8, vocab_size=32_768, **moe)  # fmt: skip
    mistral = dense("small", model_type="mistral", architectures=["MistralForCausalLM"], head_dim=128,
                    hidden_size=5120, intermediate_size=32_768, num_hidden_layers=40, num_attention_heads=32,
                    num_key_value_heads=8, vocab_size=131_072)  # fmt: skip
    gemma = dense("gemma", model_type="gemma3_text", architectures=["Gemma3ForCausalLM"], head_dim=256,
                  hidden_size=3840, intermediate_size=15_360, num_hidden_layers=48, num_attention_heads=16,
                  num_key_value_heads=8, vocab_size=262_208, sliding_window=1024,
                  sliding_window_pattern=6)  # fmt: skip
    qwen = dense("qwen2", model_type="qwen2", architectures=["Qwen2ForCausalLM"], hidden_size=3584,
                 intermediate_size=18_944, num_hidden_layers=28, num_attention_heads=28, num_key_value_heads=4,
                 vocab_size=152_064)  # fmt: skip
    return [
        Check("null: Mixtral-8x22B", kv_per_token(mixtral), 229_376),
        Check("given: Mistral-Small-24B", kv_per_token(mistral), 163_840),
        Check("given: gpt-oss-20b", kv_per_token(find_llm("gpt-oss-20b")), 49_152),
        Check("given: gemma-3-12b", kv_per_token(gemma), 393_216),
        Check("absent: Qwen2-7B", kv_per_token(qwen), 2 * 28 * 4 * 128 * 2),
    ]


@case("E05", "https://github.com/CambrianTech/continuum/pull/4156")
def a_hybrid_charged_on_every_layer():
    """64 layers, every fourth with full attention, 4 KV heads of 256; nested in text_config as published."""
    llm = find_llm("qwen3.5-27b")
    grown = float(kv_cache_bytes(llm, 1.0, 144_000.0, BF16) - kv_cache_bytes(llm, 1.0, 0.0, BF16))
    whole = hybrid_27b(layer_types=["full_attention"] * 64)
    listed = hybrid_27b(layer_types=(["linear_attention"] * 3 + ["full_attention"]) * 16)
    return [
        Check("bytes per token", kv_per_token(llm), 65_536),
        Check("nested, by interval", kv_per_token(hybrid_27b(full_attention_interval=4)), 65_536),
        Check("nested, neither: the family's own interval", kv_per_token(hybrid_27b()), 65_536),
        Check("nested, by list", kv_per_token(listed), 65_536),
        Check("every layer with a cache", kv_per_token(whole), 262_144),
        Check("144k tokens, GB", grown / 1e9, 9.4, rel=0.01),
        Check("parameters", llm.total_params, 26.9e9, rel=0.01),
    ]


def hybrid_27b(**fields):
    """The public shape of a 27B hybrid, inside the config of the whole."""
    text = {
        "model_type": "qwen3_5_text",
        "hidden_size": 5120,
        "intermediate_size": 17_408,
        "num_hidden_layers": 64,
        "num_attention_heads": 24,
        "num_key_value_heads": 4,
        "head_dim": 256,
        "vocab_size": 248_320,
        "attn_output_gate": True,
        "linear_num_key_heads": 16,
        "linear_num_value_heads": 48,
        "linear_key_head_dim": 128,
        "linear_value_head_dim": 128,
        "linear_conv_kernel_dim": 4,
    }
    outer = {"model_type": "qwen3_5", "architectures": ["Qwen3_5ForConditionalGeneration"]}
    return llm_from_config(outer | {"torch_dtype": "bfloat16", "text_config": text | fields}, "27b")


@case("E06", "https://github.com/lablup/mlxcel/issues/927")
def names_of_the_gpt2_era():
    """n_layer, n_embd, n_head; multi_query means one KV head: 288 MiB and 96 MiB at 8192 tokens in fp16."""
    base = {"vocab_size": 50_257, "n_positions": 8192, "torch_dtype": "float16"}
    gpt2 = {
        "model_type": "gpt2",
        "architectures": ["GPT2LMHeadModel"],
        "n_layer": 12,
        "n_embd": 768,
        "n_head": 12,
    }
    coder = {
        "model_type": "gpt_bigcode",
        "architectures": ["GPTBigCodeForCausalLM"],
        "n_layer": 24,
        "n_embd": 2048,
        "n_head": 16,
        "n_inner": 8192,
        "multi_query": True,
    }
    held = {
        name: float(kv_cache_bytes(llm_from_config(base | config, name), 1.0, 8192.0, precision("fp16")))
        for name, config in (("gpt2", gpt2), ("santacoder", coder))
    }
    return [
        Check("GPT-2", held["gpt2"], 301_989_888),
        Check("SantaCoder", held["santacoder"], 100_663_296),
    ]


@case("E07", "https://github.com/inference-sim/inference-sim/pull/561")
def two_matrices_in_a_gated_mlp():
    """Gate, up and down: three; 13.21 and 15.01 GB a token, 3.94 and 4.48 ms at 3.35 TB/s."""
    seven, eight = find_llm("llama-2-7b"), find_llm("llama-3.1-8b")
    h100 = Machine("3.35 TB/s", 3.35e12, {})
    steps = tuple(float(works_time_s(forward_pass(m, Load(), BF16), h100)) * 1e3 for m in (seven, eight))
    return [
        Check("Llama-2-7B", seven.total_params, 6_738_149_376, rel=0.001),
        Check("Llama-3.1-8B", eight.total_params, 8_029_995_008, rel=0.001),
        Check("GB a token, Llama-2-7B", streamed_bytes_per_step(seven, BF16) / 1e9, 13.21, rel=0.002),
        Check("GB a token, Llama-3.1-8B", streamed_bytes_per_step(eight, BF16) / 1e9, 15.01, rel=0.002),
        Check("steps, ms", steps, (3.94, 4.48), rel=0.005),
        Check("Qwen3-30B-A3B goes by the width of its experts", find_llm("qwen3-30b-a3b").total_params, 30.5e9, rel=0.01),
    ]  # fmt: skip


@case("E10", "https://github.com/0xBakeer/inference-atlas/pull/153")
def bits_per_weight_of_the_headline():
    """A 35B-A3B with MTP and vision, counted 35.952 B: the bf16 file of 71.93 GB has 16.0 bits, not 16.44."""
    llm = find_llm("qwen3.5-35b-a3b")
    counted = llm.total_params + 0.845e9 + 0.447e9
    mixed = precision("bf16", classes={"experts": "nvfp4"})
    return [
        Check("body", llm.total_params, 34.66e9, rel=0.002),
        Check("MTP", llm.mtp_params, 0.845e9, rel=0.01),
        Check("bytes of an nvfp4 weight", precision("nvfp4").bytes_per_weight, 0.5625),
        Check("bits in bf16", bits_per_weight(71.93e9, counted), 16.0, abs=0.02),
        Check("GB a token with nvfp4 experts", streamed_bytes_per_step(llm, mixed) / 1e9, 4.4, rel=0.1),
    ]


@pytest.mark.parametrize("name", CASES)
def test_case(name):
    url, work_out = CASES[name]
    wrong = [f"{check.name}: {check.value}, not {check.wanted}" for check in work_out() if not check.holds()]
    assert not wrong, f"{url}\n" + "\n".join(wrong)


TYPED = {
    # What a user of the case would type, and the codes that come out.
    "S02": (
        "--plain-tok-s 11 --spec-tok-s 10.78 --accepted 313 --generated 371 --drafted 912 --k 16 --draft-ms 151.8",
        {"does_not_pay"},
    ),
    "S06": (
        "--plain-tok-s 342.2 --spec-tok-s 128.3 --acceptance-length 1.97 --k 1",
        {"does_not_pay", "cannot_pay", "implementation_overhead"},
    ),
    "S13": (
        "--spec-tok-s 88.5 --alpha 0.803 --k 4 --verify-ms 1=8.47,2=13.49,3=15.64,5=20.67,8=28.13",
        {"does_not_pay", "rest_too_dear"},
    ),
    "S16": (
        "--plain-ms 28 --draft-ms 2 --verify-ms 2=67 --speedup 0.72 --k 1 --acceptance-length 1.33",
        {"does_not_pay", "inconsistent", "missing_kernel", "verify_too_dear"},
    ),
    "S17": ("--plain-tok-s 33 --spec-tok-s 7 --k 5 --weight-only", {"does_not_pay", "missing_kernel"}),
    "S19": (
        "--plain-tok-s 28 --spec-tok-s 46.3 --k 3 --acceptance-length 2 --deep-plain-tok-s 23.3 --deep-spec-tok-s 14.9",
        {"pays", "verify_attention_kernel"},
    ),
    "B01": ("--plain-tok-s 1860.84 --spec-tok-s 2115.39 --batch 32 --k 15", {"pays"}),
}


@pytest.mark.parametrize("name", TYPED)
def test_a_case_on_the_command_line(capsys, name):
    arguments, codes = TYPED[name]
    assert run(["diagnose", *arguments.split(), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {found["verdict"], *(one["code"] for one in found["findings"])} == codes


def test_every_case_has_its_thread():
    assert len(CASES) == 20
    assert all(url.startswith("https://github.com/") for url, _ in CASES.values())
