"""The model that is served: its shape, its number formats, and the ranks it is split over."""

from __future__ import annotations

from dataclasses import dataclass

from rooflinekit.llm import Llm
from rooflinekit.precision import Precision
from rooflinekit.transformer import Load, forward_pass
from rooflinekit.work import Machine, Real, works_time_s


@dataclass(frozen=True, slots=True)
class Target:
    """What is verified: a model, its number formats and the ranks it is split over."""

    llm: Llm
    precision: Precision
    tp: int = 1
    routing_overlap: float = 0.0

    def step_s(self, machine: Machine, batch: Real, context: Real, width: Real) -> Real:
        """Device time of a pass of ``width`` rows per sequence (s)."""
        load = Load(batch, context, width, routing_overlap=self.routing_overlap)
        return works_time_s(forward_pass(self.llm, load, self.precision, self.tp), machine)
