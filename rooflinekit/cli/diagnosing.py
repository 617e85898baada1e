"""From the options of ``rooflinekit diagnose`` to a diagnosis."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rooflinekit.acceptance import Survival, expected_tokens
from rooflinekit.acceptance_options import make_acceptance
from rooflinekit.cli.laid_beside import (
    beside,
    check_beside,
    is_weight_only,
    option,
    predicted_by,
    ready_for,
)
from rooflinekit.errors import AcceptanceError, RooflineError
from rooflinekit.implied import (
    Diagnosis,
    Measured,
    acceptance_length_of_counts,
    diagnose,
    sweep_of,
    verify_at,
)
from rooflinekit.readers.sweep_csv import read_sweep
from rooflinekit.resolve import Setup, number

if TYPE_CHECKING:
    from rooflinekit.cli.from_file import Filled
    from rooflinekit.readers.engine_outputs import Run

POSITIVE = (
    "plain_ms",
    "plain_tok_s",
    "tpot_ms",
    "spec_tok_s",
    "speedup",
    "draft_ms",
    "rounds",
    "generated",
    "drafted",
    "deep_plain_tok_s",
    "deep_spec_tok_s",
)


def answer(given: Mapping[str, Any], filled: Filled | None = None) -> Diagnosis:
    """Diagnose what the options say, and what was read where they were filled in from a file.

    Raises
    ------
    RooflineError
        Too little to say anything, or options that contradict or cannot be, in one sentence.
    """
    check_numbers(given)
    _check_used(given)
    try:
        return _answer(given, filled)
    except AcceptanceError as error:
        # The same sentence where the K of an acceptance length has a name of its own.
        raise AcceptanceError(str(error).replace("--measured-k", "--k")) from error


def check_numbers(given: Mapping[str, Any]) -> None:
    """Refuse times, rates and counts that are none.

    Raises
    ------
    RooflineError
        A number out of range.
    """
    for name in POSITIVE:
        value = given[name]
        if value is not None and not (0 < value < math.inf):
            raise RooflineError(f"{option(name)} {value:g} is out of range; give a positive number")
    number(given["batch"], "--batch", 1, 1e6)


def _check_used(given: Mapping[str, Any]) -> None:
    """Refuse options that nothing would read."""
    check_beside(given)
    counted = given["accepted"] is not None
    for name, use in (
        ("generated", counted),
        ("rounds", counted or given["drafted"] is not None),
        ("drafted", counted or given["rounds"] is not None),
    ):
        if given[name] is not None and not use:
            raise RooflineError(f"{option(name)} alone says nothing; add --accepted, the accepted drafts")


def _answer(given: Mapping[str, Any], filled: Filled | None) -> Diagnosis:
    ready = ready_for(given)
    survival = None
    if given["survival"] is not None:
        found = make_acceptance(survival=given["survival"])
        survival = found if isinstance(found, Survival) else None
    rows = filled.rows if filled is not None else ()
    if given["sweep"] is not None or rows:
        return _of_sweep(given, survival, ready, rows)
    read = filled.read if filled is not None else None
    measured, statements = _measured(given, survival, ready, None if read is None else read.acceptance_length)
    if survival is None and read is not None and isinstance(read.acceptance, Survival):
        survival = read.acceptance
    predicted, launch = beside(given, measured, ready)
    return diagnose(
        measured,
        statements=statements,
        survival=survival,
        deep=_deep(given, measured),
        predicted=predicted,
        launch_draft_cost=launch,
        predicted_by=predicted_by(given, ready),
    )


def _of_sweep(
    given: Mapping[str, Any], survival: Survival | None, ready: Setup | None, read: tuple[Run, ...]
) -> Diagnosis:
    alone = (
        "k",
        "acceptance_length",
        "accepted",
        "tpot_ms",
        "spec_tok_s",
        "speedup",
        "draft_ms",
        "verify_ms",
    )
    for name in (*alone, "alpha", "width", "deep_plain_tok_s", "deep_spec_tok_s"):
        if given[name] is not None:
            several = "--from" if read else "--sweep"
            raise RooflineError(f"{option(name)} is of one run, {several} of several; leave one of them out")
    plain = _time(given, "plain_ms", "plain_tok_s")
    rows = _rows(read, plain) if read else read_sweep(given["sweep"], plain, given["batch"])
    weight_only = given["weight_only"] or is_weight_only(ready)
    sweep = sweep_of([replace(row, weight_only=weight_only) for row in rows])
    predicted, launch = beside(given, sweep.best_run.measured, ready)
    source = predicted_by(given, ready)
    return diagnose(
        sweep, survival=survival, predicted=predicted, launch_draft_cost=launch, predicted_by=source
    )


def _rows(read: tuple[Run, ...], plain_s: float | None) -> tuple[Measured, ...]:
    """Rows of an engine's own table; K = 0 is the plain run."""
    plain = plain_s if plain_s is not None else next((run.round_s for run in read if run.k == 0), math.nan)
    return tuple(
        Measured(
            plain_s=plain,
            k=run.k,
            token_s=run.round_s / run.acceptance_length,
            acceptance_length=run.acceptance_length,
        )
        for run in read
        if run.k > 0
    )


