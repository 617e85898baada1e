"""``timings`` in the responses of llama.cpp's server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rooflinekit.errors import AcceptanceError
from rooflinekit.readers.engine_outputs.counts import Counted, output_of
from rooflinekit.readers.engine_outputs.fields import find_all, find_first, needed, real
from rooflinekit.readers.engine_outputs.files import Opened
from rooflinekit.readers.engine_outputs.output import Asked, EngineOutput, Reader

DEFINITION = (
    "rounds are not counted there: predicted_n - draft_n_accepted (1 or 2 off a request), so A = predicted_n / rounds, "
    "bonus token included; draft_n counts proposed drafts (before pull request 14104 of 2025-06 also those that "
    "--draft-min dropped); a round takes predicted_ms / rounds"
)
PLAIN = "a run without drafts: predicted_ms / predicted_n is the time per token"


def recognises(first: Any) -> bool:
    """Whether a document has timings anywhere."""
    return any("predicted_n" in one for one in find_all(first, "predicted_ms"))


def read(files: tuple[Opened, ...], asked: Asked) -> EngineOutput:
    """Add up the responses; of a stream that repeats its timings the last ones count.

    Raises
    ------
    AcceptanceError
        Fields that are no numbers, or more drafts accepted than made.
    """
    where = ",".join(str(one.path) for one in files)
    last: dict[Any, Mapping[str, Any]] = {}
    model = None
    for place, document in enumerate(one for file in files for one in file.documents()):
        name = document.get("id") if isinstance(document, Mapping) else None
        model = model or find_first(document, "model")
        for timings in find_all(document, "predicted_ms"):
            last[name if isinstance(name, str) else (place, id(timings))] = timings
    tokens, time, drafted, accepted = (
        sum(real(one, field, where) or 0.0 for one in last.values())
        for field in ("predicted_n", "predicted_ms", "draft_n", "draft_n_accepted")
    )
    for one in last.values():
        needed(one, "predicted_n", where)
    if not tokens or not time:
        raise AcceptanceError(f"{where}: no token was predicted; the file is cut off")
    facts: dict[str, Any] = {
        "engine": "llama.cpp",
        "what": f"timings of {len(last)} responses",
        "where": where,
        "model": model if isinstance(model, str) else None,
    }
    if not drafted:
        return EngineOutput(definition=PLAIN, token_s=time / 1e3 / tokens, **facts)
    rounds = tokens - accepted
    counted = Counted(rounds=rounds, accepted=accepted, drafted=drafted, k=asked.k, exact=False)
    return output_of(
        counted, definition=DEFINITION, round_s=time / 1e3 / rounds if rounds > 0 else None, **facts
    )


READER = Reader(
    name="llama-cpp-timings",
    reads="responses of llama.cpp's server (timings; JSON, JSON Lines, event stream)",
    read=read,
    recognises=recognises,
)
