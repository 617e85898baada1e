"""The run of a plan: checks before it, one line written as soon as a case stands, a result at the end."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import IO

from rooflinekit.errors import DeviceError, RooflineError
from rooflinekit.measurement import CLEAN, Measurement, Run, cleanest, sweep_of
from rooflinekit.measurement_file import to_line
from rooflinekit.microbench.device import Device
from rooflinekit.microbench.environment import environment, load_average
from rooflinekit.microbench.plans import BUDGETS, plan
from rooflinekit.microbench.sampling import Limits
from rooflinekit.microbench.session import Session, Sweep
from rooflinekit.units import render

REPEATS = 3
"""Disturbed sweeps that are measured once more at the end."""
LARGE_READ = 8e6
"""Reads that are long enough to tell a bandwidth (B)."""


@dataclass(frozen=True, slots=True)
class Progress:
    """What a run tells while it goes.

    Attributes
    ----------
    stage
        ``start`` (of a sweep), ``case`` (a measurement stands), ``skip`` (a sweep was left out) or
        ``end`` (of a sweep).
    name
        Sweep or case.
    index, total
        Number of the sweep from 1, number of sweeps.
    text
        Latest result, or the reason of a skip.
    measurement
        The case that stands, at stage ``case``.
    """

    stage: str
    name: str
    index: int
    total: int
    text: str = ""
    measurement: Measurement | None = None


@dataclass(frozen=True, slots=True)
class SuiteResult:
    """What a run of the suite found.

    Attributes
    ----------
    path
        The measurement file.
    run, cases
        Its contents.
    skipped
        Sweep and reason, for those left out.
    wrong
        Cases that no implementation got right, and were therefore not recorded.
    dropped
        Implementations that failed the gate where another one did not.
    seconds
        Duration of the run (s).
    """

    path: Path
    run: Run
    cases: tuple[Measurement, ...]
    skipped: tuple[tuple[str, str], ...] = ()
    wrong: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether all results were right (a sweep left out for memory is no wrong result)."""
        return not self.wrong

    @property
    def warnings(self) -> tuple[str, ...]:
        """Doubts about the run as a whole."""
        found = []
        if self.clean_share < 0.5:
            found.append(
                f"contended: {self.clean_share:.0%} of all samples clean; measure again on a quiet machine"
            )
        rates = [
            c.weight_bytes / c.median_s
            for c in self.cases
            if c.kind == "read" and c.weight_bytes >= LARGE_READ
        ]
        if rates and max(rates) > 1.3 * min(rates):
            low, high = render(min(rates), "B/s", 3), render(max(rates), "B/s", 3)
            found.append(
                f"the memory gave between {low} and {high}: compare a time with the read of its own sweep"
            )
        return tuple(found)

    @property
    def clean_share(self) -> float:
        """Share of clean samples over all cases (0..1)."""
        weights = [len(case.samples_s) for case in self.cases]
        clean = sum(case.clean_share * n for case, n in zip(self.cases, weights, strict=True))
        return clean / sum(weights) if weights else 1.0


def run_suite(
    device: Device,
    out: Path,
    budget: str = "quick",
    seed: int = 0,
    progress: Callable[[Progress], None] | None = None,
    *,
    overwrite: bool = False,
    sweeps: list[Sweep] | None = None,
    limits: Limits | None = None,
) -> SuiteResult:
    """Measure a device and write a measurement file, one line as soon as a case stands.

    An interruption leaves a valid file with the cases up to then.

    Parameters
    ----------
    device
        From :func:`~rooflinekit.microbench.device.open_device`.
    out
        File to write (JSON Lines).
    budget
        ``quick``, ``normal`` or ``full``: about 1, 5 and 20 minutes.
    seed
        Seed of data and order.
    progress
        Called at each step of the run.
    overwrite
        Whether an existing file may be replaced.
    sweeps, limits
        Another plan or other rules to stop than those of the budget.

    Raises
    ------
    RooflineError
        The file cannot be written or exists; the budget is unknown.
    DeviceError
        Memory is short for the plan, or nothing could be measured.
    """
    tell = progress or (lambda _: None)
    chosen = plan(budget, device.kind, device.dtypes) if sweeps is None else sweeps
    _check_memory(device, chosen, budget)
    begin = time.perf_counter()
    with _opened(out, overwrite=overwrite) as file:
        run = _run_record(device, budget, seed)
        _write(file, to_line(run), out)
        session = Session(device, limits or BUDGETS[budget], run.id, seed)
        state = _State(file, out, tell, len(chosen))
        for index, sweep in enumerate(chosen, start=1):
            _measure(session, sweep, index, state)
        session.attempt = 1
        for sweep in _disturbed(chosen, state.cases)[:REPEATS]:
            # The cleaner attempt counts when the file is read.
            _measure(session, sweep, state.total, state)
    if not state.cases and state.skipped:
        raise DeviceError(f"nothing could be measured: {state.skipped[0][1]}")
    return SuiteResult(
        path=out,
        run=run,
        cases=tuple(cleanest(state.cases)),
        skipped=tuple(state.skipped),
        wrong=tuple(session.wrong),
        dropped=tuple(session.dropped),
        seconds=time.perf_counter() - begin,
    )


