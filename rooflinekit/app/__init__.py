"""The front door: names and options in, results out. What the command line and the notebooks call.

>>> import rooflinekit as rk
>>> one = rk.predict("llama-3.1-70b", "h100-sxm", context=4096, calibration="datasheet")
>>> round(one.step_s * 1e3, 1), one.fits
(41.9, False)
>>> rk.recommend("llama-3.1-8b", "h100-sxm", "eagle3", alpha=0.8, context=4096).pays
True
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from rooflinekit.resolve import load_device, setup

# `rooflinekit predict` is the command run most: what only other calls need is imported by them.
_WHERE = {
    "best_tree": "trees",
    "calibrate": "measuring",
    "compare": "drafting",
    "levers": "comparing",
    "load_measurements": "measuring",
    "make_case": "asking",
    "outlook": "drafting",
    "predict": "predicting",
    "recommend": "drafting",
    "schedule": "drafting",
    "sweep": "drafting",
    "table": "drafting",
    "validate_files": "measuring",
    "validate_suite": "measuring",
}

__all__ = ["load_device", "setup", *sorted(_WHERE)]  # noqa: PLE0604 - the names come from the table above

if TYPE_CHECKING:
    from rooflinekit.app.asking import make_case as make_case
    from rooflinekit.app.comparing import levers as levers
    from rooflinekit.app.drafting import compare as compare
    from rooflinekit.app.drafting import outlook as outlook
    from rooflinekit.app.drafting import recommend as recommend
    from rooflinekit.app.drafting import schedule as schedule
    from rooflinekit.app.drafting import sweep as sweep
    from rooflinekit.app.drafting import table as table
    from rooflinekit.app.measuring import calibrate as calibrate
    from rooflinekit.app.measuring import load_measurements as load_measurements
    from rooflinekit.app.measuring import validate_files as validate_files
    from rooflinekit.app.measuring import validate_suite as validate_suite
    from rooflinekit.app.predicting import predict as predict
    from rooflinekit.app.trees import best_tree as best_tree


def __getattr__(name: str) -> Any:
    """Load a call on first use."""
    if name not in _WHERE:
        raise AttributeError(f"module 'rooflinekit.app' has no attribute {name!r}")
    return getattr(importlib.import_module(f"rooflinekit.app.{_WHERE[name]}"), name)
