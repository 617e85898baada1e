"""What vLLM's offline example of speculative decoding prints at its end."""

from __future__ import annotations

import re

from rooflinekit.errors import AcceptanceError
from rooflinekit.readers.engine_outputs.counts import Counted, output_of
from rooflinekit.readers.engine_outputs.fields import NUMBER
from rooflinekit.readers.engine_outputs.files import Opened
from rooflinekit.readers.engine_outputs.output import Asked, EngineOutput, Reader

DEFINITION = (
    "mean acceptance length counts the bonus token, 1 + num_accepted_tokens / num_drafts; acceptance at token i (from "
    "0) is survival with two digits"
)
_NUMBER = re.compile(r"^(num_drafts|num_draft_tokens|num_accepted_tokens|mean acceptance length): " + NUMBER)
_TOKEN = re.compile(r"^acceptance at token (\d{1,3}): " + NUMBER)
MARKER = b"num_draft_tokens: "


def read(files: tuple[Opened, ...], asked: Asked) -> EngineOutput:
    """Read the printed totals.

    Raises
    ------
    AcceptanceError
        Totals are missing.
    """
    where = str(files[0].path)
    values: dict[str, float] = {}
    rates: dict[int, float] = {}
    for line in files[0].lines(MARKER, b"num_drafts: ", b"num_accepted_tokens: ", b"acceptance "):
        if match := _NUMBER.match(line.strip()):
            values[match.group(1)] = float(match.group(2))
        elif match := _TOKEN.match(line.strip()):
            rates[int(match.group(1))] = float(match.group(2))
    if len(files) > 1 or "num_drafts" not in values or "num_accepted_tokens" not in values:
        raise AcceptanceError(
            f"{where}: num_drafts or num_accepted_tokens is missing; give the end of one run, whole"
        )
    rounds = values["num_drafts"]
    by_position = tuple(rates.get(place, 0.0) * rounds for place in range(max(rates, default=-1) + 1))
    counted = Counted(
        rounds=rounds,
        accepted=values["num_accepted_tokens"],
        drafted=values.get("num_draft_tokens"),
        by_position=by_position,
        k=asked.k,
        printed_length=values.get("mean acceptance length"),
    )
    return output_of(counted, engine="vLLM", what="offline example", where=where, definition=DEFINITION)


READER = Reader(
    name="vllm-offline",
    reads="the end of vLLM's offline speculative-decoding example",
    read=read,
    markers=(MARKER,),
)
