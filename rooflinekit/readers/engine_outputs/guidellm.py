"""guidellm's report: times of any engine, and tokens per streamed iteration in place of an acceptance length."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rooflinekit.errors import AcceptanceError
from rooflinekit.readers.engine_outputs.counts import of_length
from rooflinekit.readers.engine_outputs.fields import chosen, find_first, real
from rooflinekit.readers.engine_outputs.files import Opened
from rooflinekit.readers.engine_outputs.output import Asked, EngineOutput, Reader

DEFINITION = (
    "inter_token_latency_ms is the time per token after the first; iter_tokens_per_iteration counts tokens per "
    "streamed chunk after the first, an acceptance length only if the server sends every round on its own"
)
PROXY = (
    "tokens per streamed chunk stand for the acceptance length: a stream interval above 1, or chunks joined under "
    "load, make it too large; the engine's own counters are better"
)
PLAIN = 1.02
"""Up to so many tokens per chunk a run has no speculation."""


def recognises(first: Any) -> bool:
    """Whether a document is such a report."""
    if not isinstance(first, Mapping) or not isinstance(first.get("benchmarks"), list):
        return False
    return any(isinstance(one, Mapping) and "metrics" in one for one in first["benchmarks"])


def read(files: tuple[Opened, ...], asked: Asked) -> EngineOutput:
    """Read the one benchmark of a report, or the one named by its place (``FILE#2``).

    Raises
    ------
    AcceptanceError
        Several benchmarks, numbers that cannot be, or no K.
    """
    where = str(files[0].path)
    listed = files[0].first["benchmarks"]
    runs = {str(place): one for place, one in enumerate(listed, 1) if isinstance(one, Mapping)}
    if len(files) > 1:
        raise AcceptanceError(f"{where}: give one report at a time")
    run = runs[chosen(runs, asked.part, where, "benchmark")]
    token, tokens, running = (
        _mean(run.get("metrics"), name, where)
        for name in ("inter_token_latency_ms", "iter_tokens_per_iteration", "request_concurrency")
    )
    model = find_first(run.get("config"), "model")
    facts: dict[str, Any] = {
        "engine": "guidellm",
        "what": "report",
        "where": where,
        "token_s": token / 1e3 if token else None,
        "concurrency": max(running, 1.0) if running else None,
        "model": model if isinstance(model, str) else None,
    }
    if tokens is None or tokens <= PLAIN:
        return EngineOutput(definition="one token per chunk: a run without speculation", **facts)
    return of_length(tokens, asked.k, definition=DEFINITION, notes=(PROXY,), **facts)


def _mean(metrics: Any, name: str, where: str) -> float | None:
    """Mean over the requests that succeeded."""
    found = metrics.get(name) if isinstance(metrics, Mapping) else None
    found = found.get("successful") if isinstance(found, Mapping) else None
    return real(found, "mean", f"{where}, {name}") if isinstance(found, Mapping) else None


READER = Reader(
    name="guidellm",
    reads="guidellm's report (JSON, version 2), a benchmark of several by FILE#2",
    read=read,
    recognises=recognises,
)
