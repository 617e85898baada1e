"""The cost atom: pieces of work, passes made of them, and the machine that turns work into time.

A forward pass is a tuple of :class:`Work`; a drafter's round is a tuple of :class:`Pass`; a
:class:`Machine` holds one :class:`Ceiling` per kind of work and number format. Formulas take floats or
arrays: with arrays that broadcast, one call evaluates a whole grid.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rooflinekit.evidence import Kind

Real: TypeAlias = float | NDArray[np.float64]
"""A float, or an array of floats that broadcasts with the others."""


@dataclass(frozen=True, slots=True)
class Work:
    """One labelled piece of a pass: what it moves and what it computes.

    Attributes
    ----------
    label
        Name shown in a breakdown.
    kind
        Family with a ceiling of its own: ``linear``, ``attention``, ``experts``, ``elementwise``,
        ``collective``.
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

    @property
    def bytes(self) -> Real:
        """All bytes moved (B)."""
        return self.weight_bytes + self.kv_bytes + self.activation_bytes


@dataclass(frozen=True, slots=True)
class Pass:
    """A forward pass and how many times a round runs it, one after the other."""

    works: tuple[Work, ...]
    repeats: Real = 1.0
    label: str = ""


@dataclass(frozen=True, slots=True)
class Staircase:
    """Measured cost of a matrix product in reads of its weights, by rows; replaces knee, tile and passes.

    ``reads[i]`` is T(rows[i]) over the time to read the bytes once at the bandwidth reached. Between two
    rows of one regime the cost is interpolated; ``breaks`` holds the first row of every later regime, and
    nothing is interpolated across it (the cost before a break is that of the last measured row). Beyond
    the last row the last slope goes on, and never faster than in proportion to the rows.
    """

    rows: tuple[float, ...]
    reads: tuple[float, ...]
    breaks: tuple[float, ...] = ()

    def at(self, rows: Real) -> Real:
        """Cost in reads at this number of rows (floats or arrays)."""
        wanted = np.asarray(rows, dtype=float)
        grid, value = np.asarray(self.rows), np.asarray(self.reads)
        result = np.interp(wanted, grid, value)
        for start in self.breaks:
            before = int(np.searchsorted(grid, start, side="left")) - 1
            if before >= 0:
                gap = (wanted > grid[before]) & (wanted < start)
                result = np.where(gap, value[before], result)
        beyond = np.maximum(wanted - grid[-1], 0.0)
        result = result + np.minimum(self._last_slope(), value[-1] / grid[-1]) * beyond
        return result if result.ndim else float(result)

    def _last_slope(self) -> float:
        """Reads per row after the last measured one; proportional where a break or a lone row hides it."""
        if len(self.rows) < 2 or self.rows[-1] in self.breaks:
            return self.reads[-1] / self.rows[-1]
        return max(0.0, (self.reads[-1] - self.reads[-2]) / (self.rows[-1] - self.rows[-2]))


@dataclass(frozen=True, slots=True)
class Ceiling:
    """What a kind of work reaches of bandwidth and peak, and what each kernel costs besides.

    ``t = kernels t0 + ((passes bytes / (e_b BW))^p + (flops(pad(rows, tile)) / (e_c P))^p)^(1/p)``

    The defaults are the plain roofline: no overhead, both efficiencies 1, p infinite.

    Attributes
    ----------
    t0_s
        Fixed time of one kernel (s).
    memory_efficiency, compute_efficiency
        Fractions e_b of the bandwidth and e_c of the dense peak.
    p
        Sharpness of the knee: 1 adds the two terms, infinity takes the larger.
    tile
        Rows are rounded up to a multiple of this for the FLOPs.
    rows_per_pass
        Rows one read of the weights serves; more rows read them again. Infinity: one read serves all.
    staircase
        Measured costs that replace passes, knee and tile where they were measured.
    """

    t0_s: Real = 0.0
    memory_efficiency: Real = 1.0
    compute_efficiency: Real = 1.0
    p: float = math.inf
    tile: float = 1.0
    rows_per_pass: float = math.inf
    staircase: Staircase | None = None


ROOFLINE = Ceiling()
ANY = "*"


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
    step_host_s, token_host_s
        Host time of a step and of each sampled token (s), outside the device.
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
    evidence: Mapping[str, Kind] = field(default_factory=dict)

    def ceiling(self, kind: str, dtype: str) -> Ceiling:
        """Return the ceiling for a kind of work and a compute format."""
        known = self.ceilings
        return known.get((kind, dtype)) or known.get((kind, ANY)) or ROOFLINE


