"""What one run of the suite shares between its sweeps, and how a series becomes a measurement."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from rooflinekit.errors import DeviceError
from rooflinekit.measurement import Measurement
from rooflinekit.microbench.buffers import Filler, Rotation, require_memory, torch_dtype
from rooflinekit.microbench.device import Device, Timer
from rooflinekit.microbench.kernels import (
    LinearKernel,
    ReadKernel,
    flat_words,
    linear_kernels,
    read_kernels,
    reads_right,
)
from rooflinekit.microbench.sampling import Limits, Series, doubts, run_rounds, trial
from rooflinekit.work import Work

PROBE_BYTES = 64e6
"""Bytes of one call of a read probe on a CPU (B)."""


class Sweep(Protocol):
    """One entry of a plan: cases that share buffers and are measured in the same rounds."""

    @property
    def name(self) -> str:
        """Name in a plan."""
        ...

    @property
    def optional(self) -> bool:
        """Whether a lack of memory leaves it out instead of refusing the plan."""
        ...

    def need_bytes(self, device: Device) -> float:
        """Memory of the sweep (B)."""
        ...

    def run(self, session: Session) -> Iterator[Measurement]:
        """Measure; yields a case as soon as it stands."""
        ...


@dataclass(slots=True)
class Session:
    """One run on one device.

    Attributes
    ----------
    device, limits, run_id, seed
        The device, when sweeps stop, and what names and orders the samples.
    attempt
        1 while disturbed sweeps are measured again.
    wrong
        Cases that no implementation got right.
    dropped
        Implementations that failed the correctness gate or are missing from this build.
    reader
        The quickest read kernel, once one was chosen.
    """

    device: Device
    limits: Limits
    run_id: str
    seed: int = 0
    attempt: int = 0
    wrong: list[str] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    reader: ReadKernel | None = None
    clock: Callable[[], float] = time.perf_counter
    rng: random.Random = field(init=False)
    filler: Filler = field(init=False)

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)  # noqa: S311 - an order of cases, not a secret
        self.filler = Filler(self.torch, self.device.torch_device, self.seed)

    @property
    def torch(self) -> Any:
        """The module."""
        return self.device.torch

    def linear_kernels(self, dtype: str) -> tuple[LinearKernel, ...]:
        """Return the implementations of a linear on this device."""
        return linear_kernels(self.torch, self.device.torch_device, torch_dtype(self.torch, dtype))

    def rotation(self, shape: tuple[int, ...], dtype: str, copies: int, scale: float = 1.0) -> Rotation:
        """Make rotated operands, after a look at the memory."""
        nbytes = copies * torch_dtype(self.torch, dtype).itemsize * 1.0
        for size in shape:
            nbytes *= size
        require_memory(nbytes, self.device.free_bytes(), f"{copies} x {'x'.join(map(str, shape))} {dtype}")
        return self.filler.rotation(shape, dtype, copies, scale)

    def sample(self, timers: Mapping[str, Timer], always: frozenset[str] = frozenset()) -> dict[str, Series]:
        """Measure all cases of a sweep in shuffled rounds."""
        return run_rounds(timers, self.limits, self.rng, always, self.clock)

    def trial(self, timers: Mapping[str, Timer]) -> dict[str, float]:
        """Return first medians (s) of competing implementations."""
        return trial(timers, self.limits, self.rng, self.clock)

    def read_probe(self, rotation: Rotation) -> tuple[Timer, float]:
        """Make a timer that reads this memory with the quickest reduction; returns the bytes of a call too.

        Pieces are large whatever the operands are: the fixed time of a reduction over 2 MB would read as a
        lower bandwidth.
        """
        pieces = rotation.pieces(PROBE_BYTES if self.device.kind == "cpu" else rotation.nbytes / 2)
        if self.reader is None:
            medians = self.trial(self.readers(pieces))
            if medians:
                self.set_reader(min(medians, key=lambda name: medians[name]))
        nbytes = float(pieces[0].numel() * pieces[0].element_size())
        return self._reader(self.chosen_reader, pieces), nbytes

    @property
    def chosen_reader(self) -> ReadKernel:
        """The read kernel, after the choice."""
        if self.reader is None:
            raise DeviceError(
                "no way of reading memory gave a right result; this build of torch cannot be used"
            )
        return self.reader

    def _reader(self, kernel: ReadKernel, flat: Sequence[Any]) -> Timer:
        return self.device.timer(lambda i: kernel.call(flat[i]), len(flat))

    def readers(self, tensors: Sequence[Any]) -> dict[str, Timer]:
        """Make timers of all reductions that read these buffers right."""
        flat = flat_words(tensors)
        right = [k for k in read_kernels(self.torch) if self._reads_right(k, flat[0])]
        return {k.name: self._reader(k, flat) for k in right}

    def set_reader(self, name: str) -> None:
        """Choose the read kernel of all further probes."""
        self.reader = next(k for k in read_kernels(self.torch) if k.name == name)

    def _reads_right(self, kernel: ReadKernel, tensor: Any) -> bool:
        right = reads_right(kernel, tensor, self.torch)
        if not right:
            self.dropped.append(f"read kernel {kernel.name!r} gave a wrong result and was dropped")
        return right

    def record(self, case: Case, one: Series, ratio: tuple[float, ...] = ()) -> Measurement:
        """Turn a series, and its paired ratio to one row, into a measurement."""
        samples = one.samples
        judged = all(s.clean is not None for s in samples)
        work = case.work
        return Measurement(
            id=f"{self.run_id}/{case.name}",
            kind=case.kind,
            dtype=case.dtype,
            shape=case.shape,
            samples_s=tuple(s.seconds for s in samples),
            weight_bytes=float(work.weight_bytes),
            kv_bytes=float(work.kv_bytes),
            activation_bytes=float(work.activation_bytes),
            flops=float(work.flops),
            kernels=float(work.kernels),
            footprint_bytes=case.footprint_bytes,
            implementation=case.implementation,
            alternatives={**case.alternatives, case.implementation: one.median_s},
            clean=tuple(bool(s.clean) for s in samples) if judged else (),
            ratio=ratio,
            error=case.error,
            warnings=(*case.warnings, *doubts(one, self.limits)),
            attempt=self.attempt,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """All of a measurement but its samples; fields as in :class:`~rooflinekit.measurement.Measurement`."""

    name: str
    kind: str
    dtype: str
    shape: Mapping[str, Any]
    work: Work
    footprint_bytes: float
    implementation: str
    alternatives: Mapping[str, float] = field(default_factory=dict)
    error: float = 0.0
    warnings: tuple[str, ...] = ()
