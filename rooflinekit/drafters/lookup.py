"""What drafters that look tokens up on the host share: no weights, no passes, no device memory."""

from __future__ import annotations

from rooflinekit.work import Pass, Real


class Lookup:
    """A drafter without a model: its drafts come from text that was seen before."""

    __slots__ = ()

    @property
    def max_k(self) -> int | None:
        """Any K."""
        return None

    @property
    def own_params(self) -> int:
        """None: it has no weights."""
        return 0

    @property
    def serial_passes(self) -> str:
        """Nothing runs on the device."""
        return "none (host)"

    def plan(
        self,
        *,
        k: Real,
        batch: Real,
        context: Real,
        refresh: Real = 1.0,
        rows: Real = 1.0,
        tp: int = 1,  # noqa: ARG002 - nothing to split over ranks
    ) -> tuple[Pass, ...]:
        """One pass without works, which the host does not start: it keeps the axes of a grid."""
        axes = 0.0 * (k + batch + context + refresh + rows)
        return (Pass((), 1.0 + axes, "lookup on the host", launches=0.0),)

    def memory_bytes(self, *, batch: Real, context: Real, tp: int = 1) -> Real:  # noqa: ARG002
        """Nothing on the device (B): tables of tokens stand in the host's memory."""
        return 0.0 * batch + 0.0 * context
