"""Validation suite ``published``: tables of the literature that the library's formulas must reproduce."""

from __future__ import annotations

from rooflinekit.papers_suite import device_sources, formulas, rounds, serving_sources, tree_sources
from rooflinekit.papers_suite.source import Source, band_of
from rooflinekit.validation import Compared, Report

__all__ = ["GROUPS", "SOURCES", "published"]

GROUPS: dict[str, tuple[Source, ...]] = {
    "formulas": formulas.SOURCES,
    "rounds": rounds.SOURCES,
    "device time": device_sources.SOURCES,
    "with host time": serving_sources.STEPS,
    "host time, by batch": serving_sources.BATCHES,
    "trees": tree_sources.SOURCES,
}
"""Every line of the suite, from algebra to predicted times in an engine."""
SOURCES: tuple[Source, ...] = tuple(source for sources in GROUPS.values() for source in sources)


def _group(source: Source) -> str:
    return next((group for group, sources in GROUPS.items() if source in sources), "")


def published() -> Report:
    """Errors by source; see ``docs/published.md`` for what each line shows and what it does not."""
    bands, cases = [], []
    for source in SOURCES:
        rows = source.rows()
        bands.append(band_of(source, rows, _group(source)))
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
