"""Number formats: how many bits a weight, a cached key or value and an activation take, and what computes.

Weights, cache and activations are separate choices, and a checkpoint may store its tensor classes in
several formats (experts in mxfp4, attention in bf16, the head in bf16). A format that stores few bits but
dequantises before the matrix unit (``w4a16``) saves bytes, not FLOPs: it computes in bf16.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from rooflinekit.errors import ModelError, nearest


class Format(NamedTuple):
    """How a tensor is stored and computed with.

    Attributes
    ----------
    name
        The name on the command line.
    bits
        Bits of one element, group scales included.
    compute
        Key of the device's dense peak that it computes in.
    activation_bits
        Bits of one element of the inputs and outputs of a matrix product in this format.
    """

    name: str
    bits: float
    compute: str
    activation_bits: float = 16.0


# Scales: fp8 one fp32 per 128 x 128 block; int8 one fp16 per output row, negligible; int4 one fp16 per
# group of 128 (g64: of 64, g32: of 32); nvfp4 one fp8 per 16; mxfp4 and mxfp8 one e8m0 per 32 (OCP
# Microscaling 1.0).
_FORMATS = (
    Format("fp32", 32, "fp32", 32),
    Format("bf16", 16, "bf16"),
    Format("fp16", 16, "fp16"),
    Format("fp8", 8 + 32 / 128**2, "fp8"),
    Format("int8", 8, "int8"),
    Format("w8a16", 8, "bf16"),
    Format("w4a16", 4 + 16 / 128, "bf16"),
    Format("w4a16-g64", 4 + 16 / 64, "bf16"),
    Format("w4a16-g32", 4 + 16 / 32, "bf16"),
    Format("nvfp4", 4 + 8 / 16, "fp4"),
    Format("mxfp4", 4 + 8 / 32, "fp4"),
    Format("w4a16-nvfp4", 4 + 8 / 16, "bf16"),
    Format("w4a16-mxfp4", 4 + 8 / 32, "bf16"),
)
_BY_NAME: dict[str, Format] = {one.name: one for one in _FORMATS}
KV_FORMATS: dict[str, float] = {"fp32": 32, "bf16": 16, "fp16": 16, "fp8": 8, "int8": 8}

WEIGHT_ONLY = {"fp8": "w8a16", "int8": "w8a16", "nvfp4": "w4a16-nvfp4", "mxfp4": "w4a16-mxfp4"}
"""The weight-only format to name when a device cannot compute in one: same bytes, bf16 FLOPs."""

# GGUF block formats of llama.cpp: bytes per block of 256 (or 32) weights, scales included. They are
# dequantised to 16 bits where they are not multiplied in int8, so the 16-bit rate is the safe one.
_GGUF = {
    "q8_0": 34 / 32,
    "q6_k": 210 / 256,
    "q5_k": 176 / 256,
    "q4_k": 144 / 256,
    "q4_0": 18 / 32,
    "q3_k": 110 / 256,
}


def _gguf_mix(base: str) -> dict[str, Format]:
    """Formats by class of a ``_M`` mix: half of the value and down projections, and the head, are in q6_k.

    The value projection is about a tenth of an attention layer with grouped queries, the down projection a
    third of a gated feed-forward layer: averages, since a class is priced as one.
    """
    low, high = 8 * _GGUF[base], 8 * _GGUF["q6_k"]
    attention, mlp = low + 0.1 * 0.5 * (high - low), low + 0.5 / 3 * (high - low)
    averaged = {name: Format(f"{base}_m {name}", mlp, "bf16") for name in ("mlp", "experts", "shared")}
    return averaged | {
        "attention": Format(f"{base}_m attention", attention, "bf16"),
        "head": Format("q6_k", high, "bf16"),
        "embedding": Format(base, low, "bf16"),
    }


_BY_NAME |= {name: Format(name, 8 * size, "bf16") for name, size in _GGUF.items()}
MIXES: dict[str, tuple[str, dict[str, Format]]] = {
    "q4_k_m": ("q4_k", _gguf_mix("q4_k")),
    "q5_k_m": ("q5_k", _gguf_mix("q5_k")),
}
"""Names that stand for several formats in one file: main format, and formats by class."""
FORMATS: tuple[str, ...] = tuple(_BY_NAME)

CLASSES = (
    "attention",
    "attention output",
    "mlp",
    "experts",
    "shared",
    "router",
    "recurrent",
    "head",
    "embedding",
    "vectors",
)
"""Tensor classes of a model; ``vectors`` are norms, biases and other one-dimensional weights."""

UNQUANTISED = ("router", "head", "embedding", "vectors")
"""Classes that quantised checkpoints leave in 16 bits."""


def find_format(name: str) -> Format:
    """Return a format by name.

    Raises
    ------
    ModelError
        Unknown name.
    """
    if name not in _BY_NAME:
        raise ModelError(f"number format {name!r} is unknown; {nearest(name, (*FORMATS, *MIXES))}")
    return _BY_NAME[name]


@dataclass(frozen=True, slots=True)
class Precision:
    """Formats of a model's tensor classes and its cache.

    Attributes
    ----------
    name
        The name on the command line.
    main
        Format of every class that has none of its own.
    classes
        Formats of classes that differ (keys of :data:`CLASSES`).
    kv_bits
        Bits of one cached key or value element.
    """

    name: str
    main: Format
    classes: Mapping[str, Format] = field(default_factory=dict)
    kv_bits: float = 16.0

    def of(self, tensor_class: str) -> Format:
        """Format of a tensor class."""
        return self.classes.get(tensor_class, self.main)

    def bytes_per(self, tensor_class: str) -> float:
        """Bytes of one weight of a tensor class, scales included."""
        return self.of(tensor_class).bits / 8

    @property
    def label(self) -> str:
        """The name, and the classes that a checkpoint stores in other formats than the name says."""
        plain = precision(self.name)
        odd = [f"{key} {one.name}" for key, one in self.classes.items() if one.name != plain.of(key).name]
        return ", ".join([self.name, *odd])

    @property
    def compute(self) -> str:
        """Key of the peak that the main format computes in."""
        return self.main.compute

    @property
    def bytes_per_weight(self) -> float:
        """Bytes of one weight in the main format."""
        return self.main.bits / 8

    @property
    def bytes_per_kv(self) -> float:
        """Bytes of one cached element."""
        return self.kv_bits / 8

    @property
    def bytes_per_activation(self) -> float:
        """Bytes of one activation between matrix products."""
        return self.main.activation_bits / 8

    @property
    def is_sixteen_bit(self) -> bool:
        """Whether weights are stored and computed in 16 or 32 bits throughout."""
        return self.main.compute in ("bf16", "fp16", "fp32") and self.main.bits >= 16

    @property
    def computes(self) -> tuple[str, ...]:
        """Every peak it needs, the main one first."""
        return tuple(dict.fromkeys([self.main.compute, *(one.compute for one in self.classes.values())]))


def precision(name: str, kv: str = "auto", classes: Mapping[str, str] | None = None) -> Precision:
    """Return a precision by name, with another cache format and other formats by class if named.

    Parameters
    ----------
    name
        Main format.
    kv
        Cache format; ``auto`` is 16 bits, or 32 with an fp32 model.
    classes
        Format names by tensor class, as a checkpoint declares them.

    Examples
    --------
    >>> precision("bf16").bytes_per_weight
    2.0
    >>> precision("fp8", kv="fp8").bytes_per_kv
    1.0
    >>> precision("fp8").bytes_per("head"), precision("bf16", classes={"experts": "mxfp4"}).bytes_per("experts")
    (2.0, 0.53125)
    """
    base, mixed = MIXES.get(name, (name, {}))
    main = find_format(base)
    # Head, embedding, router and vectors stay in 16 bits in quantised checkpoints, and then compute so.
    kept = {} if main.bits >= 16 else dict.fromkeys(UNQUANTISED, _BY_NAME["bf16"])
    if base in _GGUF:
        # GGUF files quantise the tables too.
        kept |= {"head": main, "embedding": main}
    kept |= mixed
    kept |= {key: find_format(value) for key, value in (classes or {}).items()}
    if kv != "auto" and kv not in KV_FORMATS:
        raise ModelError(f"KV cache format {kv!r} is unknown; {nearest(kv, KV_FORMATS)}")
    bits = float(main.activation_bits) if kv == "auto" else float(KV_FORMATS[kv])
    return Precision(name, main, kept, bits)


def on_device(numbers: Precision, peaks: Collection[str]) -> Precision:
    """Let weight-only formats and unquantised classes compute in fp16 where a device has that but no bf16.

    A model stored in bf16 itself is left as it is: that is for the user to change.
    """
    if "bf16" in peaks or "fp16" not in peaks or numbers.main.name == "bf16":
        return numbers

    def swapped(one: Format) -> Format:
        return one._replace(compute="fp16") if one.compute == "bf16" else one

    classes = {key: swapped(one) for key, one in numbers.classes.items()}
    return replace(numbers, main=swapped(numbers.main), classes=classes)


def with_kv(numbers: Precision, kv_bits: float) -> Precision:
    """The same precision with another cache format."""
    return replace(numbers, kv_bits=kv_bits)
