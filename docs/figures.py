"""Draw the figures of the documentation: ``python docs/figures.py`` writes ``docs/img/*.png``.

Datasheet machines only, so that the figures are the same everywhere.
"""

from __future__ import annotations

from pathlib import Path

import rooflinekit as rk
from rooflinekit.acceptance import Constant
from rooflinekit.plot.batch import batch_curve, batches_up_to, speedups_by_batch
from rooflinekit.plot.points import points_of
from rooflinekit.plot.roofline import roofline
from rooflinekit.plot.speedup import speedup_curve
from rooflinekit.plot.style import save
from rooflinekit.plot.verify import verify_curve

IMAGES = Path(__file__).resolve().parent / "img"
CONTEXT = 256.0


def draw_roofline() -> None:
    """A dense model's steps on the roofline."""
    ready = rk.setup("llama-3.1-8b", "h100-sxm", calibration="datasheet")
    points = points_of(ready.machine, ready.target, ks=(3, 7, 15), batches=(16, 64), prompt=2048)
    ax = roofline(
        ready.machine,
        points,
        numbers=ready.target.precision,
        dtypes=("bf16", "fp8"),
        title="Llama-3.1-8B on an H100, bf16",
    )
    save(ax, IMAGES / "roofline.png")


def draw_verify() -> None:
    """The union of experts makes a narrow verify dear."""
    ready = rk.setup("qwen3-30b-a3b", "h100-sxm", calibration="datasheet")
    title = "Qwen3-30B-A3B on an H100: cost of a verify"
    save(verify_curve(ready.machine, ready.target, title=title), IMAGES / "verify-moe.png")


def draw_batch() -> None:
    """Where a dense model and a mixture of experts stop, or start, to gain."""
    for name, title in (("llama-3.1-8b", "Dense: Llama-3.1-8B"), ("qwen3-30b-a3b", "MoE: Qwen3-30B-A3B")):
        ready = rk.setup(name, "h100-sxm", calibration="datasheet")
        curves = speedups_by_batch(
            ready.machine,
            ready.target,
            rk.make_drafter("eagle3", ready.target),
            Constant(0.6),
            batches=batches_up_to(512),
            context=CONTEXT,
            ks=(2, 7),
        )
        subtitle = f"EAGLE-3, alpha 0.6, context {CONTEXT:g}, H100 datasheet"
        save(batch_curve(curves, title=title, subtitle=subtitle), IMAGES / f"batch-{name}.png")


def draw_speedup() -> None:
    """Drafters at equal acceptance, by K."""
    drafters = ("small-lm:llama-3.2-1b", "eagle3", "dflash", "dspark")
    answers = [rk.recommend("llama-3.1-8b", "h100-sxm", drafter, alpha=0.8) for drafter in drafters]
    labels = [name.partition(":")[2] or name for name in drafters]
    title = "Speculation with Llama-3.1-8B on an H100"
    save(speedup_curve(answers, labels=labels, title=title), IMAGES / "speedup.png")


if __name__ == "__main__":
    IMAGES.mkdir(exist_ok=True)
    draw_speedup()
    draw_roofline()
    draw_verify()
    draw_batch()
    print(*sorted(path.name for path in IMAGES.glob("*.png")))
