"""Measured times as data: one case a line, raw samples kept, doubts beside them.

A row says nothing about who measured it, so calibration and validation never know where it came
from. A file is JSON Lines: first the run (device facts, environment), then its cases.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any

from rooflinekit.work import Work

VARIED = ("rows", "width", "touched")
"""What a sweep varies: the rest of a shape is the unit of a held-out split."""

CLEAN = 0.5
"""A case with a smaller share of clean samples is contended: its times say little."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Where and how a set of cases was measured.

    Attributes
    ----------
    id
        Short id of the run, part of every case id.
    started
        ISO 8601 time with zone.
    device
        Facts of the device: ``kind`` (cpu, cuda), ``name``, ``capacity_bytes``, ``llc_bytes``, ``units``,
        ``dtypes`` and what else it tells. No host name, user name or serial number.
    environment
        Versions, threads, instruction set, clocks, load.
    options
        Budget, seed and other options of the run.
    """

    id: str
    started: str
    device: Mapping[str, Any]
    environment: Mapping[str, Any]
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One measured case.

    Attributes
    ----------
    id
        ``<run id>/<case name>``; calibration files name it.
    kind
        ``read`` (bandwidth probe), ``compute`` (matrix-rate probe), ``linear``, ``attention``,
        ``latent`` (decode attention of MLA), ``prefill`` (attention of a prompt), ``experts``,
        ``collective``, ``elementwise`` (norms, rotary, activation of a layer), ``launch`` or ``step`` (a
        whole decode or verify step).
    dtype
        Compute format.
    shape
        Numbers that define the case: ``rows``, ``out``, ``inner`` for a linear; ``batch``, ``context``,
        ``width``, ``heads``, ``kv_heads``, ``head_dim`` for attention, latent and prefill; ``rows``, ``hidden``,
        ``intermediate``, ``experts``, ``top_k``, ``touched`` and ``routing`` for experts; ``message_bytes``
        and ``ranks`` for a collective; ``width`` and the model's name for a step.
    weight_bytes, kv_bytes, activation_bytes, flops, kernels
        What one call moves and computes, by our own count (``rooflinekit.work`` terms).
    footprint_bytes
        Bytes of all rotated copies: what decides whether a call found its operands cold.
    implementation
        The kernel that gave the samples; the best where several were tried (``alternatives`` has the
        medians of all, s).
    samples_s
        Raw times of one call (s).
    clean
        Per sample: whether the machine was ours while it ran.
    ratio
        Paired ratio to the same layer at one row, median over rounds, with its interval:
        ``[median, low, high]``; empty where there is none.
    error
        Largest relative deviation from a float64 reference (correctness gate).
    warnings
        Doubts, as text.
    attempt
        0, or 1 when a disturbed sweep was measured again.
    bandwidth_factor
        Memory bandwidth while the case was measured over that of the whole run (:func:`with_drift`); 1
        where it is not known to move. Not in the file: it follows from the read probes there.
    """

    id: str
    kind: str
    dtype: str
    shape: Mapping[str, Any]
    samples_s: tuple[float, ...]
    weight_bytes: float = 0.0
    kv_bytes: float = 0.0
    activation_bytes: float = 0.0
    flops: float = 0.0
    kernels: float = 1.0
    footprint_bytes: float = 0.0
    implementation: str = ""
    alternatives: Mapping[str, float] = field(default_factory=dict)
    clean: tuple[bool, ...] = ()
    ratio: tuple[float, ...] = ()
    error: float = 0.0
    warnings: tuple[str, ...] = ()
    attempt: int = 0
    bandwidth_factor: float = 1.0

    @property
    def bytes(self) -> float:
        """All bytes one call moves (B)."""
        return self.weight_bytes + self.kv_bytes + self.activation_bytes

    @property
    def clean_samples_s(self) -> tuple[float, ...]:
        """Samples taken while the machine was ours; all samples where none was, or none was judged."""
        kept = tuple(s for s, ok in zip(self.samples_s, self.clean, strict=False) if ok)
        return kept or self.samples_s

    @property
    def clean_share(self) -> float:
        """Share of clean samples (0..1); 1 where samples were not judged."""
        return sum(self.clean) / len(self.clean) if self.clean else 1.0

    @property
    def median_s(self) -> float:
        """Median of the clean samples (s)."""
        return median(self.clean_samples_s)

    @property
    def width(self) -> float:
        """Rows of a linear, or rows per sequence of attention or a step: what a sweep varies."""
        return float(self.shape.get("rows", self.shape.get("width", 1)))

    @property
    def is_single(self) -> bool:
        """Whether it is the one-row case that ratios refer to."""
        return self.width == 1.0

    @property
    def rows(self) -> float:
        """Rows of the matrix product: of a linear, query rows per KV head, tokens per expert read."""
        shape = self.shape
        if self.kind in ("attention", "latent", "prefill"):
            return float(shape["width"] * shape["heads"] / shape["kv_heads"])
        if self.kind == "experts":
            return float(shape["rows"] * shape["top_k"] / shape["touched"])
        return self.width

    @property
    def groups(self) -> float:
        """What one kernel works on side by side (see :class:`~rooflinekit.work.Work`)."""
        shape = self.shape
        if self.kind in ("attention", "latent"):
            return float(shape["batch"] * shape["kv_heads"])
        if self.kind == "prefill":
            return float(shape["batch"] * shape["heads"] * shape["width"])
        if self.kind == "experts":
            return float(shape["touched"])
        if self.kind == "linear":
            return float(shape.get("out", 0))
        return float(shape.get("ranks", 1) - 1)

    @property
    def crowding(self) -> float:
        """Tokens for each expert of a layer; 0 for other kinds of work."""
        return float(self.shape["rows"] / self.shape["experts"]) if self.kind == "experts" else 0.0

    @property
    def inner(self) -> float:
        """Length of the summed dimension of a linear, or of a token in a layer of experts."""
        return float(self.shape.get("inner", self.shape.get("hidden", 0)))

    @property
    def work(self) -> Work:
        """What one call moves and computes, as the model's cost atom."""
        return Work(
            self.id,
            self.kind,
            self.dtype,
            self.rows,
            self.flops,
            self.weight_bytes,
            self.kv_bytes,
            self.activation_bytes,
            self.kernels,
            self.inner,
            self.groups,
            self.crowding,
        )

    @property
    def shape_key(self) -> str:
        """Text that is equal for equal shapes whatever the rows or the width: the unit of a held-out split."""
        rest = {k: v for k, v in sorted(self.shape.items()) if k not in VARIED}
        return f"{self.kind} {self.dtype} " + " ".join(f"{k}={v}" for k, v in rest.items())


