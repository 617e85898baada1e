"""Rotated operands: distinct memory for every call until the caches are outrun, filled quickly with randn."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from rooflinekit.errors import DeviceError
from rooflinekit.units import render

CPU_FOOTPRINT_BYTES = 600e6
CUDA_FOOTPRINT_BYTES = 1e9
BLOCK_ELEMENTS = 1 << 21
"""Random numbers drawn; all buffers hold shifted pieces of them. Times need distinct memory, not values."""


def cpu_copies(nbytes: float, llc_bytes: float) -> int:
    """Copies whose bytes together reach twice the last-level cache seen, and 600 MB.

    A guest sees a share of its host's cache, hence the floor.

    >>> cpu_copies(8388608, 32 * 2**20), cpu_copies(1e9, 300 * 2**20)
    (72, 1)
    """
    return max(1, math.ceil(max(2 * llc_bytes, CPU_FOOTPRINT_BYTES) / nbytes))


def cuda_copies(nbytes: float, l2_bytes: float, free_bytes: float) -> int:
    """Count copies after FlashInfer's rule, and 1 GB where 60 % of the free memory allows.

    >>> cuda_copies(8388608, 50 * 2**20, 80e9)
    120
    >>> cuda_copies(525e6, 50 * 2**20, 80e9)
    2
    """
    cold = max(2, math.ceil(5 * l2_bytes / nbytes) + 1)
    wanted = max(cold, math.ceil(CUDA_FOOTPRINT_BYTES / nbytes))
    return max(2, min(wanted, int(0.6 * free_bytes / nbytes)))


@dataclass(frozen=True, slots=True)
class Rotation:
    """Equal operands in distinct memory, one behind the other.

    Attributes
    ----------
    tensors
        One tensor a copy.
    whole
        All copies as one flat tensor.
    nbytes
        Bytes of all copies.
    """

    tensors: tuple[Any, ...]
    whole: Any
    nbytes: float

    def pieces(self, nbytes: float) -> tuple[Any, ...]:
        """Cut the memory into equal pieces of at least this size, whole 64-bit words, whatever a copy's size."""
        count = max(1, int(self.nbytes // nbytes))
        elements = self.whole.numel() // count
        elements -= elements % (8 // self.whole.element_size())
        return tuple(self.whole[i * elements : (i + 1) * elements] for i in range(count))

    def __len__(self) -> int:
        return len(self.tensors)


class Filler:
    """Makes tensors of random normal numbers from one block, at the speed of a copy.

    Parameters
    ----------
    torch
        The module.
    torch_device
        Where tensors live.
    seed
        Seed of the block.
    """

    def __init__(self, torch: Any, torch_device: str, seed: int) -> None:
        self._torch, self._device = torch, torch_device
        generator = torch.Generator(device=torch_device).manual_seed(seed)
        self._block = torch.randn(BLOCK_ELEMENTS, generator=generator, device=torch_device)
        self._scaled: dict[tuple[str, float], Any] = {}
        self._shift = 0

    def _source(self, dtype: str, scale: float) -> Any:
        key = (dtype, scale)
        if key not in self._scaled:
            # One scale at a time: the block of the last case is not needed again.
            self._scaled = {key: (self._block * scale).to(torch_dtype(self._torch, dtype))}
        return self._scaled[key]

    def tensor(self, shape: tuple[int, ...], dtype: str, scale: float = 1.0, into: Any = None) -> Any:
        """Return a tensor of random normal numbers times a scale: a new one, or the one given, filled anew.

        Raises
        ------
        DeviceError
            There is no memory for it.
        """
        torch = self._torch
        nbytes = math.prod(shape) * torch_dtype(torch, dtype).itemsize
        if into is not None:
            self._fill(into.view(-1), self._source(dtype, scale))
            return into
        try:
            result = torch.empty(shape, dtype=torch_dtype(torch, dtype), device=self._device)
        except (MemoryError, RuntimeError) as error:
            raise DeviceError(
                f"no memory for a buffer of {render(nbytes, 'B')} on {self._device}; free some"
            ) from error
        self._fill(result.view(-1), self._source(dtype, scale))
        return result

    def _fill(self, flat: Any, block: Any) -> None:
        # An odd shift: no two buffers, and no two rows of one, start at the same number.
        self._shift = (self._shift + 104729) % block.numel()
        done, total, start = 0, flat.numel(), self._shift
        while done < total:
            piece = min(block.numel() - start, total - done)
            flat[done : done + piece].copy_(block[start : start + piece])
            # Each further piece starts elsewhere, else large matrices would repeat with the block's period.
            done, start = done + piece, (start + 7919) % (block.numel() // 2)

    def rotation(self, shape: tuple[int, ...], dtype: str, copies: int, scale: float = 1.0) -> Rotation:
        """Return so many copies in distinct memory."""
        stacked = self.tensor((copies, *shape), dtype, scale)
        return Rotation(
            tuple(stacked.unbind()), stacked.view(-1), float(stacked.numel() * stacked.element_size())
        )


def torch_dtype(torch: Any, dtype: str) -> Any:
    """Translate a format name to torch's."""
    return {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}[dtype]


def require_memory(wanted_bytes: float, free_bytes: float, what: str) -> None:
    """Refuse before allocating what the memory does not hold: Linux would kill the process instead."""
    if wanted_bytes > 0.9 * free_bytes:
        raise DeviceError(
            f"{what} needs {render(wanted_bytes, 'B')} and {render(free_bytes, 'B')} are free; "
            "close other programs or choose a smaller budget"
        )
