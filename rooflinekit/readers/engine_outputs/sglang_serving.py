"""Results of SGLang's ``bench_serving`` and ``bench_one_batch_server``, and the answer of ``/server_info``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rooflinekit.errors import AcceptanceError
from rooflinekit.readers.engine_outputs.counts import of_length
from rooflinekit.readers.engine_outputs.fields import NUMBER, chosen, find_first, milliseconds, real
from rooflinekit.readers.engine_outputs.files import Opened
from rooflinekit.readers.engine_outputs.output import Asked, EngineOutput, Reader
from rooflinekit.readers.engine_outputs.sglang_shape import shape_in_info

DEFINITION = (
    "accept length counts the bonus token and is the server's average since its start, warm-up included; mean TPOT is "
    "the time per token (ITL has two meanings here by backend and is not used)"
)
ONE_BATCH = (
    "acc_length counts the bonus token and is the server's average; output throughput is of the whole batch, the "
    "steady part of it where it is there"
)
AVERAGE = "avg_spec_accept_length"
_CONSOLE = {
    "accept_length": re.compile(r"^Accept length:\s+" + NUMBER),
    "concurrency": re.compile(r"^Concurrency:\s+" + NUMBER),
    "mean_tpot_ms": re.compile(r"^Mean TPOT \(ms\):\s+" + NUMBER),
}


def recognises(first: Any) -> bool:
    """Whether a document is one of the three."""
    if not isinstance(first, Mapping) or "step_time" in first:
        return False
    return (
        "accept_length" in first
        or ("acc_length" in first and "batch_size" in first)
        or ("server_info" in first and "mean_tpot_ms" in first)
        or "internal_states" in first
    )


def read(files: tuple[Opened, ...], asked: Asked) -> EngineOutput:
    """Read one result: the only line of a file, or the one named by its place (``FILE#2``).

    Raises
    ------
    AcceptanceError
        Several results, fields that are no numbers, or no K.
    """
    where = str(files[0].path)
    runs: dict[str, Mapping[str, Any]]
    if files[0].first is None:
        runs = {"1": _console(files[0])}
    else:
        rows = files[0].documents()
        runs = {str(place): one for place, one in enumerate(rows, 1) if isinstance(one, Mapping)}
    if len(files) > 1 or not runs:
        raise AcceptanceError(f"{where}: give one result of SGLang at a time")
    data = runs[chosen(runs, asked.part, where, "result")]
    if "acc_length" in data:
        return _one_batch(data, where, asked)
    length = real(data, "accept_length", where)
    if length is None:
        length = real({AVERAGE: find_first(data, AVERAGE)}, AVERAGE, where)
    k, width = shape_in_info(data)
    facts: dict[str, Any] = {
        "engine": "SGLang",
        "what": "server_info" if "internal_states" in data else "bench_serving result",
        "where": where,
        "token_s": milliseconds(data, "mean_tpot_ms", "median_tpot_ms", where=where),
        "concurrency": real(data, "concurrency", where) or real(data, "max_concurrency", where) or None,
        "model": _text(find_first(data, "model_path", "served_model_name")),
    }
    if not length:
        return EngineOutput(definition="a run without speculation: mean TPOT is the time per token", **facts)
    k, note = _said(k, asked.k)
    return of_length(length, k, definition=DEFINITION, width=width, notes=note, **facts)


def _said(k: int | None, given: int | None) -> tuple[int | None, tuple[str, ...]]:
    """K as it was given, else that of the server's options."""
    if given is None or k is None or given == k:
        return given or k, ()
    return given, (f"K = {given} was given and is used; the server's options say {k}",)


def _one_batch(data: Mapping[str, Any], where: str, asked: Asked) -> EngineOutput:
    batch = real(data, "batch_size", where) or 1.0
    rate = real(data, "steady_state_output_throughput", where) or real(data, "output_throughput", where)
    raw = data["acc_length"]
    facts: dict[str, Any] = {
        "engine": "SGLang",
        "what": "bench_one_batch_server result",
        "where": where,
        "token_s": batch / rate if rate else None,
        "concurrency": batch,
        "model": None,
    }
    if not isinstance(raw, int | float) or raw <= 0:  # -1 stands for none
        return EngineOutput(definition="a run without speculation", **facts)
    return of_length(float(raw), asked.k, definition=ONE_BATCH, **facts)


def _console(file: Opened) -> dict[str, Any]:
    """The figures of the printed table."""
    found: dict[str, Any] = {}
    for line in file.lines(b"Accept length:", b"Concurrency:", b"Mean TPOT"):
        for name, part in _CONSOLE.items():
            match = part.match(line.strip())
            if match and name not in found:
                found[name] = float(match.group(1))
    return found


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


READER = Reader(
    name="sglang-serving",
    reads="SGLang bench_serving and bench_one_batch_server (JSON Lines, a line of several by FILE#2), /server_info",
    read=read,
    recognises=recognises,
    markers=(b"Accept length:",),
)
