"""aiperf's summary, ``profile_export_aiperf.json``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rooflinekit.errors import AcceptanceError
from rooflinekit.readers.engine_outputs.counts import Counted, of_histogram, of_length, output_of
from rooflinekit.readers.engine_outputs.fields import find_first, real, reals
from rooflinekit.readers.engine_outputs.files import Opened
from rooflinekit.readers.engine_outputs.output import Asked, EngineOutput, Reader
from rooflinekit.readers.engine_outputs.request_records import replace_k

DEFINITION = (
    "pooled histogram of accepted drafts per verify step; spec_decode_token_weighted_acceptance_length pools rounds "
    "(1 + accepted / steps), spec_decode_acceptance_length is a mean over requests and is not used; rates are percent; "
    "inter_token_latency is (latency - time to first token) / tokens, so the time per token"
)
POOLED = "pooled_spec_decode_acceptance_histogram"
WEIGHTED, PER_REQUEST = "spec_decode_token_weighted_acceptance_length", "spec_decode_acceptance_length"
TO_SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0}


def recognises(first: Any) -> bool:
    """Whether a document is such a summary."""
    if not isinstance(first, Mapping):
        return False
    metrics = (WEIGHTED, PER_REQUEST, "total_spec_decode_steps", "inter_token_latency")
    return POOLED in first or any(
        isinstance(first.get(name), Mapping) and "unit" in first[name] for name in metrics
    )


def read(files: tuple[Opened, ...], asked: Asked) -> EngineOutput:
    """Read a summary.

    Raises
    ------
    AcceptanceError
        Fields that are no numbers, or counts that contradict each other.
    """
    where = str(files[0].path)
    data = next(files[0].documents())
    if len(files) > 1 or not isinstance(data, Mapping):
        raise AcceptanceError(f"{where}: give one summary of aiperf at a time")
    model = find_first(data.get("input_config"), "model_names", "model")
    model = model[0] if isinstance(model, list) and model else model
    concurrency = find_first(data.get("input_config"), "concurrency")
    facts: dict[str, Any] = {
        "engine": "aiperf",
        "what": "summary",
        "where": where,
        "token_s": _time(data, "inter_token_latency", where),
        "concurrency": float(concurrency) if isinstance(concurrency, int) and concurrency > 0 else None,
        "model": model if isinstance(model, str) else None,
        "notes": () if data.get("is_complete", True) is not False else ("the run was not completed",),
    }
    return _speculative(data, asked, facts)


def _speculative(data: Mapping[str, Any], asked: Asked, facts: dict[str, Any]) -> EngineOutput:
    """Histogram, else totals, else a length."""
    where, histogram = facts["where"], data.get(POOLED)
    steps, accepted, drafted = (
        _value(data, name, where)
        for name in ("total_spec_decode_steps", "total_accepted_draft_tokens", "total_draft_tokens")
    )
    weighted, mean = _value(data, WEIGHTED, where), _value(data, PER_REQUEST, where)
    if histogram:
        counted = of_histogram(
            reals(histogram, POOLED, where), asked.k, drafted=drafted, printed_length=weighted
        )
        if counted.k is None and drafted:
            counted = _filled(counted)
        return output_of(replace_k(counted), definition=DEFINITION, **facts)
    if steps and accepted is not None:
        counted = Counted(
            rounds=steps, accepted=accepted, drafted=drafted, k=asked.k, printed_length=weighted
        )
        return output_of(counted, definition=DEFINITION, **facts)
    if weighted is None and mean is None:
        return EngineOutput(definition="a run without speculation", **facts)
    if weighted is None:
        facts["notes"] += (
            "the acceptance length is a mean over requests, short ones weigh as much as long ones",
        )
    return of_length(weighted or mean or 1.0, asked.k, definition=DEFINITION, **facts)


def _filled(counted: Counted) -> Counted:
    """The histogram has no place for drafts that were never accepted: K is at least the mean of the drafts."""
    k = round((counted.drafted or 0.0) / max(counted.rounds, 1.0))
    if k + 1 <= len(counted.histogram):
        return counted
    return of_histogram(counted.histogram, k, drafted=counted.drafted, printed_length=counted.printed_length)


def _value(data: Mapping[str, Any], name: str, where: str) -> float | None:
    metric = data.get(name)
    return real(metric, "avg", f"{where}, {name}") if isinstance(metric, Mapping) else None


def _time(data: Mapping[str, Any], name: str, where: str) -> float | None:
    value = _value(data, name, where)
    unit = data[name].get("unit") if value else None
    return value * TO_SECONDS[unit] if value and unit in TO_SECONDS else None


READER = Reader(
    name="aiperf",
    reads="aiperf's profile_export_aiperf.json",
    read=read,
    recognises=recognises,
)
