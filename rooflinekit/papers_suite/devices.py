"""Sources that judge predicted times: shipped calibrations of the device a paper used, nothing fitted to it.

Only device time is predicted: no host time of an engine and no tree. Plain guesses are the datasheet roofline.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rooflinekit.acceptance import Constant, solve_alpha
from rooflinekit.calibration import calibrated
from rooflinekit.drafters import BUILDERS, Drafter, dflash
from rooflinekit.drafters.small_lm import SmallLm
from rooflinekit.forms import Floats
from rooflinekit.hardware import machine
from rooflinekit.papers_suite.source import Row, read
from rooflinekit.precision import precision
from rooflinekit.profiles.calibration_file import shipped_calibration
from rooflinekit.profiles.library import find_hardware
from rooflinekit.readers.models import find_llm
from rooflinekit.speculation import Round, speculate
from rooflinekit.target import Target
from rooflinekit.work import Machine, Real, plan_time_s

A100, H100, H200, B200 = "a100-sxm4-80gb", "h100-sxm5-80gb", "h200-sxm-141gb", "b200-hgx-180gb"
BF16 = "bf16"
CONTEXT = 1024.0
"""Tokens in the cache where a source does not say: prompts and answers of these benchmarks."""
VLLM_CONTEXT = 700.0
"""Middle of the benchmarks of the vLLM study (300 to 1,200 tokens)."""
GPT_FAST_CONTEXT = 100.0
"""Half of the 200 generated tokens after a prompt of five."""
BATCHES = (1, 16, 64, 128)
USUAL_LENGTH = 2.5
"""Tokens a round of K = 3 emits; only the drafter's first pass depends on it, and little."""


def both(device: str, stack: str | None = None) -> tuple[Machine, Machine]:
    """A device by the calibration of an engine (default: the best measured), and by its datasheet."""
    hardware = find_hardware(device)
    base = machine(hardware)
    calibration = shipped_calibration(hardware.name, stack)
    return (calibrated(base, calibration) if calibration is not None else base), base


def target_of(model: str, dtype: str = BF16, tp: int = 1) -> Target:
    """A preset as target."""
    return Target(find_llm(model), precision(dtype), tp)


def drafter_of(name: str, target: Target) -> Drafter:
    """A drafter of the target's shape, or a preset as small model."""
    if name in BUILDERS:
        return BUILDERS[name](target.llm, target.precision)
    return SmallLm(find_llm(name), target.precision)


def round_of(
    on: Machine, target: Target, drafter: Drafter, length: float, k: int, *, batch: Real, context: float
) -> Round:
    """A round with a measured acceptance length."""
    known = Constant(solve_alpha(length, k))
    return speculate(on, target, drafter, known, batch=batch, context=context, k=float(k))


def gpt_fast_decode() -> list[Row]:
    """Tokens per second of plain decoding."""
    machines = both(A100)
    found = []
    for row in read("gpt_fast_decode.csv"):
        target = target_of(row["model"], row["dtype"])
        ours, plain = (1.0 / float(target.step_s(on, 1.0, GPT_FAST_CONTEXT, 1.0)) for on in machines)
        found.append(Row(f"{row['model']}, {row['dtype']}", ours, float(row["tokens_per_s"]), plain))
    return found


def gpt_fast_draft_cost() -> list[Row]:
    """One step of the 7B draft over one of the 70B target; the plain guess is the ratio of parameters."""
    on, _ = both(A100)
    found = []
    for row in read("gpt_fast_speculative.csv"):
        target, k = target_of(row["target"], row["dtype"]), int(row["k"])
        draft = SmallLm(find_llm(row["draft"]), target.precision)
        cost = float(
            round_of(on, target, draft, 1.0 + k / 2, k, batch=1.0, context=GPT_FAST_CONTEXT).draft_cost
        )
        measured = float(row["target_tokens_per_s"]) / float(row["draft_tokens_per_s"])
        plain = draft.llm.total_params / target.llm.total_params
        found.append(Row(f"{row['draft']} for {row['target']}, {row['dtype']}", cost, measured, plain))
    return found


def _slope(xs: Sequence[float], ys: Sequence[float]) -> float:
    return float(np.polyfit(xs, ys, 1)[0])


def dflash_layers() -> list[Row]:
    """Growth of the round cost per draft layer; the plain guess is one layer of the target's."""
    on, _ = both(H200)
    target = target_of("qwen3-8b")
    step = float(target.step_s(on, 1.0, CONTEXT, 1.0))
    tasks: dict[str, list[tuple[int, float, float]]] = {}
    for row in read("dflash_layers.csv"):
        length = float(row["acceptance_length"])
        tasks.setdefault(row["task"], []).append((int(row["layers"]), length, length / float(row["speedup"])))
    found = []
    for task, points in tasks.items():
        layers = [float(count) for count, _, _ in points]
        costs = []
        for count, length, _ in points:
            drafter = replace(
                dflash.for_target(target.llm, target.precision), llm=dflash.backbone_llm(target.llm, count)
            )
            plan = drafter.plan(k=15.0, batch=1.0, context=CONTEXT, refresh=length)
            costs.append(float(plan_time_s(plan, on)) / step)
        measured = _slope(layers, [cost for _, _, cost in points])
        found.append(Row(task, _slope(layers, costs), measured, plain=1.0 / target.llm.layers))
    return found


