"""A whole decode or verify step of a small model: what predictions are validated against, never fitted on.

All matrices are distinct and are read in the order of the model, so that each is cold; norms, rotary,
activation, residuals and the write to the cache are simple torch operations.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from rooflinekit.measurement import Measurement
from rooflinekit.microbench.attention_kernels import AttentionCall, Mask, attention_kernels, make_mask
from rooflinekit.microbench.buffers import require_memory
from rooflinekit.microbench.contest import contest
from rooflinekit.microbench.correctness import TOLERANCE, attention_error, deviation, linear_error
from rooflinekit.microbench.device import Device
from rooflinekit.microbench.kernels import LinearKernel
from rooflinekit.microbench.probes.elementwise import norm, rotate
from rooflinekit.microbench.probes.read import beside_case
from rooflinekit.microbench.session import Case, Session
from rooflinekit.microbench.shapes import Decoder, step_works, total
from rooflinekit.precision import precision

COMPOSITION = 5e-2
"""Deviation between widths above which a step is doubted: rounding of all layers, no more (ratio)."""
READ_BYTES = 128_000_000


@dataclass(frozen=True, slots=True)
class Kernels:
    """Implementations a step uses at one width."""

    linear: LinearKernel
    attention: AttentionCall


@dataclass(frozen=True, slots=True)
class Inputs:
    """Embedded tokens, rotary tables and mask of a step."""

    x: Any
    cos: Any
    sin: Any
    mask: Mask


@dataclass(frozen=True, slots=True)
class _Layer:
    weights: dict[str, Any]
    cache: Any


@dataclass(slots=True)
class StepModel:
    """A decoder with random weights, ready to run a step over a filled cache.

    Attributes
    ----------
    session, model, dtype, context, widest
        Device, dimensions, number format, tokens in the cache, most new tokens.
    kernel
        Decides the layout of the weights and is checked on them.
    error
        Largest deviation of a matrix from its reference.
    """

    session: Session
    model: Decoder
    dtype: str
    context: int
    widest: int
    kernel: LinearKernel
    error: float = 0.0
    layers: list[_Layer] = field(default_factory=list)
    head: Any = None
    _scratch: dict[tuple[int, int], Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        filler, model = self.session.filler, self.model
        shape = (2, 1, model.kv_heads, self.context + self.widest, model.head_dim)
        for number in range(model.layers):
            weights = {name: self._weight(*size, check=number == 0) for name, size in model.matrices.items()}
            self.layers.append(_Layer(weights, filler.tensor(shape, self.dtype)))
        self.head = self._weight(*model.head, check=True)
        self._scratch = {}

    def _weight(self, out: int, inner: int, *, check: bool) -> Any:
        """Make a matrix and reorder it at once, so that no more than one exists twice."""
        old = self._scratch.get((out, inner))
        weight = self.session.filler.tensor((out, inner), self.dtype, inner**-0.5, into=old)
        if self.kernel.layout != "plain":
            self._scratch[out, inner] = weight
        ready = self.kernel.prepare(weight)
        if check:
            x = self.session.filler.tensor((self.widest, inner), self.dtype)
            got = self.kernel.call(x, ready)
            self.error = max(self.error, linear_error(self.session.torch, got, x, weight, self.session.seed))
        return ready

    def inputs(self, width: int) -> Inputs:
        """Return the inputs of a step of this width; the tokens of a narrow one begin a wide one."""
        torch, model = self.session.torch, self.model
        generator = torch.Generator().manual_seed(self.session.seed)
        like = self.layers[0].cache
        x = torch.randn(self.widest, model.hidden, generator=generator)[:width].to(like.device, like.dtype)
        steps = torch.arange(model.head_dim // 2, device=x.device) / (model.head_dim // 2)
        places = torch.arange(self.context, self.context + width, device=x.device)
        angles = torch.outer(places.float(), 500000.0**-steps).repeat(1, 2)
        mask = make_mask(torch, width, self.context + width, model.heads // model.kv_heads, x)
        return Inputs(x, angles.cos().to(x.dtype), angles.sin().to(x.dtype), mask)

    def step(self, inputs: Inputs, kernels: Kernels) -> Any:
        """Run all layers and the LM head; returns the logits (width x vocabulary)."""
        x, linear = inputs.x, kernels.linear.call
        silu = self.session.torch.nn.functional.silu
        for layer in self.layers:
            x = x + self._attend(layer, self._norm(x), inputs, kernels)
            gate, up = linear(self._norm(x), layer.weights["gate_up"]).chunk(2, -1)
            x = x + linear(silu(gate) * up, layer.weights["down"])
        return linear(self._norm(x), self.head)

    def _norm(self, x: Any) -> Any:
        return norm(self.session.torch, x)

    def _rotate(self, x: Any, inputs: Inputs) -> Any:
        return rotate(self.session.torch, x, inputs.cos, inputs.sin)

    def _attend(self, layer: _Layer, x: Any, inputs: Inputs, kernels: Kernels) -> Any:
        model, width = self.model, x.shape[0]
        linear = kernels.linear.call
        heads = linear(x, layer.weights["qkv"]).view(width, -1, model.head_dim).transpose(0, 1)
        q, k, v = heads.split((model.heads, model.kv_heads, model.kv_heads))
        end = self.context + width
        layer.cache[0, 0, :, self.context : end] = self._rotate(k, inputs)
        layer.cache[1, 0, :, self.context : end] = v
        seen = layer.cache[:, :, :, :end]
        query = self._rotate(q, inputs).contiguous()[None]
        out = kernels.attention(query, seen[0], seen[1], inputs.mask)[0]
        return linear(out.transpose(0, 1).reshape(width, -1), layer.weights["o"])


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
        """Memory of the sweep (B): the weights, one of each shape twice, and the cache."""
        del device
        twice = sum(out * inner for out, inner in (*self.model.matrices.values(), self.model.head))
        positions = self.context + max(self.widths)
        cache = self.model.layers * 2 * self.model.kv_heads * self.model.head_dim * positions
        return (self.model.parameters + twice + cache) * precision(
            self.dtype
        ).bytes_per_weight + 2 * READ_BYTES

    def run(self, session: Session) -> Iterator[Measurement]:
        """Build the model, check it, choose kernels by width, measure all widths in shared rounds."""
        require_memory(self.need_bytes(session.device), session.device.free_bytes(), self.name)
        linears = session.linear_kernels(self.dtype)
        kernel = next((k for k in linears if k.name == "packed"), linears[0])
        built = StepModel(session, self.model, self.dtype, self.context, max(self.widths), kernel)
        if built.error > TOLERANCE[self.dtype]:
            session.wrong.append(f"{self.name}: {kernel.name} was wrong ({built.error:.2g}); not recorded")
            return
        chosen = self._choose(session, built, linears)
        if not chosen:
            return
        errors = {width: max(error, built.error) for width, _, _, error in chosen}
        timers = {
            (width, name): session.device.timer(_bound(built, built.inputs(width), kernels), 1)
            for width, name, kernels, _ in chosen
        }
        warnings = self._composition(built, {width: kernels for width, _, kernels, _ in chosen})
        # Each read comes after a whole step, so that it finds its buffers cold.
        buffers = session.rotation((READ_BYTES // 4,), "fp32", 2)
        reading, nbytes = session.read_probe(buffers)
        # A step is long: the rounds that make a median take longer than those of a layer.
        outcome = contest(session, timers, {"read": reading}, cap=4.0, try_first=False)
        probe = beside_case(session, self.name, self.dtype, nbytes, buffers.nbytes)
        yield session.record(probe, outcome.series["read"])
        for width, name in outcome.best.items():
            case = self._case(width, name, outcome.medians[width], errors[width], warnings)
            yield session.record(case, outcome.winner(width), outcome.ratio(width))

    def _choose(
        self, session: Session, built: StepModel, linears: tuple[LinearKernel, ...]
    ) -> list[tuple[int, str, Kernels, float]]:
        """List what competes at each width: its quickest attention with every linear of this layout."""
        chosen = []
        for width in self.widths:
            best = self._attention(session, built, width)
            if best is None:
                session.wrong.append(f"{self.name}/width={width}: no attention was right; not recorded")
                continue
            name, attention, error = best
            able = [k for k in linears if k.layout == built.kernel.layout and k.takes(width)]
            chosen += [(width, f"{k.name}; {name}", Kernels(k, attention), error) for k in able]
        return chosen

    def _attention(
        self, session: Session, built: StepModel, width: int
    ) -> tuple[str, AttentionCall, float] | None:
        model, torch = self.model, session.torch
        q = session.filler.tensor((1, model.heads, width, model.head_dim), self.dtype)
        mask = make_mask(torch, width, self.context + width, model.heads // model.kv_heads, q)
        seen = [layer.cache[:, :, :, : self.context + width] for layer in built.layers]
        errors, timers = {}, {}
        kernels = attention_kernels(torch)
        for name, call in kernels.items():
            try:
                got = call(q, seen[0][0], seen[0][1], mask)
                errors[name] = attention_error(torch, got, q, seen[0][0], seen[0][1], session.seed)
            except (RuntimeError, TypeError):
                errors[name] = math.inf
            if errors[name] <= TOLERANCE[self.dtype]:
                timers[name] = session.device.timer(_attention_bound(call, q, seen, mask), len(seen))
        if not timers:
            return None
        medians = session.trial(timers)
        best = min(medians, key=lambda name: medians[name])
        return best, kernels[best], errors[best]

    def _composition(self, built: StepModel, kernels: dict[int, Kernels]) -> tuple[str, ...]:
        """Check that the first token's logits do not depend on the tokens verified after it."""
        wide, narrow = max(kernels), min(kernels)
        one = built.step(built.inputs(wide), kernels[wide])[:1]
        other = built.step(built.inputs(narrow), kernels[narrow])[:1]
        error = deviation(one, other.double())
        return (
            ()
            if error <= COMPOSITION
            else (f"logits of the first token differ by {error:.2g} between widths",)
        )

    def _case(
        self,
        width: int,
        implementation: str,
        alternatives: dict[str, float],
        error: float,
        warnings: tuple[str, ...],
    ) -> Case:
        summed = total(step_works(self.model, self.context, width, self.dtype))
        return Case(
            name=f"{self.name}/width={width}",
            kind="step",
            dtype=self.dtype,
            shape={"model": self.model.name, "batch": 1, "context": self.context, "width": width},
            work=summed,
            footprint_bytes=float(summed.weight_bytes) + float(summed.kv_bytes),
            implementation=implementation,
            alternatives=alternatives,
            error=error,
            warnings=warnings,
        )


def _bound(built: StepModel, inputs: Inputs, kernels: Kernels) -> Any:
    """Return a call for a timer."""
    return lambda _: built.step(inputs, kernels)


def _attention_bound(call: AttentionCall, q: Any, seen: list[Any], mask: Mask) -> Any:
    return lambda i: call(q, seen[i][0], seen[i][1], mask)
