"""Lines of the sources whose times are predicted; the predictions are in ``devices``."""

from __future__ import annotations

from rooflinekit.papers_suite import devices
from rooflinekit.papers_suite.source import Source

GPT_FAST = "https://github.com/pytorch-labs/gpt-fast"
DFLASH = "https://arxiv.org/abs/2602.06036"
EAGLE3 = "https://arxiv.org/abs/2503.01840"
SPECBUNDLE = "https://github.com/sgl-project/SpecForge"
VLLM = "https://github.com/SpecDecode-Bench/specdecode-bench.github.io"

SOURCES = (
    Source(
        name="gpt-fast, A100",
        quantity="plain tokens/s",
        url=GPT_FAST,
        formula="Target.step_s, A100 calibration",
        judged="median",
        tolerance=0.15,
        limits="other kernels than the calibrated ones, on a part limited to 330 W; int4 in groups of 32 is "
        "predicted a quarter to a half too fast",
        rows=devices.gpt_fast_decode,
    ),
    Source(
        name="gpt-fast, A100",
        quantity="c, 7B for 70B",
        url=GPT_FAST,
        formula="Round.draft_cost, SmallLm",
        judged="worst",
        tolerance=0.2,
        limits="one row; its speedup (1.92x) is not judged, because acceptance is not given",
        rows=devices.gpt_fast_draft_cost,
    ),
    Source(
        name="DFlash, Table 6",
        quantity="cost per layer",
        url=DFLASH,
        formula="DFlash.plan, H200 calibration",
        judged="worst",
        tolerance=0.2,
        limits="two slopes over 3, 5 and 8 layers in an eager loop, which takes longer per layer; the target is "
        "Qwen3-8B by a public note only; MT-Bench is left out",
        rows=devices.dflash_layers,
    ),
    Source(
        name="DFlash, Tables 3, 5",
        quantity="sign by batch",
        url=DFLASH,
        formula="speculate, DFlash, B200 calibration",
        judged="sign",
        tolerance=0.95,
        limits="all rows pay, so the sign is easy; without the engine's host time the speedup is 20 to 90 % too high "
        "(MoE at batch 1: too low); the rows of EAGLE-3 trees are left out",
        rows=devices.dflash_batch,
    ),
    Source(
        name="SpecBundle, 8B",
        quantity="round cost",
        url=SPECBUNDLE,
        formula="speculate, EAGLE-3, H100 calibration",
        judged="median",
        tolerance=0.2,
        limits="the device is not recorded (an H100 by its 190 tokens/s); host time is missing, so the cost is too low",
        rows=devices.specbundle_costs,
    ),
    Source(
        name="SpecBundle, 8B",
        quantity="cost per step",
        url=SPECBUNDLE,
        formula="speculate, EAGLE-3, H100 calibration",
        judged="median",
        tolerance=0.35,
        limits="a spread, not a fit: a draft step in the engine takes a third longer than its kernels",
        rows=devices.specbundle_slopes,
    ),
    Source(
        name="vLLM, H100, 8B",
        quantity="rho(B) / rho(1)",
        url=VLLM,
        formula="speculate, EAGLE and EAGLE-3, K = 3",
        judged="median",
        tolerance=0.1,
        limits="the growth with batch, not the level; acceptance is taken as independent of batch, contexts as 700",
        rows=devices.vllm_growth_8b,
    ),
    Source(
        name="vLLM, 4x H100, 70B",
        quantity="rho(B) / rho(1)",
        url=VLLM,
        formula="speculate, EAGLE, K = 3, TP 4",
        judged="median",
        tolerance=0.15,
        limits="the same; the drafter is taken to be split over the four ranks",
        rows=devices.vllm_growth_70b,
    ),
    Source(
        name="vLLM, H100",
        quantity="sign by batch",
        url=VLLM,
        formula="speculate, speedup at batch 1",
        judged="sign",
        tolerance=0.9,
        limits="the speedup at batch 1 is measured; n-gram rows are left out (host time only)",
        rows=devices.vllm_signs,
    ),
    Source(
        name="EAGLE-3, Table 3",
        quantity="sign by batch",
        url=EAGLE3,
        formula="speculate, EAGLE-3, speedup at batch 2",
        judged="sign",
        tolerance=0.9,
        limits="all rows pay; the speedup at batch 2 is measured",
        rows=devices.sglang_eagle3,
    ),
    Source(
        name="EAGLE-3, Table 3",
        quantity="sign, EAGLE",
        url=EAGLE3,
        formula="speculate, EAGLE, speedup at batch 2",
        judged="sign",
        tolerance=None,
        limits="not judged: the crossing of 1.0 between batch 16 and 24 comes from that engine's host time per round, "
        "which is not modelled here",
        rows=devices.sglang_eagle,
    ),
)
