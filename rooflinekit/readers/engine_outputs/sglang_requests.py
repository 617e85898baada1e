"""SGLang's ``meta_info`` of single responses: a histogram or totals each, added up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rooflinekit.errors import AcceptanceError
from rooflinekit.readers.engine_outputs.counts import Counted, of_histogram, output_of
from rooflinekit.readers.engine_outputs.fields import find_all, needed, real, reals
from rooflinekit.readers.engine_outputs.files import Opened
from rooflinekit.readers.engine_outputs.output import Asked, EngineOutput, Reader
from rooflinekit.readers.engine_outputs.request_records import replace_k

DEFINITION = (
    "spec_correct_drafts_histogram counts verifies that accepted exactly j drafts; A = 1 + correct drafts / verifies; "
    "meta_info's own spec_accept_length is completion tokens / verifies, with the first token and what stop tokens "
    "cut off in it, and is not used"
)
VERIFIES = "spec_verify_ct"
ACCEPTED = ("spec_num_correct_drafts", "spec_accepted_drafts", "spec_accepted_tokens")
HISTOGRAM, PROPOSED = "spec_correct_drafts_histogram", "spec_num_proposed_drafts"


def recognises(first: Any) -> bool:
    """Whether a document counts verifies anywhere."""
    return any(True for _ in find_all(first, VERIFIES))


def read(files: tuple[Opened, ...], asked: Asked) -> EngineOutput:
    """Add up the responses.

    Raises
    ------
    AcceptanceError
        No verify, no count of accepted drafts, or counts that contradict each other.
    """
    where = ",".join(str(one.path) for one in files)
    sums = {"rounds": 0.0, "accepted": 0.0, "drafted": 0.0, "printed": 0.0}
    histogram: list[float] = []
    whole, told, requests = True, True, 0
    for record in (
        one for file in files for document in file.documents() for one in find_all(document, VERIFIES)
    ):
        verifies = needed(record, VERIFIES, where)
        cells = reals(record[HISTOGRAM], HISTOGRAM, where) if record.get(HISTOGRAM) else ()
        accepted = _accepted(record, cells, verifies, where)
        size = max(len(histogram), len(cells))
        padded = [*cells, *[0.0] * (size - len(cells))]
        histogram = [
            a + b for a, b in zip([*histogram, *[0.0] * (size - len(histogram))], padded, strict=True)
        ]
        whole = whole and (bool(cells) or not verifies)
        proposed = real(record, PROPOSED, where)
        told = told and proposed is not None
        sums["rounds"] += verifies
        sums["accepted"] += accepted
        sums["drafted"] += proposed or 0.0
        sums["printed"] += verifies * (real(record, "spec_accept_length", where) or 0.0)
        requests += 1
    drafted = sums["drafted"] if told else None
    k = asked.k or (round(drafted / sums["rounds"]) if drafted and sums["rounds"] else None)
    counted = (
        of_histogram(histogram, k, drafted=drafted)
        if whole and histogram
        else Counted(rounds=sums["rounds"], accepted=sums["accepted"], drafted=drafted, k=asked.k)
    )
    return output_of(
        replace_k(counted),
        engine="SGLang",
        what=f"meta_info of {requests} responses",
        where=where,
        definition=DEFINITION,
        notes=_truncation(sums),
    )


def _accepted(record: Mapping[str, Any], cells: tuple[float, ...], verifies: float, where: str) -> float:
    stated = next((real(record, name, where) for name in ACCEPTED if record.get(name) is not None), None)
    if cells:
        counted = sum(place * cell for place, cell in enumerate(cells))
        if sum(cells) != verifies or (stated is not None and stated != counted):
            raise AcceptanceError(
                f"{where}: a histogram of {sum(cells):g} verifies with {counted:g} accepted drafts contradicts "
                f"{VERIFIES} {verifies:g}"
                + ("" if stated is None else f" and {stated:g} accepted")
                + "; check the file"
            )
        return counted
    if stated is None:
        raise AcceptanceError(
            f"{where}: a response counts verifies but no accepted drafts; use a newer SGLang"
        )
    return stated


def _truncation(sums: Mapping[str, float]) -> tuple[str, ...]:
    if not sums["rounds"] or not sums["printed"]:
        return ()
    printed, length = sums["printed"] / sums["rounds"], 1.0 + sums["accepted"] / sums["rounds"]
    if abs(printed - length) <= 0.01 * length:
        return ()
    text = (
        f"meta_info says {printed:.3f} tokens per verify (the first token and truncation in it); the counts give "
        f"{length:.3f}, which is used"
    )
    return (text,)


READER = Reader(
    name="sglang-requests",
    reads="SGLang responses with meta_info (spec_verify_ct ...; JSON, JSON Lines)",
    read=read,
    recognises=recognises,
)
