"""Linear layers over rows: the best implementation at each number of rows, paired with one row."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from rooflinekit.measurement import Measurement
from rooflinekit.microbench.buffers import Rotation
from rooflinekit.microbench.contest import contest
from rooflinekit.microbench.correctness import TOLERANCE, linear_error, poison
from rooflinekit.microbench.device import Device, Timer
from rooflinekit.microbench.kernels import LinearKernel
from rooflinekit.microbench.probes.read import beside_case
from rooflinekit.microbench.session import Case, Session
from rooflinekit.microbench.shapes import linear_work
from rooflinekit.precision import precision


@dataclass(slots=True)
class Candidates:
    """Right implementations by rows: timers, errors, and a check that can be repeated."""

    timers: dict[tuple[int, str], Timer] = field(default_factory=dict)
    errors: dict[tuple[int, str], float] = field(default_factory=dict)
    checks: dict[tuple[int, str], Callable[[], float]] = field(default_factory=dict)
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
        return self.copies or device.copies(self.out * self.inner * precision(self.dtype).bytes_per_weight)

    def need_bytes(self, device: Device) -> float:
        """Memory of the sweep (B): weights, and again reordered on a CPU."""
        weights = self.out * self.inner * precision(self.dtype).bytes_per_weight * self._copies(device)
        return weights * (2 if device.kind == "cpu" else 1)

    def run(self, session: Session) -> Iterator[Measurement]:
        """Check, let implementations compete, measure the best of each number of rows in shared rounds."""
        shape = (self.out, self.inner)
        weights = session.rotation(shape, self.dtype, self._copies(session.device), self.inner**-0.5)
        found = self._candidates(session, weights)
        if not found.timers:
            return
        if self.kind == "linear":
            timer, nbytes = session.read_probe(weights)
            outcome = contest(session, found.timers, {"read": timer})
            probe = beside_case(session, self.name, self.dtype, nbytes, weights.nbytes)
            yield session.record(probe, outcome.series["read"])
        else:
            outcome = contest(session, found.timers)
        for rows, kernel in outcome.best.items():
            if found.checks[rows, kernel]() > TOLERANCE[self.dtype]:
                session.wrong.append(
                    f"{self.name}/rows={rows}: {kernel} was wrong after the timing; not recorded"
                )
                continue
            case = self._case(rows, kernel, outcome.medians[rows], found, weights.nbytes)
            yield session.record(
                case, outcome.winner(rows), outcome.ratio(rows) if self.kind == "linear" else ()
            )

    def _candidates(self, session: Session, weights: Rotation) -> Candidates:
        found = Candidates()
        kernels = session.linear_kernels(self.dtype)
        layouts = {k.layout: k.prepare for k in kernels}
        prepared = {name: [prepare(w) for w in weights.tensors] for name, prepare in layouts.items()}
        for rows in self.rows:
            x = session.filler.tensor((rows, self.inner), self.dtype)
            for kernel in (k for k in kernels if k.takes(rows)):
                ready = prepared[kernel.layout]
                error = self._error(session, kernel, x, ready[-1], weights.tensors[-1])
                if error > TOLERANCE[self.dtype]:
                    text = f"{kernel.name} was wrong (relative error {error:.2g}) and was dropped"
                    session.dropped.append(f"{self.name}/rows={rows}: {text}")
                    found.warnings.setdefault(rows, []).append(text)
                    continue
                found.errors[rows, kernel.name] = error
                found.checks[rows, kernel.name] = partial(
                    self._error, session, kernel, x, ready[0], weights.tensors[0]
                )
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
