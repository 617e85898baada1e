"""What of a kernel table is fitted and compared: cold rows of the kernels that engines run, counted by reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch

from rooflinekit.forms import lower_bound_s
from rooflinekit.measurement import Measurement
from rooflinekit.work import Machine

COLD = 2.0
"""Footprint, in last-level caches, from which a row finds its weights or its cache in memory."""
COLD_KINDS = ("linear", "attention", "latent", "experts")
"""Kinds of work that must find what they read in memory."""
IMPOSSIBLE = 1.02
"""A row that beats its lower bound by more than this is left out, and counted."""
BANDS: tuple[tuple[int, int], ...] = ((1, 16), (17, 64), (65, 128), (129, 256), (257, 512))
"""Bands of rows, first and last included."""
FAR = (1024, 2048, 4096, 8192)
"""Rows of a linear layer beyond the bands that are fitted too: those of a prefill."""

MOST_BATCH, MOST_SHARING = 256, 32
"""Decode attention beyond these (sequences; query heads per KV head) runs in kernels of their own."""
SHORTEST_PROMPT = 1024
MESSAGES = (4096, 2**26)
"""Smallest and largest message of a collective (B)."""

KERNELS: Mapping[tuple[str, str, str], tuple[str, ...]] = {
    ("trtllm", "experts", "bf16"): ("bfloat16 moe_torch_flow_cutlass", "bfloat16 moe_torch_flow"),
    ("trtllm", "experts", "fp8"): ("fp8 moe_torch_flow_cutlass",),
    ("trtllm", "experts", "fp4"): ("nvfp4 moe_torch_flow_cutlass",),
    ("vllm", "experts", "bf16"): (
        "bfloat16 *_flashinfer_trtllm_*",
        "bfloat16 vllm_unquantizedfusedmoe_triton_*",
        "bfloat16 *",
    ),
    ("vllm", "experts", "fp8"): (
        "fp8_block *_flashinfer_trtllm_*monolithic",
        "fp8_block vllm_fp8moe_triton_*",
    ),
    ("vllm", "experts", "fp4"): ("nvfp4 *_flashinfer_trtllm_*monolithic", "nvfp4 *flashinfer_cutlass_*"),
    ("sglang", "experts", "bf16"): (
        "bfloat16 sglang_flashinfer_trtllm_moe",
        "bfloat16 sglang_fused_moe_triton",
    ),
    ("sglang", "experts", "fp8"): (
        "fp8_block sglang_flashinfer_trtllm_moe",
        "fp8_block sglang_fused_moe_triton",
    ),
    ("sglang", "experts", "fp4"): ("nvfp4 sglang_flashinfer_*",),
}
"""Kernels an engine runs in production, first choice first, where its table times several."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scoped:
    """Cases of one kind and format that a fit may use, and how many were left out, by reason."""

    kind: str
    dtype: str
    cases: tuple[Measurement, ...]
    resident: tuple[Measurement, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)


def in_scope(cases: Sequence[Measurement], base: Machine, stack: str, cache_bytes: float) -> Scoped:
    """Keep the cases of one kind and format that the form is meant for; count the others by reason.

    Linears, decode attention and experts must find their weights or cache in memory (from ``COLD`` caches
    on); those that do not are kept apart.
    """
    kind, dtype = cases[0].kind, cases[0].dtype
    kernel = production_kernel(cases, stack)
    left_out: Counter[str] = Counter()
    kept, resident = [], []
    for case in cases:
        reason = _outside(case, kernel)
        if reason:
            left_out[reason] += 1
        elif kind in COLD_KINDS and case.footprint_bytes < COLD * cache_bytes:
            left_out["resident in the cache"] += 1
            resident.append(case)
        elif lower_bound_s(case, base) > IMPOSSIBLE * case.median_s:
            left_out["faster than the roof"] += 1
        else:
            kept.append(case)
    return Scoped(
        kind=kind, dtype=dtype, cases=tuple(kept), resident=tuple(resident), left_out=dict(left_out)
    )


def production_kernel(cases: Sequence[Measurement], stack: str) -> str:
    """Kernel to fit: the one an engine runs where we know it, else the one with the most rows."""
    names = Counter(case.implementation for case in cases)
    for pattern in KERNELS.get((stack, cases[0].kind, cases[0].dtype), ()):
        found = [name for name in names if fnmatch(name, pattern)]
        if found:
            return max(found, key=names.__getitem__)
    if cases[0].kind == "collective":
        names = Counter({name: n for name, n in names.items() if "eager" not in name}) or names
    return names.most_common(1)[0][0]


def _outside(case: Measurement, kernel: str) -> str:
    if case.implementation != kernel:
        return "launched one by one" if "eager" in case.implementation else "not the production kernel"
    return _SCOPES[case.kind](case)


def _linear_scope(case: Measurement) -> str:
    return "" if case.rows <= BANDS[-1][1] or case.rows in FAR else "rows between those of a prefill"


def _attention_scope(case: Measurement) -> str:
    if case.shape["batch"] > MOST_BATCH:
        return f"more than {MOST_BATCH} sequences"
    if case.kind == "latent":
        return ""
    return f"more than {MOST_SHARING} query heads per KV head" if case.rows > MOST_SHARING else ""


def _prefill_scope(case: Measurement) -> str:
    return f"prompt below {SHORTEST_PROMPT}" if case.width < SHORTEST_PROMPT else ""


def _collective_scope(case: Measurement) -> str:
    inside = MESSAGES[0] <= case.shape["message_bytes"] <= MESSAGES[1]
    return "" if inside else "message outside 4 KB - 64 MB"


_SCOPES: Mapping[str, Callable[[Measurement], str]] = {
    "linear": _linear_scope,
    "attention": _attention_scope,
    "latent": _attention_scope,
    "prefill": _prefill_scope,
    "experts": lambda case: "",  # noqa: ARG005
    "collective": _collective_scope,
}


def by_kind(cases: Iterable[Measurement]) -> dict[tuple[str, str], list[Measurement]]:
    """Cases by kind of work and number format."""
    found: dict[tuple[str, str], list[Measurement]] = {}
    for case in cases:
        found.setdefault((case.kind, case.dtype), []).append(case)
    return dict(sorted(found.items()))
