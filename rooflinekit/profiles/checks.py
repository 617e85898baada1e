"""What looks wrong in a profile that is formally right: sparse rates, slips of unit, odd ratios, swapped SKUs.

The traps are those of public tables: vendors print the rate with sparsity, GiB as GB, both directions of a
link; each leaves a trace in the ratio of two numbers. Comparing with the shipped profiles is in
:mod:`rooflinekit.profiles.kin`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rooflinekit import units
from rooflinekit.evidence import Cited
from rooflinekit.hardware import Hardware
from rooflinekit.profiles.families import USUAL, Family, family_of
from rooflinekit.profiles.kin import MEASURED, base_format, compare

RATIO_TOLERANCE = 0.03
"""One printed pair (L40S: 733 against 2 x 362.05) comes from two clocks, 1.2 % apart."""

RIDGE_BAND = (20.0, 2000.0)

RATE_BAND = (0.8, 1.25)
"""Peak over units x clock x rate: boards are rated below or above the clock that a table prints."""

NOTE = "note: "


def check_hardware(hardware: Hardware, shipped: Sequence[Hardware] = ()) -> list[str]:
    """Say what a second look at a profile should go to.

    Parameters
    ----------
    hardware
        A profile that loads.
    shipped
        Profiles to compare with: another SKU's number under this name, or one that is off.

    Returns
    -------
    list
        One sentence a finding; those that start with ``note:`` may well be right.
    """
    family = family_of(hardware)
    findings = [
        *_ratios(hardware, family),
        *_ridge(hardware),
        *_rate(hardware, family),
        *_units(hardware),
        *_link(hardware, family),
        *compare(hardware, shipped),
    ]
    return sorted(dict.fromkeys(findings), key=lambda finding: finding.startswith(NOTE))


def _ratios(hardware: Hardware, family: Family | None) -> Iterator[str]:
    base = base_format(hardware)
    if base is None:
        return
    below = hardware.peak[base]
    for name, allowed in (family.ratios if family else USUAL).items():
        over = hardware.peak.get(name)
        # What is measured or marked as doubtful does not obey the vendor's ratios.
        if name == base or over is None or not (_stands(over) and _stands(below)):
            continue
        ratio = over.value / below.value
        if not any(_near(ratio, right) for right in allowed):
            yield _odd_ratio(name, base, ratio, allowed, known=family is not None)


def _odd_ratio(name: str, base: str, ratio: float, allowed: tuple[float, ...], *, known: bool) -> str:
    rates = f"peak.{name} is {ratio:.3g} times peak.{base}"
    usual = " or ".join(f"{right:g}" for right in allowed)
    if not known:
        # A new architecture may run 8 bits at the bf16 rate, as TPU v6e and Gaudi 3 do.
        return f"{NOTE}{rates}, usually {usual}; keep it if the vendor says so"
    if name in ("fp8", "int8", "fp6") and _near(ratio, 1.0):
        return (
            f"{rates}, not {usual}: either peak.{name} is a copy of peak.{base}, or is peak.{base} the rate "
            "with sparsity? Write dense rates only"
        )
    if _near(ratio * 2, allowed[0]):
        return f"{rates}, not {usual}: is peak.{base} the rate with sparsity? Write dense rates only"
    if any(_near(ratio, right * 2) for right in allowed):
        return f"{rates}, not {usual}: is peak.{name} the rate with sparsity? Write dense rates only"
    return f"{rates}, not {usual}; check both against the vendor's table"


def _ridge(hardware: Hardware) -> Iterator[str]:
    name = base_format(hardware)
    if name is None:
        yield f"{NOTE}no bf16 or fp16 peak, so the compute bound of a forward pass stays unknown"
        return
    ridge = hardware.ridge_flop_per_byte(name)
    low, high = RIDGE_BAND
    if not low <= ridge <= high:
        # A CPU without a matrix unit may be lower; its measured numbers have no slips of prefix.
        known = all(cited.kind == "measured" for cited in (hardware.peak[name], hardware.bandwidth))
        yield (NOTE if known else "") + (
            f"the {name} ridge point is {ridge:.3g} FLOP/B, outside {low:g} to {high:g}; "
            f"check the prefixes of peak.{name} and bandwidth"
        )


def _rate(hardware: Hardware, family: Family | None) -> Iterator[str]:
    """Compare with units x clock x rate: finds a table that is sparse throughout, where ratios agree."""
    base, count, clock = base_format(hardware), hardware.units, hardware.clock
    if base is None or count is None or clock is None or family is None or not family.flop_per_clock:
        return
    rate = hardware.peak[base].value / (count.value * clock.value)
    low, high = RATE_BAND
    if any(low <= rate / right <= high for right in family.flop_per_clock):
        return
    usual = " or ".join(f"{right}" for right in family.flop_per_clock)
    found = (
        f"peak.{base} is {rate:.0f} FLOP per clock and unit, where {hardware.architecture} does {usual} dense"
    )
    if rate > max(family.flop_per_clock):
        yield f"{found} with fp32 accumulation; is it the rate with sparsity or fp16 accumulation?"
    elif _stands(hardware.peak[base]):
        yield f"{found}; is it the vector rate, or of another part?"


def _units(hardware: Hardware) -> Iterator[str]:
    capacity, bandwidth = hardware.capacity.value, hardware.bandwidth.value
    if capacity % 1e9 == 0 and capacity >= 4e9 and "GiB" not in hardware.capacity.ref:
        size = capacity / 1e9
        yield (
            f"{NOTE}capacity is exactly {size:g} GB; memory is made in GiB, so if the vendor's GB means GiB "
            f"write {size:g} GiB, or the bytes that the driver reports"
        )
    binary = min(_digits(bandwidth / 2.0**30), _digits(bandwidth / 2.0**40))
    if binary <= 4 and _digits(bandwidth) > 6:
        yield (
            f"bandwidth {units.render(bandwidth, 'B/s')} is round only in binary units; vendors mean decimal "
            "GB/s and TB/s"
        )


def _link(hardware: Hardware, family: Family | None) -> Iterator[str]:
    widest = family.link_bytes_per_s if family else 0.0
    if hardware.link is None or not widest or hardware.link.value <= 1.05 * widest:
        return
    yield (
        f"link {units.render(hardware.link.value, 'B/s')} is more than the {units.render(widest, 'B/s')} per "
        f"direction of {hardware.architecture}; is it both directions together? Write one"
    )


def _stands(cited: Cited) -> bool:
    return cited.kind not in MEASURED and cited.confidence != "low"


def _near(value: float, right: float) -> bool:
    return abs(value / right - 1) <= RATIO_TOLERANCE


def _digits(value: float) -> int:
    """Significant digits of a number.

    >>> _digits(3.35e12), _digits(3683327092326.4)
    (3, 12)
    """
    return len(f"{value:.11e}".partition("e")[0].replace(".", "").rstrip("0"))
