"""Pictures over batch and context: ``plot k-map`` and ``plot frontier``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rooflinekit.cli.common import ACCEPTANCE, DEVICE, DRAFTING, HARDWARE, MODEL, writable
from rooflinekit.cli.plotting.options import (
    CONTEXT,
    ENDINGS,
    MAX_K,
    OUT,
    OVERSIZE,
    asked,
    caption,
    save,
    whole_numbers,
)
from rooflinekit.cli.recommend import DRAFTER_HELP

if TYPE_CHECKING:
    from rooflinekit.app.asking import Asked

LARGEST_BATCH = 1024.0
"""Batches beyond this are not drawn unless asked for."""


@click.command("k-map")
@MODEL
@HARDWARE
@click.option("--drafter", required=True, help=DRAFTER_HELP)
@ACCEPTANCE
@click.option("--max-batch", type=int, default=512, show_default=True, help="Largest number of sequences.")
@click.option(
    "--max-context", type=int, default=131_072, show_default=True, help="Most tokens in the KV cache."
)
@MAX_K
@DRAFTING
@DEVICE
@OUT
def k_map_(drafter: str, max_batch: int, max_context: int, max_k: int, out: Path, **options: Any) -> None:
    """Best K over batch and context.

    With its speedup, where it stops paying, and what does not fit into memory.
    """
    from rooflinekit.plot.k_map import draw_k_map, k_map
    from rooflinekit.resolve import number

    writable(out, ENDINGS)
    number(max_batch, "--max-batch", 2, 1e5)
    number(max_context, "--max-context", 16, 1e7)
    one = asked(drafter, options, max_k=max_k)
    found = k_map(one.case, one.ready.hardware, max_batch=max_batch, max_context=max_context, max_k=max_k)
    said = caption(one)
    title = f"Best K of {one.case.drafter.name}: {said.model} on {said.device}"
    save(draw_k_map(found, title=title, subtitle=said.conditions), out)


@click.command("frontier")
@MODEL
@HARDWARE
@click.option("--drafter", required=True, help=DRAFTER_HELP)
@ACCEPTANCE
@CONTEXT
@click.option("--max-batch", type=int, help="Largest number of sequences; by default what fits, up to 1024.")
@click.option("--ks", default="3", show_default=True, help="K to draw besides the best, comma-separated.")
@MAX_K
@DRAFTING
@OVERSIZE
@DEVICE
@OUT
def frontier(
    drafter: str,
    context: float,
    max_batch: int | None,
    ks: str,
    max_k: int,
    allow_oversize: bool,  # noqa: FBT001 - click passes it by name
    out: Path,
    **options: Any,
) -> None:
    """Throughput against the speed of each user.

    Over the batches that fit: plain decoding, a fixed K, and the best K of each batch.
    """
    from rooflinekit.plot.frontier import frontier_curve, frontiers
    from rooflinekit.resolve import load_of, number

    writable(out, ENDINGS)
    load_of(1, context)
    if max_batch is not None:
        number(max_batch, "--max-batch", 2, 1e5)
    wanted = whole_numbers(ks)
    one = asked(drafter, options, max_k=max_k)
    plain, speculative = _rooms(one, context, max_k, max_batch, allow_oversize=allow_oversize)
    curves = frontiers(
        one.case, context=context, max_batch=speculative, plain_max_batch=plain, ks=wanted, max_k=max_k
    )
    said = caption(one, context=context)
    title = f"{said.model} with {one.case.drafter.name} on {said.device}"
    save(frontier_curve(curves, title=title, subtitle=said.conditions), out)


def _rooms(
    one: Asked, context: float, max_k: int, wanted: int | None, *, allow_oversize: bool
) -> tuple[float, float]:
    """Largest batches to draw, without a drafter and with it; at least one sequence must fit beside the drafter."""
    from rooflinekit.capacity import largest_batch
    from rooflinekit.curve import allowed_k
    from rooflinekit.recommendation import recommend_k
    from rooflinekit.resolve import load_of

    ready, drafter = one.ready, one.case.drafter
    top = LARGEST_BATCH if wanted is None else float(wanted)
    if allow_oversize:
        return top, top
    k = allowed_k(drafter, one.case.acceptance, max_k)
    room = largest_batch(ready.target, ready.hardware, drafter, context, k)
    if room < 2.0:
        # Says what is missing and what would fit.
        recommend_k(one.case, ready.hardware, load_of(2, context), max_k=max_k)
    plain = largest_batch(ready.target, ready.hardware, None, context)
    return min(top, plain), min(top, room)


COMMANDS = (k_map_, frontier)
