"""Lines of the sources whose device time is predicted; the predictions are in ``devices``."""

from __future__ import annotations

from rooflinekit.papers_suite import devices
from rooflinekit.papers_suite.source import Source

GPT_FAST = "https://github.com/pytorch-labs/gpt-fast"
DFLASH = "https://arxiv.org/abs/2602.06036"
SPECBUNDLE = "https://github.com/sgl-project/SpecForge"
VLLM_BLOG = "https://github.com/vllm-project/vllm-project.github.io"

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
        name="SpecBundle, 8B",
        quantity="cost per step",
        url=SPECBUNDLE,
        formula="speculate, EAGLE-3, H100 calibration",
        judged="median",
        tolerance=0.35,
        limits="a spread, not a fit: a draft step in the engine takes a third longer than its kernels, but less than "
        "with vLLM's host time for each pass (two fifths too dear), as SGLang starts all passes as one graph",
        rows=devices.specbundle_slopes,
    ),
    Source(
        name="vLLM on B300",
        quantity="T(tokens) / T(1)",
        url=VLLM_BLOG,
        formula="Target.step_s, DeepSeek-V4-Flash, B200's ceilings",
        judged="median",
        tolerance=0.1,
        limits="the shape: T(1) itself is predicted two fifths too slow, and T(2) faster than T(1), as in B200's "
        "kernel tables; no calibration of B300 is shipped; eight rows a request are assumed; the drafter's "
        "curve of the same figure is left out, because its shape is not published",
        rows=devices.b300_growth,
    ),
)
