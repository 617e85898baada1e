"""Whether speculation pays, with which drafter and K, and how far."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rooflinekit.app.asking import ACCEPTANCE, Asked, asked_case, with_acceptance
from rooflinekit.errors import RooflineError
from rooflinekit.hardware import Hardware
from rooflinekit.llm import Llm
from rooflinekit.resolve import load_of, number, setup

# `rooflinekit predict` is the command run most: what only other calls need is imported by them.
if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from rooflinekit.comparison import Comparison
    from rooflinekit.drafters import Drafter
    from rooflinekit.prospect import Outlook, Schedule
    from rooflinekit.recommendation import Recommendation
    from rooflinekit.target import Target


def recommend(
    model: str | Path | Llm,
    hardware: str | Path | Hardware,
    drafter: str | Drafter,
    *,
    batch: float = 1,
    context: float = 4096,
    max_k: int = 16,
    k: int | None = None,
    allow_oversize: bool = False,
    **options: Any,
) -> Recommendation:
    """Say whether speculation pays and with which K.

    Parameters
    ----------
    model, hardware
        As in :func:`setup`.
    drafter
        ``eagle3``, ``dflash``, ``dspark``, ``small-lm:MODEL``, a drafter's config.json, or an object.
    batch, context
        Sequences; tokens in the cache.
    max_k, k
        Largest K to try; or the K to judge.
    allow_oversize
        Answer even where it does not fit.
    **options
        Exactly one description of acceptance (``alpha``, ``decay``, ``acceptance_length`` with ``measured_k``,
        ``survival``, or ``acceptance``: a file, a profile's name or an object); how drafting is run
        (``draft_dtype``, ``draft_cost``, ``draft_step_s``, ``draft_round_s``, ``overlap``); and those of :func:`setup`.
    """
    from rooflinekit.recommendation import recommend_k

    asked = asked_case(model, hardware, drafter, max_k=max_k, k=k, options=options)
    return recommend_k(
        asked.case,
        asked.ready.hardware,
        load_of(batch, context),
        max_k=max_k,
        k=k,
        calibration=asked.ready.calibration,
        allow_oversize=allow_oversize,
    )


def outlook(
    model: str | Path | Llm,
    hardware: str | Path | Hardware,
    drafter: str | Drafter,
    *,
    batch: float = 1,
    context: float = 4096,
    max_k: int = 16,
    k: int | None = None,
    **options: Any,
) -> Outlook:
    """Say where a recommendation stops paying, what would help more, and which K each batch wants.

    Parameters are those of :func:`recommend`.
    """
    from rooflinekit.drafters.variants import variants
    from rooflinekit.prospect import outlook_of

    asked = asked_case(model, hardware, drafter, max_k=max_k, k=k, options=options)
    own, target = asked.case.drafter, asked.ready.target
    return outlook_of(
        asked.case,
        asked.ready.hardware,
        load_of(batch, context),
        max_k=max_k,
        k=k,
        variants=variants(own, target.llm),
        drafters=_others(own, target),
    )


OTHERS = ("eagle3", "dflash", "dspark")
"""Drafters worth training that any target can have."""


def _others(own: Drafter, target: Target) -> list[tuple[str, Drafter]]:
    """Drafters besides the one asked about."""
    from rooflinekit.drafting_options import make_drafter

    carried = ("mtp",) if target.llm.mtp is not None else ()
    names = [name for name in (*OTHERS, *carried) if name != own.name]
    return [(f"another drafter: {name}", make_drafter(name, target)) for name in names]


def compare(
    model: str | Path | Llm,
    hardware: str | Path | Hardware,
    drafters: Sequence[str | Drafter],
    *,
    batch: float = 1,
    context: float = 4096,
    max_k: int = 16,
    **options: Any,
) -> tuple[Comparison, ...]:
    """Put drafters side by side; parameters as in :func:`recommend`.

    All have the acceptance of the options, except a drafter that is written with its own:
    ``dflash@0.7``, ``eagle3@eagle3-llama-3.1-8b-mt-bench`` (a rate, a published profile, or a file).
    """
    from rooflinekit.comparison import compare_drafters

    asked = _each(model, hardware, drafters, max_k, options)
    ready = asked[0].ready
    return compare_drafters(
        [one.case for one in asked],
        ready.hardware,
        load_of(batch, context),
        max_k=max_k,
        calibration=ready.calibration.name if ready.calibration else "datasheet",
    )


def _each(
    model: str | Path | Llm,
    hardware: str | Path | Hardware,
    drafters: str | Sequence[str | Drafter],
    max_k: int,
    options: dict[str, Any],
) -> list[Asked]:
    """A case for each drafter, with its own acceptance where it is written with one; refuses none."""
    names = [drafters] if isinstance(drafters, str) else drafters
    if not names:
        raise RooflineError("no drafter was named; give at least one, such as eagle3")
    asked = []
    for name in names:
        drafter, own = with_acceptance(name)
        described = dict(options)
        if own is not None:
            described = {one: value for one, value in options.items() if one not in ACCEPTANCE}
            described["acceptance"] = own
        asked.append(asked_case(model, hardware, drafter, max_k=max_k, k=None, options=described))
    return asked


def _axis(values: Sequence[float], name: str, low: float, high: float) -> None:
    """Check whole numbers of an axis; refuses none."""
    if not len(values):
        raise RooflineError(f"{name} is empty; give at least one number from {low:g} to {high:g}")
    for value in values:
        number(value, name, low, high)


def sweep(
    model: str | Path | Llm,
    hardware: str | Path | Hardware,
    drafter: str | Drafter,
    *,
    batch: Sequence[float] = (1,),
    context: Sequence[float] = (4096,),
    k: Sequence[float] | None = None,
    alpha: Sequence[float] = (0.8,),
    **options: Any,
) -> xr.Dataset:
    """Evaluate speculation over a grid of batch x context x K x alpha, labelled with names and units.

    Parameters
    ----------
    model, hardware, drafter
        As in :func:`recommend`.
    **options
        Those of :func:`setup`; drafters run in their own format, one after the other.
    batch, context, k, alpha
        Axes; K is 1 to 8 by default, or up to the drafter's trained block.
    """
    from rooflinekit.drafting_options import make_drafter
    from rooflinekit.sweeps import speculation_grid

    ready = setup(model, hardware, **options)
    built = make_drafter(drafter, ready.target)
    largest = built.max_k or 1024
    ks = range(1, min(8, largest) + 1) if k is None else k
    for name, values, low, high in (
        ("batch", batch, 1, 1e6),
        ("context", context, 0, 1e8),
        (f"k of {built.name}", ks, 1, largest),
    ):
        _axis(values, name, low, high)
    if not len(alpha):
        raise RooflineError("alpha is empty; give at least one rate from 0 to 1")
    return speculation_grid(
        ready.machine, ready.target, built, batch=batch, context=context, k=ks, alpha=alpha
    )


def table(
    model: str | Path | Llm,
    hardware: str | Path | Hardware,
    drafters: Sequence[str | Drafter],
    *,
    batch: Sequence[float] = (1, 4, 16, 64),
    context: Sequence[float] = (1024, 4096, 16384),
    max_k: int = 16,
    **options: Any,
) -> pd.DataFrame:
    """Every drafter, batch, context and K as rows of a DataFrame; drafters and options as in :func:`compare`."""
    from rooflinekit.sweeps import speculation_table

    _axis(batch, "batch", 1, 1e6)
    _axis(context, "context", 0, 1e8)
    cases = [one.case for one in _each(model, hardware, drafters, max_k, options)]
    return speculation_table(cases, batch=batch, context=context, max_k=max_k)


def schedule(
    model: str | Path | Llm,
    hardware: str | Path | Hardware,
    drafter: str | Drafter,
    *,
    batch: Sequence[float] = (1, 2, 4, 8, 16, 32, 64, 128, 256),
    context: Sequence[float] = (512, 2048, 8192, 32768),
    max_k: int = 16,
    **options: Any,
) -> Schedule:
    """Best K over batch x context, and K by batch for an engine; options as in :func:`recommend`."""
    from rooflinekit.prospect import schedule_of

    _axis(batch, "--batches", 1, 1e5)
    _axis(context, "--contexts", 0, 1e8)
    asked = asked_case(model, hardware, drafter, max_k=max_k, k=None, options=options)
    return schedule_of(
        asked.case, asked.ready.hardware, sorted(set(batch)), sorted(set(context)), max_k=max_k
    )
