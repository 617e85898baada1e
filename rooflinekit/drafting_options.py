"""From the words of the command line to drafters."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from rooflinekit.drafters import BUILDERS, CARRIED, SHAPE_BUILDERS, WEIGHTLESS, Drafter, dspark
from rooflinekit.drafters.layer_skip import from_word
from rooflinekit.drafters.small_lm import SmallLm
from rooflinekit.errors import ModelError, ProfileError, nearest
from rooflinekit.hardware import Hardware, require_peak
from rooflinekit.llm import Llm
from rooflinekit.memory import resident_weight_bytes
from rooflinekit.precision import WEIGHT_ONLY, Precision, find_format, on_device, precision, with_kv
from rooflinekit.readers.models import find_llm
from rooflinekit.target import Target

PADDING = 512
"""Vocabularies of one family differ by up to this many tokens where checkpoints pad them."""

SHARE_HEAD = ("eagle", "mtp", "dflash", "dspark", "domino")
"""Kinds that run the target's LM head; others have one of their own. The embedding is the target's in all."""

DRAFTER_NAMES = ("small-lm:MODEL", *BUILDERS, dspark.HEAVY, *CARRIED, "layer-skip:LAYERS", "ngram", "suffix")


def make_drafter(
    spec: str | Drafter, target: Target, dtype: str = "auto", hardware: Hardware | None = None
) -> Drafter:
    """Build a drafter from its word (``eagle3``, ``mtp``, ``small-lm:MODEL``, ``ngram`` ...) or its config.json.

    ``auto`` keeps the target's compute format where that is 16 or 32 bits, else bf16: published drafters
    of quantised targets are not quantised. The target's own modules (``mtp``) and small models keep the
    checkpoint's format. Tables that are the target's keep the target's format, whatever ``dtype``.

    Raises
    ------
    ModelError
        Unknown, of another target, or not to be split over the target's ranks.
    ProfileError
        In a format that ``hardware`` cannot compute in.
    """
    built = _built(spec, target, dtype) if isinstance(spec, str) else spec
    if hardware is not None and dtype != "auto":
        try:
            require_peak(hardware, precision(dtype).compute)
        except ProfileError as error:
            raise ProfileError(str(error).replace("--dtype", "--draft-dtype")) from error
    if target.tp > 1:
        _check_ranks(built, target)
    return built


def _built(spec: str, target: Target, dtype: str) -> Drafter:
    word, _, argument = spec.partition(":")
    if word == "small-lm":
        if not argument:
            raise ModelError(
                "small-lm needs a model; write --drafter small-lm:llama-3.2-1b, or give its config.json"
            )
        return _small_lm(find_llm(argument), target, dtype)
    if spec in CARRIED:
        return CARRIED[spec](target.llm, _sharing(_numbers(target, dtype, carried=True), target, spec))
    if spec in BUILDERS:
        return BUILDERS[spec](target.llm, _sharing(_numbers(target, dtype), target, spec))
    if spec == dspark.HEAVY:
        return dspark.heavy_for_target(target.llm, _sharing(_numbers(target, dtype), target, "dspark"))
    if word in WEIGHTLESS and (argument or spec.rstrip(":") == word):
        return _weightless(word, argument, target, dtype)
    if word in ("eagle2", "eagle-2"):
        raise ModelError(
            f"{word} has eagle's weights and grows a tree at run time; write --drafter eagle; `rooflinekit tree` "
            "chooses a tree for it"
        )
    path = Path(spec)
    if os.path.exists(spec) or spec.endswith(".json") or os.sep in spec:  # noqa: PTH110 - False for names too long
        return _drafter_from_file(path, target, dtype)
    raise ModelError(f"drafter {spec!r} is unknown; {nearest(spec, DRAFTER_NAMES)}, or give its config.json")


def _weightless(word: str, argument: str, target: Target, dtype: str) -> Drafter:
    """A lookup on the host, or the target's own layers: neither has a number format of its own."""
    if dtype != "auto":
        raise ModelError(
            f"{word} has no weights of its own, so --draft-dtype {dtype} has nothing to change; leave it out"
        )
    if word == "layer-skip":
        return from_word(argument, target.llm, target.precision)
    if argument:
        raise ModelError(f"{word} takes nothing after a colon, not {argument!r}; write --drafter {word}")
    return WEIGHTLESS[word](target.llm, target.precision)


