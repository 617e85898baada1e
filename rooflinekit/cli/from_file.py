"""Options of ``rooflinekit diagnose`` filled in from what an engine wrote; what was typed wins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rooflinekit.cli.diagnosing import check_numbers
from rooflinekit.cli.laid_beside import option
from rooflinekit.errors import AcceptanceError, RooflineError
from rooflinekit.readers.engine_outputs import EngineOutput, Run, read_output
from rooflinekit.readers.engine_outputs.sglang_speculative import runs_of
from rooflinekit.resolve import number

SAME = 0.02
"""Numbers that differ by no more say the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filled:
    """Options with what files say put where nothing was typed.

    Attributes
    ----------
    given
        The options.
    read, plain
        What was read with speculation, and without.
    rows
        Rounds over K, the plain run among them, where the file is a table.
    notes
        Where something typed differs from the file, and what to know about its numbers.
    """

    given: dict[str, Any]
    read: EngineOutput | None = None
    plain: EngineOutput | None = None
    rows: tuple[Run, ...] = ()
    notes: tuple[str, ...] = ()


def fill(given: Mapping[str, Any], *, batch_typed: bool) -> Filled:
    """Read ``--from`` and ``--plain-from`` and fill in the options.

    Raises
    ------
    RooflineError
        A file that cannot be used, or options that exclude each other.
    """
    check_numbers(given)
    if given["k"] is not None:
        number(given["k"], "--k", 1, 1000)
    try:
        return _filled(given, batch_typed=batch_typed)
    except AcceptanceError as error:
        raise AcceptanceError(str(error).replace("--measured-k", "--k")) from error


def _filled(given: Mapping[str, Any], *, batch_typed: bool) -> Filled:
    options = dict(given)
    name, plain_name = options.pop("from_file", None), options.pop("plain_from", None)
    batch = float(options["batch"]) if batch_typed else None
    notes: list[str] = []
    read = None if name is None else read_output(name, options["k"], batch)
    if read is not None:
        if options["sweep"] is not None:
            raise RooflineError("--from and --sweep both give measured runs; leave one of them out")
        if read.acceptance is None:
            raise RooflineError(
                f"{name} is a run without speculation; give it as --plain-from, and one with it as --from"
            )
        if batch is None and read.concurrency is not None:
            options["batch"] = max(float(round(read.concurrency)), 1.0)
    rows = () if read is None or not read.runs else tuple(runs_of(read, batch))
    if rows and options["k"] is not None:
        rows, read = _one_run(read, rows, options)
    if read is not None and not rows:
        _fill_one(options, read, notes)
    plain = None if plain_name is None else _plain(options, plain_name, notes)
    warnings = () if read is None or read.acceptance is None else read.acceptance.warnings
    return Filled(given=options, read=read, plain=plain, rows=rows, notes=(*notes, *warnings))


def _one_run(
    read: EngineOutput | None, rows: tuple[Run, ...], options: dict[str, Any]
) -> tuple[tuple[Run, ...], EngineOutput | None]:
    """Take the run of the K that was typed out of a table; the plain run stays what to compare with."""
    run = next((one for one in rows if one.k == options["k"]), None)
    if run is None or read is None:
        known = ", ".join(str(one.k) for one in rows if one.k)
        raise RooflineError(
            f"--k {options['k']} is not in {read.where if read else 'the file'}; its K are {known}"
        )
    plain = next((one for one in rows if one.k == 0), None)
    if plain is not None and options["plain_ms"] is None and options["plain_tok_s"] is None:
        options["plain_ms"] = plain.round_s * 1e3
    fields = {
        name: getattr(read, name) for name in ("engine", "what", "where", "definition", "acceptance", "notes")
    }
    one = EngineOutput(
        **fields, k=run.k, acceptance_length=run.acceptance_length, round_s=run.round_s, concurrency=run.batch
    )
    return (), one


def _fill_one(options: dict[str, Any], read: EngineOutput, notes: list[str]) -> None:
    """Fill in K, width and times of one run."""
    for name, value in (("k", read.k), ("width", read.width)):
        if options[name] is None:
            options[name] = value
        elif value is not None and options[name] != value:
            notes.append(f"{option(name)} {options[name]} is used; {read.where} says {value}")
    batch = float(options["batch"])
    token = read.token_at(batch)
    typed = None if options["tpot_ms"] is None else float(options["tpot_ms"]) / 1e3
    typed = batch / float(options["spec_tok_s"]) if options["spec_tok_s"] else typed
    if typed is None:
        options["tpot_ms"] = None if token is None else token * 1e3
    _compare("time per token", typed, token, read.where, notes)
    typed = None if options["draft_ms"] is None else float(options["draft_ms"]) / 1e3
    if typed is None and read.draft_s is not None:
        options["draft_ms"] = read.draft_s * 1e3
    _compare("drafting of a round", typed, read.draft_s, read.where, notes)
    counts = ("accepted", "rounds", "drafted", "generated")
    if read.drafted_per_round and read.rounds and all(options[name] is None for name in counts):
        options["rounds"], options["drafted"] = read.rounds, read.drafted_per_round * read.rounds


def _compare(what: str, typed: float | None, read_s: float | None, where: str, notes: list[str]) -> None:
    if typed is not None and read_s is not None and abs(typed - read_s) > SAME * read_s:
        notes.append(f"{what}: {typed * 1e3:.4g} ms as typed is used; {where} says {read_s * 1e3:.4g} ms")


def _plain(options: dict[str, Any], name: str, notes: list[str]) -> EngineOutput:
    """A plain step from a run without speculation."""
    plain = read_output(name)
    if plain.acceptance is not None:
        raise RooflineError(f"--plain-from {name} is a run with speculation; give one without")
    token = plain.token_at(float(options["batch"]))
    if token is None:
        raise RooflineError(f"--plain-from {name} has no time per token; add --plain-ms or --plain-tok-s")
    running = plain.concurrency
    if running is not None and abs(running - float(options["batch"])) > 0.5:
        notes.append(
            f"{name} ran {running:g} sequences at a time, not {options['batch']:g}: compare runs under the same load"
        )
    if options["plain_ms"] is None and options["plain_tok_s"] is None:
        options["plain_ms"] = token * 1e3
    else:
        typed = options["plain_ms"]
        typed = float(options["batch"]) / options["plain_tok_s"] if typed is None else typed / 1e3
        _compare("plain step", typed, token, name, notes)
    return plain