def padded(rows: Real, tile: float) -> Real:
    """Round rows up to a multiple of the tile.

    >>> padded(17.0, 16.0)
    32.0
    """
    if tile == 1.0:
        return rows
    if isinstance(rows, np.ndarray):
        return np.ceil(rows / tile) * tile
    return math.ceil(rows / tile) * tile


def p_norm(a: Real, b: Real, p: float) -> Real:
    """``(a^p + b^p)^(1/p)`` for non-negative terms, without overflow; the larger of the two at p = inf.

    >>> p_norm(3.0, 4.0, 2.0), p_norm(3.0, 4.0, math.inf), p_norm(0.0, 0.0, 1.5)
    (5.0, 4.0, 0.0)
    """
    if not isinstance(a, np.ndarray) and not isinstance(b, np.ndarray):
        high, low = (a, b) if a >= b else (b, a)
        if math.isinf(p) or not high:
            return float(high)
        return float(high * (1.0 + (low / high) ** p) ** (1.0 / p))
    larger, smaller = np.maximum(a, b), np.minimum(a, b)
    if math.isinf(p):
        return larger
    ratio = np.divide(smaller, larger, out=np.zeros_like(larger, dtype=float), where=larger > 0)
    return np.asarray(larger * (1.0 + ratio**p) ** (1.0 / p))


def work_terms_s(work: Work, machine: Machine) -> tuple[Real, Real, Real]:
    """Split the time of a piece of work into its terms.

    Returns
    -------
    overhead_s, memory_s, compute_s
        Fixed kernel time; bytes over the bandwidth reached (link for a collective); padded FLOPs over the
        rate reached, 0 where the device publishes no peak. Seconds. With a staircase the product's whole
        cost stands in the memory term up to one read and in the compute term beyond it.
    """
    ceiling = machine.ceiling(work.kind, work.dtype)
    overhead = work.kernels * ceiling.t0_s
    if work.kind == "collective":
        link = machine.link_bytes_per_s
        return overhead, work.bytes / (ceiling.memory_efficiency * link), 0.0
    memory = work.bytes / (ceiling.memory_efficiency * machine.bandwidth_bytes_per_s)
    if ceiling.staircase is not None and work.kind in ("linear", "experts"):
        reads = ceiling.staircase.at(work.rows)
        compute = memory * np.where(reads > 1.0, reads, 0.0)
        peak = machine.peak_flop_per_s.get(work.dtype)
        if peak is not None:
            # Beyond the measured rows the peak is the better guide.
            far = np.asarray(work.rows) > ceiling.staircase.rows[-1]
            compute = np.where(far, np.maximum(compute, work.flops / peak), compute)
        return overhead, memory * np.minimum(reads, 1.0), compute
    if ceiling.rows_per_pass != math.inf:
        memory = memory * padded(work.rows, ceiling.rows_per_pass) / ceiling.rows_per_pass
    peak = machine.peak_flop_per_s.get(work.dtype)
    if peak is None:
        return overhead, memory, 0.0
    flops = work.flops
    if ceiling.tile != 1.0:
        flops = flops * padded(work.rows, ceiling.tile) / work.rows
    return overhead, memory, flops / (ceiling.compute_efficiency * peak)


def work_time_s(work: Work, machine: Machine) -> Real:
    """Time of one piece of work (s): fixed kernel time plus the p-norm of memory and compute time.

    Roofline: Williams, Waterman and Patterson 2009 (doi 10.1145/1498765.1498785); t0, p and tile as in
    ``docs/theory.md``.

    Examples
    --------
    >>> gemv = Work("gemv", "linear", "bf16", rows=1.0, flops=2e9, weight_bytes=2e9)
    >>> work_time_s(gemv, Machine("m", 2e12, {"bf16": 4e14}))
    0.001
    """
    overhead, memory, compute = work_terms_s(work, machine)
    ceiling = machine.ceiling(work.kind, work.dtype)
    sharpness = math.inf if ceiling.staircase is not None else ceiling.p
    return overhead + p_norm(memory, compute, sharpness)


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


def bound(work: Work, machine: Machine) -> str:
    """Name the term that takes the most of a scalar piece of work.

    Returns ``memory``, ``compute``, ``overhead`` or ``link``.
    """
    overhead, memory, compute = (float(term) for term in work_terms_s(work, machine))
    rest = "link" if work.kind == "collective" else ("memory" if memory >= compute else "compute")
    return "overhead" if overhead > max(memory, compute) else rest
