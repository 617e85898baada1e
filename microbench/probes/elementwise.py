"""What stands between the matrices of a layer: norms, rotary embedding, gate, residuals, the write to the cache.

Small in bytes, but one kernel each where nothing fuses them; the operands are hot, as they are in a model.
An engine fuses most of it, so this is a number of the stack that was measured, here PyTorch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rooflinekit.measurement import Measurement
from rooflinekit.microbench.contest import contest
from rooflinekit.microbench.device import Device
from rooflinekit.microbench.session import Case, Session
from rooflinekit.microbench.shapes import Decoder, elementwise_work


@dataclass(frozen=True, slots=True)
class Tensors:
    """Activations of one layer: hidden state, heads, gate and up, rotary tables, a slice of the cache."""

    x: Any
    heads: Any
    gate_up: Any
    cos: Any
    sin: Any
    cache: Any


@dataclass(frozen=True, slots=True)
class ElementwiseSweep:
    """The elementwise part of one layer at several widths.

    Attributes
    ----------
    model, widths, dtype
        Dimensions, new tokens, number format.
    """

    model: Decoder
    widths: tuple[int, ...]
    dtype: str
    optional: bool = True

    @property
    def name(self) -> str:
        """Name in a plan and in case ids."""
        return f"elementwise/{self.model.name}/{self.dtype}"

    def need_bytes(self, device: Device) -> float:
        """Memory of the sweep (B): a few activations."""
        del device
        return 8.0 * max(self.widths) * (self.model.hidden + 3 * self.model.intermediate)

    def run(self, session: Session) -> Iterator[Measurement]:
        """Measure all widths in shared rounds."""
        timers = {(w, "torch ops"): session.device.timer(self._call(session, w), 1) for w in self.widths}
        outcome = contest(session, timers)
        for width, name in outcome.best.items():
            case = Case(
                name=f"{self.name}/width={width}",
                kind="elementwise",
                dtype=self.dtype,
                shape={"model": self.model.name, "width": width},
                work=elementwise_work(self.model, width, self.dtype),
                footprint_bytes=0.0,
                implementation=name,
            )
            yield session.record(case, outcome.winner(width), outcome.ratio(width))

    def _call(self, session: Session, width: int) -> Any:
        held = self._tensors(session, width)

        def call(_: int) -> object:
            return layer_glue(session.torch, held, self.model)

        return call

    def _tensors(self, session: Session, width: int) -> Tensors:
        model, make = self.model, session.filler.tensor
        heads = model.heads + 2 * model.kv_heads
        return Tensors(
            x=make((width, model.hidden), self.dtype),
            heads=make((width, heads * model.head_dim), self.dtype),
            gate_up=make((width, 2 * model.intermediate), self.dtype),
            cos=make((width, model.head_dim), self.dtype),
            sin=make((width, model.head_dim), self.dtype),
            cache=make((2, model.kv_heads, width, model.head_dim), self.dtype),
        )


def rotate(torch: Any, x: Any, cos: Any, sin: Any) -> Any:
    """Rotary embedding of heads (heads x rows x elements)."""
    low, high = x.chunk(2, -1)
    return x * cos + torch.cat((-high, low), -1) * sin


def norm(torch: Any, x: Any) -> Any:
    """Root-mean-square norm without a gain."""
    return torch.nn.functional.rms_norm(x, (x.shape[-1],))


def layer_glue(torch: Any, held: Tensors, model: Decoder) -> object:
    """Everything of a layer but its matrices and its attention, in the order of the model."""
    width = held.x.shape[0]
    x = norm(torch, held.x)
    heads = held.heads.view(width, -1, model.head_dim).transpose(0, 1)
    q, k, v = heads.split((model.heads, model.kv_heads, model.kv_heads))
    held.cache[0].copy_(rotate(torch, k, held.cos, held.sin))
    held.cache[1].copy_(v)
    query = rotate(torch, q, held.cos, held.sin).contiguous()
    merged = query.transpose(0, 1).reshape(width, -1)
    x = norm(torch, held.x + x)
    gate, up = held.gate_up.chunk(2, -1)
    inner = torch.nn.functional.silu(gate) * up
    return held.x + x, merged, inner
