"""Lines of the sources that were timed in an engine; the predictions, host time included, are in ``serving``."""

from __future__ import annotations

from functools import partial

from rooflinekit.papers_suite import serving
from rooflinekit.papers_suite.device_sources import DFLASH, SPECBUNDLE
from rooflinekit.papers_suite.source import Source

VLLM = "https://github.com/SpecDecode-Bench/specdecode-bench.github.io"
VLLM_ISSUE = "https://github.com/vllm-project/vllm/issues/20780"
EAGLE3 = "https://arxiv.org/abs/2503.01840"

STEPS = (
    Source(
        name="vLLM issue 20780",
        quantity="plain step",
        url=VLLM_ISSUE,
        formula="Target.step_s, H100 calibration, host",
        judged="worst",
        tolerance=0.03,
        limits="one number; the device is an H100 by the change the issue belongs to",
        rows=serving.eagle_plain,
    ),
    Source(
        name="vLLM issue 20780",
        quantity="ms/token, EAGLE",
        url=VLLM_ISSUE,
        formula="speculate, EAGLE, K = 2 to 7, host",
        judged="worst",
        tolerance=0.1,
        limits="batch 1; a draft pass is predicted a quarter too dear (pass_s was read from EAGLE-3), so K = 2 is "
        "said to be best where 3 was, a loss of 2 %",
        rows=partial(serving.eagle_tokens, "eagle"),
    ),
    Source(
        name="vLLM issue 20780",
        quantity="ms/token, EAGLE-3",
        url=VLLM_ISSUE,
        formula="speculate, EAGLE-3, K = 2 to 7, host",
        judged="median",
        tolerance=0.25,
        limits="too fast throughout: a pass of EAGLE-3 took a third of a millisecond longer in that vLLM (July 2025) "
        "than in the one that pass_s was read from; K = 5 is said to be best where 4 was, a loss of 2 %",
        rows=partial(serving.eagle_tokens, "eagle3"),
    ),
    Source(
        name="DFlash, Tables 3, 5",
        quantity="plain tokens/s",
        url=DFLASH,
        formula="Target.step_s, B200 calibration, host",
        judged="median",
        tolerance=0.05,
        limits="SGLang on another device under the host time of vLLM on H100; the MoE at batch 1 to 8 is 2 to 13 % "
        "too fast",
        rows=serving.dflash_plain,
    ),
    Source(
        name="DFlash, Tables 3, 5",
        quantity="speedup",
        url=DFLASH,
        formula="speculate, DFlash, B200 calibration, host",
        judged="median",
        tolerance=0.35,
        limits="too high although the plain step is right: on dense targets by up to 32 % with overlap (Table 3), by "
        "25 to 54 % without (Table 5), as if the round took more host time than one step and one pass; on the "
        "MoE up to 60 % from batch 16 on; acceptance is an average over the concurrencies",
        rows=serving.dflash_batch,
    ),
    Source(
        name="SpecBundle, 8B",
        quantity="round cost",
        url=SPECBUNDLE,
        formula="speculate, EAGLE-3, H100 calibration, host",
        judged="median",
        tolerance=0.05,
        limits="right on balance: at K = 3 too low, per step too high; the device is not recorded, and on an H200 the "
        "error is much the same; its 190 tokens/s are faster than an H100's plain step without any host time",
        rows=serving.specbundle_costs,
    ),
)

BATCHES = (
    Source(
        name="vLLM, Llama-3.1-8B",
        quantity="rho growth, fitted",
        url=VLLM,
        formula="speculate, EAGLE, EAGLE-3, host",
        judged="mean",
        tolerance=0.05,
        limits="not held out: the host time of a row (8 us) was fitted to these rows; the growth with batch, not the "
        "level; acceptance is taken as independent of batch",
        rows=partial(serving.vllm_growth, "llama-3.1-8b"),
    ),
    Source(
        name="vLLM, Qwen3-8B",
        quantity="rho(B) / rho(1)",
        url=VLLM,
        formula="speculate, EAGLE-3, K = 3, host",
        judged="mean",
        tolerance=0.08,
        limits="the growth, not the level; at batch 128 a tenth too low",
        rows=partial(serving.vllm_growth, "qwen3-8b"),
    ),
    Source(
        name="vLLM, 70B on four",
        quantity="rho(B) / rho(1)",
        url=VLLM,
        formula="speculate, EAGLE, K = 3, TP 4, host",
        judged="mean",
        tolerance=0.1,
        limits="host time hardly helps here: from batch 64 on it is a tenth too low with and without, so that rather "
        "the verify of 256 and 512 rows on four ranks grows too little; the drafter is taken to be split over "
        "the ranks",
        rows=partial(serving.vllm_growth, "llama-3.1-70b"),
    ),
    Source(
        name="vLLM, H100",
        quantity="sign by batch",
        url=VLLM,
        formula="speculate, speedup at batch 1, host",
        judged="sign",
        tolerance=0.98,
        limits="the speedup at batch 1 is measured; two of 60 lie below 1, and the limit asks for one of them",
        rows=serving.vllm_signs,
    ),
    Source(
        name="vLLM, H100",
        quantity="sign, n-gram",
        url=VLLM,
        formula="speculate, NGram, speedup at batch 1, host",
        judged="sign",
        tolerance=None,
        limits="not judged: the prediction drafts for every request in every round, the engine only where it finds a "
        "proposal; where that is often (InstructCoder, K = 3) it is right within 14 %, elsewhere 17 to 38 % too low at "
        "batch 128",
        rows=serving.vllm_ngram,
    ),
    Source(
        name="vLLM, Figure 4",
        quantity="T_q/T_v, batch 1",
        url=VLLM,
        formula="Round, draft with host over verify",
        judged="median",
        tolerance=0.2,
        limits="four bars, without the one that pass_s was read from; the data set of a bar is not stated",
        rows=partial(serving.vllm_shares, alone=True),
    ),
    Source(
        name="vLLM, Figure 4",
        quantity="T_q/T_v, batch 64+",
        url=VLLM,
        formula="Round, draft with host over verify",
        judged="median",
        tolerance=None,
        limits="not judged, and wrong: host time per draft pass is added at every batch, but seems to hide behind the "
        "device at large ones; without it EAGLE-3 is 5 to 30 % too low, EAGLE 20 to 50 % too high, Qwen3-0.6B "
        "two and a half to three times (its cache at 700 tokens)",
        rows=partial(serving.vllm_shares, alone=False),
    ),
    Source(
        name="EAGLE-3, Table 3",
        quantity="speedup by batch",
        url=EAGLE3,
        formula="speculate, EAGLE-3, speedup at batch 2, host",
        judged="median",
        tolerance=0.2,
        limits="the speedup at batch 2 is measured; from batch 8 on 10 to 30 % too high: the round grows faster",
        rows=partial(serving.sglang_chain, "eagle3"),
    ),
    Source(
        name="EAGLE-3, Table 3",
        quantity="sign, EAGLE",
        url=EAGLE3,
        formula="speculate, EAGLE, speedup at batch 2, host",
        judged="sign",
        tolerance=None,
        limits="not judged: the measured speedup falls below 1 between batch 16 and 24 and then stays there; with "
        "vLLM's host time the predicted one falls to 1.28 at batch 64 (1.34 without), and a host time per row, "
        "which goes on growing, does not make that shape",
        rows=partial(serving.sglang_chain, "eagle"),
    ),
)
SOURCES = (*STEPS, *BATCHES)