def _numbers(target: Target, dtype: str, *, carried: bool = False) -> Precision:
    """Number formats of a drafter; a carried one has the checkpoint's and shares the target's cache format."""
    numbers = target.precision
    if dtype != "auto":
        return precision(dtype)
    if carried:
        own = target.llm.mtp.format if target.llm.mtp is not None else ""
        return with_kv(precision(own), numbers.kv_bits) if own else numbers
    # A target in 16 bits may have quantised classes (experts); its drafter has not.
    return replace(numbers, classes={}) if numbers.is_sixteen_bit else precision(_plain(numbers))


def _plain(numbers: Precision) -> str:
    """The 16-bit (or fp32) format that a target computes in beside its quantised one."""
    return numbers.of("vectors").compute


def _sharing(
    numbers: Precision, target: Target, kind: str, shape: Mapping[str, int] | None = None
) -> Precision:
    """Number formats with the target's own for the tables that a drafter of this kind takes from the target."""
    head = kind in SHARE_HEAD and "draft_vocab" not in (shape or {})
    shared = {name: target.precision.of(name) for name in ("embedding", *(("head",) if head else ()))}
    return replace(numbers, classes={**numbers.classes, **shared})


def _lm_numbers(llm: Llm, target: Target, dtype: str) -> Precision:
    """Number formats of a small model: its checkpoint's, where the target's device is known to compute in them.

    A quantised format that the target does not compute in is dequantised to 16 bits, another 16-bit format
    replaced by the target's. The cache has the target's format, as engines keep one.
    """
    if dtype != "auto":
        return precision(dtype)
    computes = target.precision.computes

    def runnable(name: str) -> str:
        for one in (name, WEIGHT_ONLY.get(name, name)):
            form = find_format(one)
            if form.compute in computes or (form.bits < 16 and form.compute == "bf16" and "fp16" in computes):
                return one
        return _plain(target.precision)

    formats = {key: runnable(name) for key, name in llm.formats.items()}
    chosen = on_device(precision(runnable(llm.dtype), classes=formats), computes)
    return with_kv(chosen, target.precision.kv_bits)


def _check_ranks(drafter: Drafter, target: Target) -> None:
    """Say that it is the drafter that cannot be split, where the target can."""
    resident_weight_bytes(target.llm, target.precision, target.tp)
    try:
        drafter.plan(k=1.0, batch=1.0, context=0.0, tp=target.tp)
        drafter.memory_bytes(batch=1.0, context=0.0, tp=target.tp)
    except ModelError as error:
        raise ModelError(f"drafter {drafter.name} ({drafter.title}): {error}") from error


def _check_vocabulary(vocab: int, target: Target, what: str) -> None:
    """Refuse a drafter of another tokenizer; sizes that differ by padding alone are let through."""
    if abs(vocab - target.llm.vocab) > PADDING:
        raise ModelError(
            f"{what} has a vocabulary of {vocab} tokens, {target.llm.name} of {target.llm.vocab}: they do not share a "
            "tokenizer; choose a drafter of the target's family"
        )


def _check_depth(layers: int, target: Target, what: str) -> None:
    """Refuse a drafter that was trained on the states of a model of another depth."""
    if layers != target.llm.layers:
        raise ModelError(
            f"{what} is for a target of {layers} layers (num_target_layers), {target.llm.name} has "
            f"{target.llm.layers}; choose the drafter trained for this target"
        )


def _small_lm(llm: Llm, target: Target, dtype: str) -> SmallLm:
    _check_vocabulary(llm.vocab, target, llm.name)
    return SmallLm(llm, _lm_numbers(llm, target, dtype))


def _drafter_from_file(path: Path, target: Target, dtype: str) -> Drafter:
    from rooflinekit.readers.drafter_config import drafter_shape, kind_as_drafter
    from rooflinekit.readers.drafter_kinds import drafter_mark
    from rooflinekit.readers.hf_config import load_llm, read_config

    config = read_config(path)
    if kind_as_drafter(config) is None and drafter_mark(config) is None:
        return _small_lm(load_llm(path), target, dtype)
    kind, shape = drafter_shape(config, str(path))
    hidden = shape.get("target_hidden") or shape.get("hidden", target.llm.hidden)
    if hidden != target.llm.hidden:
        whole = f", or write small-lm:{path} if it is a whole model" if kind == "eagle" else ""
        raise ModelError(
            f"{path}: this {kind} drafter is for a target of width {hidden}, {target.llm.name} has width "
            f"{target.llm.hidden}; choose the drafter trained for this target{whole}"
        )
    _check_vocabulary(shape.get("vocab") or target.llm.vocab, target, str(path))
    _check_depth(shape.get("target_depth") or target.llm.layers, target, str(path))
    numbers = _sharing(_numbers(target, dtype), target, kind, shape)
    return SHAPE_BUILDERS[kind](shape, target.llm, numbers, f"from {path.name}")
