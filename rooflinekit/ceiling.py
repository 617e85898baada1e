"""What a kind of work reaches of a machine: the numbers a calibration fits, and the arithmetic they need."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Real: TypeAlias = float | NDArray[np.float64]
"""A float, or an array of floats that broadcasts with the others."""


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
class RowFactors:
    """Measured time over the formula's, by rows: the steps of kernel choice that no formula follows.

    Interpolated over the logarithm of the rows; beyond the ends the outer values go on.

    >>> RowFactors((1.0, 64.0, 65.0), (1.0, 1.0, 1.2)).at(65.0)
    1.2
    """

    rows: tuple[float, ...]
    factors: tuple[float, ...]

    def at(self, rows: Real) -> Real:
        """Factor at this number of rows (floats or arrays)."""
        found = np.interp(np.log(np.asarray(rows, dtype=float)), np.log(self.rows), self.factors)
        return found if np.ndim(found) else float(found)


KNOWN = 1e-3
"""Columns that differ by less than this share are the same."""


@dataclass(frozen=True, slots=True)
class ColumnFactors:
    """Measured time over the formula's by the columns of a product, for each band of rows.

    How many columns there are decides how evenly a kernel's tiles fall on the units, and which kernel is
    chosen.

    Attributes
    ----------
    last_rows
        Last row of every band but the last, which has no end.
    columns
        Columns that were measured (outputs of a linear layer), rising.
    factors
        A factor for each column, by band.
    between
        Whether factors hold between measured columns too (interpolated over the logarithm, the outer values
        going on); if not, only at them, and elsewhere the factor is 1.

    >>> ColumnFactors((64.0,), (1024.0, 4096.0), ((1.0, 1.2), (1.1, 1.3))).at(1.0, 2048.0)
    1.1
    """

    last_rows: tuple[float, ...]
    columns: tuple[float, ...]
    factors: tuple[tuple[float, ...], ...]
    between: bool = True

    def at(self, rows: Real, columns: Real) -> Real:
        """Factor at this number of rows and columns (floats or arrays)."""
        if not isinstance(rows, np.ndarray) and not isinstance(columns, np.ndarray):
            return self._one(bisect_left(self.last_rows, rows), columns)
        # Few different columns, many rows: each pair of band and columns is looked up once.
        counts, place = np.unique(columns, return_inverse=True)
        table = np.array([[self._one(i, float(n)) for n in counts] for i in range(len(self.factors))])
        band = np.searchsorted(self.last_rows, rows)
        return np.asarray(table[band, np.reshape(place, np.shape(columns))])

    def _one(self, band: int, columns: float) -> float:
        known, values, near = self.columns, self.factors[band], KNOWN * columns
        after = bisect_left(known, columns)
        if after < len(known) and known[after] - columns <= near:
            return values[after]
        if after and columns - known[after - 1] <= near:
            return values[after - 1]
        if not self.between:
            return 1.0
        if after in (0, len(known)):
            return values[min(after, len(known) - 1)]
        low, high = known[after - 1], known[after]
        share = math.log(columns / low) / math.log(high / low)
        return values[after - 1] + share * (values[after] - values[after - 1])


@dataclass(frozen=True, slots=True)
class Ceiling:
    """What a kind of work reaches of bandwidth and peak, and what each kernel costs besides.

    ``t = f(rows) h(rows, groups) (kernels (t0 + i inner + g groups) + (memory^p + compute^p)^(1/p))`` with
    ``memory = passes bytes (1 + u / groups) / (e_b BW)`` and
    ``compute = flops(pad(rows, tile)) (1 + v / groups) / (e_c P)``.

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
    inner_s, group_s
        Time per unit of the summed dimension, and per group (s); see :class:`~rooflinekit.work.Work`.
    memory_fill, compute_fill
        Groups u, v at which half of the bandwidth or the rate is reached.
    factors
        Correction f by rows; ``None``: 1.
    columns
        Correction h by rows and columns of a product; ``None``: 1.
    crowded
        Experts: factor on the time of a pass with more tokens than the layer has experts, where an engine's
        kernel takes a larger tile unless one was tuned for the shape.
    one_shot
        Collectives: every rank sends the whole message to every other one, instead of its share.
    other
        Another kernel for the same work; the faster of the two is taken.
    """

    t0_s: Real = 0.0
    memory_efficiency: Real = 1.0
    compute_efficiency: Real = 1.0
    p: float = math.inf
    tile: float = 1.0
    rows_per_pass: float = math.inf
    staircase: Staircase | None = None
    inner_s: float = 0.0
    group_s: float = 0.0
    memory_fill: float = 0.0
    compute_fill: float = 0.0
    factors: RowFactors | None = None
    columns: ColumnFactors | None = None
    crowded: float = 1.0
    one_shot: bool = False
    other: Ceiling | None = None


ROOFLINE = Ceiling()


FEW_ROWS = 16.0
"""Up to here products of matrices are bound by memory on every device we know."""
SCATTER = 1.05
"""Tables of medians may pass the roof by this much: the scatter of timings."""


def beats_roof(ceiling: Ceiling) -> str:
    """Say what of a ceiling is faster than the bandwidth or the peak it is a share of; empty: nothing.

    >>> beats_roof(Ceiling(memory_efficiency=0.9)), beats_roof(Ceiling(compute_efficiency=1.2))
    ('', 'compute_efficiency 1.2 is more than the whole peak')
    """
    memory, compute = float(np.max(ceiling.memory_efficiency)), float(np.max(ceiling.compute_efficiency))
    if memory > 1.0:
        return f"memory_efficiency {memory:g} is more than the whole bandwidth"
    if compute > 1.0:
        return f"compute_efficiency {compute:g} is more than the whole peak"
    least = 1.0
    if ceiling.staircase is not None:
        least = min(ceiling.staircase.reads)
    if ceiling.factors is not None:
        few = [f for n, f in zip(ceiling.factors.rows, ceiling.factors.factors, strict=True) if n <= FEW_ROWS]
        least = min(few, default=1.0)
    if ceiling.columns is not None:
        least *= min(ceiling.columns.factors[0], default=1.0)
    if least > 0.0 and memory / least > SCATTER:
        return f"a factor of {least:.3g} on memory_efficiency {memory:g} is more than the whole bandwidth"
    return beats_roof(ceiling.other) if ceiling.other is not None else ""


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