def median_interval(samples: Iterable[float], z: float = 1.96) -> tuple[float, float]:
    """Nonparametric confidence interval of the median, by ranks.

    Ranks ``ceil((n - z sqrt(n)) / 2)`` and ``ceil(1 + (n + z sqrt(n)) / 2)`` (Hoefler and Belli 2015,
    doi 10.1145/2807591.2807644, rule 5; after Le Boudec). The whole range where there are few samples.

    >>> median_interval([float(i) for i in range(1, 101)])
    (41.0, 61.0)
    """
    ordered = sorted(samples)
    n = len(ordered)
    low = max(1, math.ceil((n - z * math.sqrt(n)) / 2))
    high = min(n, math.ceil(1 + (n + z * math.sqrt(n)) / 2))
    return ordered[low - 1], ordered[high - 1]


def fold(text: str) -> float:
    """Map a text to 0..1 by a hash: the same text always falls on the same side of a split.

    >>> 0.0 <= fold("linear bf16 inner=2048 out=8192") < 1.0
    True
    """
    digest = hashlib.sha256(text.encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def sweep_of(case: Measurement) -> str:
    """The sweep a case was measured in, with its run: cases of one sweep share their rounds."""
    run, _, name = case.id.partition("/")
    return f"{run}/{case.shape['beside']}" if "beside" in case.shape else f"{run}/{name.rpartition('/')[0]}"


def cleanest(cases: Iterable[Measurement]) -> list[Measurement]:
    """Keep one attempt of each sweep, whole: the one with the larger share of clean samples.

    A disturbed sweep is measured again, under the same ids; its probe and its ratios belong to their own
    attempt. Files that were given twice count once.
    """
    attempts: dict[str, dict[int, dict[str, Measurement]]] = {}
    for case in cases:
        attempts.setdefault(sweep_of(case), {}).setdefault(case.attempt, {})[case.id] = case
    kept = (
        max(tries.values(), key=lambda one: median(case.clean_share for case in one.values()))
        for tries in attempts.values()
    )
    return [case for one in kept for case in one.values()]


def with_drift(
    runs: Sequence[Run], cases: Sequence[Measurement], usual_bytes_per_s: float | None = None
) -> list[Measurement]:
    """Note the bandwidth of the moment at each case, by the read probe that ran in the same rounds.

    A virtual CPU shares its memory with neighbours, and the bandwidth moves by tens of per cent between
    sweeps: a time means something only beside a read of the same moment. Accelerators are not shared, and
    their small probes are launch-bound, so their cases keep the factor 1. So do cases whose probe was
    disturbed.

    Parameters
    ----------
    runs, cases
        Content of the files.
    usual_bytes_per_s
        Bandwidth that counts as 1: that of the profile; by default the median of the probes.
    """
    shared = {run.id for run in runs if run.device.get("kind") == "cpu"}
    rates: dict[str, float] = {}
    for case in cases:
        probe = case.kind == "read" and "beside" in case.shape
        if probe and case.id.partition("/")[0] in shared and case.clean_share >= CLEAN:
            rates[sweep_of(case)] = case.bytes / case.median_s
    if not rates:
        return list(cases)
    usual = usual_bytes_per_s or median(rates.values())
    return [replace(case, bandwidth_factor=rates.get(sweep_of(case), usual) / usual) for case in cases]


def without_drift(cases: Iterable[Measurement]) -> list[Measurement]:
    """The cases as if the bandwidth had not moved."""
    return [replace(case, bandwidth_factor=1.0) for case in cases]
