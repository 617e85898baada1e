"""Number formats that a checkpoint declares: main format, formats by tensor class, cache format."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NoReturn

from rooflinekit.precision import UNQUANTISED, find_format
from rooflinekit.readers.hf_fields import Fields, shown
from rooflinekit.readers.quant_modules import OUTPUT, TABLES, Layout, Modules, left_out

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
_FLOAT4 = {16: "nvfp4", 32: "mxfp4"}
_INSTEAD = "give the unquantized model and name the format with --dtype"
_INT4 = ("w4a16", "w4a16-g64", "w4a16-g32")


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


def stored_formats(fields: Fields, layout: Layout) -> Stored:
    """Read the formats of ``quantization_config``, else ``torch_dtype`` or ``dtype``, else bf16."""
    plain, quant = plain_format(fields), fields.section("quantization_config")
    if quant is None:
        return Stored(plain)
    method = quant.text("quant_method")
    reader = _METHODS.get(method or "")
    if reader is None:
        return fields.fail(
            f"quantization_config has quant_method {shown(method)}, but only {', '.join(_METHODS)} can be read;"
            f" {_INSTEAD}"
        )
    return reader(quant, plain, layout)


def agreed_formats(fields: Fields, layout: Layout, beside: Mapping[str, object]) -> Stored:
    """Read the formats where a ``hf_quant_config.json`` gives its ``quantization`` too: both must agree."""
    section = {**beside, "quant_method": "modelopt"}
    other = stored_formats(replace(fields, config={**fields.config, "quantization_config": section}), layout)
    if not fields.has("quantization_config"):
        return other
    own = stored_formats(fields, layout)
    if own.main != other.main or ("auto" not in (own.kv, other.kv) and own.kv != other.kv):
        fields.fail(
            f"quantization_config says {own.main}, cache {own.kv}, but the hf_quant_config.json beside it says"
            f" {other.main}, cache {other.kv}; keep the one that belongs to the weights"
        )
    return own


def plain_format(fields: Fields) -> str:
    """Format of an unquantized checkpoint: ``torch_dtype``, or ``dtype`` as newer files call it."""
    found = {key: _plain(fields, key) for key in ("torch_dtype", "dtype") if fields.has(key)}
    if len(set(found.values())) > 1:
        fields.fail(
            f"torch_dtype is {shown(fields.text('torch_dtype'))}, but dtype is {shown(fields.text('dtype'))};"
            " remove the one that is not the format of the weights"
        )
    return next(iter(found.values()), "bf16")


def _plain(fields: Fields, key: str) -> str:
    name = (fields.text(key) or "").removeprefix("torch.")
    if name not in _DTYPES:
        fields.bad(key, "one of bfloat16, float16, float32")
    return _DTYPES[name]


def _unsupported(fields: Fields, key: str, known: str) -> NoReturn:
    """Refuse what a checkpoint may well have, but nothing here prices."""
    fields.fail(f"{key} {shown(fields.config.get(key))} is not supported yet ({known} are); {_INSTEAD}")


def _uniform(main: str, plain: str, exceptions: Iterable[str], layout: Layout, kv: str = "auto") -> Stored:
    """One format for the layers' matrices, some classes left in the checkpoint's plain one."""
    kept = left_out(exceptions, layout)
    formats = dict.fromkeys(layout.classes, main) | dict.fromkeys(kept, plain)
    return Stored(main, _apart(formats, main), kv, _mtp(kept, plain))


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
    bits = quant.count("bits") if quant.has("bits") else quant.bad("bits", "4 or 8")
    if bits == 8:
        return "w8a16"
    if bits != 4:
        _unsupported(quant, "bits", "4 and 8")
    return _int4(quant)


def _int4(quant: Fields) -> str:
    """Weight-only format of 4-bit integers in groups: the one whose bits are nearest.

    A group of ``g`` weights has one fp16 scale, so a weight takes 4 + 16 / g bits. Groups of 128, 64 and 32
    have a format each. Larger ones, and one group over a whole column (-1), take up to 3 % less than those
    of 128 as which they are read; those of 16 take 5 bits, 10 % more than those of 32. Inputs of 8 bits
    change nothing: no format has 4-bit integers that compute in 8 bits, so they are priced as weight-only.
    """
    group = quant.count_or("group_size", 128, low=-1)
    if group == 0 or 0 < group < 16:
        _unsupported(quant, "group_size", "-1 and 16 or more")
    bits = 4 + (16 / group if group > 0 else 0)
    return min(_INT4, key=lambda name: abs(find_format(name).bits - bits))


def _fp8(quant: Fields, plain: str, layout: Layout) -> Stored:
    return _uniform("fp8", plain, quant.texts("modules_to_not_convert"), layout)


def _mxfp4(quant: Fields, plain: str, layout: Layout) -> Stored:  # noqa: ARG001 - readers are called alike
    """Weights of the experts only: their inputs stay in 16 bits, so they do not compute at a 4-bit rate."""
    return Stored(plain, {"experts": "w4a16-mxfp4"})


def _integers(quant: Fields, plain: str, layout: Layout) -> Stored:
    return _uniform(_integer(quant), plain, quant.texts("modules_to_not_convert"), layout)


def _modelopt(quant: Fields, plain: str, layout: Layout) -> Stored:
    algorithm = quant.text("quant_algo")
    kv = _cache(quant)
    listed = quant.section("quantized_layers")
    exceptions = (*quant.texts("exclude_modules"), *quant.texts("ignore"))
    if listed is not None:
        return _by_module(_listed(listed), plain, plain, exceptions, layout, kv)
    if algorithm is None:
        return Stored(plain, kv=kv)
    return _uniform(_algorithm(quant), plain, exceptions, layout, kv)


def _algorithm(fields: Fields) -> str:
    name = fields.text("quant_algo")
    if name is None:
        fields.bad("quant_algo", f"one of {', '.join(_ALGORITHMS)}")
    if name not in _ALGORITHMS:
        _unsupported(fields, "quant_algo", ", ".join(_ALGORITHMS))
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
            _unsupported(quant, "kv_cache_quant_algo", ", ".join(_CACHES))
        return _CACHES[name]
    scheme = quant.section("kv_cache_scheme")
    if scheme is None:
        return "auto"
    if scheme.count("num_bits") != 8:
        _unsupported(scheme, "num_bits", "caches of 8 bits")
    return "int8" if scheme.text("type") == "int" else "fp8"


def _by_module(
    modules: Mapping[str, Iterable[str]],
    plain: str,
    default: str,
    exceptions: Iterable[str],
    layout: Layout,
    kv: str,
) -> Stored:
    """Formats of the classes, each that of most of the layers that have it.

    A layer of a class that no module of it is listed for has the default; one in the exceptions is plain. A
    class is priced as one: where some of its matrices are listed (``down_proj``), all of them count as listed.
    """
    listed = {name: Modules(patterns) for name, patterns in modules.items()}
    kept = Modules(exceptions)
    formats: dict[str, str] = {}
    for one in layout.classes:
        out = kept.layers_of(one, layout)
        by_name = {name: found.layers_of(one, layout) - out for name, found in listed.items()}
        counts = {name: len(found) for name, found in by_name.items()}
        rest = layout.having[one] - out - frozenset().union(*by_name.values())
        counts[default] = counts.get(default, 0) + len(rest)
        counts[plain] = counts.get(plain, 0) + len(out)
        formats[one] = max(counts, key=lambda name: counts[name])
    for one in TABLES:
        named = [name for name, found in listed.items() if found.has_table(one)]
        if named and not kept.has_table(one):
            formats[one] = named[0]
    of_most = (formats.get(one, plain) for one in ("experts", "mlp", "attention"))
    main = next((name for name in of_most if name != plain), default)
    drafts = default != plain or any(one.has_mtp(layout.layers) for one in listed.values())
    mtp = "" if drafts and not kept.has_mtp(layout.layers) else plain
    return Stored(main, _apart(formats, main), kv, mtp)


def _compressed(quant: Fields, plain: str, layout: Layout) -> Stored:
    """Groups of modules with bits and type each; ``Linear`` is every matrix that no other group names."""
    groups, kv = quant.section("config_groups"), _cache(quant)
    modules: dict[str, list[str]] = {}
    for name in groups.config if groups is not None else ():
        group = groups.section(name) if groups is not None else None
        if group is not None:
            modules.setdefault(_group_format(group), []).extend(group.texts("targets"))
    if not modules:
        quant.bad("config_groups", "an object with at least one group")
    default = next((name for name, targets in modules.items() if "Linear" in targets), None)
    ignored = quant.texts("ignore")
    if default is not None and len(modules) == 1:
        return _uniform(default, plain, ignored, layout, kv)
    return _by_module(modules, plain, default or plain, ignored, layout, kv)


def _group_format(group: Fields) -> str:
    """Format of a group: stored as its weights are, computing as weights and inputs together can.

    Both must have the same bits and type for the rate of that type. No format has 4-bit weights that compute
    in 8 bits: with inputs of 8 bits they are priced as the weight-only one, same bytes at the 16-bit rate,
    which is half of what a device with such a path may reach.
    """
    weights, inputs = group.section("weights"), group.section("input_activations")
    if weights is None:
        return group.bad("weights", "an object")
    bits, kind = weights.count("num_bits"), weights.text("type")
    same = inputs is not None and (inputs.count("num_bits"), inputs.text("type") or kind) == (bits, kind)
    if bits == 8:
        quantized = "int8" if kind == "int" else "fp8"
        return quantized if same else "w8a16"
    if bits == 4 and kind == "int":
        return _int4(weights)
    if bits == 4 and kind == "float":
        size = weights.count_or("group_size", 16)
        if size not in _FLOAT4:
            _unsupported(weights, "group_size", "16 (nvfp4) and 32 (mxfp4)")
        return _FLOAT4[size] if same else f"w4a16-{_FLOAT4[size]}"
    return _unsupported(weights, "num_bits", "4 and 8, of type int or float,")


_METHODS: dict[str, Callable[[Fields, str, Layout], Stored]] = {
    "fp8": _fp8,
    "mxfp4": _mxfp4,
    "awq": _integers,
    "gptq": _integers,
    "modelopt": _modelopt,
    "compressed-tensors": _compressed,
}
