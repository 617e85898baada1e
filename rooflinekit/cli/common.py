"""Options that several commands share, and the one way results leave the program."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from rooflinekit.errors import RooflineError, UnitError
from rooflinekit.units import parse

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

MODEL = click.option(
    "--model", required=True, help="Name of `models list`, or a config.json (file or folder)."
)
HARDWARE = click.option(
    "--hardware", required=True, help="Name of `hardware list`, a YAML file, or local (what `demo` measured)."
)
DEVICE_KIND = click.option(
    "--device",
    default="auto",
    show_default=True,
    type=click.Choice(["auto", "cpu", "cuda"]),
    help="What is measured; auto: a GPU if there is one.",
)
BUDGET = click.option(
    "--budget",
    default="quick",
    show_default=True,
    type=click.Choice(["quick", "normal", "full"]),
    help="How long it measures: about 1, 5 or 20 minutes.",
)
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def options(*several: Callable[[Any], Any]) -> Callable[[Decorated], Decorated]:
    """Join option decorators, first one first in the help."""

    def join(function: Decorated) -> Decorated:
        for option in reversed(several):
            function = option(function)
        return function

    return join


def seconds_given(context: click.Context, option: click.Parameter, text: str | None) -> float | None:  # noqa: ARG001
    """A time with its unit, as an option takes it (s)."""
    try:
        return None if text is None else parse(text, "s")
    except UnitError as error:
        raise UnitError(f"{option.opts[0]}: {error}") from error


LOAD = options(
    click.option(
        "--batch", type=float, default=1, show_default=True, help="Sequences that decode at the same time."
    ),
    click.option("--context", type=float, default=4096, show_default=True, help="Tokens in the KV cache."),
)

DEVICE = options(
    click.option(
        "--dtype", default="auto", show_default=True, help="Number format of the weights; auto: the config's."
    ),
    click.option("--kv-dtype", default="auto", show_default=True, help="Number format of the KV cache."),
    click.option(
        "--tp",
        type=int,
        default=1,
        show_default=True,
        help="Devices that share the model (tensor parallelism).",
    ),
    click.option(
        "--calibration",
        default="auto",
        show_default=True,
        metavar="auto|datasheet|FILE",
        help="What kernels reach: fitted to measurements where the device has any (auto), the datasheet's limits, or "
        "a file of `calibrate`.",
    ),
    click.option(
        "--stack",
        help="Engine whose measured kernels to assume (trtllm, vllm, sglang); without it, the one measured best.",
    ),
    click.option(
        "--routing-overlap",
        type=float,
        default=0.0,
        show_default=True,
        help="Mixtures of experts: how far neighbouring tokens choose the same experts, 0 (not at all) to 1.",
    ),
    click.option(
        "--host",
        default="none",
        show_default=True,
        metavar="none|vllm|STEP,PASS,ROW,ROUND",
        help="Engine time outside the kernels: none, vLLM's, or your own for a step, a serial draft pass, a row and a "
        "round, such as 1.2ms,0.4ms,5us.",
    ),
)

DRAFTING = options(
    click.option("--draft-dtype", default="auto", show_default=True, help="Number format of the drafter."),
    click.option(
        "--draft-cost",
        type=float,
        help="c: one drafted token over a plain step, such as 0.05, in place of the computed one.",
    ),
    click.option(
        "--draft-step",
        "draft_step_s",
        callback=seconds_given,
        help="Measured time of drafting one token, such as 0.7ms.",
    ),
    click.option(
        "--draft-round",
        "draft_round_s",
        callback=seconds_given,
        help="Measured time of all drafting of a round.",
    ),
    click.option(
        "--overlap",
        type=float,
        default=0.0,
        show_default=True,
        help="Share of drafting hidden behind the verify, 0..1.",
    ),
)

ACCEPTANCE = options(
    click.option(
        "--alpha",
        type=float,
        help="Chance that a draft is accepted once those before it were, 0..1, the same for all.",
    ),
    click.option(
        "--acceptance-length",
        type=float,
        help="Tokens per round, the target's own (bonus) token included; with --measured-k.",
    ),
    click.option(
        "--measured-k",
        type=int,
        help="K that the acceptance length, or a file without it, was measured with.",
    ),
    click.option("--survival", help="P(first i drafts all accepted), for example 0.8,0.6,0.45."),
    click.option(
        "--decay",
        metavar="FIRST,LIMIT",
        help="Rate of the first draft and rate that far drafts settle at, for example 0.8,0.65.",
    ),
    click.option(
        "--acceptance",
        metavar="FILE|NAME",
        help="What an engine wrote (metrics, log, benchmark result), a JSON or YAML file (histogram, survival, "
        "lengths by K, mixture ...), or a name of `acceptance list`.",
    ),
)

WIDTH = 132
"""Columns a table may take: on a narrow terminal lines wrap, which loses nothing; cut names would."""

ACCEPTANCE_NAMES = ("alpha", "acceptance_length", "measured_k", "survival", "acceptance", "decay")


def console() -> Console:
    """Return the console results go to: wide enough for tables where there is no terminal."""
    from rich.console import Console

    # Names such as "E[tokens]" are text, not markup.
    class Piped(Console):
        def on_broken_pipe(self) -> None:
            """Let the command line end quietly when the reader went away (`| head`)."""
            raise BrokenPipeError

    made = Piped(highlight=False, soft_wrap=True, markup=False)
    width = max(made.width, WIDTH) if made.is_terminal else WIDTH
    return Piped(highlight=False, soft_wrap=True, markup=False, width=width)


def show(*parts: RenderableType) -> None:
    """Print results."""
    out = console()
    for part in parts:
        out.print(part)


def print_json(data: Any) -> None:
    """Print data as JSON."""
    click.echo(json.dumps(plain(data), indent=2, allow_nan=False))


def plain(data: Any) -> Any:
    """Turn a result into what JSON can hold: tuples to lists, infinities and nan to null."""
    if isinstance(data, dict):
        return {key: plain(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [plain(value) for value in data]
    if isinstance(data, bool | int | str) or data is None:
        return data
    value = float(data)
    return value if abs(value) < float("inf") else None


def writable(path: Path, endings: Iterable[str] = (), *, overwrite: bool = True) -> Path:
    """Check before any work that a result can be written, and make its folder.

    Raises
    ------
    RooflineError
        The folder cannot be made or written, the path is a folder, or the ending is not one of those offered.
    """
    endings = tuple(endings)
    if endings and path.suffix.lower() not in endings:
        raise RooflineError(
            f"{path}: {path.suffix or 'no ending'} cannot be written; use {' or '.join(endings)}"
        )
    if os.path.isdir(path):  # noqa: PTH112 - False for names too long, which the probe below refuses
        raise RooflineError(f"{path} is a folder; give a file name")
    if not overwrite and os.path.exists(path):  # noqa: PTH110
        raise RooflineError(f"{path} exists; give another --out, or --overwrite to replace it")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        probe = path.parent / f".{path.name}.probe"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise RooflineError(
            f"{path.parent} cannot be written ({error.strerror}); choose another --out"
        ) from error
    return path
