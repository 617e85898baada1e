"""Any result as text: in a terminal, in a notebook, in a log."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from typing import Any

from rich.console import Console, Group, RenderableType

from rooflinekit.comparison import Comparison
from rooflinekit.errors import RooflineError
from rooflinekit.implied import Diagnosis
from rooflinekit.levers import LeverTable
from rooflinekit.prediction import Prediction
from rooflinekit.prospect import Outlook, Schedule
from rooflinekit.recommendation import Recommendation
from rooflinekit.report.comparison import comparison_text
from rooflinekit.report.diagnosis import diagnosis_text
from rooflinekit.report.levers import levers_text
from rooflinekit.report.prediction import prediction_text
from rooflinekit.report.recommendation import outlook_lines, recommendation_text
from rooflinekit.report.schedule import schedule_text
from rooflinekit.report.tree import tree_text
from rooflinekit.tree_round import TreeAnswer

WIDTH = 132
"""Columns a table may take."""

TEXTS: Mapping[type, Callable[[Any], RenderableType]] = {
    Prediction: prediction_text,
    Outlook: lambda one: Group(*outlook_lines(one)),
    Schedule: lambda one: schedule_text(one, one.drafter),
    Comparison: lambda one: comparison_text((one,)),
    TreeAnswer: tree_text,
    LeverTable: levers_text,
    Diagnosis: diagnosis_text,
}
"""Results that one function says."""


class Shown:
    """Text of a result: ``print`` gives it plain, a notebook shows it with its colours.

    Attributes
    ----------
    renderable
        What rich prints.
    """

    def __init__(self, renderable: RenderableType) -> None:
        """Keep what is to be shown."""
        self.renderable = renderable

    def __rich__(self) -> RenderableType:
        """Let rich print it."""
        return self.renderable

    def __str__(self) -> str:
        """Plain text, a line for each line of a table."""
        return self._recorded().export_text(clear=False).rstrip()

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        """What a notebook shows: rich's colours on the page's own background, and lines that are not wrapped."""
        style = (
            "white-space: pre; overflow-x: auto; line-height: 1.35; font-family: monospace; font-size: 12px"
        )
        html = self._recorded().export_html(
            inline_styles=True, code_format=f'<pre style="{style}">{{code}}</pre>', clear=False
        )
        return {"text/html": html, "text/plain": str(self)}

    def _recorded(self) -> Console:
        # Inside Jupyter rich would display what it records at once.
        console = Console(
            record=True,
            file=io.StringIO(),
            width=WIDTH,
            soft_wrap=True,
            highlight=False,
            markup=False,
            force_jupyter=False,
        )
        console.print(self.renderable)
        return console


def as_text(answer: object, around: Outlook | None = None, engine: str = "") -> Shown:
    """Say a result as the command line says it.

    Parameters
    ----------
    answer
        What ``predict``, ``recommend``, ``outlook``, ``compare`` (all rows or one), ``schedule``, ``best_tree``,
        ``levers`` or ``diagnose`` returned.
    around
        The outlook beside a recommendation.
    engine
        Print the options of this engine only; '' for all.

    Raises
    ------
    RooflineError
        Something else.

    Examples
    --------
    >>> import rooflinekit as rk
    >>> step = rk.predict("llama-3.1-8b", "h100-sxm", calibration="datasheet")
    >>> print(str(rk.as_text(step)).partition("  (")[0])
    llama-3.1-8b in bf16 on h100-sxm5-80gb: 4.64 ms per decode step
    """
    if isinstance(answer, Recommendation):
        return Shown(recommendation_text(answer, around, engine))
    if isinstance(answer, tuple | list) and answer and all(isinstance(one, Comparison) for one in answer):
        return Shown(comparison_text(answer))
    if type(answer) not in TEXTS:
        raise RooflineError(
            f"a {type(answer).__name__} has no text of its own; give what predict, recommend, outlook, compare, "
            "schedule, best_tree, levers or diagnose returned"
        )
    return Shown(TEXTS[type(answer)](answer))