def _time(given: Mapping[str, Any], time: str, rate: str) -> float | None:
    """Seconds per token of one sequence, from either way of saying it."""
    if given[time] is not None and given[rate] is not None:
        raise RooflineError(f"{option(time)} and {option(rate)} say the same thing; give one of them")
    if given[time] is not None:
        return float(given[time]) / 1e3
    return None if given[rate] is None else float(given["batch"]) / float(given[rate])


def _measured(
    given: Mapping[str, Any], survival: Survival | None, ready: Setup | None, read_length: float | None
) -> tuple[Measured, dict[str, float]]:
    verify = _verify_times(given["verify_ms"])
    plain = _time(given, "plain_ms", "plain_tok_s")
    plain = verify.get(1) if plain is None else plain
    if plain is None:
        raise RooflineError("no plain run to compare with; add --plain-ms, --plain-tok-s or --plain-from")
    k = given["k"] if given["k"] is not None else (len(survival.values) if survival else None)
    if k is None:
        raise RooflineError("how many tokens a round drafts is unknown; add --k (the depth, for a tree)")
    k = int(number(k, "--k", 1, 1024))
    if given["width"] is not None:
        number(given["width"], "--width", 2, 1e5)
    rounds = _count_rounds(given)
    statements = _statements(given, survival, k, rounds)
    if read_length is not None:
        statements["--from"] = read_length
    token = _time(given, "tpot_ms", "spec_tok_s")
    if token is None and given["speedup"] is None and not verify:
        raise RooflineError(
            "nothing measured with speculation; add --tpot-ms, --spec-tok-s, or --verify-ms and --draft-ms"
        )
    rows = given["width"] or k + 1
    if set(verify) - {1}:
        verify_at(verify, rows)  # refuses a width that was not timed
    measured = Measured(
        plain_s=plain,
        k=k,
        width=given["width"],
        token_s=token,
        printed_speedup=given["speedup"],
        acceptance_length=next(iter(statements.values()), None),
        draft_s=None if given["draft_ms"] is None else given["draft_ms"] / 1e3,
        drafted=given["drafted"] / rounds if given["drafted"] and rounds and given["k"] else None,
        verify_s=verify,
        weight_only=given["weight_only"] or is_weight_only(ready),
    )
    return measured, statements


def _count_rounds(given: Mapping[str, Any]) -> float | None:
    """Rounds: counted, or one per generated token that was not an accepted draft, or one per K drafts."""
    accepted = given["accepted"]
    if given["rounds"] is not None:
        return float(given["rounds"])
    if given["generated"] is not None and accepted is not None:
        return float(given["generated"] - accepted)
    if given["drafted"] is not None and given["k"] is not None:
        return float(given["drafted"] / given["k"])
    return None


def _statements(
    given: Mapping[str, Any], survival: Survival | None, k: int, rounds: float | None
) -> dict[str, float]:
    """Acceptance lengths by where each was said, most direct first."""
    found: dict[str, float] = {}
    if given["acceptance_length"] is not None:
        found["--acceptance-length"] = float(given["acceptance_length"])
    if given["accepted"] is not None:
        if rounds is None:
            raise AcceptanceError(
                f"{given['accepted']:g} accepted drafts alone say little; add --rounds, --generated or --drafted"
            )
        found["--accepted"] = acceptance_length_of_counts(float(given["accepted"]), rounds)
    if survival is not None and k <= len(survival.values):
        found["--survival"] = float(survival.expected(float(k)))
    if given["alpha"] is not None:
        number(given["alpha"], "--alpha", 0, 1, whole=False)
        found["--alpha"] = float(expected_tokens(given["alpha"], float(k)))
    return found


def _verify_times(text: str | None) -> dict[int, float]:
    """Read ``1=8.5,2=13.5`` into seconds by width."""
    found: dict[int, float] = {}
    for part in (text or "").split(",") if text else ():
        width, _, time = part.partition("=")
        try:
            rows, value = int(width), float(time) / 1e3
        except ValueError as error:
            raise RooflineError(
                f"--verify-ms {part!r} is not rows=milliseconds; write for example --verify-ms 1=8.5,5=20.7"
            ) from error
        if rows < 1 or not 0 < value < math.inf or rows in found:
            raise RooflineError(f"--verify-ms {part!r}: give each width from 1 on once, with a positive time")
        found[rows] = value
    return found


def _deep(given: Mapping[str, Any], measured: Measured) -> Measured | None:
    rates = (given["deep_plain_tok_s"], given["deep_spec_tok_s"])
    if rates == (None, None):
        return None
    if None in rates or measured.token_s is None or measured.acceptance_length is None:
        raise RooflineError(
            "a long context is compared by --deep-plain-tok-s and --deep-spec-tok-s together, with --spec-tok-s and an "
            "acceptance length (a guess such as 2 is good enough) for the short one"
        )
    batch = float(given["batch"])
    return replace(measured, plain_s=batch / rates[0], token_s=batch / rates[1], verify_s={}, draft_s=None)
