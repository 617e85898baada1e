"""SGLang's log: ``Decode batch`` lines with ``accept len`` and ``accept rate``, by the old and the new definition."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rooflinekit.errors import AcceptanceError
from rooflinekit.readers.engine_outputs.counts import of_length
from rooflinekit.readers.engine_outputs.fields import NUMBER, median
from rooflinekit.readers.engine_outputs.files import Opened
from rooflinekit.readers.engine_outputs.output import Asked, EngineOutput, Reader
from rooflinekit.readers.engine_outputs.sglang_shape import MARKER, OLD_RATE, shape_in_text

DEFINITION = (
    "accept len counts the bonus token; accept rate is accepted drafts over K, before pull request 23530 (2026) "
    "accept len over K + 1; each line is a window of decode steps, weighted by its running requests; a round takes "
    "running x accept len / throughput, median over the lines"
)
HALF = 0.0051
"""Half a unit of the two printed digits."""
LARGEST_K = 64
STRAY = 0.03
"""Share of lines that may fit no K: windows over the end of a request."""
_PARTS = {
    "running": re.compile("#running-req: " + NUMBER),
    "length": re.compile("(?<!block )accept len: " + NUMBER),
    "rate": re.compile("accept rate: " + NUMBER),
    "cap": re.compile("cap len: " + NUMBER),
    "per_s": re.compile(r"gen throughput \(token/s\): " + NUMBER),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """K, width of a tree, and whether rates are of the old definition (``None``: not printed, or neither)."""

    k: int
    width: int | None
    old: bool | None
    note: tuple[str, ...] = ()


def read(files: tuple[Opened, ...], asked: Asked) -> EngineOutput:
    """Average the lines of a log.

    Raises
    ------
    AcceptanceError
        No whole line, or K cannot be told from lengths and rates.
    """
    where = ",".join(str(one.path) for one in files)
    lines, told, width = _lines(files)
    k = asked.k or told
    if not lines:
        raise AcceptanceError(
            f"{where} has no whole 'Decode batch' line with running requests; the log is cut off"
        )
    weight = sum(line["running"] for line in lines)
    length = sum(line["running"] * line["length"] for line in lines) / weight
    found = _shape(lines, k, width, where)
    rates = [line["rate"] for line in lines if "rate" in line]
    notes = found.note
    if found.old:
        drafts = (length - 1.0) / ((width or found.k + 1) - 1)
        notes += (OLD_RATE.format(rate=sum(rates) / len(rates), drafts=drafts),)
    caps = [line["cap"] for line in lines if "cap" in line]
    if caps:
        notes += (
            f"the engine cut drafts to {sum(caps) / len(caps):.2f} tokens on average (cap len): K varies",
        )
    times = [line["running"] * line["length"] / line["per_s"] for line in lines if line.get("per_s")]
    return of_length(
        length,
        found.k,
        engine="SGLang",
        what=f"log, {len(lines)} lines",
        where=where,
        definition=DEFINITION,
        width=width,
        round_s=median(times),
        concurrency=median([line["running"] for line in lines]),
        notes=notes,
    )


def _lines(files: Sequence[Opened]) -> tuple[list[dict[str, float]], int | None, int | None]:
    """Windows with running requests, and K and width where the server's options are printed."""
    lines: list[dict[str, float]] = []
    k = width = None
    for text in (line for file in files for line in file.lines(b"accept len:", MARKER)):
        if MARKER.decode() in text:
            k, width = shape_in_text(text)
            continue
        values = {name: float(m.group(1)) for name, part in _PARTS.items() if (m := part.search(text))}
        if values.get("length", 0.0) >= 1.0 and values.get("running", 0.0) > 0:
            lines.append(values)
    return lines, k, width


def _shape(lines: Sequence[dict[str, float]], k: int | None, width: int | None, where: str) -> Shape:
    """K as said, else the one K that explains every length and rate, by the definition that does."""
    rated = [(line["length"], line["rate"]) for line in lines if "rate" in line and line["length"] > 1.0]
    if k is not None:
        nodes = (width or k + 1) - 1
        new, old = nodes in _fitting(rated, old=False), nodes in _fitting(rated, old=True)
        odd = bool(rated) and not new and not old
        note = f"the accept rates fit neither definition at K = {k}: check --measured-k"
        return Shape(k=k, width=width, old=old and not new, note=(note,) if odd else ())
    if not rated:
        raise AcceptanceError(f"{where} has no accept rates, so K is unknown; add --measured-k")
    new_k, old_k = _fitting(rated, old=False), _fitting(rated, old=True)
    if bool(new_k) == bool(old_k):
        said = (
            f"may be K = {new_k[0]} or, by the definition before pull request 23530, K = {old_k[0]}"
            if new_k
            else "fit no one K (a tree, or K that varies)"
        )
        raise AcceptanceError(f"{where}: accept lengths and rates {said}; add --measured-k")
    known, old = new_k or old_k, bool(old_k)
    best = min(known, key=lambda one: sum(abs(rate - _rate(length, one, old=old)) for length, rate in rated))
    note = (
        f"K = {best} explains the rates best, {known[0]} to {known[-1]} may be; add --measured-k to be sure"
    )
    return Shape(k=best, width=None, old=old, note=(note,) if len(known) > 1 else ())


def _rate(length: float, k: int, *, old: bool) -> float:
    return length / (k + 1) if old else (length - 1.0) / k


def _fitting(rated: Sequence[tuple[float, float]], *, old: bool) -> list[int]:
    """Every K by which lengths give the rates, to their printed digits."""
    found = []
    for k in range(1, LARGEST_K + 1):
        slack = HALF + HALF / (k + old)
        missed = sum(
            abs(rate - _rate(length, k, old=old)) > slack or length > k + 1 + HALF for length, rate in rated
        )
        if rated and missed <= STRAY * len(rated):
            found.append(k)
    return found


READER = Reader(
    name="sglang-log",
    reads="SGLang's log ('Decode batch' lines with accept len)",
    read=read,
    markers=(b"accept len:",),
)
