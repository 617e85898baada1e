"""The microbenchmark with a progress bar (on standard error, so that results can be piped)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

if TYPE_CHECKING:
    from rooflinekit.microbench.suite import SuiteResult


def measure(
    device_name: str, out: Path, *, budget: str = "quick", seed: int = 0, overwrite: bool = False
) -> SuiteResult:
    """Measure a device into a file.

    Parameters
    ----------
    device_name
        ``auto``, ``cpu`` or ``cuda``.
    out
        JSON Lines file; each case is saved as it finishes.
    budget, seed, overwrite
        As in ``rooflinekit bench``.
    """
    from rooflinekit.microbench.device import open_device
    from rooflinekit.microbench.suite import Progress as Event
    from rooflinekit.microbench.suite import run_suite

    device = open_device(device_name)
    bar = Progress(
        TextColumn("measuring"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[latest]}", markup=False),
        console=Console(stderr=True),
        transient=True,
    )
    with bar:
        task = bar.add_task("", total=None, latest="")

        def tell(event: Event) -> None:
            done = event.index - (0 if event.stage in ("end", "skip") else 1)
            bar.update(task, total=event.total, completed=done, latest=f"{event.name}  {event.text}"[:64])

        return run_suite(device, out, budget=budget, seed=seed, progress=tell, overwrite=overwrite)
