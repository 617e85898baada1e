"""What public numbers say about a device or a file: which bandwidth is the roof, bits of a weight, launches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rooflinekit.errors import RooflineError
from rooflinekit.work import Pass, Real, Work


@dataclass(frozen=True, slots=True, kw_only=True)
class BandwidthUse:
    """A bandwidth in use against the probe that is its roof.

    Attributes
    ----------
    ceiling
        Probe that was taken: ``read`` before any other, because decoding reads weights and stores nothing.
    fraction
        Bandwidth in use over the probe's, at the same number of threads.
    best_threads, headroom
        Threads at which the probe is fastest, and that over the probe at the threads in use.
    """

    ceiling: str
    fraction: float
    best_threads: int
    headroom: float


def bandwidth_use(
    used_bytes_per_s: float, probes: Mapping[str, Mapping[int, float]], threads: int
) -> BandwidthUse:
    """Judge the bandwidth of a decode by the probe that moves memory as a decode does.

    STREAM copy and triad store as much as they load (a third of triad's traffic, more with write-allocate), so
    a decode can exceed them; a read-only probe is its ceiling. Among others the fastest is the least wrong.

    Parameters
    ----------
    used_bytes_per_s
        Bytes that a plain step reads over its time (B/s).
    probes
        Bandwidth (B/s) by probe (``read``, ``copy``, ``triad`` ...) and threads.
    threads
        Threads that the decode used.

    Raises
    ------
    RooflineError
        No probe was run with that number of threads.
    """
    usable = {name: runs for name, runs in probes.items() if threads in runs}
    if not usable:
        raise RooflineError(
            f"no bandwidth probe was run with {threads} threads; add one, best a read-only one"
        )
    name = "read" if "read" in usable else max(usable, key=lambda one: usable[one][threads])
    runs = usable[name]
    best = max(runs, key=runs.__getitem__)
    return BandwidthUse(
        ceiling=name,
        fraction=used_bytes_per_s / runs[threads],
        best_threads=best,
        headroom=runs[best] / runs[threads],
    )


def bits_per_weight(file_bytes: float, params: float) -> float:
    """Mean bits of a weight of a file: bytes over *counted* parameters, not over the number in the model's name.

    >>> round(bits_per_weight(71.93e9, 35.952e9), 1), round(bits_per_weight(71.93e9, 35e9), 2)
    (16.0, 16.44)
    """
    return 8.0 * file_bytes / params


def launches(works: Iterable[Work]) -> Real:
    """Kernels of a pass."""
    return sum(work.kernels for work in works)


def launch_draft_cost(plan: Iterable[Pass], k: float, target_pass: Iterable[Work]) -> float:
    """Draft cost c where a step is all launches: kernels of one drafted token over those of a plain step.

    About the ratio of layers, whatever the sizes: a small model may be as deep as its target. The bytes set
    c only where kernels are long against their launch (batch 1 on a fast device: often not).

    Parameters
    ----------
    plan
        The drafter's passes of a round of ``k`` drafts.
    k
        Drafts of that round.
    target_pass
        Works of a plain step.
    """
    drafted = sum(float(one.repeats) * float(launches(one.works)) for one in plan)
    return drafted / k / float(launches(target_pass))
