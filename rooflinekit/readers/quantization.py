"""Number formats that a checkpoint declares: main format, formats by tensor class, cache format."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from rooflinekit.precision import UNQUANTISED
from rooflinekit.readers.hf_fields import Fields, shown
from rooflinekit.readers.quant_modules import LINEARS, OUTPUT, Modules, left_out

_DTYPES = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32", "half": "fp16", "float": "fp32"}
_ALGORITHMS = {
    "FP8": "fp8",
    "FP8_PB_WO": "fp8",
    "FP8_PER_CHANNEL_PER_TOKEN": "fp8",
    "NVFP4": "nvfp4",
    "NVFP4_AWQ": "nvfp4",
    "W4A16_NVFP4": "w4a16-nvfp4",
    "W4A16_MXFP4": "w4a16-mxfp4",
    "INT4_AWQ": "w4a16",
    "W4A16_AWQ": "w4a16",
    "W8A16": "w8a16",
    "W8A8_SQ_PER_CHANNEL": "int8",
}
_CACHES = {"FP8": "fp8", "INT8": "int8"}
# Integers in groups: what a weight takes depends on the group's scale. Groups of 32 take 4.5 bits, which
# is what the weight-only format of that size is called here.
_INT4_GROUPS = {128: "w4a16", 32: "w4a16-g32"}


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
    plain, quant = plain_format(fields), fields.section("quantization_config")
    if quant is None:
        return Stored(plain)
    method, layers = quant.text("quant_method"), fields.count("num_hidden_layers")
    reader = _METHODS.get(method or "")
    if reader is None:
        return fields.fail(
            f"quantization_config has quant_method {shown(method)}, but only {', '.join(_METHODS)} can be read;"
            " give the unquantized model and name the format with --dtype"
        )
    return reader(quant, plain, layers)


def plain_format(fields: Fields) -> str:
    """Format of an unquantized checkpoint."""
    key = "torch_dtype" if fields.has("torch_dtype") else "dtype"
    name = fields.text(key)
    if name is None:
        return "bf16"
    if name.removeprefix("torch.") not in _DTYPES:
        fields.bad(key, "one of bfloat16, float16, float32")
    return _DTYPES[name.removeprefix("torch.")]


def _uniform(main: str, plain: str, exceptions: Iterable[str], layers: int, kv: str = "auto") -> Stored:
    """One format for the layers' matrices, some classes left in the checkpoint's plain one."""
    kept = left_out(exceptions, layers)
    return Stored(
        main, _apart(dict.fromkeys(LINEARS, main) | dict.fromkeys(kept, plain), main), kv, _mtp(kept, plain)
    )


def _mtp(kept: Iterable[str], plain: str) -> str:
    return plain if "mtp" in kept else ""


def _apart(formats: Mapping[str, str], main: str) -> dict[str, str]:
    """Formats by class that need saying: unlike the main one, the output projection unlike the others."""
    found = dict(formats)
    if found.get(OUTPUT) == found.get("attention"):
        found.pop(OUTPUT, None)
    return {
        key: name
        for key, name in found.items()
        if key != "mtp" and (name != main or key in UNQUANTISED or (key == OUTPUT and "attention" in found))
    }


def _integer(quant: Fields) -> str:
    bits = quant.count("bits")
    if bits == 8:
        return "w8a16"
    if bits != 4:
        quant.bad("bits", "4 or 8")
    return _int4(quant, "group_size")


def _int4(quant: Fields, key: str) -> str:
    group = quant.count_or(key, 128, low=-1)
    if group not in _INT4_GROUPS:
        quant.bad(key, f"{' or '.join(map(str, sorted(_INT4_GROUPS)))}")
    return _INT4_GROUPS[group]


def _fp8(quant: Fields, plain: str, layers: int) -> Stored:
    return _uniform("fp8", plain, quant.texts("modules_to_not_convert"), layers)


def _mxfp4(quant: Fields, plain: str, layers: int) -> Stored:  # noqa: ARG001 - readers are called alike
    return Stored(plain, {"experts": "mxfp4"})


def _integers(quant: Fields, plain: str, layers: int) -> Stored:
    return _uniform(_integer(quant), plain, quant.texts("modules_to_not_convert"), layers)


def _modelopt(quant: Fields, plain: str, layers: int) -> Stored:
    algorithm = quant.text("quant_algo")
    kv = _cache(quant)
    listed = quant.section("quantized_layers")
    if listed is not None:
        return _by_module(_listed(listed), plain, layers, kv)
    exceptions = (*quant.texts("exclude_modules"), *quant.texts("ignore"))
    if algorithm is None:
        return Stored(plain, kv=kv)
    return _uniform(_algorithm(quant), plain, exceptions, layers, kv)


def _algorithm(fields: Fields) -> str:
    name = fields.text("quant_algo")
    if name not in _ALGORITHMS:
        fields.bad("quant_algo", f"one of {', '.join(_ALGORITHMS)}")
    return _ALGORITHMS[name]


def _listed(listed: Fields) -> dict[str, list[str]]:
    """Modules by format, from ``quantized_layers``."""
    found: dict[str, list[str]] = {}
    for module in listed.config:
        entry = listed.section(module)
        if entry is not None:
            found.setdefault(_algorithm(entry), []).append(module)
    return found


def _cache(quant: Fields) -> str:
    """Cache format: by name, or by bits and type."""
    name = quant.text("kv_cache_quant_algo")
    if name is not None:
        if name not in _CACHES:
            quant.bad("kv_cache_quant_algo", f"one of {', '.join(_CACHES)}")
        return _CACHES[name]
    scheme = quant.section("kv_cache_scheme")
    if scheme is None:
        return "auto"
    if scheme.count("num_bits") != 8:
        scheme.bad("num_bits", "8")
    return "int8" if scheme.text("type") == "int" else "fp8"


def _by_module(modules: Mapping[str, Iterable[str]], plain: str, layers: int, kv: str) -> Stored:
    """Formats of the classes, each that of most of its layers; a class that is not listed is plain."""
    counted = {name: Modules(patterns) for name, patterns in modules.items()}
    formats: dict[str, str] = {}
    for tensor_class in (*LINEARS, "head", "embedding"):
        layers_by = {name: one.layers_of(tensor_class, layers) for name, one in counted.items()}
        best = max(layers_by, key=lambda name: layers_by[name], default="")
        if best and layers_by[best]:
            formats[tensor_class] = best
        elif tensor_class in LINEARS:
            formats[tensor_class] = plain
    main = next((formats[one] for one in ("experts", "mlp", "attention") if formats[one] != plain), plain)
    mtp = "" if any(one.has_mtp(layers) for one in counted.values()) else plain
    return Stored(main, _apart(formats, main), kv, mtp)


def _compressed(quant: Fields, plain: str, layers: int) -> Stored:
    """Groups of modules with bits and type each; ``Linear`` is every matrix that is not in ``ignore``."""
    groups, kv = quant.section("config_groups"), _cache(quant)
    modules: dict[str, list[str]] = {}
    for name in groups.config if groups is not None else ():
        group = groups.section(name) if groups is not None else None
        if group is not None:
            modules.setdefault(_group_format(group), []).extend(group.texts("targets"))
    if len(modules) == 1:
        ((main, targets),) = modules.items()
        if "Linear" in targets:
            return _uniform(main, plain, quant.texts("ignore"), layers, kv)
    if not modules:
        quant.bad("config_groups", "an object with at least one group")
    return _by_module(modules, plain, layers, kv)


def _group_format(group: Fields) -> str:
    weights = group.section("weights")
    if weights is None:
        return group.bad("weights", "an object")
    bits, kind, alone = weights.count("num_bits"), weights.text("type"), not group.has("input_activations")
    if bits == 8:
        quantized = "int8" if kind == "int" else "fp8"
        return "w8a16" if alone else quantized
    if bits == 4 and kind == "int":
        return _int4(weights, "group_size")
    if bits == 4 and kind == "float":
        small = "nvfp4" if weights.count_or("group_size", 16) == 16 else "mxfp4"
        return f"w4a16-{small}" if alone else small
    return weights.bad("num_bits", "4 or 8, of type int or float")


_METHODS: dict[str, Callable[[Fields, str, int], Stored]] = {
    "fp8": _fp8,
    "mxfp4": _mxfp4,
    "awq": _integers,
    "gptq": _integers,
    "modelopt": _modelopt,
    "compressed-tensors": _compressed,
}
