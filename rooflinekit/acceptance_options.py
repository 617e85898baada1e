"""From the words of the command line, and from files, to acceptance."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rooflinekit.acceptance import Acceptance, Constant, Decaying, Survival, from_length
from rooflinekit.acceptance.described import HINT, TOTALS, WHOLE, from_fields
from rooflinekit.acceptance.profiles import find_profile
from rooflinekit.errors import AcceptanceError
from rooflinekit.resolve import number

if TYPE_CHECKING:
    from rooflinekit.readers.engine_outputs import EngineOutput

ENDINGS = (".json", ".yaml", ".yml")
"""Endings by which a missing file is told from an unknown profile."""
LARGEST_OWN = 1 << 22
"""Bytes of a file of our own, at most."""
OPTIONS = ("--alpha", "--acceptance-length", "--survival", "--acceptance", "--decay")
"""Each describes acceptance in full (the second with ``--measured-k``)."""


def make_acceptance(
    alpha: float | None = None,
    acceptance_length: float | None = None,
    measured_k: int | None = None,
    survival: str | Sequence[float] | None = None,
    acceptance: str | Path | Acceptance | None = None,
    decay: str | Sequence[float] | None = None,
) -> Acceptance:
    """Build acceptance from exactly one of its descriptions; the options are those of :func:`rooflinekit.recommend`.

    Parameters
    ----------
    alpha
        Constant acceptance rate (0..1).
    acceptance_length, measured_k
        Tokens per round, bonus included, and the K it was measured with; the K also of a file that lacks it.
    survival
        S_1, S_2, ..., as numbers or as text with commas.
    acceptance
        File (JSON or YAML, or an engine's output), name of a shipped profile, or an object, which is handed back.
    decay
        Rate of the first draft and rate that far drafts tend to.

    Raises
    ------
    AcceptanceError
        None or several were given, or the numbers are impossible.
    """
    named = acceptance is None or isinstance(acceptance, str | Path)
    if not named and any(one is not None for one in (alpha, acceptance_length, measured_k, survival, decay)):
        raise AcceptanceError("acceptance was given twice: as an object and as numbers; give one of them")
    if acceptance is not None and not isinstance(acceptance, str | Path):
        return acceptance
    _check_given(
        (alpha, acceptance_length, survival, acceptance, decay), acceptance_length, measured_k, acceptance
    )
    if alpha is not None:
        if not math.isfinite(alpha):
            raise AcceptanceError(f"acceptance rate {alpha} is not in 0..1; give a probability such as 0.8")
        return Constant(float(alpha))
    if acceptance_length is not None and measured_k is not None:
        return from_length(acceptance_length, int(number(measured_k, "--measured-k", 1, 1000)))
    if survival is not None:
        return Survival(_values(survival, "survival", "--survival 0.8,0.6,0.45"))
    if decay is not None:
        rates = _values(decay, "decay", "--decay 0.8,0.65")
        if len(rates) != 2:
            raise AcceptanceError(
                f"decay {decay!r:.40} has {len(rates)} numbers; give two, the rate of the first draft and the rate of "
                "far ones: --decay 0.8,0.65"
            )
        return Decaying(rates[0], rates[1])
    return find_acceptance(str(acceptance), measured_k)


def _check_given(
    values: tuple[object, ...], acceptance_length: float | None, measured_k: int | None, file: object
) -> None:
    """Refuse none, several, or half a description."""
    given = [name for name, value in zip(OPTIONS, values, strict=True) if value is not None]
    if len(given) != 1:
        said = "none was given" if not given else " and ".join(given) + " were given"
        raise AcceptanceError(
            "acceptance needs exactly one of --alpha, --acceptance-length with --measured-k, --survival, --decay, "
            f"--acceptance; {said}"
        )
    if measured_k is not None and acceptance_length is None and file is None:
        raise AcceptanceError(
            f"--measured-k {measured_k} belongs to --acceptance-length; leave it out or add the length"
        )
    if acceptance_length is not None and measured_k is None:
        raise AcceptanceError(
            f"acceptance length {acceptance_length:g} says nothing without the K it was measured with; "
            "add --measured-k"
        )


def _values(given: str | Sequence[float], name: str, example: str) -> tuple[float, ...]:
    if not isinstance(given, str):
        given = list(given)
    try:
        return tuple(float(part) for part in (given.split(",") if isinstance(given, str) else given))
    except (TypeError, ValueError) as error:
        raise AcceptanceError(f"{name} {given!r} is not a list of numbers; write {example}") from error


def find_acceptance(name_or_path: str, measured_k: int | None = None) -> Acceptance:
    """Read a file, or find a shipped profile by name.

    Raises
    ------
    AcceptanceError
        A file with faults, or an unknown name (the nearest are listed).
    """
    return look_up(name_or_path, measured_k)[0]


def look_up(name_or_path: str, measured_k: int | None = None) -> tuple[Acceptance, EngineOutput | None]:
    """Read a file, or find a shipped profile by name; with what was read where it is an engine's output.

    Parameters
    ----------
    name_or_path
        File, profile, or what :func:`~rooflinekit.readers.engine_outputs.read_output` takes (``BEFORE,AFTER``,
        ``FILE#part``).
    measured_k
        K, where the file does not have it.

    Raises
    ------
    AcceptanceError
        A file with faults, an unknown name (the nearest are listed), or a run without speculation.
    """
    from rooflinekit.readers.engine_outputs import names_files  # noqa: PLC0415 - most acceptance is numbers

    text = str(name_or_path)
    k = None if measured_k is None else int(number(measured_k, "--measured-k", 1, 1000))
    exists = os.path.exists(text)  # noqa: PTH110 - False for names too long
    if not exists and names_files(text):
        return _of_engine(text, k)
    if not exists and not text.lower().endswith(ENDINGS) and os.sep not in text:
        return find_profile(text), None
    path = Path(text)
    return _of_engine(text, k) if _is_engines(path) else (read_acceptance(path, k), None)


def _of_engine(text: str, k: int | None) -> tuple[Acceptance, EngineOutput]:
    from rooflinekit.readers.engine_outputs import read_output  # noqa: PLC0415

    found = read_output(text, k)
    if found.acceptance is None:
        raise AcceptanceError(
            f"{text} is a run of {found.engine} without speculation, so there is no acceptance in it; give one with it"
        )
    return found.acceptance, found


def _is_engines(path: Path) -> bool:
    """Whether a file is an engine's output and no description of our own."""
    try:
        if path.stat().st_size <= LARGEST_OWN:
            data = _parsed(path.read_text(encoding="utf-8"), yaml=path.suffix.lower() in ENDINGS[1:])
            if isinstance(data, dict) and any(name in data for name in (*WHOLE, *TOTALS)):
                return False
    except OSError:
        return False
    except (ValueError, RecursionError):
        pass
    from rooflinekit.readers.engine_outputs import is_output  # noqa: PLC0415

    return is_output(path) if path.is_file() and path.stat().st_size else False


def read_acceptance(path: Path, measured_k: int | None = None) -> Acceptance:
    """Read a JSON or YAML file with one description of acceptance.

    Fields: ``histogram`` (rounds by number of accepted drafts), ``survival`` or ``conditional`` (by position, with
    ``rounds`` where they were counted), ``lengths`` (acceptance length by K), ``decay`` (first rate, limit),
    ``acceptance_length`` or ``rate`` with ``measured_k``, ``accepted`` and ``proposed`` drafts with
    ``measured_k``, ``alpha``, ``profile`` (a shipped name), ``mixture`` (a list of these with ``weight``, the
    share of the rounds). Beside them ``source``, ``dataset``, ``trained_k``; and ``acceptance_length`` and
    ``rate`` beside a survival are held against it. ``measured_k`` of the call fills in that of the file.
    """
    try:
        text = path.read_text(encoding="utf-8")
        data = _parsed(text, yaml=path.suffix.lower() in ENDINGS[1:])
    except OSError as error:
        raise AcceptanceError(
            f"{path} cannot be read ({error.strerror}); give a JSON file: {HINT}"
        ) from error
    except AcceptanceError as error:
        raise AcceptanceError(f"{path}: {error}") from error
    except (ValueError, RecursionError) as error:  # not UTF-8, not JSON, a number or a nest without end
        from rooflinekit.readers.engine_outputs import READ  # noqa: PLC0415

        why = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise AcceptanceError(
            f"{path} is neither JSON nor YAML that can be read ({why:.80}), nor an engine's output; {HINT}; {READ}"
        ) from error
    if not isinstance(data, dict):
        raise AcceptanceError(f"{path} needs named fields; {HINT}")
    if measured_k is not None and data.get("measured_k", measured_k) != measured_k:
        raise AcceptanceError(
            f"{path} says measured_k {data['measured_k']!r:.20}, --measured-k {measured_k}; keep one"
        )
    return from_fields(
        data if measured_k is None else {**data, "measured_k": measured_k}, str(path), find_profile
    )


def _parsed(text: str, *, yaml: bool) -> Any:
    if not yaml:
        return json.loads(text, object_pairs_hook=_once)
    import yaml as library  # noqa: PLC0415 - most files are JSON

    def check(node: library.Node | None) -> None:
        if isinstance(node, library.MappingNode):
            _once([(key.value, None) for key, _ in node.value if isinstance(key, library.ScalarNode)])
        for part in node.value if isinstance(node, library.CollectionNode) else ():
            for one in part if isinstance(part, tuple) else (part,):
                check(one)

    try:
        check(library.compose(text, Loader=library.SafeLoader))
        return library.safe_load(text)
    except library.YAMLError as error:
        raise ValueError(str(error)) from error


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Named fields of an object; parsers keep the last of two that are called the same, which hides a fault."""
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        raise AcceptanceError(f"field {max(names, key=names.count)!r:.40} is written twice; keep one")
    return found
