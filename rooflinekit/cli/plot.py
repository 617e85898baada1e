"""``rooflinekit plot``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from rooflinekit.cli.common import ACCEPTANCE, ACCEPTANCE_NAMES, DEVICE, HARDWARE, LOAD, MODEL, writable
from rooflinekit.cli.plotting import loads, rounds, trees
from rooflinekit.cli.plotting.options import (
    CONTEXT,
    ENDINGS,
    MAX_K,
    OUT,
    save,
    short_names,
    whole_numbers,
    words_of,
)
from rooflinekit.cli.recommend import DRAFTER_HELP


@click.group("plot")
def command() -> None:
    """Draw a picture into a file: a device's roofline, what speculation costs, and what it gains where."""


for one in (*rounds.COMMANDS, *loads.COMMANDS, *trees.COMMANDS):
    command.add_command(one)


@command.command("roofline")
@MODEL
@HARDWARE
@CONTEXT
@click.option("--parts", is_flag=True, help="Also place linear layers, attention, experts and LM head.")
@DEVICE
@OUT
def roofline_(model: str, hardware: str, context: float, parts: bool, out: Path, **options: Any) -> None:  # noqa: FBT001
    """Roofline with a model's steps on it."""
    from rooflinekit.plot.points import points_of
    from rooflinekit.plot.roofline import roofline
    from rooflinekit.resolve import load_of, setup

    writable(out, ENDINGS)
    load_of(1, context)
    ready = setup(model, hardware, **options)
    points = points_of(ready.machine, ready.target, context=context, parts=parts)
    numbers = ready.target.precision
    title = f"{ready.target.llm.name} on {ready.hardware.title}"
    subtitle = f"{numbers.label}, context {context:g}"
    save(roofline(ready.machine, points, numbers=numbers, title=title, subtitle=subtitle), out)


@command.command("verify")
@MODEL
@HARDWARE
@LOAD
@click.option(
    "--max-width", type=int, default=64, show_default=True, help="Largest number of rows per sequence."
)
@click.option(
    "--measurements", type=click.Path(path_type=Path), help="File of `rooflinekit bench` to draw beside."
)
@DEVICE
@OUT
def verify(
    model: str,
    hardware: str,
    batch: float,
    context: float,
    max_width: int,
    measurements: Path | None,
    out: Path,
    **options: Any,
) -> None:
    """Cost of a verify by its width.

    T(W) over T(1), whole and by kind of work, predicted and measured.
    """
    from rooflinekit.hardware import machine
    from rooflinekit.plot.ratios import MeasuredRatio, measured_ratios
    from rooflinekit.plot.verify import verify_curve
    from rooflinekit.resolve import load_of, number, setup

    writable(out, ENDINGS)
    number(max_width, "--max-width", 2, 4096)
    load = load_of(batch, context)
    if measurements is not None and batch != 1:
        raise click.UsageError("--measurements are of one sequence; leave out --batch")
    ready = setup(model, hardware, **options)
    measured: tuple[MeasuredRatio, ...] = ()
    if measurements is not None:
        from rooflinekit.measurement_file import load as read

        used = ready.calibration.used if ready.calibration else ()
        measured = measured_ratios(read(measurements)[1], ready.machine, used, ready.target)
    baseline = machine(ready.hardware, ready.target.tp) if ready.calibration else None
    title = f"Verify of {ready.target.llm.name} on {ready.hardware.title}"
    drawn = verify_curve(
        ready.machine,
        ready.target,
        baseline=baseline,
        measured=measured,
        load=load,
        max_width=max_width,
        title=title,
    )
    save(drawn, out)


@command.command("speedup")
@MODEL
@HARDWARE
@click.option("--drafters", required=True, help=f"Comma-separated; each {DRAFTER_HELP}")
@ACCEPTANCE
@LOAD
@MAX_K
@click.option("--allow-oversize", is_flag=True, help="Draw even what does not fit into memory.")
@DEVICE
@OUT
def speedup(model: str, hardware: str, drafters: str, out: Path, **options: Any) -> None:
    """Speedup against K, a line per drafter."""
    from rooflinekit.app import recommend
    from rooflinekit.plot.speedup import speedup_curve

    writable(out, ENDINGS)
    names = words_of(drafters, "--drafters", "eagle3,dflash")
    answers = [recommend(model, hardware, name, **options) for name in names]
    save(speedup_curve(answers, labels=short_names(names)), out)


