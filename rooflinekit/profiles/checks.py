"""What looks wrong in a profile that is formally right: sparse rates, slips of unit, odd ratios.

The traps are those of public tables: vendors print the rate with sparsity, GiB as GB, both directions of a
link; each leaves a trace in the ratio of two numbers.
"""

from __future__ import annotations

from collections.abc import Iterator

from rooflinekit import units
from rooflinekit.hardware import Hardware

RATIO_TOLERANCE = 0.03
"""One printed pair (L40S: 733 against 2 x 362.05) comes from two clocks, 1.2 % apart."""

RIDGE_BAND = (20.0, 2000.0)

# Rate over the bf16 rate, for formats where the matrix unit decides it.
_RATIOS: dict[str, tuple[float, ...]] = {
    "fp16": (1.0,),
    "tf32": (0.5,),
    "fp8": (2.0,),
    "int8": (2.0, 4.0),
}

# Largest dense bf16 FLOP per clock and SM: A100, H100 and RTX Blackwell whitepapers, B200 from its rate and
# clock. Double that is the rate with 2:4 sparsity.
_FLOP_PER_CLOCK = {
    "volta": 1024,
    "turing": 1024,
    "ampere": 2048,
    "ada": 1024,
    "hopper": 4096,
    "blackwell": 8192,
}
_FLOP_PER_CLOCK_GEFORCE = 512


def check_hardware(hardware: Hardware) -> list[str]:
    """Say what a second look at a profile should go to.

    Parameters
    ----------
    hardware
        A profile that loads.

    Returns
    -------
    list
        One sentence a finding; those that start with ``note:`` may well be right.
    """
    findings = [*_ratios(hardware), *_ridge(hardware), *_sparse(hardware), *_units(hardware)]
    return sorted(findings, key=lambda finding: finding.startswith("note:"))


def _ratios(hardware: Hardware) -> Iterator[str]:
    base = hardware.peak.get("bf16")
    if base is None:
        return
    for name, allowed in _RATIOS.items():
        if name not in hardware.peak:
            continue
        ratio = hardware.peak[name].value / base.value
        if any(abs(ratio / right - 1) <= RATIO_TOLERANCE for right in allowed):
            continue
        rates = f"peak.{name} is {ratio:.3g} times peak.bf16"
        usual = " or ".join(f"{right:g}" for right in allowed)
        if hardware.vendor.upper() != "NVIDIA" or (name == "int8" and ratio < 0.9):
            # TPU v6e and Gaudi 3 run 8 bits at the bf16 rate, B300 cut int8.
            yield f"note: {rates}, usually {usual}; keep it if the vendor says so"
        elif abs(ratio * 2 / allowed[0] - 1) <= RATIO_TOLERANCE:
            yield f"{rates}, not {usual}: is peak.bf16 the rate with sparsity? Write dense rates only"
        elif any(abs(ratio / right / 2 - 1) <= RATIO_TOLERANCE for right in allowed):
            yield f"{rates}, not {usual}: is peak.{name} the rate with sparsity? Write dense rates only"
        else:
            yield f"{rates}, not {usual}; check both against the vendor's table"


def _ridge(hardware: Hardware) -> Iterator[str]:
    name = next((name for name in ("bf16", "fp16") if name in hardware.peak), None)
    if name is None:
        yield "note: no bf16 or fp16 peak, so the compute bound of a forward pass stays unknown"
        return
    ridge = hardware.ridge_flop_per_byte(name)
    low, high = RIDGE_BAND
    if not low <= ridge <= high:
        # A CPU without a matrix unit may be lower; its measured numbers have no slips of prefix.
        known = all(cited.kind == "measured" for cited in (hardware.peak[name], hardware.bandwidth))
        yield ("note: " if known else "") + (
            f"the {name} ridge point is {ridge:.3g} FLOP/B, outside {low:g} to {high:g}; "
            f"check the prefixes of peak.{name} and bandwidth"
        )


def _sparse(hardware: Hardware) -> Iterator[str]:
    """Compare with units x clock x rate: finds a table that is sparse throughout, where ratios agree."""
    peak, count, clock = hardware.peak.get("bf16"), hardware.units, hardware.clock
    if peak is None or count is None or clock is None or hardware.vendor.upper() != "NVIDIA":
        return
    family = hardware.architecture.split()[0].lower()
    most = _FLOP_PER_CLOCK_GEFORCE if "geforce" in hardware.title.lower() else _FLOP_PER_CLOCK.get(family)
    if most is None:
        return
    rate = peak.value / (count.value * clock.value)
    if rate > 1.6 * most:
        yield (
            f"peak.bf16 is {rate:.0f} FLOP per clock and unit, where {hardware.architecture} does {most} "
            "dense with fp32 accumulation; is it the rate with sparsity or fp16 accumulation?"
        )


def _units(hardware: Hardware) -> Iterator[str]:
    capacity, bandwidth = hardware.capacity.value, hardware.bandwidth.value
    if capacity % 1e9 == 0 and capacity >= 4e9:
        size = capacity / 1e9
        yield (
            f"note: capacity is exactly {size:g} GB; memory is made in GiB, so if the vendor's GB means GiB "
            f"write {size:g} GiB, or the bytes that the driver reports"
        )
    binary = min(_digits(bandwidth / 2.0**30), _digits(bandwidth / 2.0**40))
    if binary <= 4 and _digits(bandwidth) > 6:
        yield (
            f"bandwidth {units.render(bandwidth, 'B/s')} is round only in binary units; vendors mean decimal "
            "GB/s and TB/s"
        )


def _digits(value: float) -> int:
    """Significant digits of a number.

    >>> _digits(3.35e12), _digits(3683327092326.4)
    (3, 12)
    """
    return len(f"{value:.11e}".partition("e")[0].replace(".", "").rstrip("0"))
