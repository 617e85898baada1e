"""Linear layers over rows: the best implementation at each number of rows, paired with one row."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from rooflinekit.measurement import Measurement
from rooflinekit.microbench.buffers import Rotation
from rooflinekit.microbench.correctness import TOLERANCE, linear_error, poison
from rooflinekit.microbench.device import Device, Timer
from rooflinekit.microbench.kernels import LinearKernel
from rooflinekit.microbench.probes.read import read_work
from rooflinekit.microbench.session import Case, Session
from rooflinekit.microbench.shapes import linear_work
from rooflinekit.precision import precision

READ = "read"


@dataclass(slots=True)
class Candidates:
    """Right implementations by rows: their timers and errors."""

    timers: dict[tuple[int, str], Timer] = field(default_factory=dict)
    errors: dict[tuple[int, str], float] = field(default_factory=dict)
    warnings: dict[int, list[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LinearSweep:
    """One matrix at several numbers of rows.

    Attributes
    ----------
    out, inner, rows, dtype
        Shape of the matrix (out x inner), rows of x, number format.
    kind
        ``linear``, or ``compute`` and ``launch``, which are linears of a special size.
    copies
        Copies of the weights; ``None`` for as many as make each call cold.
    label
        What the matrix is in its model.
    """

    out: int
    inner: int
    rows: tuple[int, ...]
    dtype: str
    kind: str = "linear"
    copies: int | None = None
    label: str = ""
    optional: bool = False

    @property
    def name(self) -> str:
        """Name in a plan and in case ids."""
        size = str(self.out) if self.kind == "compute" else f"{self.out}x{self.inner}"
        return f"{self.kind}/{size}/{self.dtype}"

    def _copies(self, device: Device) -> int:
        return self.copies or device.copies(self.out * self.inner * precision(self.dtype).weight_bytes)

    def need_bytes(self, device: Device) -> float:
        """Memory of the sweep (B): weights, and again reordered on a CPU."""
        weights = self.out * self.inner * precision(self.dtype).weight_bytes * self._copies(device)
        return weights * (2 if device.kind == "cpu" else 1)

    def run(self, session: Session) -> Iterator[Measurement]:
        """Check, let implementations compete, measure the best of each number of rows in shared rounds."""
        shape = (self.out, self.inner)
        weights = session.rotation(shape, self.dtype, self._copies(session.device), self.inner**-0.5)
        found = self._candidates(session, weights)
        medians = session.trial({f"{r}/{k}": timer for (r, k), timer in found.timers.items()})
        best: dict[int, str] = {}
        for rows, kernel in found.timers:
            if rows not in best or medians[f"{rows}/{kernel}"] < medians[f"{rows}/{best[rows]}"]:
                best[rows] = kernel
        timers = {str(r): found.timers[r, k] for r, k in best.items()}
        if not timers:
            return
        if self.kind == "linear":
            timers[READ] = session.read_timer(weights.tensors)
        base = str(min(best))
        series = session.sample(timers, always=frozenset({base, READ}))
        if self.kind == "linear":
            yield session.record(self._read_case(session, weights), series[READ])
        for rows, kernel in best.items():
            alternatives = {k: medians[f"{r}/{k}"] for r, k in found.timers if r == rows}
            case = self._case(rows, kernel, alternatives, found, weights.nbytes)
            paired = series[base] if base == "1" and self.kind == "linear" else None
            yield session.record(case, series[str(rows)], paired)

    def _candidates(self, session: Session, weights: Rotation) -> Candidates:
        found = Candidates()
        kernels = session.linear_kernels(self.dtype)
        prepared = {k.name: [k.prepare(w) for w in weights.tensors] for k in kernels}
        for rows in self.rows:
            x = session.filler.tensor((rows, self.inner), self.dtype)
            able = [k for k in kernels if k.most_rows >= rows]
            for kernel in able:
                ready = prepared[kernel.name]
                error = self._error(session, kernel, x, ready[-1], weights.tensors[-1])
                if error > TOLERANCE[self.dtype]:
                    text = f"{kernel.name} was wrong (relative error {error:.2g}) and was dropped"
                    session.dropped.append(f"{self.name}/rows={rows}: {text}")
                    found.warnings.setdefault(rows, []).append(text)
                    continue
                found.errors[rows, kernel.name] = error
                found.timers[rows, kernel.name] = self._timer(session, kernel, x, ready)
            if not any(r == rows for r, _ in found.timers):
                session.wrong.append(f"{self.name}/rows={rows}: no implementation was right; not recorded")
        return found

    @staticmethod
    def _timer(session: Session, kernel: LinearKernel, x: Any, ready: list[Any]) -> Timer:
        call = kernel.call
        return session.device.timer(lambda i: call(x, ready[i]), len(ready))

    def _error(self, session: Session, kernel: LinearKernel, x: Any, ready: Any, weight: Any) -> float:
        torch = session.torch
        try:
            poison(torch, (x.shape[0], self.out), x.dtype, session.device.torch_device)
            return linear_error(torch, kernel.call(x, ready), x, weight, session.seed)
        except RuntimeError:
            # A kernel that this build or device does not have for the shape.
            return math.inf

    def _case(
        self,
        rows: int,
        kernel: str,
        alternatives: dict[str, float],
        found: Candidates,
        footprint_bytes: float,
    ) -> Case:
        return Case(
            name=f"{self.name}/rows={rows}",
            kind=self.kind,
            dtype=self.dtype,
            shape={"rows": rows, "out": self.out, "inner": self.inner},
            work=linear_work(rows, self.out, self.inner, self.dtype),
            footprint_bytes=footprint_bytes,
            implementation=kernel,
            alternatives=alternatives,
            error=found.errors[rows, kernel],
            warnings=tuple(found.warnings.get(rows, ())),
        )

    def _read_case(self, session: Session, weights: Rotation) -> Case:
        """Describe the read probe over the same buffers in the same rounds: the sweep's own denominator."""
        nbytes = weights.nbytes / len(weights)
        reader = session.reader
        return Case(
            name=f"read/{self.name}",
            kind="read",
            dtype=self.dtype,
            shape={"bytes": int(nbytes), "beside": self.name},
            work=read_work(nbytes, self.dtype),
            footprint_bytes=weights.nbytes,
            implementation=reader.name if reader else "",
        )
