"""TensorRT-LLM's iteration statistics: JSON Lines, a list, or the log that holds them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from rooflinekit.readers.engine_outputs.counts import Counted, output_of
from rooflinekit.readers.engine_outputs.fields import find_all, median, needed, real
from rooflinekit.readers.engine_outputs.files import Opened
from rooflinekit.readers.engine_outputs.output import Asked, EngineOutput, Reader

DEFINITION = (
    "numAcceptedTokens are drafts (no bonus) over requests with drafts, A = 1 + accepted / requests; the inner "
    "iterLatencyMS is drafting alone, the outer one the iteration: medians over iterations without prefill"
)
STATS = "specDecodingStats"
PAIRING = (
    "the printed acceptanceLength does not follow from the counts in {count} of {whole} iterations: TensorRT-LLM "
    "before pull request 17082 (2026-07) divided by the drafts of another step; the counts are used"
)


def recognises(first: Any) -> bool:
    """Whether a document is an iteration with drafts."""
    return any(True for _ in find_all(first, STATS, deepest=2))


def read(files: tuple[Opened, ...], asked: Asked) -> EngineOutput:
    """Add up the iterations that drafted.

    Raises
    ------
    AcceptanceError
        None did, or fields that are no numbers.
    """
    where = ",".join(str(one.path) for one in files)
    seen: dict[Any, Mapping[str, Any]] = {}
    copies = iterations = 0
    for iteration in (one for file in files for one in _iterations(file)):
        stats = iteration.get(STATS)
        if not isinstance(stats, Mapping) or not real(stats, "numDraftTokens", where):
            continue
        iterations += 1
        key = (iteration.get("iter", iterations), json.dumps(stats, sort_keys=True))
        copies += key in seen
        seen.setdefault(key, iteration)
    rows = list(seen.values())
    sums = {
        name: sum(needed(row[STATS], name, where) for row in rows)
        for name in ("numDraftTokens", "numAcceptedTokens", "numRequestsWithDraftTokens")
    }
    notes: tuple[str, ...] = (
        (f"{copies} rows repeat the statistics of rank 0 (attention data parallelism) and count once",)
        if copies
        else ()
    )
    odd = sum(_unpaired(row[STATS], where) for row in rows)
    if odd > 0.05 * len(rows):
        notes += (PAIRING.format(count=odd, whole=len(rows)),)
    times, more = _times(rows, where)
    counted = Counted(
        rounds=sums["numRequestsWithDraftTokens"],
        accepted=sums["numAcceptedTokens"],
        drafted=sums["numDraftTokens"],
        k=asked.k,
    )
    return output_of(
        counted,
        engine="TensorRT-LLM",
        what=f"statistics of {len(rows)} iterations",
        where=where,
        definition=DEFINITION,
        notes=notes + more,
        **times,
    )


def _iterations(file: Opened) -> Iterator[Mapping[str, Any]]:
    if file.first is not None:
        for document in file.documents():
            yield from find_all(document, STATS, deepest=2)
        return
    for line in file.lines(STATS.encode()):
        start, end = line.find("{"), line.rfind("}")
        try:
            yield from find_all(json.loads(line[start : end + 1]), STATS, deepest=2)
        except (ValueError, RecursionError):
            continue


def _unpaired(stats: Mapping[str, Any], where: str) -> bool:
    """Whether ``acceptanceLength`` is not 1 + accepted / requests."""
    printed = real(stats, "acceptanceLength", where)
    requests = needed(stats, "numRequestsWithDraftTokens", where)
    if printed is None or not requests:
        return False
    return abs(printed - 1.0 - needed(stats, "numAcceptedTokens", where) / requests) > 0.01


def _times(rows: list[Mapping[str, Any]], where: str) -> tuple[dict[str, float | None], tuple[str, ...]]:
    """A round and its drafting; the printed share tells whether the inner time is of this iteration."""
    whole, draft, running, stale = [], [], [], 0
    for row in rows:
        batching = row.get("inflightBatchingStats")
        batching = batching if isinstance(batching, Mapping) else {}
        if real(batching, "numCtxTokens", where) or real(batching, "numContextRequests", where):
            continue
        latency, inner = real(row, "iterLatencyMS", where), real(row[STATS], "iterLatencyMS", where)
        share = real(row[STATS], "draftOverhead", where)
        running.append(
            real(batching, "numGenRequests", where) or real(row, "numActiveRequests", where) or 0.0
        )
        if latency:
            whole.append(latency / 1e3)
        if latency and inner:
            fits = share is None or abs(share - inner / latency) <= 0.02 * max(share, 0.01) + 1e-3
            stale += not fits
            if fits and inner < latency:
                draft.append(inner / 1e3)
    note = (
        f"draftOverhead is not iterLatencyMS of drafting over that of the iteration in {stale} iterations: their draft "
        "times are of an earlier step and left out"
    )
    times = {
        "round_s": median(whole),
        "draft_s": median(draft),
        "concurrency": median(one for one in running if one) or None,
    }
    return times, (note,) if stale else ()


READER = Reader(
    name="trtllm-stats",
    reads="TensorRT-LLM iteration statistics (specDecodingStats; JSON Lines, list or log)",
    read=read,
    recognises=recognises,
    markers=(b'"specDecodingStats"',),
)
