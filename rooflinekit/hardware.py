"""A device as its vendor prints it: cited numbers, nothing fitted, nothing derived.

:func:`machine` turns a :class:`Hardware` into the :class:`~rooflinekit.work.Machine` of the plain
roofline; a calibration (``rooflinekit.calibration``) replaces its ceilings.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rooflinekit.errors import ProfileError
from rooflinekit.evidence import Cited, Kind
from rooflinekit.precision import FORMATS, WEIGHT_ONLY
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
        Dense matrix rate by compute format (FLOP/s), fp32 accumulation unless the key ends in ``-acc16``;
        empty when none is published.
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
    driver_names
        What the driver calls it, for ``rooflinekit hardware detect``.
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
    driver_names: tuple[str, ...] = ()
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

    def ridge_tokens_by_format(self) -> dict[str, float]:
        """Ridge in tokens by storage of weights and activations (``w4a16`` ...), where the peak exists.

        Scales of quantised weights are not counted.

        >>> from rooflinekit.profiles.library import find_hardware
        >>> {name: round(rows) for name, rows in find_hardware("rtx-4090").ridge_tokens_by_format().items()}
        {'w16a16': 164, 'w8a8': 164, 'w8a16': 82, 'w4a16': 41}
        """
        found: dict[str, float] = {}
        for name, (formats, weight_bytes) in STORAGE.items():
            dtype = next((dtype for dtype in formats if dtype in self.peak), None)
            if dtype is not None:
                found[name] = self.ridge_tokens(dtype, weight_bytes)
        return found

    def doubtful(self) -> list[str]:
        """Names of the numbers that are marked as of low confidence."""
        named = {name: getattr(self, name) for name in CITED}
        named |= {f"peak.{dtype}": cited for dtype, cited in self.peak.items()}
        return [name for name, cited in named.items() if cited is not None and cited.confidence == "low"]


CITED = ("capacity", "visible_capacity", "bandwidth", "l2", "link", "units", "tdp", "clock")
"""Fields of a device that are cited numbers, besides the peaks."""

STORAGE: dict[str, tuple[tuple[str, ...], float]] = {
    "w16a16": (("bf16", "fp16"), 2.0),
    "w8a8": (("fp8", "int8"), 1.0),
    "w8a16": (("bf16", "fp16"), 1.0),
    "w4a16": (("bf16", "fp16"), 0.5),
    "w4a4": (("fp4",), 0.5),
}
"""Storage of weights and activations: formats it may compute in, first choice first; bytes of a weight."""


# Latency of one all-reduce and its growth per further peer, until a calibration measures them.
# NVLink: one-shot kernels take 4.5 / 4.8 / 7.8 us for 32 KB on 2 / 4 / 8 H100 (SGLang, as read in an
# issue excerpt); a0 = 3.5 us and a1 = 0.6 us reproduce that within 1 us.
COLLECTIVE_T0_S = 3.5e-6
COLLECTIVE_T0_PER_PEER_S = 0.6e-6


def require_peak(hardware: Hardware, compute: str) -> None:
    """Refuse a format the device cannot compute in, naming the weight-only alternative.

    Raises
    ------
    ProfileError
        The device publishes peaks, but none for this format.
    """
    if not hardware.peak or compute in hardware.peak:
        return
    known = ", ".join(dtype for dtype in hardware.peak if "-acc" not in dtype)
    other = WEIGHT_ONLY.get({"fp4": "nvfp4"}.get(compute, compute))
    if other is not None and "bf16" in hardware.peak:
        hint = f"store the weights in 8 or 4 bits and compute in bf16: --dtype {other}"
    else:
        hint = "choose --dtype " + " or ".join(name for name in FORMATS if name in hardware.peak)
    raise ProfileError(f"{hardware.name} has no {compute} matrix rate (it has {known}); {hint}")


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
    # No number format computes in fp64 or accumulates in fp16: those rates are for reading.
    peak = {dtype: cited for dtype, cited in hardware.peak.items() if dtype != "fp64" and "-acc" not in dtype}
    evidence.update({f"peak {dtype}": cited.kind for dtype, cited in peak.items()})
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
        peak_flop_per_s={dtype: cited.value for dtype, cited in peak.items()},
        link_bytes_per_s=hardware.link.value if hardware.link else 0.0,
        ceilings=ceilings,
        evidence=evidence,
    )
