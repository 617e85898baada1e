"""Pictures of a round: ``plot draft-cost``, ``plot loss``, ``plot crossover``, ``plot schedule``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from rooflinekit.cli.common import (
    ACCEPTANCE,
    ACCEPTANCE_NAMES,
    DEVICE,
    DRAFTING,
    HARDWARE,
    LOAD,
    MODEL,
    writable,
)
from rooflinekit.cli.plotting.options import (
    CONTEXT,
    ENDINGS,
    MAX_K,
    OUT,
    OVERSIZE,
    asked,
    caption,
    save,
    short_names,
    whole_numbers,
    words_of,
)
from rooflinekit.cli.recommend import DRAFTER_HELP

DRAFTERS_HELP = f"Comma-separated; each {DRAFTER_HELP}"
ASSUMED_ALPHA = 0.8
"""Acceptance that a picture of drafting takes where none is given: it only sizes the refresh of the caches."""


@click.command("draft-cost")
@MODEL
@HARDWARE
@click.option("--drafters", default="eagle3,dflash,dspark,ngram", show_default=True, help=DRAFTERS_HELP)
@ACCEPTANCE
@LOAD
@MAX_K
@DRAFTING
@DEVICE
@OUT
def draft_cost(drafters: str, batch: float, context: float, max_k: int, out: Path, **options: Any) -> None:
    """Time of drafting against K, a line per drafter.

    In ms and in plain steps; with --host on top of the device. Acceptance (0.8 if not given) sizes the caches' refresh.
    """
    from rooflinekit.plot.draft_cost import draft_cost_curve, draft_curves
    from rooflinekit.resolve import load_of

    writable(out, ENDINGS)
    names, load = words_of(drafters, "--drafters", "eagle3,dflash"), load_of(batch, context)
    if all(options[name] is None for name in ACCEPTANCE_NAMES):
        options["alpha"] = ASSUMED_ALPHA
    found = [asked(name, options, max_k=max_k) for name in names]
    said = caption(found[0], batch=batch, context=context)
    curves = draft_curves([one.case for one in found], load, max_k, short_names(names))
    title = f"Drafting for {said.model} on {said.device}"
    save(draft_cost_curve(curves, title=title, subtitle=said.conditions), out)


@click.command("loss")
@MODEL
@HARDWARE
@click.option("--drafter", required=True, help=DRAFTER_HELP)
@ACCEPTANCE
@LOAD
@MAX_K
@click.option("--k", type=int, help="Judge this K instead of the best.")
@DRAFTING
@OVERSIZE
@DEVICE
@OUT
def loss(model: str, hardware: str, drafter: str, out: Path, **options: Any) -> None:
    """Where the gain goes: from K + 1 down to the speedup.

    A bar for each loss; terms below 1 % of the ideal are added up.
    """
    from rooflinekit.app import recommend
    from rooflinekit.plot.loss import loss_waterfall

    writable(out, ENDINGS)
    save(loss_waterfall(recommend(model, hardware, drafter, **options)), out)


@click.command("crossover")
@MODEL
@HARDWARE
@click.option("--drafters", required=True, help=DRAFTERS_HELP)
@ACCEPTANCE
@CONTEXT
@click.option("--ks", default="1,3,7", show_default=True, help="K to draw, comma-separated.")
@click.option("--max-batch", type=int, default=256, show_default=True, help="Largest number of sequences.")
@click.option("--lengths", is_flag=True, help="Draw tokens per round in place of acceptance rates.")
@DRAFTING
@DEVICE
@OUT
def crossover(
    drafters: str,
    context: float,
    ks: str,
    max_batch: int,
    lengths: bool,  # noqa: FBT001 - click passes it by name
    out: Path,
    **options: Any,
) -> None:
    """Acceptance needed to break even against batch.

    A line per K and drafter; where it crosses the acceptance there is, speculation stops paying.
    """
    from rooflinekit.capacity import largest_batch
    from rooflinekit.limits import whole_grid
    from rooflinekit.plot.crossover import crossover_curve, needed_by_batch
    from rooflinekit.resolve import load_of, number

    writable(out, ENDINGS)
    number(max_batch, "--max-batch", 2, 1e6)
    load_of(1, context)
    names, wanted = words_of(drafters, "--drafters", "eagle3,dflash"), whole_numbers(ks)
    found = [asked(name, options) for name in names]
    curves = needed_by_batch(
        [one.case for one in found],
        batches=whole_grid(max_batch),
        context=context,
        ks=wanted,
        labels=short_names(names),
    )
    if not curves:
        raise click.UsageError(
            f"--ks {ks!r} has no K that the drafter was trained and the acceptance measured for; lower it"
        )
    said, ready = caption(found[0], context=context), found[0].ready
    room = min(
        largest_batch(ready.target, ready.hardware, one.case.drafter, context, max(wanted)) for one in found
    )
    what = f"{names[0]} pays" if len(names) == 1 else "drafters pay"
    title = f"When {what}: {said.model} on {said.device}"
    drawn = crossover_curve(curves, lengths=lengths, fits_up_to=room, title=title, subtitle=said.conditions)
    save(drawn, out)


@click.command("schedule")
@MODEL
@HARDWARE
@click.option("--drafter", required=True, help=DRAFTER_HELP)
@click.option(
    "--rates",
    required=True,
    metavar="RATE,RATE,..",
    help="Acceptance rates that the batch has in equal shares, for example 0.9,0.6,0.3.",
)
@click.option("--k", type=int, default=7, show_default=True, help="Drafted tokens of each sequence.")
@click.option("--batch", type=int, default=48, show_default=True, help="Concurrent sequences.")
@CONTEXT
@click.option("--draft-dtype", default="auto", show_default=True, help="Number format of the drafter.")
@DEVICE
@OUT
def schedule(drafter: str, rates: str, k: int, batch: int, context: float, out: Path, **options: Any) -> None:
    """Tokens per second against the rows verified, for a mixed batch.

    The likeliest drafts first, beside as many of every sequence.
    """
    import numpy as np

    from rooflinekit.plot.schedule import schedule_curve
    from rooflinekit.resolve import load_of, number
    from rooflinekit.scheduling import round_time

    writable(out, ENDINGS)
    values = _rates(rates)
    number(batch, "--batch", len(values), 1e5)
    load_of(batch, context)
    # The rates of the batch stand in the table; the case needs none.
    one = asked(drafter, options | {"alpha": 0.0})
    case = one.case
    number(k, "--k", 1, case.drafter.max_k or 64)
    rate_of = np.array(values)[np.arange(batch) * len(values) // batch]
    survival = rate_of[:, None] ** np.arange(1.0, k + 1.0)
    said = caption(one, batch=batch, context=context, acceptance=False)
    time_of = round_time(case, survival, context)
    title = f"Drafts worth verifying: {said.model} on {said.device}"
    shares = f"rates {', '.join(f'{value:g}' for value in values)} in equal shares"
    subtitle = f"{case.drafter.name}, {shares}, {said.conditions}"
    save(schedule_curve(survival, time_of, title=title, subtitle=subtitle), out)


def _rates(text: str) -> list[float]:
    words = words_of(text, "--rates", "0.9,0.6,0.3")
    try:
        values = [float(word) for word in words]
    except ValueError:
        values = [-1.0]
    if not all(0.0 <= value <= 1.0 for value in values):
        raise click.UsageError(
            f"--rates {text!r} is not a list of rates from 0 to 1; write --rates 0.9,0.6,0.3"
        )
    return values


COMMANDS = (draft_cost, loss, crossover, schedule)
