"""Fitted ceilings as a file's content: what was fitted, on which measurements, and how well it held out.

A calibration never edits a datasheet profile; :func:`calibrated` lays it over the machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from rooflinekit.evidence import Kind
from rooflinekit.hardware import Hardware
from rooflinekit.work import STANDS_IN, Ceiling, Machine


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOut:
    """Error on measurements that the fit never saw (fractions, not percent)."""

    n: int
    median_abs_error: float
    p90_abs_error: float
    bias: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BandError:
    """Held-out errors of one band: rows from ``low`` to ``high``; of times, and of ratios where there are any."""

    low: int
    high: int
    time: HeldOut
    ratio: HeldOut | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """One fitted ceiling.

    Attributes
    ----------
    kind, dtype
        Work and format it serves.
    ceiling
        The numbers.
    form
        Name of the form chosen: ``p-norm`` or ``staircase``.
    n
        Cases fitted.
    standard_errors
        By parameter, relative (log space).
    follows_bandwidth
        Whether times moved with the bandwidth of the moment (shared machines); if not, the run's
        bandwidth counts for all cases.
    held_out, held_out_ratio
        Error of times, and of ratios T(rows)/T(1), on held-out cases; ``None`` where none were held out.
    bands
        The same by rows.
    kernel
        Kernel that was timed, as its table names it.
    reason
        Why the fit is faster than the profile's bandwidth or peak, where it is.
    """

    kind: str
    dtype: str
    ceiling: Ceiling
    form: str
    n: int
    standard_errors: Mapping[str, float] = field(default_factory=dict)
    follows_bandwidth: bool = True
    held_out: HeldOut | None = None
    held_out_ratio: HeldOut | None = None
    bands: tuple[BandError, ...] = ()
    kernel: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """A set of fits for one device and one engine stack.

    Attributes
    ----------
    name
        Kebab-case name.
    base
        Name of the hardware profile it lies over.
    stack
        Software whose kernels were timed (``pytorch`` for our own microbenchmark).
    fits
        The ceilings.
    run_ids, used
        Runs, and ids of the cases that were fitted.
    left_out
        Cases not used, by reason (counts).
    contended
        Whether the machine was shared while it was measured.
    profile
        A complete hardware profile where no shipped one knows the machine (``base`` is then ``local``).
    dtype
        Format of the measured linears.
    device
        What was measured, as the device names itself.
    warnings
        Kinds of work that could not be fitted, and other doubts.
    source
        Where public measurements came from; empty for own ones.
    fitted_share
        Share of shapes that a split by hash put into the fit (:mod:`rooflinekit.held_out`); then ``used`` is empty.
    """

    name: str
    base: str
    stack: str
    fits: tuple[Fit, ...]
    run_ids: tuple[str, ...]
    used: tuple[str, ...]
    left_out: Mapping[str, int] = field(default_factory=dict)
    contended: bool = False
    profile: Hardware | None = None
    dtype: str = "bf16"
    device: str = ""
    warnings: tuple[str, ...] = ()
    source: str = ""
    fitted_share: float | None = None

    def fit(self, kind: str, dtype: str) -> Fit | None:
        """Return the fit for a kind of work and a format, if there is one."""
        for one in self.fits:
            if one.kind == kind and one.dtype in (dtype, "*"):
                return one
        return self.fit(STANDS_IN[kind], dtype) if kind in STANDS_IN else None


def calibrated(machine: Machine, calibration: Calibration) -> Machine:
    """Lay fitted ceilings over a machine; kinds without a fit keep what they had."""
    ceilings = dict(machine.ceilings)
    ceilings.update({(fit.kind, fit.dtype): fit.ceiling for fit in calibration.fits})
    evidence: dict[str, Kind] = {**machine.evidence, "ceilings": "fitted"}
    if "collective latency" in evidence and calibration.fit("collective", "*") is not None:
        evidence["collective latency"] = "fitted"
    return replace(machine, name=f"{machine.name} + {calibration.name}", ceilings=ceilings, evidence=evidence)