@dataclass(slots=True)
class _State:
    file: IO[str]
    path: Path
    tell: Callable[[Progress], None]
    total: int
    cases: list[Measurement] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)


def _measure(session: Session, sweep: Sweep, index: int, state: _State) -> None:
    """Run one sweep; a lack of memory costs the sweep, not the run."""
    state.tell(Progress("start", sweep.name, index, state.total))
    try:
        for case in sweep.run(session):
            _write(state.file, to_line(case), state.path)
            state.cases.append(case)
            name = case.id.partition("/")[2]
            state.tell(Progress("case", name, index, state.total, describe(case), case))
    except (DeviceError, MemoryError, RuntimeError) as error:
        # torch raises RuntimeError for everything; only a lack of memory is no fault of the program.
        if not isinstance(error, DeviceError | MemoryError) and "out of memory" not in str(error):
            raise
        reason = str(error).partition("\n")[0] or "out of memory"
        state.skipped.append((sweep.name, reason))
        state.tell(Progress("skip", sweep.name, index, state.total, reason))
    finally:
        session.device.release()
    state.tell(Progress("end", sweep.name, index, state.total))


def _disturbed(sweeps: list[Sweep], cases: list[Measurement]) -> list[Sweep]:
    """Sweeps most of whose samples other programs disturbed, the worst first."""
    shares: dict[str, float] = {}
    for sweep in sweeps:
        mine = [c.clean_share for c in cases if sweep_of(c).partition("/")[2] == sweep.name]
        if mine and median(mine) < CLEAN:
            shares[sweep.name] = median(mine)
    return sorted((s for s in sweeps if s.name in shares), key=lambda s: shares[s.name])


def describe(case: Measurement) -> str:
    """Write a case in one line: time, rate, ratio, doubt.

    >>> facts = {"kind": "read", "dtype": "bf16", "shape": {}, "weight_bytes": 1e8}
    >>> describe(Measurement(id="r/read", samples_s=(0.002,), **facts))
    '2 ms, 50 GB/s'
    """
    seconds = case.median_s
    parts = [render(seconds, "s", 3)]
    if case.kind == "compute":
        parts.append(render(case.flops / seconds, "FLOP/s", 3))
    elif case.kind != "launch":
        parts.append(render(case.bytes / seconds, "B/s", 3))
    if case.ratio:
        parts.append(f"{case.ratio[0]:.2f} x")
    return ", ".join(parts) + (f" ({case.warnings[0]})" if case.warnings else "")


def _run_record(device: Device, budget: str, seed: int) -> Run:
    return Run(
        id=secrets.token_hex(4),
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        device=device.facts(),
        environment=environment(device),
        options={"budget": budget, "seed": seed, "load_average": load_average()},
    )


def _check_memory(device: Device, sweeps: list[Sweep], budget: str) -> None:
    needed = max((s.need_bytes(device) for s in sweeps if not s.optional), default=0.0)
    free = device.free_bytes()
    if needed > 0.9 * free:
        raise DeviceError(
            f"device {device.kind} has {render(free, 'B')} of memory free and budget {budget} needs "
            f"{render(needed, 'B')}; close other programs or choose a smaller budget"
        )


@contextmanager
def _opened(path: Path, *, overwrite: bool) -> Iterator[IO[str]]:
    """Open the file before anything is measured, so that no minute is lost to a bad path."""
    try:
        file = path.open("w" if overwrite else "x", encoding="utf-8")
    except FileExistsError as error:
        raise RooflineError(f"{path} exists; give another --out, or --overwrite to replace it") from error
    except OSError as error:
        raise RooflineError(
            f"{path} cannot be written ({error.strerror}); give an --out in a folder of yours"
        ) from error
    with file:
        yield file


def _write(file: IO[str], line: str, path: Path) -> None:
    try:
        file.write(line + "\n")
        file.flush()
    except OSError as error:
        raise RooflineError(
            f"{path} cannot be written ({error.strerror}); free some space and measure again"
        ) from error
