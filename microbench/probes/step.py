"""A whole decode or verify step of a small model: what predictions are validated against, never fitted on.

All matrices are distinct and are read in the order of the model, so that each is cold; norms, rotary,
activation, residuals and the write to the cache are simple torch operations.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from rooflinekit.measurement import Measurement
from rooflinekit.microbench.attention_kernels import AttentionCall, Mask, attention_kernels, make_mask
from rooflinekit.microbench.buffers import require_memory
from rooflinekit.microbench.correctness import TOLERANCE, attention_error, deviation, linear_error
from rooflinekit.microbench.device import Device
from rooflinekit.microbench.kernels import LinearKernel
from rooflinekit.microbench.session import Case, Session
from rooflinekit.microbench.shapes import Decoder, step_works, total
from rooflinekit.precision import precision

COMPOSITION = 5e-2
"""Deviation between widths above which a step is doubted: rounding of all layers, no more (ratio)."""


@dataclass(slots=True)
class _Layer:
    weights: dict[str, Any]
    cache: Any


@dataclass(slots=True)
class StepModel:
    """A decoder with random weights, ready to run a step over a filled cache.

    Attributes
    ----------
    session, model, dtype, context
        Device and memory, dimensions, number format, tokens in the cache.
    linear, attention
        Implementations used.
    error
        Largest deviation of a matrix or of attention from its reference.
    """

    session: Session
    model: Decoder
    dtype: str
    context: int
    widest: int
    linear: LinearKernel
    attention: AttentionCall
    error: float = 0.0
    layers: list[_Layer] = field(default_factory=list)
    head: Any = None

    def __post_init__(self) -> None:
        filler, model = self.session.filler, self.model
        for number in range(model.layers):
            weights = {
                name: self._weight(out, inner, check=number == 0)
                for name, (out, inner) in model.matrices.items()
            }
            shape = (2, 1, model.kv_heads, self.context + self.widest, model.head_dim)
            self.layers.append(_Layer(weights, filler.tensor(shape, self.dtype)))
        self.head = self._weight(*model.head, check=True)

    def _weight(self, out: int, inner: int, *, check: bool) -> Any:
        """Make a matrix and reorder it at once, so that only one exists twice at a time."""
        weight = self.session.filler.tensor((out, inner), self.dtype, inner**-0.5)
        ready = self.linear.prepare(weight)
        if check:
            x = self.session.filler.tensor((self.widest, inner), self.dtype)
            got = self.linear.call(x, ready)
            self.error = max(self.error, linear_error(self.session.torch, got, x, weight, self.session.seed))
        return ready

    def inputs(self, width: int) -> tuple[Any, Any, Any, Mask]:
        """Return embedded tokens, rotary tables and mask of a step of this width."""
        torch, model = self.session.torch, self.model
        x = self.session.filler.tensor((self.widest, model.hidden), self.dtype)[:width]
        steps = torch.arange(model.head_dim // 2, device=x.device) / (model.head_dim // 2)
        places = torch.arange(self.context, self.context + width, device=x.device)
        angles = torch.outer(places.float(), 500000.0**-steps).repeat(1, 2)
        mask = make_mask(torch, width, self.context + width, model.heads // model.kv_heads, x)
        return x, angles.cos().to(x.dtype), angles.sin().to(x.dtype), mask

    def step(self, x: Any, cos: Any, sin: Any, mask: Mask) -> Any:
        """Run all layers and the LM head; returns the logits (width x vocabulary)."""
        for layer in self.layers:
            x = x + self._attend(layer, self._norm(x), cos, sin, mask)
            gate, up = self.linear.call(self._norm(x), layer.weights["gate_up"]).chunk(2, -1)
            x = x + self.linear.call(self.session.torch.nn.functional.silu(gate) * up, layer.weights["down"])
        return self.linear.call(self._norm(x), self.head)

    def _norm(self, x: Any) -> Any:
        return self.session.torch.nn.functional.rms_norm(x, (x.shape[-1],))

    def _rotate(self, x: Any, cos: Any, sin: Any) -> Any:
        low, high = x.chunk(2, -1)
        return x * cos + self.session.torch.cat((-high, low), -1) * sin

    def _attend(self, layer: _Layer, x: Any, cos: Any, sin: Any, mask: Mask) -> Any:
        model, width = self.model, x.shape[0]
        heads = self.linear.call(x, layer.weights["qkv"]).view(width, -1, model.head_dim).transpose(0, 1)
        q, k, v = heads.split((model.heads, model.kv_heads, model.kv_heads))
        end = self.context + width
        layer.cache[0, 0, :, self.context : end] = self._rotate(k, cos, sin)
        layer.cache[1, 0, :, self.context : end] = v
        seen = layer.cache[:, :, :, :end]
        out = self.attention(self._rotate(q, cos, sin).contiguous()[None], seen[0], seen[1], mask)[0]
        return self.linear.call(out.transpose(0, 1).reshape(width, -1), layer.weights["o"])


@dataclass(frozen=True, slots=True)
class StepSweep:
    """Whole steps of one model at several widths; left out where memory is short.

    Attributes
    ----------
    model, context, widths, dtype
        Dimensions, tokens in the cache, new tokens of the step, number format.
    """

    model: Decoder
    context: int
    widths: tuple[int, ...]
    dtype: str
    optional: bool = True

    @property
    def name(self) -> str:
        """Name in a plan and in case ids."""
        return f"step/{self.model.name}/s{self.context}/{self.dtype}"

    def need_bytes(self, device: Device) -> float:
        """Memory of the sweep (B): the weights, the largest of them twice, and the cache."""
        del device
        width = precision(self.dtype).weight_bytes
        out, inner = self.model.head
        cache = (
            self.model.layers
            * 2
            * self.model.kv_heads
            * self.model.head_dim
            * (self.context + max(self.widths))
        )
        return (self.model.parameters + out * inner + cache) * width

    def run(self, session: Session) -> Iterator[Measurement]:
        """Build the model, check it, measure all widths in shared rounds."""
        require_memory(self.need_bytes(session.device), session.device.free_bytes(), self.name)
        kernels = session.linear_kernels(self.dtype)
        linear = next((k for k in kernels if k.name == "packed"), kernels[0])
        attention_name, attention = self._attention(session)
        built = StepModel(session, self.model, self.dtype, self.context, max(self.widths), linear, attention)
        error = max(built.error, self._attention_error(session, attention))
        if error > TOLERANCE[self.dtype]:
            session.wrong.append(f"{self.name}: {linear.name} with {attention_name} was wrong ({error:.2g})")
            return
        warnings = self._composition(built)
        timers = {}
        for width in self.widths:
            inputs = built.inputs(width)
            timers[str(width)] = session.device.timer(lambda _, inputs=inputs: built.step(*inputs), 1)
        base = str(min(self.widths))
        series = session.sample(timers, always=frozenset({base}))
        for width in self.widths:
            case = self._case(width, f"{linear.name}, {attention_name}", error, warnings)
            yield session.record(case, series[str(width)], series[base] if base == "1" else None)

    def _inputs(self, session: Session, width: int) -> tuple[Any, Any, Mask]:
        model, tensor = self.model, session.filler.tensor
        q = tensor((1, model.heads, width, model.head_dim), self.dtype)
        cache = tensor((2, 1, model.kv_heads, self.context + width, model.head_dim), self.dtype)
        return (
            q,
            cache,
            make_mask(session.torch, width, self.context + width, model.heads // model.kv_heads, q),
        )

    def _attention(self, session: Session) -> tuple[str, AttentionCall]:
        """Choose the attention that is quickest over all widths together."""
        totals: dict[str, float] = {}
        for width in self.widths:
            q, cache, mask = self._inputs(session, width)
            kernels = attention_kernels(session.torch)
            timers = {
                name: session.device.timer(lambda _, f=call, a=(q, cache[0], cache[1], mask): f(*a), 1)
                for name, call in kernels.items()
            }
            for name, seconds in session.trial(timers).items():
                totals[name] = totals.get(name, 0.0) + seconds
        best = min(totals, key=lambda name: totals[name])
        return best, attention_kernels(session.torch)[best]

    def _attention_error(self, session: Session, attention: AttentionCall) -> float:
        errors = []
        for width in self.widths:
            q, cache, mask = self._inputs(session, width)
            got = attention(q, cache[0], cache[1], mask)
            errors.append(attention_error(session.torch, got, q, cache[0], cache[1], session.seed))
        return max(errors)

    def _composition(self, built: StepModel) -> tuple[str, ...]:
        """Check that the first token's logits do not depend on the tokens verified after it."""
        x, cos, sin, mask = built.inputs(max(self.widths))
        wide = built.step(x, cos, sin, mask)[:1]
        _, _, _, alone = built.inputs(1)
        narrow = built.step(x[:1], cos[:1], sin[:1], alone)
        error = deviation(wide, narrow.double())
        return (
            ()
            if error <= COMPOSITION
            else (f"logits of the first token differ by {error:.2g} between widths",)
        )

    def _case(self, width: int, implementation: str, error: float, warnings: tuple[str, ...]) -> Case:
        works = step_works(self.model, self.context, width, self.dtype)
        summed = total(works)
        return Case(
            name=f"{self.name}/width={width}",
            kind="step",
            dtype=self.dtype,
            shape={"model": self.model.name, "batch": 1, "context": self.context, "width": width},
            work=summed,
            footprint_bytes=float(summed.weight_bytes) + float(summed.kv_bytes),
            implementation=implementation,
            error=error,
            warnings=warnings,
        )
