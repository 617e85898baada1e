"""The result of ``vllm bench serve --save-result``, with speculation or without."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rooflinekit.errors import AcceptanceError
from rooflinekit.readers.engine_outputs.counts import Counted, of_length, output_of
from rooflinekit.readers.engine_outputs.fields import chosen, milliseconds, real, reals
from rooflinekit.readers.engine_outputs.files import Opened
from rooflinekit.readers.engine_outputs.output import Asked, EngineOutput, Reader

DEFINITION = (
    "spec_decode_acceptance_length counts the bonus token, spec_decode_acceptance_rate is percent of the drafts, rates "
    "per position are survival; mean TPOT is the time per token, mean ITL is a gap between chunks, so about a round"
)
PLAIN = "a run without speculation: mean TPOT is the time per token"
WHAT = "bench serve result"
TPOT = ("mean_tpot_ms", "median_tpot_ms", "mean_tpot", "median_tpot")
ITL = ("mean_itl_ms", "median_itl_ms", "mean_itl", "median_itl")
SPEC = "spec_decode_"


def recognises(first: Any) -> bool:
    """Whether a document is such a result; those of SGLang have ``server_info`` or ``accept_length``."""
    if not isinstance(first, Mapping) or "accept_length" in first or "server_info" in first:
        return False
    ours = any(f"{SPEC}{name}" in first for name in ("num_drafts", "acceptance_rate", "draft_tokens"))
    return ours or ("num_prompts" in first and any(name in first for name in TPOT))


def read(files: tuple[Opened, ...], asked: Asked) -> EngineOutput:
    """Read one result; of several in a file (``--append-result``) the one that is named by its place.

    Raises
    ------
    AcceptanceError
        Several results, fields that are no numbers, or counts that cannot be.
    """
    where = str(files[0].path)
    runs = {str(place): one for place, one in enumerate(files[0].documents(), 1) if isinstance(one, Mapping)}
    if len(files) > 1 or not runs:
        raise AcceptanceError(f"{where}: give one bench serve result at a time")
    data = runs[chosen(runs, asked.part, where, "result")]
    token, gap = milliseconds(data, *TPOT, where=where), milliseconds(data, *ITL, where=where)
    model = data.get("model_id")
    facts: dict[str, Any] = {
        "engine": "vLLM",
        "what": WHAT,
        "where": where,
        "token_s": token,
        "concurrency": real(data, "max_concurrency", where) or None,
        "model": model if isinstance(model, str) else None,
    }
    if not any(str(name).startswith(SPEC) and value is not None for name, value in data.items()):
        return EngineOutput(definition=PLAIN, **facts)
    return _speculative(data, token, gap, asked, facts)


def _speculative(
    data: Mapping[str, Any], token: float | None, gap: float | None, asked: Asked, facts: dict[str, Any]
) -> EngineOutput:
    where = facts["where"]
    length, rate = real(data, f"{SPEC}acceptance_length", where), real(data, f"{SPEC}acceptance_rate", where)
    rounds, accepted, drafted = (
        real(data, SPEC + name, where) for name in ("num_drafts", "accepted_tokens", "draft_tokens")
    )
    if length is None and not rounds:
        raise AcceptanceError(
            f"{where}: neither {SPEC}num_drafts nor {SPEC}acceptance_length; the file is cut off"
        )
    given = data.get(f"{SPEC}per_position_acceptance_rates")
    rates = () if not given else reals(given, f"{SPEC}per_position_acceptance_rates", where)
    if any(one > 1.0 for one in rates):
        raise AcceptanceError(f"{where}: a rate per position is above 1; the file is not vLLM's")
    if not rounds:
        k = len(rates) or asked.k
        notes = _gap_note(length or 1.0, token, gap)
        return of_length(length or 1.0, k, definition=DEFINITION, notes=notes, **facts)
    if accepted is None:
        accepted = rounds * (sum(rates) if rates else (length or 1.0) - 1.0)
    counted = Counted(
        rounds=rounds,
        accepted=accepted,
        drafted=drafted,
        by_position=tuple(_count(one * rounds) for one in rates),
        k=asked.k,
        printed_length=length,
        printed_rate=None if rate is None else rate / 100.0,
    )
    whole = 1.0 + accepted / rounds
    return output_of(counted, definition=DEFINITION, notes=_gap_note(whole, token, gap), **facts)


def _count(value: float) -> float:
    """Rates are printed in full, so counts come back whole."""
    return float(round(value)) if abs(value - round(value)) < 1e-3 else value


def _gap_note(length: float, token: float | None, gap: float | None) -> tuple[str, ...]:
    """A gap between chunks is a round: ``A = ITL / TPOT``, unless chunks were split or joined on the way."""
    if token is None or gap is None or 0.8 * length <= gap / token <= 1.25 * length:
        return ()
    text = (
        f"mean ITL over mean TPOT is {gap / token:.2f}, but {length:.2f} tokens come out of a round: chunks were "
        "split or joined on the way, or prefills stretch them; TPOT is used, a round is taken as its acceptance length "
        "times TPOT"
    )
    return (text,)


READER = Reader(
    name="vllm-bench",
    reads="vllm bench serve --save-result (JSON), InferenceX's copy of it in seconds too",
    read=read,
    recognises=recognises,
)
