"""Records of single requests, as vLLM and aiperf write them with the same names: a histogram each, added up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rooflinekit.errors import AcceptanceError
from rooflinekit.readers.engine_outputs.counts import Counted, of_histogram, output_of
from rooflinekit.readers.engine_outputs.fields import find_all, find_first, needed, real, reals
from rooflinekit.readers.engine_outputs.files import Opened
from rooflinekit.readers.engine_outputs.output import Asked, EngineOutput, Reader

DEFINITION = (
    "acceptance_histogram counts verify steps that accepted exactly j drafts (no bonus), mean_acceptance_length = "
    "1 + accepted / steps, draft_acceptance_rate = accepted / proposed; before stop tokens cut the text"
)
HISTOGRAM, STEPS = "acceptance_histogram", "num_spec_steps"


def recognises(first: Any) -> bool:
    """Whether a record of speculation is anywhere in a document."""
    return any(STEPS in one for one in find_all(first, HISTOGRAM))


def read(files: tuple[Opened, ...], asked: Asked) -> EngineOutput:
    """Add up the records of all responses in the files.

    Raises
    ------
    AcceptanceError
        No whole record, or one whose counts contradict each other.
    """
    where = ",".join(str(one.path) for one in files)
    histogram: list[float] = []
    drafted, k, model, engine, requests = 0.0, asked.k or 0, None, None, 0
    for file in files:
        for document in file.documents():
            for record in find_all(document, HISTOGRAM):
                cells = reals(record[HISTOGRAM], HISTOGRAM, where)
                _check(record, cells, where)
                histogram += [0.0] * (len(cells) - len(histogram))
                histogram = [
                    a + b for a, b in zip(histogram, [*cells, *[0.0] * len(histogram)], strict=False)
                ]
                drafted += needed(record, "num_draft_tokens", where)
                k = max(k, int(real(record, "num_spec_tokens", where) or 0))
                engine = engine or record.get("engine")
                requests += 1
            model = model or find_first(document, "model")
    if not requests:
        raise AcceptanceError(f"{where} has no whole record of speculation; it is cut off")
    counted = of_histogram(histogram, k or None, drafted=drafted)
    return output_of(
        replace_k(counted),
        engine="vLLM" if engine in (None, "vllm") else str(engine),
        what=f"records of {requests} requests",
        where=where,
        definition=DEFINITION,
        model=model if isinstance(model, str) else None,
    )


def replace_k(counted: Counted) -> Counted:
    """A K below what a round accepted is none."""
    return replace(counted, k=None) if counted.k and counted.k + 1 < len(counted.histogram) else counted


def _check(record: Mapping[str, Any], cells: tuple[float, ...], where: str) -> None:
    """``sum h_j`` = steps, ``sum j h_j`` = accepted."""
    steps = needed(record, STEPS, where)
    accepted = needed(record, "num_accepted_draft_tokens", where)
    counted = sum(place * cell for place, cell in enumerate(cells))
    if sum(cells) != steps or counted != accepted:
        raise AcceptanceError(
            f"{where}: a histogram of {sum(cells):g} steps with {counted:g} accepted drafts contradicts its "
            f"{STEPS} {steps:g} and num_accepted_draft_tokens {accepted:g}; the file is damaged"
        )


READER = Reader(
    name="request-records",
    reads="responses of vLLM with --per-request-spec-decode-metrics (JSON, JSON Lines), records of aiperf",
    read=read,
    recognises=recognises,
)
