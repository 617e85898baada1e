"""One published source: its rows beside the library's, and the line they make."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from rooflinekit.errors import CalibrationError
from rooflinekit.forms import Floats, errors
from rooflinekit.validation import SourceBand

FOLDER = Path(__file__).resolve().parent.parent / "data" / "published"

Judged = Literal["worst", "mean", "median", "sign"]
"""What the tolerance limits: the largest, mean or median absolute error, or the share of right signs."""


@dataclass(frozen=True, slots=True)
class Row:
    """One published number beside the library's (speedups, ratios, tokens or steps per second).

    Attributes
    ----------
    case
        What it is.
    predicted, measured
        By the library; as published.
    plain
        The plain guess beside it, where there is one.
    flag
        Why the row is special, where it is.
    """

    case: str
    predicted: float
    measured: float
    plain: float | None = None
    flag: str = ""

    @property
    def right_sign(self) -> bool:
        """Whether it is said rightly that speculation pays (or not)."""
        return (self.predicted > 1.0) == (self.measured > 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What is judged, by which function of the library, within which tolerance.

    Attributes
    ----------
    name, quantity
        Source with its table; what is compared.
    url
        Where it was published.
    formula
        Function of the library that is judged, with what it is given.
    judged, tolerance
        Statistic and its limit (a fraction); ``None`` where the error is only shown.
    limits
        What the line does not show.
    rows
        Reads the data and predicts.
    """

    name: str
    quantity: str
    url: str
    formula: str
    judged: Judged
    tolerance: float | None
    limits: str
    rows: Callable[[], Sequence[Row]]


def read(name: str) -> list[dict[str, str]]:
    """Rows of a shipped table; the head of the file and the column ``source`` say where they come from."""
    lines = (FOLDER / name).read_text(encoding="utf-8").splitlines()
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))


def statistic(judged: Judged, predicted: Floats, measured: Floats) -> float:
    """The judged number of a line."""
    if judged == "sign":
        return float(np.mean((predicted > 1.0) == (measured > 1.0)))
    size = np.abs(predicted / measured - 1.0)
    if judged == "worst":
        return float(size.max())
    return float(size.mean() if judged == "mean" else np.median(size))


def band_of(source: Source, rows: Sequence[Row], group: str = "") -> SourceBand:
    """Error of a source, judged; ``group`` is the heading it stands under.

    Raises
    ------
    CalibrationError
        The source has no rows.
    """
    if not rows:
        raise CalibrationError(f"{source.name} has no rows: its table is empty; install rooflinekit anew")
    predicted: Floats = np.array([row.predicted for row in rows], dtype=float)
    measured: Floats = np.array([row.measured for row in rows], dtype=float)
    plain = [row.plain for row in rows if row.plain is not None]
    found = errors(predicted, measured)
    relative = predicted / measured - 1.0
    value = statistic(source.judged, predicted, measured)
    limit, more = source.tolerance, source.judged == "sign"
    return SourceBand(
        suite=source.name,
        band=source.quantity,
        n=found.n,
        median_abs_error=found.median_abs_error,
        p90_abs_error=found.p90_abs_error,
        bias=found.bias,
        tolerance=limit,
        ok=None if limit is None else bool(value >= limit if more else value <= limit + 1e-12),
        plain=statistic(source.judged, np.array(plain), measured) if len(plain) == len(rows) else None,
        judged=source.judged,
        value=value,
        lowest=float(relative.min()),
        highest=float(relative.max()),
        flags=flags_of(rows),
        url=source.url,
        formula=source.formula,
        limits=source.limits,
        group=group,
    )


def flags_of(rows: Sequence[Row]) -> tuple[str, ...]:
    """Special rows, counted by reason."""
    flags = [flag for row in rows for flag in row.flag.split("; ") if flag]
    return tuple(f"{flags.count(flag)} x {flag}" for flag in dict.fromkeys(flags))
