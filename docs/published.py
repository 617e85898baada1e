"""Write ``docs/published.md`` from the suite: ``python docs/published.py``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from statistics import median

from rooflinekit.papers_suite import GROUPS, published, serving, trees
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


def growth(series: Iterable[tuple[str, Iterable[Row]]], plain: str) -> str:
    """Predicted growth beside the measured one, by batch."""
    lines = [f"| | batch | measured | predicted | {plain} |", "| --- | ---: | --- | --- | --- |"]
    for name, rows in series:
        by_batch: dict[str, list[Row]] = {}
        for one in rows:
            by_batch.setdefault(re.search(r"batch (\d+)", one.case)[1], []).append(one)  # type: ignore[index]
        for batch, some in by_batch.items():
            cells = (spread([getattr(r, n) for r in some]) for n in ("measured", "predicted", "plain"))
            lines.append(f"| {name} | {batch} | {' | '.join(cells)} |")
    return "\n".join(lines)


def vllm_growth() -> str:
    """Growth of chains in vLLM."""
    names = {
        "llama-3.1-8b": "Llama-3.1-8B (fitted)",
        "qwen3-8b": "Qwen3-8B",
        "llama-3.1-70b": "70B, four GPUs",
    }
    return growth(((name, serving.vllm_growth(model)) for model, name in names.items()), "without host")


def tree_growth() -> str:
    """Growth of chains and trees in SGLang, by shape."""
    rows = trees.sglang_growth("qwen3-8b")
    series = ((shape, [row for row in rows if f", {shape}," in row.case]) for shape in trees.SHAPES)
    return growth(series, "as a chain of 3")


def spread(values: list[float]) -> str:
    """Range and median."""
    if max(values) - min(values) < 0.005:
        return f"{median(values):.2f}"
    return f"{min(values):.2f} to {max(values):.2f}, median {median(values):.2f}"


def page() -> str:
    """The whole page."""
    report = published()
    text = (HERE / "published.md.in").read_text(encoding="utf-8")
    names = ("FORMULAS", "ROUNDS", "DEVICES", "HOST", "BATCHES", "TREES")
    tables = {name: table(report, sources) for name, sources in zip(names, GROUPS.values(), strict=True)}
    for key, value in (tables | {"GROWTH": vllm_growth(), "TREE_GROWTH": tree_growth()}).items():
        text = text.replace("{{" + key + "}}", value)
    return text


if __name__ == "__main__":
    (HERE / "published.md").write_text(page(), encoding="utf-8")
