"""Number formats: how many bits a weight, a cached key or value and an activation take, and what computes.

Weights, cache and activations are separate choices. A format that stores few bits but dequantises before
the matrix unit (``w4a16``) saves bytes, not FLOPs: it computes in bf16.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from rooflinekit.errors import ModelError, nearest


@dataclass(frozen=True, slots=True)
class Precision:
    """Bits of each tensor class and the format of the matrix unit.

    Attributes
    ----------
    name
        The name on the command line.
    weight_bits
        Bits of one weight of the linear layers, group scales included.
    head_bits
        Bits of one weight of the LM head and the embedding (usually not quantised).
    kv_bits
        Bits of one cached key or value element.
    activation_bits
        Bits of one element of the linear layers' inputs and outputs.
    compute
        Key of the device's dense peak that this format computes in.
    """

    name: str
    weight_bits: float
    head_bits: float
    kv_bits: float
    activation_bits: float
    compute: str

    @property
    def weight_bytes(self) -> float:
        """Bytes of one weight of the linear layers."""
        return self.weight_bits / 8

    @property
    def head_bytes(self) -> float:
        """Bytes of one weight of LM head and embedding."""
        return self.head_bits / 8

    @property
    def kv_bytes(self) -> float:
        """Bytes of one cached element."""
        return self.kv_bits / 8

    @property
    def activation_bytes(self) -> float:
        """Bytes of one activation element."""
        return self.activation_bits / 8


# name: (weight bits with scales, head, cache, activation, compute).
# Scales: fp8 one fp32 per 128 x 128 block; int8 one fp16 per output row, negligible; int4 one fp16 per
# group of 128; nvfp4 one fp8 per 16; mxfp4 one e8m0 per 32 (OCP Microscaling 1.0, nvfp4 in the PTX ISA).
_FORMATS: dict[str, tuple[float, float, float, float, str]] = {
    "fp32": (32, 32, 32, 32, "fp32"),
    "bf16": (16, 16, 16, 16, "bf16"),
    "fp16": (16, 16, 16, 16, "fp16"),
    "fp8": (8 + 32 / 128**2, 16, 16, 16, "fp8"),
    "int8": (8, 16, 16, 16, "int8"),
    "w8a16": (8, 16, 16, 16, "bf16"),
    "w4a16": (4 + 16 / 128, 16, 16, 16, "bf16"),
    "nvfp4": (4 + 8 / 16, 16, 16, 16, "fp4"),
    "mxfp4": (4 + 8 / 32, 16, 16, 16, "fp4"),
}
FORMATS: tuple[str, ...] = tuple(_FORMATS)
KV_FORMATS: dict[str, float] = {"fp32": 32, "bf16": 16, "fp16": 16, "fp8": 8, "int8": 8}

WEIGHT_ONLY = {"fp8": "w8a16", "int8": "w8a16", "nvfp4": "w4a16", "mxfp4": "w4a16"}
"""The weight-only format to name when a device cannot compute in one: same bytes, bf16 FLOPs."""


def precision(name: str, kv: str = "auto") -> Precision:
    """Return a precision by name, with another cache format if one is named.

    >>> precision("bf16").weight_bytes
    2.0
    >>> precision("fp8", kv="fp8").kv_bytes
    1.0
    """
    if name not in _FORMATS:
        raise ModelError(f"number format {name!r} is unknown; {nearest(name, _FORMATS)}")
    weight, head, cache, activation, compute = _FORMATS[name]
    result = Precision(name, float(weight), float(head), float(cache), float(activation), compute)
    if kv == "auto":
        return result
    if kv not in KV_FORMATS:
        raise ModelError(f"KV cache format {kv!r} is unknown; {nearest(kv, KV_FORMATS)}")
    return replace(result, kv_bits=float(KV_FORMATS[kv]))
