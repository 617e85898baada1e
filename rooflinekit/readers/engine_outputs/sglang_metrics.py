"""SGLang's Prometheus gauges: the last window of its log, not an average."""

from __future__ import annotations

import re

from rooflinekit.errors import AcceptanceError
from rooflinekit.readers.engine_outputs.counts import of_length
from rooflinekit.readers.engine_outputs.files import Opened
from rooflinekit.readers.engine_outputs.output import Asked, EngineOutput, Reader
from rooflinekit.readers.engine_outputs.sglang_shape import shape

DEFINITION = "gauges of the last log window: spec_accept_length counts the bonus token; averaged over ranks and scrapes"
GAUGE = (
    "these are gauges of the last window only; scrape several times into one file (curl >>), or use the log, for an "
    "average"
)
MARKER = b"sglang:spec_accept_length"
_SAMPLE = re.compile(r"^sglang:(spec_\w+?)(?:_total)?(?:\{(.*)\})?\s+([0-9.eE+-]+)")
_MODEL = re.compile(r'model_name="([^"]*)"')


def read(files: tuple[Opened, ...], asked: Asked) -> EngineOutput:
    """Average the gauges that are not 0 (no window yet).

    Raises
    ------
    AcceptanceError
        No window was logged, or K is unknown.
    """
    where = ",".join(str(one.path) for one in files)
    values: dict[str, list[float]] = {}
    model = None
    for file in files:
        for line in file.lines(b"sglang:spec_"):
            match = _SAMPLE.match(line)
            if match is None:
                continue
            try:
                value = float(match.group(3))
            except ValueError:
                continue
            named = _MODEL.search(match.group(2) or "")
            model = model or (named.group(1) if named else None)
            if 0 < value < 1e9:
                values.setdefault(match.group(1), []).append(value)
    lengths = values.get("spec_accept_length", [])
    if not lengths:
        raise AcceptanceError(
            f"{where}: spec_accept_length is 0, no window was logged yet; scrape it under load"
        )
    steps, nodes = (
        int(max(values[one])) if one in values else None
        for one in ("spec_num_steps", "spec_num_draft_tokens")
    )
    tree = steps is not None and nodes is not None and nodes != steps + 1
    k, width = shape(steps, nodes, 2 if tree else 1)
    return of_length(
        sum(lengths) / len(lengths),
        asked.k or k,
        engine="SGLang",
        what=f"Prometheus gauges, {len(lengths)} samples",
        where=where,
        definition=DEFINITION,
        width=width,
        model=model,
        notes=(GAUGE,) if len(lengths) == 1 else (),
    )


READER = Reader(
    name="sglang-metrics",
    reads="Prometheus text of SGLang (sglang:spec_accept_length ...)",
    read=read,
    markers=(MARKER,),
)
