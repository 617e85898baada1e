"""From the words of the command line to drafters and acceptance."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rooflinekit.acceptance import Acceptance, Constant, Survival, from_histogram, from_length
from rooflinekit.drafters import BUILDERS, CARRIED, SHAPE_BUILDERS, Drafter
from rooflinekit.drafters.small_lm import SmallLm
from rooflinekit.errors import AcceptanceError, ModelError, nearest
from rooflinekit.llm import Llm
from rooflinekit.precision import Precision, precision, with_kv
from rooflinekit.readers.models import find_llm
from rooflinekit.resolve import number
from rooflinekit.target import Target

PADDING = 0.02
"""Vocabularies of one family differ by this much where checkpoints pad them."""
LARGEST = 1e15
"""Counts from here on are no counts of rounds (floats no longer tell neighbours apart)."""

DRAFTER_NAMES = ("small-lm:MODEL", *BUILDERS, *CARRIED)


def make_drafter(spec: str | Drafter, target: Target, dtype: str = "auto") -> Drafter:
    """Build a drafter from its word (``eagle3``, ``mtp``, ``small-lm:MODEL`` ...) or its config.json.

    ``auto`` keeps the target's compute format where that is 16 or 32 bits, else bf16: published drafters
    of quantised targets are not quantised. The target's own modules (``mtp``) keep the checkpoint's format.
    """
    if not isinstance(spec, str):
        return spec
    word, _, argument = spec.partition(":")
    if word == "small-lm":
        if not argument:
            raise ModelError(
                "small-lm needs a model; write --drafter small-lm:llama-3.2-1b, or give its config.json"
            )
        return _small_lm(find_llm(argument), target, _numbers(target, dtype))
    if spec in CARRIED:
        return CARRIED[spec](target.llm, _numbers(target, dtype, carried=True))
    if spec in BUILDERS:
        return BUILDERS[spec](target.llm, _numbers(target, dtype))
    path = Path(spec)
    if os.path.exists(spec) or spec.endswith(".json") or os.sep in spec:  # noqa: PTH110 - False for names too long
        return _drafter_from_file(path, target, _numbers(target, dtype))
    raise ModelError(f"drafter {spec!r} is unknown; {nearest(spec, DRAFTER_NAMES)}, or give its config.json")


def _numbers(target: Target, dtype: str, *, carried: bool = False) -> Precision:
    """Number formats of a drafter; a carried one has the checkpoint's and shares the target's cache format."""
    numbers = target.precision
    if dtype != "auto":
        return precision(dtype)
    if carried:
        own = target.llm.mtp.format if target.llm.mtp is not None else ""
        return with_kv(precision(own), numbers.kv_bits) if own else numbers
    return numbers if numbers.is_sixteen_bit else precision(numbers.of("vectors").compute)


def _check_vocabulary(vocab: int, target: Target, what: str) -> None:
    """Refuse a drafter of another tokenizer; sizes that differ by padding alone are let through."""
    if abs(vocab - target.llm.vocab) > PADDING * target.llm.vocab:
        raise ModelError(
            f"{what} has a vocabulary of {vocab} tokens, {target.llm.name} of {target.llm.vocab}: they do not share a "
            "tokenizer; choose a drafter of the target's family"
        )


def _small_lm(llm: Llm, target: Target, numbers: Precision) -> SmallLm:
    _check_vocabulary(llm.vocab, target, llm.name)
    return SmallLm(llm, numbers)


def _drafter_from_file(path: Path, target: Target, numbers: Precision) -> Drafter:
    from rooflinekit.readers.drafter_config import drafter_shape, kind_as_drafter
    from rooflinekit.readers.drafter_kinds import drafter_mark
    from rooflinekit.readers.hf_config import load_llm, read_config

    config = read_config(path)
    if kind_as_drafter(config) is None and drafter_mark(config) is None:
        return _small_lm(load_llm(path), target, numbers)
    kind, shape = drafter_shape(config, str(path))
    hidden = shape.get("target_hidden") or shape.get("hidden", target.llm.hidden)
    if hidden != target.llm.hidden:
        whole = f", or write small-lm:{path} if it is a whole model" if kind == "eagle" else ""
        raise ModelError(
            f"{path}: this {kind} drafter is for a target of width {hidden}, {target.llm.name} has width "
            f"{target.llm.hidden}; choose the drafter trained for this target{whole}"
        )
    _check_vocabulary(shape.get("vocab") or target.llm.vocab, target, str(path))
    return SHAPE_BUILDERS[kind](shape, target.llm, numbers, f"from {path.name}")


def make_acceptance(
    alpha: float | None = None,
    acceptance_length: float | None = None,
    measured_k: int | None = None,
    survival: str | Sequence[float] | None = None,
    file: str | Path | None = None,
) -> Acceptance:
    """Build acceptance from exactly one of its descriptions.

    Raises
    ------
    AcceptanceError
        None or several were given, or the numbers are impossible.
    """
    _check_given(alpha, acceptance_length, measured_k, survival, file)
    if alpha is not None:
        if not math.isfinite(alpha):
            raise AcceptanceError(f"acceptance rate {alpha} is not in 0..1; give a probability such as 0.8")
        return Constant(float(alpha))
    if acceptance_length is not None and measured_k is not None:
        return from_length(acceptance_length, int(number(measured_k, "--measured-k", 1, 1000)))
    if survival is not None:
        return Survival(_survival_values(survival))
    return read_acceptance(Path(str(file)))


def _check_given(
    alpha: float | None,
    acceptance_length: float | None,
    measured_k: int | None,
    survival: str | Sequence[float] | None,
    file: str | Path | None,
) -> None:
    """Refuse none, several, or half a description."""
    names = ("--alpha", "--acceptance-length", "--survival", "--acceptance")
    values = (alpha, acceptance_length, survival, file)
    given = [name for name, value in zip(names, values, strict=True) if value is not None]
    if len(given) != 1:
        said = "none was given" if not given else " and ".join(given) + " were given"
        raise AcceptanceError(
            "acceptance needs exactly one of --alpha, --acceptance-length with --measured-k, --survival, --acceptance; "
            f"{said}"
        )
    if measured_k is not None and acceptance_length is None:
        raise AcceptanceError(
            f"--measured-k {measured_k} belongs to --acceptance-length; leave it out or add the length"
        )
    if acceptance_length is not None and measured_k is None:
        raise AcceptanceError(
            f"acceptance length {acceptance_length:g} says nothing without the K it was measured with; "
            "add --measured-k"
        )


def _survival_values(survival: str | Sequence[float]) -> tuple[float, ...]:
    if not isinstance(survival, str):
        survival = list(survival)
    try:
        return tuple(float(part) for part in (survival.split(",") if isinstance(survival, str) else survival))
    except (TypeError, ValueError) as error:
        raise AcceptanceError(
            f"survival {survival!r} is not a list of numbers; write --survival 0.8,0.6,0.45"
        ) from error


def read_acceptance(path: Path) -> Acceptance:
    """Read a JSON file with ``histogram`` (rounds by number of accepted drafts) or ``survival`` and ``rounds``."""
    hint = (
        'write {"histogram": [rounds with 0, 1, 2 ... accepted drafts]} or {"survival": [...], "rounds": N}'
    )
    try:
        data: Any = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise AcceptanceError(
            f"{path} cannot be read ({error.strerror}); give a JSON file: {hint}"
        ) from error
    except (ValueError, RecursionError) as error:  # not UTF-8, not JSON, a number or a nest without end
        raise AcceptanceError(f"{path} is not JSON; {hint}") from error
    if not isinstance(data, dict) or ("histogram" in data) == ("survival" in data):
        raise AcceptanceError(f"{path} needs either 'histogram' or 'survival'; {hint}")
    values: Any = data.get("histogram", data.get("survival"))
    rounds = data.get("rounds")
    plain = isinstance(values, list) and all(
        isinstance(v, int | float) and not isinstance(v, bool) and abs(v) < LARGEST for v in values
    )
    if not plain or not (rounds is None or (type(rounds) is int and 0 < rounds < LARGEST)):
        raise AcceptanceError(
            f"{path}: values must be a list of finite numbers and rounds a positive count; {hint}"
        )
    return from_histogram(values) if "histogram" in data else Survival(tuple(map(float, values)), rounds)
