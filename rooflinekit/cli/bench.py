"""``rooflinekit bench``."""

from __future__ import annotations

from pathlib import Path

import click

from rooflinekit.cli.common import BUDGET, DEVICE_KIND, writable


@click.command("bench")
@DEVICE_KIND
@BUDGET
@click.option("--seed", type=int, default=0, show_default=True, help="Order of the cases and random data.")
@click.option("--overwrite", is_flag=True, help="Replace an existing file.")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="JSON Lines file to write.")
def command(device: str, budget: str, seed: int, overwrite: bool, out: Path) -> None:  # noqa: FBT001
    """Measure this machine; each case is saved as it finishes."""
    from rooflinekit.demo.measuring import measure
    from rooflinekit.errors import CheckFailed

    writable(out)
    result = measure(device, out, budget=budget, seed=seed, overwrite=overwrite)
    click.echo(f"wrote {out}: {len(result.cases)} cases in {result.seconds:.0f} s")
    if result.wrong:
        raise CheckFailed(f"wrong results were computed, and not recorded, by: {', '.join(result.wrong)}")
