"""Time that an engine spends outside the kernels: per step, per serial draft pass, per verified row.

Kernels are timed alone; an engine adds scheduling, sampling, metadata and launches. End-to-end data shows
these costs as additive, so they are terms of their own, named after the engine they were read from.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from rooflinekit import units
from rooflinekit.errors import RooflineError, UnitError, nearest
from rooflinekit.evidence import Kind
from rooflinekit.work import Machine


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """Host time of an engine (s).

    Attributes
    ----------
    name
        Engine, or ``given`` for the user's own numbers.
    step_s
        Of every step, plain or verify.
    pass_s
        Of every serial draft pass, besides.
    row_s
        Of every row that is sampled or judged.
    round_s
        Of every round of speculation, besides a step: judging, sampling, bookkeeping.
    device
        Profile of the device it was read on; '' where that is not known. Elsewhere it is an assumption.
    kind
        How they are known.
    ref
        Where they come from.
    """

    name: str
    step_s: float = 0.0
    pass_s: float = 0.0
    row_s: float = 0.0
    round_s: float = 0.0
    device: str = ""
    kind: Kind = "assumed"
    ref: str = ""


NO_HOST = Host(name="none", kind="measured", ref="device time alone")

# step_s: constant `overhead_per_step` of that simulator, 1.2068 ms. pass_s: Figure 4 of the project page
# (H100, Llama-3.1-8B, EAGLE-3, K = 3, one request) gives drafting 21.7 % and verify 65.2 % of a round; with the
# simulator's verify of 5.97 ms one draft step is 0.662 ms, less 0.293 ms of kernels. row_s: fitted to the
# fall of the speedup with batch in Figure 1 (Llama-3.1-8B, EAGLE and EAGLE-3, 1 to 128 requests, eight series, at
# contexts of 350 tokens for GSM8K, 700 for ShareGPT and InstructCoder, 1,200 for CNN/DailyMail): mean error of the
# growth of the round cost 4.2 %, 5.4 % without host time. The least is at 8.5 us by the kernels of decision 15 and was
# at 9 by those before, flat from 7 to 10; 90 % of resamples of the eight series put it at 5 to 16.5. On the series that
# were not fitted, Qwen3-8B and the 70B on four GPUs: 6.3 and 8.2 %, 8.5 and 8.4 % without host time, 12.7 and 11.3 %
# with the times of a step and a pass alone. tests/test_published_serving.py reads these numbers out again.
VLLM = Host(
    name="vllm",
    step_s=1.207e-3,
    pass_s=0.37e-3,
    row_s=8e-6,
    device="h100-sxm5-80gb",
    kind="fitted",
    ref="vLLM 0.10-0.11 on one H100, Llama-3.1-8B: Liu et al. 2026 (arXiv:2601.11580), Figures 1 and 4 and the "
    "constants of its simulator",
)

HOSTS = {"none": NO_HOST, "vllm": VLLM}
"""Engines whose host time is known."""


def host_of(text: str) -> Host:
    """Host time by the name of an engine, or as ``STEP,PASS,ROW,ROUND`` with units: ``1.2ms,0.4ms,5us``.

    Raises
    ------
    RooflineError
        Neither.

    Examples
    --------
    >>> host_of("1.2ms,0.4ms").pass_s
    0.0004
    """
    name = text.strip().lower()
    if name in HOSTS:
        return HOSTS[name]
    if not re.match(r"[\d.]", name):
        raise RooflineError(
            f"host time of {text!r} is unknown; {nearest(name, HOSTS)}, or give your own: --host "
            "STEP,PASS,ROW,ROUND such as 1.2ms,0.4ms,5us"
        )
    try:
        numbers = [units.parse(part.strip(), "s") for part in text.split(",")]
    except UnitError as error:
        raise RooflineError(
            f"--host {text!r}: {error}; write STEP,PASS,ROW,ROUND such as 1.2ms,0.4ms,5us"
        ) from error
    if len(numbers) > 4 or not all(0.0 <= value <= 10.0 for value in numbers):
        raise RooflineError(
            f"--host {text!r} is not one to four times of 0 to 10 s; write STEP,PASS,ROW,ROUND such as 1.2ms,0.4ms,5us"
        )
    step, each_pass, row, whole = (*numbers, 0.0, 0.0, 0.0)[:4]
    return Host(
        name="given", step_s=step, pass_s=each_pass, row_s=row, round_s=whole, ref="given by the user"
    )


def with_host(machine: Machine, host: Host) -> Machine:
    """The same device under an engine that takes this host time."""
    if host is NO_HOST:
        return machine
    kind: Kind = host.kind if machine.name.startswith(host.device) else "assumed"
    return replace(
        machine,
        step_host_s=host.step_s,
        pass_host_s=host.pass_s,
        token_host_s=host.row_s,
        round_host_s=host.round_s,
        evidence={**machine.evidence, "host": kind},
    )
