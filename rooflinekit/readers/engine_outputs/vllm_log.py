"""vLLM's log: the line ``SpecDecoding metrics`` that it writes every ten seconds, in any order of its parts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rooflinekit.errors import AcceptanceError
from rooflinekit.readers.engine_outputs.counts import Counted, output_of
from rooflinekit.readers.engine_outputs.fields import NUMBER, chosen, median, numbers_in
from rooflinekit.readers.engine_outputs.files import Opened
from rooflinekit.readers.engine_outputs.output import Asked, EngineOutput, Reader

DEFINITION = (
    "mean acceptance length counts the bonus token; the draft acceptance rate (percent) is accepted over drafted; "
    "rates per position are survival, not conditional; rounds = drafted / K; a round takes concurrency x interval / "
    "rounds, median over the lines"
)
V1 = b"SpecDecoding metrics: "
V0 = b"Speculative metrics:"
PARTS = {
    "length": re.compile(rf"Mean acceptance length: {NUMBER}"),
    "rate": re.compile(rf"[Dd]raft acceptance rate: {NUMBER}%"),
    "accepted": re.compile(rf"Accepted: {NUMBER} tokens"),
    "drafted": re.compile(rf"Drafted: {NUMBER} tokens"),
    "per_s": re.compile(rf"Drafted throughput: {NUMBER} tokens/s"),
}
_POSITIONS = re.compile(r"Per-position acceptance rate: ([\d., ]+)")
_RUNNING = re.compile(rf"Running: {NUMBER} reqs")
_MODEL = re.compile(r"with config: model='([^']+)'")


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line: counts of an interval.

    Attributes
    ----------
    counts
        Rounds, drafted, accepted.
    by_position
        Rounds that accepted the first i drafts.
    interval_s
        Its length (s), where a throughput is printed.
    running
        Requests running when it was written, where the log says so.
    rate
        Printed rate (fraction).
    """

    counts: tuple[float, float, float]
    by_position: tuple[float, ...]
    interval_s: float | None
    running: float | None
    rate: float | None


def read(files: tuple[Opened, ...], asked: Asked) -> EngineOutput:
    """Add up the lines of a log.

    Raises
    ------
    AcceptanceError
        Only lines of vLLM 0.x's old engine, nothing drafted, several K, or no whole line.
    """
    where = ",".join(str(one.path) for one in files)
    found = [_lines(one, asked.k) for one in files]
    lines = [line for one, _, _ in found for line in one]
    cut = sum(count for _, count, _ in found)
    if not lines:
        raise AcceptanceError(f"{where} {_why_not(files, cut)}")
    by_k: dict[str, list[Line]] = {}
    for line in lines:
        by_k.setdefault(f"k={len(line.by_position) or asked.k}", []).append(line)
    some = by_k[chosen(by_k, asked.part, where, "K")]
    rounds, drafted, accepted = (sum(line.counts[i] for line in some) for i in range(3))
    exact = all(line.by_position for line in some)
    counted = Counted(
        rounds=rounds,
        accepted=accepted,
        drafted=drafted,
        by_position=tuple(map(sum, zip(*(line.by_position for line in some), strict=True))),
        k=asked.k,
        printed_rate=_weighted(some),
        exact=exact,
        notes=(f"{cut} lines are cut and left out",) if cut else (),
    )
    return output_of(
        counted,
        engine="vLLM",
        what=f"log, {len(some)} lines",
        where=where,
        definition=DEFINITION,
        model=next((model for _, _, model in found if model), None),
        **_times(some),
    )


def _why_not(files: Sequence[Opened], cut: int) -> str:
    if cut:
        return "has SpecDecoding lines but none with all its parts; give the log without cutting lines"
    if any(True for one in files for _ in one.lines(V1)):
        return "drafted nothing in any interval; send requests with speculation on"
    return (
        "has lines of vLLM's old V0 engine only, whose acceptance rate counts tokens after the first miss and says "
        "nothing about rounds; use a vLLM that prints 'SpecDecoding metrics'"
    )


def _lines(file: Opened, k: int | None) -> tuple[list[Line], int, str | None]:
    """Whole lines, how many were cut, and the model."""
    found: list[tuple[dict[str, float], tuple[float, ...], float | None]] = []
    cut, running, model = 0, None, None
    for text in file.lines(V1, b"Running: ", b"with config: model="):
        named, seen = _MODEL.search(text), _RUNNING.search(text)
        model = named.group(1) if named and model is None else model
        running = float(seen.group(1)) or None if seen else running
        if V1.decode() not in text:
            continue
        values = {name: float(m.group(1)) for name, part in PARTS.items() if (m := part.search(text))}
        rates = _POSITIONS.search(text)
        positions = numbers_in(rates.group(1)) if rates else ()
        whole = "drafted" in values and "accepted" in values
        # One and the sum of the positions is the length: fewer positions mean that the line is cut.
        if whole and positions and "length" in values:
            whole = abs(1.0 + sum(positions) - values["length"]) <= 0.02 + 0.001 * len(positions)
        cut += not whole
        if whole and values["drafted"] > 0:
            found.append((values, positions, running))
    placed = [one for one in found if one[1]]
    if not placed and found and k is None:
        raise AcceptanceError(
            f"{file.path}: these lines have no rates per position, so K is unknown; add --measured-k"
        )
    kept = placed or found
    return [_line(*one, k or 1) for one in kept], cut + len(found) - len(kept), model


def _line(values: dict[str, float], positions: tuple[float, ...], running: float | None, k: int) -> Line:
    drafted, accepted, length = values["drafted"], values["accepted"], values.get("length")
    rounds = drafted / (len(positions) or k)
    if length is not None and length > 1.005 and accepted > 0:
        low, high = accepted / (length + 0.006 - 1.0), accepted / max(length - 0.006 - 1.0, 1e-9)
        # Fewer drafts than K in some rounds: the length tells the rounds.
        rounds = rounds if low <= rounds <= high else max(float(round(accepted / (length - 1.0))), 1.0)
    rate = values.get("rate")
    return Line(
        counts=(rounds, drafted, accepted),
        by_position=tuple(_whole(one * rounds) for one in positions),
        interval_s=drafted / values["per_s"] if values.get("per_s") else None,
        running=running,
        rate=None if rate is None else rate / 100.0,
    )


def _whole(count: float) -> float:
    """Rates have three digits, so few rounds give back whole counts."""
    return float(round(count))


def _weighted(lines: Iterable[Line]) -> float | None:
    """Printed rates, weighted by drafts."""
    known = [(line.rate, line.counts[1]) for line in lines if line.rate is not None]
    total = sum(weight for _, weight in known)
    return sum(rate * weight for rate, weight in known) / total if total else None


def _times(lines: Sequence[Line]) -> dict[str, float]:
    """Rounds in a second of a middling interval: the first ones hold idle time."""
    rates = [line.counts[0] / line.interval_s for line in lines if line.interval_s]
    running = [line.running for line in lines if line.running]
    found = {}
    if rates:
        found["rounds_per_s"] = median(rates) or 0.0
    if len(running) == len(lines) and running:
        found["concurrency"] = median(running) or 1.0
        rounds = [
            line.running * line.interval_s / line.counts[0]
            for line in lines
            if line.running and line.interval_s
        ]
        if rounds:
            found["round_s"] = median(rounds) or 0.0
    return found


READER = Reader(
    name="vllm-log",
    reads="vLLM's log ('SpecDecoding metrics' lines, any order; the old engine's 'Speculative metrics' are refused)",
    read=read,
    markers=(V1, V0),
)