def dflash_batch() -> list[Row]:
    """Speedup against concurrency, acceptance as printed."""
    machines = both(B200)
    found = []
    for row in read("dflash_batch.csv"):
        target, k = target_of(row["model"]), int(row["k"])
        drafter = replace(
            dflash.for_target(target.llm, target.precision),
            llm=dflash.backbone_llm(target.llm, int(row["layers"])),
        )
        length, batch = float(row["acceptance_length"]), float(row["batch"])
        ours, plain = (
            float(round_of(on, target, drafter, length, k, batch=batch, context=CONTEXT).speedup)
            for on in machines
        )
        case = f"{row['table']}, {row['model']}, {row['task']}, batch {row['batch']}"
        found.append(Row(case, ours, float(row["speedup"]), plain))
    return found


def specbundle_costs() -> list[Row]:
    """Round cost of EAGLE-3 chains; measured as acceptance length over speedup."""
    machines = both(H100, "sglang")
    target = target_of("llama-3.1-8b")
    drafter = drafter_of("eagle3", target)
    found = []
    for row in read("specbundle.csv"):
        length, k = float(row["acceptance_length"]), int(row["k"])
        measured = length * float(row["plain_tokens_per_s"]) / float(row["tokens_per_s"])
        ours, plain = (
            float(round_of(on, target, drafter, length, k, batch=1.0, context=CONTEXT).round_cost)
            for on in machines
        )
        found.append(Row(f"{row['benchmark']}, {row['draft']}, K {k}", ours, measured, plain))
    return found


def specbundle_slopes() -> list[Row]:
    """Growth of the round cost per extra draft step, K = 3 to 7."""
    series: dict[str, list[tuple[float, Row]]] = {}
    for row in specbundle_costs():
        case, _, k = row.case.rpartition(", K ")
        series.setdefault(case, []).append((float(k), row))
    found = []
    for case, points in series.items():
        ks = [k for k, _ in points]
        ours, measured, plain = (
            _slope(ks, [getattr(row, name) for _, row in points])
            for name in ("predicted", "measured", "plain")
        )
        found.append(Row(case, ours, measured, plain))
    return found


def _growth(on: Machine, target: Target, draft: str, k: int, batches: Floats, context: float) -> Floats:
    """Round cost against batch, over that of the first batch."""
    drafter = drafter_of(draft, target)
    costs = np.asarray(
        round_of(on, target, drafter, USUAL_LENGTH, k, batch=batches, context=context).round_cost
    )
    grown: Floats = costs / costs[0]
    return grown


def _vllm(which: str, *, growth: bool) -> list[Row]:
    """Growth of the round cost with batch, or the speedup it leaves of that at batch 1."""
    machines = both(H100, "vllm")
    batches: Floats = np.array(BATCHES, dtype=float)
    found = []
    for row in read("vllm_batch.csv"):
        if which not in ("all", row["model"]) or (growth and row["draft"] not in BUILDERS):
            continue
        target, k = target_of(row["model"], tp=int(row["tp"])), int(row["k"])
        speedups = [float(row[f"speedup_{batch}"]) for batch in BATCHES]
        ours, plain = (_growth(on, target, row["draft"], k, batches, VLLM_CONTEXT) for on in machines)
        for i, batch in list(enumerate(BATCHES))[1:]:
            case = f"{row['model']}, {row['draft']}, {row['dataset']}, batch {batch}"
            first, here = speedups[0], speedups[i]
            if growth:
                found.append(Row(case, float(ours[i]), first / here, float(plain[i])))
            else:
                found.append(Row(case, first / float(ours[i]), here, first / float(plain[i])))
    return found


def vllm_growth_8b() -> list[Row]:
    """rho(B) / rho(1) of EAGLE and EAGLE-3 on two 8B targets, K = 3."""
    return [row for model in ("llama-3.1-8b", "qwen3-8b") for row in _vllm(model, growth=True)]


def vllm_growth_70b() -> list[Row]:
    """rho(B) / rho(1) of EAGLE on a 70B target on four GPUs, K = 3."""
    return _vllm("llama-3.1-70b", growth=True)


def vllm_signs() -> list[Row]:
    """Speedup at batch 16, 64, 128 from that at batch 1 and the predicted growth."""
    return _vllm("all", growth=False)


def _sglang(draft: str) -> list[Row]:
    machines = both(H100, "sglang")
    target = target_of("llama-3.1-8b")
    rows = [row for row in read("eagle3_sglang.csv") if row["draft"] == draft]
    batches: Floats = np.array([float(row["batch"]) for row in rows])
    ours, plain = (_growth(on, target, draft, int(rows[0]["k"]), batches, CONTEXT) for on in machines)
    first = float(rows[0]["speedup"])
    return [
        Row(f"{draft}, batch {row['batch']}", first / float(a), float(row["speedup"]), first / float(b))
        for row, a, b in list(zip(rows, ours, plain, strict=True))[1:]
    ]


def sglang_eagle3() -> list[Row]:
    """EAGLE-3, chain of 3: speedup against batch from that at batch 2."""
    return _sglang("eagle3")


def sglang_eagle() -> list[Row]:
    """EAGLE, chain of 3: the same, where the measured speedup crosses 1."""
    return _sglang("eagle")
