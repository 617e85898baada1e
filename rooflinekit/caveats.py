"""What a reader of a recommendation should know before acting on it."""

from __future__ import annotations

from rooflinekit.curve import Case, CurvePoint
from rooflinekit.load import Load

SERIAL_HOST = (
    "device time only: an engine adds host time to each of the K serial passes (0.3-0.4 ms in vLLM on an H100), so "
    "expect less at large K; --host vllm counts it"
)


READ_UP_TO = 32.0
"""Batch from which on the host time of a draft pass is doubtful."""

HIDDEN_HOST = (
    "host time of a draft pass was read at one request; at 64 requests vLLM hid most of it behind the device, so "
    "serial drafting may be cheaper here"
)


BLOCK = (
    "speedups of DFlash come out about a quarter above the published ones (median of 40 rows, SGLang on a B200, host "
    "time counted); take this one as an upper bound"
)


def caveats(case: Case, load: Load, chosen: CurvePoint, best: CurvePoint, top: int) -> tuple[str, ...]:
    """Notes on a choice of K.

    Parameters
    ----------
    case, load
        What was asked about.
    chosen, best
        The K that is judged and the best one.
    top
        Largest K that was tried.
    """
    notes = []
    # A millisecond-scale step is an accelerator's: there the host is a sizeable part of a small pass.
    serial = case.drafter.serial_passes == "K" and chosen.draft_s < 5e-3 * chosen.k
    if serial and not case.machine.pass_host_s and not case.drafting.given:
        notes.append(SERIAL_HOST)
    if case.drafter.serial_passes == "K" and case.machine.pass_host_s and float(load.batch) >= READ_UP_TO:
        notes.append(HIDDEN_HOST)
    if case.drafter.name == "dflash" and not case.drafting.given:
        notes.append(BLOCK)
    if chosen.verify_s < 0.97 * chosen.decode_s:
        ratio = chosen.decode_s / chosen.verify_s
        notes.append(
            f"on these kernels a verify is {ratio:.2f} times as fast as a plain step, so part of the gain is not "
            "speculation's: padding a plain step to more rows would have it too"
        )
    if best.k == top and top > 1 and chosen.k == best.k:
        notes.append(f"the best K is the largest that could be tried ({top}): {_limit(case, top)}")
    if chosen.k != best.k:
        notes.append(f"K = {best.k} would give {best.speedup:.2f}x")
    longest = case.target.llm.max_context
    if longest and float(load.context) > longest:
        notes.append(f"the context is longer than the {longest} tokens the model was trained for")
    if case.acceptance.max_k is None and chosen.k > 8:
        notes.append("a constant acceptance rate flatters long drafts: measured rates fall along the block")
    return (*notes, *case.acceptance.warnings)


def _limit(case: Case, top: int) -> str:
    if case.acceptance.max_k == top:
        return (
            "acceptance was measured no further, so a larger K may be better; `rooflinekit acceptance fit FILE` "
            "gives a --decay that reaches further"
        )
    return "its trained block" if case.drafter.max_k == top else "--max-k may be raised"
