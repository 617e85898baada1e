"""What is compared, and the rows of the table."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from rooflinekit.drafters.base import Drafter
from rooflinekit.target import Target
from rooflinekit.work import Machine


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """A model to serve, with its drafter if it has one; ``kind``: ``as it is``, ``quantisation``, ``smaller model``."""

    name: str
    kind: str
    target: Target
    machine: Machine
    drafter: Drafter | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeverPoint:
    """A lever at one batch; per rank.

    Attributes
    ----------
    batch
        Concurrent sequences.
    k, acceptance_length
        Best K and tokens per round; 0 and 1 without a drafter.
    step_s
        A step, or a round of drafting and verifying, host included (s).
    tokens_per_s
        Of all sequences together.
    bytes_per_token, flops_per_token
        Bytes from memory and FLOPs for each emitted token of each sequence, drafting included.
    speedup
        Tokens per second over those of the target as it is.
    of_product
        That speedup over the product of its parts' own; ``None`` for a lever alone.
    fits, memory_bytes, remedy
        Whether weights, caches and drafter fit, and what would.
    """

    batch: float
    k: int
    acceptance_length: float
    step_s: float
    tokens_per_s: float
    bytes_per_token: float
    flops_per_token: float
    speedup: float
    of_product: float | None
    fits: bool
    memory_bytes: float
    remedy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Lever:
    """One row: what it is, what it does to the output, what it holds, and its speed at each batch.

    Attributes
    ----------
    name, changes
        What it is called; what differs from the target as it is.
    output
        ``unchanged`` or ``changed``: the distribution of the text.
    total_variation
        Between the distributions of the next tokens, computed on an example; ``None`` where it was not.
    reason
        How that is known, or why it is not.
    resident_bytes
        Weights held, the drafter's too (B).
    points
        By batch.
    """

    name: str
    changes: tuple[str, ...]
    output: str
    total_variation: float | None
    reason: str
    resident_bytes: float
    points: tuple[LeverPoint, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LeverTable:
    """Levers side by side, and what could not be shown (``left_out``: name and reason)."""

    model: str
    hardware: str
    calibration: str
    drafter: str
    acceptance: str
    context: float
    levers: tuple[Lever, ...]
    left_out: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return asdict(self)
