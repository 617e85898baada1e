"""The report of ``trtllm-bench`` (``--report_json``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rooflinekit.errors import AcceptanceError
from rooflinekit.readers.engine_outputs.counts import of_length
from rooflinekit.readers.engine_outputs.fields import find_first, milliseconds, real
from rooflinekit.readers.engine_outputs.files import Opened
from rooflinekit.readers.engine_outputs.output import Asked, EngineOutput, Reader

DEFINITION = (
    "acceptance length counts the bonus token and the first token's iteration, is a mean over requests, not pooled; "
    "draft counts are reconstructed as max_draft_len x iterations, an upper bound, so the rate is a lower bound"
)
STATS = "decoding_stats"
LENGTH, RATE = "acceptance_length_percentiles", "draft_acceptance_rate_percentiles"
OLD = "acceptance_rate_percentiles"


def recognises(first: Any) -> bool:
    """Whether a document is such a report."""
    return isinstance(first, Mapping) and (
        isinstance(first.get(STATS), Mapping)
        or (isinstance(first.get("streaming_metrics"), Mapping) and "world_info" in first)
    )


def read(files: tuple[Opened, ...], asked: Asked) -> EngineOutput:
    """Read a report.

    Raises
    ------
    AcceptanceError
        No acceptance length, or no K.
    """
    where = str(files[0].path)
    data = files[0].first
    if len(files) > 1:
        raise AcceptanceError(f"{where}: give one report at a time")
    streaming = _part(data, "streaming_metrics")
    model = find_first(data.get("engine"), "model", "model_path")
    facts: dict[str, Any] = {
        "engine": "TensorRT-LLM",
        "what": "trtllm-bench report",
        "where": where,
        "token_s": milliseconds(streaming, "avg_tpot_ms", where=where),
        "concurrency": real(_part(data, "request_info"), "avg_num_concurrent_requests", where) or None,
        "model": model if isinstance(model, str) else None,
    }
    stats = _part(data, STATS)
    length = real(_part(stats, LENGTH), "average", where)
    notes: tuple[str, ...] = ()
    if length is None and isinstance(stats.get(OLD), Mapping):
        length = real(_part(stats, OLD), "average", where)
        notes = ("this older report calls the tokens per iteration 'acceptance_rate'",)
    if length is None:
        if stats:
            raise AcceptanceError(
                f"{where}: {STATS} has no {LENGTH}; the report is cut off or of another version"
            )
        return EngineOutput(
            definition="a run without speculation: avg_tpot_ms is the time per token", **facts
        )
    rate = real(_part(stats, RATE), "average", where)
    k, more = _k(data, length, rate, asked.k)
    return of_length(length, k, definition=DEFINITION, notes=notes + more, **facts)


def _part(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = data.get(name)
    return found if isinstance(found, Mapping) else {}


def _k(data: Any, length: float, rate: float | None, given: int | None) -> tuple[int | None, tuple[str, ...]]:
    """K as given, as the report says, or as length and rate say: ``K = (A - 1) / rate``."""
    stated = find_first(data, "max_draft_len", "num_nextn_predict_layers")
    stated = stated if type(stated) is int and stated > 0 else None
    implied = (length - 1.0) / rate if rate else None
    k = given or stated
    if k is None and implied is not None and abs(implied - round(implied)) <= 0.1 and round(implied) >= 1:
        return round(implied), (
            f"K = {round(implied)} follows from length and rate; add --measured-k to be sure",
        )
    if k is not None and implied is not None and abs(implied - k) > 0.15 * k:
        text = (
            f"acceptance length {length:.3g} and draft rate {rate:.3g} would be K = {implied:.2f}, not {k}: drafts "
            "were shorter than their upper bound, or requests differ much"
        )
        return k, (text,)
    return k, ()


READER = Reader(
    name="trtllm-bench",
    reads="trtllm-bench report (JSON)",
    read=read,
    recognises=recognises,
)
