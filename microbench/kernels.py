"""Implementations of ``y = x W^T`` and of reading memory that compete for each shape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

Tensor = Any


PADDED_ROWS = ((1, 5, 6), (6, 15, 16))
"""First and last rows that also compete padded up to the third number.

Reordered kernels have rows they like: on Zen 4, six rows cost 0.7 of one row. An engine may pad, so a
comparison of one row with six must let the one row pad too.
"""


@dataclass(frozen=True, slots=True)
class LinearKernel:
    """One way to multiply by a weight matrix.

    Attributes
    ----------
    name
        As stored in a measurement.
    layout
        Name of what ``prepare`` makes; kernels of one layout share the prepared weights.
    prepare
        Turns a weight (out x inner) into what the call wants; done ahead, as an engine does.
    call
        ``call(x, prepared)`` gives y (rows x out).
    least_rows, most_rows
        Rows the kernel is tried for.
    """

    name: str
    layout: str
    prepare: Callable[[Tensor], Tensor]
    call: Callable[[Tensor, Tensor], Tensor]
    least_rows: int = 1
    most_rows: int = 1 << 30

    def takes(self, rows: int) -> bool:
        """Whether the kernel is tried at this number of rows."""
        return self.least_rows <= rows <= self.most_rows


def _same(weight: Tensor) -> Tensor:
    return weight


def linear_kernels(torch: Any, torch_device: str, dtype: Any) -> tuple[LinearKernel, ...]:
    """List the implementations available on a device; the first is what eager PyTorch does."""
    function = torch.nn.functional.linear
    plain = (
        LinearKernel("linear", "plain", _same, function),
        LinearKernel("mv", "plain", _same, lambda x, w: torch.mv(w, x[0]).view(1, -1), most_rows=1),
    )
    packed = _packed(torch, dtype) if torch_device == "cpu" else None
    if packed is None:
        return plain
    return (*plain, packed, *(_padded(torch, packed, *bounds) for bounds in PADDED_ROWS))


def _packed(torch: Any, dtype: Any) -> LinearKernel | None:
    """Weights reordered ahead into oneDNN's blocks: private operators of torch, so tried before use."""
    try:
        reorder = torch.ops.mkldnn._reorder_linear_weight  # noqa: SLF001
        pointwise = torch.ops.mkldnn._linear_pointwise  # noqa: SLF001
        pointwise(
            torch.ones(1, 32, dtype=dtype), reorder(torch.ones(32, 32, dtype=dtype)), None, "none", [], ""
        )
    except (AttributeError, RuntimeError):
        return None
    return LinearKernel("packed", "packed", reorder, lambda x, w: pointwise(x, w, None, "none", [], ""))


def _padded(torch: Any, kernel: LinearKernel, least: int, most: int, rows: int) -> LinearKernel:
    """Call a kernel with zero rows added; adding and cutting is part of its time."""
    pad = torch.nn.functional.pad

    def call(x: Tensor, weight: Tensor) -> Tensor:
        return kernel.call(pad(x, (0, 0, 0, rows - x.shape[0])), weight)[: x.shape[0]]

    name = f"{kernel.name}, padded to {rows}"
    return LinearKernel(name, kernel.layout, kernel.prepare, call, least_rows=least, most_rows=most)


@dataclass(frozen=True, slots=True)
class ReadKernel:
    """One way to read a buffer once: a reduction whose arithmetic is small against the bytes."""

    name: str
    call: Callable[[Tensor], Tensor]


def read_kernels(torch: Any) -> tuple[ReadKernel, ...]:
    """Reductions that compete; which is quickest differs between devices and builds of torch.

    All are lower bounds of what the memory gives. They take a flat tensor of whole 64-bit words. Norm and
    sum of floats are left out: their arithmetic binds at a third of the bandwidth (two Zen 4 cores), and on a contended
    machine, where a reduction on one thread is disturbed less, they would win for the wrong reason.
    """
    return (
        ReadKernel("sum int64", lambda t: t.view(torch.int64).sum()),
        ReadKernel("max int64", lambda t: t.view(torch.int64).max()),
        ReadKernel("max int32", lambda t: t.view(torch.int32).max()),
    )


def reads_right(kernel: ReadKernel, tensor: Tensor, torch: Any) -> bool:
    """Check a reduction against numpy."""
    words = tensor.cpu().view(torch.int32 if kernel.name.endswith("32") else torch.int64).numpy()
    got = kernel.call(tensor).item()
    return bool(got == (words.sum() if kernel.name.startswith("sum") else words.max()))


def flat_words(tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Flat views of contiguous tensors, cut to whole 64-bit words."""
    views = []
    for tensor in tensors:
        flat = tensor.view(-1)
        views.append(flat[: flat.numel() * flat.element_size() // 8 * 8 // flat.element_size()])
    return tuple(views)
