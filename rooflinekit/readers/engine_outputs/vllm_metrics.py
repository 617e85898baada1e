"""Prometheus counters of vLLM and of llama.cpp's server: the same names behind another prefix."""

from __future__ import annotations

import re
from collections.abc import Mapping

from rooflinekit.errors import AcceptanceError
from rooflinekit.readers.engine_outputs.counts import Counted, output_of
from rooflinekit.readers.engine_outputs.fields import LARGEST, chosen
from rooflinekit.readers.engine_outputs.files import Opened
from rooflinekit.readers.engine_outputs.output import Asked, EngineOutput, Reader

DEFINITION = (
    "a draft is a round of one request; A = 1 + accepted / drafts (bonus token included), S_i = accepted at "
    "position i / drafts, K = draft tokens / drafts; summed over engines"
)
ENGINES = {"vllm": "vLLM", "llamacpp": "llama.cpp"}
MARKERS = (b"vllm:spec_decode_num_draft", b"llamacpp:spec_decode_num_draft")
TIMES = (
    b"vllm:inter_token_latency_seconds_",
    b"vllm:time_per_output_token_seconds_",
    b"llamacpp:tokens_predicted_",
)
_SAMPLE = re.compile(r"^(?:[^\s{]*\s)?(\w+):(\w+?)(?:\{(.*)\})?\s+([0-9.eE+-]+)(?:\s+-?[0-9.]+)?\s*$")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')

Key = tuple[str, str, str, int, str]
"""Prefix, name, model, position, all labels."""


def read(files: tuple[Opened, ...], asked: Asked) -> EngineOutput:
    """Read the counters of one scrape, or their difference between two.

    A file that holds several scrapes one after the other is the difference of its last and its first.

    Raises
    ------
    AcceptanceError
        No draft was counted, several models, or counters that fell (a restarted server).
    """
    where = ",".join(str(one.path) for one in files)
    if len(files) > 2:
        raise AcceptanceError(
            f"{where}: {len(files)} scrapes were given; give one, or an earlier and a later one"
        )
    scrapes = [_series(one) for one in files]
    first = {key: values[0] for key, values in scrapes[0].items()}
    last = {key: values[-1] for key, values in scrapes[-1].items()}
    before = first if len(files) == 2 or any(len(values) > 1 for values in scrapes[0].values()) else {}
    totals = _grown(before, last, where)
    prefix = next(key[0] for key in totals if key[1] == "spec_decode_num_drafts")
    models = dict.fromkeys(
        key[2] for key in totals if key[0] == prefix and key[1] == "spec_decode_num_drafts"
    )
    model = chosen(models, asked.part, where, "model")
    own = {key[1:]: value for key, value in totals.items() if key[0] == prefix and key[2] in (model, "")}
    named: dict[str, float] = {}
    for (name, _, position, _), value in own.items():
        named[name if position < 0 else ""] = named.get(name if position < 0 else "", 0.0) + value
    note = (
        ()
        if before
        else (
            "one scrape counts from the start of the server, warm-up included; give two (BEFORE,AFTER) for one run",
        )
    )
    return _output(ENGINES[prefix], named, _positions(own), where, model or None, asked.k, note)


def _series(file: Opened) -> dict[Key, list[float]]:
    """Every sample of the counters that are read, in the order of the file."""
    found: dict[Key, list[float]] = {}
    for line in file.lines(*MARKERS, b":spec_decode_num_accepted", *TIMES):
        if line.startswith("#"):
            continue
        match = _SAMPLE.match(line.strip())
        if match is None:
            continue
        prefix, name, labels, text = match.groups()
        name = name.removesuffix("_total")
        if prefix not in ENGINES or name.endswith(("_created", "_bucket")):
            continue
        named = dict(_LABEL.findall(labels or ""))
        position = named.get("position", "")
        place = int(position) if position.isdecimal() and len(position) < 5 else -1
        try:
            value = float(text)
        except ValueError:
            continue
        if 0 <= value < LARGEST:
            found.setdefault((prefix, name, named.get("model_name", ""), place, labels or ""), []).append(
                value
            )
    if not any(name == "spec_decode_num_drafts" for _, name, *_ in found):
        raise AcceptanceError(
            f"{file.path} has no readable spec_decode_num_drafts; scrape it again (curl SERVER/metrics > FILE)"
        )
    return found


def _grown(
    before: Mapping[Key, float], after: Mapping[Key, float], where: str
) -> dict[tuple[str, str, str, int, str], float]:
    """What every counter grew by."""
    grown = {key: value - before.get(key, 0.0) for key, value in after.items()}
    fallen = next((key for key, value in grown.items() if value < 0), None)
    if fallen is not None:
        raise AcceptanceError(
            f"{where}: {fallen[0]}:{fallen[1]} falls from {before[fallen]:g} to {after[fallen]:g}; give the earlier "
            "scrape first, both from one start of the server"
        )
    return grown


def _positions(own: Mapping[tuple[str, str, int, str], float]) -> tuple[float, ...]:
    sums: dict[int, float] = {}
    for (_, _, position, _), value in own.items():
        if position >= 0:
            sums[position] = sums.get(position, 0.0) + value
    return tuple(sums.get(place, 0.0) for place in range(max(sums, default=-1) + 1))


def _output(
    engine: str,
    named: Mapping[str, float],
    positions: tuple[float, ...],
    where: str,
    model: str | None,
    k: int | None,
    notes: tuple[str, ...],
) -> EngineOutput:
    rounds = named.get("spec_decode_num_drafts", 0.0)
    accepted = named.get("spec_decode_num_accepted_tokens", sum(positions))
    drafted = named.get("spec_decode_num_draft_tokens")
    times, more = _times(named, rounds, accepted)
    counted = Counted(
        rounds=rounds, accepted=accepted, drafted=drafted, by_position=positions, k=k, notes=notes + more
    )
    return output_of(
        counted,
        engine=engine,
        what="Prometheus counters",
        where=where,
        definition=DEFINITION,
        model=model,
        **times,
    )


def _times(
    named: Mapping[str, float], rounds: float, accepted: float
) -> tuple[dict[str, float], tuple[str, ...]]:
    """Time of a round, or of a token, by what the engine took the time of.

    vLLM observes one gap for each output of a request: with speculation an output is a round of several tokens,
    so the mean gap is a round. Its count says whether it is; where plain steps are among them it is neither.
    """
    tokens = rounds + accepted
    for name in ("inter_token_latency_seconds", "time_per_output_token_seconds"):
        count, total = named.get(f"{name}_count", 0.0), named.get(f"{name}_sum", 0.0)
        if count > 0 and total > 0 and rounds > 0:
            if abs(count - rounds) <= 0.1 * rounds:
                return {"round_s": total / count}, ()
            if abs(count - tokens) <= 0.1 * tokens:
                return {"token_s": total / count}, ()
            return {}, (f"{name} counts {count:.0f} gaps for {rounds:.0f} rounds: no time is read from it",)
    count, total = named.get("tokens_predicted", 0.0), named.get("tokens_predicted_seconds", 0.0)
    if count > 0 and total > 0 and rounds > 0:
        if abs(count - tokens) <= 0.1 * tokens:
            return {"round_s": total / rounds}, ()
        return {}, (
            f"{count:.0f} tokens for {tokens:.0f} of rounds: plain steps among them, no time is read",
        )
    return {}, ()


READER = Reader(
    name="vllm-metrics",
    reads="Prometheus text of vLLM or llama.cpp (spec_decode_num_drafts ...), one scrape or two as BEFORE,AFTER",
    read=read,
    markers=MARKERS,
)
