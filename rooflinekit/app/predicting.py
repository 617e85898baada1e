"""How long a step takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rooflinekit.hardware import Hardware
from rooflinekit.llm import Llm
from rooflinekit.prediction import Prediction, predict_step
from rooflinekit.resolve import load_of, setup


def predict(
    model: str | Path | Llm,
    hardware: str | Path | Hardware,
    *,
    batch: float = 1,
    context: float = 4096,
    width: float = 1,
    prefill: bool = False,
    **options: Any,
) -> Prediction:
    """Predict one decode step (width 1), verify (width K + 1) or prefill (width = prompt).

    Parameters
    ----------
    model, hardware
        As in :func:`setup`; so are the remaining options.
    batch, context, width
        Sequences; tokens in the cache; new rows per sequence.
    prefill
        Whether the rows are a prompt.
    """
    ready = setup(model, hardware, **options)
    load = load_of(batch, context, width, prefill=prefill, overlap=ready.target.routing_overlap)
    return predict_step(ready.machine, ready.target, ready.hardware, load, ready.calibration)
