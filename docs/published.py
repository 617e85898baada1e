"""Write ``docs/published.md`` from the suite: ``python docs/published.py``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from statistics import median

from rooflinekit.papers_suite import device_sources, formulas, published, rounds
from rooflinekit.papers_suite.devices import vllm_growth_8b, vllm_growth_70b
from rooflinekit.papers_suite.source import Row, Source
from rooflinekit.report.sources import judged_words, plain_words, short, signed
from rooflinekit.validation import Report, SourceBand

HERE = Path(__file__).resolve().parent
TABLE = (
    "| source | compared | by | n | median, % | range, % | judged | plain | limit | does not show |\n"
    "| --- | --- | --- | ---: | ---: | ---: | --- | --- | ---: | --- |\n"
)


def row(band: SourceBand) -> str:
    """A row of the table of sources."""
    value, limit = judged_words(band)
    special = "".join(f"; {flag}" for flag in band.flags)
    verdict = " **missed**" if band.ok is False else ""
    cells = (
        f"[{band.suite}]({band.url})",
        band.band,
        band.formula,
        str(band.n),
        short(band.median_abs_error),
        f"{signed(band.lowest)} .. {signed(band.highest)}",
        value,
        plain_words(band),
        (limit or "shown only") + verdict,
        band.limits + special,
    )
    return "| " + " | ".join(cells) + " |"


def table(report: Report, sources: Iterable[Source]) -> str:
    """Table of some sources."""
    names = {(source.name, source.quantity) for source in sources}
    bands = [b for b in report.bands if isinstance(b, SourceBand) and (b.suite, b.band) in names]
    return TABLE + "\n".join(row(band) for band in bands)


def growth() -> str:
    """Predicted growth beside the measured one, by batch."""
    lines = ["| target | batch | measured | predicted |", "| --- | ---: | --- | --- |"]
    for target, rows in (("8B, one GPU", vllm_growth_8b()), ("70B, four GPUs", vllm_growth_70b())):
        by_batch: dict[str, list[Row]] = {}
        for one in rows:
            by_batch.setdefault(re.search(r"batch (\d+)", one.case)[1], []).append(one)  # type: ignore[index]
        for batch, some in by_batch.items():
            measured, predicted = ([getattr(r, n) for r in some] for n in ("measured", "predicted"))
            lines.append(f"| {target} | {batch} | {spread(measured)} | {spread(predicted)} |")
    return "\n".join(lines)


def spread(values: list[float]) -> str:
    """Range and median."""
    if max(values) - min(values) < 0.005:
        return f"{median(values):.2f}"
    return f"{min(values):.2f} to {max(values):.2f}, median {median(values):.2f}"


def page() -> str:
    """The whole page."""
    report = published()
    text = (HERE / "published.md.in").read_text(encoding="utf-8")
    for key, value in {
        "FORMULAS": table(report, formulas.SOURCES),
        "ROUNDS": table(report, rounds.SOURCES),
        "DEVICES": table(report, device_sources.SOURCES),
        "GROWTH": growth(),
    }.items():
        text = text.replace("{{" + key + "}}", value)
    return text


if __name__ == "__main__":
    (HERE / "published.md").write_text(page(), encoding="utf-8")
