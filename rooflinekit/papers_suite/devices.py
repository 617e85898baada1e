"""Sources that judge device time alone: the shipped calibration of the device a paper used, nothing fitted to it.

Plain guesses are the datasheet roofline. With the host time of an engine: ``serving`` and ``trees``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rooflinekit.acceptance import Constant, solve_alpha
from rooflinekit.calibration import calibrated
from rooflinekit.drafters import BUILDERS, WEIGHTLESS, Drafter, dflash
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

A100, H100, H200 = "a100-sxm4-80gb", "h100-sxm5-80gb", "h200-sxm-141gb"
B200, B300 = "b200-hgx-180gb", "b300-hgx-270gb"
BF16 = "bf16"
CONTEXT = 1024.0
"""Tokens in the cache where a source does not say: prompts and answers of these benchmarks."""
GPT_FAST_CONTEXT = 100.0
"""Half of the 200 generated tokens after a prompt of five."""
B300_CONTEXT, B300_TP, B300_WIDTH = 8192.0, 4, 8.0
"""Synthetic cache and ranks of the step curve; rows of a request: a block of seven drafts and the known token."""


def both(device: str, stack: str) -> tuple[Machine, Machine]:
    """A device by the calibration of an engine, and by its datasheet; the default engine may change with a refit."""
    hardware = find_hardware(device)
    base = machine(hardware)
    calibration = shipped_calibration(hardware.name, stack)
    return (calibrated(base, calibration) if calibration is not None else base), base


def target_of(model: str, dtype: str = BF16, tp: int = 1) -> Target:
    """A preset as target."""
    return Target(find_llm(model), precision(dtype), tp)


def drafter_of(name: str, target: Target) -> Drafter:
    """A drafter for the target by name, or a preset as small model."""
    builder = BUILDERS.get(name) or WEIGHTLESS.get(name)
    if builder is not None:
        return builder(target.llm, target.precision)
    return SmallLm(find_llm(name), target.precision)


def chain_round(
    on: Machine, target: Target, drafter: Drafter, length: float, k: int, *, batch: Real, context: float
) -> Round:
    """A round with a measured acceptance length."""
    known = Constant(solve_alpha(length, k))
    return speculate(on, target, drafter, known, batch=batch, context=context, k=float(k))


def gpt_fast_decode() -> list[Row]:
    """Tokens per second of plain decoding."""
    machines = both(A100, "vllm")
    found = []
    for row in read("gpt_fast_decode.csv"):
        target = target_of(row["model"], row["dtype"])
        ours, plain = (1.0 / float(target.step_s(on, 1.0, GPT_FAST_CONTEXT, 1.0)) for on in machines)
        found.append(Row(f"{row['model']}, {row['dtype']}", ours, float(row["tokens_per_s"]), plain))
    return found


def gpt_fast_draft_cost() -> list[Row]:
    """One step of the 7B draft over one of the 70B target; the plain guess is the ratio of parameters."""
    on, _ = both(A100, "vllm")
    found = []
    for row in read("gpt_fast_speculative.csv"):
        target, k = target_of(row["target"], row["dtype"]), int(row["k"])
        draft = SmallLm(find_llm(row["draft"]), target.precision)
        cost = float(
            chain_round(on, target, draft, 1.0 + k / 2, k, batch=1.0, context=GPT_FAST_CONTEXT).draft_cost
        )
        measured = float(row["target_tokens_per_s"]) / float(row["draft_tokens_per_s"])
        plain = draft.llm.total_params / target.llm.total_params
        found.append(Row(f"{row['draft']} for {row['target']}, {row['dtype']}", cost, measured, plain))
    return found


def _slope(xs: Sequence[float], ys: Sequence[float]) -> float:
    return float(np.polyfit(xs, ys, 1)[0])


def dflash_layers() -> list[Row]:
    """Growth of the round cost per draft layer; the plain guess is one layer of the target's."""
    on, _ = both(H200, "vllm")
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


def specbundle_costs(machines: Sequence[Machine]) -> list[Row]:
    """Round cost of EAGLE-3 chains by a machine and by a plainer one; measured as acceptance length over speedup."""
    target = target_of("llama-3.1-8b")
    drafter = drafter_of("eagle3", target)
    found = []
    for row in read("specbundle.csv"):
        length, k = float(row["acceptance_length"]), int(row["k"])
        measured = length * float(row["plain_tokens_per_s"]) / float(row["tokens_per_s"])
        ours, plain = (
            float(chain_round(on, target, drafter, length, k, batch=1.0, context=CONTEXT).round_cost)
            for on in machines
        )
        found.append(Row(f"{row['benchmark']}, {row['draft']}, K {k}", ours, measured, plain))
    return found


def specbundle_slopes() -> list[Row]:
    """Growth of the round cost per extra draft step, K = 3 to 7."""
    series: dict[str, list[tuple[float, Row]]] = {}
    for row in specbundle_costs(both(H100, "sglang")):
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


def b300_growth() -> list[Row]:
    """T(tokens) / T(1) of DeepSeek-V4-Flash on four B300, by the ceilings that were fitted on B200."""
    base = machine(find_hardware(B300), B300_TP)
    kin = shipped_calibration(find_hardware(B200).name, "vllm")
    rows = read("vllm_b300_steps.csv")
    tokens: Floats = np.array([float(row["tokens"]) for row in rows])
    measured: Floats = np.array([float(row["step_ms"]) for row in rows])
    llm = find_llm("deepseek-v4-flash")
    target = Target(llm, precision(llm.dtype, llm.kv_dtype, llm.formats), B300_TP)
    width = np.minimum(tokens, B300_WIDTH)
    ours, plain = (
        np.asarray(target.step_s(on, tokens / width, B300_CONTEXT, width))
        for on in (calibrated(base, kin) if kin is not None else base, base)
    )
    found = [
        Row(f"{count:g} tokens", float(a / ours[0]), float(b / measured[0]), float(c / plain[0]))
        for count, a, b, c in zip(tokens, ours, measured, plain, strict=True)
    ]
    return found[1:]