@command.command("tradeoff")
@click.option("--k", type=int, help="Fix K; the y axis is the cost of a draft.")
@click.option("--c", type=float, help="Fix the cost of a draft in plain steps; the y axis is K.")
@click.option("--best-k", is_flag=True, help="Draw which K is best instead of the speedup.")
@MAX_K
@OUT
def tradeoff(k: int | None, c: float | None, best_k: bool, max_k: int, out: Path) -> None:  # noqa: FBT001
    """Speedup over acceptance and draft cost.

    Leviathan's eta at the best K, or with --k or --c fixed.
    """
    from rooflinekit.plot.tradeoff import best_k_map, speedup_surface
    from rooflinekit.resolve import number

    writable(out, ENDINGS)
    if sum((k is not None, c is not None, best_k)) > 1:
        raise click.UsageError("--k, --c and --best-k exclude each other; give one of them or none")
    number(max_k, "--max-k", 2, 64)
    if k is not None:
        number(k, "--k", 1, 1024)
    if c is not None:
        number(c, "--c", 0, 10, whole=False)
    save(best_k_map(max_k=max_k) if best_k else speedup_surface(k=k, c=c, max_k=max_k), out)


@command.command("batch")
@MODEL
@HARDWARE
@click.option("--drafter", required=True, help=DRAFTER_HELP)
@ACCEPTANCE
@CONTEXT
@click.option("--max-batch", type=int, default=256, show_default=True, help="Largest number of sequences.")
@click.option("--ks", default="1,3,7", show_default=True, help="K to draw besides the best, comma-separated.")
@MAX_K
@DEVICE
@OUT
def batch(
    model: str,
    hardware: str,
    drafter: str,
    context: float,
    max_batch: int,
    ks: str,
    max_k: int,
    out: Path,
    **options: Any,
) -> None:
    """Speedup against batch, for several K.

    The batch at which a K stops paying is marked.
    """
    from rooflinekit.acceptance_options import make_acceptance
    from rooflinekit.capacity import largest_batch
    from rooflinekit.curve import allowed_k
    from rooflinekit.drafting_options import make_drafter
    from rooflinekit.plot.batch import batch_curve, batches_up_to, speedups_by_batch
    from rooflinekit.resolve import load_of, number, setup

    writable(out, ENDINGS)
    number(max_batch, "--max-batch", 2, 1e6)
    number(max_k, "--max-k", 1, 1024)
    load_of(1, context)
    accepted = make_acceptance(*(options.pop(name) for name in ACCEPTANCE_NAMES))
    ready = setup(model, hardware, **options)
    built = make_drafter(drafter, ready.target)
    curves = speedups_by_batch(
        ready.machine,
        ready.target,
        built,
        accepted,
        batches=batches_up_to(max_batch),
        context=context,
        ks=whole_numbers(ks),
        max_k=max_k,
    )
    title = f"{built.name} with {ready.target.llm.name} on {ready.hardware.title}"
    calibration = ready.calibration.name if ready.calibration else "datasheet"
    subtitle = f"{accepted.label}, {ready.target.precision.label}, context {context:g}; {calibration}"
    room = largest_batch(ready.target, ready.hardware, built, context, allowed_k(built, accepted, max_k))
    save(batch_curve(curves, fits_up_to=room, title=title, subtitle=subtitle), out)


@command.command("acceptance")
@ACCEPTANCE
@click.option("--max-k", type=int, help="Last position to draw; by default all measured, or 8.")
@OUT
def acceptance(max_k: int | None, out: Path, **options: Any) -> None:
    """Survival by position.

    Points with intervals where rounds were counted, beside a constant and a decaying rate fitted to them.
    """
    from rooflinekit.acceptance_options import make_acceptance
    from rooflinekit.plot.acceptance import survival_curve
    from rooflinekit.resolve import number

    writable(out, ENDINGS)
    accepted = make_acceptance(*(options.pop(name) for name in ACCEPTANCE_NAMES))
    if max_k is not None:
        number(max_k, "--max-k", 1, min(accepted.max_k or 64, 64))
    save(survival_curve(accepted, max_k=max_k), out)
