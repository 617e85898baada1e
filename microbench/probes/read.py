"""Read-only bandwidth: the ceiling of a memory-bound call.

The reductions of PyTorch that compete here are a lower bound of what the memory gives: none uses
non-temporal loads, and a reduction's arithmetic and its last, serial part are in the time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from rooflinekit.measurement import Measurement
from rooflinekit.microbench.contest import contest
from rooflinekit.microbench.device import Device
from rooflinekit.microbench.session import Case, Session
from rooflinekit.work import Work


def read_work(nbytes: float, dtype: str) -> Work:
    """Work of reading so many bytes once."""
    return Work("read", "read", dtype, rows=1.0, flops=0.0, weight_bytes=nbytes)


def beside_case(session: Session, sweep: str, dtype: str, nbytes: float, footprint_bytes: float) -> Case:
    """Describe the read probe in the rounds of another sweep: that sweep's own denominator.

    A shared machine changes its bandwidth between sweeps (by a factor of two on one that was tried, with
    the placement of the guest on its host), so a time is to be compared with a read of the same moment.
    """
    return Case(
        name=f"read/{sweep}",
        kind="read",
        dtype=dtype,
        shape={"bytes": int(nbytes), "beside": sweep},
        work=read_work(nbytes, dtype),
        footprint_bytes=footprint_bytes,
        implementation=session.chosen_reader.name,
    )


@dataclass(frozen=True, slots=True)
class ReadSweep:
    """Reads buffers of one size.

    Attributes
    ----------
    nbytes
        Bytes of one buffer.
    """

    nbytes: int
    name: str = "read"
    optional: bool = False

    def need_bytes(self, device: Device) -> float:
        """Memory of the sweep (B)."""
        return float(self.nbytes * device.copies(self.nbytes))

    def run(self, session: Session) -> Iterator[Measurement]:
        """Let the reductions compete, then measure the best."""
        dtype = session.device.dtypes[0]
        copies = session.device.copies(self.nbytes)
        # fp32 buffers whatever the format: a read does not know what the bits mean.
        buffers = session.rotation((self.nbytes // 4,), "fp32", copies)
        timers = session.readers(buffers.tensors)
        if not timers:
            session.wrong.append(f"{self.name}: no reduction was right; not recorded")
            return
        outcome = contest(session, {(1, name): timer for name, timer in timers.items()})
        session.set_reader(outcome.best[1])
        case = Case(
            name=f"read/{math.floor(self.nbytes / 1e6)}MB",
            kind="read",
            dtype=dtype,
            shape={"bytes": self.nbytes},
            work=read_work(self.nbytes, dtype),
            footprint_bytes=buffers.nbytes,
            implementation=outcome.best[1],
            alternatives=outcome.medians[1],
        )
        yield session.record(case, outcome.winner(1))
