"""What an architecture fixes: matrix FLOP per clock and unit, ratios of formats, and the widest link.

From the A100, H100, GA102 and RTX Blackwell whitepapers, the MI250, MI300 and gpu-specs pages of the ROCm
documentation, Intel's Gaudi 3 slides and Google's TPU pages; recomputed over the shipped profiles by a test.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from rooflinekit.hardware import Hardware


class Family(NamedTuple):
    """One architecture, or one chip of it.

    Attributes
    ----------
    vendor, prefix
        Start of the vendor's and of the architecture's name, in lower case.
    flop_per_clock
        Dense bf16 or fp16 FLOP per clock and unit, fp32 accumulation; empty where it is not known.
    ratios
        Rates of other formats over bf16 (over fp16 where there is no bf16).
    link_bytes_per_s
        Widest link per direction (B/s); 0 where it is not known.
    """

    vendor: str
    prefix: str
    flop_per_clock: tuple[int, ...] = ()
    ratios: Mapping[str, tuple[float, ...]] = {}
    link_bytes_per_s: float = 0.0


_FLOATS: dict[str, tuple[float, ...]] = {"fp16": (1.0,), "tf32": (0.5,)}
USUAL = _FLOATS | {"fp8": (2.0,), "int8": (2.0, 4.0)}
"""Ratios of an architecture that is not in the table."""

_AMPERE = _FLOATS | {"int8": (2.0,), "int4": (4.0,)}
_ADA = _FLOATS | {"fp8": (2.0,), "int8": (2.0,), "int4": (4.0,)}
_BLACKWELL = _ADA | {"fp6": (2.0,), "fp4": (4.0,)}

# Longer prefixes before the shorter ones that they begin with.
FAMILIES: tuple[Family, ...] = (
    Family("nvidia", "volta", (1024,), {}, 150e9),
    Family("nvidia", "turing", (1024,), {"int8": (2.0,), "int4": (4.0,)}, 50e9),
    Family("nvidia", "ampere (ga100)", (2048,), _AMPERE, 300e9),
    Family("nvidia", "ampere (ga10b)", (2048,), _AMPERE),
    # The A10G runs its GA102 at the rate of a GeForce.
    Family("nvidia", "ampere (ga10", (1024, 512), _AMPERE, 56.25e9),
    Family("nvidia", "ampere", (2048, 1024, 512), _AMPERE, 300e9),
    Family("nvidia", "ada", (1024,), _ADA, 32e9),
    Family("nvidia", "hopper", (4096,), _ADA, 450e9),
    # Blackwell Ultra traded int8 and fp64 for fp4.
    Family("nvidia", "blackwell ultra", (8192,), _BLACKWELL | {"int8": (0.067,), "fp4": (6.0,)}, 900e9),
    Family("nvidia", "blackwell (gb20", (1024,), _BLACKWELL, 64e9),
    Family("nvidia", "blackwell (gb10)", (1024,), _BLACKWELL),
    Family("nvidia", "blackwell", (8192,), _BLACKWELL, 900e9),
    Family("amd", "cdna2", (1024,), {"fp16": (1.0,), "int8": (1.0,)}, 350e9),
    Family("amd", "cdna3", (2048,), USUAL | {"int8": (2.0,)}, 448e9),
    Family("amd", "cdna4", (4096,), USUAL | {"int8": (2.0,), "fp6": (4.0,), "fp4": (4.0,)}, 535.5e9),
    Family("amd", "rdna3", (512,), {"fp16": (1.0,), "int8": (1.0,)}, 32e9),
    Family("intel", "gaudi 2", (), {"fp8": (2.0,)}, 300e9),
    Family("intel", "gaudi 3", (), {"fp8": (1.0,), "fp16": (0.25,), "tf32": (0.25,)}, 600e9),
    Family("intel", "sapphire rapids", (1024,), {"int8": (2.0,)}),
    Family("google", "tpu v5e", (), {"int8": (2.0,), "int4": (4.0,)}, 200e9),
    Family("google", "tpu v5p", (), {"fp8": (1.0,), "int8": (2.0,), "int4": (4.0,)}, 600e9),
    Family("google", "tpu v6e", (), {"fp8": (1.0,), "int8": (2.0,), "int4": (4.0,)}, 400e9),
    Family("google", "tpu v7x", (), {"fp8": (2.0,)}, 600e9),
)

# GeForce halves the floating-point rates with fp32 accumulation; integers and fp4 keep theirs.
GEFORCE_FLOP_PER_CLOCK = (512,)
_GEFORCE: dict[str, tuple[float, ...]] = {
    "int8": (4.0,),
    "int4": (8.0,),
    "fp4": (8.0,),
    "fp16-acc16": (2.0,),
    "fp8-acc16": (4.0,),
}


def family_of(hardware: Hardware) -> Family | None:
    """Return the family of a device, with GeForce's own rates where it is one; None when unknown."""
    vendor, architecture = hardware.vendor.lower(), hardware.architecture.lower()
    for family in FAMILIES:
        if vendor.startswith(family.vendor) and architecture.startswith(family.prefix):
            if "geforce" in hardware.title.lower():
                return family._replace(
                    flop_per_clock=GEFORCE_FLOP_PER_CLOCK, ratios={**family.ratios, **_GEFORCE}
                )
            return family
    return None
