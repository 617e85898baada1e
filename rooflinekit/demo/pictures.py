"""The demo's three pictures: this machine's roofline, its verify curve with the measurements, speedup by K."""

from __future__ import annotations

from pathlib import Path

from rooflinekit import app
from rooflinekit.demo.answering import ALPHA, CONTEXT, DRAFTERS, ELSEWHERE, Answer
from rooflinekit.hardware import machine
from rooflinekit.measurement_file import load
from rooflinekit.plot.points import points_of
from rooflinekit.plot.ratios import measured_ratios
from rooflinekit.plot.roofline import roofline
from rooflinekit.plot.speedup import speedup_curve
from rooflinekit.plot.style import save
from rooflinekit.plot.verify import verify_curve
from rooflinekit.precision import precision
from rooflinekit.readers.models import find_llm
from rooflinekit.target import Target
from rooflinekit.transformer import Load


def draw(found: Answer, folder: Path) -> list[Path]:
    """Draw the pictures into a folder; returns what was written."""
    target = Target(find_llm(found.decode.model), precision(found.calibration.dtype))
    subtitle = f"{target.precision.label}, context {CONTEXT}"
    steps = roofline(
        found.machine,
        points_of(found.machine, target, context=CONTEXT),
        numbers=target.precision,
        title=f"{target.llm.name} on {found.hardware.title}",
        subtitle=subtitle,
    )
    measured = load(found.measured.path)[1]
    ratios = measured_ratios(measured, found.machine, found.calibration.used, target)
    verify = verify_curve(
        found.machine,
        target,
        baseline=machine(found.hardware),
        measured=ratios,
        load=Load(1.0, float(CONTEXT)),
        title=f"What a verify costs on {found.hardware.title}",
    )
    answers = [app.recommend(*ELSEWHERE, drafter, alpha=ALPHA) for drafter in DRAFTERS]
    labels = [name.partition(":")[2] or name for name in DRAFTERS]
    speedup = speedup_curve(answers, labels=labels)
    pictures = {"roofline.png": steps, "verify.png": verify, "speedup.png": speedup}
    return [save(axes, folder / name) for name, axes in pictures.items()]
