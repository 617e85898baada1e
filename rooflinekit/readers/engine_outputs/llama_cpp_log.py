"""llama.cpp's log: ``draft acceptance`` and ``statistics`` lines, and the end of ``llama-speculative-simple``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from rooflinekit.errors import AcceptanceError
from rooflinekit.readers.engine_outputs.counts import Counted, output_of
from rooflinekit.readers.engine_outputs.fields import NUMBER, chosen, numbers_in
from rooflinekit.readers.engine_outputs.files import Opened
from rooflinekit.readers.engine_outputs.output import Asked, EngineOutput, Reader

DEFINITION = (
    "draft acceptance is accepted over generated drafts; mean acceptance length counts the bonus token; rates per "
    "position are survival; statistics count from the start of the server; a draft round takes its duration (g) over "
    "its calls, a round the eval time over the rounds"
)
SIMPLE = "n_accept of n_drafted drafts; rounds = n_predict - n_accept (1 or 2 off); n_draft is the largest K"
_EVAL = re.compile(rf"(?<!prompt )eval time =\s*{NUMBER} ms /\s*(\d{{1,15}}) tokens")
_DRAFT = re.compile(
    r"draft acceptance(?: rate)?\s*=\s*[\d.]+ \(\s*(\d{1,15}) accepted /\s*(\d{1,15}) generated\)"
)
_LENGTH = re.compile(rf"mean (?:acceptance )?len(?:gth)?\s*=\s*{NUMBER}")
_RATES = re.compile(r"(?:acceptance rate per position|acc per pos|#acc rate/pos)\s*=\s*\(([\d., ]+)\)")
_STATISTICS = re.compile(r"statistics\s+([\w-]+):\s*#calls\(b,g,a\) =\s*(\d{1,15})\s+(\d{1,15})\s+(\d{1,15})")
_COUNT = re.compile(r"#(gen drafts|gen tokens|acc tokens) =\s*(\d{1,15})")
_DURATION = re.compile(rf"dur\(b,g,a\) = {NUMBER}, {NUMBER}, {NUMBER} ms")
_SIMPLE = re.compile(r"^(n_draft|n_predict|n_drafted|n_accept)\s*=\s*(\d{1,15})\s*$")
_DECODED = re.compile(rf"decoded\s+\d+ tokens in\s+{NUMBER} seconds")
MARKERS = (b"draft acceptance", b"#gen drafts", b"n_drafted")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Counts of a request or of a drafter: rounds, drafts, accepted; rates by position; times (s)."""

    rounds: float
    drafted: float
    accepted: float
    rates: tuple[float, ...] = ()
    eval_s: float = 0.0
    draft_s: float = 0.0
    calls: float = 0.0


def read(files: tuple[Opened, ...], asked: Asked) -> EngineOutput:
    """Add up requests; where statistics are printed, take the counts of the drafter that drafted most.

    Raises
    ------
    AcceptanceError
        No whole line, nothing drafted, or an unknown drafter named (``FILE#draft-mtp``).
    """
    where = ",".join(str(one.path) for one in files)
    requests: list[Tally] = []
    drafters: dict[str, list[Tally]] = {}
    simple: dict[str, float] = {}
    for file in files:
        _scan(file, requests, drafters, simple)
    if drafters:
        return _of_drafters(requests, drafters, where, asked)
    if requests:
        whole = _sum(requests)
        counted = _counted(whole, asked.k)
        what, definition, time = f"log of {len(requests)} requests", DEFINITION, whole.eval_s / whole.rounds
    elif {"n_drafted", "n_accept", "n_predict"} <= simple.keys():
        rounds, k = simple["n_predict"] - simple["n_accept"], int(simple.get("n_draft", 0)) or None
        counted = Counted(
            rounds=rounds,
            accepted=simple["n_accept"],
            drafted=simple["n_drafted"],
            k=asked.k or k,
            exact=False,
        )
        what, definition, time = (
            "end of llama-speculative-simple",
            SIMPLE,
            simple.get("s", 0.0) / max(rounds, 1.0),
        )
    else:
        raise AcceptanceError(f"{where} has lines about drafts but none that is whole; the log is cut off")
    return output_of(
        counted,
        engine="llama.cpp",
        what=what,
        where=where,
        definition=definition,
        round_s=time or None,
        concurrency=1.0 if simple and not requests else None,
    )


def _scan(
    file: Opened, requests: list[Tally], drafters: dict[str, list[Tally]], simple: dict[str, float]
) -> None:
    """Sort the lines of a file."""
    time, tokens = 0.0, 0.0
    for line in file.lines(*MARKERS, b"eval time =", b"n_draft ", b"n_predict", b"n_accept", b"decoded "):
        if match := _EVAL.search(line):
            time, tokens = float(match.group(1)) / 1e3, float(match.group(2))
        elif match := _DRAFT.search(line):
            accepted, drafted = float(match.group(1)), float(match.group(2))
            rounds = _rounds(line, accepted, tokens)
            if rounds > 0 and drafted > 0:
                requests.append(
                    Tally(rounds=rounds, drafted=drafted, accepted=accepted, rates=_rates(line), eval_s=time)
                )
            time, tokens = 0.0, 0.0
        elif match := _STATISTICS.search(line):
            _add(drafters.setdefault(match.group(1), []), line, float(match.group(3)))
        elif match := _SIMPLE.match(line.strip()):
            simple[match.group(1)] = float(match.group(2))
        elif match := _DECODED.search(line):
            simple["s"] = float(match.group(1))


