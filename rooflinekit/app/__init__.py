"""The front door: names and options in, results out. What the command line and the notebooks call.

>>> import rooflinekit as rk
>>> one = rk.predict("llama-3.1-70b", "h100-sxm", context=4096, calibration="datasheet")
>>> round(one.step_s * 1e3, 1), one.fits
(41.9, False)
>>> rk.recommend("llama-3.1-8b", "h100-sxm", "eagle3", alpha=0.8, context=4096).pays
True
"""

from __future__ import annotations

from rooflinekit.app.comparing import levers
from rooflinekit.app.drafting import compare, outlook, recommend, schedule, sweep, table
from rooflinekit.app.measuring import calibrate, load_measurements, validate_files, validate_suite
from rooflinekit.app.predicting import predict
from rooflinekit.app.trees import best_tree
from rooflinekit.resolve import load_device, setup

__all__ = [
    "best_tree",
    "calibrate",
    "compare",
    "levers",
    "load_device",
    "load_measurements",
    "outlook",
    "predict",
    "recommend",
    "schedule",
    "setup",
    "sweep",
    "table",
    "validate_files",
    "validate_suite",
]
