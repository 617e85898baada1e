"""Shipped suites: values computed by hand, or printed by others, that the model must reproduce."""

from __future__ import annotations

from collections.abc import Callable

from rooflinekit.acceptance import expected_tokens
from rooflinekit.foreign_suite import foreign
from rooflinekit.hardware import machine
from rooflinekit.kernel_suite import kernel_report
from rooflinekit.papers_suite import published
from rooflinekit.precision import precision
from rooflinekit.profiles.library import find_hardware
from rooflinekit.published import subjects_of
from rooflinekit.readers.kernel_slice import read_slice
from rooflinekit.readers.kernel_tables import SHIPPED, STACKS, tables_of
from rooflinekit.readers.models import find_llm
from rooflinekit.speculation import eta
from rooflinekit.target import Target
from rooflinekit.transformer import Load, experts_touched
from rooflinekit.validation import Band, Compared, Report

HAND_TOLERANCE = 0.005


def _step_s(model: str, hardware: str, load: Load) -> float:
    target = Target(find_llm(model), precision("bf16"))
    return float(target.step_s(machine(find_hardware(hardware)), load.batch, load.context, load.width))


def _experts(model: str, rows: float) -> float:
    _, moe = next(find_llm(model).moe_layers())
    return float(experts_touched(moe, Load(width=rows)))


def hand_values() -> Report:
    """Steps worked out by hand from weights and cache alone (no activations): times in s, counts, ratios."""
    long = _step_s("llama-3.1-70b", "h100-sxm", Load(1, 131072, 8))
    deepseek = find_llm("deepseek-v3").kv_elements_per_token() * 2
    rows = [
        # 139.006 GB of weights and 1.342 GB of cache over 3.35 TB/s.
        (
            "Llama-3.1-70B, H100, context 4096 (s)",
            _step_s("llama-3.1-70b", "h100-sxm", Load(1, 4096)),
            41.895e-3,
        ),
        # 13.215 GB and 2.147 GB over 2.039 TB/s.
        (
            "Llama-2-7B, A100, context 4096 (s)",
            _step_s("llama-2-7b", "a100-80gb-sxm", Load(1, 4096)),
            7.534e-3,
        ),
        ("Qwen3-30B-A3B, H100, width 1 (s)", _step_s("qwen3-30b-a3b", "h100-sxm", Load(1, 4096)), 1.936e-3),
        ("Qwen3-30B-A3B, H100, width 8 (s)", _step_s("qwen3-30b-a3b", "h100-sxm", Load(1, 4096, 8)), 7.83e-3),
        # 128 (1 - (1 - 8/128)^8).
        ("Qwen3-30B-A3B, experts of 8 tokens", _experts("qwen3-30b-a3b", 8.0), 51.62),
        # 42.950 GB of cache and 139.006 GB of weights over 3.35 TB/s, read once for all rows.
        ("Llama-3.1-70B, H100, context 131072, width 8 (s)", long, 54.315e-3),
        ("DeepSeek-V3, cache per token (B)", float(deepseek), 70272.0),
        ("E[tokens], alpha 0.8, K 4", float(expected_tokens(0.8, 4)), 3.3616),
        ("eta, alpha 0.8, K 4, c 0.05", float(eta(0.8, 4, 0.05)), 2.8013),
    ]
    compared = tuple(
        Compared(suite=name, case=name, rows=1.0, predicted=value, measured=right)
        for name, value, right in rows
    )
    return Report(
        bands=tuple(_exact(one) for one in compared), cases=compared, fitted_left_out=0, contended=None
    )


def _exact(one: Compared) -> Band:
    error = abs(one.error)
    return Band(
        suite=one.suite,
        band="all",
        n=1,
        median_abs_error=error,
        p90_abs_error=error,
        bias=one.error,
        tolerance=HAND_TOLERANCE,
        ok=error <= HAND_TOLERANCE,
    )


def kernels(*, full: bool = False) -> Report:
    """Shipped calibrations against measured kernels that none of them was fitted on.

    Parameters
    ----------
    full
        Read all rows of the installed package of kernel tables and judge by the limits that the project set
        itself; else read the slice that comes with the package and judge by the error each calibration states.
    """
    if not full:
        return kernel_report(subjects_of(read_slice()), stated=True)
    places = ((system, stack) for system in SHIPPED for stack in STACKS)
    # One stack at a time: all tables together would not fit into a small memory.
    return kernel_report(one for place in places for one in subjects_of(tables_of(*place)))


SUITES: dict[str, Callable[..., Report]] = {
    "hand-values": hand_values,
    "kernels": kernels,
    "foreign": foreign,
    "published": published,
}
