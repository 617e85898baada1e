"""A weight matrix, and how it is split over ranks."""

from __future__ import annotations

from dataclasses import dataclass

from rooflinekit.errors import ModelError


@dataclass(frozen=True, slots=True)
class Linear:
    """A weight matrix: ``out`` x ``inner`` elements, used once per layer and token.

    Attributes
    ----------
    label
        Name in a breakdown.
    out, inner
        Elements of the output and the input (counts, of one rank).
    over_cache
        Whether a prefill multiplies every cached position with it, not only the new rows (keys and values
        that are expanded from a latent).
    tensor_class
        Class that decides its number format (``rooflinekit.precision.CLASSES``).
    once
        Whether it works on an encoder's output, before the first token: a prefill reads it, a decode does not.
    """

    label: str
    out: float
    inner: float
    tensor_class: str = "mlp"
    over_cache: bool = False
    once: bool = False

    @property
    def parameters(self) -> float:
        """Elements of the matrix."""
        return self.out * self.inner


def shard(count: int, tp: int, what: str) -> float:
    """Split a count evenly over ranks.

    Raises
    ------
    ModelError
        It cannot be split.
    """
    if count % tp:
        raise ModelError(f"{what} {count} cannot be split over {tp} ranks; choose a --tp that divides it")
    return count / tp
