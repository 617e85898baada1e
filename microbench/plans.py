"""What each budget measures."""

from __future__ import annotations

from rooflinekit.errors import RooflineError
from rooflinekit.microbench.probes.attention import AttentionSweep
from rooflinekit.microbench.probes.compute import compute_sweep
from rooflinekit.microbench.probes.elementwise import ElementwiseSweep
from rooflinekit.microbench.probes.launch import launch_sweep
from rooflinekit.microbench.probes.linear import LinearSweep
from rooflinekit.microbench.probes.read import ReadSweep
from rooflinekit.microbench.probes.step import StepSweep
from rooflinekit.microbench.sampling import Limits
from rooflinekit.microbench.session import Sweep
from rooflinekit.microbench.shapes import LLAMA_1B, LLAMA_8B, AttentionShape, Decoder

BUDGETS = {
    "quick": Limits(half_width=0.02, rounds=8, most_rounds=200, cap_s=3.0, trial_rounds=3),
    "normal": Limits(half_width=0.01, rounds=12, most_rounds=400, cap_s=9.0, trial_rounds=5),
    "full": Limits(half_width=0.01, rounds=30, most_rounds=400, cap_s=30.0, trial_rounds=7),
}
"""Rules to stop by budget: about one minute, five and twenty on two cores."""

ROWS = (1, 2, 3, 4, 6, 8, 12, 16, 17, 24, 32, 33, 48, 64)
WIDE_ROWS = (96, 128, 192, 256)
"""Further rows of an accelerator, whose knee lies there."""
HEAD_ROWS = (1, 4, 8, 16)
WIDTHS = (1, 2, 4, 8, 16)
CONTEXTS = (1024, 4096, 16384)
READ_BYTES = {"cpu": 100_000_000, "cuda": 2_000_000_000}


def plan(budget: str = "quick", kind: str = "cpu", dtypes: tuple[str, ...] = ("bf16", "fp32")) -> list[Sweep]:
    """List what a budget measures.

    Parameters
    ----------
    budget
        ``quick``, ``normal`` or ``full``.
    kind
        ``cpu`` or ``cuda``; decides sizes of the bandwidth and compute probes.
    dtypes
        Formats of the device, the preferred one first.
    """
    if budget not in BUDGETS:
        raise RooflineError(f"budget {budget!r} is unknown; choose {', '.join(BUDGETS)}")
    first = dtypes[0]
    sizes = {"cpu": (2048, 4096), "cuda": (4096, 8192)}[kind]
    sweeps: list[Sweep] = [ReadSweep(READ_BYTES[kind])]
    for dtype in dtypes:
        sweeps += [compute_sweep(size, dtype) for size in (sizes[:1] if budget == "quick" else sizes)]
    sweeps.append(launch_sweep(first))
    rows = ROWS if kind == "cpu" else ROWS + WIDE_ROWS
    # An accelerator is quick and its small layers are launch-bound: there even a quick run has both sizes.
    models = (LLAMA_1B,) if budget == "quick" and kind == "cpu" else (LLAMA_1B, LLAMA_8B)
    for model in models:
        sweeps.append(ElementwiseSweep(model, WIDTHS, first))
        sweeps += _model_linears(model, first, rows)
        sweeps += _attentions(model, first, 1)
    if budget == "full":
        sweeps += _attentions(LLAMA_1B, first, 8)
        for dtype in dtypes[1:]:
            sweeps += _model_linears(LLAMA_1B, dtype, rows)
    contexts = (1024,) if budget == "quick" else (1024, 8192)
    return sweeps + [StepSweep(LLAMA_1B, context, WIDTHS, first) for context in contexts]


def _model_linears(model: Decoder, dtype: str, rows: tuple[int, ...]) -> list[Sweep]:
    layers = [
        LinearSweep(out, inner, rows, dtype, label=name) for name, (out, inner) in model.matrices.items()
    ]
    return [*layers, LinearSweep(*model.head, HEAD_ROWS, dtype, label="head")]


def _attentions(model: Decoder, dtype: str, batch: int) -> list[Sweep]:
    shapes = [AttentionShape(batch, s, 1, model.heads, model.kv_heads, model.head_dim) for s in CONTEXTS]
    return [AttentionSweep(shape, WIDTHS, dtype) for shape in shapes]
