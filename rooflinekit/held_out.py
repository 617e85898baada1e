"""The split by hash: which measured shapes a fit to public tables sees."""

from __future__ import annotations

from collections.abc import Mapping

from rooflinekit.measurement import Measurement, fold

HELD_EXPERTS: Mapping[tuple[int, int, int, int], str] = {
    (2048, 768, 8, 128): "Qwen3-30B-A3B",
    (4096, 14336, 2, 8): "Mixtral-8x7B",
    (2880, 2880, 4, 128): "gpt-oss-120b",
    (2880, 2880, 4, 32): "gpt-oss-20b",
}
"""Layers of experts that a fit by hash never sees: hidden and intermediate size, experts per token, experts."""


def expert_model(case: Measurement) -> tuple[int, int, int, int]:
    """Layer of experts of a case: hidden and intermediate size, experts per token, experts."""
    shape = case.shape
    return shape["hidden"], shape["intermediate"], shape["top_k"], shape["experts"]


def falls_in_fit(case: Measurement, share: float) -> bool:
    """Whether a split by hash puts a case into the fit: by its shape, and layers of experts by their model."""
    if case.kind == "experts":
        return expert_model(case) not in HELD_EXPERTS
    return fold(case.shape_key) < share
