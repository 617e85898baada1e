"""Limits of the suite ``kernels``: what the project set itself before it fitted, and what a calibration states."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rooflinekit.calibration import Calibration, Fit

HOPPER = ("h100-sxm5-80gb", "h200-sxm-141gb")
BETTER = 1.5
"""Factor by which a row's own routing law must beat the uniform one where routing is skewed."""


@dataclass(frozen=True, slots=True)
class Limit:
    """Largest median and 90th percentile of the absolute error; None is no limit."""

    median: float | None = None
    p90: float | None = None


_LINEAR: Mapping[str, Limit] = {
    "a100-sxm4-80gb": Limit(0.03, 0.10),
    "h100-sxm5-80gb": Limit(0.02, 0.06),
    "h200-sxm-141gb": Limit(0.03, 0.08),
    "rtx-pro-6000-blackwell-server": Limit(0.02, 0.06),
    "b200-hgx-180gb": Limit(0.05, 0.11),
    "l40s": Limit(0.04, 0.09),
}
_RATIO: Mapping[tuple[str, str], float] = {
    ("h100-sxm5-80gb", "17-64"): 0.025,
    ("h200-sxm-141gb", "17-64"): 0.025,
    ("a100-sxm4-80gb", "17-64"): 0.04,
    ("h100-sxm5-80gb", "65-256"): 0.045,
    ("h200-sxm-141gb", "65-256"): 0.045,
    ("a100-sxm4-80gb", "65-256"): 0.09,
    ("b200-hgx-180gb", "65-256"): 0.065,
}


def limit(part: str, band: str, fit: Fit, calibration: Calibration) -> Limit:  # noqa: PLR0911 - a table
    """Limit of a part of the suite, as the project set itself before it fitted; none where it set none."""
    device, trtllm = calibration.base, calibration.stack == "trtllm"
    if part == "large" and fit.dtype == "bf16":
        if band == "1-64":
            return _LINEAR.get(device, Limit()) if trtllm else Limit(0.055)
        return Limit(0.08 if device == "a100-sxm4-80gb" else 0.06)
    if part == "large" and fit.dtype == "fp8" and trtllm and device in HOPPER and band == "1-64":
        return Limit(0.03)
    if part == "ratio" and fit.dtype == "bf16" and trtllm:
        return Limit(_RATIO.get((device, band)))
    if part == "small" and fit.dtype == "bf16":
        return Limit(0.06, 0.18)
    if part == "attention":
        if trtllm and device in HOPPER:
            return Limit(0.04, 0.15)
        return Limit(0.03, 0.10) if not trtllm and device in (*HOPPER, "b200-hgx-180gb") else Limit()
    if part == "latent":
        return Limit(0.04, 0.15) if device in (*HOPPER, "b200-hgx-180gb") else Limit()
    fixed = {"prefill": Limit(0.07, 0.20), "experts": Limit(0.06, 0.20), "eight": Limit(0.08)}
    return fixed.get(part, Limit(0.08, 0.25) if part == "collective" else Limit())


STATED, MARGIN = 1.5, 0.01
"""On a small slice the error may be this much larger than the stated one."""
TAIL = 0.6
"""And its median may reach this share of the stated 90th percentile: the median of few shapes lies anywhere in a
heavy tail."""


def stated_limit(part: str, band: str, fit: Fit) -> Limit:
    """Limit that follows from the held-out errors that a calibration states for the rows of a band."""
    if part in ("eight", "skewed"):
        return Limit()
    low, _, high = band.partition("-")
    inside = [one for one in fit.bands if high and one.low <= int(high) and int(low) <= one.high]
    some = [one.ratio if part == "ratio" else one.time for one in inside] or [fit.held_out]
    known = [one for one in some if one is not None]
    if not known:
        return Limit()
    median, tenth = (
        max(getattr(one, name) for one in known) for name in ("median_abs_error", "p90_abs_error")
    )
    return Limit(max(STATED * median, TAIL * tenth) + MARGIN, STATED * tenth + 2 * MARGIN)
