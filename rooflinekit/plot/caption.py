"""What stands above a picture of speculation: the question, the device, and what the numbers hold for."""

from __future__ import annotations

from dataclasses import dataclass

from rooflinekit.curve import Case


@dataclass(frozen=True, slots=True, kw_only=True)
class Caption:
    """Device, calibration and load in words.

    Attributes
    ----------
    model, device
        Names as a title writes them.
    conditions
        Acceptance, number format, load, host time and calibration, as far as they hold for all that is drawn.
    """

    model: str
    device: str
    conditions: str


def caption_of(
    case: Case,
    device: str,
    calibration: str = "datasheet",
    *,
    batch: float | None = None,
    context: float | None = None,
    acceptance: bool = True,
) -> Caption:
    """Say what a picture holds for.

    Parameters
    ----------
    case
        What was asked about.
    device
        Title of the hardware.
    calibration
        Name of what its ceilings came from.
    batch, context
        Where they are the same in the whole picture.
    acceptance
        Whether acceptance is the same in the whole picture.
    """
    target, machine = case.target, case.machine
    said = [
        case.acceptance.label if acceptance else "",
        target.precision.label,
        "" if batch is None else f"batch {batch:g}",
        "" if context is None else f"context {context:g}",
        "with host time" if "host" in machine.evidence else "",
        f"overlap {case.drafting.overlap:g}" if case.drafting.overlap else "",
        "draft time given" if case.drafting.given else "",
    ]
    ranks = f"{target.tp} x " if target.tp > 1 else ""
    text = ", ".join(part for part in said if part)
    return Caption(model=target.llm.name, device=ranks + device, conditions=f"{text}; {calibration}")
