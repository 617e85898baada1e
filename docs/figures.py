"""Draw the figures of the documentation: ``python docs/figures.py`` writes ``docs/img/*.png``.

Datasheet machines and shipped calibrations only, so that the figures are the same everywhere.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from PIL import Image

import rooflinekit as rk
from rooflinekit.acceptance import Constant
from rooflinekit.app.asking import Asked, asked_case
from rooflinekit.capacity import largest_batch
from rooflinekit.limits import whole_grid
from rooflinekit.load import Load
from rooflinekit.plot.batch import batch_curve, batches_up_to, speedups_by_batch
from rooflinekit.plot.caption import Caption, caption_of
from rooflinekit.plot.crossover import crossover_curve, needed_by_batch
from rooflinekit.plot.draft_cost import draft_cost_curve, draft_curves
from rooflinekit.plot.frontier import frontier_curve, frontiers
from rooflinekit.plot.k_map import draw_k_map, k_map
from rooflinekit.plot.loss import loss_waterfall
from rooflinekit.plot.points import points_of
from rooflinekit.plot.roofline import roofline
from rooflinekit.plot.speedup import speedup_curve
from rooflinekit.plot.style import save
from rooflinekit.plot.tree import draw_tree, tree_surface
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


def asked(drafter: str, model: str = "llama-3.1-8b", alpha: float = 0.6) -> Asked:
    """A drafter on the H100 with its shipped calibration."""
    return asked_case(model, "h100-sxm", drafter, max_k=16, k=None, options={"alpha": alpha})


def said(one: Asked, **fixed: float) -> Caption:
    """What stands above a picture of it."""
    calibration = one.ready.calibration.name if one.ready.calibration else "datasheet"
    return caption_of(one.case, one.ready.hardware.title, calibration, **fixed)


def picture(ax: Any, name: str) -> None:
    """Write a picture with a palette of 128 colours: a third of the bytes, and no difference to see."""
    path = save(ax, IMAGES / f"{name}.png")
    with Image.open(path) as image:
        small = image.convert("RGB").quantize(128, dither=Image.Dither.NONE)
    small.save(path, optimize=True)


def draw_draft_cost() -> None:
    """Drafting in proportion to K, once for all K, and on the host."""
    names = ("eagle3", "dflash", "dspark", "small-lm:llama-3.2-1b", "ngram")
    found = [asked(name, alpha=0.8) for name in names]
    above = said(found[0], batch=1.0, context=4096.0)
    labels = [name.partition(":")[2] or name for name in names]
    curves = draft_curves([one.case for one in found], Load(1.0, 4096.0), labels=labels)
    title = f"Drafting for {above.model} on {above.device}"
    picture(draft_cost_curve(curves, title=title, subtitle=above.conditions), "draft-cost")


def draw_k_maps() -> None:
    """The best K by load for a dense model and a mixture of experts."""
    for model, name in (("llama-3.1-8b", "k-map-dense"), ("qwen3-30b-a3b", "k-map-moe")):
        one = asked("eagle3", model)
        above = said(one)
        title = f"Best K of eagle3: {above.model} on {above.device}"
        found = k_map(one.case, one.ready.hardware)
        picture(draw_k_map(found, title=title, subtitle=above.conditions), name)


def draw_frontier() -> None:
    """Throughput against the speed of each user."""
    one, context = asked("eagle3"), 2048.0
    room, plain = (
        largest_batch(one.ready.target, one.ready.hardware, drafter, context)
        for drafter in (one.case.drafter, None)
    )
    above = said(one, context=context)
    curves = frontiers(one.case, context=context, max_batch=room, plain_max_batch=plain)
    title = f"{above.model} with eagle3 on {above.device}"
    picture(frontier_curve(curves, title=title, subtitle=above.conditions), "frontier")


def draw_crossover() -> None:
    """The acceptance rate that each K needs, by batch."""
    one, context = asked("eagle3"), 1024.0
    above = said(one, context=context)
    curves = needed_by_batch([one.case], batches=whole_grid(512.0), context=context, ks=(1, 3, 5, 7))
    drawn = crossover_curve(
        curves,
        fits_up_to=largest_batch(one.ready.target, one.ready.hardware, one.case.drafter, context),
        title=f"When eagle3 pays: {above.model} on {above.device}",
        subtitle=above.conditions,
    )
    picture(drawn, "crossover")


def draw_loss() -> None:
    """Where the gain goes under load, with the host time of an engine."""
    answer = rk.recommend("llama-3.1-8b", "h100-sxm", "eagle3", alpha=0.7, batch=32, host="vllm")
    picture(loss_waterfall(answer), "loss")


def draw_trees() -> None:
    """The best tree, and the speedup over its size and depth."""
    answer = rk.best_tree("llama-3.1-8b", "h100-sxm", "eagle3", alpha=0.7, batch=8)
    where = f"{answer.model} with {answer.drafter} on {answer.hardware}; {answer.calibration}"
    subtitle = (
        f"{where}\n{answer.acceptance}, {answer.dtype}, batch {answer.batch:g}, context {answer.context:g}"
    )
    title = f"Best draft tree: {answer.choice.acceptance_length:.2f} tokens per round, {answer.choice.speedup:.2f}x"
    picture(draw_tree(answer.choice.tree, answer.rates, title=title, subtitle=subtitle), "tree")
    picture(tree_surface(answer.choice, subtitle=subtitle), "tree-surface")


if __name__ == "__main__":
    IMAGES.mkdir(exist_ok=True)
    draw_speedup()
    draw_roofline()
    draw_verify()
    draw_batch()
    draw_draft_cost()
    draw_k_maps()
    draw_frontier()
    draw_crossover()
    draw_loss()
    draw_trees()
    print(*sorted(path.name for path in IMAGES.glob("*.png")))
