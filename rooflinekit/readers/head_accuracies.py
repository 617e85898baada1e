"""Accuracies of Medusa's heads as rank acceptance: those that come with the package, and training logs."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from rooflinekit.errors import AcceptanceError, ModelError
from rooflinekit.tree import RankAcceptance, from_top_accuracies

FILE = Path(__file__).resolve().parent.parent / "data" / "medusa_heads.csv"
SOURCE = "FasterDecoding/Medusa, assets/medusa_acc.csv"


@cache
def known_head_accuracies() -> Mapping[str, RankAcceptance]:
    """Rank acceptance from the published head accuracies, by name (``medusa-vicuna-7b`` ...).

    Marginal and teacher-forced, as ``source`` says; five candidates per head.
    """
    lines = FILE.read_text(encoding="utf-8").splitlines()
    heads: dict[str, list[list[float]]] = {}
    for row in csv.DictReader(line for line in lines if not line.startswith("#")):
        heads.setdefault(row["model"], []).append([float(row[f"top{k}"]) for k in range(1, 6)])
    return {name: from_top_accuracies(rows, source=SOURCE) for name, rows in heads.items()}


def read_head_accuracies(path: Path) -> dict[str, RankAcceptance]:
    """Read the table that Medusa's training writes: one run per row, columns ``train/medusa{head}_top{k}``.

    Parameters
    ----------
    path
        CSV with a ``Name`` column; heads count from 0, k from 1.

    Returns
    -------
    dict
        Rank acceptance by name of the run.

    Raises
    ------
    ModelError
        The file cannot be read, has no such columns, or its accuracies fall from top-1 to top-2.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            rows = list(csv.DictReader(stream))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ModelError(
            f"head accuracies {path} cannot be read ({error}); give Medusa's table as CSV"
        ) from error
    found = {}
    for number, row in enumerate(rows, start=1):
        name = row.get("Name") or f"run {number}"
        heads = _heads(row, path, name)
        try:
            found[name] = from_top_accuracies(heads, source=f"{path.name}, {name}")
        except AcceptanceError as error:
            raise ModelError(f"head accuracies {path}, {name}: {error}") from error
    if not found:
        raise ModelError(f"head accuracies {path} holds no run; give Medusa's table as CSV, one run per row")
    return found


def _heads(row: Mapping[str, str], path: Path, name: str) -> list[list[float]]:
    heads: list[list[float]] = []
    try:
        while f"train/medusa{len(heads)}_top1" in row:
            head = len(heads)
            values: list[float] = []
            while f"train/medusa{head}_top{len(values) + 1}" in row:
                values.append(float(row[f"train/medusa{head}_top{len(values) + 1}"]))
            heads.append(values)
    except (TypeError, ValueError) as error:
        raise ModelError(
            f"head accuracies {path}, {name}: {error}; give a fraction in every column of the heads"
        ) from error
    if not heads:
        raise ModelError(
            f"head accuracies {path} has no column train/medusa0_top1; give the table that Medusa's training writes"
        )
    return heads
