"""Speed of the toolkit itself, as ratios within one run: `make bench`.

Absolute times depend on the machine and its load, so the start-up of a command is divided by the import
of numpy, and evaluation times stand beside the time numpy needs for one plain operation on the same
number of points.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time

import numpy as np

from rooflinekit.acceptance import Constant
from rooflinekit.curve import Case
from rooflinekit.drafters import BUILDERS
from rooflinekit.hardware import machine
from rooflinekit.precision import precision
from rooflinekit.prediction import predict_step
from rooflinekit.profiles.library import find_hardware
from rooflinekit.readers.models import find_llm
from rooflinekit.recommendation import recommend_k
from rooflinekit.sweeps import open_grid, speculation_table
from rooflinekit.target import Target
from rooflinekit.transformer import Load

ROUNDS = 15


def best_of(function, rounds=ROUNDS):
    """Median time of a call (s)."""
    samples = []
    for _ in range(rounds):
        begin = time.perf_counter()
        function()
        samples.append(time.perf_counter() - begin)
    return statistics.median(samples)


def startup():
    """Wall time of `rooflinekit predict` over that of importing numpy, interleaved."""
    commands = {
        "numpy": [sys.executable, "-c", "import numpy"],
        "predict": [
            sys.executable,
            "-m",
            "rooflinekit",
            "predict",
            "--model",
            "llama-3.1-8b",
            "--hardware",
            "h100",
        ],
    }
    samples = {name: [] for name in commands}
    for _ in range(ROUNDS):
        for name, command in commands.items():
            begin = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            samples[name].append(time.perf_counter() - begin)
    medians = {name: statistics.median(values) for name, values in samples.items()}
    return medians["predict"] / medians["numpy"], medians


def grid_axes(points):
    """Axes of batch x context x K x alpha with about this many points."""
    side = max(2, round((points / 16 / 61) ** 0.5))
    return {
        "batch": np.geomspace(1, 256, side),
        "context": np.geomspace(256, 131072, side),
        "k": np.arange(1.0, 17.0),
        "alpha": np.linspace(0.3, 0.95, 61),
    }


def main():
    """Measure and print."""
    target = Target(find_llm("llama-3.1-8b"), precision("bf16"))
    hardware = find_hardware("h100-sxm")
    device = machine(hardware)
    drafter = BUILDERS["eagle3"](target.llm, target.precision)
    one = best_of(lambda: predict_step(device, target, hardware, Load(1.0, 4096.0)), 400)
    advice = best_of(
        lambda: recommend_k(Case(device, target, drafter, Constant(0.8)), hardware, Load(1.0, 4096.0)), 100
    )
    axes = grid_axes(1e6)
    size = int(np.prod([len(values) for values in axes.values()]))
    grid = best_of(lambda: open_grid(device, target, drafter, **axes).speedup)
    points = np.ones(size)
    plain = best_of(lambda: points * 1.5)
    names = ("eagle3", "dflash", "dspark", "eagle")
    cases = [
        Case(device, target, BUILDERS[name](target.llm, target.precision), Constant(0.8)) for name in names
    ]
    table = {"batch": np.arange(1.0, 65.0), "context": np.linspace(256, 65536, 30), "max_k": 16}
    rows = len(speculation_table(cases, **table))
    tabled = best_of(lambda: speculation_table(cases, **table), 7)
    ratio, medians = startup()
    lines = {
        "start-up of predict over import numpy": (ratio, "at most 3"),
        "one prediction with breakdown (us)": (one * 1e6, "under 200"),
        "one recommendation (ms)": (advice * 1e3, "under 5"),
        f"table of {rows:,} rows, four drafters (s)": (tabled, "under 0.2"),
        f"grid of {size:,} points (s)": (grid, "under 0.1"),
        "grid over one numpy product of the same size": (grid / plain, ""),
    }
    for name, (value, wanted) in lines.items():
        print(f"{name:52s} {value:10.4g}   {wanted}")
    print(json.dumps({"startup_s": medians, "numpy": np.__version__, "python": sys.version.split()[0]}))


if __name__ == "__main__":
    main()
