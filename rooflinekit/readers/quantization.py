"""Number formats that a checkpoint declares: main format, formats by tensor class, cache format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rooflinekit.readers.hf_fields import Fields, shown

_DTYPES = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32", "half": "fp16", "float": "fp32"}


@dataclass(frozen=True, slots=True)
class Stored:
    """Formats of a checkpoint.

    Attributes
    ----------
    main
        Format of every tensor class that has none of its own.
    classes
        Formats by tensor class.
    kv
        Cache format; ``auto`` where the checkpoint names none.
    mtp
        Format of the MTP modules; '' for the model's.
    """

    main: str
    classes: Mapping[str, str] = field(default_factory=dict)
    kv: str = "auto"
    mtp: str = ""


def stored_formats(fields: Fields) -> Stored:
    """Read the formats of ``quantization_config``, else ``torch_dtype`` or ``dtype``, else bf16."""
    quantization = fields.section("quantization_config")
    if quantization is not None:
        method, algorithm = quantization.text("quant_method"), quantization.text("quant_algo")
        if method == "fp8" or (method == "modelopt" and algorithm == "FP8"):
            return Stored("fp8")
        if method == "mxfp4":
            return Stored("bf16", {"experts": "mxfp4"})
        detail = f" with quant_algo {shown(algorithm)}" if algorithm else ""
        fields.fail(
            f"quantization_config has quant_method {shown(method)}{detail}, but only fp8 can be read from a"
            " config; give the unquantized model and name the format with --dtype"
        )
    return Stored(plain_format(fields))


def plain_format(fields: Fields) -> str:
    """Format of an unquantized checkpoint."""
    key = "torch_dtype" if fields.has("torch_dtype") else "dtype"
    name = fields.text(key)
    if name is None:
        return "bf16"
    if name.removeprefix("torch.") not in _DTYPES:
        fields.bad(key, "one of bfloat16, float16, float32")
    return _DTYPES[name.removeprefix("torch.")]
