"""The cost atom: pieces of work, passes made of them, and the machine that turns work into time.

A forward pass is a tuple of :class:`Work`; a drafter's round is a tuple of :class:`Pass`; a
:class:`Machine` holds one :class:`Ceiling` per kind of work and number format. Formulas take floats or
arrays: with arrays that broadcast, one call evaluates a whole grid.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rooflinekit.ceiling import ROOFLINE, Ceiling, Real, Staircase, p_norm, padded
from rooflinekit.evidence import Kind

__all__ = [
    "ANY",
    "ROOFLINE",
    "Ceiling",
    "Machine",
    "Pass",
    "Real",
    "Staircase",
    "Work",
    "bound",
    "host_launches",
    "plan_time_s",
    "work_terms_s",
    "work_time_s",
    "works_time_s",
]


@dataclass(frozen=True, slots=True)
class Work:
    """One labelled piece of a pass: what it moves and what it computes.

    Attributes
    ----------
    label
        Name shown in a breakdown.
    kind
        Family with a ceiling of its own: ``linear``, ``attention``, ``latent`` (MLA over its cache), ``prefill``
        (attention of a prompt), ``experts``, ``recurrent``, ``elementwise``, ``collective``.
    dtype
        Format the matrix unit computes in (key of the device's peaks).
    rows
        Rows of the matrix product per weight matrix (tokens); decides tile padding.
    flops
        Floating-point operations (count; a multiply-add is two).
    weight_bytes, kv_bytes, activation_bytes
        Bytes moved, by what they are. For a collective: bytes over the link, all in ``activation_bytes``.
    kernels
        Kernel launches (count).
    inner
        Length of the dimension that one kernel sums over (count); 0 where it does not matter.
    groups
        What one kernel works on side by side: columns that a linear puts out, sequences times KV heads of
        attention, sequences times query heads times rows of a prompt's, experts read, peers of a
        collective; 0 where it does not matter.
    crowding
        Tokens for each expert of a layer, chosen or not; 0 where it does not matter.
    """

    label: str
    kind: str
    dtype: str
    rows: Real
    flops: Real
    weight_bytes: Real = 0.0
    kv_bytes: Real = 0.0
    activation_bytes: Real = 0.0
    kernels: Real = 1.0
    inner: Real = 0.0
    groups: Real = 0.0
    crowding: Real = 0.0

    @property
    def bytes(self) -> Real:
        """All bytes moved (B)."""
        return self.weight_bytes + self.kv_bytes + self.activation_bytes


@dataclass(frozen=True, slots=True)
class Pass:
    """A forward pass and how many times a round runs it, one after the other.

    Attributes
    ----------
    works
        What it moves and computes.
    repeats
        Times a round runs it.
    label
        Name for people.
    launches
        Times the host starts it; ``None``: as often as it repeats. 0 where it is part of the graph of
        another pass.
    """

    works: tuple[Work, ...]
    repeats: Real = 1.0
    label: str = ""
    launches: Real | None = None


ANY = "*"
STANDS_IN = {"prefill": "attention", "latent": "attention"}
"""Kinds of work that are timed as another where they have no ceiling of their own."""


@dataclass(frozen=True, slots=True)
class Machine:
    """A device (or a tensor-parallel group, seen from one rank) as the model sees it.

    Attributes
    ----------
    name
        Profile and calibration, for messages.
    bandwidth_bytes_per_s
        Memory bandwidth (B/s).
    peak_flop_per_s
        Dense peak by compute format (FLOP/s); empty when the device publishes none.
    link_bytes_per_s
        Link bandwidth per direction (B/s) for collectives; 0 when there is none.
    ceilings
        ``(kind, dtype) -> Ceiling``; ``"*"`` stands for any dtype. Missing: plain roofline.
    step_host_s, token_host_s, pass_host_s, round_host_s
        Host time of a step, of each row that is sampled or judged, of each serial draft pass, and of a round of
        speculation besides (s), outside the device.
    evidence
        Kind of evidence by input (``bandwidth``, ``peak bf16`` ..., ``link``, ``ceilings``).
    """

    name: str
    bandwidth_bytes_per_s: Real
    peak_flop_per_s: Mapping[str, Real]
    link_bytes_per_s: Real = 0.0
    ceilings: Mapping[tuple[str, str], Ceiling] = field(default_factory=dict)
    step_host_s: Real = 0.0
    token_host_s: Real = 0.0
    pass_host_s: Real = 0.0
    round_host_s: Real = 0.0
    evidence: Mapping[str, Kind] = field(default_factory=dict)

    def host_s(self, rows: Real) -> Real:
        """Host time of a step whose ``rows``, over all sequences, are sampled or judged (s)."""
        return self.step_host_s + self.token_host_s * rows

    def ceiling(self, kind: str, dtype: str) -> Ceiling:
        """Return the ceiling for a kind of work and a compute format."""
        known = self.ceilings
        found = known.get((kind, dtype)) or known.get((kind, ANY))
        if found is None and kind in STANDS_IN:
            return self.ceiling(STANDS_IN[kind], dtype)
        return found or ROOFLINE


def work_terms_s(work: Work, machine: Machine) -> tuple[Real, Real, Real]:
    """Split the time of a piece of work into its terms.

    Returns
    -------
    overhead_s, memory_s, compute_s
        Fixed kernel time; bytes over the bandwidth reached (link for a collective); padded FLOPs over the
        rate reached, 0 where the device publishes no peak. Seconds. With a staircase the product's whole
        cost stands in the memory term up to one read and in the compute term beyond it. Of two kernels
        these are the terms of the faster one.
    """
    ceiling = machine.ceiling(work.kind, work.dtype)
    terms = _terms_s(work, machine, ceiling)
    if ceiling.other is None:
        return terms
    others = _terms_s(work, machine, ceiling.other)
    faster = np.less_equal(_total_s(terms, ceiling), _total_s(others, ceiling.other))
    one, two, three = (np.where(faster, a, b) for a, b in zip(terms, others, strict=True))
    return one, two, three


def _terms_s(work: Work, machine: Machine, ceiling: Ceiling) -> tuple[Real, Real, Real]:
    overhead = work.kernels * ceiling.t0_s
    if ceiling.inner_s or ceiling.group_s:
        overhead = overhead + work.kernels * (ceiling.inner_s * work.inner + ceiling.group_s * work.groups)
    if work.kind == "collective":
        moved = work.bytes
        if ceiling.one_shot:
            # The whole message to each of n - 1 peers, where a ring moves 2 (n - 1) / n of it.
            moved = moved * np.maximum(work.groups + 1.0, 2.0) / 2.0
        return overhead, moved / (ceiling.memory_efficiency * machine.link_bytes_per_s), 0.0
    memory = work.bytes / (ceiling.memory_efficiency * machine.bandwidth_bytes_per_s)
    if ceiling.staircase is not None and work.kind in ("linear", "experts"):
        return overhead, *_stairs_s(work, machine, memory, ceiling.staircase)
    if ceiling.rows_per_pass != math.inf:
        memory = memory * padded(work.rows, ceiling.rows_per_pass) / ceiling.rows_per_pass
    if ceiling.memory_fill:
        memory = memory * (1.0 + ceiling.memory_fill / np.maximum(work.groups, 1.0))
    peak = machine.peak_flop_per_s.get(work.dtype)
    compute: Real = 0.0 if peak is None else work.flops / (ceiling.compute_efficiency * peak)
    if ceiling.tile != 1.0:
        compute = compute * padded(work.rows, ceiling.tile) / work.rows
    if ceiling.compute_fill:
        compute = compute * (1.0 + ceiling.compute_fill / np.maximum(work.groups, 1.0))
    if ceiling.factors is None and ceiling.columns is None and ceiling.crowded == 1.0:
        return overhead, memory, compute
    factor = _correction(work, ceiling)
    return overhead * factor, memory * factor, compute * factor


def _correction(work: Work, ceiling: Ceiling) -> Real:
    """Factor of the measured tables by rows and columns, and of the tile for many tokens."""
    factor: Real = 1.0 if ceiling.factors is None else ceiling.factors.at(work.rows)
    if ceiling.columns is not None:
        factor = factor * ceiling.columns.at(work.rows, work.groups)
    if ceiling.crowded == 1.0:
        return factor
    return factor * np.where(np.greater(work.crowding, 1.0), ceiling.crowded, 1.0)


def _stairs_s(work: Work, machine: Machine, memory: Real, staircase: Staircase) -> tuple[Real, Real]:
    """Memory and compute terms of a measured table; ``memory`` is one read of the bytes (s)."""
    reads = staircase.at(work.rows)
    compute = memory * np.where(reads > 1.0, reads, 0.0)
    peak = machine.peak_flop_per_s.get(work.dtype)
    if peak is not None:
        # Beyond the measured rows the peak is the better guide.
        far = np.asarray(work.rows) > staircase.rows[-1]
        compute = np.where(far, np.maximum(compute, work.flops / peak), compute)
    return memory * np.minimum(reads, 1.0), compute


def _total_s(terms: tuple[Real, Real, Real], ceiling: Ceiling) -> Real:
    overhead, memory, compute = terms
    sharpness = math.inf if ceiling.staircase is not None else ceiling.p
    return overhead + p_norm(memory, compute, sharpness)


def work_time_s(work: Work, machine: Machine) -> Real:
    """Time of one piece of work (s): fixed kernel time plus the p-norm of memory and compute time.

    Roofline: Williams, Waterman and Patterson 2009 (doi 10.1145/1498765.1498785); t0, p and the other
    terms as in :class:`~rooflinekit.ceiling.Ceiling`.

    Examples
    --------
    >>> gemv = Work("gemv", "linear", "bf16", rows=1.0, flops=2e9, weight_bytes=2e9)
    >>> work_time_s(gemv, Machine("m", 2e12, {"bf16": 4e14}))
    0.001
    """
    ceiling = machine.ceiling(work.kind, work.dtype)
    time = _total_s(_terms_s(work, machine, ceiling), ceiling)
    if ceiling.other is None:
        return time
    return np.minimum(time, _total_s(_terms_s(work, machine, ceiling.other), ceiling.other))


def works_time_s(works: Iterable[Work], machine: Machine) -> Real:
    """Time of pieces of work one after the other (s)."""
    total: Any = 0.0
    for work in works:
        total = total + work_time_s(work, machine)
    return total  # type: ignore[no-any-return]


def plan_time_s(plan: Iterable[Pass], machine: Machine) -> Real:
    """Time of a list of passes, each repeated one after the other (s)."""
    total: Any = 0.0
    for one in plan:
        total = total + one.repeats * works_time_s(one.works, machine)
    return total  # type: ignore[no-any-return]


def host_launches(plan: Iterable[Pass]) -> Real:
    """Times the host starts something on the device in a round of drafting (count).

    As in engines that start each serial pass (vLLM); those that capture all of them in one graph (SGLang's
    EAGLE, TensorRT-LLM's drafting loops) start one.

    Examples
    --------
    >>> float(host_launches([Pass((), 1.0), Pass((), 4.0), Pass((), 4.0, launches=0.0)]))
    5.0
    """
    total: Any = 0.0
    for one in plan:
        total = total + (one.repeats if one.launches is None else one.launches)
    return total  # type: ignore[no-any-return]


def bound(work: Work, machine: Machine) -> str:
    """Name the term that takes the most of a scalar piece of work.

    Returns ``memory``, ``compute``, ``overhead`` or ``link``.
    """
    overhead, memory, compute = (float(term) for term in work_terms_s(work, machine))
    rest = "link" if work.kind == "collective" else ("memory" if memory >= compute else "compute")
    return "overhead" if overhead > max(memory, compute) else rest
