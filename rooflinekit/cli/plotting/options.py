"""Options of ``rooflinekit plot``, and the one way a picture leaves the program."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rooflinekit.app.asking import Asked
    from rooflinekit.plot.caption import Caption

ENDINGS = (".png", ".svg", ".pdf")
OUT = click.option(
    "--out", required=True, type=click.Path(path_type=Path), help="File to write: .png, .svg or .pdf."
)
CONTEXT = click.option(
    "--context", type=float, default=4096, show_default=True, help="Tokens in the KV cache."
)
MAX_K = click.option("--max-k", type=int, default=16, show_default=True, help="Largest K to try.")
OVERSIZE = click.option("--allow-oversize", is_flag=True, help="Draw even what does not fit into memory.")


def save(ax: Any, out: Path) -> None:
    """Write a picture and say so."""
    from rooflinekit.plot.style import save as write

    click.echo(f"wrote {write(ax, out)}")


def words_of(text: str, option: str, example: str) -> list[str]:
    """Words of a list with commas."""
    found = [word.strip() for word in text.split(",") if word.strip()]
    if not found:
        raise click.UsageError(f"{option} is empty; write for example {option} {example}")
    return found


def short_names(drafters: list[str]) -> list[str]:
    """Names of drafters as a line is labelled: of a small model its own, of a file its name."""
    return [Path(name.partition(":")[2] or name).name for name in drafters]


def whole_numbers(text: str) -> tuple[int, ...]:
    """Values of ``--ks``."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not all(part.isdecimal() and 1 <= int(part) <= 1024 for part in parts):
        raise click.UsageError(
            f"--ks {text!r} is not a list of whole numbers from 1 to 1024; write --ks 1,3,7"
        )
    return tuple(int(part) for part in parts)


def asked(drafter: str, options: dict[str, Any], *, max_k: int = 16) -> Asked:
    """Model, device, drafter, acceptance and drafting from the options of a command."""
    from rooflinekit.app.asking import asked_case

    given = dict(options)
    return asked_case(given.pop("model"), given.pop("hardware"), drafter, max_k=max_k, k=None, options=given)


def caption(one: Asked, **fixed: Any) -> Caption:
    """What stands above a picture of this case (see :func:`~rooflinekit.plot.caption.caption_of`)."""
    from rooflinekit.plot.caption import caption_of

    calibration = one.ready.calibration.name if one.ready.calibration else "datasheet"
    return caption_of(one.case, one.ready.hardware.title, calibration, **fixed)
