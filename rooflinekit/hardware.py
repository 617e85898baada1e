"""A device as its vendor prints it: cited numbers, nothing fitted, nothing derived.

:func:`machine` turns a :class:`Hardware` into the :class:`~rooflinekit.work.Machine` of the plain
roofline; a calibration (``rooflinekit.calibrate``) replaces its ceilings.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rooflinekit.errors import ProfileError
from rooflinekit.evidence import Cited, Kind
from rooflinekit.precision import WEIGHT_ONLY
from rooflinekit.work import ANY, Ceiling, Machine


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    """One device: dense peaks, one direction, one device, decimal units.

    Attributes
    ----------
    name
        Kebab-case id, the file name without ``.yaml``.
    title
        Full product name.
    vendor, architecture
        As the vendor writes them.
    capacity
        Device memory as the driver reports it (B).
    visible_capacity
        What an allocation can see (B), where known.
    bandwidth
        Memory bandwidth (B/s).
    peak
        Dense matrix rate by compute format (FLOP/s), fp32 accumulation; empty when none is published.
    l2
        Last-level cache of the device (B).
    link
        Link to its peers, per direction (B/s): NVLink where there is one, else PCIe.
    units
        Streaming multiprocessors or cores (count).
    tdp
        Board power (W).
    clock
        Boost clock of the matrix units (Hz).
    aliases
        Short names.
    notes
        What a reader of the numbers should know.
    """

    name: str
    title: str
    vendor: str
    architecture: str
    capacity: Cited
    bandwidth: Cited
    peak: Mapping[str, Cited]
    visible_capacity: Cited | None = None
    l2: Cited | None = None
    link: Cited | None = None
    units: Cited | None = None
    tdp: Cited | None = None
    clock: Cited | None = None
    aliases: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default=())

    @property
    def usable_bytes(self) -> float:
        """Memory a program can allocate (B): visible where known, else reported."""
        return (self.visible_capacity or self.capacity).value

    def ridge_flop_per_byte(self, dtype: str) -> float:
        """Arithmetic intensity at which the roof turns (FLOP/B): dense peak over bandwidth."""
        return self.peak[dtype].value / self.bandwidth.value

    def ridge_tokens(self, dtype: str, weight_bytes: float) -> float:
        """Rows at which streaming the weights stops hiding the FLOPs: ``P w / (2 BW)``.

        Parameters
        ----------
        dtype
            Compute format (key of ``peak``).
        weight_bytes
            Bytes of one weight.
        """
        return self.ridge_flop_per_byte(dtype) * weight_bytes / 2


# Latency of one all-reduce and its growth per further peer, until a calibration measures them.
# NVLink: one-shot kernels take 4.5 / 4.8 / 7.8 us for 32 KB on 2 / 4 / 8 H100 (SGLang, as read in an
# issue excerpt); a0 = 3.5 us and a1 = 0.6 us reproduce that within 1 us.
COLLECTIVE_T0_S = 3.5e-6
COLLECTIVE_T0_PER_PEER_S = 0.6e-6
COLLECTIVE_REF = "one-shot all-reduce of 32 KB on 2/4/8 H100: 4.5/4.8/7.8 us (SGLang issue excerpt)"


def require_peak(hardware: Hardware, compute: str) -> None:
    """Refuse a format the device cannot compute in, naming the weight-only alternative.

    Raises
    ------
    ProfileError
        The device publishes peaks, but none for this format.
    """
    if hardware.peak and compute not in hardware.peak:
        known = ", ".join(hardware.peak)
        other = {"fp4": "nvfp4"}.get(compute, compute)
        hint = f"; store the weights in 8 or 4 bits and compute in bf16: --dtype {WEIGHT_ONLY[other]}"
        raise ProfileError(
            f"{hardware.name} has no {compute} matrix rate (it has {known})"
            + (hint if other in WEIGHT_ONLY else "; choose one of those formats")
        )


def machine(hardware: Hardware, tp: int = 1) -> Machine:
    """Build the datasheet machine: plain roofline, plus assumed latencies for collectives when tp > 1.

    Parameters
    ----------
    hardware
        The device.
    tp
        Tensor-parallel ranks; the machine is one of them.
    """
    evidence: dict[str, Kind] = {"bandwidth": hardware.bandwidth.kind}
    evidence.update({f"peak {dtype}": cited.kind for dtype, cited in hardware.peak.items()})
    ceilings: dict[tuple[str, str], Ceiling] = {}
    if tp > 1:
        if hardware.link is None:
            raise ProfileError(
                f"{hardware.name} has no link bandwidth, so --tp {tp} cannot be timed; use --tp 1"
            )
        t0 = COLLECTIVE_T0_S + COLLECTIVE_T0_PER_PEER_S * (tp - 1)
        ceilings["collective", ANY] = Ceiling(t0_s=t0)
        evidence["link"] = hardware.link.kind
        evidence["collective latency"] = "assumed"
    return Machine(
        name=hardware.name,
        bandwidth_bytes_per_s=hardware.bandwidth.value,
        peak_flop_per_s={dtype: cited.value for dtype, cited in hardware.peak.items()},
        link_bytes_per_s=hardware.link.value if hardware.link else 0.0,
        ceilings=ceilings,
        evidence=evidence,
    )
