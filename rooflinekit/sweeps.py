"""Grids of predictions as labelled arrays: the only place where axes have names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from rooflinekit.acceptance import Constant
from rooflinekit.curve import COLUMNS as POINT
from rooflinekit.curve import Case, allowed_k
from rooflinekit.drafters.base import Drafter
from rooflinekit.errors import RooflineError
from rooflinekit.speculation import Round, speculate
from rooflinekit.target import Target
from rooflinekit.work import Machine

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

AXES = ("batch", "context", "k", "alpha")

COLUMNS = {
    "acceptance_length": "tokens",
    "draft_s": "s",
    "verify_s": "s",
    "decode_s": "s",
    "verify_ratio": "",
    "draft_cost": "",
    "round_cost": "",
    "speedup": "",
}
"""Variables of a grid and their units."""


def open_grid(
    machine: Machine,
    target: Target,
    drafter: Drafter,
    *,
    batch: Sequence[float],
    context: Sequence[float],
    k: Sequence[float],
    alpha: Sequence[float],
) -> Round:
    """Evaluate every combination: costs on batch x context x K, then broadcast over alpha.

    Returns
    -------
    Round
        Arrays that broadcast to ``(len(batch), len(context), len(k), len(alpha))``.
    """
    b = np.asarray(batch, dtype=float)[:, None, None, None]
    s = np.asarray(context, dtype=float)[None, :, None, None]
    n = np.asarray(k, dtype=float)[None, None, :, None]
    return speculate(
        machine, target, drafter, Constant(np.asarray(alpha, dtype=float)), batch=b, context=s, k=n
    )


def speculation_grid(
    machine: Machine,
    target: Target,
    drafter: Drafter,
    *,
    batch: Sequence[float],
    context: Sequence[float],
    k: Sequence[float],
    alpha: Sequence[float],
) -> xr.Dataset:
    """The grid of :func:`open_grid` as a Dataset with named axes; units and evidence in ``attrs``."""
    try:
        import xarray as xr  # noqa: PLC0415 - 0.3 s that predicting need not pay
    except ImportError as error:
        raise RooflineError(
            "sweep needs xarray; install the extra: pip install 'rooflinekit[sweep]'"
        ) from error

    rounds = open_grid(machine, target, drafter, batch=batch, context=context, k=k, alpha=alpha)
    coords = dict(zip(AXES, (batch, context, k, alpha), strict=True))
    shape = tuple(len(values) for values in coords.values())
    data = {
        name: (AXES, np.broadcast_to(np.asarray(getattr(rounds, name)), shape), {"units": unit})
        for name, unit in COLUMNS.items()
    }
    attrs = {
        "model": target.llm.name,
        "machine": machine.name,
        "drafter": drafter.title,
        "evidence": ", ".join(f"{term} {kind}" for term, kind in machine.evidence.items()),
    }
    return xr.Dataset(data, coords={name: list(values) for name, values in coords.items()}, attrs=attrs)


def speculation_table(
    cases: Sequence[Case], *, batch: Sequence[float], context: Sequence[float], max_k: int = 16
) -> pd.DataFrame:
    """Every K of every drafter at every batch and context, one row each.

    Parameters
    ----------
    cases
        One for each drafter.
    batch, context
        Sequences; tokens in the cache.
    max_k
        Largest K; a drafter's trained block and the measured positions of its acceptance count too.

    Returns
    -------
    DataFrame
        Columns ``drafter, batch, context, k`` and those of a point of the curve (times in s).
    """
    import pandas as pd  # noqa: PLC0415 - 0.3 s that predicting need not pay

    b = np.asarray(batch, dtype=float)[:, None, None]
    s = np.asarray(context, dtype=float)[None, :, None]
    parts = []
    for case in cases:
        k = np.arange(1.0, allowed_k(case.drafter, case.acceptance, max_k) + 1.0)
        rounds = case.rounds(batch=b, context=s, k=k)
        shape = (b.size, s.size, k.size)
        named = {"batch": b, "context": s, "k": k.astype(int)}
        named |= {name: np.asarray(getattr(rounds, name)) for name in POINT}
        columns = {name: np.broadcast_to(values, shape).ravel() for name, values in named.items()}
        parts.append(pd.DataFrame({"drafter": case.drafter.name, **columns}))
    return pd.concat(parts, ignore_index=True)
