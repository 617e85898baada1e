"""rooflinekit: how long LLM decoding takes, which roof binds, and whether speculative decoding pays.

The functions most users need are here: :func:`predict`, :func:`recommend`, :func:`outlook`, :func:`compare`,
:func:`table`, :func:`best_tree`, :func:`diagnose`; :func:`as_text` for what they return; and the formulas
:func:`eta`, :func:`s_up`, :func:`expected_tokens`. They are loaded on first use, so that importing the package
costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_WHERE = {
    "predict": "app",
    "recommend": "app",
    "compare": "app",
    "outlook": "app",
    "best_tree": "app",
    "schedule": "app",
    "sweep": "app",
    "table": "app",
    "make_case": "app",
    "as_text": "report.shown",
    "diagnose": "implied",
    "Measured": "implied",
    "sweep_of": "implied",
    "setup": "resolve",
    "make_drafter": "drafting_options",
    "make_acceptance": "acceptance_options",
    "find_llm": "readers.models",
    "find_hardware": "profiles.library",
    "eta": "speculation",
    "s_up": "speculation",
    "speculate": "speculation",
    "expected_tokens": "acceptance",
    "solve_alpha": "acceptance",
    "RooflineError": "errors",
}

__all__ = ["__version__", *sorted(_WHERE)]  # noqa: PLE0604 - the names come from the table above

if TYPE_CHECKING:
    from rooflinekit.acceptance import expected_tokens as expected_tokens
    from rooflinekit.acceptance import solve_alpha as solve_alpha
    from rooflinekit.acceptance_options import make_acceptance as make_acceptance
    from rooflinekit.app import best_tree as best_tree
    from rooflinekit.app import compare as compare
    from rooflinekit.app import make_case as make_case
    from rooflinekit.app import outlook as outlook
    from rooflinekit.app import predict as predict
    from rooflinekit.app import recommend as recommend
    from rooflinekit.app import schedule as schedule
    from rooflinekit.app import sweep as sweep
    from rooflinekit.app import table as table
    from rooflinekit.drafting_options import make_drafter as make_drafter
    from rooflinekit.errors import RooflineError as RooflineError
    from rooflinekit.implied import Measured as Measured
    from rooflinekit.implied import diagnose as diagnose
    from rooflinekit.implied import sweep_of as sweep_of
    from rooflinekit.profiles.library import find_hardware as find_hardware
    from rooflinekit.readers.models import find_llm as find_llm
    from rooflinekit.report.shown import as_text as as_text
    from rooflinekit.resolve import setup as setup
    from rooflinekit.speculation import eta as eta
    from rooflinekit.speculation import s_up as s_up
    from rooflinekit.speculation import speculate as speculate


def __getattr__(name: str) -> Any:
    """Load a public name on first use."""
    if name not in _WHERE:
        raise AttributeError(f"module 'rooflinekit' has no attribute {name!r}")
    return getattr(importlib.import_module(f"rooflinekit.{_WHERE[name]}"), name)


def __dir__() -> list[str]:
    """Names for completion."""
    return sorted(__all__)
