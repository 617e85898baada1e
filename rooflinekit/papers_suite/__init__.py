"""Validation suite ``published``: tables of the literature that the library's formulas must reproduce."""

from __future__ import annotations

from rooflinekit.papers_suite import device_sources, formulas, rounds
from rooflinekit.papers_suite.source import Source, band_of
from rooflinekit.validation import Compared, Report

__all__ = ["SOURCES", "published"]

SOURCES: tuple[Source, ...] = (*formulas.SOURCES, *rounds.SOURCES, *device_sources.SOURCES)
"""Every line of the suite, from algebra to predicted times."""


def published() -> Report:
    """Errors by source; see ``docs/published.md`` for what each line shows and what it does not."""
    bands, cases = [], []
    for source in SOURCES:
        rows = source.rows()
        bands.append(band_of(source, rows))
        cases += [
            Compared(
                suite=f"{source.name}, {source.quantity}",
                case=row.case + (f" ({row.flag})" if row.flag else ""),
                rows=1.0,
                predicted=row.predicted,
                measured=row.measured,
            )
            for row in rows
        ]
    return Report(bands=tuple(bands), cases=tuple(cases), fitted_left_out=0, contended=None)
