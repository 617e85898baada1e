"""Attention of a decode or verify: few query rows over a long cache."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from rooflinekit.measurement import Measurement
from rooflinekit.microbench.attention_kernels import AttentionCall, attention_kernels, make_mask
from rooflinekit.microbench.buffers import Rotation
from rooflinekit.microbench.contest import contest
from rooflinekit.microbench.correctness import TOLERANCE, attention_error, poison
from rooflinekit.microbench.device import Device, Timer
from rooflinekit.microbench.probes.read import beside_case
from rooflinekit.microbench.session import Case, Session
from rooflinekit.microbench.shapes import AttentionShape, attention_work
from rooflinekit.precision import precision

NEW_VALUE_SCALE = 8.0
"""Values of new positions are larger, so that a mask that lets one through shows in the output."""


@dataclass(frozen=True, slots=True)
class AttentionSweep:
    """One cache at several widths.

    Attributes
    ----------
    shape
        Batch, context and heads; the width is that of ``widths`` in turn.
    widths
        New tokens per sequence (count).
    dtype
        Number format of queries and cache.
    """

    shape: AttentionShape
    widths: tuple[int, ...]
    dtype: str
    optional: bool = False

    @property
    def name(self) -> str:
        """Name in a plan and in case ids."""
        s = self.shape
        return f"attention/b{s.batch}/s{s.context}/h{s.heads}-{s.kv_heads}x{s.head_dim}/{self.dtype}"

    def _cache_shape(self) -> tuple[int, ...]:
        s = self.shape
        return (2, s.batch, s.kv_heads, s.context + max(self.widths), s.head_dim)

    def _one_bytes(self) -> float:
        return math.prod(self._cache_shape()) * precision(self.dtype).bytes_per_kv

    def need_bytes(self, device: Device) -> float:
        """Memory of the sweep (B)."""
        return self._one_bytes() * device.copies(self._one_bytes())

    def run(self, session: Session) -> Iterator[Measurement]:
        """Check, let implementations compete, measure the best of each width in shared rounds."""
        cache = session.rotation(self._cache_shape(), self.dtype, session.device.copies(self._one_bytes()))
        for one in cache.tensors:
            one[1, ..., self.shape.context :, :] *= NEW_VALUE_SCALE
        timers, errors = self._candidates(session, cache)
        if not timers:
            return
        reading, nbytes = session.read_probe(cache)
        outcome = contest(session, timers, {"read": reading})
        probe = beside_case(session, self.name, self.dtype, nbytes, cache.nbytes)
        yield session.record(probe, outcome.series["read"])
        for width, kernel in outcome.best.items():
            case = self._case(width, kernel, outcome.medians[width], errors[width, kernel], cache.nbytes)
            yield session.record(case, outcome.winner(width), outcome.ratio(width))

    def _candidates(
        self, session: Session, cache: Rotation
    ) -> tuple[dict[tuple[int, str], Timer], dict[tuple[int, str], float]]:
        timers: dict[tuple[int, str], Timer] = {}
        errors: dict[tuple[int, str], float] = {}
        for width in self.widths:
            shape = replace(self.shape, width=width)
            q = session.filler.tensor((shape.batch, shape.heads, width, shape.head_dim), self.dtype)
            views = [one[:, :, :, : shape.length] for one in cache.tensors]
            mask = make_mask(session.torch, width, shape.length, shape.heads // shape.kv_heads, q)
            for name, call in attention_kernels(session.torch).items():
                error = _error(session, call, q, views[-1], mask)
                if error > TOLERANCE[self.dtype]:
                    session.dropped.append(
                        f"{self.name}/width={width}: {name} was wrong ({error:.2g}) and was dropped"
                    )
                    continue
                errors[width, name] = error
                timers[width, name] = _timer(session, call, q, views, mask)
            if not any(w == width for w, _ in timers):
                session.wrong.append(f"{self.name}/width={width}: no implementation was right; not recorded")
        return timers, errors

    def _case(
        self, width: int, kernel: str, alternatives: dict[str, float], error: float, footprint_bytes: float
    ) -> Case:
        shape = replace(self.shape, width=width)
        return Case(
            name=f"{self.name}/width={width}",
            kind="attention",
            dtype=self.dtype,
            shape=shape.as_dict(),
            work=attention_work(shape, self.dtype),
            footprint_bytes=footprint_bytes,
            implementation=kernel,
            alternatives=alternatives,
            error=error,
        )


def _error(session: Session, call: AttentionCall, q: Any, pair: Any, mask: Any) -> float:
    try:
        poison(session.torch, tuple(q.shape), q.dtype, session.device.torch_device)
        return attention_error(
            session.torch, call(q, pair[0], pair[1], mask), q, pair[0], pair[1], session.seed
        )
    except (RuntimeError, TypeError):
        # An implementation that this build of torch does not have.
        return math.inf


def _timer(session: Session, call: AttentionCall, q: Any, views: list[Any], mask: Any) -> Timer:
    keys, values = [one[0] for one in views], [one[1] for one in views]
    return session.device.timer(lambda i: call(q, keys[i], values[i], mask), len(views))
