"""The table of SGLang's ``bench_speculative``: acceptance length and step time by K, tree and batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rooflinekit.acceptance import from_length, from_lengths
from rooflinekit.errors import AcceptanceError
from rooflinekit.readers.engine_outputs.counts import noted, short_names
from rooflinekit.readers.engine_outputs.fields import bounded_k, needed
from rooflinekit.readers.engine_outputs.files import Opened
from rooflinekit.readers.engine_outputs.output import Asked, EngineOutput, Reader, Run

DEFINITION = (
    "acc_length counts the bonus token; step_time is the 20th percentile of a round (s); steps is K (depth of a tree), "
    "num_draft_tokens the width; the row of zeros is the plain run"
)
COLUMNS = ("batch_size", "steps", "topk", "num_draft_tokens", "acc_length", "step_time")


def recognises(first: Any) -> bool:
    """Whether a document is a row of such a table."""
    return isinstance(first, Mapping) and {"steps", "topk", "acc_length", "step_time"} <= first.keys()


def read(files: tuple[Opened, ...], asked: Asked) -> EngineOutput:
    """Read the table; acceptance by K from the chains, averaged over batches, which acceptance does not depend on.

    Raises
    ------
    AcceptanceError
        No chain was run, the batch asked for is not there, or fields that are no numbers.
    """
    where = ",".join(str(one.path) for one in files)
    rows = [row for one in files for row in one.documents() if isinstance(row, Mapping)]
    runs = [_run(row, f"{where}, row {place}") for place, row in enumerate(rows, 1)]
    batches = sorted({run.batch for run in runs})
    if asked.batch is not None and len(batches) > 1:
        runs = [run for run in runs if run.batch == asked.batch]
        if not runs:
            shown = ", ".join(f"{one:g}" for one in batches)
            raise AcceptanceError(f"{where} has no batch of {asked.batch:g}; its batches are {shown}")
    chains = [run for run in runs if run.k > 0 and run.width == run.k + 1]
    if not chains:
        raise AcceptanceError(
            f"{where} has no row of a chain (topk 1), whose acceptance a K could be chosen by"
        )
    lengths = {
        k: [run.acceptance_length for run in chains if run.k == k] for k in sorted({r.k for r in chains})
    }
    notes: tuple[str, ...] = ()
    spread = max((max(v) - min(v), k) for k, v in lengths.items())
    if spread[0] > 0.05 * lengths[spread[1]][0]:
        notes += (
            f"the length at K = {spread[1]} differs by {spread[0]:.2f} between rows; their mean is used",
        )
    trees = sum(run.k > 0 for run in runs) - len(chains)
    if trees:
        notes += (f"{trees} rows of trees are left out: the acceptance is that of chains",)
    means = {k: sum(v) / len(v) for k, v in lengths.items()}
    k = max(means)
    try:
        made: Any = from_lengths(means) if len(means) > 1 else from_length(means[k], k)
    except AcceptanceError as error:
        raise AcceptanceError(f"{where}: {error}") from error
    kept = {run.batch for run in runs}
    return EngineOutput(
        engine="SGLang",
        what=f"bench_speculative table, {len(runs)} rows",
        where=where,
        definition=DEFINITION,
        acceptance=noted(made, f"SGLang, {short_names(where)}: {made.label}", notes),
        k=k,
        acceptance_length=means[k],
        concurrency=next(iter(kept)) if len(kept) == 1 else None,
        runs=tuple(runs),
        notes=notes,
    )


def _run(row: Mapping[str, Any], where: str) -> Run:
    values = [needed(row, name, where) for name in COLUMNS]
    batch, steps, top, nodes, length, time = values
    for one in (steps, nodes):
        bounded_k(max(int(one), 1), where)
    if time <= 0 or steps != int(steps) or nodes != int(nodes):
        raise AcceptanceError(
            f"{where}: step_time {time:g} or steps {steps:g} cannot be; the file is damaged"
        )
    plain = steps == 0
    width = 1 if plain else int(nodes) if top > 1 else int(steps) + 1
    return Run(
        k=int(steps),
        width=max(width, 1),
        batch=batch,
        acceptance_length=1.0 if plain else length,
        round_s=time,
    )


def runs_of(output: EngineOutput, batch: float | None) -> Sequence[Run]:
    """Chains and the plain run at one batch.

    Raises
    ------
    AcceptanceError
        Several batches and none named.
    """
    batches = sorted({run.batch for run in output.runs})
    if batch is None and len(batches) > 1:
        shown = ", ".join(f"{one:g}" for one in batches)
        raise AcceptanceError(f"{output.where} holds batches {shown}; add --batch with one of them")
    return [run for run in output.runs if run.width == run.k + 1 and batch in (None, run.batch)]


READER = Reader(
    name="sglang-speculative",
    reads="SGLang bench_speculative (JSON Lines): acceptance and step time by K",
    read=read,
    recognises=recognises,
)
