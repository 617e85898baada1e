"""A sweep over K as people keep it: a CSV file with a row for each K."""

from __future__ import annotations

import csv
import math
from pathlib import Path

from rooflinekit.errors import AcceptanceError
from rooflinekit.implied import Measured

TIMES = ("tpot_ms", "tok_s")
KNOWN = ("k", "acceptance_length", *TIMES, "speedup")
HINT = "write columns k, acceptance_length, and tpot_ms or tok_s (speedup if it was printed), and k = 0 for plain"


def read_sweep(path: Path, plain_s: float | None = None, batch: float = 1.0) -> tuple[Measured, ...]:
    """Read runs that differ in K alone.

    Parameters
    ----------
    path
        CSV file with a header: ``k``, ``acceptance_length``, and ``tpot_ms`` (per token of one sequence) or
        ``tok_s`` (all sequences together); ``speedup`` where a ratio was printed. A row with k = 0 is the
        plain run.
    plain_s
        A plain step (s), where the file has no row for it; unknown without either: no speedup can be given.
    batch
        Sequences that share ``tok_s``.

    Raises
    ------
    AcceptanceError
        The file cannot be read, a column or a number is missing.
    """
    try:
        # Spreadsheets put a mark in front of the first column's name.
        lines = list(csv.DictReader(path.read_text(encoding="utf-8-sig").splitlines()))
    except (OSError, UnicodeDecodeError) as error:
        raise AcceptanceError(f"{path} cannot be read as a CSV file; {HINT}") from error
    columns = {(name or "").strip().lower() for name in (lines[0] if lines else ())}
    if not {"k", "acceptance_length"} <= columns or not columns & set(TIMES):
        raise AcceptanceError(f"{path} has the columns {', '.join(sorted(columns)) or 'none'}; {HINT}")
    rows = [
        ({(name or "").strip().lower(): text for name, text in line.items() if name}, f"{path}:{number}")
        for number, line in enumerate(lines, start=2)
    ]
    plain = [_token_s(row, where, batch) for row, where in rows if _value(row, "k", where) == 0]
    step = plain_s if plain_s is not None else (plain[0] if plain else math.nan)
    return tuple(_run(row, where, step, batch) for row, where in rows if _value(row, "k", where) != 0)


def _value(row: dict[str, str], name: str, where: str) -> float:
    text = (row.get(name) or "").strip()
    try:
        value = float(text)
    except ValueError as error:
        raise AcceptanceError(f"{where}: {name} is {text!r}, not a number; {HINT}") from error
    if not 0.0 <= value < 1e9:
        raise AcceptanceError(f"{where}: {name} = {text} is out of range; give a number from 0 on")
    return value


def _token_s(row: dict[str, str], where: str, batch: float) -> float:
    name = next((one for one in TIMES if (row.get(one) or "").strip()), TIMES[0])
    value = _value(row, name, where)
    if value == 0:
        raise AcceptanceError(f"{where}: {name} is 0; give a positive number")
    return value / 1e3 if name == "tpot_ms" else batch / value


def _run(row: dict[str, str], where: str, plain_s: float, batch: float) -> Measured:
    k = _value(row, "k", where)
    if k != round(k):
        raise AcceptanceError(f"{where}: k = {k:g} is not a whole number of drafted tokens")
    printed = _value(row, "speedup", where) if (row.get("speedup") or "").strip() else None
    return Measured(
        plain_s=plain_s,
        k=int(k),
        token_s=_token_s(row, where, batch),
        acceptance_length=_value(row, "acceptance_length", where),
        printed_speedup=printed,
    )