def _rounds(line: str, accepted: float, tokens: float) -> float:
    """Rounds from the mean length, else the tokens that were no accepted drafts (1 or 2 off)."""
    length = _LENGTH.search(line)
    if length and accepted > 0 and float(length.group(1)) > 1.0:
        return float(round(accepted / (float(length.group(1)) - 1.0)))
    return max(tokens - accepted, 0.0)


def _rates(line: str) -> tuple[float, ...]:
    found = _RATES.search(line)
    return numbers_in(found.group(1)) if found else ()


def _add(tallies: list[Tally], line: str, calls: float) -> None:
    """Statistics count on: the last line of a server holds those before it."""
    counts = {name: float(value) for name, value in _COUNT.findall(line)}
    if len(counts) < 3:
        return
    duration = _DURATION.search(line)
    new = Tally(
        rounds=counts["gen drafts"],
        drafted=counts["gen tokens"],
        accepted=counts["acc tokens"],
        rates=_rates(line),
        draft_s=float(duration.group(2)) / 1e3 if duration else 0.0,
        calls=calls,
    )
    if tallies and calls >= tallies[-1].calls and new.accepted >= tallies[-1].accepted:
        tallies.pop()
    tallies.append(new)


def _sum(tallies: Iterable[Tally]) -> Tally:
    """Add up; rates are weighted by rounds, those with other positions left out."""
    some = list(tallies)
    rounds, drafted, accepted, eval_s, draft_s, calls = (
        sum(getattr(one, name) for one in some)
        for name in ("rounds", "drafted", "accepted", "eval_s", "draft_s", "calls")
    )
    places = max(len(one.rates) for one in some)
    rates: tuple[float, ...] = ()
    if all(one.rates for one in some):
        padded = [(*one.rates, *[0.0] * (places - len(one.rates))) for one in some]
        weights = [one.rounds for one in some]
        rates = tuple(
            sum(round(row[i] * weight) for row, weight in zip(padded, weights, strict=True)) / rounds
            for i in range(places)
        )
    return Tally(
        rounds=rounds,
        drafted=drafted,
        accepted=accepted,
        rates=rates,
        eval_s=eval_s,
        draft_s=draft_s,
        calls=calls,
    )


def _counted(tally: Tally, k: int | None) -> Counted:
    by_position = tuple(float(round(rate * tally.rounds)) for rate in tally.rates)
    return Counted(
        rounds=tally.rounds, accepted=tally.accepted, drafted=tally.drafted, by_position=by_position, k=k
    )


def _of_drafters(
    requests: list[Tally], drafters: dict[str, list[Tally]], where: str, asked: Asked
) -> EngineOutput:
    sums = {name: _sum(tallies) for name, tallies in drafters.items() if tallies}
    if not sums:
        raise AcceptanceError(f"{where} has statistics lines but none that is whole; the log is cut off")
    busiest = max(sums, key=lambda name: sums[name].rounds)
    name = chosen(sums, asked.part, where, "drafter") if asked.part else busiest
    one = sums[name]
    notes: tuple[str, ...] = ()
    others = [other for other in sums if other != name]
    if others:
        notes += (
            f"this is {name}; {', '.join(others)} drafted too, name it for its own: {where}#{others[0]}",
        )
    if one.calls and one.rounds < 0.95 * one.calls:
        length = 1.0 + one.accepted / one.calls
        text = (
            f"{name} drafted in {one.rounds:.0f} of {one.calls:.0f} rounds: the acceptance is of those, over all "
            f"rounds it is {length:.2f} tokens"
        )
        notes += (text,)
    found: dict[str, Any] = {"draft_s": one.draft_s / one.calls if one.draft_s and one.calls else None}
    timed = [request for request in requests if request.eval_s]
    # Times are of requests: those of another drafter in the same log say nothing about this one.
    same = abs(sum(request.accepted for request in requests) - one.accepted) <= 0.02 * one.accepted
    if timed and (same or not others):
        found["round_s"] = sum(r.eval_s for r in timed) / sum(r.rounds for r in timed)
    counted = replace(_counted(one, asked.k), notes=notes)
    what = f"log, statistics of {name}"
    return output_of(counted, engine="llama.cpp", what=what, where=where, definition=DEFINITION, **found)


READER = Reader(
    name="llama-cpp-log",
    reads="llama.cpp's log (draft acceptance, statistics with draft times), llama-speculative-simple",
    read=read,
    markers=MARKERS,
)
